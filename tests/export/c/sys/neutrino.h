#define _NTO_TCTL_IO 14

extern int ThreadCtl(int command, void *data);

#include <stdint.h>

typedef struct {
    int is_locked;
} intrspin_t;

extern void InterruptLock(intrspin_t *lock);
extern void InterruptUnlock(intrspin_t *lock);
extern uint64_t ClockCycles(void);
