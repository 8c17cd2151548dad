"""The legend: which colour represents what, only what occurs in this trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from satview.events import states
from satview.gui.colours import THICK, value_colour
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.timeline.lane_tree import LaneKind

_ROW_PX: Final = 18
_PAD_PX: Final = 8
_NAMES: Final = {
    states.UNKNOWN: "unknown",
    states.IDLE: "idle",
    states.INTERRUPT: "interrupt",
    states.KERNEL_CALL: "kernel call",
    states.WAITING: "no thread runs",
}


_SHARES: Final = -1  # no lane value: how lanes are drawn where intervals are too dense for bars


class Legend(QWidget):
    """Swatches with names, in as many rows as the width asks for."""

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._font = QFont(self.font())
        self._font.setPixelSize(10)
        self._opened = opened
        self._entries: tuple[tuple[int, str], ...] = ()
        self._refresh()
        opened.reloaded.connect(self._refresh)

    @Slot()
    def _refresh(self) -> None:
        entries = tuple(_entries(self._opened))
        if entries != self._entries:
            self._entries = entries
            self.setAccessibleName("Legend: " + ", ".join(name for _, name in entries))
            if self.isVisible():
                self.setFixedHeight(self._height_for(self.width()))
            self.update()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        self.update()

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Follow the size."""
        self.setFixedHeight(self._height_for(self.width()))

    def sizeHint(self) -> QSize:
        """Return the size that shows everything."""
        return QSize(200, self._height_for(max(200, self.width())))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw."""
        painter = QPainter(self)
        theme = self._theme
        painter.fillRect(self.rect(), colour(theme.panel))
        painter.fillRect(QRectF(0, 0, self.width(), 1), colour(theme.line))
        painter.setFont(self._font)
        for (value, name), position in zip(self._entries, self._positions(self.width()), strict=True):
            if value == _SHARES:
                self._draw_shares(painter, position)
            rgb = value_colour(value, theme.is_dark, theme.palette) if value != _SHARES else None
            height = 10 if value in THICK else 7
            swatch = QRectF(position.left(), position.center().y() - height / 2, 14, height)
            if value != _SHARES:
                painter.fillRect(swatch, colour(theme.base if rgb is None else rgb))
            painter.setPen(colour(theme.dim))
            painter.drawText(
                position.adjusted(19, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, name
            )

    def _draw_shares(self, painter: QPainter, position: QRectF) -> None:
        """Draw three bars of different height."""
        running = value_colour(states.RUNNING, self._theme.is_dark, self._theme.palette) or 0
        painter.fillRect(QRectF(position.left(), position.center().y() - 5, 14, 10), colour(self._theme.line))
        for step, height in enumerate((4, 9, 6)):
            bar = QRectF(position.left() + step * 5, position.center().y() + 5 - height, 4, height)
            painter.fillRect(bar, colour(running))

    def _positions(self, width: int) -> list[QRectF]:
        metrics = QFontMetricsF(self._font)
        x, y = float(_PAD_PX), 4.0
        positions = []
        for _, name in self._entries:
            needed = 19 + metrics.horizontalAdvance(name) + 2
            if x + needed > width - _PAD_PX and x > _PAD_PX:
                x, y = float(_PAD_PX), y + _ROW_PX
            positions.append(QRectF(x, y, needed, _ROW_PX))
            x += needed + 12
        return positions

    def _height_for(self, width: int) -> int:
        positions = self._positions(width)
        return round(positions[-1].bottom()) + 4 if positions else 0


def _entries(opened: OpenTrace) -> Iterable[tuple[int, str]]:
    trace = opened.trace
    values = trace.catalogue.state_value_of_code
    codes = np.flatnonzero(trace.code_counts)
    seen = {int(values[code]) for code in codes}
    for state in states.STATES:
        if state.value in seen:
            yield state.value, state.name
    yield states.IDLE, _NAMES[states.IDLE]
    if any(info.kind is LaneKind.INTERRUPTS for info in opened.timeline.infos):
        yield states.INTERRUPT, _NAMES[states.INTERRUPT]
    if not seen - {states.NOT_A_STATE}:
        yield states.KERNEL_CALL, _NAMES[states.KERNEL_CALL]
    yield states.WAITING, _NAMES[states.WAITING]
    yield states.UNKNOWN, _NAMES[states.UNKNOWN]
    yield _SHARES, "dense: height is share of time"
