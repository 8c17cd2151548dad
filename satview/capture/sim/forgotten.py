"""Finds calls of TraceEvent() whose `yield` was forgotten: the object is made, and thrown away unused."""

from __future__ import annotations

import sys


class Watch:
    """Collects the places of such calls while a program runs.

    Attributes:
        is_on: A program or a handler runs, so that objects made now are its own.
        places: Noted since the last `take()`, each once.
    """

    __slots__ = ("is_on", "places")

    def __init__(self) -> None:
        self.is_on = False
        self.places: dict[str, None] = {}

    def place(self) -> str:
        """Return file and line of whoever called the caller; empty while no program runs."""
        if not self.is_on:
            return ""
        frame = sys._getframe(2)
        return f"{frame.f_code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{frame.f_lineno}"

    def thrown_away(self, place: str) -> None:
        """Note that an object made there is gone without having been yielded."""
        if self.is_on:
            self.places[place] = None

    def take(self) -> tuple[str, ...]:
        """Return the places noted since the last time, each once."""
        if not self.places:
            return ()
        places = tuple(self.places)
        self.places.clear()
        return places


WATCH = Watch()
ADVICE = "made a TraceEvent() and did not yield it, so nothing happened: write `yield TraceEvent(...)`"
