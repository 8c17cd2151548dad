"""The last pictures of bands of lanes, and which of them are painted again in a frame that may take only so long.

While the view moves, a frame paints as many bands as it has time for, those first that have waited longest; the others
show their last picture where its time is now. The next frame goes on, until all of them are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from math import ceil, floor, inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from satview.base.time import TimeWindow
from satview.gui.swimlane.cost import Cost, clock
from satview.gui.swimlane.frame import Frame
from satview.gui.swimlane.placed_texts import PlacedTexts
from satview.gui.swimlane.share_layer import Stack
from satview.gui.theme import Theme, colour
from satview.session.lanes.lane_row import LaneRow

_BAND_PX: Final = 48  # device pixels, about: some hundred kilobytes
_OLDEST: Final = 7  # frames: a machine that is too slow to paint all lanes again in so many gets longer frames
_PART_LASTS: Final = 0.7  # what frames painted before, beside what one painted now
_WIDEST: Final = 16  # device pixels: a pixel that is to be stretched more than that says too little


class Band:
    """Lanes one below the other that are painted together; for the same lanes it is the same object.

    Attributes:
        rows: The lanes.
    """

    __slots__ = ("rows",)

    def __init__(self, rows: tuple[LaneRow, ...]) -> None:
        self.rows = rows


@dataclass(frozen=True, slots=True, eq=False)
class BandPicture:
    """What a band showed when it was painted.

    Attributes:
        window: The part of the trace.
        pixels: uint32 (height, width), device pixels.
        image: The same.
        stacks: Lanes that show shares or steps, by index.
        texts: What is written into intervals.
        is_final: All that it is made of was there.
    """

    window: TimeWindow
    pixels: NDArray[np.uint32]
    image: QImage
    stacks: dict[int, Stack]
    texts: PlacedTexts
    is_final: bool

    def shows(self, frame: Frame) -> bool:
        """Return whether it was painted for what a frame shows."""
        return self.window == frame.scale.window and self.pixels.shape[1] == frame.width_px

    def covered(self, frame: Frame) -> Covered | None:
        """Return what it covers of a frame."""
        return covered(self.window, self.pixels.shape[1], frame.scale.window, frame.width_px)


class Covered(NamedTuple):
    """What a picture of another window covers of a frame.

    Attributes:
        first, last: Columns of the picture; the last one is not included.
        left, right: Where their edges are in the frame, device pixels.
    """

    first: int
    last: int
    left: float
    right: float


Paint = Callable[[Frame, Sequence[Band], Sequence[BandPicture | None]], list[BandPicture]]


class BandPictures:
    """Keeps the pictures of bands that show.

    Attributes:
        spent_s: What `paint` took the last time.
        round_frames: In how many frames it paints all bands, about, where there is no time for all of them in one.
    """

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._last: dict[Band, BandPicture] = {}
        self._made_of: object = None
        self._outdated: set[Band] = set()
        self.round_frames = 4.0  # nobody knows yet
        self._cost = Cost()

    def show(self, bands: Sequence[Band], made_of: object) -> bool:
        """Say which bands show, and what pictures are made of; return whether the last ones can be shown still."""
        is_same = made_of == self._made_of
        if not is_same:
            self._last, self._made_of = {}, made_of
        if len(self._last) > len(bands) or any(band not in self._last for band in bands):
            showing = set(bands)
            self._last = {band: picture for band, picture in self._last.items() if band in showing}
        self._outdated &= self._last.keys()
        return is_same

    def outdate(self) -> None:
        """Paint all again as soon as there is time: more is known of what they show."""
        self._outdated = set(self._last)

    def of(self, band: Band) -> BandPicture | None:
        """Return the last picture of a band."""
        return self._last.get(band)

    def paint(self, bands: Sequence[Band], frame: Frame, ahead: Frame, paint: Paint, limit_s: float = inf) -> bool:
        """Paint those bands that need it, as many as there is time for, but never too few.

        Args:
            bands: All that show.
            frame: What they are to show.
            ahead: What they are painted for if there is no time for all of them.
            paint: Paints some bands for a frame, into the memory of their last pictures.
            limit_s: How long it may take, about; below 0 = none is painted.

        Returns:
            Whether all are exact now.
        """
        first_s, waiting, at = clock(), self._waiting(bands, frame, with_parts=limit_s == inf), 0
        end_s, what = first_s + limit_s, frame
        while at < len(waiting) and limit_s >= 0:
            begun_s, count = clock(), len(waiting) - at
            fitting = self._cost.fitting(end_s - begun_s)
            if fitting < count:
                what, count = ahead, max(int(fitting), ceil(len(bands) / _OLDEST) - at)
                if count < 1:
                    break
            chunk = waiting[at : at + count]
            self._take(chunk, paint(what, chunk, [self._last.get(band) for band in chunk]))
            at += len(chunk)
            self._cost.saw(len(chunk), clock() - begun_s)
        self.spent_s = clock() - first_s
        if at < len(waiting):
            part = at / len(bands)
            self.round_frames = min(1 / (_PART_LASTS / self.round_frames + (1 - _PART_LASTS) * part), 2.0 * _OLDEST)
        return at == len(waiting) and what is frame

    def _waiting(self, bands: Sequence[Band], frame: Frame, *, with_parts: bool) -> list[Band]:
        """Return the bands that are not exact: first those that show nothing, then those painted longest ago.

        What a band lacked when it was painted is announced by `outdate`; frames on the screen do not look for it.
        """
        age = {band: at for at, band in enumerate(self._last)}  # painted pictures go to the end
        found = []
        for band in bands:
            last = self._last.get(band)
            if last is None or last.covered(frame) is None:
                age[band] = -1
            elif (last.is_final or not with_parts) and band not in self._outdated and last.shows(frame):
                continue
            found.append(band)
        return sorted(found, key=age.__getitem__)

    def _take(self, bands: Sequence[Band], pictures: Sequence[BandPicture]) -> None:
        for band, picture in zip(bands, pictures, strict=True):
            self._last.pop(band, None)
            self._last[band] = picture
            self._outdated.discard(band)


def bands_of(rows: Sequence[LaneRow], ratio: float) -> list[Band]:
    """Return lanes in bands, which stay what they are while the list is scrolled, but for the first and last lanes."""
    return [_band(tuple(band)) for _, band in groupby(rows, lambda row: int(row.y_px * ratio) // _BAND_PX)]


@lru_cache(maxsize=1024)
def _band(rows: tuple[LaneRow, ...]) -> Band:
    return Band(rows)


@lru_cache(maxsize=64)
def covered(picture: TimeWindow, picture_px: int, window: TimeWindow, width_px: int) -> Covered | None:
    """Return what a picture covers of a frame, None if that is nothing or too coarse.

    Args:
        picture: Which part of the trace it shows.
        picture_px: On how many device pixels.
        window: Which part the frame shows.
        width_px: On how many.
    """
    ahead = window.start - picture.start
    first = max(0, ahead * picture_px // picture.length)
    last = min(picture_px, -(-(ahead + window.length) * picture_px // picture.length))
    if last <= first or picture.length * width_px > _WIDEST * picture_px * window.length:
        return None
    # Exact until the division: what is left are whole cycles times pixels.
    left, right = ((at * picture.length - ahead * picture_px) * width_px / (picture_px * window.length)
                   for at in (first, last))  # fmt: skip
    return Covered(first, last, left, right)


def draw_band(painter: QPainter, picture: BandPicture | None, area: QRectF, frame: Frame, theme: Theme) -> None:
    """Draw a band where it is now: as it was painted, or what that covers of the frame.

    Args:
        painter: Of the swimlanes.
        picture: Its last picture; None = it has none.
        area: The band, logical pixels.
        frame: What is drawn.
        theme: Colours.
    """
    found = picture.covered(frame) if picture is not None else None
    if picture is None or found is None:
        painter.fillRect(area, colour(theme.window))
        return
    if picture.shows(frame):
        painter.drawImage(area.topLeft(), picture.image)
        return
    left, right = found.left / frame.ratio, found.right / frame.ratio
    for start, end in ((0.0, ceil(left)), (floor(right), area.width())):
        if end > start:
            painter.fillRect(QRectF(start, area.top(), end - start, area.height()), colour(theme.window))
    source = QRectF(found.first, 0, found.last - found.first, len(picture.pixels))
    painter.drawImage(QRectF(left, area.top(), right - left, area.height()), picture.image, source)
