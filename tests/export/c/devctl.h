#include <stddef.h>

extern int devctl(int file, int command, void *data, size_t size, int *info);
