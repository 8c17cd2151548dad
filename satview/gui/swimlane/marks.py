"""Draws over the lanes: arrows of links, highlighted verdicts, the critical path, ranges, cursors and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import atan2, cos, pi, sin
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen, QPolygonF

from satview.analysis.critical_path import CriticalPath, PieceKind
from satview.base.safe_text import html_text, visible_line
from satview.base.time import TimeWindow, format_duration
from satview.gui.colours import mixed
from satview.gui.swimlane import fills
from satview.gui.swimlane.frames import clock
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.text import MIDDLE, FittedTexts, TextSheet, draw_lines, fill_rects
from satview.gui.theme import Theme, colour
from satview.linkage.chain import Hop, NamedHop
from satview.linkage.links import Certainty
from satview.session.arrow_source import ArrowMode, ArrowSource
from satview.session.highlight import Highlighted, ShownWait
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace
from satview.timeline.arrows import ARROW_NAMES, ArrowGroups, ArrowKind

# Arrows of the selected event's causes and effects, and of what is highlighted.


_HEAD_PX: Final = 8.0
_HEAD_ANGLE: Final = pi / 7
_BEYOND_PX: Final = 60.0  # an arrow that ends outside the picture is drawn so far, to show its direction
_HALO_PX: Final = 4.0
_TICK_PX: Final = 4.0
_TEXT_ROOM_PX: Final = 8
LABEL_PX: Final = 10  # font size of names across lines
_ARROW_PX: Final = 14.0  # distance from the start of a wait to its arrow, and between arrows


def draw_arrows(
    painter: QPainter, opened: OpenTrace, rows: Sequence[LaneRow], scroll_px: int, scale: TimeScale, theme: Theme
) -> None:
    """Draw the arrows and parts (legs) of the highlight; without a highlight, the arrows of the selected event.

    Arrows that are not exact are dashed; `rows` are the lanes in the picture, and `scroll_px` of them are scrolled out
    above.
    """
    shown = opened.highlight.shown
    hops = shown.hops if shown is not None else opened.event_links.links.way
    waits = shown.waits if shown is not None else ()
    if not hops and shown is None:
        return
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    names = _draw_legs(painter, opened, shown, rows, scroll_px, scale, theme) if shown is not None else []
    _draw_hops(painter, opened, hops, scroll_px, scale, theme)
    _draw_waits(painter, opened, waits, scroll_px, scale, theme)
    _draw_names(painter, names, theme)  # on top of the outlines
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)


def _draw_hops(
    painter: QPainter, opened: OpenTrace, hops: Sequence[Hop], scroll_px: int, scale: TimeScale, theme: Theme
) -> None:
    # Include lanes outside the picture: an arrow that leaves it shows its direction.
    middles = {row.index: row.y_px - scroll_px + row.height_px * MIDDLE for row in opened.lanes.rows} if hops else {}
    times, width = opened.trace.events.time_cycles, scale.width_px
    for hop in hops:
        lanes = (lane_in(opened, opened.lane_of_cause(hop.from_row), middles),
                 lane_in(opened, opened.lane_of_event(hop.to_row), middles))  # fmt: skip
        if lanes[0] is None or lanes[1] is None or lanes[0] == lanes[1]:
            continue
        left, right = (scale.x(int(times[row])) for row in (hop.from_row, hop.to_row))
        if right < -_BEYOND_PX or left > width + _BEYOND_PX:
            continue
        start = QPointF(max(left, -_BEYOND_PX), middles[lanes[0]])
        end = QPointF(min(right, width + _BEYOND_PX), middles[lanes[1]])
        _draw_arrow(painter, start, end, theme, is_exact=hop.certainty is Certainty.EXACT)


def _draw_waits(
    painter: QPainter, opened: OpenTrace, waits: Sequence[ShownWait], scroll_px: int, scale: TimeScale, theme: Theme
) -> None:
    """Draw an arrow from each waiting thread to the thread it waits for, whose lane gets a frame during the wait."""
    rows = opened.lanes.rows if waits else ()
    tops = {row.index: (float(row.y_px - scroll_px), float(row.height_px)) for row in rows}
    used_px, boxes, arrows = list[float](), list[QRectF](), list[tuple[QPointF, QPointF, bool]]()
    for wait in waits:
        lanes = [lane_in(opened, opened.lane_of_thread(row), tops) for row in (wait.thread, wait.holder)]
        left, right = scale.x(wait.start_cycles), scale.x(wait.end_cycles)
        if lanes[0] is None or lanes[1] is None or right < 0 or left > scale.width_px:
            continue
        left, right = max(left, 0.0), min(right, float(scale.width_px))
        (from_top, from_height), (top, height) = tops[lanes[0]], tops[lanes[1]]
        boxes.append(QRectF(left, top + 1, max(right - left, 2.0), height - 2))
        if lanes[0] == lanes[1]:
            continue
        x = left + _ARROW_PX
        while any(abs(x - other) < _ARROW_PX for other in used_px):  # keep the arrows of a deadlock apart
            x += _ARROW_PX
        used_px.append(x)
        begin = QPointF(x, from_top + from_height * MIDDLE)
        end = QPointF(x, top + (height if begin.y() > top else 0.0))
        arrows.append((begin, end, wait.certainty is Certainty.EXACT))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for pen in (QPen(colour(theme.base, 230), 4.0), QPen(colour(theme.accent), 2.0)):  # all halos below all lines
        painter.setPen(pen)
        for box in boxes:
            painter.drawRoundedRect(box, 3, 3)
    for begin, end, is_exact in arrows:
        _draw_arrow(painter, begin, end, theme, is_exact=is_exact)


def _draw_legs(
    painter: QPainter, opened: OpenTrace, shown: Highlighted, rows: Sequence[LaneRow], scroll_px: int,
    scale: TimeScale, theme: Theme,
) -> list[tuple[str, QLineF]]:  # fmt: skip
    """Draw the parts (legs) of a highlight as brackets at the top of lanes; return the text and line of each bracket.

    Each text consists of title and length; the first text begins with the title of the highlight.
    """
    tops = {row.index: float(row.y_px - scroll_px) for row in rows}
    times, clock = opened.trace.events.time_cycles, opened.trace.clock
    names = []
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for leg in shown.legs:
        lane = opened.lane_of_thread(leg.thread)
        if lane is None or lane not in tops:
            continue
        begin, end = int(times[leg.from_row]), int(times[leg.to_row])
        left, right, top = scale.x(begin), scale.x(end), tops[lane] + 1.5
        left, right = max(left, -_BEYOND_PX), min(right, scale.width_px + _BEYOND_PX)
        if right < left:
            continue
        painter.setPen(QPen(colour(theme.base, 230), 3.5))
        painter.drawLine(QLineF(left, top, right, top))
        painter.setPen(QPen(colour(theme.accent), 1.5))
        painter.drawLines([QLineF(left, top, right, top), QLineF(left, top, left, top + _TICK_PX),
                           QLineF(right, top, right, top + _TICK_PX)])  # fmt: skip
        name = f"{visible_line(shown.title)}: " if shown.title and leg is shown.legs[0] else ""
        text = f"{name}{leg.title} {format_duration(clock.duration_ns(end - begin))}"
        names.append((text, QLineF(max(left, 0.0), top, min(right, scale.width_px), top)))
    return names


def _draw_names(painter: QPainter, names: Sequence[tuple[str, QLineF]], theme: Theme) -> None:
    """Write the text of each bracket in its middle, if the bracket is long enough."""
    painter.save()
    font = QFont(painter.font())
    font.setPixelSize(theme.px(LABEL_PX))
    painter.setFont(font)
    painter.setPen(colour(theme.accent))
    metrics = QFontMetricsF(font)
    for text, line in names:
        width = metrics.horizontalAdvance(text)
        if line.length() >= width + _TEXT_ROOM_PX:
            box = across_line(line.center().x() - width / 2 - 3, width + 6, line.y1(), metrics)
            painter.fillRect(box, colour(theme.base, 235))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
    painter.restore()


def across_line(left: float, width: float, y: float, metrics: QFontMetricsF) -> QRectF:
    """Return the rectangle of a text written across a line at the top of a lane, where the text hides no state."""
    return QRectF(left, y - metrics.ascent() / 2 - 2.5, width, metrics.ascent() + 2)  # also in the lowest lanes


def lane_in(opened: OpenTrace, lane: int | None, middles: Mapping[int, object]) -> int | None:
    """Return `lane` if visible (a key of `middles`), else its parent lane if visible, else None."""
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


# Arrows of all messages, pulses and wake-ups in the window, grouped where they are dense.


_LINK_BEYOND_PX: Final = 2000.0  # ends further outside are moved to this distance, because Qt draws long lines slowly
_OUTSIDE_PX: Final = 20.0
_PICK_PX: Final = 3.5
_LINK_HEAD_PX: Final = 5.0
_HEAD_WIDTH_PX: Final = 2.6
_SMALL_PX: Final = 10
_COUNTS: Final = 25  # number of groups that show their number of arrows
_COUNT_FROM: Final = 2
_TIP_PX: Final = 6.0  # size of the triangle beside a count, which points along the arrows
_STROKE_PX: Final = 2.0
_PAD_PX: Final = 3.0
_AROUND: Final = 0.05  # margin, as a share of the arrows' time, when a click zooms to them
# Qt draws 600 opaque lines in 3 ms, translucent lines in 15 ms, smooth translucent lines in 100 ms or more. So
# colours are blended beforehand, and only pictures of few arrows are smooth.
_FEW: Final = 100
_OLDEST: Final = 3  # number of frames that reuse the same groups while the view moves
_STRENGTH, _STRENGTH_DENSE = 0.85, 0.55  # share of the colour in a line; the rest is background


class ArrowLayer(QObject):
    """Draws the arrows of all messages, replies, pulses and wake-ups over the lanes.

    Attributes:
        mode: The arrows to draw: all, those of the selection, or none.
        source: Source of the arrows.
        hovered: Number of the drawn group of arrows under the mouse; -1 = none.
        has_zoomed: True if the last click on a group of arrows zoomed to the time of the group.
        spent_s: Seconds spent on finding the groups of arrows of the last picture; 0 if groups were reused.

    Signals:
        changed: The arrows must be drawn again.
    """

    changed = Signal()

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self.mode = ArrowMode.SELECTION
        self.source = ArrowSource(opened, self)
        self.source.refined.connect(self.changed)
        opened.legend.changed.connect(self.changed)
        self.hovered = -1
        self.has_zoomed = False
        self.groups: ArrowGroups | None = None
        self._end_px = np.empty((0, 4))
        self._boxes = np.empty((0, 4))  # boxes of counts: left, top, width, height; empty if there is no room
        self._age = 0  # frames since the groups were found
        self._made_for: tuple[object, ...] = ()  # scale and rows that they were found for
        self._all: ArrowGroups | None = None  # groups of all kinds
        self._kinds: list[ArrowKind] = []  # kinds that the legend highlights
        self.spent_s = 0.0
        self._texts: FittedTexts | None = None
        self._sheet = TextSheet()

    @property
    def kinds(self) -> tuple[ArrowKind, ...]:
        """Kinds of arrows in the trace; empty unless all arrows are shown."""
        return self.source.kinds if self.mode is ArrowMode.ALL else ()

    def are_due(self, scale: TimeScale) -> bool:
        """Return whether the drawn arrows are too old to be reused, so that the next picture must search for arrows."""
        return self.mode is ArrowMode.ALL and self._age >= _OLDEST - 1 and self._made_for[:1] != (scale,)

    def set_mode(self, mode: ArrowMode) -> None:
        """Set whether all arrows, those of the selection or none are drawn."""
        if mode is not self.mode:
            self.mode, self.groups, self.hovered, self._end_px = mode, None, -1, np.empty((0, 4))
            self._all, self._made_for = None, ()
            self.changed.emit()

    def draw(
        self, painter: QPainter, scale: TimeScale, shown: tuple[int, int], scroll_px: int, theme: Theme, *,
        may_wait: bool = False,
    ) -> bool:  # fmt: skip
        """Draw all arrows between lanes, from the first to the last one in `shown`, if the mode is ALL.

        With `may_wait`, the arrows of the last picture are reused at new positions, unless they are too old.

        Returns:
            Whether the arrows are those of this picture.
        """
        if self.mode is not ArrowMode.ALL:
            return True
        self._age += 1
        is_same = self._made_for == (scale, shown)
        are_old = may_wait and not is_same and self.source.latest is not None and self._age < _OLDEST
        begun_s = clock()
        if are_old:
            groups = self.source.latest
        else:
            groups = self.source.groups(scale.window, scale.width_px, shown)
            self._age, self._made_for = 0, (scale, shown)
        self.spent_s = clock() - begun_s
        kinds = [kind for kind, key in fills.ARROWS.items() if key in self._opened.legend.keys]
        if groups is not self._all or kinds != self._kinds:
            self._all, self._kinds, self.hovered = groups, kinds, -1
            self.groups = groups.of_kinds(kinds) if groups is not None and kinds else groups
        groups = self.groups
        if groups is None:
            self._draw_message(painter, "Looking for arrows\N{HORIZONTAL ELLIPSIS}", theme)
            return True
        self._end_px = _clip_lines(self._end_points(groups, scale, scroll_px), painter.viewport().height())
        if groups.is_counted:
            self._draw_counted(painter, groups, scale, scroll_px, theme)
            self._draw_message(painter, _count_text(groups), theme)
            return not are_old
        is_smooth = len(groups) <= _FEW
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=is_smooth)
        shapes = _shapes(groups, self._end_px, is_smooth=is_smooth)
        _draw_groups(painter, groups, shapes, theme)
        self._draw_counts(painter, groups, theme)
        if 0 <= self.hovered < len(groups):
            _draw_lines(painter, shapes, np.array([self.hovered]), QPen(colour(theme.text), 2.4))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        if int(groups.count.sum()) != len(groups) or groups.is_sample:
            self._draw_message(painter, _count_text(groups), theme)
        return not are_old

    def at(self, position: QPointF) -> int:
        """Return the number of the group of arrows nearest to a point of the widget; -1 if none is near."""
        if self.mode is not ArrowMode.ALL or not len(self._end_px):
            return -1
        if self.groups is not None and self.groups.is_counted:
            left, top, width, height = self._boxes.T
            across, down = position.x() - left, position.y() - top
            under = np.flatnonzero((across >= 0) & (across < width) & (down >= 0) & (down < height))
            return int(under[0]) if len(under) else -1
        x1, y1, x2, y2 = self._end_px.T
        along, down = x2 - x1, y2 - y1
        share = ((position.x() - x1) * along + (position.y() - y1) * down) / np.maximum(
            along * along + down * down, 1e-9
        )
        share = np.clip(share, 0, 1)
        distance = np.hypot(x1 + share * along - position.x(), y1 + share * down - position.y())
        nearest = int(np.argmin(distance))
        return nearest if distance[nearest] <= _PICK_PX else -1

    def choose(self, group: int) -> None:
        """Select the link of a group with a single arrow; zoom to the time of a group with several."""
        groups = self.groups
        assert groups is not None
        if int(groups.count[group]) == 1 and not groups.is_sample:
            arrows = groups.arrows
            certainty, kind = Certainty(int(arrows.certainty[group])), ArrowKind(int(arrows.kind[group]))
            ends = int(arrows.from_row[group]), int(arrows.to_row[group])
            self._opened.select_link(NamedHop(*ends, certainty, ARROW_NAMES[kind]))
        else:
            begin, end = int(groups.begin[group]), int(groups.end[group])
            around = max(1, round((end - begin) * _AROUND))
            self.has_zoomed = True
            self._opened.viewport.jump(TimeWindow(begin - around, end + around))

    def text(self, group: int) -> str:
        """Return the hover text of a group of arrows as rich text: both ends, and the delay."""
        groups, trace = self.groups, self._opened.trace
        assert groups is not None
        kind, count = ArrowKind(int(groups.arrows.kind[group])), int(groups.count[group])
        ends = [self._name(int(lane[group])) for lane in (groups.arrows.from_lane, groups.arrows.to_lane)]
        least, most = (format_duration(trace.clock.duration_ns(int(column[group])))
                       for column in (groups.least_cycles, groups.most_cycles))  # fmt: skip
        delay = least if least == most else f"{least} to {most}"
        about = "about " if groups.is_sample and count > 1 else ""
        count = round(count / groups.share) if count > 1 else 1
        name = ARROW_NAMES[kind]
        head = name if count == 1 else f"{about}{count:,} {'replies' if kind is ArrowKind.REPLY else name + 's'}"
        certainty = Certainty(int(groups.arrows.certainty[group]))
        sure = "" if certainty is Certainty.EXACT or count > 1 else f" ({certainty.name.lower()})"
        events = "<br>" + html_text(" to ".join(
            f"{trace.spec(int(row[group])).name} #{int(row[group]) + 1:,}"
            for row in (groups.arrows.from_row, groups.arrows.to_row))
        ) if count == 1 else "<br><small>a click zooms to them</small>"  # fmt: skip
        return (
            f"<b>{head}</b>{sure}&nbsp;&nbsp;{delay}<br>"
            f"{html_text(ends[0])} \N{RIGHTWARDS ARROW} {html_text(ends[1])}{events}"
        )

    def _name(self, lane: int) -> str:
        info, trace = self._opened.timeline.infos[lane], self._opened.trace
        if info.thread:
            return trace.thread_name(info.thread)
        return f"{trace.cpu_title(info.cpu)} {info.title}" if info.parent >= 0 and info.cpu >= 0 else info.title

    def _end_points(self, groups: ArrowGroups, scale: TimeScale, scroll_px: int) -> NDArray[np.float64]:
        """Return x and y of both ends of each group of arrows in pixels, float64 (n, 4)."""
        rows = self._opened.lanes.rows
        middles = np.array([row.y_px - scroll_px + row.height_px * MIDDLE for row in rows])
        ends = np.empty((len(groups), 4))
        # A single arrow goes from its start to its end; a group is drawn with its shortest delay.
        for column, moments in ((0, groups.drawn_at), (2, groups.drawn_at + groups.least_cycles)):
            x = (moments - scale.window.start) * scale.px_per_cycle
            ends[:, column] = np.clip(x, -_LINK_BEYOND_PX, scale.width_px + _LINK_BEYOND_PX)
        if len(groups):
            ends[:, 1], ends[:, 3] = middles[groups.from_position], middles[groups.to_position]
        return ends

    def _draw_counts(self, painter: QPainter, groups: ArrowGroups, theme: Theme) -> None:
        """Write the number of arrows in the middle of the largest groups of arrows."""
        counted_groups = np.flatnonzero(groups.count >= _COUNT_FROM)
        if groups.is_sample or not len(counted_groups):
            return
        counted_groups = counted_groups[np.argsort(-groups.count[counted_groups], kind="stable")][:_COUNTS]
        texts = self._small_texts(painter.font(), theme)
        laid = [texts.uncut(f"{count:,}") for count in groups.count[counted_groups].tolist()]
        sizes = np.array([(text.width_px + 4, text.height_px) for text in laid])
        boxes = np.empty((len(laid), 4))
        boxes[:, :2], boxes[:, 2:] = (
            (self._end_px[counted_groups, :2] + self._end_px[counted_groups, 2:] - sizes) / 2,
            sizes,
        )
        free = _without_overlap(boxes.tolist())
        painter.setBrush(colour(theme.base, 215))
        fill_rects(painter, boxes[free])
        painter.setBrush(Qt.BrushStyle.NoBrush)
        self._sheet.begin(painter)
        for position in free:
            self._sheet.put(boxes[position, 0] + 2, boxes[position, 1], laid[position], theme.text)
        self._sheet.end()

    def _draw_counted(
        self, painter: QPainter, groups: ArrowGroups, scale: TimeScale, scroll_px: int, theme: Theme
    ) -> None:
        """Write the number of arrows of each group at its end, with a triangle as head; largest groups first.

        Used where lines would hide the lanes; a line is drawn only for the group under the mouse.
        """
        rows, texts = self._opened.lanes.rows, self._small_texts(painter.font(), theme)
        counts, sign = groups.count, ""
        if groups.is_sample:  # round to two digits, so that few new texts need layout while the view moves
            about = groups.count / groups.share
            step = 10 ** np.maximum(np.floor(np.log10(about)) - 1, 0)
            counts, sign = np.rint(np.rint(about / step) * step).astype(np.int64), "~"
        laid = {count: texts.uncut(f"{sign}{count:,}") for count in np.unique(counts).tolist()}
        boxes = np.empty((len(groups), 4))
        boxes[:, 2] = [laid[count].width_px + _TIP_PX + 3 * _PAD_PX for count in counts.tolist()]
        boxes[:, 3] = texts.metrics.height()
        middles = np.array([row.y_px - scroll_px + row.height_px * MIDDLE for row in rows])
        boxes[:, 0] = (groups.drawn_at - scale.window.start) * scale.px_per_cycle - boxes[:, 2] / 2
        boxes[:, 1] = middles[groups.row_position] - boxes[:, 3] / 2
        boxes[:, 0] = np.clip(boxes[:, 0], 0, scale.width_px - boxes[:, 2])
        shown = _without_overlap_in_rows(
            groups.row_position, boxes[:, 0], boxes[:, 2], np.argsort(-groups.count, kind="stable")
        )
        is_shown = np.zeros(len(groups), np.bool_)
        is_shown[shown] = True
        boxes[~is_shown] = 0
        self._boxes = boxes
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        if 0 <= self.hovered < len(groups):
            line = self._end_px[self.hovered].copy()
            line[[0, 2]] = boxes[self.hovered, 0] + _PAD_PX + _TIP_PX / 2
            painter.setPen(QPen(colour(theme.text), 2))
            painter.drawLine(QLineF(*line.tolist()))
        painter.setBrush(colour(theme.base, 225))
        fill_rects(painter, boxes[shown])
        ratio = painter.device().devicePixelRatio()
        is_down = groups.to_position > groups.from_position
        for kind, rgb in _arrow_colours(theme).items():
            of_kind = shown[groups.arrows.kind[shown] == kind]
            parts, step_px = _triangle(ratio, is_open=kind is ArrowKind.REPLY)
            rects = np.repeat(boxes[of_kind, None], len(parts), axis=1)
            rects[:, :, 0] += _PAD_PX + parts[:, 0]
            rects[:, :, 1] += rects[:, :, 3] / 2 + np.where(is_down[of_kind, None], parts[:, 1], -parts[:, 1] - step_px)
            rects[:, :, 2], rects[:, :, 3] = parts[:, 2], step_px
            painter.setBrush(colour(rgb))
            fill_rects(painter, rects.reshape(-1, 4))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        self._sheet.begin(painter)
        left, top = boxes[shown, 0] + _TIP_PX + 2 * _PAD_PX, boxes[shown, 1]
        for x, y, count in zip(left.tolist(), top.tolist(), counts[shown].tolist(), strict=True):
            self._sheet.put(x, y, laid[count], theme.text)
        self._sheet.end()
        if 0 <= self.hovered < len(groups):
            painter.setPen(QPen(colour(theme.text), 1))
            painter.drawRect(QRectF(*boxes[self.hovered].tolist()))

    def _small_texts(self, font: QFont, theme: Theme) -> FittedTexts:
        """Return the cached layouts of texts in a small font, in which numbers of arrows are written."""
        font = _small_font(font, theme)
        if self._texts is None or self._texts.font != font:
            self._texts = FittedTexts(font, Qt.TextElideMode.ElideRight)
        return self._texts

    def _draw_message(self, painter: QPainter, text: str, theme: Theme) -> None:
        laid = self._small_texts(painter.font(), theme).uncut(text)
        device = painter.viewport()
        box = QRectF(device.width() - laid.width_px - 18, device.height() - laid.height_px - 10, laid.width_px + 12,
                     laid.height_px + 4)  # fmt: skip
        painter.fillRect(box, colour(theme.panel, 235))
        painter.setFont(laid.font)
        painter.setPen(colour(theme.dim))
        painter.drawStaticText(box.topLeft() + QPointF(6, 2), laid.static_text)


def _without_overlap(boxes: Sequence[Sequence[float]]) -> list[int]:
    """Return the positions of boxes (left, top, width, height) that do not overlap an earlier returned box."""
    taken, free = list[tuple[float, float, float, float]](), list[int]()
    for position, (left, top, width, height) in enumerate(boxes):
        right, bottom = left + width, top + height
        if not any(left < r and right > x and top < b and bottom > y for x, y, r, b in taken):
            taken.append((left, top, right, bottom))
            free.append(position)
    return free


@lru_cache(maxsize=8)
def _triangle(ratio: float, *, is_open: bool) -> tuple[NDArray[np.float64], float]:
    """Return a triangle pointing down (its outline if `is_open`, for replies) as rectangles, ten times as fast to fill.

    Returns:
        Left, top from the middle, and width of each rectangle, float64 (n, 3); height of all rectangles.
    """
    step_px = 1 / max(1, round(ratio))
    top = np.arange(0, _TIP_PX, step_px)
    left = top / 2
    parts = np.stack((left, top - _TIP_PX / 2, _TIP_PX - 2 * left), axis=1)
    if is_open:
        parts[:, 2] = np.minimum(parts[:, 2], _STROKE_PX)
        other = parts.copy()
        other[:, 0] = _TIP_PX - parts[:, 0] - parts[:, 2]
        parts = np.concatenate((parts, other))
    return parts, step_px


def _without_overlap_in_rows(
    row: NDArray[np.int64], left: NDArray[np.float64], width: NDArray[np.float64], order: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the positions of boxes, in the given order, without those that overlap an earlier one of their row."""
    taken: dict[int, list[tuple[float, float]]] = {}
    columns = (column[order].tolist() for column in (row, left, left + width))
    shown = list[int]()
    for position, of_row, start, end in zip(order.tolist(), *columns, strict=True):
        in_row = taken.setdefault(of_row, [])
        if all(start >= other_end or end <= other for other, other_end in in_row):
            in_row.append((start, end))
            shown.append(position)
    return np.array(shown, np.intp)


def _clip_lines(ends: NDArray[np.float64], height_px: int) -> NDArray[np.float64]:
    """Return lines (n, 4) cut slightly above and below the picture, because Qt is slow far outside a picture."""
    x1, y1, x2, y2 = ends.T
    down = np.where(y2 == y1, 1.0, y2 - y1)
    upper, lower = ((np.clip(y, -_OUTSIDE_PX, height_px + _OUTSIDE_PX) - y1) / down for y in (y1, y2))
    return np.stack((x1 + upper * (x2 - x1), y1 + upper * down, x1 + lower * (x2 - x1), y1 + lower * down), axis=1)


class _Shapes(NamedTuple):
    """The lines that arrows are drawn with, four for each.

    Attributes:
        lines: float64 (n, 4, 4), x and y of both ends of the shaft, the two sides of the head, and its back.
        are_drawn: bool (n, 4), which lines to draw; replies have an open head, to be distinguishable without colour.
        is_upright: bool (n,), True for vertical shafts, which are drawn as rectangles.
    """

    lines: NDArray[np.float64]
    are_drawn: NDArray[np.bool_]
    is_upright: NDArray[np.bool_]


def _shapes(groups: ArrowGroups, ends: NDArray[np.float64], *, is_smooth: bool) -> _Shapes:
    """Return the lines of arrows between `ends`, float64 (n, 4); vertical shafts become rectangles unless smooth."""
    x1, y1, x2, y2 = ends.T
    length = np.maximum(np.hypot(x2 - x1, y2 - y1), 1e-6)
    along, down = (x2 - x1) / length, (y2 - y1) / length
    back_x, back_y = x2 - along * _LINK_HEAD_PX, y2 - down * _LINK_HEAD_PX
    beside_x, beside_y = down * _HEAD_WIDTH_PX, along * _HEAD_WIDTH_PX
    lines = np.empty((len(ends), 4, 4))
    lines[:, 0] = ends
    lines[:, 1, 0], lines[:, 1, 1] = back_x - beside_x, back_y + beside_y
    lines[:, 2, 0], lines[:, 2, 1] = back_x + beside_x, back_y - beside_y
    lines[:, 1:3, 2:] = ends[:, None, 2:]
    lines[:, 3, :2], lines[:, 3, 2:] = lines[:, 1, :2], lines[:, 2, :2]
    # Qt draws rectangles ten times as fast as wide lines, and most lines of groups are vertical.
    is_upright = np.zeros(len(ends), np.bool_) if is_smooth else np.abs(x2 - x1) < 1
    are_drawn = np.ones((len(ends), 4), np.bool_)
    are_drawn[:, 0], are_drawn[:, 3] = ~is_upright, groups.arrows.kind != ArrowKind.REPLY
    return _Shapes(lines, are_drawn, is_upright)


def _draw_groups(painter: QPainter, groups: ArrowGroups, shapes: _Shapes, theme: Theme) -> None:
    """Draw the arrows of all groups, those with the same colour and width in one step."""
    are_groups = groups.count >= _COUNT_FROM
    strength = _STRENGTH if len(groups) <= _FEW else _STRENGTH_DENSE
    for kind, rgb in _arrow_colours(theme).items():
        of_kind = groups.arrows.kind == kind
        line = colour(mixed(rgb, theme.base, 1 - strength))
        for selected, width in ((of_kind & ~are_groups, 1.0), (of_kind & are_groups, 2.0)):
            _draw_lines(painter, shapes, np.flatnonzero(selected), QPen(line, width))


def _arrow_colours(theme: Theme) -> dict[ArrowKind, int]:
    """Return the colours of arrows by kind; replies have the colour of messages, and an open head."""
    return {kind: arrow_colour(kind, theme) for kind in ArrowKind}


def arrow_colour(kind: ArrowKind, theme: Theme) -> int:
    """Return the colour of a kind of arrow, 0xRRGGBB."""
    return {ArrowKind.PULSE: theme.hit, ArrowKind.WAKE_UP: theme.dim}.get(kind, theme.accent)


def _draw_lines(painter: QPainter, shapes: _Shapes, positions: NDArray[np.intp], pen: QPen) -> None:
    """Draw some arrows, `positions` intp (k,), with their heads."""
    if not len(positions):
        return
    upright = positions[shapes.is_upright[positions]]
    painter.setBrush(pen.color())
    fill_rects(painter, _upright_rects(shapes.lines[upright, 0], pen.widthF()))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(pen)
    draw_lines(painter, shapes.lines[positions][shapes.are_drawn[positions]])


def _upright_rects(ends: NDArray[np.float64], width_px: float) -> NDArray[np.float64]:
    """Return vertical lines as rectangles, float64 (n, 4): left, top, width, height."""
    x1, y1, x2, y2 = ends.T
    rects = np.empty((len(ends), 4))
    rects[:, 0], rects[:, 2] = np.rint((x1 + x2 - width_px) / 2), width_px
    rects[:, 1], rects[:, 3] = np.minimum(y1, y2), np.abs(y2 - y1)
    return rects


def _count_text(groups: ArrowGroups) -> str:
    """Return a text with the number of arrows shown."""
    if groups.is_sample:
        return f"about {groups.about:,} arrows, {groups.total:,} looked at so far"
    if groups.is_counted:
        return f"{groups.total:,} arrows, counted where they end"
    return f"{groups.total:,} arrows"


def _small_font(font: QFont, theme: Theme) -> QFont:
    font.setPixelSize(theme.px(_SMALL_PX))
    return font


# The selected range, cursors and marks, for lanes and ruler.


_OUTSIDE: Final = 120  # alpha of the shade outside a range


def draw_range(painter: QPainter, opened: OpenTrace, scale: TimeScale, height: float, theme: Theme) -> None:
    """Shade everything outside the selected range; inside it, states keep the colours of the legend."""
    time_range = opened.selection.time_range
    if time_range is None:
        return
    left, right = scale.x(time_range.start), scale.x(time_range.end)
    for start, end in ((0.0, left), (max(right, left + 1), float(scale.width_px))):
        if end > start:
            painter.fillRect(QRectF(start, 0, end - start, height), colour(theme.window, _OUTSIDE))
    painter.setPen(QPen(colour(theme.accent), 1))
    painter.drawLines([QLineF(left, 0, left, height), QLineF(right, 0, right, height)])


def draw_cursors(painter: QPainter, opened: OpenTrace, scale: TimeScale, height: float, theme: Theme) -> None:
    """Draw cursor A and B, and a line at the selected event."""
    selection = opened.selection
    if selection.event is not None:
        pen = QPen(colour(theme.accent), 1, Qt.PenStyle.DashLine)
        _draw_line(painter, pen, scale.x(int(opened.trace.events.time_cycles[selection.event])), height)
    for cycles, rgb in ((selection.cursor_a, theme.cursor_a), (selection.cursor_b, theme.cursor_b)):
        if cycles is not None:
            _draw_line(painter, QPen(colour(rgb), 1.5), scale.x(cycles), height)


def draw_marks(painter: QPainter, opened: OpenTrace, scale: TimeScale, height: float, theme: Theme) -> None:
    """Draw a line at each mark and note, or two lines for a span; the ruler draws the bracket."""
    for mark in opened.marks:
        left, right = scale.x(mark.start_cycles), scale.x(mark.end_cycles)
        if right < 0 or left > scale.width_px:
            continue
        strength = 255 if mark == opened.marks.selected else 150
        for x in {left, right}:
            _draw_line(painter, QPen(colour(theme.mark, strength), 1, Qt.PenStyle.DotLine), x, height)


def _draw_line(painter: QPainter, pen: QPen, x: float, height: float) -> None:
    if -1 <= x <= 1e5:
        painter.setPen(pen)
        painter.drawLine(QLineF(round(x) + 0.5, 0, round(x) + 0.5, height))


# The critical path: a line along the lane of its current thread, and steps between lanes.


_WIDTH_PX: Final = 2.5
_PATH_HALO_PX: Final = 5.5
_Y: Final = 0.2  # share of the lane height; above the text of the bars
_SOLID: Final = (PieceKind.RUNNING, PieceKind.WAKING)


def draw_path(
    painter: QPainter, opened: OpenTrace, rows: Sequence[LaneRow], scroll_px: int, scale: TimeScale, theme: Theme
) -> None:
    """Draw the critical path: solid where its thread runs, dashed where the thread is ready, dotted where it waits.

    Of pieces that begin in the same pixel, only the longest is drawn, so that the cost is bounded by the width.
    """
    answer = opened.path.answer
    if answer is None:
        return
    heights = {row.index: row.y_px - scroll_px + row.height_px * _Y for row in rows}
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    last: QPointF | None = None
    for piece in visible_pieces(answer.path, scale):
        lane = lane_in(opened, opened.lane_of_thread(int(answer.path.on_thread[piece])), heights)
        if lane is None:
            last = None
            continue
        y = heights[lane]
        left, right = scale.x(int(answer.path.start_cycles[piece])), scale.x(int(answer.path.end_cycles[piece]))
        points = [QPointF(max(left, -8.0), y), QPointF(min(right, scale.width_px + 8.0), y)]
        kind = PieceKind(int(answer.path.kind[piece]))
        if last is not None and last.y() != y:
            _line(painter, [last, points[0]], Qt.PenStyle.SolidLine, theme)
        style = Qt.PenStyle.SolidLine if kind in _SOLID else (
            Qt.PenStyle.DashLine if kind is PieceKind.READY else Qt.PenStyle.DotLine)  # fmt: skip
        _line(painter, points, style, theme)
        last = points[1]
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)


def visible_pieces(path: CriticalPath, scale: TimeScale) -> list[int]:
    """Return the numbers of the visible pieces in time order; of pieces that begin in the same pixel, the longest."""
    begin = int(np.searchsorted(path.end_cycles, scale.window.start, side="right"))
    stop = int(np.searchsorted(path.start_cycles, scale.window.end))
    if stop - begin <= 1:
        return list(range(begin, stop))
    start = np.maximum(path.start_cycles[begin:stop], scale.window.start)
    length = path.end_cycles[begin:stop] - path.start_cycles[begin:stop]
    pixel = ((start - scale.window.start) * (scale.width_px / scale.window.length)).astype(np.int64)
    order = np.lexsort((-length, pixel))
    keep = np.append(True, pixel[order][1:] != pixel[order][:-1])
    return [begin + int(position) for position in np.sort(order[keep])]


def _line(painter: QPainter, points: list[QPointF], style: Qt.PenStyle, theme: Theme) -> None:
    halo = QPen(colour(theme.base, 200), _PATH_HALO_PX)
    halo.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(halo)
    painter.drawPolyline(QPolygonF(points))
    pen = QPen(colour(theme.accent), _WIDTH_PX, style)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    painter.setPen(pen)
    painter.drawPolyline(QPolygonF(points))
