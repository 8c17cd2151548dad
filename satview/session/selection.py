"""What is selected: an event, an interval of a lane, a range of time, two cursors, the position under the mouse."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from satview.base.time import TimeWindow
from satview.timeline.spans import Span


class Selection(QObject):
    """The selection of one window; all views show it and all views change it here.

    Attributes:
        event: Row of the event table, or None.
        lane: Index of the lane, or None.
        span: The interval of that lane, or None.
        is_interval: The interval was selected, not the event, which is the one that begins it.
        point_cycles: The moment within that interval that was clicked, or None.
        time_range: The selected range, or None.
        cursor_a, cursor_b: Cycles, or None.
        mouse_cycles: Time under the mouse, None while it is elsewhere.
        mouse_lane: Index of the lane under the mouse, None while it is over none, as on the ruler.

    Signals:
        changed: Event, lane or interval changed.
        range_changed: The range changed.
        cursors_changed: Cursor A or B changed.
        mouse_changed: The time under the mouse changed.
    """

    changed = Signal()
    range_changed = Signal()
    cursors_changed = Signal()
    mouse_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        # Hides QObject.event(), which nothing here overrides or calls; `event` is the word of the whole program.
        self.event: int | None = None  # type: ignore[assignment]
        self.lane: int | None = None
        self.span: Span | None = None
        self.is_interval = False
        self.point_cycles: int | None = None
        self.time_range: TimeWindow | None = None
        self.cursor_a: int | None = None
        self.cursor_b: int | None = None
        self.mouse_cycles: int | None = None
        self.mouse_lane: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if neither an event nor an interval is selected."""
        return self.event is None and self.span is None

    def select(
        self,
        event: int | None,
        lane: int | None,
        span: Span | None,
        is_interval: bool = False,
        point_cycles: int | None = None,
    ) -> None:
        """Select an event, an interval, or both.

        Args:
            event: Row of the event table, or None.
            lane: Index of the lane, or None.
            span: The interval of that lane, or None.
            is_interval: The interval is what was selected.
            point_cycles: The moment within it that was clicked, or None.
        """
        before = self.event, self.lane, self.span, self.is_interval, self.point_cycles
        if (event, lane, span, is_interval, point_cycles) != before:
            self.event, self.lane, self.span, self.is_interval = event, lane, span, is_interval
            self.point_cycles = point_cycles
            self.changed.emit()

    def set_range(self, time_range: TimeWindow | None) -> None:
        """Select a range of time, or none."""
        if time_range != self.time_range:
            self.time_range = time_range
            self.range_changed.emit()

    def set_cursors(self, cursor_a: int | None, cursor_b: int | None) -> None:
        """Set both cursors."""
        if (cursor_a, cursor_b) != (self.cursor_a, self.cursor_b):
            self.cursor_a, self.cursor_b = cursor_a, cursor_b
            self.cursors_changed.emit()

    def set_mouse(self, cycles: int | None, lane: int | None = None) -> None:
        """Take where the mouse is."""
        self.mouse_lane = lane
        if cycles != self.mouse_cycles:
            self.mouse_cycles = cycles
            self.mouse_changed.emit()
