"""Time order: sorts only where time goes back, and groups state events by thread.

Traces are almost in order already: CPUs write into one buffer a few microseconds apart, and only an overrun or a ring
dump moves whole blocks. So rows between two positions where all before is not later than all after are left alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base import column_room
from satview.base.ranges import numbers_of
from satview.core import loading, ordering
from satview.store.tables import never_decreases

# Events looked at together: what numpy makes in between stays in the second-level cache.
_CHUNK: Final = 1 << 17
_MOSTLY: Final = 8  # of so many rows all but one move: as where CPUs log into buffers of their own


def disordered_rows(time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows that a stable sort by time could move, ascending; none if time never decreases.

    Returns:
        int64 (n,).
    """
    if never_decreases(time):  # as mostly, which takes an eighth of finding out where not
        return np.empty(0, np.int64)
    return ordering.disordered(time)


def time_order(
    time: NDArray[np.int64], cpu: NDArray[np.uint8], positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return (positions, rows): row `rows[i]` is event `positions[i]` in time order; None if all is in order.

    Rows of equal time keep their order. Positions that cannot change are not listed.

    Args:
        time: int64 (n,), cycles.
        cpu: uint8 (n,): where each CPU logs into buffers of its own, its events are in order.
        positions: `disordered_rows(time)`.
    """
    if not len(positions):
        return None
    # A row that is not later than anything after it, nor earlier than anything before it, stays where it is; so the
    # others fill the positions left among themselves.
    first, end = int(positions[0]), int(positions[-1]) + 1
    if _MOSTLY * len(positions) > (_MOSTLY - 1) * (end - first):
        # The few in between that stay come out where they are: a range is moved at once.
        positions = np.arange(first, end)
    rows = ordering.merged(time, cpu, positions)
    if rows is None:
        rows = positions[ordering.time_order(time[positions])]
    return positions, rows


def rows_of_shared_time(
    time: NDArray[np.int64], some: NDArray[np.int64], moves: tuple[NDArray[np.int64], NDArray[np.int64]] | None
) -> NDArray[np.int64]:
    """Return the rows that have the time of one of some rows, these included, unless that row has it alone; ascending.

    Args:
        time: int64, (n,), in any order.
        some: int64 (k,), ascending.
        moves: As `time_order` gives them.
    """
    if moves is not None:
        rows = rows_of_equal_time(time, moves)
        return rows[np.isin(time[rows], time[some])]
    mine = time[some]
    is_shared = (some > 0) & (time[some - 1] == mine)
    is_shared |= (some < len(time) - 1) & (time[np.minimum(some + 1, len(time) - 1)] == mine)
    times = np.unique(mine[is_shared])
    first, last = np.searchsorted(time, times), np.searchsorted(time, times, side="right")
    return numbers_of(first, last - first)


def rows_of_equal_time(
    time: NDArray[np.int64], moves: tuple[NDArray[np.int64], NDArray[np.int64]] | None
) -> NDArray[np.int64]:
    """Return the rows whose time another row has as well, ascending.

    Args:
        time: int64, (n,), in any order.
        moves: As `time_order` gives them.
    """
    positions, from_rows = (np.empty(0, np.int64),) * 2 if moves is None else moves
    is_shared = np.zeros(len(time), np.bool_)
    for start in range(0, len(time), _CHUNK):
        part = time[start : start + _CHUNK + 1]
        moved = slice(*np.searchsorted(positions, (start, start + len(part))).tolist())
        if moved.start < moved.stop:
            part = part.copy()
            part[positions[moved] - start] = time[from_rows[moved]]
        same = np.flatnonzero(part[1:] == part[:-1]) + start
        is_shared[same] = True
        is_shared[same + 1] = True
    rows = np.flatnonzero(is_shared)
    if len(positions):
        at = np.minimum(np.searchsorted(positions, rows), len(positions) - 1)
        rows = np.sort(np.where(positions[at] == rows, from_rows[at], rows))
    return rows


def group_rows(
    rows: NDArray[np.uint32], thread: NDArray[np.unsignedinteger], thread_count: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Group ascending event rows by thread, keeping their order.

    Args:
        rows: uint32 (n,).
        thread: uint16 or uint32 (events,), of all events.
        thread_count: Threads there are.

    Returns:
        The rows grouped, and where each thread's rows begin, shape (thread_count + 1,).
    """
    grouped = column_room.empty(len(rows), np.uint32)
    start = loading.rows_by_thread(np.ascontiguousarray(rows), thread, thread_count, grouped)
    column_room.let_go(grouped)
    return grouped, start
