"""Load of 1, 10 and 50 million slots against a plain copy of the same bytes, in processor time; memory per event.

User time and the sum with the system's are printed beside each other: the system's is what pages cost, those of the
file and those of the columns, and depends on the machine more than the rest. Copies and loads alternate, so that what
else the machine does slows both.
Args: millions... [--shape mixed|auto|arm|states] [--threads N] [--cpus N] [--runs N].
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

from satview.formats.kev.reader import open_kev
from tests.benchmarks.made_traces import SHAPES, file_of, make_file

_COPIES = 8  # of each run: one takes only a few of the ticks by which the system tells its time from the user's


class Spent(NamedTuple):
    """Processor time, ms."""

    user: float
    both: float


def spent(work: Callable[[], object], times: int = 1) -> Spent:
    """Return the processor time of a piece of work that is done some times, of each time."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(times):
        work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    user = after.ru_utime - before.ru_utime
    return Spent(1000 * user / times, 1000 * (user + after.ru_stime - before.ru_stime) / times)


def copies_and_loads(path: Path, runs: int) -> tuple[Spent, Spent]:
    """Return the medians of copying the bytes of a file into memory that is there, and of loading it."""
    data = np.fromfile(path, np.uint8)
    target = data.copy()
    copies, loads = [], []
    for _ in range(runs):
        copies.append(spent(lambda: np.copyto(target, data), _COPIES))
        loads.append(spent(lambda: open_kev(path)))
    return _median(copies), _median(loads)


def _median(found: list[Spent]) -> Spent:
    return Spent(*(sorted(column)[len(found) // 2] for column in zip(*found, strict=True)))


def median_ns(timed: Callable[[], object], runs: int = 5) -> int:
    """Return the median processor time of some runs after one that does not count."""
    timed()
    return int(1e6 * _median([spent(timed) for _ in range(runs)]).both)


def private_bytes() -> int:
    """Return resident memory that is not the mapped file: anonymous pages where the system shows, else all of it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(
            int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("RssAnon")
        )
    return int(psutil.Process().memory_info().rss)


def _file(shape: str, millions: float, threads: int, cpus: int) -> Path:
    if shape != "states" and (shape != "mixed" or (threads, cpus) == (200, 4)):
        return file_of(shape, millions)
    name = f"satview-{shape}-{threads}-{cpus}-{millions:g}m.kev"
    path = Path(tempfile.gettempdir()) / name
    return make_file(path, int(millions * 1e6), kind=shape, threads=threads, cpus=cpus)


def run(args: list[str]) -> None:
    """Print one line per size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="*", type=float, default=[1, 10, 50])
    parser.add_argument("--shape", default="mixed", choices=[*SHAPES, "states"])
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--cpus", type=int, default=4)
    parser.add_argument("--runs", type=int)
    options = parser.parse_args(args)
    for millions in options.millions:
        path = _file(options.shape, millions, options.threads, options.cpus)
        _print(f"{options.shape} {millions:g} M slots", path, options.runs or (3 if millions > 20 else 7))


def _print(title: str, path: Path, runs: int) -> None:
    before = private_bytes()
    trace = open_kev(path)
    held, slots, events = private_bytes() - before, trace.slot_count, len(trace.events)
    del trace
    copy, load = copies_and_loads(path, runs)
    times = f"load {load.user:.0f} ms user, {load.both:.0f} with the system's; copy {copy.user:.1f}, {copy.both:.1f}"
    ratios = f"{load.user / copy.user:.1f} copies of user time, {load.both / copy.both:.1f} of both"
    print(
        f"{title}: {times}; {ratios}; {load.both * 1e6 / slots:.1f} ns/slot; "
        f"held {held / slots:.1f} bytes/slot, {held / events:.1f} bytes/event ({events} events)",
        flush=True,
    )
