"""Moments that the mouse means: edges, events, cursors and marks near the position it points at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Final

import numpy as np

from satview.session.lanes.lane_events import event_near
from satview.session.open_trace import OpenTrace

SNAP_PX: Final = 6


class Moved(Enum):
    """What is being moved; it does not snap to where it is itself."""

    CURSOR_A = auto()
    CURSOR_B = auto()
    RANGE = auto()


def snapped(opened: OpenTrace, cycles: int, within: int, lane: int | None = None, moved: Moved | None = None) -> int:
    """Return the moment that is meant by a position near it; the position itself if nothing is near.

    Cursors, marks, the selection and the ends of the range come first, then edges and events of the lane; on the ruler,
    where no lane is meant, those of the selected lane, then the events of all lanes that the filter shows.

    Args:
        opened: The trace and what is selected in it.
        cycles: The position.
        within: How far away a moment may be, in cycles.
        lane: Index of the lane under the mouse; None on the ruler.
        moved: What is being moved.
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
    """Yield the edges before and behind a moment of a lane, and its event nearest to it; nothing of one not drawn yet.

    An edge that changes colour is seen, an event is a tick: of an edge and an event equally near the edge is meant.
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
    """Yield the times of the last event before a moment that the filter shows, and of the first one from it on."""
    times, rows = opened.trace.events.time_cycles, opened.filters.rows
    row = int(np.searchsorted(times, cycles))
    position = row if rows is None else int(np.searchsorted(rows, row))
    count = len(times) if rows is None else len(rows)
    for near in (position - 1, position):
        if 0 <= near < count:
            yield int(times[near if rows is None else rows[near]])
