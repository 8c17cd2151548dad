"""The critical path over the lanes: a line along the lane that it is with, and steps where it changes over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from satview.analysis.reasons.critical_path import CriticalPath, PieceKind
from satview.gui.swimlane.scale import TimeScale
from satview.gui.theme import Theme, colour
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace

_WIDTH_PX: Final = 2.5
_HALO_PX: Final = 5.5
_Y: Final = 0.2  # of the height of a lane: above the bars' text, so that both can be read
_SOLID: Final = (PieceKind.RUNNING, PieceKind.WAKING)


def draw_path(
    painter: QPainter, opened: OpenTrace, rows: Sequence[LaneRow], scroll_px: int, scale: TimeScale, theme: Theme
) -> None:
    """Draw the path that was found, solid where its thread runs, dashed where it is ready, dotted where it waits.

    Of pieces that begin in one pixel the longest is drawn, so that the cost is bounded by the width.

    Args:
        painter: Of the swimlanes.
        opened: Has the path.
        rows: The lanes in the picture.
        scroll_px: How far they are scrolled.
        scale: Of the picture.
        theme: Its colours.
    """
    found = opened.path.found
    if found is None:
        return
    heights = {row.index: row.y_px - scroll_px + row.height_px * _Y for row in rows}
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    last: QPointF | None = None
    for piece in visible_pieces(found.path, scale):
        y = _height(opened, int(found.path.on_thread[piece]), heights)
        if y is None:
            last = None
            continue
        left, right = scale.x(int(found.path.start_cycles[piece])), scale.x(int(found.path.end_cycles[piece]))
        points = [QPointF(max(left, -8.0), y), QPointF(min(right, scale.width_px + 8.0), y)]
        kind = PieceKind(int(found.path.kind[piece]))
        if last is not None and last.y() != y:
            _line(painter, [last, points[0]], Qt.PenStyle.SolidLine, theme)
        style = Qt.PenStyle.SolidLine if kind in _SOLID else (
            Qt.PenStyle.DashLine if kind is PieceKind.READY else Qt.PenStyle.DotLine)  # fmt: skip
        _line(painter, points, style, theme)
        last = points[1]
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)


def visible_pieces(path: CriticalPath, scale: TimeScale) -> list[int]:
    """Return the pieces in the picture in time order; of those that begin in one pixel the longest."""
    first = int(np.searchsorted(path.end_cycles, scale.window.start, side="right"))
    last = int(np.searchsorted(path.start_cycles, scale.window.end))
    if last - first <= 1:
        return list(range(first, last))
    start = np.maximum(path.start_cycles[first:last], scale.window.start)
    length = path.end_cycles[first:last] - path.start_cycles[first:last]
    pixel = ((start - scale.window.start) * (scale.width_px / scale.window.length)).astype(np.int64)
    order = np.lexsort((-length, pixel))
    keep = np.append(True, pixel[order][1:] != pixel[order][:-1])
    return [first + int(position) for position in np.sort(order[keep])]


def _height(opened: OpenTrace, thread: int, heights: dict[int, float]) -> float | None:
    """Return where the line of a thread is drawn: on its lane, or on the one that it is folded into."""
    lane = opened.lane_of_thread(thread)
    if lane is not None and lane not in heights:
        lane = opened.timeline.infos[lane].parent
    return heights.get(lane) if lane is not None else None


def _line(painter: QPainter, points: list[QPointF], style: Qt.PenStyle, theme: Theme) -> None:
    halo = QPen(colour(theme.base, 200), _HALO_PX)
    halo.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(halo)
    painter.drawPolyline(QPolygonF(points))
    pen = QPen(colour(theme.accent), _WIDTH_PX, style)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    painter.setPen(pen)
    painter.drawPolyline(QPolygonF(points))
