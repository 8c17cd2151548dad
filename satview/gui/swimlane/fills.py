"""Draws fills of lanes other than plain colours: hatching, stacks, lost spans, CPU use, lanes of a preview."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QBrush, QImage, QPaintEngine, QPainter, QPen

from satview.analysis.needs import has_no_states
from satview.base.safe_text import visible_line
from satview.base.time import TimeWindow
from satview.core import pictures
from satview.events import states
from satview.events.states import IS_BUSY
from satview.gui.colours import HATCHES, hatch_of, mixed, state_colour
from satview.gui.swimlane.scale import TimeScale
from satview.gui.theme import Theme, colour
from satview.timeline.arrows import ArrowKind
from satview.timeline.lane_tree import Timeline
from satview.timeline.spans import pixel_edges
from satview.timeline.state_lanes import Preview

# Hatching distinguishes states for users who cannot tell their colours apart.


OPAQUE: Final = 0xFF000000
_HATCHES: Final = np.array(HATCHES, np.uint8)


def lane_colour(value: int, rgb: int, theme: Theme) -> int:
    """Return a lane value's colour `rgb` as 0xAARRGGBB; the alpha byte encodes the hatching that `hatch` draws.

    States are hatched if the theme is; spans of unknown state always are.
    """
    is_hatched = theme.is_hatched or value == states.UNKNOWN
    return rgb | (OPAQUE - (hatch_of(value) << 24) if is_hatched else OPAQUE)


def hatch(pixels: NDArray[np.uint32], top: int, ratio: float) -> None:
    """Draw hatching, in place, over the pixels whose alpha byte encodes a hatching.

    Args:
        pixels: uint32 (height, width), colours as returned by `lane_colour`.
        top: Distance of the first pixel row from the origin of the hatch pattern, device pixels.
        ratio: Device pixels per logical pixel.
    """
    pictures.hatch(pixels, _HATCHES, top, max(1, round(ratio)))


def half_way(pixels: NDArray[np.uint32], rgb: int) -> NDArray[np.uint32]:
    """Return opaque pixels, each the mean of the given pixel and a colour; same shape."""
    return ((pixels >> np.uint32(1)) & np.uint32(0x7F7F7F)) + np.uint32((rgb >> 1 & 0x7F7F7F) | OPAQUE)


def swatch(value: int, theme: Theme, width_px: int, height_px: int, ratio: float) -> QImage:
    """Return a picture of a bar with the colour and hatching of a lane value, for the legend."""
    size = max(1, round(height_px * ratio)), max(1, round(width_px * ratio))
    rgb = state_colour(value, theme)
    pixels = np.full(size, OPAQUE | theme.base if rgb is None else lane_colour(value, rgb, theme), np.uint32)
    hatch(pixels, 0, ratio)
    image = QImage(pixels.data, size[1], size[0], 4 * size[1], QImage.Format.Format_RGB32).copy()
    image.setDevicePixelRatio(ratio)
    return image


# Stacks of shares.


def draw_tops(
    pixels: NDArray[np.uint32],
    tops: NDArray[np.float64],
    is_busy: NDArray[np.bool_],
    columns: NDArray[np.intp],
    colours: NDArray[np.uint32],
    background: int,
    rows: tuple[int, int],
) -> None:
    """Draw the visible part of a stack: in each bin (a range of columns) the shares of k kinds, from the bottom up.

    Args:
        pixels: uint32 (height, width), modified.
        tops: float64 (k, bins), upper end of each kind; 0 = bottom of the bar, 1 = top.
        is_busy: bool (k,), kinds that must be visible even if less than a pixel high.
        columns: intp (bins + 1,), ascending, edges of the bins.
        colours: uint32 (k,), colour of each kind.
        background: Opaque colour above the stack.
        rows: First row of the bar and the row after its last; may be outside the picture.
    """
    if max(0, rows[0]) >= min(len(pixels), rows[1]):
        return
    pictures.draw_stack(tops, is_busy, columns, colours, background, rows, pixels)


# Spans of lost events.


LOST_LEAST_PX: Final = 4.0


def lost_spans(lost: NDArray[np.int64], scale: TimeScale) -> list[tuple[float, float]]:
    """Return the edges of the visible parts of spans with lost events, int64 (n, 2) cycles, in logical pixels.

    Overlapping spans are merged, and each span is at least `LOST_LEAST_PX` wide.
    """
    window = scale.window
    seen = lost[(lost[:, 1] >= window.start) & (lost[:, 0] < window.end)] if len(lost) else lost
    merged: list[tuple[float, float]] = []
    if not len(seen):
        return merged
    # Many marks can share a pixel; only the first of each pixel can change a left edge.
    lefts = np.clip((seen[:, 0] - window.start) * scale.width_px // window.length, -1, scale.width_px)
    keep = np.unique(lefts, return_index=True)[1]
    for i in keep:
        left, right = max(-8.0, scale.x(int(seen[i, 0]))), min(scale.width_px + 8.0, scale.x(int(seen[i, 1])))
        if right - left < LOST_LEAST_PX:
            middle = (left + right) / 2
            left, right = middle - LOST_LEAST_PX / 2, middle + LOST_LEAST_PX / 2
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


def draw_lost(painter: QPainter, lost: Iterable[tuple[float, float]], height: float, theme: Theme) -> None:
    """Hatch the spans with lost events, given as `lost_spans` returns them; `height` in logical pixels."""
    pen = QPen(colour(theme.error, 150))
    pen.setWidthF(1)
    for left, right in lost:
        area = QRectF(left, 0, right - left, height)
        painter.fillRect(area, colour(theme.base, 190))
        painter.fillRect(area, QBrush(colour(theme.error, 170), Qt.BrushStyle.BDiagPattern))
        painter.setPen(pen)
        painter.drawLines([QLineF(left, 0, left, height), QLineF(right, 0, right, height)])


# Keys of legend entries that are not lane values; all negative.


EVENTS: Final = -1  # ticks above the bars
RAN: Final = -2  # strips at the foot of bars
SHARES: Final = -3  # stacks where intervals are too dense for bars
MARKED: Final = -5  # strips at the foot of bars that a filter marks
LOST: Final = -4  # hatched from top to bottom where events are missing
ARROWS: Final = {kind: -6 - kind for kind in ArrowKind}


# Pictures as rectangles, for vector files (SVG and PDF).


_MOST: Final = 40_000  # with more rectangles, a vector file is larger and slower to open than a bitmap
_VECTORS: Final = (QPaintEngine.Type.SVG, QPaintEngine.Type.Pdf, QPaintEngine.Type.Picture)


def needs_vectors(painter: QPainter) -> bool:
    """Return whether a painter writes vector graphics."""
    engine = painter.paintEngine()
    return engine is not None and engine.type() in _VECTORS


def rectangles(pixels: NDArray[np.uint32]) -> NDArray[np.int64] | None:
    """Return the single-coloured rectangles of a picture, uint32 (height, width); None if there are more than `_MOST`.

    Returns:
        int64 (n, 5): left, top, width, height, colour. Equal adjacent rows share rectangles.
    """
    height, width = pixels.shape
    begins = np.flatnonzero(np.append(True, (pixels[1:] != pixels[:-1]).any(axis=1)))
    heights = np.diff(np.append(begins, height))
    rows = pixels[begins]
    edge = np.ones(rows.shape, np.bool_)
    edge[:, 1:] = rows[:, 1:] != rows[:, :-1]
    row, left = np.nonzero(edge)
    if len(row) > _MOST:
        return None
    widths = np.diff(np.append(row * width + left, len(rows) * width))
    return np.stack((left, begins[row], widths, heights[row], rows[row, left] & 0xFFFFFF), axis=1).astype(np.int64)


def draw_rectangles(painter: QPainter, rectangles: NDArray[np.int64], ratio: float) -> None:
    """Draw rectangles returned by `rectangles`; `ratio` is device pixels per logical pixel."""
    for left, top, width, height, rgb in rectangles.tolist():
        painter.fillRect(QRectF(left / ratio, top / ratio, width / ratio, height / ratio), colour(rgb))


# CPU use by process at each pixel of a picture, smoothed over neighbouring pixels, and drawn as a stack.


_ENVELOPE: Final = 0.88  # share of the background in the colour of the extremes
_NOT_NAMED: Final = (states.QUIET_PROCESS, states.INTERRUPT, states.KERNEL_CALL)  # stacked above named processes


@dataclass(frozen=True, slots=True, eq=False)
class CpuUse:
    """CPU use around each pixel of a picture, averaged over neighbouring pixels.

    Attributes:
        edges: int64 (pixels + 1,), start and end times of pixels, cycles.
        reach_px: Number of neighbouring pixels on each side that are averaged.
        values: Lane values, from bottom to top: the busiest process first.
        used: float64 (values, pixels), CPUs used by each value.
        least, most: float64 (pixels,), CPUs in use in the least busy and the busiest of the averaged pixels.
        cpus: Number of CPUs.
    """

    edges: NDArray[np.int64]
    reach_px: int
    values: tuple[int, ...]
    used: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    cpus: int

    @property
    def high_cpus(self) -> int:
        """Number of CPUs that the height of a picture stands for: the largest use, rounded up."""
        return max(1, min(self.cpus, ceil(float(self.most.max(initial=0.0)))))

    def window_of(self, pixel: int) -> TimeWindow:
        """Return the time window that is averaged at a pixel."""
        begin, end = max(0, pixel - self.reach_px), min(len(self.edges) - 1, pixel + self.reach_px + 1)
        return TimeWindow(int(self.edges[begin]), int(self.edges[end]))


def knows_use(timeline: Timeline) -> bool:
    """Return whether all CPU lanes are built and at least one shows running threads, so that CPU use is known."""
    return not has_no_states(timeline.trace) and any(
        IS_BUSY[lane.shares.values].any() for lane in timeline.lanes_of_cpus
    )


def cpu_use(timeline: Timeline, window: TimeWindow, width_px: int, reach_px: int) -> CpuUse:
    """Return the CPU use in a window; the cost depends on the number of (device) pixels, not of events.

    The CPU lanes must be built; `reach_px` neighbouring pixels on each side are averaged.
    """
    edges, lanes = pixel_edges(window, width_px), timeline.lanes_of_cpus
    cycles = np.zeros((states.VALUE_COUNT, width_px), np.int64)
    for lane in lanes:
        cycles[lane.shares.values] += lane.shares.cycles(edges).T
    totals = np.where(IS_BUSY, cycles.sum(axis=1), 0)
    order = sorted(np.flatnonzero(totals).tolist(), key=lambda value: (_rank(value), -int(totals[value])))
    cycles = cycles[order]
    sums = np.concatenate((np.zeros((len(order), 1), np.int64), np.cumsum(cycles, axis=1)), axis=1)
    begin = np.maximum(np.arange(width_px) - reach_px, 0)
    end = np.minimum(np.arange(width_px) + reach_px + 1, width_px)
    used = (sums[:, end] - sums[:, begin]) / np.maximum(edges[end] - edges[begin], 1)
    around = _neighbours(cycles.sum(axis=0) / np.maximum(np.diff(edges), 1), reach_px)
    return CpuUse(edges, reach_px, tuple(order), used, around.min(axis=1), around.max(axis=1), len(lanes))


def draw_use(pixels: NDArray[np.uint32], use: CpuUse, rows: tuple[int, int], theme: Theme) -> None:
    """Draw the CPU use as a stack of processes, before a pale area up to the largest use nearby.

    A line marks the least use nearby. `rows` are the first pixel row, at the height of `high_cpus`, and the row after
    the last.
    """
    columns, ground = np.arange(pixels.shape[1] + 1), theme.base | OPAQUE
    tops = np.cumsum(use.used, axis=0) / use.high_cpus
    pale = np.array([mixed(theme.dim, theme.base, _ENVELOPE) | OPAQUE], np.uint32)
    most, least = (
        _neighbours(extremes / use.high_cpus, use.reach_px).mean(axis=1) for extremes in (use.most, use.least)
    )
    draw_tops(pixels, most[None], np.zeros(1, np.bool_), columns, pale, ground, rows)
    colours = [lane_colour(value, state_colour(value, theme) or 0, theme) for value in use.values]
    stack = np.zeros_like(pixels)
    draw_tops(stack, tops, IS_BUSY[list(use.values)], columns, np.array(colours, np.uint32), 0, rows)
    np.copyto(pixels, stack, where=stack != 0)
    begin, end = rows
    row = np.clip(end - 1 - np.rint(least * (end - begin)).astype(np.intp), begin, end - 1)
    shows = np.flatnonzero(least > 0)
    pixels[row[shows], shows] = half_way(pixels[row[shows], shows], theme.base)


def names_of_values(timeline: Timeline) -> dict[int, str]:
    """Return the process name of each lane value on CPU lanes; several names if processes share a hue."""
    names: dict[int, dict[str, None]] = {}
    for process in range(1, len(timeline.trace.processes.names)):
        name = timeline.trace.short_process_name(process) or timeline.trace.process_name(process)
        names.setdefault(timeline.process_value(process), {})[visible_line(name)] = None
    return {value: ", ".join(of_value) for value, of_value in names.items()} | {states.QUIET_PROCESS: "other processes"}


def _neighbours(values: NDArray[np.float64], reach_px: int) -> NDArray[np.float64]:
    """Return each value with its neighbours, float64 (pixels, 2 * reach_px + 1); the end values are repeated."""
    return np.lib.stride_tricks.sliding_window_view(np.pad(values, reach_px, mode="edge"), 2 * reach_px + 1)


def _rank(value: int) -> int:
    return _NOT_NAMED.index(value) + 1 if value in _NOT_NAMED else 0


# Draws the lane of a CPU from a preview: stacked shares of the processes, with stripes that mark it as provisional.


BIN_PX: Final = 4  # width of a bin; over the whole trace, each bin has one or two samples
_PADDING_PX: Final = 3


def draw_preview_lane(
    painter: QPainter, preview: Preview, cpu: int, window: TimeWindow, area: QRectF, ratio: float, theme: Theme
) -> None:
    """Draw the lane of a CPU (`area`, logical pixels) from the samples of a file, before the trace is read."""
    inner = area.adjusted(0, _PADDING_PX, 0, -_PADDING_PX)
    width, height = max(1, round(inner.width() * ratio)), max(1, round(inner.height() * ratio))
    bins = max(1, round(inner.width() / BIN_PX))
    pixels = lane_pixels(preview.cover(cpu, window, bins), width, height, theme)
    image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    painter.drawImage(inner.topLeft(), image)
    hatch_preview(painter, inner, theme)


def lane_pixels(cover: NDArray[np.float64], width: int, height: int, theme: Theme) -> NDArray[np.uint32]:
    """Return a picture of a CPU's use, uint32 (height, width): time of processes from the bottom up, idle time on top.

    `cover` has cycles by lane value and bin, float64 (64, bins), as returned by `Preview.cover`.
    """
    background = theme.base | OPAQUE
    out = np.full((height, width), background, np.uint32)
    values = np.flatnonzero(cover.any(axis=1))
    if not len(values):
        return out
    values = np.concatenate((values[values != states.IDLE], values[values == states.IDLE]))
    upper = np.cumsum(cover[values], axis=0)
    tops = np.divide(upper, upper[-1], out=np.zeros_like(upper), where=upper[-1] > 0)
    bins = cover.shape[1]
    columns = -(-np.arange(bins + 1) * width // bins)
    # No dots for shares of less than a pixel: samples are not that precise.
    seldom = np.zeros(len(values), bool)
    draw_tops(out, tops, seldom, columns, _colours(theme)[values], background, (0, height))
    return out


@lru_cache(maxsize=4)
def _colours(theme: Theme) -> NDArray[np.uint32]:
    colours = [state_colour(value, theme) for value in range(states.VALUE_COUNT)]
    return np.array([(theme.base if rgb is None else rgb) | OPAQUE for rgb in colours], np.uint32)


def hatch_preview(painter: QPainter, area: QRectF, theme: Theme) -> None:
    """Mark an area as provisional: paler, with stripes of the background colour."""
    painter.fillRect(area, colour(theme.base, 70))
    painter.fillRect(area, QBrush(colour(theme.base, 190), Qt.BrushStyle.FDiagPattern))
