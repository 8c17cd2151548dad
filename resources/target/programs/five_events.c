/* Five events of four classes, wide. First: tracelogger -d1 -n 3 -f five.kev & */
#include <sys/kercalls.h>
#include "tracing.h"

int main(void)
{
    if (start_from_nothing() != 0)
        return 1;
    DO(TraceEvent(_NTO_TRACE_SETALLCLASSESWIDE));
    DO(TraceEvent(_NTO_TRACE_ADDEVENT, _NTO_TRACE_THREAD, _NTO_TRACE_THRUNNING));
    DO(TraceEvent(_NTO_TRACE_ADDEVENT, _NTO_TRACE_THREAD, _NTO_TRACE_THCREATE));
    DO(TraceEvent(_NTO_TRACE_ADDEVENT, _NTO_TRACE_PROCESS, _NTO_TRACE_PROCCREATE_NAME));
#ifdef _NTO_TRACE_INTENTER /* 8.0 has other events of interrupts */
    DO(TraceEvent(_NTO_TRACE_ADDEVENT, _NTO_TRACE_INTENTER, _NTO_TRACE_INTFIRST));
#endif
    DO(TraceEvent(_NTO_TRACE_ADDEVENT, _NTO_TRACE_KERCALLEXIT, __KER_MSG_READV));
    DO(start_tracing());
    return 0;
}
