"""Which intervals the trace holds from their begin to their end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.scope import Mask
from satview.analysis.times.state_times import StateSpans
from satview.events.states import UNKNOWN
from satview.store.losses import losses, losses_of
from satview.store.time_ranges import Cycles, TimeRanges
from satview.store.trace import Trace


def states_are_cut(trace: Trace, spans: StateSpans, mine: NDArray[np.intp] | None = None) -> Mask:
    """Return for which intervals in a state the trace does not hold both ends, bool (n,).

    Args:
        trace: The trace.
        spans: Intervals of threads.
        mine: (n,), the intervals queried about; None = all.
    """
    mine = np.arange(len(spans.value)) if mine is None else mine
    after = np.minimum(mine + 1, len(spans.value) - 1)
    is_cut = _is_cut(trace, spans.start[mine], spans.end[mine])
    return np.asarray(is_cut | (spans.thread[after] == spans.thread[mine]) & (spans.value[after] == UNKNOWN))


def runs_are_cut(trace: Trace, cpu: NDArray[np.uint8], start: Cycles, end: Cycles) -> Mask:
    """Return for which runs of threads the trace does not hold both ends, bool (n,).

    Args:
        trace: The trace.
        cpu: uint8 (n,).
        start: int64 (n,), cycles.
        end: int64 (n,), cycles.
    """
    lost, is_cut = losses(trace), _is_cut(trace, start, end)
    for number in range(trace.cpu_count if len(lost) else 0):
        here = cpu == number
        # A run that a loss cuts ends a cycle after the last event before it.
        is_cut[here] |= TimeRanges.of_rows(losses_of(lost, number)).meet(end[here] - 1, end[here])
    return is_cut


def _is_cut(trace: Trace, start: Cycles, end: Cycles) -> Mask:
    """Return which intervals begin before the trace does, end after it, or are reported by its opening dump only."""
    begins_before = (start <= trace.window.start) | (start <= trace.dump_end_cycles)
    return np.asarray(begins_before | (end >= trace.window.end))
