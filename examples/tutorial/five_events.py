"""Five events of four classes, in wide mode.

Writes what the logger caught and prints it as the guide shows it.

    python examples/tutorial/five_events.py [OUT.results]
"""

from __future__ import annotations

import sys

from satview.__main__ import main as satview
from satview.capture import nto
from satview.capture.sim.calls import TraceEvent
from satview.capture.sim.threads import Program
from satview.capture.tutorial import run_tutorial


def main() -> Program:
    """Log threads that run or are created, processes that are created, the clock interrupt, and MsgReadv() results."""
    # Whatever was set before: start from a known state.
    yield TraceEvent(nto._NTO_TRACE_DELALLCLASSES)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_THREAD)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_THREAD)

    yield TraceEvent(nto._NTO_TRACE_SETALLCLASSESWIDE)
    yield TraceEvent(nto._NTO_TRACE_ADDEVENT, nto._NTO_TRACE_THREAD, nto._NTO_TRACE_THRUNNING)
    yield TraceEvent(nto._NTO_TRACE_ADDEVENT, nto._NTO_TRACE_THREAD, nto._NTO_TRACE_THCREATE)
    yield TraceEvent(nto._NTO_TRACE_ADDEVENT, nto._NTO_TRACE_PROCESS, nto._NTO_TRACE_PROCCREATE_NAME)
    yield TraceEvent(nto._NTO_TRACE_ADDEVENT, nto._NTO_TRACE_INTENTER, nto._NTO_TRACE_INTFIRST)
    yield TraceEvent(nto._NTO_TRACE_ADDEVENT, nto._NTO_TRACE_KERCALLEXIT, nto.__KER_MSG_READV)
    yield TraceEvent(nto._NTO_TRACE_START)


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "five_events.results"
    run_tutorial(main, file)
    sys.exit(satview(["traceprinter", "--layout", "6.1", "-f", file]))
