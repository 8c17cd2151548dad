"""Times of a listing: hexadecimal counts, low words, or seconds; repairs a number that lost a digit in print."""

from __future__ import annotations

import re

from satview.store.problems import Problems

MAX_CYCLES = 1 << 62  # 36 years at 4 GHz; beyond it a time is a damaged number
_WALL = re.compile(r"t:(\d{1,9})\.(\d{1,3})\.(\d{1,3})us")
_COUNT = re.compile(r"c:(0x[0-9a-fA-F]{1,16})\s")
_TIME = re.compile(r"t:(\S+)")
_DIGITS = re.compile(r"[0-9a-f]{1,16}")
_TYPESET = str.maketrans("lIoO", "1100")  # letters that typesetting puts for digits


class Stamps:
    """Reads the times of one listing in file order.

    Attributes:
        is_wall: A time was given in seconds, or as a full count besides.
    """

    def __init__(self, problems: Problems) -> None:
        self.is_wall = False
        self._problems = problems
        self._last: dict[int, int] = {}

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
        return self._checked(line, cpu, stamp[1].removeprefix("0x") if stamp else "")

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
    fits = {base | int(digits[:at] + digit + digits[at:], 16) for at in range(8) for digit in "0123456789abcdef"}
    later = [value for value in fits if value >= last]
    return min(later, default=int(digits, 16))
