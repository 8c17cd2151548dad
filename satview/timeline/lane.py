"""One lane: its intervals, coarser copies of them for zooming out, and the exact shares of values in its time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import TimeWindow
from satview.core import pictures
from satview.events.states import IS_BUSY, SEEN_EVENT, SEEN_RUNNING, VALUE_COUNT, VALUE_MASK
from satview.timeline.event_marks import EventTimes
from satview.timeline.spans import NO_EVENT, LaneSpans, Span, touching

# The exact shares of values in the time of a lane: the cycles of each value in any range of time.
#
# Running sums are stored at every 32nd interval (`kinds` / 4 bytes per interval); the rest is added on demand. Sums
# over bins of 2^n cycles from the start of the trace are stored too (as much again), so that frames need not compute
# them. Pictures of shares do not change when a moving view comes to rest, and agree with the statistics.


_EVERY: Final = 32
_PER_CELL: Final = 64  # intervals per bin, on average, in the finest bins whose sums are stored
_WHOLE: Final = -1  # key in `_peaks` for the whole trace as one bin
_MOST_BINS: Final = 1 << 16  # most bins that are computed only to find their peak
_LEAST_CELLS: Final = 64  # for fewer bins, computing sums is as fast as looking them up
_ONES: Final = np.ones(VALUE_COUNT, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class LaneShares:
    """The time that one lane has each of its values, for any range of time.

    Attributes:
        spans: The intervals of the lane.
        values: uint8 (k,), the values of its intervals, ascending.
        weight: int64 (64,), weight of a cycle of each value.
    """

    spans: LaneSpans
    values: NDArray[np.uint8]
    weight: NDArray[np.int64]
    _index: NDArray[np.int64]
    _sums: pictures.ShareSums
    _levels: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False)  # by length, log2 of cycles
    _peaks: dict[int, float] = field(default_factory=dict, repr=False)  # by length

    @classmethod
    def of(cls, spans: LaneSpans, sums: NDArray[np.int64] | None = None) -> LaneShares:
        """Return the cumulative time of a lane in each of its values, a column per value.

        Args:
            spans: The lane.
            sums: Stored `sums` of the same lane; None = they are computed.

        Raises:
            ValueError: The stored sums do not fit the lane.
        """
        values = np.flatnonzero(np.bincount(spans.value, minlength=VALUE_COUNT)).astype(np.uint8)
        kind_of = np.zeros(VALUE_COUNT, np.int64)
        kind_of[values] = np.arange(len(values))
        return cls._made(spans, values, kind_of, _ONES, sums)

    @classmethod
    def counting(cls, spans: LaneSpans, sums: NDArray[np.int64] | None = None) -> LaneShares:
        """Return the sums of a lane whose values are counts: one column, cycles times count. Arguments as for `of`."""
        return cls._made(spans, np.zeros(1, np.uint8), np.zeros(VALUE_COUNT, np.int64), np.arange(VALUE_COUNT), sums)

    @classmethod
    def _made(
        cls,
        spans: LaneSpans,
        values: NDArray[np.uint8],
        kind_of: NDArray[np.int64],
        weight: NDArray[np.int64],
        sums: NDArray[np.int64] | None,
    ) -> LaneShares:
        begins, kinds = np.ascontiguousarray(spans.start_cycles[::_EVERY]), len(values)
        times: Any = spans.start_cycles
        if sums is None:
            index = pictures.share_index(np.asarray(times), spans.value, _EVERY, kind_of, weight, kinds)
        elif sums.dtype != np.int64 or sums.shape != (len(begins) * kinds,):
            raise ValueError("sums of a lane do not fit")
        else:
            index = sums.reshape(-1, kinds)
        start = (times.clock.time, times.rows) if isinstance(times, EventTimes) else np.ascontiguousarray(times)
        running_sums = pictures.ShareSums(
            start, np.ascontiguousarray(spans.value), spans.end_cycles, _EVERY, kind_of, weight, index, begins
        )
        return cls(spans, values, weight, index, running_sums)

    @property
    def sums(self) -> NDArray[np.int64]:
        """The sums to store for a later call of `of` or `counting`, int64 (n,)."""
        return self._index.ravel()

    def cycles(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for every bin the cycles that each value covers, times the weight of the value, int64 (bins, k).

        Args:
            edges: int64 (bins + 1,), start times of bins, ascending. Beyond the lane nothing is covered.
        """
        return self._sums.cycles(np.ascontiguousarray(edges, np.int64))

    def binned(self, window: TimeWindow, shift: int, begin: int, stop: int) -> NDArray[np.int64]:
        """Return for bins of 2^shift cycles the cycles that each value covers, times its weight, int64 (bins, k)."""
        if shift in self._bin_sums(window):
            return self._levels[shift][begin:stop]
        edges = window.start + (np.arange(begin, stop + 1, dtype=np.int64) << shift)
        return self.cycles(np.minimum(edges, window.end))

    def peak(self, window: TimeWindow, shift: int) -> float:
        """Return the largest time average of the weight (such as CPUs in use) in any bin of 2^shift cycles.

        If there are very many bins, the largest weight at any time is returned instead.
        """
        if shift not in self._peaks:
            count = ((window.length - 1) >> shift) + 1
            if count > _MOST_BINS and shift not in self._bin_sums(window):
                peak = float(self.weight[self.spans.value].max(initial=0))
            else:
                lengths = np.full(count, 1 << shift, np.int64)
                lengths[-1] = window.length - ((count - 1) << shift)
                peak = float((self.binned(window, shift, 0, count).sum(axis=1) / lengths).max())
            self._peaks[shift] = peak
        return self._peaks[shift]

    def mean(self, window: TimeWindow) -> float:
        """Return the time average of the weight (such as CPUs in use) over the whole trace."""
        if _WHOLE not in self._peaks:
            self._peaks[_WHOLE] = float(self.totals(window).sum()) / window.length
        return self._peaks[_WHOLE]

    def make_bins(self, window: TimeWindow) -> None:
        """Compute the stored sums that `binned` looks up; called in a worker thread, so that drawing need not wait."""
        self._bin_sums(window)

    def _bin_sums(self, window: TimeWindow) -> dict[int, NDArray[np.int64]]:
        """Return stored sums, int64 (bins, columns), by the log2 of the length of their bins in cycles.

        There are sums for the shortest bins, and for bins 2, 4, 8, ... times as long. Empty for a lane with few
        intervals. Computed at the first call, as not every caller needs the sums: 0.3 ms for a lane of 200,000
        intervals.
        """
        cells = len(self.spans) // _PER_CELL
        if self._levels or cells < _LEAST_CELLS:
            return self._levels
        shift = max(0, (window.length // cells).bit_length())
        edges = window.start + (np.arange(((window.length - 1) >> shift) + 2, dtype=np.int64) << shift)
        sums, by_shift = self.cycles(np.minimum(edges, window.end)), dict[int, NDArray[np.int64]]()
        while True:
            by_shift[shift] = sums
            if len(sums) < 2:
                break
            pairs = np.add.reduceat(sums, np.arange(0, len(sums), 2), axis=0)
            shift, sums = shift + 1, pairs
        self._levels.update(by_shift)
        return self._levels

    def totals(self, window: TimeWindow) -> NDArray[np.int64]:
        """Return the cycles that each value covers in a window, times the weight of the value, int64 (k,)."""
        return np.asarray(self.cycles(np.array([window.start, window.end], np.int64))[0])


def count_spans(start: NDArray[np.int64], end: NDArray[np.int64], window: TimeWindow) -> LaneSpans:
    """Return a lane whose values are the number of intervals that overlap at each time; at most 63.

    Args:
        start: int64 (n,), start times, cycles; such as when threads of a process begin to run.
        end: int64 (n,), end times.
        window: The whole trace.
    """
    time = np.concatenate(([window.start], start, end))
    step = np.concatenate(([0], np.ones(len(start), np.int64), np.full(len(end), -1, np.int64)))
    order = np.argsort(time, kind="stable")
    count = np.clip(np.cumsum(step[order]), 0, VALUE_COUNT - 1).astype(np.uint8)
    return touching(time[order], count, np.full(len(time), NO_EVENT, np.uint32), window.end)


# One lane: its intervals, coarser copies of them for zooming out (`Levels`), its shares of time, and its counter.
#
# A level has one byte per cell of time: six bits for the value that covers most of the cell, and the flags
# `SEEN_RUNNING` and `SEEN_EVENT`, so that short bursts and single events never vanish. Cells are 2^k cycles long, on
# one grid for all lanes. The finest level has about half as many cells as the lane has intervals, at least 8192; each
# coarser level has half as many, down to 16.


MIN_FINEST_CELLS: Final = 8192
MAX_CELL_PX: Final = 4
MIN_COARSEST_CELLS: Final = 16
_BLOCK_BITS: Final = 14


@dataclass(frozen=True, slots=True)
class Levels:
    """All levels (coarser copies of the intervals) of one lane, finest first.

    Attributes:
        origin: Where cell 0 begins, in cycles.
        shift: Cells of level 0 are 2^shift cycles long, those of level i 2^(shift + i).
        cells: uint8 arrays, one per level.
    """

    origin: int
    shift: int
    cells: tuple[NDArray[np.uint8], ...]

    def level_for(self, cycles_per_px: float) -> int | None:
        """Return the number of the coarsest level whose cells are not longer than a pixel.

        If even the finest level has longer cells, its number 0 is returned for cells of up to `MAX_CELL_PX` pixels: a
        moving view may be drawn that coarsely, as an exact frame follows. For still wider cells None is returned.
        """
        if cycles_per_px * MAX_CELL_PX < 1 << self.shift:
            return None
        return min(max(0, int(cycles_per_px).bit_length() - 1 - self.shift), len(self.cells) - 1)


def finest_shift(window: TimeWindow, intervals: int) -> int:
    """Return log2 of the length of the finest cell, in cycles, for a lane with this number of intervals."""
    requested = max(MIN_FINEST_CELLS, intervals // 2)
    return max(0, (window.length // requested).bit_length() - 1)


def build_levels(spans: LaneSpans, window: TimeWindow, seen_events: NDArray[np.bool_] | None = None) -> Levels:
    """Build the levels of a lane over the whole trace.

    Args:
        spans: The lane's intervals, from the start of the trace to its end.
        window: The whole trace, which determines the grid.
        seen_events: bool, for each finest cell whether the lane has an event other than a state change; None = nowhere.
    """
    shift = finest_shift(window, len(spans))
    cell_count = ((window.length - 1) >> shift) + 1
    values = np.flatnonzero(np.bincount(spans.value, minlength=VALUE_COUNT)).astype(np.uint8)
    local = np.zeros(VALUE_COUNT, np.int64)
    local[values] = np.arange(len(values))
    level_count = 1
    while cell_count >> level_count >= MIN_COARSEST_CELLS:
        level_count += 1
    finest = np.zeros(cell_count, np.bool_) if seen_events is None else seen_events
    levels: list[list[NDArray[np.uint8]]] = [[] for _ in range(level_count)]
    top: list[NDArray[np.float64]] = []
    top_seen: list[NDArray[np.bool_]] = []
    deep = min(level_count, _BLOCK_BITS + 1)
    kinds = pictures.LevelKinds(values, local, IS_BUSY[values].astype(np.uint8))
    for start in range(0, cell_count, 1 << _BLOCK_BITS):
        count = min(1 << _BLOCK_BITS, cell_count - start)
        begin = window.start + (start << shift)
        part = spans.visible(TimeWindow(begin, begin + (count << shift)))
        cells_of_levels, whole, seen = pictures.levels(
            spans.start_cycles[part], spans.value[part], spans.end_of(part), begin, shift, kinds,
            finest[start : start + count], deep, halves_last=level_count > deep)  # fmt: skip
        for level, cells in enumerate(cells_of_levels):
            levels[level].append(cells)
        top.append(whole.astype(np.float64))
        top_seen.append(seen)
    if level_count > deep:
        cover, seen = np.concatenate(top, axis=1), np.concatenate(top_seen)
        for level in range(deep, level_count):
            levels[level].append(_dominant(cover, values, seen))
            cover, seen = _halved(cover), _halved_flags(seen)
    return Levels(window.start, shift, tuple(np.concatenate(parts) for parts in levels))


def _dominant(cover: NDArray[np.float64], values: NDArray[np.uint8], seen: NDArray[np.bool_]) -> NDArray[np.uint8]:
    # Lanes cover the whole trace, so that every cell has a value.
    # Works on whole rows, which is twice as fast as argmax across the few kinds of every cell.
    most = np.maximum.reduce(cover, axis=0)
    cells = np.full(cover.shape[1], values[-1], np.uint8)
    for kind in range(len(values) - 2, -1, -1):  # the smallest value wins a tie
        np.copyto(cells, values[kind], where=cover[kind] == most)
    for kind in np.flatnonzero(IS_BUSY[values]).tolist():
        cells[cover[kind] > 0] |= SEEN_RUNNING
    cells[seen] |= SEEN_EVENT
    return cells


def _halved(cover: NDArray[np.float64]) -> NDArray[np.float64]:
    if cover.shape[1] % 2:
        cover = np.concatenate((cover, np.zeros((len(cover), 1))), axis=1)
    return np.asarray(cover[:, 0::2] + cover[:, 1::2])


def _halved_flags(seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if len(seen) % 2:
        seen = np.append(seen, False)
    return np.asarray(seen[0::2] | seen[1::2])


@dataclass(frozen=True, slots=True)
class PixelCells:
    """The grid cells that each pixel column covers, for one level of the grid; the same for all lanes of a frame.

    Attributes:
        first, middle, last: int64 (pixels,), index of the first, middle and last cell of each column.
        outside: intp (k,), columns outside the grid.
    """

    first: NDArray[np.int64]
    middle: NDArray[np.int64]
    last: NDArray[np.int64]
    outside: NDArray[np.intp]

    @classmethod
    def of(cls, edges: NDArray[np.int64], origin: int, shift: int, cell_count: int) -> PixelCells:
        """Return the cells of every pixel column.

        Args:
            edges: int64 (pixels + 1,), edges of the columns, cycles.
            origin: Start of cell 0, cycles.
            shift: Cells are 2^shift cycles long.
            cell_count: Number of cells of the level.
        """
        begin, end = edges[:-1] - origin, np.maximum(edges[1:] - 1, edges[:-1]) - origin
        limit = cell_count - 1
        outside = np.flatnonzero((end < 0) | (begin >> shift > limit))
        return cls(
            np.clip(begin >> shift, 0, limit),
            np.clip((begin + (end - begin) // 2) >> shift, 0, limit),
            np.clip(end >> shift, 0, limit),
            outside,
        )

    def take(self, cells: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        """Write the pixels of a lane: each gets the value of its middle cell, and flags of its first and last cell."""
        np.take(cells, self.middle, out=out)
        out |= (cells[self.first] | cells[self.last]) & np.uint8(~VALUE_MASK & 0xFF)
        if len(self.outside):
            out[self.outside] = 0

    def any_of(self, cells: NDArray[np.uint8], flag: int) -> NDArray[np.uint8]:
        """Return `flag` for every pixel that covers a cell with this flag, else 0, uint8 (pixels,)."""
        pairs = np.stack((self.first, self.last + 1), axis=1).ravel()
        out = np.bitwise_or.reduceat(np.append(cells & np.uint8(flag), np.uint8(0)), pairs)[::2]
        out[self.outside] = 0
        return np.asarray(out, np.uint8)


_STEP: Final = 4  # values of a level that are combined into one of the next
_MOST: Final = 32  # most values read per pixel on average; for more the next level is used
_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """The numbers that a lane draws as steps, with coarser copies for zooming out.

    Attributes:
        lowest, highest: Minimum and maximum of all values and 0: bottom and top of the lane.
        levels: For each level, finest first: start times, int64; minima and maxima, float64.
    """

    lowest: float
    highest: float
    levels: tuple[tuple[NDArray[np.int64], _Numbers, _Numbers], ...]

    @classmethod
    def of(cls, start_cycles: NDArray[np.int64], numbers: _Numbers) -> Counter:
        """Return the counter of values that each hold until the next begins.

        Args:
            start_cycles: int64 (n,), ascending.
            numbers: float64 (n,); NaN and infinite values count as not known.
        """
        numbers = np.where(np.isfinite(numbers), numbers, np.nan)
        known = numbers[np.isfinite(numbers)]
        levels = [(start_cycles, numbers, numbers)]
        while len(levels[-1][0]) > _STEP:
            start, least, most = levels[-1]
            begins = np.arange(0, len(start), _STEP)
            levels.append((start[begins], np.fmin.reduceat(least, begins), np.fmax.reduceat(most, begins)))
        return cls(float(min(known.min(initial=0), 0)), float(max(known.max(initial=0), 0)), tuple(levels))

    def extremes(self, edges: NDArray[np.int64]) -> tuple[_Numbers, _Numbers]:
        """Return the minimum and maximum in every pixel, float64 (pixels,), NaN where no value is known.

        Where a pixel has many values, those up to an eighth of a pixel outside it may be included.

        Args:
            edges: int64 (pixels + 1,), start times of pixels, ascending.
        """
        start, least, most = next(level for level in self.levels if self._is_coarse(level[0], edges))
        begin = np.searchsorted(start, edges[:-1], side="right") - 1
        stop = np.maximum(np.searchsorted(start, edges[1:]), begin + 1)  # behind the last value that begins in it
        before = begin < 0
        begin = np.maximum(begin, 0)
        pairs = np.stack((begin, np.maximum(stop, begin + 1)), axis=1).ravel()
        low, high = (
            pick.reduceat(np.append(values, np.nan), np.minimum(pairs, len(values)))[::2]
            for pick, values in ((np.fmin, least), (np.fmax, most))
        )
        none = before & (stop <= 0)
        return np.where(none, np.nan, low), np.where(none, np.nan, high)

    def _is_coarse(self, start: NDArray[np.int64], edges: NDArray[np.int64]) -> bool:
        """Return whether a level has few enough values between the edges to be drawn, or is the coarsest level."""
        begin, stop = np.searchsorted(start, (edges[0], edges[-1])).tolist()
        return stop - begin <= _MOST * len(edges) or len(start) <= _STEP


class Lane:
    """A lane that is ready to be drawn and queried.

    Attributes:
        spans: Its intervals.
        levels: Coarser copies of the intervals.
        shares: The time of each value within any range of time.
        use: For a process, how many CPUs it uses over time; None for other lanes.
        ready: For a process, how many of its threads are READY over time; None for other lanes.
        counter: For a counter lane, its numbers; None for other lanes.
    """

    __slots__ = ("counter", "levels", "ready", "shares", "spans", "use")

    def __init__(
        self,
        spans: LaneSpans,
        levels: Levels,
        shares: LaneShares,
        use: LaneShares | None = None,
        ready: LaneShares | None = None,
        numbers: NDArray[np.float64] | None = None,
    ) -> None:
        self.spans = spans
        self.levels = levels
        self.shares = shares
        self.use, self.ready = use, ready
        self.counter = Counter.of(spans.start_cycles, numbers) if numbers is not None else None

    def at(self, cycles: int) -> Span | None:
        """Return the interval that covers a time; None if there is none."""
        index = self.spans.index_at(cycles)
        return self._span(index) if index >= 0 else None

    def next_edge(self, cycles: int) -> int | None:
        """Return the start of the first interval that begins after a time, cycles; None if there is none."""
        index = int(np.searchsorted(self.spans.start_cycles, cycles, side="right"))
        return int(self.spans.start_cycles[index]) if index < len(self.spans) else None

    def previous_edge(self, cycles: int) -> int | None:
        """Return the start of the last interval that begins before a time, cycles; None if there is none."""
        index = int(np.searchsorted(self.spans.start_cycles, cycles)) - 1
        return int(self.spans.start_cycles[index]) if index >= 0 else None

    def _span(self, index: int) -> Span:
        spans = self.spans
        end = int(spans.start_cycles[index + 1]) if index + 1 < len(spans) else spans.end_cycles
        thread = int(spans.thread[index]) if spans.thread is not None else 0
        text = spans.texts[index] if spans.texts is not None else ""
        return Span(int(spans.start_cycles[index]), end, int(spans.value[index]), int(spans.event[index]), thread, text)
