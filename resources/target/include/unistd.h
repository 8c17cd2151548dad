#ifndef SATVIEW_TARGET_UNISTD_H
#define SATVIEW_TARGET_UNISTD_H
#pragma GCC system_header
#include_next <unistd.h>
#ifndef SATVIEW_TARGET_LIBRARY
#ifdef __cplusplus
extern "C" {
#endif
pid_t target_getpid(void);
unsigned target_sleep(unsigned seconds);
unsigned delay(unsigned milliseconds);
int target_usleep(unsigned microseconds);
int target_pause(void);
#ifdef __cplusplus
}
#endif
#define getpid target_getpid
#define sleep target_sleep
#define usleep target_usleep
#define pause target_pause
#endif
#endif
