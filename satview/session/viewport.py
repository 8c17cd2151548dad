"""The visible time range: zoom, pan, history. Views read the range from here and store none themselves."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from satview.base.time import TimeWindow

if TYPE_CHECKING:
    from satview.timeline.state_lanes import Preview

SHORTEST_CYCLES: Final = 8
_SNAP_CYCLES_PER_PX: Final = 256  # below that, lanes are drawn from intervals, and rounding would make moves jerky
_GESTURE_PAUSE_S: Final = 0.8
_HISTORY_LENGTH: Final = 200
_SAME_POSITION_PX: Final = 3  # a mouse at rest keeps its position up to this rounding error of windows


class Viewport(QObject):
    """The time range that all views of a trace show.

    Signals:
        window_changed: The visible range, or the width in pixels, changed.
    """

    window_changed = Signal()

    def __init__(self, limits: TimeWindow, parent: QObject | None = None, end_cycles: int | None = None) -> None:
        """Show the whole trace.

        Args:
            limits: The whole trace with a small margin.
            parent: Owner.
            end_cycles: End of the trace itself; None = the end of the limits.
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
        """The visible range, in cycles."""
        return self._window

    @property
    def limits(self) -> TimeWindow:
        """The whole trace with a small margin on both sides; nothing beyond it is ever visible."""
        return self._limits

    @property
    def width_px(self) -> int:
        """Width of the lanes in device pixels."""
        return self._width_px

    def begin_at(self, window: TimeWindow) -> None:
        """Show an initial window without an entry in the history."""
        self._set(self._fitted(window))

    def set_width(self, width_px: int) -> None:
        """Set the width of the lanes in device pixels, so that the window can start at whole pixels."""
        if width_px != self._width_px and width_px > 0:
            self._width_px = width_px
            self._window = self._fitted(self._window)
            self.window_changed.emit()

    @property
    def is_whole(self) -> bool:
        """True if the whole trace is visible."""
        return self._window.length >= self._limits.length

    def jump(self, window: TimeWindow) -> None:
        """Show a window; the previous one goes into the history."""
        fitted = self._fitted(window)
        if fitted == self._window:
            return
        self._remember()
        self._moved_s = float("-inf")
        self._set(fitted)

    def move(self, window: TimeWindow) -> None:
        """Show a window as part of a gesture; only the window before the gesture goes into the history."""
        fitted = self._fitted(window)
        if fitted == self._window:
            return
        now_s = time.monotonic()
        if now_s - self._moved_s > _GESTURE_PAUSE_S:
            self._remember()
        self._moved_s = now_s
        self._set(fitted)

    def zoom(self, factor: float, anchor: int) -> None:
        """Make the window `factor` times as long; the time `anchor`, in cycles, keeps its position on the screen.

        Windows begin at whole pixels, and a rounding error of one pixel would grow to a hundred in twenty steps. So
        successive steps at one position use the time and position of the first step.
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
        """Move by a fraction of the window: 0.5 is half a window to later times."""
        self.move(self._window.shifted(round(self._window.length * share)))

    def show_all(self) -> None:
        """Show the whole trace."""
        self.jump(self._limits)

    def centre(self, cycles: int) -> None:
        """Bring a time to the middle, at the same zoom."""
        start = cycles - self._window.length // 2
        self.jump(TimeWindow(start, start + self._window.length))

    def fit(self, window: TimeWindow, margin: float = 0.1) -> None:
        """Zoom so that a range fills the window except for a margin on both sides, a fraction of its length."""
        beyond = max(1, round(window.length * margin))
        self.jump(TimeWindow(window.start - beyond, window.end + beyond))

    def reveal(self, cycles: int) -> None:
        """Centre a time if it is outside the window or close to an edge; the zoom stays."""
        edge = self._window.length // 20
        if not self._window.start + edge <= cycles < self._window.end - edge:
            self.centre(cycles)

    @property
    def can_go_back(self) -> bool:
        """True if there is a view to go back to."""
        return bool(self._past)

    def back(self) -> None:
        """Show the previous window of the history."""
        if self._past:
            self._future.append(self._window)
            self._set(self._fitted(self._past.pop()))

    def forward(self) -> None:
        """Show the window again that was visible before the last `back`."""
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
        """Set the limits for a reloaded trace, and move the window into these.

        Args:
            limits: The whole trace with a small margin.
            end_cycles: End of the trace itself.
            is_at_end: True to move to the end of the trace; a window that showed the whole trace does so again.
        """
        was_whole = self.is_whole
        self._limits, self._end_cycles = limits, end_cycles
        if is_at_end:
            self._set(self._fitted(self._at_end(limits.length if was_whole else self._window.length)))
        else:
            self._set(self._window.clamped(limits))

    def _at_end(self, length: int) -> TimeWindow:
        """Return the window of `length` cycles at the end of the trace, of which 1/50 is after that end."""
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
        """Return the nearest valid window: within the limits, starting at a whole pixel."""
        if window.length >= self._limits.length - self._limits.length // 500:
            return self._limits  # the difference would not be visible
        length = max(window.length, min(SHORTEST_CYCLES, self._limits.length))
        start = window.start
        cycles_per_px = length // self._width_px
        if cycles_per_px >= _SNAP_CYCLES_PER_PX:
            length = cycles_per_px * self._width_px
            start -= start % cycles_per_px
        return TimeWindow(start, start + length).clamped(self._limits)


def with_margin(window: TimeWindow) -> TimeWindow:
    """Return the window with half a percent more on both sides, so that the first and last event are visible."""
    margin = max(1, window.length // 200)
    return TimeWindow(window.start - margin, window.end + margin)


class PreviewView(QObject):
    """The preview that a window shows until the trace is read.

    Attributes:
        preview: The data, read-only.
        viewport: The visible range; kept for the trace if the user has moved it.
    """

    def __init__(self, preview: Preview, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.preview = preview
        self.viewport = Viewport(with_margin(preview.window), self, preview.window.end)
