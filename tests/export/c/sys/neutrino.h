#define _NTO_TCTL_IO 14

extern int ThreadCtl(int command, void *data);
