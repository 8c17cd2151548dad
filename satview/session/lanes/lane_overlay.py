"""How a filter overlay intervals of lanes, pixel by pixel: an interval goes with the event that began it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.states import ABSENT, RUNNING, SEEN_EVENT, SEEN_RUNNING
from satview.session.filtering.filter_state import Mask
from satview.session.filtering.filter_task import FilterView
from satview.timeline.lane import Lane
from satview.timeline.lane_tree import Timeline
from satview.timeline.shares import Shares
from satview.timeline.spans import NO_EVENT, LaneSpans

_AT_ONCE: Final = 300_000  # intervals of a lane that a frame may look at; longer lanes wait for the worker


class LaneOverlay:
    """Says which pixels of lanes are hidden, faded or marked by one filter.

    Args:
        timeline: The lanes.
        view: What the filter does to the events.
    """

    def __init__(self, timeline: Timeline, view: FilterView) -> None:
        self._timeline = timeline
        self._view = view
        self._sums: dict[tuple[int, str], NDArray[np.uint32]] = {}
        self._shown: dict[int, Lane] = {}

    @property
    def does_nothing(self) -> bool:
        """True if no interval looks different for the filter."""
        return self._view.by_passes is None and self._view.dimmed is None and self._view.marked is None

    @property
    def hides(self) -> bool:
        """True if conditions hide intervals."""
        return self._view.by_passes is not None

    @property
    def fades(self) -> bool:
        """True if some intervals fade."""
        return self._view.dimmed is not None

    def shown_lane(self, lane: int) -> Lane | None:
        """Return a lane without the intervals that conditions hide, their time `ABSENT`; None until it is made."""
        return self._shown.get(lane)

    def make_shown(self, lane: int) -> None:
        """Make a lane without what conditions hide, if that is not done and the lane itself is ready. For a worker."""
        if self._view.by_passes is None or lane in self._shown or not self._timeline.is_ready(lane):
            return
        whole = self._timeline.lane(lane)
        spans, shows = whole.spans, self._of_events(whole.spans, "shown", self._view.by_passes)
        keep = np.arange(len(spans))
        if spans.texts is None and len(spans):  # what is hidden becomes one interval up to the next that shows
            keep = np.flatnonzero(shows | np.append(True, shows[:-1]))
        left = LaneSpans(
            np.asarray(spans.start_cycles)[keep],
            np.where(shows, spans.value, np.uint8(ABSENT))[keep],
            np.asarray(spans.event)[keep],
            None if spans.thread is None else np.asarray(spans.thread)[keep],
            spans.end_cycles,
            spans.texts,
        )
        self._shown[lane] = Lane(left, whole.levels, Shares.of(left))

    def hide(self, lanes: tuple[int, ...], values: NDArray[np.uint8], edges: NDArray[np.int64], waits: bool) -> None:
        """Blank what conditions hide; a pixel of many intervals shows the first one that is not hidden. In position.

        Args:
            lanes: Their indices.
            values: uint8, (lanes, pixels), as `Timeline.raster` gives them.
            edges: int64, (pixels + 1,), edges of the pixels in cycles.
            waits: False to leave out what would make a frame wait.
        """
        shown = self._view.by_passes
        if shown is None:
            return
        for position, lane in enumerate(lanes):
            left = self._shown.get(lane)  # fewer intervals, in an array
            found = self._sum(lane, "shown", shown, waits) if left is None else self._sum_left(lane, left.spans)
            if found is None:
                continue
            spans = (self._timeline.lane(lane) if left is None else left).spans
            first, last = _reach(spans, edges)
            some = found[last] - found[first]
            row = values[position]
            partly = np.flatnonzero((some > 0) & (some < last - first))
            row[(some == 0) & (last > first)] &= np.uint8(SEEN_EVENT)
            at = np.searchsorted(found, found[first[partly]] + np.uint32(1)) - 1
            value = spans.value[at]
            value |= np.where(value == RUNNING, SEEN_RUNNING, 0).astype(np.uint8)
            row[partly] = value | (row[partly] & np.uint8(SEEN_EVENT))

    def faded(self, lanes: tuple[int, ...], edges: NDArray[np.int64], waits: bool) -> Mask | None:
        """Return the pixels in which everything is dimmed, bool (lanes, pixels); None = none is."""
        if self._view.dimmed is None:
            return None
        return self._pixels(lanes, "dimmed", self._view.dimmed, edges, waits, every=True)

    def marked(self, lanes: tuple[int, ...], edges: NDArray[np.int64], waits: bool) -> Mask | None:
        """Return the pixels in which an interval is marked, bool (lanes, pixels); None = none is."""
        if self._view.marked is None:
            return None
        return self._pixels(lanes, "marked", self._view.marked, edges, waits, every=False)

    def _pixels(
        self, lanes: tuple[int, ...], name: str, events: Mask, edges: NDArray[np.int64], waits: bool, *, every: bool
    ) -> Mask:
        answer = np.zeros((len(lanes), len(edges) - 1), np.bool_)
        for position, lane in enumerate(lanes):
            found = self._sum(lane, name, events, waits)
            if found is not None:
                first, last = _reach(self._timeline.lane(lane).spans, edges)
                some = found[last] - found[first]
                answer[position] = some == last - first if every else some > 0
        return answer

    def _sum(self, lane: int, name: str, events: Mask, waits: bool) -> NDArray[np.uint32] | None:
        """Return how many of the first n intervals of a lane begin with such an event, (n + 1,); None = not now."""
        key = (lane, name)
        if key not in self._sums:
            if not self._timeline.is_ready(lane):
                return None
            spans = self._timeline.lane(lane).spans
            if not len(spans) or (len(spans) > _AT_ONCE and not waits):
                return None
            sums = np.zeros(len(spans) + 1, np.uint32)
            np.cumsum(self._of_events(spans, name, events), out=sums[1:], dtype=np.uint32)
            self._sums[key] = sums
        return self._sums[key]

    def _sum_left(self, lane: int, left: LaneSpans) -> NDArray[np.uint32]:
        """Return how many of the first n intervals of a lane without what is hidden show, (n + 1,)."""
        key = (lane, "left")
        if key not in self._sums:
            sums = np.zeros(len(left) + 1, np.uint32)
            np.cumsum(left.value != ABSENT, out=sums[1:], dtype=np.uint32)
            self._sums[key] = sums
            self._sums.pop((lane, "shown"), None)
        return self._sums[key]

    def _of_events(self, spans: LaneSpans, name: str, events: Mask) -> Mask:
        """Return which intervals begin with such an event, bool (n,)."""
        of_event = events[np.minimum(spans.event, np.uint32(len(events) - 1))]
        lone = spans.event == NO_EVENT
        # What no event began is nothing to hide or to mark, but fades with the rest.
        of_event[lone] = (spans.value[lone] != ABSENT) if name == "dimmed" else name == "shown"
        return of_event


def _reach(spans: LaneSpans, edges: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first interval that reaches into each pixel and the one after the last; none before the lane."""
    begun = np.searchsorted(spans.start_cycles, edges[:-1], side="right")
    last = np.maximum(np.searchsorted(spans.start_cycles, edges[1:]), begun)
    first = np.maximum(begun - 1, 0)
    return np.where(last > 0, first, 0), last
