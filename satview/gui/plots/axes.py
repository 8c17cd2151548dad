"""Parts shared by all plots: axes with times and counts in the formats of the window, colours, no menus.

Importing pyqtgraph takes 0.3 s: only the panels that plot import this module, once they are shown.
"""

from __future__ import annotations

import math
from typing import Any, Final

import pyqtgraph as pg

from satview.base.time import TimeWindow
from satview.base.time_text import format_duration
from satview.gui.swimlane.scale import TimeScale, ticks
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace

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
        """Return the positions of ticks, which are those that the ruler would have, labelled ticks first."""
        start, end = self.origin + math.floor(minVal), self.origin + math.ceil(maxVal)
        if end <= start or size < 1:
            return []
        window = TimeWindow(start, end)
        scale = TimeScale(window, int(size))
        marks = [
            (tick.x / size * window.length + start - self.origin, tick.text)
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
        return [f"{value:.{decimals}%}" for value in values]


def height(count: float) -> float:
    """Return the position of a count on a `CountAxis`."""
    return math.log10(count + 1)


def new_plot(x_axis: pg.AxisItem, y_axis: pg.AxisItem | None, name: str) -> Any:
    """Return a plot with given axes that the mouse moves along x only.

    Args:
        x_axis: Bottom axis.
        y_axis: Left axis; None = plain numbers.
        name: Name for screen readers.
    """
    axes = {"bottom": x_axis} | ({"left": y_axis} if y_axis is not None else {})
    plot = pg.PlotWidget(axisItems=axes)
    plot.setAccessibleName(name)
    plot.setMenuEnabled(False)
    plot.hideButtons()
    plot.setMouseEnabled(x=True, y=False)
    plot.getAxis("left").setWidth(LEFT_PX)
    plot.getAxis("left").enableAutoSIPrefix(False)
    x_axis.setStyle(hideOverlappingLabels=False)  # otherwise labels at the ends are hidden
    plot.setFrameShape(plot.Shape.NoFrame)
    return plot


def paint_with(plot: Any, theme: Theme) -> None:
    """Use the colours of a theme in a plot."""
    plot.setBackground(colour(theme.base))
    for side in ("bottom", "left"):
        axis = plot.getAxis(side)
        axis.setPen(pg.mkPen(colour(theme.line)))
        axis.setTextPen(pg.mkPen(colour(theme.dim)))
    plot.showGrid(x=False, y=False)
