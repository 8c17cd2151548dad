"""Kernel calls and their exits."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import library, links
from satview.events import wire
from satview.events.kernel_calls import never_block
from satview.events.states import RUNNING
from satview.linkage.rows import by_cpu, narrow, rows_of_class
from satview.linkage.whole import is_whole, is_whole_on
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

_Rows = NDArray[np.uint32]
_CALL_NUMBER: Final = 0x7F  # in the codes of all events of a kernel call
_FORM: Final = 0x180  # 0 = entry


def calls(trace: Trace) -> tuple[_Rows, _Rows]:
    """Return entries and exits of the kernel calls of which the trace holds both, in any order.

    The exit is the thread's next event of any kernel call, if it is one of the same call: a call that is entered again
    before (restarted) ends once. Where the thread is not known, as in a capture without THREAD events, the exit has to
    be the next kernel call event of the CPU, and the call one that never blocks: a thread that enters another gives way
    to one that may well come back from the same call.
    """
    if library.is_available():
        of_threads, of_nobody = _by_core(trace)
    else:
        rows = rows_of_class(trace, wire.WireClass.KER_CALL)
        of_threads, of_nobody = _of_threads(trace, rows), _of_nobody(trace, rows)
    return np.concatenate((of_threads[0], of_nobody[0])), np.concatenate((of_threads[1], of_nobody[1]))


def scanned(trace: Trace) -> links.Calls:
    """Return what the compiled core finds in one pass over the events; cached with the trace, 4 bytes per event."""
    return trace.cached("links.scanned_calls", _scanned)


def _scanned(trace: Trace) -> links.Calls:
    events, codes = trace.events, np.arange(wire.CODE_COUNT)
    form = codes & _FORM
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


def _by_core(trace: Trace) -> tuple[tuple[_Rows, _Rows], tuple[_Rows, _Rows]]:
    """Return entries and exits of known threads, and those of unknown ones."""
    found = scanned(trace)
    sure = is_whole(trace, *found.known)
    first, last = found.unknown
    is_sure = np.ones(len(first), np.bool_)
    for cpu in np.unique(trace.events.cpu[first]).tolist():
        mine = trace.events.cpu[first] == cpu
        is_sure[mine] = is_whole_on(trace, cpu, first[mine], last[mine])
    return (found.known[0][sure], found.known[1][sure]), (first[is_sure], last[is_sure])


def _is_pair(first: NDArray[np.uint16], second: NDArray[np.uint16]) -> NDArray[np.bool_]:
    """Return for the codes of kernel call events whether one is an entry and the other ends the same call."""
    is_pair = (first ^ second) & _CALL_NUMBER == 0
    is_pair &= first & _FORM == 0
    form = second & _FORM
    is_pair &= (form == wire.KER_EXIT_OFFSET) | (form == wire.KER_INT_OFFSET)
    return np.asarray(is_pair)


def _of_threads(trace: Trace, rows: _Rows) -> tuple[_Rows, _Rows]:
    """Return entries and exits of known threads.

    Where an event of the same call in between has no known thread, that may be the exit, and the one found that of
    a later call: there is no link then.
    """
    events = trace.events
    thread = events.thread[rows]
    of_nobody = _calls(trace, rows[thread == UNKNOWN_THREAD])
    order = np.argsort(narrow(thread, len(trace.threads)), kind="stable")
    rows = rows[order]
    code = events.code[rows]
    at = np.flatnonzero(_is_pair(code[:-1], code[1:]))
    thread = thread[order[at]]
    at = at[(thread != UNKNOWN_THREAD) & (thread == events.thread[rows[at + 1]])]
    enters, exits = rows[at], rows[at + 1]
    if len(of_nobody):
        of_nobody.sort()
        call = _calls(trace, enters)
        is_clear = np.searchsorted(of_nobody, call) == np.searchsorted(of_nobody, call - enters + exits)
        enters, exits = enters[is_clear], exits[is_clear]
    sure = is_whole(trace, enters, exits)
    return enters[sure], exits[sure]


def _calls(trace: Trace, rows: _Rows) -> NDArray[np.int64]:
    """Return number of the call << 32 | row for events of kernel calls."""
    return (trace.events.code[rows] & _CALL_NUMBER).astype(np.int64) << 32 | rows


def _of_nobody(trace: Trace, rows: _Rows) -> tuple[_Rows, _Rows]:
    """Return entries and exits of calls that never block, of threads that are not known."""
    events, stays = trace.events, never_block(trace.release)
    enters, exits = [np.empty(0, np.uint32)], [np.empty(0, np.uint32)]
    for cpu, mine in by_cpu(trace, rows[events.thread[rows] == UNKNOWN_THREAD]):
        code = events.code[mine]
        at = np.flatnonzero(_is_pair(code[:-1], code[1:]) & stays[code[:-1] & _CALL_NUMBER])
        first, last = mine[at], mine[at + 1]
        if len(at):
            span = rows[np.searchsorted(rows, first[0]) : np.searchsorted(rows, last[-1])]
            is_next = _has_none_of(span[events.cpu[span] == cpu], first + 1, last)
            is_next &= _has_none_of(_runs_of(trace, cpu, slice(int(first[0]), int(last[-1]))), first, last)
            is_next &= is_whole_on(trace, cpu, first, last)
            first, last = first[is_next], last[is_next]
        enters.append(first)
        exits.append(last)
    return np.concatenate(enters), np.concatenate(exits)


def _has_none_of(rows: _Rows, first: _Rows, last: _Rows) -> NDArray[np.bool_]:
    """Return for pairs of rows whether none of the ascending rows is in between."""
    return np.asarray(np.searchsorted(rows, first) == np.searchsorted(rows, last))


def _runs_of(trace: Trace, cpu: int, among: slice) -> _Rows:
    """Return the events that show that a thread begins to run on a CPU: what follows them may be another thread's."""
    is_running = trace.catalogue.state_value_of_code == RUNNING
    if not trace.code_counts[is_running].any():
        return np.empty(0, np.uint32)
    found = np.flatnonzero(is_running[trace.events.code[among]] & (trace.events.cpu[among] == cpu))
    return np.asarray(found + among.start, np.uint32)
