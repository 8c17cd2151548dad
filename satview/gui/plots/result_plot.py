"""The rows of a query drawn with the time axis of the lanes: values over time, or intervals of lanes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QBrush
from PySide6.QtWidgets import QWidget

from satview.base.safe_text import visible_line
from satview.gui.colours import process_colour
from satview.gui.plots.time_plot import TimePlot
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.session.panels.sql_drawing import Drawing

_POINTS: Final = 20_000  # drawn at once, of all groups
_NEAR_PX: Final = 12
_BAR: Final = 0.34  # half of a lane's height
_SYMBOL_PX: Final = 5
_HUES: Final = (0, 11, 7, 18, 20, 9, 13, 2, 4, 15, 17, 6)  # of processes, neighbours far apart


class ResultPlot(TimePlot):
    """A plot of a result.

    Signals:
        row_requested: A point or interval was clicked: row of the result.
    """

    row_requested = Signal(int)

    lowest = None

    def __init__(self, opened: OpenTrace, left_px: int, theme: Theme, parent: QWidget | None = None) -> None:
        self._drawing: Drawing | None = None
        self._value: str | None = None  # None = lanes
        super().__init__(opened, left_px, theme, "Result of the query", "", parent)
        self._redraw = QTimer(self)
        self._redraw.setSingleShot(True)
        self._redraw.setInterval(0)
        self._redraw.timeout.connect(self.draw)
        opened.viewport.window_changed.connect(self._redraw.start)

    def show_drawing(self, drawing: Drawing, value: str | None) -> None:
        """Draw a column over time, or with None the intervals as lanes."""
        self._drawing, self._value = drawing, value
        if value is None:
            self.plot.getAxis("left").setTicks([[]])
            self.plot.setYRange(0.4, len(drawing.groups) + 0.6, padding=0)
        else:
            self.plot.getAxis("left").setTicks(None)
            self.plot.setYRange(*_ends(drawing.values[value]), padding=0.04)
        self.follow()
        self.draw()

    def _brush(self, group: int) -> QBrush:
        return QBrush(colour(process_colour(_HUES[group % len(_HUES)], self._theme.is_dark, self._theme.palette)))

    @Slot()
    def draw(self) -> None:
        """Draw what shows of the result that was given last."""
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
            mine = shown[drawing.group[shown] == group]
            if len(mine):
                self.plot.addItem(self._item(drawing, mine, group))

    def _item(self, drawing: Drawing, rows: np.ndarray[Any, Any], group: int) -> Any:
        """Return what draws a group: never more than a bar per pixel, or points that can be seen apart."""
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
        first, last = _combined(start, np.maximum(end, start + pixel), pixel)
        return pg.BarGraphItem(x0=first, x1=last, y0=middle - _BAR, y1=middle + _BAR, pen=None, brush=brush)

    def _on_click(self, click: pg.GraphicsScene.mouseEvents.MouseClickEvent) -> None:
        """Request the row of the interval or point that is nearest."""
        drawing, box = self._drawing, self.plot.getViewBox()
        is_inside = box.sceneBoundingRect().contains(click.scenePos())
        if drawing is None or click.button() != Qt.MouseButton.LeftButton or not is_inside:
            return
        point = box.mapSceneToView(click.scenePos())
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


def _ends(values: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return the range of an axis for values: from 0, unless some are below it."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return min(low, 0.0), max(high, low + 1e-9, 1e-9)


def _combined(start: np.ndarray[Any, Any], end: np.ndarray[Any, Any], gap: float) -> tuple[Any, Any]:
    """Return intervals, merged where less than a gap apart, so that a pixel has one bar at most."""
    order = np.argsort(start, kind="stable")
    start, latest = start[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.append(True, start[1:] > latest[:-1] + gap))
    return start[first], latest[np.append(first[1:] - 1, len(start) - 1)]
