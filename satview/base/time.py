"""Conversion of clock cycles and nanoseconds, and time windows; `time_text` has their text forms.

All positions in a trace are whole clock cycles (int64) of the target's counter. Nanoseconds are derived exactly, by
integer arithmetic; floats are used only for pixels, after the start of the window was subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

NS_PER_S = 1_000_000_000
Cycles = NDArray[np.int64]
_MOST_S = np.iinfo(np.int64).max // NS_PER_S - 1  # whole seconds that still fit into int64 nanoseconds


@dataclass(frozen=True, slots=True)
class Clock:
    """The time base of one trace.

    Attributes:
        cycles_per_s: Rate of the stamps, TRACE_CYCLES_PER_SEC; at least 1.
        start_cycles: Counter value at relative time 0: the first event of the trace.
        boot_time_s: Approximate time at which the counter was zero, seconds since 1970 UTC; None if not known.
        boot_rest_ns: Nanoseconds to add to `boot_time_s`.
        is_absolute: False if the upper half of the counter is unknown, so that only differences are meaningful.
    """

    cycles_per_s: int
    start_cycles: int = 0
    boot_time_s: int | None = None
    is_absolute: bool = True
    boot_rest_ns: int = 0

    def ns(self, cycles: int) -> int:
        """Return nanoseconds since the start of the trace; exact, rounded towards minus infinity."""
        return (cycles - self.start_cycles) * NS_PER_S // self.cycles_per_s

    def duration_ns(self, cycles: int) -> int:
        """Return a number of cycles as nanoseconds, rounded towards minus infinity."""
        return cycles * NS_PER_S // self.cycles_per_s

    def cycles(self, ns: int) -> int:
        """Return the counter value at a time since the start: the first cycle that is not before that time."""
        return self.start_cycles - (-ns * self.cycles_per_s // NS_PER_S)

    def cycles_array(self, ns: Cycles) -> Cycles:
        """Return `cycles()` of every element; exact for rates up to 9.2 GHz. Shape (n,), int64."""
        whole = -ns // NS_PER_S
        rest = -ns - whole * NS_PER_S
        return np.asarray(self.start_cycles - (whole * self.cycles_per_s + rest * self.cycles_per_s // NS_PER_S))

    def cycles_of(self, duration_ns: int) -> int:
        """Return a length in nanoseconds as cycles, rounded up, so that a length above zero stays above zero."""
        return -(-duration_ns * self.cycles_per_s // NS_PER_S)

    def ns_array(self, cycles: Cycles) -> Cycles:
        """Return `ns()` of every element; exact. Shape (n,), int64.

        Times beyond 292 years, which only damaged traces have, are limited to that.
        """
        cycles = cycles - self.start_cycles
        # Whole seconds and the rest apart keep every product below 2^63 for rates up to 9.2 GHz.
        # A division by one number is vectorised; np.divmod is not, and ten times slower.
        whole = cycles // self.cycles_per_s
        rest = cycles - whole * self.cycles_per_s
        beyond = np.abs(whole) > _MOST_S
        if beyond.any():
            whole[beyond], rest[beyond] = np.sign(whole[beyond]) * _MOST_S, 0
        if self.cycles_per_s <= np.iinfo(np.int64).max // NS_PER_S:
            return np.asarray(whole * NS_PER_S + rest * NS_PER_S // self.cycles_per_s)
        exact = [int(r) * NS_PER_S // self.cycles_per_s for r in rest]
        return whole * NS_PER_S + np.array(exact, dtype=np.int64)

    def durations_ns(self, cycles: Cycles) -> Cycles:
        """Return `duration_ns()` of every element, rounded down; shape (n,), int64; limited as in `ns_array`."""
        return self.ns_array(cycles + self.start_cycles)

    def wall_time(self, cycles: int) -> datetime | None:
        """Return the approximate date of a counter value (UTC): the boot time plus the counter; None if not known."""
        if self.boot_time_s is None or not self.is_absolute:
            return None
        try:
            boot_s = self.boot_time_s + self.boot_rest_ns / NS_PER_S
            return datetime.fromtimestamp(boot_s + cycles / self.cycles_per_s, tz=UTC)
        except (OverflowError, ValueError, OSError):
            return None


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A range of time, `start <= t < end`, in cycles of the trace's clock; never empty."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise ValueError(f"empty window: {self.start} to {self.end}")

    @property
    def length(self) -> int:
        """Cycles from start to end."""
        return self.end - self.start

    def zoomed(self, factor: float, anchor: int) -> TimeWindow:
        """Return a window `factor` times as long (below 1 zooms in) in which `anchor` keeps its position."""
        length = max(1, round(self.length * factor))
        share = (anchor - self.start) / self.length
        start = anchor - round(length * share)
        return TimeWindow(start, start + length)

    def shifted(self, cycles: int) -> TimeWindow:
        """Return the window moved to later times by a number of cycles."""
        return TimeWindow(self.start + cycles, self.end + cycles)

    def clamped(self, limits: TimeWindow) -> TimeWindow:
        """Return the nearest window within `limits`: this window moved, or `limits` if this window is longer."""
        if self.length >= limits.length:
            return limits
        start = min(max(self.start, limits.start), limits.end - self.length)
        return TimeWindow(start, start + self.length)

    def within(self, whole: TimeWindow) -> TimeWindow:
        """Return the intersection with the window `whole`; if the two do not overlap, `whole`."""
        start, end = max(self.start, whole.start), min(self.end, whole.end)
        return TimeWindow(start, end) if start < end else whole

    def contains(self, cycles: int) -> bool:
        """Return whether a moment is in the window."""
        return self.start <= cycles < self.end
