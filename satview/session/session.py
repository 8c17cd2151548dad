"""The document of one window: empty, loading, open or failed. Imports no numpy, so that windows appear at once."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from satview.base.column_arrays import give_back
from satview.base.errors import SourceChangedError, TraceFormatError
from satview.session.loading.files import Follow
from satview.session.loading.loaded_trace import LoadedTrace, Reload
from satview.session.loading.loading_tasks import (
    cache_loaded,
    prepare_loaded,
    read_file,
    read_more,
    read_names,
)
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.session.tasks import Task, dismantle
from satview.session.viewport import PreviewView
from satview.timeline.state_lanes import Preview

if TYPE_CHECKING:
    from satview.session.highlight import Marks
    from satview.session.loading.loaded_trace import ShownState

_HOLD_MS = 100
_GIVE_BACK_MS = 500  # by then Qt has carried out its deferred deletions
_MEGABYTE = 1 << 20
_CHECK_MS = 500  # interval at which a truncated file is noticed, even if nothing reads it


class Stage(StrEnum):
    """State of a window's document."""

    EMPTY = "empty"
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


class Session(QObject):
    """Opens, follows and closes the file that one window shows, its document.

    Attributes:
        stage: State of the document.
        path: The file that is loading, open or failed; None while empty.
        opened: The open trace; None unless READY.
        error: Why the file could not be opened; None unless FAILED.
        follow: Follows a growing file; None unless the file is followed.
        lanes_in_view: Returns the visible lanes, which a reloaded trace must have built before `opened` switches to it.
        preview: Sample of a large file, shown while it is loading; else None.
        adds_to_cache: True if decoded files may be put into the cache.
        more_unstored: Returns the marks of another trace in the window that could not be stored yet.
        may_reload: Called before `opened` switches to a reloaded trace; if it returns False, the switch is tried later.

    Signals:
        stage_changed: Sent after `stage` and the other attributes have changed.
        progress: Fraction read, 0 to 1.
        previewed: `preview` is available.
        reloaded: `opened` has switched to a reloaded trace of the same file.
        follow_changed: Following began or ended, or its status changed.
        reported: Something happened to the followed file, as a sentence.
        withdrawn: A sentence that `reported` has sent is no longer true; sends the same sentence.
    """

    stage_changed = Signal()
    progress = Signal(float)
    reloaded = Signal()
    follow_changed = Signal()
    reported = Signal(str)
    withdrawn = Signal(str)
    previewed = Signal()
    _preview_ready = Signal(int, object)

    def __init__(self, settings: Settings, parent: QObject | None = None) -> None:
        """Begin without a document."""
        super().__init__(parent)
        self._settings = settings
        self._job = Task(self, self._on_read, self._on_failed)
        self._job.progress.connect(self.progress)
        self._cache_job = Task(self)
        self._naming = Task(self, self._on_names, self._on_no_names)
        self._to_cache: LoadedTrace | None = None
        self.adds_to_cache = True
        self.stage = Stage.EMPTY
        self.path: Path | None = None
        self.opened: OpenTrace | None = None
        self._unshown: OpenTrace | None = None  # becomes `opened` in the next pass of the event loop
        self.error: Exception | None = None
        self.follow: Follow | None = None
        self._told = ""  # what the user was told of the followed file's `note`
        self.preview: PreviewView | None = None
        self._opens = 0
        # Sent from the worker thread, before it reads the whole file.
        self._preview_ready.connect(self._on_preview, Qt.ConnectionType.QueuedConnection)
        self.lanes_in_view: Callable[[], list[int]] = list
        self.may_reload: Callable[[], bool] = lambda: True
        self._unstored: list[Marks] = []
        self.more_unstored: Callable[[], list[Marks]] = list
        self._held: Reload | None = None
        self._hold = QTimer(self, interval=_HOLD_MS)
        self._hold.timeout.connect(self._reload_if_possible)
        self._guard = QTimer(self, interval=_CHECK_MS)
        self._guard.timeout.connect(self.check_file)

    def open(self, path: Path, is_followed: bool = False) -> None:
        """Close the open trace, and load a file in the background.

        Args:
            path: The file.
            is_followed: True to follow the file while it grows; the file need not exist yet.
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
            self._opens += 1
            show = partial(self._preview_ready.emit, self._opens)
            self._job.start_reporting(partial(read_file, path, show, self._cache_bytes, self._memory_bytes))

    def open_shared(self, other: Session) -> None:
        """Close the open trace, and show the trace of another window without reading it again."""
        assert other.opened is not None
        self._job.cancel()
        self._end_follow()
        self._drop()
        shared = other.opened
        self.path = other.path
        self.opened = OpenTrace(shared.trace, shared.timeline, self._settings, self, shared.events_of_thread)
        self.opened.viewport.window_changed.connect(self._on_window)
        self.opened.names_requested.connect(self._read_names)
        self._set_stage(Stage.READY)

    def set_following(self, follows: bool) -> None:
        """Begin or stop following the open file; the view stays as it is."""
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
        """Stop loading, so that the window has no document."""
        if self.stage is Stage.LOADING:
            self.close()

    def close(self) -> None:
        """Close the trace, or stop loading it, so that the window has no document."""
        self._job.cancel()
        self._end_follow()
        self._drop()
        self.path = None
        self._set_stage(Stage.EMPTY)

    @property
    def _memory_bytes(self) -> int:
        return self._settings.number("files/memory_mb") * _MEGABYTE

    @property
    def _cache_bytes(self) -> int:
        return self._settings.number("files/cache_mb") * _MEGABYTE

    @property
    def needs_caching(self) -> bool:
        """True if the open file was decoded and should be stored in the cache."""
        return self.adds_to_cache and self._to_cache is not None

    @property
    def is_caching(self) -> bool:
        """True while the open file is being written to the cache."""
        return self._cache_job.is_busy

    def cache(self, lanes: list[int]) -> None:
        """Store the decoded open file for the next time, with some lanes, the visible ones."""
        loaded, self._to_cache = self._to_cache, None
        if loaded is not None and self.follow is None and self.stage is Stage.READY:
            self._cache_job.start(partial(cache_loaded, loaded, lanes, self._cache_bytes))

    def unstored_marks(self) -> list[Marks]:
        """Return the marks of this window's traces, closed ones included, that could not be stored yet."""
        self._unstored = [marks for marks in self._unstored if not marks.file.is_stored]
        current = [self.opened.marks] if self.opened is not None and not self.opened.marks.file.is_stored else []
        return [*self._unstored, *current, *self.more_unstored()]

    @Slot(object)
    def adopt(self, marks: Marks) -> None:
        """Keep marks that could not be stored when another trace of the window was closed, and retry to store them."""
        marks.setParent(self)
        self._unstored.append(marks)

    @Slot()
    def check_file(self) -> None:
        """Report once if the file was truncated, overwritten or removed; data read so far is kept."""
        if self.opened is None or self.follow is not None:  # a followed file is checked anyway
            return
        try:
            self.opened.trace.payloads.check()
        except SourceChangedError as error:
            self._guard.stop()
            self.reported.emit(f"{error}; times and states stay, arguments cannot be read any more")

    def shut_down(self) -> None:
        """Stop all background tasks and wait for their end; the window is closing."""
        self._job.close()
        self._cache_job.close()
        self._naming.close()
        self._end_follow()
        self._drop()

    def _begin_follow(self, path: Path) -> None:
        self.follow = Follow(path, self)
        self.follow.due.connect(self._read_followed)
        self.follow.changed.connect(self.follow_changed)
        self.follow.noted.connect(self._on_noted)
        self.follow.over.connect(self._on_over)
        self.follow_changed.emit()

    def _end_follow(self) -> None:
        self._held = None
        self._hold.stop()
        if self.follow is not None:
            follow, self.follow = self.follow, None
            follow.stop()
            self._on_noted("")
            follow.deleteLater()
            self.follow_changed.emit()

    def file_is_complete(self, path: Path) -> None:
        """Record that a file will not grow any more: following ends once all of it has been read."""
        if self.follow is not None and self.follow.path == path:
            self.follow.finish()

    @Slot()
    def _on_over(self) -> None:
        if self.opened is None:  # nothing of it can be shown
            self.close()
        else:
            self.set_following(False)

    @Slot(str)
    def _on_noted(self, note: str) -> None:
        if self._told:
            self.withdrawn.emit(self._told)
        self._told = f"{note}; what is shown stays" if note and self.opened is not None else ""
        if self._told:  # else the waiting page shows the note
            self.reported.emit(self._told)

    @Slot()
    def _read_followed(self) -> None:
        """Read the followed file again; the display does not change until that is done."""
        if self.follow is not None:
            self.follow.begin_read()
            self._job.start_reporting(partial(read_more, self.follow, self._shown()))

    def _shown(self) -> ShownState | None:
        """Return the lanes, filter and search text in use, for which a reloaded trace must be prepared."""
        return None if self.opened is None else self.opened.shown(self.lanes_in_view())

    @Slot(int, object)
    def _on_preview(self, number: int, preview: object) -> None:
        """Show the preview, unless the file has been read completely."""
        if self.stage is Stage.LOADING and number == self._opens and preview is not None:
            assert isinstance(preview, Preview)
            self._drop_preview()
            self.preview = PreviewView(preview, self)
            self.previewed.emit()

    def _drop_preview(self) -> None:
        if self.preview is not None:
            self.preview.deleteLater()
            self.preview = None

    def _drop(self) -> None:
        self.error = None
        self._opens += 1
        self._drop_preview()
        self._to_cache = None
        self._cache_job.cancel()
        self._naming.cancel()
        opened, self.opened, self._unshown = self.opened or self._unshown, None, None
        if opened is not None:
            if not opened.marks.file.is_stored:  # storing is retried
                opened.marks.setParent(self)
                self._unstored.append(opened.marks)
            opened.shut_down()
            dismantle(opened)
            QTimer.singleShot(_GIVE_BACK_MS, give_back)  # memory of objects that Qt deletes later

    def _set_stage(self, stage: Stage) -> None:
        self.stage = stage
        if stage is Stage.READY:
            self._guard.start()
        else:
            self._guard.stop()
        self.stage_changed.emit()

    @Slot(object)
    def _on_read(self, result: object) -> None:
        if result is None:
            self.close()
            return
        if isinstance(result, Reload):
            self._held = result
            self._reload_if_possible()
            return
        assert isinstance(result, LoadedTrace)
        if self.opened is not None:  # the file was started again, and so is the view
            self._drop()
            self._set_stage(Stage.LOADING)
        self._unshown = opened = OpenTrace(
            result.trace, result.timeline, self._settings, self, result.events_of_thread, result.silent
        )
        # In a pass of the event loop of its own, as windows need a whole pass to build their views.
        QTimer.singleShot(0, self, partial(self._show, result, opened))

    def _show(self, result: LoadedTrace, opened: OpenTrace) -> None:
        """Switch to READY with a new trace, unless the file was closed meanwhile."""
        if opened is not self._unshown:
            return
        self.opened, self._unshown = opened, None
        if self.preview is not None:
            opened.continue_preview(self.preview)
            self._drop_preview()
        opened.viewport.window_changed.connect(self._on_window)
        opened.names_requested.connect(self._read_names)
        self._to_cache = result if result.key and not result.is_cached else None
        self._set_stage(Stage.READY)
        if self.follow is not None:
            if result.restart:
                self.follow.set_sticking(True)
                self.reported.emit(result.restart)
            self.follow.end_read(len(result.trace.events))

    @Slot()
    def _reload_if_possible(self) -> None:
        """Switch to the reloaded trace; retry later if `may_reload` returns False, as during a drag."""
        if self._held is None or self.follow is None or self.opened is None:
            self._hold.stop()
            return
        if not self.may_reload():
            self._hold.start()
            return
        self._hold.stop()
        held, self._held = self._held, None
        shown = self._shown()
        assert shown is not None
        if not held.fits(shown):  # the user has changed the view or the filter meanwhile
            self._job.start(partial(prepare_loaded, held.loaded, shown))
            return
        self.opened.reload(held, self.follow.is_sticking)
        self.reloaded.emit()
        QTimer.singleShot(_HOLD_MS, give_back)  # memory of the trace before
        self.follow.end_read(len(held.loaded.trace.events))

    @Slot(str)
    def _read_names(self, file: str) -> None:
        """Start to read names from an output of QNX `pidin`; `_on_names` applies them."""
        shown = self._shown()
        if shown is not None:
            self._naming.start(partial(read_names, Path(file), shown))

    @Slot(object)
    def _on_names(self, result: object) -> None:
        """Switch to the trace with names; retry later if `may_reload` returns False, as during a drag."""
        shown = self._shown()
        if self.opened is None or shown is None or self._naming.is_busy:
            return
        assert isinstance(result, Reload)
        if not self.may_reload():
            QTimer.singleShot(_HOLD_MS, self, partial(self._on_names, result))
        elif result.shown.timeline is not shown.timeline:  # the file has grown meanwhile
            self._read_names(self.opened.pidin_file)
        elif not result.fits(shown):  # the user has changed the view or the filter meanwhile
            self._naming.start(partial(prepare_loaded, result.loaded, shown))
        else:
            self.opened.reload(result, is_at_end=False)
            self.reloaded.emit()
            self.opened.say_names()

    @Slot(object)
    def _on_no_names(self, error: Exception) -> None:
        if self.opened is not None:
            self.opened.say_names(str(error))

    @Slot()
    def _on_window(self) -> None:
        """Set whether the view sticks to the end of a growing trace: only if it shows the end now."""
        if self.follow is not None and self.opened is not None and self.sender() is self.opened.viewport:
            self.follow.set_sticking(self.opened.viewport.is_at_end)

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        is_no_kev = isinstance(error, TraceFormatError) and error.offset == 0
        is_no_kev = is_no_kev and not isinstance(error, SourceChangedError)  # truncated during the read: more may come
        if self.follow is not None and isinstance(error, (TraceFormatError, OSError)) and not is_no_kev:
            self.follow.end_read(None, _waiting(self.follow.path, error))
            return
        if self.follow is not None and self.opened is not None:  # keep what is shown
            what = error.what if isinstance(error, TraceFormatError) else str(error) or "there is not enough memory"
            name = self.follow.path.name
            self._end_follow()
            self.reported.emit(f"{name}: {what}; following has ended, what is shown stays")
            return
        self._end_follow()
        self._drop_preview()
        self.error = error
        self._set_stage(Stage.FAILED)


def _waiting(path: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"Waiting for {path.name}: it is not there yet"
    reason = error.what if isinstance(error, TraceFormatError) else str(getattr(error, "strerror", "") or error)
    return f"Waiting for {path.name}: {reason}"
