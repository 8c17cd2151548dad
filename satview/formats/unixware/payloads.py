"""The arguments of records, with the object that a call is about and the meaning of numbers."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import rows
from satview.events.catalogue import catalogue
from satview.events.layout import Part, layout_of
from satview.events.spec import Argument, Payload, Release, Show
from satview.events.unixware import ARGUMENTS, OTHER
from satview.formats.unixware.calls import NOBODY
from satview.store.tables import EventTable, ThreadTable

_WORDS: Final = 2 * ARGUMENTS
_THREAD_ARGUMENTS: Final = frozenset(("wait_for", "departed", "new_tid", "target"))


@cache
def error_names() -> dict[int, str]:
    """Return the error numbers of System V Release 4 that the library returns."""
    return rows.numbers("unixware", "errors")


@dataclass(frozen=True, slots=True)
class OddRecords:
    """Numbers of the records whose kind no code can hold.

    Attributes:
        event: int64, (k,), rows of the event table, ascending.
        numbers: int64, (k, 3): event1, event2 and which.
    """

    event: NDArray[np.int64]
    numbers: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RecordPayloads:
    """Implements `store.trace.PayloadSource` for records; every argument takes two payload words, the low one first.

    Attributes:
        events: The event table.
        threads: The thread table.
        arguments: a1 to a5, (n,) each, in the narrowest signed type.
        partner: uint32, (n,), the other record of a call; 2**32 - 1 = none.
        odd: Numbers of records of unknown kind.
        object_names: What the objects at these addresses are, by (pid, address); empty for traces of UnixWare.
    """

    events: EventTable
    threads: ThreadTable
    arguments: tuple[NDArray[np.signedinteger], ...]
    partner: NDArray[np.uint32]
    odd: OddRecords
    object_names: dict[tuple[int, int], str] = field(default_factory=dict)

    def values(self, event: int) -> tuple[int, ...]:
        """Return a1 to a5 of one event."""
        return tuple(int(column[event]) for column in self.arguments)

    def check(self) -> None:
        """Do nothing: all records are in memory."""

    def tolerate_loss(self) -> None:
        """Do nothing: memory stays."""

    def words(self, event: int) -> NDArray[np.uint32]:
        """Return the arguments as ten payload words.

        Returns:
            uint32 (10,).
        """
        return np.array(self.values(event), "<i8").view("<u4").astype(np.uint32)

    def raw(self, event: int) -> bytes:
        """Return the arguments as bytes, eight each, little-endian."""
        return np.array(self.values(event), "<i8").tobytes()

    def column(self, events: NDArray[np.integer], word: int) -> NDArray[np.uint32]:
        """Return payload word number `word` of many events; argument `word // 2`, its low half first.

        Returns:
            uint32 (len(events),).
        """
        if not 0 <= word < _WORDS:
            return np.zeros(len(events), np.uint32)
        values = self.arguments[word // 2][events].astype(np.int64)
        return np.asarray(values >> 32 * (word % 2) & 0xFFFFFFFF, np.uint32)

    def pair(self, events: NDArray[np.integer], word: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the payload words `word` and `word` + 1 of many events.

        Returns:
            Two of uint32 (len(events),).
        """
        return self.column(events, word), self.column(events, word + 1)

    def block(self, events: NDArray[np.integer], count: int) -> NDArray[np.uint32]:
        """Return the first words of many events, as `PayloadSource.block`.

        Returns:
            uint32 (len(events), count).
        """
        return np.stack([self.column(events, word) for word in range(count)], axis=1)

    def reading_ahead(self, events: NDArray[np.uint32]) -> AbstractContextManager[None]:  # noqa: ARG002
        """Prepare for nothing: all arguments are in memory."""
        return nullcontext()

    def word_counts(self, events: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the payload words of many events: always ten.

        Returns:
            int64 (len(events),).
        """
        return np.full(len(events), _WORDS, np.int64)

    def decode(self, event: int, most: int | None = None) -> Payload:  # noqa: ARG002
        """Return the named arguments of one event.

        Second records get the object of their call from the first one; arguments that the tables do not name are
        shown where they are not zero.
        """
        code, values = int(self.events.code[event]), self.values(event)
        spec = catalogue(Release.UNIXWARE).spec(code)
        layout = layout_of(Release.UNIXWARE, code, _WORDS)
        shown = [self._argument(event, part, values[part.word // 2]) for part in layout.parts]
        shown += [_unnamed(i, values[i]) for i in range(layout.end // 2, ARGUMENTS) if values[i] or not spec.is_known]
        if code & ~0x3FF == OTHER:
            shown = [*self._kind(event), *shown]
        other = int(self.partner[event])
        if other != NOBODY and other < event:
            shown += self._from_first(other)
        words = tuple(self.words(event).tolist())
        return Payload("same" if spec.is_known else "raw", tuple(shown), words, self.raw(event))

    def object_text(self, event: int, address: int) -> str:
        """Return what is at an address in the process of an event; empty if nobody reported."""
        pid = int(self.threads.pid[int(self.events.thread[event])])
        return self.object_names.get((pid, address), "")

    def _argument(self, event: int, part: Part, value: int) -> Argument:
        note = self._note(event, part.name, value)
        return Argument(part.name, value, _text(part.show, value), part.word, part.words, note)

    def _note(self, event: int, name: str, value: int) -> str:
        if name == "rval" and value:
            return error_names().get(value, "")
        if name == "blocked":
            return "had to wait" if value else "got it at once"
        if name in _THREAD_ARGUMENTS and value > 0:
            pid = int(self.threads.pid[int(self.events.thread[event])])
            row = self.threads.row(pid, value)
            return self.threads.names[row] if row else ""
        return self.object_text(event, value) if value else ""

    def _kind(self, event: int) -> list[Argument]:
        at = int(np.searchsorted(self.odd.event, event))
        numbers = self.odd.numbers[at].tolist()
        return [Argument(name, n, str(n), 0, 0) for name, n in zip(("event1", "event2", "which"), numbers, strict=True)]

    def _from_first(self, first: int) -> list[Argument]:
        parts = layout_of(Release.UNIXWARE, int(self.events.code[first]), _WORDS).parts
        if not parts or parts[0].show != Show.POINTER or parts[0].name == "stack_base":
            return []
        value = int(self.arguments[0][first])
        note = self.object_text(first, value) or "from the first record"
        return [Argument(parts[0].name, value, _text(parts[0].show, value), 0, 0, note)]


def address_text(value: int) -> str:
    """Return an address in hexadecimal; negative numbers of 32 bits were meant as unsigned ones."""
    return f"0x{value & (0xFFFFFFFF if -(1 << 31) <= value < 0 else (1 << 64) - 1):x}"


def _text(show: Show, value: int) -> str:
    return str(value) if show == Show.DEC else address_text(value)


def _unnamed(index: int, value: int) -> Argument:
    text = str(value) if -4096 < value < 4096 else f"{value} ({address_text(value)})"
    return Argument(f"a{index + 1}", value, text, 2 * index, 2)
