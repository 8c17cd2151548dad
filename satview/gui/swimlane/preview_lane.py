"""Draws the lane of a CPU from a preview: stacked shares of the processes, with stripes that mark it as provisional."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QImage, QPainter

from satview.base.time import TimeWindow
from satview.events import states
from satview.gui.colours import state_colour
from satview.gui.swimlane.fills import OPAQUE, draw_tops
from satview.gui.theme import Theme, colour
from satview.timeline.preview import Preview

BIN_PX: Final = 4  # width of a bin; over the whole trace, each bin has one or two samples
_PADDING_PX: Final = 3


def draw_preview_lane(
    painter: QPainter, preview: Preview, cpu: int, window: TimeWindow, area: QRectF, ratio: float, theme: Theme
) -> None:
    """Draw one lane.

    Args:
        painter: Painter.
        preview: Samples of the file.
        cpu: CPU of the lane.
        window: Time window of the area.
        area: The lane, logical pixels.
        ratio: Device pixels per logical pixel.
        theme: Colours.
    """
    inner = area.adjusted(0, _PADDING_PX, 0, -_PADDING_PX)
    width, height = max(1, round(inner.width() * ratio)), max(1, round(inner.height() * ratio))
    bins = max(1, round(inner.width() / BIN_PX))
    pixels = lane_pixels(preview.cover(cpu, window, bins), width, height, theme)
    image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    painter.drawImage(inner.topLeft(), image)
    hatch(painter, inner, theme)


def lane_pixels(cover: NDArray[np.float64], width: int, height: int, theme: Theme) -> NDArray[np.uint32]:
    """Return a picture of the use of a CPU, (height, width): processes from the bottom up, idle time on top.

    Args:
        cover: (64, bins), as returned by `Preview.cover`.
        width: Pixels.
        height: Pixels.
        theme: Colours.
    """
    background = theme.base | OPAQUE
    out = np.full((height, width), background, np.uint32)
    values = np.flatnonzero(cover.any(axis=1))
    if not len(values):
        return out
    values = np.concatenate((values[values != states.IDLE], values[values == states.IDLE]))
    upper = np.cumsum(cover[values], axis=0)
    tops = np.divide(upper, upper[-1], out=np.zeros_like(upper), where=upper[-1] > 0)
    bins = cover.shape[1]
    columns = -(-np.arange(bins + 1) * width // bins)
    # No dots for shares of less than a pixel: samples are not that precise.
    seldom = np.zeros(len(values), bool)
    draw_tops(out, tops, seldom, columns, _colours(theme)[values], background, (0, height))
    return out


@lru_cache(maxsize=4)
def _colours(theme: Theme) -> NDArray[np.uint32]:
    colours = [state_colour(value, theme) for value in range(states.VALUE_COUNT)]
    return np.array([(theme.base if rgb is None else rgb) | OPAQUE for rgb in colours], np.uint32)


def hatch(painter: QPainter, area: QRectF, theme: Theme) -> None:
    """Mark an area as provisional: paler, with stripes of the background colour."""
    painter.fillRect(area, colour(theme.base, 70))
    painter.fillRect(area, QBrush(colour(theme.base, 190), Qt.BrushStyle.FDiagPattern))
