"""Loading, links, text, pictures and memory of three shapes of traces, with floors; compares with an older run.

Shapes: `mixed` (drawn in numpy), `auto` (a long capture of the automotive workload, stamps at 2.6 GHz), `arm` (18 CPUs,
19.2 MHz, wide). Floors: a copy of the file's bytes, a C program that reads or prints as the vendor's does, the
load itself; for pictures the import of QtWidgets.
Args: [millions of slots] [--shape NAME ...] [--json FILE] [--compare OLD.json]; exit code 1 if a ratio grew by 10 %.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from satview.core.library import describe
from tests.benchmarks.links import all_links
from tests.benchmarks.load import copies_and_loads
from tests.benchmarks.made_traces import SHAPES, file_of
from tests.benchmarks.peers import command_ms, peer_ms
from tests.benchmarks.pictures import best, figures
from tests.benchmarks.printing import OUTPUTS

GROWTH = 1.10


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: milliseconds of processor time or of the clock, or bytes, and its floor in the same unit."""

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
        if (row.shape, row.name) in before
        and row.unit != "ms"
        and row.value > 1
        and row.ratio > before[row.shape, row.name].ratio * GROWTH
    ]


def measured(shape: str, millions: float) -> list[Row]:
    """Return the figures of one shape."""
    path = file_of(shape, millions)
    rows = loading(shape, path)
    return [*rows, *printing(shape, path, rows[0].value), *pictures(shape, path), *memory(shape, millions)]


def loading(shape: str, path: Path) -> list[Row]:
    """Return the time of loading, first of all with the core, and of all links."""
    copy, load = copies_and_loads(path, 3)
    load_ms = load.both
    rows = [
        Row(shape, "load", load_ms, "ms CPU", copy.both),
        Row(shape, "load, user time", load.user, "ms CPU", copy.user),
    ]
    for name, does in (("a C reader", ""), ("one that reads 16 bytes a call", "unbuffered")):
        if reading_ms := peer_ms(path, does):
            rows.append(Row(shape, f"load, beside {name}", load_ms, "ms CPU", reading_ms))
    rows.append(Row(shape, "all links", best_ms(lambda: all_links(path), 1), "ms CPU", load_ms))
    return rows


def printing(shape: str, path: Path, load_ms: float) -> list[Row]:
    """Return the time of commands, start of Python included; texts beside a C program that prints."""
    printed_ms = peer_ms(path, "print") or load_ms
    floors = dict.fromkeys(OUTPUTS, printed_ms) | {"info": load_ms, "stats": load_ms}
    commands = OUTPUTS | {"info": ("info",), "stats": ("stats",)}
    satview = [sys.executable, "-m", "satview"]
    return [
        Row(shape, name, min(command_ms([*satview, *words, str(path)]) for _ in range(2)), "ms CPU", floors[name])
        for name, words in commands.items()
    ]


def pictures(shape: str, path: Path) -> list[Row]:
    """Return processor time from the start to pictures, and the exact one by the clock."""
    qt_s, qt_cpu_s = best("-", "off", "")["import"]
    with tempfile.TemporaryDirectory() as folder:
        fresh = best(str(path), "off", "")
        figures(str(path), folder, "keep")
        cached = best(str(path), folder, "keep")
    rows = {
        "empty window": fresh["window"][1],
        "first true picture": fresh["first"][1],
        "exact picture": fresh["exact"][1],
        "the same from the cache": cached["exact"][1],
        "the same in a running window": cached["again"][1],
    }
    found = [Row(shape, name, 1000 * cpu_s, "ms CPU", 1000 * qt_cpu_s) for name, cpu_s in rows.items()]
    return [*found, Row(shape, "exact picture, by the clock", 1000 * fresh["exact"][0], "ms", 1000 * qt_s)]


def memory(shape: str, millions: float) -> list[Row]:
    """Return what a window keeps per event: shown, with all lanes, closed again, closed for the third time."""
    command = [sys.executable, "-m", "tests.benchmarks", "memory", f"{millions:g}", "--shape", shape, "--times", "2"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.findall(r"slots, (.*?): .*?(-?[0-9.]+) bytes an event", done.stdout)
    return [Row(shape, f"memory, {what}", float(value), "B/event", 1.0) for what, value in found]


def best_ms(timed: Callable[[], object], runs: int) -> float:
    """Return the least processor time of some runs: other programs cannot make it less."""
    times = []
    for _ in range(runs):
        start_ns = time.process_time_ns()
        timed()
        times.append(time.process_time_ns() - start_ns)
    return min(times) / 1e6
