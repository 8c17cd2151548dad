/* What the programs here share: a refused call is reported and ends the program. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/trace.h>
#include <unistd.h>

#define DO(call) \
    do { \
        if ((call) == -1) { \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(errno)); \
            return 1; \
        } \
    } while (0)

/* Switches off whatever an earlier program has switched on. */
static inline int start_from_nothing(void)
{
    DO(TraceEvent(_NTO_TRACE_DELALLCLASSES));
    DO(TraceEvent(_NTO_TRACE_CLRCLASSPID, _NTO_TRACE_KERCALL));
    DO(TraceEvent(_NTO_TRACE_CLRCLASSTID, _NTO_TRACE_KERCALL));
    DO(TraceEvent(_NTO_TRACE_CLRCLASSPID, _NTO_TRACE_THREAD));
    DO(TraceEvent(_NTO_TRACE_CLRCLASSTID, _NTO_TRACE_THREAD));
    return 0;
}

/* Starts tracing. That is cancelled while there are no buffers: a logger that has just begun needs a moment. */
static inline int start_tracing(void)
{
    int tries;
    for (tries = 0; TraceEvent(_NTO_TRACE_START) == -1; ++tries) {
        if (errno != ECANCELED || tries == 100)
            return -1;
        usleep(100000);
    }
    return 0;
}
