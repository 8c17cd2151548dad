"""The lanes themselves: one image per frame, and on it names, marks, range and cursors."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt, Signal, Slot
from PySide6.QtGui import QFont, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from satview.base.debug import timed
from satview.base.time import TimeWindow
from satview.events.states import NOT_A_STATE, SEEN_EVENT, VALUE_COUNT
from satview.gui.swimlane.array_drawing import draw_lines
from satview.gui.swimlane.arrow_layer import ArrowLayer
from satview.gui.swimlane.arrows import draw_arrows
from satview.gui.swimlane.fitted_text import FittedTexts
from satview.gui.swimlane.lane_image import SEEN_INTERRUPT, LanePalette, LanePicture, bar_of, image_of
from satview.gui.swimlane.lane_source import LaneSource, Request, Values
from satview.gui.swimlane.lane_text import (
    DARK_INK,
    LIGHT_INK,
    IntervalText,
    interval_starts,
    interval_texts,
    labelled,
)
from satview.gui.swimlane.legend_keys import EVENTS
from satview.gui.swimlane.overlays import draw_cursors, draw_lost, draw_marks, draw_range, lost_spans
from satview.gui.swimlane.preview_lane import draw_preview_lane
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.share_layer import Stack
from satview.gui.swimlane.stack_source import StackSource
from satview.gui.swimlane.text_sheet import TextSheet
from satview.gui.swimlane.tick_source import TickSource
from satview.gui.swimlane.vector_lanes import draw_rectangles, needs_vectors, rectangles
from satview.gui.theme import Theme, colour
from satview.session.arrow_source import ArrowMode
from satview.session.lanes.lane_row import GroupHead, LaneRow
from satview.session.loading.loaded_trace import Reload
from satview.session.open_trace import OpenTrace
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.spans import pixel_edges

_CYCLE_PX: Final = 7.0  # a cycle must be that wide before cycles get lines of their own
_TEXT_STEP_PX: Final = 3
_LEAST_LETTERS: Final = 4
_ALL_VALUES: Final = frozenset(range(VALUE_COUNT))


class SwimlaneView(QWidget):
    """Draws the visible lanes of a trace.

    Attributes:
        scroll_px: Height of the list of lanes above the top edge.
        arrows: All arrows between lanes.
        hovered: Lane row and interval under the mouse, or None; set by the mouse handling.
        shows_shares: Lanes whose intervals are too dense for bars show how they divide their time.
        stacks: Those that do now, by index of the lane.
        rubber: (left, right) pixels of a drag in progress that will zoom, or None.

    Signals:
        scrolled: `scroll_px` changed.
    """

    scrolled = Signal()

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
        self.stacks: dict[int, Stack] = {}
        self.hovered: tuple[LaneRow, float, float] | None = None
        self.rubber: tuple[float, float] | None = None
        self.source = LaneSource(opened, self)
        self.source.refined.connect(self.update)
        self._stack_source = StackSource(opened, self.source)
        self.arrows = ArrowLayer(opened, self)
        self.arrows.changed.connect(self.update)
        opened.labels.refined.connect(self.update)
        self._texts = self._fitted_texts()
        self._inks = _inks(theme)
        self._sheet = TextSheet()
        self._palette = LanePalette(theme)
        self._ticks = TickSource(opened, theme)
        self._hidden: frozenset[int] = frozenset()
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
        opened.begins_reload.connect(self._note_top)
        opened.reloaded.connect(self._on_reloaded)

    @property
    def scale(self) -> TimeScale:
        """Time to pixel of what shows now."""
        return TimeScale(self._opened.viewport.window, self.width())

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        self._inks = _inks(theme)
        self._ticks.set_theme(theme)
        self._texts = self._fitted_texts()
        self._make_palette()
        self.update()

    def set_shares(self, shows: bool) -> None:
        """Show how lanes divide their time where intervals are too dense for bars, or what fills most of each pixel."""
        self.shows_shares = shows
        self.update()

    def scroll_to(self, scroll_px: int) -> None:
        """Scroll the lanes; positions beyond the ends are brought back."""
        scroll_px = min(max(0, scroll_px), max(0, self._opened.lanes.height_px - self.height()))
        if scroll_px != self.scroll_px:
            self.scroll_px = scroll_px
            self.update()
            self.scrolled.emit()

    def reveal_lane(self, index: int) -> None:
        """Scroll so that a lane shows."""
        row = self._opened.lanes.row_of(index)
        if row is None:
            return
        if row.y_px < self.scroll_px:
            self.scroll_to(row.y_px)
        elif row.y_px + row.height_px > self.scroll_px + self.height():
            self.scroll_to(row.y_px + row.height_px - self.height())

    def visible_rows(self) -> tuple[LaneRow, ...]:
        """Return the lanes that show."""
        return self._opened.lanes.rows_between(self.scroll_px, self.scroll_px + self.height())

    def visible_heads(self) -> tuple[GroupHead, ...]:
        """Return the headings of groups that show."""
        top, bottom = self.scroll_px, self.scroll_px + self.height()
        return tuple(head for head in self._opened.lanes.heads if top - head.height_px < head.y_px < bottom)

    def row_at(self, y: float) -> LaneRow | None:
        """Return the lane at a height of the widget."""
        return self._opened.lanes.row_at(int(y) + self.scroll_px)

    def share_at(self, row: LaneRow, x: float, y: float) -> tuple[TimeWindow, int | None] | None:
        """Return what a position of a lane that shows shares represents, None in other lanes.

        Returns:
            The part of the trace that its bin shows, and the value there; None above all values.
        """
        stack = self.stacks.get(row.index) if not self._opened.timeline.infos[row.index].is_counter else None
        position = stack.bin_at(self.scale.cycles(x)) if stack is not None else -1
        if stack is None or position < 0:
            return None
        top, bottom = bar_of(row, self.scroll_px, 1.0)
        return stack.window_of(position), stack.value_at(position, (bottom - y) / max(1, bottom - top))

    @Slot()
    def _on_lanes(self) -> None:
        self.scroll_to(self.scroll_px)
        self.scrolled.emit()
        self.update()

    @Slot()
    def _note_top(self) -> None:
        self._top = next(iter(self.visible_rows()), None)

    @Slot(object)
    def _on_reloaded(self, reload: Reload) -> None:
        """Draw the longer reading; what came in between above must not push what one looks at out of its position."""
        self.source.reload(reload.loaded.timeline, reload.overlay)
        self.hovered = None
        top, self._top = self._top, None
        row = self._opened.lanes.row_of(reload.moved.get(top.index, -1)) if top is not None else None
        if top is not None and row is not None and self.scroll_px:
            self.scroll_to(row.y_px + self.scroll_px - top.y_px)
        self.scrolled.emit()
        self.update()

    def _fitted_texts(self) -> FittedTexts:
        font = QFont(self.font())
        font.setPixelSize(self._theme.px(10))
        return FittedTexts(font, Qt.TextElideMode.ElideRight, _TEXT_STEP_PX, _LEAST_LETTERS)

    def _make_palette(self) -> None:
        self._palette = LanePalette(self._theme, self._hidden, self._opened.legend.keys)

    @Slot()
    def _on_legend(self) -> None:
        """Fade all but what the legend highlights, and hide the names of the rest."""
        keys = self._opened.legend.keys
        self._ticks.fades = bool(keys) and EVENTS not in keys
        self._make_palette()
        self.update()

    @Slot()
    def _on_filter(self) -> None:
        values = self._opened.trace.catalogue.state_value_of_code
        of_states = np.flatnonzero(values != NOT_A_STATE)
        shown = values[of_states[self._opened.filters.codes[of_states]]]
        hidden = frozenset(np.setdiff1d(values[of_states], shown).tolist())
        if hidden != self._hidden:
            self._hidden = hidden
            self._make_palette()
        self.repaint()  # at once: the answer to a filter does not wait for list and overview

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Follow the size."""
        self._opened.viewport.set_width(round(self.width() * self.devicePixelRatioF()))
        self._opened.lanes.set_room(self.height())
        self.scroll_to(self.scroll_px)
        self.scrolled.emit()
        super().resizeEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw."""
        with timed(f"swimlanes {self.width()}x{self.height()}", "paint"):
            self._paint()

    def _paint(self) -> None:
        painter = QPainter(self)
        rows, scale, theme = self.visible_rows(), self.scale, self._theme
        if not rows:
            painter.fillRect(self.rect(), colour(theme.base))
            self._draw_heads(painter)
            if not self._opened.lanes.heads:
                self._draw_nothing(painter)
            return
        ratio = self.devicePixelRatioF()
        width_px = max(1, round(self.width() * ratio))
        kinds = self._opened.lanes.shows_kinds
        request = Request(tuple(row.index for row in rows), scale.window, width_px, kinds)
        self._draw_lanes(painter, rows, request, scale)
        if scale.px_per_cycle >= _CYCLE_PX:
            self._draw_cycles(painter, scale)
        self._draw_heads(painter)
        height = float(self.height())
        draw_marks(painter, self._opened, scale, height, theme)
        self._draw_selected(painter, rows, scale)
        draw_range(painter, self._opened, scale, height, theme)
        draw_lost(painter, lost_spans(self._opened.timeline.lost_marks, scale), height, theme)
        draw_cursors(painter, self._opened, scale, height, theme)
        if self._opened.path.found is not None:
            from satview.gui.swimlane.path_line import draw_path  # with the first path: brings how paths are found

            draw_path(painter, self._opened, rows, self.scroll_px, scale, theme)
        self._draw_arrows(painter, rows, scale)
        if self.rubber is not None:
            left, right = sorted(self.rubber)
            painter.fillRect(QRectF(left, 0, right - left, height), colour(theme.accent, 60))

    def _draw_heads(self, painter: QPainter) -> None:
        """Let headings of groups go through from the names."""
        for head in self.visible_heads():
            area = QRectF(0, head.y_px - self.scroll_px, self.width(), head.height_px)
            painter.fillRect(area, colour(self._theme.panel))
            painter.fillRect(area, colour(self._theme.line, 110))

    def _draw_arrows(self, painter: QPainter, rows: tuple[LaneRow, ...], scale: TimeScale) -> None:
        lanes, top = self._opened.lanes, self.scroll_px
        first, last = (lanes.position_at(height) for height in (top, top + self.height() - 1))
        self.arrows.draw(painter, scale, (first, last), top, self._theme)
        if self.arrows.mode is not ArrowMode.OFF or self._opened.highlight.shown is not None:
            draw_arrows(painter, self._opened, rows, top, scale, self._theme)

    def _draw_lanes(self, painter: QPainter, rows: tuple[LaneRow, ...], request: Request, scale: TimeScale) -> None:
        values, ratio = self.source.values(request), self.devicePixelRatioF()
        timeline = self._opened.timeline
        edges = {}
        for position, row in enumerate(rows):
            columns = interval_starts(timeline, row.index, scale, values.shape[1])
            if columns is not None:
                edges[position] = columns
        show_short_interrupts(timeline, rows, values)
        self.stacks = self._stack_source.stacks(
            rows, request, scale, self._theme, self._hidden, shows_shares=self.shows_shares
        )
        picture = LanePicture(
            values,
            rows,
            self._palette,
            self.scroll_px,
            self.height(),
            ratio,
            edges,
            [*self._ticks.ticks(request), *self._ticks.marked(request)],
            *self._overlay(request),
            stacks={position: self.stacks[row.index] for position, row in enumerate(rows) if row.index in self.stacks},
        )
        self._draw_picture(painter, picture)
        self._draw_previews(painter, rows, scale)
        view, keys = self._opened.filters.view, self._opened.legend.keys
        nameless = self._hidden | (_ALL_VALUES - keys) if keys else self._hidden
        left_out = view.by_passes, view.dimmed, self.stacks
        self._draw_texts(painter, interval_texts(timeline, rows, values, scale, self._theme, nameless, *left_out))

    def _draw_picture(self, painter: QPainter, picture: LanePicture) -> None:
        """Draw the lanes; in files of lines as rectangles, unless these are too many."""
        if not needs_vectors(painter):
            for first, pixels in picture.bands():
                painter.drawImage(QPointF(0, first / picture.ratio), image_of(pixels, picture.ratio))
            return
        whole = picture.pixels()
        found = rectangles(whole)
        if found is None:
            painter.drawImage(0, 0, image_of(whole, picture.ratio))
        else:
            draw_rectangles(painter, found, picture.ratio)

    def _draw_previews(self, painter: QPainter, rows: tuple[LaneRow, ...], scale: TimeScale) -> None:
        """Draw lanes of CPUs that are not built yet as far as a sample of the file reported before it was read."""
        preview, timeline = self._opened.preview, self._opened.timeline
        if preview is None:
            return
        waiting = [row for row in rows if not timeline.is_ready(row.index)]
        for row in waiting:
            cpu = timeline.infos[row.index].cpu
            if timeline.infos[row.index].kind is LaneKind.CPU and cpu < len(preview.cpus):
                area = QRectF(0, row.y_px - self.scroll_px, self.width(), row.height_px - 1)
                draw_preview_lane(painter, preview, cpu, scale.window, area, self.devicePixelRatioF(), self._theme)
        if not waiting:
            self._opened.preview = None

    def _overlay(self, request: Request) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
        """Return the pixels that fade and those that are marked."""
        overlay = self.source.overlay
        if overlay.does_nothing:
            return None, None
        edges = pixel_edges(request.window, request.width_px)
        return overlay.faded(request.lanes, edges, waits=False), overlay.marked(request.lanes, edges, waits=False)

    def _draw_texts(self, painter: QPainter, texts: list[IntervalText]) -> None:
        """Write the labels that are switched on into intervals, as many as fit."""
        half_px = self._texts.metrics.height() / 2
        self._sheet.begin(painter)
        for text, parts in zip(texts, labelled(self._opened, texts, self._texts), strict=True):
            words = self._texts.fit_parts(parts, text.room_px) if parts else []
            # The bar begins under the marks of events, so its middle is a little below that of the lane.
            left, top = text.left_px + 5, text.row.y_px - self.scroll_px + text.row.height_px * 0.555 - half_px
            if text.behind is not None and words:
                size = QSizeF(words[-1][0] + words[-1][1].width_px, 2 * half_px)
                painter.fillRect(QRectF(QPointF(left, top), size).adjusted(-2, 2, 2, -2), colour(text.behind))
            for beside_px, each in words:
                self._sheet.put(left + beside_px, top, each, self._inks[text.ink])
        self._sheet.end()

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


def show_short_interrupts(timeline: Timeline, rows: tuple[LaneRow, ...], values: Values) -> None:
    """Mark pixels of interrupt lanes with an interrupt that is too short to dominate them; in place."""
    for position, row in enumerate(rows):
        if timeline.infos[row.index].kind is LaneKind.INTERRUPTS:
            values[position, values[position] == SEEN_EVENT] = SEEN_INTERRUPT


def _inks(theme: Theme) -> dict[int | None, int]:
    """Return the colours of names inside intervals; None is the usual one."""
    return {None: theme.text, DARK_INK: DARK_INK, LIGHT_INK: LIGHT_INK}
