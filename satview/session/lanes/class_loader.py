"""Finds the lanes of events that a view needs, in the background, when they are first shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import SourceChangedError, UsageError
from satview.session.lanes.user_event_settings import FILE_KEY, RULES_KEY, user_lanes_of
from satview.session.settings import Settings
from satview.session.tasks import IsCancelled, Report, Task
from satview.timeline.lane_tree import Timeline
from satview.timeline.tracks.user import UserLanes

_PATIENCE_S = 0.03  # small traces have their lanes by then


class ClassLoader(QObject):
    """Lets a timeline find lanes of events; one request at a time, and the newest has all that is requested.

    Args:
        timeline: Returns the lanes that show now.
        requested: Returns the names of the classes that some view shows.
        settings: Have descriptions and rules of user events.
        parent: Owner.

    Signals:
        loaded: The timeline has more lanes.
        failed: Descriptions of user events are faulty; a sentence.
    """

    loaded = Signal()
    failed = Signal(str)

    def __init__(
        self,
        timeline: Callable[[], Timeline],
        requested: Callable[[], frozenset[str]],
        settings: Settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._timeline, self._requested, self._settings = timeline, requested, settings
        self._job = Task(self)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(self._on_failed)
        settings.changed.connect(self._on_setting)

    @property
    def is_busy(self) -> bool:
        """True while lanes are looked for."""
        return self._job.is_busy

    @Slot()
    def load(self) -> None:
        """Find what is missing."""
        timeline, requested = self._timeline(), self._requested()
        if not timeline.has_classes(requested):
            self._start(timeline, requested)

    def _start(self, timeline: Timeline, requested: frozenset[str]) -> None:
        texts = self._settings.text(FILE_KEY), self._settings.text(RULES_KEY)
        self._job.start(partial(_shown, timeline, requested, texts), _PATIENCE_S)

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        """Describe user events again."""
        if key in (FILE_KEY, RULES_KEY) and "user" in self._requested():
            self._start(self._timeline(), self._requested())

    @Slot(object)
    def _on_done(self, error: object) -> None:
        self.loaded.emit()
        if error:
            self.failed.emit(str(error))

    def close(self) -> None:
        """Stop and wait for it."""
        self._job.close()

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if not isinstance(error, SourceChangedError):  # that the window says by itself
            raise error if isinstance(error, Exception) else RuntimeError(str(error))


def _shown(
    timeline: Timeline, requested: frozenset[str], texts: tuple[str, str], is_cancelled: IsCancelled, _report: Report
) -> str:
    """Run in the task, which holds no widget; return what is wrong with descriptions of user events, or nothing."""
    error, user = "", UserLanes()
    if "user" in requested:
        try:
            user = user_lanes_of(*texts)
        except UsageError as fault:
            error = str(fault)  # the events show all the same
        timeline.describe_user_events(user)
    timeline.show_classes(requested, is_cancelled)
    return error
