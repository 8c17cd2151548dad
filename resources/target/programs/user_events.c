/* Everything, and five events of this program: four with two numbers, one with a text.
   First: tracelogger -d1 -n 3 -f user.kev & */
#include "tracing.h"

int main(void)
{
    int number;
    if (start_from_nothing() != 0)
        return 1;
    DO(TraceEvent(_NTO_TRACE_SETALLCLASSESFAST));
    DO(TraceEvent(_NTO_TRACE_ADDALLCLASSES));
    DO(start_tracing());
    for (number = 1; number <= 4; ++number)
        DO(TraceEvent(_NTO_TRACE_INSERTSUSEREVENT, 111 * number, number, 11 * number));
    DO(TraceEvent(_NTO_TRACE_INSERTUSRSTREVENT, 555, "Hello world"));
    return 0;
}
