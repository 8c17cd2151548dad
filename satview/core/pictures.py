"""The compiled passes of pictures: cells, pixels and shares of lanes.

`passes.c` says what each does and which numpy code is its twin. Arrays must be contiguous and of the types named here;
sizes are taken from them.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core.library import CODES, CPUS, I64, POINTER, address, function

_BYTES: Final = 256


class _Cells(ctypes.Structure):
    """`satview_cells` of passes.c."""

    _fields_ = [
        *((name, POINTER) for name in ("time", "code", "cpu", "narrow", "wide")), ("count", I64), ("origin", I64),
        ("marks", POINTER), ("int_class", I64), ("class_shift", I64), ("threads", I64),
        ("by_thread", POINTER * 3), ("by_cpu", POINTER * 2), ("by_interrupt", POINTER), ("positions", I64),
        ("cells", POINTER), ("cell_count", I64), ("seen", POINTER),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class CellTables:
    """Which lane events are on, by its position, -1 for none; None where there is no such lane.

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
        origin: Where the cells begin, cycles.
        marks: bool (32768,), which codes are marks.
        int_class: Internal class of interrupts.
        class_shift: Where it is in a code.
        tables: The lanes.
        offset: int64 (lanes + 1,), where the cells of each lane begin, and their number.
        shift: int64 (lanes,), cells of a lane are 2^shift cycles.
    """
    threads = next((len(table) for table in tables.threads if table is not None), 0)
    assert len(time) == len(code) == len(cpu) == len(thread)
    assert len(marks) == CODES
    assert len(offset) == len(shift) + 1
    assert all(len(table) == threads for table in tables.threads if table is not None)
    assert all(len(table) == _BYTES for table in (*tables.cpus, tables.interrupts) if table is not None)
    count = int(offset[-1])
    seen = np.zeros(count + 1, np.uint8)
    narrow = thread.dtype == np.uint16
    cells = np.array([(count, *offset[:-1]), (count + 1, *offset[1:]), (63, *shift)], np.int64).T.copy()
    columns = [np.ascontiguousarray(column) for column in (time, code, cpu, thread, marks)]
    time_at, code_at, cpu_at, thread_at, marks_at = (column.ctypes.data for column in columns)

    request = _Cells(
        time_at, code_at, cpu_at, thread_at if narrow else None, None if narrow else thread_at, len(time), origin,
        marks_at, int_class, class_shift, threads, (POINTER * 3)(*map(address, tables.threads)),
        (POINTER * 2)(*map(address, tables.cpus)), address(tables.interrupts), len(shift), cells.ctypes.data, count,
        seen.ctypes.data,
    )  # fmt: skip
    failed = function("satview_event_cells")(ctypes.byref(request))
    assert not failed, "a table names a lane that is not there"
    return seen[:count].view(np.bool_)


class Raster:
    """Draws lanes, one row each; what all of them share is checked and found once.

    Args:
        edges: int64 (width + 1,), where pixels begin, strictly ascending.
        busy: uint8 (64,), which values are of something that runs.
        out: uint8 (lanes, width), zeros.
    """

    def __init__(self, edges: NDArray[np.int64], busy: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        assert len(edges) == out.shape[1] + 1
        assert len(busy) >= CPUS
        assert out.flags.c_contiguous
        self._kept = edges, busy, out  # the library has their addresses only
        self._call = function("satview_raster")
        self._edges, self._width, self._busy = address(edges), I64(out.shape[1]), address(busy)
        first: int = out.__array_interface__["data"][0]
        self._rows = range(first, first + out.size, max(1, out.shape[1]))

    def draw(self, row: int, start: NDArray[np.int64], value: NDArray[np.uint8], end: int) -> None:
        """Write the value that covers most of each pixel, with the flag of those in which anything ran.

        Args:
            row: Of `out`.
            start: int64 (n,), when intervals begin, ascending; each ends where the next begins.
            value: uint8 (n,).
            end: Where the last one ends, cycles.
        """
        assert len(start) == len(value)
        assert start.flags.c_contiguous
        self._call(
            address(start), address(value), I64(len(start)), I64(end),
            self._edges, self._width, self._busy, POINTER(self._rows[row]),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LevelKinds:
    """The values of one lane.

    Attributes:
        value_of: uint8 (k,), ascending.
        kind_of: int64 (64,), where each value is among them.
        busy: uint8 (k,), which of them are of something that runs.
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
        origin: Where the block begins, cycles.
        shift: Cells are 2^shift cycles.
        kinds: The values of the lane.
        seen: bool (cells,), the lane has an event there; not changed.
        depth: How many levels.
        halves_last: Give sums and flags of one level more.

    Returns:
        uint8 arrays, the finest first; int64 (kinds, cells of the coarsest); bool (the same cells).
    """
    cells, sizes = len(seen), [len(seen)]
    while len(sizes) < depth + halves_last:
        sizes.append((sizes[-1] + 1) // 2)
    cover, flags = np.empty((cells, len(kinds.value_of)), np.int64), seen.astype(np.uint8)
    out = np.empty(sum(sizes[:depth]), np.uint8)
    written = function("satview_levels")(
        address(start), address(value), I64(len(start)), I64(end), I64(origin),
        I64(shift), I64(cells), address(kinds.kind_of), address(kinds.value_of),
        address(kinds.busy), I64(len(kinds.value_of)), address(cover),
        address(flags), I64(depth), I64(halves_last), address(out), I64(len(out)),
    )  # fmt: skip
    assert written == len(out)
    last = sizes[-1]
    return np.split(out, np.cumsum(sizes[: depth - 1])), cover.ravel()[: last * len(kinds.value_of)].reshape(
        last, -1).T, flags[:last].view(np.bool_)  # fmt: skip


def share_index(
    start: NDArray[np.int64],
    value: NDArray[np.uint8],
    every: int,
    kind_of: NDArray[np.int64],
    weight: NDArray[np.int64],
    kinds: int,
) -> NDArray[np.int64]:
    """Return how long a lane has each kind of value up to every `every`-th interval, int64 (marks, kinds).

    Args:
        start: int64 (n,), when intervals begin, ascending.
        value: uint8 (n,).
        every: How many intervals from one mark to the next.
        kind_of: int64 (64,), kind of each value.
        weight: int64 (64,), what a cycle of each value counts.
        kinds: How many kinds there are.
    """
    assert len(start) == len(value)
    assert len(kind_of) == len(weight) == CPUS
    marks = -(-len(start) // every)
    out = np.empty((marks, kinds), np.int64)
    written = function("satview_share_index")(
        address(start), address(value), I64(len(start)), I64(every),
        address(kind_of), address(weight), I64(kinds), address(out),
        I64(out.size),
    )  # fmt: skip
    assert written == out.size
    return out


class ShareSums:
    """The sums of one lane, ready to be read for any bins: what does not change is checked and found once.

    Args:
        start: int64 (n,), when intervals begin, ascending; or (time, rows): interval i + 1 begins at time[rows[i]],
            int64 (events,) and uint32 (n - 1,), all of which are rows of it.
        value: uint8 (n,).
        end: Where the last one ends, cycles.
        every: Of the index.
        kind_of: int64 (64,), kind of each value.
        weight: int64 (64,), what a cycle of each value counts.
        index: As `share_index` returns it.
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
        assert len(value) == (len(rows) + 1 if rows is not None else len(start))
        assert rows is None or (rows.flags.c_contiguous and int(rows.max(initial=0)) < len(start[0]))
        assert len(kind_of) == len(weight) == CPUS
        assert len(begins) == len(index)
        self._columns = start, value, kind_of, weight, index, begins  # the library has their addresses only
        self._kinds = index.shape[1]
        self._call = function("satview_shares")
        self._lane = (
            address(starts), address(time), address(rows), address(value), I64(len(value)), I64(end), I64(every),
            address(kind_of), address(weight), I64(self._kinds), address(index), address(begins), I64(len(index)),
        )  # fmt: skip

    def cycles(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how long a lane has each kind of value in each bin, int64 (bins, kinds), cycles times weight.

        Args:
            edges: int64 (bins + 1,), cycles, ascending.
        """
        bins = max(0, len(edges) - 1)
        out = np.empty((bins, self._kinds), np.int64)
        failed = self._call(*self._lane, address(edges), I64(bins), address(out))
        assert not failed
        return out


def stack_tops(cycles: NDArray[np.int64], order: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return where each kind ends in each bin of a stack, float64 (k, bins), 0 = bottom, 1 = top.

    Args:
        cycles: int64 (bins, kinds), contiguous.
        order: int64 (k,), kinds from bottom to top.
        length: int64 (bins,), cycles of each bin, at least 1.
    """
    bins, kinds = cycles.shape
    assert len(length) == bins
    assert cycles.flags.c_contiguous
    out = np.empty((len(order), bins))
    failed = function("satview_stack_tops")(
        address(cycles), I64(kinds), I64(bins), address(order), I64(len(order)), address(length), address(out)
    )
    assert not failed
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
        is_busy: bool (k,), of these something must be seen even where it is less than a pixel high.
        columns: int64 (bins + 1,), ascending.
        colours: uint32 (k,).
        background: Of what no kind covers.
        rows: First row of the bar and the one behind its last; may be outside of the picture.
        pixels: uint32 (height, width), changed.
    """
    kinds, bins = tops.shape
    assert len(is_busy) == len(colours) == kinds
    assert len(columns) == bins + 1
    assert pixels.flags.c_contiguous
    tops, columns = np.ascontiguousarray(tops), np.ascontiguousarray(columns, np.int64)
    failed = function("satview_draw_stack")(
        address(tops), I64(kinds), I64(bins), address(is_busy),
        address(columns), address(colours), ctypes.c_uint32(background), I64(rows[0]),
        I64(rows[1]), address(pixels), I64(pixels.shape[1]), I64(pixels.shape[0]),
    )  # fmt: skip
    assert not failed


def hatch(pixels: NDArray[np.uint32], hatches: NDArray[np.uint8], top: int, cell: int) -> None:
    """Hatch the pixels of a picture whose highest byte is 255 less the number of a hatch; all are opaque then.

    Args:
        pixels: uint32 (height, width), changed.
        hatches: uint8 (n, 8), a bit for each pixel that gets ink, 8 rows each.
        top: How far the picture is below the row where hatches begin, device pixels.
        cell: Device pixels of a pixel of a hatch.
    """
    assert pixels.flags.c_contiguous
    assert hatches.shape[1] == 8
    height, width = pixels.shape
    failed = function("satview_hatch")(
        address(pixels), I64(width), I64(height), address(hatches), I64(len(hatches)), I64(top), I64(cell)
    )
    assert not failed
