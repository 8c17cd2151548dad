"""Draws histograms: of durations with percentiles and a list of the longest, of response times, of two traces."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt, Signal, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QHBoxLayout, QTreeWidgetItem, QVBoxLayout, QWidget

from satview.analysis.times.message_times import event_of, histogram
from satview.answers.activity_lanes import IN_TIME, LATE
from satview.base.safe_text import visible_line
from satview.base.time import format_duration, format_moment
from satview.gui.colours import state_colour
from satview.gui.plots.time_plot import CountAxis, DurationAxis, ShareAxis, ThemedPlot, height
from satview.gui.theme import Theme, colour
from satview.gui.widgets import ElidedLabel, PlainLabel, line_up, list_tree
from satview.session.comparison import Overlaid
from satview.session.open_trace import OpenTrace
from satview.session.panels.plots import DurationsPlotted, ExplainedInstance

WORST: Final = 20
_WORST_PX: Final = 400
_RIGHT_PX: Final = 20  # for half of the text at the last tick
_EVENT: Final = int(Qt.ItemDataRole.UserRole)
_LEAST_SHARE: Final = 0.04  # lowest position of the text of a mark, as a share of the height
# Heights of plots relative to the tallest bar: with texts of marks, with the text of the deadline, without texts.
_ROOM_FOR_MARKS: Final = 1.7
_ROOM_FOR_DEADLINE: Final = 1.25
_ROOM_OVERLAID: Final = 1.08
_MARGIN: Final = 0.04  # margin on both sides of responses, as a share of the width
_TEXT_AT: Final = 0.93  # position of the text of the deadline, as a share of the height
_LINE_PX: Final = 2
_SIGNS: Final = ("\N{BLACK VERTICAL RECTANGLE} before", "\N{BOX DRAWINGS LIGHT HORIZONTAL} after")


class DurationPlot(ThemedPlot):
    """A histogram with a list of the longest durations, of the selected bar (its number), or of all (None).

    Signals:
        event_requested: A row of the list was clicked; sends the row of the event that begins that duration.
    """

    event_requested = Signal(int)

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(DurationAxis("bottom"), CountAxis("left"), "Histogram of durations", theme, parent)
        self._opened = opened
        self._plotted: DurationsPlotted | None = None
        self.bar: int | None = None
        self.plot.getPlotItem().layout.setContentsMargins(0, 0, _RIGHT_PX, 0)
        self._marks: list[pg.InfiniteLine] = []
        self.plot.getViewBox().sigResized.connect(self._space_marks)
        self.head = PlainLabel(self, role="dim")
        self.head.setContentsMargins(8, 4, 8, 4)
        self.worst = list_tree(self, "Longest", ["Duration", "Begins", "Thread"])
        self.worst.itemClicked.connect(self._on_item)
        self.worst.itemActivated.connect(self._on_item)
        for column, width_px in enumerate((90, 140)):
            self.worst.setColumnWidth(column, width_px)
        side = QWidget(self)
        side.setFixedWidth(_WORST_PX)
        line_up(QVBoxLayout(side), self.head, (self.worst, 1), margins=(0, 0, 0, 0), spacing=0)
        line_up(QHBoxLayout(self), (self.plot, 1), side, margins=(0, 0, 0, 0), spacing=0)
        self.set_theme(theme)

    def show_durations(self, plotted: DurationsPlotted) -> None:
        """Draw a histogram, and list the longest of all durations."""
        self._plotted, self.bar = plotted, None
        self.draw()
        self._fill()
        bars = plotted.histogram
        if bars is not None:
            edges, top = bars.edges_log10, height(int(bars.counts.max()))
            margin = 0.04 * float(edges[-1] - edges[0])
            self.plot.setLimits(xMin=float(edges[0]) - margin, xMax=float(edges[-1]) + margin)
            self.plot.setXRange(float(edges[0]), float(edges[-1]), padding=0.03)
            self.plot.setYRange(0, top * _ROOM_FOR_MARKS, padding=0)

    def forget_positions(self) -> None:
        """Clear the list of longest durations until the next histogram, because a refresh may change rows of events."""
        self.worst.clear()
        self._plotted = None

    def select_bar(self, bar: int | None) -> None:
        """Select a bar, and list the longest durations in that bar; None = of all bars."""
        self.bar = bar
        self.draw()
        self._fill()

    def draw(self) -> None:
        """Draw the data."""
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
            position = math.log10(max(1, duration_ns))
            side = 0.0 if position < edges[0] + 0.25 * (edges[-1] - edges[0]) else 1.0  # the side with room
            line = pg.InfiniteLine(
                pos=position,
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
        """Place the texts of percentile marks one below the other, so that none hides another."""
        height_px = max(1.0, float(self.plot.getViewBox().height()))
        for number, line in enumerate(self._marks):
            text_px = float(line.label.boundingRect().height())
            line.label.setPosition(max(_LEAST_SHARE, 1 - (number + 0.6) * text_px / height_px))

    def _fill(self) -> None:
        self.worst.clear()
        plotted, trace = self._plotted, self._opened.trace
        if plotted is None or plotted.histogram is None:
            return
        durations, bars = plotted.occurrences, plotted.histogram
        among = bars.bin == self.bar if self.bar is not None else None
        for row in durations.longest(WORST, among).tolist():
            start, thread = int(durations.start[row]), int(durations.thread[row])
            event = int(durations.event[row])
            name = visible_line(trace.thread_name(thread)) if thread else ""
            length = format_duration(int(plotted.duration_ns[row]))
            item = QTreeWidgetItem(self.worst, [length, format_moment(start, trace.clock), name])
            item.setData(0, _EVENT, event if event >= 0 else event_of(trace, start, thread))
            item.setTextAlignment(0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if self.bar is None:
            self.head.setText(f"Longest {min(WORST, len(durations))} of all {len(durations):,}")
        else:
            count = int(bars.counts[self.bar])
            ends = (format_duration(round(10 ** float(edge)), 3) for edge in bars.edges_log10[self.bar : self.bar + 2])
            self.head.setText(f"Longest {min(WORST, count)} of {count:,} in {' to '.join(ends)}")

    def point_clicked(self, point: QPointF) -> None:
        """Select the bar at a point; clear the selection for a point beside the bars."""
        bars = self._plotted.histogram if self._plotted is not None else None
        if bars is not None:
            number = int(np.searchsorted(bars.edges_log10, point.x(), side="right")) - 1
            self.select_bar(number if 0 <= number < len(bars.counts) and bars.counts[number] else None)

    @Slot(QTreeWidgetItem, int)
    def _on_item(self, item: QTreeWidgetItem, _column: int = 0) -> None:
        event = item.data(0, _EVENT)
        if isinstance(event, int):
            self.event_requested.emit(event)


class ResponsePlot(ThemedPlot):
    """A histogram of the response times of an activity.

    Signals:
        row_requested: A bar was clicked; sends the row of the worst instance in the bar.
    """

    row_requested = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(DurationAxis("bottom"), CountAxis("left"), "Histogram of responses", theme, parent)
        self._explained: ExplainedInstance | None = None
        self.plot.getPlotItem().layout.setContentsMargins(0, 4, _RIGHT_PX, 0)
        line_up(QVBoxLayout(self), self.plot, margins=(0, 0, 0, 0))
        self.set_theme(theme)

    def show_responses(self, shown: ExplainedInstance | None) -> None:
        """Draw the response times of an activity; None draws nothing."""
        is_other = shown is None or self._explained is None or shown.responses is not self._explained.responses
        self._explained = shown
        self.draw()
        if is_other and shown is not None and shown.responses is not None:
            drawn, deadline = shown.responses, self._deadline_log10
            edges = [float(edge) for edge in drawn.edges_log10[[0, -1]]] + ([] if deadline is None else [deadline])
            margin = _MARGIN * (max(edges) - min(edges))
            self.plot.setLimits(xMin=min(edges) - margin, xMax=max(edges) + margin)
            self.plot.setXRange(min(edges) - margin, max(edges) + margin, padding=0)
            self.plot.setYRange(0, height(int(drawn.counts.max())) * _ROOM_FOR_DEADLINE, padding=0)

    @property
    def _deadline_log10(self) -> float | None:
        if self._explained is None:
            return None
        late = self._explained.late
        cycles = late.learned.activities[self._explained.activity].deadline_cycles
        return math.log10(max(1, late.trace.clock.duration_ns(cycles))) if cycles > 0 else None

    def draw(self) -> None:
        """Draw the data."""
        self.plot.clear()
        drawn = self._explained.responses if self._explained is not None else None
        if self._explained is None or drawn is None:
            return
        theme, deadline = self._theme, self._deadline_log10
        in_time = theme.accent if deadline is None else state_colour(IN_TIME, theme) or 0
        late = state_colour(LATE, theme) or 0
        brushes = [colour(in_time if bar < drawn.first_beyond else late) for bar in range(len(drawn.counts))]
        pens = [pg.mkPen(colour(theme.base))] * len(drawn.counts)
        if self._explained.row < len(drawn.bin):  # outline the bar of the explained instance
            pens[int(drawn.bin[self._explained.row])] = pg.mkPen(colour(theme.text), width=2)
        edges, tall = drawn.edges_log10, np.log10(drawn.counts + 1)
        self.plot.addItem(pg.BarGraphItem(x0=edges[:-1], x1=edges[1:], y0=0, height=tall, brushes=brushes, pens=pens))
        if deadline is not None:
            low, high = min(float(edges[0]), deadline), max(float(edges[-1]), deadline)
            side = (deadline - low) / (high - low) if high > low else 0.5  # anchor that keeps the text inside the plot
            words = {"color": colour(theme.text), "fill": colour(theme.base, 215), "position": _TEXT_AT,
                     "anchors": [(side, 0.5), (side, 0.5)]}  # fmt: skip
            pen = pg.mkPen(colour(theme.text), style=Qt.PenStyle.DashLine)
            name = f"deadline {format_duration(round(10**deadline))}"
            self.plot.addItem(pg.InfiniteLine(pos=deadline, angle=90, pen=pen, label=name, labelOpts=words))

    def point_clicked(self, point: QPointF) -> None:
        """Send `row_requested` with the worst instance of the bar at a point."""
        drawn = self._explained.responses if self._explained is not None else None
        if drawn is not None:
            bar = int(np.searchsorted(drawn.edges_log10, point.x(), side="right")) - 1
            rows = np.flatnonzero(drawn.bin == bar)  # the worst first, as in the table
            if len(rows):
                self.row_requested.emit(int(rows[0]))


class OverlayPlot(ThemedPlot):
    """Histograms of the same durations in two traces, as shares, so that traces of different lengths compare.

    Attributes:
        shares: Drawn shares of the first and the second trace, float64 (bins,); None = nothing is drawn.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(DurationAxis("bottom"), ShareAxis("left"), "Histograms of both traces", theme, parent)
        self._overlaid: Overlaid | None = None
        self.shares: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        self.plot.getPlotItem().layout.setContentsMargins(0, 0, _RIGHT_PX, 0)
        self.heads = ElidedLabel(self), ElidedLabel(self)
        for label in self.heads:
            label.setMinimumWidth(1)
        head = line_up(QVBoxLayout(), *self.heads, margins=(8, 4, 8, 2), spacing=0)  # stacked, for narrow plots
        line_up(QVBoxLayout(self), head, (self.plot, 1), margins=(0, 0, 0, 0), spacing=0)
        self.set_theme(theme)

    def show_overlaid(self, overlaid: Overlaid | None) -> None:
        """Draw the histograms of both traces; None draws nothing."""
        self._overlaid = overlaid
        self.draw()

    def draw(self) -> None:
        """Draw the data."""
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
        # With an empty bin at either end, so that the outline goes down to the axis.
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
        self.plot.setYRange(0, top * _ROOM_OVERLAID, padding=0)

    def _mark_median(self, side: int, values: NDArray[np.int64], rgb: int) -> None:
        """Draw a line at the median of a trace, and write the median above the plot."""
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
