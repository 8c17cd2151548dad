"""Why a thread is in its state at a moment: asked by a key, answered in the background."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from satview.analysis.why import WhyStep, why
from satview.base.errors import SatviewError
from satview.session.jobs import IsCancelled, LatestJob, Report
from satview.session.selection import Selection
from satview.store.trace import Trace


class WhySearch(QObject):
    """The answer to the last question; it goes when something else is selected.

    Signals:
        changed: It was asked, answered, or is gone.
    """

    changed = Signal()

    def __init__(self, selection: Selection, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.steps: tuple[WhyStep, ...] = ()
        self.error = ""
        self._job = LatestJob(self)
        self._job.done.connect(self._on_found)
        self._job.failed.connect(self._on_failed)
        selection.changed.connect(self.forget)

    @property
    def is_busy(self) -> bool:
        """Whether the answer is being looked for."""
        return self._job.is_busy

    def ask(self, trace: Trace, thread: int, at_cycles: int) -> None:
        """Look for the answer.

        Args:
            trace: The events.
            thread: Row of the thread table.
            at_cycles: The moment.
        """
        self.steps, self.error = (), ""
        self._job.start(partial(_find, trace, thread, at_cycles))
        self.changed.emit()

    def close(self) -> None:
        """Stop what runs in the background."""
        self._job.close()

    @Slot()
    def forget(self) -> None:
        """Drop question and answer."""
        if self.steps or self.error or self.is_busy:
            self._job.cancel()
            self.steps, self.error = (), ""
            self.changed.emit()

    @Slot(object)
    def _on_found(self, steps: object) -> None:
        if isinstance(steps, tuple):
            self.steps = steps
            self.changed.emit()

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if not isinstance(error, SatviewError):
            raise error if isinstance(error, Exception) else RuntimeError(str(error))
        self.error = str(error)
        self.changed.emit()


def _find(
    trace: Trace, thread: int, at_cycles: int, _is_cancelled: IsCancelled, _report: Report
) -> tuple[WhyStep, ...]:
    """Work of the job; it holds the trace, no widget."""
    return why(trace, thread, at_cycles)
