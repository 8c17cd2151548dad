"""Columns that are computed from several events, and masks over the rows of the event table."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled
from satview.events.states import NOT_A_STATE
from satview.events.wire import CODE_COUNT, THREAD_CREATE
from satview.filters.external import EventContext
from satview.linkage.calls import partners
from satview.linkage.links import NO_EVENT, OPEN
from satview.linkage.waits import state_ends
from satview.store.axis import last_rows
from satview.store.tables import EventTable
from satview.store.trace import Trace

# Columns that are computed from several events: durations, state lengths, priorities; and events one by one.


UNKNOWN: Final = -1
_Rows = NDArray[np.integer]
_PRIORITY_WORD: Final = 2  # payload word in a wide thread state event: pid, tid, priority, policy
_BLOCK: Final = 1 << 16
_MANY: Final = 8  # below one of this many state events, priorities are read without building the table
_SOME: Final = 1 << 8  # state events that are sampled first for whether priorities are logged


class DerivedColumns(Protocol):
    """Source of values that are computed from several events. Methods take event rows and return int64 (len(rows),)."""

    def duration_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """Return the length of the kernel call or interrupt that each event enters or leaves; -1 = none, or not known.

        The length is not known where events are missing between entry and exit.

        Returns:
            int64 (len(rows),), nanoseconds.
        """

    def state_length_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """Return how long the thread stays in the state that each event begins, at most to the end of the trace.

        -1 for events that begin no state, and where events are missing before the thread's next state event.

        Returns:
            int64 (len(rows),), nanoseconds.
        """

    def priority(self, rows: _Rows) -> NDArray[np.int64]:
        """Return the priority of each event's thread as last logged wide, int64 (len(rows),); -1 = not known.

        If the event that creates a thread shows no priority, the thread's next state event decides.
        """

    def latency_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """Return the time between the two events that a trigger compares (`rules.triggers`); -1 = not known.

        Returns:
            int64 (len(rows),), nanoseconds.
        """


class TraceDerivedColumns:
    """Derived columns computed from a trace and its links; priorities are read at the first use and cached."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def duration_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """See `DerivedColumns.duration_ns`.

        Returns:
            int64 (len(rows),), nanoseconds.
        """
        return self._lengths_ns(rows, partners(self._trace)[rows])

    def state_length_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """See `DerivedColumns.state_length_ns`.

        Returns:
            int64 (len(rows),), nanoseconds.
        """
        ends = state_ends(self._trace)[rows]
        return self._lengths_ns(rows, np.where(ends == OPEN, last_rows(self._trace, rows), ends))

    def priority(self, rows: _Rows) -> NDArray[np.int64]:
        """See `DerivedColumns.priority`.

        Returns:
            int64 (len(rows),).
        """
        if "_priorities" not in self.__dict__ and len(rows) * _MANY < len(self._trace.states.event):
            own = self._own_priorities(rows)
            if own is not None:
                return own
        keys, values = self._priorities
        if not len(keys):
            return np.full(len(rows), UNKNOWN, np.int64)
        thread = self._trace.events.thread[rows].astype(np.int64)
        position = np.searchsorted(keys, thread << 32 | rows.astype(np.int64), side="right") - 1
        known = (position >= 0) & (keys[position] >> 32 == thread) & (thread != 0)
        # Up to 6.5 the creation of a thread shows no priority, but the state event that follows at once does.
        created = np.flatnonzero(~known & (thread != 0) & (self._trace.events.code[rows] == THREAD_CREATE))
        position[created] = np.minimum(position[created] + 1, len(keys) - 1)
        known[created] = keys[position[created]] >> 32 == thread[created]
        return np.where(known, values[position], UNKNOWN)

    def _own_priorities(self, rows: _Rows) -> NDArray[np.int64] | None:
        """Return the priorities that events log, int64 (n,); None unless all of them are wide thread state events."""
        events = self._trace.events
        codes = events.code[rows]
        is_own = (events.slot_count[rows] >= 2) & (events.thread[rows] != 0)
        is_own &= self._trace.catalogue.state_value_of_code[codes] != NOT_A_STATE
        if not is_own.all():
            return None
        return self._trace.payloads.column(rows, _PRIORITY_WORD).astype(np.int64)

    def latency_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """Return -1 for every event, as only triggers have latencies; see `DerivedColumns.latency_ns`.

        Returns:
            int64 (len(rows),), nanoseconds.
        """
        return np.full(len(rows), UNKNOWN, np.int64)

    def has_priorities(self) -> bool:
        """Return whether any thread event shows a priority."""
        return self._trace.cached("links.has_priorities", _has_priorities)

    def make_ready(self) -> None:
        """Build the links now, so that the first call for a duration or length is fast."""
        _ = partners(self._trace), state_ends(self._trace)

    def _lengths_ns(self, rows: _Rows, others: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the time from each event to that in `others`, ns, int64 (n,); -1 where there is `NO_EVENT`."""
        times, clock = self._trace.events.time_cycles, self._trace.clock
        result = np.full(len(rows), UNKNOWN, np.int64)
        known = np.flatnonzero(others != NO_EVENT)
        cycles = np.abs(times[others[known]] - times[rows[known]])
        result[known] = clock.durations_ns(cycles)
        return result

    @cached_property
    def _priorities(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return logged_priorities(self._trace)


def _has_priorities(trace: Trace) -> bool:
    """Return whether any thread event shows a priority; stops at the first one."""
    events, states = trace.events, trace.states.event
    some = states[:: max(len(states) // _SOME, 1)]  # of all threads: the first may be idle ones, of priority 0
    for rows in (some, *(states[start : start + _BLOCK] for start in range(0, len(states), _BLOCK))):
        wide = rows[(events.slot_count[rows] >= 2) & (events.thread[rows] != 0)]
        if trace.payloads.column(wide, _PRIORITY_WORD).any():
            return True
    return False


def logged_priorities(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the priorities that wide thread events log.

    Returns:
        int64 (n,), row of the thread << 32 | row of the event, ascending; and int64 (n,), the priorities.
    """
    events = trace.events
    rows = trace.states.event
    rows = rows[events.slot_count[rows] >= 2]
    keys = events.thread[rows].astype(np.int64) << 32 | rows.astype(np.int64)
    values = trace.payloads.column(rows, _PRIORITY_WORD).astype(np.int64)
    order = np.argsort(keys)
    return keys[order], values[order]


def state_rows(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the rows of all thread state events, uint32 (n,), by thread and row, and their threads, int64 (n,)."""
    rows = trace.states.event
    owner = np.repeat(np.arange(len(trace.threads)), np.diff(trace.states.start))
    # The index also holds creation and end, which are no states.
    is_state = trace.catalogue.state_value_of_code[trace.events.code[rows]] != NOT_A_STATE
    return rows[is_state], owner[is_state]


def event_contexts(trace: Trace, rows: _Rows, derived: DerivedColumns | None = None) -> Iterator[EventContext]:
    """Yield each event with all its values as an `EventContext`, in the order of `rows`, for handlers and tests."""
    derived = derived or TraceDerivedColumns(trace)
    events, threads, processes = trace.events, trace.threads, trace.processes
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        times = trace.clock.ns_array(events.time_cycles[part]).tolist()
        columns = zip(
            part.tolist(),
            events.code[part].tolist(),
            events.thread[part].tolist(),
            events.cpu[part].tolist(),
            times,
            derived.priority(part).tolist(),
            derived.duration_ns(part).tolist(),
            derived.state_length_ns(part).tolist(),
            strict=True,
        )
        for row, code, thread, cpu, time_ns, priority, duration, length in columns:
            yield EventContext(
                code,
                int(threads.pid[thread]),
                int(threads.tid[thread]),
                tuple(trace.payloads.words(row).tolist()),
                cpu,
                time_ns,
                None,
                processes.names[int(threads.process[thread])],
                threads.names[thread],
                None if priority < 0 else priority,
                None if duration < 0 else duration,
                None if length < 0 else length,
                trace.payloads.raw(row),
                trace.byte_order == "little",
            )


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
    that never occur (bool, as the table; None = any may) may have either result, so that runs are as long as possible.
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
        """Return a function that takes rows and returns which events pass, bool (n,); one function serves all chunks.

        Codes that do not occur (`trace.code_counts > 0`) make some masks cheaper; None = any code may occur.
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
    """Return for each event whether it passes a selection, bool (events,); Cancelled if `cancelled()` returned True."""
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
