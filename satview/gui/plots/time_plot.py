"""What plots over time have in common: the time axis of the lanes, a list of what is drawn, a click that goes there."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QBrush, QIcon, QPainter, QPixmap, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QListWidget, QListWidgetItem, QWidget

from satview.base.safe_text import tool_tip
from satview.base.time import TimeWindow
from satview.gui.plots.axes import LEFT_PX, TimeAxis, new_plot, paint_with
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.session.viewport import SHORTEST_CYCLES

_LEGEND_LEAST_PX: Final = 120
_BAR_MOST_PX: Final = 30  # the scroll bar of the lanes is narrower
_SWATCH_PX: Final = 11
_ROOMY_PX: Final = 110


class TimePlot(QWidget):
    """A plot and its legend. Its x axis is the window of the lanes, both ways.

    Attributes:
        plot: The pyqtgraph widget.
        legend: One line per thing that is drawn.

    Signals:
        time_requested: A bin was clicked: the cycles of its middle.
    """

    time_requested = Signal(object)  # an int; Qt's own int has 32 bits

    lowest: float | None = 0  # what its left axis can show; None = anything

    def __init__(
        self, opened: OpenTrace, left_px: int, theme: Theme, title: str, left: str, parent: QWidget | None = None
    ) -> None:
        """Make an empty plot.

        Args:
            opened: The trace.
            left_px: Width of what is left of the lanes.
            theme: Colours.
            title: What it shows, for screen readers.
            left: What its left axis counts.
            parent: Owner.
        """
        super().__init__(parent)
        self._opened, self._theme = opened, theme
        self._is_following = False
        self._axis = TimeAxis(opened)
        self.plot = new_plot(self._axis, None, title)
        self.plot.setLabel("left", left)
        self.legend = QListWidget(self)
        self.legend.setAccessibleName(f"{title}: what is drawn")
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
        self.plot.scene().sigMouseClicked.connect(self._on_click)
        opened.viewport.window_changed.connect(self.follow)
        self.set_theme(theme)
        self.follow()

    def set_left(self, left_px: int) -> None:
        """Begin the plot as far from the left as the lanes begin; the legend has what the axis leaves."""
        self.legend.setFixedWidth(max(_LEGEND_LEAST_PX, left_px - LEFT_PX))

    @property
    def least_height_px(self) -> int:
        """Height at which the whole legend shows: pictures in files cannot be scrolled."""
        return self.legend.count() * self.legend.sizeHintForRow(0) + 2 * self.legend.frameWidth()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """End where the lanes end, and number only as many heights as there is room for."""
        super().resizeEvent(event)
        self.plot.getAxis("left").setTickDensity(1.0 if self.height() >= _ROOMY_PX else 0.5)
        self._end_with_lanes()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        paint_with(self.plot, theme)
        self.draw()

    def draw(self) -> None:
        """Draw what there is; of the plots themselves."""

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """Edges of the bins that are drawn, int64 (bins + 1,), cycles; None without any."""
        return None

    @Slot()
    def follow(self) -> None:
        """Show the window of the lanes."""
        self._end_with_lanes()
        viewport = self._opened.viewport
        self._is_following = True
        window, limits, origin = viewport.window, viewport.limits, self._axis.origin
        self.plot.setLimits(
            xMin=limits.start - origin,
            xMax=limits.end - origin,
            minXRange=min(SHORTEST_CYCLES, limits.length),
            yMin=self.lowest,
        )
        self.plot.setXRange(window.start - origin, window.end - origin, padding=0)
        self._is_following = False

    def positions(self, edges: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return where moments are on the time axis, float64 (n,)."""
        return (edges - self._axis.origin).astype(np.float64)

    def bin_clicked(self, number: int, height: float) -> None:
        """Go to a bin; `height` is where at the left axis it was clicked."""
        del height
        edges = self.edges
        assert edges is not None
        self.time_requested.emit((int(edges[number]) + int(edges[number + 1])) // 2)

    def add_line(self, brush: QBrush, text: str, at: int) -> None:
        """Say in the legend what something is that is drawn."""
        line = QListWidgetItem(self._swatch(brush), text)
        line.setToolTip(tool_tip(text))
        self.legend.insertItem(at, line)

    def _end_with_lanes(self) -> None:
        """Leave what the scroll bar of the lanes takes; a panel that is not below the lanes is used to the end."""
        lanes_px = round(self._opened.viewport.width_px / self.devicePixelRatioF())
        left_over = self.width() - self.legend.width() - LEFT_PX - lanes_px
        right_px = left_over if 0 < left_over <= _BAR_MOST_PX else 0
        if self.contentsMargins().right() != right_px:
            self.setContentsMargins(0, 0, right_px, 0)

    def _on_plot_moved(self, _box: object, ends: tuple[float, float]) -> None:
        """Move the lanes to what the plot was dragged or zoomed to."""
        if not self._is_following and math.isfinite(ends[0]) and math.isfinite(ends[1]):
            start = self._axis.origin + round(ends[0])
            self._opened.viewport.move(TimeWindow(start, max(start + 1, self._axis.origin + round(ends[1]))))
            self.follow()  # the window may begin at a whole pixel only

    def _on_click(self, click: pg.GraphicsScene.mouseEvents.MouseClickEvent) -> None:
        """Go to a bin."""
        edges, box = self.edges, self.plot.getViewBox()
        if edges is None or click.button() != Qt.MouseButton.LeftButton:
            return
        if box.sceneBoundingRect().contains(click.scenePos()):
            point = box.mapSceneToView(click.scenePos())
            at = int(np.searchsorted(edges, self._axis.origin + math.floor(point.x()), side="right")) - 1
            if 0 <= at < len(edges) - 1:
                self.bin_clicked(at, point.y())

    def _swatch(self, brush: QBrush) -> QIcon:
        picture = QPixmap(_SWATCH_PX, _SWATCH_PX)
        picture.fill(colour(self._theme.base))
        painter = QPainter(picture)
        painter.fillRect(picture.rect(), brush)
        painter.end()
        return QIcon(picture)
