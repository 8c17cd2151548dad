"""The window of trends: select a figure, see it over all traces, click a trace to open it there."""

from __future__ import annotations

from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QSplitter, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from satview.base.safe_text import menu_text, tool_tip, visible_line
from satview.fleet.trends import Metric, Point, Trend, metrics, trend
from satview.gui.plots.axes import new_plot, paint_with
from satview.gui.theme import Theme, colour
from satview.gui.widgets import PlainLabel
from satview.session.tasks import IsCancelled, Report, Task, dismantle
from satview.tables.query_process import close_processes

# A point for each trace of a data set, over time; those far from the others are highlighted.


_POINT_PX: Final = 7
_FAR_PX: Final = 11
_ROOM: Final = 1.08  # height of the plot in that of the tallest point
_LEFT_PX: Final = 76


class TrendPlot(QWidget):
    """The points.

    Attributes:
        plot: The pyqtgraph widget.
        points: What is drawn, pyqtgraph's item; its data are `Point`.

    Signals:
        point_requested: A point was clicked.
    """

    point_requested = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._found: Trend | None = None
        self._values = _ValueAxis("left")
        self._times = _BeginAxis()
        self.plot = new_plot(self._times, self._values, "A figure for each trace")
        self.plot.getAxis("left").setWidth(_LEFT_PX)
        self.points = pg.ScatterPlotItem(hoverable=True, tip=_tip)
        self.points.sigClicked.connect(self._on_click)
        self._middle = pg.InfiniteLine(angle=0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.plot)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        paint_with(self.plot, theme)
        self._draw()

    def show_trend(self, found: Trend) -> None:
        """Draw a trend."""
        self._found = found
        self._values.metric = found.metric
        self._draw()

    def _draw(self) -> None:
        self.plot.clear()
        found, theme = self._found, self._theme
        known = [] if found is None else [i for i, point in enumerate(found.points) if not np.isnan(point.value)]
        if found is None or not known:
            return
        self._times.is_date = _has_dates(found)
        x, drawn = _positions(found), [found.points[i] for i in known]
        y = np.array([point.value for point in drawn], np.float64)
        usual, far = pg.mkBrush(colour(theme.accent)), pg.mkBrush(colour(theme.error))
        self.points.setData(
            x=x[known],
            y=y,
            data=drawn,
            size=[_FAR_PX if point.is_outlier else _POINT_PX for point in drawn],
            brush=[far if point.is_outlier else usual for point in drawn],
            pen=pg.mkPen(None),
            hoverPen=pg.mkPen(colour(theme.text)),
        )
        self._middle.setPen(pg.mkPen(colour(theme.dim), style=Qt.PenStyle.DashLine))
        self._middle.setValue(found.middle)
        self.plot.addItem(self.points)
        self.plot.addItem(self._middle)
        self.plot.setYRange(min(0.0, float(y.min())), float(y.max()) * _ROOM or 1.0, padding=0)
        self.plot.setXRange(float(x.min()), float(x.max()), padding=0.03)

    @Slot(object, object)
    def _on_click(self, _item: Any, spots: Any, _event: Any = None) -> None:
        if len(spots):
            self.point_requested.emit(spots[0].data())


class _ValueAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no type hints
    """Values with the unit of their metric."""

    metric: Metric | None = None

    def tickStrings(self, values: list[float], _scale: float, _spacing: float) -> list[str]:
        """Return values as tables write them."""
        return ["" if self.metric is None else self.metric.text(value) for value in values]


class _BeginAxis(pg.DateAxisItem):  # type: ignore[misc]  # pyqtgraph has no type hints
    """When traces begin, UTC; their numbers where they do not all say."""

    is_date = True

    def __init__(self) -> None:
        super().__init__("bottom", utcOffset=0)

    def tickValues(self, minVal: float, maxVal: float, size: float) -> Any:  # noqa: N803
        """Return where ticks are."""
        if self.is_date:
            return super().tickValues(minVal, maxVal, size)
        return pg.AxisItem.tickValues(self, minVal, maxVal, size)

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Return dates, or numbers from 1."""
        if self.is_date:
            return list(super().tickStrings(values, scale, spacing))
        return [f"{value + 1:,.0f}" if value == int(value) else "" for value in values]


def _has_dates(found: Trend) -> bool:
    begins = {point.begin for point in found.points}
    return None not in begins and len(begins) > 1


def _positions(found: Trend) -> NDArray[np.float64]:
    """Return where each trace is drawn: seconds since 1970 if all say, else one after the other."""
    if _has_dates(found):
        return np.array([point.begin.replace(tzinfo=UTC).timestamp() for point in found.points if point.begin])
    return np.arange(len(found), dtype=np.float64)


def _tip(x: float, y: float, data: Point) -> str:  # noqa: ARG001  -- as pyqtgraph calls it
    begin = f"\n{data.begin:%Y-%m-%d %H:%M:%S} UTC" if data.begin else ""
    return tool_tip(f"{data.trace}{begin}")


_POINT: Final = int(Qt.ItemDataRole.UserRole)
_SIZE_PX: Final = (1000, 620)
_MARGIN_PX: Final = 8


class TrendsWindow(QWidget):
    """A window of one data set.

    Attributes:
        figure: The figures.
        plot: The points.
        traces: The same as a list; those far from the others first.
        message: How many, or what went wrong.

    Signals:
        trace_requested: A trace was clicked: its `Point`.
    """

    trace_requested = Signal(object)

    def __init__(self, folder: Path, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self._folder, self._theme = folder, theme
        self.setWindowTitle(f"{visible_line(folder.name)} \N{EM DASH} Trends \N{EM DASH} satview")
        self.resize(*_SIZE_PX)
        self.figure = QComboBox(self)
        self.figure.setAccessibleName("Figure")
        for metric in metrics().values():
            self.figure.addItem(menu_text(metric.title), metric.name)
        self.message = PlainLabel(self)
        self.message.setProperty("role", "dim")
        self.plot = TrendPlot(theme, self)
        self.traces = _list(self)
        self._task = Task(self)
        self._lay_out()
        self.figure.currentIndexChanged.connect(self._request)
        self.plot.point_requested.connect(self.trace_requested)
        self.traces.itemClicked.connect(self._on_item)
        self.traces.itemActivated.connect(self._on_item)
        self._task.done.connect(self._on_done)
        self._task.failed.connect(self._on_failed)
        self._request()

    @property
    def is_busy(self) -> bool:
        """True while a figure is worked out."""
        return self._task.is_busy

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        self.plot.set_theme(theme)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        label = PlainLabel("&Figure:", self)
        label.setBuddy(self.figure)
        head.addWidget(label)
        head.addWidget(self.figure)
        head.addWidget(self.message, 1)
        split = QSplitter(Qt.Orientation.Vertical, self)
        split.addWidget(self.plot)
        split.addWidget(self.traces)
        split.setSizes([_SIZE_PX[1] * 3 // 5, _SIZE_PX[1] * 2 // 5])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(_MARGIN_PX, _MARGIN_PX, _MARGIN_PX, _MARGIN_PX)
        layout.addLayout(head)
        layout.addWidget(split, 1)

    @Slot()
    def _request(self) -> None:
        self.message.setText("Working\N{HORIZONTAL ELLIPSIS}")
        self._task.start(partial(_compute, self._folder, str(self.figure.currentData())))

    @Slot(object)
    def _on_done(self, found: Trend) -> None:
        far = len(found.outliers)
        middle = found.metric.text(found.middle) or "unknown"
        self.message.setText(
            f"{len(found):,} traces, median {middle}, {far:,} far from the others. A click opens a trace there."
        )
        self.plot.show_trend(found)
        self._fill(found)

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self.message.setText(visible_line(str(error)))

    def _fill(self, found: Trend) -> None:
        self.traces.clear()
        for point in sorted(found.points, key=lambda point: not point.is_outlier):
            begin = f"{point.begin:%Y-%m-%d %H:%M:%S}" if point.begin else ""
            far = "far from the others" if point.is_outlier else ""
            item = QTreeWidgetItem([visible_line(point.trace), begin, found.metric.text(point.value), far])
            item.setData(0, _POINT, point)
            item.setTextAlignment(2, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            if point.is_outlier:
                item.setForeground(3, colour(self._theme.error))
            self.traces.addTopLevelItem(item)

    @Slot(QTreeWidgetItem)
    def _on_item(self, item: QTreeWidgetItem) -> None:
        point = item.data(0, _POINT)
        if isinstance(point, Point):
            self.trace_requested.emit(point)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop what runs, and go for good."""
        self._task.close()
        close_processes()
        super().closeEvent(event)
        dismantle(self)


def _list(parent: QWidget) -> QTreeWidget:
    found = QTreeWidget(parent)
    found.setAccessibleName("Traces")
    found.setHeaderLabels(["Trace", "Begins (UTC)", "Value", ""])
    found.setRootIsDecorated(False)
    found.setUniformRowHeights(True)
    for column, width_px in enumerate((420, 160, 130)):
        found.setColumnWidth(column, width_px)
    return found


def _compute(folder: Path, metric: str, is_cancelled: IsCancelled, _report: Report) -> Trend:
    return trend(folder, metric, None, is_cancelled)
