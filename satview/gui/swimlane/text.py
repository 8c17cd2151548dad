"""Text on lanes, labels and bars: cut to fit, laid out once and drawn many times."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPixmap, QStaticText
from shiboken6 import wrapInstance

from satview.base.safe_text import visible_line
from satview.base.time import TimeWindow
from satview.events import states
from satview.gui.colours import hatch_of, ink_on, state_colour
from satview.gui.swimlane.fills import names_of_values, needs_vectors
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.shares import Stack
from satview.gui.theme import Theme, colour
from satview.session.lanes.lane_arrangement import Label
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.spans import NO_EVENT, LaneSpans

# Drawing from arrays: creating a Python object per line or rectangle would take longer than drawing it.


def draw_lines(painter: QPainter, ends: NDArray[np.float64]) -> None:
    """Draw lines with the pen of the painter: float64 (n, 4), x and y of both ends, in the memory layout of QLineF."""
    ends = np.ascontiguousarray(ends, np.float64)
    if len(ends):
        painter.drawLines(cast(QLineF, wrapInstance(ends.ctypes.data, QLineF)), len(ends))


def fill_rects(painter: QPainter, rects: NDArray[np.float64]) -> None:
    """Fill rectangles with the brush of the painter: float64 (n, 4), left, top, width, height, laid out as QRectF."""
    rects = np.ascontiguousarray(rects, np.float64)
    if len(rects):
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawRects(cast(QRectF, wrapInstance(rects.ctypes.data, QRectF)), len(rects))


def draw_parts(
    painter: QPainter, middles: NDArray[np.float64], rects: NDArray[np.integer], size: float, pixmap: QPixmap
) -> None:
    """Draw rectangles of an image.

    Args:
        painter: Painter.
        middles: float64 (n, 2), x and y of the centre of each drawn rectangle.
        rects: integers (n, 4), left, top, width and height in the image.
        size: Drawn size of a pixel of the image.
        pixmap: The image.
    """
    if not len(rects):
        return
    parts = np.empty((len(rects), 10))  # the fields of QPainter.PixmapFragment
    parts[:, :2], parts[:, 2:6], parts[:, 6:8] = middles, rects, size
    parts[:, 8:] = 0, 1  # not rotated, opaque
    fragments = cast(QPainter.PixmapFragment, wrapInstance(parts.ctypes.data, QPainter.PixmapFragment))
    painter.drawPixmapFragments(fragments, len(parts), pixmap)


# Texts drawn once into an image and then copied, which is ten times as fast as drawing them again.


_WIDTH_PX: Final = 1024  # size of a sheet in logical pixels: room for about 1,000 names
_HEIGHT_PX: Final = 512


class LaidText:
    """A text after layout.

    Attributes:
        static_text: The text.
        font: Its font.
        width_px, height_px: Its size.
        spots: By colour, 0xRRGGBB: the sheet with the drawn text (`TextSheet._content`), and the number of the text
            on that sheet.
    """

    __slots__ = ("font", "height_px", "spots", "static_text", "width_px")

    def __init__(self, words: str, font: QFont) -> None:
        text = QStaticText(words)
        text.setTextFormat(Qt.TextFormat.PlainText)
        text.prepare(font=font)
        size = text.size()
        self.static_text, self.font, self.width_px, self.height_px = text, font, size.width(), size.height()
        self.spots: dict[int, tuple[object, int]] = {}


class ColouredTexts:
    """Texts with colours that are drawn repeatedly.

    Attributes:
        texts: The texts.
        inks: Colours of the texts, 0xRRGGBB.
        filled, numbers: The sheet with all texts (`TextSheet._content`), and the numbers of the texts on that sheet.
    """

    __slots__ = ("filled", "inks", "numbers", "texts")

    def __init__(self, texts: list[LaidText], inks: list[int]) -> None:
        self.texts, self.inks = texts, inks
        self.filled: object = None
        self.numbers = np.empty(0, np.intp)


class TextSheet:
    """An image with texts, each drawn once, from which the texts of each frame are copied.

    In vector files, texts are drawn directly, as text.
    """

    def __init__(self) -> None:
        self._pixmap: QPixmap | None = None
        self._ratio = 0.0
        self._content = object()  # identifies the present content; replaced when the sheet is cleared
        self._rects: list[tuple[int, int, int, int]] = []
        self._next_spot, self._row_px = (0, 0), 0
        self._painter: QPainter | None = None
        self._direct = False
        self._single: list[int] = []
        self._placed: list[NDArray[np.intp]] = []  # each (n, 3): x and y in device pixels, number of the text

    def begin(self, painter: QPainter) -> None:
        """Begin a frame, whose texts are drawn with this painter."""
        transform = painter.deviceTransform()
        self._painter, ratio = painter, transform.m11()
        is_turned = transform.m12() != 0 or transform.m21() != 0
        self._direct = needs_vectors(painter) or is_turned or ratio != transform.m22() or ratio <= 0
        if not self._direct and ratio != self._ratio:
            self._ratio, self._pixmap = ratio, None

    def put(self, x: float, y: float, text: LaidText, rgb: int) -> None:
        """Draw a text with its top left corner at (x, y), in a colour 0xRRGGBB."""
        spot = text.spots.get(rgb)
        if spot is None or spot[0] is not self._content or self._direct or self._pixmap is None:
            number = -1 if self._direct else self._draw_on_sheet(text, rgb)
            if number < 0:
                self._draw(x, y, text, rgb)
                return
        else:
            number = spot[1]
        self._single += (round(x * self._ratio), round(y * self._ratio), number)

    def has_all(self, blocks: Sequence[ColouredTexts]) -> bool:
        """Draw missing texts of groups on the sheet and store their numbers; return False if the sheet is too small."""
        if self._direct:
            return False
        for _ in range(2):  # clearing a full sheet invalidates numbers found before
            missing = [block for block in blocks if block.filled is not self._content and block.texts]
            if not missing:
                return True
            for block in missing:
                if not self._note(block):
                    return False
        return False

    def put_all(self, x: NDArray[np.float64], y: NDArray[np.float64], numbers: NDArray[np.intp]) -> None:
        """Draw many texts at positions as `put` does, given the numbers that `has_all` stored."""
        columns = np.rint(x * self._ratio), np.rint(y * self._ratio), numbers
        self._placed.append(np.stack(columns, axis=1).astype(np.intp))

    def _note(self, block: ColouredTexts) -> bool:
        """Draw a block's missing texts and store the number of each text; return False if a text is too large."""
        numbers = list[int]()
        for text, rgb in zip(block.texts, block.inks, strict=True):
            spot = text.spots.get(rgb)
            numbers.append(spot[1] if spot is not None and spot[0] is self._content else self._draw_on_sheet(text, rgb))
            if numbers[-1] < 0:
                return False
        if all(text.spots[rgb][0] is self._content for text, rgb in zip(block.texts, block.inks, strict=True)):
            block.numbers, block.filled = np.array(numbers, np.intp), self._content
        return True

    def end(self) -> None:
        """End the frame: draw all texts and release the painter, which would otherwise stay active."""
        self._flush()
        self._painter = None

    def _flush(self) -> None:
        painter, single, parts = self._painter, self._single, self._placed
        self._single, self._placed = [], []
        if painter is None or self._pixmap is None or not (single or parts):
            return
        placed = np.concatenate([*parts, np.array(single, np.intp).reshape(-1, 3)])
        rects = np.array(self._rects)[placed[:, 2]]
        middles = (placed[:, :2] + rects[:, 2:] / 2) / self._ratio
        draw_parts(painter, middles, rects, 1 / self._ratio, self._pixmap)

    def _draw(self, x: float, y: float, text: LaidText, rgb: int) -> None:
        painter = self._painter
        assert painter is not None
        painter.setFont(text.font)
        painter.setPen(colour(rgb))
        painter.drawStaticText(QPointF(x, y), text.static_text)

    def _draw_on_sheet(self, text: LaidText, rgb: int) -> int:
        """Draw a text on the sheet, which is cleared if full; return the number of the text, -1 if too large."""
        width, height = (int(size * self._ratio) + 2 for size in (text.width_px, text.height_px))
        most = round(_WIDTH_PX * self._ratio), round(_HEIGHT_PX * self._ratio)
        if width > most[0] or height > most[1]:
            return -1
        left, top = self._next_spot
        if left + width > most[0]:
            left, top, self._row_px = 0, top + self._row_px, 0
        if self._pixmap is None or top + height > most[1]:
            self._flush()
            self._pixmap, self._content = QPixmap(*most), object()
            self._pixmap.fill(Qt.GlobalColor.transparent)
            self._rects, left, top, self._row_px = [], 0, 0, 0
        self._next_spot, self._row_px = (left + width, top), max(self._row_px, height)
        with QPainter(self._pixmap) as painter:
            painter.translate(left, top)
            painter.scale(self._ratio, self._ratio)
            painter.setFont(text.font)
            painter.setPen(colour(rgb))
            painter.drawStaticText(QPointF(0, 0), text.static_text)
        self._rects.append((left, top, width, height))
        text.spots[rgb] = self._content, len(self._rects) - 1
        return len(self._rects) - 1


# Texts elided and laid out; cached, because both are slow.


_CACHE_LIMIT: Final = 5000
_WIDEST_PX: Final = 4000
_LONGEST: Final = 1000  # letters; longer texts are cut before layout
_GAP: Final = "   "  # between the parts of a text


class FittedTexts:
    """Computes and caches layouts of texts in one font.

    Args:
        font: The font.
        mode: Where texts are elided.
        step_px: Available widths are rounded down to multiples of this, so that zooming rarely needs new layouts.
        least: A text that would be cut to fewer letters is left out.
        short_forms: Short forms of texts that are never cut: if there is no room, the short form is used, or none.
    """

    def __init__(
        self,
        font: QFont,
        mode: Qt.TextElideMode,
        step_px: int = 1,
        least: int = 1,
        short_forms: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.font = font
        self._short_forms = short_forms
        self.metrics = QFontMetricsF(font)
        self._mode, self._step_px, self._least = mode, step_px, least
        self._texts: dict[str, tuple[LaidText, float]] = {}  # uncut texts with their widths
        self._cut: dict[tuple[str, int], LaidText | None] = {}
        self._widths: dict[str, float] = {}

    def fit(self, text: str, room_px: float) -> LaidText | None:
        """Return a text cut to the available width; None if too little would remain."""
        steps = min(int(room_px), _WIDEST_PX) // self._step_px
        whole, width_px = self._whole_text(text)
        if width_px <= steps * self._step_px:
            return whole
        if text in self._short_forms:
            short, width_px = self._whole_text(self._short_forms[text])
            return short if width_px <= room_px else None
        key = (text, steps)
        if key not in self._cut:
            if len(self._cut) > _CACHE_LIMIT:
                self._cut.clear()
            words = self.metrics.elidedText(visible_line(text), self._mode, steps * self._step_px)
            self._cut[key] = LaidText(words, self.font) if len(words) >= min(self._least, len(text)) else None
        return self._cut[key]

    def uncut(self, text: str) -> LaidText:
        """Return a short text without cutting it."""
        if text not in self._texts:
            self._whole_text(text)
        return self._texts[text][0]

    def width(self, text: str) -> float:
        """Return the width of a text that is not cut, in pixels."""
        if text not in self._widths:
            if len(self._widths) > _CACHE_LIMIT:
                self._widths.clear()
            self._widths[text] = float(self.metrics.horizontalAdvance(text))
        return self._widths[text]

    def fit_parts(self, parts: tuple[str, ...], room_px: float) -> list[tuple[float, LaidText]]:
        """Return the leading parts that fit, each with its distance from the first; only the first may be cut."""
        if not self.has_room_after(parts[0], room_px) or len(parts) == 1:
            words = self.fit(parts[0], room_px)
            return [] if words is None else [(0.0, words)]
        laid, used_px = list[tuple[float, LaidText]](), 0.0
        for part in parts:
            words = self._whole_text(part)[0] if not laid or len(part) <= _LONGEST else None
            if words is None or (laid and used_px + words.width_px > room_px - self._step_px):
                break
            laid.append((used_px, words))
            used_px += words.width_px + self.width(_GAP)
        return laid

    def has_room_after(self, text: str, room_px: float) -> bool:
        """Return whether there may be room for another text after `text`, in `room_px` pixels for both."""
        return len(text) <= _LONGEST and self.width(text) + self.width(_GAP) < room_px - self._step_px

    def _whole_text(self, text: str) -> tuple[LaidText | None, float]:
        """Return the layout and width of an uncut text; None and infinity if it is too long."""
        if len(text) > _LONGEST:
            return None, math.inf
        if text not in self._texts:
            if len(self._texts) > _CACHE_LIMIT:
                self._texts.clear()
            words = visible_line(text)
            self._texts[text] = LaidText(words, self.font), float(self.metrics.horizontalAdvance(words))
        return self._texts[text]


# Names inside intervals that are wide enough, and the pixel columns where intervals begin.


_MOST_HEIGHT: Final = 0.8  # share of a stack's height from which a process is named in it
NARROWEST_PX: Final = 34  # least width of an interval with a name, such as MTX
BESIDE_PX: Final = 8  # total margin beside a name in its interval
_LABELS_OF: Final = {  # a CPU lane does not repeat its CPU number
    LaneKind.THREAD: frozenset(Label),
    LaneKind.CPU: frozenset(Label) - {Label.CPU},
}
_SILENT: Final = frozenset({states.ABSENT, states.UNKNOWN, states.IDLE, states.WAITING})


class IntervalText(NamedTuple):
    """The name of an interval.

    Attributes:
        row: The lane.
        left_px, right_px: The visible part of the interval.
        start_cycles, end_cycles: The whole interval.
        text: The name.
        ink: 0xRRGGBB, or None for the normal text colour.
        event: Row of the event that begins the interval; `NO_EVENT` if none does.
        is_number: True if the text is the value of a counter.
        behind: Colour 0xRRGGBB drawn behind the name, where hatching would make it illegible; None = nothing.
    """

    row: LaneRow
    left_px: float
    right_px: float
    start_cycles: int
    end_cycles: int
    text: str
    ink: int | None
    event: int
    is_number: bool = False
    behind: int | None = None

    @property
    def room_px(self) -> float:
        """Available width of the name."""
        return self.right_px - self.left_px - BESIDE_PX


def interval_texts(
    timeline: Timeline,
    rows: tuple[LaneRow, ...],
    values: NDArray[np.uint8],
    scale: TimeScale,
    theme: Theme,
    hidden_values: frozenset[int] = frozenset(),
    shown: NDArray[np.bool_] | None = None,
    dimmed: NDArray[np.bool_] | None = None,
    without: Container[int] = (),
) -> list[IntervalText]:
    """Return the names that fit into their intervals, at most one per `NARROWEST_PX` of a lane.

    If few intervals are visible, each is looked up. Otherwise intervals are only looked for where neighbouring pixels
    have the same value, so that the cost depends on the number of pixels and not of events.

    Args:
        timeline: The lanes.
        rows: The lanes in the picture.
        values: uint8 (lanes, width), lane values with flags.
        scale: Time to logical pixels.
        theme: Colours.
        hidden_values: Lane values without names.
        shown: bool by event row: intervals whose first event is not set get no name; None = all get names.
        dimmed: bool by event row: intervals whose first event is set get no name; None = no such intervals.
        without: Lanes whose intervals get no names, except counters.
    """
    lanes = []
    for index, row in enumerate(rows):
        is_counter = timeline.infos[row.index].is_counter
        is_left_out = row.index in without and not is_counter
        if is_left_out or row.height_px < theme.px(14) or not timeline.is_ready(row.index):
            continue
        spans = timeline.lane(row.index).spans
        positions = _wide_positions(spans, values[index], scale)
        if len(positions):
            lanes.append(_WideIntervals(row, spans, positions, is_counter))
    return _named(timeline, lanes, scale, theme, hidden_values, shown, dimmed) if lanes else []


def _named(
    timeline: Timeline, lanes: list[_WideIntervals], scale: TimeScale, theme: Theme, hidden_values: frozenset[int],
    shown: NDArray[np.bool_] | None, dimmed: NDArray[np.bool_] | None,
) -> list[IntervalText]:  # fmt: skip
    """Return the names of the intervals that are wide enough, have a name and pass the filter."""
    window, px_per_cycle = scale.window, scale.width_px / scale.window.length
    starts = np.concatenate([lane.spans.start_cycles[lane.positions] for lane in lanes])
    ends = np.concatenate([_end_times(lane.spans, lane.positions) for lane in lanes])
    value = np.concatenate([lane.spans.value[lane.positions] for lane in lanes])
    event = np.concatenate([lane.spans.event[lane.positions] for lane in lanes])
    sizes = [len(lane.positions) for lane in lanes]
    is_counter = np.repeat([lane.is_counter for lane in lanes], sizes)
    left = (np.maximum(starts, window.start) - window.start) * px_per_cycle
    right = (np.minimum(ends, window.end) - window.start) * px_per_cycle
    keep = (right - left >= NARROWEST_PX) & _may_be_named(value, event, hidden_values, shown, dimmed)
    # An interval without length that begins before the window is not visible.
    keep &= (value != states.ABSENT) | (starts >= window.start) | is_counter
    of_lane = np.repeat(np.arange(len(lanes)), sizes)
    texts, names = list[IntervalText](), dict[tuple[int, int], str]()
    keep = np.flatnonzero(keep)
    columns = (of_lane, np.concatenate([lane.positions for lane in lanes]), left, right, starts, ends, value, event)
    for number, position, left_px, right_px, start, end, kind, row_of_event in zip(
        *(c[keep].tolist() for c in columns), strict=True
    ):
        lane = lanes[number]
        text = lane.spans.texts[position] if lane.spans.texts is not None else ""
        if not text:
            if kind in _SILENT:
                continue
            thread = int(lane.spans.thread[position]) if lane.spans.thread is not None else 0
            if (kind, thread) not in names:
                names[kind, thread] = timeline.label_of(kind, thread)
            text = names[kind, thread]
        texts.append(IntervalText(lane.row, left_px, right_px, start, end, text, _ink(kind, theme), row_of_event,
                                  lane.is_counter, _background_rgb(kind, theme)))  # fmt: skip
    return texts


def stack_texts(
    timeline: Timeline, rows: tuple[LaneRow, ...], stacks: Mapping[int, Stack], scale: TimeScale, width_px: int,
    theme: Theme, hidden_values: frozenset[int] = frozenset(),
) -> list[IntervalText]:  # fmt: skip
    """Return names to draw into stacks of CPU lanes, wherever one process takes most of the height."""
    texts, names = list[IntervalText](), dict[int, str]()
    for row in rows:
        stack = stacks.get(row.index)
        if stack is None or timeline.infos[row.index].kind is not LaneKind.CPU or row.height_px < theme.px(14):
            continue
        heights = np.diff(stack.tops, axis=0, prepend=0)
        value = np.array(stack.values)[np.argmax(heights, axis=0)]
        value[(heights.max(axis=0) < _MOST_HEIGHT) | (value < states.FIRST_PROCESS)] = states.ABSENT
        begins = np.flatnonzero(np.append(True, value[1:] != value[:-1]))
        ends = np.append(begins[1:], len(value))
        left, right = (stack.columns[edges] * (scale.width_px / width_px) for edges in (begins, ends))
        for run in np.flatnonzero((right - left >= NARROWEST_PX) & (value[begins] != states.ABSENT)).tolist():
            kind, names = int(value[begins[run]]), names or names_of_values(timeline)
            if kind in names and kind not in hidden_values and kind != states.QUIET_PROCESS:
                start, end = int(stack.edges[begins[run]]), int(stack.edges[ends[run]])
                behind = _background_rgb(kind, theme)
                texts.append(IntervalText(row, float(left[run]), float(right[run]), start, end, names[kind],
                                          _ink(kind, theme), NO_EVENT, behind=behind))  # fmt: skip
    return texts


class _WideIntervals(NamedTuple):
    """A lane, and the positions in its `spans`, int64 (n,), of intervals that may be wide enough for a name."""

    row: LaneRow
    spans: LaneSpans
    positions: NDArray[np.int64]
    is_counter: bool


def _may_be_named(
    value: NDArray[np.uint8], event: NDArray[np.uint32], hidden_values: frozenset[int],
    shown: NDArray[np.bool_] | None, dimmed: NDArray[np.bool_] | None,
) -> NDArray[np.bool_]:  # fmt: skip
    """Return which intervals may have a name, given their lane values and first events, bool (n,)."""
    is_named = ~np.isin(value, list(hidden_values)) if hidden_values else np.ones(len(value), np.bool_)
    if shown is not None:
        is_named &= (event >= len(shown)) | shown.take(event, mode="clip")
    if dimmed is not None:
        is_named &= (event < len(dimmed)) & ~dimmed.take(event, mode="clip")
    return is_named


def interval_labels(
    opened: OpenTrace, texts: Sequence[IntervalText], font: FittedTexts | None = None
) -> list[tuple[str, ...]]:
    """Return for each interval the labels that are switched on, the most important first.

    CPU lanes always name the running thread; lanes of processes and events have one name. With a font, further labels
    are looked up only where there may be room for them.
    """
    labels, infos = opened.lanes.arrangement.labels, opened.timeline.infos
    parts: list[tuple[str, ...]] = [(text.text,) for text in texts]
    for kind, offered in _LABELS_OF.items():
        is_named = kind is LaneKind.CPU or Label.STATE in labels
        of_kind = [number for number, text in enumerate(texts) if infos[text.row.index].kind is kind]
        if font is not None and is_named:
            of_kind = [number for number in of_kind if font.has_room_after(texts[number].text, texts[number].room_px)]
        more = opened.labels.texts([texts[number].event for number in of_kind], labels & offered)
        for number, labels_of_text in zip(of_kind, more, strict=True):
            parts[number] = (parts[number] if is_named else ()) + labels_of_text
    return parts


def interval_starts(timeline: Timeline, lane: int, scale: TimeScale, width_px: int) -> NDArray[np.int64] | None:
    """Return the pixel columns where intervals of a lane begin, int64 (n,), ascending.

    None if no interval begins in the window, if too many do, or if the lane is not built.
    """
    if not timeline.is_ready(lane):
        return None
    starts = timeline.lane(lane).spans.start_cycles
    begin, stop = np.searchsorted(starts, (scale.window.start, scale.window.end))
    if stop - begin == 0 or stop - begin > width_px // 6:
        return None
    return (starts[begin:stop] - scale.window.start) * width_px // scale.window.length


def _wide_positions(spans: LaneSpans, values: NDArray[np.uint8], scale: TimeScale) -> NDArray[np.int64]:
    """Return positions of all visible intervals if few, else of those under wide runs of equal pixels, int64 (n,)."""
    window = scale.window
    seen = spans.visible(window)
    if seen.stop - seen.start <= scale.width_px // NARROWEST_PX * 2:
        return np.arange(seen.start, seen.stop)
    moments = [window.start + int(share * window.length) for share in _wide_runs(values, scale.width_px)]
    if not moments:
        return np.empty(0, np.int64)
    positions = np.unique(spans.start_cycles.searchsorted(moments, side="right") - 1)
    return positions[positions >= 0]


def _end_times(spans: LaneSpans, positions: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the end times of intervals, the starts of the next ones, int64 (n,)."""
    last = len(spans) - 1
    return np.where(positions < last, spans.start_cycles[np.minimum(positions + 1, last)], spans.end_cycles)


def _wide_runs(values: NDArray[np.uint8], width_px: int) -> list[float]:
    """Return the middles of runs of equal pixels that are wide enough for a name, as shares of the width, 0 to 1."""
    values, width = values & np.uint8(states.VALUE_MASK), len(values)
    edges = np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1, [width]))
    wide = np.flatnonzero(np.diff(edges) * width_px >= NARROWEST_PX * width)
    return [float(middle) / (2 * width) for middle in edges[wide] + edges[wide + 1]]


@lru_cache(maxsize=256)
def _background_rgb(value: int, theme: Theme) -> int | None:
    fill = state_colour(value, theme)
    if fill is None or value >= states.FIRST_PROCESS:
        return fill if theme.is_hatched and hatch_of(value) else None
    # The bar of a waiting state is lower than its text, whose colour may be illegible above and below the bar.
    needs_ground = ink_on(fill) != ink_on(theme.base) or (theme.is_hatched and hatch_of(value))
    return fill if needs_ground else None


@lru_cache(maxsize=256)
def _ink(value: int, theme: Theme) -> int | None:
    fill = state_colour(value, theme)
    return None if fill is None else ink_on(fill)


# Names inside intervals, stored by time, so that they can be drawn in another window than they were made for.


_LEFT_PX: Final = 5  # margin before a name in its interval
MIDDLE: Final = 0.555  # vertical centre of the bar, which is below the event marks, as a share of the lane height
_NOTHING: Final = -1


class PlacedTexts(NamedTuple):
    """Texts to draw in intervals, as columns of shape (n,), one row per text.

    Attributes:
        start, end: int64, cycles: the painted part of the interval of the text.
        beside: float64, distance of a text from the first text of its interval, logical pixels.
        room: float64, total width of the texts of the interval, logical pixels.
        top: float64, top of the text in the list of lanes, logical pixels.
        behind: int64, colour 0xRRGGBB behind the texts of the interval, -1 = nothing.
        words: The texts.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    beside: NDArray[np.float64]
    room: NDArray[np.float64]
    top: NDArray[np.float64]
    behind: NDArray[np.int64]
    words: ColouredTexts


def place_texts(
    labels: Iterable[tuple[IntervalText, tuple[str, ...]]], fonts: FittedTexts, inks: dict[int | None, int],
    window: TimeWindow,
) -> PlacedTexts:  # fmt: skip
    """Return the labels of intervals with their positions in a time window, each cut to fit into its interval.

    `labels` has those of each interval, the most important first, and `inks` the colour of each `IntervalText.ink`.
    """
    times, sizes, behind = list[tuple[int, int]](), list[tuple[float, float, float]](), list[int]()
    words, colours, half_px = list[LaidText](), list[int](), fonts.metrics.height() / 2
    for text, words_of_text in labels:
        laid_parts = fonts.fit_parts(words_of_text, text.room_px) if words_of_text else []
        top = text.row.y_px + text.row.height_px * MIDDLE - half_px
        for beside_px, laid in laid_parts:
            times.append((max(text.start_cycles, window.start), min(text.end_cycles, window.end)))
            sizes.append((beside_px, laid_parts[-1][0] + laid_parts[-1][1].width_px, top))
            behind.append(_NOTHING if text.behind is None else text.behind)
            words.append(laid)
            colours.append(inks[text.ink])
    start, end = np.array(times, np.int64).reshape(-1, 2).T
    beside, room, top_px = np.array(sizes, np.float64).reshape(-1, 3).T
    return PlacedTexts(start, end, beside, room, top_px, np.array(behind, np.int64), ColouredTexts(words, colours))


def draw_placed(
    painter: QPainter, sheet: TextSheet, placed: Sequence[PlacedTexts], other: Sequence[PlacedTexts],
    scale: TimeScale, scroll_px: int, line_px: float,
) -> None:  # fmt: skip
    """Draw texts on a frame with its scale; `other` texts were made for another one, and may no longer fit."""
    blocks = [texts for texts in (*placed, *other) if texts.words.texts]
    if not blocks:
        return
    start, end, beside, room, top, behind = (np.concatenate([texts[column] for texts in blocks]) for column in range(6))
    window, px_per_cycle = scale.window, scale.width_px / scale.window.length
    left = (np.maximum(start, window.start) - window.start) * px_per_cycle
    fits = np.ones(len(start), np.bool_)
    fits[sum(len(texts.start) for texts in placed) :] = False
    if not fits.all():
        right = (np.minimum(end, window.end) - window.start) * px_per_cycle
        fits |= (right - left >= room + BESIDE_PX) & (start < window.end)
    left, top = left + _LEFT_PX, top - scroll_px
    _fill_behind(painter, left, top, room, np.where(fits, behind, _NOTHING), line_px)
    sheet.begin(painter)
    if sheet.has_all([texts.words for texts in blocks]):
        numbers = np.concatenate([texts.words.numbers for texts in blocks])
        sheet.put_all((left + beside)[fits], top[fits], numbers[fits])
    else:
        inked = ((text, ink) for texts in blocks for text, ink in zip(texts.words.texts, texts.words.inks, strict=True))
        for shows, x, y, (text, ink) in zip(fits.tolist(), (left + beside).tolist(), top.tolist(), inked, strict=True):
            if shows:
                sheet.put(x, y, text, ink)
    sheet.end()


def _fill_behind(
    painter: QPainter, left: NDArray[np.float64], top: NDArray[np.float64], room: NDArray[np.float64],
    behind: NDArray[np.int64], line_px: float,
) -> None:  # fmt: skip
    """Fill the area behind texts in hatched intervals, where hatching would make texts illegible."""
    for rgb in np.unique(behind).tolist():
        if rgb != _NOTHING:
            of_colour = behind == rgb
            sizes = room[of_colour] + 4, np.full(int(of_colour.sum()), line_px - 4)
            painter.setBrush(colour(rgb))
            fill_rects(painter, np.stack((left[of_colour] - 2, top[of_colour] + 2, *sizes), axis=1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
