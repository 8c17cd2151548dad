"""Arguments of many events at once, by name, whatever their release, mode and width."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.catalogue import catalogue
from satview.events.layout import Part, argument_names, arguments_of, one_spelling, place_of, text_place
from satview.events.spec import Release
from satview.events.variants import USER_CLASSES, variants
from satview.events.wire import CLASS_SHIFT, CODE_COUNT
from satview.events.words import join64
from satview.store.trace import Trace

Rows = NDArray[np.integer]
_MOST_WORDS: Final = (1 << 15) - 1
_TABLE_LIMIT: Final = 1 << 17  # kinds of payloads that are counted in a table; more are sorted


def codes_with(name: str, release: Release) -> NDArray[np.bool_]:
    """Return which codes have an argument of a name in one of their forms, bool (32768,)."""
    table = np.zeros(CODE_COUNT, np.bool_)
    table[list(argument_names(release).get(name, ()))] = True
    return table


def logged_codes_with(trace: Trace, name: str) -> NDArray[np.bool_]:
    """Return which of the codes that a trace has know an argument, bool (32768,).

    `codes_with` looks at all codes of a release, a quarter of a second the first time.
    """
    wanted, table = one_spelling(name), np.zeros(CODE_COUNT, np.bool_)
    for code in np.flatnonzero(trace.code_counts).tolist():
        table[code] = any(one_spelling(part.name) == wanted for part in arguments_of(trace.release, code))
    return table


def codes_with_text(release: Release) -> NDArray[np.bool_]:
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


def distinct(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return the different keys, ascending, and of every key which one it is.

    Small ones are counted in a table, which is ten times as fast as to sort them.

    Args:
        keys: int64 (n,), at least 0.
    """
    size = int(keys.max(initial=0)) + 1
    if size > _TABLE_LIMIT:
        return np.unique(keys, return_inverse=True)
    kinds = np.flatnonzero(np.bincount(keys, minlength=size))
    numbers = np.empty(size, np.intp)
    numbers[kinds] = np.arange(len(kinds))
    return kinds, numbers.take(keys)


def argument(trace: Trace, rows: Rows, name: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return a numeric argument of many events.

    Args:
        trace: The events.
        rows: (n,), rows of the event table.
        name: As the lists of arguments spell it.

    Returns:
        int64 (n,), decimal arguments signed, others unsigned, 0 where unknown; and bool (n,): the event has it.
    """
    return arguments(trace, rows, name)[0]


def arguments(trace: Trace, rows: Rows, *names: str) -> list[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Return several numeric arguments of many events, each as `argument` does; words near each other are read once."""
    words, found = _Words(trace, rows), []
    for name in names:
        values, known = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        for at, part in argument_places(trace, rows, name):
            if part is not None and part.words:
                values[at], known[at] = _gathered(trace, words, at, part), True
        found.append((values, known))
    return found


class _Words:
    """Payload words of some events, in pairs as they are in the slots; the pair read last is kept."""

    def __init__(self, trace: Trace, rows: Rows) -> None:
        self._payloads, self._rows = trace.payloads, rows
        self._at: NDArray[np.intp] = np.empty(0, np.intp)
        self._step = -1
        self._pair: tuple[NDArray[np.uint32], NDArray[np.uint32]] | None = None

    def of(self, at: NDArray[np.intp], word: int) -> NDArray[np.uint32]:
        """Return a word of the events at some places."""
        if self._pair is None or self._step != word // 2 or not np.array_equal(self._at, at):
            self._at, self._step = at, word // 2
            self._pair = self._payloads.pair(self._rows[at], 2 * self._step)
        return self._pair[word % 2]


def argument_under(trace: Trace, rows: Rows, *names: str) -> NDArray[np.int64]:
    """Return a numeric argument of many events that releases spell differently, int64 (n,); -1 where they have none.

    Args:
        trace: The events.
        rows: (n,), rows of the event table.
        names: All spellings; of several that an event has the last one counts.
    """
    values = np.full(len(rows), -1, np.int64)
    for name in names:
        found, known = argument(trace, rows, name)
        values[known] = found[known]
    return values


def variants_of(trace: Trace, rows: Rows, counts: NDArray[np.int64] | None = None) -> NDArray[np.uint8]:
    """Return the variants of the layouts of events (`events.variants`), uint8 (n,).

    Args:
        trace: The events.
        rows: (n,), rows of the event table.
        counts: int64 (n,), their payload words, if they are at hand.
    """
    payloads = trace.payloads
    counts = payloads.word_counts(rows) if counts is None else counts
    return variants(
        trace.release, trace.events.code[rows], counts, lambda chosen, word: payloads.column(rows[chosen], word)
    )


def argument_places(trace: Trace, rows: Rows, name: str | None) -> list[tuple[NDArray[np.intp], Part | None]]:
    """Return positions among rows, ascending, grouped by where an argument (None: the event's text) is in the payload.

    Events of codes that have no such argument are left out.
    """
    release, code = trace.release, trace.events.code[rows]
    codes, rank_of_code = _ranks(name, release)
    rank = rank_of_code.take(code)
    at = np.flatnonzero(rank)
    if not len(at):
        return []
    counts = np.minimum(trace.payloads.word_counts(rows[at]), _MOST_WORDS)
    found = np.zeros(len(at), np.uint8) if name is None else variants_of(trace, rows[at], counts)
    # There are few different layouts: a number for each, no sorting.
    shape = (len(codes), int(counts.max()) + 1, int(found.max()) + 1)
    kinds, kind = distinct(np.ravel_multi_index((rank[at] - 1, counts, found), shape))
    places: dict[Part | None, int] = {}
    number_of_kind = np.empty(len(kinds), np.intp)
    for number, (which, words, variant) in enumerate(
        zip(*(part.tolist() for part in np.unravel_index(kinds, shape)), strict=True)
    ):
        only = int(codes[which])
        place = text_place(release, only, words) if name is None else place_of(release, only, words, name, variant)
        number_of_kind[number] = places.setdefault(place, len(places))
    if len(places) == 1:
        return [(at, next(iter(places)))]
    numbers = number_of_kind.take(kind)
    return [(at[numbers == number], place) for place, number in places.items()]


def _gathered(trace: Trace, words: _Words, at: NDArray[np.intp], part: Part) -> NDArray[np.int64]:
    first = words.of(at, part.word)
    if part.words == 1:
        return first.astype(np.int32 if part.is_signed else np.uint32).astype(np.int64)
    return join64(first.astype(np.int64), words.of(at, part.word + 1).astype(np.int64), trace.byte_order)
