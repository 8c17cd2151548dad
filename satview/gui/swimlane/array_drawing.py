"""Lines and pieces of images drawn from arrays: one object of Python each would take longer than drawing them."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QPainter, QPixmap
from shiboken6 import wrapInstance


def draw_lines(painter: QPainter, ends: NDArray[np.float64]) -> None:
    """Draw lines with the pen of the painter.

    Args:
        painter: Draws them.
        ends: float64 (n, 4), x and y of both ends, as QLineF holds them.
    """
    ends = np.ascontiguousarray(ends, np.float64)
    if len(ends):
        painter.drawLines(cast(QLineF, wrapInstance(ends.ctypes.data, QLineF)), len(ends))


def fill_rects(painter: QPainter, rects: NDArray[np.float64]) -> None:
    """Fill rectangles with the brush of the painter.

    Args:
        painter: Draws them.
        rects: float64 (n, 4), left, top, width and height, as QRectF holds them.
    """
    rects = np.ascontiguousarray(rects, np.float64)
    if len(rects):
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawRects(cast(QRectF, wrapInstance(rects.ctypes.data, QRectF)), len(rects))


def draw_parts(
    painter: QPainter, middles: NDArray[np.float64], rects: NDArray[np.integer], size: float, pixmap: QPixmap
) -> None:
    """Draw rectangles of an image.

    Args:
        painter: Draws them.
        middles: float64 (n, 2), where the middle of each goes, x and y.
        rects: integers (n, 4), left, top, width and height in the image.
        size: How large a pixel of the image is.
        pixmap: The image.
    """
    if not len(rects):
        return
    parts = np.empty((len(rects), 10))  # the fields of QPainter.PixmapFragment
    parts[:, :2], parts[:, 2:6], parts[:, 6:8] = middles, rects, size
    parts[:, 8:] = 0, 1  # not turned, opaque
    first = cast(QPainter.PixmapFragment, wrapInstance(parts.ctypes.data, QPainter.PixmapFragment))
    painter.drawPixmapFragments(first, len(parts), pixmap)
