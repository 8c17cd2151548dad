"""Reads the text of perf script, trace-cmd report and the file `trace` of ftrace: a line per event.

    perf 28212 [000] 33361.678389: sched:sched_switch: prev_comm=perf prev_pid=28212 prev_prio=120 prev_state=D ==> ...
    client-100 [000]     5.003000: sched_switch: client:100 [110] S ==> swapper/0:0 [120]

One expression matches many lines at once. Every repetition in it has a limit, so that the time per line is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import NS_PER_S
from satview.events import linux
from satview.events.states import READY
from satview.formats.linux.records import CpuSwitches, Ints, Points, Schedule, Tasks, WakeUps
from satview.store.problems import Problems

_LINE: Final = re.compile(
    rb"^[ \t]{0,64}(.{1,40}?)(?:[ \t]{1,24}|-)(-?\d{1,10})(?:/(-?\d{1,10}))?[ \t]{1,16}(?:\([\d -]{1,12}\)[ \t]{1,4})?"
    rb"\[(\d{1,4})\][ \t]{1,16}(?:[^\s\d]\S{3,6}[ \t]{1,16})?(\d{1,10})\.(\d{1,9}):[ \t]{1,16}(?:\d{1,12}[ \t]{1,8})?"
    rb"(?:[\w-]{1,64}:)?([\w-]{1,64}):[ \t]*(.{0,4096})$",
    re.MULTILINE,
)
_SWITCH: Final = re.compile(
    rb"^(?:prev_comm=(.{0,40}?) prev_pid=(\d{1,10}) prev_prio=(-?\d{1,10}) prev_state=(\w)\S{0,8} ==> "
    rb"next_comm=(.{0,40}?) next_pid=(\d{1,10}) next_prio=(-?\d{1,10})"
    rb"|(.{0,40}?):(\d{1,10}) \[(-?\d{1,10})\] (\w)\S{0,8} ==> (.{0,40}?):(\d{1,10}) \[(-?\d{1,10})\]|).*$",
    re.MULTILINE,
)
_WAKE: Final = re.compile(
    rb"^(?:comm=(.{0,40}?) pid=(\d{1,10}) prio=(-?\d{1,10})(?: success=\d)? target_cpu=(\d{1,4})"
    rb"|(.{0,40}?):(\d{1,10}) \[(-?\d{1,10})\][^:]{0,32}CPU:(\d{1,4})|).*$",
    re.MULTILINE,
)
_BLOCK: Final = 1 << 22
_WAKES: Final = (b"sched_waking", b"sched_wakeup", b"sched_wakeup_new")
_DIGITS: Final = 9  # of a second in nanoseconds


def looks_like(first_bytes: bytes) -> bool:
    """Return whether the first bytes of a file contain an event line of perf script or ftrace."""
    return b"\0" not in first_bytes and _LINE.search(first_bytes) is not None


@dataclass(frozen=True, slots=True)
class _Lines:
    """Columns of the lines, (n,) each."""

    time_ns: Ints
    cpu: Ints
    process: Ints
    thread: Ints
    name: list[bytes]
    event: list[bytes]
    rest: list[bytes]

    def taken(self, rows: Ints) -> bytes:
        """Return the remainder of some lines after the event name, one per line."""
        return b"\n".join([self.rest[row] for row in rows.tolist()])


@dataclass(frozen=True, slots=True)
class _LineDetails:
    """Implements `schedule.ScheduleDetails`: arguments are in the text after the event name."""

    lines: _Lines

    def text(self, record: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        """Return the event name of a line and its arguments; text without `=` is one argument."""
        name, rest = (column[record].decode("utf-8", "replace") for column in (self.lines.event, self.lines.rest))
        pairs = re.findall(r"(\w{1,64})=(\S{0,256})", rest)
        return name, tuple(pairs) or ((("text", rest.strip()),) if rest.strip() else ())

    def raw(self, record: int) -> bytes:
        """Return the text of a line after the event name."""
        return self.lines.rest[record]


def read_perf_script(path: Path, data: NDArray[np.uint8], problems: Problems) -> Schedule:  # noqa: ARG001
    """Return the schedule in a text.

    Args:
        path: Not used.
        data: Bytes of the text.
        problems: Receives lines that are not events.
    """
    lines = _lines(data, problems)
    tasks = Tasks()
    # A line without a process does not say which process its thread belongs to.
    for thread, process, name in set(zip(lines.thread.tolist(), lines.process.tolist(), lines.name, strict=True)):
        if thread > 0:
            tasks.names.setdefault(thread, name.decode("utf-8", "replace"))
            if process >= 0:
                tasks.process[thread] = process
    events, which = np.unique(np.array(lines.event, np.bytes_), return_inverse=True)
    is_switch = (events == b"sched_switch")[which] if len(events) else np.zeros(0, np.bool_)
    wakes = [name for name in _WAKES if name in events.tolist()]
    wakes = [name for name in wakes if name != b"sched_wakeup"] if b"sched_waking" in wakes else wakes
    is_wake = np.isin(events, wakes)[which] if len(events) else is_switch
    switches, bad = _switches(lines, np.flatnonzero(is_switch), tasks)
    woken, bad_wakes = _wakeups(lines, np.flatnonzero(is_wake), tasks)
    if bad + bad_wakes:
        problems.add("bad-line", "switches or wake-ups of a spelling that is not known", None, bad + bad_wakes)
    other = np.flatnonzero(~is_switch & ~is_wake)
    known = linux.point_codes()
    codes = np.array([known.get(name.decode("ascii", "replace"), linux.POINT) for name in events.tolist()], np.int64)
    points = Points(lines.time_ns[other], other, lines.cpu[other], lines.thread[other],
                    codes[which[other]] if len(other) else other)  # fmt: skip
    return Schedule("text of perf script or ftrace", (), switches, woken, points, tasks, _LineDetails(lines))


def _lines(data: NDArray[np.uint8], problems: Problems) -> _Lines:
    matches: list[tuple[bytes, ...]] = []
    block_start, strange = 0, 0
    while block_start < len(data):
        block = data[block_start : block_start + _BLOCK].tobytes()
        end = block.rfind(b"\n") + 1
        block = block[: end or len(block)].replace(b"\r\n", b"\n")
        lines = _LINE.findall(block)
        strange += len(re.findall(rb"^[^\s#].*$", block, re.MULTILINE)) + len(
            re.findall(rb"^[ \t]+[^\s#].*$", block, re.MULTILINE)) - len(lines)  # fmt: skip
        matches += lines
        block_start += end or len(block)
    if strange > 0:
        problems.add("foreign-line", "lines that are no events: heads, stacks, or of another program", None, strange)
    columns = list(zip(*matches, strict=True)) or [()] * _LINE.groups
    before_slash, behind_slash = _numbers(columns[1]), _numbers([value or b"-1" for value in columns[2]])
    has_process = behind_slash >= 0
    digits = np.array([_DIGITS - len(value) for value in columns[5]], np.int64)
    time_ns = _numbers(columns[4]) * NS_PER_S + _numbers(columns[5]) * 10**digits
    process, thread = np.where(has_process, before_slash, -1), np.where(has_process, behind_slash, before_slash)
    return _Lines(time_ns, _numbers(columns[3]), process, thread, list(columns[0]), list(columns[6]), list(columns[7]))


def _numbers(column: tuple[bytes, ...] | list[bytes]) -> Ints:
    return np.array(column, np.bytes_).astype(np.int64) if len(column) else np.empty(0, np.int64)


def _columns(matches: list[tuple[bytes, ...]], half: int) -> tuple[list[list[bytes]], NDArray[np.bool_]]:
    """Return the columns of matches with two alternative spellings, and which lines match at all."""
    spellings = list(zip(*matches, strict=True))
    pairs = zip(spellings[:half], spellings[half:], strict=True)
    columns = [
        [first_spelling or second_spelling for first_spelling, second_spelling in zip(*pair, strict=True)]
        for pair in pairs
    ]
    return columns, np.array([bool(value) for value in columns[1]], np.bool_)


def _add_names(numbers: Ints, names: list[bytes], tasks: Tasks) -> None:
    for number, name in set(zip(numbers.tolist(), names, strict=True)):
        if number > 0 and name:
            tasks.names[number] = name.decode("utf-8", "replace")


def _switches(lines: _Lines, rows: Ints, tasks: Tasks) -> tuple[CpuSwitches, int]:
    if not len(rows):
        return CpuSwitches(), 0
    columns, is_known = _columns(_SWITCH.findall(lines.taken(rows)), 7)
    rows = rows[is_known]
    columns = [[value for value, known in zip(column, is_known.tolist(), strict=True) if known] for column in columns]
    letters = linux.value_of_letter()
    state = np.array([letters.get(value.decode("ascii", "replace"), READY) for value in columns[3]], np.int64)
    before, after = _numbers(columns[1]), _numbers(columns[5])
    _add_names(before, columns[0], tasks)
    _add_names(after, columns[4], tasks)
    return CpuSwitches(lines.time_ns[rows], rows, lines.cpu[rows], before, _numbers(columns[2]), state, after,
                       _numbers(columns[6])), int(np.count_nonzero(~is_known))  # fmt: skip


def _wakeups(lines: _Lines, rows: Ints, tasks: Tasks) -> tuple[WakeUps, int]:
    if not len(rows):
        return WakeUps(), 0
    columns, is_known = _columns(_WAKE.findall(lines.taken(rows)), 4)
    rows = rows[is_known]
    columns = [[value for value, known in zip(column, is_known.tolist(), strict=True) if known] for column in columns]
    thread = _numbers(columns[1])
    _add_names(thread, columns[0], tasks)
    return WakeUps(lines.time_ns[rows], rows, lines.cpu[rows], lines.thread[rows], thread, _numbers(columns[2]),
                   _numbers(columns[3])), int(np.count_nonzero(~is_known))  # fmt: skip
