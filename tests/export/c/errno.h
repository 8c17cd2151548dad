#pragma GCC system_header
#include_next <errno.h>

#define EOK 0
