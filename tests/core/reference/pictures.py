"""The passes of `core.pictures`: lanes from state events, their cells, pixels and shares of values."""

from __future__ import annotations

import numpy as np

from satview.events.states import SEEN_EVENT, SEEN_RUNNING

# Cells, pixels and shares of lanes.


_OPAQUE = 0xFF000000
_HATCH_PX = 8
_ONES = np.ones(256, np.int64)
_EVERY_VALUE = np.arange(256)


def event_cells(time, code, cpu, thread, origin, marks, int_class, class_shift, tables, offset, shift):
    """Return which cells of which lanes hold a mark."""
    seen, rows = np.zeros(int(offset[-1]), np.bool_), np.flatnonzero(marks[code])
    is_interrupt = code[rows] >> class_shift == int_class
    *of_threads, of_damage = tables.threads
    of_cpu, damage_of_cpu = tables.cpus
    lanes = [np.where(is_interrupt, -1, table[thread[rows]]) for table in of_threads if table is not None]
    lanes += [] if of_cpu is None else [np.where(is_interrupt, -1, of_cpu[cpu[rows]])]
    lanes += [] if of_damage is None else [of_damage[thread[rows]]]
    lanes += [] if damage_of_cpu is None else [damage_of_cpu[cpu[rows]]]
    if tables.interrupts is not None:
        lanes.append(np.where(is_interrupt, tables.interrupts[cpu[rows]], -1))
    for lane in lanes:
        is_on, lane_of = lane >= 0, lane[lane >= 0]
        cell = offset[lane_of] + ((time[rows[is_on]] - origin) >> shift[lane_of])
        seen[cell[(cell >= offset[lane_of]) & (cell < offset[lane_of + 1])]] = True
    return seen


class Raster:
    """Draws lanes, one row each."""

    def __init__(self, edges, busy, out):
        self._edges, self._busy, self._out = edges, busy, out

    def draw(self, row, start, value, end):
        """Write the value that covers most of each pixel."""
        values = np.unique(value)
        kind_of = np.searchsorted(values, _EVERY_VALUE)
        cover = np.diff(_cycles_before(self._edges, start, value, end, kind_of, _ONES, len(values)), axis=0)
        is_covered = cover.any(axis=1)
        is_busy = (cover[:, self._busy[values] != 0] > 0).any(axis=1)
        pixels = values[np.argmax(cover, axis=1)] | np.where(is_busy, SEEN_RUNNING, 0)
        self._out[row, is_covered] = pixels[is_covered]


def levels(start, value, end, origin, shift, kinds, seen, depth, *, halves_last):
    """Return coarse copies of a block of cells, and the sums and flags of the coarsest."""
    edges = origin + (np.arange(len(seen) + 1) << shift)
    cover = np.diff(_cycles_before(edges, start, value, end, kinds.kind_of, _ONES, len(kinds.value_of)), axis=0)
    cells = []
    for level in range(depth):
        is_busy = (cover[:, kinds.busy != 0] > 0).any(axis=1)
        flags = np.where(seen, SEEN_EVENT, 0) | np.where(is_busy, SEEN_RUNNING, 0)
        cells.append((kinds.value_of[np.argmax(cover, axis=1)] | flags).astype(np.uint8))
        if level + 1 < depth or halves_last:
            pairs = np.arange(0, len(seen), 2)
            cover, seen = np.add.reduceat(cover, pairs), np.logical_or.reduceat(seen, pairs)
    return cells, cover.T, seen


def share_index(start, value, every, kind_of, weight, kinds):
    """Return how long a lane has each kind of value up to every `every`-th interval."""
    if not len(start):
        return np.empty((0, kinds), np.int64)
    return _cycles_before(start, start, value, int(start[-1]), kind_of, weight, kinds)[::every]


class ShareSums:
    """The sums of one lane; the index is not needed."""

    def __init__(self, start, value, end, _every, kind_of, weight, index, begins):
        if isinstance(start, tuple):
            time, rows = start
            start = np.append(begins[:1], time[rows])
        self._lane = start, value, end, kind_of, weight, index.shape[1]

    def cycles(self, edges):
        """Return how long a lane has each kind of value in each bin."""
        if len(edges) < 2:
            return np.zeros((0, self._lane[-1]), np.int64)
        return np.diff(_cycles_before(edges, *self._lane), axis=0)


def _cycles_before(moments, start, value, end, kind_of, weight, kinds):
    """Return how long a lane has had each kind of value before each moment, int64 (moments, kinds)."""
    out = np.zeros((len(moments), kinds), np.int64)
    if not len(start):
        return out
    inside = np.clip(moments, start[0], max(end, int(start[0])))
    at = np.maximum(np.searchsorted(start, inside, side="right") - 1, 0)
    length, kind = np.diff(start, append=end) * weight[value], kind_of[value]
    for number in range(kinds):
        before = np.append(0, np.cumsum(np.where(kind == number, length, 0)))[at]
        out[:, number] = before + np.where(kind[at] == number, (inside - start[at]) * weight[value[at]], 0)
    return out


def stack_tops(cycles, order, length):
    """Return where each kind ends in each bin of a stack."""
    return np.cumsum(cycles[:, order], axis=1).T / length


def draw_stack(tops, is_busy, columns, colours, background, rows, pixels):
    """Draw one lane as a stack of shares."""
    top, bottom = rows
    first, last = max(0, top), min(len(pixels), bottom)
    heights = np.floor(tops * (bottom - top) + 0.5)
    # Something that ran is never nothing: a dot where it is too little for a pixel.
    if is_busy.any():
        bars = np.flatnonzero(is_busy)
        shares = np.diff(tops, axis=0, prepend=0)[bars]
        largest = bars[np.argmax(shares, axis=0)]
        unseen = np.flatnonzero((shares.sum(axis=0) > 0) & (heights[bars[-1]] < 1))
        is_above = np.arange(len(heights))[:, None] >= largest[unseen]
        heights[:, unseen] = np.where(is_above, np.maximum(heights[:, unseen], 1), heights[:, unseen])
    level = bottom - 0.5 - np.arange(first, last)  # middle of every row above the bottom
    which = (heights[None, :, :] < level[:, None, None]).sum(axis=1)
    drawn = np.append(colours, np.uint32(background))[which]
    pixels[first:last, int(columns[0]) : int(columns[-1])] = np.repeat(drawn, np.diff(columns), axis=1)


def hatch(pixels, hatches, top, cell):
    """Hatch the pixels of a picture."""
    flat, width = pixels.reshape(-1), pixels.shape[1]
    hatched = np.flatnonzero(flat < np.uint32(_OPAQUE))
    colour, (y, x) = flat[hatched], np.divmod(hatched, width)
    number = np.minimum(255 - (colour >> 24), len(hatches)) % len(hatches)  # of an unknown one: none
    bits = hatches[number, (y + top) // cell % _HATCH_PX]
    inked = (bits >> (x // cell % _HATCH_PX).astype(np.uint8) & 1).astype(np.bool_)
    parts = np.stack([colour >> shift & 255 for shift in (16, 8, 0)]).astype(np.int64)
    is_light = np.array([299, 587, 114]) @ parts > 110_000
    ink = np.where(is_light, parts * 9 // 16, parts + (255 - parts) * 7 // 16)
    red, green, blue = np.where(inked, ink, parts).astype(np.uint32)
    flat[hatched] = np.uint32(_OPAQUE) | red << np.uint32(16) | green << np.uint32(8) | blue


# States to lanes.


NO_EVENT = 2**32 - 1


def run_slices(*_arguments):
    """Return None, as for an index of states that is not by the threads of events: the caller's numpy code does it."""


def whole_spans(index, start, ends, code, cpu, value, wanted, left_out, running, none, still_open):
    """Return the wanted states that end, neighbours of a thread and state as one, on one CPU if they run."""
    values = value[code[index]]
    owner = np.searchsorted(start, np.arange(len(index)), side="right") - 1
    keep = np.flatnonzero(wanted[values] & (ends != none) & ~left_out[owner])
    thread, row, values = owner[keep], index[keep].astype(np.int64), values[keep]
    end = np.where(ends[keep] == still_open, len(code), ends[keep].astype(np.int64))
    goes_on = (thread[1:] == thread[:-1]) & (values[1:] == values[:-1]) & (end[:-1] == row[1:])
    goes_on &= (values[1:] != running) | (cpu[row[1:]] == cpu[row[:-1]])
    first, last = np.append(True, ~goes_on)[: len(row)], np.append(~goes_on, True)[: len(row)]
    of_thread = np.bincount(thread[first], minlength=len(start) - 1)
    return of_thread, values[first], row[first].astype(np.uint32), end[last].astype(np.uint32)


def cpu_states(rows, ends, cpu, time, thread, number, value, gap, end, count):
    """Return who ran on a CPU, and the gaps between."""
    mine = cpu[rows] == number
    rows, ends = rows[mine], ends[mine]
    start, ran = time[rows], thread[rows]
    gaps = np.flatnonzero(ends < np.append(start[1:], end)) if len(rows) else np.empty(0, np.intp)
    start, values = np.insert(start, gaps + 1, ends[gaps]), np.insert(value[ran], gaps + 1, gap)
    event, ran = np.insert(rows, gaps + 1, NO_EVENT), np.insert(ran, gaps + 1, 0)
    is_last = np.append(start[1:] > start[:-1], True)[: len(start)]  # of those that begin in one cycle
    return start[is_last], values[is_last], event[is_last], ran[is_last]


def cpu_timeline(lane, known, entered, end):
    """Return who had a CPU when, and in which interrupt it was."""
    edges = np.unique(np.concatenate((lane[0], known[0], entered[0])))
    with_end = np.append(edges, max([end, *(edges + 1)]))

    def last(part):
        return part[1][np.maximum(np.searchsorted(part[0], edges, side="right") - 1, 0)]

    runner = last(lane) if len(lane[0]) else np.zeros(len(edges), np.int64)
    if not len(entered[0]):
        return with_end, runner, np.full(len(edges), -1)
    time, depth, number = entered
    current, by_depth = [], dict.fromkeys(range(1, 65), max(0, number[0])) | {0: -1}
    for level, entry in zip(np.clip(depth, 0, 64).tolist(), number.tolist(), strict=True):
        by_depth[level] = entry if level and entry >= 0 else by_depth[level]
        current.append(by_depth[level])
    position = np.searchsorted(time, edges, side="right") - 1
    interrupt = np.where(position >= 0, np.array(current)[np.maximum(position, 0)], -1)
    is_known = np.append(True, known[1])[np.searchsorted(known[0], edges, side="right")]
    return with_end, runner, np.where(is_known, interrupt, -1)


def thread_states(rows, code, time, value, destroyed, dead, absent):
    """Return when a thread entered its states, and which they are."""
    values = value[code[rows]]
    is_behind = np.append(False, code[rows][:-1] == destroyed)[: len(rows)]
    values[(values == dead) & is_behind] = absent
    return time[rows], values


def process_states(time, value, event, first, kind, shown):
    """Return what counts for most among the states of a process's threads, counting threads of each kind."""
    before = np.append(0, value[:-1])[: len(value)]
    is_first = np.isin(np.arange(len(time)), first)
    order = np.argsort(time, kind="stable")
    most = np.zeros(len(time), np.uint8)
    for rank in range(1, len(shown)):
        change = (kind[value] == rank).astype(np.int64) - ((kind[before] == rank) & ~is_first)
        most[np.cumsum(change[order]) > 0] = rank
    start, values, events = time[order], np.array(shown, np.uint8)[most], event[order]
    is_last = np.append(start[1:] > start[:-1], True)[: len(start)]
    start, values, events = start[is_last], values[is_last], events[is_last]
    is_new = np.append(True, values[1:] != values[:-1])[: len(start)]
    return start[is_new], values[is_new], events[is_new]
