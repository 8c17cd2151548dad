"""An answer about all of the open trace: computed in the background once it is seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar, cast

from PySide6.QtCore import QObject

from satview.session.questions.answer import Answer
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

Found = TypeVar("Found")
Query = Callable[[Trace, IsCancelled], Found]


class TraceAnswer(Answer, Generic[Found]):
    """Runs the query at the first `start`, and again of a refreshed trace at the next one.

    Attributes:
        found: The answer; of the trace before until the next `start`; None = not yet known.
    """

    def __init__(self, trace: Trace, query: Query[Found], parent: QObject | None = None) -> None:
        """Prepare the query.

        Args:
            trace: The trace.
            query: A function without a bond to any widget; runs on the worker and returns no None. It may
                raise `Cancelled` when its second argument says so.
            parent: Owner.
        """
        super().__init__(parent)
        self._trace, self._query = trace, query
        self._is_of_this = False
        self.found: Found | None = None

    def start(self) -> None:
        """Run the query, unless that is done or under way."""
        if not self._is_of_this and not self.is_busy:
            self._start(partial(_answer, self._query, self._trace))

    def take(self, trace: Trace) -> None:
        """Query a refreshed trace from now on; the answer of before shows until the next `start`."""
        self._job.cancel()
        self._trace, self._is_of_this = trace, False

    def _take(self, result: object) -> None:
        self._is_of_this = True
        if result is not None:
            self.found = cast(Found, result)


def _answer(query: Query[Found], trace: Trace, is_cancelled: IsCancelled, _report: Report) -> Found:
    """Run in the task; holds the trace, no widget."""
    return query(trace, is_cancelled)
