"""Counts how often every thread entered every state.

python examples/count_states.py trace.kev
"""

from __future__ import annotations

import sys

import numpy as np

from satview.formats.registry import open_trace


def main(argv: list[str]) -> int:
    """Print one line per thread, the busiest first."""
    trace = open_trace(argv[0])
    rows = trace.states.event  # every change of state, grouped by thread
    threads = np.repeat(np.arange(len(trace.threads)), np.diff(trace.states.start))
    codes = trace.events.code[rows]
    changes = np.bincount(threads, minlength=len(trace.threads))
    for thread in np.argsort(-changes, kind="stable")[:20].tolist():
        if not changes[thread]:
            break
        kinds, counts = np.unique(codes[threads == thread], return_counts=True)
        pairs = zip(kinds.tolist(), counts.tolist(), strict=True)
        parts = [f"{trace.catalogue.name(code)} {count}" for code, count in pairs]
        print(f"{trace.thread_name(thread):<32} {changes[thread]:>7}  {', '.join(parts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
