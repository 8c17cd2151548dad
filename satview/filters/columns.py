"""Numbers and texts of many events at once: what the fields of an expression are when a chunk is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.spec import Release
from satview.events.wire import CODE_COUNT, KER_64BIT, WireClass
from satview.filters.facts import Facts
from satview.filters.forms import LAST_ERRNO, MINUS_ONE, Place, is_exit, place_of, text_of, text_place
from satview.filters.mask import Bools, Rows
from satview.filters.scalar import number_of
from satview.filters.vocabulary import argument_names
from satview.store.trace import Trace

Known = NDArray[np.bool_] | bool
Values = tuple[NDArray[np.integer] | int, Known]  # numbers, and which of them are known
_TEXT_WORDS: Final = 1024  # of a text, at most
_TEXT_BLOCK: Final = 1 << 20  # words gathered at a time
_COUNT_SHIFT: Final = 16

EXITS: Final = np.array([is_exit(code) for code in range(CODE_COUNT)])
NUMBERS: Final = np.array([number_of(code) for code in range(CODE_COUNT)], np.uint16)


def codes_column(name: str) -> Values:
    """Return `code` or `number` for all 32,768 codes."""
    return (np.arange(CODE_COUNT, dtype=np.int32) if name == "code" else NUMBERS), True


def threads_column(name: str, trace: Trace) -> Values:
    """Return `pid` or `tid` for all threads."""
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


def codes_with(name: str, release: Release) -> Bools:
    """Return which codes have an argument of a name in one of their forms, bool (32768,)."""
    table = np.zeros(CODE_COUNT, np.bool_)
    table[list(argument_names(release).get(name, ()))] = True
    return table


class RowColumns:
    """Fields of some events of a trace.

    Args:
        trace: The events.
        facts: Where durations, lengths and priorities come from.
        rows: A slice of the event table, or ascending rows.
    """

    def __init__(self, trace: Trace, facts: Facts, rows: Rows) -> None:
        self.trace, self.facts, self.rows = trace, facts, rows
        self.code = trace.events.code[rows]
        self._index: NDArray[np.integer] | None = None if isinstance(rows, slice) else rows

    @property
    def index(self) -> NDArray[np.integer]:
        """The rows as numbers."""
        if self._index is None:
            assert isinstance(self.rows, slice)
            self._index = np.arange(self.rows.start, self.rows.stop)
        return self._index

    def number(self, name: str) -> Values:
        """Return a numeric field."""
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
            "priority": self.facts.priority,
            "duration": self.facts.duration_ns,
            "length": self.facts.state_length_ns,
        }
        values = derived[name](self.index)
        return values, values >= 0

    def word(self, number: int) -> Values:
        """Return payload word `number`."""
        known: Known = True if number < 2 else self.trace.payloads.word_counts(self.index) > number
        return self.trace.payloads.column(self.index, number), known

    def errors(self) -> Values:
        """Return the errors of failed kernel calls."""
        values, known = np.zeros(len(self.code), np.int64), np.zeros(len(self.code), np.bool_)
        at = np.flatnonzero(EXITS[self.code])
        if len(at):
            values[at], known[at] = self._errors_of(self.index[at], self.code[at])
        return values, known

    def _errors_of(self, rows: NDArray[np.integer], code: NDArray[np.uint16]) -> tuple[NDArray[np.int64], Bools]:
        payloads = self.trace.payloads
        values, known = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        failed = np.flatnonzero(payloads.column(rows, 0) == MINUS_ONE)
        rows, is_64bit = rows[failed], code[failed] & KER_64BIT != 0
        counts, second = payloads.word_counts(rows), payloads.column(rows, 1)
        short = (counts == 2) & (~is_64bit | (second <= LAST_ERRNO))
        third = payloads.column(rows, 2)
        long = is_64bit & (counts == 4) & (second == MINUS_ONE) & (third >= 1) & (third <= LAST_ERRNO)
        known[failed] = short | long
        values[failed] = np.where(short, second, third)
        return values, known

    def argument(self, name: str) -> Values:
        """Return a numeric argument; known where the event has it and did not fail."""
        values, known = np.zeros(len(self.code), np.int64), np.zeros(len(self.code), np.bool_)
        for at, place in self._places(name):
            if place is not None and place.words:
                values[at], known[at] = self._gathered(self.index[at], place), True
        exits = np.flatnonzero(known & EXITS.take(self.code))
        if len(exits):
            known[exits] &= ~self._errors_of(self.index[exits], self.code[exits])[1]
        return values, known

    def _gathered(self, rows: NDArray[np.integer], place: Place) -> NDArray[np.int64]:
        payloads = self.trace.payloads
        first = payloads.column(rows, place.word)
        if place.words == 1:
            return first.view(np.int32).astype(np.int64) if place.is_signed else first.astype(np.int64)
        second = payloads.column(rows, place.word + 1)
        low, high = (first, second) if self.trace.byte_order == "little" else (second, first)
        return low.astype(np.int64) | high.astype(np.int64) << 32

    def _places(self, name: str | None) -> list[tuple[NDArray[np.intp], Place | None]]:
        """Return positions grouped by where an argument (None: the event's text) stands in the payload."""
        release = self.trace.release
        groups: dict[Place | None, list[NDArray[np.intp]]] = {}
        at = np.arange(len(self.code)) if name is None else np.flatnonzero(codes_with(name, release).take(self.code))
        counts = np.minimum(self.trace.payloads.word_counts(self.index[at]), (1 << _COUNT_SHIFT) - 1)
        keys = self.code[at].astype(np.int64) << _COUNT_SHIFT | counts
        # Sorting by key puts equal layouts side by side; there are few of them.
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        if not len(keys):
            return []
        starts = np.flatnonzero(np.append(True, np.diff(keys) != 0))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(keys)], strict=True):
            code, count = int(keys[start]) >> _COUNT_SHIFT, int(keys[start]) & ((1 << _COUNT_SHIFT) - 1)
            place = text_place(release, code, count) if name is None else place_of(release, code, count, name)
            groups.setdefault(place, []).append(at[order[start:end]])
        return [(np.sort(np.concatenate(parts)), place) for place, parts in groups.items()]

    def texts(self, name: str | None, test: Callable[[str], bool]) -> Bools:
        """Return for which events a text argument (None: the event's text) passes a test.

        Only different texts are tested: a trace repeats few of them many times.
        """
        passes = np.zeros(len(self.code), np.bool_)
        for at, place in self._places(name):
            if place is None or place.words:
                continue
            is_user = np.isin(self.code[at] >> 10, (WireClass.USER, WireClass.QUIP))
            counts = self.trace.payloads.word_counts(self.index[at])
            for kind in np.unique(counts * 2 + is_user).tolist():
                chosen = at[counts * 2 + is_user == kind]
                passes[chosen] = self._text_test(self.index[chosen], place, kind // 2, bool(kind & 1), test)
        exits = np.flatnonzero(passes & EXITS.take(self.code)) if name is not None else ()
        if len(exits):
            passes[exits] &= ~self._errors_of(self.index[exits], self.code[exits])[1]
        return passes

    def _text_test(
        self, rows: NDArray[np.integer], place: Place, count: int, is_user: bool, test: Callable[[str], bool]
    ) -> Bools:
        width = min(count - place.word, _TEXT_WORDS)
        passes = np.zeros(len(rows), np.bool_)
        if width <= 0:
            return passes
        start = Place(0, 0, False, place.text_index)
        step = max(1, _TEXT_BLOCK // width)
        answers: dict[bytes, bool] = {}
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            words = np.stack([self.trace.payloads.column(part, place.word + i) for i in range(width)], axis=1)
            data = np.ascontiguousarray(words.astype("<u4" if self.trace.byte_order == "little" else ">u4"))
            unique, where = np.unique(data.view(f"V{4 * width}")[:, 0], return_inverse=True)
            said = np.zeros(len(unique), np.bool_)
            for i, item in enumerate(unique.tolist()):
                if item not in answers:
                    text = text_of(item, start, is_user)
                    answers[item] = text is not None and test(text)
                said[i] = answers[item]
            passes[first : first + len(part)] = said[where]
        return passes
