"""Who ran on each CPU, from the RUNNING events; interrupts on top; kernel calls where nothing else is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.spec import Release
from satview.events.states import IDLE, INTERRUPT, KERNEL_CALL, RUNNING, UNKNOWN, process_values
from satview.store.losses import losses, losses_of, merged
from satview.store.trace import Trace
from satview.timeline.forgetting import forget
from satview.timeline.spans import NO_EVENT, LaneSpans, constant_lane, touching


def run_slices(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return every run slice of the trace: rows of the RUNNING events, ascending, and when each slice ends.

    A slice ends at the thread's next state event, when another thread starts to run on the CPU, or where events of the
    CPU are missing, whichever is first.
    """
    states, events = trace.states, trace.events
    codes = events.code[states.event]
    running = np.flatnonzero(trace.catalogue.state_value_of_code[codes] == RUNNING)
    following = np.minimum(running + 1, len(codes) - 1)
    ends = events.time_cycles[states.event[following]]
    threads = np.repeat(np.arange(len(states.start) - 1), np.diff(states.start))
    is_last = (running + 1 >= len(codes)) | (threads[following] != threads[running])
    ends[is_last] = trace.window.end
    rows = states.event[running]
    order = np.argsort(rows, kind="stable")
    rows, ends = rows[order], ends[order]
    cpu, start = events.cpu[rows], events.time_cycles[rows]
    lost = losses(trace)
    for number in np.unique(cpu):
        mine = np.flatnonzero(cpu == number)
        ends[mine[:-1]] = np.minimum(ends[mine[:-1]], start[mine[1:]])
        known_until = np.append(losses_of(lost, int(number))[:, 0] + 1, np.iinfo(np.int64).max)
        ends[mine] = np.minimum(ends[mine], known_until[np.searchsorted(known_until, start[mine], side="right")])
    return rows, ends


def cpu_spans(
    trace: Trace, cpu: int, slices: tuple[NDArray[np.uint32], NDArray[np.int64]], idle: NDArray[np.bool_]
) -> LaneSpans:
    """Return who ran on a CPU: one hue per process, `IDLE`, or `UNKNOWN` where the trace does not say."""
    rows, ends = slices
    mine = trace.events.cpu[rows] == cpu
    rows, ends = rows[mine], ends[mine]
    if not len(rows):
        return _call_spans(trace, cpu)
    window = trace.window
    start = trace.events.time_cycles[rows]
    thread = trace.events.thread[rows]
    value = process_values(trace.threads.process[thread])
    value[idle[thread]] = IDLE
    # A thread trace names the threads of an LWP one by one: between them it has none to run.
    gap = IDLE if trace.release == Release.UNIXWARE else UNKNOWN
    gaps = np.flatnonzero(ends < np.append(start[1:], window.end))
    at = np.concatenate((start, ends[gaps]))
    order = np.argsort(at, kind="stable")
    at = at[order]
    value = np.concatenate((value, np.full(len(gaps), gap, np.uint8)))[order]
    event = np.concatenate((rows, np.full(len(gaps), NO_EVENT, np.uint32)))[order]
    thread = np.concatenate((thread, np.zeros(len(gaps), thread.dtype)))[order]
    if at[0] > window.start:
        from_dump = at[0] <= trace.dump_end_cycles
        at = np.concatenate((np.array([window.start]), at))
        value = np.concatenate((np.array([value[0] if from_dump else UNKNOWN], np.uint8), value))
        event = np.concatenate((np.array([NO_EVENT], np.uint32), event))
        thread = np.concatenate((thread[:1] if from_dump else np.zeros(1, thread.dtype), thread))
    return touching(at, value, event, thread, window.end)


def _call_spans(trace: Trace, cpu: int) -> LaneSpans:
    """Return kernel calls of a CPU of which no RUNNING event tells who ran: unknown, save between a call and its exit.

    Without threads a call can be matched only with an exit that follows it at once on that CPU.
    """
    events, window = trace.events, trace.window
    rows = np.flatnonzero((events.code >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL) & (events.cpu == cpu))
    number = events.code[rows] & 0x27F
    is_exit = events.code[rows] & 0x180 == wire.KER_EXIT_OFFSET
    pair = np.flatnonzero(~is_exit[:-1] & is_exit[1:] & (number[:-1] == number[1:]))
    if not len(pair):
        return constant_lane(window, UNKNOWN)
    at = np.empty(2 * len(pair) + 1, np.int64)
    at[0], at[1::2], at[2::2] = window.start, events.time_cycles[rows[pair]], events.time_cycles[rows[pair + 1]]
    value = np.full(len(at), UNKNOWN, np.uint8)
    value[1::2] = KERNEL_CALL
    event = np.full(len(at), NO_EVENT, np.uint32)
    event[1::2] = rows[pair]
    return touching(at, value, event, None, window.end)


def interrupt_spans(trace: Trace, cpu: int, resets: NDArray[np.int64]) -> LaneSpans | None:
    """Return when a CPU handled interrupts, nested ones as part of the outermost; None if it never did.

    Where events are missing it is unknown, and so is the time up to an exit whose entry is missing.

    Args:
        trace: The trace.
        cpu: Number of the CPU.
        resets: Times at which events are there again after a loss; those that concern other CPUs are left out here.
    """
    events = trace.events
    at = np.flatnonzero((events.code >> wire.CLASS_SHIFT == wire.WireClass.INT) & (events.cpu == cpu)).astype(np.uint32)
    kind = events.code[at] & wire.EVENT_MASK
    step = np.where(np.isin(kind, (1, 5)), 1, np.where(kind == 2, -1, 0))
    at, step = at[step != 0], step[step != 0]
    if not len(at):
        return None
    lost = merged(losses_of(losses(trace), cpu))
    resets = np.intersect1d(resets, lost[:, 1])
    time = events.time_cycles[at]
    part = np.searchsorted(resets, time, side="right")
    depth = _depth(step, part)
    opens, closes = (step > 0) & (depth == 1), (step < 0) & (depth == 0)
    # Exits at the beginning of a part have lost their entries: up to there it is not known what the CPU did.
    number = np.arange(len(at)) - np.searchsorted(part, part)
    stray = (step < 0) & (_steps_down(step, part) == number + 1)
    closes &= ~stray
    begins = np.concatenate((np.array([trace.window.start]), resets))
    clear = begins.copy()
    np.maximum.at(clear, part[stray], time[stray])
    times = np.concatenate((clear, time[opens | closes]))
    value = np.concatenate((np.zeros(len(clear), np.uint8), np.where(opens, INTERRUPT, 0)[opens | closes]))
    event = np.concatenate((np.full(len(clear), NO_EVENT, np.uint32), at[opens | closes]))
    order = np.argsort(times, kind="stable")
    spans = touching(times[order], value[order].astype(np.uint8), event[order], None, trace.window.end)
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


def _steps_down(step: NDArray[np.integer], part: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return how many exits there are up to and with each entry or exit of a part."""
    count = np.concatenate(([0], np.cumsum(step < 0)))
    return np.asarray(count[1:] - count[np.searchsorted(part, part)], np.int64)


def _depth(step: NDArray[np.integer], part: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the nesting depth after every entry and exit; exits without an entry are ignored, parts begin at 0."""
    raw = np.cumsum(step)
    first = np.flatnonzero(np.concatenate(([True], part[1:] != part[:-1])))
    raw = raw - np.repeat(np.concatenate(([0], raw))[first], np.diff(first, append=len(step)))
    lift = np.repeat(np.arange(len(first)), np.diff(first, append=len(step))) * (4 * len(step) + 4)
    lowest = np.minimum.accumulate(np.minimum(raw, 0) - lift) + lift
    return np.asarray(raw - np.minimum(lowest, 0), np.int64)
