"""Texts cut to the room there is and laid out; cached, as eliding and layout are slow."""

from __future__ import annotations

import math
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF

from satview.base.safe_text import visible_line
from satview.gui.swimlane.text_sheet import LaidText

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
        self._texts: dict[str, tuple[LaidText, float]] = {}  # whole, with their widths
        self._cut: dict[tuple[str, int], LaidText | None] = {}
        self._widths: dict[str, float] = {}

    def fit(self, text: str, room_px: float) -> LaidText | None:
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
            self._cut[key] = LaidText(words, self.font) if len(words) >= min(self._least, len(text)) else None
        return self._cut[key]

    def laid(self, text: str) -> LaidText:
        """Return a short text that is not cut, whatever room there is."""
        if text not in self._texts:
            self._whole_text(text)
        return self._texts[text][0]

    def width(self, text: str) -> float:
        """Return how wide a text is that is not cut."""
        if text not in self._widths:
            if len(self._widths) > _CACHE_LIMIT:
                self._widths.clear()
            self._widths[text] = float(self.metrics.horizontalAdvance(text))
        return self._widths[text]

    def fit_parts(self, parts: tuple[str, ...], room_px: float) -> list[tuple[float, LaidText]]:
        """Return as many of some texts as fit whole, each with its distance from the first one; of that what fits."""
        if not self.has_room_after(parts[0], room_px) or len(parts) == 1:
            words = self.fit(parts[0], room_px)
            return [] if words is None else [(0.0, words)]
        found, used_px = list[tuple[float, LaidText]](), 0.0
        for part in parts:
            words = self._whole_text(part)[0] if not found or len(part) <= _LONGEST else None
            if words is None or (found and used_px + words.width_px > room_px - self._step_px):
                break
            found.append((used_px, words))
            used_px += words.width_px + self.width(_GAP)
        return found

    def has_room_after(self, text: str, room_px: float) -> bool:
        """Return whether another text may have room behind one."""
        return len(text) <= _LONGEST and self.width(text) + self.width(_GAP) < room_px - self._step_px

    def _whole_text(self, text: str) -> tuple[LaidText | None, float]:
        """Return a text laid out, and how wide it is; None of one that is too long anywhere."""
        if len(text) > _LONGEST:
            return None, math.inf
        if text not in self._texts:
            if len(self._texts) > _CACHE_LIMIT:
                self._texts.clear()
            words = visible_line(text)
            self._texts[text] = LaidText(words, self.font), float(self.metrics.horizontalAdvance(words))
        return self._texts[text]
