"""One window's document: nothing yet, being read, open, or failed. Knows no numpy, so that windows show at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from satview.session.jobs import IsCancelled, LatestJob, Report
from satview.session.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satview.session.open_trace import OpenTrace
    from satview.store.trace import Trace
    from satview.timeline.lane_tree import Timeline


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

    Signals:
        stage_changed: Sent after `stage` and the rest have changed.
        progress: Share read, 0 to 1.
    """

    stage_changed = Signal()
    progress = Signal(float)

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

    def open(self, path: Path) -> None:
        """Read a file in the background; whatever was open is closed."""
        self._drop()
        self.path = path
        self._set_stage(Stage.LOADING)
        self._job.start(_ReadWork(path, self._prepare))

    def cancel(self) -> None:
        """Stop reading and be empty again."""
        if self.stage is Stage.LOADING:
            self.close()

    def close(self) -> None:
        """Close the trace, or stop reading it, and be empty."""
        self._job.cancel()
        self._drop()
        self.path = None
        self._set_stage(Stage.EMPTY)

    def shut_down(self) -> None:
        """Stop everything in the background and wait for it; the window goes away."""
        self._job.close()
        self._drop()

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
        from satview.session.open_trace import OpenTrace  # brings numpy: not before the first window shows

        if result is None:
            self.close()
            return
        assert isinstance(result, _Read)
        self.opened = OpenTrace(
            result.trace, result.timeline, self._settings, self, result.events_of_thread, result.silent
        )
        self._set_stage(Stage.READY)

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        assert isinstance(error, Exception)
        self.error = error
        self._set_stage(Stage.FAILED)


@dataclass(frozen=True, slots=True)
class _Read:
    """What _ReadWork gives."""

    trace: Trace
    timeline: Timeline
    events_of_thread: NDArray[np.int64]
    silent: frozenset[int]


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
