"""Arrows over the lanes: the way of the selected event, what is highlighted, and all messages, pulses and wake-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import atan2, cos, pi, sin
from typing import Final

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen, QPolygonF

from satview.base.time_text import format_duration
from satview.gui.swimlane.scale import TimeScale
from satview.gui.theme import Theme, colour
from satview.linkage.chain import Hop
from satview.linkage.table import Certainty
from satview.session.highlight import Leg, WaitsFor
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace

MIDDLE: Final = 0.555  # of a lane: the bar begins under the marks of events
_HEAD_PX: Final = 8.0
_HEAD_ANGLE: Final = pi / 7
_BEYOND_PX: Final = 60.0  # ends outside the picture are drawn that far outside, for the direction's sake
_HALO_PX: Final = 4.0
_TICK_PX: Final = 4.0
_TEXT_ROOM_PX: Final = 8
_ARROW_PX: Final = 14.0  # from the begin of a wait to its arrow, and between arrows


def draw_arrows(
    painter: QPainter, opened: OpenTrace, rows: Sequence[LaneRow], scroll_px: int, scale: TimeScale, theme: Theme
) -> None:
    """Draw what is highlighted with its legs, else the way of the selected event; dashed ones are inferred or a guess.

    Args:
        painter: Of the swimlanes.
        opened: Shows them.
        rows: The lanes in the picture.
        scroll_px: How far they are scrolled.
        scale: Of the picture.
        theme: Its colours.
    """
    shown = opened.highlight.shown
    hops = shown.hops if shown is not None else opened.event_links.found.way
    waits = shown.waits if shown is not None else ()
    if not hops and shown is None:
        return
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if shown is not None:
        _draw_legs(painter, opened, shown.legs, rows, scroll_px, scale, theme)
    _draw_hops(painter, opened, hops, scroll_px, scale, theme)
    _draw_waits(painter, opened, waits, scroll_px, scale, theme)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)


def _draw_hops(
    painter: QPainter, opened: OpenTrace, hops: Sequence[Hop], scroll_px: int, scale: TimeScale, theme: Theme
) -> None:
    # Lanes above and below the picture too: an arrow that leaves it shows where it goes.
    middles = {row.index: row.y_px - scroll_px + row.height_px * MIDDLE for row in opened.lanes.rows} if hops else {}
    times, width = opened.trace.events.time_cycles, scale.width_px
    for hop in hops:
        lanes = (_lane_in(opened, opened.lane_of_cause(hop.from_row), middles),
                 _lane_in(opened, opened.lane_of_event(hop.to_row), middles))  # fmt: skip
        if lanes[0] is None or lanes[1] is None or lanes[0] == lanes[1]:
            continue
        left, right = (scale.x(int(times[row])) for row in (hop.from_row, hop.to_row))
        if right < -_BEYOND_PX or left > width + _BEYOND_PX:
            continue
        start = QPointF(max(left, -_BEYOND_PX), middles[lanes[0]])
        end = QPointF(min(right, width + _BEYOND_PX), middles[lanes[1]])
        _draw_arrow(painter, start, end, theme, is_exact=hop.certainty is Certainty.EXACT)


def _draw_waits(
    painter: QPainter, opened: OpenTrace, waits: Sequence[WaitsFor], scroll_px: int, scale: TimeScale, theme: Theme
) -> None:
    """Draw an arrow from each thread that waits to who has what it waits for, and outline that one meanwhile."""
    rows = opened.lanes.rows if waits else ()
    tops = {row.index: (float(row.y_px - scroll_px), float(row.height_px)) for row in rows}
    used_px: list[float] = []
    for wait in waits:
        lanes = [_lane_in(opened, opened.lane_of_thread(row), tops) for row in (wait.thread, wait.holder)]
        left, right = scale.x(wait.start_cycles), scale.x(wait.end_cycles)
        if lanes[0] is None or lanes[1] is None or right < 0 or left > scale.width_px:
            continue
        left, right = max(left, 0.0), min(right, float(scale.width_px))
        (from_top, from_height), (top, height) = tops[lanes[0]], tops[lanes[1]]
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for pen in (QPen(colour(theme.base, 230), 4.0), QPen(colour(theme.accent), 2.0)):
            painter.setPen(pen)
            painter.drawRoundedRect(QRectF(left, top + 1, max(right - left, 2.0), height - 2), 3, 3)
        if lanes[0] == lanes[1]:
            continue
        x = left + _ARROW_PX
        while any(abs(x - other) < _ARROW_PX for other in used_px):  # of a circle each has a place of its own
            x += _ARROW_PX
        used_px.append(x)
        begin = QPointF(x, from_top + from_height * MIDDLE)
        end = QPointF(x, top + (height if begin.y() > top else 0.0))
        _draw_arrow(painter, begin, end, theme, is_exact=wait.certainty is Certainty.EXACT)


def _draw_legs(
    painter: QPainter, opened: OpenTrace, legs: Sequence[Leg], rows: Sequence[LaneRow], scroll_px: int,
    scale: TimeScale, theme: Theme,
) -> None:  # fmt: skip
    """Draw legs as brackets at the top of their lanes, with what they are and how long where there is room."""
    tops = {row.index: float(row.y_px - scroll_px) for row in rows}
    times, clock = opened.trace.events.time_cycles, opened.trace.clock
    metrics = QFontMetricsF(painter.font())
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for leg in legs:
        lane = opened.lane_of_thread(leg.thread)
        if lane is None or lane not in tops:
            continue
        first, last = int(times[leg.from_row]), int(times[leg.to_row])
        left, right, top = scale.x(first), scale.x(last), tops[lane] + 1.5
        left, right = max(left, -_BEYOND_PX), min(right, scale.width_px + _BEYOND_PX)
        if right < left:
            continue
        painter.setPen(QPen(colour(theme.base, 230), 3.5))
        painter.drawLine(QLineF(left, top, right, top))
        painter.setPen(QPen(colour(theme.accent), 1.5))
        painter.drawLines([QLineF(left, top, right, top), QLineF(left, top, left, top + _TICK_PX),
                           QLineF(right, top, right, top + _TICK_PX)])  # fmt: skip
        text = f"{leg.title} {format_duration(clock.duration_ns(last - first))}"
        _draw_label(painter, text, max(left, 0.0), min(right, scale.width_px), top, metrics, theme)


def _draw_label(
    painter: QPainter, text: str, left: float, right: float, top: float, metrics: QFontMetricsF, theme: Theme
) -> None:
    """Write a text in the middle of a bracket, if it fits."""
    width, height = metrics.horizontalAdvance(text), metrics.height()
    if right - left < width + _TEXT_ROOM_PX:
        return
    box = QRectF((left + right - width) / 2 - 3, top - 1.5, width + 6, height)
    painter.fillRect(box, colour(theme.base, 235))
    painter.setPen(colour(theme.accent))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)


def _lane_in(opened: OpenTrace, lane: int | None, middles: Mapping[int, object]) -> int | None:
    """Return a lane, or the one that it is folded into, if one of them shows."""
    if lane is not None and lane not in middles:
        lane = opened.timeline.infos[lane].parent
    return lane if lane in middles else None


def _draw_arrow(painter: QPainter, start: QPointF, end: QPointF, theme: Theme, *, is_exact: bool) -> None:
    angle = atan2(end.y() - start.y(), end.x() - start.x())
    corners = [end] + [
        end - QPointF(cos(angle + side) * _HEAD_PX, sin(angle + side) * _HEAD_PX)
        for side in (-_HEAD_ANGLE, _HEAD_ANGLE)
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
