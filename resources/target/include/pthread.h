/* Threads of the target; mutexes and the like are each of one process. A mutex inherits priorities by default. */
#ifndef SATVIEW_TARGET_PTHREAD_H
#define SATVIEW_TARGET_PTHREAD_H
#pragma GCC system_header
#include_next <pthread.h>
#include <errno.h>
#include <time.h>
#ifndef SATVIEW_TARGET_LIBRARY
#ifdef __cplusplus
extern "C" {
#endif
int target_thread_create(pthread_t *native, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int target_thread_join(pthread_t thread, void **result);
int target_setname(pthread_t thread, const char *name);
int target_setschedparam(pthread_t thread, int policy, const struct sched_param *parameters);
int target_setschedprio(pthread_t thread, int priority);
int target_getschedparam(pthread_t thread, int *policy, struct sched_param *parameters);
int target_yield(void);
int target_mutexattr_init(pthread_mutexattr_t *attributes);
int target_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int target_mutex_lock(pthread_mutex_t *mutex);
int target_mutex_unlock(pthread_mutex_t *mutex);
int target_mutex_destroy(pthread_mutex_t *mutex);
int target_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes);
int target_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int target_cond_signal(pthread_cond_t *condition);
int target_cond_broadcast(pthread_cond_t *condition);
int target_cond_destroy(pthread_cond_t *condition);
int target_barrier_init(void *barrier, const void *attributes, unsigned count);
int target_barrier_wait(void *barrier);
int target_rwlock_init(void *lock, const void *attributes);
int target_rwlock_rdlock(void *lock);
int target_rwlock_wrlock(void *lock);
int target_rwlock_unlock(void *lock);
#ifdef __cplusplus
}
#endif
#define pthread_create target_thread_create
#define pthread_join target_thread_join
#define pthread_setname_np target_setname
#define pthread_setschedparam target_setschedparam
#define pthread_setschedprio target_setschedprio
#define pthread_getschedparam target_getschedparam
#define sched_yield target_yield
#define pthread_mutexattr_init target_mutexattr_init
#define pthread_mutex_init target_mutex_init
#define pthread_mutex_lock target_mutex_lock
#define pthread_mutex_unlock target_mutex_unlock
#define pthread_mutex_destroy target_mutex_destroy
#define pthread_cond_init target_cond_init
#define pthread_cond_wait target_cond_wait
#define pthread_cond_signal target_cond_signal
#define pthread_cond_broadcast target_cond_broadcast
#define pthread_cond_destroy target_cond_destroy
#define pthread_barrier_init target_barrier_init
#define pthread_barrier_wait target_barrier_wait
#define pthread_rwlock_init target_rwlock_init
#define pthread_rwlock_rdlock target_rwlock_rdlock
#define pthread_rwlock_wrlock target_rwlock_wrlock
#define pthread_rwlock_unlock target_rwlock_unlock
#endif
#endif
