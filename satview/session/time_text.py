"""Times as people type them: `1.2s`, `350us..2ms`, `-5s..`, `0x1f00c`, `#1200`, `25%`, `06:19:01`."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.dataclass import dataclass
from satview.base.errors import UsageError
from satview.base.time import NS_PER_S, Clock, TimeWindow
from satview.store.trace import Trace

_NS_OF_UNIT: Final = {
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "\N{MICRO SIGN}s": 10**3,
    "\N{GREEK SMALL LETTER MU}s": 10**3,
    "ns": 1,
    "": 10**9,
}
_TIME: Final = re.compile(
    r"([+-]?)\s*([0-9][0-9 _]{0,30}(?:\.[0-9 ]{0,30})?|\.[0-9 ]{1,30})\s*([a-z\u00b5\u03bc]{0,2})", re.ASCII
)
_HELP: Final = "write 1.2s, 350us, 2ms or 800ns, -5s from the end, #1200, 25% or 06:19:01"
_NS_MAX: Final = 10**19
_WALL: Final = re.compile(
    r"(?:([0-9]{4}-[0-9]{2}-[0-9]{2})[T ])?([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?Z?", re.ASCII
)


def parse_time_ns(text: str) -> int:
    """Return a time relative to the start of the trace in whole nanoseconds; without a unit it means seconds.

    Raises:
        UsageError: The text is no time.
    """
    return int(_parse_time(text))


def parse_time_ps(text: str) -> int:
    """Return a length of time in whole picoseconds, which are finer than any clock of a trace; it may be negative.

    Raises:
        UsageError: The text is no time.
    """
    return round(_parse_time(text) * 1000)


def _parse_time(text: str) -> Fraction:
    """Return a time in nanoseconds, with all the decimals that it was given."""
    found = _TIME.fullmatch(text.strip())
    if found is None or found[3] not in _NS_OF_UNIT:
        raise UsageError(f"{text.strip()[:40]!r} is no time; {_HELP}")
    number = Fraction(found[2].replace(" ", "").replace("_", ""))
    time_ns = min(number * _NS_OF_UNIT[found[3]], Fraction(_NS_MAX))
    return -time_ns if found[1] == "-" else time_ns


@dataclass(frozen=True, slots=True)
class Axis:
    """What typed moments refer to.

    Attributes:
        clock: Of the trace.
        limits: Where moments may be, cycles.
        event_times: int64 (n,), cycles, ascending: the times of the events.
    """

    clock: Clock
    limits: TimeWindow
    event_times: NDArray[np.int64]


def axis_of(trace: Trace) -> Axis:
    """Return what typed moments refer to in a trace."""
    return Axis(trace.clock, trace.window, trace.events.time_cycles)


def parse_range(text: str, axis: Axis) -> TimeWindow:
    """Return the window that `A..B` means; either end may be left out.

    Each end is a moment as of `parse_moment`; an end `+5ms` is so long after the beginning. An event at the end is
    included.

    Raises:
        UsageError: The text is no range, is empty, or is outside the trace.
    """
    first, dots, last = text.partition("..")
    limits = axis.limits
    if not dots:
        raise UsageError(f"{text[:40]!r} is no range; write it as 1.2s..1.5s, times from the start of the trace")
    start = parse_moment(first, axis) if first.strip() else limits.start
    end = _parse_end(last.strip(), start, axis) if last.strip() else limits.end
    if end <= start:
        raise UsageError(f"range {text[:40]!r} ends before it begins")
    if end <= limits.start or start >= limits.end:
        raise UsageError(f"range {text[:40]!r} is outside the trace")
    return TimeWindow(start, end)


def _parse_end(text: str, start: int, axis: Axis) -> int:
    if text.startswith("+"):
        return start + _cycles_of(_parse_time(text), axis.clock)
    return parse_moment(text, axis) + text.startswith("#")


def range_text(window: TimeWindow, clock: Clock) -> str:
    """Return a range as `parse_range` reads it, to the cycle: `1.2s..1.5s`."""
    return f"{moment_text(window.start, clock)}..{moment_text(window.end, clock)}"


def moment_text(cycles: int, clock: Clock) -> str:
    """Return a moment as `parse_moment` reads it, to the cycle: `1.25s`, or `80000cy` where 1 ns is too coarse."""
    ns = clock.ns(cycles)
    if not 0 <= ns < _NS_MAX or clock.cycles(ns) != cycles:
        return f"{cycles}cy"
    return f"{ns // NS_PER_S}.{ns % NS_PER_S:09d}".rstrip("0").rstrip(".") + "s"


def _cycles_of(ns: Fraction, clock: Clock) -> int:
    """Return the first cycle that is not before a time since the start, exactly: a cycle may be less than 1 ns."""
    return ceil(ns * clock.cycles_per_s / NS_PER_S)


def parse_moment(text: str, axis: Axis) -> int:
    """Return the moment in cycles that a text means; it may be outside the trace.

    `1.25s` is from the start of the trace, `-5s` from its end, `0x1f00c` and `80000cy` are cycles of the counter,
    `#1200` is an event by its number from 1, `25%` a share of the trace, `2024-06-10 06:19:01.5` and `06:19:01` are the
    time of day in UTC, where the header shows it.

    Raises:
        UsageError: The text is none of these, or the trace does not have what it refers to.
    """
    text, limits = text.strip(), axis.limits
    if text.startswith("#"):
        return int(axis.event_times[_parse_event(text, len(axis.event_times))])
    if (cycles := _parse_cycles(text)) is not None:
        return cycles
    if found := re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,12})?)\s*%", text, re.ASCII):
        return limits.start + int(Fraction(found[1]) * limits.length / 100)
    if found := _WALL.fullmatch(text):
        return _parse_wall(found, axis)
    time_ns = _parse_time(text)
    if text.startswith("-"):
        return limits.end - _cycles_of(-time_ns, axis.clock)
    return axis.clock.start_cycles + _cycles_of(time_ns, axis.clock)


def _parse_wall(found: re.Match[str], axis: Axis) -> int:
    """Return the moment of a date and time, or of a time on the day on which the trace begins."""
    begin = axis.clock.wall_time(axis.limits.start)
    if begin is None:
        raise UsageError("the trace does not show the time of day; write 1.2s from its start")
    try:
        day = date.fromisoformat(found[1]) if found[1] else begin.date()
        at = datetime.combine(day, time.fromisoformat(found[2]), UTC)
    except ValueError as error:
        raise UsageError(f"{found[0][:40]!r} is no time of day; write 2024-06-10 06:19:01.5") from error
    boot = datetime.fromtimestamp(axis.clock.boot_time_s or 0, tz=UTC)
    passed_ns = (at - boot) // timedelta(seconds=1) * NS_PER_S + (Fraction(found[3]) * NS_PER_S if found[3] else 0)
    return _cycles_of(Fraction(passed_ns - axis.clock.boot_rest_ns), axis.clock)


@dataclass(frozen=True, slots=True)
class TimePosition:
    """Where to go: one of the two is given."""

    cycles: int | None = None
    event: int | None = None


def parse_position(text: str, axis: Axis) -> TimePosition:
    """Return the event that `#1200` means, or the moment that any other text does (`parse_moment`).

    Raises:
        UsageError: The text is none of these, or the position is outside the trace.
    """
    text = text.strip()
    if text.startswith("#"):
        return TimePosition(event=_parse_event(text, len(axis.event_times)))
    cycles = parse_moment(text, axis)
    if not axis.limits.start <= cycles < axis.limits.end:
        raise UsageError(f"{text[:40]!r} is outside the trace")
    return TimePosition(cycles=cycles)


def _parse_event(text: str, count: int) -> int:
    """Return the row of an event from its number."""
    digits = text[1:].replace(",", "").replace(" ", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 16):
        raise UsageError(f"{text[:40]!r} is no event number; write #1200")
    if not 1 <= int(digits) <= count:
        raise UsageError(f"there is no event {text[:40]}; the trace has {count:,}")
    return int(digits) - 1


def _parse_cycles(text: str) -> int | None:
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text):
        return int(text, 16)
    found = re.fullmatch(r"([0-9]{1,19})\s*(?:cy|cycles)", text, re.ASCII)
    return int(found[1]) if found else None
