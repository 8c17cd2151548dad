"""A point for each trace of a data set, over time; those far from the others are highlighted."""

from __future__ import annotations

from datetime import UTC
from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from satview.base.safe_text import tool_tip
from satview.fleet.trends import Metric, Point, Trend
from satview.gui.plots.axes import new_plot, paint_with
from satview.gui.theme import Theme, colour

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
