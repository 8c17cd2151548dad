"""Where in a trace a claim of a test fails, in words and as the command that opens it there."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from satview.base.time import Clock, TimeWindow
from satview.base.time_text import format_moment, range_text
from satview.store.trace import Trace

_ROOM: Final = 4  # the location takes this part of the picture's width, so that one sees what is around it
_LEAST_NS: Final = 20_000  # shown around a location that is a moment


@dataclass(frozen=True, slots=True)
class Location:
    """A range of time in a trace, and the event by which it begins.

    Attributes:
        path: The file.
        start_cycles, end_cycles: From when until when; the same where it is a moment.
        event: Number of the event, from 1; 0 = by none in particular.
        clock: Of the trace.
        whole: All of the trace, cycles.
    """

    path: Path
    start_cycles: int
    end_cycles: int
    event: int
    clock: Clock
    whole: TimeWindow

    def __str__(self) -> str:
        """Return it in words: `at 1.234 567 s (event 28,700)`."""
        event = f" (event {self.event:,})" if self.event else ""
        return f"at {format_moment(self.start_cycles, self.clock)}{event}"

    @property
    def range_text(self) -> str:
        """The part of the trace to look at, as `--range` takes it; what is at its end is in it."""
        length = max(self.end_cycles - self.start_cycles, self.clock.cycles_of(_LEAST_NS))
        room = length * (_ROOM - 1) // 2
        first, last = self.start_cycles - room, self.start_cycles + length + room + 1
        return range_text(TimeWindow(first, last).within(self.whole), self.clock)

    @property
    def options(self) -> list[str]:
        """What to give `satview` besides the file; nothing where the location is all of it."""
        if not self.event and self.start_cycles <= self.whole.start and self.end_cycles >= self.whole.end:
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
    return Location(trace.path, start_cycles, end_cycles, row + 1, trace.clock, trace.window)
