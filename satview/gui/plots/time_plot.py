"""What plots with the time axis of the lanes have in common: they begin and end below the lanes and move with them."""

from __future__ import annotations

import math
from typing import Final

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QSize, Qt, Slot
from PySide6.QtGui import QBrush, QIcon, QPainter, QPixmap, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QListWidget, QListWidgetItem, QWidget

from satview.base.safe_text import tool_tip
from satview.base.time import TimeWindow
from satview.gui.plots.axes import LEFT_PX, TimeAxis, new_plot
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.session.viewport import SHORTEST_CYCLES

_LEGEND_LEAST_PX: Final = 120
_BAR_MOST_PX: Final = 30  # the scroll bar of the lanes is narrower
_SWATCH_PX: Final = 11


class TimePlot(QWidget):
    """A plot and its legend. Its x axis is the window of the lanes, both ways.

    Args:
        opened: Whose window.
        left_px: Where the lanes begin.
        theme: Colours.
        name: For screen readers.
        parent: As in Qt.

    Attributes:
        plot: The pyqtgraph widget.
        legend: One line per band.
    """

    def __init__(self, opened: OpenTrace, left_px: int, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened, self._theme = opened, theme
        self._is_following = False
        self._axis = TimeAxis(opened)
        self.plot = new_plot(self._axis, None, name)
        self.legend = QListWidget(self)
        self.set_left(left_px)
        self.legend.setIconSize(QSize(_SWATCH_PX, _SWATCH_PX))
        self.legend.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.legend.setStyleSheet("QListWidget { padding-left: 6px; }")
        self.legend.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.legend.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.legend.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.legend)
        layout.addWidget(self.plot, 1)
        self.plot.getViewBox().sigXRangeChanged.connect(self._on_plot_moved)
        opened.viewport.window_changed.connect(self.follow)

    def set_left(self, left_px: int) -> None:
        """Begin the plot as far from the left as the lanes begin; the legend has what the axis leaves."""
        self.legend.setFixedWidth(max(_LEGEND_LEAST_PX, left_px - LEFT_PX))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """End where the lanes end."""
        super().resizeEvent(event)
        self._end_with_lanes()

    def _end_with_lanes(self) -> None:
        """Leave what the scroll bar of the lanes takes; a panel that is not below the lanes is used to the end."""
        lanes_px = round(self._opened.viewport.width_px / self.devicePixelRatioF())
        left_over = self.width() - self.legend.width() - LEFT_PX - lanes_px
        right_px = left_over if 0 < left_over <= _BAR_MOST_PX else 0
        if self.contentsMargins().right() != right_px:
            self.setContentsMargins(0, 0, right_px, 0)

    @Slot()
    def follow(self) -> None:
        """Show the window of the lanes."""
        self._end_with_lanes()
        viewport = self._opened.viewport
        self._is_following = True
        window, limits, origin = viewport.window, viewport.limits, self._axis.origin
        self.plot.setLimits(
            xMin=limits.start - origin, xMax=limits.end - origin, minXRange=min(SHORTEST_CYCLES, limits.length)
        )
        self.plot.setXRange(window.start - origin, window.end - origin, padding=0)
        self._is_following = False

    def _on_plot_moved(self, _box: object, ends: tuple[float, float]) -> None:
        """Move the lanes to what the plot was dragged or zoomed to."""
        if not self._is_following and math.isfinite(ends[0]) and math.isfinite(ends[1]):
            start = self._axis.origin + round(ends[0])
            self._opened.viewport.move(TimeWindow(start, max(start + 1, self._axis.origin + round(ends[1]))))
            self.follow()  # the window may begin at a whole pixel only

    def _clicked_at(self, click: pg.GraphicsScene.mouseEvents.MouseClickEvent) -> QPointF | None:
        """Return where in the plot the left button was pressed: cycles from the axis' origin, and value."""
        box = self.plot.getViewBox()
        is_inside = box.sceneBoundingRect().contains(click.scenePos())
        return (
            box.mapSceneToView(click.scenePos()) if click.button() == Qt.MouseButton.LeftButton and is_inside else None
        )

    def _add_to_legend(self, at: int, brush: QBrush, text: str) -> None:
        line = QListWidgetItem(self._swatch(brush), text)
        line.setToolTip(tool_tip(text))
        self.legend.insertItem(at, line)

    def _swatch(self, brush: QBrush) -> QIcon:
        picture = QPixmap(_SWATCH_PX, _SWATCH_PX)
        picture.fill(colour(self._theme.base))
        painter = QPainter(picture)
        painter.fillRect(picture.rect(), brush)
        painter.end()
        return QIcon(picture)
