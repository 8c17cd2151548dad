"""Columns over all events: what ends or begins the same call, interrupt or handler."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.linkage import calls, interrupts
from satview.linkage.table import NO_EVENT
from satview.store.trace import Trace


def partners(trace: Trace) -> NDArray[np.uint32]:
    """Return for every event the one that ends or begins the same kernel call, interrupt or handler.

    Computed at the first call and cached with the trace; 4 bytes per event.

    Returns:
        uint32 (events,), rows of the event table, `NO_EVENT` for none.
    """
    return trace.cached("links.partners", _partners)


def beginnings(trace: Trace) -> NDArray[np.uint32]:
    """Return the events that begin what their `partners` end, uint32, ascending; cached with the trace."""
    return trace.cached("links.beginnings", _beginnings)


def are_made(trace: Trace) -> bool:
    """Return whether `partners` answers at once: it takes 30 ns an event the first time."""
    return trace.is_cached("links.partners")


def partner(trace: Trace, event: int) -> int | None:
    """Return the event that ends or begins what an event begins or ends, None if there is none or it is not known."""
    other = int(partners(trace)[event])
    return None if other == NO_EVENT else other


def _beginnings(trace: Trace) -> NDArray[np.uint32]:
    rows = np.flatnonzero(partners(trace) != NO_EVENT).astype(np.uint32)
    return rows[partners(trace)[rows] > rows]


def _partners(trace: Trace) -> NDArray[np.uint32]:
    if trace.pairs is not None:  # the format shows them itself
        return trace.pairs
    column = np.full(len(trace.events), NO_EVENT, np.uint32)
    for pairs in (calls.calls, interrupts.interrupts):
        enters, exits = pairs(trace)
        column[enters], column[exits] = exits, enters
    return column
