"""Texts cut to the room there is and laid out; cached, as eliding and layout are slow."""

from __future__ import annotations

import math
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF, QStaticText

from satview.base.safe_text import visible_line

_CACHE_LIMIT: Final = 5000
_WIDEST_PX: Final = 4000
_LONGEST: Final = 1000  # letters: more are cut before they are laid out
_GAP: Final = "   "  # between parts


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
        self._texts: dict[str, tuple[QStaticText, float]] = {}  # whole, with their widths
        self._cut: dict[tuple[str, int], QStaticText | None] = {}
        self._widths: dict[str, float] = {}

    def fit(self, text: str, room_px: float) -> QStaticText | None:
        """Return what of a text fits, None if that is not worth showing."""
        steps = min(int(room_px), _WIDEST_PX) // self._step_px
        whole, width_px = self._whole_text(text)
        if width_px <= steps * self._step_px:
            return whole
        key = (text, steps)
        if key not in self._cut:
            if len(self._cut) > _CACHE_LIMIT:
                self._cut.clear()
            words = self.metrics.elidedText(visible_line(text), self._mode, steps * self._step_px)
            self._cut[key] = self._laid_out(words) if len(words) >= min(self._least, len(text)) else None
        return self._cut[key]

    def width(self, text: str) -> float:
        """Return how wide a text is that is not cut."""
        if text not in self._widths:
            if len(self._widths) > _CACHE_LIMIT:
                self._widths.clear()
            self._widths[text] = float(self.metrics.horizontalAdvance(text))
        return self._widths[text]

    def fit_parts(self, parts: tuple[str, ...], room_px: float) -> QStaticText | None:
        """Return as many of some texts as fit whole, from the first on; of the first one what fits."""
        used_px, count, gap_px = self.width(parts[0]), 1, self.width(_GAP)
        for part in parts[1:]:  # only what fits is laid out
            used_px += gap_px + self.width(part)
            if used_px > room_px - self._step_px or len(part) > _LONGEST:
                break
            count += 1
        return self.fit(_GAP.join(parts[:count]), room_px)

    def _whole_text(self, text: str) -> tuple[QStaticText | None, float]:
        """Return a text laid out, and how wide it is; None of one that is too long anywhere."""
        if len(text) > _LONGEST:
            return None, math.inf
        if text not in self._texts:
            if len(self._texts) > _CACHE_LIMIT:
                self._texts.clear()
            words = visible_line(text)
            self._texts[text] = self._laid_out(words), float(self.metrics.horizontalAdvance(words))
        return self._texts[text]

    def _laid_out(self, words: str) -> QStaticText:
        text = QStaticText(words)
        text.setTextFormat(Qt.TextFormat.PlainText)
        text.prepare(font=self.font)
        return text
