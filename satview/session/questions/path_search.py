"""The critical path of a thread through an interval: requested by a key, answered in the background."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Slot

from satview.base.time import TimeWindow
from satview.session.questions.answer import Answer
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

if TYPE_CHECKING:
    from satview.answers.path import PathAnswer


class PathSearch(Answer):
    """The last path that was requested; it stays until another is, or it is dropped.

    Attributes:
        found: The path; None = none was requested, or it is not there yet.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.found: PathAnswer | None = None

    def search(self, trace: Trace, thread: int, window: TimeWindow) -> None:
        """Look for a path.

        Args:
            trace: The events.
            thread: Row of the thread table.
            window: The interval, cycles.
        """
        self.found = None
        self._start(partial(_find, trace, thread, window))

    @Slot()
    def forget(self) -> None:
        """Drop the path."""
        if self.found is not None or self.error or self.is_busy:
            self._job.cancel()
            self.found, self.error = None, ""
            self.changed.emit()

    def _take(self, result: object) -> None:
        self.found = cast("PathAnswer | None", result)


def _find(trace: Trace, thread: int, window: TimeWindow, is_cancelled: IsCancelled, _report: Report) -> PathAnswer:
    """Run in the task; holds the trace, no widget."""
    from satview.analysis.reasons.critical_path import critical_path  # on first use: no picture waits for it
    from satview.answers.path import path_answer

    return path_answer(trace, critical_path(trace, thread, window), is_cancelled)
