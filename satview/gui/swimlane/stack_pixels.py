"""Draws a stack of shares into the rows of a picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.core import pictures


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
