"""Lock contention: how often each lock was requested, how often and how long threads waited, how long it was held.

Needs a trace of a threads library, whose records name the object of each call. Kernel event traces show a lock only
where threads wait for it, so that they have no such table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.doctor import diagnosis
from satview.analysis.times.basis import Mark, largest_by, sum_by
from satview.answers.frames import Texts
from satview.answers.table import Column, Kind, Known, Question, Table, known_where, least_known
from satview.events import wire
from satview.events.unixware import RecordOutcome, plain, record_code
from satview.formats.unixware.reader import RecordPayloads, address_text
from satview.linkage.links import depth_within
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


_REASONS: Final = {
    Known.AT_LEAST: "it goes on when the trace ends, or events are missing",
    Known.ESTIMATE: "the trace is damaged",
}
_FIGURES: Final = (
    Column("wait", Kind.DURATION, "time that threads waited for it, in all", "Waited", reasons=_REASONS),
    Column("waits", Kind.COUNT, "calls that waited", "Waits", reasons=_REASONS),
    Column("longest_wait", Kind.DURATION, "the longest of these", "Longest", reasons=_REASONS),
    Column("calls", Kind.COUNT, "calls that could wait, and attempts", "Calls", reasons=_REASONS),
    Column("failed", Kind.COUNT, "calls and attempts that did not get it: busy, timed out", "Failed", reasons=_REASONS),
    Column("holds", Kind.COUNT, "how often it was held; conditions, semaphores and barriers never are", "Holds",
           reasons=_REASONS),
    Column("hold", Kind.DURATION, "time that it was held, in all", "Held", is_nullable=True, reasons=_REASONS),
    Column("longest_hold", Kind.DURATION, "the longest of these", "Longest held", is_nullable=True, reasons=_REASONS),
    Column("threads", Kind.COUNT, "threads that requested it", "Threads", reasons=_REASONS),
)  # fmt: skip
_NO_LOCKS: Final = "the trace does not come from a threads library (thread_trace)"
QUESTION: Final = Question(
    "locks",
    "Locks",
    "Which lock did threads wait for longest?",
    (
        Column("kind", Kind.TEXT, "what it is: " + ", ".join(f"`{kind}`" for kind in KINDS), "Kind"),
        Column("name", Kind.TEXT, "what it is called, where the trace shows", "Lock"),
        Column("address", Kind.TEXT, "the object", "Address"),
        Column("process", Kind.TEXT, "whose it is, where the trace has several", "Process"),
        Column("pid", Kind.NUMBER, "number of that process", "pid"),
        *_FIGURES,
    ),
    "wait",
    "No thread waited for a lock.",
)
WAITS: Final = Question(
    "lock-waits",
    "Waits",
    "Which call of a threads library waited longest?",
    (
        Column("thread", Kind.THREAD, "who waited", "Thread"),
        Column("call", Kind.TEXT, "in which call", "Call"),
        Column("lock", Kind.TEXT, "for which lock; empty for joins and suspensions", "Lock"),
        Column("start", Kind.TIME, "when it began to wait", "From"),
        Column("length", Kind.DURATION, "for how long", "Length", reasons=_REASONS),
        Column("event", Kind.EVENT, "the first record of the call", "Event"),
    ),
    "length",
    "No thread waited.",
)


def lock_tables(trace: Trace) -> tuple[Table, Table]:
    """Return two tables: the locks, by the time that threads waited for them, and the waits, in time order.

    If the records of the trace name no locks, both tables are empty and give the reason in `cannot_tell`.
    """
    if isinstance(trace.payloads, RecordPayloads):
        return _tables(_records(trace, trace.payloads))
    nothing = np.empty(0, np.int64)
    locks, waits = (
        Table(question, trace, {column.name: Texts.of(()) if column.kind is Kind.TEXT else nothing
                                for column in question.columns}, place="", cannot_tell=_NO_LOCKS)
        for question in (QUESTION, WAITS)
    )  # fmt: skip
    return locks, waits


@dataclass(frozen=True, slots=True)
class _LockRecords:
    """The records (library calls) of one trace as columns of shape (n,)."""

    trace: Trace
    payloads: RecordPayloads
    code: NDArray[np.uint16]  # code of the call, the same for its first and second record
    partner: Ints  # row of the other record, first or second, of the same call; `_NONE` for none
    time: Ints  # cycles; in such traces a cycle is a nanosecond
    thread: Ints  # row in the thread table
    process: Ints  # row in the process table

    def rows(self, interfaces: tuple[str, ...], which: int) -> Ints:
        """Return the first (1) or second (2) records of calls of some functions, or their only ones (0), ascending."""
        return np.flatnonzero(np.isin(self.code, [record_code(name, which) for name in interfaces]))

    def argument(self, number: int, rows: Ints) -> Ints:
        """Return argument `number` (from 1) of the given records, int64 (n,)."""
        return self.payloads.arguments[number - 1][rows].astype(np.int64)

    def results(self, firsts: Ints) -> Ints:
        """Return the result of each call, given by its first record, int64 (n,); 0 if the trace does not show it."""
        ended = self.partner[firsts] != _NONE
        out = np.zeros(len(firsts), np.int64)
        out[ended] = self.argument(1, self.partner[firsts[ended]])
        out[np.isin(self.code[firsts], [record_code(name, 1) for name in _SPINNING[:1]])] = 0
        return out

    def is_open(self, firsts: Ints) -> NDArray[np.bool_]:
        """Return whether each call, given by its first record, is still open when the trace ends, bool (n,)."""
        return np.asarray(self.partner[firsts] == _NONE)

    def lengths(self, firsts: Ints) -> Ints:
        """Return the length of each call, given by its first record, cycles; open calls last until the trace ends."""
        ended = ~self.is_open(firsts)
        end = np.full(len(firsts), self.trace.window.end, np.int64)
        end[ended] = self.time[self.partner[firsts[ended]]]
        return np.asarray(end - self.time[firsts], np.int64)

    def waited(self, firsts: Ints) -> NDArray[np.bool_]:
        """Return whether each call waited, bool (n,): the first record shows it, for spinning calls the second."""
        event = self.trace.events.code[firsts]
        out = (event & wire.EVENT_MASK) >> 7 == RecordOutcome.BLOCKS
        spin = (self.code[firsts] == record_code("_spin_lock", 1)) & (self.partner[firsts] != _NONE)
        out[spin] = self.argument(1, self.partner[firsts[spin]]) != 0
        barrier = (self.code[firsts] == record_code("_barrier_spin", 1)) & (self.partner[firsts] != _NONE)
        out[barrier] = True
        return np.asarray(out, np.bool_)

    def kinds(self, rows: Ints) -> Ints:
        """Return the kind of object of each record as an index of `KINDS`, int64 (n,), from the record's category."""
        return (self.code[rows] >> wire.CLASS_SHIFT).astype(np.int64) - wire.class_of(record_code("mutex_lock", 1))


def _records(trace: Trace, payloads: RecordPayloads) -> _LockRecords:
    thread = trace.events.thread.astype(np.int64)
    return _LockRecords(
        trace,
        payloads,
        plain(trace.events.code),
        payloads.partner.astype(np.int64),
        trace.events.time_cycles,
        thread,
        trace.threads.process[thread].astype(np.int64),
    )


def _tables(records: _LockRecords) -> tuple[Table, Table]:
    """Return the table of locks and the table of waits."""
    trace = records.trace
    requests, tries = records.rows(_REQUESTING, 1), records.rows(_TRYING, 0)
    calls = np.concatenate((requests, tries))
    keys = np.stack((records.process[calls], records.kinds(calls), records.argument(1, calls)), axis=1)
    objects, lock = np.unique(keys, axis=0, return_inverse=True)
    lock, n = lock.reshape(-1), len(objects)
    requested, tried = lock[: len(requests)], lock[len(requests) :]
    waited, length = records.waited(requests), records.lengths(requests)
    failed = np.bincount(requested[records.results(requests) != 0], minlength=n)
    failed += np.bincount(tried[records.argument(2, tries) != 0], minlength=n)
    held, hold_start, hold_end, is_held_on = _holds(records, objects)
    wait, hold = sum_by(requested[waited], length[waited], n), sum_by(held, hold_end - hold_start, n)
    longest_wait, _ = largest_by(requested[waited], length[waited], n)
    longest_hold, _ = largest_by(held, hold_end - hold_start, n)
    count, holds = np.bincount(lock, minlength=n), np.bincount(held, minlength=n)
    waits_on = np.bincount(requested[waited & records.is_open(requests)], minlength=n) > 0
    order = np.lexsort((-count, -hold, -wait))
    process = objects[:, 0]
    pids = trace.processes.pid[process]
    names = [records.payloads.object_names.get((int(pid), int(address)), "")
             for pid, address in zip(pids, objects[:, 2], strict=True)]  # fmt: skip
    owners = [trace.process_name(int(row)) if len(trace.processes) > 2 else "" for row in process]
    addresses = [address_text(int(address)) for address in objects[:, 2]]
    trust = diagnosis(trace, "locks").trust
    floor = {Mark.EXACT: Known.EXACT, Mark.LOWER_BOUND: Known.AT_LEAST}.get(trust.mark, Known.ESTIMATE)

    def known(is_open: NDArray[np.bool_]) -> NDArray[np.uint8]:
        open_ones = known_where(is_open, Known.AT_LEAST)
        return least_known(np.full(len(is_open), floor, np.uint8), open_ones)

    goes_on = dict.fromkeys(("wait", "longest_wait"), waits_on) | dict.fromkeys(
        ("hold", "longest_hold"), np.bincount(held[is_held_on], minlength=n) > 0
    )
    table = Table(QUESTION, trace, {
        "kind": Texts(objects[:, 1].astype(np.uint8), KINDS),
        "name": Texts.of(names),
        "address": Texts.of(addresses),
        "process": Texts.of(owners),
        "pid": pids.astype(np.int64),
        "wait": wait,
        "waits": np.bincount(requested[waited], minlength=n),
        "longest_wait": longest_wait,
        "calls": count,
        "failed": failed,
        "holds": holds,
        "hold": np.where(holds > 0, hold, -1),
        "longest_hold": np.where(holds > 0, longest_hold, -1),
        "threads": _distinct(lock, records.thread[calls], n),
    }, known={column.name: known(goes_on.get(column.name, np.zeros(n, np.bool_))) for column in _FIGURES},
        place="", cannot_tell=trust.reason)  # fmt: skip
    labels = [", ".join(filter(None, ("  ".join(filter(None, (name, address))), owner)))
              for name, address, owner in zip(names, addresses, owners, strict=True)]  # fmt: skip
    others = records.rows(("thr_join", "thr_suspend"), 1)
    others = others[records.waited(others)]
    event = np.concatenate((requests[waited], others))
    lock_of = np.concatenate((requested[waited], np.full(len(others), n)))  # the last of the labels
    in_time = np.argsort(event, kind="stable")
    event, lock_of = event[in_time], lock_of[in_time]
    waits = Table(WAITS, trace, {
        "thread": records.thread[event],
        "call": Texts.of([trace.spec(row).calls[0] for row in event.tolist()]),
        "lock": Texts(lock_of.astype(np.uint32), (*labels, "")),
        "start": records.time[event],
        "length": records.lengths(event),
        "event": event,
    }, known={"length": known(records.is_open(event))}, cannot_tell=trust.reason)  # fmt: skip
    return table.at(order), waits


def _holds(records: _LockRecords, objects: Ints) -> tuple[Ints, Ints, Ints, NDArray[np.bool_]]:
    """Return every time that a thread held a lock, nested ones once: lock, start, end, whether it is still held."""
    row, key_object, step = _steps(records)
    process, kind, address = key_object
    lock = _find(objects, np.stack((process, kind, address), axis=1))
    known = lock >= 0
    row, lock, step = row[known], lock[known], step[known]
    order = np.lexsort((row, records.thread[row], lock))
    row, lock, step = row[order], lock[order], step[order]
    if not len(row):
        return lock, row, row, np.zeros(0, np.bool_)
    group = np.concatenate(([True], (lock[1:] != lock[:-1]) | (records.thread[row[1:]] != records.thread[row[:-1]])))
    number = np.cumsum(group)
    depth = depth_within(step, number)  # an unlock without its lock is ignored
    begins = np.flatnonzero((step > 0) & (depth == 1))
    ends = np.flatnonzero((step < 0) & (depth == 0))
    after = np.searchsorted(ends, begins)
    has_end = after < len(ends)
    has_end[has_end] = number[ends[after[has_end]]] == number[begins[has_end]]
    end = np.full(len(begins), records.trace.window.end, np.int64)
    end[has_end] = records.time[row[ends[after[has_end]]]]
    return lock[begins], records.time[row[begins]], end, ~has_end


def _steps(records: _LockRecords) -> tuple[Ints, tuple[Ints, Ints, Ints], Ints]:
    """Return for every record that begins or ends a hold: row, object (process, kind, address), and step, +1 or -1.

    A wait for a condition variable unlocks its mutex at the first record and locks it again at the second.
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


def _kind_of_mutex(records: _LockRecords, rows: Ints) -> Ints:
    """Return the kind of the mutex in each condition variable wait: `rmutex` if it was also locked as recursive."""
    recursive = records.rows(("rmutex_lock",), 1)
    known = np.unique(records.argument(1, recursive))
    return np.where(np.isin(records.argument(2, rows), known), KINDS.index("rmutex"), KINDS.index("mutex"))


def _find(objects: Ints, keys: Ints) -> Ints:
    """Return the row of every key in the table of objects, int64 (n,), -1 for keys that are not in it."""
    if not len(keys) or not len(objects):
        return np.full(len(keys), -1, np.int64)
    both, number = np.unique(np.concatenate((objects, keys)), axis=0, return_inverse=True)
    row = np.full(len(both), -1, np.int64)
    number = number.reshape(-1)
    row[number[: len(objects)]] = np.arange(len(objects))
    return row[number[len(objects) :]]


def _distinct(lock: Ints, thread: Ints, n: int) -> Ints:
    pairs = np.unique(lock << 32 | thread)
    return np.bincount(pairs >> 32, minlength=n)
