"""A histogram of the responses of an activity: those beyond the deadline red; a bar stands for its worst instance."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from satview.answers.activity_lanes import IN_TIME, LATE
from satview.base.time_text import format_duration
from satview.gui.colours import state_colour
from satview.gui.plots.axes import CountAxis, DurationAxis, height, new_plot, paint_with
from satview.gui.theme import Theme, colour
from satview.session.panels.late_view import ExplainedInstance

_RIGHT_PX: Final = 20  # half of the text at the last tick
_ROOM: Final = 1.25  # height of the plot in that of the tallest bar: for the text of the deadline
_MARGIN: Final = 0.04  # of the width, on both sides
_TEXT_AT: Final = 0.93  # of the height


class ResponsePlot(QWidget):
    """The histogram.

    Attributes:
        plot: The pyqtgraph widget.

    Signals:
        row_requested: A bar was clicked: the row of the worst instance that it counts.
    """

    row_requested = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shown: ExplainedInstance | None = None
        self.plot = new_plot(DurationAxis("bottom"), CountAxis("left"), "Histogram of responses")
        self.plot.getPlotItem().layout.setContentsMargins(0, 4, _RIGHT_PX, 0)
        self.plot.scene().sigMouseClicked.connect(self._on_click)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.plot)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        paint_with(self.plot, theme)
        self._draw()

    def show_responses(self, shown: ExplainedInstance | None) -> None:
        """Draw the responses of an activity; None draws nothing."""
        is_other = shown is None or self._shown is None or shown.responses is not self._shown.responses
        self._shown = shown
        self._draw()
        if is_other and shown is not None and shown.responses is not None:
            drawn, deadline = shown.responses, self._deadline_log10
            edges = [
                float(drawn.edges_log10[0]),
                float(drawn.edges_log10[-1]),
                *([] if deadline is None else [deadline]),
            ]
            margin = _MARGIN * (max(edges) - min(edges))
            self.plot.setLimits(xMin=min(edges) - margin, xMax=max(edges) + margin)
            self.plot.setXRange(min(edges) - margin, max(edges) + margin, padding=0)
            self.plot.setYRange(0, height(int(drawn.counts.max())) * _ROOM, padding=0)

    @property
    def _deadline_log10(self) -> float | None:
        if self._shown is None:
            return None
        late, cycles = self._shown.late, self._shown.late.learned.activities[self._shown.activity].deadline_cycles
        return math.log10(max(1, late.trace.clock.duration_ns(cycles))) if cycles > 0 else None

    def _draw(self) -> None:
        self.plot.clear()
        drawn = self._shown.responses if self._shown is not None else None
        if self._shown is None or drawn is None:
            return
        theme, deadline = self._theme, self._deadline_log10
        in_time = theme.accent if deadline is None else state_colour(IN_TIME, theme) or 0
        late = state_colour(LATE, theme) or 0
        brushes = [colour(in_time if bar < drawn.first_beyond else late) for bar in range(len(drawn.counts))]
        pens = [pg.mkPen(colour(theme.base))] * len(drawn.counts)
        if self._shown.row < len(drawn.bin):  # that of the instance that is explained
            pens[int(drawn.bin[self._shown.row])] = pg.mkPen(colour(theme.text), width=2)
        edges, tall = drawn.edges_log10, np.log10(drawn.counts + 1)
        self.plot.addItem(pg.BarGraphItem(x0=edges[:-1], x1=edges[1:], y0=0, height=tall, brushes=brushes, pens=pens))
        if deadline is not None:
            low, high = min(float(edges[0]), deadline), max(float(edges[-1]), deadline)
            side = (deadline - low) / (high - low) if high > low else 0.5  # where the line is: the text is never cut
            words = {"color": colour(theme.text), "fill": colour(theme.base, 215), "position": _TEXT_AT,
                     "anchors": [(side, 0.5), (side, 0.5)]}  # fmt: skip
            pen = pg.mkPen(colour(theme.text), style=Qt.PenStyle.DashLine)
            name = f"deadline {format_duration(round(10**deadline))}"
            self.plot.addItem(pg.InfiniteLine(pos=deadline, angle=90, pen=pen, label=name, labelOpts=words))

    def _on_click(self, click: pg.GraphicsScene.mouseEvents.MouseClickEvent) -> None:
        drawn, box = self._shown.responses if self._shown is not None else None, self.plot.getViewBox()
        if drawn is None or click.button() != Qt.MouseButton.LeftButton:
            return
        if box.sceneBoundingRect().contains(click.scenePos()):
            bar = int(np.searchsorted(drawn.edges_log10, box.mapSceneToView(click.scenePos()).x(), side="right")) - 1
            rows = np.flatnonzero(drawn.bin == bar)  # the worst first, as in the table
            if len(rows):
                self.row_requested.emit(int(rows[0]))
