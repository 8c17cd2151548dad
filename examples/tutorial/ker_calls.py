"""Kernel calls: all of them, or the one with the number given; threads too, to know who calls. Wide mode.

Writes what the logger caught and prints it as the guide shows it.

    python examples/tutorial/ker_calls.py [OUT.results] [-n NUMBER]
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from satview.__main__ import main as satview
from satview.capture import nto
from satview.capture.sim.calls import TraceEvent
from satview.capture.sim.threads import Program
from satview.capture.tutorial import run_tutorial

# A run in which the third buffer, all that -n 3 takes, ends with an event: one that is cut would be exit code 1.
SEED = 4


def main(number: int = -1) -> Program:
    """Log the class THREAD and one kernel call, or all."""
    # Whatever was set before: start from a known state.
    yield TraceEvent(nto._NTO_TRACE_DELALLCLASSES)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSPID, nto._NTO_TRACE_THREAD)
    yield TraceEvent(nto._NTO_TRACE_CLRCLASSTID, nto._NTO_TRACE_THREAD)

    yield TraceEvent(nto._NTO_TRACE_SETALLCLASSESWIDE)
    yield TraceEvent(nto._NTO_TRACE_ADDCLASS, nto._NTO_TRACE_THREAD)
    if number >= 0:
        yield TraceEvent(nto._NTO_TRACE_ADDEVENT, nto._NTO_TRACE_KERCALL, number)
    else:
        yield TraceEvent(nto._NTO_TRACE_ADDCLASS, nto._NTO_TRACE_KERCALL)
    yield TraceEvent(nto._NTO_TRACE_START)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", help="default: ker_calls.all.results, or ker_calls.NUMBER.results")
    parser.add_argument("-n", dest="number", type=int, default=-1)
    arguments = parser.parse_args()
    file = arguments.file or f"ker_calls.{'all' if arguments.number < 0 else arguments.number}.results"
    run_tutorial(partial(main, arguments.number), file, seed=SEED)
    sys.exit(satview(["traceprinter", "--layout", "6.1", "-f", file]))
