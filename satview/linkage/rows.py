"""Rows of events that links are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import library, links
from satview.events.wire import CLASS_SHIFT, CODE_COUNT, WireClass
from satview.linkage.table import NO_EVENT
from satview.store.trace import Trace

RowsByCpu = tuple[tuple[int, NDArray[np.uint32]], ...]  # of every CPU that has some its rows, ascending
_BLOCK: Final = 1 << 16
_FEW_CPUS: Final = 8  # so many passes are faster than sorting
_FEW: Final = 256  # so many searches are faster than a pass over all events


def rows_of_class(trace: Trace, wire_class: WireClass) -> NDArray[np.uint32]:
    """Return the rows of the events of an internal class, uint32, ascending; kept with the trace."""
    table = np.arange(CODE_COUNT) >> CLASS_SHIFT == wire_class
    return trace.kept(f"links.rows.{wire_class:d}", partial(rows_where, table=table))


def rows_of_codes(trace: Trace, *codes: int) -> NDArray[np.uint32]:
    """Return the rows of all events of some codes, uint32, ascending; kept with the trace."""
    if not trace.code_counts[list(codes)].any():
        return np.empty(0, np.uint32)
    return trace.kept(f"links.rows_of.{codes}", partial(_rows_of_codes, codes=codes))


def _rows_of_codes(trace: Trace, codes: tuple[int, ...]) -> NDArray[np.uint32]:
    table = np.zeros(CODE_COUNT, np.bool_)
    table[list(codes)] = True
    return rows_where(trace, table)


def rows_by_cpu(trace: Trace, *codes: int) -> RowsByCpu:
    """Return the rows of all events of some codes by CPU, as `last_before` takes them; kept with the trace."""
    return trace.kept(f"links.rows_by_cpu.{codes}", lambda trace: tuple(by_cpu(trace, rows_of_codes(trace, *codes))))


def rows_where(trace: Trace, table: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return the rows of all events whose code is in a table, uint32, ascending.

    Args:
        trace: The events.
        table: bool (32768,), codes.
    """
    code = trace.events.code
    if library.is_available():
        return links.rows_where(code, table, int(trace.code_counts[table].sum()))
    found = [np.flatnonzero(table[code[i : i + _BLOCK]]) + i for i in range(0, len(code), _BLOCK)]
    return np.concatenate(found).astype(np.uint32) if found else np.empty(0, np.uint32)


def comm_words(trace: Trace, rows: NDArray[np.integer]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the first two payload words of events of class COMM, uint32 (n,) each; read once and kept with the trace.

    Args:
        trace: The events.
        rows: (n,), rows of the event table, all of that class.
    """
    first, second = trace.kept("links.comm_words", _comm_words)
    every = rows_of_class(trace, WireClass.COMM)
    if len(rows) == len(every) and np.array_equal(rows, every):
        return first, second
    place = np.searchsorted(every, rows.astype(np.uint32))
    return first[place], second[place]


def _comm_words(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    rows = rows_of_class(trace, WireClass.COMM)
    first, second = trace.payloads.pair(rows, 0)
    return np.ascontiguousarray(first), np.ascontiguousarray(second)


def by_cpu(trace: Trace, rows: NDArray[np.uint32]) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """Yield every CPU that has some of the ascending rows, and its rows, ascending."""
    cpu = trace.events.cpu[rows]
    counts = np.bincount(cpu)
    if np.count_nonzero(counts) <= _FEW_CPUS:
        for number in np.flatnonzero(counts).tolist():
            yield number, rows[cpu == number]
        return
    order = np.argsort(cpu, kind="stable")
    rows = rows[order]
    ends = np.cumsum(counts)
    for number, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        if end > start:
            yield number, rows[start:end]


def narrow(numbers: NDArray[np.integer], count: int) -> NDArray[np.integer]:
    """Return numbers below `count` in the type that numpy sorts by their digits, five times as fast, if they fit."""
    return numbers.astype(np.uint16) if count <= 1 << 16 else numbers


def last_before(trace: Trace, candidates: RowsByCpu, rows: NDArray[np.integer]) -> NDArray[np.uint32]:
    """Return for each of some events the last one among candidates before it on the same CPU.

    Args:
        trace: The events.
        candidates: Rows of the event table by CPU: `rows_by_cpu`, or what `by_cpu` yields.
        rows: (n,), rows of the event table, in any order.

    Returns:
        uint32 (n,), `NO_EVENT` for none.
    """
    out = np.full(len(rows), NO_EVENT, np.uint32)
    if not len(candidates) or not len(rows):
        return out
    wanted = trace.events.cpu[rows]
    for number, mine in candidates:
        at = np.flatnonzero(wanted == number)
        place = np.searchsorted(mine, rows[at].astype(np.uint32))
        out[at[place > 0]] = mine[place[place > 0] - 1]
    return out


def last_of_codes(trace: Trace, codes: tuple[int, ...], rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return for each of some events the last one of some codes before it on the same CPU.

    Args:
        trace: The events.
        codes: Which.
        rows: uint32 (n,), rows of the event table, in any order.

    Returns:
        uint32 (n,), `NO_EVENT` for none.
    """
    if not trace.code_counts[list(codes)].any():
        return np.full(len(rows), NO_EVENT, np.uint32)
    if len(rows) <= _FEW or not library.is_available():
        return last_before(trace, rows_by_cpu(trace, *codes), rows)
    table = np.zeros(CODE_COUNT, np.bool_)
    table[list(codes)] = True
    return last_in_table(trace, table, rows)


def last_in_table(trace: Trace, table: NDArray[np.bool_], rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return for each of some events the last one before it on the same CPU whose code is in a table.

    Args:
        trace: The events.
        table: bool (32768,), codes.
        rows: uint32 (n,), rows of the event table, in any order.

    Returns:
        uint32 (n,), `NO_EVENT` for none.
    """
    if not library.is_available():
        return last_before(trace, tuple(by_cpu(trace, rows_where(trace, table))), rows)
    return in_time_order(
        trace, rows, lambda ordered: links.last_before(trace.events.code, trace.events.cpu, table, ordered)
    )


def in_time_order(
    trace: Trace, rows: NDArray[np.uint32], of: Callable[[NDArray[np.uint32]], NDArray[np.uint32]]
) -> NDArray[np.uint32]:
    """Return a function of single events for events in any order, called with ascending ones.

    Args:
        trace: The events.
        rows: uint32 (n,), rows of the event table.
        of: The function.
    """
    if np.all(rows[1:] >= rows[:-1]):
        return of(rows)
    is_there = np.zeros(len(trace.events), np.bool_)
    is_there[rows] = True
    ordered = np.flatnonzero(is_there).astype(np.uint32)
    found = np.empty(len(trace.events), np.uint32)
    found[ordered] = of(ordered)
    return found[rows]


def thread_rows(trace: Trace, pids: NDArray[np.uint32], tids: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the thread rows of many (pid, tid), 0 where the trace does not know one."""
    keys = trace.threads.pid.astype(np.int64) << 32 | trace.threads.tid.astype(np.int64) & 0xFFFFFFFF
    order = np.argsort(keys)
    wanted = pids.view(np.int32).astype(np.int64) << 32 | tids.astype(np.int64)
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(keys[order][at] == wanted, order[at], 0)


def depth_within(step: NDArray[np.integer], part: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return how many entries are open after every step, int64; exits without an entry are ignored, parts begin at 0.

    Args:
        step: (n,), 1 for an entry, -1 for an exit, 0 for neither.
        part: (n,), ascending.
    """
    if not len(step):
        return np.empty(0, np.int64)
    raw = np.cumsum(step, dtype=np.int64)
    first = np.flatnonzero(np.concatenate(([True], part[1:] != part[:-1])))
    sizes = np.diff(first, append=len(step))
    raw -= np.repeat(np.concatenate(([0], raw))[first], sizes)
    lift = np.repeat(np.arange(len(first)), sizes) * (4 * len(step) + 4)
    lowest = np.minimum.accumulate(np.minimum(raw, 0) - lift) + lift
    return np.asarray(raw - np.minimum(lowest, 0), np.int64)
