"""The core and its reference held against each other on captures, each from a seed, until so many slots are the same.

Args: millions of slots (default 100) [--seed FIRST] [--log FILE]. Shapes are those of the other benchmarks and every
workload of the simulated kernel; releases, byte order, CPUs, threads, form and size are drawn, and in every second file
one slot in some thousand is damaged. All columns and statistics of all files are compared, lanes of every fifth. A
file with a difference stays, and ends the run with 1; without, the figure is in the last line.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from satview.__main__ import main as satview
from satview.analysis.statistics import Statistics
from satview.analysis.wait_graph import runs_and_overlaps
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.formats.kev.header import header_bytes
from satview.formats.kev.reader import open_kev, read_start
from satview.timeline.lane_tree import Timeline
from tests.benchmarks.made_traces import make_slots
from tests.core.reference.replacing import numpy_passes
from tests.fuzz.traces import damaged
from tests.helpers.kev import KINDS, header_and_page
from tests.helpers.same_trace import same_trace

_PIECE = 1 << 14  # slots that are damaged together
_LANES = 100
_WITH_LANES = 5


def run(args: list[str]) -> None:
    """Print a line per file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="add the lines to this file too")
    options = parser.parse_args(args)
    seed, slots, lanes, start = options.seed, 0, 0, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        while slots < options.millions * 1e6:
            path = Path(folder) / "t.kev"
            what = make(path, random.Random(seed))
            try:
                count, intervals = compare(path, seed % _WITH_LANES == 0)
            except AssertionError as error:
                saved = path.rename(Path(tempfile.gettempdir()) / f"satview-differs-{seed}.kev")
                raise SystemExit(f"seed {seed}, {what}: core and reference differ, see {saved}: {error}") from error
            slots, lanes, seed = slots + count, lanes + intervals, seed + 1
            _say(
                f"seed {seed - 1}: {what}, {count:,} slots; in all {slots:,} slots, {lanes:,} intervals, "
                f"0 differences, {time.perf_counter() - start:.0f} s",
                options.log,
            )


def make(path: Path, rng: random.Random) -> str:
    """Write a file of 0.3 to 8 million slots; return what it is."""
    millions, is_damaged = rng.choice((0.3, 1, 3, 5, 8)), rng.random() < 0.5
    what = _made(path, rng, millions) if rng.random() < 0.4 else _captured(path, rng, millions)
    if is_damaged:
        start = read_start(path)
        slots = start.slots.read(0, len(start.slots))
        pieces = [
            damaged(rng, slots[at : at + _PIECE]) if rng.random() < 0.5 else slots[at : at + _PIECE]
            for at in range(0, len(slots), _PIECE)
        ]
        head = path.read_bytes()[: start.offset]
        _write(path, head, np.concatenate(pieces), start.byte_order)
    return what + (", damaged" if is_damaged else "")


def _made(path: Path, rng: random.Random, millions: float) -> str:
    kind, cpus, threads = rng.choice(("mixed", "states", "arm")), rng.choice((1, 2, 4, 18)), rng.choice((8, 200, 5000))
    release, order = rng.choice(list(KINDS)), rng.choice(("little", "big"))
    first = rng.choice((0, 5_000_000_000, (1 << 32) - 1_000_000, 1 << 45))
    slots, _end = make_slots(int(millions * 1e6), rng.getrandbits(31), first, threads, cpus, kind)
    pairs, page = header_and_page(release, order, cpus)
    _write(path, header_bytes(pairs) + page, slots, order)
    return f"{kind}, {release}, {order}, {cpus} CPUs, {threads} threads"


def _captured(path: Path, rng: random.Random, millions: float) -> str:
    name, release = rng.choice(registry.names())[0], rng.choice(list(Release)[:4]).value
    form, events = rng.choice(((), ("-w",))), str(int(millions * 0.4e6))
    words = ["tracelogger", "--workload", name, "--release", release, "--events", events, *form]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = satview([*words, "--seed", str(rng.getrandbits(20)), "-f", str(path)])
    if not path.exists():
        raise SystemExit(f"{' '.join(words)}: exit code {code}, {said.getvalue()}")
    return f"{name}, {release}{', wide' if form else ''}"


def _write(path: Path, head: bytes, slots: Any, order: str) -> None:
    path.write_bytes(head)
    with path.open("ab") as file:
        slots.astype("<u4" if order == "little" else ">u4").tofile(file)


def compare(path: Path, with_lanes: bool) -> tuple[int, int]:
    """Compare what both codes make of a file.

    Returns:
        Slots, and intervals of the lanes that were compared.

    Raises:
        AssertionError: They differ.
    """
    mine = open_kev(path)
    with numpy_passes():
        theirs = open_kev(path)
    same_trace(mine, theirs)
    _same_statistics(mine, theirs)
    intervals = 0
    if with_lanes:
        found = _lanes(mine)
        with numpy_passes():
            others = _lanes(theirs)
        for one, other in zip(found, others, strict=True):
            for name in ("start_cycles", "value", "event", "thread", "end_cycles"):
                assert np.array_equal(getattr(one, name), getattr(other, name)), name
            intervals += len(one.start_cycles)
    return mine.slot_count, intervals


def _same_statistics(mine: Any, theirs: Any) -> None:
    found = _tables(mine)
    with numpy_passes():
        others = _tables(theirs)
    for one, other in zip(found, others, strict=True):
        for field in fields(one):
            assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name
    with_core = runs_and_overlaps(mine)
    with numpy_passes():
        assert runs_and_overlaps(theirs) == with_core, "runs"


def _tables(trace: Any) -> list[Any]:
    found = Statistics(trace)
    return [found.states, found.threads, found.cpus]


def _lanes(trace: Any) -> list[Any]:
    timeline = Timeline(trace)
    indices = range(min(_LANES, len(timeline.infos)))
    timeline.build(indices)
    return [timeline.lane(index).spans for index in indices]


def _say(line: str, log: Path | None) -> None:
    print(line, flush=True)
    if log is not None:
        with log.open("a") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    run(sys.argv[1:])
