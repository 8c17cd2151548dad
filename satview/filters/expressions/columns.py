"""Numbers and texts of many events at once: what the fields of an expression are when a chunk is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.layout import USER_TEXT, Part, text_at
from satview.events.variants import DOUBTFUL, ERRNO_WORD, EXITS, FAILURES, USER_CLASSES, user_text
from satview.events.wire import CLASS_SHIFT, CODE_COUNT, EVENT_MASK, WireClass
from satview.filters.derived_columns import DerivedColumns
from satview.filters.expressions.operators import KnownMask, Values
from satview.filters.rows import Bools, Rows
from satview.store.arguments import argument, argument_offsets, variants_of
from satview.store.axis import files_of
from satview.store.trace import Trace

_TEXT_WORDS: Final = 1024  # of a text, at most
_TEXT_BLOCK: Final = 1 << 20  # words gathered at a time

_CODES: Final = np.arange(CODE_COUNT, dtype=np.uint16)
NUMBERS: Final = np.where(  # as `scalar.number_of`
    _CODES >> CLASS_SHIFT == WireClass.KER_CALL, _CODES & np.uint16(0x7F), _CODES & np.uint16(EVENT_MASK)
)


def codes_column(name: str) -> Values:
    """Return `code` or `number` for all codes, int32 or uint16 (32768,)."""
    return (np.arange(CODE_COUNT, dtype=np.int32) if name == "code" else NUMBERS), True


def threads_column(name: str, trace: Trace) -> Values:
    """Return `pid` or `tid` for all threads, int32 (threads,); known from 0 on."""
    values = trace.threads.pid if name == "pid" else trace.threads.tid
    return values, values >= 0


def thread_texts(name: str, trace: Trace, test: Callable[[str], bool]) -> Bools:
    """Return for which threads a text field passes a test, bool (threads,)."""
    if name == "thread_name":
        return np.array([bool(text) and test(text) for text in trace.threads.names], np.bool_)
    passes = np.array(
        [bool(text) and (test(text) or test(text.rsplit("/", 1)[-1])) for text in trace.processes.names], np.bool_
    )
    return passes[trace.threads.process]


class RowColumns:
    """Fields of some events of a trace.

    Args:
        trace: The events.
        derived: Where durations, lengths and priorities come from.
        rows: A slice of the event table, or ascending rows.
    """

    def __init__(self, trace: Trace, derived: DerivedColumns, rows: Rows) -> None:
        self.trace, self.derived, self.rows = trace, derived, rows
        self.code = trace.events.code[rows]
        self._index: NDArray[np.integer] | None = None if isinstance(rows, slice) else rows

    @property
    def index(self) -> NDArray[np.integer]:
        """The rows as numbers, (events,)."""
        if self._index is None:
            assert isinstance(self.rows, slice)
            self._index = np.arange(self.rows.start, self.rows.stop)
        return self._index

    def number(self, name: str) -> Values:
        """Return a numeric field, integers (events,); times in nanoseconds."""
        events, trace = self.trace.events, self.trace
        if name in ("code", "number"):
            return (self.code if name == "code" else NUMBERS[self.code]), True
        if name in ("pid", "tid"):
            values, known = threads_column(name, trace)
            thread = events.thread[self.rows]
            return values[thread], known[thread]  # type: ignore[index]  # both are arrays here
        if name == "cpu":
            return events.cpu[self.rows], True
        if name == "time":
            return trace.clock.ns_array(events.time_cycles[self.rows]), True
        if name == "words":
            return trace.payloads.word_counts(self.index), True
        if name == "errno":
            return self.errors()
        derived = {
            "priority": self.derived.priority,
            "duration": self.derived.duration_ns,
            "length": self.derived.state_length_ns,
        }
        values = derived[name](self.index)
        return values, values >= 0

    def word(self, number: int) -> Values:
        """Return payload word `number`, uint32 (events,); known where the payload is that long."""
        known: KnownMask = True if number < 2 else self.trace.payloads.word_counts(self.index) > number
        return self.trace.payloads.column(self.index, number), known

    def errors(self) -> Values:
        """Return the errors of failed kernel calls, int64 (events,); known at their exits alone."""
        values, known = np.zeros(len(self.code), np.int64), np.zeros(len(self.code), np.bool_)
        at = np.flatnonzero(EXITS.take(self.code))
        found = variants_of(self.trace, self.index[at])
        for variant, word in ERRNO_WORD.items():
            selected = at[found == variant]
            values[selected] = self.trace.payloads.column(self.index[selected], word).view(np.int32)
            known[selected] = True
        return values, known

    def failed(self) -> Bools:
        """Return which events are exits of failed kernel calls, bool (events,)."""
        return self._of_variants(lambda variants: np.isin(variants, FAILURES))

    def shows_failure(self) -> Bools:
        """Return which events say whether a kernel call failed, bool (events,)."""
        return self._of_variants(lambda variants: variants != DOUBTFUL)

    def _of_variants(self, test: Callable[[NDArray[np.integer]], Bools]) -> Bools:
        """Return which events are exits of kernel calls whose variants pass a test, bool (events,)."""
        result = np.zeros(len(self.code), np.bool_)
        at = np.flatnonzero(EXITS.take(self.code))
        result[at] = test(variants_of(self.trace, self.index[at]))
        return result

    def argument(self, name: str) -> Values:
        """Return a numeric argument, integers (events,); known where the event has it."""
        return argument(self.trace, self.index, name)

    def texts(self, name: str | None, test: Callable[[str], bool]) -> Bools:
        """Return for which events a text argument (None: the event's text) passes a test.

        Only different texts are tested: a trace repeats few of them many times.
        """
        passes = np.zeros(len(self.code), np.bool_)
        if (axis := files_of(self.trace)) is not None:
            for part, at, own in axis.split(self.index):
                passes[at] = RowColumns(part.trace, self.derived, own).texts(name, test)
            return passes
        for at, position in argument_offsets(self.trace, self.index, name):
            if position is None or position.words:
                continue
            is_user = np.isin(self.code[at] >> CLASS_SHIFT, USER_CLASSES) & (position.name == USER_TEXT)
            counts = self.trace.payloads.word_counts(self.index[at])
            for kind in np.unique(counts * 2 + is_user).tolist():
                selected = at[counts * 2 + is_user == kind]
                passes[selected] = self._text_test(self.index[selected], position, kind // 2, bool(kind & 1), test)
        return passes

    def _text_test(
        self, rows: NDArray[np.integer], position: Part, count: int, is_user: bool, test: Callable[[str], bool]
    ) -> Bools:
        width = min(count - position.word, _TEXT_WORDS)
        passes = np.zeros(len(rows), np.bool_)
        if width <= 0:
            return passes
        start = replace(position, word=0)
        step = max(1, _TEXT_BLOCK // width)
        results: dict[bytes, bool] = {}
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            words = np.stack([self.trace.payloads.column(part, position.word + i) for i in range(width)], axis=1)
            data = np.ascontiguousarray(words.astype("<u4" if self.trace.byte_order == "little" else ">u4"))
            unique, where = np.unique(data.view(f"V{4 * width}")[:, 0], return_inverse=True)
            said = np.zeros(len(unique), np.bool_)
            for i, item in enumerate(unique.tolist()):
                if item not in results:
                    text = user_text(item) if is_user else text_at(item, start)
                    results[item] = text is not None and test(text)
                said[i] = results[item]
            passes[first : first + len(part)] = said[where]
        return passes
