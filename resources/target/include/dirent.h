/* /proc is that of the target, every other folder one of this machine. */
#ifndef SATVIEW_TARGET_DIRENT_H
#define SATVIEW_TARGET_DIRENT_H
#pragma GCC system_header
#include_next <dirent.h>
#ifndef SATVIEW_TARGET_LIBRARY
DIR *target_opendir(const char *name);
struct dirent *target_readdir(DIR *folder);
int target_closedir(DIR *folder);
#define opendir target_opendir
#define readdir target_readdir
#define closedir target_closedir
#endif
#endif
