"""Texts cut to the room there is and laid out; kept, for eliding and layout are slow."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF, QStaticText

from satview.base.safe_text import visible_line

_KEPT: Final = 5000
_WIDEST_PX: Final = 4000


class FittedTexts:
    """The texts of one font.

    Args:
        font: How they look.
        mode: Where they are cut.
        step_px: Room is rounded down to such steps, so that texts need not be laid out again at every zoom.
        least: Cut to fewer letters than that a text says nothing and is left out.
    """

    def __init__(self, font: QFont, mode: Qt.TextElideMode, step_px: int = 1, least: int = 1) -> None:
        self.font = font
        self.metrics = QFontMetricsF(font)
        self._mode, self._step_px, self._least = mode, step_px, least
        self._texts: dict[tuple[str, int], QStaticText | None] = {}
        self._widths: dict[str, float] = {}
        self._parts: dict[tuple[tuple[str, ...], int], QStaticText | None] = {}

    def fit(self, text: str, room_px: float) -> QStaticText | None:
        """Return what of a text fits, None if that is not worth showing."""
        key = (text, min(int(room_px), _WIDEST_PX) // self._step_px)
        if key not in self._texts:
            if len(self._texts) > _KEPT:
                self._texts.clear()
            words = self.metrics.elidedText(visible_line(text), self._mode, key[1] * self._step_px)
            self._texts[key] = self._laid_out(words) if len(words) >= min(self._least, len(text)) else None
        return self._texts[key]

    def width(self, text: str) -> float:
        """Return how wide a text is that is not cut."""
        if text not in self._widths:
            if len(self._widths) > _KEPT:
                self._widths.clear()
            self._widths[text] = float(self.metrics.horizontalAdvance(text))
        return self._widths[text]

    def fit_parts(self, parts: tuple[str, ...], room_px: float) -> QStaticText | None:
        """Return as many of some texts as fit whole, from the first on; of the first one what fits."""
        key = (parts, min(int(room_px), _WIDEST_PX) // self._step_px)
        if key not in self._parts:
            if len(self._parts) > _KEPT:
                self._parts.clear()
            count = len(parts)
            while count > 1 and self.metrics.horizontalAdvance(_joined(parts[:count])) > key[1] * self._step_px:
                count -= 1
            self._parts[key] = self.fit(_joined(parts[:count]), room_px)
        return self._parts[key]

    def _laid_out(self, words: str) -> QStaticText:
        text = QStaticText(words)
        text.setTextFormat(Qt.TextFormat.PlainText)
        text.prepare(font=self.font)
        return text


def _joined(parts: tuple[str, ...]) -> str:
    return visible_line("   ".join(parts))
