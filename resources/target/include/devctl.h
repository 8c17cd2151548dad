#ifndef SATVIEW_TARGET_DEVCTL_H
#define SATVIEW_TARGET_DEVCTL_H
#include <stddef.h>

int devctl(int file, int command, void *data, size_t size, int *info);
#endif
