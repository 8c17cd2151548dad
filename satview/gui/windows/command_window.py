"""A window as its commands see it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMainWindow

from satview.session.loading.recent_files import RecentFiles
from satview.session.settings import Settings
from satview.session.state_files import StateFiles

if TYPE_CHECKING:
    from satview.gui.capture.job import CaptureJob
    from satview.gui.theme import Theme
    from satview.gui.windows.actions import CommandActions
    from satview.gui.windows.preview_page import PreviewPage
    from satview.gui.windows.workspace import Workspace
    from satview.gui.windows.workspace_keeper import WorkspaceKeeper
    from satview.session.commands import CommandRegistry, KeyBindings
    from satview.session.session import Session
    from satview.session.trace_link import ViewLinks


# What all windows of the program have in common.


class Shared:
    """One for the program.

    Attributes:
        settings: Those of the user.
        recent: Files opened last.
        files: Where what windows show of traces is stored; nowhere unless it is said.
    """

    def __init__(
        self, settings: Settings, recent: RecentFiles, files: StateFiles | None = None, *, has_users_keys: bool = False
    ) -> None:
        self.settings = settings
        self.recent = recent
        self.files = StateFiles() if files is None else files
        self._has_users_keys = has_users_keys

    @cached_property
    def keys(self) -> KeyBindings:
        """Which keys run which commands."""
        from satview.session.commands import KeyBindings, keys_file  # brings all commands: once a window shows

        return KeyBindings(keys_file() if self._has_users_keys else None)

    @cached_property
    def view_links(self) -> ViewLinks:
        """Which views show the same."""
        from satview.session.trace_link import ViewLinks  # once a window shows

        return ViewLinks()


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
