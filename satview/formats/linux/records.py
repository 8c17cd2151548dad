"""From records of tracepoints to a schedule: fields of many records at once, by the formats that the file brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import linux
from satview.formats.linux.event_format import EventFormat, RecordField, lane_value
from satview.formats.linux.schedule import Ints, Points, Switches, Tasks, WakeUps

_COMMON: Final = ("common_type", "common_flags", "common_preempt_count", "common_pid")
_PID_AT: Final = 4  # common_pid, in all formats of Linux from 2.6.31 on
_SWITCH: Final = "sched_switch"
_WAKES: Final = ("sched_waking", "sched_wakeup", "sched_wakeup_new")
_MOST_TEXT: Final = 4096


@dataclass(frozen=True, slots=True)
class Records:
    """Records of tracepoints of all CPUs.

    Attributes:
        data: uint8, the bytes in which they are.
        time_ns, cpu: int64 (n,).
        at, size: int64 (n,), where each begins in `data`, and its bytes.
        order: Byte order, `<` or `>`.
    """

    data: NDArray[np.uint8]
    time_ns: Ints
    cpu: Ints
    at: Ints
    size: Ints
    order: str = "<"

    def numbers(self, rows: Ints, offset: int, size: int, *, is_signed: bool) -> Ints:
        """Return a number of some records, int64 (len(rows),); 0 where a record is shorter.

        Args:
            rows: Which records.
            offset: Bytes from the start of a record.
            size: 1, 2, 4 or 8.
            is_signed: Whether it may be negative.
        """
        is_there = self.size[rows] >= offset + size
        at = np.where(is_there, self.at[rows] + offset, 0)
        wide = np.empty((len(rows), size), np.uint8)
        for byte in range(size):
            wide[:, byte] = self.data[at + byte]
        values = wide.view(f"{self.order}{'i' if is_signed else 'u'}{size}")[:, 0].astype(np.int64)
        return np.where(is_there, values, 0)

    def values(self, rows: Ints, field: RecordField | None) -> Ints:
        """Return a field of some records, int64 (len(rows),), 0 where there is none."""
        if field is None or not field.is_number:
            return np.zeros(len(rows), np.int64)
        return self.numbers(rows, field.offset, field.size, is_signed=field.is_signed)

    def bytes_of(self, record: int) -> bytes:
        """Return one record."""
        at = int(self.at[record])
        return self.data[at : at + int(self.size[record])].tobytes()


@dataclass(frozen=True, slots=True)
class RecordDetails:
    """Implements `schedule.Details` by the formats."""

    records: Records
    formats: dict[int, EventFormat]

    def text(self, record: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        """Return name and arguments of a record."""
        raw = self.records.bytes_of(record)
        order = "little" if self.records.order == "<" else "big"
        known = self.formats.get(int.from_bytes(raw[:2], order))  # type: ignore[arg-type]
        if known is None:
            return f"tracepoint {int.from_bytes(raw[:2], order)}", ()  # type: ignore[arg-type]
        shown = [(each.name, _value(raw, each, order)) for each in known.fields.values() if each.name not in _COMMON]
        return known.name, tuple((name, value) for name, value in shown if value is not None)

    def raw(self, record: int) -> bytes:
        """Return the bytes of a record."""
        return self.records.bytes_of(record)


def _value(raw: bytes, field: RecordField, order: str) -> int | str | None:
    part = raw[field.offset : field.offset + field.size]
    if field.is_text:
        return part.split(b"\0", 1)[0].decode("utf-8", "replace")
    if len(part) < field.size:
        return None
    if field.is_number or (field.is_dynamic and field.size == 4):
        number = int.from_bytes(part, order, signed=field.is_signed)  # type: ignore[arg-type]
        if not field.is_dynamic:
            return number
        at, length = number & 0xFFFF, min(number >> 16 & 0xFFFF, _MOST_TEXT)
        return raw[at : at + length].split(b"\0", 1)[0].decode("utf-8", "replace")
    return part.hex(" ")


@dataclass(frozen=True, slots=True)
class Found:
    """What records are: see `schedule`."""

    switches: Switches
    wakeups: WakeUps
    points: Points
    tasks: Tasks
    unknown: int  # records of which the file brings no format


def schedule_of(records: Records, formats: dict[int, EventFormat], tasks: Tasks) -> Found:
    """Return what the records are.

    Args:
        records: The records.
        formats: By number.
        tasks: Names and processes as far as they are known; those in records are added.
    """
    everything = np.arange(len(records.at), dtype=np.int64)
    kind = records.numbers(everything, 0, 2, is_signed=False)
    pid = records.numbers(everything, _PID_AT, 4, is_signed=True)
    codes = np.full(1 << 16, linux.POINT, np.int64)
    by_name: dict[str, EventFormat] = {}
    for each in formats.values():
        if each.ident < len(codes):
            codes[each.ident] = each.code
            by_name[each.name] = each
    rows: dict[str, Ints] = {
        name: np.flatnonzero(kind == by_name[name].ident) for name in (_SWITCH, *_WAKES) if name in by_name
    }
    # A thread is ready from the moment somebody begins to wake it; what comes later says only where.
    wakes = [name for name in _WAKES if name in rows and len(rows[name])]
    wakes = [name for name in wakes if name != "sched_wakeup"] if "sched_waking" in wakes else wakes
    woken = _wakeups(records, [(rows[name], by_name[name]) for name in wakes], pid, tasks)
    # Names of switches come last: a thread that runs another program has another name afterwards.
    switches = _switches(records, rows.get(_SWITCH), by_name, tasks)
    is_other = np.ones(len(kind), np.bool_)
    for name in (_SWITCH, *wakes):
        is_other[rows.get(name, np.empty(0, np.int64))] = False
    other = everything[is_other]
    points = Points(records.time_ns[other], other, records.cpu[other], pid[other], codes[kind[other]])
    known = np.zeros(1 << 16, np.bool_)
    known[[ident for ident in formats if ident < len(known)]] = True
    return Found(switches, woken, points, tasks, int(np.count_nonzero(~known[kind])))


def _switches(records: Records, rows: Ints | None, formats: dict[str, EventFormat], tasks: Tasks) -> Switches:
    if rows is None or not len(rows):
        return Switches()
    known = formats[_SWITCH]

    def column(name: str) -> Ints:
        return records.values(rows, known.fields.get(name))

    states, which = np.unique(column("prev_state"), return_inverse=True)
    values = np.array([lane_value(state, known.state_flags) for state in states.tolist()], np.int64)
    before, after = column("prev_pid"), column("next_pid")
    _add_names(records, rows, after, known.fields.get("next_comm"), tasks)
    _add_names(records, rows, before, known.fields.get("prev_comm"), tasks)
    return Switches(
        records.time_ns[rows], rows, records.cpu[rows], before, column("prev_prio"), values[which], after,
        column("next_prio"),
    )  # fmt: skip


def _wakeups(records: Records, kinds: list[tuple[Ints, EventFormat]], pid: Ints, tasks: Tasks) -> WakeUps:
    parts = []
    for rows, known in kinds:
        thread = records.values(rows, known.fields.get("pid"))
        _add_names(records, rows, thread, known.fields.get("comm"), tasks)
        target = known.fields.get("target_cpu")
        parts.append((
            records.time_ns[rows], rows, records.cpu[rows], pid[rows], thread,
            records.values(rows, known.fields.get("prio")),
            records.values(rows, target) if target else np.full(len(rows), -1, np.int64),
        ))  # fmt: skip
    return WakeUps(*(np.concatenate(columns) for columns in zip(*parts, strict=True))) if parts else WakeUps()


def _add_names(records: Records, rows: Ints, thread: Ints, field: RecordField | None, tasks: Tasks) -> None:
    """Add the names of threads that records spell out, the last one of each."""
    if field is None or not field.is_text:
        return
    numbers, last = np.unique(thread[::-1], return_index=True)
    for number, at in zip(numbers.tolist(), (len(thread) - 1 - last).tolist(), strict=True):
        name = _value(records.bytes_of(int(rows[at])), field, "little")
        if number > 0 and name:
            tasks.names[number] = str(name)
