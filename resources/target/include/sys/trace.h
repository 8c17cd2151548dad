/* The trace interface of a program for satview's simulated target. */
#ifndef SATVIEW_TARGET_TRACE_H
#define SATVIEW_TARGET_TRACE_H
#pragma GCC system_header
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "release.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t __traceentry;
typedef uint32_t _Uint32t;
typedef uint32_t _uint32t;

typedef struct {
    __traceentry header;
    uint32_t *data_array; /* of the program; room for every word of the events that its handler gets */
    uint32_t el_num;
    void *area;
    uint32_t feature_mask;
    uint32_t feature[2];
} event_data_t;

int TraceEvent(int mode, ...);
int trace_logf(int code, const char *format, ...);
int trace_nlogf(int code, int most, const char *format, ...);
int trace_vnlogf(int code, int most, const char *format, va_list arguments);
int trace_logi(int code, unsigned first, unsigned second);
int trace_logb(int code, const void *data, size_t size);
int trace_logbc(unsigned internal_class, int code, const void *data, size_t size);
int trace_func_enter(void *function, void *caller);
int trace_func_exit(void *function, void *caller);
int trace_here(void *address);

#ifdef __cplusplus
}
#endif
#endif
