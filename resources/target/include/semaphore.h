/* Semaphores of the target, each of one process. */
#ifndef SATVIEW_TARGET_SEMAPHORE_H
#define SATVIEW_TARGET_SEMAPHORE_H
#pragma GCC system_header
#include_next <semaphore.h>
#ifndef SATVIEW_TARGET_LIBRARY
#ifdef __cplusplus
extern "C" {
#endif
int target_sem_init(sem_t *semaphore, int shared, unsigned count);
int target_sem_wait(sem_t *semaphore);
int target_sem_post(sem_t *semaphore);
int target_sem_destroy(sem_t *semaphore);
#ifdef __cplusplus
}
#endif
#define sem_init target_sem_init
#define sem_wait target_sem_wait
#define sem_post target_sem_post
#define sem_destroy target_sem_destroy
#endif
#endif
