/* One class: what threads do. First: tracelogger -d1 -n 3 -f one.kev & */
#include "tracing.h"

int main(void)
{
    if (start_from_nothing() != 0)
        return 1;
    /* A class that is added is wide, so that fast comes after it. */
    DO(TraceEvent(_NTO_TRACE_ADDCLASS, _NTO_TRACE_THREAD));
    DO(TraceEvent(_NTO_TRACE_SETALLCLASSESFAST));
    DO(start_tracing());
    return 0;
}
