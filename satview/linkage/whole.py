"""Checks that no event is missing between the two events of a link."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.linkage.table import Rows
from satview.store.axis import files_of
from satview.store.losses import losses, losses_of
from satview.store.time_ranges import TimeRanges
from satview.store.trace import Trace


def is_whole(trace: Trace, begin: Rows, end: Rows) -> NDArray[np.bool_]:
    """Return for each pair of events whether no event of any CPU is missing in between, bool (n,)."""
    axis = files_of(trace)
    if axis is None:
        return _is_clear(trace, begin, end, TimeRanges.of_rows(losses(trace)))
    out = np.zeros(len(begin), np.bool_)
    for part, positions, own in axis.split(begin):  # pairs of events of two files are never whole
        both = axis.part_of[end[positions]] == axis.part_of[begin[positions]]
        out[positions[both]] = is_whole(part.trace, own[both], axis.own_row[end[positions[both]]])
    return out


def is_whole_on(trace: Trace, cpu: int, begin: Rows, end: Rows) -> NDArray[np.bool_]:
    """Return for each pair of events whether no event of one CPU is missing in between.

    Returns:
        bool (n,).
    """
    return _is_clear(trace, begin, end, TimeRanges.of_rows(losses_of(losses(trace), cpu)))


def part_of(trace: Trace, cpu: int, rows: Rows) -> NDArray[np.intp]:
    """Return how many losses of a CPU are before each event; events with different numbers must not be linked.

    Returns:
        intp (n,).
    """
    lost = TimeRanges.of_rows(losses_of(losses(trace), cpu))
    if not len(lost.end):
        return np.zeros(len(rows), np.intp)
    return np.searchsorted(lost.end, trace.events.time_cycles[rows], side="right")


def _is_clear(trace: Trace, begin: Rows, end: Rows, lost: TimeRanges) -> NDArray[np.bool_]:
    if not len(lost.start):
        return np.ones(len(begin), np.bool_)
    times = trace.events.time_cycles
    return ~lost.meet(times[begin], times[end])
