"""States to lanes."""

from __future__ import annotations

import numpy as np

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
