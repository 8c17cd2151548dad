"""Event handlers: two handlers that let events pass in turns, a thread that runs after a RING0 call after ...

Writes what the logger caught and prints it as the guide shows it.

    python examples/tutorial/event_handlers.py [OUT.results]
"""

from __future__ import annotations

import sys

from satview.__main__ import main as satview
from satview.capture import nto
from satview.capture.emit import EventData
from satview.capture.sim.calls import Sleep, ThreadCtl, TraceEvent
from satview.capture.sim.threads import Program
from satview.capture.tutorial import run_tutorial

ONE_SECOND = 1_000_000_000


class Turns:
    """The state that both handlers share."""

    def __init__(self) -> None:
        self.call_is_next = False

    def ring0_call(self, _data: EventData) -> int:
        """Let a RING0 call pass if a thread was the last to pass."""
        if not self.call_is_next:
            return 0
        self.call_is_next = False
        return 1

    def thread_runs(self, _data: EventData) -> int:
        """Let a running thread pass if a call was the last to pass."""
        if self.call_is_next:
            return 0
        self.call_is_next = True
        return 1


def main() -> Program:
    """Attach both handlers, trace for a second, stop, flush, detach."""
    turns = Turns()
    first, second = EventData(), EventData()
    # Whatever was set before: start from a known state.
    yield TraceEvent(nto._NTO_TRACE_DELALLCLASSES)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_THREAD)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_THREAD)

    yield TraceEvent(nto._NTO_TRACE_SETALLCLASSESFAST)
    # Event handlers need I/O privilege.
    yield ThreadCtl(nto._NTO_TCTL_IO)
    yield TraceEvent(nto._NTO_TRACE_ADDEVENT, nto._NTO_TRACE_KERCALLENTER, nto.__KER_RING0)
    yield TraceEvent(
        nto._NTO_TRACE_ADDEVENTHANDLER, nto._NTO_TRACE_KERCALLENTER, nto.__KER_RING0, turns.ring0_call, first
    )
    yield TraceEvent(nto._NTO_TRACE_ADDEVENT, nto._NTO_TRACE_THREAD, nto._NTO_TRACE_THRUNNING)
    yield TraceEvent(
        nto._NTO_TRACE_ADDEVENTHANDLER, nto._NTO_TRACE_THREAD, nto._NTO_TRACE_THRUNNING, turns.thread_runs, second
    )
    yield TraceEvent(nto._NTO_TRACE_START)
    yield Sleep(ONE_SECOND)
    yield TraceEvent(nto._NTO_TRACE_STOP)
    # The last buffer is not full: hand it over.
    yield TraceEvent(nto._NTO_TRACE_FLUSHBUFFER)
    yield TraceEvent(nto._NTO_TRACE_DELEVENTHANDLER, nto._NTO_TRACE_KERCALLENTER, nto.__KER_RING0)
    yield TraceEvent(nto._NTO_TRACE_DELEVENTHANDLER, nto._NTO_TRACE_THREAD, nto._NTO_TRACE_THRUNNING)
    # The handlers' memory must outlive what the kernel still does with it.
    yield Sleep(ONE_SECOND)


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "event_handlers.results"
    run_tutorial(main, file)
    sys.exit(satview(["traceprinter", "--layout", "6.1", "-f", file]))
