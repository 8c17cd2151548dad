#include <stdint.h>

#define DCMD_PROC_MAPDEBUG_BASE 0x4c

typedef struct {
    uint64_t vaddr;
    char path[1];
} procfs_debuginfo;
