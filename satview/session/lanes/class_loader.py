"""Finds the lanes of events that a view needs, in the background, when they are first shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from satview.analysis.timing import Timing, read_timing
from satview.answers.activity_lanes import ACTIVITIES, ActivityLanes
from satview.base.errors import SourceChangedError, UsageError
from satview.events.user_events import Descriptions, UserEvent, parse_rules
from satview.formats.user_event_file import read_user_events
from satview.session.settings import Settings
from satview.session.tasks import IsCancelled, Task
from satview.store.trace import Trace
from satview.timeline.lane_tree import Timeline
from satview.timeline.tracks.user import UserLanes

# What settings, and a user for one trace, say of user events.


FILE_KEY = "events/user_events"
RULES_KEY = "events/user_rules"


def descriptions_of(file: str) -> Descriptions:
    """Return the descriptions in a file; none if its name is empty.

    Raises:
        UsageError: The file is faulty.
    """
    return read_user_events(Path(file).expanduser()) if file.strip() else Descriptions()


def timing_of(trace: Trace, file: str) -> dict[str, Timing]:
    """Return what a file of timing says; nothing if its name is empty.

    Args:
        trace: The trace, beside which a name without a folder is looked for.
        file: As a user wrote it.

    Raises:
        UsageError: There is no such file, or it is faulty.
    """
    return read_timing(timing_path(trace, file)) if file else {}


def timing_path(trace: Trace, file: str) -> Path:
    """Return where a file of timing is; arguments and what is raised as of `timing_of`."""
    path = trace.path.parent / file
    if not path.is_file():  # a pipe that a saved session names would never end
        raise UsageError(f"{path.name}: there is no such file")
    return path


_PATIENCE_S = 0.03  # small traces have their lanes by then


class ClassLoader(QObject):
    """Lets a timeline find lanes of events; one request at a time, and the newest has all that is requested.

    Args:
        timeline: Returns the lanes that show now.
        requested: Returns the names of the classes that some view shows.
        described: Returns the descriptions of user events, by number.
        timing_file: Returns the name of the file of timing, for the lanes of activities.
        settings: Have the rules for these.
        parent: Owner.

    Signals:
        loaded: The timeline has more lanes.
        failed: Rules for user events are faulty, or the file of timing, or nothing is done again and again; a sentence.
    """

    loaded = Signal()
    failed = Signal(str)

    def __init__(
        self,
        timeline: Callable[[], Timeline],
        requested: Callable[[], frozenset[str]],
        described: Callable[[], Mapping[int, UserEvent]],
        timing_file: Callable[[], str],
        settings: Settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._timeline, self._requested, self._described, self._settings = timeline, requested, described, settings
        self._timing_file = timing_file
        self._job = Task(self, self._on_done, self._on_failed)
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
        described, rules = dict(self._described()), self._settings.text(RULES_KEY)
        self._job.start(partial(_shown, timeline, requested, described, rules, self._timing_file()), _PATIENCE_S)

    def describe(self) -> None:
        """Show lanes of user events as they are described by now."""
        if "user" in self._requested():
            self._start(self._timeline(), self._requested())

    def time_activities(self) -> None:
        """Show lanes of activities as the file of timing says by now."""
        if ACTIVITIES in self._requested():
            self._start(self._timeline(), self._requested())

    def name_functions(self) -> None:
        """Show lanes of functions by the names that their addresses have by now."""
        self._timeline().forget_class("functions")
        self.load()

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        """Take other rules for user events."""
        if key == RULES_KEY:
            self.describe()

    @Slot(object)
    def _on_done(self, error: Exception) -> None:
        self.loaded.emit()
        if error:
            self.failed.emit(str(error))

    def close(self) -> None:
        """Stop and wait for it."""
        self._job.close()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, SourceChangedError):  # that the window says by itself
            raise error


def _shown(
    timeline: Timeline,
    requested: frozenset[str],
    described: Mapping[int, UserEvent],
    rules: str,
    timing_file: str,
    is_cancelled: IsCancelled,
) -> str:
    """Run in the task, which holds no widget; return what is wrong with rules or the file of timing, or nothing."""
    error, user = "", UserLanes(described)
    if "user" in requested:
        try:
            user = UserLanes(described, parse_rules(rules))
        except UsageError as fault:
            error = str(fault)  # the events show all the same
        timeline.describe_user_events(user)
    try:
        if ACTIVITIES in requested:
            timeline.use_finder(ACTIVITIES, ActivityLanes(timing_of(timeline.trace, timing_file)))
        timeline.show_classes(requested, is_cancelled)
    except UsageError as fault:
        timeline.show_classes(requested - {ACTIVITIES}, is_cancelled)
        return str(fault)
    if ACTIVITIES in timeline.known_classes & requested and not timeline.lanes_of_class(ACTIVITIES):
        return "Nothing is done again and again here: there are no lanes of activities"
    return error
