"""Draws a stack of shares into the rows of a picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.core import library, pictures


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
    if library.is_available():
        pictures.draw_stack(tops, is_busy, columns, colours, background, rows, pixels)
    else:
        _draw_by_rows(pixels, tops, is_busy, columns, colours, background, rows)


def _draw_by_rows(
    pixels: NDArray[np.uint32],
    shares: NDArray[np.float64],
    is_busy: NDArray[np.bool_],
    columns: NDArray[np.intp],
    colours: NDArray[np.uint32],
    background: int,
    rows: tuple[int, int],
) -> None:
    top, bottom = rows
    first, last = max(0, top), min(len(pixels), bottom)
    tops = np.floor(shares * (bottom - top) + 0.5)
    # Something that ran is never nothing: a dot where it is too little for a pixel.
    if is_busy.any():
        bars = np.flatnonzero(is_busy)
        each = np.diff(shares, axis=0, prepend=0)[bars]
        largest = bars[np.argmax(each, axis=0)]
        unseen = np.flatnonzero((each.sum(axis=0) > 0) & (tops[bars[-1]] < 1))
        is_above = np.arange(len(tops))[:, None] >= largest[unseen]
        tops[:, unseen] = np.where(is_above, np.maximum(tops[:, unseen], 1), tops[:, unseen])
    level = bottom - 0.5 - np.arange(first, last)  # middle of every row above the bottom
    which = np.zeros((last - first, tops.shape[1]), np.intp)
    for line in tops:
        which += line[None, :] < level[:, None]
    found = np.append(colours, np.uint32(background))[which]
    left, right = int(columns[0]), int(columns[-1])
    pixels[first:last, left:right] = np.repeat(found, np.diff(columns), axis=1)
