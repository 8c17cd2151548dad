"""A trace as it would have been logged in another form: every event fast or wide as a rule set says.

A capture of everything in wide form holds what a fast one would have held, word by word; the other way round the words
are missing, and the events stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from satview.base.threads import Once
from satview.events.layout import logged_list
from satview.events.spec import Payload
from satview.events.user_events import UserEvent
from satview.events.variants import EXITS
from satview.events.wire import CODE_COUNT
from satview.filters.derived_columns import TraceDerivedColumns
from satview.filters.expressions.columns import RowColumns
from satview.filters.rules.fastwide import as_logged, has_two_forms
from satview.filters.rules.inserted import inserted_events
from satview.store.trace import PayloadSource, Trace

_COUNT_BITS = 16
_SLOT_WORDS = 2
Words = tuple[int, ...]  # of the payload in the new form: number of the word in the old one from 1, 0 = zero


class LoggedPayloads:
    """The payloads of a trace in another form.

    Args:
        source: The payloads as they are.
        form: (events,), which of `layouts` an event has; 0 = unchanged.
        layouts: Per form the words; the first is not used.
    """

    def __init__(self, source: PayloadSource, form: NDArray[np.uint16], layouts: list[Words], byte_order: str) -> None:
        self._source, self._form, self._layouts, self._byte_order = source, form, layouts, byte_order

    @property
    def described(self) -> dict[int, UserEvent]:
        """Descriptions of events, by code."""
        return self._source.described

    @property
    def check(self) -> Callable[[], None]:
        """See `PayloadSource.check`."""
        return self._source.check

    def close(self) -> None:
        """See `PayloadSource.close`."""
        self._source.close()

    def tolerate_loss(self) -> None:
        """See `PayloadSource.tolerate_loss`."""
        self._source.tolerate_loss()

    def words(self, event: int) -> NDArray[np.uint32]:
        """See `PayloadSource.words`.

        Returns:
            uint32 (words,).
        """
        words = self._source.words(event)
        if not self._form[event]:
            return words
        found = np.concatenate((np.zeros(1, np.uint32), words))[list(self._layouts[self._form[event]])]
        return np.append(found, np.zeros(_padded(len(found)) - len(found), np.uint32)).astype(np.uint32)

    def raw(self, event: int) -> bytes:
        """See `PayloadSource.raw`."""
        if not self._form[event]:
            return self._source.raw(event)
        return self.words(event).astype("<u4" if self._byte_order == "little" else ">u4").tobytes()

    def decode(self, event: int, most: int | None = None) -> Payload:
        """Return the arguments as they are in the file: details show what was captured."""
        return self._source.decode(event, most)

    def column(self, events: NDArray[np.integer], word: int) -> NDArray[np.uint32]:
        """See `PayloadSource.column`.

        Returns:
            uint32 (len(events),).
        """
        form = self._form[events]
        result = np.zeros(len(events), np.uint32)
        for number in np.unique(form).tolist():
            at = np.flatnonzero(form == number)
            layout = self._layouts[number]
            old = word + 1 if not number else layout[word] if word < len(layout) else 0
            if old:
                result[at] = self._source.column(events[at], old - 1)
        return result

    def pair(self, events: NDArray[np.integer], word: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """See `PayloadSource.pair`.

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

    def reading_ahead(self, events: NDArray[np.uint32]) -> AbstractContextManager[None]:
        """See `PayloadSource.reading_ahead`."""
        return self._source.reading_ahead(events)

    def headers(self) -> NDArray[np.uint32] | None:
        """See `PayloadSource.headers`."""
        return self._source.headers()

    def word_counts(self, events: NDArray[np.integer]) -> NDArray[np.int64]:
        """See `PayloadSource.word_counts`.

        Returns:
            int64 (len(events),).
        """
        form = self._form[events]
        counts: NDArray[np.int64] = np.array([_padded(len(layout)) for layout in self._layouts], np.int64)[form]
        unchanged = np.flatnonzero(form == 0)
        counts[unchanged] = self._source.word_counts(events[unchanged])
        return counts


@dataclass(frozen=True, slots=True)
class LoggedTrace:
    """A trace in another form.

    Attributes:
        trace: The trace.
        is_exact: Whether the number of slots is exact, else it is a lower bound.
        missing: bool (32768,), codes of events of which words are missing that the form has.
    """

    trace: Trace
    is_exact: bool
    missing: NDArray[np.bool_]


def as_logged_trace(trace: Trace, is_wide: Callable[[int], bool]) -> LoggedTrace:
    """Return a trace with every event in the form that a rule set requests.

    Rows, times and threads are those of the trace; codes lose the 64-bit flag where a fast form has none. A word of a
    fast form that the wide one does not have reads 0. Events that programs insert stay as they are; of those that the
    kernel may have logged as well the shorter form counts.

    Args:
        trace: The trace as it was captured.
        is_wide: Returns the form of a code.
    """
    events = trace.events
    keys = events.code.astype(np.int64) << _COUNT_BITS | np.minimum(events.slot_count, (1 << _COUNT_BITS) - 1)
    form = np.zeros(len(events), np.uint16)
    layouts: list[Words] = [()]
    code, slot_count = events.code.copy(), events.slot_count.copy()
    is_exact, missing = True, np.zeros(CODE_COUNT, np.bool_)
    is_inserted, may_be_inserted = inserted_events(trace)
    for key in np.unique(keys).tolist():
        old, count = key >> _COUNT_BITS, _SLOT_WORDS * (key & (1 << _COUNT_BITS) - 1)
        rows = np.flatnonzero((keys == key) & ~is_inserted)
        if not len(rows):
            continue
        spec = trace.catalogue.spec(old)
        wide = is_wide(old)
        logged = as_logged(spec, range(1, count + 1), trace.release, wide=wide, byte_order=trace.byte_order)
        words = logged.words
        if logged.form == "raw" and not spec.is_known:
            continue
        is_missing = bool(logged.missing)
        is_unknown = logged.form == "raw" and has_two_forms(old, trace.release)
        is_exact &= not is_unknown and not (is_missing and wide)
        if logged.words == tuple(range(1, count + 1)):
            continue
        rows = rows[~_has_failed(trace, rows, old)]
        is_unsure = may_be_inserted[rows]
        slot_count[rows] = np.where(is_unsure, min(logged.slots, count // _SLOT_WORDS), logged.slots)
        is_exact &= not is_unsure.any() or logged.slots == count // _SLOT_WORDS
        missing[logged_list(trace.release, old, is_wide=wide)[0]] |= is_missing
        missing[old] |= is_missing
        if is_missing and wide:
            continue  # it stays as it is, but takes as many slots as the other form has words
        form[rows] = len(layouts)
        layouts.append(tuple(word or 0 for word in words))
        code[rows] = logged_list(trace.release, old, is_wide=wide)[0]
    payloads = LoggedPayloads(trace.payloads, form, layouts, trace.byte_order)
    columns = replace(events, code=code, slot_count=slot_count)
    return LoggedTrace(replace(trace, events=columns, payloads=payloads, _cached=Once()), is_exact, missing)


def _has_failed(trace: Trace, rows: NDArray[np.intp], code: int) -> NDArray[np.bool_]:
    """Return which exits show an error: those look the same in both forms, bool (len(rows),)."""
    if not EXITS[code]:
        return np.zeros(len(rows), np.bool_)
    return RowColumns(trace, TraceDerivedColumns(trace), rows).failed()


def _padded(count: int) -> int:
    return max(_SLOT_WORDS, count + count % _SLOT_WORDS)
