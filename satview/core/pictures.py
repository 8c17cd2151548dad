"""Compiled passes that make lanes from state events, and draw them: cells, pixels and shares of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.core.library import BoundCall, call

# Compiled passes that draw lanes: cells, pixels and shares of values; see pictures.c.
#
# A lane is a sequence of intervals, each with a value such as a thread state. Cells are equal spans of time, in which
# lanes are stored at several resolutions.


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
            start: int64 (n,), start of each interval, cycles, ascending; an interval ends at the start of the next.
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
        start: int64 (n,), start of each interval that overlaps the block, cycles, ascending.
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
        start: int64 (n,), start of each interval, cycles, ascending.
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


# Compiled passes that make lanes from state events; see lanes.c.


def run_slices(
    index: NDArray[np.uint32], start: NDArray[np.int64], code: NDArray[np.uint16], time: NDArray[np.int64],
    cpu: NDArray[np.uint8], thread: NDArray[np.unsignedinteger], value: NDArray[np.uint8], running: int, end: int,
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.bool_]] | None:  # fmt: skip
    """Return the runs of all threads, ignoring losses; None if `index` contradicts the threads of the events.

    Args:
        index: uint32, rows of the state events, grouped by thread.
        start: int64 (threads + 1,), index at which the rows of each thread begin.
        code: uint16 (events,).
        time: int64 (events,), cycles.
        cpu: uint8 (events,).
        thread: uint16 or uint32 (events,).
        value: uint8 (32768,), lane value by code.
        running: Lane value of running threads.
        end: End of runs that no event ends, cycles.

    Returns:
        For each run, (n,): row of the event that starts it, ascending; its end, cycles; whether it ends because its CPU
        runs another thread before the thread's next state.
    """
    start = np.ascontiguousarray(start, np.int64)
    threads, bits = len(start) - 1, np.zeros((len(code) + 63) // 64, np.uint64)
    opened, seen = np.full(threads, -1, np.int64), np.zeros(threads, np.int64)
    columns = np.empty(len(index), np.uint32), np.empty(len(index), np.int64), np.empty(len(index), np.bool_)
    slices = call("run_slices", index, start, code, value, running, time, cpu, np.ascontiguousarray(thread), end, bits,
                  opened, seen, *columns)  # fmt: skip
    if slices < 0:
        return None
    for column in columns:  # in place, as fewer than half of the states are runs
        column.resize(slices, refcheck=False)
    return columns


def whole_spans(
    index: NDArray[np.uint32], start: NDArray[np.int64], ends: NDArray[np.integer], code: NDArray[np.uint16],
    cpu: NDArray[np.uint8], value: NDArray[np.uint8], wanted: NDArray[np.bool_], left_out: NDArray[np.bool_],
    running: int, none: int, still_open: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]]:  # fmt: skip
    """Return the complete state intervals of threads, grouped by thread; adjacent intervals of one state are merged.

    Args:
        index: uint32 (n,), rows of the state events, grouped by thread.
        start: int64 (threads + 1,), index at which the rows of each thread begin.
        ends: uint32 (n,), row of the event that ends each state.
        code: uint16 (events,).
        cpu: uint8 (events,).
        value: uint8 (32768,), lane value by code.
        wanted: bool (256,), which lane values to return.
        left_out: bool (threads,), threads to skip.
        running: Lane value of running threads; adjacent runs are merged only if they are on the same CPU.
        none: Value in `ends` of incomplete states, which are left out.
        still_open: Value in `ends` of states that are open when the trace ends; they end at the number of events.

    Returns:
        Number of intervals of each thread, int64 (threads,); lane value, uint8, first row and end row, uint32, of each
        interval.
    """
    row, end = np.empty(len(index), np.uint32), np.empty(len(index), np.uint32)
    values, of_thread = np.empty(len(index), np.uint8), np.empty(len(start) - 1, np.int64)
    count = call("whole_spans", index, np.ascontiguousarray(start, np.int64), ends, code, cpu, value,
                 wanted.view(np.uint8), left_out.view(np.uint8), running, none, still_open, of_thread, values, row,
                 end)  # fmt: skip
    return of_thread, values[:count], row[:count], end[:count]  # views, as most states are selected


def cpu_states(
    rows: NDArray[np.uint32], ends: NDArray[np.int64], cpu: NDArray[np.uint8], time: NDArray[np.int64],
    thread: NDArray[np.unsignedinteger], number: int, value: NDArray[np.uint8], gap: int, end: int, count: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint32], NDArray[np.unsignedinteger]]:  # fmt: skip
    """Return the intervals of a CPU's lane, (n,): start in cycles, lane value, event (2**32 - 1 = none) and thread.

    Args:
        rows: uint32 (n,), events that start the runs of all CPUs, ascending.
        ends: int64 (n,), end of each run, cycles.
        cpu: uint8 (events,).
        time: int64 (events,), cycles.
        thread: uint16 or uint32 (events,).
        number: Number of the CPU.
        value: uint8 (threads,), lane value of each thread.
        gap: Lane value between runs.
        end: End of the trace, cycles.
        count: Number of runs on the CPU.
    """
    room = 2 * count
    start, values, event = np.empty(room, np.int64), np.empty(room, np.uint8), np.empty(room, np.uint32)
    ran: NDArray[np.unsignedinteger] = np.empty(room, thread.dtype)
    thread = np.ascontiguousarray(thread)
    size = call("cpu_states", rows, ends, cpu, time, thread, number, value, gap, end, start, values, event, ran)
    for column in (start, values, event, ran):  # in place, as there are usually fewer gaps than runs
        column.resize(size, refcheck=False)
    return start, values, event, ran


def cpu_timeline(
    lane: tuple[NDArray[np.int64], NDArray[np.int32]],
    known: tuple[NDArray[np.int64], NDArray[np.bool_]],
    entered: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    end: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return the intervals in which neither the runner (usually a thread) nor the interrupt of a CPU changes.

    Args:
        lane: Start of each interval of the CPU's lane, cycles, ascending; runner in each interval.
        known: Times at which a gap in the CPU's events begins or ends, ascending; whether events are complete from each
            time on.
        entered: Times at which interrupts are entered or left, ascending; nesting depth from then on; number of the
            interrupt if it is entered, -1 if it is left.
        end: End of the last interval; if it is not after the last start, that interval is one cycle long.

    Returns:
        Edges of the intervals, int64 (n + 1,), cycles; runner, int32 (n,); interrupt, int64 (n,), -1 = none.
    """
    room = len(lane[0]) + len(known[0]) + len(entered[0])
    edges, runner, interrupt = np.empty(room + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.int64)
    size = call("cpu_timeline", *lane, known[0], known[1].view(np.uint8), *entered, edges[:room], runner, interrupt)
    edges[size] = max(end, int(edges[size - 1]) + 1 if size else end)
    return edges[: size + 1], runner[:size], interrupt[:size]


def thread_states(
    rows: NDArray[np.uint32], code: NDArray[np.uint16], time: NDArray[np.int64], value: NDArray[np.uint8],
    destroyed: int, dead: int, absent: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:  # fmt: skip
    """Return the start times of a thread's states, int64 (n,), cycles, and their lane values, uint8 (n,).

    Args:
        rows: uint32 (n,), state events of the thread.
        code: uint16 (events,).
        time: int64 (events,), cycles.
        value: uint8 (32768,), lane value by code.
        destroyed: Code of the event that ends a thread.
        dead: Lane value that is replaced by `absent` directly after `destroyed`.
        absent: Lane value of a thread that does not exist.
    """
    start, values = np.empty(len(rows), np.int64), np.empty(len(rows), np.uint8)
    call("thread_states", rows, code, time, value, destroyed, dead, absent, start, values)
    return start, values


def process_states(
    time: NDArray[np.int64], value: NDArray[np.uint8], event: NDArray[np.uint32], lane_starts: NDArray[np.int64],
    kind: NDArray[np.uint8], shown: Sequence[int],
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint32]]:  # fmt: skip
    """Return the intervals of a process's lane, which combines the lanes of its threads.

    Args:
        time: int64 (n,), start of each interval of the threads, cycles; lane after lane, ascending within each lane.
        value: uint8 (n,), lane value of each interval.
        event: uint32 (n,), event of each interval.
        lane_starts: int64 (lanes + 1,), index at which each lane begins.
        kind: uint8 (256,), kind of each lane value, 0 to 4; at each time the highest kind of any thread is shown.
        shown: Lane value that represents each of the five kinds.

    Returns:
        Start, cycles, lane value and event of each interval, (k,).
    """
    count, lanes = len(time), len(lane_starts) - 1
    columns = np.empty(count, np.int64), np.empty(count, np.uint8), np.empty(count, np.uint32)
    scratch = np.empty(lanes, np.int64), np.empty(2 * lanes, np.int64)
    size = call("process_states", time, value, event, lane_starts, *scratch, kind, np.array(shown, np.uint8), *columns)
    start, values, events = columns
    return start[:size].copy(), values[:size].copy(), events[:size].copy()
