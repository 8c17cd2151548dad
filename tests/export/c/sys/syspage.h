/* The clock of the test: a cycle is a nanosecond. */
#include <stdint.h>

struct qtime_entry {
    uint64_t cycles_per_sec;
};

extern struct qtime_entry target_qtime;
#define SYSPAGE_ENTRY(entry) (&target_##entry)
