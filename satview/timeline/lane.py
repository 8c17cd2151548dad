"""One lane: its intervals, its levels, and what is where."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.timeline.counter import Counter
from satview.timeline.levels import Levels
from satview.timeline.shares import Shares
from satview.timeline.spans import LaneSpans, Span


class Lane:
    """A lane that is ready to be drawn and requested.

    Attributes:
        spans: Its intervals.
        levels: Coarse copies.
        shares: How it divides its time.
        use: Of a process, how many CPUs it has when; None of other lanes.
        most_cpus: Of a process, the most CPUs that it ever has at a time, at least 1; 1 of other lanes.
        counter: What a lane counts; None of other lanes.
    """

    __slots__ = ("counter", "levels", "most_cpus", "shares", "spans", "use")

    def __init__(
        self,
        spans: LaneSpans,
        levels: Levels,
        shares: Shares,
        use: Shares | None = None,
        numbers: NDArray[np.float64] | None = None,
    ) -> None:
        self.spans = spans
        self.levels = levels
        self.shares = shares
        self.use = use
        self.counter = Counter.of(spans.start_cycles, numbers) if numbers is not None else None
        self.most_cpus = max(1, int(use.spans.value.max(initial=0))) if use is not None else 1

    def at(self, cycles: int) -> Span | None:
        """Return the interval that covers a moment."""
        index = self.spans.index_at(cycles)
        return self._span(index) if index >= 0 else None

    def next_edge(self, cycles: int) -> int | None:
        """Return when the next interval after a moment begins, None after the last."""
        index = int(np.searchsorted(self.spans.start_cycles, cycles, side="right"))
        return int(self.spans.start_cycles[index]) if index < len(self.spans) else None

    def previous_edge(self, cycles: int) -> int | None:
        """Return when the last interval before a moment began, None before the first."""
        index = int(np.searchsorted(self.spans.start_cycles, cycles)) - 1
        return int(self.spans.start_cycles[index]) if index >= 0 else None

    def _span(self, index: int) -> Span:
        spans = self.spans
        end = int(spans.start_cycles[index + 1]) if index + 1 < len(spans) else spans.end_cycles
        thread = int(spans.thread[index]) if spans.thread is not None else 0
        text = spans.texts[index] if spans.texts is not None else ""
        return Span(int(spans.start_cycles[index]), end, int(spans.value[index]), int(spans.event[index]), thread, text)
