"""Messages of protobuf as columns: a row for each field of many messages at once.

Source: "Encoding" of the protobuf documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import loading
from satview.formats.linux.schedule import Ints

_MOST_TEXT: Final = 512  # bytes of a name that count
_MOST: Final = 10  # bytes of a number of 64 bits


@dataclass(frozen=True, slots=True)
class TextColumn:
    """Texts of which few are different: int64 (n,), which of the texts, and the texts."""

    code: Ints
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of messages, in the order of the data within each message.

    Attributes:
        data: uint8, the bytes.
        messages: How many messages there are.
        message: int64 (n,), ascending: whose field it is.
        number: int64 (n,), number of the field.
        value: int64 (n,), a number, or where the bytes of a field of bytes begin.
        length: int64 (n,), of a field of bytes; -1 of a number.
        is_bad: bool (messages,), which end inside a field; what precedes is there.
    """

    data: NDArray[np.uint8]
    messages: int
    message: Ints
    number: Ints
    value: Ints
    length: Ints
    is_bad: NDArray[np.bool_]

    def numbers(self, number: int, default: int = 0) -> Ints:
        """Return a field of numbers, int64 (messages,), its last one; the default where a message has none."""
        out = np.full(self.messages, default, np.int64)
        at = np.flatnonzero((self.number == number) & (self.length < 0))
        out[self.message[at]] = self.value[at]
        return out

    def inner(self, number: int) -> tuple[Fields, Ints]:
        """Return the fields of the messages within a field, and of which message each is, int64 (n,)."""
        at = np.flatnonzero((self.number == number) & (self.length >= 0))
        return fields_of(self.data, self.value[at], self.value[at] + self.length[at]), self.message[at]

    def texts(self, number: int) -> list[str]:
        """Return a field of texts by message, the first of several, empty for none; for messages that are few."""
        out = [""] * self.messages
        for at in self.bytes_rows(number)[::-1].tolist():
            out[int(self.message[at])] = self.text_at(at)
        return out

    def text_at(self, row: int) -> str:
        """Return the bytes of one field as text."""
        begin = int(self.value[row])
        return self.data[begin : begin + int(self.length[row])].tobytes().decode("utf-8", "replace")

    def text_column(self, number: int) -> TextColumn:
        """Return a field of texts of which few are different; text 0 is empty, for messages without."""
        at = self.bytes_rows(number)
        code, texts = np.zeros(self.messages, np.int64), [""]
        length = np.minimum(self.length[at], _MOST_TEXT)
        for size in np.unique(length[length > 0]).tolist():
            rows = at[length == size]
            raw = self.data[self.value[rows][:, None] + np.arange(size)]
            raw = np.ascontiguousarray(raw).view(np.dtype((np.void, size)))[:, 0]
            different, which = np.unique(raw, return_inverse=True)
            code[self.message[rows]] = len(texts) + which
            texts += [each.tobytes().decode("utf-8", "replace") for each in different]
        return TextColumn(code, tuple(texts))

    def bytes_rows(self, number: int) -> Ints:
        """Return the rows of a field of bytes, int64 (n,)."""
        return np.flatnonzero((self.number == number) & (self.length >= 0))


def fields_of(data: NDArray[np.uint8], begin: Ints, end: Ints) -> Fields:
    """Return the fields of messages.

    Args:
        data: uint8, the bytes.
        begin: int64 (n,), contiguous: where each message begins.
        end: int64 (n,), and where it ends.
    """
    begin, end = np.ascontiguousarray(begin, np.int64), np.ascontiguousarray(end, np.int64)
    return Fields(data, len(begin), *loading.protobuf_fields(data, begin, end))


def packed(data: NDArray[np.uint8], begin: int, length: int) -> Ints:
    """Return the numbers of a packed field, int64 (n,); one that is cut at the end is left out."""
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
