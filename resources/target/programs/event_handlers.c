/* Two handlers that let events pass in turns: a RING0 call, a thread that runs, a RING0 call, ... for a second.
   8.0 has no handlers. First: tracelogger -d1 -n 1 -f turns.kev & */
#include <sys/kercalls.h>
#include <sys/neutrino.h>
#include <unistd.h>
#include "tracing.h"

static uint32_t words_of_call[20], words_of_thread[20]; /* room for all words of an event */
static event_data_t call_data = {.data_array = words_of_call}, thread_data = {.data_array = words_of_thread};
static int is_turn_of_call;

static int ring0_call(event_data_t *data)
{
    const int passes = is_turn_of_call;
    (void)data;
    is_turn_of_call = 0;
    return passes;
}

static int thread_runs(event_data_t *data)
{
    const int passes = !is_turn_of_call;
    (void)data;
    is_turn_of_call = 1;
    return passes;
}

int main(void)
{
    if (start_from_nothing() != 0)
        return 1;
    DO(TraceEvent(_NTO_TRACE_SETALLCLASSESFAST));
    DO(ThreadCtl(_NTO_TCTL_IO, 0)); /* handlers need I/O privilege */
    DO(TraceEvent(_NTO_TRACE_ADDEVENT, _NTO_TRACE_KERCALLENTER, __KER_RING0));
    DO(TraceEvent(_NTO_TRACE_ADDEVENTHANDLER, _NTO_TRACE_KERCALLENTER, __KER_RING0, ring0_call, &call_data));
    DO(TraceEvent(_NTO_TRACE_ADDEVENT, _NTO_TRACE_THREAD, _NTO_TRACE_THRUNNING));
    DO(TraceEvent(_NTO_TRACE_ADDEVENTHANDLER, _NTO_TRACE_THREAD, _NTO_TRACE_THRUNNING, thread_runs, &thread_data));
    DO(start_tracing());
    sleep(1);
    DO(TraceEvent(_NTO_TRACE_STOP));
    DO(TraceEvent(_NTO_TRACE_FLUSHBUFFER)); /* the last buffer is not full: hand it over */
    DO(TraceEvent(_NTO_TRACE_DELEVENTHANDLER, _NTO_TRACE_KERCALLENTER, __KER_RING0));
    DO(TraceEvent(_NTO_TRACE_DELEVENTHANDLER, _NTO_TRACE_THREAD, _NTO_TRACE_THRUNNING));
    sleep(1); /* the memory of handlers has to outlive what the kernel still does with it */
    return 0;
}
