"""All tables of statistics over 10 million slots, whole and a hundredth, against a plain copy of the file.

Args: [millions].
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis
from satview.base.time import TimeWindow
from satview.formats.kev.reader import open_kev
from tests.benchmarks.filters import copy_of
from tests.benchmarks.load import median_ns
from tests.benchmarks.made_traces import make_file

TABLES = ("states", "cpus", "events", "calls", "messages", "interrupts")  # threads and processes add these up


def run(args: list[str]) -> None:
    """Print one line per table: milliseconds, times a copy of the file's bytes; links and basis are cached."""
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=10)
    millions = parser.parse_args(args).millions
    path = make_file(Path(tempfile.gettempdir()) / f"satview-mixed-200-4-{millions:g}m.kev", int(millions * 1e6))
    copy_ns = copy_of(path)
    trace = open_kev(path)
    print(f"{len(trace.events):,} events; copy of the file {copy_ns / 1e6:.1f} ms")

    def report(name: str, took_ns: int) -> None:
        per_event = took_ns / len(trace.events)
        print(f"{name:<28} {took_ns / 1e6:8.1f} ms  {per_event:6.2f} ns/event  {took_ns / copy_ns:6.2f} x copy")

    report("basis: runs, interrupts", median_ns(lambda: (Basis(trace).runs, Basis(trace).interrupts)))
    basis = Basis(trace)
    _ = basis.runs, basis.interrupts
    whole = trace.window
    hundredth = TimeWindow(whole.start + whole.length // 2, whole.start + whole.length // 2 + whole.length // 100)
    for title, window in (("whole trace", whole), ("a hundredth", hundredth)):
        total_ns = 0
        for table in TABLES:
            took_ns = median_ns(
                lambda table=table, window=window: getattr(Statistics(trace, window, basis=basis), table)
            )
            report(f"{title}: {table}", took_ns)
            total_ns += took_ns
        report(f"{title}: all tables", total_ns)
