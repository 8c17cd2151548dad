"""How long each thread was in each state: the intervals of the lanes, added up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Basis
from satview.analysis.times.by_key import largest_by, sum_by
from satview.analysis.times.scope import Scope
from satview.analysis.times.walk import walk
from satview.base.column_arrays import numbers_of
from satview.core.statistics import STATE_SUMS
from satview.events import wire
from satview.events.states import ABSENT, DEAD, READY, RUNNING, UNKNOWN, VALUE_COUNT
from satview.store.axis import files_of
from satview.store.tables import StateIndex
from satview.store.time_ranges import Cycles
from satview.store.trace import Trace
from satview.timeline.spans import NO_EVENT
from satview.timeline.state_lanes import contradicted_runs, idle_values, thread_spans, value_of_code

_BLOCK_ROWS: Final = 1 << 19  # state events looked at together: bounds the scratch, whatever the trace


@dataclass(frozen=True, slots=True)
class StateTimes:
    """One row per thread and state that it was in within the range, by thread, then by state.

    Attributes:
        thread: int64, (n,), row of the thread table.
        value: int64, state as lane value (`events.states`); `UNKNOWN` where the trace does not show it: before the
            first event of a thread that was there already, and while events were lost.
        count: int64, intervals, those that the range cuts included.
        total_cycles: int64, time in all. Those of a thread add up to the range, `ABSENT` included.
        longest_cycles: int64, the longest interval, cut at the range.
        longest_start_cycles: int64, when it begins.
        preemptions: int64, (threads,), intervals of READY straight after RUNNING that begin in the range: the thread
            was preempted, its time slice was over, or it yielded.
    """

    thread: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]
    total_cycles: Cycles
    longest_cycles: Cycles
    longest_start_cycles: Cycles
    preemptions: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.thread)

    def of_state(self, value: int, column: Cycles, threads: int) -> Cycles:
        """Return a column for one state, by thread: int64 (threads,), 0 for threads that were never in it."""
        out = np.zeros(threads, np.int64)
        mine = self.value == value
        out[self.thread[mine]] = column[mine]
        return out


@dataclass(frozen=True, slots=True)
class StateSpans:
    """Intervals of some threads, as their lanes have them, not cut; by thread, then in time order.

    Attributes:
        thread: int64, (n,), row of the thread table.
        value: uint8, state as lane value.
        start, end: int64, cycles.
        event: uint32, row of the event that began it; `NO_EVENT` if none did.
    """

    thread: NDArray[np.int64]
    value: NDArray[np.uint8]
    start: Cycles
    end: Cycles
    event: NDArray[np.uint32]


def state_times(scope: Scope) -> StateTimes:
    """Return the times of all threads but row 0, which is nobody."""
    scope.check()
    is_plain = scope.is_whole and not len(contradicted_runs(scope.trace)[0])
    if is_plain and (found := walk(scope.trace)) is not None:
        count, total, longest, start = (found.states[name] for name in STATE_SUMS)
        return StateTimes(found.thread, found.value, count, total, longest, start, found.preemptions)
    parts = []
    preemptions = np.zeros(len(scope.trace.threads), np.int64)
    for spans in state_spans(scope):
        preemptions += _preemptions(scope, spans)
        parts.append(_added_up(scope, spans))
    none = np.empty(0, np.int64)
    thread, value, count, total, longest, begin = (np.concatenate([none, *(p[i] for p in parts)]) for i in range(6))
    return StateTimes(thread, value, count, total, longest, begin, preemptions)


def state_spans(scope: Scope) -> Iterator[StateSpans]:
    """Yield the intervals of all threads but row 0, some threads at a time.

    Of a thread they are those that meet the window, whole, and some before and behind it; of what follows the window
    only the next change of state is looked at.

    Raises:
        Cancelled: The scope says so.
    """
    # In 8.0 CPUs lose events each for itself; what that does to a thread depends on where it ran.
    # Of several files on one axis each begins and ends when it does.
    # A run that its CPU contradicts ends within its interval.
    is_contradicted = len(contradicted_runs(scope.trace)[0]) > 0
    by_lane = scope.basis.loses_per_cpu or scope.trace.axis is not None or is_contradicted
    for spans in _lanes(scope) if by_lane else _blocks(scope):
        scope.check()
        yield spans


def _blocks(scope: Scope) -> Iterator[StateSpans]:
    """Yield the intervals of all threads, some at a time."""
    trace = scope.trace
    values = value_of_code(trace)
    tables = np.stack((values, idle_values(values)))
    states, count = _index(scope), len(trace.threads)
    start = states.start
    first = 1
    while first < count:
        last = int(np.searchsorted(start, start[first] + _BLOCK_ROWS, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield _spans_of(scope, states, first, last, tables)
        first = last


def _lanes(scope: Scope) -> Iterator[StateSpans]:
    """Yield the intervals of one thread after the other, as their lanes have them, while their file lasts."""
    trace, files = scope.trace, files_of(scope.trace)
    values = value_of_code(trace)
    of_idle = idle_values(values)
    for thread in range(1, len(trace.threads)):
        spans = thread_spans(trace, thread, of_idle if scope.basis.is_idle[thread] else values)
        start, end = spans.start_cycles, np.append(spans.start_cycles[1:], spans.end_cycles)
        inside = slice(None)
        if files is not None and (found := files.part_of_thread(thread)) is not None:
            window = found[0].window
            inside = slice(*np.searchsorted(start, (window.start, window.end)))
        value = spans.value[inside]
        yield StateSpans(np.full(len(value), thread), value, start[inside], end[inside], spans.event[inside])


def _index(scope: Scope) -> StateIndex:
    """Return the changes of state in the range, the two before and the one after it of every thread; no more matter.

    But of a thread that has none yet the first two, which show whether it exists.
    """
    states, rows = scope.trace.states, scope.rows
    if rows.start == 0 and rows.stop == len(scope.trace.events):
        return states
    begin, end = (_positions(states, bound) for bound in (rows.start, rows.stop))
    begin = np.maximum(begin - 2, states.start[:-1])
    end = np.maximum(np.minimum(end + 1, states.start[1:]), np.minimum(states.start[:-1] + 2, states.start[1:]))
    sizes = end - begin
    return StateIndex(states.event[numbers_of(begin, sizes)], np.append(0, np.cumsum(sizes)))


def _positions(states: StateIndex, bound: int) -> NDArray[np.int64]:
    """Return for each thread where its first change of state from a row of the event table on is."""
    earlier = np.append(0, np.cumsum(states.event < bound))
    return np.asarray(states.start[:-1] + earlier[states.start[1:]] - earlier[states.start[:-1]])


def _spans_of(scope: Scope, states: StateIndex, first: int, last: int, tables: NDArray[np.uint8]) -> StateSpans:
    """Return the intervals of the threads from `first` to before `last`: as `timeline.per_thread`, many at a time."""
    trace = scope.trace
    sizes = np.diff(states.start[first : last + 1])
    rows = states.event[states.start[first] : states.start[last]]
    thread = np.repeat(np.arange(first, last), sizes)
    code, time = trace.events.code[rows], trace.events.time_cycles[rows]
    value = tables[scope.basis.is_idle[thread].astype(np.intp), code]
    is_first = np.append(True, thread[1:] != thread[:-1])[: len(thread)]
    after_end = np.append(False, code[:-1] == wire.THREAD_DESTROY)[: len(code)] & ~is_first
    value[after_end & (value == DEAD)] = ABSENT
    heads = np.flatnonzero(is_first)
    before = _before(trace, heads, sizes[sizes > 0], time, code, value)
    in_dump = time[heads] <= trace.dump_end_cycles
    value[heads[in_dump]] = before[in_dump]  # the dump creates a thread again a moment before it shows its state
    silent = np.setdiff1d(np.arange(first, last), thread[heads])
    end = np.append(time[1:], trace.window.end)[: len(time)]
    end[np.append(is_first[1:], True)[: len(end)]] = trace.window.end
    known_until = _known_until(scope.basis, time, end, np.repeat(time[heads], sizes[sizes > 0]))
    at = np.flatnonzero(known_until < end)
    # More intervals: where events are missing, before the first event of a thread, and all of a thread without any.
    # Of two that go in at one position, that of the thread before comes first.
    position, of = np.append(at + 1, heads), np.append(at, heads)
    thread = np.append(np.insert(thread, position, thread[of]), silent)
    value = np.insert(value, position, np.append(np.full(len(at), UNKNOWN, np.uint8), before))
    value = np.append(value, np.full(len(silent), UNKNOWN, np.uint8))
    start = np.insert(time, position, np.append(known_until[at], np.full(len(heads), trace.window.start)))
    start = np.append(start, np.full(len(silent), trace.window.start))
    event = np.append(np.insert(rows, position, NO_EVENT), np.full(len(silent), NO_EVENT, np.uint32))
    # An event that only repeats the state, as the opening dump does, begins no interval.
    begins = np.append(True, (thread[1:] != thread[:-1]) | (value[1:] != value[:-1]))[: len(thread)]
    thread, value, start, event = thread[begins], value[begins], start[begins], event[begins]
    end = np.append(start[1:], trace.window.end)[: len(start)]
    end[np.append(thread[1:] != thread[:-1], True)[: len(end)]] = trace.window.end
    return StateSpans(thread, value, start, end, event)


def _known_until(basis: Basis, start: Cycles, end: Cycles, since: Cycles) -> Cycles:
    """Return how far the states that events show can be relied on: to the next one, or to where events are missing.

    As `timeline.state_lanes.forget_thread`: what the first event of a thread shows (at `since`) is never doubted at
    once, and a moment alone hides nothing.
    """
    is_long = basis.lost.end - basis.lost.start > 1
    if not is_long.any():
        return end
    at = np.searchsorted(basis.lost.end[is_long], start + (start == since), side="right")
    begin = np.append(basis.lost.start[is_long], np.iinfo(np.int64).max - 1)[at]
    return np.asarray(np.clip(np.maximum(begin, since) + 1, start, end))


def _before(
    trace: Trace,
    heads: NDArray[np.intp],
    sizes: Cycles,
    time: Cycles,
    code: NDArray[np.uint16],
    value: NDArray[np.uint8],
) -> NDArray[np.uint8]:
    """Return the state of threads before their first event: that of the opening dump, absent if created, or unknown."""
    is_created = code[heads] == wire.THREAD_CREATE
    from_dump = value[heads + (is_created & (sizes > 1))]
    return np.where(time[heads] <= trace.dump_end_cycles, from_dump, np.where(is_created, ABSENT, UNKNOWN)).astype(
        np.uint8
    )


def _preemptions(scope: Scope, spans: StateSpans) -> NDArray[np.int64]:
    ready = (spans.value[1:] == READY) & (spans.value[:-1] == RUNNING) & (spans.thread[1:] == spans.thread[:-1])
    ready &= (spans.start[1:] >= scope.window.start) & (spans.start[1:] < scope.window.end)
    return np.bincount(spans.thread[1:][ready], minlength=len(scope.trace.threads))


def _added_up(scope: Scope, spans: StateSpans) -> tuple[Cycles, ...]:
    """Return thread, value, count, total, longest and its start of every thread and state that occurs."""
    start, end = scope.cut(spans.start, spans.end)
    keep = np.flatnonzero(end > start)
    start, end = start[keep], end[keep]
    first = int(spans.thread.min())  # threads without any change of state are last, whatever their number
    key = (spans.thread[keep] - first) * VALUE_COUNT + spans.value[keep]
    count = (int(spans.thread.max()) - first + 1) * VALUE_COUNT
    intervals = np.bincount(key, minlength=count)
    total = sum_by(key, end - start, count)
    longest, position = largest_by(key, end - start, count)
    seen = np.flatnonzero(total)
    return (
        seen // VALUE_COUNT + first,
        seen % VALUE_COUNT,
        intervals[seen],
        total[seen],
        longest[seen],
        np.append(start, -1)[position[seen]],
    )
