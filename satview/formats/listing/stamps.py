"""Times of a listing: hexadecimal counts, low words, or seconds; repairs a number that lost a digit in print."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from satview.store.problems import Problems

MAX_CYCLES = 1 << 62  # 36 years at 4 GHz; beyond it a time is a damaged number
_WALL = re.compile(r"t:(\d{1,9})\.(\d{1,3})\.(\d{1,3})us")
_COUNT = re.compile(r"c:(0x[0-9a-fA-F]{1,16})\s")
_TIME = re.compile(r"t:(\S+)")
_DECIMAL = re.compile(r"\d{1,19}")
_DIGITS = re.compile(r"[0-9a-f]{1,16}")
_TYPESET = str.maketrans("lIoO", "1100")  # letters that typesetting puts for digits


@dataclass(frozen=True, slots=True)
class StampNotation:
    """How a listing prints its times where that is not how the printer of its release does it.

    Attributes:
        template: `%` template of a stamp.
        is_low: Only the low half of the clock is printed.
    """

    template: str
    is_low: bool


class Stamps:
    """Reads the times of one listing in file order.

    Attributes:
        is_wall: A time was given in seconds, or as a full count besides.
        is_decimal: Stamps are decimal numbers: none has `0x`, and none a letter. All printers of the vendor write `0x`.
    """

    def __init__(self, problems: Problems) -> None:
        self.is_wall = self.is_decimal = False
        self._prefixes: set[bool] = set()
        self._widths = Counter[tuple[int, bool]]()  # digits, and whether the first one is a zero
        self._most = 0
        self._problems = problems
        self._last: dict[int, int] = {}

    def look_ahead(self, texts: Iterable[str]) -> None:
        """Find the notation by the first events of a listing: what is before each of them, as `cycles` takes it."""
        stamps = [stamp[1] for text in texts if not _COUNT.search(text) and (stamp := _TIME.search(text))]
        self.is_decimal = bool(stamps) and all(_DECIMAL.fullmatch(stamp) for stamp in stamps)

    def notation(self, default_digits: int, has_clock: bool) -> StampNotation | None:
        """Return how the times are printed, None if as the printer does it: hexadecimal, all that is known of them.

        Args:
            default_digits: Of the printer: 8 for the low half, more for the whole clock.
            has_clock: TIME events show an upper half that is not zero.
        """
        if self.is_wall or not (self._widths or self.is_decimal):
            return None
        is_low = self._most < 1 << 32 and (default_digits <= 8 or has_clock)
        if self.is_decimal:
            return StampNotation("%d", is_low)
        (width, is_padded), _ = self._widths.most_common(1)[0]
        template = ("0x" if True in self._prefixes else "") + (f"%0{width}x" if is_padded or width >= 8 else "%x")
        if template == "0x%08x" and is_low == (default_digits <= 8):
            return None
        return StampNotation(template, is_low)

    def cycles(self, line: int, cpu: int, text: str, rate: int) -> int:
        """Return the time of an event in cycles.

        Args:
            line: Its line, for the report of a damaged number.
            cpu: Its CPU.
            text: What is before the event: `t:`, `c:` and `e:` with their values, in any order.
            rate: Cycles per second, for times in seconds.
        """
        if count := _COUNT.search(text):
            self.is_wall = True
            return self._checked(line, cpu, count[1].removeprefix("0x"))
        if wall := _WALL.search(text):
            self.is_wall = True
            us = int(wall[1]) * 1_000_000 + int(wall[2]) * 1_000 + int(wall[3])
            return min(us * rate // 1_000_000, MAX_CYCLES)
        stamp = _TIME.search(text)
        printed = stamp[1] if stamp else ""
        if self.is_decimal:
            return self._decimal(line, cpu, printed)
        digits = printed.removeprefix("0x")
        self._prefixes.add(digits != printed)
        value = self._checked(line, cpu, digits)
        if _DIGITS.fullmatch(digits):  # those of 0x%08x that need more than eight digits have no zero before them
            is_padded = digits[0] == "0"
            self._widths[len(digits) if is_padded or len(digits) < 8 else 8, is_padded] += 1
        self._most = max(self._most, value)
        return value

    def _decimal(self, line: int, cpu: int, printed: str) -> int:
        value = int(printed) if _DECIMAL.fullmatch(printed) else -1
        if not 0 <= value <= MAX_CYCLES:
            value = self._last.get(cpu, 0)
            self._damaged(line, printed, value)
        self._last[cpu], self._most = value, max(self._most, value)
        return value

    def _checked(self, line: int, cpu: int, digits: str) -> int:
        last = self._last.get(cpu, -1)
        clean = digits.translate(_TYPESET).lower()
        value = int(clean, 16) if _DIGITS.fullmatch(clean) else -1
        if len(clean) < 8 and value >= 0:
            value = _restored(clean, last)
        if not 0 <= value <= MAX_CYCLES:
            value = max(last, 0)
            self._damaged(line, digits, value)
        elif digits.lower() != f"{value:08x}" and len(digits.lstrip("0")) != len(f"{value:x}"):
            self._damaged(line, digits, value)
        self._last[cpu] = value
        return value

    def _damaged(self, line: int, digits: str, value: int) -> None:
        what = f"time {digits[:40]} at line {line} is damaged; read as 0x{value:08x}"
        self._problems.add("listing-digits", what, line=line)


def _restored(digits: str, last: int) -> int:
    """Return the stamp of eight digits from which one was lost: the first one after the time before, if any fits."""
    if len(digits) != 7 or last < 0:
        return int(digits, 16)
    base = last & ~0xFFFFFFFF
    fits = {
        base | int(digits[:position] + digit + digits[position:], 16)
        for position in range(8)
        for digit in "0123456789abcdef"
    }
    later = [value for value in fits if value >= last]
    return min(later, default=int(digits, 16))
