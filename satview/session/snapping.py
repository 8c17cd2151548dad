"""Snaps a position of the mouse to nearby edges, events, cursors and marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Final

import numpy as np

from satview.session.lanes.lane_events import event_near
from satview.session.open_trace import OpenTrace

SNAP_PX: Final = 6


class Moved(Enum):
    """The object that the user drags, and that must not be snapped to its own position."""

    CURSOR_A = auto()
    CURSOR_B = auto()
    RANGE = auto()


def snapped(opened: OpenTrace, cycles: int, within: int, lane: int | None = None, moved: Moved | None = None) -> int:
    """Return the time that a position snaps to; the position itself if nothing is near.

    Cursors, marks, the selection and the ends of the range come first, then edges and events of the lane. On the ruler,
    edges and events of the selected lane are used, then the events of all lanes that the filter shows.

    Args:
        opened: The trace and its selection.
        cycles: The position.
        within: Largest distance in cycles.
        lane: Index of the lane under the mouse; None on the ruler.
        moved: The dragged object.
    """
    for candidates in _candidates(opened, cycles, within, lane, moved):
        near = min(candidates, key=lambda moment: abs(moment - cycles), default=None)
        if near is not None and abs(near - cycles) <= within:
            return near
    return cycles


def _candidates(
    opened: OpenTrace, cycles: int, within: int, lane: int | None, moved: Moved | None
) -> Iterator[Iterable[int]]:
    yield _landmarks(opened, moved)
    of = opened.selection.lane if lane is None else lane
    if of is not None:
        yield _on_lane(opened, of, cycles, within)
    if lane is None:
        yield _shown_events(opened, cycles)


def _landmarks(opened: OpenTrace, moved: Moved | None) -> Iterator[int]:
    selection = opened.selection
    for cursor, own in ((selection.cursor_a, Moved.CURSOR_A), (selection.cursor_b, Moved.CURSOR_B)):
        if cursor is not None and moved is not own:
            yield cursor
    for mark in opened.marks:
        yield mark.start_cycles
        yield mark.end_cycles
    if selection.event is not None:
        yield int(opened.trace.events.time_cycles[selection.event])
    if selection.span is not None:
        yield selection.span.start_cycles
        yield selection.span.end_cycles
    if selection.time_range is not None and moved is not Moved.RANGE:
        yield selection.time_range.start
        yield selection.time_range.end


def _on_lane(opened: OpenTrace, lane: int, cycles: int, within: int) -> Iterator[int]:
    """Yield the edges before and after a time on a lane, and the nearest event; nothing if the lane is not built yet.

    Edges come first, so that an edge is preferred to an event at the same distance.
    """
    if not opened.timeline.is_ready(lane):
        return
    of = opened.timeline.lane(lane)
    for edge in (of.previous_edge(cycles + 1), of.next_edge(cycles)):
        if edge is not None:
            yield edge
    event = event_near(opened.timeline, lane, cycles, within, opened.filters.codes, opened.filters.view.passing)
    if event is not None:
        yield int(opened.trace.events.time_cycles[event])


def _shown_events(opened: OpenTrace, cycles: int) -> Iterator[int]:
    """Yield the times of the last event that the filter shows before a time, and of the first from that time on."""
    times, rows = opened.trace.events.time_cycles, opened.filters.rows
    row = int(np.searchsorted(times, cycles))
    position = row if rows is None else int(np.searchsorted(rows, row))
    count = len(times) if rows is None else len(rows)
    for near in (position - 1, position):
        if 0 <= near < count:
            yield int(times[near if rows is None else rows[near]])
