"""Moments, lengths and ranges of time: conversion of clock cycles and nanoseconds, and their text forms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.safe_text import counted

# Conversion of clock cycles and nanoseconds, and time windows; `time_text` has their text forms.
#
# All positions in a trace are whole clock cycles (int64) of the target's counter. Nanoseconds are derived exactly, by
# integer arithmetic; floats are used only for pixels, after the start of the window was subtracted.


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

        Times beyond 292 years, which only damaged traces contain, are limited to 292 years.
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


# Formats and parses moments, lengths and ranges of time: `1.234 567 890 s`, `350 µs`, `1.2s..1.5s`, `25%`.
#
# Every text that is formatted here can be parsed here, moments and ranges exactly to the cycle, as the number of their
# decimals depends on the clock. Links, panels, filters, the command line, SQL and reports all use these functions.


MICROSECOND: Final = "\N{MICRO SIGN}s"
UNITS: Final = (("s", NS_PER_S), ("ms", 1_000_000), (MICROSECOND, 1_000), ("ns", 1))  # as printed, the largest first
# As typed, in lower case. There are two Unicode characters for micro, and most people write a u.
UNITS_NS: Final = {**dict(UNITS), "us": 1_000, "\N{GREEK SMALL LETTER MU}s": 1_000}
LENGTH_EXAMPLES: Final = "1.2s, 350us, 2ms or 800ns"
EXAMPLES: Final = f"{LENGTH_EXAMPLES}, -5s from the end, #1200, 25% or 06:19:01"
_DIGITS_OF_NS: Final = 9  # decimals of a nanosecond that are tested: 2.5 GHz has one, 2.6 GHz and 24 MHz endless ones
_MOST_NS: Final = 10**19
_SPACES: Final = " \u00a0\u2007\u2009\u202f"  # between groups of digits; most of them do not break
_MU: Final = "\N{MICRO SIGN}\N{GREEK SMALL LETTER MU}\N{GREEK CAPITAL LETTER MU}"
_WHOLE: Final = f"[0-9][0-9_]*(?:[{_SPACES}][0-9]{{3}}(?![0-9]))*"
_PART: Final = f"\\.[0-9_]*(?:[{_SPACES}][0-9]{{1,3}})*\N{HORIZONTAL ELLIPSIS}?"
NUMBER: Final = f"(?:{_WHOLE}(?:{_PART})?|\\.[0-9](?:{_PART[2:]}))"
LENGTH: Final = re.compile(f"({NUMBER})[{_SPACES}]*([A-Za-z{_MU}]+)(?![A-Za-z0-9_])")  # an amount with its unit
# A number and `%` at the end of an expression, or of a part of it, are a share of the trace; elsewhere `%` is modulo.
MOMENT: Final = re.compile(
    f"#[{_SPACES}]?[0-9][0-9_]*(?:[,{_SPACES}][0-9]{{3}})*|{NUMBER}[{_SPACES}]*%(?=\\s*(?:$|[)]|&&|[|][|]|(?:and|or)\\b))"
)
_AMOUNT: Final = re.compile(f"([+-]?)[{_SPACES}]*({NUMBER})[{_SPACES}]*([A-Za-z{_MU}]*)")
_SHARE: Final = re.compile(f"({NUMBER})[{_SPACES}]*%")
_CYCLES: Final = re.compile(f"([+-]?)[{_SPACES}]*([0-9][0-9,{_SPACES}]*?)[{_SPACES}]*(?:cy|cycles?)", re.IGNORECASE)
_COUNTER: Final = re.compile("0[xX][0-9a-fA-F]{1,16}")
_WALL: Final = re.compile("(?:([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ])?([0-9]{2}:[0-9]{2}:[0-9]{2})(\\.[0-9]{1,12})?[Zz]?")
_RANGE: Final = re.compile(r"\s*\.\.\s*|\s+to\s+", re.IGNORECASE)
_MOST_DIGITS: Final = 60
_SHOWN: Final = 40


def format_duration(ns: int, digits: int = 4) -> str:
    """Return a length as display text with about `digits` digits: `1.204 ms`, `350 ns`, `-2.5 s`."""
    size = abs(ns)
    for unit, scale in UNITS:
        if size >= scale or scale == 1:
            value = ns / scale
            decimals = max(0, digits - len(str(size // scale))) if scale > 1 else 0
            return f"{value:.{decimals}f} {unit}"
    raise AssertionError("unreachable")


def format_exactly(cycles: int, clock: Clock) -> str:
    """Return a length as display text without rounding: `1.204 562 5 ms`, `-350 ns`.

    If a nanosecond value would need endless decimals, as at 19.2 MHz, three decimals and an ellipsis are written:
    `364.583... ns`.
    """
    ns, rest = divmod(abs(cycles) * NS_PER_S, clock.cycles_per_s)
    beyond, left = divmod(rest * 10**_DIGITS_OF_NS, clock.cycles_per_s)
    unit, scale = next((unit, scale) for unit, scale in UNITS if ns >= scale or scale == 1)
    whole, decimals = divmod(ns, scale)
    digits = f"{decimals:0{len(str(scale)) - 1}d}" if scale > 1 else ""
    more = f"{beyond:0{_DIGITS_OF_NS}d}"
    digits = digits + more[:3] if left else (digits + more).rstrip("0")
    groups = " ".join(digits[i : i + 3] for i in range(0, len(digits), 3))
    sign, end = "-" if cycles < 0 else "", "\N{HORIZONTAL ELLIPSIS}" if left else ""
    return f"{sign}{whole}{'.' if groups else ''}{groups}{end} {unit}"


def format_time(ns: int, resolution_ns: int = 1) -> str:
    """Return a time as seconds with groups of three decimals: `1.234 567 890 s`.

    Groups of decimals that are much finer than the required resolution are left out.
    """
    groups = 3 if resolution_ns < 1_000 else 2 if resolution_ns < 1_000_000 else 1
    return _grouped(ns, 9, groups)


def format_moment(cycles: int, clock: Clock, length_cycles: int | None = None) -> str:
    """Return a moment of a trace as seconds from its start, with enough decimals to identify the cycle.

    Clocks up to 1 GHz need three groups of decimals, `1.234 567 890 s`, clocks up to 1 THz four. Further decimals are
    cut off, not rounded, because `parse_moment` returns the first cycle at or after a time.

    Args:
        cycles: The moment.
        clock: Clock of the trace.
        length_cycles: A length that is shown beside the moment; a moment beside a long one has fewer decimals: six if
            the length is at least 1 ms (`1.234 568 s`), three if it is at least 1 s (`1.235 s`). These are rounded up,
            so that the parsed moment is not before the true one. None = enough decimals for the cycle.
    """
    decimals = -(-_decimals(clock) // 3) * 3
    length_ns = 0 if length_cycles is None else clock.duration_ns(length_cycles)
    for least_ns, fewer in ((NS_PER_S, 3), (NS_PER_S // 1_000, 6)):
        if length_ns >= least_ns:
            return _grouped(-((clock.start_cycles - cycles) * 10**fewer // clock.cycles_per_s), fewer, fewer // 3)
    return _grouped(_scaled(cycles, clock, decimals), decimals, decimals // 3)


def _grouped(number: int, decimals: int, groups: int) -> str:
    whole, part = divmod(abs(number), 10**decimals)
    digits = f"{part:0{decimals}d}"[: groups * 3]
    return f"{'-' if number < 0 else ''}{whole}.{' '.join(digits[i : i + 3] for i in range(0, len(digits), 3))} s"


def _decimals(clock: Clock) -> int:
    """Return the number of decimals of a second that distinguish adjacent cycles; at least 9."""
    return max(9, len(str(clock.cycles_per_s - 1)))


def _scaled(cycles: int, clock: Clock, decimals: int) -> int:
    """Return the time since the start in units of 10^-decimals seconds, rounded toward zero."""
    passed = cycles - clock.start_cycles
    size = abs(passed) * int(10**decimals) // clock.cycles_per_s
    return -size if passed < 0 else size


def format_cycles(cycles: int) -> str:
    """Return a number of cycles as display text: `1 cycle`, `2,409,125 cycles`."""
    return counted(cycles, "cycle")


def hex_cycles(cycles: int) -> str:
    """Return a time in cycles as the value of the target's 64-bit counter in hex; negative times wrap around."""
    return f"0x{cycles & (1 << 64) - 1:x}"


def moment_text(cycles: int, clock: Clock) -> str:
    """Return the shortest text that `parse_moment` reads as exactly this time: seconds such as `1.2s`.

    Times before the start of the trace, and those beyond 292 years, are cycles such as `1200cy`.
    """
    decimals = _decimals(clock)
    whole, part = divmod(_scaled(cycles, clock, decimals), 10**decimals)
    if cycles < clock.start_cycles or whole >= _MOST_NS // NS_PER_S:
        return f"{cycles}cy"
    return f"{whole}.{part:0{decimals}d}".rstrip("0").rstrip(".") + "s"


def range_text(window: TimeWindow, clock: Clock) -> str:
    """Return the shortest text for exactly this window in `parse_range`, such as `1.2s..1.5s`."""
    return f"{moment_text(window.start, clock)}..{moment_text(window.end, clock)}"


@dataclass(frozen=True, slots=True)
class MomentAxis:
    """What is needed to parse moments: clock, range of moments and ascending times of the events of a trace, cycles."""

    clock: Clock
    limits: TimeWindow
    event_times: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TimePosition:
    """A position in time: either a moment in cycles, or the row of an event."""

    cycles: int | None = None
    event: int | None = None


def parse_length(text: str, examples: str = LENGTH_EXAMPLES) -> Fraction:
    """Return the length that a text means, exactly, in nanoseconds; without a unit it is in seconds. May be negative.

    Lengths are limited to 317 years, which is longer than any trace. Raises UsageError, with the first wrong character
    and `examples` of what the text may be.
    """
    text = _plain(text)
    match = _AMOUNT.match(text)
    if match is None:
        raise _refused(text, 0, examples)
    if match[3] and match[3].lower() not in UNITS_NS:
        raise _refused(text, match.start(3), examples)
    if match.end() < len(text) or match.end() > _MOST_DIGITS:
        raise _refused(text, min(match.end(), _MOST_DIGITS), examples)
    length_ns = min(amount_ns(match[2], match[3] or "s"), Fraction(_MOST_NS))
    return -length_ns if match[1] == "-" else length_ns


def amount_ns(number: str, unit: str) -> Fraction:
    """Return an amount, a number that matches `NUMBER` and a unit, in nanoseconds; KeyError for another unit."""
    return _value(number) * UNITS_NS[unit.lower()]


def _value(number: str) -> Fraction:
    digits = re.sub(f"[{_SPACES}_\N{HORIZONTAL ELLIPSIS}]", "", number)
    return Fraction(f"0{digits}")


def parse_since_start(text: str) -> Fraction | None:
    """Return the nanoseconds from the start of the trace that a text means; None if it is no time from the start."""
    match = _AMOUNT.fullmatch(_plain(text))
    if match is None or match[1] or (match[3] or "s").lower() not in UNITS_NS:
        return None
    return parse_length(text)


def parse_moment(text: str, axis: MomentAxis) -> int:
    """Return the moment in cycles that a text means; it may be outside the trace.

    `1.25s` is a time from the start of the trace, `-5s` from its end; `0x1f00c` and `80000cy` are cycles of the
    counter; `#1200` is the number of an event, from 1; `25%` is a share of the trace; `2024-06-10 06:19:01.5` and
    `06:19:01` are times of day in UTC, if the header shows them.

    Raises:
        UsageError: The text is none of these, or refers to an event or time of day that the trace lacks.
    """
    text, limits = _plain(text), axis.limits
    if len(text) > _MOST_DIGITS:
        raise _refused(text, _MOST_DIGITS, EXAMPLES)
    if text.startswith("#"):
        return int(axis.event_times[_event(text, len(axis.event_times))])
    if _COUNTER.fullmatch(text):
        return int(text, 16)
    if match := _CYCLES.fullmatch(text):
        return _cycles(match)
    if match := _SHARE.fullmatch(text):
        return limits.start + int(_value(match[1]) * limits.length / 100)
    if match := _WALL.fullmatch(text):
        return _wall(match, axis)
    length_ns = parse_length(text, EXAMPLES)
    if text.startswith("-"):
        return limits.end - _cycles_of(-length_ns, axis.clock)
    return axis.clock.start_cycles + _cycles_of(length_ns, axis.clock)


def parse_moment_inside(text: str, axis: MomentAxis) -> int:
    """Return the moment in cycles that a text means, as `parse_moment` does, but only inside the trace (UsageError).

    The end of the trace, such as `100%`, is its last moment.
    """
    cycles = _last_at_end(parse_moment(text, axis), axis.limits)
    if not axis.limits.contains(cycles):
        raise _outside(f"{text.strip()[:_SHOWN]!r}", axis)
    return cycles


def _last_at_end(cycles: int, limits: TimeWindow) -> int:
    """Return a moment, or the cycle before it if it is the end of the trace, at which no event is."""
    return cycles - 1 if cycles == limits.end > limits.start else cycles


def _outside(what: str, axis: MomentAxis) -> UsageError:
    last = format_moment(axis.limits.end - 1, axis.clock)
    return UsageError(f"{what} is outside the trace, whose last event is at {last}")


def parse_position(text: str, axis: MomentAxis) -> TimePosition:
    """Return the event that a text such as `#1200` means; for any other text a moment, as by `parse_moment`.

    Raises UsageError if the text is none of these, or the position is outside the trace.
    """
    if (plain := _plain(text)).startswith("#"):
        return TimePosition(event=_event(plain, len(axis.event_times)))
    return TimePosition(cycles=parse_moment_inside(text, axis))


def parse_range(text: str, axis: MomentAxis) -> TimeWindow:
    """Return the window that `A..B`, or `A to B`, means; either end of `A..B` may be left out.

    `A` and `B` are moments as for `parse_moment`; `B` may be relative to `A`: `+5ms`. `B` itself is not in the range,
    unless it is an event given by its number. `A` at the end of the trace, such as `100%`, is its last moment.

    Raises:
        UsageError: The text is no range, is empty, or is outside the trace.
    """
    limits, ends = axis.limits, _RANGE.split(text.strip(), maxsplit=1)
    if len(ends) < 2:
        raise UsageError(f"{text[:_SHOWN]!r} is not a range; write it as 1.2s..1.5s, times from the start of the trace")
    start = _last_at_end(parse_moment(ends[0], axis), limits) if ends[0] else limits.start
    end = _end(_plain(ends[1]), start, axis) if ends[1] else limits.end
    if end <= start:
        raise UsageError(f"range {text[:_SHOWN]!r} {'is empty' if end == start else 'ends before it begins'}")
    if end <= limits.start or start >= limits.end:
        raise _outside(f"range {text[:_SHOWN]!r}", axis)
    return TimeWindow(start, end)


def _end(text: str, start: int, axis: MomentAxis) -> int:
    if not text.startswith("+"):
        return parse_moment(text, axis) + text.startswith("#")
    match = _CYCLES.fullmatch(text)
    return start + (_cycles(match) if match else _cycles_of(parse_length(text), axis.clock))


def _plain(text: str) -> str:
    """Return a text without surrounding spaces, with every minus sign as a hyphen."""
    return text.strip().replace("\N{MINUS SIGN}", "-")


def _refused(text: str, position: int, examples: str) -> UsageError:
    """Return the error for a text that is no time, with the position of the first wrong character."""
    position += len(text[position:]) - len(text[position:].lstrip())
    where = f", from character {position + 1} on" if 0 < position < len(text) else ""
    return UsageError(f"{text[:_SHOWN]!r} is not a time{where}; write {examples}")


def _cycles_of(length_ns: Fraction, clock: Clock) -> int:
    """Return a length in cycles, rounded up."""
    return ceil(length_ns * clock.cycles_per_s / NS_PER_S)


def _cycles(match: re.Match[str]) -> int:
    """Return the signed number of cycles that `_CYCLES` matched."""
    size = min(int("".join(filter(str.isdigit, match[2]))), _MOST_NS)
    return -size if match[1] == "-" else size


def _event(text: str, count: int) -> int:
    """Return the row of the event that a text such as `#1200` means."""
    digits = re.sub(f"[{_SPACES},_]", "", text[1:])
    if not (digits.isascii() and digits.isdigit() and len(digits) < 16):
        raise UsageError(f"{text[:_SHOWN]!r} is not an event number; write #1200")
    if not 1 <= int(digits) <= count:
        raise UsageError(f"there is no event {text[:_SHOWN]}; the trace has {count:,}")
    return int(digits) - 1


def _wall(match: re.Match[str], axis: MomentAxis) -> int:
    """Return the moment, cycles, of a date and time, or of a time on the day on which the trace begins."""
    begin = axis.clock.wall_time(axis.limits.start)
    if begin is None:
        raise UsageError("the trace does not show the time of day; write 1.2s from its start")
    try:
        day = date.fromisoformat(match[1]) if match[1] else begin.date()
        second = datetime.combine(day, time.fromisoformat(match[2]), UTC)
    except ValueError as error:
        raise UsageError(f"{match[0][:_SHOWN]!r} is not a time of day; write 2024-06-10 06:19:01.5") from error
    boot = datetime.fromtimestamp(axis.clock.boot_time_s or 0, tz=UTC)
    passed_s = (second - boot) // timedelta(seconds=1) + Fraction(match[3] or 0)
    return _cycles_of(passed_s * NS_PER_S - axis.clock.boot_rest_ns, axis.clock)
