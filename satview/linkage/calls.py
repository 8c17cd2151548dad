"""Kernel calls and their exits, and the partner of every event that enters or exits a call, interrupt or handler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links
from satview.events import wire
from satview.events.kernel_calls import never_block
from satview.events.states import RUNNING
from satview.linkage import interrupts
from satview.linkage.rows import positions, rows_of_class
from satview.linkage.table import NO_EVENT
from satview.linkage.whole import is_whole, is_whole_on
from satview.store.losses import losses
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

_Rows = NDArray[np.uint32]
_AT_ONCE: Final = 1 << 20  # calls: 8 bytes for each of them


def calls(trace: Trace) -> tuple[tuple[_Rows, _Rows], tuple[_Rows, _Rows]]:
    """Return entries and exits of the kernel calls that the trace holds whole: those of known threads, then the others.

    The exit is the thread's next kernel call event, if it is of the same call; of a restarted call, which is entered
    again before it exits, only the last entry has an exit. Where the thread is not known, as in a capture without
    THREAD events, the exit must be the CPU's next kernel call event, and the call must be one that never blocks: after
    a call that blocks, another thread may run and exit from a call of the same kind.
    """
    known, unknown = trace.cached("links.call_ends", _call_ends)
    if not len(losses(trace)):
        return known, unknown
    sure = is_whole(trace, *known)
    enter, leave = unknown
    is_sure = np.ones(len(enter), np.bool_)
    for cpu in np.unique(trace.events.cpu[enter]).tolist():
        of_cpu = trace.events.cpu[enter] == cpu
        is_sure[of_cpu] = is_whole_on(trace, cpu, enter[of_cpu], leave[of_cpu])
    return (known[0][sure], known[1][sure]), (enter[is_sure], leave[is_sure])


def _call_ends(trace: Trace) -> tuple[tuple[_Rows, _Rows], tuple[_Rows, _Rows]]:
    return scanned(trace).known, scanned(trace).unknown


def scanned(trace: Trace) -> links.KernelCallTable:
    """Return the kernel calls that the compiled core finds in one pass; cached with the trace, 4 bytes per event."""
    return trace.cached("links.scanned_calls", _scanned)


def forget_calls_of_events(trace: Trace) -> None:
    """Free the column of `scanned` (4 bytes per event), which is no longer needed; the ends of calls stay cached."""
    calls(trace)
    trace.forget("links.scanned_calls")


def _scanned(trace: Trace) -> links.KernelCallTable:
    events, codes = trace.events, np.arange(wire.CODE_COUNT)
    form = codes & wire.KER_FORM
    is_call = codes >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL
    traits = np.where(is_call, links.IS_CALL, 0)
    traits[is_call & (form == 0)] |= links.IS_ENTRY
    traits[is_call & ((form == wire.KER_EXIT_OFFSET) | (form == wire.KER_INT_OFFSET))] |= links.IS_END
    traits[wire.THREAD_RUNNING] |= links.IS_SWITCH
    traits[trace.catalogue.state_value_of_code == RUNNING] |= links.IS_RUNNING
    ends = int(trace.code_counts[traits & links.IS_END != 0].sum())
    return links.calls(
        events.code,
        events.cpu,
        events.thread,
        len(trace.threads),
        traits.astype(np.uint8),
        never_block(trace.release),
        ends,
    )


def partners(trace: Trace) -> NDArray[np.uint32]:
    """Return for every event its partner: the event that ends or begins the same kernel call, interrupt or handler.

    Computed at the first call and cached with the trace; 4 bytes per event.

    Returns:
        uint32 (events,), rows of the event table, `NO_EVENT` for none.
    """
    return trace.cached("links.partners", _partners)


def exits_of(trace: Trace, entries: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the event that ends each of the given kernel calls, without computing `partners` for all events.

    Args:
        trace: The events.
        entries: uint32 (n,), rows of entries, ascending.

    Returns:
        uint32 (n,), `NO_EVENT` for none.
    """
    return _ends_of(trace, entries, calls)


def ends_of_interrupts(trace: Trace, entries: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the event that ends each of the given interrupts; arguments and result as for `exits_of`."""
    return _ends_of(trace, entries, lambda trace: (_interrupts(trace),))


def _interrupts(trace: Trace) -> tuple[_Rows, _Rows]:
    return trace.cached("links.interrupt_ends", interrupts.interrupts)


def _ends_of(
    trace: Trace, entries: NDArray[np.uint32], pairs_of: Callable[[Trace], Iterable[tuple[_Rows, _Rows]]]
) -> NDArray[np.uint32]:
    if trace.pairs is not None or trace.axis is not None or are_made(trace):
        return partners(trace)[entries]
    out = np.full(len(entries), NO_EVENT, np.uint32)
    for enter, leave in pairs_of(trace) if len(entries) else ():
        for start in range(0, len(enter), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            position = positions(entries, enter[some])
            is_requested = entries.take(position, mode="clip") == enter[some]
            out[position[is_requested]] = leave[some][is_requested]
    return out


def beginnings(trace: Trace) -> NDArray[np.uint32]:
    """Return the events that begin a call, interrupt or handler with a known end, uint32, ascending; cached."""
    return trace.cached("links.beginnings", _beginnings)


def are_made(trace: Trace) -> bool:
    """Return whether `partners` is cached; computing it takes 30 ns per event."""
    return trace.is_cached("links.partners")


def partner(trace: Trace, event: int) -> int | None:
    """Return the partner of an event, as `partners` does; None if the event has no partner, or none that is known."""
    other = int(partners(trace)[event])
    return None if other == NO_EVENT else other


def _beginnings(trace: Trace) -> NDArray[np.uint32]:
    rows = np.flatnonzero(partners(trace) != NO_EVENT).astype(np.uint32)
    return rows[partners(trace)[rows] > rows]


def _partners(trace: Trace) -> NDArray[np.uint32]:
    if trace.pairs is not None:  # the file format itself names the pairs
        return trace.pairs
    column = np.full(len(trace.events), NO_EVENT, np.uint32)
    for enters, exits in (*calls(trace), _interrupts(trace)):
        column[enters], column[exits] = exits, enters
    return column


_CALL_NUMBER: Final = 0x7F  # in the codes of all events of a kernel call


class Fate(Enum):
    """Why the exit of a kernel call is not in the trace."""

    NEVER = "never"
    """The call did not return before the trace ends."""
    RESTARTED = "restarted"
    """The thread's next kernel call event is another entry: this call was restarted, or its exit was not logged."""
    LOST = "lost"
    """Events are missing after the entry, or an exit from such a call follows whose thread is not known."""


def fate_of_call(trace: Trace, event: int) -> Fate | None:
    """Return why a kernel call has no exit; None if it has an exit or no known thread, or the event enters no call.

    Args:
        trace: The events.
        event: Row of the event table.
    """
    code, thread = int(trace.events.code[event]), trace.events.thread
    is_entry = wire.class_of(code) == wire.WireClass.KER_CALL and not code & wire.KER_FORM
    if trace.pairs is not None or not is_entry or thread[event] == UNKNOWN_THREAD or partner(trace, event) is not None:
        return None
    rows = rows_of_class(trace, wire.WireClass.KER_CALL)
    rows = rows[np.searchsorted(rows, event, side="right") :]
    after = rows[thread[rows] == thread[event]][:1]
    last = after if len(after) else np.array([len(trace.events) - 1], np.uint32)
    of_nobody = rows[(thread[rows] == UNKNOWN_THREAD) & (rows < last[0])]
    is_same = (trace.events.code[of_nobody] ^ code) & _CALL_NUMBER == 0
    if is_same.any() or not is_whole(trace, np.array([event]), last)[0]:
        return Fate.LOST
    return Fate.RESTARTED if len(after) else Fate.NEVER
