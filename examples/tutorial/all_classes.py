"""All classes: log everything, in fast mode.

Writes what the logger caught and prints it as the guide shows it.

    python examples/tutorial/all_classes.py [OUT.results]
"""

from __future__ import annotations

import sys

from satview.__main__ import main as satview
from satview.capture import nto
from satview.capture.sim.calls import TraceEvent
from satview.capture.sim.threads import Program
from satview.capture.tutorial import run_tutorial


def main() -> Program:
    """Set the filters and start; the logger ends after the number of buffers it was reported."""
    # Whatever was set before: start from a known state.
    yield TraceEvent(nto._NTO_TRACE_DELALLCLASSES)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_THREAD)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_THREAD)

    yield TraceEvent(nto._NTO_TRACE_SETALLCLASSESFAST)
    yield TraceEvent(nto._NTO_TRACE_ADDALLCLASSES)
    yield TraceEvent(nto._NTO_TRACE_START)


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "all_classes.results"
    run_tutorial(main, file)
    sys.exit(satview(["traceprinter", "--layout", "6.1", "-f", file]))
