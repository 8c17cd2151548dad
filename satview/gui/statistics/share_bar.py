"""Draws shares: a slim bar under the number."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from satview.gui.statistics.model import SHARE_ROLE
from satview.gui.theme import Theme, colour

_HEIGHT_PX: Final = 3
_MARGIN_PX: Final = 6


class ShareBar(QStyledItemDelegate):
    """Draws cells that have a share as text over a bar, all others as usual."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.theme = theme

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw one cell."""
        super().paint(painter, option, index)
        share = index.data(SHARE_ROLE)
        if share is None:
            return
        cell = QRectF(option.rect)
        track = QRectF(
            cell.left() + _MARGIN_PX, cell.bottom() - _HEIGHT_PX - 1, cell.width() - 2 * _MARGIN_PX, _HEIGHT_PX
        )
        painter.save()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(colour(self.theme.line))
        painter.drawRoundedRect(track, _HEIGHT_PX / 2, _HEIGHT_PX / 2)
        filled = track.width() * min(float(share), 1.0)
        if filled > 0:
            track.setWidth(max(filled, _HEIGHT_PX / 2))
            painter.setBrush(colour(self.theme.accent))
            painter.drawRoundedRect(track, _HEIGHT_PX / 2, _HEIGHT_PX / 2)
        painter.restore()
