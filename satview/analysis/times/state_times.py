"""Time of each thread in each state: sums of the intervals of the lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Basis, Mask, Scope, largest_by, percentiles_by, sum_by
from satview.base.column_arrays import ColumnTable, numbers_of
from satview.base.time import TimeWindow
from satview.core import statistics
from satview.events import wire
from satview.events.spec import Release
from satview.events.states import (
    ABSENT,
    DEAD,
    FIRST_PROCESS,
    NOT_A_STATE,
    READY,
    RUNNING,
    STEP_OF_CODE,
    UNKNOWN,
    VALUE_COUNT,
)
from satview.store.axis import AxisPart, files_of, files_of_cpus, files_of_threads
from satview.store.tables import StateIndex
from satview.store.time_ranges import EVERY_CPU, Cycles, TimeRanges, idle_threads, losses, losses_of
from satview.store.trace import Trace, cached_with_trace
from satview.timeline.spans import NO_EVENT
from satview.timeline.state_lanes import contradicted_runs, idle_values, thread_spans, value_of_code

# Sums over a whole trace, from one pass of the compiled core over its events.


Sum = dict[str, NDArray[np.int64]]
_MOST_THREADS: Final = 1 << 16  # each has a sum for every state and CPU: bounds the memory, whatever the trace


@dataclass(frozen=True, slots=True)
class CpuSums:
    """Sums of CPU use, by thread and by CPU.

    Attributes:
        threads: Sums by their names in `statistics.RUN_SUMS`, int64 (threads,).
        cpus: Sums by their names in `statistics.CPU_SUMS`, int64 (cpus,).
        busiest: int64 (cpus,), the thread that had most time on each CPU, 0 = none.
        busiest_cycles: int64 (cpus,), time of that thread.
        works: Number of runs of threads, without idle threads.
        overlaps: Number of these runs that begin while, by the events, another thread still has the CPU; runs before
            which events are missing do not count.
    """

    threads: Sum
    cpus: Sum
    busiest: NDArray[np.int64]
    busiest_cycles: Cycles
    works: int
    overlaps: int


@dataclass(frozen=True, slots=True)
class Walk:
    """Sums of states and of CPU use over a whole trace.

    Attributes:
        thread, value: int64 (n,), rows of the thread table, and lane values of the states that the threads were in.
        states: Sums of each thread and state by their names in `statistics.STATE_SUMS`, int64 (n,).
        preemptions: int64 (threads,).
        cpus: CPU use; None if it needs more than the state events.
    """

    thread: NDArray[np.int64]
    value: NDArray[np.int64]
    states: Sum
    preemptions: NDArray[np.int64]
    cpus: CpuSums | None


@cached_with_trace("analysis.walk")
def walk(trace: Trace) -> Walk | None:
    """Return the times of threads and CPUs in a whole trace, added up in one pass over its events.

    The result is None if one pass is not enough, as when a single CPU lost events: lanes must be added up then.
    """
    is_plain = trace.axis is None and trace.pairs is None and trace.release is not Release.UNIXWARE
    is_small = len(trace.events) > 0 and len(trace.threads) <= _MOST_THREADS
    if not (is_plain and is_small) or np.any(losses(trace)[:, 2] != EVERY_CPU):
        return None
    events, cut = trace.events, losses(trace)[:, 0]
    lost = TimeRanges.of_rows(losses(trace))
    columns = events.code, events.thread, events.cpu, events.time_cycles
    sums = statistics.scheduling(_rules(trace), *columns, idle_threads(trace), trace.cpu_count,
                      statistics.Missing(cut, lost.start, lost.end))  # fmt: skip
    # If the pass and the index of states count different events for a thread, lanes are summed, which use the index.
    if sums is None or not np.array_equal(sums.events, np.diff(trace.states.start)):
        return None
    sums.states[0] = 0  # row 0 is nobody
    thread, value = np.nonzero(sums.states[..., statistics.STATE_SUMS.index("total")])
    runs = _named(statistics.RUN_SUMS, sums.runs)
    states = _named(statistics.STATE_SUMS, sums.states[thread, value])
    return Walk(thread, value, states, runs["preemptions"], _cpu_sums(trace, runs, sums))


def _cpu_sums(trace: Trace, runs: Sum, sums: statistics.Sums) -> CpuSums | None:
    cpus = _named(statistics.CPU_SUMS, sums.cpus)
    is_silent = cpus["events"] == 0
    if is_silent.any() and np.bincount(trace.events.cpu, minlength=len(is_silent))[: len(is_silent)][is_silent].any():
        return None  # kernel calls may show when such a CPU was busy
    busiest = np.argmax(sums.busy, axis=1)
    most = sums.busy[np.arange(len(busiest)), busiest]
    works, overlaps = sums.known.tolist()
    return CpuSums(runs, cpus, np.where(most < 0, 0, busiest), np.maximum(most, 0), works, overlaps)


def _rules(trace: Trace) -> statistics.Rules:
    states, values = trace.catalogue.state_value_of_code, value_of_code(trace)
    kind = (states != NOT_A_STATE) * np.uint8(statistics.IS_STATE)
    kind[[wire.THREAD_CREATE, wire.THREAD_DESTROY]] = statistics.IS_STATE
    kind[states == RUNNING] |= statistics.IS_RUN
    kind[STEP_OF_CODE > 0] = statistics.IS_ENTRY
    kind[STEP_OF_CODE < 0] = statistics.IS_EXIT
    return statistics.Rules(
        kind, np.stack((values, idle_values(values))), wire.THREAD_DESTROY, wire.THREAD_CREATE, RUNNING, READY, DEAD,
        ABSENT, UNKNOWN, trace.dump_end_cycles, trace.window.start, trace.window.end, FIRST_PROCESS,
    )  # fmt: skip


def _named(names: tuple[str, ...], sums: NDArray[np.int64]) -> Sum:
    """Return the columns of the array `sums` by name; each column is copied to memory of its own."""
    return dict(zip(names, np.ascontiguousarray(sums.T), strict=True))


_BLOCK_ROWS: Final = 1 << 19  # state events looked at together: bounds the scratch, whatever the trace


@dataclass(frozen=True, slots=True)
class StateTimes:
    """One row per thread and state that the thread was in within the range, by thread, then by state.

    Attributes:
        thread: int64, (n,), row of the thread table.
        value: int64, state as lane value (`events.states`); `UNKNOWN` before the first event of a thread that existed
            already, and while events were lost.
        count: int64, intervals, including those cut by the range.
        total_cycles: int64, total time. The times of a thread add up to the range, `ABSENT` included.
        longest_cycles: int64, the longest interval, cut at the range.
        longest_start_cycles: int64, when that interval begins.
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
        is_of_value = self.value == value
        out[self.thread[is_of_value]] = column[is_of_value]
        return out


@dataclass(frozen=True, slots=True)
class StateSpans:
    """Intervals of some threads as on their lanes, not cut; by thread, then in time order.

    Attributes:
        thread: int64, (n,), row of the thread table.
        value: uint8, state as lane value.
        start, end: int64, cycles.
        event: uint32, row of the event that began the interval; `NO_EVENT` if none did.
    """

    thread: NDArray[np.int64]
    value: NDArray[np.uint8]
    start: Cycles
    end: Cycles
    event: NDArray[np.uint32]


def state_times(scope: Scope) -> StateTimes:
    """Return how long and how often each thread was in each state; row 0, which is no thread, is left out.

    Raises `Cancelled` if the caller of `scope` has cancelled.
    """
    scope.check()
    is_plain = scope.is_whole and not len(contradicted_runs(scope.trace)[0])
    if is_plain and (walked := walk(scope.trace)) is not None:
        count, total, longest, start = (walked.states[name] for name in statistics.STATE_SUMS)
        return StateTimes(walked.thread, walked.value, count, total, longest, start, walked.preemptions)
    parts = []
    preemptions = np.zeros(len(scope.trace.threads), np.int64)
    for spans in state_spans(scope):
        preemptions += _preemptions(scope, spans)
        parts.append(_added_up(scope, spans))
    none = np.empty(0, np.int64)
    thread, value, count, total, longest, begin = (np.concatenate([none, *(p[i] for p in parts)]) for i in range(6))
    return StateTimes(thread, value, count, total, longest, begin, preemptions)


def state_spans(scope: Scope) -> Iterator[StateSpans]:
    """Yield the state intervals of all threads except row 0, in blocks of complete threads.

    Every interval that overlaps the range is included, at its full length, and so are some intervals before and after
    the range. After the range, only the next change of state is examined.

    Raises:
        Cancelled: The scope was cancelled.
    """
    if (files := files_of(scope.trace)) is not None:
        for part in files.parts:
            for own in state_spans(_scope_in_file(scope, part)):
                yield StateSpans(part.threads[own.thread], own.value, part.cycles(own.start), part.cycles(own.end),
                                 part.axis_rows(own.event).astype(np.uint32))  # fmt: skip
        return
    # Lanes are needed where CPUs lose events separately (8.0), and where a CPU contradicts a run, which then ends
    # within its interval.
    is_contradicted = len(contradicted_runs(scope.trace)[0]) > 0
    for spans in _lanes(scope) if scope.basis.loses_per_cpu or is_contradicted else _blocks(scope):
        scope.check()
        yield spans


def _scope_in_file(scope: Scope, part: AxisPart) -> Scope:
    """Return the part of a range that a file covers, in cycles of the file; one cycle long if the file covers none."""
    whole = part.trace.window
    start, end = (part.own_cycles(cycles) for cycles in (scope.window.start, scope.window.end))
    start = min(max(start, whole.start), whole.end - 1)
    window = TimeWindow(start, max(min(end, whole.end), start + 1))
    return Scope(part.trace, window, None, Basis(part.trace), scope.is_cancelled)


def _blocks(scope: Scope) -> Iterator[StateSpans]:
    """Yield the state intervals of all threads, in blocks of complete threads with about `_BLOCK_ROWS` intervals."""
    trace = scope.trace
    values = value_of_code(trace)
    tables = np.stack((values, idle_values(values)))
    states, count = _index(scope), len(trace.threads)
    start = states.start
    begin = 1
    while begin < count:
        stop = int(np.searchsorted(start, start[begin] + _BLOCK_ROWS, side="right")) - 1
        stop = min(max(stop, begin + 1), count)
        yield _spans_of(scope, states, begin, stop, tables)
        begin = stop


def _lanes(scope: Scope) -> Iterator[StateSpans]:
    """Yield the intervals of each thread as on its lane, one thread after the other."""
    trace = scope.trace
    values = value_of_code(trace)
    of_idle = idle_values(values)
    for thread in range(1, len(trace.threads)):
        spans = thread_spans(trace, thread, of_idle if scope.basis.is_idle[thread] else values)
        start, end = spans.start_cycles, np.append(spans.start_cycles[1:], spans.end_cycles)
        yield StateSpans(np.full(len(start), thread), spans.value, start, end, spans.event)


def _index(scope: Scope) -> StateIndex:
    """Return each thread's changes of state in the range, with its last two before and its first one after the range.

    A thread without changes before the end of the range has its first two, which show whether it exists.
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
    """Return the index in `states.event` of each thread's first event at or after row `bound`, int64 (threads,)."""
    earlier = np.append(0, np.cumsum(states.event < bound))
    return np.asarray(states.start[:-1] + earlier[states.start[1:]] - earlier[states.start[:-1]])


def _spans_of(scope: Scope, states: StateIndex, begin: int, stop: int, tables: NDArray[np.uint8]) -> StateSpans:
    """Return the intervals of threads `begin` to `stop`, as on their lanes, computed together.

    `tables`, uint8 (2, codes), has the lane value that an event code begins: first for normal threads, then for idle
    ones.
    """
    trace = scope.trace
    sizes = np.diff(states.start[begin : stop + 1])
    rows = states.event[states.start[begin] : states.start[stop]]
    thread = np.repeat(np.arange(begin, stop), sizes)
    code, time = trace.events.code[rows], trace.events.time_cycles[rows]
    value = tables[scope.basis.is_idle[thread].astype(np.intp), code]
    is_first = np.append(True, thread[1:] != thread[:-1])[: len(thread)]
    after_end = np.append(False, code[:-1] == wire.THREAD_DESTROY)[: len(code)] & ~is_first
    value[after_end & (value == DEAD)] = ABSENT
    heads = np.flatnonzero(is_first)
    before = _before(trace, heads, sizes[sizes > 0], time, code, value)
    in_dump = time[heads] <= trace.dump_end_cycles
    value[heads[in_dump]] = before[in_dump]  # the dump creates a thread again a moment before it shows its state
    silent = np.setdiff1d(np.arange(begin, stop), thread[heads])
    end = np.append(time[1:], trace.window.end)[: len(time)]
    end[np.append(is_first[1:], True)[: len(end)]] = trace.window.end
    known_until = _known_until(scope.basis, time, end, np.repeat(time[heads], sizes[sizes > 0]))
    unsure = np.flatnonzero(known_until < end)
    # Add intervals where events are missing, before the first event of a thread, and for threads without events.
    # Of two that are inserted at one position, the one of the thread before comes first.
    position, of = np.append(unsure + 1, heads), np.append(unsure, heads)
    thread = np.append(np.insert(thread, position, thread[of]), silent)
    value = np.insert(value, position, np.append(np.full(len(unsure), UNKNOWN, np.uint8), before))
    value = np.append(value, np.full(len(silent), UNKNOWN, np.uint8))
    start = np.insert(time, position, np.append(known_until[unsure], np.full(len(heads), trace.window.start)))
    start = np.append(start, np.full(len(silent), trace.window.start))
    event = np.append(np.insert(rows, position, NO_EVENT), np.full(len(silent), NO_EVENT, np.uint32))
    # An event that only repeats the state, as the opening dump does, begins no interval.
    begins = np.append(True, (thread[1:] != thread[:-1]) | (value[1:] != value[:-1]))[: len(thread)]
    thread, value, start, event = thread[begins], value[begins], start[begins], event[begins]
    end = np.append(start[1:], trace.window.end)[: len(start)]
    end[np.append(thread[1:] != thread[:-1], True)[: len(end)]] = trace.window.end
    return StateSpans(thread, value, start, end, event)


def _known_until(basis: Basis, start: Cycles, end: Cycles, since: Cycles) -> Cycles:
    """Return the time up to which the state that each event shows is certain, cycles: the next state event, or loss.

    As in `timeline.state_lanes.forget_thread`, the state that a thread's first event (at `since`) shows is never
    unknown at once, and a loss of zero length hides nothing.
    """
    is_long = basis.lost.end - basis.lost.start > 1
    if not is_long.any():
        return end
    position = np.searchsorted(basis.lost.end[is_long], start + (start == since), side="right")
    begin = np.append(basis.lost.start[is_long], np.iinfo(np.int64).max - 1)[position]
    return np.asarray(np.clip(np.maximum(begin, since) + 1, start, end))


def _before(
    trace: Trace,
    heads: NDArray[np.intp],
    sizes: Cycles,
    time: Cycles,
    code: NDArray[np.uint16],
    value: NDArray[np.uint8],
) -> NDArray[np.uint8]:
    """Return the state of each thread before its first event, at `heads` of the other columns, as lane value.

    The state is the one in the opening dump. Without a dump of the thread it is absent if the thread was created later,
    else unknown.
    """
    is_created = code[heads] == wire.THREAD_CREATE
    from_dump = value[heads + (is_created & (sizes > 1))]
    return np.where(time[heads] <= trace.dump_end_cycles, from_dump, np.where(is_created, ABSENT, UNKNOWN)).astype(
        np.uint8
    )


def missing_in_dump(trace: Trace) -> Mask:
    """Return which threads are unknown after the opening dump, bool (threads,): not in it, and not created later.

    Threads that are first seen after events were lost are not included: the loss may hide their creation.
    """
    states, lost = trace.states, losses(trace)[:, 0]
    has_events = np.diff(states.start) > 0
    heads = states.event[states.start[:-1][has_events]]
    since = np.full(len(trace.threads), trace.window.end)
    since[has_events] = trace.events.time_cycles[heads]
    missing: Mask = (since > trace.dump_end_cycles + 1) & (since <= lost.min(initial=trace.window.end))
    missing[has_events] &= trace.events.code[heads] != wire.THREAD_CREATE
    missing[0] = False
    return missing


def _preemptions(scope: Scope, spans: StateSpans) -> NDArray[np.int64]:
    ready = (spans.value[1:] == READY) & (spans.value[:-1] == RUNNING) & (spans.thread[1:] == spans.thread[:-1])
    ready &= (spans.start[1:] >= scope.window.start) & (spans.start[1:] < scope.window.end)
    return np.bincount(spans.thread[1:][ready], minlength=len(scope.trace.threads))


def _added_up(scope: Scope, spans: StateSpans) -> tuple[Cycles, ...]:
    """Return thread, state, number of intervals, total, longest and its start within the range, by thread and state."""
    start, end = scope.cut(spans.start, spans.end)
    keep = np.flatnonzero(end > start)
    start, end = start[keep], end[keep]
    lowest = int(spans.thread.min())  # threads without any change of state are last, whatever their number
    key = (spans.thread[keep] - lowest) * VALUE_COUNT + spans.value[keep]
    count = (int(spans.thread.max()) - lowest + 1) * VALUE_COUNT
    intervals = np.bincount(key, minlength=count)
    total = sum_by(key, end - start, count)
    longest, position = largest_by(key, end - start, count)
    seen = np.flatnonzero(total)
    return (
        seen // VALUE_COUNT + lowest,
        seen % VALUE_COUNT,
        intervals[seen],
        total[seen],
        longest[seen],
        np.append(start, -1)[position[seen]],
    )


# Lengths of single intervals of states, for percentiles by thread and over all threads.


SHARES: Final = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class StateLengths(ColumnTable):
    """Every interval of a state that meets a range, cut at the range; by thread, then in time order.

    Attributes:
        thread: int64, (n,), row of the thread table.
        value: uint8, state as lane value.
        start: int64, cycles.
        cycles: int64, length, above 0.
    """

    thread: NDArray[np.int64]
    value: NDArray[np.uint8]
    start: Cycles
    cycles: Cycles

    def percentiles_of(self, states: StateTimes) -> tuple[Cycles, ...]:
        """Return for each of `SHARES` the length that this share of intervals does not exceed, cycles, int64 (rows,).

        Args:
            states: The same intervals added up by thread and state; a value is returned for each of these rows.
        """
        keys = np.searchsorted(states.thread * VALUE_COUNT + states.value, self.thread * VALUE_COUNT + self.value)
        return percentiles_by(keys, self.cycles, len(states), SHARES)


def state_lengths(scope: Scope) -> StateLengths:
    """Return the intervals of all threads except row 0, which is no thread."""
    none = np.empty(0, np.int64)
    parts = [StateLengths(none, none.astype(np.uint8), none, none)]
    for spans in state_spans(scope):
        start, end = scope.cut(spans.start, spans.end)
        keep = np.flatnonzero(end > start)
        parts.append(StateLengths(spans.thread[keep], spans.value[keep], start[keep], (end - start)[keep]))
    return StateLengths.concatenated(parts)


# Which intervals the trace holds from their start to their end.


def states_are_cut(trace: Trace, spans: StateSpans, some: NDArray[np.intp] | None = None) -> Mask:
    """Return which state intervals lack their start or end in the trace, bool (n,).

    Args:
        trace: The trace.
        spans: State intervals of threads.
        some: (n,), the queried intervals; None = all.
    """
    some = np.arange(len(spans.value)) if some is None else some
    after = np.minimum(some + 1, len(spans.value) - 1)
    is_cut = _is_cut(trace, spans.start[some], spans.end[some], files_of_threads(trace, spans.thread[some]))
    return np.asarray(is_cut | (spans.thread[after] == spans.thread[some]) & (spans.value[after] == UNKNOWN))


def runs_are_cut(trace: Trace, cpu: NDArray[np.uint8], start: Cycles, end: Cycles) -> Mask:
    """Return which runs of threads lack their start or end in the trace, bool (n,).

    Args:
        trace: The trace.
        cpu: uint8 (n,), CPU of each run.
        start: int64 (n,), start of each run, cycles.
        end: int64 (n,), end of each run, cycles.
    """
    lost, is_cut = losses(trace), _is_cut(trace, start, end, files_of_cpus(trace, cpu))
    for number in range(trace.cpu_count if len(lost) else 0):
        on_cpu = cpu == number
        # A run that a loss cuts ends a cycle after the last event before it.
        is_cut[on_cpu] |= TimeRanges.of_rows(losses_of(lost, number)).meet(end[on_cpu] - 1, end[on_cpu])
    return is_cut


def _is_cut(trace: Trace, start: Cycles, end: Cycles, file: NDArray[np.intp]) -> Mask:
    """Return which intervals begin before their file, end after it, or are only in its opening dump, bool (n,)."""
    files = files_of(trace)
    known = [(max(trace.window.start, trace.dump_end_cycles), trace.window.end)]
    if files is not None:
        dumped = [int(part.cycles(np.array(part.trace.dump_end_cycles))) for part in files.parts]
        known = [(max(part.window.start, cycles), part.window.end)
                 for part, cycles in zip(files.parts, dumped, strict=True)]  # fmt: skip
    since, until = np.array(known, np.int64)[file].T
    return np.asarray((start <= since) | (end >= until))


# Activations of threads: from the end of a wait to the start of the next; they have periods and response times.


@dataclass(frozen=True, slots=True)
class Activations(ColumnTable):
    """Times in which a thread was READY or RUNNING without a wait, by thread, then in time order; columns (n,).

    Idle threads have none.

    Attributes:
        thread: int64, row of the thread table.
        start: int64, cycles, when the thread became ready, or ran at once.
        end: int64, cycles, when the thread began to wait again, or ended.
        running_cycles: int64, the part of the activation in which the thread ran.
        period_cycles: int64, from the start of the thread's activation before; -1 without one, or where the state of
            the thread is unknown in between.
        event: uint32, row of the event that begins the activation; `NO_EVENT` if none did.
        is_cut: bool, the trace lacks the start or end of the activation.
    """

    thread: NDArray[np.int64]
    start: Cycles
    end: Cycles
    running_cycles: Cycles
    period_cycles: Cycles
    event: NDArray[np.uint32]
    is_cut: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.thread)


def activations(scope: Scope) -> Activations:
    """Return all activations of threads that overlap the range, and some before and after the range; none is cut."""
    none = np.empty(0, np.int64)
    nothing = Activations(none, none, none, none, none, none.astype(np.uint32), none.astype(np.bool_))
    return Activations.concatenated([nothing, *(_activations_of(scope, spans) for spans in state_spans(scope))])


def _activations_of(scope: Scope, spans: StateSpans) -> Activations:
    value, thread = spans.value, spans.thread
    is_active = (value == READY) | (value == RUNNING)
    is_first = np.append(True, thread[1:] != thread[:-1])[: len(thread)]
    begins = np.flatnonzero(is_active & (is_first | ~np.append(False, is_active[:-1])[: len(thread)]))
    is_last = np.append(is_first[1:], True)[: len(thread)]
    ends = np.flatnonzero(is_active & (is_last | ~np.append(is_active[1:], False)[: len(thread)]))
    number = np.cumsum(np.bincount(begins, minlength=len(thread))) - 1
    running = np.flatnonzero(value == RUNNING)
    length = sum_by(number[running], (spans.end - spans.start)[running], len(begins))
    is_cut = states_are_cut(scope.trace, spans)
    is_unknown = is_first | (np.append(UNKNOWN, value[:-1])[: len(thread)] == UNKNOWN)
    unknown_so_far = np.cumsum((value == UNKNOWN) | is_first)
    start, who = spans.start[begins], thread[begins]
    period = np.full(len(begins), -1, np.int64)
    follows = np.flatnonzero(unknown_so_far[begins[1:]] == unknown_so_far[begins[:-1]]) + 1
    follows = follows[~(is_cut | is_unknown)[begins[follows - 1]]]
    period[follows] = start[follows] - start[follows - 1]
    return Activations(
        who, start, spans.end[ends], length, period, spans.event[begins],
        np.asarray(is_cut[begins] | is_cut[ends] | is_unknown[begins]),
    )  # fmt: skip
