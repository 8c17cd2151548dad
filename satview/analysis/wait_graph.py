"""Finds the threads that can end waits lasting to the end of a trace, and the threads that no other can free.

Any one of several threads can end a wait: any thread that receives on the channel can receive a message, any thread
that may hold it can reply, any thread that posts a semaphore can post it. A thread is stuck if all of these are stuck.
Source: formula 5 of the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.state_times import walk
from satview.base.column_arrays import ColumnTable
from satview.core import links
from satview.core.links import stable_order
from satview.core.pictures import whole_spans
from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.states import DEAD, NOT_A_STATE, READY, RUNNING, STATE_BY_NAME
from satview.linkage.blockers import JOIN, REPLY, SEND, Blockers, blockers, holders_at
from satview.linkage.links import NO_EVENT, OPEN, Certainty, Rows, is_whole_on, rows_of_codes, rows_where
from satview.linkage.messages import RECEIPT, replies
from satview.linkage.transactions import creation_of, server_of
from satview.linkage.waits import MUTEX, entries_of, following, number_of, state_ends
from satview.linkage.wake_ups import wake_ups
from satview.store.arguments import argument
from satview.store.time_ranges import idle_threads, losses
from satview.store.trace import Trace

# State intervals of threads in which no event is missing.


_Ints = NDArray[np.int64]
_VALUES: Final = 256  # of lanes
_CALLS_AT_ONCE: Final = 1 << 20  # kernel calls that are looked through together
_RUNS_FOR_A_FAULT: Final = 1000  # events of threads may be lost without a trace now and then


@dataclass(frozen=True, slots=True)
class StateIntervals(ColumnTable):
    """Complete state intervals of threads, by thread, then in time order; every column has shape (n,).

    Adjacent intervals of a thread in the same state are merged, RUNNING only on one CPU. Idle threads are left out.

    Attributes:
        thread: uint16 or uint32, row of the thread table.
        value: uint8, the state as lane value.
        row: uint32, the event that begins the interval.
        end_row: uint32, the event that ends the interval; the number of events if the trace ends before.
    """

    thread: NDArray[np.unsignedinteger]
    value: NDArray[np.uint8]
    row: NDArray[np.uint32]
    end_row: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.row)

    def of_state(self, value: int) -> StateIntervals:
        """Return the intervals of one state."""
        return self.taken(np.flatnonzero(self.value == value))


def has_whole_states(trace: Trace) -> bool:
    """Return whether the trace has all events of threads between its losses.

    A capture may leave some events out; then the apparent state of a thread may be outdated. A sign of this is a thread
    that begins to run on a CPU which another thread has not left: a kernel never logs that.
    """
    runs, overlaps = runs_and_overlaps(trace)
    return runs > 0 and overlaps * _RUNS_FOR_A_FAULT <= runs


def runs_and_overlaps(trace: Trace) -> tuple[int, int]:
    """Return the number of runs of threads, and of those that begin before another thread has left the CPU.

    Runs between which events are missing are not counted among the latter, as their order on the CPU is not known.
    """
    if (walked := walk(trace)) is not None and walked.cpus is not None:
        return walked.cpus.works, walked.cpus.overlaps
    if trace.pairs is not None:
        return 0, 0
    runs = _spans(trace, np.arange(_VALUES) == RUNNING, following(trace))
    runs = runs.taken(np.argsort(runs.row, kind="stable"))  # rows are in the order of time
    cpu, wrong = trace.events.cpu[runs.row], 0
    for number in np.flatnonzero(np.bincount(cpu)).tolist():
        row, end = runs.row[cpu == number], runs.end_row[cpu == number]
        early = np.flatnonzero(row[1:] < end[:-1])
        wrong += int(np.count_nonzero(is_whole_on(trace, number, row[early], row[early + 1])))
    return len(runs), wrong


def whole_states(trace: Trace) -> StateIntervals:
    """Return the state intervals of threads, except those with missing events and those of idle threads."""
    if trace.pairs is not None:  # threads of a library, not of the kernel
        none = np.empty(0, np.uint32)
        return StateIntervals(none, none.astype(np.uint8), none, none)
    # The ends of all states are a column of their own, which is not computed if no event is missing.
    is_whole = not len(losses(trace)) and not trace.is_cached("links.state_ends")
    ends = following(trace) if is_whole else state_ends(trace)[trace.states.event]
    return _spans(trace, np.arange(_VALUES) != NOT_A_STATE, ends)


def _spans(trace: Trace, wanted: NDArray[np.bool_], ends: Rows) -> StateIntervals:
    """Return state intervals with `wanted` lane values, without idle threads and states that end with `NO_EVENT`."""
    states, events = trace.states, trace.events
    left_out = idle_threads(trace).copy()
    left_out[0] = True
    of_thread, value, row, end_row = whole_spans(
        states.event, states.start, ends, events.code, events.cpu, trace.catalogue.state_value_of_code, wanted,
        left_out, RUNNING, NO_EVENT, OPEN,
    )  # fmt: skip
    thread = np.repeat(np.arange(len(of_thread), dtype=events.thread.dtype), of_thread)
    return StateIntervals(thread, value, row, end_row)


def end_rows(trace: Trace, rows: Rows) -> _Ints:
    """Return rows with `OPEN` replaced by the number of events, int64, same shape."""
    return np.where(rows == OPEN, len(trace.events), rows.astype(np.int64))


RECEIVE: Final = STATE_BY_NAME["RECEIVE"].value
SEM: Final = STATE_BY_NAME["SEM"].value
CONDVAR: Final = STATE_BY_NAME["CONDVAR"].value
INTR: Final = STATE_BY_NAME["INTR"].value
_GIVERS: Final = {SEM: ("SYNC_SEM_POST",), CONDVAR: ("SYNC_CONDVAR_SIGNAL",)}  # calls that end such waits
BY_HABIT: Final = (SEM, CONDVAR, *(STATE_BY_NAME[name].value for name in ("BARRIER", "RWLOCK_READ", "RWLOCK_WRITE")))
"""Wait states whose object names no thread that can end them; the trace shows only which threads did so before."""
_WORKER_STATES: Final = (CONDVAR, SEM, MUTEX, JOIN, RUNNING, READY)  # of a thread that may have been handed a message
_FEW: Final = 3  # fewest repetitions of a habit


@dataclass(frozen=True, slots=True)
class OpenWait:
    """A wait that lasts to the end of the trace.

    Attributes:
        wait: Row of `waits`.
        ways: Threads any of which can end the wait.
        guesses: Further threads that may be able to end the wait; the trace does not show whether they can.
        certainty: Certainty of `ways`.
    """

    wait: int
    ways: frozenset[int]
    guesses: frozenset[int]
    certainty: Certainty


class WaitGraph:
    """The waits of a trace that last to its end, by thread.

    Attributes:
        trace: The events.
        blockers: All waits, with the threads that they wait for.
        open_waits: Open wait by row of the thread, without waits that may end by themselves or by an unknown thread.
        knows_all_threads: The trace begins with all threads and has lost no event.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace, self.blockers = trace, blockers(trace)
        self.knows_all_threads = not len(losses(trace)) and trace.dump_end_cycles >= trace.window.start
        self._last_states = _last_states(trace)
        self._receivers = _receivers(self.blockers, trace)
        self._repliers = _repliers(trace)
        self._gives: dict[tuple[int, int], tuple[NDArray[np.uint32], NDArray[np.int64]]] = {}  # by state and process
        self.open_waits: dict[int, OpenWait] = {}
        waiting = self.blockers.waits
        self._open_rows = np.flatnonzero(waiting.end_row == OPEN)
        holder, how = self._holders(self._open_rows)
        for wait in self._open_rows.tolist():
            open_wait = None if self.has_timeout(wait) else self._ends_of(wait, holder, how)
            if open_wait is not None:
                self.open_waits[int(waiting.thread[wait])] = open_wait

    def is_dead(self, thread: int) -> bool:
        """Return whether a thread has ended."""
        return self._last_states.get(thread) == DEAD

    def has_timeout(self, wait: int) -> bool:
        """Return whether a wait has a timeout: the thread called TimerTimeout() just before, not in order to sleep."""
        before = self._calls_before[np.searchsorted(self._open_rows, [wait])]
        if int(number_of(self.trace, before)[0]) != call_numbers(self.trace.release).get("TIMER_TIMEOUT"):
            return False
        return not np.any(self.blockers.waits.call_row == before[0])

    @cached_property
    def _calls_before(self) -> NDArray[np.uint32]:
        """The entry of the last kernel call of each waiting thread before the call in which it waits, uint32 (n,).

        There is an element for each wait that lasts to the end of the trace; `NO_EVENT` = no earlier call.
        """
        trace, waiting = self.trace, self.blockers.waits
        codes = np.arange(wire.CODE_COUNT)
        is_entry = (codes >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL) & (codes & wire.KER_FORM == 0)
        calls = rows_where(trace, is_entry)
        row = np.minimum(waiting.call_row[self._open_rows], len(trace.events)).astype(np.uint32)
        order, out = np.argsort(row, kind="stable"), np.full(len(row), NO_EVENT, np.uint32)
        thread = waiting.thread[self._open_rows].astype(np.int64)
        for end in range(len(calls), 0, -_CALLS_AT_ONCE):  # nearly all are near the end
            some = calls[max(end - _CALLS_AT_ONCE, 0) : end]
            last = np.empty(len(row), np.uint32)
            last[order] = links.last_of_number(some, trace.events.thread[some].astype(np.int64), row[order],
                                               thread[order], len(trace.threads))  # fmt: skip
            out = np.where(out == NO_EVENT, last, out)
            if np.all(out != NO_EVENT):
                break
        return out

    def reply_ways(self, wait: int) -> OpenWait:
        """Return a wait in REPLY that lasts to the end, with the threads that may hold its message.

        `ways` is empty if all threads that could hold the message are in RECEIVE or have ended.
        """
        receiver, pid = int(self.blockers.thread[wait]), int(self.blockers.pid[wait])
        others = self._alive(pid) - {receiver, int(self.blockers.waits.thread[wait])}
        ways = {thread for thread in others if thread in self._repliers and self._may_work(thread)}
        if receiver >= 0 and not self._is_receiving(receiver) and not self.is_dead(receiver):
            ways.add(receiver)
        guesses = {thread for thread in others - ways if self._last_states.get(thread) in _WORKER_STATES}
        is_only = ways == {receiver} and not guesses and self.knows_all_threads
        return OpenWait(wait, frozenset(ways), frozenset(guesses), Certainty.EXACT if is_only else Certainty.INFERRED)

    def has_moved_on(self, wait: int) -> bool:
        """Return whether the receiver of the message of a wait in REPLY waits for another one, or has received one."""
        receiver = int(self.blockers.thread[wait])
        receipts = rows_of_codes(self.trace, RECEIPT)
        own = receipts[self.trace.events.thread[receipts] == receiver]
        since = int(self.blockers.waits.call_row[wait])
        return self._is_receiving(receiver) or int(np.count_nonzero(own > since)) > 1

    def has_repliers(self, pid: int) -> bool:
        """Return whether a process has live threads that replied to messages received by other threads."""
        return any(self.trace.threads.pid[thread] == pid and not self.is_dead(thread) for thread in self._repliers)

    def dead_repliers(self, pid: int) -> tuple[int, ...]:
        """Return the ended threads of a process that replied to messages received by other threads."""
        return tuple(thread for thread in sorted(self._repliers)
                     if self.trace.threads.pid[thread] == pid and self.is_dead(thread))  # fmt: skip

    def _ends_of(self, wait: int, holder: Mapping[int, int], how: Mapping[int, Certainty]) -> OpenWait | None:
        waiting = self.blockers.waits
        state = int(waiting.value[wait])
        if state == MUTEX and (thread := holder.get(wait, -1)) > 0:
            return OpenWait(wait, frozenset((thread,)), frozenset(), how[wait])
        if state == MUTEX and self.knows_all_threads:  # its holder is most likely a thread of the same process
            own = int(waiting.thread[wait])
            ways = self._alive(int(self.trace.threads.pid[own])) - {own}
            return OpenWait(wait, ways, frozenset(), Certainty.GUESS) if ways else None
        if state == JOIN and self.blockers.thread[wait] >= 0:
            certainty = Certainty(int(self.blockers.certainty[wait]))
            return OpenWait(wait, frozenset((int(self.blockers.thread[wait]),)), frozenset(), certainty)
        if state == REPLY and self.blockers.thread[wait] >= 0:
            by_reply = self.reply_ways(wait)
            return by_reply if by_reply.ways else None
        if state == SEND and self.blockers.pid[wait] >= 0 and self.knows_all_threads:
            return self._send_ways(wait)
        if state in BY_HABIT:
            ways = self.wakers(wait) - {int(waiting.thread[wait])}
            alive = frozenset(thread for thread in ways if not self.is_dead(thread))
            return OpenWait(wait, alive or ways, frozenset(), Certainty.INFERRED) if ways else None
        return None

    def _send_ways(self, wait: int) -> OpenWait:
        """Return a wait in SEND with the threads of the server that may receive the message.

        These are the threads that received on the channel before, else the channel's creator. If none of these is known
        and alive, they are the threads that wait for other threads, and the remaining ones are guesses.
        """
        waiting, trace, pid = self.blockers.waits, self.trace, int(self.blockers.pid[wait])
        alive, call = self._alive(pid), int(waiting.call_row[wait])
        process = int(trace.threads.process[waiting.thread[wait]])
        coid, known = argument(trace, waiting.call_row[wait : wait + 1], "coid")
        server = server_of(trace, process, int(coid[0]) & 0xFFFFFFFF, call) if known[0] else None
        chid = -1 if server is None else server.chid
        ways = self._receivers.get((pid, chid), frozenset()) & alive
        if not ways and chid >= 0:
            row = creation_of(trace, _process_row(trace, pid), chid, call)
            ways = frozenset((int(trace.events.thread[row]),)) & alive if row >= 0 else ways
        if len(alive) == 1 or not ways:
            # The only thread; or, if none of several was seen to receive, those that wait for other threads.
            is_only = len(alive) == 1
            serving = frozenset(thread for thread in alive if self._last_states.get(thread) in (SEND, REPLY, MUTEX))
            return OpenWait(wait, alive if is_only else serving, frozenset() if is_only else alive - serving,
                            Certainty.EXACT if is_only else Certainty.GUESS)  # fmt: skip
        return OpenWait(wait, ways, frozenset(), Certainty.EXACT if ways == alive else Certainty.INFERRED)

    def wakers(self, wait: int) -> frozenset[int]:
        """Return the threads that ended waits of the same process for the object of a wait, or released or posted it.

        If no event names the object, these are the threads that ended waits of the same thread in the same state.
        """
        waiting, trace = self.blockers.waits, self.trace
        state, process, own = int(waiting.value[wait]), trace.threads.process, int(waiting.thread[wait])
        is_named = bool(waiting.has_object[wait])
        same = np.flatnonzero(waiting.value == state)
        same = same[waiting.end_row[same] != OPEN]
        if is_named:
            same = same[waiting.has_object[same] & (waiting.object[same] == waiting.object[wait])]
            same = same[process[waiting.thread[same]] == process[own]]
        else:
            same = same[waiting.thread[same] == own]
        table = wake_ups(trace)
        link = table.ended_by(waiting.end_row[same])
        threads = {*trace.events.thread[table.from_row[link[link >= 0]]].tolist()}
        if state in _GIVERS and is_named:
            entries, address = self._given(state, int(process[own]))
            threads |= {*trace.events.thread[entries[address == waiting.object[wait]]].tolist()}
        return frozenset(threads) - {0}

    def _given(self, state: int, process: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the calls of a process that release or post objects, and the addresses of these, (n,) each."""
        if (state, process) not in self._gives:
            trace, entries = self.trace, entries_of(self.trace, *_GIVERS[state])
            entries = entries[trace.threads.process[trace.events.thread[entries]] == process]
            address, known = argument(trace, entries, "sync_p")
            self._gives[state, process] = entries[known], address[known]
        return self._gives[state, process]

    def ended_meanwhile(self, wait: int) -> tuple[int, ...]:
        """Return the threads of the process that ended during a wait; empty if other threads of the process live."""
        trace, own = self.trace, int(self.blockers.waits.thread[wait])
        pid, begin = int(trace.threads.pid[own]), int(self.blockers.waits.row[wait])
        if not self.knows_all_threads or self._alive(pid) - {own}:
            return ()
        ends = rows_of_codes(trace, wire.THREAD_DESTROY)
        ended = trace.events.thread[ends[ends > begin]].astype(np.int64)
        return tuple(np.unique(ended[trace.threads.pid[ended] == pid]).tolist())

    def stays_masked(self, wait: int) -> bool:
        """Return whether a waiting thread unmasked its interrupt after all its earlier waits but the last one.

        False if the thread has waited only a few times.
        """
        trace, waiting = self.trace, self.blockers.waits
        own = int(waiting.thread[wait])
        is_before = (waiting.value == INTR) & (waiting.thread == own) & (waiting.end_row != OPEN)
        ends = np.append(waiting.end_row[is_before], waiting.row[wait]).astype(np.int64)
        entries = entries_of(trace, "INTERRUPT_UNMASK")
        unmasks = entries[trace.events.thread[entries] == own]
        counts = np.diff(np.searchsorted(unmasks, ends))
        return len(counts) > _FEW and bool(counts[:-1].all()) and not counts[-1]

    def _holders(self, open_rows: NDArray[np.intp]) -> tuple[dict[int, int], dict[int, Certainty]]:
        """Return for each wait for a mutex that lasts to the end its holder and, if known, the certainty, by wait."""
        rows = open_rows[self.blockers.waits.value[open_rows] == MUTEX].astype(np.int64)
        if not len(rows):
            return {}, {}
        thread, how = holders_at(self.trace, self.blockers, rows, len(self.trace.events))
        known = {wait: Certainty(value) for wait, value in zip(rows.tolist(), how.tolist(), strict=True) if value}
        return dict(zip(rows.tolist(), thread.tolist(), strict=True)), known

    def _alive(self, pid: int) -> frozenset[int]:
        """Return the threads of a process that have not ended."""
        threads = self.trace.threads
        rows = np.flatnonzero((threads.pid == pid) & (threads.tid > 0)).tolist()
        return frozenset(row for row in rows if not self.is_dead(row))

    def _is_receiving(self, thread: int) -> bool:
        return self._last_states.get(thread) == RECEIVE

    def _may_work(self, thread: int) -> bool:
        return not self._is_receiving(thread) and not self.is_dead(thread)


def knots(ways: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """Return circles of threads that wait for each other for ever, the threads of each in the order of their waits.

    Args:
        ways: By waiting thread, the threads any of which can end its wait; threads without an entry can continue.
    """
    stuck = {thread: tuple(sorted(to)) for thread, to in ways.items() if to}
    while free := [thread for thread, to in stuck.items() if any(other not in stuck for other in to)]:
        for thread in free:  # a thread that waits for one that can go on will go on
            del stuck[thread]
    while behind := set(stuck).difference(*stuck.values()):
        for thread in behind:  # a thread for which no other waits is behind a circle, not part of it
            del stuck[thread]
    circles = []
    while stuck:
        circle, ahead = [], [min(stuck)]
        while ahead:
            thread = ahead.pop()
            if thread in stuck:
                circle.append(thread)
                ahead.extend(reversed(stuck.pop(thread)))
        circles.append(circle)
    return circles


def behind(ways: Mapping[int, Iterable[int]], circle: Iterable[int]) -> list[int]:
    """Return the threads outside a circle that can only continue if a thread of the circle does, ascending.

    Args:
        ways: As for `knots`.
        circle: One circle from `knots`.
    """
    stuck, count = set(circle), 0
    while count < len(stuck):
        count = len(stuck)
        stuck |= {thread for thread, to in ways.items() if to and stuck.issuperset(to)}
    return sorted(stuck.difference(circle))


def _last_states(trace: Trace) -> dict[int, int]:
    """Return the last state of every thread that has any, as lane value."""
    start, index = trace.states.start, trace.states.event
    rows = np.flatnonzero(np.diff(start))
    last = index[start[rows + 1] - 1]
    value = trace.catalogue.state_value_of_code[trace.events.code[last]].astype(np.int64)
    value[trace.events.code[last] == wire.THREAD_DESTROY] = DEAD
    return dict(zip(rows.tolist(), value.tolist(), strict=True))


def _receivers(blocked_by: Blockers, trace: Trace) -> dict[tuple[int, int], frozenset[int]]:
    """Return {(pid, channel): threads that waited to receive there}; channel -1 = all channels of the process."""
    waiting = blocked_by.waits
    rows = np.flatnonzero((waiting.value == RECEIVE) & waiting.has_object)
    threads: dict[tuple[int, int], set[int]] = {}
    # Waits are sorted by thread, and most threads receive on one channel only.
    is_new = np.append(True, (np.diff(waiting.thread[rows]) != 0) | (np.diff(waiting.object[rows]) != 0))[: len(rows)]
    rows = rows[is_new]
    pids = trace.threads.pid[waiting.thread[rows]].tolist()
    for pid, chid, thread in zip(pids, waiting.object[rows].tolist(), waiting.thread[rows].tolist(), strict=True):
        threads.setdefault((pid, chid), set()).add(thread)
        threads.setdefault((pid, -1), set()).add(thread)
    return {key: frozenset(members) for key, members in threads.items()}


def _repliers(trace: Trace) -> frozenset[int]:
    """Return the threads that in this trace replied to messages that another thread had received."""
    table = replies(trace)
    receiver, replier = (trace.events.thread[rows] for rows in (table.from_row, table.to_row))
    return frozenset(np.unique(replier[(receiver != replier) & (replier != 0)]).tolist())


def _process_row(trace: Trace, pid: int) -> int:
    rows = np.flatnonzero(trace.processes.pid == pid)
    return int(rows[-1]) if len(rows) else 0


def keeping_processes(trace: Trace) -> frozenset[int]:
    """Return the pids of servers that received another message between a message and the reply to it."""
    table = replies(trace)
    receipt, reply = table.from_row.astype(np.int64), table.to_row.astype(np.int64)
    thread = trace.events.thread[receipt].astype(np.int64)
    order = stable_order(thread)  # receipts ascend
    receipt, reply, thread = receipt[order], reply[order], thread[order]
    keeps = np.flatnonzero((thread[1:] == thread[:-1]) & (receipt[1:] < reply[:-1]))
    return frozenset(np.unique(trace.threads.pid[thread[keeps]]).tolist())
