#define O_RDONLY 0

extern int target_open(const char *name, int flags);
#define open target_open
