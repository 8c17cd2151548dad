"""Finds calls of TraceEvent() whose `yield` was forgotten: the object is made, and thrown away unused."""

from __future__ import annotations

import sys


class Watch:
    """Collects the locations of such calls while a program runs.

    Attributes:
        is_on: A program or a handler runs, so that objects made now are its own.
        locations: Noted since the last `take()`, each once.
    """

    __slots__ = ("is_on", "locations")

    def __init__(self) -> None:
        self.is_on = False
        self.locations: dict[str, None] = {}

    def location(self) -> str:
        """Return file and line of the caller's caller; empty while no program runs."""
        if not self.is_on:
            return ""
        frame = sys._getframe(2)
        return f"{frame.f_code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{frame.f_lineno}"

    def thrown_away(self, location: str) -> None:
        """Note that an object made there is gone without having been yielded."""
        if self.is_on:
            self.locations[location] = None

    def take(self) -> tuple[str, ...]:
        """Return the locations noted since the last time, each once."""
        if not self.locations:
            return ()
        locations = tuple(self.locations)
        self.locations.clear()
        return locations


WATCH = Watch()
ADVICE = "made a TraceEvent() and did not yield it, so nothing happened: write `yield TraceEvent(...)`"
