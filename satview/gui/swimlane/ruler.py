"""The time ruler: ticks, the selected range with its length, cursors, marks, and the time at the mouse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetricsF, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QToolTip, QWidget

from satview.base.safe_text import tool_tip, visible_line
from satview.base.time import Clock, TimeWindow, format_moment
from satview.gui.swimlane.fills import draw_lost, lost_spans
from satview.gui.swimlane.scale import TICK_ROW_PX, TimeScale, draw_ticks, small_step_ns, step_ns, ticks
from satview.gui.theme import Theme, colour
from satview.session.navigation import SNAP_PX, Moved, snapped
from satview.session.open_trace import OpenTrace
from satview.session.range_view import length_texts
from satview.store.mark_file import Mark


def snapped_to_tick(cycles: int, scale: TimeScale, clock: Clock) -> int:
    """Return the time of a tick near a time; the time itself if no tick is near."""
    small = small_step_ns(step_ns(scale, clock))
    tick = clock.cycles((clock.ns(cycles) + small // 2) // small * small)
    return tick if abs(tick - cycles) <= scale.length(SNAP_PX) else cycles


# A line of texts on the ruler that do not overlap.


_GAP_PX: Final = 4.0
_LEAST_PX: Final = 34.0  # least width of a cut text


class TextRow:
    """Writes texts into a line of the ruler, where there is free room.

    Args:
        painter: Painter of the ruler, with the font of the texts.
        area: The line.
    """

    def __init__(self, painter: QPainter, area: QRectF) -> None:
        self._painter, self._area = painter, area
        self._metrics = QFontMetricsF(painter.font())
        self._taken: list[tuple[float, float]] = []

    def take(self, left: float, right: float) -> None:
        """Mark a part of the line as occupied."""
        self._taken.append((left, right))

    def centred(self, texts: Sequence[str], left: float, right: float) -> bool:
        """Write the first text that fits, centred in the widest gap between two positions, or else to their right.

        Returns:
            Whether a text fits.
        """
        gaps = self._gaps(max(left, self._area.left()), min(right, self._area.right()))
        widest_start, widest_end = max(gaps, key=lambda gap: gap[1] - gap[0], default=(0.0, 0.0))
        behind = next(iter(self._gaps(max(right, self._area.left()), self._area.right())), (0.0, 0.0))
        for start, end in ((widest_start, widest_end), behind):
            for text in texts:
                width = self._metrics.horizontalAdvance(text) + 2 * _GAP_PX
                if width <= end - start:
                    middle = (start + end) / 2 if (start, end) == (widest_start, widest_end) else start + width / 2
                    self._write(text, middle - width / 2, width)
                    return True
        return False

    def from_left(self, text: str, left: float) -> None:
        """Write as much of a text as fits to the right of a position; nothing if only a few letters fit."""
        room = next((end - left for start, end in self._gaps(left, self._area.right()) if start <= left < end), 0.0)
        cut = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(0.0, room - 2 * _GAP_PX))
        width = self._metrics.horizontalAdvance(cut) + 2 * _GAP_PX
        if width <= room and (cut == text or room >= _LEAST_PX):
            self._write(cut, left, width)

    def _write(self, text: str, left: float, width: float) -> None:
        box = QRectF(left, self._area.top(), width, self._area.height())
        self._painter.drawText(box, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextSingleLine, text)
        self._taken.append((left, left + width))

    def _gaps(self, left: float, right: float) -> list[tuple[float, float]]:
        """Return the free parts between two positions, from left to right."""
        gaps, free_from = [], left
        for start, end in sorted(self._taken):
            if start > free_from and min(start, right) > free_from:
                gaps.append((free_from, min(start, right)))
            free_from = max(free_from, end)
        if free_from < right:
            gaps.append((free_from, right))
        return gaps


HEIGHT_PX: Final = 40
_DRAG_PX: Final = 4
_FLAG_PX: Final = 12
_CURSOR_PX: Final = 8


class Ruler(QWidget):
    """Shows times above the lanes. A drag moves a cursor or selects a range, a double click shows the whole trace.

    Signals:
        mark_clicked: The flag of a mark was clicked; sends the `Mark`.
    """

    mark_clicked = Signal(object)

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(HEIGHT_PX)
        self.setMouseTracking(True)
        self.setAccessibleName("Time ruler")
        self._opened = opened
        self._theme = theme
        self._moved: Moved | None = None
        self._anchor_cycles, self._pressed_x = 0, 0.0
        self._small_font = QFont(self.font())
        self._small_font.setPixelSize(theme.px(10))
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
        """Use the colours and text size of a theme."""
        self._theme = theme
        self._small_font.setPixelSize(theme.px(10))
        self.update()

    @property
    def _scale(self) -> TimeScale:
        return TimeScale(self._opened.viewport.window, self.width())

    @Slot()
    def show_all(self) -> None:
        """Show the whole trace."""
        self._opened.viewport.show_all()

    def event(self, event: QEvent) -> bool:
        """Show the text of the mark under the mouse as a tool tip."""
        if isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), tool_tip(self._tip_at(QPointF(event.pos()))), self)
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to drag a cursor or a range, or select the mark under the mouse."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        self._moved = self._cursor_at(event.position())
        if self._moved is None:
            mark = self._mark_at(event.position())
            if mark is not None:
                self.mark_clicked.emit(mark)
                return
            self._moved = Moved.RANGE
            self._pressed_x = event.position().x()
            self._anchor_cycles = self._snapped(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag a range, which snaps to ticks, or a cursor, which snaps to events; neither snaps while Alt is held."""
        selection = self._opened.selection
        selection.set_mouse(self._scale.cycles(event.position().x()))
        if self._moved is Moved.CURSOR_A:
            selection.set_cursors(self._snapped(event), selection.cursor_b)
        elif self._moved is Moved.CURSOR_B:
            selection.set_cursors(selection.cursor_a, self._snapped(event))
        elif self._moved is Moved.RANGE:
            start, end = sorted((self._anchor_cycles, self._snapped(event)))
            selection.set_range(TimeWindow(start, end) if end > start else None)
        else:
            near = self._cursor_at(event.position()) is not None
            self.setCursor(Qt.CursorShape.SplitHCursor if near else Qt.CursorShape.ArrowCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End a drag; a click without a drag clears the range."""
        if self._moved is Moved.RANGE and abs(event.position().x() - self._pressed_x) < _DRAG_PX:
            self._opened.selection.set_range(None)
        self._moved = None

    def leaveEvent(self, event: QEvent) -> None:
        """Remove the mouse position."""
        self._opened.selection.set_mouse(None)
        super().leaveEvent(event)

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        """Show the whole trace."""
        self.show_all()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the ruler."""
        painter = QPainter(self)
        theme, scale = self._theme, self._scale
        painter.fillRect(self.rect(), colour(theme.panel))
        draw_lost(painter, lost_spans(self._opened.timeline.lost_marks, scale), 4, theme)
        draw_ticks(painter, ticks(scale, self._opened.trace.clock), self.width(), self._small_font, theme)
        row = TextRow(painter, QRectF(0, TICK_ROW_PX + 1, self.width(), HEIGHT_PX - TICK_ROW_PX - 2))
        self._draw_flags(painter, scale, row)
        self._draw_lengths(painter, scale, row)
        self._draw_notes(painter, scale, row)
        painter.setPen(colour(theme.line))
        painter.drawLine(QLineF(0, self.height() - 0.5, self.width(), self.height() - 0.5))

    def _draw_flags(self, painter: QPainter, scale: TimeScale, row: TextRow) -> None:
        """Draw the range, marks, mouse position and cursors; mark the space of flags in `row` as occupied."""
        selection, theme = self._opened.selection, self._theme
        if selection.time_range is not None:
            left, right = scale.x(selection.time_range.start), scale.x(selection.time_range.end)
            height = HEIGHT_PX - TICK_ROW_PX - 2
            painter.fillRect(QRectF(left, TICK_ROW_PX + 1, max(1.0, right - left), height), colour(theme.accent, 60))
        painter.setPen(QPen(colour(theme.mark), 2))
        for mark in self._opened.marks:
            x, end = scale.x(mark.start_cycles), scale.x(mark.end_cycles)
            if end > max(x, 0) and x < self.width():  # a bracket over the span of the note
                foot = HEIGHT_PX - 4
                painter.drawLines([QLineF(x, foot, end, foot), QLineF(end, foot, end, HEIGHT_PX)])
        for mark in self._opened.marks:
            x = scale.x(mark.start_cycles)
            if -10 <= x <= self.width() + 10:
                self._draw_mark(painter, mark, x)
                row.take(x - 1, x + _FLAG_PX)
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
                row.take(scale.x(cycles) - _CURSOR_PX, scale.x(cycles) + _CURSOR_PX)

    def _draw_lengths(self, painter: QPainter, scale: TimeScale, row: TextRow) -> None:
        """Write the distance between the cursors, and the length of the range."""
        selection, clock = self._opened.selection, self._opened.trace.clock
        painter.setPen(colour(self._theme.text))
        if selection.cursor_a is not None and selection.cursor_b is not None:
            left, right = sorted((scale.x(selection.cursor_a), scale.x(selection.cursor_b)))
            lengths = length_texts(selection.cursor_b - selection.cursor_a, clock)
            row.centred([f"\N{GREEK CAPITAL LETTER DELTA} {text}" for text in lengths], left, right)
        if selection.time_range is not None:
            left, right = scale.x(selection.time_range.start), scale.x(selection.time_range.end)
            row.centred(length_texts(selection.time_range.length, clock), left, right)

    def _draw_notes(self, painter: QPainter, scale: TimeScale, row: TextRow) -> None:
        """Write the texts of notes where there is room, the selected mark first."""
        painter.setPen(colour(self._theme.mark))
        selected = self._opened.marks.selected
        for mark in sorted(self._opened.marks, key=lambda mark: (mark != selected, mark.start_cycles)):
            x = scale.x(mark.start_cycles)
            if mark.text and -10 <= x <= self.width():
                row.from_left(visible_line(mark.text.splitlines()[0]), x + _FLAG_PX)

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
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colour(self._theme.mark), 1))
        painter.setBrush(colour(self._theme.base if mark.is_temporary else self._theme.mark))
        top = TICK_ROW_PX + 3.0
        painter.drawPolygon(QPolygonF([QPointF(x, top), QPointF(x + 10, top + 4), QPointF(x, top + 8)]))
        painter.drawLine(QLineF(x, top, x, HEIGHT_PX))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _snapped(self, event: QMouseEvent) -> int:
        """Return the time at the mouse, snapped: a range to ticks; with Ctrl, or for a cursor, to events and edges.

        Nothing is snapped while Alt is held.
        """
        scale = self._scale
        cycles = scale.cycles(event.position().x())
        if event.modifiers() & Qt.KeyboardModifier.AltModifier:
            return cycles
        if self._moved is Moved.RANGE and not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            return snapped_to_tick(cycles, scale, self._opened.trace.clock)
        return snapped(self._opened, cycles, scale.length(SNAP_PX), moved=self._moved)

    def _cursor_at(self, position: QPointF) -> Moved | None:
        """Return the cursor whose flag is at a position; B before A, because it is drawn on top."""
        selection, scale = self._opened.selection, self._scale
        if position.y() < TICK_ROW_PX:
            return None
        for cycles, moved in ((selection.cursor_b, Moved.CURSOR_B), (selection.cursor_a, Moved.CURSOR_A)):
            if cycles is not None and abs(position.x() - scale.x(cycles)) <= _CURSOR_PX:
                return moved
        return None

    def _mark_at(self, position: QPointF) -> Mark | None:
        if position.y() < TICK_ROW_PX:
            return None
        near = [mark for mark in self._opened.marks if -3 <= position.x() - self._scale.x(mark.start_cycles) <= 12]
        return near[-1] if near else None

    def _tip_at(self, position: QPointF) -> str:
        """Return the time and text of the mark at a position."""
        mark = self._mark_at(position)
        if mark is None:
            return ""
        time = format_moment(mark.start_cycles, self._opened.trace.clock)
        return f"{time}\n{mark.text}".strip()
