"""Finds calls of TraceEvent() whose `yield` was forgotten: the object is made, and thrown away unused."""

from __future__ import annotations

import sys


class Watch:
    """Collects the places of such calls while a program runs.

    Attributes:
        is_on: A program runs, so that objects made now are its own.
    """

    __slots__ = ("_places", "is_on")

    def __init__(self) -> None:
        self.is_on = False
        self._places: dict[str, None] = {}

    def place(self) -> str:
        """Return file and line of whoever called the caller; empty while no program runs."""
        if not self.is_on:
            return ""
        frame = sys._getframe(2)
        return f"{frame.f_code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{frame.f_lineno}"

    def thrown_away(self, place: str) -> None:
        """Note that an object made there is gone without having been yielded."""
        if self.is_on:
            self._places[place] = None

    def take(self) -> tuple[str, ...]:
        """Return the places noted since the last time, each once."""
        if not self._places:
            return ()
        places = tuple(self._places)
        self._places.clear()
        return places


WATCH = Watch()
ADVICE = "made a TraceEvent() and did not yield it, so nothing happened: write `yield TraceEvent(...)`"
