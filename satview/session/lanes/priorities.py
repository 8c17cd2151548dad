"""The priority of threads at their changes of state, and which part of it they have from others.

No event says that a priority is inherited. A server has its own again as it waits for the next message, for the kernel
takes back there what it lent; so has a thread that has just appeared, and one whose priority was just set. What it has
above that until the next such moment it has from a client, or from somebody who waits for its mutex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.kernel_calls import call_numbers
from satview.events.states import STATE_BY_NAME
from satview.filters.derived_columns import logged_priorities
from satview.linkage.rows import rows_of_codes, thread_rows
from satview.store.arguments import arguments
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

_RECEIVE: Final = STATE_BY_NAME["RECEIVE"].value
_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Priorities:
    """Priorities as wide thread events log them, by thread and then by time.

    Attributes:
        keys: int64 (n,), row of the thread << 32 | row of the event, ascending.
        now: int64 (n,), the priority that the thread has from that event on.
        own: int64 (n,), what it has by itself.
    """

    keys: _Ints
    now: _Ints
    own: _Ints

    @classmethod
    def of(cls, trace: Trace) -> Priorities:
        """Return those of a trace."""
        keys, now = logged_priorities(trace)
        if not len(keys):
            return cls(keys, now, now)
        rows = keys & 0xFFFFFFFF
        is_own = trace.catalogue.state_value_of_code[trace.events.code[rows]] == _RECEIVE
        is_own |= np.append(True, keys[1:] >> 32 != keys[:-1] >> 32)
        after = np.searchsorted(keys, _changes(trace), side="right")
        is_own[after[after < len(keys)]] = True
        last = np.maximum.accumulate(np.where(is_own, np.arange(len(keys)), 0))
        return cls(keys, now, now[last])

    def at(self, threads: NDArray[np.integer], rows: NDArray[np.integer]) -> tuple[_Ints, _Ints]:
        """Return the priorities that state events log.

        Args:
            threads: (n,), their threads.
            rows: (n,), their rows.

        Returns:
            What the threads have from then on, and what they have by themselves, int64 (n,) each; -1 = not logged.
        """
        none = np.full(len(rows), -1, np.int64)
        if not len(self.keys):
            return none, none
        pairs = threads.astype(np.int64) << 32 | rows.astype(np.int64)
        at = np.minimum(np.searchsorted(self.keys, pairs), len(self.keys) - 1)
        known = self.keys[at] == pairs
        return np.where(known, self.now[at], -1), np.where(known, self.own[at], -1)


def _changes(trace: Trace) -> _Ints:
    """Return when priorities are set, as keys of the threads whose they are."""
    number = call_numbers(trace.release).get("SCHED_SET")
    if number is None:
        return np.empty(0, np.int64)
    code = wire.code(wire.WireClass.KER_CALL, number)
    rows = rows_of_codes(trace, code, code | wire.KER_64BIT).astype(np.int64)
    (pid, _), (tid, knows_tid) = arguments(trace, rows, "pid", "tid")
    mine = trace.events.thread[rows].astype(np.int64)
    pid = np.where(pid > 0, pid, trace.threads.pid[mine])
    tid = np.where(tid > 0, tid, trace.threads.tid[mine])
    named = thread_rows(trace, pid.astype(np.int32).view(np.uint32), tid.astype(np.uint32))
    whose = np.where(knows_tid & (named != UNKNOWN_THREAD), named, mine)
    return np.asarray(whose << 32 | rows)
