"""Lists kernel calls by the time spent in them, from entry to exit of the same thread.

python examples/kernel_calls.py trace.kev
"""

from __future__ import annotations

import sys

import numpy as np

from satview.base.time import format_duration
from satview.events import wire
from satview.formats.registry import open_trace


def main(argv: list[str]) -> int:
    """Print calls, number, total, mean and longest time; the largest total first."""
    trace = open_trace(argv[0])
    code, thread = trace.events.code, trace.events.thread
    calls = np.flatnonzero((code >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL) & (thread != 0))
    calls = calls[np.argsort(thread[calls], kind="stable")]  # each thread's calls one after the other, in time order
    number, phase = code[calls] & 0x7F, code[calls] >> 7 & 3
    is_pair = (phase[:-1] == 0) & (phase[1:] == 1) & (number[:-1] == number[1:])
    is_pair &= thread[calls[:-1]] == thread[calls[1:]]
    enter, leave = calls[:-1][is_pair], calls[1:][is_pair]
    spent = trace.events.time_cycles[leave] - trace.events.time_cycles[enter]
    rows = []
    for call in np.unique(code[enter] & 0x7F).tolist():
        mine = spent[code[enter] & 0x7F == call]
        rows.append((int(mine.sum()), len(mine), int(mine.max()), trace.catalogue.name(wire.code(2, call))))
    print(f"{'call':<26}{'count':>8}{'total':>12}{'mean':>12}{'longest':>12}")
    for total, count, longest, name in sorted(rows, reverse=True):
        times = [format_duration(trace.clock.duration_ns(cycles)) for cycles in (total, total // count, longest)]
        print(f"{name:<26}{count:>8}" + "".join(f"{text:>12}" for text in times))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
