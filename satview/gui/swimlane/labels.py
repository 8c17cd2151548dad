"""The column of lane labels: a tree with fold triangles, names and figures."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QContextMenuEvent,
    QFont,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QPolygonF,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from satview.base.safe_text import tool_tip, visible_line
from satview.base.time import TimeWindow
from satview.gui.colours import state_colour
from satview.gui.swimlane.fills import needs_vectors
from satview.gui.swimlane.shares import figure, quiet_figure
from satview.gui.swimlane.text import FittedTexts, LaidText, TextSheet
from satview.gui.swimlane.view import SwimlaneView
from satview.gui.theme import Theme, colour
from satview.session.event_text import lane_path
from satview.session.lanes.lane_arrangement import FOLDED_AT_FIRST, IDLE_CPUS, QUIET, GroupHead, LaneRow
from satview.session.lanes.lane_list import LaneList
from satview.session.open_trace import OpenTrace
from satview.timeline.lane_tree import LaneInfo, LaneKind

# Dragging a lane by its label to another position among its siblings.


_BEGINS_PX: Final = 6


@dataclass(frozen=True, slots=True)
class _Gap:
    """A position between lanes to drop a lane at: above the lane `before`, or below the last one (None), at `y_px`."""

    before: int | None
    y_px: int


class LaneDrag:
    """A drag of a lane, from press to release.

    Attributes:
        is_on: The mouse has moved far enough to be a drag and not a click.
    """

    def __init__(self, lanes: LaneList, row: LaneRow, y_px: int) -> None:
        """Begin with a press.

        Args:
            lanes: List of lanes.
            row: The lane that was pressed.
            y_px: Position of the press, from the top of the list.
        """
        self._lanes, self._row, self._start_px = lanes, row, y_px
        self._gap: _Gap | None = None
        self.is_on = False

    @property
    def line_px(self) -> int | None:
        """Position of the line that marks the drop position, from the top of the list; None = the lane stays."""
        return self._gap.y_px if self._gap is not None else None

    def move(self, y_px: int) -> None:
        """Update the drop position after the mouse was moved to a y position of the list of lanes."""
        self.is_on = self.is_on or abs(y_px - self._start_px) >= _BEGINS_PX
        if self.is_on:
            gaps = self._gaps()
            self._gap = min(gaps, key=lambda gap: abs(gap.y_px - y_px)) if gaps else None

    def drop(self) -> None:
        """Move the lane to the drop position."""
        if self._gap is not None and self._gap.before != self._row.unit:
            self._lanes.move(self._row.unit, self._gap.before)

    def _gaps(self) -> list[_Gap]:
        siblings = self._lanes.siblings(self._row.unit)
        tops = {row.unit: row.y_px for row in self._lanes.rows if row.unit in siblings}
        if len(tops) < 2:
            return []
        gaps = [_Gap(index, tops[index]) for index in siblings]
        return [*gaps, _Gap(None, self._end_of(siblings[-1]))]

    def _end_of(self, index: int) -> int:
        """Return the lower edge of a lane with all lanes below it in the tree."""
        rows = self._lanes.rows
        start = next(i for i, row in enumerate(rows) if row.unit == index)
        last = rows[start]
        for row in rows[start + 1 :]:
            if row.depth <= rows[start].depth or row.y_px != last.y_px + last.height_px:
                break
            last = row
        return last.y_px + last.height_px


_INDENT_PX: Final = 16
_TRIANGLE_PX: Final = 20
_GRIP_PX: Final = 5
_FIGURE_PX: Final = 40  # least width of a figure, so that texts beside figures are aligned
_FIGURE_STEP_PX: Final = 4  # wider figures grow in steps, so that names are not cut differently with each digit
_QUIET_PX: Final = 70  # width of the figure of all quiet processes
_CHIP_PX: Final = 9  # width of a process's colour and the space after it
_FIGURES_MS: Final = 50  # update interval; figures that change faster are illegible
_SMALL_BELOW_PX: Final = 16  # lanes lower than this have smaller names


class LaneLabels(QWidget):
    """The labels beside the lanes.

    Signals:
        menu_requested: A lane was right-clicked; sends the global position of the mouse.
        width_requested: The right edge is being dragged; sends the requested width in pixels.
        width_selected: The right edge was released.
    """

    menu_requested = Signal(QPoint)
    width_requested = Signal(int)
    width_selected = Signal()

    def __init__(self, opened: OpenTrace, view: SwimlaneView, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMouseTracking(True)
        self.setAccessibleName("Lanes")
        self._opened = opened
        self._view = view
        self._theme = theme
        self._resizing = False
        self._drag: LaneDrag | None = None
        self._hovered: int | None = None
        self._sheet = TextSheet()
        self._picture: tuple[object, QPixmap] | None = None  # everything except figures, with what it depends on
        self._figures_window: TimeWindow | None = None  # window of the figures on the screen
        self._update_fonts()
        opened.lanes.changed.connect(self.update)
        opened.selection.changed.connect(self.update)
        view.scrolled.connect(self.update)
        self._figures_timer = QTimer(self, singleShot=True, interval=_FIGURES_MS)
        self._figures_timer.timeout.connect(self._draw_figures)
        opened.viewport.window_changed.connect(self._follow_window)
        view.source.refined.connect(self.update)

    @Slot()
    def _follow_window(self) -> None:
        """Start the timer after which the figures are updated for the visible window, unless it is running."""
        if not self._figures_timer.isActive():
            self._figures_timer.start()

    @Slot()
    def _draw_figures(self) -> None:
        if self._figures_window != self._opened.viewport.window:  # not painted for another reason meanwhile
            self.repaint()  # immediately, and not together with a frame of the lanes

    def set_theme(self, theme: Theme) -> None:
        """Use the colours and text size of a theme."""
        self._theme = theme
        self._update_fonts()
        self.update()

    def _update_fonts(self) -> None:
        self._picture = None
        small = QFont(self.font())
        small.setPixelSize(self._theme.px(10))
        self._numbers = _texts(small, QFont.Weight.Normal)
        self._names = {
            (is_top, is_low): _texts(small if is_low else self.font(), weight)
            for is_top, weight in ((False, QFont.Weight.Normal), (True, QFont.Weight.DemiBold))
            for is_low in (False, True)
        }

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or drag."""
        if event.button() == Qt.MouseButton.LeftButton and self._is_grip(event.position()):
            self._resizing = True
            return
        row = self._view.row_at(event.position().y())
        if row is None:
            head = self._opened.lanes.head_at(self._position(event))
            if head is not None and event.button() == Qt.MouseButton.LeftButton:
                self._opened.lanes.fold_group(head.title)
            return
        if (
            event.button() == Qt.MouseButton.LeftButton
            and row.is_foldable
            and event.position().x() < _TRIANGLE_PX + row.depth * _INDENT_PX
        ):
            self._opened.lanes.fold(row.index)
            return
        if event.button() == Qt.MouseButton.LeftButton:
            self._drag = LaneDrag(self._opened.lanes, row, self._position(event))
        # A right click keeps a selection in its lane, which the menu refers to.
        if event.button() != Qt.MouseButton.RightButton or self._opened.selection.lane != row.index:
            self._select(row)
        self._view.setFocus(Qt.FocusReason.MouseFocusReason)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Continue a drag, or highlight the lane under the mouse."""
        if self._resizing:
            self.width_requested.emit(round(event.position().x()))
            return
        if self._drag is not None:
            self._follow_drag(self._drag, event)
            return
        self.setCursor(Qt.CursorShape.SplitHCursor if self._is_grip(event.position()) else Qt.CursorShape.ArrowCursor)
        row = self._view.row_at(event.position().y())
        hovered = row.index if row else None
        if hovered != self._hovered:
            self._hovered = hovered
            self.update()

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        """End a click or drag."""
        if self._resizing:
            self._resizing = False
            self.width_selected.emit()
        drag, self._drag = self._drag, None
        if drag is not None and drag.is_on:
            drag.drop()
            self.unsetCursor()
            self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Fold or unfold the lane."""
        row = self._view.row_at(event.position().y())
        if row is not None and row.is_foldable:
            self._opened.lanes.fold(row.index)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Request the context menu."""
        self.menu_requested.emit(event.globalPos())

    def leaveEvent(self, _event: object) -> None:
        """Remove the hover highlight."""
        self._hovered = None
        self.update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the lanes."""
        self._view.scroll_to(self._view.scroll_px - round(event.angleDelta().y() / 2))

    def event(self, event: object) -> bool:
        """Show the tool tip of the lane under the mouse."""
        if isinstance(event, QHelpEvent):
            row = self._view.row_at(event.pos().y())
            QToolTip.showText(event.globalPos(), tool_tip(self._tip(row)) if row else "", self)
            return True
        return super().event(event)  # type: ignore[arg-type]

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw labels and figures."""
        painter, rows = QPainter(self), self._view.visible_rows()
        figures = [self._figure(row) for row in rows]
        self._figures_window = self._opened.viewport.window
        rooms_px = tuple(room_px for room_px, _ in figures)
        if needs_vectors(painter):
            self._draw_static(painter, rows, rooms_px)
        else:
            painter.drawPixmap(0, 0, self._static_picture(rows, rooms_px, painter.deviceTransform().m11()))
        self._sheet.begin(painter)
        for head in self._view.visible_heads():
            used = "0 %" if head.title == IDLE_CPUS else ""
            text = quiet_figure(self._opened.timeline, self._view.scale.window) if head.title == QUIET else used
            if number := self._numbers.fit(text, _QUIET_PX):
                self._put(number, self.width() - 9 - number.width_px, self._area(head), self._theme.dim)
        for row, (_, number) in zip(rows, figures, strict=True):
            if number is not None:
                self._put(number, self.width() - 9 - number.width_px, self._area(row), self._theme.dim)
        self._sheet.end()

    def _static_picture(self, rows: tuple[LaneRow, ...], rooms_px: tuple[float, ...], ratio: float) -> QPixmap:
        """Return a picture of the labels without figures, cached: panning and zooming do not change it."""
        line_px = self._drag.line_px if self._drag is not None else None
        infos, value_of = self._opened.timeline.infos, self._opened.timeline.process_value
        values = tuple(value_of(infos[row.index].process) for row in rows)
        shown = (rows, values, self._view.visible_heads(), rooms_px, self._view.scroll_px, self._opened.selection.lane,
                 self._hovered, line_px, self.size(), ratio, self._opened.timeline, self._theme)  # fmt: skip
        if self._picture is not None and self._picture[0] == shown:
            return self._picture[1]
        picture = QPixmap(self.size() * ratio)
        picture.setDevicePixelRatio(ratio)
        with QPainter(picture) as painter:
            self._draw_static(painter, rows, rooms_px)
        self._picture = shown, picture
        return picture

    def _draw_static(self, painter: QPainter, rows: tuple[LaneRow, ...], rooms_px: tuple[float, ...]) -> None:
        """Draw all parts of the labels except figures."""
        painter.fillRect(self.rect(), colour(self._theme.panel))
        for row, room_px in zip(rows, rooms_px, strict=True):
            self._draw_row(painter, row, room_px)
        for head in self._view.visible_heads():
            self._draw_head(painter, head)
        if self._drag is not None and self._drag.line_px is not None:
            y = self._drag.line_px - self._view.scroll_px - 1
            painter.fillRect(QRectF(0, y, self.width() - 1, 2), colour(self._theme.accent))
        painter.fillRect(QRectF(self.width() - 1, 0, 1, self.height()), colour(self._theme.line))

    def _area(self, row: LaneRow | GroupHead) -> QRectF:
        return QRectF(0, row.y_px - self._view.scroll_px, self.width() - 1, row.height_px)

    def _draw_row(self, painter: QPainter, row: LaneRow, room_px: float) -> None:
        theme, info, area = self._theme, self._opened.timeline.infos[row.index], self._area(row)
        if row.index == self._opened.selection.lane:
            painter.fillRect(area, colour(theme.accent, 46))
            painter.fillRect(QRectF(0, area.top(), 3, row.height_px), colour(theme.accent))
        elif row.index == self._hovered:
            painter.fillRect(area, colour(theme.text, 14))
        painter.fillRect(QRectF(0, area.bottom() - 1, area.right(), 1), colour(theme.line, 140))
        if row.is_foldable:
            self._draw_triangle(painter, QPointF(11.0 + row.depth * _INDENT_PX, area.center().y()), row.is_open)
        x = _name_px(row, info)
        if _has_chip(row, info):
            rgb = state_colour(self._opened.timeline.process_value(info.process), theme)
            painter.fillRect(QRectF(x - _CHIP_PX, area.center().y() - 4, 4, 8), colour(rgb or theme.base))
        elif row.is_pinned:
            painter.setPen(colour(theme.accent))
            painter.drawText(QRectF(6, area.top(), 14, row.height_px), Qt.AlignmentFlag.AlignCenter,
                             "\N{BLACK DIAMOND}")  # fmt: skip
        self._draw_names(painter, row, area, room_px)

    def _draw_head(self, painter: QPainter, head: GroupHead) -> None:
        theme, area = self._theme, self._area(head)
        painter.fillRect(area, colour(theme.line, 110))
        self._draw_triangle(painter, QPointF(11, area.center().y()), head.is_open)
        names = self._names[True, head.height_px < theme.px(_SMALL_BELOW_PX)]
        is_counted = head.title in FOLDED_AT_FIRST  # the CPU use is drawn at the right
        count = self._numbers.fit(f"{head.count:,}", 60) if not is_counted else None
        room = area.right() - 28 - (_QUIET_PX if is_counted else 0)
        if count is not None:
            room -= count.width_px + 8
            self._draw_text(painter, count, 28 + room, area, theme.dim)
        words = names.fit(visible_line(f"{head.count:,} {head.title}" if is_counted else head.title), room)
        if words is not None:
            self._draw_text(painter, words, 20, area, theme.text)

    def _figure(self, row: LaneRow) -> tuple[float, LaidText | None]:
        """Return width and layout of the figure (such as the load) at the right of a label; 0 and None without one."""
        info = self._opened.timeline.infos[row.index]
        if info.kind is not LaneKind.CPU and not _has_chip(row, info) and not info.is_counter:
            return 0.0, None
        text = figure(self._opened.timeline, row, self._view.scale.window)
        room_px = self.width() - 9 - _name_px(row, info)
        number = self._numbers.fit(text, room_px) if text not in ("", info.title) else None
        if number is None:
            return 0.0, None
        width_px = max(_FIGURE_PX, ceil(number.width_px / _FIGURE_STEP_PX) * _FIGURE_STEP_PX) + 8
        # Leave out the figure if it would cut the name too much.
        if room_px - width_px < min(60.0, self._name_font(row, info).width(self._title(row, info))):
            return 0.0, None
        return width_px, number

    def _title(self, row: LaneRow, info: LaneInfo) -> str:
        if row.process >= 0:
            return self._opened.timeline.infos[row.process].title
        return lane_path(self._opened.timeline, row.index) if row.is_pinned or row.is_alone else info.title

    def _name_font(self, row: LaneRow, info: LaneInfo) -> FittedTexts:
        return self._names[_is_top(row, info), row.height_px < self._theme.px(_SMALL_BELOW_PX)]

    def _draw_names(self, painter: QPainter, row: LaneRow, area: QRectF, figure_px: float) -> None:
        theme, info = self._theme, self._opened.timeline.infos[row.index]
        names, title, x = self._name_font(row, info), self._title(row, info), _name_px(row, info)
        room = area.right() - 8 - x - figure_px
        # The name of a process has precedence over its number.
        subtitle = info.subtitle if row.process < 0 else info.title
        number = self._numbers.fit(subtitle, room) if subtitle not in ("", title) else None
        if number is not None and room - number.width_px - 8 >= names.width(title):
            self._draw_text(painter, number, x + room - number.width_px, area, theme.faint)
            room -= number.width_px + 8
        words = names.fit(title, room)
        if words is not None:
            is_bright = _is_top(row, info) or row.index == self._opened.selection.lane
            self._draw_text(painter, words, x, area, theme.text if is_bright else theme.dim)

    def _draw_text(self, painter: QPainter, words: LaidText, x: float, area: QRectF, rgb: int) -> None:
        painter.setFont(words.font)
        painter.setPen(colour(rgb))
        painter.drawStaticText(QPointF(x, area.center().y() - words.height_px / 2), words.static_text)

    def _put(self, words: LaidText, x: float, area: QRectF, rgb: int) -> None:
        self._sheet.put(x, area.center().y() - words.height_px / 2, words, rgb)

    def _draw_triangle(self, painter: QPainter, centre: QPointF, is_open: bool) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour(self._theme.dim))
        corners = [(-4, -2.5), (4, -2.5), (0, 3)] if is_open else [(-2.5, -4), (3, 0), (-2.5, 4)]
        painter.drawPolygon(QPolygonF([centre + QPointF(dx, dy) for dx, dy in corners]))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _select(self, row: LaneRow) -> None:
        window = self._opened.viewport.window
        self._opened.select_at(row.index, window.start + window.length // 2)

    def _position(self, event: QMouseEvent) -> int:
        """Return the y position of the mouse in the list of lanes."""
        return round(event.position().y()) + self._view.scroll_px

    def _follow_drag(self, drag: LaneDrag, event: QMouseEvent) -> None:
        """Show where the lane would be dropped; scroll at the edges."""
        y = round(event.position().y())
        if drag.is_on and not 0 <= y < self.height():
            self._view.scroll_to(self._view.scroll_px + (y if y < 0 else y - self.height()))
        drag.move(self._position(event))
        if drag.is_on:
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self.update()

    def _is_grip(self, position: QPointF) -> bool:
        return position.x() >= self.width() - _GRIP_PX

    def _tip(self, row: LaneRow) -> str:
        info = self._opened.timeline.infos[row.index]
        parts = [info.title, info.subtitle]
        if info.kind in (LaneKind.PROCESS, LaneKind.THREAD) and self._opened.trace.processes.names[info.process]:
            parts.insert(1, self._opened.trace.processes.names[info.process])
            parts.append(self._opened.trace.process_name_source(info.process))
        if info.kind is LaneKind.THREAD:
            parts.append(self._opened.trace.thread_name_source(info.thread))
        return "\n".join(dict.fromkeys(part for part in parts if part))


def _is_top(row: LaneRow, info: LaneInfo) -> bool:
    is_cpu = info.kind is LaneKind.CPU
    return is_cpu or _has_chip(row, info) or (info.track is not None and info.parent < 0)


def _has_chip(row: LaneRow, info: LaneInfo) -> bool:
    """Return whether the colour of a process is shown before the name of a lane."""
    return info.kind is LaneKind.PROCESS or row.process >= 0


def _name_px(row: LaneRow, info: LaneInfo) -> float:
    """Return the x position of the name of a lane."""
    return 20.0 + row.depth * _INDENT_PX + (_CHIP_PX if _has_chip(row, info) else 0)


def _texts(font: QFont, weight: QFont.Weight) -> FittedTexts:
    font = QFont(font)
    font.setWeight(weight)
    return FittedTexts(font, Qt.TextElideMode.ElideMiddle)
