/* Events as QNX has them instead of those of this machine; signals of the target end a program or its pause(). */
#ifndef SATVIEW_TARGET_SIGNAL_H
#define SATVIEW_TARGET_SIGNAL_H
#pragma GCC system_header
#include_next <signal.h>

#define SIGEV_PULSE 4
#define SIGEV_UNBLOCK 5
#define SIGEV_INTR 6
#define SIGEV_PULSE_PRIO_INHERIT (-1)
#undef SIGEV_NONE
#undef SIGEV_SIGNAL
#define SIGEV_NONE 0
#define SIGEV_SIGNAL 1

struct target_sigevent {
    int sigev_notify;
    union {
        int sigev_signo, sigev_coid, sigev_id;
    };
    union sigval sigev_value;
    short sigev_code, sigev_priority;
};
#undef sigev_notify_function
#undef sigev_notify_attributes
#define sigevent target_sigevent

#define SIGEV_NONE_INIT(event) ((event)->sigev_notify = SIGEV_NONE)
#define SIGEV_INTR_INIT(event) ((event)->sigev_notify = SIGEV_INTR)
#define SIGEV_UNBLOCK_INIT(event) ((event)->sigev_notify = SIGEV_UNBLOCK)
#define SIGEV_SIGNAL_INIT(event, number) ((event)->sigev_notify = SIGEV_SIGNAL, (event)->sigev_signo = (number))
#define SIGEV_PULSE_INIT(event, coid, priority, code, value) \
    ((event)->sigev_notify = SIGEV_PULSE, (event)->sigev_coid = (coid), (event)->sigev_priority = (short)(priority), \
     (event)->sigev_code = (short)(code), (event)->sigev_value.sival_int = (int)(value))

#ifndef SATVIEW_TARGET_LIBRARY
int target_kill(int pid, int number);
#define kill target_kill
#endif
#endif
