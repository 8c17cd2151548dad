/* Threads, and all kernel calls or with -n NUMBER one of them, wide. First: tracelogger -d1 -n 3 -f calls.kev & */
#include <stdlib.h>
#include <unistd.h>
#include "tracing.h"

int main(int count, char **arguments)
{
    int number = -1, option;
    while ((option = getopt(count, arguments, "n:")) != -1) {
        if (option != 'n') {
            fprintf(stderr, "usage: %s [-n NUMBER]\n", arguments[0]);
            return 2;
        }
        number = (int)strtol(optarg, NULL, 10);
    }
    if (start_from_nothing() != 0)
        return 1;
    DO(TraceEvent(_NTO_TRACE_SETALLCLASSESWIDE));
    DO(TraceEvent(_NTO_TRACE_ADDCLASS, _NTO_TRACE_THREAD));
    if (number == -1)
        DO(TraceEvent(_NTO_TRACE_ADDCLASS, _NTO_TRACE_KERCALL));
    else
        DO(TraceEvent(_NTO_TRACE_ADDEVENT, _NTO_TRACE_KERCALL, number));
    DO(start_tracing());
    return 0;
}
