#pragma GCC system_header
#include_next <unistd.h>

extern int target_pause(void);
extern int target_close(int file);
#define pause target_pause
#define close target_close
