"""What threads do, as far as the trace shows it whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.walk import walk
from satview.core.lanes import whole_spans
from satview.events.states import NOT_A_STATE, RUNNING
from satview.linkage.states import following, state_ends
from satview.linkage.table import NO_EVENT, OPEN, Rows
from satview.linkage.whole import is_whole_on
from satview.store.losses import idle_threads, losses
from satview.store.trace import Trace

_Ints = NDArray[np.int64]
_VALUES: Final = 256  # of lanes
_RUNS_FOR_A_FAULT: Final = 1000  # events of threads may be lost without a trace now and then


@dataclass(frozen=True, slots=True)
class StateSpans:
    """What threads do, as far as the trace shows it whole: by thread, then in time order; every column has shape (n,).

    Neighbours of one thread and state are one interval, on one CPU if it is RUNNING. Idle threads are left out.

    Attributes:
        thread: int64, row of the thread table.
        value: uint8, the state as lane value.
        row: int64, the event that begins it.
        end_row: int64, the event that ends it; the number of events where the trace ends before.
    """

    thread: _Ints
    value: NDArray[np.uint8]
    row: _Ints
    end_row: _Ints

    def __len__(self) -> int:
        return len(self.row)

    def of_state(self, value: int) -> StateSpans:
        """Return the intervals of one state."""
        return self.at(np.flatnonzero(self.value == value))

    def at(self, positions: NDArray[np.intp]) -> StateSpans:
        """Return some of the intervals."""
        return StateSpans(self.thread[positions], self.value[positions], self.row[positions], self.end_row[positions])


def has_whole_states(trace: Trace) -> bool:
    """Return whether the trace has all events of threads between its losses.

    A capture may leave some out; then what a thread seems to be in may be long over. That shows where a thread
    begins to run on a CPU of which another one still has not left: a kernel never logs that.
    """
    runs, overlaps = runs_and_overlaps(trace)
    return runs > 0 and overlaps * _RUNS_FOR_A_FAULT <= runs


def runs_and_overlaps(trace: Trace) -> tuple[int, int]:
    """Return how many runs of threads there are, and how many begin before another one has left the CPU.

    Of those between which events are missing that is not known: they count for none.
    """
    if (found := walk(trace)) is not None and found.cpus is not None:
        return found.cpus.works, found.cpus.overlaps
    if trace.pairs is not None:
        return 0, 0
    runs = _spans(trace, np.arange(_VALUES) == RUNNING, following(trace))
    runs = runs.at(np.argsort(runs.row, kind="stable"))  # rows are in the order of time
    cpu, wrong = trace.events.cpu[runs.row], 0
    for number in np.flatnonzero(np.bincount(cpu)).tolist():
        row, end = runs.row[cpu == number], runs.end_row[cpu == number]
        early = np.flatnonzero(row[1:] < end[:-1])
        wrong += int(np.count_nonzero(is_whole_on(trace, number, row[early], row[early + 1])))
    return len(runs), wrong


def whole_states(trace: Trace) -> StateSpans:
    """Return the states of threads where no event is missing; idle threads have none."""
    if trace.pairs is not None:  # threads of a library, not of the kernel
        none = np.empty(0, np.int64)
        return StateSpans(none, none.astype(np.uint8), none, none)
    # What ends all states is a column of its own: not made where nothing is missing.
    is_whole = not len(losses(trace)) and not trace.is_cached("links.state_ends")
    ends = following(trace) if is_whole else state_ends(trace)[trace.states.event]
    return _spans(trace, np.arange(_VALUES) != NOT_A_STATE, ends)


def _spans(trace: Trace, wanted: NDArray[np.bool_], ends: Rows) -> StateSpans:
    """Return states of threads that are no idle threads.

    Args:
        trace: The events.
        wanted: bool (256,), which lane values.
        ends: For every entry of `Trace.states.event` the event that ends it, `NO_EVENT` for those that are left out.
    """
    states, events = trace.states, trace.events
    left_out = idle_threads(trace).copy()
    left_out[0] = True
    return StateSpans(*whole_spans(states.event, states.start, ends, events.code, events.cpu,
                                   trace.catalogue.state_value_of_code, wanted, left_out, RUNNING, NO_EVENT,
                                   OPEN))  # fmt: skip


def end_rows(trace: Trace, rows: Rows) -> _Ints:
    """Return rows with the number of events instead of `OPEN`, int64, same shape."""
    return np.where(rows == OPEN, len(trace.events), rows.astype(np.int64))
