#include_next <errno.h>

#define EOK 0
