"""Where events are missing, and what a lane may still claim there: nothing."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.spec import Release
from satview.events.states import IDLE, RUNNING, UNKNOWN
from satview.store.trace import Trace
from satview.timeline.spans import NO_EVENT, LaneSpans

EVERY_CPU: Final = -1


def losses(trace: Trace) -> NDArray[np.int64]:
    """Return the stretches in which events are missing, shape (k, 3): start, end in cycles and CPU, by start.

    Up to 7.x all CPUs share the buffers, so the CPU is `EVERY_CPU`. A lost buffer lies between the last event before it
    and its successor. In 8.0 the kernel tells of events that it dropped, and a trace may begin later on one CPU than on
    another, as a ring reaches back further on a quiet CPU than on a busy one.
    """
    return trace.kept("losses", _losses)


def _losses(trace: Trace) -> NDArray[np.int64]:
    buffers, events = trace.buffers, trace.events
    per_cpu = trace.release == Release.QNX_8
    gaps = np.flatnonzero(buffers.lost_before)
    drops = gaps[:0]
    if trace.code_counts[wire.CONTROL_DROPPED]:
        drops = np.flatnonzero(events.code == wire.CONTROL_DROPPED)
    ends = np.concatenate((buffers.time_cycles[gaps], events.time_cycles[drops]))
    cpus = np.full(len(ends), EVERY_CPU, np.int64)
    if per_cpu:
        cpus = np.concatenate((buffers.cpu[gaps], events.cpu[drops])).astype(np.int64)
    found = np.stack((_last_before(trace, ends, cpus), ends, cpus), axis=1)
    if per_cpu:
        late = [(trace.window.start - 1, end, cpu) for end, cpu in _late_starts(trace)]
        found = np.concatenate((found, np.array(late, np.int64).reshape(-1, 3)))
    found[:, 1] = np.maximum(found[:, 1], found[:, 0] + 1)
    return np.unique(found, axis=0)


def _last_before(trace: Trace, ends: NDArray[np.int64], cpus: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return when the last event before each moment happened on its CPU; the moment itself if there is none."""
    starts = ends.copy()
    for cpu in np.unique(cpus).tolist():
        mine = np.flatnonzero(cpus == cpu)
        times = trace.events.time_cycles
        if cpu != EVERY_CPU:
            times = times[trace.events.cpu == cpu]
        stop = np.searchsorted(times, ends[mine])
        starts[mine[stop > 0]] = times[stop[stop > 0] - 1]
    return starts


def _late_starts(trace: Trace) -> list[tuple[int, int]]:
    """Return (when, CPU) of the oldest buffers that are not the first ones of their CPU, so that those are missing.

    So it is in a ring, whose buffers have no number of slots, and where another CPU's buffers are counted from 1: all
    count from the same moment on. A CPU's only buffer tells nothing, for what STOP hands over counts from 1 again.
    """
    buffers = trace.buffers
    mine = [np.flatnonzero(buffers.cpu == cpu) for cpu in np.unique(buffers.cpu)]
    oldest = [int(rows[np.argmin(buffers.time_cycles[rows])]) for rows in mine]
    is_fresh = any(buffers.sequence[first] == 1 for first, rows in zip(oldest, mine, strict=True) if len(rows) > 1)
    return [(int(buffers.time_cycles[first]), int(buffers.cpu[first])) for first in oldest
            if buffers.sequence[first] > 1 and (is_fresh or not buffers.slots[first])]


def losses_of(lost: NDArray[np.int64], cpu: int) -> NDArray[np.int64]:
    """Return start and end, shape (k, 2), of the losses that concern a CPU."""
    return lost[(lost[:, 2] == EVERY_CPU) | (lost[:, 2] == cpu), :2]


def merged(stretches: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return stretches, shape (k, 2), ascending and with overlapping ones joined."""
    if len(stretches) < 2:
        return stretches
    stretches = stretches[np.argsort(stretches[:, 0], kind="stable")]
    latest = np.maximum.accumulate(stretches[:, 1])
    begins = np.concatenate(([True], stretches[1:, 0] > latest[:-1]))
    first = np.flatnonzero(begins)
    return np.stack((stretches[first, 0], np.maximum.reduceat(stretches[:, 1], first)), axis=1)


def forget(spans: LaneSpans, stretches: NDArray[np.int64]) -> LaneSpans:
    """Return a lane that is unknown from just after the start of each stretch to its first own event from the end on.

    Args:
        spans: The lane.
        stretches: (k, 2), ascending, not overlapping.
    """
    stretches = stretches[stretches[:, 0] + 1 < stretches[:, 1]]
    if not len(stretches):
        return spans
    from_, to = np.maximum(stretches[:, 0] + 1, spans.start_cycles[0]), stretches[:, 1]
    at = np.searchsorted(from_, spans.start_cycles, side="right") - 1
    keep = (at < 0) | (spans.start_cycles >= to[at])
    start = np.concatenate((spans.start_cycles[keep], from_))
    order = np.argsort(start, kind="stable")
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
    """Return the lane of a thread that claims nothing where events that could concern it are missing.

    While a thread runs, only its own CPU can end that; so losses of other CPUs (8.0) do not matter then.

    Args:
        trace: The trace.
        spans: The lane, as if nothing were missing.
        since: Time of the thread's first event; what the lane tells of before does not rest on events.
    """
    lost = losses(trace)
    lost = lost[lost[:, 1] > since]  # a copy: it is changed below
    if not len(lost):
        return spans
    lost[:, 0] = np.maximum(lost[:, 0], since)
    everywhere = lost[lost[:, 2] == EVERY_CPU, :2]
    own = [_without(lost[lost[:, 2] == cpu, :2], _runs_elsewhere(trace, spans, cpu))
           for cpu in np.unique(lost[lost[:, 2] != EVERY_CPU, 2]).tolist()]
    return forget(spans, merged(np.concatenate([everywhere, *own])))


def _runs_elsewhere(trace: Trace, spans: LaneSpans, cpu: int) -> NDArray[np.int64]:
    """Return when a thread ran on another CPU, shape (k, 2)."""
    runs = np.flatnonzero(np.isin(spans.value, (RUNNING, IDLE)) & (spans.event != NO_EVENT))
    runs = runs[trace.events.cpu[spans.event[runs]] != cpu]
    ends = np.append(spans.start_cycles[1:], spans.end_cycles)
    return np.stack((spans.start_cycles[runs], ends[runs]), axis=1)


def _without(stretches: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return stretches without the parts that are known all the same; `known` ascends and does not overlap."""
    stretches = merged(stretches)
    # What is not known lies between the known parts: cut every stretch with the gaps that it meets.
    limits = np.iinfo(np.int64)
    gap_start = np.concatenate(([limits.min], known[:, 1]))
    gap_end = np.concatenate((known[:, 0], [limits.max]))
    first = np.searchsorted(gap_end, stretches[:, 0], side="right")
    count = np.maximum(np.searchsorted(gap_start, stretches[:, 1]) - first, 0)
    gap = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
    start = np.maximum(np.repeat(stretches[:, 0], count), gap_start[gap])
    end = np.minimum(np.repeat(stretches[:, 1], count), gap_end[gap])
    return np.stack((start, end), axis=1)[end > start]
