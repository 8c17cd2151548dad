"""The critical path of a thread through an interval: requested by a key, answered in the background."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from satview.base.time import TimeWindow
from satview.session.questions.answer import Answer
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

if TYPE_CHECKING:
    from satview.analysis.reasons.critical_path import CriticalPath
    from satview.analysis.sheets.sheet import Sheet


@dataclass(frozen=True, slots=True)
class FoundPath:
    """A critical path, and its tables."""

    path: CriticalPath
    pieces: Sheet
    totals: Sheet


class PathSearch(Answer):
    """The last path that was requested; it stays until another is, or it is dropped.

    Attributes:
        found: The path; None = none was requested, or it is not there yet.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.found: FoundPath | None = None

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
        self.found = result if isinstance(result, FoundPath) else None


def _find(trace: Trace, thread: int, window: TimeWindow, is_cancelled: IsCancelled, _report: Report) -> FoundPath:
    """Run in the task; holds the trace, no widget."""
    from satview.analysis.reasons.critical_path import critical_path  # on first use: no picture waits for it
    from satview.analysis.sheets.path_sheets import pieces_sheet, totals_sheet

    path = critical_path(trace, thread, window)
    return FoundPath(path, pieces_sheet(trace, path, is_cancelled), totals_sheet(trace, path))
