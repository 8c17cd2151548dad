"""The load of the CPUs over time: one band above the other, and beside them what they are."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QBrush
from PySide6.QtWidgets import QWidget

from satview.analysis.load import OTHERS, LoadBy
from satview.base.safe_text import visible_line
from satview.events.states import INTERRUPT, process_value
from satview.gui.colours import mixed, process_colour, value_colour
from satview.gui.plots.axes import paint_with
from satview.gui.plots.time_plot import TimePlot
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.session.panels.plots_task import LoadPlotted

_LEGEND_LEAST_PX: Final = 120
_BAR_MOST_PX: Final = 30  # the scroll bar of the lanes is narrower
_SWATCH_PX: Final = 11
_HATCH: Final = Qt.BrushStyle.BDiagPattern


class LoadPlot(TimePlot):
    """The load, one line of the legend per band, topmost band first; arguments as `TimePlot` without the name.

    Signals:
        time_requested: A bin was clicked: the cycles of its middle.
    """

    time_requested = Signal(object)  # an int; Qt's own int has 32 bits

    def __init__(self, opened: OpenTrace, left_px: int, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(opened, left_px, theme, "Load over time", parent)
        self._plotted: LoadPlotted | None = None
        self.plot.setLabel("left", "CPUs")
        self.plot.setLimits(yMin=0)
        self.legend.setAccessibleName("Bands of the load plot")
        self.plot.scene().sigMouseClicked.connect(self._on_click)
        self.set_theme(theme)
        self.follow()

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
            value_colour(INTERRUPT, self._theme.is_dark, self._theme.palette),
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
            self._add_to_legend(0, brush, text)
        self.plot.setYRange(0, load.cpus * 1.04, padding=0)  # or the topmost number is cut
        self.plot.getAxis("left").setTicks([[(cpu, str(cpu)) for cpu in _levels(load.cpus)]])

    def _on_click(self, click: pg.GraphicsScene.mouseEvents.MouseClickEvent) -> None:
        """Go to a bin."""
        plotted, place = self._plotted, self._clicked_at(click)
        if plotted is not None and place is not None:
            cycles = self._axis.origin + math.floor(place.x())
            at = int(np.searchsorted(plotted.load.edges, cycles, side="right")) - 1
            if 0 <= at < len(plotted.load.lengths):
                self.time_requested.emit(int(plotted.load.edges[at]) + int(plotted.load.lengths[at]) // 2)

    def _brushes(self, plotted: LoadPlotted) -> list[QBrush]:
        """Return the colour of each band: processes as on the lanes of CPUs, priorities by rank."""
        load, theme = plotted.load, self._theme
        rows = load.subjects.tolist()
        if load.by is LoadBy.PROCESS:
            found = [
                value_colour(process_value(row), theme.is_dark, theme.palette) if row > 0 else None for row in rows
            ]
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


def _levels(cpus: int) -> range:
    """Return the numbers at the left axis: at most some eight."""
    return range(0, cpus + 1, max(1, math.ceil(cpus / 8)))
