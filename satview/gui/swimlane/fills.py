"""Fills of lanes other than plain colours: hatching, stacks of shares, lost spans; and pictures as rectangles."""

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

# Hatching distinguishes states for users who cannot tell their colours apart.


OPAQUE: Final = 0xFF000000
_HATCHES: Final = np.array(HATCHES, np.uint8)


def lane_colour(value: int, rgb: int, theme: Theme) -> int:
    """Return the colour of a lane value, 0xAARRGGBB; the alpha byte encodes the hatching that `hatch` draws.

    Args:
        value: Lane value of `events.states`.
        rgb: Colour of the value.
        theme: Determines whether states are hatched; unknown spans always are.
    """
    is_hatched = theme.is_hatched or value == states.UNKNOWN
    return rgb | (OPAQUE - (hatch_of(value) << 24) if is_hatched else OPAQUE)


def hatch(pixels: NDArray[np.uint32], top: int, ratio: float) -> None:
    """Draw hatching over pixels, in place, where their alpha bytes ask for it.

    Args:
        pixels: uint32 (height, width), colours as returned by `lane_colour`.
        top: Distance of the first pixel row from the origin of the hatch pattern, device pixels.
        ratio: Device pixels per logical pixel.
    """
    pictures.hatch(pixels, _HATCHES, top, max(1, round(ratio)))


def half_way(pixels: NDArray[np.uint32], rgb: int) -> NDArray[np.uint32]:
    """Return opaque pixels, each the mean of the given pixel and a colour; same shape."""
    return ((pixels >> np.uint32(1)) & np.uint32(0x7F7F7F)) + np.uint32((rgb >> 1 & 0x7F7F7F) | OPAQUE)


def swatch(value: int, theme: Theme, width_px: int, height_px: int, ratio: float) -> QImage:
    """Return a picture of a bar with the colour and hatching of a lane value, for the legend."""
    size = max(1, round(height_px * ratio)), max(1, round(width_px * ratio))
    rgb = state_colour(value, theme)
    pixels = np.full(size, OPAQUE | theme.base if rgb is None else lane_colour(value, rgb, theme), np.uint32)
    hatch(pixels, 0, ratio)
    image = QImage(pixels.data, size[1], size[0], 4 * size[1], QImage.Format.Format_RGB32).copy()
    image.setDevicePixelRatio(ratio)
    return image


# Stacks of shares.


def draw_tops(
    pixels: NDArray[np.uint32],
    tops: NDArray[np.float64],
    is_busy: NDArray[np.bool_],
    columns: NDArray[np.intp],
    colours: NDArray[np.uint32],
    background: int,
    rows: tuple[int, int],
) -> None:
    """Draw the visible part of a stack: in each bin (a range of columns) the shares of k kinds, from the bottom up.

    Args:
        pixels: uint32 (height, width), modified.
        tops: float64 (k, bins), upper end of each kind; 0 = bottom of the bar, 1 = top.
        is_busy: bool (k,), kinds that must be visible even if less than a pixel high.
        columns: int64 (bins + 1,), ascending, edges of the bins.
        colours: uint32 (k,), colour of each kind.
        background: Opaque colour above the stack.
        rows: First row of the bar and the row after its last; may be outside the picture.
    """
    if max(0, rows[0]) >= min(len(pixels), rows[1]):
        return
    pictures.draw_stack(tops, is_busy, columns, colours, background, rows, pixels)


# Spans of lost events.


LOST_LEAST_PX: Final = 4.0


def lost_spans(lost: NDArray[np.int64], scale: TimeScale) -> list[tuple[float, float]]:
    """Return left and right x of the visible spans with lost events, merged, each at least `LOST_LEAST_PX` wide."""
    window = scale.window
    seen = lost[(lost[:, 1] >= window.start) & (lost[:, 0] < window.end)] if len(lost) else lost
    merged: list[tuple[float, float]] = []
    if not len(seen):
        return merged
    # Many marks can share a pixel; only the first of each pixel can change a left edge.
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
    """Hatch the spans where events are missing."""
    pen = QPen(colour(theme.error, 150))
    pen.setWidthF(1)
    for left, right in lost:
        area = QRectF(left, 0, right - left, height)
        painter.fillRect(area, colour(theme.base, 190))
        painter.fillRect(area, QBrush(colour(theme.error, 170), Qt.BrushStyle.BDiagPattern))
        painter.setPen(pen)
        painter.drawLines([QLineF(left, 0, left, height), QLineF(right, 0, right, height)])


# Keys of legend entries that are not lane values; all negative.


EVENTS: Final = -1  # ticks above the bars
RAN: Final = -2  # strips at the foot of bars
SHARES: Final = -3  # stacks where intervals are too dense for bars
MARKED: Final = -5  # strips at the foot of bars that a filter marks
LOST: Final = -4  # hatched from top to bottom where events are missing
ARROWS: Final = {kind: -6 - kind for kind in ArrowKind}


# Pictures as rectangles, for vector files (SVG and PDF).


_MOST: Final = 40_000  # with more rectangles, a vector file is larger and slower to open than a bitmap
_VECTORS: Final = (QPaintEngine.Type.SVG, QPaintEngine.Type.Pdf, QPaintEngine.Type.Picture)


def needs_vectors(painter: QPainter) -> bool:
    """Return whether a painter writes vector graphics."""
    engine = painter.paintEngine()
    return engine is not None and engine.type() in _VECTORS


def rectangles(pixels: NDArray[np.uint32]) -> NDArray[np.int64] | None:
    """Return the single-coloured rectangles of a picture; None if there are more than `_MOST`.

    Args:
        pixels: uint32 (height, width).

    Returns:
        int64 (n, 5): left, top, width, height, colour. Equal adjacent rows share rectangles.
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
    """Draw rectangles returned by `rectangles`; `ratio` is device pixels per logical pixel."""
    for left, top, width, height, rgb in rectangles.tolist():
        painter.fillRect(QRectF(left / ratio, top / ratio, width / ratio, height / ratio), colour(rgb))
