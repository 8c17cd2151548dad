"""Where pulses and signals come from, and who creates threads and processes."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.kernel_calls import call_numbers
from satview.linkage import actors, pulses
from satview.linkage.rows import comm_words, last_of_codes, rows_of_codes
from satview.linkage.table import NO_EVENT, Certainty, LinkKind, LinkTable, Pairs, no_pairs, pairs_of
from satview.linkage.waits import number_of
from satview.linkage.whole import is_whole
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

_SIGNAL: Final = wire.code(wire.WireClass.COMM, 9)
_DEATH: Final = wire.code(wire.WireClass.COMM, 6)


def deliveries(trace: Trace) -> LinkTable:
    """Return what sent each pulse or signal: a kernel call, the expiry of a timer, or an interrupt.

    Exact where a call of the CPU was open, or the expiry is what the CPU logged last. An interrupt is inferred: it is
    the last one with the number that pulses of the connection usually follow, the CPU having done nothing else since.
    Up to 6.x, which logs no expiry, that of the clock represents timers. Source: building block M6 of the reference.
    """
    return trace.cached("links.delivery", lambda trace: LinkTable.of(LinkKind.DELIVERY, _deliveries(trace)))


def creations(trace: Trace) -> LinkTable:
    """Return the kernel call within which each thread or process was created behind the opening dump.

    Exact are threads that a thread of their own process created by THREAD_CREATE; others are inferred from what the CPU
    was doing: processes are created by the process manager, on behalf of the client whose message it serves.
    """
    return trace.cached("links.creation", lambda trace: LinkTable.of(LinkKind.CREATION, _creations(trace)))


def _deliveries(trace: Trace) -> Pairs:
    rows = rows_of_codes(trace, *(code for code in pulses.SENDS if code != _DEATH), _SIGNAL)
    if not len(rows) or trace.pairs is not None:
        return no_pairs()
    cause, certainty = actors.open_calls(trace, rows), np.full(len(rows), Certainty.EXACT, np.uint8)
    free = np.flatnonzero(cause == NO_EVENT)
    timer = last_of_codes(trace, (actors.TIMER,), rows[free])
    known = np.flatnonzero(timer != NO_EVENT)
    known = known[actors.quiet_between(trace, timer[known], rows[free[known]])]
    cause[free[known]] = timer[known]
    free = np.flatnonzero((cause == NO_EVENT) & (trace.events.code[rows] != _SIGNAL))
    scoid, pid = comm_words(trace, rows[free])
    to = pid.astype(np.int64) << 32 | scoid
    # What an interrupt delivers is sent before the CPU begins something else: one before that is not its source.
    since = actors.last_switch(trace, rows[free])
    found, _ = actors.last_of_usual(trace, rows[free], to, np.where(since == NO_EVENT, np.uint32(0), since))
    cause[free], certainty[free] = found, Certainty.INFERRED
    return _known(trace, cause, rows, certainty)


def _creations(trace: Trace) -> Pairs:
    rows = rows_of_codes(trace, wire.THREAD_CREATE, wire.PROC_CREATE)
    rows = rows[trace.events.time_cycles[rows] > trace.dump_end_cycles]
    if not len(rows) or trace.pairs is not None:
        return no_pairs()
    call = actors.open_calls(trace, rows)
    number, events, process = number_of(trace, call), trace.events, trace.threads.process
    numbers = call_numbers(trace.release)
    call[number == numbers["TRACE_EVENT"]] = NO_EVENT  # the dump of another START
    number[call == NO_EVENT] = -1
    made = np.flatnonzero(events.code[rows] == wire.THREAD_CREATE)
    is_own = np.zeros(len(rows), np.bool_)
    by = events.thread[call[made[call[made] != NO_EVENT]]]
    at = made[call[made] != NO_EVENT]
    is_own[at] = (process[by] == process[events.thread[rows[at]]]) & (by != UNKNOWN_THREAD)
    is_own &= number == numbers["THREAD_CREATE"]
    return _known(trace, call, rows, np.where(is_own, np.uint8(Certainty.EXACT), np.uint8(Certainty.INFERRED)))


def _known(
    trace: Trace, cause: NDArray[np.uint32], rows: NDArray[np.uint32], certainty: NDArray[np.uint8],
) -> Pairs:  # fmt: skip
    at = np.flatnonzero(cause != NO_EVENT)
    at = at[is_whole(trace, cause[at], rows[at])]
    return pairs_of(cause[at], rows[at], certainty[at])
