"""Converts records of tracepoints to a `Schedule`: switches and wake-ups, the result of all readers of Linux traces."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import ColumnTable
from satview.base.errors import TraceFormatError
from satview.events import linux
from satview.events.states import READY

# The common result of all readers of Linux traces: switches, wake-ups, tracepoints, tasks.


Ints = NDArray[np.int64]


def none() -> Ints:
    """Return an empty column, int64 (0,)."""
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Moments(ColumnTable):
    """Columns that the tables below have in common, int64 (n,) each.

    Attributes:
        time_ns: Time.
        record: Number of the record in the file; at equal times the smaller number comes first.
        cpu: CPU.
    """

    time_ns: Ints = field(default_factory=none)
    record: Ints = field(default_factory=none)
    cpu: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class CpuSwitches(_Moments):
    """Context switches, int64 (n,) each; thread 0 is the idle thread of the CPU.

    Attributes:
        before, before_prio: Thread that leaves the CPU, and its Linux priority; thread -1 = not known.
        state: Lane value of the state that the thread `before` enters.
        after, after_prio: Thread that gets the CPU; -1 = not known.
    """

    before: Ints = field(default_factory=none)
    before_prio: Ints = field(default_factory=none)
    state: Ints = field(default_factory=none)
    after: Ints = field(default_factory=none)
    after_prio: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class WakeUps(_Moments):
    """Wake-ups, int64 (n,) each.

    Attributes:
        waker: Thread that ran on the CPU; 0 = idle, -1 = not known.
        thread: Thread that is woken.
        prio: Priority of the woken thread.
        target_cpu: The CPU on which the woken thread will run; -1 = not known.
    """

    waker: Ints = field(default_factory=none)
    thread: Ints = field(default_factory=none)
    prio: Ints = field(default_factory=none)
    target_cpu: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class Points(_Moments):
    """Events of tracepoints other than switches and wake-ups, int64 (n,) each.

    Attributes:
        thread: Thread that ran on the CPU; 0 = idle, -1 = not known.
        code: Code in the event table.
    """

    thread: Ints = field(default_factory=none)
    code: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class States(_Moments):
    """States of threads that a file shows without a switch, as satview's own exports do; int64 (n,) each.

    Attributes:
        thread: The thread.
        state: Lane value.
        prio: Priority of the thread; 0 = not known.
    """

    thread: Ints = field(default_factory=none)
    state: Ints = field(default_factory=none)
    prio: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class Tasks:
    """Names and processes of threads; a thread without a process gets a separate process without a name.

    Attributes:
        names: Name of each thread, by its number.
        process: Number of each thread's process, by the number of the thread.
        process_names: Name of each process, by its number.
        shown: Numbers to display for threads that have other numbers in the file, as in satview's exports.
    """

    names: dict[int, str] = field(default_factory=dict)
    process: dict[int, int] = field(default_factory=dict)
    process_names: dict[int, str] = field(default_factory=dict)
    shown: dict[int, int] = field(default_factory=dict)


class ScheduleDetails(Protocol):
    """Interface to names and arguments of single records, in addition to the numbers stored for all records."""

    def text(self, record: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        """Return the event name of a record and its arguments; an empty name if the file has none."""

    def raw(self, record: int) -> bytes:
        """Return the bytes of a record in the file."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The scheduler events of a Linux recording: which threads ran, and when.

    Attributes:
        title: Description of the file: `trace.dat, version 7`.
        head_rows: Further properties, (key, value).
        switches, wakeups, points, states, tasks: The content.
        details: Names and arguments of the records.
        cpus: Number of CPUs according to the file; 0 = not given.
        wakes_make_ready: Whether wake-ups make threads ready; False if `states` show when threads become ready.
        says: Sentence about the origin of names and states.
    """

    title: str
    head_rows: tuple[tuple[str, str], ...]
    switches: CpuSwitches
    wakeups: WakeUps
    points: Points
    tasks: Tasks
    details: ScheduleDetails
    states: States = field(default_factory=States)
    cpus: int = 0
    wakes_make_ready: bool = True
    says: str = "names, states and events are those of Linux"


# The `format` files of tracepoints, which give the offsets of the fields of a record.


_FIELD: Final = re.compile(
    r"^\s*field:(?P<type>[^;]*?)\s*\b(?P<name>\w+)(?P<array>\[[^\]]*\])?;"
    r"\s*offset:(?P<offset>[0-9]{1,9});\s*size:(?P<size>[0-9]{1,9});(?:\s*signed:(?P<signed>\d);)?",
    re.MULTILINE,
)
_FLAG: Final = re.compile(r"\{\s*(0x[0-9a-fA-F]{1,8}|[0-9]{1,10})\s*,\s*\"(\w)\"\s*\}")
_MOST_BYTES: Final = 1 << 20
_NUMBER_SIZES: Final = (1, 2, 4, 8)
# Of Linux from 4.14 on, if the format itself has none (include/linux/sched.h).
STATE_FLAGS: Final = ((1, "S"), (2, "D"), (4, "T"), (8, "t"), (0x10, "X"), (0x20, "Z"), (0x40, "P"), (0x80, "I"))


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field in the records of a tracepoint.

    Attributes:
        name: Name in Linux.
        offset, size: Bytes from the start of the record, and size in bytes.
        is_signed: Whether the field is a number that may be negative.
        is_text: Whether the field is an array of characters.
        is_dynamic: Whether the field refers to a text in the record: the lower half is the offset of the text, the
            upper half its length.
    """

    name: str
    offset: int
    size: int
    is_signed: bool
    is_text: bool
    is_dynamic: bool

    @property
    def is_number(self) -> bool:
        """Whether the field is a number."""
        return not self.is_text and not self.is_dynamic and self.size in _NUMBER_SIZES


@dataclass(frozen=True, slots=True)
class TracepointFormat:
    """Format of a tracepoint.

    Attributes:
        ident: Number of the tracepoint in records.
        group, name: `sched`, `sched_switch`.
        fields: Fields by name, in the order of the record.
        state_flags: (flag, letter) of `prev_state`.
    """

    ident: int
    group: str
    name: str
    fields: dict[str, RecordField]
    state_flags: tuple[tuple[int, str], ...]

    @property
    def code(self) -> int:
        """Code of the tracepoint in the event table."""
        return linux.point_codes().get(self.name, linux.POINT)


def parse_format(text: str, group: str) -> TracepointFormat | None:
    """Return the content of a `format` file of a `group` such as `sched`; None if the text is not of this form."""
    text = text[:_MOST_BYTES]
    name = re.search(r"^name:\s*(\S+)", text, re.MULTILINE)
    ident = re.search(r"^ID:\s*([0-9]{1,9})\b", text, re.MULTILINE)
    if name is None or ident is None:
        return None
    fields = {
        match["name"]: RecordField(
            match["name"], int(match["offset"]), int(match["size"]), match["signed"] == "1",
            bool(match["array"]) and "char" in match["type"] and "__data_loc" not in match["type"],
            "__data_loc" in match["type"] and "char" in match["type"],
        )
        for match in _FIELD.finditer(text)
    }  # fmt: skip
    named = _FLAG.findall(text) if "prev_state" in fields else []
    flags = tuple((_number_of_c(number), letter) for number, letter in named)
    return TracepointFormat(int(ident[1]), group, name[1], fields, flags or STATE_FLAGS)


def _number_of_c(text: str) -> int:
    """Parse a number in C notation: `0x02`, `02` (octal) or `2`; `08` and `09` are decimal."""
    if text.startswith("0x"):
        return int(text, 16)
    return int(text, 8 if text.startswith("0") and not set(text) & set("89") else 10)


def lane_value(state: int, flags: tuple[tuple[int, str], ...]) -> int:
    """Return the number on lanes (`events.states`) of the state in `prev_state`.

    READY is returned for 0, or if only an unnamed flag is set.

    Args:
        state: Value of the field `prev_state`.
        flags: (flag, letter) of each named flag.
    """
    letters = linux.value_of_letter()
    for flag, letter in flags:
        if state & flag and letter in letters:
            return letters[letter]
    return READY


# Reads numbers and texts one after the other, never beyond the end of the data.


ByteOrder = Literal["little", "big"]


class Cursor:
    """A position in a sequence of bytes.

    Args:
        data: The bytes.
        path: The file, for errors.
        begin: Initial position.
        order: Byte order of numbers.
        base: Offset of the bytes in the file, for positions in errors.
    """

    def __init__(
        self, data: bytes | memoryview, path: Path, begin: int = 0, order: ByteOrder = "little", base: int = 0
    ) -> None:
        self.data, self.path, self.position, self.order, self.base = memoryview(data), path, begin, order, base

    @property
    def left(self) -> int:
        """Number of remaining bytes."""
        return len(self.data) - self.position

    def take(self, count: int, what: str) -> bytes:
        """Return the next `count` bytes; TraceFormatError, with their meaning `what`, if there are fewer."""
        if not 0 <= count <= self.left:
            raise TraceFormatError(self.path, self.base + self.position, f"the file ends inside {what}",
                                   "it was cut short; copy it again")  # fmt: skip
        self.position += count
        return bytes(self.data[self.position - count : self.position])

    def number(self, size: int, what: str) -> int:
        """Return the next `size` bytes as an unsigned number.

        Raises:
            TraceFormatError: There are fewer bytes.
        """
        return int.from_bytes(self.take(size, what), self.order)

    def text(self, what: str) -> str:
        """Return the text before the next NUL; TraceFormatError if there is none."""
        end = self.position
        step = bytes(self.data[self.position : self.position + 4096])
        while (length := step.find(0)) < 0:
            end += len(step)
            step = bytes(self.data[end : end + 4096])
            if not step:
                self.take(self.left + 1, what)
        value = self.take(end + length - self.position, what)
        self.position += 1
        return value.decode("utf-8", "replace")


# Metadata in trace.dat and perf.data: formats of tracepoints, names of threads.


MAGIC: Final = b"\x17\x08\x44tracing"
_MOST_EVENTS: Final = 1 << 16


@dataclass(slots=True)
class Metadata:
    """Formats of tracepoints and names of threads, from the metadata of a file.

    Attributes:
        formats: Formats of tracepoints, by number.
        names: Names of threads, by number.
        commit_bytes: Size of the word in the head of a ring buffer page that contains the used length.
    """

    formats: dict[int, TracepointFormat] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    commit_bytes: int = 8


def read_header_info(cursor: Cursor, metadata: Metadata) -> None:
    """Read the layout of the header of ring buffer pages."""
    for what in ("header_page", "header_event"):
        name = cursor.text(what)
        text = cursor.take(cursor.number(8, what), what).decode("utf-8", "replace")
        if name == "header_page" and (page := parse_format(f"name: page\nID: 0\n{text}", "")):
            commit = page.fields.get("commit")
            metadata.commit_bytes = commit.size if commit and commit.size in (4, 8) else 8


def read_ftrace_formats(cursor: Cursor, metadata: Metadata) -> None:
    """Read the formats of ftrace events that are not tracepoints."""
    for _ in range(min(cursor.number(4, "the formats of ftrace"), _MOST_EVENTS)):
        _read_format(cursor, metadata, "ftrace")


def read_event_formats(cursor: Cursor, metadata: Metadata) -> None:
    """Read the formats of tracepoints."""
    for _ in range(min(cursor.number(4, "the groups of tracepoints"), _MOST_EVENTS)):
        group = cursor.text("the name of a group")
        for _ in range(min(cursor.number(4, "the formats of tracepoints"), _MOST_EVENTS)):
            _read_format(cursor, metadata, group)


def _read_format(cursor: Cursor, metadata: Metadata, group: str) -> None:
    text = cursor.take(cursor.number(8, "the format of a tracepoint"), "the format of a tracepoint")
    known = parse_format(text.decode("utf-8", "replace"), group)
    if known is not None:
        metadata.formats[known.ident] = known


def skip_sized(cursor: Cursor, what: str, size: int = 4) -> None:
    """Skip a part that begins with its size, a number of `size` bytes; `what` names the part in errors."""
    cursor.take(cursor.number(size, what), what)


def read_names(cursor: Cursor, metadata: Metadata) -> None:
    """Read the names of threads: lines with a number and a name."""
    text = cursor.take(cursor.number(8, "the names of threads"), "the names of threads").decode("utf-8", "replace")
    for line in text.splitlines():
        number, _, name = line.strip("\0 ").partition(" ")
        if number.isascii() and number.isdigit() and len(number) < 11:
            metadata.names[int(number)] = name


def read_all(cursor: Cursor, metadata: Metadata, *, has_names: bool = True) -> None:
    """Read the sections after byte order and page size in version 6 of trace.dat, and in perf.data."""
    read_header_info(cursor, metadata)
    read_ftrace_formats(cursor, metadata)
    read_event_formats(cursor, metadata)
    skip_sized(cursor, "the names of functions")
    skip_sized(cursor, "the formats of trace_printk()")
    if has_names:
        read_names(cursor, metadata)


_COMMON: Final = ("common_type", "common_flags", "common_preempt_count", "common_pid")
_PID_AT: Final = 4  # common_pid, in all formats of Linux from 2.6.31 on
_SWITCH: Final = "sched_switch"
_WAKES: Final = ("sched_waking", "sched_wakeup", "sched_wakeup_new")
_MOST_TEXT: Final = 4096


@dataclass(frozen=True, slots=True)
class Records:
    """Records of tracepoints of all CPUs.

    Attributes:
        data: uint8, bytes that contain the records.
        time_ns, cpu: int64 (n,).
        offsets, size: int64 (n,), offset in `data` and size in bytes of each record.
        order: Byte order, `<` or `>`.
    """

    data: NDArray[np.uint8]
    time_ns: Ints
    cpu: Ints
    offsets: Ints
    size: Ints
    order: str = "<"

    def numbers(self, rows: Ints, offset: int, size: int, *, is_signed: bool) -> Ints:
        """Return the number of 1, 2, 4 or 8 bytes at an offset in some records, int64; 0 if a record is shorter."""
        is_there = self.size[rows] >= offset + size
        offsets = np.where(is_there, self.offsets[rows] + offset, 0)
        wide = np.empty((len(rows), size), np.uint8)
        for byte in range(size):
            wide[:, byte] = self.data[offsets + byte]
        values = wide.view(f"{self.order}{'i' if is_signed else 'u'}{size}")[:, 0].astype(np.int64)
        return np.where(is_there, values, 0)

    def values(self, rows: Ints, field: RecordField | None) -> Ints:
        """Return a field of some records, int64 (len(rows),); 0 without a field, or if the field is not a number."""
        if field is None or not field.is_number:
            return np.zeros(len(rows), np.int64)
        return self.numbers(rows, field.offset, field.size, is_signed=field.is_signed)

    def bytes_of(self, record: int) -> bytes:
        """Return the bytes of one record."""
        begin = int(self.offsets[record])
        return self.data[begin : begin + int(self.size[record])].tobytes()


@dataclass(frozen=True, slots=True)
class RecordDetails:
    """Implements `ScheduleDetails` by the formats of tracepoints."""

    records: Records
    formats: dict[int, TracepointFormat]

    def text(self, record: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        """Return name and arguments of a record."""
        raw = self.records.bytes_of(record)
        order = "little" if self.records.order == "<" else "big"
        known = self.formats.get(int.from_bytes(raw[:2], order))  # type: ignore[arg-type]
        if known is None:
            return f"tracepoint {int.from_bytes(raw[:2], order)}", ()  # type: ignore[arg-type]
        shown = [
            (member.name, _value(raw, member, order)) for member in known.fields.values() if member.name not in _COMMON
        ]
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
        offset, length = number & 0xFFFF, min(number >> 16 & 0xFFFF, _MOST_TEXT)
        return raw[offset : offset + length].split(b"\0", 1)[0].decode("utf-8", "replace")
    return part.hex(" ")


@dataclass(frozen=True, slots=True)
class RecordContents:
    """The switches, wake-ups and other events in records, for a `Schedule`."""

    switches: CpuSwitches
    wakeups: WakeUps
    points: Points
    tasks: Tasks
    unknown: int  # number of records without a format in the file


def schedule_of(records: Records, formats: dict[int, TracepointFormat], tasks: Tasks) -> RecordContents:
    """Return the switches, wake-ups and other events in records; names and processes in them are added to `tasks`."""
    everything = np.arange(len(records.offsets), dtype=np.int64)
    kind = records.numbers(everything, 0, 2, is_signed=False)
    pid = records.numbers(everything, _PID_AT, 4, is_signed=True)
    codes = np.full(1 << 16, linux.POINT, np.int64)
    by_name: dict[str, TracepointFormat] = {}
    for event_format in formats.values():
        if event_format.ident < len(codes):
            codes[event_format.ident] = event_format.code
            by_name[event_format.name] = event_format
    rows: dict[str, Ints] = {
        name: np.flatnonzero(kind == by_name[name].ident) for name in (_SWITCH, *_WAKES) if name in by_name
    }
    # A thread is ready from sched_waking on; later wake-up events only give the CPU.
    wakes = [name for name in _WAKES if name in rows and len(rows[name])]
    wakes = [name for name in wakes if name != "sched_wakeup"] if "sched_waking" in wakes else wakes
    woken = _wakeups(records, [(rows[name], by_name[name]) for name in wakes], pid, tasks)
    # Names in switches come last, as a thread that runs another program is renamed.
    switches = _switches(records, rows.get(_SWITCH), by_name, tasks)
    is_other = np.ones(len(kind), np.bool_)
    for name in (_SWITCH, *wakes):
        is_other[rows.get(name, np.empty(0, np.int64))] = False
    other = everything[is_other]
    points = Points(records.time_ns[other], other, records.cpu[other], pid[other], codes[kind[other]])
    known = np.zeros(1 << 16, np.bool_)
    known[[ident for ident in formats if ident < len(known)]] = True
    return RecordContents(switches, woken, points, tasks, int(np.count_nonzero(~known[kind])))


def _switches(records: Records, rows: Ints | None, formats: dict[str, TracepointFormat], tasks: Tasks) -> CpuSwitches:
    if rows is None or not len(rows):
        return CpuSwitches()
    known = formats[_SWITCH]

    def column(name: str) -> Ints:
        return records.values(rows, known.fields.get(name))

    states, which = np.unique(column("prev_state"), return_inverse=True)
    values = np.array([lane_value(state, known.state_flags) for state in states.tolist()], np.int64)
    before, after = column("prev_pid"), column("next_pid")
    _add_names(records, rows, after, known.fields.get("next_comm"), tasks)
    _add_names(records, rows, before, known.fields.get("prev_comm"), tasks)
    return CpuSwitches(
        records.time_ns[rows], rows, records.cpu[rows], before, column("prev_prio"), values[which], after,
        column("next_prio"),
    )  # fmt: skip


def _wakeups(records: Records, kinds: list[tuple[Ints, TracepointFormat]], pid: Ints, tasks: Tasks) -> WakeUps:
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
    """Add to `tasks` the names of threads in a field of some records; of several names of a thread, the last."""
    if field is None or not field.is_text:
        return
    numbers, last = np.unique(thread[::-1], return_index=True)
    for number, row in zip(numbers.tolist(), (len(thread) - 1 - last).tolist(), strict=True):
        name = _value(records.bytes_of(int(rows[row])), field, "little")
        if number > 0 and name:
            tasks.names[number] = str(name)
