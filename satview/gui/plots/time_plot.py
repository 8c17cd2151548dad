"""Plots over time, below the lanes and on their time axis; and the axes and colours of all plots."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QBrush, QFontMetrics, QGuiApplication, QIcon, QPainter, QPixmap, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QListWidget, QListWidgetItem, QWidget

from satview.analysis.times.cpu_times import NOBODY, OTHERS, LoadBy
from satview.base.safe_text import percent, tool_tip, visible_line
from satview.base.time import TimeWindow, format_duration
from satview.events.states import INTERRUPT
from satview.gui.colours import class_colour, mixed, process_colour, state_colour
from satview.gui.swimlane.scale import TimeScale, ticks
from satview.gui.theme import Theme, colour
from satview.gui.widgets import line_up, named
from satview.session.open_trace import OpenTrace
from satview.session.panels.plots import CountsPlotted, LoadPlotted
from satview.session.panels.sql import Drawing
from satview.session.viewport import SHORTEST_CYCLES

# Parts shared by all plots: axes with times and counts in the formats of the window, colours, no menus.
#
# Importing pyqtgraph takes 0.3 s: only the panels that plot import this module, once they are shown.


LEFT_PX: Final = 48
_Levels = list[tuple[float, list[float]]]

# pyqtgraph's exit handler would visit all objects of the interpreter; the window has closed its plots by then.
pg.setConfigOptions(exitCleanup=False, antialias=False)


class PlotTimeAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no type hints
    """A time axis with the ticks of the ruler. Positions are cycles since `origin`, which floats represent exactly.

    Attributes:
        origin: Time of position 0, cycles; the same after the trace is refreshed.
    """

    def __init__(self, opened: OpenTrace) -> None:
        super().__init__("bottom")
        self._opened = opened
        self.origin = opened.trace.window.start
        self._texts: dict[float, str] = {}

    def tickValues(self, minVal: float, maxVal: float, size: float) -> _Levels:  # noqa: N803
        """Return the positions of the ticks that the ruler would have, labelled ticks first."""
        start, end = self.origin + math.floor(minVal), self.origin + math.ceil(maxVal)
        if end <= start or size < 1:
            return []
        window = TimeWindow(start, end)
        scale, width_of = TimeScale(window, int(size)), QFontMetrics(QGuiApplication.font()).horizontalAdvance
        marks = [
            # A text that the right edge would cut off, and so perhaps its unit, is left out.
            (
                tick.x / size * window.length + start - self.origin,
                tick.text * (tick.x + width_of(tick.text) / 2 <= size),
            )
            for tick in ticks(scale, self._opened.trace.clock)
        ]
        marks = [(x, text) for x, text in marks if minVal <= x <= maxVal]
        self._texts = {x: text for x, text in marks if text}
        return [(2, [x for x, text in marks if text]), (1, [x for x, text in marks if not text])]

    def tickStrings(self, values: list[float], _scale: float, _spacing: float) -> list[str]:
        """Return the texts of labelled ticks, as on the ruler."""
        return [self._texts.get(value, "") for value in values]


class DurationAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no type hints
    """A logarithmic axis of durations: positions are the decimal logarithm of nanoseconds."""

    def tickValues(self, minVal: float, maxVal: float, size: float) -> _Levels:  # noqa: N803
        """Return labelled ticks at powers of ten (with room, also at 2 and 5 times those), and minor ticks between."""
        decades = range(math.floor(minVal), math.ceil(maxVal) + 1)
        has_room = size > 200 * max(0.1, maxVal - minVal)
        factors = (1, 2, 5) if has_room else (1,)
        if size < 45 * (maxVal - minVal):
            decades = range(math.floor(minVal / 3) * 3, math.ceil(maxVal) + 1, 3)
        large = [decade + math.log10(factor) for decade in decades for factor in factors]
        small = [
            decade + math.log10(factor)
            for decade in range(math.floor(minVal), math.ceil(maxVal))
            for factor in range(1, 10)
        ]
        return [(1, [x for x in large if minVal <= x <= maxVal]), (0.1, [x for x in small if minVal <= x <= maxVal])]

    def tickStrings(self, values: list[float], _scale: float, spacing: float) -> list[str]:
        """Return durations as formatted in tables, without decimals."""
        if spacing < 1:
            return ["" for _ in values]
        return [format_duration(round(10 ** max(value, 0.0)), 1) for value in values]


class CountAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no type hints
    """A logarithmic axis of counts: a count n has position log10(n + 1), so that 1 is visible beside thousands."""

    def tickValues(self, minVal: float, maxVal: float, _size: float) -> _Levels:  # noqa: N803
        """Return the positions of 0 and powers of ten."""
        counts = [0, *(10**decade for decade in range(max(1, math.ceil(maxVal) + 1)))]
        return [(1, [y for y in map(height, counts) if minVal <= y <= maxVal])]

    def tickStrings(self, values: list[float], _scale: float, _spacing: float) -> list[str]:
        """Return the count at each position, as text."""
        return [f"{round(10**value - 1):,}" for value in values]


class ShareAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no type hints
    """An axis of shares in per cent."""

    def tickStrings(self, values: list[float], _scale: float, spacing: float) -> list[str]:
        """Return percentages, with decimals if ticks are close."""
        decimals = 0 if spacing >= 0.01 else 1 if spacing >= 0.001 else 2
        return [f"{100 * value:.{decimals}f} %" for value in values]


def height(count: float) -> float:
    """Return the position of a count on a `CountAxis`."""
    return math.log10(count + 1)


class ThemedPlot(QWidget):
    """Base class of plots in the colours of a theme, which the mouse moves along x only.

    Attributes:
        plot: The pyqtgraph widget; without a left axis of its own, it has plain numbers.
    """

    def __init__(
        self, x_axis: pg.AxisItem, y_axis: pg.AxisItem | None, name: str, theme: Theme, parent: QWidget | None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self.plot = pg.PlotWidget(axisItems={"bottom": x_axis} | ({"left": y_axis} if y_axis is not None else {}))
        self.plot.setAccessibleName(name)
        self.plot.setMenuEnabled(False)
        self.plot.hideButtons()
        self.plot.setMouseEnabled(x=True, y=False)
        self.plot.getAxis("left").setWidth(LEFT_PX)
        self.plot.getAxis("left").enableAutoSIPrefix(False)
        x_axis.setStyle(hideOverlappingLabels=False)  # otherwise labels at the ends are hidden
        self.plot.setFrameShape(self.plot.Shape.NoFrame)
        self.plot.scene().sigMouseClicked.connect(self._on_mouse)

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme = theme
        self.plot.setBackground(colour(theme.base))
        for side in ("bottom", "left"):
            axis = self.plot.getAxis(side)
            axis.setPen(pg.mkPen(colour(theme.line)))
            axis.setTextPen(pg.mkPen(colour(theme.dim)))
        self.plot.showGrid(x=False, y=False)
        self.draw()

    def draw(self) -> None:
        """Draw the data; implemented by subclasses."""

    def _on_mouse(self, click: pg.GraphicsScene.mouseEvents.MouseClickEvent) -> None:
        box = self.plot.getViewBox()
        if click.button() == Qt.MouseButton.LeftButton and box.sceneBoundingRect().contains(click.scenePos()):
            self.point_clicked(box.mapSceneToView(click.scenePos()))

    def point_clicked(self, point: QPointF) -> None:
        """Act on a click at a point, in the units of the axes."""


# Plots over time, below the lanes and on their time axis: event counts, CPU load, and query results.


_LEGEND_LEAST_PX: Final = 120
_BAR_MOST_PX: Final = 30  # upper limit of the width of the lanes' scroll bar
_SWATCH_PX: Final = 11
_ROOMY_PX: Final = 110


class TimePlot(ThemedPlot):
    """Base class: a plot with a legend, whose x axis is linked with the window of the lanes.

    Signals:
        time_requested: A bin was clicked; sends the time of the middle of the bin, cycles.
    """

    time_requested = Signal(object)  # an int; Qt's own int has 32 bits

    lowest: float | None = 0  # lower limit of the left axis; None = no limit

    def __init__(
        self, opened: OpenTrace, left_px: int, theme: Theme, title: str, left: str, parent: QWidget | None = None
    ) -> None:
        """Create an empty plot beside a legend as wide as the label column of the lanes, `left_px`."""
        self._axis = PlotTimeAxis(opened)
        super().__init__(self._axis, None, title, theme, parent)
        self._opened = opened
        self._is_following = False
        self.plot.setLabel("left", left)
        self.legend = named(QListWidget(self), f"{title}: what is drawn")
        self.set_left(left_px)
        self.legend.setIconSize(QSize(_SWATCH_PX, _SWATCH_PX))
        self.legend.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.legend.setStyleSheet("QListWidget { padding-left: 6px; }")
        self.legend.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.legend.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.legend.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        line_up(QHBoxLayout(self), self.legend, (self.plot, 1), margins=(0, 0, 0, 0), spacing=0)
        self.plot.getViewBox().sigXRangeChanged.connect(self._on_plot_moved)
        opened.viewport.window_changed.connect(self.follow)
        self.set_theme(theme)
        self.follow()

    def set_left(self, left_px: int) -> None:
        """Align the left edge of the plot with the lanes; the legend gets the width to the left of the axis."""
        self.legend.setFixedWidth(max(_LEGEND_LEAST_PX, left_px - LEFT_PX))

    @property
    def least_height_px(self) -> int:
        """Height that shows the whole legend, for pictures in files, which do not scroll."""
        return self.legend.count() * self.legend.sizeHintForRow(0) + 2 * self.legend.frameWidth()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Align the right edge with the lanes, and reduce the ticks of the left axis in a low plot."""
        super().resizeEvent(event)
        self.plot.getAxis("left").setTickDensity(1.0 if self.height() >= _ROOMY_PX else 0.5)
        self._end_with_lanes()

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """Edges of the drawn bins, int64 (bins + 1,), cycles; None without bins."""
        return None

    @Slot()
    def follow(self) -> None:
        """Show the time window of the lanes."""
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
        """Return times as positions on the time axis, float64 (n,)."""
        return (edges - self._axis.origin).astype(np.float64)

    def bin_clicked(self, number: int, height: float) -> None:
        """Send `time_requested` for the bin with this number; `height` is the clicked value of the left axis."""
        del height
        edges = self.edges
        assert edges is not None
        self.time_requested.emit((int(edges[number]) + int(edges[number + 1])) // 2)

    def add_line(self, brush: QBrush, text: str, position: int) -> None:
        """Add a line to the legend."""
        line = QListWidgetItem(self._swatch(brush), text)
        line.setToolTip(tool_tip(text))
        self.legend.insertItem(position, line)

    def _end_with_lanes(self) -> None:
        """Align the right edge with the lanes: leave out the width of their scroll bar if the plot is below them."""
        lanes_px = round(self._opened.viewport.width_px / self.devicePixelRatioF())
        left_over = self.width() - self.legend.width() - LEFT_PX - lanes_px
        right_px = left_over if 0 < left_over <= _BAR_MOST_PX else 0
        if self.contentsMargins().right() != right_px:
            self.setContentsMargins(0, 0, right_px, 0)

    def _on_plot_moved(self, _box: object, ends: tuple[float, float]) -> None:
        """Move the lanes after the plot was panned or zoomed."""
        if not self._is_following and math.isfinite(ends[0]) and math.isfinite(ends[1]):
            start = self._axis.origin + round(ends[0])
            self._opened.viewport.move(TimeWindow(start, max(start + 1, self._axis.origin + round(ends[1]))))
            self.follow()  # the viewport may have adjusted the window

    def point_clicked(self, point: QPointF) -> None:
        """Go to the clicked bin."""
        edges = self.edges
        if edges is not None:
            number = int(np.searchsorted(edges, self._axis.origin + math.floor(point.x()), side="right")) - 1
            if 0 <= number < len(edges) - 1:
                self.bin_clicked(number, point.y())

    def _swatch(self, brush: QBrush) -> QIcon:
        picture = QPixmap(_SWATCH_PX, _SWATCH_PX)
        picture.fill(colour(self._theme.base))
        painter = QPainter(picture)
        painter.fillRect(picture.rect(), brush)
        painter.end()
        return QIcon(picture)


# Event counts: a line for each kind of event.


class CountPlot(TimePlot):
    """The number of events per division, as a line for each kind of event.

    Signals:
        event_requested: A division was clicked; sends the row of its first event, for the line nearest to the click.
    """

    event_requested = Signal(int)

    def __init__(self, opened: OpenTrace, left_px: int, theme: Theme, parent: QWidget | None = None) -> None:
        self._plotted: CountsPlotted | None = None
        super().__init__(opened, left_px, theme, "Events over time", "Events", parent)

    def show_counts(self, plotted: CountsPlotted) -> None:
        """Set the counts to draw, and draw them."""
        self._plotted = plotted
        self.draw()

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """Edges of the divisions, cycles, int64 (n + 1,); None if nothing is plotted."""
        return None if self._plotted is None else self._plotted.divisions.edges

    def draw(self) -> None:
        """Draw the counts."""
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
        """Send `event_requested` with the first event of the clicked division, for the line nearest to the click."""
        assert self._plotted is not None
        divisions = self._plotted.divisions
        filled = np.flatnonzero(divisions.counts[:, number])
        if len(filled):
            nearest = filled[np.argmin(np.abs(divisions.counts[filled, number] - height))]
            self.event_requested.emit(int(divisions.first_row[nearest, number]))
        else:
            super().bin_clicked(number, height)

    def _colour(self, number: int, title: str) -> int:
        if self._plotted is not None and self._plotted.of_classes:
            return class_colour(title, self._theme.is_dark)
        return process_colour(number, self._theme.palette)


# CPU load: stacked bands.


_HATCH: Final = Qt.BrushStyle.BDiagPattern


class LoadPlot(TimePlot):
    """The load of the CPUs as stacked bands; the legend begins with the topmost band."""

    def __init__(self, opened: OpenTrace, left_px: int, theme: Theme, parent: QWidget | None = None) -> None:
        self._plotted: LoadPlotted | None = None
        super().__init__(opened, left_px, theme, "Load over time", "CPUs", parent)

    def show_load(self, plotted: LoadPlotted) -> None:
        """Set the load to draw, and draw it."""
        self._plotted = plotted
        self.draw()

    @property
    def edges(self) -> NDArray[np.int64] | None:
        """Edges of the bins of the load, cycles, int64 (n + 1,)."""
        return None if self._plotted is None else self._plotted.load.edges

    def draw(self) -> None:
        """Draw the load."""
        plotted = self._plotted
        if plotted is None:
            return
        load = plotted.load
        self.plot.clear()
        self.legend.clear()
        edges = self.positions(load.edges)
        low = np.zeros(len(edges) - 1)
        bands = list(zip(load.busy_cycles, self._brushes(plotted), plotted.titles, strict=True))
        interrupts, unknown = state_colour(INTERRUPT, self._theme), colour(self._theme.faint)
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
            self.add_line(brush, f"{percent(share)}  {visible_line(title)}", 0)
        self.legend.scrollToBottom()  # to the largest bands
        self.plot.setYRange(0, load.cpus * 1.04, padding=0)  # with room for the topmost number
        self.plot.getAxis("left").setTicks([[(cpu, str(cpu)) for cpu in _levels(load.cpus)]])

    def _brushes(self, plotted: LoadPlotted) -> list[QBrush]:
        """Return the brush of each band.

        Processes have their colours on CPU lanes, priorities have shades by rank, other subjects have hues by number.
        """
        load, theme = plotted.load, self._theme
        rows = load.subjects.tolist()
        value_of, others = self._opened.timeline.process_value, mixed(theme.base, theme.text, 0.35)
        steps, ends = max(1, len(rows) - 1), (theme.accent, mixed(theme.base, theme.accent, 0.18))
        colours: list[int | None] = []  # None = the colour of what is not known
        for number, row in enumerate(rows):
            if load.by in (LoadBy.PROCESS, LoadBy.THREAD) and row == OTHERS:
                colours.append(others)
            elif load.by is LoadBy.PROCESS:
                colours.append(state_colour(value_of(row), theme) if row > 0 else None)
            elif load.by is LoadBy.THREAD:
                colours.append(process_colour(number, theme.palette) if row != NOBODY else None)
            elif load.by in (LoadBy.PARTITION, LoadBy.CPU):
                colours.append(process_colour(row, theme.palette) if row >= 0 else None)
            else:
                colours.append(mixed(*ends, number / steps) if row >= 0 else None)
        return [QBrush(colour(theme.faint if rgb is None else rgb)) for rgb in colours]


def _levels(cpus: int) -> range:
    """Return the ticks of the left axis in CPUs, at most about eight."""
    return range(0, cpus + 1, max(1, math.ceil(cpus / 8)))


# Query results: values over time, or intervals as lanes.


_POINTS: Final = 20_000  # limit of points of all groups
_NEAR_PX: Final = 12
_BAR: Final = 0.34  # half of a lane's height
_SYMBOL_PX: Final = 5
_HUES: Final = (0, 11, 7, 18, 20, 9, 13, 2, 4, 15, 17, 6)  # hues of processes, with distant neighbours


class ResultPlot(TimePlot):
    """A plot of a query result.

    Signals:
        row_requested: A point or interval was clicked; sends its row of the result.
    """

    row_requested = Signal(int)

    lowest = None

    def __init__(self, opened: OpenTrace, left_px: int, theme: Theme, parent: QWidget | None = None) -> None:
        self._drawing: Drawing | None = None
        self._value: str | None = None  # None = lanes
        super().__init__(opened, left_px, theme, "Result of the query", "", parent)
        self._redraw = QTimer(self, singleShot=True, interval=0)
        self._redraw.timeout.connect(self.draw)
        opened.viewport.window_changed.connect(self._redraw.start)

    def show_drawing(self, drawing: Drawing, value: str | None) -> None:
        """Draw the values of a column over time; if `value` is None, draw the intervals as lanes."""
        self._drawing, self._value = drawing, value
        if value is None:
            self.plot.getAxis("left").setTicks([[]])
            self.plot.setYRange(0.4, len(drawing.groups) + 0.6, padding=0)
        else:
            self.plot.getAxis("left").setTicks(None)
            self.plot.setYRange(*_axis_limits(drawing.values[value]), padding=0.04)
        self.follow()
        self.draw()

    def _brush(self, group: int) -> QBrush:
        return QBrush(colour(process_colour(_HUES[group % len(_HUES)], self._theme.palette)))

    @Slot()
    def draw(self) -> None:
        """Draw the visible part of the result."""
        drawing = self._drawing
        self.plot.clear()
        self.legend.clear()
        if drawing is None:
            return
        for number, title in enumerate(drawing.groups):
            self.add_line(self._brush(number), visible_line(title) or "all rows", number)
        window = self._opened.viewport.window
        shown = np.flatnonzero((drawing.end_cycles >= window.start) & (drawing.start_cycles <= window.end))
        for group in range(len(drawing.groups)):
            of_group = shown[drawing.group[shown] == group]
            if len(of_group):
                self.plot.addItem(self._item(drawing, of_group, group))

    def _item(self, drawing: Drawing, rows: np.ndarray[Any, Any], group: int) -> Any:
        """Return the pyqtgraph item of a group of result rows: bars, at most one per pixel, or downsampled points."""
        origin = self._axis.origin
        start = (drawing.start_cycles[rows] - origin).astype(np.float64)
        brush = self._brush(group)
        if self._value is not None:
            order = np.argsort(start, kind="stable")
            x, y = start[order], drawing.values[self._value][rows[order]]
            few = len(x) * len(drawing.groups) <= _POINTS // 20
            line = pg.PlotDataItem(
                x, y, pen=pg.mkPen(brush.color()), symbol="o" if few else None, symbolSize=_SYMBOL_PX,
                symbolBrush=brush, symbolPen=None, connect="finite",
            )  # fmt: skip
            line.setDownsampling(auto=True, method="peak")
            return line
        end = (drawing.end_cycles[rows] - origin).astype(np.float64)
        pixel = self._opened.viewport.window.length / max(1.0, self.plot.getViewBox().width())
        middle = len(drawing.groups) - group
        left, right = _combined(start, np.maximum(end, start + pixel), pixel)
        return pg.BarGraphItem(x0=left, x1=right, y0=middle - _BAR, y1=middle + _BAR, pen=None, brush=brush)

    def point_clicked(self, point: QPointF) -> None:
        """Send `row_requested` with the row of the nearest interval or point."""
        drawing = self._drawing
        if drawing is None:
            return
        cycles = self._axis.origin + point.x()
        pixel_x, pixel_y = self.plot.getViewBox().viewPixelSize()
        away = np.maximum(np.maximum(drawing.start_cycles - cycles, cycles - drawing.end_cycles), 0) / pixel_x
        if self._value is None:
            away = np.where(drawing.group == len(drawing.groups) - round(point.y()), away, np.inf)
        else:
            away = np.hypot(np.abs(drawing.start_cycles - cycles) / pixel_x,
                            np.abs(drawing.values[self._value] - point.y()) / pixel_y)  # fmt: skip
        away = np.nan_to_num(away, nan=np.inf)
        nearest = int(np.argmin(away))
        if away[nearest] <= _NEAR_PX:
            self.row_requested.emit(int(drawing.row[nearest]))


def _axis_limits(values: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return the axis range of values, including 0."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    return min(low, 0.0), max(high, low + 1e-9, 1e-9)


def _combined(start: np.ndarray[Any, Any], end: np.ndarray[Any, Any], gap: float) -> tuple[Any, Any]:
    """Return the starts and ends of intervals, merged where they are closer than `gap`, in ascending order."""
    order = np.argsort(start, kind="stable")
    start, latest = start[order], np.maximum.accumulate(end[order])
    begins = np.flatnonzero(np.append(True, start[1:] > latest[:-1] + gap))
    return start[begins], latest[np.append(begins[1:] - 1, len(start) - 1)]
