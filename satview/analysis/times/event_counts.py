"""How often each event occurs, when first and last; and what each thread logged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.scope import Scope, codes_where
from satview.core import statistics
from satview.events import wire
from satview.events.wire import CODE_COUNT, WireClass

IS_CALL: Final = codes_where(
    lambda kind, event: (kind == WireClass.KER_CALL) & (event & (wire.KER_EXIT_OFFSET | wire.KER_INT_OFFSET) == 0)
)
IS_SEND: Final = codes_where(lambda kind, event: (kind == WireClass.COMM) & (event == 0))
IS_RECEIVE: Final = codes_where(lambda kind, event: (kind == WireClass.COMM) & (event == 2))
# What an event is to its thread: 1 a call, 2 a message sent, 3 one received, 0 anything else.
_ROLE: Final = (IS_CALL + 2 * IS_SEND.astype(np.uint8) + 3 * IS_RECEIVE.astype(np.uint8)).astype(np.uint8)
_ROLES: Final = 4


@dataclass(frozen=True, slots=True)
class EventKinds:
    """One row per kind of event that occurs, by code.

    Attributes:
        code: int64, (n,), internal class and event (`events.wire.code`).
        count: int64, events that count.
        first, last: int64, rows of the first and the last of them.
    """

    code: NDArray[np.int64]
    count: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.code)


@dataclass(frozen=True, slots=True)
class ThreadCounts:
    """What each thread logged; every column int64 (threads,).

    Attributes:
        events: Its changes of state, and what was logged while it ran.
        calls: Kernel calls it entered.
        sent: Messages it sent.
        received: Messages it received.
    """

    events: NDArray[np.int64]
    calls: NDArray[np.int64]
    sent: NDArray[np.int64]
    received: NDArray[np.int64]


def event_counts(scope: Scope) -> tuple[EventKinds, ThreadCounts]:
    """Return both tables, from one walk over the events of the range."""
    events, threads = scope.trace.events, len(scope.trace.threads)
    sums = count, first, last, by_thread = *np.zeros((3, CODE_COUNT), np.int64), np.zeros((threads, _ROLES), np.int64)
    for part in scope.chunks():
        code, thread = events.code[part], events.thread[part]
        if scope.passes is None:
            statistics.event_counts(code, thread, part.start, _ROLE, sums)
        else:
            keep = np.flatnonzero(scope.passes[part])
            _count(code[keep], thread[keep], keep + part.start, sums)
    seen = np.flatnonzero(count)
    return (
        EventKinds(seen, count[seen], first[seen], last[seen]),
        ThreadCounts(by_thread.sum(axis=1), *by_thread.T[1:]),
    )


def _count(
    code: NDArray[np.uint16], thread: NDArray[np.unsignedinteger], row: NDArray[np.int64], sums: statistics.EventSums
) -> None:
    """Add events of a selection to the sums.

    Args:
        code: uint16 (n,).
        thread: uint16 or uint32 (n,).
        row: int64 (n,), ascending.
        sums: As `statistics.event_counts`.
    """
    count, first, last, by_thread = sums
    here = np.bincount(code, minlength=CODE_COUNT)
    if np.any((here > 0) & (count == 0)):
        fresh = count[code] == 0
        first[code[fresh][::-1]] = row[fresh][::-1]  # backwards, so that the earliest is written last
    last[code] = row
    count += here
    of_roles = np.bincount(thread * np.intp(_ROLES) + _ROLE[code], minlength=by_thread.size)
    by_thread += of_roles.reshape(by_thread.shape)
