"""A line of texts on the ruler that never overprint each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter

_GAP_PX: Final = 4.0
_LEAST_PX: Final = 34.0  # narrower than that a cut text says nothing


class TextRow:
    """What is taken of a line of the ruler already, and where there is room.

    Args:
        painter: Of the ruler, with the font of the texts.
        area: The line.
    """

    def __init__(self, painter: QPainter, area: QRectF) -> None:
        self._painter, self._area = painter, area
        self._metrics = QFontMetricsF(painter.font())
        self._taken: list[tuple[float, float]] = []

    def take(self, left: float, right: float) -> None:
        """Keep texts away from a rectangle."""
        self._taken.append((left, right))

    def centred(self, texts: Sequence[str], left: float, right: float) -> bool:
        """Write the first of some texts that fits in the middle of the room between two positions, else behind it.

        Returns:
            Whether any of them fits.
        """
        gaps = self._gaps(max(left, self._area.left()), min(right, self._area.right()))
        first, last = max(gaps, key=lambda gap: gap[1] - gap[0], default=(0.0, 0.0))
        behind = next(iter(self._gaps(max(right, self._area.left()), self._area.right())), (0.0, 0.0))
        for start, end in ((first, last), behind):
            for text in texts:
                width = self._metrics.horizontalAdvance(text) + 2 * _GAP_PX
                if width <= end - start:
                    middle = (start + end) / 2 if (start, end) == (first, last) else start + width / 2
                    self._write(text, middle - width / 2, width)
                    return True
        return False

    def from_left(self, text: str, left: float) -> None:
        """Write as much of a text as fits from a position on; nothing if that is hardly a letter."""
        room = next((end - left for start, end in self._gaps(left, self._area.right()) if start <= left < end), 0.0)
        cut = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(0.0, room - 2 * _GAP_PX))
        width = self._metrics.horizontalAdvance(cut) + 2 * _GAP_PX
        if width <= room and (cut == text or room >= _LEAST_PX):
            self._write(cut, left, width)

    def _write(self, text: str, left: float, width: float) -> None:
        box = QRectF(left, self._area.top(), width, self._area.height())
        self._painter.drawText(box, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextSingleLine, text)
        self._taken.append((left, left + width))

    def _gaps(self, left: float, right: float) -> list[tuple[float, float]]:
        """Return the free parts between two positions, from left to right."""
        found, at = [], left
        for start, end in sorted(self._taken):
            if start > at and min(start, right) > at:
                found.append((at, min(start, right)))
            at = max(at, end)
        if at < right:
            found.append((at, right))
        return found
