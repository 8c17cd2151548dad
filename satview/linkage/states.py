"""States of threads and the events that end them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links
from satview.events.states import NOT_A_STATE, RUNNING
from satview.linkage.table import NO_EVENT, OPEN
from satview.linkage.whole import is_whole, is_whole_on
from satview.store.losses import EVERY_CPU, losses
from satview.store.trace import Trace

LANE_VALUES: Final = 256  # tables by lane value (`events.states`) have a position for each
IS_RUN: Final = np.arange(LANE_VALUES) == RUNNING


def state_values(trace: Trace) -> NDArray[np.uint8]:
    """Return the state that each entry of `Trace.states.event` begins, as lane value (`events.states`), uint8 (n,).

    Computed at the first call and cached with the trace; 1 byte per entry.
    """
    return trace.cached("links.state_values", _state_values)


def state_ends(trace: Trace) -> NDArray[np.uint32]:
    """Return for every event that begins a state of a thread the event that ends it: the thread's next state event.

    Computed at the first call and cached with the trace; 4 bytes per event.

    Returns:
        uint32 (events,), rows of the event table, `OPEN` where the trace ends before the state does, `NO_EVENT` for
        other events and where events are missing.
    """
    return trace.cached("links.state_ends", _state_ends)


def _state_values(trace: Trace) -> NDArray[np.uint8]:
    return links.values_of(trace.events.code, trace.states.event, trace.catalogue.state_value_of_code)


def _state_ends(trace: Trace) -> NDArray[np.uint32]:
    events, states = trace.events, trace.states
    values_and_ends = links.states(
        events.code, events.thread, states.event, states.start, trace.catalogue.state_value_of_code, NOT_A_STATE
    )
    if values_and_ends is not None and not len(losses(trace)):
        return values_and_ends[1]
    ends, is_known = whole_states(trace)
    if values_and_ends is not None:
        values_and_ends[1][states.event[~is_known]] = NO_EVENT
        return values_and_ends[1]
    column = np.full(len(events), NO_EVENT, np.uint32)
    column[states.event[is_known]] = ends[is_known]
    return column


def following(trace: Trace, entries: NDArray[np.intp] | None = None) -> NDArray[np.uint32]:
    """Return for entries of `Trace.states.event` the thread's next state event, `OPEN` after its last, uint32 (n,).

    It is not checked whether events are missing in between.

    Args:
        trace: The events.
        entries: (n,), indices into `Trace.states.event`, ascending; None = all.
    """
    states = trace.states
    last = states.start[1:][np.diff(states.start) > 0] - 1
    if entries is None:
        out = np.append(states.event[1:], np.uint32(OPEN))[: len(states.event)]
        out[last] = OPEN
        return out
    out = states.event.take(entries + 1, mode="clip")
    position = np.searchsorted(entries, last)
    is_requested = entries.take(position, mode="clip") == last if len(entries) else np.zeros(len(last), np.bool_)
    out[position[is_requested]] = OPEN
    return out


def whole_states(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return the end of each entry of `Trace.states.event`, and whether the entry is a state without missing events.

    A running state can only be ended by events of its CPU, so losses on other CPUs do not matter for it.

    Returns:
        uint32 (n,), result of `following`; bool (n,).
    """
    events, rows, ends = trace.events, trace.states.event, following(trace)
    value = state_values(trace)
    is_known = value != NOT_A_STATE
    for cpu in np.unique(losses(trace)[:, 2]).tolist():
        is_elsewhere = (value == RUNNING) & (cpu != EVERY_CPU) & (events.cpu[rows] != cpu)
        complete = np.flatnonzero(is_known & ~is_elsewhere)
        begin, end = rows[complete], np.minimum(ends[complete], np.uint32(len(events) - 1))
        is_known[complete] = is_whole(trace, begin, end) if cpu == EVERY_CPU else is_whole_on(trace, cpu, begin, end)
    return ends, is_known


def state_positions(trace: Trace, rows: NDArray[np.integer], threads: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the index in `Trace.states.event` of each thread's first state event at or after a row, intp (n,).

    Args:
        trace: The events.
        rows: (n,), rows of the event table.
        threads: int64 (n,), rows of the thread table, all at least 0.

    Returns:
        Indices; where the thread has no such event, the index of the next thread's first event, or the length.
    """
    return links.state_positions(trace.states.event, trace.states.start, rows.astype(np.uint32), threads)


def first_that_fits(
    trace: Trace, positions: NDArray[np.intp], threads: NDArray[np.int64], table: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the row of each thread's first event, from a position on, of one of the given states; int64 (n,), or -1.

    It is not checked whether events are missing in between.

    Args:
        trace: The events.
        positions: (n,), results of `state_positions`.
        threads: int64 (n,), rows of the thread table.
        table: bool (256,), whether each lane value is one of the states.
    """
    states = trace.states
    return links.first_in_table(states.event, state_values(trace), states.start, positions, threads, table)
