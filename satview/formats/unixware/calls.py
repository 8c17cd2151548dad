"""Pairs the records of calls; finds calls in which a thread had to wait, and records that change states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.unixware import (
    OTHER,
    WHICH_SHIFT,
    RecordOutcome,
    cpu_time_codes,
    plain,
    record_code,
    waiting_states,
)

NOBODY: Final = 2**32 - 1
WAIT_NS: Final = 100_000  # without other evidence, a call of at least this length is assumed to have waited
Rows = NDArray[np.intp]
Bools = NDArray[np.bool_]


@dataclass(slots=True)
class PairedRecords:
    """Records in time order, with their pairs.

    Attributes:
        time_ns: int64, (n,).
        code: uint16, (n,), without begin or end (`events.unixware.plain`).
        thread: (n,), row of the thread table.
        arguments: a1 to a5, (n,) each.
        by_thread: Rows grouped by thread, in time order; of records of processor time only the last one of a thread, if
            it shows that the thread still existed.
        partner: uint32, (n,), row of the other record of the call; `NOBODY` for a record without one.
    """

    time_ns: NDArray[np.int64]
    code: NDArray[np.uint16]
    thread: NDArray[np.unsignedinteger]
    arguments: tuple[NDArray[np.signedinteger], ...]
    by_thread: Rows
    partner: NDArray[np.uint32]

    def first_records(self, interface: str) -> Rows:
        """Return the first records of the calls of an interface, intp (n,), in time order."""
        return np.flatnonzero(self.code == record_code(interface, 1))


def which_of(code: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the field `which` of every code.

    Returns:
        uint16 (n,).
    """
    return code >> np.uint16(WHICH_SHIFT) & np.uint16(3)


def pair_records(
    time_ns: NDArray[np.int64],
    code: NDArray[np.uint16],
    thread: NDArray[np.unsignedinteger],
    arguments: tuple[NDArray[np.signedinteger], ...],
) -> PairedRecords:
    """Pair first and second records: the thread's next record must be the second record of the same interface.

    Records of processor time are ignored, because a thread may write them about another thread at any time.
    """
    by_thread = _without_samples(code, thread)
    earlier, later = by_thread[:-1], by_thread[1:]
    key = plain(code)
    step = np.uint16(1 << WHICH_SHIFT)
    fits = (which_of(key[earlier]) == 1) & (key[earlier] + step == key[later]) & (thread[earlier] == thread[later])
    fits &= key[earlier] >> wire.CLASS_SHIFT != wire.class_of(OTHER)
    partner = np.full(len(time_ns), NOBODY, np.uint32)
    partner[earlier[fits]] = later[fits]
    partner[later[fits]] = earlier[fits]
    return PairedRecords(time_ns, key, thread, arguments, by_thread, partner)


def _without_samples(code: NDArray[np.uint16], thread: NDArray[np.unsignedinteger]) -> Rows:
    """Return the rows grouped by thread, without records of processor time unless they show that a thread still exists.

    The latter is the last record of a thread, if the thread neither waited nor ended with the record before it.
    """
    by_thread = np.argsort(thread, kind="stable")
    is_sample = np.isin(code[by_thread], cpu_time_codes())
    if not is_sample.any():
        return by_thread
    whose = thread[by_thread]
    before = np.maximum.accumulate(np.where(is_sample, -1, np.arange(len(by_thread))))  # the last record so far
    row = by_thread[before]
    is_over = (which_of(code[row]) == 1) | (code[row] == record_code("thr_exit"))
    is_last = np.append(whose[1:] != whose[:-1], True)
    lives_on = is_sample & is_last & (before >= 0) & (thread[row] == whose) & ~is_over
    return np.asarray(by_thread[~is_sample | lives_on])


def last_of_thread(calls: PairedRecords) -> Bools:
    """Return for every record whether it is the last of its thread, bool (records,)."""
    by_thread, is_last = calls.by_thread, np.zeros(len(calls.code), np.bool_)
    thread = calls.thread[by_thread]
    is_last[by_thread[np.append(thread[1:] != thread[:-1], True)[: len(by_thread)]]] = True
    return is_last


def waits(calls: PairedRecords, thread_of_id: dict[tuple[int, int], int], process: NDArray[np.int32]) -> Bools:
    """Return for every record whether it is the first of a call in which the thread had to wait, bool (records,).

    A call whose end was not recorded counts as a wait if it is the last record of its thread.

    Args:
        calls: The records.
        thread_of_id: Row in the thread table by (process row, tid).
        process: Process row of every thread.
    """
    out = np.zeros(len(calls.code), np.bool_)
    is_last = last_of_thread(calls)
    for interface in waiting_states():
        rows = calls.first_records(interface)
        open_rows = rows[calls.partner[rows] == NOBODY]
        out[open_rows] = is_last[open_rows]
        rows = rows[calls.partner[rows] != NOBODY]
        if len(rows):
            out[rows] = _RULES[interface](calls, rows, thread_of_id, process)
    return out


def _seconds(calls: PairedRecords, rows: Rows) -> Rows:
    return calls.partner[rows].astype(np.intp)


def _lasted(calls: PairedRecords, rows: Rows) -> Bools:
    return np.asarray(calls.time_ns[_seconds(calls, rows)] - calls.time_ns[rows] >= WAIT_NS)


def _as_logged(calls: PairedRecords, rows: Rows, *_: object) -> Bools:
    """Return whether the field `block?` of the second records is set."""
    return np.asarray(calls.arguments[1][_seconds(calls, rows)] != 0)


def _always(_calls: PairedRecords, rows: Rows, *_: object) -> Bools:
    return np.ones(len(rows), np.bool_)


def _by_count(calls: PairedRecords, rows: Rows, *_: object) -> Bools:
    """Return whether the semaphore's count was 0 or less, or the call took long."""
    return np.asarray(calls.arguments[1][rows] <= 0) | _lasted(calls, rows)


def _unless_last(calls: PairedRecords, rows: Rows, *_: object) -> Bools:
    """Return True for all calls except the last to reach a barrier in each round, before which no thread leaves."""
    out = np.ones(len(rows), np.bool_)
    order = np.lexsort((rows, calls.arguments[0][rows]))
    barrier, arrived, left = calls.arguments[0][rows][order], rows[order], _seconds(calls, rows)[order]
    edges = np.flatnonzero(np.concatenate(([True], barrier[1:] != barrier[:-1], [True])))
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        # A thread that arrives after another has left belongs to the next round.
        first_to_leave = np.minimum.accumulate(left[start:end][::-1])[::-1]
        next_round = np.searchsorted(arrived[start:end], first_to_leave).tolist()
        arrivals = 0
        while arrivals < end - start:
            arrivals = max(arrivals + 1, next_round[arrivals])
            out[order[start + arrivals - 1]] = False
    return out


def _joins_thread(
    calls: PairedRecords, rows: Rows, thread_of_id: dict[tuple[int, int], int], process: NDArray[np.int32]
) -> Bools:
    """Return whether the joined thread ended during the call; if its end is unknown, whether the call took long."""
    out = _lasted(calls, rows)
    ends = np.flatnonzero(calls.code == record_code("thr_exit"))
    end_of = dict(zip(calls.thread[ends].tolist(), ends.tolist(), strict=True))
    for i, row in enumerate(rows.tolist()):
        target = thread_of_id.get((int(process[calls.thread[row]]), int(calls.arguments[0][row])))
        if target in end_of:
            out[i] = row < end_of[target] < int(calls.partner[row])
    return out


def _itself(
    calls: PairedRecords, rows: Rows, thread_of_id: dict[tuple[int, int], int], process: NDArray[np.int32]
) -> Bools:
    """Return whether a thread suspended itself: then it waited until it was continued."""
    is_itself = [
        thread_of_id.get((int(process[calls.thread[row]]), int(calls.arguments[0][row]))) == int(calls.thread[row])
        for row in rows.tolist()
    ]
    return np.array(is_itself, np.bool_)


_RULES: Final[dict[str, Callable[..., Bools]]] = {
    "mutex_lock": _as_logged,
    "rmutex_lock": _as_logged,
    "rw_rdlock": _as_logged,
    "rw_wrlock": _as_logged,
    "cond_wait": _always,
    "cond_timedwait": _always,
    "sema_wait": _by_count,
    "barrier_wait": _unless_last,
    "thr_join": _joins_thread,
    "thr_suspend": _itself,
    **dict.fromkeys(("sleep", "read", "write", "connect", "accept", "poll", "wait_process", "sync"), _always),
}


@dataclass(frozen=True, slots=True)
class Effects:
    """Records that change the state of another thread, in time order: row of the record, and row of that thread."""

    event: Rows
    thread: Rows


def effects(
    calls: PairedRecords, thread_of_id: dict[tuple[int, int], int], process: NDArray[np.int32], needed: Bools
) -> Effects:
    """Return the records that create, suspend or continue another thread.

    Args:
        calls: The records.
        thread_of_id: Row in the thread table by (process row, tid).
        process: Process row of every thread.
        needed: Which records already show a change of their own thread; they are left out.
    """
    events, threads = [], []
    a1, a2 = calls.arguments[0], calls.arguments[1]
    created = np.flatnonzero((calls.code == record_code("thr_create", 2)) & (a1 == 0))
    suspended = np.flatnonzero((calls.code == record_code("thr_suspend", 2)) & (a1 == 0) & (calls.partner != NOBODY))
    continued = np.flatnonzero((calls.code == record_code("thr_continue")) & (a2 == 0))
    parts = ((created, a2[created]), (suspended, a1[_seconds(calls, suspended)]), (continued, a1[continued]))
    for rows, targets in parts:
        for row, tid in zip(rows.tolist(), targets.tolist(), strict=True):
            own = int(calls.thread[row])
            target = thread_of_id.get((int(process[own]), tid))
            if target is not None and target != own and not needed[row]:
                events.append(row)
                threads.append(target)
    order = np.argsort(np.array(events, np.intp), kind="stable")
    return Effects(np.array(events, np.intp)[order], np.array(threads, np.intp)[order])


def with_outcomes(calls: PairedRecords, waiting: Bools, other: Effects) -> NDArray[np.uint16]:
    """Return the codes with begin or end, and with the common codes for creation and end of threads.

    Returns:
        uint16 (n,).
    """
    is_last = last_of_thread(calls)
    outcome = np.zeros(len(calls.code), np.uint16)
    outcome[is_last] = RecordOutcome.ENDS
    outcome[waiting] = RecordOutcome.BLOCKS
    outcome[other.event] = RecordOutcome.OTHER
    code = calls.code | outcome << np.uint16(7)
    code[calls.code == record_code("thr_exit")] = wire.THREAD_DESTROY
    created = other.event[calls.code[other.event] == record_code("thr_create", 2)]
    code[created] = wire.THREAD_CREATE
    return code
