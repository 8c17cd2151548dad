"""Sets of time ranges with their overlaps, in whole cycles, and locations in a trace."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import numbers_of
from satview.base.time import Clock, TimeWindow
from satview.base.time_text import format_moment, range_text
from satview.core import statistics
from satview.store.trace import Trace

# Locations in a trace, such as that of a failed test, as text and as a command that shows the location.


_ROOM: Final = 4  # the view is this many times as wide as the location, to show its surroundings
_LEAST_NS: Final = 20_000  # minimum width of a location; that of a point in time


@dataclass(frozen=True, slots=True)
class Location:
    """A time range in a trace, and the event at its start.

    Attributes:
        path: The file.
        start_cycles, end_cycles: Start and end; equal for a point in time.
        event: Number of the event, from 1; 0 = no particular event.
        clock: Clock of the trace.
        whole: Range of the whole trace, cycles.
    """

    path: Path
    start_cycles: int
    end_cycles: int
    event: int
    clock: Clock
    whole: TimeWindow

    def __str__(self) -> str:
        """Return the location as text: `at 1.234 567 s (event 28,700)`."""
        event = f" (event {self.event:,})" if self.event else ""
        return f"at {format_moment(self.start_cycles, self.clock)}{event}"

    @property
    def range_text(self) -> str:
        """The part of the trace to show, as an argument of `--range`; events at the end are included."""
        length = max(self.end_cycles - self.start_cycles, self.clock.cycles_of(_LEAST_NS))
        room = length * (_ROOM - 1) // 2
        begin, end = self.start_cycles - room, self.start_cycles + length + room + 1
        return range_text(TimeWindow(begin, end).within(self.whole), self.clock)

    @property
    def options(self) -> list[str]:
        """Options for `satview` besides the file; empty if the location is the whole trace."""
        if not self.event and self.start_cycles <= self.whole.start and self.end_cycles >= self.whole.end:
            return []
        return ["--range", self.range_text, *(["--select", str(self.event)] if self.event else [])]

    @property
    def command(self) -> str:
        """The command that opens the trace at this location."""
        return shlex.join(["satview", str(self.path), *self.options])


def location_of(trace: Trace, start_cycles: int, end_cycles: int, row: int = -1) -> Location:
    """Return a location in a trace.

    Args:
        trace: The trace.
        start_cycles: Begin.
        end_cycles: End.
        row: Row of the event at the start; -1 = none.
    """
    return Location(trace.path, start_cycles, end_cycles, row + 1, trace.clock, trace.window)


Cycles = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TimeRanges:
    """Sorted time ranges that do not overlap or touch.

    Attributes:
        start, end: int64, (n,), cycles; the end is not included.
    """

    start: Cycles
    end: Cycles

    @classmethod
    def of(cls, start: Cycles, end: Cycles) -> TimeRanges:
        """Return the union of some ranges in any order; empty ranges are ignored."""
        keep = end > start
        start, end = start[keep], end[keep]
        order = np.argsort(start, kind="stable")
        start, latest = start[order], np.maximum.accumulate(end[order])
        begins = np.append(True, start[1:] > latest[:-1])[: len(start)]
        return cls(start[begins], latest[np.append(begins[1:], True)[: len(start)]])

    @classmethod
    def of_rows(cls, rows: Cycles) -> TimeRanges:
        """Return the union of the ranges in the first two columns of some rows."""
        return cls.of(rows[:, 0], rows[:, 1])

    @classmethod
    def none(cls) -> TimeRanges:
        """Return an empty set of ranges."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    def within(self, start: Cycles, end: Cycles) -> Cycles:
        """Return the cycles of each [start, end) that these ranges cover, int64 of the same shape."""
        return statistics.covered(self.start, self.end, start, end)

    def meet(self, start: Cycles, end: Cycles) -> NDArray[np.bool_]:
        """Return for each [start, end) whether it overlaps any of the ranges.

        Returns:
            bool (n,).
        """
        ended_before = np.searchsorted(self.end, start, side="right")
        return np.asarray(np.searchsorted(self.start, end) > ended_before)


def cut_at(start: Cycles, end: Cycles, edges: Cycles) -> tuple[NDArray[np.int64], NDArray[np.int64], Cycles, Cycles]:
    """Split ranges at edges; parts outside the first and last edge are dropped.

    Args:
        start: int64, (n,), cycles.
        end: int64, (n,), cycles; not included.
        edges: int64, (bins + 1,), ascending.

    Returns:
        Four columns, int64 (pieces,): index of the original range, bin, start and end of each piece.
    """
    start, end = np.clip(start, edges[0], edges[-1]), np.clip(end, edges[0], edges[-1])
    nonempty = np.flatnonzero(end > start)
    first_edge = np.searchsorted(edges, start[nonempty], side="right") - 1
    last_edge = np.searchsorted(edges, end[nonempty]) - 1
    size = last_edge - first_edge + 1
    number = numbers_of(first_edge, size)
    rows = np.repeat(nonempty, size)
    return rows, number, np.maximum(start[rows], edges[number]), np.minimum(end[rows], edges[number + 1])


def overlaps(
    thread: NDArray[np.integer], begin: Cycles, end: Cycles, spans_thread: NDArray[np.integer],
    spans_begin: NDArray[np.integer], spans_end: NDArray[np.integer],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:  # fmt: skip
    """Return pairs of overlapping intervals of the same thread.

    Args:
        thread: (n,), thread of each interval of the first set.
        begin: int64 (n,), begins: rows of the event table, or any numbers below 2^32 that increase with time.
        end: int64 (n,), ends; not included.
        spans_thread: (m,), thread of each interval of the second set, in which intervals of a thread do not overlap.
        spans_begin: (m,), begins; the second set is sorted by thread and begin.
        spans_end: (m,), ends; not included.

    Returns:
        Indices into the first and the second set, (k,) each.
    """
    key, own = spans_thread.astype(np.int64), thread.astype(np.int64) << 32
    key <<= 32
    key |= spans_begin
    stop = np.searchsorted(key, own | end)
    start = np.searchsorted(key, own | begin, side="right") - 1
    # The last interval that begins before `begin` may belong to another thread, or have ended.
    is_over = start < 0
    is_over[~is_over] = (spans_thread[start[~is_over]] != thread[~is_over]) | (
        spans_end[start[~is_over]] <= begin[~is_over])  # fmt: skip
    start = start + is_over
    sizes = np.maximum(stop - start, 0)
    position = np.repeat(np.arange(len(thread)), sizes)
    return position, numbers_of(start, sizes)
