/* Of /proc a program can ask for the path of a process. */
#ifndef SATVIEW_TARGET_PROCFS_H
#define SATVIEW_TARGET_PROCFS_H
#include <stdint.h>

#define DCMD_PROC_MAPDEBUG_BASE 0x4c

typedef struct {
    uint64_t vaddr;
    char path[1];
} procfs_debuginfo;
#endif
