"""Loading, links, text and the first exact picture of three shapes of traces, with floors; compares with an older run.

Shapes: `mixed` (drawn in numpy), `auto` (a long capture of the automotive workload, stamps at 2.6 GHz), `arm` (18 CPUs,
19.2 MHz, wide). Floors: a copy of the file's bytes; for pictures the import of QtWidgets.
Args: [millions of slots] [--shape NAME ...] [--json FILE] [--compare OLD.json]; exit code 1 if a ratio grew by 10 %.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from satview.__main__ import main as satview
from satview.core.library import describe
from satview.formats.kev.reader import open_kev
from tests.benchmarks.links import all_links
from tests.benchmarks.made_traces import SHAPES, file_of
from tests.helpers.core import without_core

GROWTH = 1.10
_KEPT = """
import sys
from satview.formats.kev.reader import open_kev
from tests.benchmarks.load import private_bytes
before = private_bytes()
trace = open_kev(sys.argv[1])
print((private_bytes() - before) / max(1, len(trace.events)))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: milliseconds of processor time (pictures: of the clock) or bytes, and its floor in the same unit."""

    shape: str
    name: str
    value: float
    unit: str
    floor: float

    @property
    def ratio(self) -> float:
        return self.value / self.floor if self.floor else 0.0


def run(args: list[str]) -> None:
    """Print one table; end with 1 if a ratio is more than a tenth above that of an older run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=10)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--compare", type=Path)
    options = parser.parse_args(args)
    print(f"core: {describe()}; {os.cpu_count()} CPUs")
    rows = []
    for shape in options.shape or SHAPES:
        rows += measured(shape, options.millions)
    for row in rows:
        print(f"{row.shape:6} {row.name:28} {row.value:10.1f} {row.unit:9} {row.ratio:8.2f} x floor {row.floor:.1f}")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    if options.compare:
        grown = slower(rows, [Row(**row) for row in json.loads(options.compare.read_text(encoding="utf-8"))])
        print("\n".join(grown) or "nothing is slower by a tenth")
        sys.exit(1 if grown else 0)


def slower(rows: list[Row], old: list[Row]) -> list[str]:
    """Return one line per figure whose ratio to its floor grew by more than a tenth."""
    before = {(row.shape, row.name): row for row in old}
    return [
        f"{row.shape} {row.name}: {row.ratio:.2f} x its floor, was {before[row.shape, row.name].ratio:.2f}"
        for row in rows
        if (row.shape, row.name) in before and row.ratio > before[row.shape, row.name].ratio * GROWTH
    ]


def measured(shape: str, millions: float) -> list[Row]:
    """Return the figures of one shape."""
    path = file_of(shape, millions)
    copy_ms = copied_ms(path)
    kept = subprocess.run([sys.executable, "-c", _KEPT, str(path)], check=True, capture_output=True, text=True).stdout
    rows = [
        Row(shape, "load", best_ms(lambda: open_kev(path), 3), "ms CPU", copy_ms),
        Row(shape, "kept after load", float(kept), "B/event", 1.0),
    ]
    with without_core():
        rows.append(Row(shape, "load, numpy code", best_ms(lambda: open_kev(path), 2), "ms CPU", copy_ms))
    rows.append(Row(shape, "all links", best_ms(lambda: all_links(path), 1), "ms CPU", rows[0].value))
    text = Path(tempfile.gettempdir()) / "satview-all.txt"
    took_ms = best_ms(lambda: satview(["traceprinter", "-f", str(path), "-o", str(text)]), 1)
    rows.append(Row(shape, "traceprinter", took_ms, "ms CPU", copy_ms))
    text.unlink()
    qt_ms = min(process_ms([sys.executable, "-c", "import PySide6.QtWidgets"]) for _ in range(3))
    picture = [sys.executable, "-m", "satview", str(path), "--screenshot", str(text.with_suffix(".png"))]
    rows.append(Row(shape, "exact picture", min(process_ms(picture) for _ in range(2)), "ms", qt_ms))
    return rows


def copied_ms(path: Path) -> float:
    """Return the processor time of one copy of the file's bytes."""
    data = np.fromfile(path, np.uint8)
    return best_ms(partial(np.copyto, np.empty_like(data), data), 5)


def best_ms(work: Callable[[], object], runs: int) -> float:
    """Return the least processor time of some runs: other programs cannot make it less."""
    times = []
    for _ in range(runs):
        start_ns = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - start_ns)
    return min(times) / 1e6


def process_ms(command: list[str]) -> float:
    """Return how long a program runs by the clock."""
    start_ns = time.perf_counter_ns()
    subprocess.run(command, check=False, capture_output=True, env={**os.environ, "QT_QPA_PLATFORM": "offscreen"})
    return (time.perf_counter_ns() - start_ns) / 1e6
