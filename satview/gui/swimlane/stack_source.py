"""The lanes that show shares of time, or steps, instead of bars in a frame."""

from __future__ import annotations

from satview.base.debug import timed
from satview.gui.swimlane.lane_source import LaneSource, Request
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.share_layer import Orders, Stack, stack_of
from satview.gui.theme import Theme
from satview.session.lanes.lane_row import LaneRow
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
        self._orders: tuple[object, Orders] = None, {}  # of a timeline

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

        Args:
            rows: The lanes.
            request: What the frame shows of them.
            scale: Time to logical pixels.
            theme: Colours.
            hidden: Values that are not to be seen.
            shows_shares: Shares are shown.
        """
        timeline, found = self._opened.timeline, Stacks()
        if self._orders[0] is not timeline:
            self._orders = timeline, {}
        with timed("lane shares"):
            for row in rows:
                if not shows_shares and not timeline.infos[row.index].is_counter:
                    continue
                stack = stack_of(
                    timeline, row, scale, request.width_px, theme, hidden, self._opened.legend.keys,
                    kinds=request.kinds, orders=self._orders[1], overlay=self._source.overlay,
                )  # fmt: skip
                if stack is not None:
                    found[row.index] = stack
        return found
