"""All arrows in the window, grouped where they are dense, and which one is under the mouse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFont, QPainter, QPen

from satview.base.safe_text import html_text
from satview.base.time_text import format_duration
from satview.gui.colours import mixed
from satview.gui.swimlane.array_drawing import draw_lines, fill_rects
from satview.gui.swimlane.arrows import MIDDLE
from satview.gui.swimlane.cost import clock
from satview.gui.swimlane.fitted_text import FittedTexts
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.text_sheet import TextSheet
from satview.gui.theme import Theme, colour
from satview.linkage.table import Certainty
from satview.session.arrow_source import ArrowMode, ArrowSource
from satview.session.open_trace import OpenTrace
from satview.timeline.arrows import ArrowGroups, ArrowKind

_BEYOND_PX: Final = 2000.0  # ends outside the picture are moved that near, so that Qt draws no endless lines
_OUTSIDE_PX: Final = 20.0
_PICK_PX: Final = 3.5
_HEAD_PX: Final = 5.0
_HEAD_WIDTH_PX: Final = 2.6
_SMALL_PX: Final = 10
_COUNTS: Final = 25  # groups that show how many arrows they are
_COUNT_FROM: Final = 2
# Qt draws 600 opaque lines in 3 ms, with an alpha in 15 ms, smooth and with an alpha in 100 ms and more. So
# colours are mixed beforehand, and only a picture of few arrows is smooth.
_FEW: Final = 100
_OLDEST: Final = 3  # frames that show the same groups while the view moves
_STRENGTH, _STRENGTH_DENSE = 0.85, 0.55  # how much of its colour a line has, the rest is that of the ground
_TITLES: Final = {
    ArrowKind.MESSAGE: ("message", "messages"), ArrowKind.REPLY: ("reply", "replies"),
    ArrowKind.PULSE: ("pulse", "pulses"), ArrowKind.WAKE_UP: ("wake-up", "wake-ups"),
}  # fmt: skip


class ArrowLayer(QObject):
    """Draws the arrows of all messages, replies, pulses and wake-ups over the lanes.

    Attributes:
        mode: Which arrows show.
        source: Where they come from.
        hovered: The group under the mouse, a position among those drawn; -1 = none.
        spent_s: What finding the groups of the last picture took; 0 if they were those of the one before.

    Signals:
        changed: Draw again.
    """

    changed = Signal()

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self.mode = ArrowMode.SELECTION
        self.source = ArrowSource(opened, self)
        self.source.refined.connect(self.changed)
        self.hovered = -1
        self.groups: ArrowGroups | None = None
        self._ends = np.empty((0, 4))
        self._age = 0  # frames since the groups were found
        self._made_for: tuple[object, ...] = ()  # what they were found for
        self.spent_s = 0.0
        self._texts: FittedTexts | None = None
        self._sheet = TextSheet()

    def are_due(self, scale: TimeScale) -> bool:
        """Return whether a picture will not do with the arrows of the last one."""
        return self.mode is ArrowMode.ALL and self._age >= _OLDEST - 1 and self._made_for[:1] != (scale,)

    def set_mode(self, mode: ArrowMode) -> None:
        """Show other arrows."""
        if mode is not self.mode:
            self.mode, self.groups, self.hovered, self._ends = mode, None, -1, np.empty((0, 4))
            self.changed.emit()

    def draw(
        self, painter: QPainter, scale: TimeScale, shown: tuple[int, int], scroll_px: int, theme: Theme, *,
        may_wait: bool = False,
    ) -> bool:  # fmt: skip
        """Draw all arrows, unless another mode is on.

        Args:
            painter: Of the swimlanes.
            scale: Of the picture.
            shown: First and last of the rows of lanes that can be seen.
            scroll_px: How far these are scrolled.
            theme: Its colours.
            may_wait: The arrows of the last picture will do, where they are now, unless these are too old.

        Returns:
            Whether these are the arrows of this picture.
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
        if groups is not self.groups:
            self.groups, self.hovered = groups, -1
        if groups is None:
            self._say(painter, "Looking for arrows\N{HORIZONTAL ELLIPSIS}", theme)
            return True
        self._ends = _cut(self._placed(groups, scale, scroll_px), painter.viewport().height())
        is_smooth = len(groups) <= _FEW
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=is_smooth)
        shapes = _shapes(groups, self._ends, is_smooth=is_smooth)
        _draw_groups(painter, groups, shapes, theme)
        self._draw_counts(painter, groups, theme)
        if 0 <= self.hovered < len(groups):
            _draw_lines(painter, shapes, np.array([self.hovered]), QPen(colour(theme.text), 2.4))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        if int(groups.count.sum()) != len(groups) or groups.is_sample:
            self._say(painter, _said(groups), theme)
        return not are_old

    def at(self, position: QPointF) -> int:
        """Return which of the groups drawn is nearest to a position of the widget, -1 if none is near."""
        if self.mode is not ArrowMode.ALL or not len(self._ends):
            return -1
        x1, y1, x2, y2 = self._ends.T
        along, down = x2 - x1, y2 - y1
        share = ((position.x() - x1) * along + (position.y() - y1) * down) / np.maximum(
            along * along + down * down, 1e-9
        )
        share = np.clip(share, 0, 1)
        distance = np.hypot(x1 + share * along - position.x(), y1 + share * down - position.y())
        nearest = int(np.argmin(distance))
        return nearest if distance[nearest] <= _PICK_PX else -1

    def text(self, group: int) -> str:
        """Return what the hover card says of a group, as rich text: both ends, and the delay."""
        groups, trace = self.groups, self._opened.trace
        assert groups is not None
        kind, count = ArrowKind(int(groups.arrows.kind[group])), int(groups.count[group])
        ends = [self._name(int(lane[group])) for lane in (groups.arrows.from_lane, groups.arrows.to_lane)]
        least, most = (format_duration(trace.clock.duration_ns(int(column[group])))
                       for column in (groups.least_cycles, groups.most_cycles))  # fmt: skip
        delay = least if least == most else f"{least} to {most}"
        about = "about " if groups.is_sample and count > 1 else ""
        count = round(count / groups.share) if count > 1 else 1
        head = _TITLES[kind][0] if count == 1 else f"{about}{count:,} {_TITLES[kind][1]}"
        certainty = Certainty(int(groups.arrows.certainty[group]))
        sure = "" if certainty is Certainty.EXACT or count > 1 else f" ({certainty.name.lower()})"
        events = "<br>" + html_text(" to ".join(
            f"{trace.spec(int(row[group])).name} #{int(row[group]) + 1:,}"
            for row in (groups.arrows.from_row, groups.arrows.to_row))) if count == 1 else ""  # fmt: skip
        return (
            f"<b>{head}</b>{sure}&nbsp;&nbsp;{delay}<br>"
            f"{html_text(ends[0])} \N{RIGHTWARDS ARROW} {html_text(ends[1])}{events}"
        )

    def _name(self, lane: int) -> str:
        info, trace = self._opened.timeline.infos[lane], self._opened.trace
        if info.thread:
            return trace.thread_name(info.thread)
        return f"{trace.cpu_title(info.cpu)} {info.title}" if info.parent >= 0 and info.cpu >= 0 else info.title

    def _placed(self, groups: ArrowGroups, scale: TimeScale, scroll_px: int) -> NDArray[np.float64]:
        """Return both ends of every group in pixels, (n, 4)."""
        rows = self._opened.lanes.rows
        middles = np.array([row.y_px - scroll_px + row.height_px * MIDDLE for row in rows])
        ends = np.empty((len(groups), 4))
        # One arrow leans from its start to its end; a group is upright but for the shortest of its delays.
        for column, moments in ((0, groups.drawn_at), (2, groups.drawn_at + groups.least_cycles)):
            x = (moments - scale.window.start) * scale.px_per_cycle
            ends[:, column] = np.clip(x, -_BEYOND_PX, scale.width_px + _BEYOND_PX)
        if len(groups):
            ends[:, 1], ends[:, 3] = middles[groups.from_position], middles[groups.to_position]
        return ends

    def _draw_counts(self, painter: QPainter, groups: ArrowGroups, theme: Theme) -> None:
        """Write how many arrows the largest groups are."""
        many = np.flatnonzero(groups.count >= _COUNT_FROM)
        if groups.is_sample or not len(many):
            return
        many = many[np.argsort(-groups.count[many], kind="stable")][:_COUNTS]
        texts = self._numbers(painter.font(), theme)
        laid = [texts.laid(f"{count:,}") for count in groups.count[many].tolist()]
        sizes = np.array([(text.width_px + 4, text.height_px) for text in laid])
        boxes = np.empty((len(laid), 4))
        boxes[:, :2], boxes[:, 2:] = (self._ends[many, :2] + self._ends[many, 2:] - sizes) / 2, sizes
        free = _apart(boxes.tolist())
        painter.setBrush(colour(theme.base, 215))
        fill_rects(painter, boxes[free])
        painter.setBrush(Qt.BrushStyle.NoBrush)
        self._sheet.begin(painter)
        for position in free:
            self._sheet.put(boxes[position, 0] + 2, boxes[position, 1], laid[position], theme.text)
        self._sheet.end()

    def _numbers(self, font: QFont, theme: Theme) -> FittedTexts:
        """Return the texts of what is written."""
        font = _small(font, theme)
        if self._texts is None or self._texts.font != font:
            self._texts = FittedTexts(font, Qt.TextElideMode.ElideRight)
        return self._texts

    def _say(self, painter: QPainter, text: str, theme: Theme) -> None:
        laid = self._numbers(painter.font(), theme).laid(text)
        device = painter.viewport()
        box = QRectF(device.width() - laid.width_px - 18, device.height() - laid.height_px - 10, laid.width_px + 12,
                     laid.height_px + 4)  # fmt: skip
        painter.fillRect(box, colour(theme.panel, 235))
        painter.setFont(laid.font)
        painter.setPen(colour(theme.dim))
        painter.drawStaticText(box.topLeft() + QPointF(6, 2), laid.words)


def _apart(boxes: Sequence[Sequence[float]]) -> list[int]:
    """Return which of some boxes (left, top, width, height) do not overlap those that are returned before them."""
    taken, found = list[tuple[float, float, float, float]](), list[int]()
    for position, (left, top, width, height) in enumerate(boxes):
        right, bottom = left + width, top + height
        if not any(left < r and right > x and top < b and bottom > y for x, y, r, b in taken):
            taken.append((left, top, right, bottom))
            found.append(position)
    return found


def _cut(ends: NDArray[np.float64], height_px: int) -> NDArray[np.float64]:
    """Return lines cut a little above and below the picture: Qt is slow at what is far outside."""
    x1, y1, x2, y2 = ends.T
    down = np.where(y2 == y1, 1.0, y2 - y1)
    first, last = ((np.clip(y, -_OUTSIDE_PX, height_px + _OUTSIDE_PX) - y1) / down for y in (y1, y2))
    return np.stack((x1 + first * (x2 - x1), y1 + first * down, x1 + last * (x2 - x1), y1 + last * down), axis=1)


class _Shapes(NamedTuple):
    """What arrows are drawn of.

    Attributes:
        lines: float64 (n, 4, 4), ends of the shaft, of both sides of the head, and of its back.
        are_drawn: bool (n, 4), which of them are drawn: an open head distinguishes replies without their colour.
        is_upright: bool (n,), the shaft is drawn as a rectangle.
    """

    lines: NDArray[np.float64]
    are_drawn: NDArray[np.bool_]
    is_upright: NDArray[np.bool_]


def _shapes(groups: ArrowGroups, ends: NDArray[np.float64], *, is_smooth: bool) -> _Shapes:
    """Return what arrows are drawn of, by their ends, (n, 4)."""
    x1, y1, x2, y2 = ends.T
    length = np.maximum(np.hypot(x2 - x1, y2 - y1), 1e-6)
    along, down = (x2 - x1) / length, (y2 - y1) / length
    back_x, back_y = x2 - along * _HEAD_PX, y2 - down * _HEAD_PX
    beside_x, beside_y = down * _HEAD_WIDTH_PX, along * _HEAD_WIDTH_PX
    lines = np.empty((len(ends), 4, 4))
    lines[:, 0] = ends
    lines[:, 1, 0], lines[:, 1, 1] = back_x - beside_x, back_y + beside_y
    lines[:, 2, 0], lines[:, 2, 1] = back_x + beside_x, back_y - beside_y
    lines[:, 1:3, 2:] = ends[:, None, 2:]
    lines[:, 3, :2], lines[:, 3, 2:] = lines[:, 1, :2], lines[:, 2, :2]
    # Qt takes ten times as long for a wide line as for a rectangle, and most lines of groups are upright.
    is_upright = np.zeros(len(ends), np.bool_) if is_smooth else np.abs(x2 - x1) < 1
    are_drawn = np.ones((len(ends), 4), np.bool_)
    are_drawn[:, 0], are_drawn[:, 3] = ~is_upright, groups.arrows.kind != ArrowKind.REPLY
    return _Shapes(lines, are_drawn, is_upright)


def _draw_groups(painter: QPainter, groups: ArrowGroups, shapes: _Shapes, theme: Theme) -> None:
    """Draw all groups, those of one colour and width at once."""
    colours = {theme.accent: (ArrowKind.MESSAGE, ArrowKind.REPLY), theme.hit: (ArrowKind.PULSE,),
               theme.dim: (ArrowKind.WAKE_UP,)}  # fmt: skip
    many = groups.count >= _COUNT_FROM
    strength = _STRENGTH if len(groups) <= _FEW else _STRENGTH_DENSE
    for rgb, kinds in colours.items():
        mine = groups.arrows.kind == kinds[0]
        for kind in kinds[1:]:
            mine |= groups.arrows.kind == kind
        line = colour(mixed(rgb, theme.base, 1 - strength))
        for found, width in ((mine & ~many, 1.0), (mine & many, 2.0)):
            _draw_lines(painter, shapes, np.flatnonzero(found), QPen(line, width))


def _draw_lines(painter: QPainter, shapes: _Shapes, positions: NDArray[np.intp], pen: QPen) -> None:
    """Draw lines with heads."""
    if not len(positions):
        return
    upright = positions[shapes.is_upright[positions]]
    painter.setBrush(pen.color())
    fill_rects(painter, _upright_rects(shapes.lines[upright, 0], pen.widthF()))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(pen)
    draw_lines(painter, shapes.lines[positions][shapes.are_drawn[positions]])


def _upright_rects(ends: NDArray[np.float64], width_px: float) -> NDArray[np.float64]:
    """Return upright lines as rectangles: left, top, width, height."""
    x1, y1, x2, y2 = ends.T
    found = np.empty((len(ends), 4))
    found[:, 0], found[:, 2] = np.rint((x1 + x2 - width_px) / 2), width_px
    found[:, 1], found[:, 3] = np.minimum(y1, y2), np.abs(y2 - y1)
    return found


def _said(groups: ArrowGroups) -> str:
    """Return how many arrows the picture shows."""
    if groups.is_sample:
        return f"about {groups.about:,} arrows, {groups.total:,} looked at so far"
    drawn = int(groups.count.sum())
    left_out = f", {groups.total - drawn:,} not drawn" if groups.total > drawn else ""
    return f"{groups.total:,} arrows in {len(groups):,} groups{left_out}"


def _small(font: QFont, theme: Theme) -> QFont:
    font.setPixelSize(theme.px(_SMALL_PX))
    return font
