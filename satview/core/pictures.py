"""The compiled passes of pictures: cells, pixels and shares of lanes; see pictures.c."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.core.library import BoundCall, call


@dataclass(frozen=True, slots=True)
class CellTables:
    """Positions of the lanes that events are on, -1 for none; None where there is no such lane.

    Attributes:
        threads: int32 (threads,), three of them: lanes of threads, of processes, of damage.
        cpus: int32 (256,), two of them: lanes of CPUs, of damage.
        interrupts: int32 (256,), by CPU.
    """

    threads: tuple[NDArray[np.int32] | None, NDArray[np.int32] | None, NDArray[np.int32] | None]
    cpus: tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]
    interrupts: NDArray[np.int32] | None


def event_cells(
    time: NDArray[np.int64], code: NDArray[np.uint16], cpu: NDArray[np.uint8], thread: NDArray[np.unsignedinteger],
    origin: int, marks: NDArray[np.bool_], int_class: int, class_shift: int, tables: CellTables,
    offset: NDArray[np.int64], shift: NDArray[np.int64],
) -> NDArray[np.bool_]:  # fmt: skip
    """Return which cells of which lanes hold a mark, bool (cells of all lanes,).

    Args:
        time: int64 (n,), of the events, ascending.
        code: uint16 (n,).
        cpu: uint8 (n,).
        thread: uint16 or uint32 (n,).
        origin: Begin of the first cell, cycles.
        marks: bool (32768,), which codes are marks.
        int_class: Internal class of interrupts.
        class_shift: Bit position of the class in a code.
        tables: The lanes.
        offset: int64 (lanes + 1,), where the cells of each lane begin, and their number.
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
    """Draws lanes, one row each; their common data is checked and prepared once.

    Args:
        edges: int64 (width + 1,), cycles at which pixels begin, strictly ascending.
        busy: uint8 (64,), which values mean that something runs.
        out: uint8 (lanes, width), zeros, written by `draw`.
    """

    def __init__(self, edges: NDArray[np.int64], busy: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        self._raster, self._out = BoundCall("raster", edges, busy), out

    def draw(self, row: int, start: NDArray[np.int64], value: NDArray[np.uint8], end: int) -> None:
        """Write the value that covers most of each pixel, with a flag on pixels in which anything ran.

        Args:
            row: Row of `out`.
            start: int64 (n,), when intervals begin, ascending; each ends where the next begins.
            value: uint8 (n,).
            end: Where the last one ends, cycles.
        """
        self._raster(start, value, end, self._out[row])


@dataclass(frozen=True, slots=True)
class LevelKinds:
    """The values of one lane.

    Attributes:
        value_of: uint8 (k,), the values, ascending.
        kind_of: int64 (64,), index of each value in `value_of`.
        busy: uint8 (k,), which of them mean that something runs.
    """

    value_of: NDArray[np.uint8]
    kind_of: NDArray[np.int64]
    busy: NDArray[np.uint8]


def levels(
    start: NDArray[np.int64], value: NDArray[np.uint8], end: int, origin: int, shift: int, kinds: LevelKinds,
    seen: NDArray[np.bool_], depth: int, *, halves_last: bool,
) -> tuple[list[NDArray[np.uint8]], NDArray[np.int64], NDArray[np.bool_]]:  # fmt: skip
    """Return coarse copies of a block of cells of one lane, and the sums and flags of the coarsest.

    Args:
        start: int64 (n,), when the intervals that reach into the block begin, ascending.
        value: uint8 (n,).
        end: Where the last one ends, cycles.
        origin: Begin of the block, cycles.
        shift: Cells are 2^shift cycles.
        kinds: The values of the lane.
        seen: bool (cells,), the lane has an event there; not changed.
        depth: How many levels.
        halves_last: Return sums and flags of one level more.

    Returns:
        uint8 arrays, the finest first; int64 (kinds, cells of the coarsest); bool (the same cells).
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
    """Return weighted cycles of each kind of value up to every `every`-th interval of a lane, int64 (marks, kinds).

    Args:
        start: int64 (n,), when intervals begin, ascending.
        value: uint8 (n,).
        every: How many intervals from one mark to the next.
        kind_of: int64 (64,), kind of each value.
        weight: int64 (64,), weight of a cycle of each value.
        kinds: Number of kinds.
    """
    marks = -(-len(start) // every)
    out = np.empty((marks, kinds), np.int64)
    call("share_index", start, value, every, kind_of, weight, kinds, out)
    return out


class ShareSums:
    """The sums of one lane, to be read for any bins; its data is checked and prepared once.

    Args:
        start: int64 (n,), when intervals begin, ascending; or (time, rows): interval i + 1 begins at time[rows[i]],
            int64 (events,) and uint32 (n - 1,), all of which are rows of it.
        value: uint8 (n,).
        end: Where the last one ends, cycles.
        every: Interval count between marks of the index.
        kind_of: int64 (64,), kind of each value.
        weight: int64 (64,), weight of a cycle of each value.
        index: Result of `share_index`.
        begins: int64 (marks,), `start` of every `every`-th interval.
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
        """Return how long a lane has each kind of value in each bin, int64 (bins, kinds), cycles times weight.

        Args:
            edges: int64 (bins + 1,), cycles, ascending.
        """
        out = np.empty((max(0, len(edges) - 1), self._kinds), np.int64)
        if len(out):
            self._shares(edges, out)
        return out


def stack_tops(cycles: NDArray[np.int64], order: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return where each kind ends in each bin of a stack, float64 (k, bins), 0 = bottom, 1 = top.

    Args:
        cycles: int64 (bins, kinds), contiguous.
        order: int64 (k,), kinds from bottom to top.
        length: int64 (bins,), cycles of each bin, at least 1.
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
    """Draw one lane as a stack of shares.

    Args:
        tops: float64 (k, bins), where each kind ends, 0 = bottom, 1 = top.
        is_busy: bool (k,), kinds that must stay visible even if they are less than a pixel high.
        columns: int64 (bins + 1,), ascending.
        colours: uint32 (k,), colour of each kind.
        background: Colour where no kind is.
        rows: First row of the bar and the one after its last; may be outside of the picture.
        pixels: uint32 (height, width), changed.
    """
    height, width = pixels.shape
    tops, columns = np.ascontiguousarray(tops), np.ascontiguousarray(columns, np.int64)
    call("draw_stack", colours, is_busy, columns, tops, background, *rows, width, height, pixels)


def hatch(pixels: NDArray[np.uint32], hatches: NDArray[np.uint8], top: int, cell: int) -> None:
    """Hatch the pixels whose highest byte is 255 minus the number of a hatch; afterwards all pixels are opaque.

    Args:
        pixels: uint32 (height, width), changed.
        hatches: uint8 (n, 8), a bit for each pixel that gets ink, 8 rows each.
        top: Distance of the picture below the row where hatches begin, device pixels.
        cell: Size of one hatch pixel in device pixels.
    """
    height, width = pixels.shape
    call("hatch", width, height, pixels, hatches, top, cell)
