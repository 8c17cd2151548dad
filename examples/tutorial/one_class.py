"""One class: only the states of threads.

Writes what the logger caught and prints it as the guide shows it.

    python examples/tutorial/one_class.py [OUT.results]
"""

from __future__ import annotations

import sys

from satview.__main__ import main as satview
from satview.capture import nto
from satview.capture.sim.calls import TraceEvent
from satview.capture.sim.threads import Program
from satview.capture.tutorial import run_tutorial


def main() -> Program:
    """Log the class THREAD."""
    # Whatever was set before: start from a known state.
    yield TraceEvent(nto._NTO_TRACE_DELALLCLASSES)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_THREAD)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_THREAD)

    # ADDCLASS sets every bit of the thread mask, the one for "wide" too; the fast mode requested after it clears that.
    yield TraceEvent(nto._NTO_TRACE_ADDCLASS, nto._NTO_TRACE_THREAD)
    yield TraceEvent(nto._NTO_TRACE_SETALLCLASSESFAST)
    yield TraceEvent(nto._NTO_TRACE_START)


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "one_class.results"
    run_tutorial(main, file)
    sys.exit(satview(["traceprinter", "--layout", "6.1", "-f", file]))
