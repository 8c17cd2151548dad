"""The load of the CPUs over time: one band above the other, and beside them what they are."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush
from PySide6.QtWidgets import QWidget

from satview.analysis.load import NOBODY, OTHERS, LoadBy
from satview.base.safe_text import visible_line
from satview.events.states import INTERRUPT, process_value
from satview.gui.colours import mixed, process_colour, state_colour
from satview.gui.plots.time_plot import TimePlot
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.session.panels.plots_task import LoadPlotted

_HATCH: Final = Qt.BrushStyle.BDiagPattern


class LoadPlot(TimePlot):
    """The plot and its legend, topmost band first."""

    def __init__(self, opened: OpenTrace, left_px: int, theme: Theme, parent: QWidget | None = None) -> None:
        self._plotted: LoadPlotted | None = None
        super().__init__(opened, left_px, theme, "Load over time", "CPUs", parent)

    def show_load(self, plotted: LoadPlotted) -> None:
        """Draw a load."""
        self._plotted = plotted
        self.draw()

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """Those of the load, cycles, int64 (n + 1,)."""
        return None if self._plotted is None else self._plotted.load.edges

    def draw(self) -> None:
        """Draw the load that was shown last."""
        plotted = self._plotted
        if plotted is None:
            return
        load = plotted.load
        self.plot.clear()
        self.legend.clear()
        edges = self.positions(load.edges)
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
            share = int(cycles.sum()) / max(1, int(load.given_cycles.sum()))
            self.add_line(brush, f"{share:.1%}  {visible_line(title)}", 0)
        self.legend.scrollToBottom()  # the largest bands are the lowest
        self.plot.setYRange(0, load.cpus * 1.04, padding=0)  # or the topmost number is cut
        self.plot.getAxis("left").setTicks([[(cpu, str(cpu)) for cpu in _levels(load.cpus)]])

    def _brushes(self, plotted: LoadPlotted) -> list[QBrush]:
        """Return the colour of each band: processes as on the lanes of CPUs, priorities by rank."""
        load, theme = plotted.load, self._theme
        rows = load.subjects.tolist()
        if load.by is LoadBy.PROCESS:
            found = [state_colour(process_value(row), theme) if row > 0 else None for row in rows]
            rest = [mixed(theme.base, theme.text, 0.35) if row == OTHERS else theme.faint for row in rows]
            return [QBrush(colour(own if own is not None else other)) for own, other in zip(found, rest, strict=True)]
        if load.by is LoadBy.THREAD:
            no_thread = {OTHERS: mixed(theme.base, theme.text, 0.35), NOBODY: theme.faint}
            hues = [no_thread.get(row, process_colour(at, theme.is_dark, theme.palette)) for at, row in enumerate(rows)]
            return [QBrush(colour(rgb)) for rgb in hues]
        if load.by is LoadBy.PARTITION:
            hues = [process_colour(row, theme.is_dark, theme.palette) if row >= 0 else theme.faint for row in rows]
            return [QBrush(colour(rgb)) for rgb in hues]
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
