"""Finds event lanes in the background when a view first shows them, and the events on lanes in a time window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from satview.analysis.activities import Timing, read_timing
from satview.answers.activity_lanes import ACTIVITIES, ActivityLanes
from satview.base.errors import NO_SUCH_FILE, SourceChangedError, UsageError
from satview.base.time import TimeWindow
from satview.events import wire
from satview.events.user_events import Descriptions, UserEvent, parse_rules
from satview.formats.user_event_file import read_user_events
from satview.session.settings import Settings
from satview.session.tasks import IsCancelled, Task
from satview.store.time_ranges import CPU_NUMBERS, doubts
from satview.store.trace import Trace
from satview.timeline.event_marks import is_marked
from satview.timeline.finders import UserLanes
from satview.timeline.lane_info import LaneInfo, LaneKind
from satview.timeline.lane_tree import Timeline

# Settings for user events; a user can set others for one trace.


FILE_KEY = "events/user_events"
RULES_KEY = "events/user_rules"


def descriptions_of(file: str) -> Descriptions:
    """Return the descriptions of user events in a file; empty descriptions if the file name is empty.

    Raises:
        UsageError: The file is faulty.
    """
    return read_user_events(Path(file).expanduser()) if file.strip() else Descriptions()


def timing_of(trace: Trace, file: str) -> dict[str, Timing]:
    """Return the timing rules (deadlines, activities) in a file, beside the trace if relative; {} for an empty name.

    Raises:
        UsageError: There is no such file, or it is faulty.
    """
    return read_timing(timing_path(trace, file)) if file else {}


def timing_path(trace: Trace, file: str) -> Path:
    """Return the path of a timing file; arguments and errors as for `timing_of`."""
    path = trace.path.parent / file
    if not path.is_file():  # reading a pipe named by a saved session would never end
        raise UsageError(f"{path.name}: {'; '.join(NO_SUCH_FILE)}")
    return path


_PATIENCE_S = 0.03  # small traces have their lanes by then


class ClassLoader(QObject):
    """Lets a timeline find event lanes in the background; a new request stops a running one and takes over its lanes.

    Args:
        timeline: Returns the lanes that are shown now.
        requested: Returns the names of the lane classes that any view shows.
        described: Returns the descriptions of user events, by number.
        timing_file: Returns the name of the timing file, for the lanes of activities.
        settings: Holds the rules for user events.
        parent: Owner.

    Signals:
        loaded: The timeline has more lanes.
        failed: Sends a sentence: rules for user events or the timing file are faulty, or there are no activities.
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
        """True while lanes are searched for."""
        return self._job.is_busy

    @Slot()
    def load(self) -> None:
        """Find the lanes that are requested and missing."""
        timeline, requested = self._timeline(), self._requested()
        if not timeline.has_classes(requested):
            self._start(timeline, requested)

    def _start(self, timeline: Timeline, requested: frozenset[str]) -> None:
        described, rules = dict(self._described()), self._settings.text(RULES_KEY)
        self._job.start(partial(_shown, timeline, requested, described, rules, self._timing_file()), _PATIENCE_S)

    def describe(self) -> None:
        """Find lanes of user events again, with the current descriptions of these events."""
        if "user" in self._requested():
            self._start(self._timeline(), self._requested())

    def time_activities(self) -> None:
        """Find lanes of activities again, with the current timing file."""
        if ACTIVITIES in self._requested():
            self._start(self._timeline(), self._requested())

    def name_functions(self) -> None:
        """Find lanes of functions again, with the current symbols."""
        self._timeline().forget_class("functions")
        self.load()

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key == RULES_KEY:
            self.describe()

    @Slot(object)
    def _on_done(self, error: Exception) -> None:
        self.loaded.emit()
        if error:
            self.failed.emit(str(error))

    def close(self) -> None:
        """Stop the task and wait for its end."""
        self._job.close()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, SourceChangedError):  # the window reports that itself
            raise error


def _shown(
    timeline: Timeline,
    requested: frozenset[str],
    described: Mapping[int, UserEvent],
    rules: str,
    timing_file: str,
    is_cancelled: IsCancelled,
) -> str:
    """Add the requested lanes to the timeline; return the sentence that `ClassLoader.failed` sends, or "" for none.

    For a worker thread.
    """
    error, user = "", UserLanes(described)
    if "user" in requested:
        try:
            user = UserLanes(described, parse_rules(rules))
        except UsageError as fault:
            error = str(fault)  # the events are still shown
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


# Finds the events on lanes in one time window; the cost depends on the window, not on the trace.


_CHUNK: Final = 1 << 17
_CPUS_SHOWN: Final = 8  # up to this many CPU lanes are shown even if they are empty
_LOOKED_AT: Final = 100_000  # events before and after the mouse that are searched for the nearest one


def silent_cpus(timeline: Timeline) -> frozenset[int]:
    """Return the lanes of CPUs without events or intervals in the whole trace; none if there are only a few CPUs."""
    cpus = [info for info in timeline.infos if info.kind is LaneKind.CPU]
    if len(cpus) <= _CPUS_SHOWN:
        return frozenset()
    busy = busy_lanes(timeline, timeline.trace.window)
    return frozenset(info.index for info in cpus if info.index not in busy)


def event_near(
    timeline: Timeline,
    lane: int,
    cycles: int,
    within: int,
    codes: NDArray[np.bool_],
    passing: NDArray[np.bool_] | None = None,
) -> int | None:
    """Return the event marked on a lane that is nearest to a time; None if no event is near.

    Args:
        timeline: The lanes.
        lane: Index of the lane.
        cycles: The time.
        within: Largest distance in cycles.
        codes: bool, shape (32768,), event codes that are shown.
        passing: bool, shape (events,), events that are shown; None = all with a code in `codes`.
    """
    times = timeline.trace.events.time_cycles
    begin, middle, stop = np.searchsorted(times, (cycles - within, cycles, cycles + within + 1)).tolist()
    rows = np.arange(max(begin, middle - _LOOKED_AT), min(stop, middle + _LOOKED_AT))
    rows = rows[is_marked(timeline.trace, timeline.infos[lane], rows) & codes[timeline.trace.events.code[rows]]]
    if passing is not None:
        rows = rows[passing[rows]]
    return int(rows[np.abs(times[rows] - cycles).argmin()]) if len(rows) else None


def busy_lanes(timeline: Timeline, window: TimeWindow) -> frozenset[int]:
    """Return the lanes with events or intervals in a window."""
    trace = timeline.trace
    part = trace.rows_between(window)
    threads = np.zeros(len(trace.threads), np.bool_)
    cpus, interrupts = np.zeros(CPU_NUMBERS, np.bool_), np.zeros(CPU_NUMBERS, np.bool_)
    for start in range(part.start, part.stop, _CHUNK):
        rows = slice(start, min(part.stop, start + _CHUNK))
        cpu = trace.events.cpu[rows]
        threads[trace.events.thread[rows]] = True
        cpus[cpu] = True
        interrupts[cpu[trace.events.code[rows] >> wire.CLASS_SHIFT == wire.WireClass.INT]] = True
    processes = np.zeros(len(trace.processes), np.bool_)
    processes[trace.threads.process[threads]] = True
    tables = {
        LaneKind.THREAD: threads,
        LaneKind.PROCESS: processes,
        LaneKind.CPU: cpus,
        LaneKind.INTERRUPTS: interrupts,
    }
    doubtful = doubts(trace)
    tables[LaneKind.DAMAGED] = np.array([(doubtful.threads & threads).any() or (doubtful.cpus & cpus).any()])
    tables[LaneKind.PLUGGED] = np.ones(1, np.bool_)  # plug-in lanes have no events, and are never empty
    return frozenset(
        info.index
        for info in timeline.infos
        if (info.track.is_busy(window) if info.track is not None else tables[info.kind][_number(info)])
    )


def _number(info: LaneInfo) -> int:
    numbers = {LaneKind.THREAD: info.thread, LaneKind.PROCESS: info.process, LaneKind.DAMAGED: 0, LaneKind.PLUGGED: 0}
    return numbers.get(info.kind, info.cpu)
