"""Where in a trace a claim of a test fails, in words and as the command that opens it there."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from satview.base.dataclass import dataclass
from satview.base.time import NS_PER_S, format_time
from satview.store.trace import Trace

_ROOM: Final = 4  # the location takes this part of the picture's width, so that one sees what is around it
_LEAST_NS: Final = 20_000  # shown around a location that is a moment


@dataclass(frozen=True, slots=True)
class Location:
    """A range of time in a trace, and the event by which it begins.

    Attributes:
        path: The file.
        start_ns, end_ns: Since the first event.
        event: Number of the event, from 1; 0 = by none in particular.
        last_ns: The end of the trace.
    """

    path: Path
    start_ns: int
    end_ns: int
    event: int
    last_ns: int

    def __str__(self) -> str:
        """Return it in words: `at 1.234 567 s (event 28,700)`."""
        event = f" (event {self.event:,})" if self.event else ""
        return f"at {format_time(self.start_ns, 1)}{event}"

    @property
    def range_text(self) -> str:
        """The part of the trace to look at, as `--range` takes it."""
        length = max(self.end_ns - self.start_ns, _LEAST_NS)
        room = length * (_ROOM - 1) // 2
        first = max(self.start_ns - room, 0)
        last = min(max(self.end_ns, self.start_ns + length) + room, max(self.last_ns, first + 1))
        return f"{_seconds(first)}..{_seconds(last)}"

    @property
    def options(self) -> list[str]:
        """What to give `satview` besides the file; nothing where the location is all of it."""
        if (self.start_ns, self.event) == (0, 0) and self.end_ns >= self.last_ns:
            return []
        return ["--range", self.range_text, *(["--select", str(self.event)] if self.event else [])]

    @property
    def command(self) -> str:
        """The command that opens the trace there."""
        return shlex.join(["satview", str(self.path), *self.options])


def location_of(trace: Trace, start_cycles: int, end_cycles: int, row: int = -1) -> Location:
    """Return a location of a trace.

    Args:
        trace: The trace.
        start_cycles: From when.
        end_cycles: To when.
        row: Of the event by which it begins; -1 = by none.
    """
    clock = trace.clock
    return Location(trace.path, clock.ns(start_cycles), clock.ns(end_cycles), row + 1, trace.duration_ns)


def _seconds(ns: int) -> str:
    whole, part = divmod(ns, NS_PER_S)
    return f"{whole}.{part:09d}s"
