"""Compiled passes that draw lanes: cells, pixels and shares of values; see pictures.c.

A lane is a sequence of intervals, each with a value such as a thread state. Cells are equal spans of time, in which
lanes are stored at several resolutions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.core.library import BoundCall, call


@dataclass(frozen=True, slots=True)
class CellTables:
    """Tables of the lanes on which events are drawn: indices of lanes, -1 = none; a table is None if it has no lanes.

    Attributes:
        threads: Three tables by thread, int32 (threads,): lanes of threads, of processes, and of damage.
        cpus: Two tables by CPU, int32 (256,): lanes of CPUs and of damage.
        interrupts: int32 (256,), lanes of interrupts by CPU.
    """

    threads: tuple[NDArray[np.int32] | None, NDArray[np.int32] | None, NDArray[np.int32] | None]
    cpus: tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]
    interrupts: NDArray[np.int32] | None


def event_cells(
    time: NDArray[np.int64], code: NDArray[np.uint16], cpu: NDArray[np.uint8], thread: NDArray[np.unsignedinteger],
    origin: int, marks: NDArray[np.bool_], int_class: int, class_shift: int, tables: CellTables,
    offset: NDArray[np.int64], shift: NDArray[np.int64],
) -> NDArray[np.bool_]:  # fmt: skip
    """Return which cells contain an event that is drawn as a mark, bool (cells of all lanes,).

    Args:
        time: int64 (n,), times of the events, cycles, ascending.
        code: uint16 (n,).
        cpu: uint8 (n,).
        thread: uint16 or uint32 (n,).
        origin: Start of the first cell, cycles.
        marks: bool (32768,), which codes are drawn as marks.
        int_class: Internal class of interrupts.
        class_shift: Bit position of the class in a code.
        tables: The lanes.
        offset: int64 (lanes + 1,), index of the first cell of each lane, and the number of cells.
        shift: int64 (lanes,), cells of a lane are 2^shift cycles.
    """
    count = int(offset[-1])
    seen = np.zeros(count + 1, np.bool_)
    cells = np.array([(count, *offset[:-1]), (count + 1, *offset[1:]), (63, *shift)], np.int64).T.copy()
    columns = [np.ascontiguousarray(column) for column in (time, code, cpu, thread)]
    call("event_cells", *columns, origin, np.ascontiguousarray(marks), int_class, class_shift, *tables.threads,
         *tables.cpus, tables.interrupts, cells, seen)  # fmt: skip
    return seen[:count]


class Raster:
    """Draws lanes into rows of pixels; the data that all lanes share is prepared once.

    Args:
        edges: int64 (width + 1,), start of each pixel, cycles, strictly ascending.
        busy: uint8 (64,), 1 for values that mean running.
        out: uint8 (lanes, width), zeros, written by `draw`.
    """

    def __init__(self, edges: NDArray[np.int64], busy: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        self._raster, self._out = BoundCall("raster", edges, busy), out

    def draw(self, row: int, start: NDArray[np.int64], value: NDArray[np.uint8], end: int) -> None:
        """Write for each pixel the value that covers most of it, with a flag if anything runs within the pixel.

        Args:
            row: Row of `out`.
            start: int64 (n,), start of each interval, ascending; an interval ends at the start of the next.
            value: uint8 (n,), value of each interval.
            end: End of the last interval, cycles.
        """
        self._raster(start, value, end, self._out[row])


@dataclass(frozen=True, slots=True)
class LevelKinds:
    """The values that occur in one lane.

    Attributes:
        value_of: uint8 (k,), the values, ascending.
        kind_of: int64 (64,), index of each value in `value_of`.
        busy: uint8 (k,), 1 for values that mean running.
    """

    value_of: NDArray[np.uint8]
    kind_of: NDArray[np.int64]
    busy: NDArray[np.uint8]


def levels(
    start: NDArray[np.int64], value: NDArray[np.uint8], end: int, origin: int, shift: int, kinds: LevelKinds,
    seen: NDArray[np.bool_], depth: int, *, halves_last: bool,
) -> tuple[list[NDArray[np.uint8]], NDArray[np.int64], NDArray[np.bool_]]:  # fmt: skip
    """Return a block of cells of one lane at several resolutions; each level has half as many cells as the one before.

    Args:
        start: int64 (n,), start of each interval that overlaps the block, ascending.
        value: uint8 (n,), value of each interval.
        end: End of the last interval, cycles.
        origin: Start of the block, cycles.
        shift: Cells of the finest level are 2^shift cycles.
        kinds: The values of the lane.
        seen: bool (cells,), cells in which the lane has an event; not changed.
        depth: Number of levels.
        halves_last: Whether sums and flags are those of the level after the coarsest.

    Returns:
        The levels, uint8 each, the finest first; cycles of each value in the coarsest cells, int64 (kinds, cells);
        which of these cells have an event, bool (cells,).
    """
    cells, sizes = len(seen), [len(seen)]
    while len(sizes) < depth + halves_last:
        sizes.append((sizes[-1] + 1) // 2)
    cover, flags = np.empty((cells, len(kinds.value_of)), np.int64), seen.copy()
    out = np.empty(sum(sizes[:depth]), np.uint8)
    call("levels", start, value, end, origin, shift, kinds.kind_of, kinds.value_of, kinds.busy, flags, cover, depth,
         halves_last, out)  # fmt: skip
    sums = cover.ravel()[: sizes[-1] * len(kinds.value_of)].reshape(sizes[-1], -1).T
    return np.split(out, np.cumsum(sizes[: depth - 1])), sums, flags[: sizes[-1]]


def share_index(
    start: NDArray[np.int64],
    value: NDArray[np.uint8],
    every: int,
    kind_of: NDArray[np.int64],
    weight: NDArray[np.int64],
    kinds: int,
) -> NDArray[np.int64]:
    """Return the weighted cycles of each kind of value before every `every`-th interval of a lane, int64 (sums, kinds).

    Args:
        start: int64 (n,), start of each interval, ascending.
        value: uint8 (n,), value of each interval.
        every: Number of intervals from one sum to the next.
        kind_of: int64 (64,), kind of each value.
        weight: int64 (64,), weight of a cycle of each value.
        kinds: Number of kinds.
    """
    marks = -(-len(start) // every)
    out = np.empty((marks, kinds), np.int64)
    call("share_index", start, value, every, kind_of, weight, kinds, out)
    return out


class ShareSums:
    """Computes how long a lane has each kind of value in given bins; the data of the lane is prepared once.

    Args:
        start: Start of each interval, int64 (n,), ascending; or a pair (time, rows), int64 (events,) and uint32
            (n - 1,), where time[rows[i]] is the start of interval i + 1.
        value: uint8 (n,), value of each interval.
        end: End of the last interval, cycles.
        every: Number of intervals from one sum of `index` to the next.
        kind_of: int64 (64,), kind of each value.
        weight: int64 (64,), weight of a cycle of each value.
        index: Result of `share_index`.
        begins: int64 (sums,), start of every `every`-th interval.
    """

    def __init__(
        self,
        start: NDArray[np.int64] | tuple[NDArray[np.int64], NDArray[np.uint32]],
        value: NDArray[np.uint8],
        end: int,
        every: int,
        kind_of: NDArray[np.int64],
        weight: NDArray[np.int64],
        index: NDArray[np.int64],
        begins: NDArray[np.int64],
    ) -> None:
        starts, time, rows = (None, *start) if isinstance(start, tuple) else (start, None, None)
        self._kinds = index.shape[1]
        self._shares = BoundCall(
            "shares", starts, time, rows, value, end, every, kind_of, weight, self._kinds, begins, index
        )  # fmt: skip

    def cycles(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the weighted cycles of each kind of value in each bin, int64 (bins, kinds).

        Args:
            edges: int64 (bins + 1,), edges of the bins, cycles, ascending.
        """
        out = np.empty((max(0, len(edges) - 1), self._kinds), np.int64)
        if len(out):
            self._shares(edges, out)
        return out


def stack_tops(cycles: NDArray[np.int64], order: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the upper edge of each kind in a stacked bar chart, float64 (k, bins), 0 = bottom, 1 = top.

    Args:
        cycles: int64 (bins, kinds), contiguous.
        order: int64 (k,), kinds from bottom to top.
        length: int64 (bins,), length of each bin in cycles, at least 1.
    """
    out = np.empty((len(order), len(length)))
    call("stack_tops", length, cycles.shape[1], cycles, order, out)
    return out


def draw_stack(
    tops: NDArray[np.float64],
    is_busy: NDArray[np.bool_],
    columns: NDArray[np.int64],
    colours: NDArray[np.uint32],
    background: int,
    rows: tuple[int, int],
    pixels: NDArray[np.uint32],
) -> None:
    """Draw one lane as a stacked bar chart.

    Args:
        tops: float64 (k, bins), upper edge of each kind (see `stack_tops`).
        is_busy: bool (k,), kinds that stay visible even if they are less than a pixel high.
        columns: int64 (bins + 1,), pixel column at which each bin begins, ascending.
        colours: uint32 (k,), colour of each kind.
        background: Colour above the stack.
        rows: First row of the bar, and the row after its last; may be outside the picture.
        pixels: uint32 (height, width), the picture, changed.
    """
    height, width = pixels.shape
    tops, columns = np.ascontiguousarray(tops), np.ascontiguousarray(columns, np.int64)
    call("draw_stack", colours, is_busy, columns, tops, background, *rows, width, height, pixels)


def hatch(pixels: NDArray[np.uint32], hatches: NDArray[np.uint8], top: int, cell: int) -> None:
    """Draw hatch patterns on pixels whose alpha value is 255 minus the number of a pattern; make all pixels opaque.

    Args:
        pixels: uint32 (height, width), the picture, changed.
        hatches: uint8 (n, 8), patterns of 8 rows; a set bit is a drawn pixel.
        top: Offset of the picture's first row within the pattern, device pixels.
        cell: Size of a pixel of a pattern, device pixels.
    """
    height, width = pixels.shape
    call("hatch", width, height, pixels, hatches, top, cell)
