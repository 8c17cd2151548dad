"""Coarse copies of a lane for zooming out: per time cell the value that covers most of it.

Cells of 2^k cycles on one grid for all lanes; the finest level has about half as many cells as the lane has intervals
and at least 8192, every coarser one half as many, down to 16. One byte per cell: six bits of value, `SEEN_RUNNING`,
`SEEN_EVENT`, so that short bursts and single events never vanish. Exact per cell at every level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import TimeWindow
from satview.core import pictures
from satview.events.states import IS_BUSY, SEEN_EVENT, SEEN_RUNNING, VALUE_COUNT, VALUE_MASK
from satview.timeline.spans import LaneSpans

MIN_FINEST_CELLS: Final = 8192
MAX_CELL_PX: Final = 4
MIN_COARSEST_CELLS: Final = 16
_BLOCK_BITS: Final = 14


@dataclass(frozen=True, slots=True)
class Levels:
    """All levels of one lane, finest first.

    Attributes:
        origin: Where cell 0 begins, in cycles.
        shift: Cells of level 0 are 2^shift cycles long, those of level i 2^(shift + i).
        cells: uint8 arrays, one per level.
    """

    origin: int
    shift: int
    cells: tuple[NDArray[np.uint8], ...]

    def level_for(self, cycles_per_px: float) -> int | None:
        """Return the coarsest level whose cells are not longer than a pixel.

        Beyond the finest level its cells serve until they are `MAX_CELL_PX` wide: a frame while the view moves may be
        that coarse, and the exact one replaces it when the view rests. None where even that is not enough.
        """
        if cycles_per_px * MAX_CELL_PX < 1 << self.shift:
            return None
        return min(max(0, int(cycles_per_px).bit_length() - 1 - self.shift), len(self.cells) - 1)


def finest_shift(window: TimeWindow, intervals: int) -> int:
    """Return log2 of the finest cell's length in cycles for a lane with that many intervals."""
    requested = max(MIN_FINEST_CELLS, intervals // 2)
    return max(0, (window.length // requested).bit_length() - 1)


def build_levels(spans: LaneSpans, window: TimeWindow, seen_events: NDArray[np.bool_] | None = None) -> Levels:
    """Build the levels of a lane over the whole trace.

    Args:
        spans: The lane's intervals, from the start of the trace to its end.
        window: The whole trace: fixes the grid.
        seen_events: bool, per finest cell: the lane has an event there that is not a state change; None = nowhere.
    """
    shift = finest_shift(window, len(spans))
    cell_count = ((window.length - 1) >> shift) + 1
    values = np.flatnonzero(np.bincount(spans.value, minlength=VALUE_COUNT)).astype(np.uint8)
    local = np.zeros(VALUE_COUNT, np.int64)
    local[values] = np.arange(len(values))
    level_count = 1
    while cell_count >> level_count >= MIN_COARSEST_CELLS:
        level_count += 1
    finest = np.zeros(cell_count, np.bool_) if seen_events is None else seen_events
    levels: list[list[NDArray[np.uint8]]] = [[] for _ in range(level_count)]
    top: list[NDArray[np.float64]] = []
    top_seen: list[NDArray[np.bool_]] = []
    deep = min(level_count, _BLOCK_BITS + 1)
    kinds = pictures.LevelKinds(values, local, IS_BUSY[values].astype(np.uint8))
    for start in range(0, cell_count, 1 << _BLOCK_BITS):
        count = min(1 << _BLOCK_BITS, cell_count - start)
        begin = window.start + (start << shift)
        part = spans.visible(TimeWindow(begin, begin + (count << shift)))
        cells_of_levels, whole, seen = pictures.levels(
            spans.start_cycles[part], spans.value[part], spans.end_of(part), begin, shift, kinds,
            finest[start : start + count], deep, halves_last=level_count > deep)  # fmt: skip
        for level, cells in enumerate(cells_of_levels):
            levels[level].append(cells)
        top.append(whole.astype(np.float64))
        top_seen.append(seen)
    if level_count > deep:
        cover, seen = np.concatenate(top, axis=1), np.concatenate(top_seen)
        for level in range(deep, level_count):
            levels[level].append(_dominant(cover, values, seen))
            cover, seen = _halved(cover), _halved_flags(seen)
    return Levels(window.start, shift, tuple(np.concatenate(parts) for parts in levels))


def _dominant(cover: NDArray[np.float64], values: NDArray[np.uint8], seen: NDArray[np.bool_]) -> NDArray[np.uint8]:
    # Lanes cover the whole trace, so no cell is left without any value.
    # Whole rows at a time, which is twice as fast as argmax across the few kinds of every cell.
    most = np.maximum.reduce(cover, axis=0)
    cells = np.full(cover.shape[1], values[-1], np.uint8)
    for kind in range(len(values) - 2, -1, -1):  # the smallest value wins a tie
        np.copyto(cells, values[kind], where=cover[kind] == most)
    for kind in np.flatnonzero(IS_BUSY[values]).tolist():
        cells[cover[kind] > 0] |= SEEN_RUNNING
    cells[seen] |= SEEN_EVENT
    return cells


def _halved(cover: NDArray[np.float64]) -> NDArray[np.float64]:
    if cover.shape[1] % 2:
        cover = np.concatenate((cover, np.zeros((len(cover), 1))), axis=1)
    return np.asarray(cover[:, 0::2] + cover[:, 1::2])


def _halved_flags(seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if len(seen) % 2:
        seen = np.append(seen, False)
    return np.asarray(seen[0::2] | seen[1::2])


@dataclass(frozen=True, slots=True)
class PixelCells:
    """Which cells a row of pixels shows, for one level of the grid; shared by all lanes of a frame."""

    first: NDArray[np.int64]
    middle: NDArray[np.int64]
    last: NDArray[np.int64]
    outside: NDArray[np.intp]

    @classmethod
    def of(cls, edges: NDArray[np.int64], origin: int, shift: int, cell_count: int) -> PixelCells:
        """Compute them from the pixel edges of the window."""
        begin, end = edges[:-1] - origin, np.maximum(edges[1:] - 1, edges[:-1]) - origin
        limit = cell_count - 1
        outside = np.flatnonzero((end < 0) | (begin >> shift > limit))
        return cls(
            np.clip(begin >> shift, 0, limit),
            np.clip((begin + (end - begin) // 2) >> shift, 0, limit),
            np.clip(end >> shift, 0, limit),
            outside,
        )

    def take(self, cells: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        """Write a lane's pixels: the value of the cell in the middle of the pixel, the flags of all its cells."""
        np.take(cells, self.middle, out=out)
        out |= (cells[self.first] | cells[self.last]) & np.uint8(~VALUE_MASK & 0xFF)
        if len(self.outside):
            out[self.outside] = 0

    def any_of(self, cells: NDArray[np.uint8], flag: int) -> NDArray[np.uint8]:
        """Return a flag for every pixel of which any cell has it, uint8 (pixels,), 0 elsewhere."""
        pairs = np.stack((self.first, self.last + 1), axis=1).ravel()
        out = np.bitwise_or.reduceat(np.append(cells & np.uint8(flag), np.uint8(0)), pairs)[::2]
        out[self.outside] = 0
        return np.asarray(out, np.uint8)
