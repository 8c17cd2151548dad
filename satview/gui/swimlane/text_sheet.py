"""Texts drawn once and copied from then on: a tenth of the time that drawing them again takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFont, QPainter, QPixmap, QStaticText

from satview.gui.swimlane.array_drawing import draw_parts
from satview.gui.swimlane.vector_lanes import needs_vectors
from satview.gui.theme import colour

_WIDTH_PX: Final = 1024  # of a sheet, logical pixels: room for a thousand names
_HEIGHT_PX: Final = 512


class LaidText:
    """A text laid out.

    Attributes:
        words: The text.
        font: How it looks.
        width_px, height_px: How large it is.
        spots: Colour to the sheet that it was drawn on, and where among the texts of it.
    """

    __slots__ = ("font", "height_px", "spots", "width_px", "words")

    def __init__(self, words: str, font: QFont) -> None:
        text = QStaticText(words)
        text.setTextFormat(Qt.TextFormat.PlainText)
        text.prepare(font=font)
        size = text.size()
        self.words, self.font, self.width_px, self.height_px = text, font, size.width(), size.height()
        self.spots: dict[int, tuple[object, int]] = {}


class Inked:
    """Texts with their colours that are put together again and again.

    Attributes:
        texts: The texts.
        inks: Their colours, 0xRRGGBB.
        filled, numbers: The state of a sheet, and the numbers that all of them have on it.
    """

    __slots__ = ("filled", "inks", "numbers", "texts")

    def __init__(self, texts: list[LaidText], inks: list[int]) -> None:
        self.texts, self.inks = texts, inks
        self.filled: object = None
        self.numbers = np.empty(0, np.intp)


class TextSheet:
    """An image of texts, from which frames take theirs. Texts of one sheet are put on no other.

    Where no pixels are requested, in files of lines, texts are drawn as texts.
    """

    def __init__(self) -> None:
        self._pixmap: QPixmap | None = None
        self._ratio = 0.0
        self._filled = object()  # what the texts on it know it by; another one when it is empty again
        self._rects: list[tuple[int, int, int, int]] = []
        self._at, self._row_px = (0, 0), 0
        self._painter: QPainter | None = None
        self._direct = False
        self._found: list[int] = []
        self._placed: list[NDArray[np.intp]] = []  # (n, 3) each: device pixels, and numbers of texts

    def begin(self, painter: QPainter) -> None:
        """Begin a frame."""
        transform = painter.deviceTransform()
        self._painter, ratio = painter, transform.m11()
        is_turned = transform.m12() != 0 or transform.m21() != 0
        self._direct = needs_vectors(painter) or is_turned or ratio != transform.m22() or ratio <= 0
        if not self._direct and ratio != self._ratio:
            self._ratio, self._pixmap = ratio, None

    def put(self, x: float, y: float, text: LaidText, rgb: int) -> None:
        """Put a text with its top left corner at a position of the picture, in a colour, 0xRRGGBB."""
        spot = text.spots.get(rgb)
        if spot is None or spot[0] is not self._filled or self._direct or self._pixmap is None:
            number = -1 if self._direct else self._drawn(text, rgb)
            if number < 0:
                self._draw(x, y, text, rgb)
                return
        else:
            number = spot[1]
        self._found += (round(x * self._ratio), round(y * self._ratio), number)

    def has_all(self, blocks: Sequence[Inked]) -> bool:
        """Draw texts on the sheet as far as they are not there, and note where; False if it has no room for all."""
        if self._direct:
            return False
        for _ in range(2):  # a sheet that gets full is emptied, and what was found before is no longer there
            missing = [block for block in blocks if block.filled is not self._filled and block.texts]
            if not missing:
                return True
            for block in missing:
                if not self._note(block):
                    return False
        return False

    def put_all(self, x: NDArray[np.float64], y: NDArray[np.float64], numbers: NDArray[np.intp]) -> None:
        """Put texts as `put` does, by the numbers that `has_all` noted for them."""
        columns = np.rint(x * self._ratio), np.rint(y * self._ratio), numbers
        self._placed.append(np.stack(columns, axis=1).astype(np.intp))

    def _note(self, block: Inked) -> bool:
        """Note the numbers of texts; False if one is too large for any sheet."""
        numbers = list[int]()
        for text, rgb in zip(block.texts, block.inks, strict=True):
            spot = text.spots.get(rgb)
            numbers.append(spot[1] if spot is not None and spot[0] is self._filled else self._drawn(text, rgb))
            if numbers[-1] < 0:
                return False
        if all(text.spots[rgb][0] is self._filled for text, rgb in zip(block.texts, block.inks, strict=True)):
            block.numbers, block.filled = np.array(numbers, np.intp), self._filled
        return True

    def end(self) -> None:
        """Draw what was put, and let the painter go: one that lives on would stay active."""
        self._flush()
        self._painter = None

    def _flush(self) -> None:
        painter, found, parts = self._painter, self._found, self._placed
        self._found, self._placed = [], []
        if painter is None or self._pixmap is None or not (found or parts):
            return
        placed = np.concatenate([*parts, np.array(found, np.intp).reshape(-1, 3)])
        rects = np.array(self._rects)[placed[:, 2]]
        middles = (placed[:, :2] + rects[:, 2:] / 2) / self._ratio
        draw_parts(painter, middles, rects, 1 / self._ratio, self._pixmap)

    def _draw(self, x: float, y: float, text: LaidText, rgb: int) -> None:
        painter = self._painter
        assert painter is not None
        painter.setFont(text.font)
        painter.setPen(colour(rgb))
        painter.drawStaticText(QPointF(x, y), text.words)

    def _drawn(self, text: LaidText, rgb: int) -> int:
        """Draw a text on the sheet, on an empty one if it is full; return its number, -1 if it is too large for any."""
        width, height = (int(size * self._ratio) + 2 for size in (text.width_px, text.height_px))
        most = round(_WIDTH_PX * self._ratio), round(_HEIGHT_PX * self._ratio)
        if width > most[0] or height > most[1]:
            return -1
        left, top = self._at
        if left + width > most[0]:
            left, top, self._row_px = 0, top + self._row_px, 0
        if self._pixmap is None or top + height > most[1]:
            self._flush()
            self._pixmap, self._filled = QPixmap(*most), object()
            self._pixmap.fill(Qt.GlobalColor.transparent)
            self._rects, left, top, self._row_px = [], 0, 0, 0
        self._at, self._row_px = (left + width, top), max(self._row_px, height)
        with QPainter(self._pixmap) as painter:
            painter.translate(left, top)
            painter.scale(self._ratio, self._ratio)
            painter.setFont(text.font)
            painter.setPen(colour(rgb))
            painter.drawStaticText(QPointF(0, 0), text.words)
        self._rects.append((left, top, width, height))
        text.spots[rgb] = self._filled, len(self._rects) - 1
        return len(self._rects) - 1
