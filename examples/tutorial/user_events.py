"""User events: four simple ones and a text, put into the stream between the events of the kernel.

Writes what the logger caught and prints it as the guide shows it.

    python examples/tutorial/user_events.py [OUT.results]
"""

from __future__ import annotations

import sys

from satview.__main__ import main as satview
from satview.capture import nto
from satview.capture.sim.calls import TraceEvent
from satview.capture.sim.threads import Program
from satview.capture.tutorial import run_tutorial


def main() -> Program:
    """Log everything, insert five events."""
    # Whatever was set before: start from a known state.
    yield TraceEvent(nto._NTO_TRACE_DELALLCLASSES)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_THREAD)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_THREAD)

    yield TraceEvent(nto._NTO_TRACE_SETALLCLASSESFAST)
    yield TraceEvent(nto._NTO_TRACE_ADDALLCLASSES)
    yield TraceEvent(nto._NTO_TRACE_START)
    for n in range(1, 5):
        yield TraceEvent(nto._NTO_TRACE_INSERTSUSEREVENT, 111 * n, n, 11 * n)
    yield TraceEvent(nto._NTO_TRACE_INSERTUSRSTREVENT, 555, "Hello world")


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "user_events.results"
    run_tutorial(main, file, cpus=2, sys_release="6.2.1")
    sys.exit(satview(["traceprinter", "--layout", "6.1", "-f", file]))
