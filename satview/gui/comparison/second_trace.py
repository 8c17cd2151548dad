"""Opens and closes a second trace below the lanes of the first one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import SatviewError, UsageError
from satview.gui.swimlane.area import Panes
from satview.gui.theme import Theme
from satview.session.comparison import Comparison
from satview.session.highlight import Marks
from satview.session.session import Session, Stage
from satview.session.settings import Settings
from satview.session.tasks import dismantle
from satview.session.trace_state import lanes_state, restore_lanes
from satview.session.workspace_file import ComparedState


class SecondTrace(QObject):
    """The second trace of a workspace.

    Attributes:
        comparison: The comparison of both traces.
        path: File of the second trace, which may still be loading; None = none.
        error: Why the last file could not be shown; None = no error.

    Signals:
        opened: The second trace is shown.
        failed: The second trace cannot be shown; sends a message.
        marks_left: The second trace was closed before its marks could be saved; sends the `Marks`.
    """

    opened = Signal()
    failed = Signal(str)
    marks_left = Signal(object)

    def __init__(self, comparison: Comparison, panes: Panes, settings: Settings, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self.comparison = comparison
        self.theme = theme
        self.path: Path | None = None
        self.error: SatviewError | None = None
        self._state: ComparedState | None = None
        self._panes, self._settings = panes, settings
        self._session: Session | None = None
        self._folder: TemporaryDirectory[str] | None = None
        panes.removed.connect(self._on_removed)

    @property
    def is_reading(self) -> bool:
        """True while the second trace is being read."""
        return self._session is not None and self._session.stage is Stage.LOADING

    def open(
        self, path: Path, state: ComparedState | None = None, folder: TemporaryDirectory[str] | None = None
    ) -> None:
        """Load a file and show its lanes below those of the first trace, in place of any other second trace.

        Args:
            path: The file.
            state: The saved alignment; None = align the starts.
            folder: Temporary folder of the file, removed when the trace is closed.

        Raises:
            UsageError: The file is already open as the first trace.
        """
        if path.absolute() == self.comparison.first.trace.path.absolute():
            raise UsageError("that file is open here already; View > Split view shows another part of it")
        self.close()
        self.path, self.error, self._state, self._folder = path, None, state, folder
        self._session = Session(self._settings, self)
        self._session.stage_changed.connect(self._on_stage)
        self._session.open(path)

    def unstored_marks(self) -> list[Marks]:
        """Return the marks of the second trace that could not be saved yet."""
        return [] if self._session is None else self._session.unstored_marks()

    def close(self) -> None:
        """Close the second trace, or cancel loading it."""
        self.path = None
        session, self._session = self._session, None
        if session is None:
            return
        session.stage_changed.disconnect(self._on_stage)
        self.comparison.end()
        if session.opened is not None and self._panes.shows(session.opened):
            self._panes.join()
        session.shut_down()
        for marks in session.unstored_marks():
            self.marks_left.emit(marks)
        dismantle(session)
        if self._folder is not None:
            folder, self._folder = self._folder, None
            folder.cleanup()

    def state(self) -> ComparedState | None:
        """Return the second trace and its alignment, to be saved; None if there is none, or it is temporary."""
        second = self.comparison.second
        if second is None or self.path is None or self._folder is not None:
            return None
        same = self.comparison.map
        return ComparedState(str(self.path.absolute()), same.from_cycles, same.to_cycles, self.comparison.aligned_by,
                             self.comparison.is_linked)  # fmt: skip

    @Slot()
    def _on_removed(self) -> None:
        """Close the file when its lanes are removed."""
        if self.comparison.second is not None:
            self.close()

    @Slot()
    def _on_stage(self) -> None:
        session = self._session
        if session is None or session.stage is Stage.LOADING:
            return
        if session.stage is Stage.READY and session.opened is not None:
            with suppress(UsageError):  # a malformed name pattern from a session
                restore_lanes(session.opened, lanes_state(self.comparison.first.lanes), is_same=False, is_first=True)
            self._panes.show_beside(session.opened, self.theme)
            self.comparison.begin(session.opened)
            if self._state is not None:
                state, self._state = self._state, None
                with suppress(UsageError):  # the file may have changed
                    self.comparison.align(state.first_cycles, state.second_cycles, state.aligned_by)
                self.comparison.set_linked(state.is_linked)
            self.opened.emit()
        elif session.stage is Stage.FAILED:
            error = session.error
            self.close()
            if not isinstance(error, SatviewError):
                raise error if error is not None else RuntimeError("the trace could not be read")
            self.error = error
            self.failed.emit(str(error))
