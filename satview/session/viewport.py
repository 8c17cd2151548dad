"""The visible range of time: zoom, pan, history. Views read it, none of them keeps a window of its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from satview.base.time import TimeWindow

if TYPE_CHECKING:
    from satview.timeline.preview import Preview

SHORTEST_CYCLES: Final = 8
_SNAP_CYCLES_PER_PX: Final = 256  # below that, lanes are drawn from intervals, and rounding would be felt as a jerk
_GESTURE_PAUSE_S: Final = 0.8
_HISTORY_LENGTH: Final = 200
_SAME_POSITION_PX: Final = 3  # a mouse that nobody moved is at the same position, but for what windows are off


class Viewport(QObject):
    """The window of time that all views of a trace show.

    Signals:
        window_changed: Another range is visible, or the width in pixels changed.
    """

    window_changed = Signal()

    def __init__(self, limits: TimeWindow, parent: QObject | None = None, end_cycles: int | None = None) -> None:
        """Show all of a trace.

        Args:
            limits: The whole trace with a little margin.
            parent: Owner.
            end_cycles: Where the trace itself ends; None = at the end of the limits.
        """
        super().__init__(parent)
        self._limits = limits
        self._end_cycles = limits.end if end_cycles is None else end_cycles
        self._window = limits
        self._width_px = 1
        self._past: list[TimeWindow] = []
        self._future: list[TimeWindow] = []
        self._moved_s = float("-inf")
        self._zoomed: tuple[TimeWindow, int, float] | None = None  # after the last zoom: window, anchor, its position

    @property
    def window(self) -> TimeWindow:
        """What is visible, in cycles."""
        return self._window

    @property
    def limits(self) -> TimeWindow:
        """The whole trace with a little margin on both sides; nothing beyond it is ever visible."""
        return self._limits

    @property
    def width_px(self) -> int:
        """Width of the drawing in device pixels."""
        return self._width_px

    def begin_at(self, window: TimeWindow) -> None:
        """Show a window at first; there is nothing to go back to."""
        self._set(self._fitted(window))

    def set_width(self, width_px: int) -> None:
        """Return how wide the drawing is, in device pixels, so that the window can start at whole pixels."""
        if width_px != self._width_px and width_px > 0:
            self._width_px = width_px
            self._window = self._fitted(self._window)
            self.window_changed.emit()

    @property
    def is_whole(self) -> bool:
        """True if nothing is left to zoom out to."""
        return self._window.length >= self._limits.length

    def jump(self, window: TimeWindow) -> None:
        """Show a window; the one before goes into the history."""
        fitted = self._fitted(window)
        if fitted == self._window:
            return
        self._remember()
        self._moved_s = float("-inf")
        self._set(fitted)

    def move(self, window: TimeWindow) -> None:
        """Show a window as part of a gesture: only the position where the gesture began goes into the history."""
        fitted = self._fitted(window)
        if fitted == self._window:
            return
        now_s = time.monotonic()
        if now_s - self._moved_s > _GESTURE_PAUSE_S:
            self._remember()
        self._moved_s = now_s
        self._set(fitted)

    def zoom(self, factor: float, anchor: int) -> None:
        """Make the window `factor` times as long while `anchor` keeps its position.

        Windows begin at whole pixels, and what is off by one after a step is off by a hundred after twenty more. So
        steps around one position keep the moment and the position of the first of them.
        """
        length = max(SHORTEST_CYCLES, round(self._window.length * factor))
        share = (anchor - self._window.start) / self._window.length
        if self._zoomed is not None:
            window, anchored, first_share = self._zoomed
            if window == self._window and abs(share - first_share) * self._width_px < _SAME_POSITION_PX:
                anchor, share = anchored, first_share
        start = anchor - round(length * share)
        self.move(TimeWindow(start, start + length))
        self._zoomed = self._window, anchor, share

    def pan(self, share: float) -> None:
        """Move by a share of the window: 0.5 is half a window to later times."""
        self.move(self._window.shifted(round(self._window.length * share)))

    def show_all(self) -> None:
        """Show the whole trace."""
        self.jump(self._limits)

    def centre(self, cycles: int) -> None:
        """Bring a moment to the middle, at the same zoom."""
        start = cycles - self._window.length // 2
        self.jump(TimeWindow(start, start + self._window.length))

    def fit(self, window: TimeWindow, margin: float = 0.1) -> None:
        """Zoom so that a range fills the window but for a margin on both sides, a share of its length."""
        beyond = max(1, round(window.length * margin))
        self.jump(TimeWindow(window.start - beyond, window.end + beyond))

    def reveal(self, cycles: int) -> None:
        """Bring a moment into view if it is not visible; the zoom stays."""
        edge = self._window.length // 20
        if not self._window.start + edge <= cycles < self._window.end - edge:
            self.centre(cycles)

    @property
    def can_go_back(self) -> bool:
        """True if there is a view to go back to."""
        return bool(self._past)

    @property
    def can_go_forward(self) -> bool:
        """True if `back` can be taken back."""
        return bool(self._future)

    def back(self) -> None:
        """Show the view before this one."""
        if self._past:
            self._future.append(self._window)
            self._set(self._fitted(self._past.pop()))

    def forward(self) -> None:
        """Take `back` back."""
        if self._future:
            self._past.append(self._window)
            self._set(self._fitted(self._future.pop()))

    @property
    def is_at_end(self) -> bool:
        """True if the end of the trace is at the right edge of the window."""
        return self._window.end >= self._end_cycles - max(1, self._window.length // 100)

    def go_to_end(self) -> None:
        """Move to the end at the same zoom."""
        self.jump(self._at_end(self._window.length))

    def grow(self, limits: TimeWindow, end_cycles: int, is_at_end: bool) -> None:
        """Take the limits of a longer reading of the same file.

        Args:
            limits: The whole reading with a little margin.
            end_cycles: Where the reading itself ends.
            is_at_end: Keep to the end of the trace; a window that showed all of it shows all again.
        """
        was_whole = self.is_whole
        self._limits, self._end_cycles = limits, end_cycles
        if is_at_end:
            self._set(self._fitted(self._at_end(limits.length if was_whole else self._window.length)))
        else:
            self._set(self._window.clamped(limits))

    def _at_end(self, length: int) -> TimeWindow:
        """Return the window that ends just after the trace: the margin of the limits would fill a short one."""
        end = min(self._limits.end, self._end_cycles + max(1, length // 50))
        return TimeWindow(end - length, end)

    def _remember(self) -> None:
        self._past.append(self._window)
        del self._past[:-_HISTORY_LENGTH]
        self._future.clear()

    def _set(self, window: TimeWindow) -> None:
        if window != self._window:
            self._window = window
            self.window_changed.emit()

    def _fitted(self, window: TimeWindow) -> TimeWindow:
        """Return the nearest window that may be shown: within the limits, starting at a whole pixel."""
        if window.length >= self._limits.length - self._limits.length // 500:
            return self._limits  # so nearly all of it that nobody can show
        length = max(window.length, min(SHORTEST_CYCLES, self._limits.length))
        start = window.start
        cycles_per_px = length // self._width_px
        if cycles_per_px >= _SNAP_CYCLES_PER_PX:
            length = cycles_per_px * self._width_px
            start -= start % cycles_per_px
        return TimeWindow(start, start + length).clamped(self._limits)


def with_margin(window: TimeWindow) -> TimeWindow:
    """Return the window with half a percent more on both sides, so that the first and last event can be seen."""
    margin = max(1, window.length // 200)
    return TimeWindow(window.start - margin, window.end + margin)


class PreviewView(QObject):
    """What a window shows until a trace is read.

    Attributes:
        preview: The data, read-only.
        viewport: The part that shows; the trace begins with it if the user has moved there.
    """

    def __init__(self, preview: Preview, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.preview = preview
        self.viewport = Viewport(with_margin(preview.window), self, preview.window.end)
