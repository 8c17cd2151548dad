"""Turns lane values into pixels by colour tables.

Each lane is a stack of pixel rows of six kinds; rows of the same kind are equal:

    TICKS   marks of events
    OUTER   bars of states that are drawn thick (running, ready, ...)
    INNER   bars of all states
    FOOT    lower part of INNER; shows that a thread ran where another state dominates the pixel
    LOWER   the part of OUTER below FOOT, which shows the same
    BLANK   between lanes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

from satview.events import states
from satview.gui.colours import FADE, is_thick, mixed, state_colour
from satview.gui.swimlane import fills
from satview.gui.swimlane.fills import OPAQUE, half_way, hatch, lane_colour
from satview.gui.swimlane.shares import Stack, draw_stack
from satview.gui.theme import Theme

if TYPE_CHECKING:
    from satview.session.lanes.lane_row import LaneRow

Values = NDArray[np.uint8]
Pixels = NDArray[np.uint32]
_LIT_PART: Final = 22  # height of the line under marked parts, in percent of a bar
_DECADES: Final = 4  # range of the logarithmic heat scale, down from one CPU
_HEATS: Final = 24
_MOST_OF_IT: Final = 0.5
_LEAST_STRENGTH: Final = 0.12  # colour strength of the smallest use above 0
_SAYS_PX: Final = 1.5  # heat shows only for processes whose mean height is less
_LEAST_CPU_PX: Final = 4  # least distance between the lines at whole CPUs, device pixels
_BLANK, _GAP, _LINE, _FIXED = range(4)  # strips shared by all lanes; strips of lanes start at _FIXED
# On interrupt lanes: a pixel that contains an interrupt too short to dominate it.
SEEN_INTERRUPT: Final = states.ABSENT | states.SEEN_RUNNING | states.SEEN_EVENT


class PixelRowKind(IntEnum):
    """Kinds of pixel rows of a lane, described above."""

    TICKS = 0
    OUTER = 1
    INNER = 2
    FOOT = 3
    LOWER = 4
    BLANK = 5


class ShownMarks(Enum):
    """The event marks that are drawn above stacks of shares, where marks are usually too dense to be useful."""

    NONE = 0
    TICKS = 1  # only coloured marks
    ALL = 2


@dataclass(frozen=True, slots=True)
class Bands:
    """Edges of the strips of pixel rows that a lane consists of, in pixels from the top of the lane."""

    ticks_top: int
    ticks_end: int
    bar_top: int
    inner_top: int
    inner_end: int
    lower_top: int
    bar_end: int


def bands(height: int, unit: float = 1.0) -> Bands:
    """Return the edges of a lane's strips; `height` in device pixels, `unit` in device pixels per logical pixel."""
    px = max(1, round(unit))
    ticks_end = px + max(px, round(height * 0.17))
    bar_top = ticks_end + (px if height >= 14 * px else 0)
    bar_end = max(bar_top + 2 * px, height - 2 * px)
    thin = round((bar_end - bar_top) * 0.16)
    lower = max(px, round((bar_end - bar_top) * 0.22))
    return Bands(px, ticks_end, bar_top, bar_top + thin, bar_end - thin, bar_end - lower, bar_end)


@dataclass(frozen=True, slots=True, eq=False)
class Ticks:
    """Coloured event marks.

    Attributes:
        position: int64, (n,), position of the lane among the drawn lanes.
        column: (n,), pixel column.
        colour: uint32, (n,), opaque colours.
        line: Opaque colour of a line through the bar below each mark; 0 = none.
    """

    position: NDArray[np.int64]
    column: NDArray[np.intp]
    colour: NDArray[np.uint32]
    line: int = 0


class LanePalette:
    """Colour tables `table` and `faded`: uint32, shape (6, 256), by kind of pixel row and lane value with flags.

    Args:
        theme: Colours.
        hidden_values: Lane values drawn as background, because their events are filtered out.
        highlighted: Lane values, and keys such as `fills.SHARES`, that stay bright while all else fades; empty =
            nothing fades.
    """

    def __init__(
        self,
        theme: Theme,
        hidden_values: frozenset[int] = frozenset(),
        highlighted: frozenset[int] = frozenset(),
    ) -> None:
        table = _lane_table(theme)
        faded = _faded(table, theme.base)
        table = np.where(_highlighted_entries(highlighted), table, faded) if highlighted else table.copy()
        if hidden_values:
            keys = np.flatnonzero(np.isin(np.arange(256) & states.VALUE_MASK, list(hidden_values)))
            for kind in (PixelRowKind.INNER, PixelRowKind.FOOT, PixelRowKind.OUTER, PixelRowKind.LOWER):
                table[kind, keys] = theme.base | OPAQUE
        self.table = table
        self.faded = faded
        self.hit = np.uint32(theme.hit | OPAQUE)
        self.background = np.uint32(theme.base | OPAQUE)
        self.gap = np.uint32(theme.window | OPAQUE)
        self.line = np.uint32(mixed(theme.line, theme.base, 0.45) | OPAQUE)
        self.is_hatched = theme.is_hatched
        self.heat = _heat_colours(theme.base, state_colour(states.RUNNING, theme) or 0)


@lru_cache(maxsize=64)
def _heat_colours(base: int, rgb: int) -> NDArray[np.uint32]:
    """Return colours in equal steps from `base` (background) to `rgb`, uint32 (steps,). Cached: do not modify."""
    return np.array([mixed(base, rgb, step / _HEATS) | OPAQUE for step in range(_HEATS + 1)], np.uint32)


def _highlighted_entries(highlighted: frozenset[int]) -> NDArray[np.bool_]:
    """Return which entries of a colour table are highlighted, bool (6, 256)."""
    keys = np.arange(256)
    of_value = np.isin(keys & states.VALUE_MASK, list(highlighted))
    out = np.tile(of_value, (len(PixelRowKind), 1))
    out[PixelRowKind.TICKS] = fills.EVENTS in highlighted
    # The foot of a pixel shows that something ran in it, whatever dominates it.
    ran = (keys & states.SEEN_RUNNING != 0) & ~states.IS_BUSY[keys & states.VALUE_MASK]
    shows_running = fills.RAN in highlighted or states.RUNNING in highlighted
    for kind in (PixelRowKind.FOOT, PixelRowKind.LOWER):
        out[kind] = np.where(ran, shows_running, of_value)
    if states.INTERRUPT in highlighted:
        out[:, SEEN_INTERRUPT] = True
    return out


@lru_cache(maxsize=8)
def _lane_table(theme: Theme) -> NDArray[np.uint32]:
    """Return the colour table of a theme with nothing hidden, uint32 (6, 256). Cached: do not modify."""
    table = np.full((len(PixelRowKind), 256), theme.base | OPAQUE, np.uint32)
    running = lane_colour(states.RUNNING, state_colour(states.RUNNING, theme) or 0, theme)
    tick = mixed(theme.dim, theme.base, 0.55)
    for key in range(256):
        value = key & states.VALUE_MASK
        rgb = state_colour(value, theme)
        if key == SEEN_INTERRUPT:
            interrupt = state_colour(states.INTERRUPT, theme) or 0
            table[PixelRowKind.INNER, key] = table[PixelRowKind.FOOT, key] = mixed(interrupt, theme.base, 0.5) | OPAQUE
        if key & states.SEEN_EVENT:
            table[PixelRowKind.TICKS, key] = tick | OPAQUE
        if rgb is None:
            continue
        table[PixelRowKind.INNER, key] = table[PixelRowKind.FOOT, key] = lane_colour(value, rgb, theme)
        if is_thick(value, theme.looks):
            table[PixelRowKind.OUTER, key] = table[PixelRowKind.LOWER, key] = lane_colour(value, rgb, theme)
        if key & states.SEEN_RUNNING and not states.IS_BUSY[value] and value != states.ABSENT:
            table[PixelRowKind.FOOT, key] = table[PixelRowKind.LOWER, key] = running
    return table


@dataclass(frozen=True, slots=True, eq=False)
class LanePicture:
    """Computes the pixels of a picture of lanes.

    Attributes:
        values: uint8, shape (len(rows), width): lane values with flags, one per device pixel.
        rows: The visible lanes, from top to bottom.
        palette: Colours.
        scroll_px: Height of the lanes scrolled out above the picture, logical pixels.
        ratio: Device pixels per logical pixel.
        edges: Columns where an interval begins, drawn with a thin edge, by position in `rows`.
        ticks: Coloured event marks.
        faded: bool, shape as `values`: pixels whose bars fade, and whose stacks fade unless `Stack.shows_faded`.
        lit: bool, shape as `values`: pixels whose bars are underlined because a filter marks them.
        stacks: Stacks of shares that are drawn instead of bars, by position in `rows`.
        marks: Event marks that are drawn above stacks.
        is_dense: True to hide event marks above process lanes, because so many marks would tell nothing.
    """

    values: Values
    rows: tuple[LaneRow, ...]
    palette: LanePalette
    scroll_px: int
    ratio: float
    edges: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    ticks: Sequence[Ticks] = ()
    faded: NDArray[np.bool_] | None = None
    lit: NDArray[np.bool_] | None = None
    stacks: dict[int, Stack] = field(default_factory=dict)
    marks: ShownMarks = ShownMarks.NONE
    is_dense: bool = True

    def bands(self, cuts: Iterable[tuple[int, int]], rooms: Iterable[Pixels | None] = ()) -> Iterator[Pixels]:
        """Yield the pixels of bands of lanes, each from the top of its first lane to the bottom of its last.

        The few lanes of a band stay in the processor cache until they are drawn, which halves the time of a frame.
        `cuts` are start and stop of each band in `rows`; `rooms` are arrays to reuse if their size fits.
        """
        strips, spare = _pixel_rows(self), iter(rooms)
        for begin, stop in cuts:
            rows, room = self.rows[begin:stop], next(spare, None)
            layout = _layout_of(rows, self.scroll_px, self.ratio)
            size = len(layout.kind), self.values.shape[1]
            out = room if room is not None and room.shape == size else np.empty(size, np.uint32)
            source = layout.kind * len(self.rows) + (layout.base + begin * layout.of_lane)
            np.take(strips, source, axis=0, out=out, mode="clip")  # other modes make numpy copy `out`
            self._finish(out, begin, stop, band_edges(rows, self.scroll_px, self.ratio)[0])
            yield out

    def _has_unknown(self, begin: int, stop: int) -> bool:
        """Return whether any lane from `begin` to `stop` has unknown spans, which are hatched in every palette."""
        stacks = (self.stacks[position] for position in self.stacks.keys() & range(begin, stop))
        bars = self.values[begin:stop] & states.VALUE_MASK == states.UNKNOWN
        return bool(bars.any()) or any(states.UNKNOWN in stack.values for stack in stacks)

    def _finish(self, out: Pixels, begin: int, stop: int, top: int) -> None:
        """Draw the stacks of the lanes from `begin` to `stop` over their bars, and then the hatching."""
        for position, stack in self.stacks.items():
            if begin <= position < stop:
                bar = stack_of_lane(self.rows[position], self.scroll_px, self.ratio, self.marks, stack)
                draw = _draw_shares if stack.is_heat else draw_stack
                draw(out, stack, bar[0] - top, bar[1] - top, int(self.palette.background))
                if self.is_dense and self.marks is ShownMarks.NONE and stack.cpus:
                    _draw_heat(out, stack, self.rows[position].height_px, bar[1] - top, self.ratio, self.palette)
                if self.faded is not None and not stack.shows_faded:
                    bar_rows = out[max(0, bar[0] - top) : max(0, bar[1] - top)]
                    pale = half_way(bar_rows[:, self.faded[position]], int(self.palette.background))
                    bar_rows[:, self.faded[position]] = half_way(pale, int(self.palette.background))
                if stack.is_heat:
                    continue
                _draw_cpus(out, bar[0] - top, bar[1] - top, stack.cpus, self.palette.line)
                if self.lit is not None:
                    foot = (bar[1] - bar[0]) * _LIT_PART // 100
                    out[max(0, bar[1] - foot - top) : max(0, bar[1] - top), self.lit[position]] = self.palette.hit
        if self.palette.is_hatched or self._has_unknown(begin, stop):
            hatch(out, round(self.scroll_px * self.ratio) + top, self.ratio)


def _draw_heat(out: Pixels, stack: Stack, height_px: int, bottom: int, ratio: float, palette: LanePalette) -> None:
    """Draw the CPU use of a process as colour strength, on a logarithmic scale, in the rows of event marks.

    Only for a process that uses too little CPU for a visible height: it shows when the process runs. The bar of the
    lane ends above the pixel row `bottom`.
    """
    parts = bands(round(height_px * ratio), ratio)
    if stack.mean_cpus / stack.cpus * (parts.bar_end - parts.bar_top) >= _SAYS_PX * ratio:
        return
    begin, end = (max(0, bottom - parts.bar_end + edge) for edge in (parts.ticks_top, parts.ticks_end))
    colours = heat_of(stack.tops[0] * stack.cpus, palette.heat)
    out[begin:end, stack.columns[0] : stack.columns[-1]] = np.repeat(colours, np.diff(stack.columns))


def _draw_shares(out: Pixels, stack: Stack, top: int, bottom: int, background: int) -> None:
    """Draw shares of time by colour strength, on the scale of `_draw_heat`, between the rows `top` and `bottom`.

    Bins mostly covered by a value other than the first (such as unknown) get the colour of that value.
    """
    heat = _heat_colours(background & 0xFFFFFF, int(stack.colours[0]) & 0xFFFFFF)
    rows, colours = slice(max(0, top), max(0, bottom)), heat_of(stack.tops[0], heat)
    for below, above, colour in zip(stack.tops, stack.tops[1:], stack.colours[1:], strict=False):
        colours = np.where(above - below > _MOST_OF_IT, colour, colours)
    out[rows] = background
    out[rows, stack.columns[0] : stack.columns[-1]] = np.repeat(colours, np.diff(stack.columns))


def heat_of(cpus: NDArray[np.float64], heat: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return colours for CPU use, float64 (bins,), on a logarithmic scale, uint32 (bins,); `heat` begins weak."""
    steps = np.clip(1 + np.log10(np.maximum(cpus, 1e-9)) / _DECADES, _LEAST_STRENGTH, 1)
    return np.asarray(heat[np.ceil(np.where(cpus > 0, steps, 0) * (len(heat) - 1)).astype(np.intp)])


def _draw_cpus(out: Pixels, top: int, bottom: int, cpus: int, line: np.uint32) -> None:
    """Draw a faint line at each whole number of CPUs in a bar that stands for several CPUs, if there is room."""
    if (bottom - top) < _LEAST_CPU_PX * cpus:
        return
    for step in range(1, cpus):
        row = bottom - round((bottom - top) * step / cpus)
        if 0 <= row < len(out):
            out[row] = half_way(out[row], int(line))


def image_of(pixels: Pixels, ratio: float) -> QImage:
    """Return pixels as an image that shares the memory of the array, which must live longer than the image."""
    height, width = pixels.shape
    image = QImage(pixels.data, width, height, width * 4, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    return image


def _pixel_rows(picture: LanePicture) -> Pixels:
    """Return all different pixel rows of a picture: the rows blank, gap and line, then one per kind and lane."""
    values, palette = picture.values, picture.palette
    count, width = values.shape
    strips = np.empty((_FIXED + len(PixelRowKind) * count, width), np.uint32)
    of_kinds = strips[_FIXED:].reshape(len(PixelRowKind), count, width)
    np.take(palette.table, values, axis=1, out=of_kinds, mode="clip")
    bars = of_kinds[PixelRowKind.OUTER : PixelRowKind.BLANK]
    if picture.faded is not None:
        bars[:, picture.faded] = palette.faded[PixelRowKind.OUTER : PixelRowKind.BLANK, values[picture.faded]]
    strips[_BLANK], strips[_GAP], strips[_LINE] = palette.background, palette.gap, palette.line
    for position, columns in picture.edges.items():
        _draw_edges(bars[:, position], columns, int(palette.background))
    if picture.lit is not None:
        bars[PixelRowKind.FOOT - PixelRowKind.OUTER :, picture.lit] = palette.hit
    hides = (ShownMarks.TICKS, ShownMarks.NONE) if picture.is_dense else ()
    bare = [position for position, stack in picture.stacks.items()
            if picture.marks in (hides if stack.cpus else (ShownMarks.TICKS,))]  # fmt: skip
    of_kinds[PixelRowKind.TICKS, bare] = palette.background
    for tick in picture.ticks:
        for step in range(max(1, round(2 * picture.ratio))):
            columns = np.minimum(tick.column + step, width - 1)
            of_kinds[PixelRowKind.TICKS, tick.position, columns] = tick.colour
        for step in range(max(1, round(picture.ratio)) if tick.line else 0):
            columns = np.minimum(tick.column + step, width - 1)
            of_kinds[PixelRowKind.OUTER : PixelRowKind.BLANK, tick.position, columns] = tick.line
    return strips


def band_edges(rows: Sequence[LaneRow], scroll_px: int, ratio: float) -> tuple[int, int]:
    """Return the first device pixel row of adjacent lanes, and the row after their last."""
    return (
        round((rows[0].y_px - scroll_px) * ratio),
        round((rows[-1].y_px + rows[-1].height_px - scroll_px) * ratio),
    )


def stack_of_lane(row: LaneRow, scroll_px: int, ratio: float, marks: ShownMarks, stack: Stack) -> tuple[int, int]:
    """Return the first device pixel row of a lane's stack, and the row after its last.

    Without event marks above, a stack takes their rows too; but not that of a process, whose scale is the same at every
    zoom.
    """
    top, bottom = (round((y_px - scroll_px) * ratio) for y_px in (row.y_px, row.y_px + row.height_px))
    parts = bands(bottom - top, ratio)
    has_room = marks is ShownMarks.NONE and not (stack.cpus or stack.keeps_all)
    return top + (parts.ticks_top if has_room else parts.bar_top), top + parts.bar_end


def _faded(table: Pixels, base: int) -> Pixels:
    """Return colours blended with the background by `FADE`."""
    faded_of = {int(colour): mixed(int(colour) & 0xFFFFFF, base, FADE) | OPAQUE for colour in np.unique(table)}
    keys = np.array(list(faded_of), np.uint32)
    order = np.argsort(keys)
    return np.array(list(faded_of.values()), np.uint32)[order][np.searchsorted(keys[order], table)]


def _draw_edges(strips: Pixels, columns: NDArray[np.int64], background: int) -> None:
    """Darken columns of the strips of one lane, shape (kinds, width), in place."""
    colours = strips[:, columns]
    darker = (colours - (colours >> 2 & 0x3F3F3F)) | OPAQUE
    strips[:, columns] = np.where(colours == background, colours, darker)


class _StripLayout(NamedTuple):
    """Tells which strip (row of `_pixel_rows`) to copy into each device pixel row of some lanes.

    In a picture of `count` lanes, the strip has the index `kind * count + base`; where `of_lane` is 1, the position of
    the first of the lanes is added.

    Attributes:
        kind, base, of_lane: intp (height,).
    """

    kind: NDArray[np.intp]
    base: NDArray[np.intp]
    of_lane: NDArray[np.intp]


@lru_cache(maxsize=512)
def _layout_of(rows: tuple[LaneRow, ...], scroll_px: int, ratio: float) -> _StripLayout:
    begin, end = band_edges(rows, scroll_px, ratio)
    kinds, base, of_lane = (np.zeros(max(1, end - begin), np.intp) for _ in range(3))
    base[:] = _GAP
    for position, row in enumerate(rows):
        top, bottom = (edge - begin for edge in band_edges((row,), scroll_px, ratio))
        kinds[top:bottom], base[top:bottom], of_lane[top:bottom] = 0, _BLANK, 0
        parts = bands(bottom - top, ratio)
        for kind, start, stop in (
            (PixelRowKind.TICKS, parts.ticks_top, parts.ticks_end),
            (PixelRowKind.OUTER, parts.bar_top, parts.bar_end),
            (PixelRowKind.LOWER, parts.lower_top, parts.bar_end),
            (PixelRowKind.INNER, parts.inner_top, min(parts.inner_end, parts.lower_top)),
            (PixelRowKind.FOOT, parts.lower_top, parts.inner_end),
        ):
            lines = slice(top + start, min(top + stop, bottom))
            kinds[lines], base[lines], of_lane[lines] = kind, _FIXED + position, 1
        kinds[bottom - 1 : bottom], base[bottom - 1 : bottom], of_lane[bottom - 1 : bottom] = 0, _LINE, 0
    return _StripLayout(kinds, base, of_lane)
