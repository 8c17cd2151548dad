"""Hatching: distinguishes states for those to whom their colours say nothing.

A colour carries the number of its hatch in its highest byte, as 255 less that number, through everything that draws
lanes; the finished picture is hatched in one pass. What is faded, hidden or marked is opaque, and so has none.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

from satview.core import pictures
from satview.gui.colours import HATCHES, hatch_of, state_colour
from satview.gui.theme import Theme

_OPAQUE: Final = 0xFF000000
_HATCHES: Final = np.array(HATCHES, np.uint8)


def lane_colour(value: int, rgb: int, theme: Theme) -> int:
    """Return the colour of a lane value as a picture needs it, 0xAARRGGBB.

    Args:
        value: Of `events.states`.
        rgb: Its colour.
        theme: Says whether there is hatching.
    """
    return rgb | (_OPAQUE - (hatch_of(value) << 24) if theme.is_hatched else _OPAQUE)


def hatch(pixels: NDArray[np.uint32], top: int, ratio: float) -> None:
    """Hatch a picture.

    Args:
        pixels: uint32 (height, width), of colours as `lane_colour` gives them; changed.
        top: How far it is below the row where hatches begin, device pixels.
        ratio: Device pixels per logical pixel.
    """
    pictures.hatch(pixels, _HATCHES, top, max(1, round(ratio)))


def swatch(value: int, theme: Theme, width_px: int, height_px: int, ratio: float) -> QImage:
    """Return a piece of a bar: its colour, and its hatching where there is one."""
    size = max(1, round(height_px * ratio)), max(1, round(width_px * ratio))
    rgb = state_colour(value, theme)
    pixels = np.full(size, _OPAQUE | theme.base if rgb is None else lane_colour(value, rgb, theme), np.uint32)
    hatch(pixels, 0, ratio)
    image = QImage(pixels.data, size[1], size[0], 4 * size[1], QImage.Format.Format_RGB32).copy()
    image.setDevicePixelRatio(ratio)
    return image
