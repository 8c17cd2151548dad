"""The arguments of records, with the object that a call is about and the meaning of numbers."""

from __future__ import annotations

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
from satview.formats.number_payloads import NumberPayloads
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
class RecordPayloads(NumberPayloads):
    """Implements `store.trace.PayloadSource` for records of five numbers, a1 to a5.

    Attributes:
        events: The event table.
        threads: The thread table.
        partner: uint32, (n,), the other record of a call; 2**32 - 1 = none.
        odd: Numbers of records of unknown kind.
        object_names: What the objects at these addresses are, by (pid, address); empty for traces of UnixWare.
    """

    events: EventTable
    threads: ThreadTable
    partner: NDArray[np.uint32]
    odd: OddRecords
    object_names: dict[tuple[int, int], str] = field(default_factory=dict)

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
        if other < event:  # and not `NOBODY`, which is greater than any
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
        row = int(np.searchsorted(self.odd.event, event))
        numbers = self.odd.numbers[row].tolist()
        return [Argument(name, n, str(n), 0, 0) for name, n in zip(("event1", "event2", "which"), numbers, strict=True)]

    def _from_first(self, first_record: int) -> list[Argument]:
        parts = layout_of(Release.UNIXWARE, int(self.events.code[first_record]), _WORDS).parts
        if not parts or parts[0].show != Show.POINTER or parts[0].name == "stack_base":
            return []
        value = int(self.arguments[0][first_record])
        note = self.object_text(first_record, value) or "from the first record"
        return [Argument(parts[0].name, value, _text(parts[0].show, value), 0, 0, note)]


def address_text(value: int) -> str:
    """Return an address in hexadecimal; negative numbers of 32 bits were meant as unsigned ones."""
    return f"0x{value & (0xFFFFFFFF if -(1 << 31) <= value < 0 else (1 << 64) - 1):x}"


def _text(show: Show, value: int) -> str:
    return str(value) if show == Show.DEC else address_text(value)


def _unnamed(index: int, value: int) -> Argument:
    text = str(value) if -4096 < value < 4096 else f"{value} ({address_text(value)})"
    return Argument(f"a{index + 1}", value, text, 2 * index, 2)
