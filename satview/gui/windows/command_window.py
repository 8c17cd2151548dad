"""A window as its commands see it."""

from __future__ import annotations

import gc
import time
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QMainWindow

from satview.session.commands import CommandRegistry, KeyBindings, keys_file
from satview.session.loading.recent_files import RecentFiles
from satview.session.settings import Settings
from satview.session.state_files import StateFiles
from satview.session.trace_link import ViewLinks

if TYPE_CHECKING:
    from satview.gui.capture.job import CaptureJob
    from satview.gui.theme import Theme
    from satview.gui.windows.actions import CommandActions
    from satview.gui.windows.preview_page import PreviewPage
    from satview.gui.windows.workspace import Workspace
    from satview.gui.windows.workspace_keeper import WorkspaceKeeper
    from satview.session.session import Session


# Runs Python's garbage collector in the GUI thread only.


_EVERY_MS: Final = 500
_START_S: Final = 1.5  # of processor time, that starting takes, a file of the command line included


@cache
def set_apart() -> None:
    """Take what modules have made out of collections, once: they stay as long as the process.

    Half a million objects of 500 modules made the first collection of all of them hold the window for 90 ms.
    """
    gc.freeze()


class GuiThreadCollector(QObject):
    """Switches automatic collection off for the rest of the process, and collects from the event loop instead.

    The thresholds are those of Python; a first one of 0 means no collection. It is not switched on again when the
    collector goes: a collection in the middle of Qt's destruction of objects would wait for a lock of its own thread.

    While the program starts there is nothing but modules to look at, for 80 ms in which no file is decoded either: they
    are set apart instead.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        timer = QTimer(self)
        timer.timeout.connect(self.collect)
        timer.start(_EVERY_MS)

    @Slot()
    def collect(self) -> None:
        """Collect the oldest generation that has reached its threshold."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        if not thresholds[0]:
            return
        if not set_apart.cache_info().currsize and time.process_time() < _START_S:
            gc.freeze()
            return
        for generation in (2, 1, 0):
            if counts[generation] > thresholds[generation]:
                gc.collect(generation)
                return


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
        return KeyBindings(keys_file() if self._has_users_keys else None)

    @cached_property
    def view_links(self) -> ViewLinks:
        """Which views show the same."""
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
        live_requested: A live view is to begin in a window of its own: a function of that window's `CaptureCommands`
            that begins it.
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
