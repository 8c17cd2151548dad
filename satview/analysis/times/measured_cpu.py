"""Processor time that threads measured themselves: traces of Python programs by `satview.threadtrace`.

Such a trace knows no scheduler, so RUNNING only means "not known to wait". Its records of processor time show how much
of it was work; between two of them the time is spread evenly over RUNNING.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import TimeWindow
from satview.events.spec import Release
from satview.events.states import RUNNING
from satview.events.unixware import cpu_time_codes
from satview.store.time_ranges import Cycles
from satview.store.trace import Trace
from satview.timeline.state_lanes import thread_spans, value_of_code

_RUNNING_COUNTS: Final = 1000.0  # as much as this many of waiting: what a thread measures while it waits is not lost
_FEWEST: Final = 2


def measured_cpu(trace: Trace, window: TimeWindow) -> Cycles | None:
    """Return the measured processor time of every thread within a range.

    Args:
        trace: The data.
        window: The range, in cycles; those of thread traces are nanoseconds, as are the measurements.

    Returns:
        int64, (threads,); -1 for threads that measured fewer than two times. None if the trace has no measurements.
    """
    if trace.release is not Release.UNIXWARE:
        return None
    rows = np.flatnonzero(np.isin(trace.events.code, cpu_time_codes()))
    if not len(rows):
        return None
    low, high = trace.payloads.column(rows, 0), trace.payloads.column(rows, 1)
    cpu = (high.astype(np.uint64) << np.uint64(32) | low).astype(np.int64)
    thread = trace.events.thread[rows].astype(np.int64)
    order = np.argsort(thread, kind="stable")
    rows, cpu = rows[order], cpu[order]
    edges = np.searchsorted(thread[order], np.arange(len(trace.threads) + 1))
    out = np.full(len(trace.threads), -1, np.int64)
    values = value_of_code(trace)
    for number in np.flatnonzero(np.diff(edges) >= _FEWEST).tolist():
        mine = slice(edges[number], edges[number + 1])
        out[number] = _of_thread(trace, number, values, trace.events.time_cycles[rows[mine]], cpu[mine], window)
    return out


def _of_thread(
    trace: Trace, thread: int, values: NDArray[np.uint8], time: Cycles, cpu: NDArray[np.int64], window: TimeWindow
) -> int:
    spans = thread_spans(trace, thread, values)
    start = trace.window.start
    knots = np.append(spans.start_cycles, spans.end_cycles) - start
    weight = np.where(spans.value == RUNNING, _RUNNING_COUNTS, 1.0)
    passed = np.append(0.0, np.cumsum(np.diff(knots) * weight))

    def weighted(at: Cycles) -> NDArray[np.float64]:
        return np.asarray(np.interp(at - start, knots, passed), np.float64)

    bounds = np.interp(weighted(np.array([window.start, window.end])), weighted(time), cpu - cpu[0])
    return round(float(bounds[1] - bounds[0]))
