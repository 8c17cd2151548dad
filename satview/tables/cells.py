"""What the builders of tables share: names of states and events, times of event rows, certainties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Basis
from satview.analysis.times.scope import Scope, scope_of
from satview.answers.frames import Texts
from satview.base.time import Cycles
from satview.events.states import ABSENT, IDLE, STATES, UNKNOWN, VALUE_COUNT, WAITING
from satview.events.wire import CODE_COUNT
from satview.linkage.table import OPEN
from satview.store.trace import Trace

Ints = NDArray[np.int64]
CERTAINTIES: Final = ("", "guess", "inferred", "exact")  # by `Certainty`; 0 = there is nothing to be certain of


def state_names() -> tuple[str, ...]:
    """Return what the table `state` calls lane values, by value."""
    names = [""] * VALUE_COUNT
    names[ABSENT], names[UNKNOWN], names[IDLE], names[WAITING] = "ABSENT", "UNKNOWN", "IDLE", "WAITING"
    for state in STATES:
        names[state.value] = state.name
    return tuple(names)


def whole_scope(trace: Trace) -> Scope:
    """Return the whole trace as the range that analyses look at."""
    return scope_of(trace, None, None, Basis(trace), None)


def event_names(trace: Trace) -> tuple[str, ...]:
    """Return the names of all codes that events have, of 32,768, by code; empty of the others. Made once per trace."""
    return trace.cached("tables.event_names", _event_names)


def _event_names(trace: Trace) -> tuple[str, ...]:
    names = [""] * CODE_COUNT
    for code in np.flatnonzero(trace.code_counts).tolist():
        names[code] = trace.catalogue.name(code)
    return tuple(names)


def certainty_texts(values: NDArray[np.integer[Any]]) -> Texts:
    """Return certainties as texts.

    Args:
        values: Integers (n,), of `Certainty`; 0 = there is no answer.
    """
    return Texts(values.astype(np.uint8), CERTAINTIES)


def event_rows(rows: NDArray[np.unsignedinteger[Any]]) -> Ints:
    """Return rows of the event table as int64 (n,), -1 for none."""
    return np.where(rows >= OPEN, -1, rows.astype(np.int64))


def times_of(trace: Trace, rows: Ints) -> Cycles:
    """Return when events were logged, in cycles, int64 (n,); -1 where the row is -1."""
    out = np.full(len(rows), -1, np.int64)
    known = rows >= 0
    out[known] = trace.events.time_cycles[rows[known]]
    return out


def column(values: Sequence[int]) -> Ints:
    """Return numbers as int64 (n,)."""
    return np.array(values, np.int64)
