"""How a lane divides its time: the cycles of each value in any ranges of time, exact at every zoom.

Sums up to every 32nd interval are stored, `kinds` / 4 bytes an interval; the rest is added up on the spot. Of bins of
2^n cycles, counted from the start of the trace, the sums are stored, as much again: a frame takes them as they are.
A picture made of them is the same while the view moves and when it rests, and its figures are those of the statistics.
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
_PER_CELL: Final = 64  # intervals in the finest bins of which sums are stored, on average
_WHOLE: Final = -1  # as a length of bins: one bin, whose peak is the mean
_MOST_BINS: Final = 1 << 16  # that are made to find their peak
_LEAST_CELLS: Final = 64  # of fewer the sums are made as quickly as they are found
_ONES: Final = np.ones(VALUE_COUNT, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class LaneShares:
    """The sums of one lane.

    Attributes:
        spans: Its intervals.
        values: uint8 (k,), the values that it has, ascending.
        weight: int64 (64,), what a cycle of each value counts.
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
        """Return the sums of a lane, a column for each of its values.

        Args:
            spans: The lane.
            sums: What `sums` gave for the same lane before; None = they are found now.

        Raises:
            ValueError: These cannot be the sums of this lane.
        """
        values = np.flatnonzero(np.bincount(spans.value, minlength=VALUE_COUNT)).astype(np.uint8)
        kind_of = np.zeros(VALUE_COUNT, np.int64)
        kind_of[values] = np.arange(len(values))
        return cls._made(spans, values, kind_of, _ONES, sums)

    @classmethod
    def counting(cls, spans: LaneSpans, sums: NDArray[np.int64] | None = None) -> LaneShares:
        """Return the sums of a lane whose values are counts: one column, cycles times count. Arguments as of `of`."""
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
        """The stored sums, as `of` and `counting` take them, int64 (n,)."""
        return self._index.ravel()

    def cycles(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cycles that every value covers in every bin, int64 (bins, k), times its weight.

        Args:
            edges: int64 (bins + 1,), where bins begin, ascending. Beyond the lane nothing is covered.
        """
        return self._sums.cycles(np.ascontiguousarray(edges, np.int64))

    def binned(self, window: TimeWindow, shift: int, begin: int, stop: int) -> NDArray[np.int64]:
        """Return the cycles that every value covers in bins of 2^shift cycles, int64 (bins, k), times its weight.

        Args:
            window: The whole trace; bin 0 begins where it does.
            shift: Length of the bins.
            begin: The first bin.
            stop: The one behind the last; both within the trace.
        """
        if shift in self._bin_sums(window):
            return self._levels[shift][begin:stop]
        edges = window.start + (np.arange(begin, stop + 1, dtype=np.int64) << shift)
        return self.cycles(np.minimum(edges, window.end))

    def peak(self, window: TimeWindow, shift: int) -> float:
        """Return the most that a bin of 2^shift cycles has of all values in the mean, times their weight.

        Of bins so short that there are very many, the most at any moment.

        Args:
            window: The whole trace.
            shift: Length of the bins.
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
        """Return the mean over the whole trace of all values together, times their weight."""
        if _WHOLE not in self._peaks:
            self._peaks[_WHOLE] = float(self.totals(window).sum()) / window.length
        return self._peaks[_WHOLE]

    def make_bins(self, window: TimeWindow) -> None:
        """Compute what `binned` stores at its first call: in a worker, so that no frame waits."""
        self._bin_sums(window)

    def _bin_sums(self, window: TimeWindow) -> dict[int, NDArray[np.int64]]:
        """Return the sums of bins that are stored: the finest and, each from the one before, those of twice the length.

        Made at the first call, as not every caller needs them: 0.3 ms for a lane of 200,000 intervals.
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
        """Return the cycles that every value covers in a window, int64 (k,), times its weight."""
        return np.asarray(self.cycles(np.array([window.start, window.end], np.int64))[0])


def count_spans(start: NDArray[np.int64], end: NDArray[np.int64], window: TimeWindow) -> LaneSpans:
    """Return how many of the intervals overlap at each time, as the values of a lane; at most 63.

    Args:
        start: int64 (n,), when they begin, cycles: the threads of a process run, or are READY.
        end: int64 (n,), when each of them ends.
        window: The whole trace.
    """
    time = np.concatenate(([window.start], start, end))
    step = np.concatenate(([0], np.ones(len(start), np.int64), np.full(len(end), -1, np.int64)))
    order = np.argsort(time, kind="stable")
    count = np.clip(np.cumsum(step[order]), 0, VALUE_COUNT - 1).astype(np.uint8)
    return touching(time[order], count, np.full(len(time), NO_EVENT, np.uint32), window.end)
