"""Activations of threads: from when a wait is over until the next one begins; periods and response times are theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.by_key import sum_by
from satview.analysis.times.scope import Scope
from satview.analysis.times.state_times import StateSpans, state_spans
from satview.analysis.times.whole_intervals import states_are_cut
from satview.events.states import READY, RUNNING, UNKNOWN
from satview.store.time_ranges import Cycles


@dataclass(frozen=True, slots=True)
class Activations:
    """Times in which a thread was READY or RUNNING without a wait, by thread, then in time order; columns (n,).

    Idle threads have none.

    Attributes:
        thread: int64, row of the thread table.
        start: int64, cycles, when it became ready, or ran at once.
        end: int64, cycles, when it began to wait again, or ended.
        running_cycles: int64, of that, it ran.
        period_cycles: int64, from the start of the thread's activation before; -1 without one, or where the state of
            the thread is unknown in between.
        event: uint32, row of the event that begins it; `NO_EVENT` if none did.
        is_cut: bool, the trace does not hold both ends.
    """

    thread: NDArray[np.int64]
    start: Cycles
    end: Cycles
    running_cycles: Cycles
    period_cycles: Cycles
    event: NDArray[np.uint32]
    is_cut: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.thread)


def activations(scope: Scope) -> Activations:
    """Return the activations of all threads that the range meets, whole."""
    parts = [_of_spans(scope, spans) for spans in state_spans(scope)]
    none = np.empty(0, np.int64)
    columns = {
        name: np.concatenate([none[:0].astype(kind), *(getattr(part, name) for part in parts)])
        for name, kind in zip(
            Activations.__slots__,
            (np.int64, np.int64, np.int64, np.int64, np.int64, np.uint32, np.bool_),
            strict=True,
        )
    }
    return Activations(**columns)


def _of_spans(scope: Scope, spans: StateSpans) -> Activations:
    value, thread = spans.value, spans.thread
    is_active = (value == READY) | (value == RUNNING)
    is_first = np.append(True, thread[1:] != thread[:-1])[: len(thread)]
    begins = np.flatnonzero(is_active & (is_first | ~np.append(False, is_active[:-1])[: len(thread)]))
    is_last = np.append(is_first[1:], True)[: len(thread)]
    ends = np.flatnonzero(is_active & (is_last | ~np.append(is_active[1:], False)[: len(thread)]))
    number = np.cumsum(np.bincount(begins, minlength=len(thread))) - 1
    running = np.flatnonzero(value == RUNNING)
    length = sum_by(number[running], (spans.end - spans.start)[running], len(begins))
    is_cut = states_are_cut(scope.trace, spans)
    is_unknown = is_first | (np.append(UNKNOWN, value[:-1])[: len(thread)] == UNKNOWN)
    unknown_so_far = np.cumsum((value == UNKNOWN) | is_first)
    start, who = spans.start[begins], thread[begins]
    period = np.full(len(begins), -1, np.int64)
    follows = np.flatnonzero(unknown_so_far[begins[1:]] == unknown_so_far[begins[:-1]]) + 1
    follows = follows[~(is_cut | is_unknown)[begins[follows - 1]]]
    period[follows] = start[follows] - start[follows - 1]
    return Activations(
        who, start, spans.end[ends], length, period, spans.event[begins],
        np.asarray(is_cut[begins] | is_cut[ends] | is_unknown[begins]),
    )  # fmt: skip
