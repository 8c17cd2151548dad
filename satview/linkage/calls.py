"""Kernel calls and their exits."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links
from satview.events import wire
from satview.events.kernel_calls import never_block
from satview.events.states import RUNNING
from satview.linkage.whole import is_whole, is_whole_on
from satview.store.trace import Trace

_Rows = NDArray[np.uint32]
_FORM: Final = 0x180  # 0 = entry


def calls(trace: Trace) -> tuple[_Rows, _Rows]:
    """Return entries and exits of the kernel calls of which the trace holds both, in any order.

    The exit is the thread's next event of any kernel call, if it is one of the same call: a call that is entered again
    before (restarted) ends once. Where the thread is not known, as in a capture without THREAD events, the exit has to
    be the next kernel call event of the CPU, and the call one that never blocks: a thread that enters another gives way
    to one that may well come back from the same call.
    """
    of_threads, of_nobody = _by_core(trace)
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
