"""The durations behind a figure of a comparison, one by one, for histograms of both traces in one plot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.sheets.sheet import Sheet
from satview.analysis.times.basis import Basis
from satview.analysis.times.occurrences import Occurrences, occurrences
from satview.analysis.times.scope import Scope, scope_of
from satview.answers.comparison import Change
from satview.answers.latencies import LatencyFilter, latency_table
from satview.base.time import TimeWindow
from satview.events.states import STATE_BY_NAME
from satview.linkage.transactions import transactions
from satview.store.trace import Trace

_RUN: Final = "run"
_WAIT: Final = "state:READY"
_OF_READY: Final = frozenset({"longest_ready_ns"})
_Durations = NDArray[np.int64]


def has_durations(change: Change) -> bool:
    """Return whether there are durations behind a figure: the load of a CPU, and time in no known state, have none."""
    states = (_text(sheet, "state", row) for sheet, row in zip(change.sheets, change.rows, strict=True) if row >= 0)
    return change.sheet != "cpu" and (change.sheet != "state" or all(state in STATE_BY_NAME for state in states))


def durations(
    trace: Trace,
    basis: Basis,
    window: TimeWindow,
    change: Change,
    side: int,
    is_cancelled: Callable[[], bool] | None = None,
) -> _Durations:
    """Return the durations in one trace of what a figure is about, nanoseconds, int64 (n,); empty if it is not there.

    Args:
        trace: The trace.
        basis: What is the same for every part of it.
        window: The part.
        change: The figure.
        side: 0 = it is the first trace of the comparison, 1 = the second.
        is_cancelled: Called now and then.

    Raises:
        Cancelled: Somebody said so.
    """
    sheet, row = change.sheets[side], change.rows[side]
    if row < 0:
        return np.empty(0, np.int64)
    scope = scope_of(trace, window, None, basis, is_cancelled)
    if change.sheet == "latency":
        return trace.clock.durations_ns(_latencies(trace, window, sheet, row))
    return trace.clock.durations_ns(_occurrences(scope, change, sheet, row).cycles)


def _occurrences(scope: Scope, change: Change, sheet: Sheet, row: int) -> Occurrences:
    trace, subject = scope.trace, int(sheet.subjects[row])
    threads = np.arange(len(trace.threads))
    if change.sheet == "state":
        return occurrences(scope, f"state:{_text(sheet, 'state', row)}", threads == subject)
    if change.sheet in ("thread", "process"):
        mine = threads == subject if change.sheet == "thread" else trace.threads.process == subject
        return occurrences(scope, _WAIT if change.column.key in _OF_READY else _RUN, np.asarray(mine))
    if change.sheet == "call":
        return occurrences(scope, f"call:{_text(sheet, 'call', row)}")
    if change.sheet == "interrupt":
        return _of_vector(trace, occurrences(scope, "interrupt"), int(_text(sheet, "vector", row), 16))
    return _of_pair(trace, occurrences(scope, "round_trip"), int(trace.events.thread[subject]),
                    int(sheet.column("server_pid").values[row]))  # fmt: skip


def _of_vector(trace: Trace, found: Occurrences, vector: int) -> Occurrences:
    return _some(found, trace.payloads.column(found.event, 0) == vector)


def _of_pair(trace: Trace, found: Occurrences, client: int, server_pid: int) -> Occurrences:
    """Return the messages of one client to one server."""
    made = transactions(trace)
    position = np.searchsorted(made.send_row, found.event)
    return _some(found, (made.client[position] == client) & (made.server_pid[position] == server_pid))


def _some(found: Occurrences, mine: NDArray[np.bool_]) -> Occurrences:
    return Occurrences(found.cycles[mine], found.start[mine], found.thread[mine], found.event[mine], found.unfinished)


def _latencies(trace: Trace, window: TimeWindow, sheet: Sheet, row: int) -> _Durations:
    """Return one leg of the latencies from one source to one thread, cycles."""
    table = latency_table(trace, LatencyFilter(window=window))
    names = _text(sheet, "source", row), _text(sheet, "thread", row)
    keys = np.stack([table.sort_keys(name) for name in ("source", "thread")])
    groups, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    is_same = [(table.text(i, "source"), table.text(i, "thread")) == names for i in first.tolist()]
    cycles = table[f"{_text(sheet, 'leg', row).replace('-', '_')}_cycles"]
    mine = np.array(is_same, np.bool_)[group.reshape(-1)] if groups.size else np.zeros(0, np.bool_)
    return np.asarray(cycles[mine & (cycles >= 0)])


def _text(sheet: Sheet, key: str, row: int) -> str:
    return sheet.column(key).text(row)
