"""Contention of locks: how often each was requested, how often and how long threads waited, how long it was held.

Works on traces whose records name the object of a call, as those of a threads library do. Kernel event traces show only
the contended part of a lock, the kernel calls; they have no table here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.events import wire
from satview.events.unixware import Outcome, plain, record_code
from satview.formats.unixware.payloads import RecordPayloads
from satview.store.trace import Trace

Ints = NDArray[np.int64]
_NONE: Final = 2**32 - 1
_REQUESTING: Final = (
    "mutex_lock",
    "rmutex_lock",
    "rw_rdlock",
    "rw_wrlock",
    "cond_wait",
    "cond_timedwait",
    "sema_wait",
    "barrier_wait",
    "_spin_lock",
    "_barrier_spin",
)
_TRYING: Final = ("mutex_trylock", "rmutex_trylock", "rw_tryrdlock", "rw_trywrlock", "sema_trywait", "_spin_trylock")
_HELD_BY: Final = ("mutex_lock", "rmutex_lock", "rw_rdlock", "rw_wrlock", "_spin_lock")
_HELD_BY_TRYING: Final = ("mutex_trylock", "rmutex_trylock", "rw_tryrdlock", "rw_trywrlock", "_spin_trylock")
_LET_GO: Final = ("mutex_unlock", "rmutex_unlock", "rw_unlock", "_spin_unlock")
_CONDITIONS: Final = ("cond_wait", "cond_timedwait")
_SPINNING: Final = ("_spin_lock", "_barrier_spin")
KINDS: Final = ("mutex", "cond", "sema", "rwlock", "rmutex", "barrier", "barrier_spin", "spin")


@dataclass(frozen=True, slots=True)
class LockTable:
    """One row per object, those that threads waited longest for first.

    Attributes:
        process: int64, row of the process.
        kind: int64, index in `KINDS`.
        address: int64, the object; negative addresses are unsigned ones of the same bits.
        calls: int64, calls that could wait, and attempts.
        waits: int64, calls that waited.
        failed: int64, calls and attempts that did not get it: busy, timed out.
        wait_ns, longest_wait_ns: int64, time spent waiting, in all and at most; open calls last to the trace's end.
        holds: int64, times it was held; conditions, semaphores and barriers are never held.
        hold_ns, longest_hold_ns: int64, time it was held, in all and at most.
        threads: int64, threads that requested it.
        names: What it is, where the trace shows.
    """

    process: Ints
    kind: Ints
    address: Ints
    calls: Ints
    waits: Ints
    failed: Ints
    wait_ns: Ints
    longest_wait_ns: Ints
    holds: Ints
    hold_ns: Ints
    longest_hold_ns: Ints
    threads: Ints
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True, slots=True)
class Waits:
    """One row per call that waited, in time order.

    Attributes:
        event: int64, its first record.
        thread: int64, who waited.
        lock: int64, row in the `LockTable`; -1 for joins and suspensions.
        start_ns, length_ns: int64, when, from the start of the trace, and for how long.
    """

    event: Ints
    thread: Ints
    lock: Ints
    start_ns: Ints
    length_ns: Ints


def lock_table(trace: Trace) -> tuple[LockTable, Waits]:
    """Return the contention of every lock of a trace.

    Raises:
        UsageError: The trace has no records that name locks.
    """
    if not isinstance(trace.payloads, RecordPayloads):
        raise UsageError(f"{trace.path.name} is no trace of a threads library; `locks` needs one (thread_trace)")
    return _tables(_records(trace, trace.payloads))


@dataclass(frozen=True, slots=True)
class _Records:
    """The records of one trace as columns, shape (n,).

    Attributes:
        trace: The trace.
        payloads: Its arguments.
        code: uint16, of begin and end alike.
        partner: int64, the other record of the call, `_NONE` for none.
        time: int64, nanoseconds.
        thread: int64, row in the thread table.
        process: int64, row in the process table.
    """

    trace: Trace
    payloads: RecordPayloads
    code: NDArray[np.uint16]
    partner: Ints
    time: Ints
    thread: Ints
    process: Ints

    def rows(self, interfaces: tuple[str, ...], which: int) -> Ints:
        """Return the records of some interfaces, in time order, int64 (n,)."""
        return np.flatnonzero(np.isin(self.code, [record_code(name, which) for name in interfaces]))

    def argument(self, number: int, rows: Ints) -> Ints:
        """Return argument `number` (from 1) of some records."""
        return self.payloads.arguments[number - 1][rows].astype(np.int64)

    def results(self, firsts: Ints) -> Ints:
        """Return the results of calls by first records, int64 (n,); 0 where the end is missing or shows none."""
        ended = self.partner[firsts] != _NONE
        out = np.zeros(len(firsts), np.int64)
        out[ended] = self.argument(1, self.partner[firsts[ended]])
        out[np.isin(self.code[firsts], [record_code(name, 1) for name in _SPINNING[:1]])] = 0
        return out

    def lengths(self, firsts: Ints) -> Ints:
        """Return how long calls took, cycles, int64 (n,); those still open last to the end of the trace."""
        ended = self.partner[firsts] != _NONE
        end = np.full(len(firsts), self.trace.window.end, np.int64)
        end[ended] = self.time[self.partner[firsts[ended]]]
        return np.asarray(end - self.time[firsts], np.int64)

    def waited(self, firsts: Ints) -> NDArray[np.bool_]:
        """Return which calls waited, bool (n,): by their state, and spinning ones by their second record."""
        event = self.trace.events.code[firsts]
        out = (event & wire.EVENT_MASK) >> 7 == Outcome.BLOCKS
        spin = (self.code[firsts] == record_code("_spin_lock", 1)) & (self.partner[firsts] != _NONE)
        out[spin] = self.argument(1, self.partner[firsts[spin]]) != 0
        barrier = (self.code[firsts] == record_code("_barrier_spin", 1)) & (self.partner[firsts] != _NONE)
        out[barrier] = True
        return np.asarray(out, np.bool_)

    def kinds(self, rows: Ints) -> Ints:
        """Return the kind of object that records are about, int64 (n,): category less two."""
        return (self.code[rows] >> wire.CLASS_SHIFT).astype(np.int64) - wire.class_of(record_code("mutex_lock", 1))


def _records(trace: Trace, payloads: RecordPayloads) -> _Records:
    thread = trace.events.thread.astype(np.int64)
    return _Records(
        trace,
        payloads,
        plain(trace.events.code),
        payloads.partner.astype(np.int64),
        trace.events.time_cycles,
        thread,
        trace.threads.process[thread].astype(np.int64),
    )


def _tables(records: _Records) -> tuple[LockTable, Waits]:
    """Return the table of locks and that of waits."""
    requests, tries = records.rows(_REQUESTING, 1), records.rows(_TRYING, 0)
    calls = np.concatenate((requests, tries))
    keys = np.stack((records.process[calls], records.kinds(calls), records.argument(1, calls)), axis=1)
    objects, lock = np.unique(keys, axis=0, return_inverse=True)
    lock, n = lock.reshape(-1), len(objects)
    requested, tried = lock[: len(requests)], lock[len(requests) :]
    waited, length = records.waited(requests), records.lengths(requests)
    failed = np.bincount(requested[records.results(requests) != 0], minlength=n)
    failed += np.bincount(tried[records.argument(2, tries) != 0], minlength=n)
    held, hold_start, hold_end = _holds(records, objects)
    table = LockTable(
        objects[:, 0],
        objects[:, 1],
        objects[:, 2],
        np.bincount(lock, minlength=n),
        np.bincount(requested[waited], minlength=n),
        failed,
        *_sum_and_most(requested[waited], length[waited], n),
        np.bincount(held, minlength=n),
        *_sum_and_most(held, hold_end - hold_start, n),
        _distinct(lock, records.thread[calls], n),
        tuple(_name(records, int(process), int(address)) for process, _, address in objects.tolist()),
    )
    order = np.lexsort((-table.calls, -table.hold_ns, -table.wait_ns))
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    return _sorted(table, order), _waits(records, requests[waited], position[requested[waited]])


def _name(records: _Records, process: int, address: int) -> str:
    return records.payloads.object_names.get((int(records.trace.processes.pid[process]), address), "")


def _waits(records: _Records, firsts: Ints, lock: Ints) -> Waits:
    others = records.rows(("thr_join", "thr_suspend"), 1)
    others = others[records.waited(others)]
    event = np.concatenate((firsts, others))
    lock = np.concatenate((lock, np.full(len(others), -1)))
    order = np.argsort(event, kind="stable")
    event, lock = event[order], lock[order]
    start = records.time[event] - records.trace.window.start
    return Waits(event, records.thread[event], lock, start, records.lengths(event))


def _holds(records: _Records, objects: Ints) -> tuple[Ints, Ints, Ints]:
    """Return lock, begin and end of every hold; nested holds of one thread count as one."""
    row, key_object, step = _steps(records)
    process, kind, address = key_object
    lock = _find(objects, np.stack((process, kind, address), axis=1))
    known = lock >= 0
    row, lock, step = row[known], lock[known], step[known]
    order = np.lexsort((row, records.thread[row], lock))
    row, lock, step = row[order], lock[order], step[order]
    if not len(row):
        return lock, row, row
    group = np.concatenate(([True], (lock[1:] != lock[:-1]) | (records.thread[row[1:]] != records.thread[row[:-1]])))
    depth = _depth(step, np.cumsum(group) - 1)
    begins = np.flatnonzero((step > 0) & (depth == 1))
    ends = np.flatnonzero((step < 0) & (depth == 0))
    after = np.searchsorted(ends, begins)
    number = np.cumsum(group)
    has_end = after < len(ends)
    has_end[has_end] = number[ends[after[has_end]]] == number[begins[has_end]]
    end = np.full(len(begins), records.trace.window.end, np.int64)
    end[has_end] = records.time[row[ends[after[has_end]]]]
    return lock[begins], records.time[row[begins]], end


def _steps(records: _Records) -> tuple[Ints, tuple[Ints, Ints, Ints], Ints]:
    """Return record, object and +1 or -1 of everything that begins or ends a hold.

    Waiting on a condition lets go of its mutex at the first record and has it again at the second.
    """
    firsts = records.rows(_HELD_BY, 1)
    firsts = firsts[(records.partner[firsts] != _NONE) & (records.results(firsts) == 0)]
    tries = records.rows(_HELD_BY_TRYING, 0)
    tries = tries[records.argument(2, tries) == 0]
    frees = records.rows(_LET_GO, 0)
    is_spin = records.code[frees] == record_code("_spin_unlock")
    frees = frees[is_spin | (records.argument(2, frees) == 0)]
    sleeps = records.rows(_CONDITIONS, 1)
    wakes = sleeps[records.partner[sleeps] != _NONE]
    row = np.concatenate((records.partner[firsts], tries, frees, sleeps, records.partner[wakes]))
    address = np.concatenate(
        [records.argument(1, part) for part in (firsts, tries, frees)]
        + [records.argument(2, part) for part in (sleeps, wakes)]
    )
    kind = np.concatenate(
        [records.kinds(part) for part in (firsts, tries, frees)]
        + [_kind_of_mutex(records, part) for part in (sleeps, wakes)]
    )
    sizes = [(len(firsts), 1), (len(tries), 1), (len(frees), -1), (len(sleeps), -1), (len(wakes), 1)]
    step = np.concatenate([np.full(size, by, np.int64) for size, by in sizes])
    return row, (records.process[row], kind, address), step


def _kind_of_mutex(records: _Records, rows: Ints) -> Ints:
    """Return the kind of the lock a condition is used with: recursive if a recursive mutex has that address."""
    recursive = records.rows(("rmutex_lock",), 1)
    known = np.unique(records.argument(1, recursive))
    return np.where(np.isin(records.argument(2, rows), known), KINDS.index("rmutex"), KINDS.index("mutex"))


def _depth(step: Ints, group: Ints) -> Ints:
    """Return how often a lock is held after every step, per group; an unlock without its lock is ignored."""
    out = np.empty(len(step), np.int64)
    raw = np.cumsum(step)
    first = np.searchsorted(group, np.arange(int(group[-1]) + 1))
    raw -= np.repeat(raw[first] - step[first], np.diff(first, append=len(step)))
    lift = group * (4 * len(step) + 4)
    lowest = np.minimum.accumulate(np.minimum(raw, 0) - lift) + lift
    out[:] = raw - np.minimum(lowest, 0)
    return out


def _find(objects: Ints, keys: Ints) -> Ints:
    """Return the row of every key in the sorted table of objects, -1 for those that are not in it."""
    if not len(keys) or not len(objects):
        return np.full(len(keys), -1, np.int64)
    both, number = np.unique(np.concatenate((objects, keys)), axis=0, return_inverse=True)
    row = np.full(len(both), -1, np.int64)
    number = number.reshape(-1)
    row[number[: len(objects)]] = np.arange(len(objects))
    return row[number[len(objects) :]]


def _sum_and_most(lock: Ints, length: Ints, n: int) -> tuple[Ints, Ints]:
    total, most = np.zeros(n, np.int64), np.zeros(n, np.int64)
    np.add.at(total, lock, length)
    np.maximum.at(most, lock, length)
    return total, most


def _distinct(lock: Ints, thread: Ints, n: int) -> Ints:
    pairs = np.unique(lock << 32 | thread)
    return np.bincount(pairs >> 32, minlength=n)


def _sorted(table: LockTable, order: NDArray[np.intp]) -> LockTable:
    columns = {column.name: getattr(table, column.name)[order] for column in fields(table) if column.name != "names"}
    return LockTable(**columns, names=tuple(table.names[i] for i in order.tolist()))
