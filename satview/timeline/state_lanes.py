"""Makes the lanes of threads, processes, CPUs and interrupts, of a whole trace or from a few samples of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import numbers_of
from satview.base.time import Clock, TimeWindow
from satview.core import pictures as core_lanes
from satview.core.links import stable_order
from satview.events import wire
from satview.events.spec import Release
from satview.events.states import (
    ABSENT,
    DEAD,
    FIRST_PROCESS,
    IDLE,
    INTERRUPT,
    IS_BUSY,
    KERNEL_CALL,
    NOT_A_STATE,
    QUIET_PROCESS,
    READY,
    RUNNING,
    UNKNOWN,
    VALUE_COUNT,
    WAITING,
    process_value,
)
from satview.formats.kev.sampling import Sampled
from satview.linkage.calls import nesting
from satview.linkage.chain import link_table
from satview.linkage.links import OPEN, Certainty, LinkKind, RowBounds, numbers_within, positions, positions_by_cpu
from satview.linkage.waits import following
from satview.store.axis import AxisPart, files_of
from satview.store.time_ranges import EVERY_CPU, TimeRanges, idle_threads, losses, losses_of, merged, overlaps
from satview.store.trace import Trace, cached_with_trace
from satview.timeline.spans import NO_EVENT, LaneSpans, constant_lane, pixel_edges, touching

# Makes the lanes of threads, processes, CPUs and interrupts, and the kinds of code that CPUs run.
#
# Where events are missing, states end at the last event that supports them. With several files on one axis, a lane
# covers only the time of its file.


def forget(spans: LaneSpans, ranges: NDArray[np.int64]) -> LaneSpans:
    """Return a lane, made unknown from just after the start of each range to the lane's first event after the range.

    Args:
        spans: The lane.
        ranges: (k, 2), ascending, not overlapping.
    """
    ranges = ranges[ranges[:, 0] + 1 < ranges[:, 1]]
    if not len(ranges):
        return spans
    from_, to = np.maximum(ranges[:, 0] + 1, spans.start_cycles[0]), ranges[:, 1]
    gap = np.searchsorted(from_, spans.start_cycles, side="right") - 1
    keep = (gap < 0) | (spans.start_cycles >= to[gap])
    start = np.concatenate((spans.start_cycles[keep], from_))
    order = stable_order(start)
    count = len(from_)
    thread = spans.thread
    if thread is not None:
        thread = np.concatenate((thread[keep], np.zeros(count, thread.dtype)))[order]
    return LaneSpans(
        start[order],
        np.concatenate((spans.value[keep], np.full(count, UNKNOWN, np.uint8)))[order],
        np.concatenate((spans.event[keep], np.full(count, NO_EVENT, np.uint32)))[order],
        thread,
        spans.end_cycles,
    )


def forget_thread(trace: Trace, spans: LaneSpans, since: int) -> LaneSpans:
    """Return the lane of a thread, made unknown where events that could change the thread's state are missing.

    While a thread runs, only events of its own CPU can end its state, so that losses of other CPUs (8.0) do not count.

    Args:
        trace: The trace.
        spans: The lane as if no event were missing.
        since: Time of the thread's first event, cycles; before that time the lane stays as it is.
    """
    lost = losses(trace)
    lost = lost[lost[:, 1] > since]  # a copy: it is changed below
    if not len(lost):
        return spans
    lost[:, 0] = np.maximum(lost[:, 0], since)
    everywhere = lost[lost[:, 2] == EVERY_CPU, :2]
    own = [
        _without(lost[lost[:, 2] == cpu, :2], _runs_elsewhere(trace, spans, cpu))
        for cpu in np.unique(lost[lost[:, 2] != EVERY_CPU, 2]).tolist()
    ]
    return forget(spans, merged(np.concatenate([everywhere, *own])))


def _runs_elsewhere(trace: Trace, spans: LaneSpans, cpu: int) -> NDArray[np.int64]:
    """Return start and end, cycles, of the times in which a thread ran on any CPU but `cpu`, int64 (k, 2)."""
    runs = np.flatnonzero(np.isin(spans.value, (RUNNING, IDLE)) & (spans.event != NO_EVENT))
    runs = runs[trace.events.cpu[spans.event[runs]] != cpu]
    ends = np.append(spans.start_cycles[1:], spans.end_cycles)
    return np.stack((spans.start_cycles[runs], ends[runs]), axis=1)


def _without(ranges: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ranges, int64 (m, 2), with the `known` ranges cut out; those are (k, 2), ascending, not overlapping."""
    ranges = merged(ranges)
    # Intersect every range with the gaps between the known ranges.
    limits = np.iinfo(np.int64)
    gap_start = np.concatenate(([limits.min], known[:, 1]))
    gap_end = np.concatenate((known[:, 0], [limits.max]))
    begin = np.searchsorted(gap_end, ranges[:, 0], side="right")
    count = np.maximum(np.searchsorted(gap_start, ranges[:, 1]) - begin, 0)
    gap = numbers_of(begin, count)
    start = np.maximum(np.repeat(ranges[:, 0], count), gap_start[gap])
    end = np.minimum(np.repeat(ranges[:, 1], count), gap_end[gap])
    return np.stack((start, end), axis=1)[end > start]


def on_axis(trace: Trace, part: AxisPart, own: LaneSpans) -> LaneSpans:
    """Return a lane of one file, converted to the axis of all files and absent outside the time of the file.

    Args:
        trace: The trace of all files.
        part: The file.
        own: The lane, in cycles and rows of the file.
    """
    start, event = part.cycles(own.start_cycles), part.axis_rows(own.event).astype(np.uint32)
    value, thread = own.value, None if own.thread is None else part.threads[own.thread]
    whole, end = trace.window, int(part.cycles(np.array([own.end_cycles]))[0])
    before, after = int(start[0]) > whole.start, end < whole.end

    def extended(column: np.ndarray, head: int, tail: int) -> np.ndarray:
        return np.concatenate(([head] * before, column, [tail] * after)).astype(column.dtype)

    return LaneSpans(
        extended(start, whole.start, end),
        extended(value, ABSENT, ABSENT),
        extended(event, NO_EVENT, NO_EVENT),
        None if thread is None else extended(thread, 0, 0),
        whole.end,
    )


_QUIET_SHARE: Final = 0.02  # processes below this share of the time of all processes are grey on CPU lanes
_KIND = np.full(VALUE_COUNT, WAITING, np.uint8)  # state of a process by the state of its only thread
_KIND[[ABSENT, UNKNOWN, READY, RUNNING]] = (ABSENT, UNKNOWN, READY, RUNNING)
_RANKED = (ABSENT, WAITING, UNKNOWN, READY, RUNNING)  # of several threads, the rightmost state is that of the process
_RANK = np.zeros(256, np.uint8)  # index in `_RANKED` by lane value
_RANK[:VALUE_COUNT] = [_RANKED.index(kind) for kind in _KIND.tolist()]


def value_of_code(trace: Trace) -> NDArray[np.uint8]:
    """Return the lane value of the state that each event code begins, uint8 (32768,).

    The state of a thread is unknown from its creation to the first logged state, and absent after its destruction.
    """
    table = trace.catalogue.state_value_of_code.copy()
    table[table == NOT_A_STATE] = UNKNOWN
    table[wire.THREAD_DESTROY] = ABSENT
    for part in files.parts if (files := files_of(trace)) is not None else ():
        table[part.codes[wire.THREAD_DESTROY]] = ABSENT
    return table


def idle_values(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return `value_of_code` for idle threads: IDLE in place of RUNNING, WAITING in place of READY, uint8 (32768,)."""
    table = values.copy()
    table[values == RUNNING] = IDLE
    table[values == READY] = WAITING
    return table


def thread_spans(trace: Trace, thread: int, values: NDArray[np.uint8]) -> LaneSpans:
    """Return the states of one thread over the whole trace.

    The first state of a thread in the opening state dump begins with the trace. A thread that appears later is unknown
    before its first event, or absent if its creation was logged. Where events are missing the thread is unknown until
    its next event.

    Args:
        trace: The events.
        thread: Row of the thread table.
        values: uint8 (32768,), lane value by code: result of `value_of_code`, or of `idle_values` for an idle thread.
    """
    if (files := files_of(trace)) is not None and (in_file := files.part_of_thread(thread)) is not None:
        part, row = in_file
        return on_axis(trace, part, thread_spans(part.trace, row, values[part.codes]))
    rows = trace.states.of(thread)
    window = trace.window
    if not len(rows):
        return constant_lane(window, UNKNOWN)
    columns = trace.events.code, trace.events.time_cycles, values
    time, value = core_lanes.thread_states(rows, *columns, wire.THREAD_DESTROY, DEAD, ABSENT)
    before, known_from = _value_before(trace, time, int(trace.events.code[rows[0]]), value), int(time[0])
    if known_from > window.start:
        time = np.concatenate((np.array([window.start]), time))
        value = np.concatenate((np.array([before], np.uint8), value))
        rows = np.concatenate((np.array([NO_EVENT], np.uint32), rows))
    spans = touching(time, value, rows, window.end)
    return forget_thread(
        trace, forget(spans, _contradicted(trace, spans)) if trace.release.is_qnx else spans, known_from
    )


def _contradicted(trace: Trace, spans: LaneSpans) -> NDArray[np.int64]:
    """Return ranges in which a lane shows its thread running while the CPU runs another one, for `forget`."""
    rows, stops = contradicted_runs(trace)
    if not len(rows):
        return np.empty((0, 2), np.int64)
    stop_of = np.minimum(np.searchsorted(rows, spans.event), len(rows) - 1)
    stopped = np.flatnonzero(rows[stop_of] == spans.event)
    return np.stack((stops[stop_of[stopped]] - 1, np.append(spans.start_cycles[1:], spans.end_cycles)[stopped]), axis=1)


_Runs = tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.bool_]]  # `run_slices`, and which are contradicted


def contradicted_runs(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return runs of threads that no event of the thread has ended when the CPU begins to run another thread.

    The next state event of the first thread is damaged or missing, so that its state is not known from then on.

    Returns:
        uint32 (n,), rows of the RUNNING events, ascending; int64 (n,), when the CPU runs the other thread, cycles.
    """
    (rows, ends), is_cut = run_slices(trace), _all_runs(trace)[2]
    cut = np.flatnonzero(is_cut) if trace.release.is_qnx and trace.axis is None else np.empty(0, np.intp)
    return rows[cut], ends[cut]


def _value_before(trace: Trace, time: NDArray[np.int64], first_code: int, value: NDArray[np.uint8]) -> int:
    is_created = first_code == wire.THREAD_CREATE
    if int(time[0]) <= trace.dump_end_cycles:
        state = 1 if is_created and len(value) > 1 else 0
        return int(value[state]) if int(time[state]) <= trace.dump_end_cycles else UNKNOWN
    return ABSENT if is_created else UNKNOWN


def process_spans(lanes: Sequence[LaneSpans], end_cycles: int) -> LaneSpans:
    """Return the lane of a process: RUNNING while any of its threads runs, else READY while any is, else WAITING.

    A process is `ABSENT` while it has no thread, and `UNKNOWN` instead of WAITING while any thread's state is unknown.
    """
    time = np.concatenate([lane.start_cycles for lane in lanes])
    values = np.concatenate([lane.value for lane in lanes])
    event = np.concatenate([lane.event for lane in lanes])
    begins = np.concatenate(([0], np.cumsum([len(lane) for lane in lanes])))
    columns = core_lanes.process_states(time, values, event, begins, _RANK, _RANKED)
    return LaneSpans(*columns, None, max(end_cycles, int(time.max()) + 1))


def run_slices(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return all run slices (periods in which a thread runs on a CPU): rows of the RUNNING events, ascending, and ends.

    A slice ends at the thread's next state event, when another thread starts to run on the CPU, or where events of the
    CPU are missing, whichever is first. Computed at the first call and cached with the trace.

    Returns:
        uint32 (n,), rows of events; int64 (n,), cycles.
    """
    return _all_runs(trace)[:2]


@cached_with_trace("timeline.run_slices")
def _all_runs(trace: Trace) -> _Runs:
    states, events, values = trace.states, trace.events, trace.catalogue.state_value_of_code
    columns = states.event, states.start, events.code, events.time_cycles, events.cpu, events.thread, values
    slices = core_lanes.run_slices(*columns, RUNNING, trace.window.end)
    rows, ends, is_cut = slices if slices is not None else _slices_by_index(trace)
    lost = losses(trace)
    if len(lost):
        cpu, start = events.cpu[rows], events.time_cycles[rows]
        for number in np.unique(cpu):
            of_cpu = np.flatnonzero(cpu == number)
            known_until = np.append(losses_of(lost, int(number))[:, 0] + 1, np.iinfo(np.int64).max)
            until = known_until[np.searchsorted(known_until, start[of_cpu], side="right")]
            is_cut[of_cpu] &= until >= ends[of_cpu]  # a missing event may be the thread's next state
            ends[of_cpu] = np.minimum(ends[of_cpu], until)
    for column in (rows, ends, is_cut):
        column.setflags(write=False)
    return rows, ends, is_cut


def _slices_by_index(trace: Trace) -> _Runs:
    """Return run slices, as if no event were missing, computed from the index of states.

    This is for traces in which the thread that a state belongs to is not the thread of the event.
    """
    states, events = trace.states, trace.events
    running = np.flatnonzero(trace.catalogue.state_value_of_code[events.code[states.event]] == RUNNING)
    rows, ends = states.event[running], np.full(len(running), trace.window.end)
    after = following(trace)[running]
    ends[after != OPEN] = events.time_cycles[after[after != OPEN]]
    order = stable_order(rows)
    rows, ends = rows[order], ends[order]
    cpu, start, is_cut = events.cpu[rows], events.time_cycles[rows], np.zeros(len(rows), np.bool_)
    for number in np.unique(cpu):
        of_cpu = np.flatnonzero(cpu == number)
        run, follower = of_cpu[:-1], start[of_cpu[1:]]
        is_cut[run] = follower < ends[run]
        ends[run] = np.minimum(ends[run], follower)
    return rows, ends, is_cut


def name_values(trace: Trace) -> NDArray[np.uint8]:
    """Return a lane value (colour) for every process, made from its name, or its pid if it has no name, uint8 (n,)."""
    if (files := files_of(trace)) is not None:  # names begin with the name of the file, which must not count
        values = np.full(len(trace.processes), QUIET_PROCESS, np.uint8)
        for part in files.parts:
            values[part.processes] = _name_values(part.names, part.trace.processes.pid)
        return values
    return _name_values(trace.processes.names, trace.processes.pid)


def _name_values(names: Sequence[str], pids: NDArray[np.int32]) -> NDArray[np.uint8]:
    return np.array([process_value(name or str(pid)) for name, pid in zip(names, pids.tolist(), strict=True)], np.uint8)


@cached_with_trace("timeline.process_values")
def process_values(trace: Trace) -> NDArray[np.uint8]:
    """Return the lane value of every process on CPU lanes, uint8 (processes,): `name_values`, or `QUIET_PROCESS`.

    A process is quiet if it used less than a fiftieth of the time of all processes. Cached with the trace.
    """
    rows, ends = run_slices(trace)
    thread, values = trace.events.thread[rows], name_values(trace)
    length = np.where(idle_threads(trace)[thread], 0, ends - trace.events.time_cycles[rows])
    used = np.bincount(trace.threads.process[thread], length, len(values))
    values[used < _QUIET_SHARE * used.sum()] = QUIET_PROCESS
    values.setflags(write=False)
    return values


def cpu_spans(
    trace: Trace, cpu: int, idle: NDArray[np.bool_], values: NDArray[np.uint8] | None = None,
    windows: RowBounds | None = None,
) -> LaneSpans:  # fmt: skip
    """Return the lane of a CPU: the value of the process that ran, `IDLE`, or `UNKNOWN` where the trace has a gap.

    Args:
        trace: The events.
        cpu: Number of the CPU.
        idle: bool (threads,), idle threads.
        values: uint8 (processes,), lane values; None = `process_values`.
        windows: `row_bounds` of the ranges in which the lane must be right; elsewhere it may be wrong, to save time.
            None = always.
    """
    values = process_values(trace) if values is None else values
    if (files := files_of(trace)) is not None and (part := files.part_of_cpu(cpu)) is not None:
        of_file, own_values = part.trace, values[part.processes]
        return on_axis(trace, part, cpu_spans(of_file, cpu - part.first_cpu, idle_threads(of_file), own_values))
    events, window = trace.events, trace.window
    value = np.where(idle, np.uint8(IDLE), values[trace.threads.process])
    # In a thread trace, an LWP without a named thread has none to run.
    gap = IDLE if trace.release == Release.UNIXWARE else UNKNOWN
    own, (rows, ends) = slices_by_cpu(trace)[cpu], run_slices(trace)
    if windows is not None and len(own):
        own = own[_within(rows, own, windows)]
        rows, ends = rows[own], ends[own]
    start, value, event, thread = core_lanes.cpu_states(
        rows, ends, events.cpu, events.time_cycles, events.thread, cpu, value, gap, window.end, len(own)
    )
    if not len(start):
        return _call_spans(trace, cpu)
    if start[0] > window.start:
        from_dump = start[0] <= trace.dump_end_cycles
        start = np.concatenate((np.array([window.start]), start))
        value = np.concatenate((np.array([value[0] if from_dump else UNKNOWN], np.uint8), value))
        event = np.concatenate((np.array([NO_EVENT], np.uint32), event))
        thread = np.concatenate((thread[:1] if from_dump else np.zeros(1, thread.dtype), thread))
    return LaneSpans(start, value, event, thread, max(window.end, int(start[-1]) + 1))


@cached_with_trace("timeline.slices_by_cpu")
def slices_by_cpu(trace: Trace) -> list[NDArray[np.uint32]]:
    """Return for each CPU the positions of its slices in `run_slices`, uint32, ascending; cached with the trace."""
    positions_of = dict(positions_by_cpu(trace.events.cpu.take(run_slices(trace)[0])))
    none = np.empty(0, np.intp)
    return [positions_of.get(cpu, none).astype(np.uint32) for cpu in range(trace.cpu_count)]


def _within(rows: NDArray[np.uint32], own: NDArray[np.uint32], windows: RowBounds) -> NDArray[np.int64]:
    """Return indices in `own` of the CPU's first slice and of all slices that may overlap windows, int64, ascending."""
    begin, end = (positions(own, positions(rows, bound)) for bound in windows)
    # The last one that begins before a window may still run within it.
    return np.union1d(0, numbers_within(np.maximum(begin - 1, 0), end))


def _call_spans(trace: Trace, cpu: int) -> LaneSpans:
    """Return the lane of a CPU without RUNNING events: KERNEL_CALL from the entry to the exit of a call, else UNKNOWN.

    Only calls of unknown threads are used: the ones that are linked never block, so that they had the CPU all the time.
    """
    events, window, calls = trace.events, trace.window, link_table(trace, LinkKind.CALL)
    inferred = np.flatnonzero((calls.certainty == Certainty.INFERRED) & (events.cpu[calls.from_row] == cpu))
    if not len(inferred):
        return constant_lane(window, UNKNOWN)
    start = np.empty(2 * len(inferred) + 1, np.int64)
    start[0] = window.start
    start[1::2], start[2::2] = (events.time_cycles[rows[inferred]] for rows in (calls.from_row, calls.to_row))
    value = np.full(len(start), UNKNOWN, np.uint8)
    value[1::2] = KERNEL_CALL
    event = np.full(len(start), NO_EVENT, np.uint32)
    event[1::2] = calls.from_row[inferred]
    return touching(start, value, event, window.end)


def interrupt_spans(trace: Trace, cpu: int) -> LaneSpans | None:
    """Return the lane of a CPU's interrupts, nested ones as part of the outermost; None if there are none.

    The lane is unknown where events are missing, and from there up to the last exit whose entry is missing.
    """
    if (files := files_of(trace)) is not None and (part := files.part_of_cpu(cpu)) is not None:
        own = interrupt_spans(part.trace, cpu - part.first_cpu)
        return None if own is None else on_axis(trace, part, own)
    nested = nesting(trace, cpu)
    if not len(nested.rows):
        return None
    lost = merged(losses_of(losses(trace), cpu))
    stray, is_outermost = nested.is_stray, nested.depth == 0
    is_edge = (is_outermost & ~stray) | ((nested.step > 0) & (nested.depth == 1))
    begins = np.concatenate((np.array([trace.window.start]), lost[:, 1]))
    clear = begins.copy()
    np.maximum.at(clear, nested.part[stray], nested.time_cycles[stray])
    times = np.concatenate((clear, nested.time_cycles[is_edge]))
    handled = np.where(is_outermost[is_edge], np.uint8(0), np.uint8(INTERRUPT))
    value = np.concatenate((np.zeros(len(clear), np.uint8), handled))
    event = np.concatenate((np.full(len(clear), NO_EVENT, np.uint32), nested.rows[is_edge]))
    order = stable_order(times)
    spans = touching(times[order], value[order], event[order], trace.window.end)
    unknown = np.stack((begins - 1, clear), axis=1)
    return forget(_from_start(spans, trace.window.start), merged(np.concatenate((lost, unknown))))


def _from_start(spans: LaneSpans, start_cycles: int) -> LaneSpans:
    """Return a lane extended to the start of the trace by an unknown interval, if the lane begins later."""
    if int(spans.start_cycles[0]) == start_cycles:
        return spans
    return LaneSpans(
        np.concatenate(([start_cycles], spans.start_cycles)),
        np.concatenate((np.array([UNKNOWN], np.uint8), spans.value)),
        np.concatenate((np.array([NO_EVENT], np.uint32), spans.event)),
        None,
        spans.end_cycles,
    )


USER: Final = RUNNING  # lane value of user code in `kind_spans`


def kind_spans(trace: Trace, cpu: int, who: LaneSpans, interrupts: LaneSpans | None) -> LaneSpans:
    """Return the kind of code that a CPU runs over time: `INTERRUPT`, `IDLE`, `UNKNOWN`, `KERNEL_CALL` or `USER`.

    `INTERRUPT` takes precedence, then `IDLE` and `UNKNOWN`. `KERNEL_CALL` is between the entry and the exit of a call
    of the running thread, if the trace holds both; the rest is user code.

    Args:
        trace: The trace.
        cpu: Number of the CPU.
        who: The lane of the CPU.
        interrupts: The CPU's lane of interrupts; None if there is none.
    """
    calls = trace.cached("timeline.calls_on_cpus", _calls_on_cpus)[cpu]
    starts = [who.start_cycles, calls.start, calls.end]
    starts += [] if interrupts is None else [interrupts.start_cycles]
    time = np.sort(np.concatenate(starts), kind="stable")  # a stable sort merges ascending parts quickly
    time = time[(time >= who.start_cycles[0]) & (time < who.end_cycles)]
    runs = who.value[np.searchsorted(who.start_cycles, time, side="right") - 1]
    value = np.where(runs >= FIRST_PROCESS, USER, runs).astype(np.uint8)
    in_call = np.searchsorted(calls.start, time, side="right") > np.searchsorted(calls.end, time, side="right")
    value[in_call & (value == USER)] = KERNEL_CALL
    if interrupts is not None:
        covering = np.searchsorted(interrupts.start_cycles, time, side="right") - 1
        value[(covering >= 0) & (interrupts.value[np.maximum(covering, 0)] == INTERRUPT)] = INTERRUPT
    begins = np.append(True, value[1:] != value[:-1])
    time, value = time[begins], value[begins]
    return touching(time, value, np.full(len(time), NO_EVENT, np.uint32), who.end_cycles)


def _calls_on_cpus(trace: Trace) -> tuple[TimeRanges, ...]:
    """Return for each CPU the times in which the running thread was in a kernel call."""
    rows, ends = run_slices(trace)
    events, links = trace.events, link_table(trace, LinkKind.CALL)
    thread = events.thread[links.from_row]
    known = np.flatnonzero(thread > 0)
    if not len(rows) or not len(known):
        return (TimeRanges.none(),) * trace.cpu_count
    enters, leaves = links.from_row[known], links.to_row[known]
    by_thread = stable_order(events.thread[rows])
    begins, ends = rows[by_thread], ends[by_thread]
    # Overlaps are found by event rows, which ascend with time; their lengths come from the times.
    call, run = overlaps(
        thread[known].astype(np.int64), enters.astype(np.int64), leaves.astype(np.int64),
        events.thread[begins].astype(np.int64), begins.astype(np.int64), np.searchsorted(events.time_cycles, ends),
    )  # fmt: skip
    time, cpu = events.time_cycles, events.cpu[begins[run]]
    start, stop = np.maximum(time[enters[call]], time[begins[run]]), np.minimum(time[leaves[call]], ends[run])
    return tuple(TimeRanges.of(start[cpu == number], stop[cpu == number]) for number in range(trace.cpu_count))


# A preview of which process ran on each CPU, from a few samples of a file, to show while the whole file is loaded.


@dataclass(frozen=True, slots=True, eq=False)
class KnownRuns:
    """Intervals in which the samples show which process ran on one CPU; between them nothing is known.

    Attributes:
        start_cycles, end_cycles: int64 (n,), ascending, not overlapping.
        value: uint8 (n,), lane values: the colour of the process, or `IDLE`.
    """

    start_cycles: NDArray[np.int64]
    end_cycles: NDArray[np.int64]
    value: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """The use of all CPUs over time, as far as samples of a trace show it.

    Attributes:
        clock: Clock of the trace.
        window: From the first to the last sampled event.
        cpus: The known runs of each CPU.
        titles: Titles of the lanes of the CPUs.
        positions: Number of positions in the file that were sampled.
        lost_marks: (k, 2) int64, start and end in cycles of ranges in which, as samples show, events are missing.
    """

    clock: Clock
    window: TimeWindow
    cpus: tuple[KnownRuns, ...]
    titles: tuple[str, ...]
    positions: int
    lost_marks: NDArray[np.int64]

    def cover(self, cpu: int, window: TimeWindow, bins: int) -> NDArray[np.float64]:
        """Return for how many cycles of each bin a CPU is known to have each lane value, float64 (64, bins)."""
        return _cover(self.cpus[cpu], window, bins)

    def busy_shares(self, window: TimeWindow, bins: int) -> NDArray[np.float64]:
        """Return the busy share of the known time, for all CPUs together, (bins,); NaN = not known."""
        total = np.zeros((2, bins))
        for cpu in range(len(self.cpus)):
            cover = self.cover(cpu, window, bins)
            total += cover[IS_BUSY].sum(axis=0), cover.sum(axis=0)
        shares = np.full(bins, np.nan)
        np.divide(total[0], total[1], out=shares, where=total[1] > 0)
        return shares


def preview_of(sample: Sampled) -> Preview | None:
    """Return the preview from a sample of a trace, None if the sample shows no thread that ran."""
    trace = sample.trace
    rows, ends = run_slices(trace)
    logged = sample.is_timed[sample.position[rows]]
    rows, ends = rows[logged], ends[logged]
    if not len(rows):
        return None
    events = trace.events
    ends = np.minimum(ends, _known_until(sample, rows))
    value = process_values(trace)[trace.threads.process[events.thread[rows]]]
    value[idle_threads(trace)[events.thread[rows]]] = IDLE
    start = events.time_cycles[rows]
    cpus = []
    for cpu in range(trace.cpu_count):
        of_cpu = np.flatnonzero((events.cpu[rows] == cpu) & (ends > start))
        # Where runs overlap, as buffers may, the later one counts from its start.
        until = np.append(start[of_cpu][1:], np.iinfo(np.int64).max)
        cpus.append(KnownRuns(start[of_cpu], np.minimum(ends[of_cpu], until), value[of_cpu]))
    seen = events.time_cycles[sample.is_timed[sample.position]]
    titles = tuple(trace.cpu_title(cpu) for cpu in range(trace.cpu_count))
    return Preview(trace.clock, TimeWindow(int(seen[0]), int(seen[-1]) + 1), tuple(cpus), titles,
                   int(np.count_nonzero(sample.is_timed)),
                   np.stack((sample.lost_cycles - 1, sample.lost_cycles), axis=1))  # fmt: skip


def _known_until(sample: Sampled, rows: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return for each event the time up to which its sample has all events of the CPU, int64 (n,), cycles.

    In 8.0, where every CPU has its own buffers, that is the CPU's last event in the sample; else the sample's last
    event.
    """
    trace = sample.trace
    cpus = int(trace.events.cpu.max()) + 1 if trace.release == Release.QNX_8 else 1
    keys = sample.position * cpus + (trace.events.cpu if cpus > 1 else 0)
    last: NDArray[np.int64] = np.zeros(len(sample.is_timed) * cpus, np.int64)
    last[keys] = trace.events.time_cycles  # in time order: the last one stays
    return np.asarray(last[keys[rows]])


@lru_cache(maxsize=32)  # the first picture has all CPUs twice: in the strip and as lanes
def _cover(runs: KnownRuns, window: TimeWindow, width: int) -> NDArray[np.float64]:
    """Return for how many cycles of each pixel a CPU is known to have each lane value, float64 (values, pixels)."""
    edges = pixel_edges(window, width)
    start, end = np.maximum(runs.start_cycles, edges[0]), np.minimum(runs.end_cycles, edges[-1])
    inside = end > start
    start, end, value = start[inside], end[inside], runs.value[inside].astype(np.int64)
    begin = np.searchsorted(edges, start, side="right") - 1
    stop = np.searchsorted(edges, end, side="left") - 1
    spread = stop > begin
    head = np.where(spread, edges[begin + 1], end) - start
    tail = (end - edges[stop])[spread]
    middle = np.maximum(stop - begin - 1, 0)
    pixel = numbers_of(begin + 1, middle)
    keys = np.concatenate((value * width + begin, (value * width + stop)[spread],
                           np.repeat(value * width, middle) + pixel))  # fmt: skip
    pieces = np.concatenate((head, tail, edges[pixel + 1] - edges[pixel]))
    cover = np.bincount(keys, pieces, VALUE_COUNT * width).astype(np.float64, copy=False)
    return cover.reshape(VALUE_COUNT, width)
