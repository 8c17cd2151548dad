"""What a lane may claim where events are missing: nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.base.ranges import numbers_of
from satview.events.states import IDLE, RUNNING, UNKNOWN
from satview.store.losses import EVERY_CPU, losses, merged
from satview.store.trace import Trace
from satview.timeline.spans import NO_EVENT, LaneSpans


def forget(spans: LaneSpans, ranges: NDArray[np.int64]) -> LaneSpans:
    """Return a lane that is unknown from just after the start of each range to its first own event from the end on.

    Args:
        spans: The lane.
        ranges: (k, 2), ascending, not overlapping.
    """
    ranges = ranges[ranges[:, 0] + 1 < ranges[:, 1]]
    if not len(ranges):
        return spans
    from_, to = np.maximum(ranges[:, 0] + 1, spans.start_cycles[0]), ranges[:, 1]
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
        since: Time of the thread's first event; what the lane shows of before does not rest on events.
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
    """Return when a thread ran on another CPU, shape (k, 2)."""
    runs = np.flatnonzero(np.isin(spans.value, (RUNNING, IDLE)) & (spans.event != NO_EVENT))
    runs = runs[trace.events.cpu[spans.event[runs]] != cpu]
    ends = np.append(spans.start_cycles[1:], spans.end_cycles)
    return np.stack((spans.start_cycles[runs], ends[runs]), axis=1)


def _without(ranges: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ranges without the parts that are known all the same; `known` ascends and does not overlap."""
    ranges = merged(ranges)
    # What is not known is between the known parts: cut every range with the gaps that it meets.
    limits = np.iinfo(np.int64)
    gap_start = np.concatenate(([limits.min], known[:, 1]))
    gap_end = np.concatenate((known[:, 0], [limits.max]))
    first = np.searchsorted(gap_end, ranges[:, 0], side="right")
    count = np.maximum(np.searchsorted(gap_start, ranges[:, 1]) - first, 0)
    gap = numbers_of(first, count)
    start = np.maximum(np.repeat(ranges[:, 0], count), gap_start[gap])
    end = np.minimum(np.repeat(ranges[:, 1], count), gap_end[gap])
    return np.stack((start, end), axis=1)[end > start]
