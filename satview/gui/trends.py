"""The window Trends: a metric over all traces of a data set; a click opens a trace."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QTableView, QVBoxLayout, QWidget

from satview.answers.table import Table
from satview.base.safe_text import menu_text, tool_tip, visible_line
from satview.fleet.query import Metric, location, metric_of, metrics, middle, trend
from satview.gui.answer_table import AnswerModel
from satview.gui.panel import selected_rows, set_up_rows
from satview.gui.plots.time_plot import ThemedPlot
from satview.gui.theme import Theme, colour
from satview.gui.widgets import MessageLine, PlainLabel, drop_down, line_up, sentence
from satview.session.tasks import Task, dismantle
from satview.tables.sql import close_processes

# A plot with a point for each trace of a data set.


_POINT_PX: Final = 7
_FAR_PX: Final = 11
_ROOM: Final = 1.08  # height of the plot relative to the highest point
_LEFT_PX: Final = 76


class TrendPlot(ThemedPlot):
    """Plot of a metric with one point per trace, over the start times of traces; outliers are highlighted.

    Signals:
        point_requested: A point was clicked; sends the row of its trace, which is the data of the point.
    """

    point_requested = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._values, self._times = _ValueAxis("left"), _BeginAxis()
        super().__init__(self._times, self._values, "A figure for each trace", theme, parent)
        self._shown: Table | None = None
        self.plot.getAxis("left").setWidth(_LEFT_PX)
        self.points = pg.ScatterPlotItem(hoverable=True, tip=self._tip)
        self.points.sigClicked.connect(self._on_click)
        self._median_line = pg.InfiniteLine(angle=0)
        line_up(QVBoxLayout(self), self.plot, margins=(0, 0, 0, 0))
        self.set_theme(theme)

    def show_trend(self, traces: Table | None, metric: Metric) -> None:
        """Draw the value of a metric for each row of `traces`; None = draw nothing."""
        self._shown = traces
        self._values.metric = metric
        self.draw()

    def draw(self) -> None:
        """Draw the points and their median."""
        self.plot.clear()
        traces, theme = self._shown, self._theme
        values = np.empty(0) if traces is None else traces["value"]
        known_rows = np.flatnonzero(~np.isnan(values))
        if traces is None or not len(known_rows):
            return
        begins = [str(begin) for begin in traces["begin"]]
        self._times.is_date = all(begins) and len(set(begins)) > 1  # otherwise at equal distances
        x = np.array([datetime.fromisoformat(begin).replace(tzinfo=UTC).timestamp() if self._times.is_date else row
                      for row, begin in enumerate(begins)], np.float64)  # fmt: skip
        are_outliers = (traces["outlier"] != "")[known_rows].tolist()
        usual, far = pg.mkBrush(colour(theme.accent)), pg.mkBrush(colour(theme.error))
        self.points.setData(
            x=x[known_rows],
            y=values[known_rows],
            data=known_rows.tolist(),
            size=[_FAR_PX if is_outlier else _POINT_PX for is_outlier in are_outliers],
            brush=[far if is_outlier else usual for is_outlier in are_outliers],
            pen=pg.mkPen(None),
            hoverPen=pg.mkPen(colour(theme.text)),
        )
        self._median_line.setPen(pg.mkPen(colour(theme.dim), style=Qt.PenStyle.DashLine))
        self._median_line.setValue(middle(values))
        self.plot.addItem(self.points)
        self.plot.addItem(self._median_line)
        lowest, highest = float(values[known_rows].min()), float(values[known_rows].max())
        self.plot.setYRange(min(0.0, lowest), highest * _ROOM or 1.0, padding=0)
        self.plot.setXRange(float(x.min()), float(x.max()), padding=0.03)

    def _tip(self, x: float, y: float, data: int) -> str:  # noqa: ARG002  -- as pyqtgraph calls it
        assert self._shown is not None
        return tool_tip("\n".join(filter(None, (self._shown.text(data, "trace"), self._shown.text(data, "begin")))))

    @Slot(object, object)
    def _on_click(self, _item: Any, spots: Any, _event: Any = None) -> None:
        if len(spots):
            self.point_requested.emit(int(spots[0].data()))


class _ValueAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no type hints
    """A value axis whose ticks are in the unit of the metric."""

    metric: Metric | None = None

    def tickStrings(self, values: list[float], _scale: float, _spacing: float) -> list[str]:
        """Return values as formatted in tables."""
        return ["" if self.metric is None else self.metric.text(value) for value in values]


class _BeginAxis(pg.DateAxisItem):  # type: ignore[misc]  # pyqtgraph has no type hints
    """An axis with the start times of traces, UTC; with trace numbers if some are unknown or all are equal."""

    is_date = True

    def __init__(self) -> None:
        super().__init__("bottom", utcOffset=0)

    def tickValues(self, minVal: float, maxVal: float, size: float) -> Any:  # noqa: N803
        """Return the positions of ticks."""
        if self.is_date:
            return super().tickValues(minVal, maxVal, size)
        return pg.AxisItem.tickValues(self, minVal, maxVal, size)

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Return the tick texts: dates, or numbers of traces from 1."""
        if self.is_date:
            return list(super().tickStrings(values, scale, spacing))
        return [f"{value + 1:,.0f}" if value == int(value) else "" for value in values]


_SHOWN: Final = {
    "trace": 360,
    "begin": 290,
    "value": 130,
    "outlier": 0,
}  # columns of the list, with their widths in pixels
_SIZE_PX: Final = (1000, 620)
_MARGIN_PX: Final = 8
_ROW_PX: Final = 22


class TrendsWindow(QWidget):
    """A window with the trends of one data set of traces, outliers first until a heading of the table is clicked.

    Signals:
        trace_requested: A trace was clicked; sends its `Location`.
    """

    trace_requested = Signal(object)

    def __init__(self, folder: Path, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self._folder, self._theme = folder, theme
        self._shown: Table | None = None
        self.setWindowTitle(f"{visible_line(folder.name)} \N{EM DASH} Trends \N{EM DASH} satview")
        self.resize(*_SIZE_PX)
        self.figure = drop_down(self, "Figure", {metric.name: menu_text(metric.title) for metric in metrics().values()})
        self.message = MessageLine(self, role="dim", wraps=True)
        self.plot = TrendPlot(theme, self)
        self.traces, self.model = QTableView(self), AnswerModel(theme, self, tuple(_SHOWN))
        set_up_rows(self.traces, self.model, "Traces", _ROW_PX)
        header = self.traces.horizontalHeader()
        header.setStretchLastSection(True)
        header.setSectionsClickable(True)
        header.sectionClicked.connect(self._on_head)
        self._sort = ("outlier", True)  # column, and whether the largest value comes first
        QShortcut(QKeySequence.StandardKey.Copy, self.traces, self._copy, context=Qt.ShortcutContext.WidgetShortcut)
        QShortcut(QKeySequence.StandardKey.Close, self, self.close)
        self._task = Task(self)
        self._lay_out()
        self.figure.currentIndexChanged.connect(self._request)
        self.plot.point_requested.connect(self._on_point)
        self.traces.clicked.connect(self._on_row)
        self.traces.activated.connect(self._on_row)
        self._task.done.connect(self._on_done)
        self._task.failed.connect(self._on_failed)
        self._request()

    @property
    def is_busy(self) -> bool:
        """True while a trend is being computed."""
        return self._task.is_busy

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme = theme
        self.plot.set_theme(theme)
        self.model.set_theme(theme)
        self.traces.viewport().update()

    def _lay_out(self) -> None:
        label = PlainLabel("&Figure:", self)
        label.setBuddy(self.figure)
        head = line_up(QHBoxLayout(), label, self.figure, None)
        split = QSplitter(Qt.Orientation.Vertical, self)
        split.addWidget(self.plot)
        split.addWidget(self.traces)
        split.setSizes([_SIZE_PX[1] * 3 // 5, _SIZE_PX[1] * 2 // 5])
        line_up(
            QVBoxLayout(self), head, self.message, (split, 1), margins=(_MARGIN_PX, _MARGIN_PX, _MARGIN_PX, _MARGIN_PX)
        )

    @Slot()
    def _request(self) -> None:
        self.message.say("Working\N{HORIZONTAL ELLIPSIS}", "dim")
        folder, metric = self._folder, str(self.figure.currentData())
        self._task.start(lambda is_cancelled: trend(folder, metric, None, is_cancelled))

    @Slot(object)
    def _on_done(self, traces: Table) -> None:
        sentences = [f"{traces.question.note}. A click opens a trace there", *traces.missing]
        self.message.say(" ".join(map(sentence, sentences)), "dim")
        self._show(traces)

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self.message.say(sentence(str(error)), "error")
        self._show(None)

    def _show(self, traces: Table | None) -> None:
        self._shown = traces
        self.plot.show_trend(traces, metric_of(str(self.figure.currentData())))
        self._fill()

    def _fill(self) -> None:
        name, is_descending = self._sort
        traces = self._shown.sorted_by(name, is_descending) if self._shown is not None else None
        self.model.show(traces, name, is_descending=is_descending)
        for section, width_px in enumerate(_SHOWN.values()):
            if width_px:
                self.traces.setColumnWidth(section, width_px)

    @Slot(int)
    def _on_head(self, section: int) -> None:
        column = self.model.columns[section]
        name, is_descending = self._sort
        self._sort = (column.name, not is_descending if column.name == name else not column.kind.is_words)
        self._fill()

    @Slot()
    def _copy(self) -> None:
        if self.model.answer is not None:
            QGuiApplication.clipboard().setText(self.model.answer.lines(selected_rows(self.traces)))

    @Slot(int)
    def _on_point(self, row: int) -> None:
        if self._shown is not None:
            self.trace_requested.emit(location(self._shown, row))

    @Slot(QModelIndex)
    def _on_row(self, index: QModelIndex) -> None:
        if self.model.answer is not None and index.isValid():
            self.trace_requested.emit(location(self.model.answer, index.row()))

    def closeEvent(self, event: QCloseEvent) -> None:
        """Cancel the background task, end the query processes, and destroy the window."""
        self._task.close()
        close_processes()
        super().closeEvent(event)
        dismantle(self)
