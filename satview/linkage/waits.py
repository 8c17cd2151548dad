"""States of threads and their ends; waits with their calls and objects; and the kernel calls on mutexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links
from satview.core.links import stable_order
from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.states import DEAD, NOT_A_STATE, READY, RUNNING, STATE_BY_NAME
from satview.events.variants import FAILURES
from satview.linkage.calls import exits_of, partners, scanned
from satview.linkage.links import (
    NO_EVENT,
    OPEN,
    Certainty,
    LinkKind,
    Pairs,
    Rows,
    cached_links,
    is_whole,
    is_whole_on,
    no_pairs,
    pairs_of,
    rows_of_codes,
)
from satview.store.arguments import argument, variants_of
from satview.store.tables import UNKNOWN_THREAD
from satview.store.time_ranges import EVERY_CPU, losses
from satview.store.trace import Trace, cached_with_trace

# States of threads and the events that end them.


LANE_VALUES: Final = 256  # tables by lane value (`events.states`) have a position for each
IS_RUN: Final = np.arange(LANE_VALUES) == RUNNING


@cached_with_trace("links.state_values")
def state_values(trace: Trace) -> NDArray[np.uint8]:
    """Return the state that each entry of `Trace.states.event` begins, as lane value (`events.states`), uint8 (n,).

    Computed at the first call and cached with the trace; 1 byte per entry.
    """
    return links.values_of(trace.events.code, trace.states.event, trace.catalogue.state_value_of_code)


@cached_with_trace("links.state_ends")
def state_ends(trace: Trace) -> NDArray[np.uint32]:
    """Return for every event that begins a state of a thread the event that ends it: the thread's next state event.

    Computed at the first call and cached with the trace; 4 bytes per event.

    Returns:
        uint32 (events,), rows of the event table, `OPEN` where the trace ends before the state does, `NO_EVENT` for
        other events and where events are missing.
    """
    events, states = trace.events, trace.states
    values_and_ends = links.states(
        events.code, events.thread, states.event, states.start, trace.catalogue.state_value_of_code, NOT_A_STATE
    )
    if values_and_ends is not None and not len(losses(trace)):
        return values_and_ends[1]
    ends, is_known = whole_states(trace)
    if values_and_ends is not None:
        values_and_ends[1][states.event[~is_known]] = NO_EVENT
        return values_and_ends[1]
    column = np.full(len(events), NO_EVENT, np.uint32)
    column[states.event[is_known]] = ends[is_known]
    return column


def following(trace: Trace, entries: NDArray[np.intp] | None = None) -> NDArray[np.uint32]:
    """Return for entries of `Trace.states.event` the thread's next state event, `OPEN` after its last, uint32 (n,).

    It is not checked whether events are missing in between.

    Args:
        trace: The events.
        entries: (n,), indices into `Trace.states.event`, ascending; None = all.
    """
    states = trace.states
    last = states.start[1:][np.diff(states.start) > 0] - 1
    if entries is None:
        out = np.append(states.event[1:], np.uint32(OPEN))[: len(states.event)]
        out[last] = OPEN
        return out
    out = states.event.take(entries + 1, mode="clip")
    position = np.searchsorted(entries, last)
    is_requested = entries.take(position, mode="clip") == last if len(entries) else np.zeros(len(last), np.bool_)
    out[position[is_requested]] = OPEN
    return out


def whole_states(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return the end of each entry of `Trace.states.event`, and whether the entry is a state without missing events.

    A running state can only be ended by events of its CPU, so losses on other CPUs do not matter for it.

    Returns:
        uint32 (n,), result of `following`; bool (n,).
    """
    events, rows, ends = trace.events, trace.states.event, following(trace)
    value = state_values(trace)
    is_known = value != NOT_A_STATE
    for cpu in np.unique(losses(trace)[:, 2]).tolist():
        is_elsewhere = (value == RUNNING) & (cpu != EVERY_CPU) & (events.cpu[rows] != cpu)
        complete = np.flatnonzero(is_known & ~is_elsewhere)
        begin, end = rows[complete], np.minimum(ends[complete], np.uint32(len(events) - 1))
        is_known[complete] = is_whole_on(trace, cpu, begin, end)
    return ends, is_known


def state_positions(trace: Trace, rows: NDArray[np.integer], threads: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the index in `Trace.states.event` of each thread's first state event at or after a row, intp (n,).

    Args:
        trace: The events.
        rows: (n,), rows of the event table.
        threads: int64 (n,), rows of the thread table, all at least 0.

    Returns:
        Indices; where the thread has no such event, the index of the next thread's first event, or the length.
    """
    return links.state_positions(trace.states.event, trace.states.start, rows.astype(np.uint32), threads)


def first_that_fits(
    trace: Trace, positions: NDArray[np.intp], threads: NDArray[np.int64], table: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the row of each thread's first event, from a position on, of one of the given states; int64 (n,), or -1.

    It is not checked whether events are missing in between.

    Args:
        trace: The events.
        positions: (n,), results of `state_positions`.
        threads: int64 (n,), rows of the thread table.
        table: bool (256,), whether each lane value is one of the states.
    """
    states = trace.states
    return links.first_in_table(states.event, state_values(trace), states.start, positions, threads, table)


# Waits of threads: their states, starts and ends, kernel calls, and the objects waited for.


_IS_WAIT: Final = np.ones(256, np.bool_)  # lane values
_IS_WAIT[[RUNNING, READY, DEAD, NOT_A_STATE]] = False
_CALL_NUMBER: Final = 0x7F
_MUTEX: Final = STATE_BY_NAME["MUTEX"].value
# By kernel call, the argument that names the object waited for. In state MUTEX within SYNC_CONDVAR_WAIT the object is
# the mutex (mutex_p), not the condition variable.
_OBJECTS: Final = {
    "SYNC_MUTEX_LOCK": "sync_p", "SYNC_CONDVAR_WAIT": "sync_p", "SYNC_SEM_WAIT": "sync_p",
    "SYNC_RWLOCK": "sync_p", "MSG_RECEIVEV": "chid", "MSG_RECEIVEPULSEV": "chid", "THREAD_JOIN": "tid",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of all threads in which no event is missing, by thread, then in time order; columns of shape (n,).

    A thread may go from one wait into the next without running (SEND to REPLY, CONDVAR to MUTEX): these are two rows.

    Attributes:
        thread: int32, row of the thread table.
        value: uint8, the state as lane value (`events.states`).
        row: uint32, the event that begins the wait.
        end_row: uint32, the thread's next state event, which ends the wait; `OPEN` where the trace ends before it.
        end_value: uint8, the state that begins with `end_row`, as lane value; `NOT_A_STATE` where none does.
        first_row: uint32, the event by which the thread left the CPU: it begins the first of consecutive waits.
        call_row: uint32, entry of the kernel call in which the thread waits; `NO_EVENT` where not known.
        call: int16, number of that call; -1 where not known.
        object: int64, what the thread waits for, by state: address of the mutex, semaphore, condition variable, ...;
            channel (RECEIVE); tid (JOIN).
        has_object: bool, whether `object` is known.
    """

    thread: NDArray[np.int32]
    value: NDArray[np.uint8]
    row: NDArray[np.uint32]
    end_row: NDArray[np.uint32]
    end_value: NDArray[np.uint8]
    first_row: NDArray[np.uint32]
    call_row: NDArray[np.uint32]
    call: NDArray[np.int16]
    object: NDArray[np.int64]
    has_object: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.row)


@cached_with_trace("links.waits")
def waits(trace: Trace) -> Waits:
    """Return the waits of a trace; computed at the first call and cached with it."""
    value = state_values(trace)
    whole, end = _whole_waits(trace)
    row = trace.states.event[whole]
    thread = np.repeat(np.arange(len(trace.threads)), np.diff(np.searchsorted(whole, trace.states.start)))
    goes_on = np.append(False, (end[:-1] == row[1:]) & (thread[1:] == thread[:-1]))[: len(row)]
    first_row = row[np.maximum.accumulate(np.where(goes_on, np.uint32(0), np.arange(len(row), dtype=np.uint32)))]
    call_row = calls_of(trace, first_row, thread)
    call = number_of(trace, call_row)
    objects, known = _objects(trace, value[whole], call_row, call)
    end_value = value.take(whole + 1, mode="clip")
    end_value[end == OPEN] = NOT_A_STATE
    return Waits(thread.astype(np.int32), value[whole], row, end, end_value, first_row, call_row, call, objects, known)


def _whole_waits(trace: Trace) -> tuple[NDArray[np.intp], NDArray[np.uint32]]:
    """Return the waits (indices in `Trace.states.event`) in which no event is missing, and the row that ends each."""
    ends, is_whole_state = whole_states(trace)
    is_wait = _IS_WAIT[state_values(trace)] & is_whole_state
    if trace.pairs is not None:  # the file format itself shows what threads wait for
        is_wait[:] = False
    whole = np.flatnonzero(is_wait)
    return whole, ends[whole]


def calls_of(trace: Trace, rows: NDArray[np.uint32], thread: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the entry of the kernel call in which each thread leaves the CPU.

    Args:
        trace: The events.
        rows: (n,), the state events by which the threads leave the CPU.
        thread: int64 (n,), rows of the thread table.

    Returns:
        uint32 (n,), `NO_EVENT` where the call that is open on the CPU is of another thread, or events are missing.
    """
    entry = links.calls_of(scanned(trace).entry, trace.events.thread, rows, thread)
    if len(losses(trace)):
        within_call = np.flatnonzero(entry != NO_EVENT)
        entry[within_call[~is_whole(trace, entry[within_call], rows[within_call])]] = NO_EVENT
    return entry


def number_of(trace: Trace, entries: NDArray[np.uint32]) -> NDArray[np.int16]:
    """Return the number of the kernel call that each event enters, int16 (n,); -1 for `NO_EVENT`."""
    if not len(trace.events):
        return np.empty(0, np.int16)
    out = (trace.events.code.take(entries, mode="clip") & np.uint16(_CALL_NUMBER)).astype(np.int16)
    out[entries == NO_EVENT] = -1
    return out


def objects_of(trace: Trace, entries: Rows, call: NDArray[np.int16], names: dict[str, str]) -> tuple[
    NDArray[np.int64], NDArray[np.bool_],
]:  # fmt: skip
    """Return the arguments that name the objects of kernel calls.

    Args:
        trace: The events.
        entries: (n,), entries of kernel calls; `NO_EVENT` for none.
        call: int16 (n,), numbers of the calls.
        names: The argument to return for each kernel call, by name of the call.

    Returns:
        int64 (n,), the arguments; and bool (n,), whether each is known.
    """
    values, known = np.zeros(len(entries), np.int64), np.zeros(len(entries), np.bool_)
    numbers, has_call = call_numbers(trace.release), np.flatnonzero(call >= 0)
    call_number = call[has_call]
    for name in sorted(set(names.values())):
        requested = np.zeros(wire.KER_EXIT_OFFSET, np.bool_)
        requested[[numbers[spelt] for spelt, argued in names.items() if argued == name and spelt in numbers]] = True
        requested_calls = has_call[requested[call_number]]
        if len(requested_calls):
            values[requested_calls], known[requested_calls] = argument(trace, entries[requested_calls], name)
    return values, known


def _objects(
    trace: Trace, value: NDArray[np.uint8], call_row: NDArray[np.uint32], call: NDArray[np.int16],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:  # fmt: skip
    objects, known = objects_of(trace, call_row, call, _OBJECTS)
    retaking = np.flatnonzero((value == _MUTEX) & (call == call_numbers(trace.release).get("SYNC_CONDVAR_WAIT", -2)))
    if len(retaking):
        objects[retaking], known[retaking] = argument(trace, call_row[retaking], "mutex_p")
    return objects, known


# Kernel calls on mutexes: which call locked each mutex, and which call unlocked it.


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


@cached_with_trace("links.mutexes")
def mutexes(trace: Trace) -> Mutexes:
    """Return the kernel calls on mutexes that did not fail; computed at the first call and cached with the trace."""
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


@cached_links(LinkKind.HOLD)
def holds(trace: Trace) -> Pairs:
    """Return the links from the kernel call by which a thread locked a mutex to its next call that unlocks the mutex.

    Locking a free mutex and unlocking one that nobody waits for need no kernel call, so that the trace shows neither.
    A hold is exact if another thread waited all the time, as the unlock then needs the kernel. Other holds are
    inferred: the thread may have unlocked the mutex and locked it again in between.
    """
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


def entries_of(trace: Trace, *names: str) -> NDArray[np.uint32]:
    """Return the entries of the named kernel calls, uint32, ascending; names that the release lacks are skipped."""
    codes = codes_of_entries(trace, *names)
    return rows_of_codes(trace, *codes) if codes else np.empty(0, np.uint32)


def codes_of_entries(trace: Trace, *names: str) -> list[int]:
    """Return the entry codes of the named kernel calls; names that the release lacks are skipped."""
    numbers = call_numbers(trace.release)
    return [wire.code(wire.WireClass.KER_CALL, numbers[name] | form)
            for name in names if name in numbers for form in (0, wire.KER_64BIT)]  # fmt: skip


def _together(
    trace: Trace, rows: tuple[NDArray[np.uint32], NDArray[np.uint32]], mutex: tuple[_Ints, _Ints],
) -> MutexCalls:  # fmt: skip
    row, number = np.concatenate(rows), np.concatenate(mutex)
    order = stable_order(row)
    return MutexCalls(row[order], trace.events.thread[row[order]].astype(np.int64), number[order])


def succeeded(trace: Trace, entries: NDArray[np.uint32], is_open_fine: bool = False) -> NDArray[np.uint32]:
    """Return the entries of the given kernel calls that exited without an error, uint32 (k,), in the same order.

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


def _is_held(trace: Trace, known: Mutexes, begin: _Ints, end: _Ints, mutex: _Ints) -> NDArray[np.bool_]:
    """Return whether another thread waited from the end of the call that locked a mutex to the unlocking call."""
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
