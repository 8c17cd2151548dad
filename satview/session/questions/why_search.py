"""Why a thread is in its state at a moment: requested by a key, answered in the background."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Slot

from satview.analysis.reasons.why_step import WhyStep
from satview.session.questions.answer import Answer
from satview.session.selection import Selection
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace


class WhySearch(Answer):
    """The answer to the last question; it goes when something else is selected.

    Attributes:
        steps: The answer; empty = none yet.
    """

    def __init__(self, selection: Selection, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.steps: tuple[WhyStep, ...] = ()
        selection.changed.connect(self.forget)

    def search(self, trace: Trace, thread: int, at_cycles: int) -> None:
        """Look for the answer.

        Args:
            trace: The events.
            thread: Row of the thread table.
            at_cycles: The moment.
        """
        self.steps = ()
        self._start(partial(_find, trace, thread, at_cycles))

    @Slot()
    def forget(self) -> None:
        """Drop question and answer."""
        if self.steps or self.error or self.is_busy:
            self._job.cancel()
            self.steps, self.error = (), ""
            self.changed.emit()

    def _take(self, result: object) -> None:
        self.steps = result if isinstance(result, tuple) else ()


def _find(
    trace: Trace, thread: int, at_cycles: int, _is_cancelled: IsCancelled, _report: Report
) -> tuple[WhyStep, ...]:
    """Run in the task; holds the trace, no widget."""
    from satview.analysis.reasons.why import why  # on first use: no picture waits for it

    return why(trace, thread, at_cycles)
