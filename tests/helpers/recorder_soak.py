"""A simulated week of a flight recorder, for its test and its benchmark.

The target is the simulated one with its logger; nothing of the week is left out. It is quiet on purpose: its clock
ticks every two seconds, not a thousand times in one, and it works for some milliseconds every five minutes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from satview.base.time import NS_PER_S
from satview.capture.buffers import LoggerOptions
from satview.capture.flight_recorder import Bounds
from satview.capture.kernel import mode
from satview.capture.run import Capture, run
from satview.capture.sim.calls import ClockPeriod, Compute, Sleep, TraceEvent
from satview.capture.workloads.registry import Workload
from satview.events.spec import Release
from satview.events.variants import user_text
from satview.formats.registry import open_trace
from satview.store.mark_file import MARK_EVENT, recorded_marks

WEEK_S = 7 * 86_400
RULES = 'WHEN latency("tick", "done") > 5ms THEN MARK "late"; KEEP 1 buffer; STOP'
FILES, DISK_BYTES, BUFFERS = 20, 600_000, 6
_INSERT = mode("INSERTUSRSTREVENT")
_MS = 1_000_000
_SECOND_EVERY = 10  # incident in which a second job is late at once


@dataclass
class Soak:
    """What came of it.

    Attributes:
        late: Jobs that were late, which the program itself counts.
        numbers: Numbers of the marks in all files, in the order of files.
        files: Files written.
        most_files, most_bytes: That were there at a time.
        memory_kb: Memory of the process after the first tenth of the files, and at the end.
        seconds: Real time.
        simulated_s: Simulated time.
        slots: Slots that the logger took.
    """

    late: int = 0
    numbers: list[int] = field(default_factory=list)
    files: int = 0
    most_files: int = 0
    most_bytes: int = 0
    memory_kb: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    simulated_s: float = 0.0
    slots: int = 0


def soak(folder: Path, late: int, seconds: int = WEEK_S, release: Release = Release.QNX_7) -> Soak:
    """Let a recorder run.

    Args:
        folder: For its files.
        late: How many jobs are to be late.
        seconds: Simulated time.
        release: Of the target.
    """
    found = Soak()
    gap_ns = seconds * NS_PER_S // (late + 1)

    def body():
        yield ClockPeriod(2 * NS_PER_S)
        while found.late < late:
            yield Sleep(gap_ns // 2)
            yield from job(_MS)
            yield Sleep(gap_ns // 2)
            yield from job(8 * _MS)
            found.late += 1
            if found.late % _SECOND_EVERY == 0 and found.late < late:
                yield from job(7 * _MS)
                found.late += 1
        while True:
            yield Sleep(gap_ns // 2)

    def job(length_ns):
        yield TraceEvent(_INSERT, 10, "tick")
        yield Compute(length_ns)
        yield TraceEvent(_INSERT, 10, "done")

    def look(_level, text):
        name = text.partition(":")[0]
        if not (folder / name).exists():
            return
        found.files += 1
        trace = open_trace(folder / name)
        for row, _ in recorded_marks(trace):
            assert trace.events.code[row] & 1023 == MARK_EVENT
            found.numbers.append(int(user_text(trace.payloads.raw(row))[1:8]))
        there = [path.stat().st_size for path in folder.iterdir()]
        found.most_files, found.most_bytes = max(found.most_files, len(there)), max(found.most_bytes, sum(there))
        if found.files <= late // 10 or not found.memory_kb[0]:
            found.memory_kb = (_memory_kb(), 0)

    workload = Workload("week", "for a soak", lambda kernel: kernel.spawn("usr/bin/jobs", body))
    options = LoggerOptions(is_ring=True, kernel_buffers=BUFFERS)
    bounds = Bounds(BUFFERS, is_repeated=True, files=FILES, disk_bytes=DISK_BYTES)
    capture = Capture(
        workload, release=release, duration_ns=seconds * NS_PER_S, options=options, rules_text=RULES, bounds=bounds,
        keeps_truth=False, patience_s=600,
    )  # fmt: skip
    begin_s = time.monotonic()
    result = run(capture, folder / "week.kev", say=look)
    assert result.findings == []
    found.seconds, found.simulated_s = time.monotonic() - begin_s, result.duration_ns / NS_PER_S
    found.slots = result.slots
    found.memory_kb = (found.memory_kb[0], _memory_kb())
    return found


def _memory_kb() -> int:
    """Return what the process has in memory now; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)
