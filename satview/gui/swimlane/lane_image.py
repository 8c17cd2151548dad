"""Lane values to pixels: palettes by kind of pixel row, one look-up, one image.

Every lane is a stack of pixel rows of a few kinds, so its picture is made of few different rows:

    TICKS   marks of events
    OUTER   bar of states that are drawn thick (running, ready, ...)
    INNER   bar of every state
    FOOT    the lower part of INNER; shows that something ran where another state dominates the pixel
    LOWER   the part of OUTER below it, with the same sign
    BLANK   between lanes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

from satview.base.dataclass import dataclass
from satview.events import states
from satview.gui.colours import FADE, is_thick, mixed, state_colour
from satview.gui.swimlane import legend_keys
from satview.gui.swimlane.hatching import hatch, lane_colour
from satview.gui.swimlane.share_layer import Stack, draw_stack
from satview.gui.theme import Theme

if TYPE_CHECKING:
    from satview.session.lanes.lane_row import LaneRow

Values = NDArray[np.uint8]
Pixels = NDArray[np.uint32]
OPAQUE: Final = 0xFF000000
_BAND_PX: Final = 40  # device rows: some hundred kilobytes
# On interrupt lanes: nothing for most of the pixel, but an interrupt in it.
SEEN_INTERRUPT: Final = states.ABSENT | states.SEEN_RUNNING | states.SEEN_EVENT


class Kind(IntEnum):
    """Kinds of pixel rows."""

    TICKS = 0
    OUTER = 1
    INNER = 2
    FOOT = 3
    LOWER = 4
    BLANK = 5


@dataclass(frozen=True, slots=True)
class Bands:
    """Where the parts of a lane lie, in pixels from its top."""

    ticks_top: int
    ticks_end: int
    bar_top: int
    inner_top: int
    inner_end: int
    lower_top: int
    bar_end: int


def bands(height: int, unit: float = 1.0) -> Bands:
    """Return the parts of a lane of that height; `unit` is the size of a logical pixel."""
    one = max(1, round(unit))
    ticks_end = one + max(one, round(height * 0.17))
    bar_top = ticks_end + (one if height >= 14 * one else 0)
    bar_end = max(bar_top + 2 * one, height - 2 * one)
    thin = round((bar_end - bar_top) * 0.16)
    lower = max(one, round((bar_end - bar_top) * 0.22))
    return Bands(one, ticks_end, bar_top, bar_top + thin, bar_end - thin, bar_end - lower, bar_end)


@dataclass(frozen=True, slots=True, eq=False)
class Ticks:
    """Marks of events in colours of their own.

    Attributes:
        position: int64, (n,), position of the lane among those drawn.
        column: (n,), pixel.
        colour: uint32, (n,), opaque colours.
    """

    position: NDArray[np.int64]
    column: NDArray[np.intp]
    colour: NDArray[np.uint32]


class LanePalette:
    """The colour of every lane value with its flags, for every kind of pixel row: uint32, shape (6, 256).

    Args:
        theme: Colours.
        hidden_values: Of states whose events are filtered out: they show the background.
        highlighted: What is highlighted, all else fades: lane values, or keys of `legend_keys`; empty = nothing does.
    """

    def __init__(
        self,
        theme: Theme,
        hidden_values: frozenset[int] = frozenset(),
        highlighted: frozenset[int] = frozenset(),
    ) -> None:
        table = _lane_table(theme)
        faded = _faded(table, theme.base)
        table = np.where(_stands_out(highlighted), table, faded) if highlighted else table.copy()
        if hidden_values:
            keys = np.flatnonzero(np.isin(np.arange(256) & states.VALUE_MASK, list(hidden_values)))
            for kind in (Kind.INNER, Kind.FOOT, Kind.OUTER, Kind.LOWER):
                table[kind, keys] = theme.base | OPAQUE
        self.table = table
        self.faded = faded
        self.hit = np.uint32(theme.hit | OPAQUE)
        self.background = np.uint32(theme.base | OPAQUE)
        self.gap = np.uint32(theme.window | OPAQUE)
        self.line = np.uint32(mixed(theme.line, theme.base, 0.45) | OPAQUE)
        self.is_hatched = theme.is_hatched


def _stands_out(highlighted: frozenset[int]) -> NDArray[np.bool_]:
    """Return which entries of a table of colours are highlighted, bool (6, 256)."""
    keys = np.arange(256)
    of_value = np.isin(keys & states.VALUE_MASK, list(highlighted))
    out = np.tile(of_value, (len(Kind), 1))
    out[Kind.TICKS] = legend_keys.EVENTS in highlighted
    # The foot of a pixel shows what ran in it, whatever it shows above.
    ran = (keys & states.SEEN_RUNNING != 0) & ~states.IS_BUSY[keys & states.VALUE_MASK]
    shows_running = legend_keys.RAN in highlighted or states.RUNNING in highlighted
    for kind in (Kind.FOOT, Kind.LOWER):
        out[kind] = np.where(ran, shows_running, of_value)
    if states.INTERRUPT in highlighted:
        out[:, SEEN_INTERRUPT] = True
    return out


@lru_cache(maxsize=8)
def _lane_table(theme: Theme) -> NDArray[np.uint32]:
    """Return the colours of a theme while nothing is hidden; shared, not to be changed."""
    table = np.full((len(Kind), 256), theme.base | OPAQUE, np.uint32)
    running = lane_colour(states.RUNNING, state_colour(states.RUNNING, theme) or 0, theme)
    tick = mixed(theme.dim, theme.base, 0.55)
    for key in range(256):
        value = key & states.VALUE_MASK
        found = state_colour(value, theme)
        if key == SEEN_INTERRUPT:
            interrupt = state_colour(states.INTERRUPT, theme) or 0
            table[Kind.INNER, key] = table[Kind.FOOT, key] = mixed(interrupt, theme.base, 0.5) | OPAQUE
        if key & states.SEEN_EVENT:
            table[Kind.TICKS, key] = tick | OPAQUE
        if found is None:
            continue
        table[Kind.INNER, key] = table[Kind.FOOT, key] = lane_colour(value, found, theme)
        if is_thick(value, theme.looks):
            table[Kind.OUTER, key] = table[Kind.LOWER, key] = lane_colour(value, found, theme)
        if key & states.SEEN_RUNNING and not states.IS_BUSY[value] and value != states.ABSENT:
            table[Kind.FOOT, key] = table[Kind.LOWER, key] = running
    return table


_StackBar = tuple[int, int, Stack, NDArray[np.intp] | None]
_FOOT_PX: Final = 3  # of a stack that a filter marks, as the strip at the foot of a bar


@dataclass(frozen=True, slots=True, eq=False)
class LanePicture:
    """The picture of the lanes.

    Attributes:
        values: uint8, shape (len(rows), width): lane values with flags, one per device pixel.
        rows: The lanes that show, from top to bottom.
        palette: Colours.
        scroll_px: Height of the list above the picture, logical pixels.
        height_px: Height of the picture, logical pixels.
        ratio: Device pixels per logical pixel.
        edges: Position in `rows` to the columns where an interval begins, to be drawn with a fine edge.
        ticks: Marks of events in colours of their own.
        faded: bool, shape as `values`: pixels whose bars fade.
        lit: bool, shape as `values`: pixels whose bars are underlined because a filter marks them.
        stacks: Position in `rows` to what shows instead of bars.
    """

    values: Values
    rows: tuple[LaneRow, ...]
    palette: LanePalette
    scroll_px: int
    height_px: int
    ratio: float
    edges: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    ticks: Sequence[Ticks] = ()
    faded: NDArray[np.bool_] | None = None
    lit: NDArray[np.bool_] | None = None
    stacks: dict[int, Stack] = field(default_factory=dict)

    def pixels(self) -> Pixels:
        """Return all of it, uint32 (height, width), opaque."""
        source = _row_sources(self.rows, self.scroll_px, self.height_px, self.ratio)
        out = np.empty((len(source), self.values.shape[1]), np.uint32)
        self._fill(_strips(self), source, 0, self._stack_bars(), out)
        return out

    def bands(self) -> Iterator[tuple[int, Pixels]]:
        """Yield it in parts from top to bottom: the first row of each, and its pixels, which the next one overwrites.

        They are small enough to stay in the processor's cache until they are drawn, which halves the time of a frame.
        """
        source = _row_sources(self.rows, self.scroll_px, self.height_px, self.ratio)
        strips, bars = _strips(self), self._stack_bars()
        cuts = _cuts(self.rows, self.scroll_px, self.ratio, len(source))
        room = np.empty((max(last - first for first, last in pairwise(cuts)), self.values.shape[1]), np.uint32)
        for first, last in pairwise(cuts):
            band = room[: last - first]
            self._fill(strips, source[first:last], first, bars, band)
            yield first, band

    def _stack_bars(self) -> list[_StackBar]:
        """Return the first row of every stack, the one behind its last, and the columns that are underlined."""
        return [
            (*bar_of(self.rows[position], self.scroll_px, self.ratio), stack,
             None if self.lit is None else np.flatnonzero(self.lit[position]))
            for position, stack in self.stacks.items()
        ]  # fmt: skip

    def _fill(self, strips: Pixels, source: NDArray[np.intp], first: int, bars: list[_StackBar], out: Pixels) -> None:
        """Draw the rows from one on."""
        np.take(strips, source, axis=0, out=out, mode="clip")  # else numpy makes a copy of `out`
        last = first + len(out)
        foot_px = round(_FOOT_PX * self.ratio)
        for top, bottom, stack, lit in bars:
            if top < last and bottom > first:
                draw_stack(out, stack, top - first, bottom - first, int(self.palette.background))
                if lit is not None:
                    out[max(0, bottom - foot_px - first) : bottom - first, lit] = self.palette.hit
        if self.palette.is_hatched:
            hatch(out, round(self.scroll_px * self.ratio) + first, self.ratio)


def image_of(pixels: Pixels, ratio: float) -> QImage:
    """Return pixels as an image, which shows them as long as the array is there."""
    height, width = pixels.shape
    image = QImage(pixels.data, width, height, width * 4, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    return image


def _strips(picture: LanePicture) -> Pixels:
    """Return the different rows of a picture: each lane's of each kind, then a blank one, a gap and a line."""
    values, palette = picture.values, picture.palette
    count, width = values.shape
    strips = np.empty((len(Kind) * count + 3, width), np.uint32)
    of_kinds = strips[: len(Kind) * count].reshape(len(Kind), count, width)
    np.take(palette.table, values, axis=1, out=of_kinds, mode="clip")
    bars = of_kinds[Kind.OUTER : Kind.BLANK]
    if picture.faded is not None:
        bars[:, picture.faded] = palette.faded[Kind.OUTER : Kind.BLANK, values[picture.faded]]
    strips[-3], strips[-2], strips[-1] = palette.background, palette.gap, palette.line
    for position, columns in picture.edges.items():
        _draw_edges(strips, count, position, columns, int(palette.background))
    if picture.lit is not None:
        bars[Kind.FOOT - Kind.OUTER :, picture.lit] = palette.hit
    for tick in picture.ticks:
        for step in range(max(1, round(2 * picture.ratio))):
            columns = np.minimum(tick.column + step, width - 1)
            strips[Kind.TICKS * count + tick.position, columns] = tick.colour
    return strips


def bar_of(row: LaneRow, scroll_px: int, ratio: float) -> tuple[int, int]:
    """Return the first device pixel row of a lane's bar without marks of events, and the one behind its last."""
    top, bottom = (round((y_px - scroll_px) * ratio) for y_px in (row.y_px, row.y_px + row.height_px))
    parts = bands(bottom - top, ratio)
    return top + parts.ticks_top, top + parts.bar_end


def _faded(table: Pixels, base: int) -> Pixels:
    """Return colours moved most of the way to the background."""
    known = {int(colour): mixed(int(colour) & 0xFFFFFF, base, FADE) | OPAQUE for colour in np.unique(table)}
    keys = np.array(list(known), np.uint32)
    order = np.argsort(keys)
    return np.array(list(known.values()), np.uint32)[order][np.searchsorted(keys[order], table)]


def _draw_edges(strips: Pixels, count: int, position: int, columns: NDArray[np.int64], background: int) -> None:
    for kind in (Kind.OUTER, Kind.INNER, Kind.FOOT, Kind.LOWER):
        strip = strips[kind * count + position]
        colours = strip[columns]
        darker = (colours - (colours >> 2 & 0x3F3F3F)) | OPAQUE
        strip[columns] = np.where(colours == background, colours, darker)


@lru_cache(maxsize=8)
def _cuts(rows: tuple[LaneRow, ...], scroll_px: int, ratio: float, height: int) -> tuple[int, ...]:
    """Return where bands begin, and the height of the picture: between lanes, so that few lanes are in two bands."""
    cuts = [0]
    for row in rows:
        bottom = round((row.y_px + row.height_px - scroll_px) * ratio)
        if cuts[-1] + _BAND_PX <= bottom < height:
            cuts.append(bottom)
    return (*cuts, height)


@lru_cache(maxsize=8)
def _row_sources(rows: tuple[LaneRow, ...], scroll_px: int, height_px: int, ratio: float) -> NDArray[np.intp]:
    """Return for every device pixel row the strip it shows."""
    count = len(rows)
    blank, gap, line = len(Kind) * count, len(Kind) * count + 1, len(Kind) * count + 2
    height = max(1, round(height_px * ratio))
    source = np.full(height, blank, np.intp)
    bottom = 0
    for position, row in enumerate(rows):
        top = round((row.y_px - scroll_px) * ratio)
        if position and top > bottom:
            source[max(0, bottom) : max(0, top)] = gap
        bottom = round((row.y_px + row.height_px - scroll_px) * ratio)
        parts = bands(bottom - top, ratio)
        for kind, start, end in (
            (Kind.TICKS, parts.ticks_top, parts.ticks_end),
            (Kind.OUTER, parts.bar_top, parts.bar_end),
            (Kind.LOWER, parts.lower_top, parts.bar_end),
            (Kind.INNER, parts.inner_top, min(parts.inner_end, parts.lower_top)),
            (Kind.FOOT, parts.lower_top, parts.inner_end),
        ):
            source[max(0, top + start) : max(0, top + end)] = kind * count + position
        if 0 < bottom <= height:
            source[bottom - 1] = line
    return source
