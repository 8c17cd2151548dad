"""The lanes that show shares of time, or steps, instead of bars in a frame; cached while the request is the same."""

from __future__ import annotations

from satview.base.debug import timed
from satview.gui.swimlane.lane_source import LaneSource, Request
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.share_layer import Orders, Stack, stack_of
from satview.gui.theme import Theme
from satview.session.lanes.lane_row import LaneRow
from satview.session.lanes.shown_lanes import ShownLanes, StackedLanes
from satview.session.open_trace import OpenTrace

Stacks = dict[int, Stack]


class StackSource:
    """Gives what lanes show in a frame.

    Args:
        opened: The trace.
        source: Says what a filter does to intervals.
    """

    def __init__(self, opened: OpenTrace, source: LaneSource) -> None:
        self._opened, self._source = opened, source
        self._latest: tuple[object, int, Stacks] | None = None  # what they were made of, and of how many lanes
        self._orders: tuple[object, Orders] = None, {}  # of a timeline and an overlay

    def stacks(
        self,
        rows: tuple[LaneRow, ...],
        request: Request,
        scale: TimeScale,
        theme: Theme,
        hidden: frozenset[int],
        *,
        shows_shares: bool,
    ) -> Stacks:
        """Return the lanes that show steps, and those that show shares of time, by their indices.

        None of these while a filter fades single intervals. What it hides takes no part, what it marks is underlined.

        Args:
            rows: The lanes that show.
            request: What the frame shows.
            scale: Time to logical pixels.
            theme: Colours.
            hidden: Values that are not to be seen.
            shows_shares: Shares are shown.
        """
        overlay, highlighted = self._source.overlay, self._opened.legend.keys
        shows_all = shows_shares and not overlay.fades
        requested = request, theme, hidden, highlighted, overlay, shows_all
        if self._latest is not None and self._latest[0] == requested and self._latest[1] == len(rows):
            return self._latest[2]
        timeline, found = self._opened.timeline, Stacks()
        lanes: StackedLanes = ShownLanes(timeline, overlay) if overlay.hides else timeline
        if self._orders[0] != (timeline, overlay):
            self._orders = (timeline, overlay), {}
        with timed("lane shares"):
            for row in rows:
                if not shows_all and not timeline.infos[row.index].is_counter:
                    continue
                stack = stack_of(
                    lanes, row, scale, request.width_px, theme, hidden, highlighted,
                    kinds=request.kinds, orders=self._orders[1],
                )  # fmt: skip
                if stack is not None:
                    found[row.index] = stack
        if all(lanes.is_ready(row.index) for row in rows) and (timeline.has_kinds or not request.kinds):
            self._latest = requested, len(rows), found
        return found
