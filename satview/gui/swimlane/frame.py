"""What a frame shows of the lanes, and what the next ones will show if the view goes on as it moves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from satview.base.time import TimeWindow
from satview.gui.swimlane.lane_source import Request
from satview.gui.swimlane.scale import TimeScale

_JUMP: Final = 0.3  # of the width: a view that moves faster jumps, and nobody knows where it goes next
_MOST: Final = 0.25  # of the width, on each side
_STEP_PX: Final = 4  # logical pixels, which are whole device pixels at all usual ratios


@dataclass(frozen=True, slots=True)
class Frame:
    """What a frame shows of lanes.

    Attributes:
        request: All lanes, the part of the trace, device pixels.
        scale: Time to logical pixels.
        height_px: Logical pixels.
        scroll_px: Height of the list of lanes above it.
        ratio: Device pixels to a logical one.
        shows_shares: Lanes show shares of time where intervals are too dense for bars.
    """

    request: Request
    scale: TimeScale
    height_px: int
    scroll_px: int
    ratio: float
    shows_shares: bool

    @property
    def width_px(self) -> int:
        """Device pixels."""
        return self.request.width_px

    def ahead(self, before: TimeWindow | None, frames: float, limits: TimeWindow) -> Frame:
        """Return a wider frame at the same zoom: with what the next ones will show beside it.

        Args:
            before: What the frame before this one showed; None = there was none.
            frames: How many of the next ones.
            limits: Beyond that no frame shows anything.
        """
        window, width_px = self.scale.window, self.scale.width_px
        if before is None or before == window:
            return self
        px_per_cycle = width_px / window.length
        moved = before.start - window.start, window.end - before.end  # on both sides
        room = window.start - limits.start, limits.end - window.end
        left, right = (
            _margin(cycles * px_per_cycle, beyond * px_per_cycle, frames, width_px)
            for cycles, beyond in zip(moved, room, strict=True)
        )
        if left == right == 0:
            return self
        start, end = (px * window.length // width_px for px in (left, right))
        wider = TimeScale(TimeWindow(window.start - start, window.end + end), left + width_px + right)
        device_px = self.width_px + round((left + right) * self.ratio)
        return replace(self, request=replace(self.request, window=wider.window, width_px=device_px), scale=wider)


def _margin(moved_px: float, room_px: float, frames: float, width_px: int) -> int:
    """Return how much more to paint on a side by which so many pixels came into view."""
    if not 0 < moved_px <= _JUMP * width_px or room_px <= 0:
        return 0
    return (int(min(frames * moved_px, room_px, _MOST * width_px)) // _STEP_PX + 1) * _STEP_PX
