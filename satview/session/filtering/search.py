"""Search for events: by a condition, or by names of events, public calls, classes, processes and threads."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import Cancelled, SatviewError, UsageError
from satview.events.wire import CODE_COUNT
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.pattern import regex
from satview.filters.expressions.semantics import FIELDS
from satview.filters.expressions.syntax import looks_like_condition
from satview.filters.views.passes import Pass
from satview.session.filtering.filter_stack import FilterEvaluator, find_hits
from satview.session.tasks import IsCancelled, Task, TaskFunction
from satview.store.arguments import taught
from satview.store.trace import Trace

_CHUNK: Final = 1 << 17
_FIELD_AND_VALUE: Final = re.compile(r"(\w+)\s+([\w.]+)")


def suggested(text: str) -> str:
    """Return the condition that a field name followed by a value probably means: `pid == 7` for `pid 7`; else ""."""
    parts = _FIELD_AND_VALUE.fullmatch(text)
    return f"{parts[1]} == {parts[2]}" if parts is not None and parts[1] in FIELDS else ""


class Search(QObject):
    """The search of one window.

    Attributes:
        text: The text that is searched for; empty = no search.
        hits: uint32, ascending event rows.
        error: Why the text cannot be searched for; empty if it can.

    Signals:
        changed: Text, hits or error changed.
    """

    changed = Signal()

    def __init__(self, trace: Trace, parent: QObject | None = None, evaluator: FilterEvaluator | None = None) -> None:
        super().__init__(parent)
        self._trace = trace
        self._evaluator = evaluator or FilterEvaluator(trace)
        self._job = Task(self, self._on_hits, self._on_failed)
        self.text = ""
        self.error = ""
        self.hits: NDArray[np.uint32] = np.empty(0, np.uint32)

    @property
    def is_pending(self) -> bool:
        """True while the search runs."""
        return self._job.is_busy

    def find(self, text: str) -> None:
        """Start to search for a text in the background."""
        self.text = text.strip()
        self.error = ""
        self._job.cancel()
        self.hits = np.empty(0, np.uint32)
        if self.text:
            try:
                self._job.start(task_for(self.text, self._trace, self._evaluator))
            except UsageError as error:
                self.error = str(error)
        self.changed.emit()

    def reload(self, trace: Trace, evaluator: FilterEvaluator, hits: NDArray[np.uint32]) -> None:
        """Switch to the reloaded trace and to `hits`, the hits of the current text in the reloaded trace."""
        self._job.cancel()
        self._trace, self._evaluator, self.hits = trace, evaluator, hits
        self.changed.emit()

    def next_hit(self, event: int, shown: NDArray[np.uint32] | None = None) -> int | None:
        """Return the first hit after an event, or the first of all after the last one; None without hits.

        Args:
            event: Row to start from; -1 = from the beginning.
            shown: Rows that a filter shows; None = all.
        """
        hits = self._shown_hits(shown)
        return int(hits[np.searchsorted(hits, event, side="right") % len(hits)]) if len(hits) else None

    def previous_hit(self, event: int, shown: NDArray[np.uint32] | None = None) -> int | None:
        """Return the last hit before an event, or the last of all before the first one; None without hits."""
        hits = self._shown_hits(shown)
        return int(hits[int(np.searchsorted(hits, event, side="left")) - 1]) if len(hits) else None

    def close(self) -> None:
        """Cancel the background task."""
        self._job.close()

    def _shown_hits(self, shown: NDArray[np.uint32] | None) -> NDArray[np.uint32]:
        return self.hits if shown is None else np.intersect1d(self.hits, shown, assume_unique=True)

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, SatviewError):
            raise error
        self.error = str(error)
        self.changed.emit()

    def _on_hits(self, hits: object) -> None:
        assert isinstance(hits, np.ndarray)
        self.hits = hits
        self.changed.emit()


def task_for(text: str, trace: Trace, evaluator: FilterEvaluator) -> TaskFunction:
    """Return the task that searches for a text: as a condition if the text is a valid one, else as a part of a name.

    The task returns the ascending rows of matching events, uint32 (n,).

    Raises:
        UsageError: The condition or the pattern is faulty.
    """
    is_pattern = len(text) > 2 and text.startswith("/") and text.endswith("/")
    try:
        Expression(text, trace.release, taught=taught(trace))
    except ExpressionError as error:
        if not is_pattern and looks_like_condition(text):
            raise UsageError(f"column {error.start + 1}: {error.message}") from error
        try:
            return partial(find_names, trace, fits_of(text))
        except ExpressionError as fault:
            raise UsageError(f"pattern, column {fault.start + 1}: {fault.message}") from fault
    return partial(find_hits, evaluator, Pass("search", "", text))


def fits_of(text: str) -> Callable[[str], bool]:
    """Return a function that tells whether a name contains a text, or matches `/a regular expression/`; ignores case.

    Raises:
        ExpressionError: The regular expression is faulty, or its cost has no bound.
    """
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        return regex(text[1:-1], ignores_case=True, offset=1).matches
    requested = text.casefold()
    return lambda name: requested in name.casefold()


def find_names(trace: Trace, fits: Callable[[str], bool], is_cancelled: IsCancelled) -> NDArray[np.uint32]:
    """Return the ascending rows of events whose own name or whose thread's name `fits`.

    Returns:
        uint32 (n,).

    Raises:
        Cancelled: `is_cancelled()` returned True.
    """
    events = trace.events
    codes, threads = matching_codes(trace, fits), matching_threads(trace, fits)
    parts = []
    for start in range(0, len(events), _CHUNK):
        if is_cancelled():
            raise Cancelled
        part = slice(start, start + _CHUNK)
        mask = codes.take(events.code[part])
        mask |= threads.take(events.thread[part])
        parts.append((np.flatnonzero(mask) + start).astype(np.uint32))
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def matching_codes(trace: Trace, fits: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Return which event codes of this trace have a name that `fits`, bool (32768,)."""
    mask = np.zeros(CODE_COUNT, np.bool_)
    for code in np.flatnonzero(trace.code_counts):
        spec = trace.catalogue.spec(int(code))
        names = (spec.name, spec.label, f"{spec.class_name}/{spec.name}", *spec.calls)
        mask[code] = any(map(fits, names))
    return mask


def matching_threads(trace: Trace, fits: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Return which threads have a name that `fits`, bool (threads,)."""
    threads = trace.threads
    return np.array([row > 0 and fits(trace.thread_name(row)) for row in range(len(threads))], np.bool_)
