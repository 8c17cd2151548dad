"""States of threads and what follows them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.events.states import NOT_A_STATE, RUNNING
from satview.linkage.table import OPEN
from satview.linkage.whole import is_whole, is_whole_on
from satview.store.losses import EVERY_CPU, losses
from satview.store.trace import Trace


def state_values(trace: Trace) -> NDArray[np.uint8]:
    """Return for every entry of `Trace.states.event` the state that it shows, as lane value (`events.states`), uint8.

    Made at the first call and kept with the trace, a byte per entry.
    """
    return trace.kept("links.state_values", _state_values)


def _state_values(trace: Trace) -> NDArray[np.uint8]:
    return trace.catalogue.state_value_of_code[trace.events.code[trace.states.event]]


def following(trace: Trace) -> NDArray[np.uint32]:
    """Return for every entry of `Trace.states.event` the thread's next one, `OPEN` for its last, uint32.

    Whether events are missing in between is not looked at.
    """
    states = trace.states
    out = np.append(states.event[1:], np.uint32(OPEN))[: len(states.event)]
    out[states.start[1:][np.diff(states.start) > 0] - 1] = OPEN
    return out


def states(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the states that threads enter, each with the thread's next event of `Trace.states`, `OPEN` for its last.

    States in which events are missing are left out; while a thread runs, only its own CPU can end that, so that others
    do not matter then.
    """
    ends, is_known = whole_states(trace)
    return trace.states.event[is_known], ends[is_known]


def whole_states(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return `following`, and which entries of `Trace.states.event` are states in which no event is missing."""
    events, rows, ends = trace.events, trace.states.event, following(trace)
    value = state_values(trace)
    is_known = value != NOT_A_STATE
    for cpu in np.unique(losses(trace)[:, 2]).tolist():
        is_elsewhere = (value == RUNNING) & (cpu != EVERY_CPU) & (events.cpu[rows] != cpu)
        at = np.flatnonzero(is_known & ~is_elsewhere)
        first, last = rows[at], np.minimum(ends[at], np.uint32(len(events) - 1))
        is_known[at] = is_whole(trace, first, last) if cpu == EVERY_CPU else is_whole_on(trace, cpu, first, last)
    return ends, is_known


def state_positions(trace: Trace, rows: NDArray[np.integer], threads: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return for events where in `Trace.states.event` the first state event of a thread at or after each is, (n,).

    Args:
        trace: The events.
        rows: (n,), rows of the event table.
        threads: int64 (n,), rows of the thread table, all at least 0.

    Returns:
        Places; a thread has none left where the position is that of another thread, or the end.
    """
    states = trace.states
    key = np.repeat(np.arange(len(trace.threads), dtype=np.int64) << 32, np.diff(states.start))
    key |= states.event  # by thread, then in time order
    return np.searchsorted(key, threads << 32 | rows.astype(np.int64))


def first_that_fits(
    trace: Trace, positions: NDArray[np.intp], threads: NDArray[np.int64], fits: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the thread's first state event from a position on that fits, int64 (n,) rows; -1 for none.

    Whether events are missing in between is not looked at.

    Args:
        trace: The events.
        positions: (n,), as of `state_positions`.
        threads: int64 (n,), whose.
        fits: bool, one for every entry of `Trace.states.event`.
    """
    index, start = trace.states.event, trace.states.start
    end = np.uint32(len(index))
    own = np.where(fits, np.arange(len(index), dtype=np.uint32), end)
    after = np.append(np.minimum.accumulate(own[::-1])[::-1], end)[positions]
    rows = np.full(len(positions), -1, np.int64)
    known = np.flatnonzero(after < start[threads + 1])
    rows[known] = index[after[known]]
    return rows
