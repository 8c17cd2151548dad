"""Draws the ticks of a time axis with their texts."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QLineF, QPointF
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen

from satview.gui.swimlane.ticks import Tick
from satview.gui.theme import Theme, colour

TICK_ROW_PX: Final = 22


def draw_ticks(painter: QPainter, found: list[Tick], width_px: int, font: QFont, theme: Theme) -> None:
    """Draw ticks that are on a line `TICK_ROW_PX` below the top, texts beside the long ones.

    Args:
        painter: Of a ruler.
        found: The ticks.
        width_px: Of the ruler; a text that would reach beyond is left out.
        font: Of the texts.
        theme: Colours.
    """
    painter.setPen(QPen(colour(theme.faint), 1))
    painter.drawLines(
        [
            QLineF(round(tick.x) + 0.5, TICK_ROW_PX - (9 if tick.text else 4), round(tick.x) + 0.5, TICK_ROW_PX)
            for tick in found
        ]
    )
    painter.setFont(font)
    painter.setPen(colour(theme.dim))
    metrics = QFontMetricsF(font)
    for tick in found:
        if tick.text and -1 <= tick.x <= width_px - metrics.horizontalAdvance(tick.text) - 6:
            painter.drawText(QPointF(round(tick.x) + 5, TICK_ROW_PX - 6), tick.text)
