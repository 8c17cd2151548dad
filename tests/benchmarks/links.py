"""All links, waits, holders and transactions of 10 million slots, against loading the file; answers to Why?.

Args: [millions].
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import perf_counter_ns

import numpy as np
from numpy.typing import NDArray

from satview.analysis.why import why
from satview.formats.kev.reader import open_kev
from satview.linkage.calls import partners
from satview.linkage.chain import Links, reading_ahead
from satview.linkage.links import LinkKind
from satview.linkage.waits import state_ends
from satview.store.trace import Trace
from tests.benchmarks.load import median_ns
from tests.benchmarks.made_traces import make_file

RUNS = 4  # the first one also fills tables of the catalogue
QUESTIONS = 200
FRAME_MS = 1000 / 60
MOST_LOADS = 3  # all links together take at most so many times as long as loading


def run(args: list[str]) -> None:
    """Print one line per kind of links, in the order in which they are made, and their sum against loading."""
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=10)
    millions = parser.parse_args(args).millions
    path = make_file(Path(tempfile.gettempdir()) / f"satview-mixed-200-4-{millions:g}m.kev", int(millions * 1e6))
    load_ns = median_ns(lambda: open_kev(path))
    links_ns, steps = min((all_links(path) for _ in range(RUNS)), key=lambda run: run[0])
    trace = open_kev(path)
    print(f"{len(trace.events):,} events; loading {load_ns / 1e6:.0f} ms")
    for name, (took_ns, rows) in steps.items():
        print(f"{name:<14} {took_ns / 1e6:8.1f} ms  {rows:>10,} rows")
    print(f"all together   {links_ns / 1e6:8.1f} ms  {links_ns / load_ns:.2f} x loading (at most {MOST_LOADS})")
    took_ms = why_ms(trace)
    print(f"one Why?       median {np.median(took_ms):.1f}, 99 % within {np.percentile(took_ms, 99):.1f}, worst "
          f"{took_ms.max():.1f} ms (a frame: {FRAME_MS:.1f})")  # fmt: skip


def why_ms(trace: Trace) -> NDArray[np.float64]:
    """Return how long answers take about threads and moments drawn at random, once the links are there."""
    rng, window = np.random.default_rng(0), trace.window
    questions = [(int(rng.integers(1, len(trace.threads))), int(rng.integers(window.start, window.end)))
                 for _ in range(QUESTIONS)]  # fmt: skip
    took = np.zeros(QUESTIONS)
    for _ in range(2):  # the first time makes the links
        for number, (thread, at) in enumerate(questions):
            start_ns = perf_counter_ns()
            why(trace, thread, at)
            took[number] = (perf_counter_ns() - start_ns) / 1e6
    return took


def all_links(path: Path) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return how long all of it takes of a file just opened, and nanoseconds and rows of every step."""
    trace = open_kev(path)
    found, took = Links(trace), {}
    steps = {
        "partners": lambda: partners(trace), "state ends": lambda: state_ends(trace),
        **{str(kind): lambda kind=kind: found.of(kind) for kind in LinkKind},
        "blockers": lambda: found.blockers, "transactions": lambda: found.transactions,
    }  # fmt: skip
    begin_ns = perf_counter_ns()
    with reading_ahead(trace):
        took["reading ahead"] = perf_counter_ns() - begin_ns, 0
        for name, make in steps.items():
            start_ns = perf_counter_ns()
            rows = len(make())
            took[name] = perf_counter_ns() - start_ns, rows
    return perf_counter_ns() - begin_ns, took
