/* Every class of events, fast. First: tracelogger -d1 -n 3 -f all.kev & */
#include "tracing.h"

int main(void)
{
    if (start_from_nothing() != 0)
        return 1;
    DO(TraceEvent(_NTO_TRACE_SETALLCLASSESFAST));
    DO(TraceEvent(_NTO_TRACE_ADDALLCLASSES));
    DO(start_tracing());
    return 0; /* the logger ends by itself after its number of buffers */
}
