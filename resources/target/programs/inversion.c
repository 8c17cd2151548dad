/* Priority inversion: `inversion` with a mutex that does not inherit, `inversion inherit` with one that does.
   low (10) holds the mutex, high (30) wants it, middle (20) computes and keeps low from running: all on one CPU. */
#include <pthread.h>
#include <sys/neutrino.h>
#include <time.h>
#include <unistd.h>
#include "tracing.h"

static pthread_mutex_t mutex;
static pthread_barrier_t start; /* all three are there before the first one begins */

static void begin(const char *name)
{
    pthread_setname_np(pthread_self(), name);
    ThreadCtl(_NTO_TCTL_RUNMASK, (void *)1);
    pthread_barrier_wait(&start);
}

static void compute_ms(int ms)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        volatile int spin = 100000;
        while (spin > 0)
            --spin;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void *low(void *unused)
{
    begin("low");
    pthread_mutex_lock(&mutex);
    compute_ms(15);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *middle(void *unused)
{
    begin("middle");
    delay(10);
    compute_ms(50);
    return unused;
}

static void *high(void *unused)
{
    begin("high");
    delay(5);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(int count, char **arguments)
{
    void *(*const bodies[])(void *) = {low, middle, high};
    const int priorities[] = {10, 20, 30};
    struct sched_param parameters = {0};
    pthread_mutexattr_t kind;
    pthread_attr_t attributes;
    pthread_t threads[3];
    int i;
    (void)arguments;
    pthread_setschedprio(pthread_self(), 40);
    pthread_mutexattr_init(&kind);
    if (count < 2)
        pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_NONE);
    pthread_mutex_init(&mutex, &kind);
    pthread_barrier_init(&start, NULL, 3);
    for (i = 0; i < 3; ++i) {
        pthread_attr_init(&attributes);
        pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(&attributes, SCHED_RR);
        parameters.sched_priority = priorities[i];
        pthread_attr_setschedparam(&attributes, &parameters);
        if ((errno = pthread_create(&threads[i], &attributes, bodies[i], NULL)) != 0) {
            perror("pthread_create");
            return 1;
        }
    }
    pthread_setschedprio(pthread_self(), 5); /* who waits for the end of low is below low */
    for (i = 0; i < 3; ++i)
        pthread_join(threads[i], NULL);
    return 0;
}
