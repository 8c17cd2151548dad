"""Names inside intervals as a picture of lanes keeps them: by time, so that they can be drawn in any other window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter

from satview.base.time import TimeWindow
from satview.gui.swimlane.array_drawing import fill_rects
from satview.gui.swimlane.fitted_text import FittedTexts
from satview.gui.swimlane.lane_text import BESIDE_PX, IntervalText
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.text_sheet import Inked, LaidText, TextSheet
from satview.gui.theme import colour

_LEFT_PX: Final = 5  # of an interval, before its name
_MIDDLE: Final = 0.555  # of a lane: the bar begins under the marks of events
_NOTHING: Final = -1


class PlacedTexts(NamedTuple):
    """Names of intervals; (n,) each.

    Attributes:
        start, end: int64, cycles: the part of the interval that was painted.
        beside: float64, where a text begins behind the first one of its interval, logical pixels.
        room: float64, what all texts of the interval take, logical pixels.
        top: float64, its top in the list of lanes, logical pixels.
        behind: int64, 0xRRGGBB that is put behind all texts of the interval, -1 = nothing.
        words: The texts.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    beside: NDArray[np.float64]
    room: NDArray[np.float64]
    top: NDArray[np.float64]
    behind: NDArray[np.int64]
    words: Inked


def placed(
    texts: Sequence[IntervalText], parts: Iterable[tuple[str, ...]], fonts: FittedTexts, inks: dict[int | None, int],
    window: TimeWindow,
) -> PlacedTexts:  # fmt: skip
    """Return as much of texts as fits into their intervals.

    Args:
        texts: The intervals.
        parts: What is to be written into each, the most important first.
        fonts: Lay texts out.
        window: What is painted.
        inks: What colour each of `IntervalText.ink` is.
    """
    times, sizes, behind = list[tuple[int, int]](), list[tuple[float, float, float]](), list[int]()
    words, colours, half_px = list[LaidText](), list[int](), fonts.metrics.height() / 2
    for text, each in zip(texts, parts, strict=True):
        found = fonts.fit_parts(each, text.room_px) if each else []
        top = text.row.y_px + text.row.height_px * _MIDDLE - half_px
        for beside_px, laid in found:
            times.append((max(text.start_cycles, window.start), min(text.end_cycles, window.end)))
            sizes.append((beside_px, found[-1][0] + found[-1][1].width_px, top))
            behind.append(_NOTHING if text.behind is None else text.behind)
            words.append(laid)
            colours.append(inks[text.ink])
    start, end = np.array(times, np.int64).reshape(-1, 2).T
    beside, room, top_px = np.array(sizes, np.float64).reshape(-1, 3).T
    return PlacedTexts(start, end, beside, room, top_px, np.array(behind, np.int64), Inked(words, colours))


def draw_placed(
    painter: QPainter, sheet: TextSheet, made: Sequence[PlacedTexts], other: Sequence[PlacedTexts],
    scale: TimeScale, scroll_px: int, line_px: float,
) -> None:  # fmt: skip
    """Draw texts on a frame.

    Args:
        painter: Of the swimlanes.
        sheet: Of their font.
        made: Texts that are made for the frame.
        other: Those that are made for another scale: they are left out where there is no room for them now.
        scale: Of the frame.
        scroll_px: How far the list of lanes is scrolled.
        line_px: How high a text is.
    """
    blocks = [texts for texts in (*made, *other) if texts.words.texts]
    if not blocks:
        return
    start, end, beside, room, top, behind = (np.concatenate([texts[at] for texts in blocks]) for at in range(6))
    window, px_per_cycle = scale.window, scale.width_px / scale.window.length
    left = (np.maximum(start, window.start) - window.start) * px_per_cycle
    fits = np.ones(len(start), np.bool_)
    fits[sum(len(texts.start) for texts in made) :] = False
    if not fits.all():
        right = (np.minimum(end, window.end) - window.start) * px_per_cycle
        fits |= (right - left >= room + BESIDE_PX) & (start < window.end)
    left, top = left + _LEFT_PX, top - scroll_px
    _fill_behind(painter, left, top, room, np.where(fits, behind, _NOTHING), line_px)
    sheet.begin(painter)
    if sheet.has_all([texts.words for texts in blocks]):
        numbers = np.concatenate([texts.words.numbers for texts in blocks])
        sheet.put_all((left + beside)[fits], top[fits], numbers[fits])
    else:
        every = ((text, ink) for texts in blocks for text, ink in zip(texts.words.texts, texts.words.inks, strict=True))
        for shows, x, y, (text, ink) in zip(fits.tolist(), (left + beside).tolist(), top.tolist(), every, strict=True):
            if shows:
                sheet.put(x, y, text, ink)
    sheet.end()


def _fill_behind(
    painter: QPainter, left: NDArray[np.float64], top: NDArray[np.float64], room: NDArray[np.float64],
    behind: NDArray[np.int64], line_px: float,
) -> None:  # fmt: skip
    """Put a plain colour behind texts of which hatching would disturb."""
    for rgb in np.unique(behind).tolist():
        if rgb != _NOTHING:
            mine = behind == rgb
            sizes = room[mine] + 4, np.full(int(mine.sum()), line_px - 4)
            painter.setBrush(colour(rgb))
            fill_rects(painter, np.stack((left[mine] - 2, top[mine] + 2, *sizes), axis=1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
