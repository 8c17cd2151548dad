"""Load of 1, 10 and 50 million slots against a plain copy of the same bytes, in processor time; memory per event.

Args: millions... [--kind mixed|states] [--threads N] [--cpus N].
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from satview.formats.kev.reader import open_kev
from tests.benchmarks.made_traces import make_file


def median_ns(timed, runs: int = 5) -> int:
    """Return the median processor time of some runs after one that does not count."""
    timed()
    times = []
    for _ in range(runs):
        start = time.process_time_ns()
        timed()
        times.append(time.process_time_ns() - start)
    return sorted(times)[len(times) // 2]


def private_bytes() -> int:
    """Return resident memory that is not the mapped file: anonymous pages where the system shows, else all of it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(
            int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("RssAnon")
        )
    return int(psutil.Process().memory_info().rss)


def run(args: list[str]) -> None:
    """Print one line per size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="*", type=float, default=[1, 10, 50])
    parser.add_argument("--kind", default="mixed", choices=["mixed", "states"])
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--cpus", type=int, default=4)
    options = parser.parse_args(args)
    for millions in options.millions:
        path = make_file(
            Path(tempfile.gettempdir()) / f"satview-{options.kind}-{options.threads}-{options.cpus}-{millions:g}m.kev",
            int(millions * 1e6),
            kind=options.kind,
            threads=options.threads,
            cpus=options.cpus,
        )
        data = np.fromfile(path, np.uint8)
        target = np.empty_like(data)
        copy_ns = median_ns(lambda data=data, target=target: np.copyto(target, data))
        del data, target
        before = private_bytes()
        trace = open_kev(path)
        held = private_bytes() - before
        slots, events = trace.slot_count, len(trace.events)
        del trace
        load_ns = median_ns(lambda path=path: open_kev(path), 3 if millions > 20 else 5)
        print(
            f"{options.kind} {millions:g} M slots: load {load_ns / 1e6:.1f} ms, {load_ns / slots:.1f} ns/slot; "
            f"copy {copy_ns / 1e6:.1f} ms; "
            f"ratio {load_ns / copy_ns:.1f}; "
            f"held {held / slots:.1f} bytes/slot, {held / events:.1f} bytes/event ({events} events)",
            flush=True,
        )
