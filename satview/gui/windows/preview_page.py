"""The preview of a large trace while it is read: CPU lanes and load from samples of the file, marked as provisional.

The layout matches the lanes of an open trace, so that the exact view replaces the preview in place. Imports numpy: the
page is created when the first preview arrives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QFont, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPolygonF, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from satview.base.process import timed
from satview.base.safe_text import visible_line
from satview.base.time import TimeWindow
from satview.gui.colours import mixed
from satview.gui.swimlane.fills import BIN_PX, draw_lost, draw_preview_lane, hatch_preview, lost_spans
from satview.gui.swimlane.scale import TimeScale, draw_ticks, ticks
from satview.gui.theme import Theme, colour
from satview.gui.widgets import PlainLabel, line_up, push_button
from satview.session.viewport import PreviewView

STRIP_PX: Final = 44
RULER_PX: Final = 40
_NOTCH: Final = 120
_ZOOM_PER_NOTCH: Final = 1.25
_ZOOM_STEP: Final = 1.5
_PAN_STEP: Final = 0.2


class PreviewLanes(QWidget):
    """CPU load of the whole trace, time ruler and CPU lanes; zooms and pans like the lanes of an open trace."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Preview")
        self._label_px, self._row_px = 0, 1
        self._scroll_px = 0
        self._view: PreviewView | None = None
        self._dragged: tuple[float, TimeWindow] | None = None
        self._load: NDArray[np.float64] | None = None  # load of the whole trace per bin
        self._small_font, self._bold = QFont(self.font()), QFont(self.font())
        self._bold.setWeight(QFont.Weight.DemiBold)
        self._wheel_zooms = False
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Use the colours and text size of a theme."""
        self._theme = theme
        self._small_font.setPixelSize(theme.px(10))
        self.update()

    def set_up(self, label_px: int, lane_px: int, *, wheel_zooms: bool) -> None:
        """Use the settings of the lanes of an open trace; unless `wheel_zooms`, Ctrl+wheel zooms."""
        self._label_px, self._row_px = label_px, lane_px + 4  # CPU lanes are a little taller
        self._wheel_zooms = wheel_zooms

    def show_view(self, view: PreviewView | None) -> None:
        """Draw another preview; None draws none."""
        if self._view is not None:
            self._view.viewport.window_changed.disconnect(self.update)
        self._view, self._dragged, self._scroll_px, self._load = view, None, 0, None
        if view is not None:
            view.viewport.window_changed.connect(self.update)
            self._set_width()
        self.update()

    @property
    def _lanes_width(self) -> int:
        return max(1, self.width() - self._label_px)

    def _set_width(self) -> None:
        if self._view is not None:
            self._view.viewport.set_width(round(self._lanes_width * self.devicePixelRatioF()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the view to the new size."""
        self._set_width()
        self._scroll_to(self._scroll_px)
        super().resizeEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Zoom with W and S, pan with A and D, show the whole trace with 0."""
        if self._view is None or event.modifiers() != Qt.KeyboardModifier.NoModifier:
            super().keyPressEvent(event)
            return
        viewport = self._view.viewport
        middle = viewport.window.start + viewport.window.length // 2
        if event.key() in (Qt.Key.Key_W, Qt.Key.Key_S):
            viewport.zoom(_ZOOM_STEP ** (-1 if event.key() == Qt.Key.Key_W else 1), middle)
        elif event.key() in (Qt.Key.Key_A, Qt.Key.Key_D):
            viewport.pan(-_PAN_STEP if event.key() == Qt.Key.Key_A else _PAN_STEP)
        elif event.key() == Qt.Key.Key_0:
            viewport.show_all()
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom, pan or scroll, as over lanes."""
        if self._view is None:
            return
        delta, modifiers, viewport = event.angleDelta(), event.modifiers(), self._view.viewport
        notches = (delta.y() or delta.x()) / _NOTCH
        if modifiers & Qt.KeyboardModifier.ShiftModifier or abs(delta.x()) > abs(delta.y()):
            viewport.pan(-0.1 * notches)
        elif bool(modifiers & Qt.KeyboardModifier.ControlModifier) != self._wheel_zooms:
            scale = TimeScale(viewport.window, self._lanes_width)
            viewport.zoom(_ZOOM_PER_NOTCH**-notches, scale.cycles(event.position().x() - self._label_px))
        else:
            self._scroll_to(self._scroll_px - round(notches * 3 * self._row_px))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a drag."""
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        if self._view is not None:
            self._dragged = event.position().x(), self._view.viewport.window

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan."""
        if self._view is not None and self._dragged is not None:
            from_x, window = self._dragged
            cycles = round((event.position().x() - from_x) * window.length / self._lanes_width)
            self._view.viewport.move(window.shifted(-cycles))

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        """End a drag."""
        self._dragged = None

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw load, ruler, lanes and labels."""
        with timed(f"preview {self.width()}x{self.height()}", "paint"):
            painter, theme = QPainter(self), self._theme
            painter.fillRect(self.rect(), colour(theme.base))
            if self._view is not None:
                self._draw_strip(painter, self._view)
                self._draw_ruler(painter, self._view)
                self._draw_lanes(painter, self._view)
                self._draw_labels(painter, self._view)

    def _scroll_to(self, scroll_px: int) -> None:
        height = self._row_px * len(self._view.preview.cpus) if self._view is not None else 0
        self._scroll_px = min(max(0, scroll_px), max(0, height - (self.height() - STRIP_PX - RULER_PX)))
        self.update()

    def _draw_strip(self, painter: QPainter, view: PreviewView) -> None:
        """Draw the load of all CPUs over the whole trace, and a frame around the visible part."""
        theme, left, width = self._theme, self._label_px, self._lanes_width
        limits = view.viewport.limits
        bins = max(1, round(width / BIN_PX))
        if self._load is None or len(self._load) != bins:
            self._load = view.preview.busy_shares(limits, bins)
        shares = self._load
        painter.setClipRect(QRectF(left, 0, width, STRIP_PX))
        tops = STRIP_PX - 4 - np.nan_to_num(shares) * (STRIP_PX - 10.0)
        step = width / bins
        corners = [QPointF(left, STRIP_PX - 4)]
        for number, top in enumerate(tops.tolist()):
            corners += [QPointF(left + number * step, top), QPointF(left + (number + 1) * step, top)]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour(mixed(theme.accent, theme.base, 0.49)))
        painter.drawPolygon(QPolygonF([*corners, QPointF(left + width, STRIP_PX - 4)]))
        hatch_preview(painter, QRectF(left, 0, width, STRIP_PX - 1), theme)
        scale = TimeScale(limits, width)
        window = view.viewport.window
        self._draw_lost(painter, view, scale, QRectF(left, 0, width, STRIP_PX))
        handle = QRectF(left + round(scale.x(window.start)) + 0.5, 0.5,
                        max(6.0, round(scale.x(window.end) - scale.x(window.start)) - 1), STRIP_PX - 2)  # fmt: skip
        painter.setPen(colour(theme.accent))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(handle)
        painter.setClipping(False)

    def _draw_ruler(self, painter: QPainter, view: PreviewView) -> None:
        theme = self._theme
        painter.save()
        painter.translate(self._label_px, STRIP_PX)
        painter.fillRect(QRectF(0, 0, self._lanes_width, RULER_PX), colour(theme.panel))
        scale = TimeScale(view.viewport.window, self._lanes_width)
        draw_ticks(painter, ticks(scale, view.preview.clock), self._lanes_width, self._small_font, theme)
        painter.setPen(colour(theme.line))
        painter.drawLine(QLineF(0, RULER_PX - 0.5, self._lanes_width, RULER_PX - 0.5))
        painter.restore()

    def _draw_lanes(self, painter: QPainter, view: PreviewView) -> None:
        top, bottom, width = STRIP_PX + RULER_PX, self.height(), self._lanes_width
        painter.setClipRect(QRectF(self._label_px, top, width, bottom - top))
        for cpu in range(len(view.preview.cpus)):
            y = top + cpu * self._row_px - self._scroll_px
            if top - self._row_px < y < bottom:
                area = QRectF(self._label_px, y, width, self._row_px - 1)
                ratio = self.devicePixelRatioF()
                draw_preview_lane(painter, view.preview, cpu, view.viewport.window, area, ratio, self._theme)
                painter.fillRect(QRectF(self._label_px, area.bottom(), width, 1), colour(self._theme.line, 140))
        scale = TimeScale(view.viewport.window, width)
        height = min(len(view.preview.cpus) * self._row_px - self._scroll_px, bottom - top)
        self._draw_lost(painter, view, scale, QRectF(self._label_px, top, width, height))
        painter.setClipping(False)

    def _draw_lost(self, painter: QPainter, view: PreviewView, scale: TimeScale, area: QRectF) -> None:
        painter.save()
        painter.translate(area.topLeft())
        draw_lost(painter, lost_spans(view.preview.lost_marks, scale), area.height(), self._theme)
        painter.restore()

    def _draw_labels(self, painter: QPainter, view: PreviewView) -> None:
        theme, top = self._theme, STRIP_PX + RULER_PX
        painter.fillRect(QRectF(0, 0, self._label_px, self.height()), colour(theme.panel))
        painter.setPen(colour(theme.faint))
        for text, y, height in (("Whole trace", 0, STRIP_PX), ("Time", STRIP_PX, RULER_PX)):
            painter.drawText(QRectF(10, y, self._label_px - 16, height), Qt.AlignmentFlag.AlignVCenter, text)
        painter.setClipRect(QRectF(0, top, self._label_px, self.height() - top))
        painter.setFont(self._bold)
        for cpu, title in enumerate(view.preview.titles):
            area = QRectF(20, top + cpu * self._row_px - self._scroll_px, self._label_px - 26, self._row_px)
            painter.setPen(colour(theme.text))
            painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, visible_line(title))
            painter.fillRect(QRectF(0, area.bottom() - 1, self._label_px, 1), colour(theme.line, 140))
        painter.setClipping(False)
        painter.fillRect(QRectF(self._label_px - 1, 0, 1, self.height()), colour(theme.line))


class PreviewPage(QWidget):
    """The preview below a line that marks it as provisional, and whose button cancels reading."""

    cancel_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lanes = PreviewLanes(theme, self)
        self.note = PlainLabel("", self, role="dim")
        self.bar = QProgressBar(self, textVisible=False)
        self.bar.setRange(0, 1000)
        self.bar.setFixedWidth(160)
        self.cancel = push_button("Cancel", self, self.cancel_requested)
        self._positions, self._name = 0, ""
        line = line_up(QHBoxLayout(), (self.note, 1), self.bar, self.cancel, margins=(10, 5, 8, 5), spacing=10)
        line_up(QVBoxLayout(self), line, (self.lanes, 1), margins=(0, 0, 0, 0), spacing=0)

    def begin(self, path: Path, view: PreviewView) -> None:
        """Show a preview."""
        self._positions, self._name = view.preview.positions, path.name
        self.lanes.show_view(view)
        self.bar.setValue(0)
        self._say(0)

    def leave(self) -> None:
        """Remove the preview."""
        self.lanes.show_view(None)

    @Slot(float)
    def set_progress(self, share: float) -> None:
        """Show the share of the file that has been read, 0 to 1."""
        self.bar.setValue(round(share * 1000))
        self._say(share)

    def _say(self, share: float) -> None:
        self.note.setText(
            f"Provisional: who ran at {self._positions:,} sampled positions of {self._name}. "
            f"Loading, {100 * share:.0f} %"
        )
