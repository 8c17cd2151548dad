"""One lane: its intervals, its levels, its shares or the numbers that it shows, and what is where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.timeline.levels import Levels
from satview.timeline.shares import LaneShares
from satview.timeline.spans import LaneSpans, Span

_STEP: Final = 4  # values of a level in one of the next
_MOST: Final = 32  # values looked at for a pixel on average; beyond it the next level serves
_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """The values of one lane.

    Attributes:
        lowest, highest: Of all values and 0: bottom and top of the lane.
        levels: When values begin, int64; the least and the largest of each, float64; finest first.
    """

    lowest: float
    highest: float
    levels: tuple[tuple[NDArray[np.int64], _Numbers, _Numbers], ...]

    @classmethod
    def of(cls, start_cycles: NDArray[np.int64], numbers: _Numbers) -> Counter:
        """Return the counter of values that each hold until the next begins.

        Args:
            start_cycles: int64 (n,), ascending.
            numbers: float64 (n,), NaN = not known; infinite ones are not known either.
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
        """Return the least and the largest value in every pixel, float64 (pixels,), NaN where none is known.

        Of many values in a pixel those of neighbouring pixels may count that are less than an eighth of it away.

        Args:
            edges: int64 (pixels + 1,), where pixels begin, ascending.
        """
        start, least, most = next(level for level in self.levels if self._is_coarse(level[0], edges))
        begin = np.searchsorted(start, edges[:-1], side="right") - 1
        stop = np.maximum(np.searchsorted(start, edges[1:]), begin + 1)  # behind the last one that begins in it
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
        """Return whether a level has few enough values for a picture, or is the last one."""
        begin, stop = np.searchsorted(start, (edges[0], edges[-1])).tolist()
        return stop - begin <= _MOST * len(edges) or len(start) <= _STEP


class Lane:
    """A lane that is ready to be drawn and requested.

    Attributes:
        spans: Its intervals.
        levels: Coarse copies.
        shares: How it divides its time.
        use: Of a process, how many CPUs it has when; None of other lanes.
        ready: Of a process, how many of its threads are READY when; None of other lanes.
        counter: What a lane counts; None of other lanes.
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
        """Return the interval that covers a moment."""
        index = self.spans.index_at(cycles)
        return self._span(index) if index >= 0 else None

    def next_edge(self, cycles: int) -> int | None:
        """Return when the next interval after a moment begins, None after the last."""
        index = int(np.searchsorted(self.spans.start_cycles, cycles, side="right"))
        return int(self.spans.start_cycles[index]) if index < len(self.spans) else None

    def previous_edge(self, cycles: int) -> int | None:
        """Return when the last interval before a moment began, None before the first."""
        index = int(np.searchsorted(self.spans.start_cycles, cycles)) - 1
        return int(self.spans.start_cycles[index]) if index >= 0 else None

    def _span(self, index: int) -> Span:
        spans = self.spans
        end = int(spans.start_cycles[index + 1]) if index + 1 < len(spans) else spans.end_cycles
        thread = int(spans.thread[index]) if spans.thread is not None else 0
        text = spans.texts[index] if spans.texts is not None else ""
        return Span(int(spans.start_cycles[index]), end, int(spans.value[index]), int(spans.event[index]), thread, text)
