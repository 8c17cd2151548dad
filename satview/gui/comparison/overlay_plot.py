"""The histograms of both traces in one plot: the first one filled, the second one as a line over it."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QVBoxLayout, QWidget

from satview.analysis.times.occurrences import histogram
from satview.base.time_text import format_duration
from satview.gui.plots.axes import DurationAxis, ShareAxis, new_plot, paint_with
from satview.gui.theme import Theme, colour
from satview.gui.widgets import CutLabel
from satview.session.comparison import Overlaid

_ROOM: Final = 1.08  # height of the plot in that of the tallest bar
_RIGHT_PX: Final = 20  # half of the text at the last tick
_LINE_PX: Final = 2
_SIGNS: Final = ("\N{BLACK VERTICAL RECTANGLE} before", "\N{BOX DRAWINGS LIGHT HORIZONTAL} after")


class OverlayPlot(QWidget):
    """Shares of occurrences by their duration, so that traces of different lengths compare.

    Attributes:
        plot: The pyqtgraph widget.
        heads: What is said of the first trace and of the second.
        shares: What is drawn: float64 (bins,), of the first trace and the second; None = nothing.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._overlaid: Overlaid | None = None
        self.shares: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        self._x_axis = DurationAxis("bottom")
        self.plot = new_plot(self._x_axis, ShareAxis("left"), "Histograms of both traces")
        self.plot.getPlotItem().layout.setContentsMargins(0, 0, _RIGHT_PX, 0)
        self.heads = CutLabel(self), CutLabel(self)
        head = QVBoxLayout()  # below each other: they fit a narrow plot
        head.setContentsMargins(8, 4, 8, 2)
        head.setSpacing(0)
        for label in self.heads:
            label.setMinimumWidth(1)
            head.addWidget(label)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self.plot, 1)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        paint_with(self.plot, theme)
        self._draw()

    def show_overlaid(self, overlaid: Overlaid | None) -> None:
        """Draw other histograms, or none."""
        self._overlaid = overlaid
        self._draw()

    def _draw(self) -> None:
        self.plot.clear()
        self.shares = None
        overlaid, theme = self._overlaid, self._theme
        if overlaid is None or not any(map(len, overlaid.sides)):
            return
        bars = histogram(np.concatenate(overlaid.sides))
        edges, bins = bars.edges_log10, len(bars.counts)
        split = np.split(bars.bin, [len(overlaid.sides[0])])
        old, new = (np.bincount(part, minlength=bins) / max(1, len(part)) for part in split)
        self.shares = old, new
        self.plot.addItem(
            pg.BarGraphItem(x0=edges[:-1], x1=edges[1:], y0=0, height=old, brush=colour(theme.faint, 150),
                            pen=pg.mkPen(colour(theme.base)))
        )  # fmt: skip
        # A histogram with an empty bin at either end, so that its outline comes down to the axis.
        width = float(edges[1] - edges[0])
        outline = np.concatenate(([edges[0] - width], edges, [edges[-1] + width]))
        self.plot.addItem(
            pg.PlotCurveItem(outline, np.concatenate(([0.0], new, [0.0])), stepMode="center",
                             pen=pg.mkPen(colour(theme.accent), width=_LINE_PX))
        )  # fmt: skip
        for side, (values, rgb) in enumerate(zip(overlaid.sides, (theme.dim, theme.accent), strict=True)):
            self._mark_median(side, values, rgb)
        top = float(max(old.max(), new.max()))
        margin = 0.04 * float(edges[-1] - edges[0]) + width
        self.plot.setLimits(xMin=float(edges[0]) - margin, xMax=float(edges[-1]) + margin)
        self.plot.setXRange(float(edges[0]) - width, float(edges[-1]) + width, padding=0.03)
        self.plot.setYRange(0, top * _ROOM, padding=0)

    def _mark_median(self, side: int, values: NDArray[np.int64], rgb: int) -> None:
        """Draw a line at the median of one trace, and say it above the plot, where it overprints nothing."""
        median_ns = int(np.percentile(values, 50, method="inverted_cdf")) if len(values) else 0
        label = self.heads[side]
        palette = label.palette()
        palette.setColor(QPalette.ColorRole.WindowText, colour(rgb))
        label.setPalette(palette)
        if not len(values):
            label.setText(f"{_SIGNS[side]}: none")
            return
        label.setText(f"{_SIGNS[side]}: half within {format_duration(median_ns)}, of {len(values):,}")
        style = Qt.PenStyle.DashLine if side == 0 else Qt.PenStyle.SolidLine
        self.plot.addItem(
            pg.InfiniteLine(pos=math.log10(max(1, median_ns)), angle=90, pen=pg.mkPen(colour(rgb), style=style))
        )
