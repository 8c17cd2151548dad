"""Names and arguments of events in a trace of Perfetto, beyond the numbers that are stored for all events.

The package `perfetto` contains the names of arguments of ftrace events. Without the package, arguments are shown by
number, with the command that installs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import ColumnTable
from satview.core import loading
from satview.formats.linux.schedule import Ints

# Protobuf messages as columns: one row for each field of many messages.


_MOST_TEXT: Final = 512  # maximum bytes of a name; the rest is cut
_MOST: Final = 10  # maximum bytes of a number of 64 bits


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column with few distinct texts: int64 (n,), index into the texts, and the texts."""

    code: Ints
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of messages, in data order within each message.

    Attributes:
        data: uint8, the bytes.
        messages: Number of messages.
        message: int64 (n,), ascending: message of each field.
        number: int64 (n,), number of the field.
        value: int64 (n,), the number, or the offset of the bytes.
        length: int64 (n,), length of a field of bytes; -1 for a number.
        is_bad: bool (messages,), which messages end inside a field; the fields before it are valid.
    """

    data: NDArray[np.uint8]
    messages: int
    message: Ints
    number: Ints
    value: Ints
    length: Ints
    is_bad: NDArray[np.bool_]

    def numbers(self, number: int, default: int = 0) -> Ints:
        """Return a number of each message, int64 (messages,): the last value of a field, or the default."""
        out = np.full(self.messages, default, np.int64)
        rows = np.flatnonzero((self.number == number) & (self.length < 0))
        out[self.message[rows]] = self.value[rows]
        return out

    def inner(self, number: int) -> tuple[Fields, Ints]:
        """Return the fields of nested messages, given by a field number, and the outer message of each, int64 (n,)."""
        rows = np.flatnonzero((self.number == number) & (self.length >= 0))
        return fields_of(self.data, self.value[rows], self.value[rows] + self.length[rows]), self.message[rows]

    def texts(self, number: int) -> list[str]:
        """Return a text of each message: the first value of a field, empty if there is none; slow for many messages."""
        out = [""] * self.messages
        for row in self.bytes_rows(number)[::-1].tolist():
            out[int(self.message[row])] = self.text_at(row)
        return out

    def text_at(self, row: int) -> str:
        """Return the bytes of the field in a row as text."""
        begin = int(self.value[row])
        return self.data[begin : begin + int(self.length[row])].tobytes().decode("utf-8", "replace")

    def text_column(self, number: int) -> TextColumn:
        """Return a text of each message as a column, for a field with few distinct texts; empty without the field."""
        text_rows = self.bytes_rows(number)
        code, texts = np.zeros(self.messages, np.int64), [""]
        length = np.minimum(self.length[text_rows], _MOST_TEXT)
        for size in np.unique(length[length > 0]).tolist():
            rows = text_rows[length == size]
            raw = self.data[self.value[rows][:, None] + np.arange(size)]
            raw = np.ascontiguousarray(raw).view(np.dtype((np.void, size)))[:, 0]
            different, which = np.unique(raw, return_inverse=True)
            code[self.message[rows]] = len(texts) + which
            texts += [raw_text.tobytes().decode("utf-8", "replace") for raw_text in different]
        return TextColumn(code, tuple(texts))

    def bytes_rows(self, number: int) -> Ints:
        """Return the rows of a field of bytes, int64 (n,)."""
        return np.flatnonzero((self.number == number) & (self.length >= 0))


def fields_of(data: NDArray[np.uint8], begin: Ints, end: Ints) -> Fields:
    """Return the fields of messages.

    Args:
        data: uint8, the bytes.
        begin: int64 (n,), offset of each message.
        end: int64 (n,), end of each message.
    """
    begin, end = np.ascontiguousarray(begin, np.int64), np.ascontiguousarray(end, np.int64)
    return Fields(data, len(begin), *loading.protobuf_fields(data, begin, end))


def packed(data: NDArray[np.uint8], begin: int, length: int) -> Ints:
    """Return the numbers of a packed field, int64 (n,), without an incomplete number at the end."""
    part = data[begin : begin + length]
    ends = np.flatnonzero(part < 0x80)
    if not len(ends):
        return np.empty(0, np.int64)
    starts = np.concatenate(([0], ends[:-1] + 1))
    byte = np.arange(int(ends[-1]) + 1) - np.repeat(starts, ends - starts + 1)
    bits = (part[: int(ends[-1]) + 1] & np.uint8(0x7F)).astype(np.uint64) << (7 * np.minimum(byte, _MOST - 1)).astype(
        np.uint64
    )
    return np.bitwise_or.reduceat(bits, starts).astype(np.int64)


_INSTALL: Final = "pip install perfetto"
FREQUENCY: Final = -118  # stands for GenericKernelCpuFrequencyEvent, which is no field of FtraceEvent
_OF_KERNELS: Final = {FREQUENCY: ("cpu_frequency", {1: "cpu", 2: "freq_hz"})}


@dataclass(frozen=True, slots=True)
class RecordSpans(ColumnTable):
    """Locations of the arguments of events, int64 (n,) each: record, field number in FtraceEvent, first byte, end."""

    record: Ints
    number: Ints
    begin: Ints
    end: Ints


@dataclass(frozen=True, slots=True)
class SliceNames:
    """Names of slices, and numbers of their records, int64 (n,), ascending."""

    record: Ints
    names: TextColumn


@dataclass(frozen=True, slots=True)
class PerfettoDetails:
    """Implements `schedule.ScheduleDetails`."""

    data: NDArray[np.uint8]
    records: RecordSpans
    slices: SliceNames

    def text(self, record: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        """Return name and arguments of an event: the name of a slice, or the fields of an ftrace event."""
        row = _find(self.slices.record, record)
        if row >= 0:
            return "", (("name", self.slices.names.texts[int(self.slices.names.code[row])]),)
        row = _find(self.records.record, record)
        return ("", ()) if row < 0 else self._ftrace(row)

    def raw(self, record: int) -> bytes:
        """Return the bytes of an ftrace event's arguments."""
        row = _find(self.records.record, record)
        return self.data[int(self.records.begin[row]) : int(self.records.end[row])].tobytes() if row >= 0 else b""

    def _ftrace(self, span: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        number = int(self.records.number[span])
        begin, end = (np.array([column[span]], np.int64) for column in (self.records.begin, self.records.end))
        fields = fields_of(self.data, begin, end)
        known = _OF_KERNELS.get(number) or _protocol().get(number)
        names = known[1] if known else {}
        values: list[tuple[str, int | str]] = []
        for row in range(len(fields.number)):
            field = int(fields.number[row])
            is_bytes = int(fields.length[row]) >= 0
            values.append(
                (names.get(field, f"field {field}"), fields.text_at(row) if is_bytes else int(fields.value[row]))
            )
        if known is None:
            values.append(("names", f"{_INSTALL} shows them"))
        return known[0] if known else f"ftrace event {number}", tuple(values)


def _find(records: Ints, record: int) -> int:
    row = int(np.searchsorted(records, record))
    return row if row < len(records) and int(records[row]) == record else -1


@cache
def _protocol() -> dict[int, tuple[str, dict[int, str]]]:
    """Return name and fields of every ftrace event by its number; empty without the package."""
    try:  # large, and an extra
        protocol = import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    except ImportError:
        return {}
    event: Any = protocol.FtraceEvent.DESCRIPTOR
    return {
        field.number: (field.name, {inner.number: inner.name for inner in field.message_type.fields})
        for field in event.fields
        if field.message_type is not None
    }
