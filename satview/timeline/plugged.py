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
from satview.timeline.spans import NO_EVENT, LaneSpans

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
    spans: LaneSpans = field(init=False)

    def __post_init__(self) -> None:
        start, end = np.asarray(self.start_cycles, np.int64), np.asarray(self.end_cycles, np.int64)
        colour = np.zeros(len(start), np.int64) if self.colour is None else np.asarray(self.colour, np.int64)
        if not len(start) == len(end) == len(self.texts) == len(colour):
            raise ValueError("the columns of a lane differ in length")
        if np.any(start >= end) or np.any(start[1:] < end[:-1]):
            raise ValueError("the intervals of a lane are empty, overlap, or are out of order")
        object.__setattr__(self, "spans", _touching(start, end, colour % COLOURS, self.texts))

    def within(self, trace: Trace) -> LaneSpans:
        """Return its intervals over all of a trace.

        Raises:
            ValueError: Some are outside.
        """
        spans, window = self.spans, trace.window
        if len(self.texts) and (int(self.start_cycles[0]) < window.start or spans.end_cycles > window.end):
            raise ValueError("a lane has intervals outside the trace")
        starts, values, texts = spans.start_cycles, spans.value, list(spans.texts or ())
        if not len(starts) or int(starts[0]) > window.start:
            starts, values, texts = np.append(window.start, starts), np.append(np.uint8(ABSENT), values), ["", *texts]
        if int(values[-1]) != ABSENT and spans.end_cycles < window.end:
            starts, values, texts = (
                np.append(starts, spans.end_cycles),
                np.append(values, np.uint8(ABSENT)),
                [*texts, ""],
            )
        return _made(starts, values, texts, window.end)


def plugged_lanes(trace: Trace) -> tuple[PluggedLane, ...]:
    """Return the lanes of all plug-ins, those that fail left out; asked once for each trace."""
    return trace.kept("plugged lanes", _lanes)


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


def _touching(
    start: NDArray[np.int64], end: NDArray[np.int64], colour: NDArray[np.int64], texts: Sequence[str]
) -> LaneSpans:
    """Return intervals with those between them, which are empty."""
    gaps = np.flatnonzero(end[:-1] < start[1:])
    starts = np.concatenate((start, end[gaps]))
    order = np.argsort(starts, kind="stable")
    values = np.concatenate((colour + FIRST_PROCESS, np.full(len(gaps), ABSENT))).astype(np.uint8)
    named = [*map(str, texts), *[""] * len(gaps)]
    return _made(starts[order], values[order], [named[place] for place in order], int(end[-1]) if len(end) else 0)


def _made(starts: NDArray[np.int64], values: NDArray[np.uint8], texts: list[str], end: int) -> LaneSpans:
    events = np.full(len(starts), NO_EVENT, np.uint32)
    return LaneSpans(starts.astype(np.int64), values.astype(np.uint8), events, None, end, tuple(texts))
