"""Compiled passes that print events as lines; see printing.c.

A form is the layout of a line: a sequence of literal texts and fields. Events with the same code, number of payload
words and variant have the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.core.library import CODES, call

LITERAL, WORD, WIDE, MESSAGE, HEAD, HEAD_TEXT, TEXT = range(7)  # kinds of fields
SIGNED, SWAPPED, HEXADECIMAL, ZEROS, LINE_FEEDS, FOR_CSV, FOR_JSON = (1 << bit for bit in range(7))
ALL_BITS: Final = 0xFFFFFFFF
_FIELD: Final = np.dtype(
    [(name, np.int32) for name in ("kind", "at", "count", "flags", "width")] + [("mask", np.uint32)]
)
_MAX_DIGITS: Final = 21  # maximum length of a 64-bit number with its sign
_ENTRY: Final = 4
_BLOCK: Final = 32
_ROOM: Final = 1 << 22


class LineField(NamedTuple):
    """A field of a line, in the layout of `printing.c`.

    Attributes:
        kind: One of the kinds above.
        at: Index of the payload word, of the head column, or of the text.
        words: MESSAGE only: number of payload words.
        flags: Sum of the flags above.
        width: Minimum number of digits.
        mask: WORD only: mask of the printed bits.
    """

    kind: int
    at: int
    words: int = 0
    flags: int = 0
    width: int = 0
    mask: int = ALL_BITS


class FormTables(NamedTuple):
    """Forms in the layout of the C function `satview_print`.

    Attributes:
        fields: Fields of all forms.
        first: int64 (forms + 1,), index in `fields` of the first field of each form.
        bound: int64 (forms,), maximum number of bytes of a line without its texts.
        has_text: uint8 (forms,), 1 if the form has texts.
        literals: All literal texts, and padding, as the C function may read beyond their end.
    """

    fields: NDArray[np.void]
    first: NDArray[np.int64]
    bound: NDArray[np.int64]
    has_text: NDArray[np.uint8]
    literals: bytes


@dataclass(slots=True)
class Forms:
    """Templates of printed lines (forms), by number, and which form each event code is printed with."""

    _first: NDArray[np.int32] = field(default_factory=lambda: np.full(CODES, -1, np.int32))
    _entries: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, _ENTRY), np.int32))
    _fields: list[tuple[int, ...]] = field(default_factory=list)
    _starts: list[int] = field(default_factory=lambda: [0])
    _bounds: list[int] = field(default_factory=list)
    _has_text: list[bool] = field(default_factory=list)
    _literals: bytearray = field(default_factory=bytearray)
    _tables: FormTables | None = None

    def add(self, pieces: Sequence[bytes | LineField]) -> int:
        """Add a form from its literal texts and fields in order; return its number."""
        bound = 0
        for piece in pieces:
            if isinstance(piece, LineField):
                self._fields.append(tuple(piece))
                bound += 8 * piece.words + 2 if piece.kind == MESSAGE else max(_MAX_DIGITS, piece.width)
            else:
                self._fields.append((LITERAL, len(self._literals), len(piece), 0, 0, ALL_BITS))
                self._literals += piece
                bound += len(piece)
        self._starts.append(len(self._fields))
        self._bounds.append(bound)
        self._has_text.append(any(isinstance(piece, LineField) and piece.kind in (TEXT, HEAD_TEXT) for piece in pieces))
        return len(self._bounds) - 1

    def assign(self, code: int, words: int, variant: int, form: int) -> None:
        """Set the form of events with a code, a number of payload words and a variant; -1 = not printed."""
        entry = np.array([[words, variant, form, self._first[code]]], np.int32)
        self._first[code] = len(self._entries)
        self._entries = np.concatenate((self._entries, entry))

    def find(
        self, header: NDArray[np.uint32], start: NDArray[np.int64], row: NDArray[np.int64],
        variant: NDArray[np.int32], form: NDArray[np.int32], done: int,
    ) -> int:  # fmt: skip
        """Find the forms of events; return the index of the first event that has no form, or n.

        Args:
            header: uint32 (events,), header words.
            start: int64 (events + 1,), index at which each payload begins.
            row: int64 (n,), rows of the events.
            variant: int32 (n,), variant of each event.
            form: int32 (n,), receives the form numbers.
            done: Index of the first event to look up; the events before it have their form.
        """
        return call("forms", header, start, row, variant, self._first, self._entries, done, form)

    def tables(self) -> FormTables:
        """Return all forms as the arrays that `printing.c` reads."""
        if self._tables is None or len(self._tables.bound) < len(self._bounds):
            self._tables = FormTables(
                np.array(self._fields, _FIELD), np.array(self._starts, np.int64), np.array(self._bounds, np.int64),
                np.array(self._has_text, np.uint8), bytes(self._literals) + bytes(_BLOCK),
            )  # fmt: skip
        return self._tables


@dataclass(frozen=True, slots=True)
class TextTable:
    """Texts, concatenated in one byte string.

    Attributes:
        text: The bytes.
        end: int64 (n + 1,), 0, followed by the end offset of each text.
    """

    text: bytes
    end: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> TextTable:
        """Create a table from texts."""
        end = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=end[1:])
        return cls(b"".join(texts), end)


@dataclass(frozen=True, slots=True)
class PrintJob:
    """The events that `LinePrinter` prints as lines.

    Attributes:
        start: int64 (events + 1,), index in `words` at which the payload of each event begins.
        words: uint32, payload words of all events.
        is_big: Whether the target is big-endian.
        row: int64 (n,), row of the event that each line prints.
        form: int32 (n,), form of each line.
        head: int64 (columns, n), values of the columns at the start of the lines (head columns).
        head_unsigned: Bit mask: bit k is set if head column k is unsigned.
        head_texts: Texts to which head columns refer by index.
        texts: Texts of all lines that were formatted in Python.
        text_base: int64 (n,), index in `texts` of the first text of each line.
        separator: Bytes before each line.
    """

    start: NDArray[np.int64]
    words: NDArray[np.uint32]
    is_big: bool
    row: NDArray[np.int64]
    form: NDArray[np.int32]
    head: NDArray[np.int64]
    head_unsigned: int
    head_texts: TextTable
    texts: TextTable
    text_base: NDArray[np.int64]
    separator: bytes


class LinePrinter:
    """Formats lines into one of two buffers, used in turn.

    Args:
        forms: Templates of the lines; more may be added later.
    """

    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self._rooms = [np.empty(0, np.uint8), np.empty(0, np.uint8)]
        self._room = 0

    def begin(self, job: PrintJob) -> Callable[[], tuple[memoryview, NDArray[np.int64]]]:
        """Return a function that prints the lines and can be called on any thread.

        The function returns the lines, and the end of each line as int64 (n,). The lines are valid until the second
        call of `begin` after this one.
        """
        self._room = 1 - self._room
        return partial(self._print, job, self._forms.tables(), self._room)

    def _print(self, job: PrintJob, tables: FormTables, room: int) -> tuple[memoryview, NDArray[np.int64]]:
        end, used, out = np.empty(len(job.row), np.int64), np.zeros(1, np.int64), self._rooms[room]
        if not len(out):
            out = self._rooms[room] = np.empty(_ROOM, np.uint8)
        lines = (
            job.start, job.words, job.is_big, job.row, job.form, tables.fields.view(np.int32), tables.first,
            tables.bound, tables.has_text, _bytes(tables.literals), len(job.head), job.head, job.head_unsigned,
            _bytes(job.texts.text), job.texts.end, job.text_base, _bytes(job.head_texts.text), job.head_texts.end,
            _bytes(job.separator),
        )  # fmt: skip
        done = 0
        while (done := call("print", *lines, out, end, used, done)) < len(end):
            larger = np.empty(2 * len(out), np.uint8)
            larger[: used[0]] = out[: used[0]]
            out = self._rooms[room] = larger
        return out.data[: int(used[0])], end


def _bytes(text: bytes) -> NDArray[np.uint8]:
    """Return a bytes object as an array of its bytes, uint8 (n,), which holds a reference to the object."""
    return np.frombuffer(text, np.uint8) if text else np.empty(0, np.uint8)
