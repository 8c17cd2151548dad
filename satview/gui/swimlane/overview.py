"""The overview strip of the whole trace: CPU use by process, losses, damage, verdicts, and the visible window."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, Qt, Slot
from PySide6.QtGui import (
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

from satview.base.safe_text import counted, tool_tip
from satview.base.time import TimeWindow, format_duration, format_time
from satview.gui.colours import OTHER_NAMES, mixed
from satview.gui.swimlane import fills
from satview.gui.swimlane.lane_image import image_of
from satview.gui.swimlane.scale import TimeScale
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.store.time_ranges import damage
from satview.timeline.spans import pixel_edges

_HEIGHT_PX: Final = 44
_LOW_PX: Final = 26
_GRIP_PX: Final = 5
_WEDGE_PX: Final = 4
_LISTED_AT_MOST: Final = 4
_BUSIEST: Final = 3
_TOP_PX: Final = 8  # space for search hits above the CPU use
_FOOT_PX: Final = 4  # space for verdicts and the range below it
_REACH_PX: Final = 6  # neighbouring pixels on each side to average
_LINE_PX: Final = 7  # least distance between lines of the scale
_EVENTS_TONE: Final = 0.5
_SCALE_TONE: Final = 70  # alpha of the lines
_LEAST_FIGURE: Final = 0.005  # CPUs; less would be rounded to 0.00
_HANDLE_LEAST_PX: Final = 6.0


class _HandlePart(Enum):
    NONE = auto()
    LEFT = auto()
    BODY = auto()
    RIGHT = auto()


class OverviewStrip(QWidget):
    """Shows the CPU use over the whole trace, with the visible window as a handle that can be dragged.

    While a filter selects events, or if no lane shows running threads, the number of events is shown instead.

    Attributes:
        shown_use: The CPU use shown, per device pixel; None while the number of events shows.
    """

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(_HEIGHT_PX)
        self.setMouseTracking(True)
        self.setAccessibleName("Overview of the whole trace")
        self._opened = opened
        self._theme = theme
        self._picture: QPixmap | None = None
        self.shown_use: fills.CpuUse | None = None
        self._dragged = _HandlePart.NONE
        self._offset_cycles = 0
        for signal in (
            opened.viewport.window_changed,
            opened.marks.changed,
            opened.selection.range_changed,
            opened.selection.cursors_changed,
        ):
            signal.connect(self.update)
        opened.search.changed.connect(self._forget)
        opened.filters.view_changed.connect(self._forget)
        opened.verdicts.changed.connect(self._forget)

    def set_theme(self, theme: Theme) -> None:
        """Use the colours and text size of a theme."""
        self._theme = theme
        self._forget()

    def set_low(self, is_low: bool) -> None:
        """Use less height if `is_low`, to leave more to the lanes; else the normal height."""
        self.setFixedHeight(_LOW_PX if is_low else _HEIGHT_PX)

    @property
    def _scale(self) -> TimeScale:
        return TimeScale(self._opened.viewport.limits, self.width())

    @Slot()
    def _forget(self) -> None:
        self._picture = None
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to drag the handle or one of its edges; a press beside the handle centres it there first."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        cycles, viewport = self._scale.cycles(event.position().x()), self._opened.viewport
        self._dragged = self._part_at(event.position().x())
        if self._dragged is _HandlePart.NONE:
            viewport.centre(cycles)
            self._dragged = _HandlePart.BODY
        self._offset_cycles = cycles - viewport.window.start

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag the handle, or show the cursor for the part under the mouse."""
        x = event.position().x()
        cycles, viewport = self._scale.cycles(x), self._opened.viewport
        window = viewport.window
        if self._dragged is _HandlePart.BODY:
            viewport.move(window.shifted(cycles - self._offset_cycles - window.start))
        elif self._dragged is _HandlePart.LEFT:
            viewport.move(TimeWindow(min(cycles, window.end - 1), window.end))
        elif self._dragged is _HandlePart.RIGHT:
            viewport.move(TimeWindow(window.start, max(cycles, window.start + 1)))
        else:
            shapes = {
                _HandlePart.LEFT: Qt.CursorShape.SizeHorCursor,
                _HandlePart.RIGHT: Qt.CursorShape.SizeHorCursor,
                _HandlePart.BODY: Qt.CursorShape.OpenHandCursor,
                _HandlePart.NONE: Qt.CursorShape.ArrowCursor,
            }
            self.setCursor(shapes[self._part_at(x)])

    def event(self, event: QEvent) -> bool:
        """Show the text of `text_at` for the mouse position as a tool tip."""
        if isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), tool_tip(self.text_at(event.pos().x())), self)
            return True
        return super().event(event)

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        """End a drag."""
        self._dragged = _HandlePart.NONE

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        """Show the whole trace."""
        self._opened.viewport.show_all()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom around the middle of the visible window."""
        window = self._opened.viewport.window
        self._opened.viewport.zoom(1.25 ** (-event.angleDelta().y() / 120), window.start + window.length // 2)

    def resizeEvent(self, _event: object) -> None:
        """Draw again for the new size."""
        self._forget()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the strip."""
        painter = QPainter(self)
        if self._picture is None:
            self._picture = self._draw_picture()
        painter.drawPixmap(0, 0, self._picture)
        theme, height = self._theme, float(self.height())
        left, right = self._handle()
        highlight = colour(theme.window, 150)
        painter.fillRect(QRectF(0, 0, left, height - 1), highlight)
        painter.fillRect(QRectF(right, 0, self.width() - right, height - 1), highlight)
        painter.setPen(QPen(colour(theme.accent), 1))
        painter.drawRect(QRectF(round(left) + 0.5, 0.5, max(1.0, round(right - left) - 1), height - 2))
        for x in (left, right - 3):
            painter.fillRect(QRectF(round(x), height / 2 - 8, 3, 16), colour(theme.accent))
        if self.shown_use is not None:
            self._name_height(painter, self.shown_use)  # on top of everything else
        self._draw_positions(painter)

    def _handle(self) -> tuple[float, float]:
        window, scale = self._opened.viewport.window, self._scale
        left, right = scale.x(window.start), scale.x(window.end)
        if right - left < _HANDLE_LEAST_PX:
            middle = min(max((left + right) / 2, _HANDLE_LEAST_PX / 2), self.width() - _HANDLE_LEAST_PX / 2)
            left, right = middle - _HANDLE_LEAST_PX / 2, middle + _HANDLE_LEAST_PX / 2
        return left, right

    def _part_at(self, x: float) -> _HandlePart:
        left, right = self._handle()
        if self._opened.viewport.is_whole:
            grips = ((left, _HandlePart.LEFT), (right, _HandlePart.RIGHT))
            return next((part for edge, part in grips if abs(x - edge) <= _GRIP_PX), _HandlePart.BODY)
        if right - left > 3 * _GRIP_PX:
            if abs(x - left) <= _GRIP_PX:
                return _HandlePart.LEFT
            if abs(x - right) <= _GRIP_PX:
                return _HandlePart.RIGHT
        return _HandlePart.BODY if left - _GRIP_PX <= x <= right + _GRIP_PX else _HandlePart.NONE

    def _draw_positions(self, painter: QPainter) -> None:
        opened, scale, theme = self._opened, self._scale, self._theme
        positions = [(mark.start_cycles, theme.mark) for mark in opened.marks]
        for cycles, rgb in ((opened.selection.cursor_a, theme.cursor_a), (opened.selection.cursor_b, theme.cursor_b)):
            if cycles is not None:
                positions.append((cycles, rgb))
        for cycles, rgb in positions:
            painter.fillRect(QRectF(round(scale.x(cycles)) - 1, 0, 2, self.height() - 1), colour(rgb))
        time_range = opened.selection.time_range
        if time_range is not None:
            left, right = scale.x(time_range.start), scale.x(time_range.end)
            painter.fillRect(QRectF(left, self.height() - 5, max(2.0, right - left), 4), colour(theme.accent, 160))

    def _draw_damage(self, painter: QPainter) -> None:
        """Draw a wedge (small triangle) at the upper edge at each time where the file is damaged."""
        scale = self._scale
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour(self._theme.error))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for x in sorted({round(scale.x(cycles)) for cycles, _ in damage(self._opened.trace)}):
            corners = ((x - _WEDGE_PX, 0), (x + _WEDGE_PX, 0), (x, 2 * _WEDGE_PX))
            painter.drawPolygon(QPolygonF([QPointF(*corner) for corner in corners]))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)

    def _verdict_columns(self, width_px: int) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Yield colour and marked device pixels, bool (width_px,), for verdicts by severity, the worst last."""
        answer, theme, limits = self._opened.verdicts.answer, self._theme, self._opened.viewport.limits
        times: dict[int, list[int]] = {}
        for verdict in answer.verdicts[::-1] if answer is not None else ():
            rgb = theme.tone(verdict.severity)
            of_colour = times.setdefault(rgb, [])
            for occurrence in verdict.occurrences:
                of_colour += occurrence.start_cycles, occurrence.end_cycles
        least_px = 2 * _WEDGE_PX * width_px / max(1, self.width())
        for rgb, of_colour in times.items():
            cycles = np.array(of_colour, np.int64).reshape(-1, 2) - limits.start
            left, right = (cycles * (width_px / max(1, limits.length))).T
            steps = np.zeros(width_px + 1, np.int64)
            for sign, edge in ((1, left), (-1, np.maximum(right, left + least_px))):
                np.add.at(steps, np.clip(np.round(edge), 0, width_px).astype(np.int64), sign)
            yield rgb, np.cumsum(steps[:-1]) > 0

    def text_at(self, x: float) -> str:
        """Return lines about the time around a pixel: CPU use, the busiest processes, verdicts, losses and damage."""
        clock, scale = self._opened.trace.clock, self._scale
        lines = [f"About {format_time(clock.ns(scale.cycles(x)), clock.duration_ns(scale.length(1)))}"]
        if self.shown_use is not None:
            lines += self._use_lines(self.shown_use, x)
        return "\n".join([*lines, *self._verdict_lines(x), *self._lost_lines(x), *self._damage_lines(x)])

    def _use_lines(self, use: fills.CpuUse, x: float) -> list[str]:
        """Return the CPU use around a pixel, and the processes that use most."""
        pixel, names = int(x * self.devicePixelRatioF()), fills.names_of_values(self._opened.timeline)
        if not 0 <= pixel < len(use.most):
            return []
        total, least, most = float(use.used[:, pixel].sum()), float(use.least[pixel]), float(use.most[pixel])
        lines = [f"{total:.2f} of {counted(use.cpus, 'CPU')} in use, from {least:.2f} to {most:.2f}"]
        parts = sorted(zip(use.used[:, pixel].tolist(), use.values, strict=True), reverse=True)
        return lines + [
            f"    {used:.2f}  {names.get(value, OTHER_NAMES.get(value, ''))}"
            for used, value in parts[:_BUSIEST] if used >= _LEAST_FIGURE
        ]  # fmt: skip

    def _verdict_lines(self, x: float) -> list[str]:
        """Return the verdicts near a pixel, each with the length of its longest occurrence there."""
        verdicts, clock, scale = self._opened.verdicts.answer, self._opened.trace.clock, self._scale
        lines = []
        for verdict in verdicts.verdicts if verdicts is not None else ():
            lengths = [
                case.end_cycles - case.start_cycles for case in verdict.occurrences
                if scale.x(case.start_cycles) - _GRIP_PX <= x <= max(
                    scale.x(case.end_cycles), scale.x(case.start_cycles) + 2 * _WEDGE_PX) + _GRIP_PX
            ]  # fmt: skip
            if lengths:
                lines.append(f"{verdict.kind}: {format_duration(clock.duration_ns(max(lengths)))}")
        return _first_lines(lines, "verdicts")

    def _lost_lines(self, x: float) -> list[str]:
        """Return the number and total length of gaps (spans with lost events) near a pixel."""
        lost = self._opened.timeline.lost_marks
        near = [end - start for start, end in lost.tolist()
                if self._scale.x(start) - _GRIP_PX <= x <= self._scale.x(end) + _GRIP_PX]  # fmt: skip
        if not near:
            return []
        length = format_duration(self._opened.trace.clock.duration_ns(sum(near)))
        return [f"events are missing: {counted(len(near), 'gap')}, {length}"]

    def _damage_lines(self, x: float) -> list[str]:
        """Return the damage of the file near a pixel."""
        near = [problem for cycles, problem in damage(self._opened.trace) if abs(self._scale.x(cycles) - x) <= _GRIP_PX]
        return _first_lines([f"{problem.kind.title}: {problem.detail}" for problem in near], "that Problems lists")

    @Slot()
    def follow_lanes(self) -> None:
        """Show the CPU use as soon as the CPU lanes are built."""
        if self.shown_use is None and fills.knows_use(self._opened.timeline):
            self._forget()

    def _draw_picture(self) -> QPixmap:
        """Return a picture of all parts of the strip that do not depend on the visible window."""
        ratio, theme = self.devicePixelRatioF(), self._theme
        width = max(1, round(self.width() * ratio))
        picture = QPixmap(width, max(1, round(self.height() * ratio)))
        picture.setDevicePixelRatio(ratio)
        painter = QPainter(picture)
        times, limits = self._opened.trace.events.time_cycles, self._opened.viewport.limits
        hits = density(times, self._opened.search.hits, limits, width)
        rows = (np.arange(picture.height())[:, None] + 0.5) / ratio
        pixels = np.full((picture.height(), width), theme.base | fills.OPAQUE, np.uint32)
        self._draw_stack(pixels, ratio)
        pixels[(rows >= 1) & (rows < _TOP_PX - 1) & (hits > 0)] = theme.hit | fills.OPAQUE
        for rgb, is_marked in self._verdict_columns(width):
            pixels[(rows >= self.height() - _FOOT_PX) & (rows < self.height() - 1) & is_marked] = rgb | fills.OPAQUE
        painter.drawImage(0, 0, image_of(pixels, ratio))
        if self.shown_use is not None:
            self._draw_scale(painter, self.shown_use.high_cpus)
        self._draw_damage(painter)
        fills.draw_lost(painter, fills.lost_spans(self._opened.timeline.lost_marks, self._scale), self.height(), theme)
        painter.setPen(colour(theme.line))
        painter.drawLine(QLineF(0, self.height() - 0.5, self.width(), self.height() - 0.5))
        painter.end()
        return picture

    def _draw_stack(self, pixels: NDArray[np.uint32], ratio: float) -> None:
        """Draw the CPU use; or the number of events, if the use is unknown or a filter selects events."""
        opened, limits, width = self._opened, self._opened.viewport.limits, pixels.shape[1]
        rows = round(_TOP_PX * ratio), round((self.height() - _FOOT_PX) * ratio)
        self.shown_use = None
        if opened.filters.rows is None and fills.knows_use(opened.timeline):
            self.shown_use = fills.cpu_use(opened.timeline, limits, width, round(_REACH_PX * ratio))
            fills.draw_use(pixels, self.shown_use, rows, self._theme)
            if self._theme.is_hatched:
                fills.hatch(pixels, 0, ratio)
            return
        counts = density(opened.trace.events.time_cycles, opened.filters.rows, limits, width)
        # The square root keeps sparse spans visible beside bursts.
        heights = np.sqrt(counts / max(1, counts.max(initial=1)))
        tone = np.array([mixed(self._theme.accent, self._theme.base, _EVENTS_TONE) | fills.OPAQUE], np.uint32)
        ground = self._theme.base | fills.OPAQUE
        fills.draw_tops(pixels, heights[None], np.ones(1, np.bool_), np.arange(width + 1), tone, ground, rows)

    def _draw_scale(self, painter: QPainter, cpus: int) -> None:
        """Draw horizontal lines at whole numbers of CPUs."""
        theme, height = self._theme, self.height() - _TOP_PX - _FOOT_PX
        step = next((step for step in range(1, cpus) if cpus % step == 0 and height * step >= _LINE_PX * cpus), cpus)
        painter.setPen(QPen(colour(theme.dim, _SCALE_TONE), 1))
        for number in range(step, cpus + 1, step):
            y = round(self.height() - _FOOT_PX - height * number / cpus) + 0.5
            painter.drawLine(QLineF(0, y, self.width(), y))

    def _name_height(self, painter: QPainter, use: fills.CpuUse) -> None:
        """Write the number of CPUs (LWPs in traces of a threads library) that the height of the strip stands for."""
        theme, font = self._theme, QFont(self.font())
        font.setPixelSize(theme.px(9))
        text = counted(use.cpus, self._opened.trace.cpu_noun)
        text = text if use.high_cpus == use.cpus else f"{use.high_cpus} of {text}"
        metrics = QFontMetricsF(font)
        if metrics.height() > self.height() - _TOP_PX - _FOOT_PX:
            return
        box = QRectF(self.width() - metrics.horizontalAdvance(text) - 12, _TOP_PX + 1,
                     metrics.horizontalAdvance(text) + 6, metrics.height())  # fmt: skip
        painter.fillRect(box, colour(theme.base, 200))
        painter.setFont(font)
        painter.setPen(colour(theme.dim))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)


def _first_lines(lines: list[str], more: str) -> list[str]:
    """Return the first lines and, if there are more, a last line such as `and 3 more verdicts` (`more` = verdicts)."""
    rest = len(lines) - _LISTED_AT_MOST
    return lines if rest <= 0 else [*lines[:_LISTED_AT_MOST], f"and {rest:,} more {more}"]


def density(
    times: NDArray[np.int64], rows: NDArray[np.uint32] | None, window: TimeWindow, width_px: int
) -> NDArray[np.int64]:
    """Return the number of events per pixel, int64 (width_px,); the cost depends on the number of pixels.

    `times` of all events and the `rows` to count (None = all) ascend.
    """
    positions = np.searchsorted(times, pixel_edges(window, width_px))
    if rows is not None:
        positions = np.searchsorted(rows, positions)
    return np.diff(positions).astype(np.int64)
