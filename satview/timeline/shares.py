"""The exact shares of values in the time of a lane: the cycles of each value in any range of time.

Running sums are stored at every 32nd interval (`kinds` / 4 bytes per interval); the rest is added on demand. Sums over
bins of 2^n cycles from the start of the trace are stored too (as much again), so that frames need not compute them.
Pictures of shares do not change when a moving view comes to rest, and agree with the statistics.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import TimeWindow
from satview.core import pictures
from satview.events.states import VALUE_COUNT
from satview.timeline.event_marks import EventTimes
from satview.timeline.spans import NO_EVENT, LaneSpans, touching

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
        """Return for bins of 2^shift cycles the cycles that each value covers, times its weight, int64 (bins, k).

        Args:
            window: The whole trace; bin 0 begins with it.
            shift: Log2 of the length of the bins.
            begin: First bin.
            stop: Bin after the last one; all bins are within the trace.
        """
        if shift in self._bin_sums(window):
            return self._levels[shift][begin:stop]
        edges = window.start + (np.arange(begin, stop + 1, dtype=np.int64) << shift)
        return self.cycles(np.minimum(edges, window.end))

    def peak(self, window: TimeWindow, shift: int) -> float:
        """Return the largest time average of the weight (such as CPUs in use) in any bin of 2^shift cycles.

        If there are very many bins, the largest weight at any time is returned instead.

        Args:
            window: The whole trace.
            shift: Log2 of the length of the bins.
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
        """Compute the stored sums that `binned` looks up; called in a worker, so that no frame waits for them."""
        self._bin_sums(window)

    def _bin_sums(self, window: TimeWindow) -> dict[int, NDArray[np.int64]]:
        """Return stored sums by log2 of their bins' length: the finest, and those of 2, 4, 8, ... times the length.

        Empty for a lane with few intervals. Computed at the first call, as not every caller needs the sums: 0.3 ms for
        a lane of 200,000 intervals.
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
