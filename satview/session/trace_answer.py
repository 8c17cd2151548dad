"""An answer about all of the open trace: worked out in the background once somebody wants to see it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import SatviewError
from satview.session.jobs import IsCancelled, LatestJob, Report
from satview.store.trace import Trace

Found = TypeVar("Found")


class TraceAnswer(QObject, Generic[Found]):
    """Asks at the first `start`, and again after each reading of a growing file while the answer is wanted.

    Attributes:
        found: The answer; of the shorter reading until the next `start`; None = not yet known.
        error: Why there is none; empty = fine.

    Signals:
        changed: It is there, is being worked out, or could not be.
    """

    changed = Signal()

    def __init__(self, trace: Trace, ask: Callable[[Trace], Found], parent: QObject | None = None) -> None:
        """Prepare to ask.

        Args:
            trace: The trace.
            ask: The question, a function without a bond to any widget; runs on the worker.
            parent: Owner.
        """
        super().__init__(parent)
        self._trace, self._ask = trace, ask
        self._is_of_this = False
        self.found: Found | None = None
        self.error = ""
        self._job = LatestJob(self)
        self._job.done.connect(self._on_found)
        self._job.failed.connect(self._on_failed)

    @property
    def is_busy(self) -> bool:
        """Whether the answer is being worked out."""
        return self._job.is_busy

    def start(self) -> None:
        """Ask, unless that is done or under way."""
        if not self._is_of_this and not self.is_busy:
            self._job.start(partial(_answer, self._ask, self._trace))
            self.changed.emit()

    def take(self, trace: Trace) -> None:
        """Take a longer reading of the trace; the answer of the shorter one shows until the next `start`."""
        self._job.cancel()
        self._trace, self._is_of_this = trace, False

    def close(self) -> None:
        """Stop what runs in the background."""
        self._job.close()

    @Slot(object)
    def _on_found(self, found: Found) -> None:
        self.found, self.error, self._is_of_this = found, "", True
        self.changed.emit()

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if not isinstance(error, SatviewError):
            raise error if isinstance(error, Exception) else RuntimeError(str(error))
        self.error, self._is_of_this = str(error), True
        self.changed.emit()


def _answer(ask: Callable[[Trace], Found], trace: Trace, _is_cancelled: IsCancelled, _report: Report) -> Found:
    """Work of the job; it holds the trace, no widget."""
    return ask(trace)
