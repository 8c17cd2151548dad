"""Loading and the exact picture of other traces than the three shapes: fast and wide, each release, damaged ones.

All are long captures of the automotive workload. The damaged ones are wide: every thousandth slot has random bits
flipped; whole buffers are missing; the file ends within a slot. Floors: a copy of the file's bytes, and importing
QtWidgets. Args: [millions of slots (1)].
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from satview.formats.kev.reader import open_kev
from tests.benchmarks.load import copies_and_loads
from tests.benchmarks.pictures import best

RELEASES = ("6.x", "6.6", "7.x", "8.0")
_BUFFER_SLOTS = 1024
_EVENTS_PER_SLOT = {"fast": 0.8, "wide": 0.43}


def run(args: list[str]) -> None:
    """Print a line per trace."""
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=1)
    options = parser.parse_args(args)
    qt_s = best("-", "off", "")["import"][0]
    for name, path in variants(options.millions).items():
        trace = open_kev(path)
        problems = sum(trace.problems.counts().values())
        copy, load = copies_and_loads(path, 3)
        exact_s = best(str(path), "off", "")["exact"][0]
        print(
            f"{name:22} {trace.slot_count:>9,} slots, {len(trace.events):>9,} events, {problems:>6,} problems: "
            f"load {load.user:6.1f} ms user, {load.user / copy.user:5.1f} copies; exact picture {exact_s:.2f} s, "
            f"{exact_s / qt_s:.1f} x QtWidgets",
            flush=True,
        )


def variants(millions: float) -> dict[str, Path]:
    """Return the files by what they are, made at the first call."""
    found = {
        f"{release} {form}": _captured(release, form, millions) for release in RELEASES for form in _EVENTS_PER_SLOT
    }
    whole = found["7.x wide"]
    for name, damage in (("flipped bits", _flip), ("missing buffers", _drop), ("cut within a slot", _cut)):
        path = whole.with_name(f"{whole.stem}-{name.replace(' ', '-')}.kev")
        if not path.exists():
            path.write_bytes(_damaged(whole, damage))
        found[name] = path
    return found


def _captured(release: str, form: str, millions: float) -> Path:
    path = Path(tempfile.gettempdir()) / f"satview-{release}-{form}-{millions:g}m.kev"
    if not path.exists():
        from satview.__main__ import main as satview

        events = str(int(millions * 1e6 * _EVENTS_PER_SLOT[form]))
        wide = ["-w"] if form == "wide" else []
        satview(["tracelogger", "--workload", "automotive", "--events", events, "--release", release, *wide,
                 "-f", str(path)])  # fmt: skip
    return path


def _damaged(path: Path, damage: Callable[[np.ndarray, np.random.Generator], bytes]) -> bytes:
    """Return the bytes of a file with its slots damaged, the head as it was."""
    content = path.read_bytes()
    head = len(content) - 16 * open_kev(path).slot_count
    slots = np.frombuffer(content[head:], np.uint32).reshape(-1, 4).copy()
    return content[:head] + damage(slots, np.random.default_rng(1))


def _flip(slots: np.ndarray, rng: np.random.Generator) -> bytes:
    rows = rng.choice(len(slots), len(slots) // 1000, replace=False)
    slots[rows, rng.integers(0, 4, len(rows))] ^= rng.integers(1, 1 << 32, len(rows), dtype=np.uint32)
    return slots.tobytes()


def _drop(slots: np.ndarray, rng: np.random.Generator) -> bytes:
    buffer = np.arange(len(slots)) // _BUFFER_SLOTS
    return slots[rng.random(int(buffer[-1]) + 1)[buffer] > 0.05].tobytes()


def _cut(slots: np.ndarray, _rng: np.random.Generator) -> bytes:
    return slots.tobytes()[:-7]
