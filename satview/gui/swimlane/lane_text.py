"""Names inside intervals that are wide enough to hold them, and the columns where intervals begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import states
from satview.gui.colours import THICK, is_light, value_colour
from satview.gui.swimlane.scale import TimeScale
from satview.session.lane_list import LaneRow
from satview.timeline.lane_tree import Timeline
from satview.timeline.spans import Span

NARROWEST_PX: Final = 34
_SILENT: Final = frozenset({states.ABSENT, states.UNKNOWN, states.IDLE, states.WAITING})


@dataclass(frozen=True, slots=True)
class IntervalText:
    """A name to be drawn.

    Attributes:
        row: The lane.
        left_px, right_px: The part of the interval that shows.
        text: The name.
        ink: 0xRRGGBB, or None for the usual colour of text.
    """

    row: LaneRow
    left_px: float
    right_px: float
    text: str
    ink: int | None


def interval_texts(
    timeline: Timeline,
    rows: tuple[LaneRow, ...],
    values: NDArray[np.uint8],
    scale: TimeScale,
    is_dark: bool,
    hidden_values: frozenset[int] = frozenset(),
) -> list[IntervalText]:
    """Return the names that fit, at most one per `NARROWEST_PX` of each lane.

    Where few intervals show, each is asked; otherwise runs of equal pixels say where a wide one may lie, so that the
    cost follows the pixels and not the events.
    """
    found = []
    for place, row in enumerate(rows):
        if row.height_px < 14 or not timeline.is_ready(row.index):
            continue
        for span in _wide_spans(timeline, row.index, values[place], scale):
            if span.value in _SILENT or span.value in hidden_values:
                continue
            left, right = max(0.0, scale.x(span.start_cycles)), min(float(scale.width_px), scale.x(span.end_cycles))
            if right - left >= NARROWEST_PX:
                text = timeline.label(span)
                found.append(IntervalText(row, left, right, text, _ink(span.value, is_dark)))
    return found


def interval_starts(timeline: Timeline, lane: int, scale: TimeScale, width_px: int) -> NDArray[np.int64] | None:
    """Return the pixel columns where intervals of a lane begin; None if they are too many to be told apart."""
    if not timeline.is_ready(lane):
        return None
    starts = timeline.lane(lane).spans.start_cycles
    first, last = np.searchsorted(starts, (scale.window.start, scale.window.end))
    if last - first == 0 or last - first > width_px // 6:
        return None
    return (starts[first:last] - scale.window.start) * width_px // scale.window.length


def _wide_spans(timeline: Timeline, index: int, pixels: NDArray[np.uint8], scale: TimeScale) -> list[Span]:
    lane = timeline.lane(index)
    starts = lane.spans.start_cycles
    first, last = np.searchsorted(starts, (scale.window.start, scale.window.end))
    first = max(0, int(first) - 1)
    if last - first <= scale.width_px // NARROWEST_PX * 2:
        moments = [max(int(start), scale.window.start) for start in starts[first:last]]
    else:
        moments = _middles_of_runs(pixels & np.uint8(states.VALUE_MASK), scale)
    return [span for span in map(lane.at, moments) if span is not None]


def _middles_of_runs(pixels: NDArray[np.uint8], scale: TimeScale) -> list[int]:
    ratio = len(pixels) / max(1, scale.width_px)
    edges = np.concatenate(([0], np.flatnonzero(np.diff(pixels)) + 1, [len(pixels)]))
    wide = np.flatnonzero(np.diff(edges) >= NARROWEST_PX * ratio)
    return [scale.cycles((edges[i] + edges[i + 1]) / 2 / ratio) for i in wide]


def _ink(value: int, is_dark: bool) -> int | None:
    colour = value_colour(value, is_dark)
    if colour is None:
        return None
    if value in THICK or not is_dark:
        return 0x14181F if is_light(colour) else 0xFFFFFF
    return None
