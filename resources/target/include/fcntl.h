/* Files are of this machine, but for /proc/PID/as, which is of the target. */
#ifndef SATVIEW_TARGET_FCNTL_H
#define SATVIEW_TARGET_FCNTL_H
#pragma GCC system_header
#include_next <fcntl.h>
#ifndef SATVIEW_TARGET_LIBRARY
int target_open(const char *name, int flags, ...);
#define open target_open
#endif
#endif
