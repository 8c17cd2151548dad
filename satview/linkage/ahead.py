"""What many links need, prepared at once, in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.kernel_calls import call_numbers
from satview.events.wire import CLASS_SHIFT, CODE_COUNT, KER_64BIT, KER_EXIT_OFFSET, WireClass, code
from satview.linkage import states
from satview.linkage.rows import rows_where
from satview.store.trace import Trace

_ALWAYS: Final = np.arange(CODE_COUNT) >> CLASS_SHIFT == WireClass.COMM
_ALWAYS[[code(WireClass.INT, event) for event in (1, 5, 7)]] = True  # entries, deliveries of 8.0
_ALWAYS[code(WireClass.SYSTEM, 18)] = True  # expiry of a timer


@contextmanager
def reading_ahead(trace: Trace) -> Iterator[None]:
    """Use a second processor and read the file once for all: for who makes many links while in the context.

    The words that were read are forgotten afterwards; 12 bytes an event of those that links need.
    """
    states.begin(trace)
    if trace.pairs is not None:  # a format that keeps all arguments in memory
        yield
        return
    with trace.payloads.reading_ahead(rows_where(trace, _codes(trace))):
        yield


def _codes(trace: Trace) -> NDArray[np.bool_]:
    """Return the codes of the events whose arguments links need, bool (32768,)."""
    table: NDArray[np.bool_] = _ALWAYS.copy()
    for name, number in call_numbers(trace.release).items():
        entry = code(WireClass.KER_CALL, number)
        if name.startswith(("SYNC_", "MSG_")):  # what they wait for, whom they are for
            table[[entry, entry | KER_64BIT]] = True
        if name.startswith("SYNC_MUTEX_"):  # whether they failed
            table[[entry | KER_EXIT_OFFSET, entry | KER_EXIT_OFFSET | KER_64BIT]] = True
    return table
