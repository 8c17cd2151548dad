"""The interface between a window and its commands, and the objects that all windows share."""

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


# Garbage collection in the GUI thread only.


_EVERY_MS: Final = 500
_START_S: Final = 1.5  # processor time that start-up takes, including opening a file of the command line


@cache
def freeze_loaded_objects() -> None:
    """Exclude all current objects from garbage collection; only the first call has an effect.

    Modules and classes live as long as the process. Without this, the first collection would visit half a million
    objects of 500 modules and block the window for 90 ms.
    """
    gc.freeze()


class GuiThreadCollector(QObject):
    """Disables automatic garbage collection for the rest of the process, and collects in the event loop instead.

    Python's thresholds apply; a first threshold of 0 means no collection. Automatic collection stays off after this
    object is destroyed: a collection while Qt destroys objects would wait for a lock that its own thread holds.

    During start-up nearly all objects belong to modules, so they are frozen instead of spending 80 ms on a collection.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        timer = QTimer(self)
        timer.timeout.connect(self.collect)
        timer.start(_EVERY_MS)

    @Slot()
    def collect(self) -> None:
        """Collect the oldest generation of objects whose count exceeds its threshold; during start-up, freeze instead.

        Called by a timer.
        """
        counts, thresholds = gc.get_count(), gc.get_threshold()
        if not thresholds[0]:
            return
        if not freeze_loaded_objects.cache_info().currsize and time.process_time() < _START_S:
            gc.freeze()
            return
        for generation in (2, 1, 0):
            if counts[generation] > thresholds[generation]:
                gc.collect(generation)
                return


# Objects shared by all windows.


class Shared:
    """Objects shared by all windows; one instance per process.

    Attributes:
        settings: The user's settings.
        recent: Recently opened files.
        files: Where the state of each trace's views is stored; by default nowhere.
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
        """Key bindings of all commands."""
        return KeyBindings(keys_file() if self._has_users_keys else None)

    @cached_property
    def view_links(self) -> ViewLinks:
        """The linked views of all windows, which follow each other."""
        return ViewLinks()


class CommandWindow(QMainWindow):
    """The attributes and signals that commands use; `MainWindow` fills them in.

    Attributes:
        settings: The settings of the program.
        recent: Recently opened files.
        theme: The theme in use.
        session: The open document.
        registry: The commands of the window.
        actions_by_id: The menu entries of the commands.
        capture_job: The running capture, if any.
        shared: Objects shared by all windows, including `settings` and `recent`.
        workspace: The views of the open trace, or None.
        keeper: Saves and restores the state of the views in `workspace`, or None.
        preview_page: Shows samples of a large file while it is read; None before the first preview.
        is_complete: True once the commands exist; before that, there may be only a session.

    Signals:
        files_requested: Paths were selected or dropped.
        link_requested: A `TraceLink` was selected.
        another_requested: Open another window on the same trace.
        window_requested: Open another empty window.
        live_requested: A live view in a new window is requested; sends a function to call with its `CaptureCommands`.
        quit_requested: Close all windows.
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
        """Make all attributes of this class that do not exist yet, except those that need an open trace."""
        raise NotImplementedError
