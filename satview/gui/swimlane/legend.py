"""The legend, with entries for everything drawn from this trace, and pictures in PNG, SVG and PDF files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from PySide6.QtCore import (
    QBuffer,
    QEvent,
    QIODevice,
    QLineF,
    QMarginsF,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    QSizeF,
    Qt,
    Slot,
)
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPageSize,
    QPainter,
    QPaintEvent,
    QPdfWriter,
    QPen,
    QPixmap,
    QPolygonF,
    QRegion,
    QResizeEvent,
)
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QToolTip, QWidget

from satview.answers.activity_lanes import ACTIVITIES, DONE, IN_TIME, LATE, MEANINGS, UNFINISHED
from satview.base.errors import WriteError
from satview.base.new_file import refuse_ending, write_file
from satview.base.safe_text import tool_tip, visible_line
from satview.base.time import format_moment
from satview.events import states
from satview.gui.colours import OTHER_NAMES, class_colour, is_thick, mixed, state_colour
from satview.gui.swimlane import fills
from satview.gui.swimlane.fills import draw_lost, names_of_values, swatch
from satview.gui.swimlane.marks import arrow_colour
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.session.range_view import length_text
from satview.timeline.arrows import ARROW_NAMES, ArrowKind
from satview.timeline.lane_tree import LaneKind
from satview.timeline.state_lanes import USER

# The legend of the bars, strips, ticks and hatching that occur in this trace; a click on an entry highlights it.


_ROW_PX: Final = 18
_PAD_PX: Final = 8
_GAP_PX: Final = 12
_SWATCH_PX: Final = 14
_NAME_LETTERS: Final = 32
_PROCESSES: Final = frozenset(range(states.FIRST_PROCESS, states.VALUE_COUNT))
_KEYS: Final = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Space, Qt.Key.Key_Return)
_ARROW_KINDS: Final = {key: kind for kind, key in fills.ARROWS.items()}
_ARROWS: Final = {
    ArrowKind.MESSAGE: "from the send of a message to its receipt",
    ArrowKind.REPLY: "from the reply to the client that goes on",
    ArrowKind.PULSE: "from the send of a pulse to its receipt",
    ArrowKind.WAKE_UP: "from a call, a timer or an interrupt to the thread that it makes ready",
}
_OUTCOMES: Final = {
    IN_TIME: "in time",
    LATE: "late",
    UNFINISHED: "not done",
    DONE: "without a deadline",
}  # outcomes of activities
_TICK_CLASSES: Final = ("KER_CALL", "THREAD", "USREVENT")


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the legend.

    Attributes:
        keys: Keys that a click highlights, as in `LegendHighlight`; empty if a click shows or hides other entries.
        name: Short name.
        says: Explanation for the tool tip.
    """

    keys: frozenset[int]
    name: str
    says: str


_FEWER: Final = Entry(frozenset(), "fewer", "a click leaves one row of the legend")


class Legend(QWidget):
    """Shows swatches with names in as many rows as needed, or in one row whose last entry unfolds the others.

    Attributes:
        entries: All entries.
    """

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMouseTracking(True)
        self._theme = theme
        self._font = QFont(self.font())
        self._font.setPixelSize(theme.px(10))
        self._opened = opened
        self._second_trace: OpenTrace | None = None
        self._arrows: tuple[ArrowKind, ...] = ()
        self._current = 0
        self._is_low = self._is_unfolded = False
        self.entries: tuple[Entry, ...] = ()
        self._refresh()
        opened.reloaded.connect(self._refresh)
        opened.lanes.changed.connect(self._refresh)
        opened.filters.view_changed.connect(self._refresh)
        opened.legend.changed.connect(self.update)

    def explain_also(self, other: OpenTrace | None) -> None:
        """Add the entries of another trace, whose lanes have no legend of their own; None = no other trace."""
        self._second_trace = other
        self._refresh()

    def explain_arrows(self, kinds: tuple[ArrowKind, ...]) -> None:
        """Set the kinds of arrows for which the legend has entries."""
        if kinds != self._arrows:
            self._arrows = kinds
            self._refresh()

    @Slot()
    def follow_lanes(self) -> None:
        """Replace the general entry for processes by an entry for each process colour, once the CPU lanes are built."""
        if any(entry.keys == _PROCESSES for entry in self.entries):
            self._refresh()

    @Slot()
    def _refresh(self) -> None:
        entries = tuple(_entries(self._opened, self._theme))
        if self._second_trace is not None:
            entries = tuple(sorted(dict.fromkeys((*entries, *_entries(self._second_trace, self._theme))), key=_rank))
        entries += tuple(
            Entry(frozenset({fills.ARROWS[kind]}), ARROW_NAMES[kind], _ARROWS[kind]) for kind in self._arrows
        )
        if entries != self.entries:
            self.entries = entries
            self._current = 0
            self.setAccessibleName("Legend: " + ", ".join(entry.name for entry in entries))
            if self.isVisible():
                self._fit()
            self.update()

    def set_low(self, is_low: bool) -> None:
        """Use a single row, to leave more height to the lanes, if `is_low`; else as many rows as needed."""
        if is_low != self._is_low:
            self._is_low, self._is_unfolded = is_low, False
            self._fit()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours and text size of a theme."""
        self._theme = theme
        self._font.setPixelSize(theme.px(10))
        self._refresh()
        self._fit()

    def _fit(self) -> None:
        self._current = 0
        self.setFixedHeight(self._height_for(self.width()))
        self.update()

    def entry_at(self, position: QPointF) -> Entry | None:
        """Return the entry at a position of the widget; None = none."""
        return next((entry for entry, area in self._placed_entries(self.width()) if area.contains(position)), None)

    def area_of(self, name: str) -> QRectF:
        """Return the area of the entry with the given name; empty if there is none."""
        return next((area for entry, area in self._placed_entries(self.width()) if entry.name == name), QRectF())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Toggle the highlight of the entry under the mouse."""
        entry = self.entry_at(event.position())
        if entry is not None and event.button() == Qt.MouseButton.LeftButton:
            self._current = next(
                position for position, (shown, _) in enumerate(self._placed_entries(self.width())) if shown == entry
            )
            self._use(entry)

    def _use(self, entry: Entry) -> None:
        """Toggle the highlight of an entry, or show or hide the entries for which there is no room."""
        if entry.keys:
            self._opened.legend.toggle(entry.keys)
        else:
            self._is_unfolded = not self._is_unfolded
            self._fit()
            self._current = len(self._placed_entries(self.width())) - 1  # keep the keyboard on this entry

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show a pointing hand over entries."""
        is_entry = self.entry_at(event.position()) is not None
        self.setCursor(Qt.CursorShape.PointingHandCursor if is_entry else Qt.CursorShape.ArrowCursor)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move between entries with the arrow keys; toggle with Space or Return."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        shown = self._placed_entries(self.width())
        if step is not None and shown:
            self._current = (self._current + step) % len(shown)
            self.update()
        elif event.key() in (Qt.Key.Key_Space, Qt.Key.Key_Return) and self._current < len(shown):
            self._use(shown[self._current][0])
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Show tool tips of entries; keep the keys of the legend from running commands."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            if event.key() in _KEYS:
                event.accept()
            return True
        if isinstance(event, QHelpEvent):
            entry = self.entry_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), tool_tip(_tip(entry)), self)
            return True
        return super().event(event)

    def resizeEvent(self, _event: QResizeEvent) -> None:
        """Set the height for the new width."""
        self.setFixedHeight(self._height_for(self.width()))

    def sizeHint(self) -> QSize:
        """Return the size that shows everything."""
        return QSize(200, self._height_for(max(200, self.width())))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the entries."""
        painter = QPainter(self)
        theme, highlighted = self._theme, self._opened.legend.keys
        painter.fillRect(self.rect(), colour(theme.panel))
        painter.fillRect(QRectF(0, 0, self.width(), 1), colour(theme.line))
        painter.setFont(self._font)
        ratio = painter.device().devicePixelRatio()
        for number, (entry, position) in enumerate(self._placed_entries(self.width())):
            is_highlighted = bool(highlighted) and entry.keys == highlighted
            if is_highlighted or (self.hasFocus() and number == self._current):
                painter.setPen(QPen(colour(theme.accent), 1))
                painter.setBrush(colour(theme.accent, 40 if is_highlighted else 0))
                painter.drawRoundedRect(position.adjusted(-3.5, 1.5, 3.5, -1.5), 3, 3)
            area = QRectF(position.left(), position.center().y() - 5, _SWATCH_PX, 10)
            self._draw_swatch(painter, entry, area, ratio)
            painter.setPen(colour(theme.text if is_highlighted else theme.dim))
            painter.drawText(
                position.adjusted(19, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, entry.name
            )

    def _draw_swatch(self, painter: QPainter, entry: Entry, area: QRectF, ratio: float) -> None:
        """Draw the sample of an entry: a bar, arrow, mark or hatching."""
        theme, running = self._theme, state_colour(states.RUNNING, self._theme) or 0
        if not entry.keys:
            up = -3.0 if self._is_unfolded else 3.0
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour(theme.dim))
            middle = area.center()
            painter.drawPolygon(
                QPolygonF([middle + QPointF(-5, -up / 2), middle + QPointF(5, -up / 2), middle + QPointF(0, up)])
            )
            return
        if entry.keys == _PROCESSES:
            for step in range(3):
                self._draw_bar(
                    painter, states.FIRST_PROCESS + step, area.adjusted(step * 5, 0, step * 5 - 10, 0), ratio
                )
            return
        key = min(entry.keys)
        if key == fills.EVENTS:
            for step, name in enumerate(_TICK_CLASSES):
                rgb = class_colour(name, theme.is_dark)
                painter.fillRect(QRectF(area.left() + 1 + step * 5, area.top(), 2, 4), colour(rgb))
            painter.fillRect(area.adjusted(0, 5, 0, 0), colour(theme.line))
        elif key in _ARROW_KINDS:
            self._draw_arrow(painter, _ARROW_KINDS[key], area)
        elif key == fills.RAN:
            painter.fillRect(area.adjusted(0, 1, 0, -1), colour(mixed(theme.line, theme.base, 0.3)))
            painter.fillRect(QRectF(area.left() + 4, area.bottom() - 4, 6, 3), colour(running))
        elif key == fills.MARKED:
            painter.fillRect(area.adjusted(0, 1, 0, -1), colour(mixed(theme.line, theme.base, 0.3)))
            painter.fillRect(QRectF(area.left(), area.bottom() - 4, _SWATCH_PX, 3), colour(theme.hit))
        elif key == fills.SHARES:
            painter.fillRect(area, colour(theme.line))
            for step, height in enumerate((4, 9, 6)):
                painter.fillRect(QRectF(area.left() + step * 5, area.bottom() - height, 4, height), colour(running))
        elif key == fills.LOST:
            painter.save()
            painter.translate(0, area.top())
            draw_lost(painter, [(area.left(), area.right())], area.height(), theme)
            painter.restore()
        else:
            thin = 0.0 if is_thick(key, theme.looks) else 1.5
            self._draw_bar(painter, key, area.adjusted(0, thin, 0, -thin), ratio)

    def _draw_arrow(self, painter: QPainter, kind: ArrowKind, area: QRectF) -> None:
        """Draw a small arrow of a kind, with an open head for a reply."""
        y, end = area.center().y(), area.right()
        painter.setPen(QPen(colour(arrow_colour(kind, self._theme)), 1.5))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.drawLine(QLineF(area.left(), y, end, y))
        head = QPolygonF([QPointF(end - 5, y - 3), QPointF(end, y), QPointF(end - 5, y + 3)])
        if kind is ArrowKind.REPLY:
            painter.drawPolyline(head)
        else:
            painter.setBrush(colour(arrow_colour(kind, self._theme)))
            painter.drawPolygon(head)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)

    def _draw_bar(self, painter: QPainter, value: int, area: QRectF, ratio: float) -> None:
        """Draw a sample of a bar; as an image only if it is hatched, because vector files should have few images."""
        rgb = state_colour(value, self._theme)
        if self._theme.is_hatched or value == states.UNKNOWN:
            image = swatch(value, self._theme, round(area.width()), round(area.height()), ratio)
            painter.drawImage(area.topLeft(), image)
        else:
            painter.fillRect(area, colour(self._theme.base if rgb is None else rgb))

    def _placed_entries(self, width: int) -> list[tuple[Entry, QRectF]]:
        """Return the entries to draw at a width (pixels), with the area of each; folded entries are left out."""
        metrics = QFontMetricsF(self._font)
        row_px = max(_ROW_PX, round(metrics.height()) + 5)
        entries: tuple[Entry, ...] = self.entries
        if self._is_low:
            entries = self._entries_in_one_row(width, metrics)
        x, y = float(_PAD_PX), 4.0
        shown = []
        for entry in entries:
            needed = _width_of(entry, metrics)
            if x + needed > width - _PAD_PX and x > _PAD_PX:
                x, y = float(_PAD_PX), y + row_px
            shown.append((entry, QRectF(x, y, needed, row_px)))
            x += needed + _GAP_PX
        return shown

    def _entries_in_one_row(self, width: int, metrics: QFontMetricsF) -> tuple[Entry, ...]:
        """Return the entries for a single row; if not all fit, the last one shows or hides the entries that do not."""
        ends = np.cumsum([_width_of(entry, metrics) + _GAP_PX for entry in self.entries])
        room = float(width - 2 * _PAD_PX + _GAP_PX)
        if not self.entries or ends[-1] <= room:
            return self.entries
        if self._is_unfolded:
            return (*self.entries, _FEWER)
        room -= _width_of(_more_entry(len(self.entries)), metrics) + _GAP_PX
        fitting = int(np.searchsorted(ends, room, "right"))
        return (*self.entries[:fitting], _more_entry(len(self.entries) - fitting))

    def _height_for(self, width: int) -> int:
        shown = self._placed_entries(width)
        return round(shown[-1][1].bottom()) + 4 if shown else 0


def _width_of(entry: Entry, metrics: QFontMetricsF) -> float:
    return 19 + metrics.horizontalAdvance(entry.name) + 2


def _more_entry(count: int) -> Entry:
    return Entry(frozenset(), f"{count} more", "a click shows the rest of the legend")


def _tip(entry: Entry | None) -> str:
    if entry is None:
        return ""
    return f"{entry.name}: {entry.says}" + (". A click highlights it, another one ends that." if entry.keys else ".")


def _entries(opened: OpenTrace, theme: Theme) -> Iterator[Entry]:
    trace, infos = opened.trace, opened.timeline.infos
    if ACTIVITIES in opened.lanes.arrangement.classes:
        tracks = (infos[lane].track for lane in opened.timeline.lanes_of_class(ACTIVITIES))
        drawn = frozenset[int]().union(*(track.values for track in tracks if track is not None))
        says = "on lanes of activities: {}; a line is at the deadline"
        yield from (
            Entry(frozenset({value}), name, says.format(MEANINGS[value]))
            for value, name in _OUTCOMES.items() if value in drawn
        )  # fmt: skip
    values = trace.catalogue.state_value_of_code
    codes = np.flatnonzero(trace.code_counts)
    seen = {int(values[code]) for code in codes}
    has_states = bool(seen - {states.NOT_A_STATE})
    for state in states.STATES:
        if state.value in seen:
            yield Entry(frozenset({state.value}), state.name, state.meaning)
    rests = {states.IDLE: "the idle thread of a CPU runs", states.WAITING: "no thread of a process runs or is ready"}
    if len({state_colour(value, theme) for value in rests}) == 1:  # the default
        yield Entry(frozenset(rests), OTHER_NAMES[states.IDLE], "; ".join(rests.values()))
    else:
        yield from (_other_entry(value, says) for value, says in rests.items())
    if any(info.kind is LaneKind.INTERRUPTS for info in infos):
        yield _other_entry(states.INTERRUPT, "the CPU handles an interrupt")
    if has_states and opened.lanes.shows_kinds:
        yield Entry(frozenset({USER}), "user code on a CPU", "neither in the kernel nor in an interrupt")
    if not has_states or opened.lanes.shows_kinds:
        yield _other_entry(states.KERNEL_CALL, "the CPU is in a kernel call")
    yield _other_entry(states.UNKNOWN, "the trace does not show what happened")
    if has_states and not opened.lanes.shows_kinds:
        yield from _processes(opened)
    yield Entry(frozenset({fills.EVENTS}), "events", "a tick above the bar for each, coloured by class")
    if has_states:
        yield Entry(frozenset({fills.RAN}), "ran for less than a pixel", "a strip at the foot of what fills most of it")
    yield Entry(
        frozenset({fills.SHARES}),
        "dense: height is share of time",
        "where intervals are too dense for bars; a dot is what was too little for a pixel; of interrupts, and of "
        "processes that use little, strength of colour is share of time",
    )
    if opened.filters.view.marked is not None:
        yield Entry(frozenset({fills.MARKED}), "marked by a filter", "underlined, with ticks of that colour")
    if len(opened.timeline.lost_marks):
        yield Entry(frozenset({fills.LOST}), "events are missing", "buffers were lost here")


def _processes(opened: OpenTrace) -> Iterator[Entry]:
    """Yield an entry for each process colour on CPU lanes, busiest first; a general entry until the lanes are built."""
    timeline = opened.timeline
    if not timeline.lanes_of_cpus:
        yield Entry(_PROCESSES, "process on a CPU", "on lanes of CPUs, in the colour beside the name of the process")
        return
    used = np.zeros(states.VALUE_COUNT, np.int64)
    for lane in timeline.lanes_of_cpus:
        used[lane.shares.values] += lane.shares.totals(opened.trace.window)
    names, ran = names_of_values(timeline), _PROCESSES.intersection(np.flatnonzero(used).tolist())
    for value in sorted(ran, key=lambda value: (value == states.QUIET_PROCESS, -int(used[value]))):
        if value == states.QUIET_PROCESS:
            yield Entry(frozenset({value}), names[value], "each used less than 2 % of what all used")
        else:
            name = names.get(value, "")
            short = name if len(name) <= _NAME_LETTERS else name[: _NAME_LETTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"
            yield Entry(frozenset({value}), short, f"{name} on lanes of CPUs, in this colour in every trace")


def _rank(entry: Entry) -> int:
    """Return the sort key of an entry in the legend of two traces: states in the usual order, then other entries."""
    return next((rank for rank, state in enumerate(states.STATES) if entry.keys == {state.value}), len(states.STATES))


def _other_entry(value: int, says: str) -> Entry:
    return Entry(frozenset({value}), OTHER_NAMES[value], says)


# Pictures in files: widgets as PNG, drawings as PNG, SVG or PDF, the lanes with title and legend.


Draw = Callable[[QPainter], None]
PICTURE_ENDINGS: Final = (".png", ".svg", ".pdf")
_DOTS_PER_INCH = 96  # one logical pixel on the page per logical pixel on the screen


def save_png(picture: QImage | QPixmap, path: Path, reading: Sequence[Path], *, streams: bool = False) -> None:
    """Write a picture as PNG; never replace the files in `reading`, which are those of the trace.

    Args:
        picture: The picture.
        path: The file; replaced once the picture is complete.
        reading: The files of the trace.
        streams: True to write to pipes and devices too.

    Raises:
        WriteError: The file cannot be written or has another ending than `.png`, or the picture is empty.
    """
    refuse_ending(path, ".png", reading=reading)
    buffer = _buffer()
    is_made = picture.save(buffer, "PNG")  # type: ignore[call-overload]  # the stubs name QIODevice, QBuffer is one
    if not is_made:
        raise WriteError(path, "the picture is empty")
    write_file(path, _bytes(buffer), reading=reading, streams=streams)


def save_drawing(
    draw: Draw,
    size: QSize,
    title: str,
    path: Path,
    reading: Sequence[Path],
    ratio: float = 1.0,
    *,
    kind: str = "",
    streams: bool = False,
) -> None:
    """Draw, with a painter whose unit is a logical pixel, into a file: PNG, SVG or PDF by its ending.

    Args:
        draw: Draws with a painter.
        size: Size in logical pixels.
        title: Title of the document, not used for PNG.
        path: The file; replaced once the picture is complete.
        reading: Files that must not be replaced: those of the trace.
        ratio: Pixels of a PNG per logical pixel.
        kind: The only ending allowed, without its dot; empty = any of `PICTURE_ENDINGS`.
        streams: True to write to pipes and devices too.

    Raises:
        WriteError: The file cannot be written, or has another ending.
    """
    refuse_ending(path, *((f".{kind}",) if kind else PICTURE_ENDINGS), reading=reading)
    make = {".svg": _svg, ".pdf": _pdf}.get(path.suffix.lower())
    if make is not None:
        write_file(path, make(draw, size, title), reading=reading, streams=streams)
        return
    image = QImage(size * ratio, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(ratio)
    image.fill(Qt.GlobalColor.white)
    _paint(image, draw)
    save_png(image, path, reading, streams=streams)


def _svg(draw: Draw, size: QSize, title: str) -> bytes:
    buffer, generator = _buffer(), QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setResolution(_DOTS_PER_INCH)  # otherwise texts with sizes in points are too small
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle(title)
    _paint(generator, draw)
    return _bytes(buffer)


def _pdf(draw: Draw, size: QSize, title: str) -> bytes:
    """Return a PDF with one page of exactly the size of the drawing."""
    buffer = _buffer()
    writer = QPdfWriter(buffer)
    writer.setResolution(_DOTS_PER_INCH)
    points = QSizeF(size) * 72 / _DOTS_PER_INCH
    writer.setPageSize(QPageSize(points, QPageSize.Unit.Point, "", QPageSize.SizeMatchPolicy.ExactMatch))
    writer.setPageMargins(QMarginsF())
    writer.setTitle(title)
    writer.setCreator("satview")
    _paint(writer, draw)
    return _bytes(buffer)


def _paint(device: object, draw: Draw) -> None:
    painter = QPainter(device)  # type: ignore[call-overload]  # any paint device
    try:
        draw(painter)
    finally:
        painter.end()


def _buffer() -> QBuffer:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    return buffer


def _bytes(buffer: QBuffer) -> bytes:
    buffer.close()
    return bytes(buffer.data().data())


# The lanes as a picture with title, time span and legend.


_MARGIN_PX: Final = 12
_HEAD_PX: Final = 50


class ExplainedPicture:
    """Draws the lanes as they are shown, with a title above and the legend below, even if the legend is switched off.

    `lanes` is the part of `area` to draw: without scroll bar and legend.
    """

    def __init__(self, area: QWidget, lanes: QRect, opened: OpenTrace, theme: Theme) -> None:
        self._area, self._lanes, self._opened, self._theme = area, lanes, opened, theme
        self._legend = Legend(opened, theme)
        self._legend.resize(self._lanes.width(), 1)
        self._legend.resize(self._lanes.width(), self._legend.sizeHint().height())

    @property
    def size(self) -> QSize:
        """Size in logical pixels."""
        return QSize(self._lanes.width(), _HEAD_PX + self._lanes.height() + self._legend.height())

    @property
    def title(self) -> str:
        """Trace title and time span on one line."""
        return f"{visible_line(self._opened.trace.title)}, {self.span}"

    @property
    def span(self) -> str:
        """The visible time span, wall time and filter, as text."""
        trace, window = self._opened.trace, self._opened.viewport.window.within(self._opened.trace.window)
        clock = trace.clock
        parts = [
            f"{format_moment(window.start, clock)} to {format_moment(window.end, clock)}",
            length_text(window.length, clock),
        ]
        wall = clock.wall_time(window.start)
        if wall is not None:
            parts.append(f"from about {wall:%Y-%m-%d %H:%M:%S} UTC")
        if self._opened.filters.is_active:
            parts.append(f"filtered: {self._opened.filters.row_count:,} of {len(trace.events):,} events")
        return " \N{MIDDLE DOT} ".join(parts)

    def draw(self, painter: QPainter) -> None:
        """Draw with a painter whose unit is a logical pixel."""
        painter.fillRect(QRect(QPoint(), self.size), colour(self._theme.panel))
        self._draw_head(painter)
        lanes = self._lanes
        _render(self._area, painter, QPoint(0, _HEAD_PX), lanes)
        _render(self._legend, painter, QPoint(0, _HEAD_PX + lanes.height()), self._legend.rect())

    def _draw_head(self, painter: QPainter) -> None:
        font = QFont(self._area.font())
        font.setBold(True)
        font.setPixelSize(self._theme.px(15))
        small = QFont(self._area.font())
        small.setPixelSize(self._theme.px(11))
        room = self._lanes.width() - 2 * _MARGIN_PX
        for face, text, top, rgb in (
            (font, visible_line(self._opened.trace.title), 7, self._theme.text),
            (small, self.span, 28, self._theme.dim),
        ):
            painter.setFont(face)
            painter.setPen(colour(rgb))
            cut = QFontMetricsF(face).elidedText(text, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QRectF(_MARGIN_PX, top, room, 20), Qt.AlignmentFlag.AlignVCenter, cut)


def _render(widget: QWidget, painter: QPainter, position: QPoint, part: QRect) -> None:
    """Draw a part of a widget with the painter of a picture, at a position of the picture."""
    flags = QWidget.RenderFlag.DrawWindowBackground | QWidget.RenderFlag.DrawChildren
    widget.render(painter, position, QRegion(part), flags)
