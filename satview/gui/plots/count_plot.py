"""How many events of some kinds there are, division by division: a line for each kind."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtGui import QBrush
from PySide6.QtWidgets import QWidget

from satview.base.safe_text import visible_line
from satview.gui.colours import class_colour, process_colour
from satview.gui.plots.time_plot import TimePlot
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.session.panels.plots_task import CountsPlotted


class CountPlot(TimePlot):
    """The plot and its legend, most events first.

    Signals:
        event_requested: A division was clicked: row of the first event in it, of the line nearest to the click.
    """

    event_requested = Signal(int)

    def __init__(self, opened: OpenTrace, left_px: int, theme: Theme, parent: QWidget | None = None) -> None:
        self._plotted: CountsPlotted | None = None
        super().__init__(opened, left_px, theme, "Events over time", "Events", parent)

    def show_counts(self, plotted: CountsPlotted) -> None:
        """Draw counts."""
        self._plotted = plotted
        self.draw()

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """Those of the divisions, cycles, int64 (n + 1,)."""
        return None if self._plotted is None else self._plotted.divisions.edges

    def draw(self) -> None:
        """Draw the counts that were shown last."""
        plotted = self._plotted
        if plotted is None:
            return
        self.plot.clear()
        self.legend.clear()
        edges, counts = self.positions(plotted.divisions.edges), plotted.divisions.counts
        for number, (title, line) in enumerate(zip(plotted.titles, counts, strict=True)):
            rgb = self._colour(number, title)
            pen = pg.mkPen(colour(rgb), width=1.5)
            self.plot.addItem(pg.PlotDataItem(edges, line.astype(np.float64), stepMode="center", pen=pen))
            self.add_line(QBrush(colour(rgb)), f"{int(line.sum()):,}  {visible_line(title)}", self.legend.count())
        self.plot.setYRange(0, max(1, int(counts.max(initial=0))) * 1.06, padding=0)

    def bin_clicked(self, number: int, height: float) -> None:
        """Go to the first event of the line that is nearest."""
        assert self._plotted is not None
        made = self._plotted.divisions
        has = np.flatnonzero(made.counts[:, number])
        if len(has):
            nearest = has[np.argmin(np.abs(made.counts[has, number] - height))]
            self.event_requested.emit(int(made.first[nearest, number]))
        else:
            super().bin_clicked(number, height)

    def _colour(self, number: int, title: str) -> int:
        if self._plotted is not None and self._plotted.of_classes:
            return class_colour(title, self._theme.is_dark)
        return process_colour(number, self._theme.is_dark, self._theme.palette)
