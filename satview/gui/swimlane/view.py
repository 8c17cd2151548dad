"""Draws the lanes in bands (adjacent lanes), with text, marks, the selected range and cursors on top."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any, Final

import numpy as np
from PySide6.QtCore import QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QImage, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from satview.base.process import timed
from satview.base.time import TimeWindow
from satview.gui.colours import FADE
from satview.gui.swimlane.fills import draw_lost, lost_spans
from satview.gui.swimlane.frames import LaneLayer, clock
from satview.gui.swimlane.lane_image import heat_of, image_of, stack_of_lane
from satview.gui.swimlane.lane_source import Frame, LaneRequest, LaneSource
from satview.gui.swimlane.marks import ArrowLayer, draw_arrows, draw_cursors, draw_marks, draw_path, draw_range
from satview.gui.swimlane.named_marks import NamedMarks
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.shares import Stack, are_dense, cpus_high, quiet_use
from satview.gui.swimlane.text import draw_lines
from satview.gui.theme import Theme, colour
from satview.session.arrow_source import ArrowMode
from satview.session.lanes.lane_arrangement import QUIET
from satview.session.lanes.lane_row import GroupHead, LaneRow
from satview.session.loading.loaded_trace import Reload
from satview.session.open_trace import OpenTrace

FRAME_S: Final = 0.005
_LEAST_MOVING: Final = 0.3  # least share of a frame's time for lanes while the view moves
_LEAST_AT_REST: Final = 0.6  # the same while it rests
_OVERHEAD_DECAY: Final = 0.9  # decay per frame of the measured time for everything else
_STRIP_PX: Final = 8  # height of the strip for the CPU use of quiet processes
_CYCLE_PX: Final = 7.0  # least width of a clock cycle for which cycles are separated by lines


class SwimlaneView(QWidget):
    """Draws the visible lanes of a trace.

    Attributes:
        scroll_px: Height of the lanes scrolled out above the top edge.
        arrows: All arrows between lanes.
        named_marks: Labels of verdicts, of the steps of Why? and of the critical path.
        hovered: Lane under the mouse, and the left and right edges (pixels) of its interval there; None if the mouse is
            not over an interval. Set by the mouse handling.
        shows_shares: True to show shares of time in lanes whose intervals are too dense for bars.
        frame_s: Approximate time limit of a frame on the screen. Lanes that do not fit into it are painted in the next
            frames, and show their last picture until then. Pictures for files are always exact.
        answers_first: True to repaint on a filter change before other views do; False for the second set of lanes.
        lanes: The lanes.
        rubber: (left, right) pixels of a zoom drag in progress, or None.
        cpus_high: Number of CPUs that the height of process lanes stands for; 0 if none is visible.

    Signals:
        scrolled: `scroll_px` changed.
        scaled: `cpus_high` changed.
    """

    scrolled = Signal()
    scaled = Signal()

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(120, 60)
        self.setAccessibleName("Swimlanes")
        self._opened = opened
        self._theme = theme
        self.scroll_px = 0
        self.shows_shares = True
        self.cpus_high = 0
        self.hovered: tuple[LaneRow, float, float] | None = None
        self.rubber: tuple[float, float] | None = None
        self.frame_s = FRAME_S
        self._next = QTimer(self, singleShot=True, interval=0)
        self._next.timeout.connect(self.update)
        self.answers_first = True
        self._is_reloading = False
        self._is_whole = False
        self._overhead_s = 0.0  # time of a frame for everything except lanes
        self._last: TimeScale | None = None  # scale of the last frame in which lanes were painted
        self._exact_scale: TimeScale | None = None  # scale of the last frame, if it was exact
        self.lanes = LaneLayer(opened, theme, self.font(), self)
        self.lanes.changed.connect(self.update)
        self.arrows = ArrowLayer(opened, self)
        self.arrows.changed.connect(self.update)
        self.named_marks = NamedMarks(opened, self)
        self.named_marks.changed.connect(self.update)
        self._top: LaneRow | None = None
        opened.viewport.window_changed.connect(self.update)
        for signal in (
            opened.selection.changed,
            opened.selection.range_changed,
            opened.selection.cursors_changed,
            opened.marks.changed,
            opened.event_links.changed,
            opened.highlight.changed,
            opened.path.changed,
        ):
            signal.connect(self.update)
        opened.legend.changed.connect(self._on_legend)
        opened.lanes.changed.connect(self._on_lanes)
        opened.filters.view_changed.connect(self._on_filter)
        opened.begins_reload.connect(self._on_reload)
        opened.reloaded.connect(self._on_reloaded)

    @property
    def source(self) -> LaneSource:
        """Source of the pixel values of the visible lanes."""
        return self.lanes.source

    @property
    def stacks(self) -> dict[int, Stack]:
        """Stacks of the lanes on the screen that show shares or counter steps instead of bars, by lane index."""
        return self.lanes.stacks

    @property
    def is_settled(self) -> bool:
        """True if the screen shows an exact frame; otherwise further frames follow."""
        return self._exact_scale == self.scale

    @property
    def scale(self) -> TimeScale:
        """The present scale of time to pixels."""
        return TimeScale(self._opened.viewport.window, self.width())

    def set_theme(self, theme: Theme) -> None:
        """Use the colours and text size of a theme."""
        self._theme = theme
        self.lanes.set_theme(theme)
        self.update()

    def set_shares(self, shows: bool) -> None:
        """Set whether lanes too dense for bars show shares of time; if not, pixels show their dominant value."""
        self.shows_shares = shows
        self.update()

    def scroll_to(self, scroll_px: int) -> None:
        """Scroll the lanes; the position is limited to the ends."""
        scroll_px = min(max(0, scroll_px), max(0, self._opened.lanes.height_px - self.height()))
        if scroll_px != self.scroll_px:
            self.scroll_px = scroll_px
            self.update()
            self.scrolled.emit()

    def reveal_lane(self, index: int) -> None:
        """Scroll until a lane is visible."""
        row = self._opened.lanes.row_of(index)
        if row is None:
            return
        if row.y_px < self.scroll_px:
            self.scroll_to(row.y_px)
        elif row.y_px + row.height_px > self.scroll_px + self.height():
            self.scroll_to(row.y_px + row.height_px - self.height())

    def visible_rows(self) -> tuple[LaneRow, ...]:
        """Return the visible lanes."""
        return self._opened.lanes.rows_between(self.scroll_px, self.scroll_px + self.height())

    def visible_heads(self) -> tuple[GroupHead, ...]:
        """Return the visible group headings."""
        top, bottom = self.scroll_px, self.scroll_px + self.height()
        return tuple(head for head in self._opened.lanes.heads if top - head.height_px < head.y_px < bottom)

    def row_at(self, y: float) -> LaneRow | None:
        """Return the lane at a y position of the widget."""
        return self._opened.lanes.row_at(int(y) + self.scroll_px)

    def share_at(self, row: LaneRow, x: float, y: float) -> tuple[TimeWindow, int | None] | None:
        """Return time window and lane value (None above all) of the bin at (x, y) in a lane with shares, else None."""
        stack = self.stacks.get(row.index) if not self._opened.timeline.infos[row.index].is_counter else None
        position = stack.bin_at(self.scale.cycles(x)) if stack is not None else -1
        if stack is None or position < 0:
            return None
        top, bottom = stack_of_lane(row, self.scroll_px, 1.0, self.lanes.painter.marks, stack)
        return stack.window_of(position), stack.value_at(position, (bottom - y) / max(1, bottom - top))

    @Slot()
    def _on_lanes(self) -> None:
        self.lanes.painter.note_lanes()
        self.scroll_to(self.scroll_px)
        self.scrolled.emit()
        self.update()

    @Slot()
    def _on_reload(self) -> None:
        self._is_reloading = True
        self._top = next(iter(self.visible_rows()), None)

    @Slot(object)
    def _on_reloaded(self, reload: Reload) -> None:
        """Draw the refreshed trace, with the lane at the top of the view kept in place."""
        self._is_reloading = False
        self.source.reload(reload.loaded.timeline, reload.overlay)
        self.lanes.painter.note_lanes()
        self.hovered = None
        top, self._top = self._top, None
        row = self._opened.lanes.row_of(reload.moved.get(top.index, -1)) if top is not None else None
        if top is not None and row is not None and self.scroll_px:
            self.scroll_to(row.y_px + self.scroll_px - top.y_px)
        self.scrolled.emit()
        self.update()

    @Slot()
    def _on_legend(self) -> None:
        self.lanes.painter.apply_legend()
        self.update()

    @Slot()
    def _on_filter(self) -> None:
        self.lanes.painter.apply_filter()
        if self._is_reloading:
            return  # the user did not change the filter, and the lanes of the refreshed trace do not exist yet
        if self.answers_first:
            self.repaint()
        else:
            self.lanes.pictures.outdate()
            QTimer.singleShot(0, self, self.update)  # in the next turn of the event loop

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the view to the new size."""
        self._opened.viewport.set_width(round(self.width() * self.devicePixelRatioF()))
        self._opened.lanes.set_room(self.height())
        self.scroll_to(self.scroll_px)
        self.scrolled.emit()
        super().resizeEvent(event)

    def repaint(self, *area: Any) -> None:
        """Draw an exact frame immediately."""
        self.lanes.pictures.outdate()
        self._is_whole = True
        super().repaint(*area)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw a frame."""
        with timed(f"swimlanes {self.width()}x{self.height()}", "paint"):
            self._paint()

    def _paint(self) -> None:
        painter, rows, scale = QPainter(self), self.visible_rows(), self.scale
        on_screen, is_whole, self._is_whole = is_on_screen(self, painter), self._is_whole, False
        is_exact, begun_s = True, clock()
        if rows:
            is_exact = self._draw_rows(painter, rows, scale, self._left_s(scale) if on_screen and not is_whole else inf)
            beside_s = clock() - begun_s - self.lanes.pictures.spent_s - self.arrows.spent_s
            self._overhead_s = max(beside_s, self._overhead_s * _OVERHEAD_DECAY)
        else:
            painter.fillRect(self.rect(), colour(self._theme.base))
            self._draw_heads(painter)
            if not self._opened.lanes.heads:
                self._draw_nothing(painter)
        if on_screen:
            self._exact_scale = scale if is_exact else None
        if not is_exact:
            self._next.start()

    def _left_s(self, scale: TimeScale) -> float:
        """Return how many seconds of the frame are left for painting lanes; negative = paint none."""
        if self.arrows.are_due(scale):
            return -1.0  # this frame computes arrows; lanes wait for the next one
        is_moving, self._last = self._last != scale, scale
        return max(self.frame_s - self._overhead_s, self.frame_s * (_LEAST_MOVING if is_moving else _LEAST_AT_REST))

    def _draw_rows(self, painter: QPainter, rows: tuple[LaneRow, ...], scale: TimeScale, limit_s: float) -> bool:
        """Draw lanes and everything over them, lanes only within the time limit; return whether the frame is exact."""
        ratio, height, theme = self.devicePixelRatioF(), float(self.height()), self._theme
        width_px = max(1, round(self.width() * ratio))
        request = LaneRequest(tuple(row.index for row in rows), scale.window, width_px, self._opened.lanes.shows_kinds)
        is_dense = are_dense(self._opened.timeline, scale)
        cpus = cpus_high(self._opened.timeline, scale, width_px, is_dense)
        frame = Frame(request, scale, self.height(), self.scroll_px, ratio, self.shows_shares, is_dense, cpus)
        is_exact = self.lanes.draw(painter, rows, frame, limit_s)
        high = cpus if any(stack.cpus for stack in self.stacks.values()) else 0
        if high != self.cpus_high:
            self.cpus_high = high
            self.scaled.emit()
        if scale.px_per_cycle >= _CYCLE_PX:
            self._draw_cycles(painter, scale)
        self._draw_heads(painter)
        draw_marks(painter, self._opened, scale, height, theme)
        self._draw_selected(painter, rows, scale)
        draw_range(painter, self._opened, scale, height, theme)
        draw_lost(painter, lost_spans(self._opened.timeline.lost_marks, scale), height, theme)
        draw_cursors(painter, self._opened, scale, height, theme)
        if self._opened.path.answer is not None:
            draw_path(painter, self._opened, rows, self.scroll_px, scale, theme)
        self.named_marks.draw(painter, rows, self.scroll_px, scale, theme)
        is_exact &= self._draw_arrows(painter, rows, scale, may_wait=not is_exact)
        if self.rubber is not None:
            left, right = sorted(self.rubber)
            painter.fillRect(QRectF(left, 0, right - left, height), colour(theme.accent, 60))
        return is_exact

    def _draw_heads(self, painter: QPainter) -> None:
        """Extend the group headings of the label column across the lanes."""
        for head in self.visible_heads():
            area = QRectF(0, head.y_px - self.scroll_px, self.width(), head.height_px)
            painter.fillRect(area, colour(self._theme.panel))
            painter.fillRect(area, colour(self._theme.line, 110))
            if head.title == QUIET:
                self._draw_quiet(painter, area)

    def _draw_quiet(self, painter: QPainter, area: QRectF) -> None:
        """Draw the total CPU use of quiet processes as a strip of varying colour strength; a filter may fade parts."""
        ratio, overlay = self.devicePixelRatioF(), self.source.overlay
        shown, plain = (
            quiet_use(self._opened.timeline, self.scale, max(1, round(area.width() * ratio)), partial(of, waits=False))
            for of in (overlay.shown, overlay.plain)
        )
        if shown is not None and plain is not None and len(shown[1]):
            columns, is_plain = shown[0], plain[1] > 0
            heat = heat_of(np.where(is_plain, plain[1], shown[1]), self.lanes.painter.palette.heat)
            if self._opened.filters.view.marked is not None:
                is_plain[:] = False  # like everything that the filter does not mark
            opacity = np.where(is_plain, 255, round(255 * (1 - FADE))).astype(np.uint32)
            pixels = np.repeat(heat & 0xFFFFFF | opacity << 24, np.diff(columns))[None, :].copy()
            left, width = int(columns[0]) / ratio, pixels.shape[1] / ratio
            image = image_of(pixels, 1.0)
            image.reinterpretAsFormat(QImage.Format.Format_ARGB32)
            painter.drawImage(QRectF(left, area.center().y() - _STRIP_PX / 2, width, _STRIP_PX), image)

    def _draw_arrows(self, painter: QPainter, rows: tuple[LaneRow, ...], scale: TimeScale, *, may_wait: bool) -> bool:
        """Draw all arrows and those of the selection; return whether all arrows are those of this time window."""
        lanes, top = self._opened.lanes, self.scroll_px
        top_row, bottom_row = (lanes.position_at(height) for height in (top, top + self.height() - 1))
        are_new = self.arrows.draw(painter, scale, (top_row, bottom_row), top, self._theme, may_wait=may_wait)
        if self.arrows.mode is not ArrowMode.OFF or self._opened.highlight.shown is not None:
            draw_arrows(painter, self._opened, rows, top, scale, self._theme)
        return are_new

    def _draw_cycles(self, painter: QPainter, scale: TimeScale) -> None:
        painter.setPen(QPen(colour(self._theme.dim, 45), 1))
        cycles = np.arange(scale.window.start, scale.window.end + 1)
        x = np.rint((cycles - scale.window.start) * scale.px_per_cycle) + 0.5
        draw_lines(painter, np.stack((x, np.zeros(len(x)), x, np.full(len(x), self.height())), axis=1))

    def _draw_selected(self, painter: QPainter, rows: tuple[LaneRow, ...], scale: TimeScale) -> None:
        selection = self._opened.selection
        for row in rows:
            top = row.y_px - self.scroll_px
            if row.index == selection.lane:
                painter.fillRect(QRectF(0, top, self.width(), row.height_px - 1), colour(self._theme.accent, 26))
                if selection.span is not None:
                    left, right = scale.x(selection.span.start_cycles), scale.x(selection.span.end_cycles)
                    self._outline(painter, left, right, row, self._theme.accent, 2.0)
        if self.hovered is not None and self.hovered[0] in rows:
            row, left, right = self.hovered
            self._outline(painter, left, right, row, self._theme.text, 1.0)

    def _outline(self, painter: QPainter, left: float, right: float, row: LaneRow, rgb: int, width: float) -> None:
        left, right = max(-10.0, left), min(self.width() + 10.0, right)
        top = row.y_px - self.scroll_px + 4
        painter.setPen(QPen(colour(rgb), width))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(QRectF(left, top, max(2.0, right - left), row.height_px - 6))

    def _draw_nothing(self, painter: QPainter) -> None:
        lanes, filters = self._opened.lanes, self._opened.filters
        if filters.is_active:
            text = "All lanes are hidden by the filter.\nPress Shift+F to show everything again."
        elif lanes.hides_empty:
            text = "Nothing happens in this window.\nPress X to show empty lanes again, or 0 for the whole trace."
        elif lanes.hidden_count:
            text = "All lanes are hidden.\nPress Shift+H to show them again."
        else:
            text = "This trace has no events to draw."
        painter.setPen(colour(self._theme.dim))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, text)


def is_on_screen(widget: QWidget, painter: QPainter) -> bool:
    """Return whether a painter draws to the screen, and not to a picture for a file."""
    store, engine = widget.backingStore(), painter.paintEngine()
    return store is not None and engine is not None and engine.paintDevice() is store.paintDevice()
