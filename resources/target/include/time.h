/* Clocks and timers of the target. */
#ifndef SATVIEW_TARGET_TIME_H
#define SATVIEW_TARGET_TIME_H
#pragma GCC system_header
#include_next <time.h>
#include <signal.h>
#ifndef SATVIEW_TARGET_LIBRARY
#ifdef __cplusplus
extern "C" {
#endif
int target_timer_create(clockid_t clock, struct sigevent *event, int *timer);
int target_timer_settime(int timer, int flags, const struct itimerspec *next, struct itimerspec *before);
int target_timer_delete(int timer);
int target_nanosleep(const struct timespec *length, struct timespec *left);
int target_clock_nanosleep(clockid_t clock, int flags, const struct timespec *when, struct timespec *left);
int target_clock_gettime(clockid_t clock, struct timespec *now);
#ifdef __cplusplus
}
#endif
#define timer_t int
#define timer_create target_timer_create
#define timer_settime target_timer_settime
#define timer_delete target_timer_delete
#define nanosleep target_nanosleep
#define clock_nanosleep target_clock_nanosleep
#define clock_gettime target_clock_gettime
#endif
#endif
