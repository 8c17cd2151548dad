"""Kernel calls on mutexes: which call locked each mutex, and which call unlocked it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links
from satview.core.ordering import stable_order
from satview.events import wire
from satview.events.kernel_calls import call_numbers
from satview.events.states import STATE_BY_NAME
from satview.events.variants import FAILURES
from satview.linkage.calls import exits_of, partners
from satview.linkage.rows import rows_of_codes
from satview.linkage.table import NO_EVENT, OPEN, Certainty, LinkKind, LinkTable, Pairs, no_pairs, pairs_of
from satview.linkage.waits import waits
from satview.linkage.whole import is_whole
from satview.store.arguments import argument, variants_of
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

MUTEX: Final = STATE_BY_NAME["MUTEX"].value
_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MutexCalls:
    """Kernel calls that lock or unlock mutexes, in time order; every column has shape (n,).

    SYNC_CONDVAR_WAIT unlocks the mutex and locks it again: the call is in both tables of `Mutexes`.

    Attributes:
        row: uint32, entry of the call.
        thread: int64, row of the thread table.
        mutex: int64, a number for each process and address of a mutex; -1 where the event does not show the address.
    """

    row: NDArray[np.uint32]
    thread: _Ints
    mutex: _Ints


@dataclass(frozen=True, slots=True)
class Mutexes:
    """Calls and waits on the mutexes of a trace.

    Attributes:
        gets: Calls that locked a mutex.
        gives: Calls that unlocked a mutex.
        of_wait: int32, number of the mutex for each row of `waits` in state MUTEX; -1 for others and where not known.
    """

    gets: MutexCalls
    gives: MutexCalls
    of_wait: NDArray[np.int32]

    def may_be_given(self, begin: _Ints, end: _Ints) -> NDArray[np.bool_]:
        """Return for each pair of rows whether an unidentified thread unlocks any mutex between them.

        Returns:
            bool (n,).
        """
        rows = self.gives.row[self.gives.thread == UNKNOWN_THREAD]
        return np.asarray(np.searchsorted(rows, begin) < np.searchsorted(rows, end))


def mutexes(trace: Trace) -> Mutexes:
    """Return the kernel calls on mutexes that did not fail; computed at the first call and cached with the trace."""
    return trace.cached("links.mutexes", _mutexes)


def holds(trace: Trace) -> LinkTable:
    """Return the links from the kernel call by which a thread locked a mutex to its next call that unlocks the mutex.

    Locking a free mutex and unlocking one that nobody waits for need no kernel call, so that the trace shows neither.
    A hold is exact if another thread waited all the time, as the unlock then needs the kernel. Other holds are
    inferred: the thread may have unlocked the mutex and locked it again in between.
    """
    return trace.cached("links.hold", lambda trace: LinkTable.of(LinkKind.HOLD, _holds(trace)))


def entries_of(trace: Trace, *names: str) -> NDArray[np.uint32]:
    """Return the entries of the named kernel calls, uint32, ascending; names that the release lacks are skipped."""
    codes = codes_of_entries(trace, *names)
    return rows_of_codes(trace, *codes) if codes else np.empty(0, np.uint32)


def codes_of_entries(trace: Trace, *names: str) -> list[int]:
    """Return the entry codes of the named kernel calls; names that the release lacks are skipped."""
    numbers = call_numbers(trace.release)
    return [wire.code(wire.WireClass.KER_CALL, numbers[name] | form)
            for name in names if name in numbers for form in (0, wire.KER_64BIT)]  # fmt: skip


def _mutexes(trace: Trace) -> Mutexes:
    locks = succeeded(trace, entries_of(trace, "SYNC_MUTEX_LOCK"))
    unlocks = succeeded(trace, entries_of(trace, "SYNC_MUTEX_UNLOCK"), is_open_fine=True)
    all_waits = waits(trace)
    pauses = entries_of(trace, "SYNC_CONDVAR_WAIT")
    in_pause = all_waits.call == call_numbers(trace.release).get("SYNC_CONDVAR_WAIT", -1)
    pauses = pauses[np.isin(pauses, all_waits.call_row[in_pause])]  # a call that fails does not touch the mutex
    parts = [argument(trace, locks, "sync_p"), argument(trace, unlocks, "sync_p"), argument(trace, pauses, "mutex_p")]
    waiting = np.flatnonzero((all_waits.value == MUTEX) & all_waits.has_object)
    address = np.concatenate([*(part[0] for part in parts), all_waits.object[waiting]])
    known = np.concatenate([*(part[1] for part in parts), np.ones(len(waiting), np.bool_)])
    callers = (trace.events.thread[rows] for rows in (locks, unlocks, pauses))
    thread = np.concatenate((*callers, all_waits.thread[waiting]))
    process = trace.threads.process[thread].astype(np.int64)
    addresses, which = links.numbered(address)
    number = links.numbered(process * addresses + which)[1]
    number[~known | (address == 0) | (thread == UNKNOWN_THREAD)] = -1
    ends = np.cumsum([len(locks), len(unlocks), len(pauses)])
    of_lock, of_unlock, of_pause, of_waiting = np.split(number, ends)
    of_wait = np.full(len(all_waits), -1, np.int32)
    of_wait[waiting] = of_waiting
    return Mutexes(_together(trace, (locks, pauses), (of_lock, of_pause)),
                   _together(trace, (unlocks, pauses), (of_unlock, of_pause)), of_wait)  # fmt: skip


def _together(
    trace: Trace, rows: tuple[NDArray[np.uint32], NDArray[np.uint32]], mutex: tuple[_Ints, _Ints],
) -> MutexCalls:  # fmt: skip
    row, number = np.concatenate(rows), np.concatenate(mutex)
    order = stable_order(row)
    return MutexCalls(row[order], trace.events.thread[row[order]].astype(np.int64), number[order])


def succeeded(trace: Trace, entries: NDArray[np.uint32], is_open_fine: bool = False) -> NDArray[np.uint32]:
    """Return the entries of the given kernel calls that exited without an error.

    Args:
        trace: The events.
        entries: uint32 (n,), entries of kernel calls.
        is_open_fine: Also return calls whose end is not in the trace.
    """
    exits = exits_of(trace, entries)
    has_exit = exits != NO_EVENT
    good = np.full(len(entries), is_open_fine) & ~has_exit
    with_exit = np.flatnonzero(has_exit)
    is_exit = trace.events.code[exits[with_exit]] & wire.KER_FORM == wire.KER_EXIT_OFFSET
    good[with_exit] = is_exit & ~np.isin(variants_of(trace, exits[with_exit]), FAILURES)
    return np.asarray(entries[good])


def _holds(trace: Trace) -> Pairs:
    known = mutexes(trace)
    gets, gives = known.gets, known.gives
    if not len(gets.row) or not len(gives.row):
        return no_pairs()
    row = np.concatenate((gets.row, gives.row)).astype(np.int64)
    is_get = np.arange(len(row)) < len(gets.row)
    thread = np.concatenate((gets.thread, gives.thread))
    mutex = np.concatenate((gets.mutex, gives.mutex))
    order = stable_order(row * 2 + is_get)  # SYNC_CONDVAR_WAIT unlocks first, then locks
    row, is_get, thread, mutex = row[order], is_get[order], thread[order], mutex[order]
    before = links.previous_same(mutex * len(trace.threads) + thread)
    give = np.flatnonzero(~is_get & (mutex >= 0) & (before >= 0))
    give = give[is_get[before[give]]]
    begin, end, number, who = row[before[give]], row[give], mutex[give], thread[give]
    # A SYNC_CONDVAR_WAIT whose event does not show the mutex may unlock this one.
    unclear = np.sort((gives.thread << 32 | gives.row)[gives.mutex < 0])
    clear = np.searchsorted(unclear, who << 32 | begin, side="right") == np.searchsorted(unclear, who << 32 | end)
    clear &= is_whole(trace, begin, end)
    begin, end, number = begin[clear], end[clear], number[clear]
    is_exact = _is_held(trace, known, begin, end, number) & ~known.may_be_given(begin, end)
    return pairs_of(begin, end, np.where(is_exact, np.uint8(Certainty.EXACT), np.uint8(Certainty.INFERRED)))


def _is_held(trace: Trace, known: Mutexes, begin: _Ints, end: _Ints, mutex: _Ints) -> NDArray[np.bool_]:
    """Return for each hold whether some thread waits for the mutex all the time after the call that locked it."""
    since = partners(trace)[begin].astype(np.int64)
    all_waits, wait = waits(trace), np.flatnonzero(known.of_wait >= 0)
    ended = wait[all_waits.end_row[wait] != OPEN]
    row = np.concatenate((all_waits.row[wait], all_waits.end_row[ended])).astype(np.int64)
    number = known.of_wait[np.concatenate((wait, ended))].astype(np.int64)
    step = np.where(np.arange(len(row)) < len(wait), 1, -1)
    order = np.lexsort((row, number))
    key = number[order] << 32 | row[order]
    depth = np.cumsum(step[order])
    group_start = np.searchsorted(number[order], number[order])
    depth -= depth[group_start] - step[order][group_start]
    none_left = np.append(0, np.cumsum(depth == 0))
    start, stop = np.searchsorted(key, mutex << 32 | since), np.searchsorted(key, mutex << 32 | end)
    requested = (start > 0) & (since != NO_EVENT)
    requested[requested] = (number[order][start[requested] - 1] == mutex[requested]) & (depth[start[requested] - 1] > 0)
    return np.asarray(requested & (none_left[stop] == none_left[start]))
