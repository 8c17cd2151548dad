"""Applies a saved session or a link to a window: session commands, and the first view of a newly opened trace."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Slot

from satview.base.errors import SatviewError
from satview.base.time import parse_range
from satview.gui import dialogs
from satview.gui.settings_dialog import SaveSessionDialog
from satview.gui.widgets import Option, QuickPick
from satview.gui.windows.workspace_keeper import restore_session, workspace_state
from satview.session.commands import CommandRegistry
from satview.session.session import Session, Stage
from satview.session.state_files import SUFFIX
from satview.session.trace_link import TraceLink

if TYPE_CHECKING:
    from satview.gui.windows.command_window import CommandWindow
    from satview.gui.windows.workspace import Workspace


_PATTERN = f"Sessions (*{SUFFIX})"


class SessionCommands:
    """Commands that save, apply and remove sessions."""

    def __init__(self, window: CommandWindow) -> None:
        self._window = window

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all commands of this class."""
        registry.bind("file.save_session", self._save)
        registry.bind("file.use_session", self._choose)
        registry.bind("file.remove_session", self._choose_to_remove)

    def _save(self) -> None:
        window = self._window
        files = window.shared.files
        if window.workspace is not None:
            SaveSessionDialog(workspace_state(window.workspace), files.names(), files.save, window).show()

    def _choose(self) -> None:
        options = [Option(name, "session", partial(self._use, name)) for name in self._window.shared.files.names()]
        options.append(Option("From a file\N{HORIZONTAL ELLIPSIS}", "", self._use_file))
        QuickPick(options, "Session", "No session has that name", self._window)

    def _choose_to_remove(self) -> None:
        options = [Option(name, "session", partial(self._remove, name)) for name in self._window.shared.files.names()]
        QuickPick(options, "Session to remove", "No session has that name", self._window)

    def _use(self, name: str) -> None:
        views = self._window.workspace
        try:
            use_session(self._window, name)
        except SatviewError as error:
            if views is not None:
                views.report_failure(str(error))
        else:
            if views is not None:
                views.report(
                    f"Session {Path(name).stem if name.endswith(SUFFIX) else name}; undo restores lanes and filter"
                )

    def _use_file(self) -> None:
        path = dialogs.ask_file(self._window, "Use session", _PATTERN)
        if path is not None:
            self._use(str(path))

    def _remove(self, name: str) -> None:
        views = self._window.workspace
        try:
            self._window.shared.files.remove(name)
        except SatviewError as error:
            if views is not None:
                views.report_failure(str(error))


def use_session(window: CommandWindow, name: str) -> None:
    """Apply a saved session, named by itself or its file, to the open trace of a window.

    Raises:
        UsageError: The session does not exist or cannot be used.
    """
    if window.workspace is not None:
        restore_session(window.workspace, window.shared.files.load(name))


# The first view of a trace, as the command line or a link requests.


def look_at(views: Workspace, link: TraceLink) -> None:
    """Go to the visible range, event and selected range that a link names.

    Raises:
        UsageError: A range is malformed, or there is no such event.
    """
    axis = views.opened.trace.time_axis
    if link.event is not None:
        views.navigation.show_position(f"#{link.event}")
    if link.selected:
        views.opened.selection.set_range(parse_range(link.selected, axis))
    if link.range_text:
        views.opened.viewport.jump(parse_range(link.range_text, axis))


def show_link(window: CommandWindow, link: TraceLink) -> None:
    """Apply a link to a window that shows its file: session, second trace, range and event.

    Raises:
        UsageError: As for `look_at`; or the session does not exist, or the second trace is the first.
    """
    if window.workspace is not None:
        if link.session:
            use_session(window, link.session)
        if link.beside:
            window.workspace.second_trace.open(Path(link.beside))
        look_at(window.workspace, link)


class PendingLinks(QObject):
    """Applies links to windows once they show their traces."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._pending: dict[Session, tuple[CommandWindow, TraceLink]] = {}

    def watch(self, window: CommandWindow, link: TraceLink) -> None:
        """Apply a link as soon as the window shows the trace of the link."""
        if link.has_position:
            if window.session not in self._pending:
                window.session.stage_changed.connect(self._on_stage)
            self._pending[window.session] = window, link

    @Slot()
    def _on_stage(self) -> None:
        session = self.sender()
        if not isinstance(session, Session) or session not in self._pending or session.stage is Stage.LOADING:
            return
        session.stage_changed.disconnect(self._on_stage)
        waiting = self._pending.pop(session)
        if session.stage is Stage.READY:
            # One turn of the event loop later, when the window has created its views.
            QTimer.singleShot(0, self, partial(self._go, *waiting))

    def _go(self, window: CommandWindow, link: TraceLink) -> None:
        if window.workspace is None:
            return
        if link.beside and not dialogs.may_open(window, Path(link.beside)):
            link = replace(link, beside="")
        try:
            show_link(window, link)
        except SatviewError as error:
            window.workspace.report_failure(str(error))
