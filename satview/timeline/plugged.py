"""Lanes that plug-ins add below those of the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.plugins import PluginKind, plugins
from satview.events.states import ABSENT, FIRST_PROCESS
from satview.store.trace import Trace
from satview.timeline.spans import NO_EVENT, LaneSpans, spread

COLOURS: Final = 9  # those that processes have on the lanes of CPUs


@dataclass(frozen=True, slots=True, eq=False)
class PluggedLane:
    """A lane as a plug-in gives it.

    Attributes:
        title: Its name.
        start_cycles: int64 (n,), when its intervals begin, ascending; between them the lane is empty.
        end_cycles: int64 (n,), when they end, not included; not after the next one begins.
        texts: n, what each is called.
        colour: int (n,), 0 to 8, one of the colours of processes; None = all 0.
        subtitle: A few words more.
    """

    title: str
    start_cycles: NDArray[np.int64]
    end_cycles: NDArray[np.int64]
    texts: Sequence[str]
    colour: NDArray[np.integer] | None = None
    subtitle: str = ""
    _ends: tuple[NDArray[np.int64], NDArray[np.int64]] = field(init=False)
    _values: NDArray[np.integer] = field(init=False)

    def __post_init__(self) -> None:
        start, end = np.asarray(self.start_cycles, np.int64), np.asarray(self.end_cycles, np.int64)
        colour = np.zeros(len(start), np.int64) if self.colour is None else np.asarray(self.colour, np.int64)
        if not len(start) == len(end) == len(self.texts) == len(colour):
            raise ValueError("the columns of a lane differ in length")
        if np.any(start >= end) or np.any(start[1:] < end[:-1]):
            raise ValueError("the intervals of a lane are empty, overlap, or are out of order")
        object.__setattr__(self, "_ends", (start, end))
        object.__setattr__(self, "_values", colour % COLOURS + FIRST_PROCESS)

    def within(self, trace: Trace) -> LaneSpans:
        """Return its intervals over all of a trace.

        Raises:
            ValueError: Some are outside.
        """
        window, start, end = trace.window, *self._ends
        if len(self.texts) and (int(start[0]) < window.start or int(end[-1]) > window.end):
            raise ValueError("a lane has intervals outside the trace")
        starts, item = spread(start, end, window)
        values = np.where(item >= 0, self._values[item] if len(start) else ABSENT, ABSENT).astype(np.uint8)
        texts = tuple(str(self.texts[row]) if row >= 0 else "" for row in item.tolist())
        return LaneSpans(starts, values, np.full(len(starts), NO_EVENT, np.uint32), None, window.end, texts)


def plugged_lanes(trace: Trace) -> tuple[PluggedLane, ...]:
    """Return the lanes of all plug-ins, those that fail left out; called once for each trace."""
    return trace.cached("plugged lanes", _lanes)


def _lanes(trace: Trace) -> tuple[PluggedLane, ...]:
    found: list[PluggedLane] = []
    for each in plugins(PluginKind.LANE):
        found += each.run(lambda lanes: _checked(lanes(trace), trace), [])
    return tuple(found)


def _checked(lanes: Sequence[PluggedLane], trace: Trace) -> list[PluggedLane]:
    found = list(lanes)
    for lane in found:
        if not isinstance(lane, PluggedLane):
            raise TypeError(f"it returned {type(lane).__name__}, no PluggedLane")
        lane.within(trace)
    return found
