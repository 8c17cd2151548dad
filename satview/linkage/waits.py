"""Waits of threads: their states, begins and ends, kernel calls, and the objects waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links
from satview.events import wire
from satview.events.kernel_calls import call_numbers
from satview.events.states import DEAD, NOT_A_STATE, READY, RUNNING, STATE_BY_NAME
from satview.linkage.calls import scanned
from satview.linkage.states import state_values, whole_states
from satview.linkage.table import NO_EVENT, OPEN, Rows
from satview.linkage.whole import is_whole
from satview.store.arguments import argument
from satview.store.losses import losses
from satview.store.trace import Trace

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


def waits(trace: Trace) -> Waits:
    """Return the waits of a trace; computed at the first call and cached with it."""
    return trace.cached("links.waits", _waits)


def _waits(trace: Trace) -> Waits:
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
    """Return the indices in `Trace.states.event` of waits in which no event is missing, and the row that ends each."""
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
    """Return the number of the kernel call that each event enters, int16; -1 for `NO_EVENT`."""
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
