"""What became of kernel calls whose exits a trace does not have."""

from __future__ import annotations

from enum import Enum
from typing import Final

import numpy as np

from satview.events import wire
from satview.linkage.columns import partner
from satview.linkage.rows import rows_of_class
from satview.linkage.whole import is_whole
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

_CALL_NUMBER: Final = 0x7F  # in the codes of all events of a kernel call
_FORM: Final = 0x180  # of the code of an event of a kernel call; 0 = entry


class Fate(Enum):
    """What became of a kernel call whose exit the trace does not have."""

    NEVER = "never"
    """It did not return before the trace ends."""
    RESTARTED = "restarted"
    """The thread enters a kernel call again: this one was restarted, or ended without a trace."""
    LOST = "lost"
    """Events are missing after it, or the end of such a call follows of which the thread is not known."""


def fate_of_call(trace: Trace, event: int) -> Fate | None:
    """Return why a kernel call has no exit; None if it has one, its thread is not known, or the event enters no call.

    Args:
        trace: The events.
        event: Row of the event table.
    """
    code, thread = int(trace.events.code[event]), trace.events.thread
    is_entry = wire.class_of(code) == wire.WireClass.KER_CALL and not code & _FORM
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
