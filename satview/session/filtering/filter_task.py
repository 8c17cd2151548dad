"""What a filter does to every event of a trace, worked out on the worker thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled
from satview.base.memory import borrowed
from satview.filters import rows as event_rows
from satview.filters.derived_columns import TraceDerivedColumns
from satview.filters.event_context import EventContext
from satview.filters.rows import EventMask
from satview.filters.rules.handlers import FunctionRule, HandlerFile, Handlers
from satview.filters.views.passes import Effect, Pass, PassEvaluator, PassStack, never
from satview.session.filtering.filter_state import FilterState, Mask
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

_CACHE_BYTES: Final = 1 << 27
_CACHE_LEAST: Final = 4
_WAIT_S: Final = 0.02
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class FilterView:
    """What a filter does; None means "nothing of that kind".

    Attributes:
        rows: uint32, ascending event rows that show; None = all.
        passing: bool (events,), the same as a mask.
        by_passes: bool (events,), what conditions and rules alone let show.
        dimmed: bool (events,), events that fade.
        marked: bool (events,), events that are highlighted.
        threads: bool (threads,), threads of which something shows.
        counts: Hits by name of the pass.
        selected: Events that are checked in the trees.
        notices: What the user should know: handlers that were switched off.
    """

    rows: NDArray[np.uint32] | None = None
    passing: Mask | None = None
    by_passes: Mask | None = None
    dimmed: Mask | None = None
    marked: Mask | None = None
    threads: Mask | None = None
    counts: dict[str, int] = field(default_factory=dict)
    selected: int = 0
    notices: tuple[str, ...] = ()


class FilterEvaluator(PassEvaluator):
    """Evaluates filters of one trace; one at a time, whichever thread calls. DerivedColumns are made once.

    Attributes:
        allowed: Python files that the user allowed to run.
        folder: Where rules look for them.
    """

    def __init__(self, trace: Trace) -> None:
        self.derived = TraceDerivedColumns(trace)
        super().__init__(trace, self.derived, borrowed(self._load_function))
        self.allowed: set[Path] = set()
        self.folder = Path()
        self.notices: list[str] = []
        self._limit = max(_CACHE_LEAST, min(32, _CACHE_BYTES // max(1, len(trace.events))))
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Drop cached results: a file of handlers may have changed."""
        self._cache = {}  # a running task keeps the old ones

    def alone(self, is_cancelled: IsCancelled, run: Callable[[], _Result]) -> _Result:
        """Run something while nobody else uses this object; return its result.

        Raises:
            Cancelled: `is_cancelled()` said so while it waited for others, or inside.
        """
        while not self._lock.acquire(timeout=_WAIT_S):
            if is_cancelled():
                raise Cancelled("the filter was stopped")
        try:
            self._is_cancelled = is_cancelled
            return run()
        finally:
            self._is_cancelled = never
            self._lock.release()

    def view(self, state: FilterState) -> FilterView:
        """Return what a filter does to the trace."""
        trace, is_cancelled = self._trace, self._is_cancelled
        self.notices = []
        found = self.result(state.stack)
        hides = [item for item in state.stack.passes if item.is_on and item.effect is Effect.HIDE]
        by_passes = None
        if state.stack.combination:
            by_passes = found.hits
        elif hides:
            by_passes = ~found.hidden
        dimmed, marked, passing = found.dimmed, found.marked, by_passes
        selected = len(trace.events)
        if state.chooses:
            checked = event_rows.event_mask(trace.events, EventMask(state.codes, state.threads), is_cancelled)
            selected = int(np.count_nonzero(checked))
            if state.effect is Effect.HIDE:
                passing = checked if passing is None else passing & checked
            elif state.effect is Effect.DIM:
                dimmed = dimmed | ~checked
            elif state.effect is Effect.MARK:
                marked = marked | checked
        threads = rows = None
        if passing is not None:
            dimmed, marked = dimmed & passing, marked & passing
            rows = event_rows.rows_of(passing)
            threads = np.zeros(len(trace.threads), np.bool_)
            for part in event_rows.chunks(len(rows)):
                threads[trace.events.thread.take(rows[part])] = True
        return FilterView(
            rows,
            passing,
            by_passes,
            dimmed if dimmed.any() else None,
            marked if marked.any() else None,
            threads if by_passes is not None else None,
            found.counts,
            selected,
            tuple(self.notices),
        )

    def _load_function(self, position: str) -> _StoppableRule:
        handlers = Handlers(self.allowed.__contains__, self._trace.release, self.folder, self.notices.append)
        return _StoppableRule(handlers(position), self._is_cancelled)


class _StoppableRule:
    """A handler that stops when its task is cancelled: it may be called millions of times."""

    def __init__(self, rule: FunctionRule, is_cancelled: IsCancelled) -> None:
        self._rule, self._is_cancelled = rule, is_cancelled
        self.file: HandlerFile = rule.file
        self.position = rule.position

    def __call__(self, derived: EventContext, /) -> int:
        """Return the handler's result."""
        if self._is_cancelled():
            raise Cancelled("the filter was stopped")
        return self._rule(derived)


def evaluate(evaluator: FilterEvaluator, state: FilterState, is_cancelled: IsCancelled, _report: Report) -> FilterView:
    """Return what a filter does to the trace."""
    return evaluator.alone(is_cancelled, lambda: evaluator.view(state))


def count_hits(evaluator: FilterEvaluator, item: Pass, is_cancelled: IsCancelled, _report: Report) -> int:
    """Return how many events a pass fits."""
    return evaluator.alone(is_cancelled, lambda: evaluator.result(PassStack((item,))).counts[item.name])


def find_hits(evaluator: FilterEvaluator, item: Pass, is_cancelled: IsCancelled, _report: Report) -> NDArray[np.uint32]:
    """Return the rows of the events that a pass fits, ascending.

    Returns:
        uint32 (n,).
    """
    return evaluator.alone(is_cancelled, lambda: event_rows.rows_of(evaluator.mask(item)))


def make_columns_ready(evaluator: FilterEvaluator, is_cancelled: IsCancelled, _report: Report) -> None:
    """Compute the derived columns while a condition is being typed, so that the first duration is no slower."""
    evaluator.alone(is_cancelled, evaluator.derived.make_ready)
