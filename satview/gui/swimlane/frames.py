"""Draws frames of the lanes from pictures of bands (adjacent lanes), repainting as many as the time allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from math import ceil, floor, inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QFont, QImage, QPainter

from satview.answers.activity_lanes import LATE
from satview.base.time import TimeWindow
from satview.events.states import NOT_A_STATE, SEEN_EVENT, STATES, VALUE_COUNT
from satview.gui.colours import DARK_INK, FADE, LIGHT_INK, class_colour, mixed, state_colour
from satview.gui.swimlane.fills import EVENTS, OPAQUE, draw_preview_lane, draw_rectangles, needs_vectors, rectangles
from satview.gui.swimlane.lane_image import (
    SEEN_INTERRUPT,
    LanePalette,
    LanePicture,
    Pixels,
    ShownMarks,
    Ticks,
    band_edges,
    image_of,
)
from satview.gui.swimlane.lane_source import Frame, LaneRequest, LaneSource, Values
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.shares import Stack, StackSource
from satview.gui.swimlane.text import (
    FittedTexts,
    IntervalText,
    PlacedTexts,
    TextSheet,
    draw_placed,
    interval_labels,
    interval_starts,
    interval_texts,
    place_texts,
    stack_texts,
)
from satview.gui.theme import Theme, colour
from satview.session.filter_stack import FilterView
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace
from satview.timeline.event_marks import columns_of, event_positions, mark_codes
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.spans import pixel_edges

# Estimates the time of a number of work pieces from measurements: a fixed cost and a cost per piece.


# Thread time excludes other programs; used where the system measures it precisely enough.
_FINE_S: Final = 1e-4
clock = time.thread_time if time.get_clock_info("thread_time").resolution < _FINE_S else time.perf_counter
_FORGET: Final = 0.7  # decay of a measurement's weight per newer measurement
_LEAST: Final = 0.25  # lower bound of the cost per piece, as a share of the mean; few measurements are unreliable


class Cost:
    """Estimates the time that painting n pieces takes, as a fixed time plus a time per piece, by least squares.

    Recent measurements have the largest weight.
    """

    def __init__(self) -> None:
        self._weight = self._pieces = self._squares = self._time_s = self._products = 0.0

    def add(self, pieces: int, time_s: float) -> None:
        """Add a measurement: painting this number of pieces took `time_s`."""
        added = (1.0, pieces, pieces * pieces, time_s, pieces * time_s)
        sums = (self._weight, self._pieces, self._squares, self._time_s, self._products)
        self._weight, self._pieces, self._squares, self._time_s, self._products = (
            _FORGET * known + more for known, more in zip(sums, added, strict=True)
        )

    def pieces_within(self, time_s: float) -> float:
        """Return how many pieces can probably be painted in a time; infinite before the first measurement."""
        if self._time_s <= 0:
            return float("inf")
        mean_s = self._time_s / self._pieces
        spread = self._weight * self._squares - self._pieces**2
        piece_s = mean_s
        if spread > 1e-6 * self._squares:
            piece_s = (self._weight * self._products - self._pieces * self._time_s) / spread
            piece_s = min(max(piece_s, _LEAST * mean_s), mean_s)
        fixed_s = (self._time_s - piece_s * self._pieces) / self._weight
        return (time_s - fixed_s) / piece_s


# The last pictures of bands of lanes, and the choice of bands to repaint in a frame of limited time.


_BAND_PX: Final = 48  # approximate height in device pixels; a band is a few hundred kilobytes
_OLDEST: Final = 7  # repaint every band within so many frames, even if frames take longer on a slow machine
_PART_LASTS: Final = 0.7  # weight of earlier frames in `round_frames`
_WIDEST: Final = 16  # limit of stretching a pixel of an older picture, in device pixels


class Band:
    """Adjacent lanes that are painted together as one picture; equal lanes always have the same `Band` object.

    Attributes:
        rows: The lanes.
    """

    __slots__ = ("rows",)

    def __init__(self, rows: tuple[LaneRow, ...]) -> None:
        self.rows = rows


@dataclass(frozen=True, slots=True, eq=False)
class BandPicture:
    """The last painted picture of a band (adjacent lanes).

    Attributes:
        window: The part of the trace.
        pixels: uint32 (height, width), device pixels.
        image: The same memory as an image.
        stacks: Stacks of the lanes that show shares of time or counter steps, by lane index.
        texts: Texts inside intervals.
        is_final: True if all lanes of the band had been built when they were painted.
    """

    window: TimeWindow
    pixels: NDArray[np.uint32]
    image: QImage
    stacks: dict[int, Stack]
    texts: PlacedTexts
    is_final: bool

    def shows(self, frame: Frame) -> bool:
        """Return whether the picture was painted for the time window and width of a frame."""
        return self.window == frame.scale.window and self.pixels.shape[1] == frame.width_px

    def covered(self, frame: Frame) -> CoveredColumns | None:
        """Return the columns of the picture that are visible in a frame; None if there are none, or too coarse ones."""
        return covered(self.window, self.pixels.shape[1], frame.scale.window, frame.width_px)


class CoveredColumns(NamedTuple):
    """The part of a picture that is visible in a frame with another window.

    Attributes:
        first, last: Columns of the picture; `last` is exclusive.
        left, right: Positions in the frame of the left edge of `first` and the right edge of the part, device pixels.
    """

    first: int
    last: int
    left: float
    right: float


Paint = Callable[[Frame, Sequence[Band], Sequence[BandPicture | None]], list[BandPicture]]


class BandPictures:
    """Keeps the last pictures of the visible bands (adjacent lanes), and selects the bands to paint in each frame.

    Attributes:
        spent_s: Duration of the last call of `paint`.
        round_frames: Approximate number of frames in which all bands are painted, if they do not fit into one.
    """

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._last: dict[Band, BandPicture] = {}
        self._dependencies: object = None
        self._outdated_bands: set[Band] = set()
        self.round_frames = 4.0  # initial guess
        self._cost = Cost()

    def show(self, bands: Sequence[Band], dependencies: object) -> bool:
        """Set the visible bands; return False, after dropping all pictures, if `dependencies` have changed, else True.

        `dependencies` are all values on which pictures depend, except the time window and how complete the data is.
        """
        is_same = dependencies == self._dependencies
        if not is_same:
            self._last, self._dependencies = {}, dependencies
        if len(self._last) > len(bands) or any(band not in self._last for band in bands):
            showing = set(bands)
            self._last = {band: picture for band, picture in self._last.items() if band in showing}
        self._outdated_bands &= self._last.keys()
        return is_same

    def outdate(self) -> None:
        """Mark all pictures as outdated, to be painted again when there is time, because better data is available."""
        self._outdated_bands = set(self._last)

    def of(self, band: Band) -> BandPicture | None:
        """Return the last picture of a band; None if the band was not painted yet."""
        return self._last.get(band)

    def paint(self, bands: Sequence[Band], frame: Frame, ahead: Frame, paint: Paint, limit_s: float = inf) -> bool:
        """Paint bands whose pictures are not exact: as many as the time limit allows, but at least a minimum.

        If not all bands fit into the time limit, they are painted for the wider frame `ahead`. `paint` does so in the
        memory of their last pictures; with a negative limit it is not called.

        Returns:
            Whether all bands are exact now: painted for `frame` from complete data.
        """
        first_s, waiting, painted = clock(), self._inexact_bands(bands, frame, with_parts=limit_s == inf), 0
        end_s, painted_frame = first_s + limit_s, frame
        while painted < len(waiting) and limit_s >= 0:
            begun_s, count = clock(), len(waiting) - painted
            fitting = self._cost.pieces_within(end_s - begun_s)
            if fitting < count:
                painted_frame, count = ahead, max(int(fitting), ceil(len(bands) / _OLDEST) - painted)
                if count < 1:
                    break
            chunk = waiting[painted : painted + count]
            self._take(chunk, paint(painted_frame, chunk, [self._last.get(band) for band in chunk]))
            painted += len(chunk)
            self._cost.add(len(chunk), clock() - begun_s)
        self.spent_s = clock() - first_s
        if painted < len(waiting):
            part = painted / len(bands)
            self.round_frames = min(1 / (_PART_LASTS / self.round_frames + (1 - _PART_LASTS) * part), 2.0 * _OLDEST)
        return painted == len(waiting) and painted_frame is frame

    def _inexact_bands(self, bands: Sequence[Band], frame: Frame, *, with_parts: bool) -> list[Band]:
        """Return the bands to paint: those without a usable picture first, then those painted longest ago.

        Pictures made from incomplete data are included if `with_parts` is true, or after `outdate`.
        """
        age = {band: age_of for age_of, band in enumerate(self._last)}  # the order of painting
        waiting = []
        for band in bands:
            last = self._last.get(band)
            if last is None or last.covered(frame) is None:
                age[band] = -1
            elif (last.is_final or not with_parts) and band not in self._outdated_bands and last.shows(frame):
                continue
            waiting.append(band)
        return sorted(waiting, key=age.__getitem__)

    def _take(self, bands: Sequence[Band], pictures: Sequence[BandPicture]) -> None:
        for band, picture in zip(bands, pictures, strict=True):
            self._last.pop(band, None)
            self._last[band] = picture
            self._outdated_bands.discard(band)


def bands_of(rows: Sequence[LaneRow], ratio: float) -> list[Band]:
    """Return lanes grouped into bands, so that scrolling changes only the first and the last band."""
    return [_band(tuple(band)) for _, band in groupby(rows, lambda row: int(row.y_px * ratio) // _BAND_PX)]


_band: Final = lru_cache(maxsize=1024)(Band)


@lru_cache(maxsize=64)
def covered(picture: TimeWindow, picture_px: int, window: TimeWindow, width_px: int) -> CoveredColumns | None:
    """Return the columns of a picture that are visible in a frame; None if there are none or they are too coarse."""
    ahead = window.start - picture.start
    begin = max(0, ahead * picture_px // picture.length)
    stop = min(picture_px, -(-(ahead + window.length) * picture_px // picture.length))
    if stop <= begin or picture.length * width_px > _WIDEST * picture_px * window.length:
        return None
    # Exact until the division: numerators and denominators are integers.
    left, right = ((column * picture.length - ahead * picture_px) * width_px / (picture_px * window.length)
                   for column in (begin, stop))  # fmt: skip
    return CoveredColumns(begin, stop, left, right)


def draw_band(painter: QPainter, picture: BandPicture | None, area: QRectF, frame: Frame, theme: Theme) -> None:
    """Draw a band (logical pixels) from its last picture, moved and stretched if the frame has another window."""
    shown = picture.covered(frame) if picture is not None else None
    if picture is None or shown is None:
        painter.fillRect(area, colour(theme.window))
        return
    if picture.shows(frame):
        painter.drawImage(area.topLeft(), picture.image)
        return
    left, right = shown.left / frame.ratio, shown.right / frame.ratio
    for start, end in ((0.0, ceil(left)), (floor(right), area.width())):
        if end > start:
            painter.fillRect(QRectF(start, area.top(), end - start, area.height()), colour(theme.window))
    source = QRectF(shown.first, 0, shown.last - shown.first, len(picture.pixels))
    painter.drawImage(QRectF(left, area.top(), right - left, area.height()), picture.image, source)


# Event marks in the colour of their class, where events are sparse enough to be told apart.


_MARKED_PER_FRAME: Final = 200_000
_PX_PER_DEADLINE: Final = 40  # device pixels; deadlines closer together show only if they were missed
_EVENTS_PER_PX: Final = 1.5  # with more events in the window, colours would flicker


class TickSource:
    """Finds the coloured event marks of a frame.

    Attributes:
        opened: The trace and its filter.
        fades: True to fade all marks, because the legend highlights something else.
    """

    def __init__(self, opened: OpenTrace, theme: Theme) -> None:
        self.opened = opened
        self.fades = False
        self._marks = mark_codes()
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme = theme
        catalogue = self.opened.trace.catalogue
        colours = [class_colour(spec.name, theme.is_dark) | OPAQUE for spec in catalogue.classes]
        self._colours = np.array(colours, np.uint32)[catalogue.class_index_of_code]
        pale = [mixed(colour & 0xFFFFFF, theme.base, FADE) | OPAQUE for colour in colours]
        self._faded = np.array(pale, np.uint32)[catalogue.class_index_of_code]
        self._hit = np.uint32(theme.hit | OPAQUE)

    @property
    def above_shares(self) -> ShownMarks:
        """Event marks to draw above shares: ALL if a filter hides events, TICKS if it marks or dims them, else NONE."""
        filters = self.opened.filters
        if filters.view.by_passes is not None or (self._marks & ~filters.codes).any():
            return ShownMarks.ALL
        return ShownMarks.NONE if filters.view.marked is None and filters.view.dimmed is None else ShownMarks.TICKS

    def ticks(self, request: LaneRequest) -> list[Ticks]:
        """Return the event marks of a frame; where events are too dense, only marks of events that are not dimmed."""
        trace, view = self.opened.trace, self.opened.filters.view
        part = trace.rows_between(request.window)
        if view.rows is not None:
            part = slice(*np.searchsorted(view.rows, (part.start, part.stop)).tolist())
        if part.stop - part.start > request.width_px * _EVENTS_PER_PX:
            return self._undimmed_marks(request)
        rows = np.arange(part.start, part.stop, dtype=np.uint32) if view.rows is None else view.rows[part]
        rows = rows[(self._marks & self.opened.filters.codes)[trace.events.code[rows]]]
        edges = pixel_edges(request.window, request.width_px)
        infos = [self.opened.timeline.infos[lane] for lane in request.lanes]
        ticks = []
        for colours, selected in self._groups(view, rows):
            positions = event_positions(trace, infos, selected, edges)
            ticks += [
                Ticks(position, column, colours[trace.events.code[events]]) for position, column, events in positions
            ]
        return ticks

    def marked(self, request: LaneRequest) -> list[Ticks]:
        """Return marks in the colour of search hits for events that a filter marks, however many there are."""
        marked = self.opened.filters.view.marked
        if marked is None:
            return []
        part = self.opened.trace.rows_between(request.window)
        return [
            Ticks(position, column, np.full(len(events), self._hit, np.uint32))
            for position, column, events in self._sampled(request, np.flatnonzero(marked[part]) + part.start)
        ]

    def deadlines(self, request: LaneRequest) -> list[Ticks]:
        """Return marks at the deadlines of activities: at missed deadlines always, at others only where sparse."""
        theme, edges, marks = self._theme, pixel_edges(request.window, request.width_px), []
        line = (mixed(theme.text, theme.base, FADE) if self.fades else theme.text) | OPAQUE
        for position, lane in enumerate(request.lanes):
            track = self.opened.timeline.infos[lane].track
            if track is None or track.content.deadline is None:
                continue
            # Instances of one activity are in time order, so their deadlines ascend; -1 means no deadline.
            rows = np.flatnonzero(track.content.deadline >= 0)
            moments = track.content.deadline[rows]
            part = slice(*np.searchsorted(moments, (request.window.start, request.window.end)).tolist())
            column, is_missed = columns_of(moments[part], edges), track.content.value[rows[part]] == LATE
            for columns, rgb, is_shown in (
                (column[~is_missed], theme.dim, part.stop - part.start <= request.width_px // _PX_PER_DEADLINE),
                (np.unique(column[is_missed]), state_colour(LATE, theme) or 0, True),
            ):
                if is_shown:
                    drawn = (mixed(rgb, theme.base, FADE) if self.fades else rgb) | OPAQUE
                    of_lane, colours = np.full(len(columns), position), np.full(len(columns), drawn, np.uint32)
                    marks.append(Ticks(of_lane, columns, colours, line=line))
        return marks

    def _undimmed_marks(self, request: LaneRequest) -> list[Ticks]:
        """Return marks of the events that a filter does not dim, however many there are."""
        trace, view = self.opened.trace, self.opened.filters.view
        if view.dimmed is None or self.fades:
            return []
        part = trace.rows_between(request.window)
        bright = ~view.dimmed[part] if view.passing is None else view.passing[part] & ~view.dimmed[part]
        rows = np.flatnonzero(bright) + part.start
        rows = rows[self._marks[trace.events.code[rows]]]
        return [
            Ticks(position, column, self._colours[trace.events.code[events]])
            for position, column, events in self._sampled(request, rows)
        ]

    def _sampled(
        self, request: LaneRequest, rows: NDArray[np.intp]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.unsignedinteger]]]:
        """Yield position in `request.lanes`, pixel column and row, (n,) each, of events or of a sample of very many."""
        rows = rows[:: len(rows) // _MARKED_PER_FRAME + 1]
        infos = [self.opened.timeline.infos[lane] for lane in request.lanes]
        edges = pixel_edges(request.window, request.width_px)
        return event_positions(self.opened.trace, infos, rows.astype(np.uint32), edges)

    def _groups(
        self, view: FilterView, rows: NDArray[np.uint32]
    ) -> tuple[tuple[NDArray[np.uint32], NDArray[np.uint32]], ...]:
        """Return colours of marks by event code and event rows, uint32 each, dimmed events first."""
        if self.fades:
            return ((self._faded, rows),)
        if view.dimmed is None:
            return ((self._colours, rows),)
        dimmed = view.dimmed[rows]
        return ((self._faded, rows[dimmed]), (self._colours, rows[~dimmed]))


# Paints bands of lanes: pixel values, stacks, event marks, filter effects, and the text in intervals.


_TEXT_STEP_PX: Final = 3
_LEAST_LETTERS: Final = 4
_SHORT_FORMS: Final = {state.name: state.short for state in STATES}
_ALL_VALUES: Final = frozenset(range(VALUE_COUNT))


class BandPainter:
    """Paints bands (groups of adjacent lanes) into pictures.

    Attributes:
        texts: Font of texts inside intervals, whose size is that of the theme.
        palette: Colours of lane values.
        version: Changes whenever the appearance of the lanes changes.
    """

    def __init__(self, opened: OpenTrace, source: LaneSource, theme: Theme, font: QFont) -> None:
        self._opened, self._source, self._font = opened, source, font
        self._stacks = StackSource(opened, source)
        self._ticks = TickSource(opened, theme)
        self._hidden: frozenset[int] = frozenset()
        self.version = 0
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Use the colours and text size of a theme."""
        self._theme = theme
        self._inks: dict[int | None, int] = {None: theme.text, DARK_INK: DARK_INK, LIGHT_INK: LIGHT_INK}
        font = QFont(self._font)
        font.setPixelSize(theme.px(10))
        self.texts = FittedTexts(font, Qt.TextElideMode.ElideRight, _TEXT_STEP_PX, _LEAST_LETTERS, _SHORT_FORMS)
        self._ticks.set_theme(theme)
        self._make_palette()

    @property
    def marks(self) -> ShownMarks:
        """The event marks that are drawn above shares: all, only ticks, or none, which depends on the filter."""
        return self._ticks.above_shares

    def apply_legend(self) -> None:
        """Fade all lane values that the legend does not highlight; such intervals get no texts."""
        keys = self._opened.legend.keys
        self._ticks.fades = bool(keys) and EVENTS not in keys
        self._make_palette()

    def apply_filter(self) -> None:
        """Hide the states whose event codes are all hidden by the filter."""
        values = self._opened.trace.catalogue.state_value_of_code
        of_states = np.flatnonzero(values != NOT_A_STATE)
        shown = values[of_states[self._opened.filters.codes[of_states]]]
        hidden = frozenset(np.setdiff1d(values[of_states], shown).tolist())
        if hidden != self._hidden:
            self._hidden = hidden
            self._make_palette()
        self.version += 1

    def note_lanes(self) -> None:
        """Change `version`, so that all lanes are painted again: lanes or their names have changed."""
        self.version += 1

    def _make_palette(self) -> None:
        self.palette = LanePalette(self._theme, self._hidden, self._opened.legend.keys)
        self.version += 1

    def paint(self, frame: Frame, bands: Sequence[Band], last: Sequence[BandPicture | None]) -> list[BandPicture]:
        """Return pictures of bands for a frame, in the memory of the last pictures, if any."""
        timeline, scale = self._opened.timeline, frame.scale
        rows = tuple(row for band in bands for row in band.rows)
        part = replace(frame.request, lanes=tuple(row.index for row in rows))
        values = self._source.values(part)
        show_short_interrupts(timeline, rows, values)
        stacks = self._stacks.stacks(rows, frame, self._theme, self._hidden)
        lanes = LanePicture(
            values, rows, self.palette, frame.scroll_px, frame.ratio, self._edges(rows, scale, part.width_px),
            [*self._ticks.ticks(part), *self._ticks.marked(part), *self._ticks.deadlines(part)], *self._overlay(part),
            stacks={position: stacks[row.index] for position, row in enumerate(rows) if row.index in stacks},
            marks=self.marks, is_dense=frame.is_dense,
        )  # fmt: skip
        ends = np.cumsum([len(band.rows) for band in bands]).tolist()
        cuts = zip([0, *ends], ends, strict=False)
        rooms = [picture.pixels if picture is not None else None for picture in last]
        texts = self._texts(bands, rows, values, scale, stacks)
        has_kinds = timeline.has_kinds or not part.kinds
        pictures = []
        for band, pixels, words in zip(bands, lanes.bands(cuts, rooms), texts, strict=True):
            stacks_of_band = {row.index: stacks[row.index] for row in band.rows if row.index in stacks}
            is_final = has_kinds and all(timeline.is_ready(row.index) for row in band.rows)
            image = image_of(pixels, frame.ratio)
            pictures.append(BandPicture(scale.window, pixels, image, stacks_of_band, words, is_final))
        return pictures

    def _edges(self, rows: Sequence[LaneRow], scale: TimeScale, width_px: int) -> dict[int, NDArray[np.int64]]:
        """Return columns in which intervals begin, int64 (n,), by position in `rows`; too dense lanes are left out."""
        starts = (interval_starts(self._opened.timeline, row.index, scale, width_px) for row in rows)
        return {position: columns for position, columns in enumerate(starts) if columns is not None}

    def _overlay(self, part: LaneRequest) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
        """Return the pixels that the filter fades and marks, bool (lanes, width) each; None = no such pixels."""
        overlay = self._source.overlay
        if overlay.does_nothing:
            return None, None
        edges = pixel_edges(part.window, part.width_px)
        return overlay.faded(part.lanes, edges, waits=False), overlay.marked(part.lanes, edges, waits=False)

    def _texts(
        self, bands: Sequence[Band], rows: tuple[LaneRow, ...], values: Values, scale: TimeScale,
        stacks: dict[int, Stack],
    ) -> list[PlacedTexts]:  # fmt: skip
        """Return for each band the labels of intervals that are switched on and fit into their intervals."""
        view, keys = self._opened.filters.view, self._opened.legend.keys
        nameless = self._hidden | (_ALL_VALUES - keys) if keys else self._hidden
        texts = interval_texts(self._opened.timeline, rows, values, scale, self._theme, nameless, view.by_passes,
                               view.faded, stacks)  # fmt: skip
        texts += stack_texts(self._opened.timeline, rows, stacks, scale, values.shape[1], self._theme, nameless)
        parts = interval_labels(self._opened, texts, self.texts)
        band_of = {row.index: number for number, band in enumerate(bands) for row in band.rows}
        texts_of: list[list[tuple[IntervalText, tuple[str, ...]]]] = [[] for _ in bands]
        for text, part in zip(texts, parts, strict=True):
            texts_of[band_of[text.row.index]].append((text, part))
        return [place_texts(of_band, self.texts, self._inks, scale.window) for of_band in texts_of]


def show_short_interrupts(timeline: Timeline, rows: tuple[LaneRow, ...], values: Values) -> None:
    """Let pixels of interrupt lanes show an interrupt that is too short to be visible otherwise; changes `values`."""
    for position, row in enumerate(rows):
        if timeline.infos[row.index].kind is LaneKind.INTERRUPTS:
            values[position, values[position] == SEEN_EVENT] = SEEN_INTERRUPT


_Painted = Sequence[tuple[Band, BandPicture | None]]


class LaneLayer(QObject):
    """Draws the lanes of each frame, repainting the bands that changed.

    Attributes:
        stacks: Stacks of the lanes on the screen that show shares of time or counter steps, by lane index.

    Signals:
        changed: The lanes must be drawn again.
    """

    changed = Signal()

    def __init__(self, opened: OpenTrace, theme: Theme, font: QFont, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._theme = theme
        self.source = LaneSource(opened, self)
        self.painter = BandPainter(opened, self.source, theme, font)
        self.stacks: dict[int, Stack] = {}
        self.pictures = BandPictures()
        self._sheet = TextSheet()
        self._banded: tuple[tuple[LaneRow, ...], float] = (), 0.0  # rows and ratio of `_bands`
        self._bands: list[Band] = []
        self._before: TimeWindow | None = None  # window of the last frame
        self.source.refined.connect(self._on_more)
        opened.labels.refined.connect(self._on_more)

    @property
    def texts(self) -> FittedTexts:
        """Font of texts inside intervals."""
        return self.painter.texts

    def set_theme(self, theme: Theme) -> None:
        """Use the colours and text size of a theme."""
        self._theme = theme
        self.painter.set_theme(theme)

    @Slot()
    def _on_more(self) -> None:
        """Request a new drawing, because better or more detailed data is available."""
        self.pictures.outdate()
        self.changed.emit()

    def draw(self, painter: QPainter, rows: tuple[LaneRow, ...], frame: Frame, limit_s: float) -> bool:
        """Draw the visible lanes; return whether all are exact.

        Lanes for which there is no time are drawn from their last picture. There is no limit if the appearance of the
        lanes changed since the last frame.
        """
        if self._banded != (rows, frame.ratio):
            self._banded, self._bands = (rows, frame.ratio), bands_of(rows, frame.ratio)
        pictures, bands = self.pictures, self._bands
        self.source.show(frame.request)
        if not pictures.show(bands, self._dependencies(frame)):
            limit_s = inf
        limits = self._opened.viewport.limits
        ahead, self._before = frame.ahead(self._before, pictures.round_frames, limits), frame.scale.window
        is_exact = pictures.paint(bands, frame, ahead, self.painter.paint, limit_s)
        painted = [(band, pictures.of(band)) for band in bands]
        self.stacks = {lane: stack for _, picture in painted if picture for lane, stack in picture.stacks.items()}
        if needs_vectors(painter):
            self._draw_vectors(painter, painted, frame)
        else:
            self._draw_bands(painter, painted, frame)
        self._draw_previews(painter, rows, frame)
        self._draw_texts(painter, [picture for _, picture in painted if picture], frame)
        return is_exact

    def _dependencies(self, frame: Frame) -> object:
        """Return all values on which pictures of bands depend, except the time window and how complete the data is."""
        lanes = self._opened.lanes
        # At a fractional ratio, scrolling changes how lane edges are rounded to device pixels.
        scroll_px = 0 if frame.ratio == int(frame.ratio) else frame.scroll_px
        return (self.painter.version, frame.shows_shares, frame.is_dense, frame.cpus, frame.ratio, scroll_px,
                lanes.rows, lanes.shows_kinds, lanes.arrangement.labels)  # fmt: skip

    def _draw_bands(self, painter: QPainter, painted: _Painted, frame: Frame) -> None:
        theme, width = self._theme, frame.scale.width_px
        bottom = 0.0
        for band, picture in painted:
            top, end = (edge / frame.ratio for edge in band_edges(band.rows, frame.scroll_px, frame.ratio))
            if top > bottom:
                painter.fillRect(QRectF(0, bottom, width, top - bottom), colour(theme.window if bottom else theme.base))
            draw_band(painter, picture, QRectF(0, top, width, end - top), frame, theme)
            bottom = end
        if bottom < frame.height_px:
            painter.fillRect(QRectF(0, bottom, width, frame.height_px - bottom), colour(theme.base))

    def _draw_vectors(self, painter: QPainter, painted: _Painted, frame: Frame) -> None:
        """Draw the lanes into a vector file: as rectangles, or as an image if there are too many rectangles."""
        height = max(1, round(frame.height_px * frame.ratio))
        whole: Pixels = np.full((height, frame.width_px), self._theme.base | OPAQUE, np.uint32)
        end = 0
        for band, picture in painted:
            top, bottom = band_edges(band.rows, frame.scroll_px, frame.ratio)
            if end and top > end:
                whole[end:top] = self._theme.window | OPAQUE
            if picture is not None:
                whole[max(0, top) : max(0, bottom)] = picture.pixels[max(0, -top) : max(0, height - top)]
            end = max(0, bottom)
        rects = rectangles(whole)
        if rects is None:
            painter.drawImage(0, 0, image_of(whole, frame.ratio))
        else:
            draw_rectangles(painter, rects, frame.ratio)

    def _draw_texts(self, painter: QPainter, pictures: Sequence[BandPicture], frame: Frame) -> None:
        placed, other = list[PlacedTexts](), list[PlacedTexts]()
        for picture in pictures:
            is_made = picture.shows(frame)
            (placed if is_made else other).append(picture.texts)
        line_px = self.texts.metrics.height()
        draw_placed(painter, self._sheet, placed, other, frame.scale, frame.scroll_px, line_px)

    def _draw_previews(self, painter: QPainter, rows: tuple[LaneRow, ...], frame: Frame) -> None:
        """Draw the CPU lanes that are not built yet, from the preview (samples of the file)."""
        preview, timeline, scale = self._opened.preview, self._opened.timeline, frame.scale
        if preview is None:
            return
        waiting = [row for row in rows if not timeline.is_ready(row.index)]
        for row in waiting:
            cpu = timeline.infos[row.index].cpu
            if timeline.infos[row.index].kind is LaneKind.CPU and cpu < len(preview.cpus):
                area = QRectF(0, row.y_px - frame.scroll_px, scale.width_px, row.height_px - 1)
                draw_preview_lane(painter, preview, cpu, scale.window, area, frame.ratio, self._theme)
        if not waiting:
            self._opened.preview = None
