"""Reads payloads from the slots when they are needed.

A separate thread can read the words of many events ahead, in one pass over the file, to be used several times.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from threading import Lock, get_ident
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import numbers_of
from satview.base.errors import SatviewError, SourceChangedError
from satview.base.threads import Begun
from satview.core import links
from satview.events.catalogue import Catalogue
from satview.events.spec import Argument, Payload
from satview.events.user_events import UserEvent
from satview.formats.kev.details import decode_payload, with_description
from satview.formats.kev.slots.slot_source import SlotSource
from satview.store.tables import EventTable, Fragments

_MOST_SLOTS_EACH: Final = 3  # maximum slots of an event; the first slots contain the arguments of calls
_MOST_SLOTS: Final = 1 << 25  # maximum slots of all events: 256 MB
_MANY: Final = 1 << 16  # number of events from which on waiting is faster than reading them again
_AT_ONCE: Final = 1 << 18  # events that are read at a time, so that scratch stays in the processor's cache


@dataclass(frozen=True, slots=True)
class _Words:
    """Payload words of some events, read before they are needed.

    Attributes:
        rows: uint32 (n,), ascending, rows of the events.
        start: uint32 (n + 1,), index of the first slot of each event in `halves`.
        halves: uint64 (m + 1,), the two payload words of each slot as one number, and a 0 at the end.
    """

    rows: NDArray[np.uint32]
    start: NDArray[np.uint32]
    halves: NDArray[np.uint64]

    def of(self, requested: NDArray[np.uint32], step: int) -> NDArray[np.uint64] | None:
        """Return both words of slot `step` of events, (k,), 0 = no such slot; None if any event was not read ahead."""
        return links.values_in_ranges(self.rows, self.start, self.halves, requested, step)


class WordsAhead:
    """The first payload words of some events, read ahead by a separate thread.

    Args:
        slots: Source of the slots.
        events: The event table.
        fragments: Slots of events that are not adjacent.
        rows: uint32 (n,), ascending, rows of the events.
    """

    def __init__(self, slots: SlotSource, events: EventTable, fragments: Fragments, rows: NDArray[np.uint32]) -> None:
        self._owner = get_ident()
        self._words = Begun(lambda: _read(slots, events, fragments, rows), "satview-read-ahead")

    def close(self) -> None:
        """Wait until the thread has ended."""
        self._words.wait()

    def halves(self, rows: NDArray[np.integer], step: int) -> NDArray[np.uint32] | None:
        """Return the payload words of a slot of each event, uint32 (n, 2), 0 = no such slot; None if not read ahead.

        While the thread is still reading, the result for a few events is None, too.

        Args:
            rows: (n,), rows of the event table.
            step: Number of the slot within the event.
        """
        # Waiting is cheapest for the thread that requested the words, as it needs all of them, and for many events,
        # which are spread over the file. Other threads read their few events themselves.
        is_waiting = len(rows) >= _MANY or get_ident() == self._owner
        if step >= _MOST_SLOTS_EACH or not (self._words.is_done or is_waiting):
            return None
        words = self._words.result()
        halves = None if words is None else words.of(rows.astype(np.uint32, copy=False), step)
        return None if halves is None else halves.view(np.uint32).reshape(-1, 2)


def _read(slots: SlotSource, events: EventTable, fragments: Fragments, rows: NDArray[np.uint32]) -> _Words | None:
    """Return the words of some events; None if there are too many, or the file cannot be read."""
    counts = np.minimum(events.slot_count[rows], _MOST_SLOTS_EACH)
    total = int(counts.sum(dtype=np.int64))
    # Limits memory: words of long traces are read in pieces when they are needed.
    if total > _MOST_SLOTS:
        return None
    start, halves = np.zeros(len(rows) + 1, np.uint32), np.zeros(total + 1, np.uint64)
    np.cumsum(counts, out=start[1:])
    apart, positions = _apart(rows, start, fragments)
    try:
        for begin_row in range(0, len(rows), _AT_ONCE):
            part = slice(begin_row, begin_row + _AT_ONCE)
            begin, end = int(start[begin_row]), int(start[min(part.stop, len(rows))])
            slot_numbers = numbers_of(events.slot[rows[part]], counts[part])
            elsewhere = apart[(apart >= begin) & (apart < end)] - begin
            slot_numbers[elsewhere] = slot_numbers[elsewhere - 1]  # placeholder in order; read separately below
            halves[begin:end] = slots.take_halves(slot_numbers, 1).view(np.uint64).ravel()
        halves[apart] = slots.take_halves(positions, 1).view(np.uint64).ravel()
    except SatviewError:
        return None
    return _Words(rows, start, halves)


def _apart(
    rows: NDArray[np.uint32], start: NDArray[np.uint32], fragments: Fragments
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions in `halves` of slots that do not follow the slot before, and their slot numbers."""
    apart, positions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    event = links.positions(rows, fragments.event)
    entry = np.flatnonzero(rows.take(event, mode="clip") == fragments.event) if len(rows) else event[:0]
    event = event[entry]
    for step in range(1, _MOST_SLOTS_EACH):
        position = start[event].astype(np.int64) + step
        has_step = position < start[event + 1]
        apart.append(position[has_step])
        positions.append(fragments.slots_at(entry[has_step], step).astype(np.int64))
    return np.concatenate(apart), np.concatenate(positions)


class SlotPayloads:
    """Payload access for traces made of 16-byte slots; implements `store.trace.PayloadSource`.

    Args:
        slots: Source of the slots.
        events: First slot and number of slots of each event.
        fragments: Slots of events that are not adjacent.
        byte_order: Byte order of the target, for 64-bit values and text.
        catalogue: Catalogue of the release.

    Attributes:
        listed: Row to variant of the layout, for events whose layout comes from a line of a listing.
        described: As for `store.trace.PayloadSource`.
    """

    def __init__(
        self, slots: SlotSource, events: EventTable, fragments: Fragments, byte_order: str, catalogue: Catalogue
    ) -> None:
        self._slots = slots
        self._is_tolerant = False
        self._events = copy(events)  # the trace's own table refers to the trace, which would be a cycle
        self._fragments = fragments
        self._ahead: WordsAhead | None = None
        self._one_reads_ahead = Lock()
        self._byte_order = byte_order
        self._catalogue = catalogue
        self.listed: dict[int, int] = {}
        self.described: dict[int, UserEvent] = {}

    def check(self) -> None:
        """Raise SourceChangedError if the file is no longer the one that was opened."""
        self._slots.check()

    def close(self) -> None:
        """Close the file; arguments cannot be read any more."""
        self._slots.close()

    def tolerate_loss(self) -> None:
        """From now on, let `decode` report a changed file in place of arguments instead of raising."""
        self._is_tolerant = True

    @property
    def slots(self) -> NDArray[np.uint32]:
        """All slots in file order and host order, shape (n, 4)."""
        self.check()
        return self._slots.read(0, len(self._slots))

    def slots_of(self, event: int) -> NDArray[np.int64]:
        """Return the slot indices of one event, ascending.

        Returns:
            int64 (slots of the event,).
        """
        entry = int(np.searchsorted(self._fragments.event, event))
        if entry < len(self._fragments.event) and self._fragments.event[entry] == event:
            begin, end = self._fragments.start[entry], self._fragments.start[entry + 1]
            return self._fragments.slot[begin:end].astype(np.int64)
        first_slot = int(self._events.slot[event])
        return np.arange(first_slot, first_slot + int(self._events.slot_count[event]))

    def header(self, event: int) -> int:
        """Return the header word of an event's first slot."""
        self.check()
        return int(self._slot(event)[0])

    def headers(self) -> NDArray[np.uint32]:
        """Return the header word of the first slot of every event.

        Returns:
            uint32 (events,).
        """
        self.check()
        return np.ascontiguousarray(self._slots.take_halves(self._events.slot.astype(np.int64), 0)[:, 0])

    def stamp(self, event: int) -> int:
        """Return the 32-bit stamp of an event's first slot."""
        self.check()
        return int(self._slot(event)[1])

    def _slot(self, event: int) -> NDArray[np.uint32]:
        first_slot = int(self._events.slot[event])
        slot: NDArray[np.uint32] = self._slots.read(first_slot, first_slot + 1)[0]
        return slot

    def words(self, event: int) -> NDArray[np.uint32]:
        """Return all payload words of an event in host order, padding included.

        Returns:
            uint32 (words,).
        """
        self.check()
        slots = self.slots_of(event)
        first_slot, end = int(slots[0]), int(slots[-1]) + 1
        # Usually the slots are adjacent and need a single read; slots with others in between are read one by one.
        if end - first_slot == len(slots):
            return self._slots.read(first_slot, end)[:, 2:4].ravel()
        return self._slots.take_halves(slots, 1).ravel()

    def raw(self, event: int) -> bytes:
        """Return the payload bytes of an event in the target's byte order."""
        words = self.words(event)
        return words.astype("<u4" if self._byte_order == "little" else ">u4").tobytes()

    def decode(self, event: int, most: int | None = None) -> Payload:
        """Return the named arguments of one event; `most` limits those of giant events (`PayloadSource.decode`)."""
        try:
            raw = self.raw(event)
        except SourceChangedError as error:
            if not self._is_tolerant:
                raise
            return Payload("lost", (Argument("arguments", 0, "not readable any more", 0, 0, error.what),), (), b"")

        spec = self._catalogue.spec(int(self._events.code[event]))
        payload = decode_payload(spec, raw, self._byte_order, self._catalogue, most, self.listed.get(int(event)))
        description = self.described.get(spec.code)
        return payload if description is None else with_description(payload, description, self._byte_order)

    def column(self, events: NDArray[np.integer], word: int) -> NDArray[np.uint32]:
        """Return payload word number `word` of many events, shape (len(events),); 0 if an event is shorter."""
        return np.ascontiguousarray(self.pair(events, word & ~1)[word & 1])

    def pair(self, events: NDArray[np.integer], word: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the payload words `word` and `word` + 1 of many events, like `column`; faster if `word` is even.

        Returns:
            Two arrays, uint32 (len(events),).
        """
        if word % 2:
            return self.column(events, word), self.column(events, word + 1)
        out = self._halves(events, word // 2)
        return out[:, 0], out[:, 1]

    @contextmanager
    def reading_ahead(self, events: NDArray[np.uint32]) -> Iterator[None]:
        """Read the first words of many events ahead in a thread, for all code that reads them within the context.

        Args:
            events: uint32 (n,), rows of the event table, ascending.
        """
        if not self._one_reads_ahead.acquire(blocking=False):  # another window of the trace is reading ahead
            yield
            return
        ahead = self._ahead = WordsAhead(self._slots, self._events, self._fragments, events)
        try:
            yield
        finally:
            self._ahead = None
            ahead.close()
            self._one_reads_ahead.release()

    def _halves(self, events: NDArray[np.integer], step: int) -> NDArray[np.uint32]:
        """Return the payload words of slot `step` of each event, (n, 2); 0 if an event has no such slot."""
        self.check()
        ahead = self._ahead
        words = ahead.halves(events, step) if ahead is not None else None
        if words is not None:
            return words
        slots, inside = self._positions(events, step)
        if inside is None:
            return self._slots.take_halves(slots, 1)
        out = np.zeros((len(events), 2), np.uint32)
        out[inside] = self._slots.take_halves(slots, 1)
        return out

    def _positions(self, events: NDArray[np.integer], step: int) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        """Return the slot numbers of slot `step` of events, and a mask of the events that have it; None = all."""
        slots = self._events.slot[events].astype(np.int64)
        if step == 0:
            return slots, None
        inside = self._events.slot_count[events] > step
        # Valid for adjacent slots; numbers for fragmented events are corrected next.
        slots += step
        apart, entries = self._apart(events)
        slots[apart] = self._fragments.slots_at(entries, step)
        return slots[inside], inside

    def block(self, events: NDArray[np.integer], count: int) -> NDArray[np.uint32]:
        """Return the first payload words of many events in one pass over the file, shape (len(events), count).

        Words that an event does not have are 0.
        """
        self.check()
        steps = (count + 1) // 2
        first_slots, slots = self._events.slot[events].astype(np.int64), self._events.slot_count[events]
        step = np.arange(steps)
        slot_numbers, inside = first_slots[:, None] + step, step < slots[:, None]
        apart, entries = self._apart(events)
        for number in range(1, steps if len(apart) else 1):
            slot_numbers[apart, number] = self._fragments.slots_at(entries, number)
        if inside.all():
            return self._slots.take_halves(slot_numbers.ravel(), 1).reshape(len(events), 2 * steps)[:, :count]
        halves = np.zeros((len(events), steps), np.uint64)
        halves[inside] = np.ascontiguousarray(self._slots.take_halves(slot_numbers[inside], 1)).view(np.uint64)[:, 0]
        return halves.view(np.uint32)[:, :count]

    def _apart(self, events: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return positions of events whose slots are not adjacent, and their entries in `Fragments`."""
        table = self._fragments.event
        if not len(table):
            return np.empty(0, np.intp), np.empty(0, np.intp)
        entries = np.searchsorted(table, events)
        entries[entries == len(table)] = 0
        apart = np.flatnonzero(table[entries] == events)
        return apart, entries[apart]

    def word_counts(self, events: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of payload words of many events, padding included.

        Returns:
            int64 (len(events),).
        """
        return np.asarray(self._events.slot_count[events], np.int64) * 2
