"""The links of a trace: columns and tables that are made once, and what belongs to one event."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.states import NOT_A_STATE
from satview.links import calls, interrupts, messages, states
from satview.links.table import NO_EVENT, Certainty, Link, LinkKind, LinkTable, Rows
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

_HANDLER_EVENTS: Final = (3, 4, 6)
_FEW: Final = {LinkKind.DISPATCH: interrupts.dispatches, LinkKind.MESSAGE: messages.messages}  # no column of all events


def partners(trace: Trace) -> NDArray[np.uint32]:
    """Return for every event the one that ends or begins the same kernel call, interrupt or handler.

    Made at the first call and kept with the trace; 4 bytes per event.

    Returns:
        uint32 (events,), rows of the event table, `NO_EVENT` for none.
    """
    return trace.kept("links.partners", _partners)


def are_made(trace: Trace) -> bool:
    """Tell whether `partners` answers at once: it takes 30 ns an event the first time."""
    return trace.is_kept("links.partners")


def state_ends(trace: Trace) -> NDArray[np.uint32]:
    """Return for every event that puts a thread into a state the one that ends it: the thread's next.

    Made at the first call and kept with the trace; 4 bytes per event.

    Returns:
        uint32 (events,), rows of the event table, `OPEN` where the trace ends before the state does, `NO_EVENT` for
        other events and where events are missing.
    """
    return trace.kept("links.state_ends", _state_ends)


def links(trace: Trace, kind: LinkKind) -> LinkTable:
    """Return all links of one kind, made at the first call and kept with the trace."""
    return trace.kept(f"links.{kind}", partial(_table, kind=kind))


def ends_of(trace: Trace, kind: LinkKind, rows: Rows) -> NDArray[np.uint32]:
    """Return the event that ends what each event begins, for one kind of links.

    Args:
        trace: The trace.
        kind: What sort of links.
        rows: (n,), rows of the event table.

    Returns:
        uint32 (n,), `NO_EVENT` where an event begins no such link, `OPEN` where the trace ends before it does.
    """
    if kind in _FEW:
        return links(trace, kind).ends_of(rows)
    if kind is LinkKind.STATE:
        return state_ends(trace)[rows]
    ends = partners(trace)[rows]
    ends[(ends < rows) | ~_is_of(trace, kind, rows)] = NO_EVENT
    return ends


def link_of(trace: Trace, event: int) -> Link | None:
    """Return the call, interrupt or handler that an event begins or ends, else the state that it begins; None if none.

    The first question for a link makes those of the whole trace.
    """
    if trace.catalogue.state_value_of_code[trace.events.code[event]] == NOT_A_STATE or trace.pairs is not None:
        pair = _pair_of(trace, event)
        if pair is not None or trace.pairs is None:
            return pair
    end = int(state_ends(trace)[event])
    return Link(LinkKind.STATE, event, end, Certainty.SURE) if end != NO_EVENT else None


def partner(trace: Trace, event: int) -> int | None:
    """Return the event that ends or begins what an event begins or ends, None if there is none or it is not known."""
    other = int(partners(trace)[event])
    return None if other == NO_EVENT else other


def _pair_of(trace: Trace, event: int) -> Link | None:
    other = partner(trace, event)
    if other is None:
        return None
    rows = np.array([min(event, other)])
    kind = next(kind for kind in (LinkKind.INTERRUPT, LinkKind.HANDLER, LinkKind.CALL) if _is_of(trace, kind, rows)[0])
    return Link(kind, int(rows[0]), max(event, other), Certainty(int(_certainty(trace, kind, rows)[0])))


def _partners(trace: Trace) -> NDArray[np.uint32]:
    if trace.pairs is not None:  # the format tells them itself
        return trace.pairs
    column = np.full(len(trace.events), NO_EVENT, np.uint32)
    for pairs in (calls.calls, interrupts.interrupts):
        enters, exits = pairs(trace)
        column[enters], column[exits] = exits, enters
    return column


def _state_ends(trace: Trace) -> NDArray[np.uint32]:
    column = np.full(len(trace.events), NO_EVENT, np.uint32)
    rows, ends = states.states(trace)
    column[rows] = ends
    return column


def _table(trace: Trace, kind: LinkKind) -> LinkTable:
    if kind in _FEW:
        rows, ends = _FEW[kind](trace)
        order = np.argsort(rows)
        rows, ends = rows[order], ends[order]
    elif kind is LinkKind.STATE:
        rows = np.flatnonzero(state_ends(trace) != NO_EVENT).astype(np.uint32)
        ends = state_ends(trace)[rows]
    else:
        ends = partners(trace)
        rows = np.flatnonzero((ends != NO_EVENT) & (ends > np.arange(len(ends), dtype=np.uint32))).astype(np.uint32)
        rows = rows[_is_of(trace, kind, rows)]
        ends = ends[rows]
    return LinkTable(kind, rows, ends, _certainty(trace, kind, rows))


def _is_of(trace: Trace, kind: LinkKind, rows: Rows) -> NDArray[np.bool_]:
    """Tell of events that begin links of `partners` whether these are calls, interrupts or handlers."""
    code = trace.events.code[rows]
    is_interrupt = (code >> wire.CLASS_SHIFT == wire.WireClass.INT) & (trace.pairs is None)
    if kind is LinkKind.CALL:
        return np.asarray(~is_interrupt)
    is_handler = np.isin(code & wire.EVENT_MASK, _HANDLER_EVENTS)
    return np.asarray(is_interrupt & (is_handler == (kind is LinkKind.HANDLER)))


def _certainty(trace: Trace, kind: LinkKind, rows: Rows) -> NDArray[np.uint8]:
    """Return how sure the links are that events begin, uint8."""
    is_guess = (trace.events.thread[rows] == UNKNOWN_THREAD) & (kind is LinkKind.CALL) & (trace.pairs is None)
    return np.where(is_guess, np.uint8(Certainty.LIKELY), np.uint8(Certainty.SURE))
