"""How lanes are filled where no state is drawn: patterns, stacks, lost spans; and pictures of lanes as rectangles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QBrush, QImage, QPaintEngine, QPainter, QPen

from satview.core import pictures
from satview.events import states
from satview.gui.colours import HATCHES, hatch_of, state_colour
from satview.gui.swimlane.scale import TimeScale
from satview.gui.theme import Theme, colour
from satview.timeline.arrows import ArrowKind

# Hatching: distinguishes states for those to whom their colours say nothing.


_OPAQUE: Final = 0xFF000000
_HATCHES: Final = np.array(HATCHES, np.uint8)


def lane_colour(value: int, rgb: int, theme: Theme) -> int:
    """Return the colour of a lane value as a picture needs it, 0xAARRGGBB.

    Args:
        value: Of `events.states`.
        rgb: Its colour.
        theme: Says whether there is hatching; what is not known has it always.
    """
    is_hatched = theme.is_hatched or value == states.UNKNOWN
    return rgb | (_OPAQUE - (hatch_of(value) << 24) if is_hatched else _OPAQUE)


def hatch(pixels: NDArray[np.uint32], top: int, ratio: float) -> None:
    """Hatch a picture.

    Args:
        pixels: uint32 (height, width), of colours as `lane_colour` gives them; changed.
        top: How far it is below the row where hatches begin, device pixels.
        ratio: Device pixels per logical pixel.
    """
    pictures.hatch(pixels, _HATCHES, top, max(1, round(ratio)))


def half_way(pixels: NDArray[np.uint32], rgb: int) -> NDArray[np.uint32]:
    """Return colours of pixels half way to another colour, opaque, of the same shape."""
    return ((pixels >> np.uint32(1)) & np.uint32(0x7F7F7F)) + np.uint32((rgb >> 1 & 0x7F7F7F) | _OPAQUE)


def swatch(value: int, theme: Theme, width_px: int, height_px: int, ratio: float) -> QImage:
    """Return a piece of a bar: its colour, and its hatching where there is one."""
    size = max(1, round(height_px * ratio)), max(1, round(width_px * ratio))
    rgb = state_colour(value, theme)
    pixels = np.full(size, _OPAQUE | theme.base if rgb is None else lane_colour(value, rgb, theme), np.uint32)
    hatch(pixels, 0, ratio)
    image = QImage(pixels.data, size[1], size[0], 4 * size[1], QImage.Format.Format_RGB32).copy()
    image.setDevicePixelRatio(ratio)
    return image


# Draws a stack of shares into the rows of a picture.


def draw_tops(
    pixels: NDArray[np.uint32],
    tops: NDArray[np.float64],
    is_busy: NDArray[np.bool_],
    columns: NDArray[np.intp],
    colours: NDArray[np.uint32],
    background: int,
    rows: tuple[int, int],
) -> None:
    """Draw a stack, as far as it is in the picture.

    Args:
        pixels: uint32 (height, width), changed.
        tops: float64 (k, bins), where each kind ends, 0 = bottom, 1 = top.
        is_busy: bool (k,), of these something must be seen even where it is less than a pixel high.
        columns: int64 (bins + 1,), ascending, of the bins.
        colours: uint32 (k,).
        background: Opaque colour of what no kind covers.
        rows: First row of the bar and the one behind its last; may be outside of the picture.
    """
    if max(0, rows[0]) >= min(len(pixels), rows[1]):
        return
    pictures.draw_stack(tops, is_busy, columns, colours, background, rows, pixels)


# Where events are missing.


LOST_LEAST_PX: Final = 4.0


def lost_spans(lost: NDArray[np.int64], scale: TimeScale) -> list[tuple[float, float]]:
    """Return the visible lost spans as (left, right) pixels, each at least `LOST_LEAST_PX` wide, merged."""
    window = scale.window
    seen = lost[(lost[:, 1] >= window.start) & (lost[:, 0] < window.end)] if len(lost) else lost
    merged: list[tuple[float, float]] = []
    if not len(seen):
        return merged
    # Many marks can share a pixel: only the first of each pixel can change the picture's left edges.
    lefts = np.clip((seen[:, 0] - window.start) * scale.width_px // window.length, -1, scale.width_px)
    keep = np.unique(lefts, return_index=True)[1]
    for i in keep:
        left, right = max(-8.0, scale.x(int(seen[i, 0]))), min(scale.width_px + 8.0, scale.x(int(seen[i, 1])))
        if right - left < LOST_LEAST_PX:
            middle = (left + right) / 2
            left, right = middle - LOST_LEAST_PX / 2, middle + LOST_LEAST_PX / 2
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


def draw_lost(painter: QPainter, lost: Iterable[tuple[float, float]], height: float, theme: Theme) -> None:
    """Hatch the spans in which events are missing."""
    pen = QPen(colour(theme.error, 150))
    pen.setWidthF(1)
    for left, right in lost:
        area = QRectF(left, 0, right - left, height)
        painter.fillRect(area, colour(theme.base, 190))
        painter.fillRect(area, QBrush(colour(theme.error, 170), Qt.BrushStyle.BDiagPattern))
        painter.setPen(pen)
        painter.drawLines([QLineF(left, 0, left, height), QLineF(right, 0, right, height)])


# What the legend explains that is no lane value: the keys of these entries, all below 0.


EVENTS: Final = -1  # ticks above the bars
RAN: Final = -2  # strips at the foot of bars
SHARES: Final = -3  # stacks where intervals are too dense for bars
MARKED: Final = -5  # strips at the foot of what a filter marks
LOST: Final = -4  # hatched from top to bottom: events are missing
ARROWS: Final = {kind: -6 - kind for kind in ArrowKind}  # of each kind


# The picture of the lanes as rectangles, for files of lines instead of pixels: SVG and PDF.


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
