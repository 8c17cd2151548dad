"""Lanes of which a filter hides intervals, as pictures of shares take them."""

from __future__ import annotations

from typing import Protocol

from satview.session.lanes.lane_overlay import LaneOverlay
from satview.store.trace import Trace
from satview.timeline.lane import Lane
from satview.timeline.lane_info import LaneInfo
from satview.timeline.lane_tree import Timeline
from satview.timeline.shares import Shares


class StackedLanes(Protocol):
    """What a picture of shares needs of lanes: a timeline, or what a filter leaves of it."""

    @property
    def trace(self) -> Trace:
        """Their trace."""

    @property
    def infos(self) -> tuple[LaneInfo, ...]:
        """What each lane is about."""

    def is_ready(self, index: int) -> bool:
        """Return whether a lane can be drawn at once."""

    def lane(self, index: int) -> Lane:
        """Return a lane that is ready."""

    def kinds(self, index: int) -> Shares | None:
        """Return how the lane of a CPU divides its time by kind of code; None where that is not shown."""


class ShownLanes:
    """The lanes of a timeline without what a filter hides. Implements `StackedLanes`.

    Args:
        timeline: The lanes.
        overlay: What the filter does to them.
    """

    def __init__(self, timeline: Timeline, overlay: LaneOverlay) -> None:
        self._timeline, self._overlay = timeline, overlay

    @property
    def trace(self) -> Trace:
        """Their trace."""
        return self._timeline.trace

    @property
    def infos(self) -> tuple[LaneInfo, ...]:
        """What each lane is about."""
        return self._timeline.infos

    def is_ready(self, index: int) -> bool:
        """Return whether a lane can be drawn at once: steps of counters are never hidden."""
        is_made = self.infos[index].is_counter or self._overlay.shown_lane(index) is not None
        return is_made and self._timeline.is_ready(index)

    def lane(self, index: int) -> Lane:
        """Return a lane that is ready."""
        shown = self._overlay.shown_lane(index)
        return self._timeline.lane(index) if shown is None else shown

    def kinds(self, _index: int) -> Shares | None:
        """Return None: filters hide intervals of threads, not kinds of code."""
        return None
