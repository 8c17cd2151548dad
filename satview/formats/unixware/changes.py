"""Which records change the state of which thread: the state index of a thread trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.events.states import STATE_BY_NAME
from satview.events.unixware import state_values
from satview.formats.unixware.calls import Bools, Calls, Effects
from satview.store.tables import StateIndex


def needed_for_own_state(calls: Calls, waiting: Bools, lwp: NDArray[np.uint8]) -> Bools:
    """Return for every record whether it shows a change of its own thread, bool (records,).

    That is the first record of a thread, the one after it waited, and the first one on another LWP.
    """
    by_thread = calls.by_thread
    needed = np.zeros(len(calls.code), np.bool_)
    before, here = by_thread[:-1], by_thread[1:]
    is_new = calls.thread[before] != calls.thread[here]
    needed[here] = is_new | waiting[before] | (lwp[before] != lwp[here])
    needed[by_thread[:1]] = True
    return needed


def state_index(
    calls: Calls, code: NDArray[np.uint16], lwp: NDArray[np.uint8], other: Effects, thread_count: int
) -> StateIndex:
    """Return the records at which the state of a thread changes, grouped by thread.

    Every record shows that its thread runs, so only those are taken that show something new: another state, another
    LWP, or that the thread has its LWP back from another thread.

    Args:
        calls: The records, in time order.
        code: Their codes with begin or end.
        lwp: Lane of the LWP of every record.
        other: Records that change another thread's state.
        thread_count: Rows of the thread table.
    """
    values = state_values()
    own = np.ones(len(code), np.bool_)
    own[other.event] = False
    rows = calls.by_thread[own[calls.by_thread]]
    other = _valid(other, rows, calls, values[code])
    event = np.concatenate((rows, other.event))
    thread = np.concatenate((calls.thread[rows].astype(np.int64), other.thread))
    order = np.lexsort((event, thread))
    event, thread = event[order], thread[order]
    value = values[code[event]]
    is_own = calls.thread[event] == thread
    back = _has_lwp_back(calls, lwp)
    keep = np.ones(len(event), np.bool_)
    same_thread = thread[1:] == thread[:-1]
    moved = is_own[1:] & ((lwp[event[1:]] != lwp[event[:-1]]) | back[event[1:]])
    keep[1:] = ~same_thread | (value[1:] != value[:-1]) | moved
    event, thread = event[keep], thread[keep]
    start = np.searchsorted(thread, np.arange(thread_count + 1)).astype(np.int64)
    return StateIndex(event.astype(np.uint32), start)


def _has_lwp_back(calls: Calls, lwp: NDArray[np.uint8]) -> Bools:
    """Return for every record whether the one before it on the LWP was another thread's."""
    by_lwp = np.argsort(lwp, kind="stable")
    back = np.zeros(len(lwp), np.bool_)
    before, here = by_lwp[:-1], by_lwp[1:]
    back[here] = (lwp[before] == lwp[here]) & (calls.thread[before] != calls.thread[here])
    return back


def _valid(other: Effects, own_rows: NDArray[np.intp], calls: Calls, value: NDArray[np.uint8]) -> Effects:
    """Leave out creations of threads that were heard of before, and continuations of threads that are not stopped.

    A creator writes its second record after the new thread may have begun to run.
    """
    if not len(other.event):
        return other
    own_thread = calls.thread[own_rows].astype(np.int64)
    key = (own_thread << 32) | own_rows
    at = np.searchsorted(key, other.thread.astype(np.int64) << 32 | other.event) - 1
    has_run = (at >= 0) & (own_thread[np.maximum(at, 0)] == other.thread)
    last_own = np.where(has_run, own_rows[np.maximum(at, 0)], -1)
    is_still = np.zeros(len(other.event), np.bool_)
    order = np.lexsort((other.event, other.thread))
    here, before = order[1:], order[:-1]
    is_still[here] = (other.thread[here] == other.thread[before]) & (other.event[before] > last_own[here])
    suspends = value[other.event] == STATE_BY_NAME["SUSPENDED"].value
    keep = suspends | ~has_run | is_still
    return Effects(other.event[keep], other.thread[keep])
