/* Channels with names. */
#ifndef SATVIEW_TARGET_DISPATCH_H
#define SATVIEW_TARGET_DISPATCH_H
#pragma GCC system_header
#include <sys/neutrino.h>

#define NAME_FLAG_ATTACH_GLOBAL 2

typedef struct {
    void *dpp;
    int chid;
} name_attach_t;

#ifdef __cplusplus
extern "C" {
#endif
name_attach_t *name_attach(void *dispatch, const char *name, unsigned flags);
int name_detach(name_attach_t *attached, unsigned flags);
int name_open(const char *name, int flags);
int name_close(int coid);
#ifdef __cplusplus
}
#endif
#endif
