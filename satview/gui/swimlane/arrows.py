"""Arrows over the lanes from the causes of the selected event to its effects."""

from __future__ import annotations

from collections.abc import Sequence
from math import atan2, cos, pi, sin
from typing import Final

from PySide6.QtCore import QLineF, QPointF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from satview.gui.swimlane.scale import TimeScale
from satview.gui.theme import Theme, colour
from satview.links.table import Certainty
from satview.session.lane_list import LaneRow
from satview.session.open_trace import OpenTrace

_HEAD_PX: Final = 8.0
_HEAD_ANGLE: Final = pi / 7
_BEYOND_PX: Final = 60.0  # ends outside the picture are drawn that far outside, for the direction's sake
_HALO_PX: Final = 4.0


def draw_arrows(
    painter: QPainter, opened: OpenTrace, rows: Sequence[LaneRow], scroll_px: int, scale: TimeScale, theme: Theme
) -> None:
    """Draw one arrow for each step between two lanes; a dashed one is inferred or a guess.

    Args:
        painter: Of the swimlanes.
        opened: Tells the way of the selected event.
        rows: The lanes in the picture.
        scroll_px: How far they are scrolled.
        scale: Of the picture.
        theme: Its colours.
    """
    way = opened.event_links.found.way
    if not way:
        return
    middles = {row.index: row.y_px - scroll_px + row.height_px * 0.555 for row in rows}
    times, width = opened.trace.events.time_cycles, scale.width_px
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for hop in way:
        lanes = (_lane_in(opened, hop.from_row, middles), _lane_in(opened, hop.to_row, middles))
        if lanes[0] is None or lanes[1] is None or lanes[0] == lanes[1]:
            continue
        left, right = (scale.x(int(times[row])) for row in (hop.from_row, hop.to_row))
        if right < -_BEYOND_PX or left > width + _BEYOND_PX:
            continue
        start = QPointF(max(left, -_BEYOND_PX), middles[lanes[0]])
        end = QPointF(min(right, width + _BEYOND_PX), middles[lanes[1]])
        _draw_arrow(painter, start, end, theme, is_exact=hop.certainty is Certainty.EXACT)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)


def _lane_in(opened: OpenTrace, event: int, middles: dict[int, float]) -> int | None:
    """Return the lane of an event, or the one that it is folded into, if it is in the picture."""
    lane = opened.lane_of_event(event)
    if lane is not None and lane not in middles:
        lane = opened.timeline.infos[lane].parent
    return lane if lane in middles else None


def _draw_arrow(painter: QPainter, start: QPointF, end: QPointF, theme: Theme, *, is_exact: bool) -> None:
    angle = atan2(end.y() - start.y(), end.x() - start.x())
    corners = [end] + [
        end - QPointF(cos(angle + turn) * _HEAD_PX, sin(angle + turn) * _HEAD_PX)
        for turn in (-_HEAD_ANGLE, _HEAD_ANGLE)
    ]
    neck = (corners[1] + corners[2]) / 2
    halo = QPen(colour(theme.base, 210), _HALO_PX)
    halo.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(halo)
    painter.drawLine(QLineF(start, neck))
    line = QPen(colour(theme.text), 1.6)
    if not is_exact:
        line.setStyle(Qt.PenStyle.DashLine)
    painter.setPen(line)
    painter.drawLine(QLineF(start, neck))
    painter.setPen(QPen(colour(theme.base, 210), 1))
    painter.setBrush(colour(theme.text))
    painter.drawPolygon(QPolygonF(corners))
    painter.drawEllipse(start, 2.5, 2.5)
