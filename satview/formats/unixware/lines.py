"""From text to numbers: the lines of a block become an array of 13 columns.

A record is a line `time1:time2:lwpid:pid:tid:event1:event2:which:a1:a2:a3:a4:a5`. Lines of plain decimal numbers are
taken apart column by column with numpy; blanks, plus signs and hexadecimal numbers go line by line.
Source: manual page thread_trace(4), Novell 1994.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

FIELDS: Final = 13
LONGEST_LINE: Final = 4096
_MOST_DIGITS: Final = 18  # surely fit into 63 bits
_NUMBER = re.compile(rb"[ \t]*([+-]?)(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})[ \t]*\r?")
_LAST_SECOND: Final = 9_000_000_000  # of times in nanoseconds that fit into 63 bits
_LARGEST_ID: Final = 2**31 - 1
_NOT_13, _NO_NUMBER, _TIME, _ID = (
    "it has not 13 fields",
    "a field is no number",
    "its time is out of range",
    "the id of its LWP, process or thread is out of range",
)


@dataclass(frozen=True, slots=True)
class Records:
    """What a block of lines held.

    Attributes:
        values: int64, shape (n, 13): the fields, in the order of the file.
        line: int64, shape (n,): which line of the block each was, from 0.
        damaged: Line of the block and what is wrong with it.
        line_count: Lines of the block, blank ones included.
    """

    values: NDArray[np.int64]
    line: NDArray[np.int64]
    damaged: list[tuple[int, str]]
    line_count: int


def parse_line(line: bytes) -> tuple[int, ...] | str:
    """Return the 13 numbers of a line, or what is wrong with it.

    Numbers are decimal or, with 0x, hexadecimal, with an optional sign and blanks around them. Those above 2**63 - 1
    (addresses written as unsigned numbers) come out as the negative number of the same 64 bits.
    """
    fields = line.split(b":")
    if len(fields) != FIELDS:
        return _NOT_13
    numbers = []
    for field in fields:
        match = _NUMBER.fullmatch(field)
        if match is None:
            return _NO_NUMBER
        size = int(match[2], 16 if match[2][:2] in (b"0x", b"0X") else 10)
        number = -size if match[1] == b"-" else size
        if not -(1 << 63) <= number < 1 << 64:
            return _NO_NUMBER
        numbers.append(number - (1 << 64) if number >= 1 << 63 else number)
    return tuple(numbers)


def parse_block(data: bytes) -> Records:
    """Return the records of whole lines; a missing newline at the end is no fault here."""
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
        found = _odd_line(data, int(line_start[line]), int(line_end[line]), bool(has_13[line]))
        if isinstance(found, tuple):
            values[line], good[line] = found, True
        elif found:
            damaged.append((line, found))
    _check(values, good, damaged)
    rows = np.flatnonzero(good)
    return Records(values[rows], rows, sorted(damaged), len(line_end))


def _odd_line(data: bytes, start: int, end: int, has_13: bool) -> tuple[int, ...] | str:
    """Return the numbers of a line that is not plain, what is wrong with it, or nothing if it is blank."""
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
    """Return for every line whether all its fields are short decimal numbers without blanks or plus signs."""
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
    """Return the decimal numbers between two offsets each; all of the form `-?[0-9]{1,18}`."""
    out = np.zeros(len(start), np.int64)
    if not len(start):
        return out
    is_negative = text[start] == ord("-")
    at = start + is_negative
    for _ in range(int((end - at).max())):
        more = at < end
        if more.all():
            out = out * 10 + (text[at] - np.uint8(48))
        else:
            out[more] = out[more] * 10 + (text[at[more]] - np.uint8(48))
        at = at + 1
    out[is_negative] *= -1
    return out


def _check(values: NDArray[np.int64], good: NDArray[np.bool_], damaged: list[tuple[int, str]]) -> None:
    """Take out lines whose time or ids no program can have written."""
    seconds, nanoseconds, ids = values[:, 0], values[:, 1], values[:, 2:5]
    bad_time = good & ((seconds < 0) | (seconds > _LAST_SECOND) | (nanoseconds < 0) | (nanoseconds >= 1_000_000_000))
    bad_id = good & ~bad_time & ((ids < 0) | (ids > _LARGEST_ID)).any(axis=1)
    for lines, what in ((bad_time, _TIME), (bad_id, _ID)):
        damaged.extend((line, what) for line in np.flatnonzero(lines).tolist())
    good &= ~(bad_time | bad_id)
