"""The table type for links between events, and the rows of events from which links are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import IntEnum, StrEnum
from functools import cached_property, partial, wraps
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import numbers_of
from satview.core import links
from satview.core.links import stable_order
from satview.events.wire import CLASS_SHIFT, CODE_COUNT, WireClass
from satview.store.axis import ends_of_files, files_of
from satview.store.time_ranges import TimeRanges, losses, losses_of
from satview.store.trace import Trace

# The table type for links between events, each a pair of rows of the event table, with searches by either event.


Rows = NDArray[np.integer]
Pairs = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint8]]  # from_row, to_row, certainty; in any order
NO_EVENT: Final = 2**32 - 1  # instead of a row: there is no link
OPEN: Final = 2**32 - 2  # instead of the row that ends a link: the trace ends before it does


@dataclass(frozen=True, slots=True)
class ReadOnlyColumns:
    """Base of tables that are cached with a trace: makes all fields, which are arrays, read-only."""

    def __post_init__(self) -> None:
        for column in fields(self):
            getattr(self, column.name).setflags(write=False)


class LinkKind(StrEnum):
    """Kinds of links, by the events that they join."""

    CALL = "call"
    """A kernel call and its exit, or the interrupted form that ends it."""
    INTERRUPT = "interrupt"
    """The entry of an interrupt and its exit."""
    HANDLER = "handler"
    """The entry of an interrupt handler and its exit."""
    DISPATCH = "dispatch"
    """The entry of an interrupt and the entry of its first handler."""
    MESSAGE = "message"
    """A message that is sent and its receipt."""
    REPLY = "reply"
    """The receipt of a message and the reply or error that answers it."""
    ROUND_TRIP = "round trip"
    """A message that is sent and the end of the kernel call that sent it."""
    PULSE = "pulse"
    """A pulse that is sent and its receipt."""
    DELIVERY = "delivery"
    """An interrupt, timer expiry or kernel call and the pulse or signal that it delivers."""
    WAKE_UP = "wake-up"
    """The event that ended a thread's wait and the event that makes the thread ready, or running at once."""
    HOLD = "hold"
    """The kernel call by which a thread locks a mutex and its call that unlocks the mutex."""
    CREATION = "creation"
    """A kernel call and the thread or process that it creates."""
    STATE = "state"
    """The state that a thread enters and the thread's next change of state, or its creation or end."""


class Certainty(IntEnum):
    """Degrees of certainty of a link; higher values are more certain."""

    GUESS = 1
    """One of several possibilities that the trace does not distinguish."""
    INFERRED = 2
    """The link follows from the order of events and from what the kernel does; no event names both ends."""
    EXACT = 3
    """The events name each other, or leave no other possibility."""


BRANCHING: Final = frozenset((LinkKind.WAKE_UP, LinkKind.DELIVERY, LinkKind.CREATION))
"""Kinds of links of which one event may begin several, as a broadcast wakes many threads."""


@dataclass(frozen=True, slots=True)
class Link:
    """One link between two rows of the event table; `to_row` is `OPEN` if the trace ends before the link does."""

    kind: LinkKind
    from_row: int
    to_row: int
    certainty: Certainty


@dataclass(frozen=True)
class LinkTable:
    """All links of one kind in a trace; every column has shape (n,) and is read-only.

    No event ends two links of a kind. Only links of the kinds in `BRANCHING` may share the event that begins them; they
    are then in the order of the events that end them.

    Attributes:
        kind: The kind of all links in the table.
        from_row: uint32, ascending, row of the event that begins each link.
        to_row: uint32, row of the event that ends each link; `OPEN` where the trace ends before the link does.
        certainty: uint8, `Certainty`.
    """

    kind: LinkKind
    from_row: NDArray[np.uint32]
    to_row: NDArray[np.uint32]
    certainty: NDArray[np.uint8]

    def __post_init__(self) -> None:
        for column in (self.from_row, self.to_row, self.certainty):
            if column.shape != self.from_row.shape:
                raise ValueError("columns of a link table differ in length")
            column.setflags(write=False)
        rises = self.from_row[1:] > self.from_row[:-1]
        if self.kind in BRANCHING:
            rises |= (self.from_row[1:] == self.from_row[:-1]) & (self.to_row[1:] > self.to_row[:-1])
        if not rises.all():
            raise ValueError("the rows that begin links do not ascend")

    @classmethod
    def of(cls, kind: LinkKind, pairs: Pairs) -> LinkTable:
        """Return the table of links given in any order.

        Args:
            kind: Kind of the links.
            pairs: Starts, ends and certainties of the links, (n,) each; see `pairs_of`.
        """
        from_row, to_row, certainty = pairs
        order = np.lexsort((to_row, from_row)) if kind in BRANCHING else stable_order(from_row)
        return cls(kind, from_row[order], to_row[order], certainty[order])

    def __len__(self) -> int:
        return len(self.from_row)

    def __iter__(self) -> Iterator[Link]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int) -> Link:
        """Return the link at an index."""
        certainty = Certainty(int(self.certainty[index]))
        return Link(self.kind, int(self.from_row[index]), int(self.to_row[index]), certainty)

    def begun_by(self, rows: Rows) -> NDArray[np.intp]:
        """Return the index of the link that each event begins, -1 for none, same shape. O(log n) for each event.

        For the kinds in `BRANCHING` this is the first link; `all_begun_by` returns all of them.
        """
        return _find(self.from_row, None, rows)

    def all_begun_by(self, row: int) -> slice:
        """Return the indices of all links that one event begins; an empty slice for none. O(log n)."""
        start, stop = np.searchsorted(self.from_row, np.array([row, row + 1], np.int64))
        return slice(int(start), int(stop))

    def ended_by(self, rows: Rows) -> NDArray[np.intp]:
        """Return the index of the link that each event ends, -1 for none, same shape. O(log n) for each event."""
        order, ends = self._by_end
        return _find(ends, order, rows)

    def ends_of(self, rows: Rows) -> NDArray[np.uint32]:
        """Return the end of the link that each event begins, `NO_EVENT` for none, `OPEN` as in `to_row`, same shape.

        For the kinds in `BRANCHING` this is the first link's end.
        """
        link = self.begun_by(rows)
        out = np.full(len(rows), NO_EVENT, np.uint32)
        out[link >= 0] = self.to_row[link[link >= 0]]
        return out

    def cycles(self, time_cycles: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the length of every link, int64 (n,), cycles; -1 where the trace ends before the link does."""
        known = self.to_row != OPEN
        out = np.full(len(self), -1, np.int64)
        out[known] = time_cycles[self.to_row[known]] - time_cycles[self.from_row[known]]
        return out

    @cached_property
    def _by_end(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Indices of the links, sorted by the events that end them, and the rows of these events, uint32 (n,) each."""
        order = stable_order(self.to_row)
        return order.astype(np.uint32), self.to_row[order]


def _find(keys: NDArray[np.uint32], number: NDArray[np.uint32] | None, rows: Rows) -> NDArray[np.intp]:
    """Return the index of each row in `keys`, or the number stored for that index, same shape; -1 = not in `keys`."""
    if not len(keys):
        return np.full(rows.shape, -1, np.intp)
    key_position = links.positions(keys, rows.astype(np.uint32, copy=False))
    is_other = keys.take(key_position, mode="clip") != rows
    positions = key_position if number is None else number.take(key_position, mode="clip").astype(np.intp)
    positions[is_other] = -1
    return positions


def pairs_of(from_row: Rows, to_row: Rows, certainty: NDArray[np.integer] | Certainty = Certainty.EXACT) -> Pairs:
    """Return the columns of links for `LinkTable.of`; a single certainty applies to all links."""
    column = np.full(len(from_row), certainty, np.uint8) if isinstance(certainty, Certainty) else certainty
    sources, targets = from_row.astype(np.uint32, copy=False), to_row.astype(np.uint32, copy=False)
    return sources, targets, column.astype(np.uint8, copy=False)


def cached_links(kind: LinkKind) -> Callable[[Callable[[Trace], Pairs]], Callable[[Trace], LinkTable]]:
    """Return a decorator: a function that returns the links of a kind in any order returns their table, cached."""

    def decorate(find: Callable[[Trace], Pairs]) -> Callable[[Trace], LinkTable]:
        @wraps(find)
        def table(trace: Trace) -> LinkTable:
            return trace.cached(f"links.{kind.name.lower()}", lambda trace: LinkTable.of(kind, find(trace)))

        return table

    return decorate


def no_pairs() -> Pairs:
    """Return empty columns for `LinkTable.of`."""
    none = np.empty(0, np.uint32)
    return none, none, np.empty(0, np.uint8)


# Finds rows of events by code, CPU and thread, as the modules that make links need them.


RowsByCpu = tuple[tuple[int, NDArray[np.uint32]], ...]  # each CPU that has rows, and these, ascending
RowBounds = tuple[NDArray[np.intp], NDArray[np.intp]]  # by window: see `row_bounds`
_FEW_CPUS: Final = 8  # up to this number, a pass per CPU is faster than sorting
_KEY_OF_CLASS: Final = "links.rows.{:d}"
_FEW: Final = 256  # up to this number, searches are faster than a pass over all events


def rows_of_class(trace: Trace, wire_class: WireClass) -> NDArray[np.uint32]:
    """Return the rows of all events of a class, uint32, ascending; cached with the trace."""
    return _of_class(trace, wire_class)[0]


def _of_class(trace: Trace, wire_class: int) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
    return trace.cached(_KEY_OF_CLASS.format(wire_class), partial(_rows_and_codes, wire_class=wire_class))


def _rows_and_codes(trace: Trace, wire_class: int) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
    rows = rows_where(trace, np.arange(CODE_COUNT) >> CLASS_SHIFT == wire_class)
    return rows, trace.events.code[rows]


def rows_of_codes(trace: Trace, *codes: int) -> NDArray[np.uint32]:
    """Return the rows of all events with one of the codes, uint32, ascending; cached with the trace."""
    if not trace.code_counts[list(codes)].any():
        return np.empty(0, np.uint32)
    return trace.cached(f"links.rows_of.{codes}", partial(_rows_of_codes, codes=codes))


def _rows_of_codes(trace: Trace, codes: tuple[int, ...]) -> NDArray[np.uint32]:
    return rows_where(trace, _table_of(codes))


def _table_of(codes: tuple[int, ...]) -> NDArray[np.bool_]:
    table = np.zeros(CODE_COUNT, np.bool_)
    table[list(codes)] = True
    return table


def rows_by_cpu(trace: Trace, *codes: int) -> RowsByCpu:
    """Return for each CPU the rows of all events that have one of `codes`, for `last_before`; cached with the trace."""
    return trace.cached(f"links.rows_by_cpu.{codes}", lambda trace: tuple(by_cpu(trace, rows_of_codes(trace, *codes))))


def rows_where(trace: Trace, table: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return the rows of all events whose code is set in a table, bool (32768,); uint32, ascending."""
    count = int(trace.code_counts[table].sum())
    if not count:
        return np.empty(0, np.uint32)
    first, *others = np.unique(np.flatnonzero(table) >> CLASS_SHIFT).tolist()
    if not others and trace.is_cached(_KEY_OF_CLASS.format(first)):
        rows, codes = _of_class(trace, first)
        return rows[table[codes]]
    return links.rows_with(trace.events.code, table, count)


def comm_words(trace: Trace, rows: NDArray[np.integer]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the first two payload words of events of class COMM, uint32 (n,) each; cached with the trace.

    Args:
        trace: The events.
        rows: (n,), rows of the event table, all of that class.
    """
    word_0, word_1 = trace.cached("links.comm_words", _comm_words)
    every = rows_of_class(trace, WireClass.COMM)
    if len(rows) == len(every) and np.array_equal(rows, every):
        return word_0, word_1
    position = positions(every, rows)
    return word_0[position], word_1[position]


def _comm_words(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    rows = rows_of_class(trace, WireClass.COMM)
    word_0, word_1 = trace.payloads.pair(rows, 0)
    return np.ascontiguousarray(word_0), np.ascontiguousarray(word_1)


def positions(among: NDArray[np.integer], numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return `np.searchsorted(among, numbers)` for ascending rows (uint32) or keys (int64), only faster."""
    numbers = numbers.astype(among.dtype, copy=False)
    return links.positions(among, numbers)


def by_cpu(trace: Trace, rows: NDArray[np.uint32]) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """Yield each CPU that has some of the ascending rows, with its own, uint32 (n,), ascending."""
    for number, own in positions_by_cpu(trace.events.cpu[rows]):
        yield number, rows[own]


def positions_by_cpu(cpu: NDArray[np.uint8]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each CPU number that occurs in a column, and its positions there, intp (n,), ascending."""
    counts = np.bincount(cpu)
    if np.count_nonzero(counts) <= _FEW_CPUS:
        for number in np.flatnonzero(counts).tolist():
            yield number, np.flatnonzero(cpu == number)
        return
    order, ends = stable_order(cpu), np.cumsum(counts)
    for number, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        if end > start:
            yield number, order[start:end]


def row_bounds(trace: Trace, windows: TimeRanges) -> RowBounds:
    """Return for each window the row of the first event after the start, and that of the first at or after the end."""
    time = trace.events.time_cycles
    return np.searchsorted(time, windows.start, side="right"), np.searchsorted(time, windows.end)


def numbers_within(begin: NDArray[np.intp], end: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return all numbers in the ranges `begin:end`, each once, int64, ascending; `end`, (n,), must ascend."""
    begin = np.maximum(begin, np.append(0, end[:-1])[: len(end)])
    return numbers_of(begin, np.maximum(end - begin, 0))


def last_before(trace: Trace, candidates: RowsByCpu, rows: NDArray[np.integer]) -> NDArray[np.uint32]:
    """Return for each event the last candidate before it on the same CPU.

    Args:
        trace: The events.
        candidates: Rows of the event table by CPU, from `rows_by_cpu` or `by_cpu`.
        rows: (n,), rows of the event table, in any order.

    Returns:
        uint32 (n,), `NO_EVENT` for none.
    """
    out = np.full(len(rows), NO_EVENT, np.uint32)
    if not len(candidates) or not len(rows):
        return out
    needed = trace.events.cpu[rows]
    for cpu, rows_of_cpu in candidates:
        requests = np.flatnonzero(needed == cpu)
        position = np.searchsorted(rows_of_cpu, rows[requests].astype(np.uint32))
        out[requests[position > 0]] = rows_of_cpu[position[position > 0] - 1]
    return out


def last_of_codes(trace: Trace, codes: tuple[int, ...], rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return for each event the last event with one of the codes before it on the same CPU.

    Args:
        trace: The events.
        codes: Codes of the events to find.
        rows: uint32 (n,), rows of the event table, in any order.

    Returns:
        uint32 (n,), `NO_EVENT` for none.
    """
    if not trace.code_counts[list(codes)].any():
        return np.full(len(rows), NO_EVENT, np.uint32)
    if len(rows) <= _FEW:
        return last_before(trace, rows_by_cpu(trace, *codes), rows)
    candidates = rows_of_codes(trace, *codes)
    return in_time_order(rows, lambda ordered: links.last_of(trace.events.cpu, candidates, ordered))


def last_in_table(trace: Trace, table: NDArray[np.bool_], rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return for each event the last event before it on the same CPU whose code is set in a table.

    Args:
        trace: The events.
        table: bool (32768,), by code.
        rows: uint32 (n,), rows of the event table, in any order.

    Returns:
        uint32 (n,), `NO_EVENT` for none.
    """
    return in_time_order(rows, lambda ordered: links.last_before(trace.events.code, trace.events.cpu, table, ordered))


def in_time_order(
    rows: NDArray[np.uint32], of: Callable[[NDArray[np.uint32]], NDArray[np.uint32]]
) -> NDArray[np.uint32]:
    """Return `of(rows)` for rows in any order, where `of` needs ascending rows.

    Args:
        rows: uint32 (n,), rows of the event table.
        of: Function that returns a value for each row.
    """
    if np.all(rows[1:] >= rows[:-1]):
        return of(rows)
    order = stable_order(rows)
    answers = np.empty(len(rows), np.uint32)
    answers[order] = of(rows[order])
    return answers


def thread_rows(trace: Trace, pids: NDArray[np.uint32], tids: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the row of the thread table for each pid and tid, 0 where the trace has no such thread, int64 (n,)."""
    keys = trace.threads.pid.astype(np.int64) << 32 | trace.threads.tid.astype(np.int64) & 0xFFFFFFFF
    order = np.argsort(keys)
    needed = pids.view(np.int32).astype(np.int64) << 32 | tids.astype(np.int64)
    position = np.minimum(np.searchsorted(keys[order], needed), len(keys) - 1)
    return np.where(keys[order][position] == needed, order[position], 0)


def last_of_each(numbers: NDArray[np.integer], count: int) -> NDArray[np.intp]:
    """Return the position at which each number below `count` occurs last, in the order of the numbers; intp (k,)."""
    last = np.full(count, -1, np.intp)
    last[numbers] = np.arange(len(numbers))
    return last[last >= 0]


def depth_within(step: NDArray[np.integer], part: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return how many entries are open after every step, int64 (n,); exits without an entry are ignored.

    Args:
        step: (n,), 1 for an entry, -1 for an exit, 0 for neither.
        part: (n,), ascending; the count begins at 0 in each part.
    """
    if not len(step):
        return np.empty(0, np.int64)
    raw = np.cumsum(step, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate(([True], part[1:] != part[:-1])))
    sizes = np.diff(starts, append=len(step))
    raw -= np.repeat(np.concatenate(([0], raw))[starts], sizes)
    lift = np.repeat(np.arange(len(starts)), sizes) * 4 * len(step)
    lowest = np.minimum.accumulate(np.minimum(raw, 0) - lift) + lift
    return np.asarray(raw - np.minimum(lowest, 0), np.int64)


def nested_pairs(step: NDArray[np.int8], part: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of entries that have an exit, and the indices of these exits, intp (k,) each.

    The exit of an entry is the next -1 at the same nesting depth in the same part.

    Args:
        step: (n,), 1 for an entry, -1 for an exit.
        part: (n,), number of the part, such as a thread, ascending.
    """
    level = depth_within(step, part) + (step < 0)
    key = part * (int(level.max(initial=0)) + 1) + level
    order = stable_order(key)
    key, is_entry = key[order], step[order] > 0
    pair_starts = np.flatnonzero(is_entry[:-1] & ~is_entry[1:] & (key[:-1] == key[1:]))
    return order[pair_starts], order[pair_starts + 1]


def ends_of_spans(trace: Trace, begin: Rows, end: Rows) -> NDArray[np.int64]:
    """Return when each span of two events ends, cycles, int64 (n,): an open one (`OPEN`) when its file ends."""
    cycles = ends_of_files(trace, begin)
    is_ended = end != OPEN
    cycles[is_ended] = trace.events.time_cycles[end[is_ended]]
    return cycles


# Checks that no event is missing between the two events of a link.


def is_whole(trace: Trace, begin: Rows, end: Rows) -> NDArray[np.bool_]:
    """Return for each pair of events whether no event of any CPU is missing in between, bool (n,).

    Args:
        trace: The events.
        begin: (n,), row of the earlier event of each pair.
        end: (n,), row of the later event.
    """
    axis = files_of(trace)
    if axis is None:
        return _is_clear(trace, begin, end, TimeRanges.of_rows(losses(trace)))
    out = np.zeros(len(begin), np.bool_)
    for part, positions, own in axis.split(begin):  # pairs of events of two files are never whole
        both = axis.part_of[end[positions]] == axis.part_of[begin[positions]]
        out[positions[both]] = is_whole(part.trace, own[both], axis.own_row[end[positions[both]]])
    return out


def is_whole_on(trace: Trace, cpu: int, begin: Rows, end: Rows) -> NDArray[np.bool_]:
    """Return for each pair of events whether no event of one CPU is missing in between, bool (n,)."""
    return _is_clear(trace, begin, end, TimeRanges.of_rows(losses_of(losses(trace), cpu)))


def part_of(trace: Trace, cpu: int, rows: Rows) -> NDArray[np.intp]:
    """Return how many losses of a CPU are before each event, intp (n,); others must not be linked."""
    lost = TimeRanges.of_rows(losses_of(losses(trace), cpu))
    if not len(lost.end):
        return np.zeros(len(rows), np.intp)
    return np.searchsorted(lost.end, trace.events.time_cycles[rows], side="right")


def _is_clear(trace: Trace, begin: Rows, end: Rows, lost: TimeRanges) -> NDArray[np.bool_]:
    if not len(lost.start):
        return np.ones(len(begin), np.bool_)
    times = trace.events.time_cycles
    return ~lost.meet(times[begin], times[end])
