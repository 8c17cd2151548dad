"""The compiled passes from states to lanes; lanes.c says what each does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from satview.core.library import call


def run_slices(
    index: NDArray[np.uint32], start: NDArray[np.int64], code: NDArray[np.uint16], time: NDArray[np.int64],
    cpu: NDArray[np.uint8], thread: NDArray[np.unsignedinteger], value: NDArray[np.uint8], running: int, end: int,
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.bool_]] | None:  # fmt: skip
    """Return the rows of events at which threads begin to run, ascending, and the end of each run, ignoring losses.

    The third column, bool, says of which runs the CPU runs another thread before the thread's next state. None if the
    number of states by thread differs from the number of state events.

    Args:
        index: uint32, rows of states, by thread.
        start: int64 (threads + 1,), where each thread's begin.
        code: uint16 (events,).
        time: int64 (events,), cycles.
        cpu: uint8 (events,).
        thread: uint16 or uint32 (events,).
        value: uint8 (32768,), lane value by code.
        running: Lane value of running threads.
        end: End of runs that no event ends, cycles.
    """
    start = np.ascontiguousarray(start, np.int64)
    threads, bits = len(start) - 1, np.zeros((len(code) + 63) // 64, np.uint64)
    opened, seen = np.full(threads, -1, np.int64), np.zeros(threads, np.int64)
    columns = np.empty(len(index), np.uint32), np.empty(len(index), np.int64), np.empty(len(index), np.bool_)
    slices = call("run_slices", index, start, code, value, running, time, cpu, np.ascontiguousarray(thread), end, bits,
                  opened, seen, *columns)  # fmt: skip
    if slices < 0:
        return None
    for column in columns:  # in place: not half of the states are runs
        column.resize(slices, refcheck=False)
    return columns


def whole_spans(
    index: NDArray[np.uint32], start: NDArray[np.int64], ends: NDArray[np.integer], code: NDArray[np.uint16],
    cpu: NDArray[np.uint8], value: NDArray[np.uint8], wanted: NDArray[np.bool_], left_out: NDArray[np.bool_],
    running: int, none: int, still_open: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]]:  # fmt: skip
    """Return the complete states of threads, by thread, with equal neighbours merged into one.

    Args:
        index: uint32 (n,), rows of states, by thread.
        start: int64 (threads + 1,), where each thread's begin.
        ends: uint32 (n,), the event that ends each.
        code: uint16 (events,).
        cpu: uint8 (events,).
        value: uint8 (32768,), lane value by code.
        wanted: bool (256,), by value.
        left_out: bool (threads,), threads to skip.
        running: Lane value of running threads; such neighbours are merged only on one CPU.
        none: Value of `ends` that marks incomplete states.
        still_open: Value of `ends` for states that are open when the trace ends; it becomes the number of events.

    Returns:
        int64 (threads,), number of intervals of each thread; uint8 value, uint32 first row, uint32 end row; (k,) each.
    """
    row, end = np.empty(len(index), np.uint32), np.empty(len(index), np.uint32)
    values, of_thread = np.empty(len(index), np.uint8), np.empty(len(start) - 1, np.int64)
    count = call("whole_spans", index, np.ascontiguousarray(start, np.int64), ends, code, cpu, value,
                 wanted.view(np.uint8), left_out.view(np.uint8), running, none, still_open, of_thread, values, row,
                 end)  # fmt: skip
    return of_thread, values[:count], row[:count], end[:count]  # most states are wanted


def cpu_states(
    rows: NDArray[np.uint32], ends: NDArray[np.int64], cpu: NDArray[np.uint8], time: NDArray[np.int64],
    thread: NDArray[np.unsignedinteger], number: int, value: NDArray[np.uint8], gap: int, end: int, count: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint32], NDArray[np.unsignedinteger]]:  # fmt: skip
    """Return the threads that ran on a CPU: begin of each interval, its value, event (2**32 - 1: none) and thread.

    Args:
        rows: uint32 (n,), events by which run slices of all CPUs begin, ascending.
        ends: int64 (n,), when they end.
        cpu: uint8 (events,).
        time: int64 (events,), cycles.
        thread: uint16 or uint32 (events,).
        number: Number of the CPU.
        value: uint8 (threads,), lane value of each thread.
        gap: Lane value between slices.
        end: End of the trace, cycles.
        count: How many of the slices are of the CPU.
    """
    room = 2 * count
    start, values, event = np.empty(room, np.int64), np.empty(room, np.uint8), np.empty(room, np.uint32)
    ran: NDArray[np.unsignedinteger] = np.empty(room, thread.dtype)
    thread = np.ascontiguousarray(thread)
    size = call("cpu_states", rows, ends, cpu, time, thread, number, value, gap, end, start, values, event, ran)
    for column in (start, values, event, ran):  # in place: there are seldom as many gaps as slices
        column.resize(size, refcheck=False)
    return start, values, event, ran


def cpu_timeline(
    lane: tuple[NDArray[np.int64], NDArray[np.int32]],
    known: tuple[NDArray[np.int64], NDArray[np.bool_]],
    entered: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    end: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return who had a CPU when: edges int64 (n + 1,), cycles, runners int32 (n,), interrupts int64 (n,); -1 = none.

    Args:
        lane: Begins of the CPU's intervals, cycles, ascending, and their runners.
        known: Times at which a gap in the events of the CPU begins or ends, ascending; whether they are complete from
            then on.
        entered: Times at which interrupts are entered or left, ascending; nesting depth from then on; number of the
            interrupt if it is entered, -1 if it is left.
        end: The last edge; if it is not later than the others, the last edge is one cycle after them.
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
    """Return when a thread entered its states, int64 (n,), cycles, and their lane values, uint8 (n,).

    Args:
        rows: uint32 (n,), its state events.
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
    """Return when a process changed its state, the state and the event; the highest kind of its threads decides.

    Args:
        time: int64 (n,), cycles, of its threads' lanes, one lane after the other, each ascending.
        value: uint8 (n,), lane values.
        event: uint32 (n,).
        lane_starts: int64 (lanes + 1,), where each lane begins.
        kind: uint8 (256,), kind of every lane value, 0 to 4; the highest one wins.
        shown: Lane value of each of the five kinds.
    """
    count, lanes = len(time), len(lane_starts) - 1
    columns = np.empty(count, np.int64), np.empty(count, np.uint8), np.empty(count, np.uint32)
    scratch = np.empty(lanes, np.int64), np.empty(2 * lanes, np.int64)
    size = call("process_states", time, value, event, lane_starts, *scratch, kind, np.array(shown, np.uint8), *columns)
    start, values, events = columns
    return start[:size].copy(), values[:size].copy(), events[:size].copy()
