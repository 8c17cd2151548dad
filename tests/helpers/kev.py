"""Small traces for tests: from events written out, or from lanes drawn as text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from satview.events import wire
from satview.events.naming import state_numbers
from satview.events.spec import Release
from satview.formats.kev.header import SlotWriter, standard_header, syspage_bytes, write_kev
from satview.formats.kev.reader import open_kev
from satview.store.trace import Trace

START = 0x1_0000_0000
CYCLES_PER_S = 1_000_000_000
KINDS = {"6.4.1": 0, "6.6.0": 0, "7.1.0": 0x100, "8.0.0": 0x1100}


def header_and_page(release="7.1.0", byte_order="little", cpus=1, rate=CYCLES_PER_S, attributes=()):
    """Return (pairs, system page) of a plausible file."""
    page = syspage_bytes(
        byte_order,
        kind=KINDS[release],
        cycles_per_s=rate,
        boot_time_s=1_634_803_075,
        cpu_names=tuple(f"cpu-{i}" for i in range(cpus)),
        speed_mhz=1000,
        strings=((2, "target"), (5, "x86pc")),
    )
    pairs = standard_header(
        file_name="/tmp/test.kev",
        date="Thu Oct 21 08:28:25 2021",
        boot_date="Thu Oct 21 07:57:55 2021",
        byte_order=byte_order,
        cycles_per_s=rate,
        cpu_count=cpus,
        release=release,
        version="2021/05/07-14:19:56EDT",
        machine="x86pc",
        node="localhost",
        syspage_length=len(page),
        attributes=attributes,
    )
    return pairs, page


def write_trace(
    path: Path, slots, release="7.1.0", byte_order="little", cpus=1, rate=CYCLES_PER_S, attributes=()
) -> Path:
    """Write slots as a file of a release; its folder need not be there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pairs, page = header_and_page(release, byte_order, cpus, rate, attributes)
    write_kev(path, pairs, page, np.asarray(slots, np.uint32).reshape(-1, 4), byte_order)
    return path


class TraceBuilder:
    """Events at relative times (cycles), turned into a file and opened."""

    def __init__(self, release="7.1.0", byte_order="little", cpus=1, start=START, rate=CYCLES_PER_S):
        self.writer = SlotWriter(byte_order)
        self.release, self.byte_order, self.cpus, self.start, self.rate = release, byte_order, cpus, start, rate
        self.states = state_numbers(Release({"6": "6.x", "7": "7.x", "8": "8.0"}[release[0]]))

    def at(self, time: int) -> int:
        return self.start + time

    def time_event(self, time: int, cpu: int = 0) -> TraceBuilder:
        now = self.at(time)
        return self.event(wire.CONTROL_TIME, time, (now >> 32, now & 0xFFFFFFFF), cpu)

    def event(self, code: int, time: int, words=(0, 0), cpu: int = 0) -> TraceBuilder:
        self.writer.event(code, cpu, self.at(time), words)
        return self

    def state(self, name: str, time: int, pid: int, tid: int, cpu: int = 0, extra=()) -> TraceBuilder:
        return self.event(wire.code(4, self.states[name]), time, (pid, tid, *extra), cpu)

    def call(self, number: int, time: int, words=(0, 0), cpu: int = 0) -> TraceBuilder:
        return self.event(wire.code(2, number), time, words, cpu)

    def exit(self, number: int, time: int, words=(0, 0), cpu: int = 0) -> TraceBuilder:
        return self.event(wire.code(2, number + 128), time, words, cpu)

    def process_name(self, time: int, pid: int, name: str, ppid: int = 1, code=wire.PROC_CREATE_NAME) -> TraceBuilder:
        self.writer.text_event(code, 0, self.at(time), (ppid, pid), name.encode("utf-8", "surrogateescape"))
        return self

    def thread_name(self, time: int, pid: int, tid: int, name: str) -> TraceBuilder:
        return self.process_name(time, tid, name, pid, wire.PROC_THREAD_NAME)

    def write(self, path: Path, attributes=()) -> Path:
        return write_trace(path, self.writer.slots(), self.release, self.byte_order, self.cpus, self.rate, attributes)

    def open(self, folder: Path, attributes=()) -> Trace:
        return open_kev(self.write(folder / "built.kev", attributes))


def from_lanes(folder: Path, text: str, column=1000) -> Trace:
    """Open a trace drawn as text: one line per CPU, a letter per column is the thread that runs, a dot is idle.

    `cpu0  A A B . A` means: thread A (pid 2 tid 1) runs for two columns, then B (pid 3 tid 1), then nobody, then A.
    Spaces between columns do not count.
    """
    lines = [line.split(None, 1) for line in text.strip().splitlines()]
    rows = ["".join(cells.split()) for _, cells in lines]
    builder = TraceBuilder(cpus=len(rows)).time_event(0)
    pids = {".": 1} | {chr(ord("A") + i): 2 + i for i in range(26)}
    for i in range(max(map(len, rows))):
        for cpu, row in enumerate(rows):
            if i < len(row) and (i == 0 or row[i] != row[i - 1]):
                now = i * column + 10 + cpu
                if i and row[i - 1] != "." and all(other[i : i + 1] != row[i - 1] for other in rows):
                    builder.state("RECEIVE", now, pids[row[i - 1]], 1, cpu)
                builder.state("RUNNING", now, pids[row[i]], cpu + 1 if row[i] == "." else 1, cpu)
    builder.event(wire.code(6, 1), max(map(len, rows)) * column + 10)
    return builder.open(folder)


def draw(values: Iterable[int], letters: dict[int, str]) -> str:
    """Return lane values as text, unknown ones as `?`."""
    return "".join(letters.get(int(v) & 0x3F, "?") for v in values)
