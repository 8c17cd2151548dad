"""Lengths as they are written where somebody measures: exactly, in time and in cycles."""

from __future__ import annotations

from satview.base.time import Clock
from satview.base.time_text import format_cycles, format_duration, format_exactly


def length_text(cycles: int, clock: Clock) -> str:
    """Return a length with nothing rounded away: `1.204 562 5 ms (2,409,125 cycles)`."""
    return f"{format_exactly(cycles, clock)} ({format_cycles(cycles)})"


def length_texts(cycles: int, clock: Clock) -> tuple[str, ...]:
    """Return a length in shorter and shorter words; one that is rounded says so."""
    exact, short = format_exactly(cycles, clock), format_duration(clock.duration_ns(cycles))
    return length_text(cycles, clock), exact, f"\N{ALMOST EQUAL TO} {short}"


def frequency_text(cycles: int, clock: Clock) -> str:
    """Return how often per second something of a length fits in: `830.2 Hz`; empty for a length of 0."""
    if not cycles:
        return ""
    hertz = clock.cycles_per_s / abs(cycles)
    for unit, scale in (("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3), ("Hz", 1.0)):
        if hertz >= scale or unit == "Hz":
            return f"{hertz / scale:.4g} {unit}"
    raise AssertionError("unreachable")
