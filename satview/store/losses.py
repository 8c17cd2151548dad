"""Time ranges in which events are missing: lost buffers, dropped events, CPUs that start late or end early."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.spec import Release
from satview.events.states import READY, RUNNING
from satview.store.axis import files_of
from satview.store.time_ranges import TimeRanges
from satview.store.trace import Trace

# Idle threads, which run on a CPU if no other thread does.


KERNEL_PID: Final = 1
"""Pid of the process of the kernel's own threads, QNX only."""


def idle_threads(trace: Trace) -> NDArray[np.bool_]:
    """Return which threads are idle threads, bool (threads,).

    In Linux these are the threads of process 0; in QNX the threads of process 1 with a name that starts with `idle`.
    Threads of process 1 without a name whose tid is at most the number of CPUs are idle, too (inferred in the format
    description, 8.4); in 8.0, where the description leaves this open, only if they never wait.
    """
    if (axis := files_of(trace)) is not None:
        idle = np.zeros(len(trace.threads), np.bool_)
        for part in axis.parts:
            idle[part.threads[idle_threads(part.trace)]] = True
        return idle
    threads = trace.threads
    if trace.release is Release.LINUX:
        return np.asarray(threads.pid == 0)
    idle = np.array([name.startswith("idle") for name in threads.names], np.bool_)
    if trace.release.is_qnx:
        unnamed = np.array([not name for name in threads.names], np.bool_)
        unnamed &= (threads.tid <= trace.cpu_count) & (threads.pid == KERNEL_PID)
        if trace.release is Release.QNX_8:
            for row in np.flatnonzero(unnamed).tolist():
                code = trace.events.code[trace.states.of(row)]
                state = trace.catalogue.state_value_of_code[code[code != wire.THREAD_CREATE]]
                unnamed[row] = len(state) > 0 and bool(np.isin(state, (READY, RUNNING)).all())
        idle |= unnamed
    return np.asarray(idle & (threads.pid == KERNEL_PID))


EVERY_CPU: Final = -1
_FULL: Final = 0.98  # of the largest buffer; the fill level at hand-over varies by a slot or two


def losses(trace: Trace) -> NDArray[np.int64]:
    """Return the time ranges in which events are missing, int64 (k, 3): start and end in cycles, and CPU; by start.

    The range of a lost buffer is from the last event before it to the next buffer. Up to 7.x all CPUs share the
    buffers, so the CPU is `EVERY_CPU`. In 8.0 the kernel also reports events that it dropped. A trace of 8.0 may begin
    later on one CPU than on another, because a ring reaches back further on a quiet CPU than on a busy one; it may end
    earlier on a CPU, because the last buffer is missing if the logger did not collect it.
    """
    return trace.cached("losses", _losses)


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
    ranges = np.stack((_last_before(trace, ends, cpus), ends, cpus), axis=1)
    # The loss in a truncated buffer is inside it, not just before the next buffer, which reveals the loss.
    is_elsewhere = np.isin(ends, trace.gaps[:, 3]) & np.isin(cpus, trace.gaps[:, 2])
    ranges = np.concatenate((ranges[~is_elsewhere], trace.gaps[:, :3]))
    if per_cpu:
        late = [(trace.window.start - 1, end, cpu) for end, cpu in _late_starts(trace)]
        early = [(start, trace.window.end, cpu) for start, cpu in _early_ends(trace)]
        ranges = np.concatenate((ranges, np.array(late + early, np.int64).reshape(-1, 3)))
    ranges[:, 1] = np.maximum(ranges[:, 1], ranges[:, 0] + 1)
    return np.unique(ranges, axis=0)


def _last_before(trace: Trace, ends: NDArray[np.int64], cpus: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the time of the last event before each given time on its CPU; the given time if there is no event."""
    starts = ends.copy()
    for cpu in np.unique(cpus).tolist():
        of_cpu = np.flatnonzero(cpus == cpu)
        times = trace.events.time_cycles
        if cpu != EVERY_CPU:
            times = times[trace.events.cpu == cpu]
        stop = np.searchsorted(times, ends[of_cpu])
        starts[of_cpu[stop > 0]] = times[stop[stop > 0] - 1]
    return starts


def _late_starts(trace: Trace) -> list[tuple[int, int]]:
    """Return (time, CPU) of the oldest buffer of each CPU whose earlier buffers are missing.

    Earlier buffers are missing if the oldest buffer has a number above 1 and one of two conditions holds: the buffer
    has no slot count, as in a ring; or the buffers of another CPU start at number 1, because all CPUs count from the
    same time. This other CPU must have two or more buffers: a single buffer flushed by STOP has number 1 again.
    """
    buffers = trace.buffers
    rows_by_cpu = [np.flatnonzero(buffers.cpu == cpu) for cpu in np.unique(buffers.cpu)]
    oldest = [int(rows[np.argmin(buffers.time_cycles[rows])]) for rows in rows_by_cpu]
    is_fresh = any(
        buffers.sequence[oldest_row] == 1 for oldest_row, rows in zip(oldest, rows_by_cpu, strict=True) if len(rows) > 1
    )
    return [
        (int(buffers.time_cycles[oldest_row]), int(buffers.cpu[oldest_row]))
        for oldest_row in oldest
        if buffers.sequence[oldest_row] > 1 and (is_fresh or not buffers.slots[oldest_row])
    ]


def _early_ends(trace: Trace) -> list[tuple[int, int]]:
    """Return (time of the last event, CPU) of the CPUs whose newest buffer is full and whose events end early.

    A buffer that is handed over at the end of a trace, or on request, is rarely full. So the events after a full buffer
    are in a buffer that was never handed over. Buffers of a ring have no slot count until they are handed over.
    """
    buffers, events = trace.buffers, trace.events
    full = int(buffers.slots.max(initial=0)) * _FULL
    ends = []
    for cpu in np.unique(buffers.cpu).tolist():
        own = np.flatnonzero(buffers.cpu == cpu)
        newest = own[np.argmax(buffers.time_cycles[own])]
        if not 0 < full <= buffers.slots[newest]:
            continue
        row = int(np.searchsorted(events.time_cycles, buffers.time_cycles[newest]))
        last = int(events.time_cycles[row + np.flatnonzero(events.cpu[row:] == cpu)[-1]])
        if last < trace.window.end - 1:
            ends.append((last, cpu))
    return ends


def losses_of(lost: NDArray[np.int64], cpu: int) -> NDArray[np.int64]:
    """Return start and end, int64 (k, 2), of the losses that affect a CPU."""
    return lost[(lost[:, 2] == EVERY_CPU) | (lost[:, 2] == cpu), :2]


def merged(ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ranges, shape (k, 2), sorted, with overlapping and touching ranges merged."""
    time_ranges = TimeRanges.of_rows(ranges)
    return np.stack((time_ranges.start, time_ranges.end), axis=1)


def lost_marks(trace: Trace) -> NDArray[np.int64]:
    """Return the time ranges in which events are missing, shape (k, 2): start and end in cycles, ascending."""
    return merged(losses(trace)[:, :2])
