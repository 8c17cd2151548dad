"""Who holds a mutex at a moment while others wait for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.linkage.blockers import Blockers
from satview.linkage.mutexes import MUTEX, Mutexes, holds, mutexes
from satview.store.trace import Trace

_Ints = NDArray[np.int64]


def holders_at(trace: Trace, found: Blockers, wait: _Ints, bound: int) -> tuple[_Ints, _Ints]:
    """Return who holds what threads wait for in state MUTEX just before an event.

    Who held it as the wait began, unless that thread has given it up since: then who got it in the kernel meanwhile. A
    thread that had to wait has a mutex from the end of its wait on, before its call comes back.

    Args:
        trace: The events.
        found: Whom its waits are for.
        wait: int64 (n,), rows of `found`, all in that state.
        bound: Row of the event table, or their number.

    Returns:
        int64 (n,), rows of the thread table, -1 where it is not known; and int64 (n,), `Certainty`, 0 for those.
    """
    known = mutexes(trace)
    holder, certainty = found.thread[wait].copy(), found.certainty[wait].astype(np.int64)
    has_given = _have_given(known, holder, known.of_wait[wait], found.waits.row[wait].astype(np.int64), bound)
    holder[has_given], certainty[has_given] = -1, 0
    mutex, thread, how = _held(trace, found, known, bound)
    for i in np.flatnonzero((holder < 0) & (known.of_wait[wait] >= 0)).tolist():
        mine = np.flatnonzero((mutex == known.of_wait[wait[i]]) & (thread != found.waits.thread[wait[i]]))
        if len(mine) == 1:
            holder[i], certainty[i] = thread[mine[0]], how[mine[0]]
    return holder, certainty


def _have_given(known: Mutexes, holder: _Ints, mutex: _Ints, row: _Ints, bound: int) -> NDArray[np.bool_]:
    """Return for threads whether they may have given a mutex up between an event and the bound."""
    gives, out = known.gives, np.zeros(len(holder), np.bool_)
    stop = int(np.searchsorted(gives.row, bound))
    for i, start in enumerate(np.searchsorted(gives.row, row, side="right").tolist()):
        part = slice(start, max(stop, start))
        is_it = (gives.mutex[part] == mutex[i]) | (gives.mutex[part] < 0)
        out[i] = holder[i] > 0 and bool(np.any(is_it & ((gives.thread[part] == holder[i]) | (gives.thread[part] == 0))))
    return out


def _held(trace: Trace, found: Blockers, known: Mutexes, bound: int) -> tuple[_Ints, _Ints, _Ints]:
    """Return the mutexes that threads got by waiting and have at the bound: mutex, thread and certainty of each."""
    table, waiting = holds(trace), found.waits
    at = np.flatnonzero((table.from_row < bound) & (table.to_row >= bound))
    over = waiting.call_row[(waiting.value == MUTEX) & (waiting.end_row < bound)]
    at = at[np.isin(table.from_row[at], over)]
    position = np.searchsorted(known.gets.row, table.from_row[at])
    return known.gets.mutex[position], known.gets.thread[position], table.certainty[at].astype(np.int64)
