"""Payload words of many events, read in one pass over the file in a thread of its own, and used again and again."""

from __future__ import annotations

from dataclasses import dataclass
from threading import get_ident
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.begun import Begun
from satview.base.errors import SatviewError
from satview.base.ranges import numbers_of
from satview.core import links
from satview.formats.kev.slots.slot_source import SlotSource
from satview.store.tables import EventTable, Fragments

_MOST_SLOTS_EACH: Final = 3  # of an event; arguments of calls are in the first ones
_MOST_SLOTS: Final = 1 << 25  # 256 MB
_NOT_READ: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class _Words:
    """What was read.

    Attributes:
        position: uint32 (events,), where the words of each event begin in `halves`, `_NOT_READ` for the others.
        halves: uint64 (n,), the two words of each slot.
    """

    position: NDArray[np.uint32]
    halves: NDArray[np.uint64]


class WordsAhead:
    """The first payload words of some events; reading begins at once, in a thread of its own.

    Args:
        slots: Where they are read.
        events: The event table.
        fragments: Where the slots of events are that are not adjacent.
        rows: uint32 (n,), ascending, which events.
    """

    def __init__(self, slots: SlotSource, events: EventTable, fragments: Fragments, rows: NDArray[np.uint32]) -> None:
        self._slot_count, self._owner = events.slot_count, get_ident()
        self._words = Begun(lambda: _read(slots, events, fragments, rows), "satview-read-ahead")

    def close(self) -> None:
        """Return when nothing is read any more."""
        self._words.wait()

    def halves(self, rows: NDArray[np.integer], step: int) -> NDArray[np.uint32] | None:
        """Return two payload words of each event, uint32 (n, 2), 0 where it has none.

        None where not all of the events were read, or not yet: only the thread that ordered them waits.

        Args:
            rows: (n,), rows of the event table.
            step: Which slot of each event.
        """
        # The thread that ordered the words needs all of them, so waiting is cheapest; others read their few themselves.
        if step >= _MOST_SLOTS_EACH or not (self._words.is_done or get_ident() == self._owner):
            return None
        words = self._words.result()
        found = None if words is None else self._found(words, rows.astype(np.uint32), step)
        return None if found is None else found.view(np.uint32).reshape(-1, 2)

    def _found(self, words: _Words, requested: NDArray[np.uint32], step: int) -> NDArray[np.uint64] | None:
        if self._slot_count.dtype == np.uint16:
            return links.words_ahead(words.position, self._slot_count, words.halves, requested, step)
        position = words.position[requested]
        if (position == _NOT_READ).any():
            return None
        position = np.where(self._slot_count[requested] > step, position + np.int64(step), len(words.halves))
        return np.append(words.halves, np.uint64(0))[position]


def _read(slots: SlotSource, events: EventTable, fragments: Fragments, rows: NDArray[np.uint32]) -> _Words | None:
    """Return the words of some events; None if they are too many, or cannot be read."""
    # Memory stays bounded whatever the length of the trace; the words are then read in pieces when they are needed.
    if len(rows) * _MOST_SLOTS_EACH > _MOST_SLOTS:
        return None
    position, at = _slots_of(events, rows)
    apart, positions = _apart(events, fragments, position)
    at[apart] = at[apart - 1]  # read in order, then on its own
    try:
        halves = slots.take_halves(at, 1).view(np.uint64).ravel()
        halves[apart] = slots.take_halves(positions, 1).view(np.uint64).ravel()
    except SatviewError:
        return None
    return _Words(position, halves)


def _slots_of(events: EventTable, rows: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return where the words of each event begin among those that are read, `_NOT_READ` for others, and the slots."""
    if events.slot_count.dtype == np.uint16:
        return links.slots_of(events.slot, events.slot_count, rows, _MOST_SLOTS_EACH)
    counts = np.minimum(events.slot_count[rows], _MOST_SLOTS_EACH).astype(np.int64)
    position = np.full(len(events), _NOT_READ, np.uint32)
    position[rows] = np.cumsum(counts) - counts
    return position, numbers_of(events.slot[rows], counts)


def _apart(
    events: EventTable, fragments: Fragments, position: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of the slots to read are not behind those before them, and where they are."""
    found, positions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    entry = np.flatnonzero(position[fragments.event] != _NOT_READ)
    for step in range(1, _MOST_SLOTS_EACH):
        mine = entry[events.slot_count[fragments.event[entry]] > step]
        found.append(position[fragments.event[mine]].astype(np.int64) + step)
        positions.append(fragments.slots_at(mine, step).astype(np.int64))
    return np.concatenate(found), np.concatenate(positions)
