"""How long work of several pieces takes, learnt from how long it took: so much in any case, and so much for each."""

from __future__ import annotations

import time
from typing import Final

# Time of other programs says nothing of what fits into a frame, where the system measures without it.
_FINE_S: Final = 1e-4
clock = time.thread_time if time.get_clock_info("thread_time").resolution < _FINE_S else time.perf_counter
_FORGET: Final = 0.7  # how much an observation counts when there is another one
_LEAST: Final = 0.25  # of its mean time, a piece takes at least that, whatever a few observations seem to say


class Cost:
    """Seconds of a fixed part and of each piece, by least squares; what was seen lately counts most."""

    def __init__(self) -> None:
        self._weight = self._pieces = self._squares = self._time_s = self._products = 0.0

    def saw(self, pieces: int, time_s: float) -> None:
        """Take into account how long some pieces took."""
        added = (1.0, pieces, pieces * pieces, time_s, pieces * time_s)
        sums = (self._weight, self._pieces, self._squares, self._time_s, self._products)
        self._weight, self._pieces, self._squares, self._time_s, self._products = (
            _FORGET * known + more for known, more in zip(sums, added, strict=True)
        )

    def fitting(self, time_s: float) -> float:
        """Return how many pieces probably take a time; a number beyond all bounds as long as nothing is known."""
        if self._time_s <= 0:
            return float("inf")
        mean_s = self._time_s / self._pieces
        spread = self._weight * self._squares - self._pieces**2
        piece_s = mean_s
        if spread > 1e-6 * self._squares:
            piece_s = (self._weight * self._products - self._pieces * self._time_s) / spread
            piece_s = min(max(piece_s, _LEAST * mean_s), mean_s)
        fixed_s = (self._time_s - piece_s * self._pieces) / self._weight
        return (time_s - fixed_s) / piece_s
