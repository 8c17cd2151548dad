"""One window's document: nothing yet, being read, open, or failed. Knows no numpy, so that windows show at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from satview.base.errors import TraceFormatError
from satview.session.follow import Follow
from satview.session.jobs import IsCancelled, LatestJob, Report
from satview.session.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satview.session.open_trace import OpenTrace
    from satview.store.trace import Trace
    from satview.timeline.lane_tree import Timeline


_HOLD_MS = 100


class Stage(StrEnum):
    """Where a window is with its document."""

    EMPTY = "empty"
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


class Session(QObject):
    """The document of one window.

    Attributes:
        stage: Where it is.
        path: The file that is read, open or failed; None while empty.
        opened: The open trace and all that follows it; None unless READY.
        error: Why it failed; None unless FAILED.
        follow: Keeps the trace in step with a growing file; None unless it is followed.
        lanes_in_view: Returns the lanes that show; they are ready before a followed trace is replaced by a longer one.
        may_renew: Asked before a trace that is shown is replaced by a longer one; False puts it off a little.

    Signals:
        stage_changed: Sent after `stage` and the rest have changed.
        progress: Share read, 0 to 1.
        renewed: `opened` is a longer reading of the same file; the argument is the one it replaces, which dies next.
        follow_changed: Following began or ended, or what is to be said about it changed.
        told: Something happened to the followed file, as a sentence.
    """

    stage_changed = Signal()
    progress = Signal(float)
    renewed = Signal(object)
    follow_changed = Signal()
    told = Signal(str)

    def __init__(
        self, settings: Settings, parent: QObject | None = None, prepare: Callable[[], None] | None = None
    ) -> None:
        """Begin empty.

        Args:
            settings: For the first arrangement of lanes.
            parent: Owner.
            prepare: Called on the worker thread before a trace is ready: imports what the views will need.
        """
        super().__init__(parent)
        self._settings = settings
        self._prepare = prepare
        self._job = LatestJob(self)
        self._job.done.connect(self._on_read)
        self._job.failed.connect(self._on_failed)
        self._job.progress.connect(self.progress)
        self.stage = Stage.EMPTY
        self.path: Path | None = None
        self.opened: OpenTrace | None = None
        self.error: Exception | None = None
        self.follow: Follow | None = None
        self.lanes_in_view: Callable[[], list[int]] = list
        self.may_renew: Callable[[], bool] = lambda: True
        self._held: _Read | None = None
        self._hold = QTimer(self)
        self._hold.setInterval(_HOLD_MS)
        self._hold.timeout.connect(self._renew_if_possible)

    def open(self, path: Path, is_followed: bool = False) -> None:
        """Read a file in the background; whatever was open is closed.

        Args:
            path: The file.
            is_followed: Keep in step with it while it grows; it need not be there yet.
        """
        self._end_follow()
        self._drop()
        self.path = path
        if is_followed:
            self._begin_follow(path)
        self._set_stage(Stage.LOADING)
        if self.follow is not None:
            self._read_followed()
        else:
            self._job.start(_ReadWork(path, self._prepare))

    def set_following(self, follows: bool) -> None:
        """Begin or stop to follow the open file; the view stays as it is."""
        if follows == (self.follow is not None) or self.path is None:
            return
        if follows:
            self._begin_follow(self.path)
            assert self.follow is not None
            self.follow.set_sticking(self.opened is not None and self.opened.viewport.is_at_end)
            self._read_followed()
        else:
            self._job.cancel()
            self._end_follow()

    def cancel(self) -> None:
        """Stop reading and be empty again."""
        if self.stage is Stage.LOADING:
            self.close()

    def close(self) -> None:
        """Close the trace, or stop reading it, and be empty."""
        self._job.cancel()
        self._end_follow()
        self._drop()
        self.path = None
        self._set_stage(Stage.EMPTY)

    def shut_down(self) -> None:
        """Stop everything in the background and wait for it; the window goes away."""
        self._job.close()
        self._end_follow()
        self._drop()

    def _begin_follow(self, path: Path) -> None:
        self.follow = Follow(path, self)
        self.follow.due.connect(self._read_followed)
        self.follow.changed.connect(self.follow_changed)
        self.follow_changed.emit()

    def _end_follow(self) -> None:
        self._held = None
        self._hold.stop()
        if self.follow is not None:
            follow, self.follow = self.follow, None
            follow.stop()
            follow.deleteLater()
            self.follow_changed.emit()

    @Slot()
    def _read_followed(self) -> None:
        """Read what the followed file has got since; nothing is shown differently until that is done."""
        if self.follow is not None:
            self.follow.begin_read()
            self._job.start(_FollowWork(self.follow, self._prepare, self.opened, self.lanes_in_view()))

    def _drop(self) -> None:
        self.error = None
        if self.opened is not None:
            opened, self.opened = self.opened, None
            opened.shut_down()
            opened.deleteLater()

    def _set_stage(self, stage: Stage) -> None:
        self.stage = stage
        self.stage_changed.emit()

    @Slot(object)
    def _on_read(self, result: object) -> None:
        if result is None:
            self.close()
            return
        assert isinstance(result, _Read)
        if self.follow is not None and self.opened is not None and not result.restart:
            self._held = result
            self._renew_if_possible()
            return
        if self.opened is not None:  # the file was begun anew: so is the view
            self._drop()
            self._set_stage(Stage.LOADING)
        self.opened = self._open_trace(result)
        self._set_stage(Stage.READY)
        if self.follow is not None:
            if result.restart:
                self.follow.set_sticking(True)
                self.told.emit(result.restart)
            self._watch()
            self.follow.end_read(len(result.trace.events))

    def _open_trace(self, result: _Read) -> OpenTrace:
        from satview.session.open_trace import OpenTrace  # brings numpy: not before the first window shows

        return OpenTrace(result.trace, result.timeline, self._settings, self, result.events_of_thread, result.silent)

    @Slot()
    def _renew_if_possible(self) -> None:
        """Replace what is shown by the longer reading, unless the user is in the middle of something."""
        if self._held is None or not self.may_renew():
            self._hold.start()
            return
        from satview.session.carry_over import carry_over  # brings numpy

        self._hold.stop()
        result, self._held = self._held, None
        old = self.opened
        assert old is not None
        assert self.follow is not None
        new = self._open_trace(result)
        carry_over(old, new, self.follow.is_sticking)
        self.opened = new
        self._watch()
        self.renewed.emit(old)
        old.shut_down()
        old.deleteLater()
        self.follow.end_read(len(result.trace.events))

    def _watch(self) -> None:
        if self.opened is not None:
            self.opened.viewport.window_changed.connect(self._on_window)

    @Slot()
    def _on_window(self) -> None:
        """Stick to the end as long as the user is there; let go when he goes back."""
        if self.follow is not None and self.opened is not None and self.sender() is self.opened.viewport:
            self.follow.set_sticking(self.opened.viewport.is_at_end)

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        assert isinstance(error, Exception)
        is_no_kev = isinstance(error, TraceFormatError) and error.offset == 0
        if self.follow is not None and isinstance(error, (TraceFormatError, OSError)) and not is_no_kev:
            self.follow.end_read(None, _waiting(self.follow.path, error))
            return
        if self.follow is not None and self.opened is not None:  # what is shown can still be looked at
            what = str(error) or "there is not enough memory to go on"
            self._end_follow()
            self.told.emit(f"{what}; following has ended, what is shown stays")
            return
        self._end_follow()
        self.error = error
        self._set_stage(Stage.FAILED)


@dataclass(frozen=True, slots=True)
class _Read:
    """What _ReadWork gives."""

    trace: Trace
    timeline: Timeline
    events_of_thread: NDArray[np.int64]
    silent: frozenset[int]
    restart: str = ""


def _waiting(path: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"Waiting for {path.name}: it is not there yet"
    what = error.what if isinstance(error, TraceFormatError) else str(getattr(error, "strerror", "") or error)
    return f"Waiting for {path.name}: {what}"


class _ReadWork:
    """Reads a file and prepares its lanes, on the worker thread."""

    def __init__(self, path: Path, prepare: Callable[[], None] | None) -> None:
        self._path = path
        self._prepare = prepare

    def __call__(self, is_cancelled: IsCancelled, report: Report) -> object:
        # Here, not above: this is what keeps numpy and the decoder out of the way of the first window.
        from satview.formats.registry import open_trace
        from satview.session.lane_events import silent_cpus
        from satview.session.open_trace import events_per_thread
        from satview.timeline.lane_tree import Timeline

        trace = open_trace(self._path, report, is_cancelled)
        if self._prepare is not None:
            self._prepare()
        timeline = Timeline(trace)
        return _Read(trace, timeline, events_per_thread(trace), silent_cpus(timeline))


class _FollowWork:
    """Reads what a followed file has got since, and builds the lanes that show, so that nothing flickers."""

    def __init__(
        self, follow: Follow, prepare: Callable[[], None] | None, shown: OpenTrace | None, lanes: list[int]
    ) -> None:
        self._follow = follow
        self._prepare = prepare
        self._timeline = shown.timeline if shown is not None else None
        self._lanes = list(lanes)
        if shown is not None and shown.selection.lane is not None:
            self._lanes.append(shown.selection.lane)

    def __call__(self, is_cancelled: IsCancelled, report: Report) -> object:
        from satview.formats.kev.growing import GrowingFile  # as in _ReadWork
        from satview.session.carry_over import lane_key, lanes_by_key
        from satview.session.lane_events import silent_cpus
        from satview.session.open_trace import events_per_thread
        from satview.timeline.lane_tree import Timeline

        file = self._follow.file
        if file is None:
            file = self._follow.file = GrowingFile(self._follow.path)
        trace = file.read(report, is_cancelled)
        if self._prepare is not None:
            self._prepare()
        timeline = Timeline(trace)
        if self._timeline is not None and not file.restart:
            places, old = lanes_by_key(timeline), self._timeline
            keys = (lane_key(old.trace, old.infos[index]) for index in self._lanes)
            timeline.build([places[key] for key in keys if key in places], is_cancelled)
        return _Read(trace, timeline, events_per_thread(trace), silent_cpus(timeline), file.restart)
