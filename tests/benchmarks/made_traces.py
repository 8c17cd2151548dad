"""Large .kev files in seconds: a seeded mix of events drawn in numpy, plausible in kind and number, not in meaning.

"mixed": 51 % kernel calls, 30 % thread states, 9 % interrupts, 9 % messages; 28 % of the slots belong to combine
events, of whose tails 13 % are apart from their head; 4 CPUs, 200 threads, several rollovers of the 32-bit stamp.
"states": thread states only.
"arm": as published real traces of boards are: 18 CPUs, stamps at 19.2 MHz, everything wide, 490,000 events a second,
4.6 slots an event.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from satview.events import wire
from satview.formats.kev.header import slots_as_bytes, standard_header, syspage_bytes, write_start

CYCLES_PER_S = 1_000_000_000
ARM_CYCLES_PER_S = 19_200_000
_BLOCK = 1 << 20
SHAPES = ("mixed", "auto", "arm")
_EVENTS_OF_AUTO = 0.43  # per slot, wide


def make_slots(count: int, seed: int, first_cycles: int, threads: int = 200, cpus: int = 4, kind: str = "mixed"):
    """Return (slots of shape (about count, 4), cycles after the last)."""
    rng = np.random.default_rng(seed)
    n = count if kind == "states" else int(count * (0.845 if kind == "mixed" else 1 / 4.6))
    # 39 cycles of 19.2 MHz are 2 us.
    time = first_cycles + np.cumsum(rng.integers(20, 1980, n) if kind != "arm" else rng.integers(1, 78, n))
    cpu = rng.integers(0, cpus, n).astype(np.uint32)
    what = rng.random(n)
    thread = (rng.random(n) ** 2 * threads).astype(np.uint32)
    pid, tid = thread // 8 * 4096 + 1, thread % 8 + 1
    state = np.array([1, 2, 5, 6, 13, 14, 12, 4], np.uint32)[rng.integers(0, 8, n)]
    call = np.array([11, 14, 15, 80, 81, 82], np.uint32)[rng.integers(0, 6, n)] + 128 * (rng.random(n) < 0.5)
    header = np.where(
        what < {"mixed": 0.305, "arm": 0.51}.get(kind, 1.1),
        wire.code(4, 0) + state,
        np.where(
            what < 0.815,
            wire.code(2, 0) + call,
            np.where(what < 0.905, wire.code(3, 1) + (rng.random(n) < 0.5), wire.code(7, 0) + rng.integers(0, 3, n)),
        ),
    ).astype(np.uint32)
    header |= cpu << 24
    tails = np.zeros(n, np.int64)
    if kind == "mixed":
        combined = (rng.random(n) < 0.13) & (what >= 0.305) & (what < 0.815)
        tails[combined] = rng.integers(1, 3, int(combined.sum()))
    if kind == "arm":
        calls = (what >= 0.51) & (what < 0.815)
        tails[what < 0.51] = 1
        tails[calls] = rng.integers(5, 14, int(np.count_nonzero(calls)))
        tails[what >= 0.815] = rng.integers(0, 4, int(np.count_nonzero(what >= 0.815)))
    first = np.arange(n) + np.concatenate(([0], np.cumsum(tails)[:-1]))
    slots = np.zeros((int(n + tails.sum()), 4), np.uint32)
    heads = first
    slots[heads, 0] = header | np.where(tails > 0, 1 << 30, 0).astype(np.uint32)
    slots[:, 1] = np.repeat(time & 0xFFFFFFFF, tails + 1)
    slots[heads, 2], slots[heads, 3] = pid, tid
    is_tail = np.ones(len(slots), bool)
    is_tail[heads] = False
    owner = np.repeat(np.arange(n), tails + 1)
    last = np.flatnonzero(is_tail & np.append(owner[1:] != owner[:-1], True))
    slots[is_tail, 0] = header[owner[is_tail]] | np.uint32(2 << 30)
    slots[last, 0] = header[owner[last]] | np.uint32(3 << 30)
    # Some tails drift behind the next event, as preempted kernel calls do.
    if kind == "arm":
        return slots, int(time[-1]) + 100
    drift = last[(rng.random(len(last)) < 0.13) & (last + 1 < len(slots))]
    drift = drift[(slots[drift + 1, 0] >> 30) == 0]
    slots[drift], slots[drift + 1] = slots[drift + 1].copy(), slots[drift].copy()
    return slots, int(time[-1]) + 1000


def make_file(
    path: Path, slot_count: int, seed: int = 1, threads: int = 200, cpus: int = 4, kind: str = "mixed"
) -> Path:
    """Write a file of about that many slots; keeps one that is there already."""
    if path.exists():
        return path
    cycles_per_s = ARM_CYCLES_PER_S if kind == "arm" else CYCLES_PER_S
    page = syspage_bytes(
        "little",
        kind=0x100,
        cycles_per_s=cycles_per_s,
        boot_time_s=1_700_000_000,
        cpu_names=("x86_64",) * cpus,
        speed_mhz=1000,
    )
    pairs = standard_header(
        file_name="/tmp/made.kev",
        date="Tue Nov 14 22:13:20 2023",
        boot_date="Tue Nov 14 22:13:20 2023",
        byte_order="little",
        cycles_per_s=cycles_per_s,
        cpu_count=cpus,
        release="7.1.0",
        version="2021/05/07",
        machine="x86pc",
        node="made",
        syspage_length=len(page),
    )
    with path.open("wb") as file:
        write_start(file, pairs, page)
        cycles, left = 5_000_000_000, slot_count
        start = np.array([[wire.CONTROL_TIME, cycles & 0xFFFFFFFF, cycles >> 32, cycles & 0xFFFFFFFF]], np.uint32)
        file.write(slots_as_bytes(start, "little"))
        while left > 0:
            slots, cycles = make_slots(min(left, _BLOCK), seed, cycles, threads, cpus, kind)
            file.write(slots_as_bytes(slots, "little"))
            left -= _BLOCK
            seed += 1
    return path


def file_of(shape: str, millions: float) -> Path:
    """Return a file of that shape and about that many slots, made at the first call."""
    folder = Path(tempfile.gettempdir())
    if shape == "mixed":
        return make_file(folder / f"satview-mixed-200-4-{millions:g}m.kev", int(millions * 1e6))
    path = folder / f"satview-{shape}-{millions:g}m.kev"
    if shape == "arm":
        return make_file(path, int(millions * 1e6), threads=400, cpus=18, kind="arm")
    if not path.exists():
        from satview.__main__ import main as satview

        events = int(millions * 1e6 * _EVENTS_OF_AUTO)
        satview(["tracelogger", "--workload", "automotive", "--events", str(events), "-w", "-f", str(path)])
    return path
