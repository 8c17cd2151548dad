"""Compiled passes that make lanes from state events; see lanes.c."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from satview.core.library import call


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
        Row of the event that starts each run, ascending; end of each run, cycles; whether the run ends because its CPU
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
    """Return the intervals of a CPU's lane: start, lane value, event (2**32 - 1 = none) and thread of each.

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
    """Return start, lane value and event of each interval of a process's lane, which combines the lanes of its threads.

    Args:
        time: int64 (n,), start of each interval of the threads, cycles; lane after lane, ascending within each lane.
        value: uint8 (n,), lane value of each interval.
        event: uint32 (n,), event of each interval.
        lane_starts: int64 (lanes + 1,), index at which each lane begins.
        kind: uint8 (256,), kind of each lane value, 0 to 4; at each time the highest kind of any thread is shown.
        shown: Lane value that represents each of the five kinds.
    """
    count, lanes = len(time), len(lane_starts) - 1
    columns = np.empty(count, np.int64), np.empty(count, np.uint8), np.empty(count, np.uint32)
    scratch = np.empty(lanes, np.int64), np.empty(2 * lanes, np.int64)
    size = call("process_states", time, value, event, lane_starts, *scratch, kind, np.array(shown, np.uint8), *columns)
    start, values, events = columns
    return start[:size].copy(), values[:size].copy(), events[:size].copy()
