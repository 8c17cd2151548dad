"""Numbers and texts of many events at once: what the fields of an expression are when a chunk is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.catalogue import catalogue
from satview.events.layout import Part, arguments_of, place_of, text_at, text_place
from satview.events.spec import Release
from satview.events.variants import ERRNO_WORD, FAILURES, USER_CLASSES, is_exit, user_text, variants
from satview.events.wire import CLASS_SHIFT, CODE_COUNT
from satview.events.words import join64
from satview.filters.facts import Facts
from satview.filters.mask import Bools, Rows
from satview.filters.scalar import number_of
from satview.filters.vocabulary import argument_names
from satview.store.trace import Trace

Known = NDArray[np.bool_] | bool
Values = tuple[NDArray[np.integer] | int, Known]  # numbers, and which of them are known
_TEXT_WORDS: Final = 1024  # of a text, at most
_TEXT_BLOCK: Final = 1 << 20  # words gathered at a time
_MOST_WORDS: Final = (1 << 15) - 1
_TABLE_LIMIT: Final = 1 << 17  # kinds of payloads that are counted in a table; more are sorted

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


def codes_with_text(release: Release) -> Bools:
    """Return which codes may have a text in their payload, bool (32768,)."""
    codes = catalogue(release).codes()
    table = np.isin(np.arange(CODE_COUNT) >> CLASS_SHIFT, USER_CLASSES)
    table[[code for code in codes if any(part.is_text for part in arguments_of(release, code))]] = True
    return table


@lru_cache(maxsize=128)
def _ranks(name: str | None, release: Release) -> tuple[NDArray[np.intp], NDArray[np.uint16]]:
    """Return the codes that have an argument (None: a text), and their numbers from 1 on, (32768,), 0 for others."""
    table = codes_with_text(release) if name is None else codes_with(name, release)
    return np.flatnonzero(table), np.where(table, np.cumsum(table), 0).astype(np.uint16)


def _distinct(keys: NDArray[np.intp], shape: tuple[int, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the different keys, ascending, and of every key which one it is."""
    size = int(np.prod(shape))
    if size > _TABLE_LIMIT:
        return np.unique(keys, return_inverse=True)
    kinds = np.flatnonzero(np.bincount(keys, minlength=size))
    numbers = np.empty(size, np.intp)
    numbers[kinds] = np.arange(len(kinds))
    return kinds, numbers.take(keys)


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
        at = np.flatnonzero(EXITS.take(self.code))
        found = self._variants(at)
        for variant, word in ERRNO_WORD.items():
            chosen = at[found == variant]
            values[chosen], known[chosen] = self.trace.payloads.column(self.index[chosen], word).view(np.int32), True
        return values, known

    def failed(self) -> Bools:
        """Return which events are exits of failed kernel calls."""
        answer = np.zeros(len(self.code), np.bool_)
        at = np.flatnonzero(EXITS.take(self.code))
        answer[at] = np.isin(self._variants(at), FAILURES)
        return answer

    def _variants(self, at: NDArray[np.intp], counts: NDArray[np.int64] | None = None) -> NDArray[np.uint8]:
        """Return the variants of the layouts of the events at some positions, whose word counts may be known."""
        payloads, rows = self.trace.payloads, self.index[at]
        counts = payloads.word_counts(rows) if counts is None else counts
        return variants(self.trace.release, self.code[at], counts,
                        lambda chosen, word: payloads.column(rows[chosen], word))

    def argument(self, name: str) -> Values:
        """Return a numeric argument; known where the event has it."""
        values, known = np.zeros(len(self.code), np.int64), np.zeros(len(self.code), np.bool_)
        for at, part in self._places(name):
            if part is not None and part.words:
                values[at], known[at] = self._gathered(self.index[at], part), True
        return values, known

    def _gathered(self, rows: NDArray[np.integer], part: Part) -> NDArray[np.int64]:
        payloads = self.trace.payloads
        first = payloads.column(rows, part.word)
        if part.words == 1:
            return first.view(np.int32).astype(np.int64) if part.is_signed else first.astype(np.int64)
        second = payloads.column(rows, part.word + 1)
        return join64(first.astype(np.int64), second.astype(np.int64), self.trace.byte_order)

    def _places(self, name: str | None) -> list[tuple[NDArray[np.intp], Part | None]]:
        """Return positions, ascending, grouped by where an argument (None: the event's text) is in the payload."""
        release = self.trace.release
        codes, rank_of_code = _ranks(name, release)
        rank = rank_of_code.take(self.code)
        at = np.flatnonzero(rank)
        if not len(at):
            return []
        counts = np.minimum(self.trace.payloads.word_counts(self.index[at]), _MOST_WORDS)
        found = np.zeros(len(at), np.uint8) if name is None else self._variants(at, counts)
        # There are few different layouts: a number for each, no sorting.
        shape = (len(codes), int(counts.max()) + 1, int(found.max()) + 1)
        kinds, kind = _distinct(np.ravel_multi_index((rank[at] - 1, counts, found), shape), shape)
        places: dict[Part | None, int] = {}
        number_of_kind = np.empty(len(kinds), np.intp)
        for number, (i, count, variant) in enumerate(zip(*(part.tolist() for part in np.unravel_index(kinds, shape)),
                                                         strict=True)):
            code = int(codes[i])
            place = text_place(release, code, count) if name is None else place_of(release, code, count, name, variant)
            number_of_kind[number] = places.setdefault(place, len(places))
        if len(places) == 1:
            return [(at, next(iter(places)))]
        numbers = number_of_kind.take(kind)
        return [(at[numbers == number], place) for place, number in places.items()]

    def texts(self, name: str | None, test: Callable[[str], bool]) -> Bools:
        """Return for which events a text argument (None: the event's text) passes a test.

        Only different texts are tested: a trace repeats few of them many times.
        """
        passes = np.zeros(len(self.code), np.bool_)
        for at, place in self._places(name):
            if place is None or place.words:
                continue
            is_user = np.isin(self.code[at] >> CLASS_SHIFT, USER_CLASSES)
            counts = self.trace.payloads.word_counts(self.index[at])
            for kind in np.unique(counts * 2 + is_user).tolist():
                chosen = at[counts * 2 + is_user == kind]
                passes[chosen] = self._text_test(self.index[chosen], place, kind // 2, bool(kind & 1), test)
        return passes

    def _text_test(
        self, rows: NDArray[np.integer], place: Part, count: int, is_user: bool, test: Callable[[str], bool]
    ) -> Bools:
        width = min(count - place.word, _TEXT_WORDS)
        passes = np.zeros(len(rows), np.bool_)
        if width <= 0:
            return passes
        start = replace(place, word=0)
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
                    text = user_text(item) if is_user else text_at(item, start)
                    answers[item] = text is not None and test(text)
                said[i] = answers[item]
            passes[first : first + len(part)] = said[where]
        return passes
