"""How long single intervals of states are: what percentiles of them, by thread and over all threads, are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.by_key import percentiles_by
from satview.analysis.times.scope import Scope
from satview.analysis.times.state_times import StateTimes, state_spans
from satview.events.states import VALUE_COUNT
from satview.store.time_ranges import Cycles

SHARES: Final = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class StateLengths:
    """Every interval of a state that meets a range, cut at it; by thread, then in time order.

    Attributes:
        thread: int64, (n,), row of the thread table.
        value: uint8, state as lane value.
        start: int64, cycles.
        cycles: int64, length, above 0.
    """

    thread: NDArray[np.int64]
    value: NDArray[np.uint8]
    start: Cycles
    cycles: Cycles

    def percentiles_of(self, states: StateTimes) -> tuple[Cycles, ...]:
        """Return lengths that `SHARES` of the intervals do not exceed, int64 (rows,) each.

        Args:
            states: The same intervals added up by thread and state; one value for each of its rows.
        """
        keys = np.searchsorted(states.thread * VALUE_COUNT + states.value, self.thread * VALUE_COUNT + self.value)
        return percentiles_by(keys, self.cycles, len(states), SHARES)


def state_lengths(scope: Scope) -> StateLengths:
    """Return the intervals of all threads but row 0, which is nobody."""
    parts = []
    for spans in state_spans(scope):
        start, end = scope.cut(spans.start, spans.end)
        keep = np.flatnonzero(end > start)
        parts.append((spans.thread[keep], spans.value[keep], start[keep], (end - start)[keep]))
    if not parts:
        none = np.empty(0, np.int64)
        return StateLengths(none, np.empty(0, np.uint8), none, none)
    thread, value, start, cycles = (np.concatenate(column) for column in zip(*parts, strict=True))
    return StateLengths(thread, value, start, cycles)
