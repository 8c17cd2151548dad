"""Lanes that count: the least and the largest value in every pixel, at a cost that follows the pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
            at = np.arange(0, len(start), _STEP)
            levels.append((start[at], np.fmin.reduceat(least, at), np.fmax.reduceat(most, at)))
        return cls(float(min(known.min(initial=0), 0)), float(max(known.max(initial=0), 0)), tuple(levels))

    def extremes(self, edges: NDArray[np.int64]) -> tuple[_Numbers, _Numbers]:
        """Return the least and the largest value in every pixel, float64 (pixels,), NaN where none is known.

        Of many values in a pixel those of neighbouring pixels may count that are less than an eighth of it away.

        Args:
            edges: int64 (pixels + 1,), where pixels begin, ascending.
        """
        start, least, most = next(level for level in self.levels if self._is_coarse(level[0], edges))
        first = np.searchsorted(start, edges[:-1], side="right") - 1
        last = np.maximum(np.searchsorted(start, edges[1:]), first + 1)  # behind the last one that begins in it
        before = first < 0
        first = np.maximum(first, 0)
        pairs = np.stack((first, np.maximum(last, first + 1)), axis=1).ravel()
        low, high = (
            pick.reduceat(np.append(values, np.nan), np.minimum(pairs, len(values)))[::2]
            for pick, values in ((np.fmin, least), (np.fmax, most))
        )
        none = before & (last <= 0)
        return np.where(none, np.nan, low), np.where(none, np.nan, high)

    def _is_coarse(self, start: NDArray[np.int64], edges: NDArray[np.int64]) -> bool:
        """Return whether a level has few enough values for a picture, or is the last one."""
        first, last = np.searchsorted(start, (edges[0], edges[-1])).tolist()
        return last - first <= _MOST * len(edges) or len(start) <= _STEP
