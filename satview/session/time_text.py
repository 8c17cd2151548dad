"""Times as people type them: `1.2s`, `350us..2ms`, `0x1f00c`, `#1200`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from satview.base.errors import UsageError
from satview.base.time import Clock, TimeWindow

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
_HELP: Final = "write 1.2s, 350us, 2ms or 800ns"
_NS_MAX: Final = 10**19


def parse_time_ns(text: str) -> int:
    """Return a time relative to the start of the trace; without a unit it means seconds.

    Raises:
        UsageError: The text is no time.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None or found[3] not in _NS_OF_UNIT:
        raise UsageError(f"{text.strip()[:40]!r} is no time; {_HELP}")
    number = Decimal(found[2].replace(" ", "").replace("_", ""))
    time_ns = min(int(number * _NS_OF_UNIT[found[3]]), _NS_MAX)
    return -time_ns if found[1] == "-" else time_ns


def parse_range(text: str, clock: Clock, limits: TimeWindow) -> TimeWindow:
    """Return the window that `A..B` means; either end may be left out.

    Raises:
        UsageError: The text is no range, is empty, or lies outside the trace.
    """
    first, dots, last = text.partition("..")
    if not dots:
        raise UsageError(f"{text[:40]!r} is no range; write it as 1.2s..1.5s, times from the start of the trace")
    start = clock.cycles(parse_time_ns(first)) if first.strip() else limits.start
    end = clock.cycles(parse_time_ns(last)) if last.strip() else limits.end
    if end <= start:
        raise UsageError(f"range {text[:40]!r} ends before it begins")
    if end <= limits.start or start >= limits.end:
        raise UsageError(f"range {text[:40]!r} lies outside the trace")
    return TimeWindow(start, end)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the user wants to go: one of the two is given."""

    cycles: int | None = None
    event: int | None = None


def parse_place(text: str, clock: Clock, limits: TimeWindow, event_count: int) -> Place:
    """Return the place that `1.25s`, `0x1f00c`, `80000cy` or `#1200` means; event numbers count from 1.

    Raises:
        UsageError: The text is none of these, or the place lies outside the trace.
    """
    text = text.strip()
    if text.startswith("#"):
        digits = text[1:].replace(",", "").replace(" ", "")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 16):
            raise UsageError(f"{text[:40]!r} is no event number; write #1200")
        if not 1 <= int(digits) <= event_count:
            raise UsageError(f"there is no event {text[:40]}; the trace has {event_count:,}")
        return Place(event=int(digits) - 1)
    cycles = _parse_cycles(text)
    if cycles is None:
        cycles = clock.cycles(parse_time_ns(text))
    if not limits.start <= cycles < limits.end:
        raise UsageError(f"{text[:40]!r} lies outside the trace")
    return Place(cycles=cycles)


def _parse_cycles(text: str) -> int | None:
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text):
        return int(text, 16)
    found = re.fullmatch(r"([0-9]{1,19})\s*(?:cy|cycles)", text, re.ASCII)
    return int(found[1]) if found else None
