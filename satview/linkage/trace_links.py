"""The link tables of a trace by kind of link, and the link that one event begins or ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.kernel_calls import call_numbers
from satview.events.states import NOT_A_STATE
from satview.events.wire import CODE_COUNT, KER_64BIT, KER_EXIT_OFFSET, WireClass, code
from satview.linkage import actors, interrupts, latencies, messages, mutexes, pulses, wake_ups
from satview.linkage.calls import beginnings, partner, partners
from satview.linkage.rows import rows_where
from satview.linkage.states import state_ends
from satview.linkage.table import NO_EVENT, Certainty, Link, LinkKind, LinkTable, Rows, pairs_of
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

_HANDLER_EVENTS: Final = (3, 4, 6)
_TABLES: Final[dict[LinkKind, Callable[[Trace], LinkTable]]] = {  # the others are columns with a value per event
    LinkKind.DISPATCH: lambda trace: trace.cached("links.dispatch", _dispatches),
    LinkKind.MESSAGE: messages.messages,
    LinkKind.REPLY: messages.replies,
    LinkKind.ROUND_TRIP: messages.round_trips,
    LinkKind.PULSE: pulses.pulses,
    LinkKind.WAKE_UP: wake_ups.wake_ups,
    LinkKind.HOLD: mutexes.holds,
    LinkKind.DELIVERY: latencies.deliveries,
    LinkKind.CREATION: latencies.creations,
}


def link_table(trace: Trace, kind: LinkKind) -> LinkTable:
    """Return all links of one kind, computed at the first call and cached with the trace."""
    if kind in _TABLES:
        return _TABLES[kind](trace)
    return trace.cached(f"links.{kind}", partial(_of_columns, kind=kind))


def ends_of(trace: Trace, kind: LinkKind, rows: Rows) -> NDArray[np.uint32]:
    """Return for each event the event that ends the link of the given kind which it begins.

    Args:
        trace: The trace.
        kind: The kind of links.
        rows: (n,), rows of the event table.

    Returns:
        uint32 (n,), `NO_EVENT` where an event begins no such link, `OPEN` where the trace ends before the link does.
    """
    if kind in _TABLES:
        return link_table(trace, kind).ends_of(rows)
    if kind is LinkKind.STATE:
        return state_ends(trace)[rows]
    ends = partners(trace)[rows]
    ends[(ends < rows) | ~_is_of(trace, kind, rows)] = NO_EVENT
    return ends


def link_of(trace: Trace, event: int) -> Link | None:
    """Return the call, interrupt or handler that an event begins or ends, or else the state that the event begins.

    None for other events.

    The first call makes the links of the whole trace.
    """
    if trace.catalogue.state_value_of_code[trace.events.code[event]] == NOT_A_STATE or trace.pairs is not None:
        pair = _pair_of(trace, event)
        if pair is not None or trace.pairs is None:
            return pair
    end = int(state_ends(trace)[event])
    return Link(LinkKind.STATE, event, end, Certainty.EXACT) if end != NO_EVENT else None


def _pair_of(trace: Trace, event: int) -> Link | None:
    other = partner(trace, event)
    if other is None:
        return None
    rows = np.array([min(event, other)])
    kind = next(kind for kind in (LinkKind.INTERRUPT, LinkKind.HANDLER, LinkKind.CALL) if _is_of(trace, kind, rows)[0])
    return Link(kind, int(rows[0]), max(event, other), Certainty(int(_certainty(trace, kind, rows)[0])))


def _dispatches(trace: Trace) -> LinkTable:
    return LinkTable.of(LinkKind.DISPATCH, pairs_of(*interrupts.dispatches(trace)))


def _of_columns(trace: Trace, kind: LinkKind) -> LinkTable:
    if kind is LinkKind.STATE:
        rows = np.flatnonzero(state_ends(trace) != NO_EVENT).astype(np.uint32)
        ends = state_ends(trace)[rows]
    else:
        rows = beginnings(trace)
        rows = rows[_codes_of(trace, kind)[trace.events.code[rows]]]
        ends = partners(trace)[rows]
    return LinkTable(kind, rows, ends, _certainty(trace, kind, rows))


def _is_of(trace: Trace, kind: LinkKind, rows: Rows) -> NDArray[np.bool_]:
    """Return for each row of an event that begins a link of `partners` whether that link is of the given kind."""
    return _codes_of(trace, kind)[trace.events.code[rows]]


def _codes_of(trace: Trace, kind: LinkKind) -> NDArray[np.bool_]:
    """Return which codes are events of calls, interrupts or handlers, by kind, bool (32768,); read-only."""
    return _codes(kind, trace.pairs is not None)


@cache
def _codes(kind: LinkKind, has_pairs: bool) -> NDArray[np.bool_]:
    codes = np.arange(wire.CODE_COUNT)
    is_interrupt = (codes >> wire.CLASS_SHIFT == wire.WireClass.INT) & (not has_pairs)
    if kind is LinkKind.CALL:
        is_call = codes >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL
        is_end = ~is_interrupt & (is_call | has_pairs)
    else:
        is_handler = np.isin(codes & wire.EVENT_MASK, _HANDLER_EVENTS)
        is_end = is_interrupt & (is_handler == (kind is LinkKind.HANDLER))
    is_end.setflags(write=False)
    return np.asarray(is_end)


def _certainty(trace: Trace, kind: LinkKind, rows: Rows) -> NDArray[np.uint8]:
    """Return the certainty of the links that begin with the given rows, uint8 values of `Certainty`."""
    if kind is not LinkKind.CALL or trace.pairs is not None:
        return np.full(len(rows), Certainty.EXACT, np.uint8)
    is_guess = trace.events.thread[rows] == UNKNOWN_THREAD
    return np.where(is_guess, np.uint8(Certainty.INFERRED), np.uint8(Certainty.EXACT))


_MOST_AHEAD: Final = 10_000_000  # events; the payload words of more would take hundreds of megabytes


@contextmanager
def reading_ahead(trace: Trace) -> Iterator[None]:
    """Read in advance, in a second thread, the payload words that links need, while the `with` block computes links.

    The words take up to 32 bytes per event that links need, and are freed at the end of the block.
    """
    codes = _codes_ahead(trace)
    if trace.pairs is not None or trace.code_counts[codes].sum() > _MOST_AHEAD:  # with pairs, arguments are in memory
        yield
        return
    with trace.payloads.reading_ahead(rows_where(trace, codes)):
        yield


def _codes_ahead(trace: Trace) -> NDArray[np.bool_]:
    """Return which codes are of events whose arguments links need more than once, bool (32768,)."""
    table = np.zeros(CODE_COUNT, np.bool_)
    table[code(WireClass.SYSTEM, 18)] = True  # expiry of a timer
    table[list(actors.INTERRUPTS)] = True  # the interrupt number
    for name, number in call_numbers(trace.release).items():
        entry = code(WireClass.KER_CALL, number)
        if name.startswith(("SYNC_", "INTERRUPT_", "MSG_RECEIVE")):  # the object waited for, the interrupt number
            table[[entry, entry | KER_64BIT]] = True
        if name.startswith("SYNC_MUTEX_"):  # the result
            table[[entry | KER_EXIT_OFFSET, entry | KER_EXIT_OFFSET | KER_64BIT]] = True
    return table
