"""A window as its commands see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMainWindow

if TYPE_CHECKING:
    from satview.gui.capture.job import CaptureJob
    from satview.gui.theme import Theme
    from satview.gui.windows.actions import CommandActions
    from satview.gui.windows.preview_page import PreviewPage
    from satview.gui.windows.shared import Shared
    from satview.gui.windows.workspace import Workspace
    from satview.gui.windows.workspace_keeper import WorkspaceKeeper
    from satview.session.commands import CommandRegistry
    from satview.session.loading.recent_files import RecentFiles
    from satview.session.session import Session
    from satview.session.settings import Settings


class CommandWindow(QMainWindow):
    """What a window offers to its commands; `MainWindow` fills it in.

    Attributes:
        settings: Of the program.
        recent: Files opened before.
        theme: Its colours.
        session: Its document.
        registry: Its commands.
        actions_by_id: The menu entries of the commands.
        capture_job: The capture that it began, if any.
        shared: What it has in common with the other windows; `settings` and `recent` are of it.
        workspace: The views of the open trace, or None.
        keeper: Keeps what shows of the open trace, or None.
        preview_page: Shows what samples of a large file contain while it is read; None before the first one.
        is_complete: It has commands: before, there may be a session alone.

    Signals:
        files_requested: Files were selected or dropped: paths.
        link_requested: A link was selected: a `TraceLink`.
        another_requested: Another window on the same trace is requested.
        window_requested: Another empty window is requested.
        live_requested: A live capture is to run in a window of its own: `CaptureRequest`, or None for the demo.
        quit_requested: All windows are to close.
    """

    files_requested = Signal(list)
    link_requested = Signal(object)
    another_requested = Signal()
    window_requested = Signal()
    live_requested = Signal(object)
    quit_requested = Signal()

    settings: Settings
    recent: RecentFiles
    theme: Theme
    session: Session
    registry: CommandRegistry
    actions_by_id: CommandActions
    capture_job: CaptureJob
    shared: Shared
    workspace: Workspace | None
    keeper: WorkspaceKeeper | None
    preview_page: PreviewPage | None
    is_complete: bool

    def complete(self) -> None:
        """Make all of the above that is not there yet, but for what only a trace brings."""
        raise NotImplementedError
