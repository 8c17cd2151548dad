"""The picture of the lanes as rectangles, for files of lines instead of pixels: SVG and PDF."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPaintEngine, QPainter

from satview.gui.theme import colour

_MOST: Final = 40_000  # rectangles; of more than that a file is larger than the picture, and slower to open
_VECTORS: Final = (QPaintEngine.Type.SVG, QPaintEngine.Type.Pdf, QPaintEngine.Type.Picture)


def needs_vectors(painter: QPainter) -> bool:
    """Return whether what is painted goes to a file that knows rectangles."""
    engine = painter.paintEngine()
    return engine is not None and engine.type() in _VECTORS


def rectangles(pixels: NDArray[np.uint32]) -> NDArray[np.int64] | None:
    """Return the rectangles of one colour that a picture is made of; None if they are too many to be worth it.

    Args:
        pixels: uint32 (height, width).

    Returns:
        int64 (n, 5): left, top, width, height, colour. Equal rows that touch are one.
    """
    height, width = pixels.shape
    begins = np.flatnonzero(np.append(True, (pixels[1:] != pixels[:-1]).any(axis=1)))
    heights = np.diff(np.append(begins, height))
    rows = pixels[begins]
    edge = np.ones(rows.shape, np.bool_)
    edge[:, 1:] = rows[:, 1:] != rows[:, :-1]
    row, left = np.nonzero(edge)
    if len(row) > _MOST:
        return None
    widths = np.diff(np.append(row * width + left, len(rows) * width))
    return np.stack((left, begins[row], widths, heights[row], rows[row, left] & 0xFFFFFF), axis=1).astype(np.int64)


def draw_rectangles(painter: QPainter, rectangles: NDArray[np.int64], ratio: float) -> None:
    """Draw rectangles as `rectangles` gives them, in device pixels, `ratio` of them to a logical one."""
    for left, top, width, height, rgb in rectangles.tolist():
        painter.fillRect(QRectF(left / ratio, top / ratio, width / ratio, height / ratio), colour(rgb))
