"""The window of trends: select a figure, see it over all traces, click a trace to open it there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QSplitter,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.base.safe_text import menu_text, visible_line
from satview.fleet.trends import Point, Trend, metrics, trend
from satview.gui.plain_label import PlainLabel
from satview.gui.theme import Theme, colour
from satview.gui.trends.plot import TrendPlot
from satview.session.dismantle import dismantle
from satview.session.tasks import IsCancelled, Report, Task
from satview.tables.query_process import close_processes

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
