"""Who ran on each CPU, from the RUNNING events; interrupts on top; kernel calls where nothing else is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.core import lanes, ordering
from satview.events.spec import Release
from satview.events.states import IDLE, INTERRUPT, KERNEL_CALL, RUNNING, UNKNOWN, process_values
from satview.linkage.interrupts import nesting
from satview.linkage.states import following
from satview.linkage.table import OPEN, Certainty, LinkKind
from satview.linkage.trace_links import link_table
from satview.store.axis import files_of
from satview.store.idle import idle_threads
from satview.store.losses import losses, losses_of, merged
from satview.store.trace import Trace
from satview.timeline.forgetting import forget
from satview.timeline.on_axis import on_axis
from satview.timeline.spans import NO_EVENT, LaneSpans, constant_lane, touching


def run_slices(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return every run slice of the trace: rows of the RUNNING events, ascending, and when each slice ends.

    A slice ends at the thread's next state event, when another thread starts to run on the CPU, or where events of the
    CPU are missing, whichever is first. Computed at the first call and cached with the trace.

    Returns:
        uint32 (n,), rows of events; int64 (n,), cycles.
    """
    return trace.cached("timeline.run_slices", _run_slices)


def _run_slices(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    states, events, values = trace.states, trace.events, trace.catalogue.state_value_of_code
    columns = states.event, states.start, events.code, events.time_cycles, events.cpu, events.thread, values
    slices = lanes.run_slices(*columns, RUNNING, trace.window.end)
    rows, ends = slices if slices is not None else _slices_by_index(trace)
    lost = losses(trace)
    if len(lost):
        cpu, start = events.cpu[rows], events.time_cycles[rows]
        for number in np.unique(cpu):
            mine = np.flatnonzero(cpu == number)
            known_until = np.append(losses_of(lost, int(number))[:, 0] + 1, np.iinfo(np.int64).max)
            ends[mine] = np.minimum(ends[mine], known_until[np.searchsorted(known_until, start[mine], side="right")])
    for column in (rows, ends):
        column.setflags(write=False)
    return rows, ends


def _slices_by_index(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the run slices as if no event were missing, where states are not of the threads that their events name."""
    states, events = trace.states, trace.events
    running = np.flatnonzero(trace.catalogue.state_value_of_code[events.code[states.event]] == RUNNING)
    rows, ends = states.event[running], np.full(len(running), trace.window.end)
    after = following(trace)[running]
    ends[after != OPEN] = events.time_cycles[after[after != OPEN]]
    order = np.argsort(rows, kind="stable")
    rows, ends = rows[order], ends[order]
    cpu, start = events.cpu[rows], events.time_cycles[rows]
    for number in np.unique(cpu):
        mine = np.flatnonzero(cpu == number)
        ends[mine[:-1]] = np.minimum(ends[mine[:-1]], start[mine[1:]])
    return rows, ends


def cpu_spans(
    trace: Trace, cpu: int, slices: tuple[NDArray[np.uint32], NDArray[np.int64]], idle: NDArray[np.bool_]
) -> LaneSpans:
    """Return who ran on a CPU: one hue per process, `IDLE`, or `UNKNOWN` where the trace does not say."""
    if (files := files_of(trace)) is not None and (part := files.part_of_cpu(cpu)) is not None:
        of_file = part.trace
        return on_axis(
            trace, part, cpu_spans(of_file, cpu - part.first_cpu, run_slices(of_file), idle_threads(of_file))
        )
    events, window = trace.events, trace.window
    value = np.where(idle, np.uint8(IDLE), process_values(trace.threads.process)).astype(np.uint8)
    # A thread trace names the threads of an LWP one by one: between them it has none to run.
    gap = IDLE if trace.release == Release.UNIXWARE else UNKNOWN
    at, value, event, thread = lanes.cpu_states(
        *slices, events.cpu, events.time_cycles, events.thread, cpu, value, gap, window.end
    )
    if not len(at):
        return _call_spans(trace, cpu)
    if at[0] > window.start:
        from_dump = at[0] <= trace.dump_end_cycles
        at = np.concatenate((np.array([window.start]), at))
        value = np.concatenate((np.array([value[0] if from_dump else UNKNOWN], np.uint8), value))
        event = np.concatenate((np.array([NO_EVENT], np.uint32), event))
        thread = np.concatenate((thread[:1] if from_dump else np.zeros(1, thread.dtype), thread))
    return LaneSpans(at, value, event, thread, max(window.end, int(at[-1]) + 1))


def _call_spans(trace: Trace, cpu: int) -> LaneSpans:
    """Return kernel calls of a CPU of which no RUNNING event shows who ran: unknown, save between a call and its exit.

    Only calls of unknown threads are sure to have had the CPU all the time: those that are linked never block.
    """
    events, window, calls = trace.events, trace.window, link_table(trace, LinkKind.CALL)
    mine = np.flatnonzero((calls.certainty == Certainty.INFERRED) & (events.cpu[calls.from_row] == cpu))
    if not len(mine):
        return constant_lane(window, UNKNOWN)
    at = np.empty(2 * len(mine) + 1, np.int64)
    at[0] = window.start
    at[1::2], at[2::2] = (events.time_cycles[rows[mine]] for rows in (calls.from_row, calls.to_row))
    value = np.full(len(at), UNKNOWN, np.uint8)
    value[1::2] = KERNEL_CALL
    event = np.full(len(at), NO_EVENT, np.uint32)
    event[1::2] = calls.from_row[mine]
    return touching(at, value, event, window.end)


def interrupt_spans(trace: Trace, cpu: int) -> LaneSpans | None:
    """Return when a CPU handled interrupts, nested ones as part of the outermost; None if it never did.

    Where events are missing it is unknown, and so is the time up to an exit whose entry is missing.
    """
    if (files := files_of(trace)) is not None and (part := files.part_of_cpu(cpu)) is not None:
        own = interrupt_spans(part.trace, cpu - part.first_cpu)
        return None if own is None else on_axis(trace, part, own)
    nested = nesting(trace, cpu)
    if not len(nested.rows):
        return None
    lost = merged(losses_of(losses(trace), cpu))
    time = trace.events.time_cycles[nested.rows]
    opens, closes = (nested.step > 0) & (nested.depth == 1), (nested.step < 0) & (nested.depth == 0)
    stray = nested.is_stray
    closes &= ~stray
    begins = np.concatenate((np.array([trace.window.start]), lost[:, 1]))
    clear = begins.copy()
    np.maximum.at(clear, nested.part[stray], time[stray])
    times = np.concatenate((clear, time[opens | closes]))
    value = np.concatenate((np.zeros(len(clear), np.uint8), np.where(opens, INTERRUPT, 0)[opens | closes]))
    event = np.concatenate((np.full(len(clear), NO_EVENT, np.uint32), nested.rows[opens | closes]))
    order = ordering.time_order(times)
    spans = touching(times[order], value[order].astype(np.uint8), event[order], trace.window.end)
    unknown = np.stack((begins - 1, clear), axis=1)
    return forget(_from_start(spans, trace.window.start), merged(np.concatenate((lost, unknown))))


def _from_start(spans: LaneSpans, start_cycles: int) -> LaneSpans:
    """Return a lane that begins with the trace, unknown where it began later."""
    if int(spans.start_cycles[0]) == start_cycles:
        return spans
    return LaneSpans(
        np.concatenate(([start_cycles], spans.start_cycles)),
        np.concatenate((np.array([UNKNOWN], np.uint8), spans.value)),
        np.concatenate((np.array([NO_EVENT], np.uint32), spans.event)),
        None,
        spans.end_cycles,
    )
