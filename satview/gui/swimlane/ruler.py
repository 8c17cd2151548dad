"""The time ruler: ticks from seconds to nanoseconds, the range with its length, cursors, marks, the mouse."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetricsF, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QToolTip, QWidget

from satview.base.safe_text import tool_tip, visible_line
from satview.base.time import TimeWindow, format_duration, format_time
from satview.gui.swimlane.overlays import draw_lost, lost_spans
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.tick_marks import TICK_ROW_PX, draw_ticks
from satview.gui.swimlane.ticks import ticks
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.store.mark_file import Mark

HEIGHT_PX: Final = 40


class Ruler(QWidget):
    """Shows times above the lanes. Drag selects a range, double click shows the whole trace.

    Signals:
        mark_clicked: A mark's flag was clicked.
    """

    mark_clicked = Signal(object)

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(HEIGHT_PX)
        self.setMouseTracking(True)
        self.setAccessibleName("Time ruler")
        self._opened = opened
        self._theme = theme
        self._anchor_cycles: int | None = None
        self._small = QFont(self.font())
        self._small.setPixelSize(10)
        selection = opened.selection
        for signal in (
            opened.viewport.window_changed,
            selection.range_changed,
            selection.cursors_changed,
            selection.mouse_changed,
            selection.changed,
            opened.marks.changed,
            opened.reloaded,
        ):
            signal.connect(self.update)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        self.update()

    @property
    def _scale(self) -> TimeScale:
        return TimeScale(self._opened.viewport.window, self.width())

    @Slot()
    def show_all(self) -> None:
        """Show the whole trace."""
        self._opened.viewport.show_all()

    def event(self, event: QEvent) -> bool:
        """Show the tip of the mark under the mouse."""
        if isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), tool_tip(self._tip_at(QPointF(event.pos()))), self)
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or a drag."""
        if event.button() == Qt.MouseButton.LeftButton:
            mark = self._mark_at(event.position())
            if mark is not None:
                self.mark_clicked.emit(mark)
                return
            self._anchor_cycles = self._scale.cycles(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Follow the mouse."""
        cycles = self._scale.cycles(event.position().x())
        self._opened.selection.set_mouse(cycles)
        if self._anchor_cycles is not None:
            start, end = sorted((self._anchor_cycles, cycles))
            self._opened.selection.set_range(TimeWindow(start, end) if end > start else None)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End a click or a drag."""
        if self._anchor_cycles == self._scale.cycles(event.position().x()):
            self._opened.selection.set_range(None)
        self._anchor_cycles = None

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        """Answer a double click."""
        self.show_all()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw."""
        painter = QPainter(self)
        theme, scale = self._theme, self._scale
        painter.fillRect(self.rect(), colour(theme.panel))
        draw_lost(painter, lost_spans(self._opened.timeline.lost_marks, scale), 4, theme)
        draw_ticks(painter, ticks(scale, self._opened.trace.clock), self.width(), self._small, theme)
        self._draw_range(painter, scale)
        self._draw_flags(painter, scale)
        painter.setPen(colour(theme.line))
        painter.drawLine(QLineF(0, self.height() - 0.5, self.width(), self.height() - 0.5))

    def _draw_range(self, painter: QPainter, scale: TimeScale) -> None:
        time_range = self._opened.selection.time_range
        if time_range is None:
            return
        theme = self._theme
        left, right = scale.x(time_range.start), scale.x(time_range.end)
        area = QRectF(left, TICK_ROW_PX + 1, max(1.0, right - left), HEIGHT_PX - TICK_ROW_PX - 2)
        painter.fillRect(area, colour(theme.accent, 60))
        text = format_duration(self._opened.trace.clock.duration_ns(time_range.length))
        width = QFontMetricsF(self._small).horizontalAdvance(text)
        visible_left, visible_right = max(0.0, left), min(float(self.width()), right)
        painter.setPen(colour(theme.text))
        if visible_right - visible_left >= width + 8:
            painter.drawText(area.intersected(QRectF(self.rect())), Qt.AlignmentFlag.AlignCenter, text)
        elif visible_right + width + 8 < self.width():
            painter.drawText(QPointF(visible_right + 4, HEIGHT_PX - 6), text)

    def _draw_flags(self, painter: QPainter, scale: TimeScale) -> None:
        selection, theme = self._opened.selection, self._theme
        for mark in self._opened.marks:
            self._draw_mark(painter, mark, scale.x(mark.start_cycles))
        if selection.mouse_cycles is not None:
            x = round(scale.x(selection.mouse_cycles)) + 0.5
            painter.setPen(QPen(colour(theme.text, 110), 1))
            painter.drawLine(QLineF(x, 0, x, HEIGHT_PX))
        for cycles, letter, rgb in (
            (selection.cursor_a, "A", theme.cursor_a),
            (selection.cursor_b, "B", theme.cursor_b),
        ):
            if cycles is not None and -20 <= scale.x(cycles) <= self.width() + 20:
                self._draw_cursor(painter, scale.x(cycles), letter, rgb)

    def _draw_cursor(self, painter: QPainter, x: float, letter: str, rgb: int) -> None:
        box = QRectF(round(x) - 7, HEIGHT_PX - 17, 15, 15)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour(rgb))
        painter.drawRoundedRect(box, 3, 3)
        painter.setPen(colour(self._theme.base))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, letter)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _draw_mark(self, painter: QPainter, mark: Mark, x: float) -> None:
        if not -10 <= x <= self.width() + 10:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colour(self._theme.mark), 1))
        painter.setBrush(colour(self._theme.base if mark.is_temporary else self._theme.mark))
        top = TICK_ROW_PX + 3.0
        painter.drawPolygon(QPolygonF([QPointF(x, top), QPointF(x + 10, top + 4), QPointF(x, top + 8)]))
        painter.drawLine(QLineF(x, top, x, HEIGHT_PX))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        if mark.text:
            painter.setPen(colour(self._theme.mark))
            text = visible_line(mark.text.splitlines()[0])
            painter.drawText(
                QPointF(x + 13, top + 9), text if len(text) < 28 else text[:27] + "\N{HORIZONTAL ELLIPSIS}"
            )

    def _mark_at(self, index: QPointF) -> Mark | None:
        if index.y() < TICK_ROW_PX:
            return None
        near = [mark for mark in self._opened.marks if -3 <= index.x() - self._scale.x(mark.start_cycles) <= 12]
        return near[-1] if near else None

    def _tip_at(self, index: QPointF) -> str:
        """Return what a mark under the mouse says."""
        mark = self._mark_at(index)
        if mark is None:
            return ""
        time = format_time(self._opened.trace.clock.ns(mark.start_cycles))
        return f"{time}\n{mark.text}".strip()
