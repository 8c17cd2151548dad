"""Finds the thread or process that a thread waits for: holder of a mutex, server, receiver, or thread that it joins.

The word of a mutex names its owner: one half is the tid, the other the low part of the pid. The order of the halves
changed between 6.x and 7.x (7.1 listing: THREAD_CREATE shows tid 1 and 0x0001000a). Bit 31 is set while threads wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core.links import stable_order
from satview.events.states import STATE_BY_NAME
from satview.linkage.links import NO_EVENT, OPEN, Certainty, comm_words, is_whole, thread_rows
from satview.linkage.messages import messages
from satview.linkage.waits import MUTEX, Mutexes, Waits, codes_of_entries, holds, mutexes, waits
from satview.linkage.wake_ups import last_sends, wake_ups
from satview.store.arguments import argument
from satview.store.tables import UNKNOWN_THREAD
from satview.store.time_ranges import KERNEL_PID
from satview.store.trace import Trace, cached_with_trace

OWNER_MASK: Final = 0x7FFFFFFF


def owners_within(trace: Trace, word: _Ints, pid: _Ints) -> _Ints:
    """Return the owner that each mutex word names, a thread of the process; the halves of a word may have any order.

    Args:
        trace: The threads.
        word: int64 (n,), words of mutexes without bit 31.
        pid: int64 (n,), process that uses each mutex.

    Returns:
        int64 (n,), rows of the thread table; 0 where no thread fits, -1 where two do.
    """
    high, low = word >> 16, word & 0xFFFF
    logged = []
    for tid, part, mask in ((high, low, 0xFFFF), (low, high, 0x7FFF)):
        who = thread_rows(trace, pid.astype(np.uint32), tid.astype(np.uint32))
        logged.append(np.where((part == pid & mask) & (tid > 0), who, 0))
    by_high, by_low = logged
    return np.where((by_high > 0) & (by_low > 0) & (by_high != by_low), -1, np.where(by_high > 0, by_high, by_low))


def owners_anywhere(trace: Trace, word: _Ints) -> _Ints:
    """Return the thread of any process that fits the owner in a mutex word, for mutexes in shared memory.

    Args:
        trace: The threads.
        word: int64 (n,), words of mutexes without bit 31.

    Returns:
        int64 (n,), rows of the thread table; -1 where none or several fit.
    """
    tid, pid = trace.threads.tid.astype(np.int64), trace.threads.pid.astype(np.int64)
    who = np.flatnonzero((tid > 0) & (tid < 1 << 15) & (pid > KERNEL_PID))  # whose own process shares no mutexes
    codes = np.concatenate((tid[who] << 16 | pid[who] & 0xFFFF, (pid[who] & 0x7FFF) << 16 | tid[who]))
    order = np.argsort(codes, kind="stable")
    codes, thread = codes[order], np.tile(who, 2)[order]
    start, stop = np.searchsorted(codes, word), np.searchsorted(codes, word, side="right")
    out = np.full(len(word), -1, np.int64)
    fits = np.flatnonzero(stop == start + 1)
    out[fits] = thread[start[fits]]
    return out


def owner_of(trace: Trace, word: int, pid: int) -> tuple[int, Certainty] | None:
    """Return the thread that the word of one mutex names as owner, and the certainty; None if no thread fits.

    Args:
        trace: The threads.
        word: The word as the event shows it.
        pid: Process of the thread that uses the mutex.
    """
    words = np.array([word & OWNER_MASK], np.int64)
    in_process = int(owners_within(trace, words, np.array([pid], np.int64))[0])
    if in_process > UNKNOWN_THREAD:
        return in_process, Certainty.EXACT
    elsewhere = int(owners_anywhere(trace, words)[0])
    return (elsewhere, Certainty.INFERRED) if elsewhere > UNKNOWN_THREAD else None


SEND: Final = STATE_BY_NAME["SEND"].value
REPLY: Final = STATE_BY_NAME["REPLY"].value
JOIN: Final = STATE_BY_NAME["JOIN"].value
RWLOCKS: Final = tuple(STATE_BY_NAME[name].value for name in ("RWLOCK_READ", "RWLOCK_WRITE"))
_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Blockers:
    """The thread or process that each wait is for, one row for each row of `waits`; every column has shape (n,).

    Attributes:
        waits: The waiting thread, its state, start and end of the wait, and the object waited for.
        thread: int32, row of the thread table: the thread that, at the start of the wait, can end it, as it holds the
            mutex, has received the message, or is joined. -1 where there is no such thread (condition variables,
            semaphores, barriers, time) or the trace does not show it.
        pid: int32, process of that thread; for a wait in SEND the process to which the message goes, any thread of
            which may receive it. -1 where it is not known.
        certainty: uint8, `Certainty`; 0 where `pid` is -1.
    """

    waits: Waits
    thread: NDArray[np.int32]
    pid: NDArray[np.int32]
    certainty: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.thread)


@cached_with_trace("links.blockers")
def blockers(trace: Trace) -> Blockers:
    """Return the thread or process that each wait of a trace is for; computed at the first call and then cached.

    The holder of a mutex is exact where the call shows the mutex's owner word (fast mode with 32 bits, and wide mode).
    The holder is inferred where the mutex is in shared memory of processes, as the word has only a part of the pid.
    Without the word the holder is inferred from the unlock: while a thread waits, only the holder can unlock the mutex,
    and needs a kernel call for that. In shared memory, where addresses differ, the thread whose call ended the wait is
    taken to be the holder. The same applies to read/write locks (kernel objects from 8.0 on): of several readers, the
    last to unlock is named. Source: formula 5 of the reference.
    """
    all_waits = waits(trace)
    thread, pid = np.full(len(all_waits), -1, np.int32), np.full(len(all_waits), -1, np.int32)
    certainty = np.zeros(len(all_waits), np.uint8)

    def assign(position: NDArray[np.intp], who: _Ints, how: Certainty) -> None:
        """Set the awaited threads of the waits at `position` to the known ones in `who`, where none is set yet."""
        fits = (who > UNKNOWN_THREAD) & (thread[position] < 0)
        position, who = position[fits], who[fits]
        thread[position], pid[position], certainty[position] = who, trace.threads.pid[who], how

    wait, server, to = _of_messages(trace, all_waits)
    known = to > 0
    pid[wait[known]], certainty[wait[known]] = to[known], Certainty.EXACT
    assign(wait, server, Certainty.EXACT)
    wait = np.flatnonzero((all_waits.value == JOIN) & all_waits.has_object)
    own_pid = trace.threads.pid[all_waits.thread[wait]].view(np.uint32)
    assign(wait, thread_rows(trace, own_pid, all_waits.object[wait].astype(np.uint32)), Certainty.EXACT)
    wait = np.flatnonzero((all_waits.value == MUTEX) & all_waits.has_object)
    word, is_known = _owner_words(trace, all_waits, wait)
    assign(wait, _owners(trace, all_waits, wait, word, is_known), Certainty.EXACT)
    assign(wait, _owners_elsewhere(trace, all_waits, wait, word, is_known), Certainty.INFERRED)
    assign(wait, _next_to_give(trace, wait), Certainty.INFERRED)
    for states in ((MUTEX,), RWLOCKS):
        wait = np.flatnonzero(np.isin(all_waits.value, states) & all_waits.has_object & (all_waits.end_row != OPEN))
        assign(wait, _who_let_in(trace, all_waits, wait), Certainty.INFERRED)
    return Blockers(all_waits, thread, pid, certainty)


def _of_messages(trace: Trace, all_waits: Waits) -> tuple[NDArray[np.intp], _Ints, _Ints]:
    """Return waits in SEND and REPLY, each message's receiving thread (-1 in SEND), and the pid it was sent to."""
    wait = np.flatnonzero((all_waits.value == SEND) | (all_waits.value == REPLY))
    sent = last_sends(trace, all_waits.thread[wait], all_waits.row[wait])
    # The send is part of the call that the thread waits in.
    fits = (sent != NO_EVENT) & (all_waits.call_row[wait] != NO_EVENT) & (sent > all_waits.call_row[wait])
    wait, sent = wait[fits], sent[fits]
    whole = is_whole(trace, sent, all_waits.row[wait])
    wait, sent = wait[whole], sent[whole]
    to = comm_words(trace, sent)[1].view(np.int32).astype(np.int64)
    received = messages(trace).ends_of(sent)
    server = np.full(len(wait), -1, np.int64)
    known = (received != NO_EVENT) & (all_waits.value[wait] == REPLY)
    server[known] = trace.events.thread[received[known]]
    return wait, server, to


def _owner_words(trace: Trace, all_waits: Waits, wait: NDArray[np.intp]) -> tuple[_Ints, NDArray[np.bool_]]:
    """Return the word of the mutex that each wait is for, without bit 31, and whether it is known; (n,) each."""
    word, known = argument(trace, all_waits.call_row[wait], "owner")
    # Within SYNC_CONDVAR_WAIT the word is that of another object.
    known &= all_waits.first_row[wait] == all_waits.row[wait]
    return word & OWNER_MASK, known


def _owners(trace: Trace, all_waits: Waits, wait: NDArray[np.intp], word: _Ints, known: NDArray[np.bool_]) -> _Ints:
    """Return the thread of the waiting process that each mutex word names; 0 = none or word not known, -1 = two fit."""
    who = owners_within(trace, word, trace.threads.pid[all_waits.thread[wait]].astype(np.int64))
    return np.where(known, who, 0)


def _owners_elsewhere(
    trace: Trace, all_waits: Waits, wait: NDArray[np.intp], word: _Ints, known: NDArray[np.bool_]
) -> _Ints:
    """Return the only thread of any process that each mutex word names, without the waiting one; -1 = not known."""
    out = np.where(known, owners_anywhere(trace, word), -1)
    out[out == all_waits.thread[wait]] = -1
    return out


def _next_to_give(trace: Trace, wait: NDArray[np.intp]) -> _Ints:
    """Return for each wait for a mutex the thread that next unlocks it during the wait, -1 for none; int64 (n,)."""
    all_waits, known = waits(trace), mutexes(trace)
    gives = known.gives
    order = stable_order(gives.mutex + 1)
    key = (gives.mutex[order] << 32 | gives.row[order])[np.searchsorted(gives.mutex[order], 0) :]
    order = order[len(order) - len(key) :]
    out = np.full(len(wait), -1, np.int64)
    mutex = known.of_wait[wait].astype(np.int64)
    position = np.searchsorted(key, mutex << 32 | all_waits.row[wait])
    fits = np.flatnonzero((position < len(key)) & (mutex >= 0))
    waiting, give = wait[fits], order[position[fits]]
    gives_next = gives.mutex[give] == mutex[fits]
    gives_next &= (all_waits.end_row[waiting] == OPEN) | (gives.row[give] < all_waits.end_row[waiting])
    gives_next &= gives.thread[give] != all_waits.thread[waiting]
    # A condition variable wait whose mutex is not known may have unlocked this mutex before.
    unclear = gives.row[gives.mutex < 0]
    process = trace.threads.process
    owner, unclear_owner = process[all_waits.thread[waiting]].astype(np.int64), process[gives.thread[gives.mutex < 0]]
    rows = np.sort(unclear_owner.astype(np.int64) << 32 | unclear)
    gives_next &= (np.searchsorted(rows, owner << 32 | all_waits.row[waiting])
                == np.searchsorted(rows, owner << 32 | gives.row[give]))  # fmt: skip
    gives_next &= ~known.may_be_given(all_waits.row[waiting].astype(np.int64), gives.row[give].astype(np.int64))
    out[fits[gives_next]] = gives.thread[give[gives_next]]
    return out


def _who_let_in(trace: Trace, all_waits: Waits, wait: NDArray[np.intp]) -> _Ints:
    """Return for each wait for a lock the thread whose unlock ended the wait, -1 for none; int64 (n,).

    Only a thread that holds the lock can unlock it; it may be of another process. A thread that itself waited for a
    lock until after this wait began is left out: it may not have held the lock when this wait began.
    """
    out = np.full(len(wait), -1, np.int64)
    if not len(wait):
        return out
    woken = wake_ups(trace)
    link = woken.ended_by(all_waits.end_row[wait])
    known = np.flatnonzero(link >= 0)
    cause = woken.from_row[link[known]]
    is_lock = np.isin(trace.events.code[cause], codes_of_entries(trace, "SYNC_RWLOCK", "SYNC_MUTEX_UNLOCK"))
    known, cause = known[is_lock], cause[is_lock]
    who = trace.events.thread[cause].astype(np.int64)
    # The newest wait of that thread for the same lock before its call.
    order = np.lexsort((all_waits.row[wait], all_waits.thread[wait]))
    key = all_waits.thread[wait][order].astype(np.int64) << 32 | all_waits.end_row[wait][order]
    position = np.searchsorted(key, who << 32 | cause) - 1
    before = wait[order[np.maximum(position, 0)]]
    waited = (position >= 0) & (all_waits.thread[before] == who)
    waited &= all_waits.end_row[before] > all_waits.row[wait[known]]
    out[known[~waited]] = who[~waited]
    return out


def holders_at(trace: Trace, all_blockers: Blockers, wait: _Ints, bound: int) -> tuple[_Ints, _Ints]:
    """Return the holders, just before an event, of the mutexes for which threads wait in state MUTEX.

    The holder is the thread that held the mutex when the wait began or, if that thread has unlocked the mutex since,
    the one that then locked it by a kernel call. A thread that had to wait holds the mutex from the end of its wait on,
    before its call returns.

    Args:
        trace: The events.
        all_blockers: The `blockers` of the trace.
        wait: int64 (n,), rows of `all_blockers`, all in state MUTEX.
        bound: Row of the event, or the number of events for the end of the trace.

    Returns:
        int64 (n,), rows of the thread table, -1 where not known; and int64 (n,), `Certainty`, 0 where not known.
    """
    known = mutexes(trace)
    holder, certainty = all_blockers.thread[wait].astype(np.int64), all_blockers.certainty[wait].astype(np.int64)
    has_given = _have_given(
        known, holder, known.of_wait[wait].astype(np.int64), all_blockers.waits.row[wait].astype(np.int64), bound
    )
    holder[has_given], certainty[has_given] = -1, 0
    mutex, thread, how = _held(trace, all_blockers, known, bound)
    for i in np.flatnonzero((holder < 0) & (known.of_wait[wait] >= 0)).tolist():
        candidates = np.flatnonzero((mutex == known.of_wait[wait[i]]) & (thread != all_blockers.waits.thread[wait[i]]))
        if len(candidates) == 1:
            holder[i], certainty[i] = thread[candidates[0]], how[candidates[0]]
    return holder, certainty


def _have_given(known: Mutexes, holder: _Ints, mutex: _Ints, row: _Ints, bound: int) -> NDArray[np.bool_]:
    """Return for each holder whether it may have unlocked its mutex after the event in `row` and before `bound`."""
    gives, out = known.gives, np.zeros(len(holder), np.bool_)
    stop = int(np.searchsorted(gives.row, bound))
    for i, start in enumerate(np.searchsorted(gives.row, row, side="right").tolist()):
        part = slice(start, max(stop, start))
        is_same_mutex = (gives.mutex[part] == mutex[i]) | (gives.mutex[part] < 0)
        out[i] = holder[i] > 0 and bool(
            np.any(is_same_mutex & ((gives.thread[part] == holder[i]) | (gives.thread[part] == 0)))
        )
    return out


def _held(trace: Trace, all_blockers: Blockers, known: Mutexes, bound: int) -> tuple[_Ints, _Ints, _Ints]:
    """Return mutex, thread and certainty of the mutexes that threads got after a wait and hold at the event `bound`."""
    table, waiting = holds(trace), all_blockers.waits
    held = np.flatnonzero((table.from_row < bound) & (table.to_row >= bound))
    over = waiting.call_row[(waiting.value == MUTEX) & (waiting.end_row < bound)]
    held = held[np.isin(table.from_row[held], over)]
    position = np.searchsorted(known.gets.row, table.from_row[held])
    return known.gets.mutex[position], known.gets.thread[position], table.certainty[held].astype(np.int64)
