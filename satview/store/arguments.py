"""Arguments of many events at once, by name, whatever their release, mode and width."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.catalogue import catalogue
from satview.events.layout import (
    Layout,
    Part,
    argument_names,
    argument_part,
    arguments_of,
    layout_of,
    learned_lists,
    one_spelling,
    text_at,
    text_offset,
)
from satview.events.spec import Release, Show
from satview.events.variants import USER_CLASSES, variants
from satview.events.wire import CLASS_SHIFT, CODE_COUNT
from satview.events.words import join64
from satview.store.axis import FileAxis, files_of
from satview.store.trace import Trace

Rows = NDArray[np.integer]
Positions = NDArray[np.intp] | slice
TextColumn = tuple[NDArray[np.uint32], tuple[str, ...]]  # (n,), which text; the texts
Pids = Callable[[NDArray[np.int64]], NDArray[np.int64]]
Arguments = dict[str, tuple[NDArray[np.int64] | TextColumn, NDArray[np.bool_]]]  # by name, with where it is known
_MOST_WORDS: Final = (1 << 15) - 1
_CHUNK: Final = 1 << 17  # events whose words are read together
_BLOCK_WORDS: Final = 32  # words that are read at once; arguments behind them are rare
_TEXT_WORDS: Final = 256  # of a text that are read: 1 KiB
_TEXT_BLOCK: Final = 1 << 16  # words of texts that are looked at together
_TABLE_LIMIT: Final = 1 << 17  # kinds of payloads that are counted in a table; more are sorted


def codes_with(name: str, release: Release) -> NDArray[np.bool_]:
    """Return which codes have an argument of a name in one of their forms, bool (32768,)."""
    table = np.zeros(CODE_COUNT, np.bool_)
    table[list(argument_names(release).get(name, ()))] = True
    return table


def codes_in(trace: Trace, name: str) -> NDArray[np.bool_]:
    """Return which codes of a trace have an argument of a name in one of their forms, bool (32768,)."""
    axis = files_of(trace)
    if axis is None:
        return codes_with(name, trace.release)
    table = np.zeros(CODE_COUNT, np.bool_)
    for part in axis.parts:
        table[part.codes[codes_with(name, part.trace.release)]] = True
    return table


def is_pid(name: str) -> bool:
    """Return whether an argument is the pid of a process: `pid`, `ppid`, `src_pid`, `info->pid`."""
    return name.endswith("pid")


def is_partition(name: str) -> bool:
    """Return whether an argument is the number of a partition: `partition`, `partition_id`."""
    return name == "partition" or name.endswith("partition_id")


def logged_codes_with(trace: Trace, name: str, class_name: str = "") -> NDArray[np.bool_]:
    """Return which of the codes that a trace has know an argument, bool (32768,).

    `codes_with` looks at all codes of a release, a quarter of a second the first time.

    Args:
        trace: The events.
        name: Of the argument.
        class_name: Printed name of the only class that has it; empty = look at all.
    """
    requested, table = one_spelling(name), np.zeros(CODE_COUNT, np.bool_)
    if (axis := files_of(trace)) is not None:
        for part in axis.parts:
            table[part.codes[logged_codes_with(part.trace, name, class_name)]] = True
        return table
    for code in np.flatnonzero(trace.code_counts).tolist():
        if class_name and trace.catalogue.class_name(code) != class_name:
            continue
        table[code] = any(one_spelling(part.name) == requested for part in arguments_of(trace.release, code))
    return table


def codes_with_text(release: Release) -> NDArray[np.bool_]:
    """Return which codes may have a text in their payload, bool (32768,)."""
    codes = catalogue(release).codes()
    table = np.isin(np.arange(CODE_COUNT) >> CLASS_SHIFT, USER_CLASSES)
    table[[code for code in codes if any(part.is_text for part in arguments_of(release, code))]] = True
    return table


@lru_cache(maxsize=128)
def _ranks(name: str | None, release: Release, learned: int) -> tuple[NDArray[np.intp], NDArray[np.uint16]]:
    """Return the codes that have an argument (None: a text), and their numbers from 1 on, (32768,), 0 for others.

    Args:
        name: The argument.
        release: Of the trace.
        learned: How many lists listings have shown so far; only they change what is returned.
    """
    del learned
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
    """Return several numeric arguments of many events, each as `argument` does; words near each other are read once.

    Returns:
        For each argument int64 (len(rows),), and bool (len(rows),) where the event has it.
    """
    if (axis := files_of(trace)) is not None:
        return _arguments_of_files(axis, rows, names)
    words, found = _Words(trace, rows), []
    for name in names:
        values, known = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        for at, part in argument_offsets(trace, rows, name):
            if part is not None and part.words:
                values[at], known[at] = _gathered(trace, words, at, part), True
        found.append((values, known))
    return found


def _arguments_of_files(
    axis: FileAxis, rows: Rows, names: tuple[str, ...]
) -> list[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Return the same of a trace of several files: each has its own release; pids and partitions are the axis's."""
    found = [(np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)) for _ in names]
    for part, at, own in axis.split(rows):
        for (values, known), name, (mine, is_mine) in zip(
            found, names, arguments(part.trace, own, *names), strict=True
        ):
            known[at] = is_mine
            if is_pid(name):
                values[at] = part.axis_pids(mine)
            else:
                values[at] = part.axis_partitions(mine) if is_partition(name) else mine
    return found


class _Words:
    """Payload words of some events, in pairs as they are in the slots; the pair read last is cached."""

    def __init__(self, trace: Trace, rows: Rows) -> None:
        self._payloads, self._rows = trace.payloads, rows
        self._at: NDArray[np.intp] = np.empty(0, np.intp)
        self._step = -1
        self._pair: tuple[NDArray[np.uint32], NDArray[np.uint32]] | None = None

    def of(self, at: NDArray[np.intp], word: int) -> NDArray[np.uint32]:
        """Return a word of the events at some positions, uint32 (len(at),)."""
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


def variants_of(trace: Trace, rows: Rows, counts: NDArray[np.int64] | None = None) -> NDArray[np.integer]:
    """Return the variants of the layouts of events (`events.variants`), uint8 or int32 (n,).

    Args:
        trace: The events.
        rows: (n,), rows of the event table.
        counts: int64 (n,), their payload words, if they are at hand.
    """
    if (axis := files_of(trace)) is not None:
        out = np.zeros(len(rows), np.int32)
        for part, at, own in axis.split(rows):
            out[at] = variants_of(part.trace, own)
        return out
    payloads = trace.payloads
    counts = payloads.word_counts(rows) if counts is None else counts
    found = variants(
        trace.release, trace.events.code[rows], counts, lambda selected, word: payloads.column(rows[selected], word)
    )
    return _with_listed(trace, rows, found)


def _with_listed(trace: Trace, rows: Rows, found: NDArray[np.uint8]) -> NDArray[np.integer]:
    """Return variants with those of events whose layout only their line of a listing shows."""
    if trace.listed is None:
        return found
    listed, variant = trace.listed
    at = np.minimum(np.searchsorted(listed, rows), len(listed) - 1)
    return np.where(listed[at] == rows, variant[at], found)


def argument_offsets(trace: Trace, rows: Rows, name: str | None) -> list[tuple[NDArray[np.intp], Part | None]]:
    """Return positions among rows, ascending, grouped by where an argument (None: the event's text) is in the payload.

    Events of codes that have no such argument are left out.

    Returns:
        Groups: intp (n,), and where their argument is in the payload.
    """
    release, code = trace.release, trace.events.code[rows]
    codes, rank_of_code = _ranks(name, release, learned_lists())
    rank = rank_of_code.take(code)
    at = np.flatnonzero(rank)
    if not len(at):
        return []
    counts = np.minimum(trace.payloads.word_counts(rows[at]), _MOST_WORDS)
    found: NDArray[np.integer] = np.zeros(len(at), np.uint8)
    if name is not None or trace.listed is not None:
        found = variants_of(trace, rows[at], counts)
    # There are few different layouts: a number for each, no sorting.
    shape = (len(codes), int(counts.max()) + 1, int(found.max()) + 1)
    kinds, kind = distinct(np.ravel_multi_index((rank[at] - 1, counts, found), shape))
    positions: dict[Part | None, int] = {}
    number_of_kind = np.empty(len(kinds), np.intp)
    for number, (which, words, variant) in enumerate(
        zip(*(part.tolist() for part in np.unravel_index(kinds, shape)), strict=True)
    ):
        only = int(codes[which])
        position = (
            text_offset(release, only, words, variant)
            if name is None
            else argument_part(release, only, words, name, variant)
        )
        number_of_kind[number] = positions.setdefault(position, len(positions))
    if len(positions) == 1:
        return [(at, next(iter(positions)))]
    numbers = number_of_kind.take(kind)
    return [(at[numbers == number], position) for position, number in positions.items()]


def _gathered(trace: Trace, words: _Words, at: NDArray[np.intp], part: Part) -> NDArray[np.int64]:
    first = words.of(at, part.word)
    return _combined(trace, part, first, words.of(at, part.word + 1) if part.words > 1 else first)


def _combined(trace: Trace, part: Part, first: NDArray[np.uint32], second: NDArray[np.uint32]) -> NDArray[np.int64]:
    if part.words == 1:
        return first.astype(np.int32 if part.is_signed else np.uint32).astype(np.int64)
    return join64(first.astype(np.int64), second.astype(np.int64), trace.byte_order)


def all_arguments(trace: Trace, rows: Rows) -> Arguments:
    """Return all arguments of many events, each name once.

    Spellings of one argument that lists of other forms have are one column, under the first. Structures whose layout is
    not known are left out.

    Args:
        trace: The events.
        rows: (n,), rows of the event table.

    Returns:
        By name: int64 (n,), decimal arguments signed, others unsigned, 0 where there is none, or for texts (uint32
        (n,), which text; the texts); and bool (n,): the event has it.
    """
    columns = _Columns(len(rows))
    if (axis := files_of(trace)) is not None:
        for each, of_file, own in axis.split(rows):
            columns.put_all(of_file, all_arguments(each.trace, own), each.axis_pids)
        return columns.found
    for first in range(0, len(rows), _CHUNK):
        part = rows[first : first + _CHUNK]
        counts = np.minimum(trace.payloads.word_counts(part), _MOST_WORDS)
        words = trace.payloads.block(part, min(int(counts.max()), _BLOCK_WORDS))
        found = variants(trace.release, trace.events.code[part], counts, partial(_word_of, words))
        variant = _with_listed(trace, part, found)
        for at, layout in _layouts(trace, part, counts, variant):
            position = slice(first, first + len(part)) if isinstance(at, slice) else first + at
            mine = words if isinstance(at, slice) else words[at]
            for argument in layout.parts:
                if argument.is_text:
                    columns.put_texts(argument.name, position, *_texts(trace, part[at], counts[at], argument))
                elif argument.show is not Show.STRUCT:
                    columns.put(argument.name, position, _gathered_from(trace, mine, part, at, argument))
    return columns.found


def _word_of(words: NDArray[np.uint32], at: NDArray[np.intp], number: int) -> NDArray[np.uint32]:
    found: NDArray[np.uint32] = words[at, number]
    return found


class _Columns:
    """Columns of arguments while they are filled."""

    def __init__(self, count: int) -> None:
        self.found: Arguments = {}
        self._count = count
        self._names: dict[str, str] = {}

    def put(self, spelling: str, at: Positions, values: NDArray[np.int64]) -> None:
        """Fill numbers in."""
        name = self._names.setdefault(one_spelling(spelling), spelling)
        if name not in self.found:
            self.found[name] = np.zeros(self._count, np.int64), np.zeros(self._count, np.bool_)
        column, known = self.found[name]
        if not isinstance(column, tuple):  # no argument is a number in one event and a text in another
            column[at], known[at] = values, True

    def put_all(self, at: NDArray[np.intp], found: Arguments, axis_pids: Pids) -> None:
        """Fill in what was found of the events of one file."""
        for name, (column, known) in found.items():
            mine = at[known]
            if isinstance(column, tuple):
                self.put_texts(name, mine, column[0][known], column[1])
            else:
                self.put(name, mine, axis_pids(column[known]) if is_pid(name) else column[known])

    def put_texts(self, spelling: str, at: Positions, code: NDArray[np.uint32], texts: tuple[str, ...]) -> None:
        """Fill texts in, given as numbers of different ones."""
        name = self._names.setdefault(one_spelling(spelling), spelling)
        if name not in self.found:
            self.found[name] = (np.zeros(self._count, np.uint32), ("",)), np.zeros(self._count, np.bool_)
        column, known = self.found[name]
        if isinstance(column, tuple):
            column[0][at], known[at] = code + np.uint32(len(column[1])), True
            self.found[name] = (column[0], (*column[1], *texts)), known


def _layouts(
    trace: Trace, rows: Rows, counts: NDArray[np.int64], variant: NDArray[np.integer]
) -> Iterator[tuple[Positions, Layout]]:
    """Yield the different layouts of some events and the positions of the events among the rows."""
    codes, code = distinct(trace.events.code[rows].astype(np.int64))
    shape = (len(codes), int(counts.max()) + 1, int(variant.max()) + 1)
    kinds, kind = distinct(np.ravel_multi_index((code, counts, variant), shape))
    for number, (which, words, form) in enumerate(
        zip(*(part.tolist() for part in np.unravel_index(kinds, shape)), strict=True)
    ):
        yield (
            slice(None) if len(kinds) == 1 else np.flatnonzero(kind == number),
            layout_of(trace.release, int(codes[which]), words, form),
        )


def _gathered_from(trace: Trace, words: NDArray[np.uint32], rows: Rows, at: Positions, part: Part) -> NDArray[np.int64]:
    """Return a number of some events from their first payload words, or from the file where it is behind these."""
    if part.word + part.words > words.shape[1]:
        mine = rows[at]
        return _gathered(trace, _Words(trace, mine), np.arange(len(mine)), part)
    first = np.ascontiguousarray(words[:, part.word])
    return _combined(trace, part, first, words[:, part.word + 1] if part.words > 1 else first)


def _texts(trace: Trace, rows: Rows, counts: NDArray[np.int64], part: Part) -> TextColumn:
    """Return the texts of events of one layout: which, uint32 (n,), and the different ones."""
    width = max(1, min(int(counts.max()) - part.word, _TEXT_WORDS))
    start, order = replace(part, word=0), "<u4" if trace.byte_order == "little" else ">u4"
    codes, known = np.zeros(len(rows), np.uint32), dict[bytes, int]()
    step = max(1, _TEXT_BLOCK // width)
    for first in range(0, len(rows), step):
        block = rows[first : first + step]
        words = np.stack([trace.payloads.column(block, part.word + i) for i in range(width)], axis=1)
        data = np.ascontiguousarray(words.astype(order)).view(f"V{4 * width}")[:, 0]
        unique, where = np.unique(data, return_inverse=True)
        numbers = [known.setdefault(item, len(known)) for item in unique.tolist()]
        codes[first : first + step] = np.array(numbers, np.uint32)[where]
    return codes, tuple(text_at(item, start) or "" for item in known)
