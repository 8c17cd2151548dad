"""What a window shows first of a trace, as the command line or a link requests."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Slot

from satview.base.errors import SatviewError
from satview.gui.dialogs import may_open
from satview.gui.windows.main_window import MainWindow
from satview.gui.windows.session_commands import use_session
from satview.session.session import Session, Stage
from satview.session.trace_link import TraceLink

if TYPE_CHECKING:
    from satview.gui.windows.workspace import Workspace


def look_at(views: Workspace, link: TraceLink) -> None:
    """Go to the range and event of a link.

    Raises:
        UsageError: A range says nothing, or there is no such event.
    """
    from satview.base.time_text import parse_range  # brings numpy, which no first window waits for

    axis = views.opened.trace.time_axis
    if link.event is not None:
        views.navigation.show_position(f"#{link.event}")
    if link.selected:
        views.opened.selection.set_range(parse_range(link.selected, axis))
    if link.range_text:
        views.opened.viewport.jump(parse_range(link.range_text, axis))


def show_link(window: MainWindow, link: TraceLink) -> None:
    """Let a window that shows the file of a link look as it says: session, second trace, range and event.

    Raises:
        UsageError: As `look_at`; there is no such session, or the second trace is the first.
    """
    if window.workspace is not None:
        if link.session:
            use_session(window, link.session)
        if link.beside:
            window.workspace.beside.open(Path(link.beside))
        look_at(window.workspace, link)


class FirstLooks(QObject):
    """Lets windows that are opening a trace go to the requested position, once it shows."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._waiting: dict[Session, tuple[MainWindow, TraceLink]] = {}

    def watch(self, window: MainWindow, link: TraceLink) -> None:
        """Go there as soon as the window has its trace."""
        if link.has_position:
            if window.session not in self._waiting:
                window.session.stage_changed.connect(self._on_stage)
            self._waiting[window.session] = window, link

    @Slot()
    def _on_stage(self) -> None:
        session = self.sender()
        if not isinstance(session, Session) or session not in self._waiting or session.stage is Stage.LOADING:
            return
        session.stage_changed.disconnect(self._on_stage)
        waiting = self._waiting.pop(session)
        if session.stage is Stage.READY:
            # One pass of the event loop later: by then the window has made its views.
            QTimer.singleShot(0, self, partial(self._go, *waiting))

    def _go(self, window: MainWindow, link: TraceLink) -> None:
        if window.workspace is None:
            return

        if link.beside and not may_open(window, Path(link.beside)):
            link = replace(link, beside="")
        try:
            show_link(window, link)
        except SatviewError as error:
            window.workspace.report_failure(str(error))
