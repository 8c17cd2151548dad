"""Draws the column of labels beside the lanes, a tree with fold triangles, and the time ruler above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Final

from PySide6.QtCore import QEvent, QLineF, QPoint, QPointF, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QContextMenuEvent,
    QFont,
    QFontMetricsF,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from satview.base.safe_text import counted, tool_tip, visible_line
from satview.base.time import Clock, TimeWindow, format_moment
from satview.gui.colours import state_colour
from satview.gui.swimlane.fills import draw_lost, lost_spans, needs_vectors
from satview.gui.swimlane.scale import TICK_ROW_PX, TimeScale, draw_ticks, small_step_ns, step_ns, ticks
from satview.gui.swimlane.shares import figure, quiet_figure
from satview.gui.swimlane.text import FittedTexts, LaidText, TextSheet
from satview.gui.swimlane.view import SwimlaneView
from satview.gui.theme import Theme, colour
from satview.session.event_text import lane_path
from satview.session.lanes.lane_arrangement import FOLDED_AT_FIRST, IDLE_CPUS, QUIET, SINGULAR
from satview.session.lanes.lane_list import LaneList
from satview.session.lanes.lane_row import GroupHead, LaneRow
from satview.session.navigation import SNAP_PX, Moved, snapped
from satview.session.open_trace import OpenTrace
from satview.session.range_view import length_texts
from satview.store.mark_file import Mark
from satview.timeline.lane_tree import LaneInfo, LaneKind

# Dragging a lane by its label to another position among its siblings.


_BEGINS_PX: Final = 6


@dataclass(frozen=True, slots=True)
class _Gap:
    """A position where a dragged lane can be dropped: at `y_px`, above the lane `before` (None = below all)."""

    before: int | None
    y_px: int


class LaneDrag:
    """A drag of a lane, from press to release.

    Attributes:
        is_on: True once the mouse has moved far enough for a drag rather than a click.
    """

    def __init__(self, lanes: LaneList, row: LaneRow, y_px: int) -> None:
        """Begin a possible drag of a lane, when the mouse is pressed at a position from the top of the list."""
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
        """Return the lower edge (y position) of a lane together with all lanes below it in the tree."""
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
        """Start the timer, if not running, after which figures in labels (such as CPU use) follow the visible range."""
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
            text = "0 %" if head.title == IDLE_CPUS else ""
            if head.title == QUIET:
                left = partial(self._view.source.overlay.shown, waits=False)
                text = quiet_figure(self._opened.timeline, self._view.scale.window, left)
            if number := self._numbers.fit(text, _QUIET_PX):
                self._put(number, self.width() - 9 - number.width_px, self._area(head), self._theme.dim)
        for row, (_, number) in zip(rows, figures, strict=True):
            if number is not None:
                self._put(number, self.width() - 9 - number.width_px, self._area(row), self._theme.dim)
        self._sheet.end()

    def _static_picture(self, rows: tuple[LaneRow, ...], rooms_px: tuple[float, ...], ratio: float) -> QPixmap:
        """Return a picture of the labels without figures (such as loads), cached, as panning does not change it."""
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
        """Draw all of the labels but figures (such as loads), each of which takes `rooms_px` of its label."""
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
        title = counted(head.count, SINGULAR[head.title]) if is_counted else head.title
        words = names.fit(visible_line(title), room)
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
    """Return whether the label of a lane shows the colour of its process before the name."""
    return info.kind is LaneKind.PROCESS or row.process >= 0


def _name_px(row: LaneRow, info: LaneInfo) -> float:
    """Return the x position of the name of a lane."""
    return 20.0 + row.depth * _INDENT_PX + (_CHIP_PX if _has_chip(row, info) else 0)


def _texts(font: QFont, weight: QFont.Weight) -> FittedTexts:
    font = QFont(font)
    font.setWeight(weight)
    return FittedTexts(font, Qt.TextElideMode.ElideMiddle)


# The time ruler: ticks, the selected range with its length, cursors, marks, and the time at the mouse.


def snapped_to_tick(cycles: int, scale: TimeScale, clock: Clock) -> int:
    """Return the time of the nearest tick of the ruler if one is near `cycles`; else `cycles`."""
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

        Return whether a text fits.
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
        """Return the time at the mouse, cycles, moved to a near tick for a range, else to a near event or edge.

        With Ctrl, a range goes to events and edges too. Nothing is snapped while Alt is held.
        """
        scale = self._scale
        cycles = scale.cycles(event.position().x())
        if event.modifiers() & Qt.KeyboardModifier.AltModifier:
            return cycles
        if self._moved is Moved.RANGE and not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            return snapped_to_tick(cycles, scale, self._opened.trace.clock)
        return snapped(self._opened, cycles, scale.length(SNAP_PX), moved=self._moved)

    def _cursor_at(self, position: QPointF) -> Moved | None:
        """Return the cursor whose flag is at a position; cursor B is preferred to A, as B is drawn on top."""
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
