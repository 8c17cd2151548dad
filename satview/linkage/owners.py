"""Owners of mutexes: the thread that the word of a mutex names.

The word has the thread and the low part of its process in its two halves, in one order up to 6.x and in the other from
7.x on (7.1 listing: THREAD_CREATE shows tid 1 and 0x0001000a); bit 31 shows that threads wait.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.linkage.rows import thread_rows
from satview.linkage.table import Certainty
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

OWNER_MASK: Final = 0x7FFFFFFF
_PROCESS_MANAGER: Final = 1  # it shares no mutexes
_Ints = NDArray[np.int64]


def owners_within(trace: Trace, word: _Ints, pid: _Ints) -> _Ints:
    """Return the threads of some processes that words name as owners, if only one of the two orders makes sense.

    Args:
        trace: The threads.
        word: int64 (n,), words of mutexes without bit 31.
        pid: int64 (n,), process of each.

    Returns:
        int64 (n,), rows of the thread table; 0 for none, -1 where two threads fit.
    """
    high, low = word >> 16, word & 0xFFFF
    logged = []
    for tid, part, mask in ((high, low, 0xFFFF), (low, high, 0x7FFF)):
        who = thread_rows(trace, pid.astype(np.uint32), tid.astype(np.uint32))
        logged.append(np.where((part == pid & mask) & (tid > 0), who, 0))
    first, second = logged
    return np.where((first > 0) & (second > 0) & (first != second), -1, np.where(first > 0, first, second))


def owners_anywhere(trace: Trace, word: _Ints) -> _Ints:
    """Return the threads of any process that words fit: mutexes may be in shared memory.

    Args:
        trace: The threads.
        word: int64 (n,), words of mutexes without bit 31.

    Returns:
        int64 (n,), rows of the thread table; -1 where none or several fit.
    """
    tid, pid = trace.threads.tid.astype(np.int64), trace.threads.pid.astype(np.int64)
    who = np.flatnonzero((tid > 0) & (tid < 1 << 15) & (pid > _PROCESS_MANAGER))
    codes = np.concatenate((tid[who] << 16 | pid[who] & 0xFFFF, (pid[who] & 0x7FFF) << 16 | tid[who]))
    order = np.argsort(codes, kind="stable")
    codes, thread = codes[order], np.tile(who, 2)[order]
    first, last = np.searchsorted(codes, word), np.searchsorted(codes, word, side="right")
    out = np.full(len(word), -1, np.int64)
    fits = np.flatnonzero(last == first + 1)
    out[fits] = thread[first[fits]]
    return out


def owner_of(trace: Trace, word: int, pid: int) -> tuple[int, Certainty] | None:
    """Return the thread that the word of one mutex names and how certain that is; None for nobody, or not known.

    Args:
        trace: The threads.
        word: As the event has it.
        pid: Process of the thread that uses the mutex.
    """
    words = np.array([word & OWNER_MASK], np.int64)
    mine = int(owners_within(trace, words, np.array([pid], np.int64))[0])
    if mine > UNKNOWN_THREAD:
        return mine, Certainty.EXACT
    other = int(owners_anywhere(trace, words)[0])
    return (other, Certainty.INFERRED) if other > UNKNOWN_THREAD else None
