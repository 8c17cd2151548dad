"""Finds the lanes of events that a view asks for, in the background, when they are first shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import SourceChangedError
from satview.session.tasks import IsCancelled, Report, Task
from satview.timeline.lane_tree import Timeline

_PATIENCE_S = 0.03  # small traces have their lanes by then


class ClassLoader(QObject):
    """Lets a timeline find lanes of events; one request at a time, and the newest has all that is wanted.

    Args:
        timeline: Returns the lanes that show now.
        wanted: Returns the names of the classes that some view shows.
        parent: Owner.

    Signals:
        loaded: The timeline has more lanes.
    """

    loaded = Signal()

    def __init__(
        self, timeline: Callable[[], Timeline], wanted: Callable[[], frozenset[str]], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._timeline, self._wanted = timeline, wanted
        self._job = Task(self)
        self._job.done.connect(self.loaded)
        self._job.failed.connect(self._on_failed)

    @property
    def is_busy(self) -> bool:
        """True while lanes are looked for."""
        return self._job.is_busy

    @Slot()
    def load(self) -> None:
        """Find what is missing."""
        timeline, wanted = self._timeline(), self._wanted()
        if not timeline.has_classes(wanted):
            self._job.start(partial(_shown, timeline, wanted), _PATIENCE_S)

    def close(self) -> None:
        """Stop and wait for it."""
        self._job.close()

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if not isinstance(error, SourceChangedError):  # that the window says by itself
            raise error if isinstance(error, Exception) else RuntimeError(str(error))


def _shown(timeline: Timeline, wanted: frozenset[str], is_cancelled: IsCancelled, _report: Report) -> Timeline:
    """Work of the job; it holds no widget."""
    timeline.show_classes(wanted, is_cancelled)
    return timeline
