"""`satview late` step by step: activities, figures, the worst instance, slow against fast; 1 s for 8 million events.

Args: [FILE.kev], else 10 million events of the mixed shape.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from satview.answers.late import late
from satview.opened import open_trace
from tests.benchmarks.made_traces import file_of
from tests.benchmarks.tables import measured

_MILLIONS = 12  # of slots


def run(args: list[str]) -> None:
    """Print one line per step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?", type=Path)
    trace = open_trace(parser.parse_args(args).file or file_of("mixed", _MILLIONS))
    print(f"{len(trace.events):,} events")
    lines = [("activities", *measured(lambda: late(trace))[:2])]
    found = late(trace)
    number = found.most_telling()
    for name, step in (
        ("figures", found.activities),
        ("worst, split", lambda: found.blame(found.worst(number, 1)) if number is not None else None),
        ("slow and fast", lambda: found.slow_against_fast(number) if number is not None else None),
    ):
        lines.append((name, *measured(step)[:2]))
    lines.append(("together", *np.sum([line[1:] for line in lines], axis=0).tolist()))
    for name, cpu_s, wall_s in lines:
        print(f"{name:14} {cpu_s:6.2f} s CPU {wall_s:6.2f} s")
