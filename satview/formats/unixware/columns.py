"""Finds the files of a set of thread_trace, and reads them block by block into columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled, TraceFormatError
from satview.base.time import NS_PER_S
from satview.events.unixware import ARGUMENTS
from satview.store.problems import Problems

# Converts the lines of a block to an array of 13 columns.


FIELDS: Final = 13
LONGEST_LINE: Final = 4096
_MOST_DIGITS: Final = 18  # always fit into 63 bits
_NUMBER = re.compile(rb"[ \t]*([+-]?)(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})[ \t]*\r?")
_LAST_SECOND: Final = 9_000_000_000  # times up to here fit into 63 bits of nanoseconds
_LARGEST_ID: Final = 2**31 - 1
_NOT_13, _NO_NUMBER, _TIME, _ID = (
    "it has not 13 fields",
    "a field is not a number",
    "its time is out of range",
    "the id of its LWP, process or thread is out of range",
)


@dataclass(frozen=True, slots=True)
class LineRecords:
    """The records in a block of lines.

    Attributes:
        values: int64, shape (n, 13): the fields, in the order of the file.
        line: int64, shape (n,): number of each record's line in the block, from 0.
        damaged: Number of the line in the block, and reason, for each damaged line.
        line_count: Number of lines of the block, including blank lines.
    """

    values: NDArray[np.int64]
    line: NDArray[np.int64]
    damaged: list[tuple[int, str]]
    line_count: int


def parse_line(line: bytes) -> tuple[int, ...] | str:
    """Return the 13 numbers of a line, or a text on the fault of the line.

    Numbers are decimal or, with 0x, hexadecimal, with an optional sign and surrounding blanks. Numbers above 2**63 - 1
    (addresses written as unsigned numbers) become the negative number with the same 64 bits.
    """
    fields = line.split(b":")
    if len(fields) != FIELDS:
        return _NOT_13
    numbers = []
    for number_text in fields:
        match = _NUMBER.fullmatch(number_text)
        if match is None:
            return _NO_NUMBER
        size = int(match[2], 16 if match[2][:2] in (b"0x", b"0X") else 10)
        number = -size if match[1] == b"-" else size
        if not -(1 << 63) <= number < 1 << 64:
            return _NO_NUMBER
        numbers.append(number - (1 << 64) if number >= 1 << 63 else number)
    return tuple(numbers)


def parse_block(data: bytes) -> LineRecords:
    """Return the records in whole lines; the last line may lack its newline."""
    if not data.endswith(b"\n"):
        data += b"\n"
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero((text == ord(":")) | (text == ord("\n")))
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
    last_field = np.flatnonzero(text[ends] == ord("\n"))
    fields_of_line = np.diff(last_field, prepend=-1)
    line_start = starts[np.concatenate((np.zeros(1, np.int64), last_field[:-1] + 1))]
    line_end = ends[last_field]
    has_13 = fields_of_line == FIELDS
    is_plain = has_13 & _are_plain(text, starts, ends, line_end, fields_of_line)
    values = np.empty((len(line_end), FIELDS), np.int64)
    firsts = last_field[is_plain] - FIELDS + 1
    for column in range(FIELDS):
        values[is_plain, column] = _numbers(text, starts[firsts + column], ends[firsts + column])
    good = is_plain.copy()
    damaged: list[tuple[int, str]] = []
    for line in np.flatnonzero(~is_plain).tolist():
        numbers_or_fault = _odd_line(data, int(line_start[line]), int(line_end[line]), bool(has_13[line]))
        if isinstance(numbers_or_fault, tuple):
            values[line], good[line] = numbers_or_fault, True
        elif numbers_or_fault:
            damaged.append((line, numbers_or_fault))
    _check(values, good, damaged)
    rows = np.flatnonzero(good)
    return LineRecords(values[rows], rows, sorted(damaged), len(line_end))


def _odd_line(data: bytes, start: int, end: int, has_13: bool) -> tuple[int, ...] | str:
    """Return the numbers of a line that is not plain (`_are_plain`), or a text on its fault; "" for a blank line."""
    if end - start > LONGEST_LINE:
        return f"it is longer than {LONGEST_LINE} bytes"
    if has_13:
        return parse_line(data[start:end])
    return "" if data[start:end].isspace() or start == end else _NOT_13


def _are_plain(
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    line_end: NDArray[np.int64],
    fields_of_line: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return which lines have only short decimal numbers without blanks or plus signs as fields, bool (lines,)."""
    is_odd = text - np.uint8(ord("0")) > 9  # wraps around below the digit 0
    is_odd[ends] = False
    is_negative = text[starts] == ord("-")
    is_odd[starts[is_negative]] = False
    plain = np.ones(len(line_end), np.bool_)
    plain[np.searchsorted(line_end, np.flatnonzero(is_odd))] = False
    digits = ends - starts - is_negative
    wrong = np.flatnonzero((digits < 1) | (digits > _MOST_DIGITS))
    plain[np.searchsorted(np.cumsum(fields_of_line), wrong, side="right")] = False
    return plain


def _numbers(text: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers in the texts between pairs of offsets, all of which match `-?[0-9]{1,18}`, int64 (n,)."""
    out = np.zeros(len(start), np.int64)
    if not len(start):
        return out
    is_negative = text[start] == ord("-")
    offset = start + is_negative
    for _ in range(int((end - offset).max())):
        more = offset < end
        if more.all():
            out = out * 10 + (text[offset] - np.uint8(48))
        else:
            out[more] = out[more] * 10 + (text[offset[more]] - np.uint8(48))
        offset = offset + 1
    out[is_negative] *= -1
    return out


def _check(values: NDArray[np.int64], good: NDArray[np.bool_], damaged: list[tuple[int, str]]) -> None:
    """Mark lines with impossible times or ids as damaged: clear `good`, and add number and reason to `damaged`."""
    seconds, nanoseconds, ids = values[:, 0], values[:, 1], values[:, 2:5]
    bad_time = good & ((seconds < 0) | (seconds > _LAST_SECOND) | (nanoseconds < 0) | (nanoseconds >= 1_000_000_000))
    bad_id = good & ~bad_time & ((ids < 0) | (ids > _LARGEST_ID)).any(axis=1)
    for lines, what in ((bad_time, _TIME), (bad_id, _ID)):
        damaged.extend((line, what) for line in np.flatnonzero(lines).tolist())
    good &= ~(bad_time | bad_id)


_BLOCK_BYTES: Final = 1 << 20
_MANY: Final = 200  # maximum number of damaged lines of a block that are listed one by one
_SMALL_TYPES: Final = (np.int8, np.int16, np.int32)
Column = NDArray[np.signedinteger]


@dataclass(slots=True)
class RecordColumns:
    """The records of all files, one file after the other; each column is a list of arrays.

    Attributes:
        time_ns: Nanoseconds, not decreasing within a file.
        ids: LWP, process and thread id.
        kind: event1, event2 and which.
        arguments: a1 to a5.
        is_own: Whether the record is from a file of times (`times_files`).
    """

    time_ns: list[NDArray[np.int64]] = field(default_factory=list)
    ids: tuple[list[Column], ...] = field(default_factory=lambda: tuple([] for _ in range(3)))
    kind: tuple[list[Column], ...] = field(default_factory=lambda: tuple([] for _ in range(3)))
    arguments: tuple[list[Column], ...] = field(default_factory=lambda: tuple([] for _ in range(ARGUMENTS)))

    is_own: list[Column] = field(default_factory=list)

    def add(self, time_ns: NDArray[np.int64], values: NDArray[np.int64], is_own: bool) -> None:
        """Append records, every column in the narrowest type that fits.

        Args:
            time_ns: int64 (n,), times.
            values: int64 (n, 13), fields as in `LineRecords`.
            is_own: True for records from a `.time` file, satview's own addition to the format.
        """
        self.time_ns.append(time_ns)
        self.is_own.append(np.full(len(time_ns), is_own, np.int8))
        for first_column, parts in ((2, self.ids), (5, self.kind), (8, self.arguments)):
            for i, part in enumerate(parts):
                part.append(_narrow(values[:, first_column + i]))


def concatenated(parts: list[Column]) -> Column:
    """Return the parts of a column as one array, and empty the list."""
    whole = np.concatenate(parts) if parts else np.empty(0, np.int8)
    parts.clear()
    return whole


def _narrow(column: NDArray[np.int64]) -> Column:
    if not len(column):
        return column.astype(np.int8)
    low, high = int(column.min()), int(column.max())
    for small in _SMALL_TYPES:
        if np.iinfo(small).min <= low and high <= np.iinfo(small).max:
            return column.astype(small)
    return column.copy()


class SetReader:
    """Reads the files of a set one after the other into columns.

    Args:
        categories: Numbers of the categories to read; None = all.
        problems: Receives problems.
        progress: Called with the number of bytes read so far.
        cancelled: Called between blocks.
    """

    def __init__(
        self,
        categories: Sequence[int] | None,
        problems: Problems,
        progress: Callable[[int], None] | None,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self.columns = RecordColumns()
        self.bytes_read = 0
        self._categories = categories
        self._problems = problems
        self._progress = progress
        self._cancelled = cancelled

    def read(self, path: Path, is_own: bool = False) -> bool:
        """Read a file; return False if it cannot be read.

        Args:
            path: The file.
            is_own: Whether the file is a file of times; its lines may be out of order if two threads wrote them.

        Raises:
            Cancelled: `cancelled()` returned True.
        """
        try:
            with path.open("rb") as file:
                _FileReader(self, path.name, self._problems, is_own).read(file)
        except OSError as error:
            self._problems.add("missing-file", f"it cannot be read: {error.strerror or error}", file=path.name)
            return False
        return True

    def advance(self, byte_count: int) -> None:
        """Record that bytes were read, and report progress; raises Cancelled if `cancelled()` returned True."""
        self.bytes_read += byte_count
        if self._progress is not None:
            self._progress(self.bytes_read)
        if self._cancelled is not None and self._cancelled():
            raise Cancelled("reading was stopped")

    def add(self, time_ns: NDArray[np.int64], values: NDArray[np.int64], is_own: bool) -> None:
        """Add the records of requested categories.

        Args:
            time_ns: int64 (n,), times.
            values: int64 (n, 13), fields as in `LineRecords`.
            is_own: Whether the records are from a file of times.
        """
        if self._categories is not None:
            requested = np.isin(values[:, 5], self._categories)
            time_ns, values = time_ns[requested], values[requested]
        self.columns.add(time_ns, values, is_own)


class _FileReader:
    """Splits one file into blocks of whole lines and keeps its times in order."""

    def __init__(self, owner: SetReader, name: str, problems: Problems, is_own: bool) -> None:
        self._is_own = is_own
        self._owner, self._name, self._problems = owner, name, problems
        self._line, self._latest_ns = 0, 0
        self._is_skipping = False  # inside a line that is too long

    def read(self, file: BinaryIO) -> None:
        rest = b""
        while data := file.read(_BLOCK_BYTES):
            self._owner.advance(len(data))
            if self._is_skipping:
                _, newline, data = data.partition(b"\n")
                if not newline:
                    continue
                self._is_skipping = False
            data = rest + data
            end = data.rfind(b"\n") + 1
            if end:
                self._take(data[:end])
            rest = data[end:]
            if len(rest) > LONGEST_LINE:
                self._report_bad(self._line + 1, f"it is longer than {LONGEST_LINE} bytes")
                self._line += 1
                self._is_skipping, rest = True, b""
        if rest:
            self._take(rest, is_last=True)
        elif not self._line and not self._is_skipping and not self._is_own:
            self._problems.add(
                "missing-file", "it is empty: its LWP recorded nothing, or was killed before it wrote", file=self._name
            )

    def _take(self, data: bytes, is_last: bool = False) -> None:
        records = parse_block(data)
        first_line = self._line + 1
        self._line += records.line_count
        for line, what in records.damaged[:_MANY]:
            self._report_bad(first_line + line, "the file ends inside this line" if is_last else what)
        if len(records.damaged) > _MANY:
            line, what = records.damaged[_MANY]
            self._report_bad(first_line + line, f"{what}; and more such lines after it", len(records.damaged) - _MANY)
        if len(records.values):
            self._owner.add(self._times(records, first_line), records.values, self._is_own)

    def _times(self, records: LineRecords, first_line: int) -> NDArray[np.int64]:
        """Return the times of a block, ns, int64; if the clock was set back, they stay until it has caught up."""
        time = records.values[:, 0] * NS_PER_S + records.values[:, 1]
        if self._is_own:
            return time
        rising = np.maximum(np.maximum.accumulate(time), self._latest_ns)
        back = np.flatnonzero(time < np.concatenate(([self._latest_ns], time[:-1])))
        for i in back[:_MANY].tolist():
            self._problems.add(
                "clock-set-back",
                "it is older than the record before it; the order of the file counts",
                None,
                1,
                int(rising[i]),
                first_line + int(records.line[i]),
                self._name,
            )
        if len(back) > _MANY:
            self._problems.add("clock-set-back", "and more of the same", count=len(back) - _MANY, file=self._name)
        self._latest_ns = int(rising[-1])
        return rising

    def _report_bad(self, line: int, what: str, count: int = 1) -> None:
        self._problems.add("bad-line", what, count=count, line=line, file=self._name)


# Finds the files of a set, `tr.xxxxxxx.yyy` with pid and LWP id in hexadecimal, and its files of names and times.


_MEMBER = re.compile(r"tr\.([0-9a-fA-F]{1,7})\.([0-9a-fA-F]{1,3})")
NAMES_SUFFIX = "names"
TIMES_SUFFIX = "time"


def is_member_name(name: str) -> bool:
    """Return whether a file name is that of a thread trace."""
    return _MEMBER.fullmatch(name) is not None


def is_set(path: Path) -> bool:
    """Return whether a path is a directory with thread traces."""
    return path.is_dir() and any(is_member_name(entry.name) for entry in path.iterdir())


def _members(directory: Path, process: str | None) -> list[Path]:
    members = []
    for entry in directory.iterdir():
        match = _MEMBER.fullmatch(entry.name)
        if match and (process is None or int(match[1], 16) == int(process, 16)) and entry.is_file():
            members.append(entry)
    return members


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the files of a set, ordered by process and LWP.

    A directory stands for all thread traces in it, a single file for all files of its process in the same directory;
    several paths are exactly the files of the set. Missing files are returned too, so that the reader reports them.

    Raises:
        TraceFormatError: A directory contains no thread trace.
        OSError: A directory cannot be read.
    """
    named_paths = list(paths)
    files: dict[Path, None] = {}
    for path in named_paths:
        if path.is_dir():
            inside = _members(path, None)
            if not inside:
                raise TraceFormatError(
                    path,
                    None,
                    "the directory holds no thread trace",
                    "name one with files tr.xxxxxxx.yyy, or a trace file in it",
                )
            files.update(dict.fromkeys(inside))
        else:
            match = _MEMBER.fullmatch(path.name)
            files[path] = None
            if match and len(named_paths) == 1 and path.parent.is_dir():
                files.update(dict.fromkeys(_members(path.parent, match[1])))
    return sorted(files, key=_order)


def _order(path: Path) -> tuple[str, bool, list[int], str]:
    """Return the sort key of a file: by process and LWP; files with other names come last."""
    match = _MEMBER.fullmatch(path.name)
    numbers = [int(digits, 16) for digits in match.groups()] if match else []
    return str(path.parent), match is None, numbers, path.name


def names_files(files: Iterable[Path]) -> list[Path]:
    """Return the files with names beside the members of a set."""
    name_files: dict[Path, None] = {}
    for path in files:
        match = _MEMBER.fullmatch(path.name)
        if match:
            beside = path.with_name(f"tr.{match[1]}.{NAMES_SUFFIX}")
            if beside.is_file():
                name_files[beside] = None
    return list(name_files)


def times_files(files: Iterable[Path]) -> list[Path]:
    """Return the files of times beside the members of a set: `tr.xxxxxxx.yyy.time`."""
    besides = [path.with_name(f"{path.name}.{TIMES_SUFFIX}") for path in files if is_member_name(path.name)]
    return [beside for beside in besides if beside.is_file()]
