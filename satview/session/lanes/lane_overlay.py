"""Computes which intervals a filter hides, fades or marks: those whose first event it hides, fades or marks."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.states import ABSENT, RUNNING, SEEN_EVENT, SEEN_RUNNING
from satview.session.filter_stack import FilterView, Mask
from satview.timeline.lane import LaneShares
from satview.timeline.lane_tree import Timeline
from satview.timeline.spans import NO_EVENT, LaneSpans

_AT_ONCE: Final = 50_000  # intervals of a lane that a frame may look at; longer lanes wait for the worker
_SHARED_AT_ONCE: Final = 3_000  # intervals of a lane whose shares a frame may compute


class LaneOverlay:
    """Finds which pixels of lanes one filter hides, fades or marks.

    Args:
        timeline: The lanes.
        view: The effect of the filter on events.
    """

    def __init__(self, timeline: Timeline, view: FilterView) -> None:
        self._timeline = timeline
        self._view = view
        self._sums: dict[tuple[int, str], NDArray[np.uint32]] = {}
        self._shares: dict[tuple[int, str], LaneShares] = {}

    @property
    def does_nothing(self) -> bool:
        """True if the filter changes the look of no interval."""
        return self._view.by_passes is None and self._view.dimmed is None and self._view.marked is None

    @property
    def leaves_all(self) -> bool:
        """True if the filter hides and dims no interval, so that shares of time are the same as without filter."""
        return self._view.by_passes is None and self._view.dimmed is None

    def hide(self, lanes: tuple[int, ...], values: NDArray[np.uint8], edges: NDArray[np.int64], waits: bool) -> None:
        """Blank hidden intervals in `values`; a pixel with several intervals gets the value of the first shown one.

        Args:
            lanes: Indices of the lanes in `values`.
            values: uint8, (lanes, pixels), as `Timeline.raster` returns them.
            edges: int64, (pixels + 1,), edges of the pixels in cycles.
            waits: False to leave out lanes that would delay a frame.
        """
        shown = self._view.by_passes
        if shown is None:
            return
        for position, lane in enumerate(lanes):
            sums = self._sum(lane, "shown", shown, waits)
            if sums is None:
                continue
            spans = self._timeline.lane(lane).spans
            begin, stop = _reach(spans, edges)
            shown_count = sums[stop] - sums[begin]
            row = values[position]
            partly = np.flatnonzero((shown_count > 0) & (shown_count < stop - begin))
            row[(shown_count == 0) & (stop > begin)] &= np.uint8(SEEN_EVENT)
            nearest = np.searchsorted(sums, sums[begin[partly]] + np.uint32(1)) - 1
            value = spans.value[nearest]
            value |= np.where(value == RUNNING, SEEN_RUNNING, 0).astype(np.uint8)
            row[partly] = value | (row[partly] & np.uint8(SEEN_EVENT))

    def faded(self, lanes: tuple[int, ...], edges: NDArray[np.int64], waits: bool) -> Mask | None:
        """Return the pixels in which every interval fades, bool (lanes, pixels); None = no interval fades.

        Arguments are as for `hide`.
        """
        faded = self._view.faded
        if faded is None:
            return None
        name = "dimmed" if faded is self._view.dimmed else "faded"  # the sums of what is dimmed serve shares too
        return self._pixels(lanes, name, faded, edges, waits, every=True)

    def marked(self, lanes: tuple[int, ...], edges: NDArray[np.int64], waits: bool) -> Mask | None:
        """Return the pixels in which an interval is marked, bool (lanes, pixels); None = no interval is marked.

        Arguments are as for `hide`.
        """
        if self._view.marked is None:
            return None
        return self._pixels(lanes, "marked", self._view.marked, edges, waits, every=False)

    def shown(self, lane: int, waits: bool) -> LaneShares | None:
        """Return how the time of a lane is divided among its values, without hidden intervals; None = not known yet.

        Args:
            lane: Index of the lane.
            waits: False to return None if the computation would delay a frame.
        """
        shown = self._view.by_passes
        if shown is None:
            return self._timeline.lane(lane).shares if self._timeline.is_ready(lane) else None
        return self._share(lane, "shown", shown, waits)

    def plain(self, lane: int, waits: bool) -> LaneShares | None:
        """Return the same as `shown`, but with faded intervals left out too; None = not known yet."""
        dimmed = self._view.dimmed
        return self.shown(lane, waits) if dimmed is None else self._share(lane, "dimmed", dimmed, waits)

    def has_shares(self, lanes: tuple[int, ...]) -> bool:
        """Return whether `plain` is known for all these lanes, except lanes that are not built yet."""
        return self.leaves_all or all(
            self.plain(lane, waits=False) is not None for lane in lanes if self._timeline.is_ready(lane)
        )

    def _share(self, lane: int, name: str, events: Mask, waits: bool) -> LaneShares | None:
        key = (lane, name)
        if key not in self._shares:
            if not self._timeline.is_ready(lane) or (
                not waits and len(self._timeline.lane(lane).spans) > _SHARED_AT_ONCE
            ):
                return None
            of = self._timeline.lane(lane).shares if name == "shown" else self.shown(lane, waits)
            sums = self._sum(lane, name, events, waits)
            if of is None or sums is None:  # an empty lane has no sums
                return of if of is not None and not len(of.spans) else None
            remains = (sums[1:] != sums[:-1]) == (name == "shown")
            value = np.where(remains, of.spans.value, np.uint8(ABSENT))
            shares = LaneShares.of(replace(of.spans, value=value))
            shares.make_bins(self._timeline.trace.window)
            self._shares[key] = shares
        return self._shares[key]

    def _pixels(
        self, lanes: tuple[int, ...], name: str, events: Mask, edges: NDArray[np.int64], waits: bool, *, every: bool
    ) -> Mask:
        answer = np.zeros((len(lanes), len(edges) - 1), np.bool_)
        for position, lane in enumerate(lanes):
            sums = self._sum(lane, name, events, waits)
            if sums is not None:
                begin, stop = _reach(self._timeline.lane(lane).spans, edges)
                count = sums[stop] - sums[begin]
                answer[position] = count == stop - begin if every else count > 0
        return answer

    def _sum(self, lane: int, name: str, events: Mask, waits: bool) -> NDArray[np.uint32] | None:
        """Return, as element i, how many of a lane's first i intervals begin with one of `events`; None = not known.

        `name` is that of the set of events, and decides whether intervals that no event began count. If
        `waits` is False, nothing is computed that takes longer than a frame.
        """
        key = (lane, name)
        if key not in self._sums:
            if not self._timeline.is_ready(lane):
                return None
            spans = self._timeline.lane(lane).spans
            if not len(spans) or (len(spans) > _AT_ONCE and not waits):
                return None
            of_event = events[np.minimum(spans.event, np.uint32(len(events) - 1))]
            lone = spans.event == NO_EVENT
            # Intervals that no event began are never hidden or marked, but fade with the rest.
            of_event[lone] = (spans.value[lone] != ABSENT) if name in ("dimmed", "faded") else name == "shown"
            sums = np.zeros(len(spans) + 1, np.uint32)
            np.cumsum(of_event, out=sums[1:], dtype=np.uint32)
            self._sums[key] = sums
        return self._sums[key]


def _reach(spans: LaneSpans, edges: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return first interval, and last plus one, of each pixel; both 0 before the first interval."""
    begun_count = np.searchsorted(spans.start_cycles, edges[:-1], side="right")
    stop = np.maximum(np.searchsorted(spans.start_cycles, edges[1:]), begun_count)
    begin = np.maximum(begun_count - 1, 0)
    return np.where(stop > 0, begin, 0), stop
