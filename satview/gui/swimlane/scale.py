"""Time to pixel and back, in one plain struct; floats appear only after the window start was subtracted."""

from __future__ import annotations

from dataclasses import dataclass

from satview.base.time import TimeWindow


@dataclass(frozen=True, slots=True)
class TimeScale:
    """How a window of time is on a width of (logical) pixels."""

    window: TimeWindow
    width_px: int

    def x(self, cycles: int) -> float:
        """Return the position of a moment; far outside moments stay within what Qt can draw."""
        x = (cycles - self.window.start) * self.width_px / self.window.length
        return min(max(x, -1e6), 1e6)

    def cycles(self, x: float) -> int:
        """Return the moment at a position: the cycle that the pixel's left edge falls into."""
        return self.window.start + int(x * self.window.length // max(1, self.width_px))

    def length(self, px: float) -> int:
        """Return how many cycles a number of pixels represents, at least 1."""
        return max(1, round(px * self.window.length / max(1, self.width_px)))

    @property
    def px_per_cycle(self) -> float:
        """Pixels that one clock cycle takes."""
        return self.width_px / self.window.length
