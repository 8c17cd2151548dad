"""How lanes are filled where no state is drawn: patterns, and keys of the legend that are no state."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

from satview.core import pictures
from satview.events import states
from satview.gui.colours import HATCHES, hatch_of, state_colour
from satview.gui.theme import Theme
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


# What the legend explains that is no lane value: the keys of these entries, all below 0.


EVENTS: Final = -1  # ticks above the bars
RAN: Final = -2  # strips at the foot of bars
SHARES: Final = -3  # stacks where intervals are too dense for bars
MARKED: Final = -5  # strips at the foot of what a filter marks
LOST: Final = -4  # hatched from top to bottom: events are missing
ARROWS: Final = {kind: -6 - kind for kind in ArrowKind}  # of each kind
