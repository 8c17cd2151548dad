"""For each event, the kernel call that was open on its CPU and the last interrupt before it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core.ordering import stable_order
from satview.events import wire
from satview.linkage.calls import scanned
from satview.linkage.rows import last_in_table, last_of_codes, positions, rows_of_codes
from satview.linkage.table import NO_EVENT
from satview.store.arguments import distinct
from satview.store.trace import Trace

_SWITCHES: Final = np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL  # to another kernel call
_SWITCHES[wire.THREAD_RUNNING] = True
_SWITCHES[[wire.code(wire.WireClass.PR_TH, state) for state in (9, 18)]] = True  # WAITPAGE, WAITCTX: a fault, no call
_SWITCHES.setflags(write=False)
TIMER: Final = wire.code(wire.WireClass.SYSTEM, 18)
INTERRUPTS: Final = tuple(wire.code(wire.WireClass.INT, event) for event in (1, 5, 7))  # entries; deliveries of 8.0


def open_calls(trace: Trace, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the kernel call, of any thread, that has been entered but not exited on the CPU of each event.

    It is the CPU's last kernel call event, if that is an entry and no other thread has begun to run on the CPU since.

    Returns:
        uint32 (n,), rows of entries; `NO_EVENT` where no call is open.
    """
    return scanned(trace).entry[rows]


def last_switch(trace: Trace, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the last kernel call event or thread switch on the CPU before each event, uint32 (n,), or `NO_EVENT`."""
    return last_in_table(trace, _SWITCHES, rows)


def interrupt_rows(trace: Trace) -> NDArray[np.uint32]:
    """Return the rows of interrupt entries and, from 8.0 on, of interrupt deliveries, uint32, ascending."""
    return rows_of_codes(trace, *INTERRUPTS)


def interrupt_numbers(trace: Trace) -> NDArray[np.uint32]:
    """Return the interrupt number of each of `interrupt_rows`, uint32 (n,); cached with the trace."""
    return trace.cached("links.interrupt_numbers", lambda trace: trace.payloads.column(interrupt_rows(trace), 0))


def numbers_of_interrupts(trace: Trace, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the interrupt number of each row, uint32 (n,), from the cached numbers; rows are of `interrupt_rows`."""
    return interrupt_numbers(trace)[positions(interrupt_rows(trace), rows)]


def last_of_usual(
    trace: Trace, rows: NDArray[np.uint32], group: NDArray[np.int64], since: NDArray[np.uint32],
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:  # fmt: skip
    """Return the interrupt that most likely caused each event.

    Interrupts nest, and effects of an interrupt that comes while the kernel runs are delayed, so the last interrupt is
    not always the cause. Where several interrupts came after `since`, the result is the last one with the usual number
    of the group: the number that is most often the last before events of this group.

    Args:
        trace: The events.
        rows: uint32 (n,), events that are caused by interrupts.
        group: int64 (n,), number of the thread or connection of each event, which usually has one interrupt.
        since: uint32 (n,), rows before which the interrupt cannot have come.

    Returns:
        uint32 (n,), rows of entries, `NO_EVENT` for none; and bool (n,), whether only one interrupt came after `since`.
    """
    entries = interrupt_rows(trace)
    interrupt = last_of_codes(trace, INTERRUPTS, rows)
    interrupt[(interrupt != NO_EVENT) & (interrupt < since)] = NO_EVENT
    preceded = np.flatnonzero(interrupt != NO_EVENT)
    is_only = np.zeros(len(rows), np.bool_)
    before = last_of_codes(trace, INTERRUPTS, interrupt[preceded])
    is_only[preceded] = (before == NO_EVENT) | (before < since[preceded])
    if not len(preceded):
        return interrupt, is_only
    vector, count = trace.cached("links.vectors", _vectors)
    own = vector[positions(entries, interrupt[preceded])]
    usual = _most_frequent(group[preceded], own, count)
    other = np.flatnonzero(usual != own)
    cpu = trace.events.cpu
    key = cpu[entries] * np.int64(count) + vector
    order = stable_order(key)
    key = key[order] << 32 | entries[order]
    preceded, source = preceded[other], cpu[rows[preceded[other]]] * np.int64(count) + usual[other]
    position = positions(key, source << 32 | rows[preceded]) - 1
    last = key[np.maximum(position, 0)]
    interrupt[preceded] = np.where((position >= 0) & (last >> 32 == source), last & 0xFFFFFFFF, NO_EVENT)
    interrupt[(interrupt != NO_EVENT) & (interrupt < since)] = NO_EVENT
    return interrupt, is_only


def _vectors(trace: Trace) -> tuple[NDArray[np.intp], int]:
    """Return for each of `interrupt_rows` the index of its number among all interrupt numbers, and their count."""
    vectors, which = distinct(interrupt_numbers(trace).astype(np.int64))
    return which, len(vectors)


def _most_frequent(group: NDArray[np.int64], number: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return for each element the most frequent number of its group; the smallest if several are equally frequent.

    Args:
        group: int64 (n,).
        number: (n,), below `count`.
        count: How many numbers there are.
    """
    which = np.unique(group, return_inverse=True)[1]
    kinds, times = np.unique(which * count + number, return_counts=True)
    order = np.lexsort((-(kinds % count), times, kinds // count))
    kinds = kinds[order]
    is_last = np.append(kinds[1:] // count != kinds[:-1] // count, True)
    return np.asarray((kinds[is_last] % count)[which])


def quiet_between(trace: Trace, begin: NDArray[np.uint32], end: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return whether the CPU logs only INT and CONTROL events between the two events of each pair, bool (n,).

    Args:
        trace: The events.
        begin: uint32 (n,), rows.
        end: uint32 (n,), later rows of the same CPUs.
    """
    if not len(end):
        return np.ones(0, np.bool_)
    table = np.ones(wire.CODE_COUNT, np.bool_)
    table[np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.INT] = False
    table[np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.CONTROL] = False
    return np.asarray(last_in_table(trace, table, end) == begin)
