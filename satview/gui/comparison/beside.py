"""Opens a second trace below the lanes of the first one, and closes it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import UsageError
from satview.gui.pane import Panes
from satview.gui.theme import Theme
from satview.session.comparison.comparison import Comparison
from satview.session.dismantle import dismantle
from satview.session.session import Session, Stage
from satview.session.settings import Settings


class Beside(QObject):
    """The second trace of a workspace, from the file to its lanes.

    Attributes:
        comparison: What knows both.
        path: The file that is beside, or is being read; None = none.

    Signals:
        opened: The second trace shows.
        failed: It cannot be shown, as a sentence.
    """

    opened = Signal()
    failed = Signal(str)

    def __init__(self, comparison: Comparison, panes: Panes, settings: Settings, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self.comparison = comparison
        self.theme = theme
        self.path: Path | None = None
        self._panes, self._settings = panes, settings
        self._session: Session | None = None
        panes.removed.connect(self._on_removed)

    def open(self, path: Path) -> None:
        """Read a file, and show it below once that is done; what was there goes.

        Raises:
            UsageError: It is the file that is open.
        """
        if path.absolute() == self.comparison.first.trace.path.absolute():
            raise UsageError("that file is open here already; View > Split view shows another part of it")
        self.close()
        self.path = path
        self._session = Session(self._settings, self)
        self._session.stage_changed.connect(self._on_stage)
        self._session.open(path)

    def close(self) -> None:
        """Take the second trace away, or stop reading it."""
        self.path = None
        session, self._session = self._session, None
        if session is None:
            return
        session.stage_changed.disconnect(self._on_stage)
        self.comparison.end()
        if session.opened is not None and self._panes.shows(session.opened):
            self._panes.join()
        session.shut_down()
        dismantle(session)

    @Slot()
    def _on_removed(self) -> None:
        """Close the file when its lanes are taken away."""
        if self._session is not None and self._session.opened is not None:
            self.close()

    @Slot()
    def _on_stage(self) -> None:
        session = self._session
        if session is None or session.stage is Stage.LOADING:
            return
        if session.stage is Stage.READY and session.opened is not None:
            self._panes.show_beside(session.opened, self.theme)
            self.comparison.begin(session.opened)
            self.opened.emit()
        elif session.stage is Stage.FAILED:
            error = session.error
            self.close()
            self.failed.emit(str(error))
