"""The compiled passes of statistics.

`statistics.c` says what each does and which numpy code is its twin. Arrays must be contiguous and of the types named
here; sizes are taken from them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.core.library import CODES
from satview.core.links import thread_words
from satview.core.signatures import call

EventSums = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
Nested = tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int8], NDArray[np.int64], NDArray[np.bool_]]


def nesting(
    code: NDArray[np.uint16],
    cpu: NDArray[np.uint8],
    time: NDArray[np.int64],
    step: NDArray[np.int8],
    rows: NDArray[np.uint32],
    number: int,
    lost: NDArray[np.int64],
) -> Nested:
    """Return how the interrupts of a CPU are nested: rows, part, step, depth and whether an exit is stray, each (n,).

    Args:
        code: uint16 (events,).
        cpu: uint8 (events,).
        time: int64 (events,), cycles, ascending.
        step: int8 (32768,), of every code 1 for entries, -1 for exits, 0 for others.
        rows: uint32 (k,), ascending, the events of class INT.
        number: Of the CPU.
        lost: int64 (m,), when its losses end, cycles, ascending.
    """
    assert len(code) == len(cpu) == len(time)
    assert len(step) == CODES
    rows, lost, room = np.ascontiguousarray(rows), np.ascontiguousarray(lost), len(rows)
    found = (
        np.empty(room, np.uint32), np.empty(room, np.int64), np.empty(room, np.int8), np.empty(room, np.int64),
        np.empty(room, np.bool_),
    )  # fmt: skip
    count = call(
        "satview_nesting", code, cpu, time, len(code), step, rows, room, number, lost, len(lost), *found
    )  # fmt: skip
    assert count >= 0
    rows, part, steps, depth, is_stray = found
    return rows[:count].copy(), part[:count].copy(), steps[:count].copy(), depth[:count].copy(), is_stray[:count].copy()


def covered(
    start: NDArray[np.int64], end: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how much of each interval some ranges cover, int64 (n,).

    Args:
        start: int64 (ranges,), cycles, ascending.
        end: int64 (ranges,); none touches the next start.
        first: int64 (n,), where the intervals begin.
        last: int64 (n,), where they end.
    """
    assert len(start) == len(end)
    assert len(first) == len(last)
    start, end, first, last = map(np.ascontiguousarray, (start, end, first, last))
    out = np.empty(len(first), np.int64)
    call("satview_covered", start, end, len(start), np.empty(len(start) + 1, np.uint64), first, last, len(first), out)
    return out


def event_counts(
    code: NDArray[np.uint16], thread: NDArray[np.unsignedinteger], start: int, role: NDArray[np.uint8], sums: EventSums
) -> None:
    """Count the events of every code, note the first and the last of each, and count those of each thread by role.

    Args:
        code: uint16 (n,).
        thread: uint16 or uint32 (n,), rows of the thread table.
        start: Row of the first of these events.
        role: uint8 (32768,), of every code.
        sums: Of the events before, added to: int64 (32768,), how many, the first and the last row of every code, and
            int64 (threads, roles).
    """
    counts, first, last, by_thread = sums
    assert len(code) == len(thread)
    assert len(role) == len(counts) == len(first) == len(last) == CODES
    threads, roles = by_thread.shape
    narrow, wide = thread_words(thread)
    failed = call(
        "satview_event_counts", code, narrow, wide, len(code), start, role, roles, threads, counts, first, last,
        by_thread,
    )  # fmt: skip
    assert not failed, "events name threads that are not there"
