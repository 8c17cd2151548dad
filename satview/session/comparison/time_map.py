"""From the time of one trace to that of another one."""

from __future__ import annotations

from dataclasses import dataclass

from satview.base.time import TimeWindow


@dataclass(frozen=True, slots=True)
class TimeMap:
    """Two moments that are taken for the same, and the rates of both clocks.

    Attributes:
        from_cycles: The moment in the one trace, in its cycles.
        to_cycles: The moment in the other.
        from_rate: Cycles per second of the one clock.
        to_rate: Cycles per second of the other.
    """

    from_cycles: int
    to_cycles: int
    from_rate: int
    to_rate: int

    def cycles(self, cycles: int) -> int:
        """Return a moment of the one trace in the other; at different rates rounded to the nearest cycle."""
        return self.to_cycles + (2 * (cycles - self.from_cycles) * self.to_rate + self.from_rate) // (
            2 * self.from_rate
        )

    def window(self, window: TimeWindow) -> TimeWindow:
        """Return a part of the one trace in the other; at least a cycle long."""
        start = self.cycles(window.start)
        return TimeWindow(start, max(start + 1, self.cycles(window.end)))

    @property
    def inverse(self) -> TimeMap:
        """The way back."""
        return TimeMap(self.to_cycles, self.from_cycles, self.to_rate, self.from_rate)
