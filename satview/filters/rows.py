"""Masks over the rows of the event table, computed in chunks, and tests by code and by thread."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled
from satview.events.wire import CODE_COUNT
from satview.store.tables import EventTable
from satview.store.trace import Trace

# Names of processes in rules and conditions.


LABEL: Final = re.compile(r"(?P<name>.+)\[(?P<numbered>[0-9]{1,10})\]|pid (?P<pid>[0-9]{1,10})")  # as views show them


def process_names(trace: Trace) -> dict[str, tuple[int, ...]]:
    """Return the pids of every process name of a trace; see `pids_by_name`."""
    return pids_by_name(zip(trace.processes.pid.tolist(), trace.processes.names, strict=True))


def pids_by_name(processes: Iterable[tuple[int, str]]) -> dict[str, tuple[int, ...]]:
    """Return the pids of every process name, with and without its folders; pid 0 and empty names are left out."""
    pids: dict[str, dict[int, None]] = {}
    for pid, name in processes:
        for spelling in (name, name.rsplit("/", 1)[-1]) if name and pid > 0 else ():
            pids.setdefault(spelling, {})[pid] = None
    return {name: tuple(of_name) for name, of_name in pids.items()}


CHUNK_ROWS: Final = 1 << 16  # fastest between 2^16 and 2^17, as temporary arrays stay in the second-level cache
Rows = slice | NDArray[np.integer]
Bools = NDArray[np.bool_]

_MOST_RUNS: Final = 3  # up to this number, comparisons (0.2 ns per event and run) are faster than a table (1 ns)


class TableTest:
    """A test that looks up codes or threads in a table of results, in the fastest form for the values that occur.

    A few runs of consecutive selected values (a class, one event, the threads of a process) become comparisons. Values
    that never occur may have either result, so that runs are as long as possible.

    Args:
        table: bool, result for each value.
        occurs: bool of the same shape, whether each value occurs in the column; None = any value may occur.
    """

    def __init__(self, table: Bools, occurs: Bools | None = None) -> None:
        values = np.arange(len(table)) if occurs is None else np.flatnonzero(occurs)
        results = table[values]
        self.is_true = bool(results.all())
        self.is_false = not results.any()
        edges = np.flatnonzero(results[1:] != results[:-1]) + 1
        bounds = np.concatenate(([0], edges, [len(values)]))
        runs = (
            [(int(values[a]), int(values[b - 1])) for a, b in itertools.pairwise(bounds) if b > a and results[a]]
            if len(edges) <= 2 * _MOST_RUNS
            else None
        )
        self._runs = runs if runs is not None and len(runs) <= _MOST_RUNS else None
        self._table = table

    def of(self, column: NDArray[np.unsignedinteger]) -> Bools:
        """Return the results for a column, bool (n,); the caller may change the array."""
        if self.is_true or self.is_false:
            return np.full(len(column), self.is_true)
        if self._runs is None:
            # With "clip", numpy need not check the indices, none of which is too large.
            return self._table.take(column, mode="clip")
        result = self._in_run(column, *self._runs[0])
        for run in self._runs[1:]:
            result |= self._in_run(column, *run)
        return result

    @staticmethod
    def _in_run(column: NDArray[np.unsignedinteger], low: int, high: int) -> Bools:
        if low == high:
            return np.asarray(column == low)
        # Below the run the difference wraps around to a large number, so one comparison does.
        return (column - column.dtype.type(low)) <= column.dtype.type(high - low)


@dataclass(frozen=True, slots=True)
class EventMask:
    """A selection of events and of threads; an event passes if both its code and its thread are selected.

    Attributes:
        codes: bool (32768,), by internal class and event.
        threads: bool (threads,), by row of the thread table; row 0 = not known.
    """

    codes: Bools
    threads: Bools

    @classmethod
    def everything(cls, trace: Trace) -> EventMask:
        """Return the mask that every event of a trace passes."""
        return cls(np.ones(CODE_COUNT, np.bool_), np.ones(len(trace.threads), np.bool_))

    def test(self, events: EventTable, occurs: Bools | None = None) -> Callable[[Rows], Bools]:
        """Return a function from rows to bool (n,), whether each passes; make it once and call it for every chunk.

        Args:
            events: The events.
            occurs: Codes that occur (`trace.code_counts > 0`), which makes some masks cheaper; None = any code may.
        """
        by_code, by_thread = TableTest(self.codes, occurs), TableTest(self.threads)

        def passes(rows: Rows) -> Bools:
            result = by_code.of(events.code[rows])
            if not by_thread.is_true and not by_code.is_false:
                result &= by_thread.of(events.thread[rows])
            return result

        return passes


def chunks(count: int, size: int = CHUNK_ROWS) -> Iterator[slice]:
    """Yield slices of at most `size` rows that together cover `count` rows."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def event_mask(events: EventTable, mask: EventMask, cancelled: Callable[[], bool] | None = None) -> Bools:
    """Return for each event whether it passes a selection, bool (events,).

    Raises:
        Cancelled: `cancelled()` returned True.
    """
    passes = np.empty(len(events), np.bool_)
    test = mask.test(events)
    for part in chunks(len(events)):
        if cancelled is not None and cancelled():
            raise Cancelled("the filter was stopped")
        passes[part] = test(part)
    return passes


def rows(events: EventTable, mask: EventMask, cancelled: Callable[[], bool] | None = None) -> NDArray[np.uint32]:
    """Return the rows of the events that pass a selection, uint32, ascending.

    Raises:
        Cancelled: `cancelled()` returned True.
    """
    return rows_of(event_mask(events, mask, cancelled))


def rows_of(passes: Bools) -> NDArray[np.uint32]:
    """Return the rows for which a mask is true, uint32, ascending; works in chunks to save memory."""
    parts = [np.flatnonzero(passes[part]).astype(np.uint32) + np.uint32(part.start) for part in chunks(len(passes))]
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)
