"""How many events of some kinds there are in each of many divisions of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.analysis.load import bin_edges
from satview.base.time import TimeWindow
from satview.store.time_ranges import Cycles
from satview.store.trace import Trace


@dataclass(frozen=True, slots=True)
class Divisions:
    """Counts of events.

    Attributes:
        edges: int64, (divisions + 1,), cycles; they are equally long but for one cycle.
        counts: int64, (kinds, divisions).
        first: int64, (kinds, divisions), row of the first event of the kind in each; -1 without one.
    """

    edges: Cycles
    counts: NDArray[np.int64]
    first: NDArray[np.int64]


def divisions(trace: Trace, window: TimeWindow, count: int, kinds: Sequence[NDArray[np.unsignedinteger]]) -> Divisions:
    """Return the counts.

    Args:
        trace: The trace.
        window: The whole; the event at its end does not count.
        count: How many divisions at most, as for `bin_edges`.
        kinds: Rows of the events of each kind, ascending.
    """
    edges = bin_edges(window, count)
    at = np.searchsorted(trace.events.time_cycles, edges)  # the first event of each division
    counts = np.zeros((len(kinds), len(edges) - 1), np.int64)
    first = np.full(counts.shape, -1, np.int64)
    for kind, rows in enumerate(kinds):
        bounds = np.searchsorted(rows, at)
        counts[kind] = np.diff(bounds)
        has = np.flatnonzero(counts[kind])
        first[kind, has] = rows[bounds[has]]
    return Divisions(edges, counts, first)
