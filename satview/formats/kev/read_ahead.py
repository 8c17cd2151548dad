"""Payload words of many events, read in one pass over the file beside other work, for those who ask again and again."""

from __future__ import annotations

from threading import Thread, get_ident
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import SatviewError
from satview.core import library, links
from satview.formats.kev.slot_source import SlotSource
from satview.store.tables import EventTable, Fragments

_MOST_SLOTS_EACH: Final = 3  # of an event; arguments of calls are in the first ones
_MOST_SLOTS: Final = 1 << 25  # 256 MB


class WordsAhead:
    """The first payload words of some events; reading begins at once, in a thread of its own.

    Args:
        slots: Where they are read.
        events: The event table.
        fragments: Where the slots of events are that are not adjacent.
        rows: uint32 (n,), ascending, which events.
    """

    def __init__(self, slots: SlotSource, events: EventTable, fragments: Fragments, rows: NDArray[np.uint32]) -> None:
        self._slots, self._events, self._fragments, self._rows = slots, events, fragments, rows
        self._first: NDArray[np.int64] = np.empty(0, np.int64)
        self._halves: NDArray[np.uint64] | None = None
        self._owner = get_ident()
        self._thread = Thread(target=self._read, name="satview-read-ahead", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        counts = np.minimum(self._events.slot_count[self._rows], _MOST_SLOTS_EACH)
        first = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=first[1:])
        if first[-1] > _MOST_SLOTS:
            return
        at = np.arange(first[-1])
        at += np.repeat(self._events.slot[self._rows] - first[:-1], counts)
        apart, places = self._apart(first)
        at[apart] = at[apart - 1]  # read in order, then on its own
        try:
            halves = self._slots.take_halves(at, 1).view(np.uint64).ravel()
            halves[apart] = self._slots.take_halves(places, 1).view(np.uint64).ravel()
        except SatviewError:  # whoever asks for the words finds out by reading them
            return
        self._first, self._halves = first, halves

    def _apart(self, first: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which of the slots to read are not behind those before them, ascending, and where they are."""
        found, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        entry = np.flatnonzero(np.isin(self._fragments.event, self._rows, assume_unique=True))
        row = np.searchsorted(self._rows, self._fragments.event[entry])
        for step in range(1, _MOST_SLOTS_EACH):
            has = first[row] + step < first[row + 1]
            last = self._fragments.start[entry + 1] - 1
            found.append((first[row] + step)[has])
            places.append(self._fragments.slot[np.minimum(self._fragments.start[entry] + step, last)[has]])
        return np.concatenate(found), np.concatenate(places).astype(np.int64)

    def close(self) -> None:
        """Wait until nothing is read any more."""
        self._thread.join()

    def halves(self, rows: NDArray[np.integer], step: int) -> NDArray[np.uint32] | None:
        """Return two payload words of each event, uint32 (n, 2), 0 where it has none.

        None where not all of the events were read, or not yet: only the thread that ordered them waits.

        Args:
            rows: (n,), rows of the event table.
            step: Which slot of each event.
        """
        if get_ident() == self._owner:
            self._thread.join()
        if self._halves is None or step >= _MOST_SLOTS_EACH or not len(self._rows):
            return None
        found = self._found(rows.astype(np.uint32), step)
        return None if found is None else found.view(np.uint32).reshape(-1, 2)

    def _found(self, asked: NDArray[np.uint32], step: int) -> NDArray[np.uint64] | None:
        assert self._halves is not None
        if library.is_available():
            return links.words_ahead(self._rows, self._first, self._halves, asked, step)
        at = np.searchsorted(self._rows, asked)
        if not np.array_equal(self._rows[np.minimum(at, len(self._rows) - 1)], asked):
            return None
        at = np.where(self._first[at] + step < self._first[at + 1], self._first[at] + step, len(self._halves))
        return np.append(self._halves, np.uint64(0))[at]
