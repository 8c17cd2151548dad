"""The load of the CPUs over time: one band above the other, and beside them what they are."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QBrush, QIcon, QPainter, QPixmap, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QListWidget, QListWidgetItem, QWidget

from satview.analysis.load import OTHERS, LoadBy
from satview.base.safe_text import tool_tip, visible_line
from satview.base.time import TimeWindow
from satview.events.states import INTERRUPT, process_value
from satview.gui.colours import mixed, process_colour, state_colour
from satview.gui.plots.axes import LEFT_PX, TimeAxis, new_plot, paint_with
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.session.panels.plots_task import LoadPlotted
from satview.session.viewport import SHORTEST_CYCLES

_LEGEND_LEAST_PX: Final = 120
_BAR_MOST_PX: Final = 30  # the scroll bar of the lanes is narrower
_SWATCH_PX: Final = 11
_HATCH: Final = Qt.BrushStyle.BDiagPattern


class LoadPlot(QWidget):
    """The plot and its legend. Its x axis is the window of the lanes, both ways.

    Attributes:
        plot: The pyqtgraph widget.
        legend: One line per band, topmost band first.

    Signals:
        time_requested: A bin was clicked: the cycles of its middle.
    """

    time_requested = Signal(object)  # an int; Qt's own int has 32 bits

    def __init__(self, opened: OpenTrace, left_px: int, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened, self._theme = opened, theme
        self._plotted: LoadPlotted | None = None
        self._is_following = False
        self._axis = TimeAxis(opened)
        self.plot = new_plot(self._axis, None, "Load over time")
        self.plot.setLabel("left", "CPUs")
        self.legend = QListWidget(self)
        self.legend.setAccessibleName("Bands of the load plot")
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

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        paint_with(self.plot, theme)
        if self._plotted is not None:
            self.show_load(self._plotted)

    def show_load(self, plotted: LoadPlotted) -> None:
        """Draw a load."""
        self._plotted = plotted
        load = plotted.load
        self.plot.clear()
        self.legend.clear()
        edges = (load.edges - self._axis.origin).astype(np.float64)
        low = np.zeros(len(edges) - 1)
        bands = list(zip(load.busy_cycles, self._brushes(plotted), plotted.titles, strict=True))
        interrupts, unknown = (
            state_colour(INTERRUPT, self._theme),
            colour(self._theme.faint),
        )
        assert interrupts is not None
        bands.append((load.interrupt_cycles, QBrush(colour(interrupts)), "Interrupts"))
        bands.append((load.unknown_cycles, QBrush(unknown, _HATCH), "Not known"))
        for cycles, brush, title in bands:
            if not cycles.any():
                continue
            high = low + cycles / load.lengths
            self.plot.addItem(pg.BarGraphItem(x0=edges[:-1], x1=edges[1:], y0=low, y1=high, pen=None, brush=brush))
            low = high
            share = int(cycles.sum()) / (plotted.window.length * load.cpus)
            text = f"{share:.1%}  {visible_line(title)}"
            line = QListWidgetItem(self._swatch(brush), text)
            line.setToolTip(tool_tip(text))
            self.legend.insertItem(0, line)
        self.plot.setYRange(0, load.cpus * 1.04, padding=0)  # or the topmost number is cut
        self.plot.getAxis("left").setTicks([[(cpu, str(cpu)) for cpu in _levels(load.cpus)]])

    @Slot()
    def follow(self) -> None:
        """Show the window of the lanes."""
        self._end_with_lanes()
        viewport = self._opened.viewport
        self._is_following = True
        window, limits, origin = viewport.window, viewport.limits, self._axis.origin
        self.plot.setLimits(
            xMin=limits.start - origin, xMax=limits.end - origin, minXRange=min(SHORTEST_CYCLES, limits.length), yMin=0
        )
        self.plot.setXRange(window.start - origin, window.end - origin, padding=0)
        self._is_following = False

    def _on_plot_moved(self, _box: object, ends: tuple[float, float]) -> None:
        """Move the lanes to what the plot was dragged or zoomed to."""
        if not self._is_following and math.isfinite(ends[0]) and math.isfinite(ends[1]):
            start = self._axis.origin + round(ends[0])
            self._opened.viewport.move(TimeWindow(start, max(start + 1, self._axis.origin + round(ends[1]))))
            self.follow()  # the window may begin at a whole pixel only

    def _on_click(self, click: pg.GraphicsScene.mouseEvents.MouseClickEvent) -> None:
        """Go to a bin."""
        plotted, box = self._plotted, self.plot.getViewBox()
        if plotted is None or click.button() != Qt.MouseButton.LeftButton:
            return
        if box.sceneBoundingRect().contains(click.scenePos()):
            cycles = self._axis.origin + math.floor(box.mapSceneToView(click.scenePos()).x())
            at = int(np.searchsorted(plotted.load.edges, cycles, side="right")) - 1
            if 0 <= at < len(plotted.load.lengths):
                self.time_requested.emit(int(plotted.load.edges[at]) + int(plotted.load.lengths[at]) // 2)

    def _brushes(self, plotted: LoadPlotted) -> list[QBrush]:
        """Return the colour of each band: processes as on the lanes of CPUs, priorities by rank."""
        load, theme = plotted.load, self._theme
        rows = load.subjects.tolist()
        if load.by is LoadBy.PROCESS:
            found = [state_colour(process_value(row), theme) if row > 0 else None for row in rows]
            rest = [mixed(theme.base, theme.text, 0.35) if row == OTHERS else theme.faint for row in rows]
            return [QBrush(colour(own if own is not None else other)) for own, other in zip(found, rest, strict=True)]
        if load.by is LoadBy.CPU:
            return [QBrush(colour(process_colour(row, theme.is_dark, theme.palette))) for row in rows]
        steps = max(1, len(rows) - 1)
        ends = (theme.accent, mixed(theme.base, theme.accent, 0.18))
        return [
            QBrush(colour(mixed(*ends, position / steps) if row >= 0 else theme.faint))
            for position, row in enumerate(rows)
        ]

    def _swatch(self, brush: QBrush) -> QIcon:
        picture = QPixmap(_SWATCH_PX, _SWATCH_PX)
        picture.fill(colour(self._theme.base))
        painter = QPainter(picture)
        painter.fillRect(picture.rect(), brush)
        painter.end()
        return QIcon(picture)


def _levels(cpus: int) -> range:
    """Return the numbers at the left axis: at most some eight."""
    return range(0, cpus + 1, max(1, math.ceil(cpus / 8)))
