"""A histogram of durations with its percentiles, and the worst of what a bar counts."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from satview.analysis.times.occurrences import event_of
from satview.base.safe_text import visible_line
from satview.base.time_text import format_duration, format_moment
from satview.gui.plots.axes import CountAxis, DurationAxis, height, new_plot, paint_with
from satview.gui.theme import Theme, colour
from satview.gui.widgets import PlainLabel
from satview.session.open_trace import OpenTrace
from satview.session.panels.plots import DurationsPlotted

WORST: Final = 20
_WORST_PX: Final = 400
_RIGHT_PX: Final = 20  # half of the text at the last tick
_EVENT: Final = int(Qt.ItemDataRole.UserRole)
_LEAST_SHARE: Final = 0.04  # of the height: where the lowest text of a mark may be
_ROOM: Final = 1.7  # height of the plot in that of the tallest bar


class DurationPlot(QWidget):
    """The histogram and the list of the worst.

    Attributes:
        plot: The pyqtgraph widget.
        worst: The longest of the clicked bar, or of all.
        bar: Number of the clicked bar; None = all count.

    Signals:
        event_requested: A line was clicked: row of the event that began it.
    """

    event_requested = Signal(int)

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened, self._theme = opened, theme
        self._plotted: DurationsPlotted | None = None
        self.bar: int | None = None
        self._x_axis, self._y_axis = DurationAxis("bottom"), CountAxis("left")
        self.plot = new_plot(self._x_axis, self._y_axis, "Histogram of durations")
        self.plot.getPlotItem().layout.setContentsMargins(0, 0, _RIGHT_PX, 0)
        self.plot.scene().sigMouseClicked.connect(self._on_click)
        self._marks: list[pg.InfiniteLine] = []
        self.plot.getViewBox().sigResized.connect(self._space_marks)
        self.head = PlainLabel(self)
        self.head.setProperty("role", "dim")
        self.head.setContentsMargins(8, 4, 8, 4)
        self.worst = QTreeWidget(self)
        self.worst.setAccessibleName("Longest")
        self.worst.setHeaderLabels(["Duration", "Begins", "Thread"])
        self.worst.setRootIsDecorated(False)
        self.worst.setUniformRowHeights(True)
        self.worst.itemClicked.connect(self._on_item)
        self.worst.itemActivated.connect(self._on_item)
        for column, width_px in enumerate((90, 140)):
            self.worst.setColumnWidth(column, width_px)
        side = QWidget(self)
        side.setFixedWidth(_WORST_PX)
        beside = QVBoxLayout(side)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.setSpacing(0)
        beside.addWidget(self.head)
        beside.addWidget(self.worst, 1)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.plot, 1)
        layout.addWidget(side)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        paint_with(self.plot, theme)
        self._draw()

    def show_durations(self, plotted: DurationsPlotted) -> None:
        """Draw a histogram, and list the longest of all."""
        self._plotted, self.bar = plotted, None
        self._draw()
        self._fill()
        bars = plotted.histogram
        if bars is not None:
            edges, top = bars.edges_log10, height(int(bars.counts.max()))
            margin = 0.04 * float(edges[-1] - edges[0])
            self.plot.setLimits(xMin=float(edges[0]) - margin, xMax=float(edges[-1]) + margin)
            self.plot.setXRange(float(edges[0]), float(edges[-1]), padding=0.03)
            self.plot.setYRange(0, top * _ROOM, padding=0)  # room for the texts of the marks

    def forget_positions(self) -> None:
        """List nothing until the next histogram: events have other rows in another reading of the file."""
        self.worst.clear()
        self._plotted = None

    def select_bar(self, bar: int | None) -> None:
        """List the longest of one bar, or of all (None)."""
        self.bar = bar
        self._draw()
        self._fill()

    def _draw(self) -> None:
        self.plot.clear()
        self._marks = []
        plotted, theme = self._plotted, self._theme
        if plotted is None or plotted.histogram is None:
            return
        counted = plotted.histogram
        tall = np.log10(counted.counts + 1)
        brushes = [colour(theme.accent)] * len(tall)
        if self.bar is not None:
            brushes = [colour(theme.accent, 255 if bar == self.bar else 90) for bar in range(len(tall))]
        edges = counted.edges_log10
        bars = pg.BarGraphItem(
            x0=edges[:-1], x1=edges[1:], y0=0, height=tall, brushes=brushes, pen=pg.mkPen(colour(theme.base))
        )
        self.plot.addItem(bars)
        for (name, duration_ns), rgb in zip(plotted.marks, (theme.dim,) * 4 + (theme.error,), strict=True):
            place = math.log10(max(1, duration_ns))
            side = 0.0 if place < edges[0] + 0.25 * (edges[-1] - edges[0]) else 1.0  # where the text has room
            line = pg.InfiniteLine(
                pos=place,
                angle=90,
                pen=pg.mkPen(colour(rgb), style=Qt.PenStyle.DashLine),
                label=f"{name} {format_duration(duration_ns)}",
                labelOpts={
                    "color": colour(theme.text if rgb == theme.dim else rgb),
                    "fill": colour(theme.base, 215),
                    "anchors": [(side, 0.5), (side, 0.5)],
                },
            )
            self.plot.addItem(line)
            self._marks.append(line)
        self._space_marks()

    @Slot()
    def _space_marks(self) -> None:
        """Write the texts of marks one below the other, each as far from the last as it is high."""
        height_px = max(1.0, float(self.plot.getViewBox().height()))
        for number, line in enumerate(self._marks):
            text_px = float(line.label.boundingRect().height())
            line.label.setPosition(max(_LEAST_SHARE, 1 - (number + 0.6) * text_px / height_px))

    def _fill(self) -> None:
        self.worst.clear()
        plotted, trace = self._plotted, self._opened.trace
        if plotted is None or plotted.histogram is None:
            return
        durations, bars = plotted.found, plotted.histogram
        among = bars.bin == self.bar if self.bar is not None else None
        for row in durations.longest(WORST, among).tolist():
            start, thread = int(durations.start[row]), int(durations.thread[row])
            event = int(durations.event[row])
            item = QTreeWidgetItem(
                self.worst,
                [
                    format_duration(int(plotted.duration_ns[row])),
                    format_moment(start, trace.clock),
                    visible_line(trace.thread_name(thread)) if thread else "",
                ],
            )
            item.setData(0, _EVENT, event if event >= 0 else event_of(trace, start, thread))
            item.setTextAlignment(0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if self.bar is None:
            self.head.setText(f"Longest {min(WORST, len(durations))} of all {len(durations):,}")
        else:
            count = int(bars.counts[self.bar])
            ends = (format_duration(round(10 ** float(edge)), 3) for edge in bars.edges_log10[self.bar : self.bar + 2])
            self.head.setText(f"Longest {min(WORST, count)} of {count:,} in {' to '.join(ends)}")

    def _on_click(self, click: pg.GraphicsScene.mouseEvents.MouseClickEvent) -> None:
        """List what the bar under the mouse counts; beside the bars, the longest of all."""
        bars = self._plotted.histogram if self._plotted is not None else None
        box = self.plot.getViewBox()
        if bars is None or click.button() != Qt.MouseButton.LeftButton:
            return
        if box.sceneBoundingRect().contains(click.scenePos()):
            number = int(np.searchsorted(bars.edges_log10, box.mapSceneToView(click.scenePos()).x(), side="right")) - 1
            self.select_bar(number if 0 <= number < len(bars.counts) and bars.counts[number] else None)

    @Slot(QTreeWidgetItem, int)
    def _on_item(self, item: QTreeWidgetItem, _column: int = 0) -> None:
        event = item.data(0, _EVENT)
        if isinstance(event, int):
            self.event_requested.emit(event)
