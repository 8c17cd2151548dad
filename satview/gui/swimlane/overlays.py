"""What is over the lanes: lost spans, range, cursors, marks, selection. Shared by lanes and ruler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QBrush, QPainter, QPen

from satview.gui.swimlane.scale import TimeScale
from satview.gui.theme import Theme, colour

if TYPE_CHECKING:  # a preview draws losses before a trace is there
    from satview.session.open_trace import OpenTrace

LOST_LEAST_PX: Final = 4.0


def lost_spans(lost: NDArray[np.int64], scale: TimeScale) -> list[tuple[float, float]]:
    """Return the visible lost spans as (left, right) pixels, each at least `LOST_LEAST_PX` wide, merged."""
    window = scale.window
    seen = lost[(lost[:, 1] >= window.start) & (lost[:, 0] < window.end)] if len(lost) else lost
    merged: list[tuple[float, float]] = []
    if not len(seen):
        return merged
    # Many marks can share a pixel: only the first of each pixel can change the picture's left edges.
    lefts = np.clip((seen[:, 0] - window.start) * scale.width_px // window.length, -1, scale.width_px)
    keep = np.unique(lefts, return_index=True)[1]
    for i in keep:
        left, right = max(-8.0, scale.x(int(seen[i, 0]))), min(scale.width_px + 8.0, scale.x(int(seen[i, 1])))
        if right - left < LOST_LEAST_PX:
            middle = (left + right) / 2
            left, right = middle - LOST_LEAST_PX / 2, middle + LOST_LEAST_PX / 2
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


def draw_lost(painter: QPainter, lost: Iterable[tuple[float, float]], height: float, theme: Theme) -> None:
    """Hatch the spans in which events are missing."""
    pen = QPen(colour(theme.error, 150))
    pen.setWidthF(1)
    for left, right in lost:
        area = QRectF(left, 0, right - left, height)
        painter.fillRect(area, colour(theme.base, 190))
        painter.fillRect(area, QBrush(colour(theme.error, 170), Qt.BrushStyle.BDiagPattern))
        painter.setPen(pen)
        painter.drawLines([QLineF(left, 0, left, height), QLineF(right, 0, right, height)])


def draw_range(painter: QPainter, opened: OpenTrace, scale: TimeScale, height: float, theme: Theme) -> None:
    """Tint the selected range."""
    time_range = opened.selection.time_range
    if time_range is None:
        return
    left, right = scale.x(time_range.start), scale.x(time_range.end)
    painter.fillRect(QRectF(left, 0, max(1.0, right - left), height), colour(theme.accent, 38))
    painter.setPen(QPen(colour(theme.accent), 1))
    painter.drawLines([QLineF(left, 0, left, height), QLineF(right, 0, right, height)])


def draw_cursors(painter: QPainter, opened: OpenTrace, scale: TimeScale, height: float, theme: Theme) -> None:
    """Draw cursor A and B, and the position of the selected event."""
    selection = opened.selection
    if selection.event is not None:
        pen = QPen(colour(theme.accent), 1, Qt.PenStyle.DashLine)
        _draw_line(painter, pen, scale.x(int(opened.trace.events.time_cycles[selection.event])), height)
    for cycles, rgb in ((selection.cursor_a, theme.cursor_a), (selection.cursor_b, theme.cursor_b)):
        if cycles is not None:
            _draw_line(painter, QPen(colour(rgb), 1.5), scale.x(cycles), height)


def draw_marks(painter: QPainter, opened: OpenTrace, scale: TimeScale, height: float, theme: Theme) -> None:
    """Draw marks and notes; those with a span are tinted."""
    for mark in opened.marks:
        left, right = scale.x(mark.start_cycles), scale.x(mark.end_cycles)
        if right < 0 or left > scale.width_px:
            continue
        if right > left:
            painter.fillRect(QRectF(left, 0, right - left, height), colour(theme.mark, 26))
        strength = 255 if mark == opened.marks.selected else 150
        _draw_line(painter, QPen(colour(theme.mark, strength), 1, Qt.PenStyle.DotLine), left, height)


def _draw_line(painter: QPainter, pen: QPen, x: float, height: float) -> None:
    if -1 <= x <= 1e5:
        painter.setPen(pen)
        painter.drawLine(QLineF(round(x) + 0.5, 0, round(x) + 0.5, height))
