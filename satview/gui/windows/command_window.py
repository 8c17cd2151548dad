"""The base class of windows that commands use, and the QActions of a window for its menus, toolbar and keys."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QKeyCombination, QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu, QToolBar, QWidget

from satview.base.safe_text import tool_tip
from satview.gui.theme import Theme, icon
from satview.session.commands import Binding, Command, CommandRegistry, KeyBindings, KeyScope, Menu, Needs, keys_file
from satview.session.loading.files import RecentFiles
from satview.session.settings import Settings
from satview.session.state_files import StateFiles
from satview.session.trace_link import ViewLinks

if TYPE_CHECKING:
    from satview.gui.capture.job import CaptureJob
    from satview.gui.theme import Theme
    from satview.gui.windows.preview_page import PreviewPage
    from satview.gui.windows.workspace import Workspace
    from satview.gui.windows.workspace_keeper import WorkspaceKeeper
    from satview.session.session import Session


# QActions for the menus, the toolbar and the keys, made from the command table.


class CommandActions(QObject):
    """Holds one QAction per command; `refresh` updates check marks and enables or disables the actions.

    Attributes:
        by_id: Action by command id.
        menus: Menus of the menu bar, once `fill_menus` has filled them.
    """

    def __init__(
        self, registry: CommandRegistry, is_met: Callable[[Needs], bool], keys: KeyBindings, window: QMainWindow
    ) -> None:
        """Make the actions; `is_met` returns whether the prerequisite of a command is met."""
        super().__init__(window)
        self._keys = keys
        keys.changed.connect(self._set_keys)
        self._is_available = is_met
        self._registry = registry
        self.by_id: dict[str, QAction] = {}
        self.menus: dict[Menu, QMenu] = {}
        self._submenus: dict[str, QMenu] = {}
        self._lane_scope: list[QAction] = []
        self._refresh_later = QTimer(self, singleShot=True)
        self._refresh_later.timeout.connect(self.refresh)
        for binding in registry:
            self._add(binding, window)
        self._set_keys()

    def fill_menus(self, menus: dict[Menu, QMenu]) -> None:
        """Add the commands to the menus of the menu bar."""
        self.menus = menus
        for entry, menu in menus.items():
            menu.setToolTipsVisible(False)
            for binding in self._registry:
                if binding.command.menu is entry:
                    if binding.command.starts_group and menu.actions():
                        menu.addSeparator()
                    self._menu_of(binding.command, menu).addAction(self.by_id[binding.command.id])
            menu.aboutToShow.connect(self.refresh)

    def _menu_of(self, command: Command, menu: QMenu) -> QMenu:
        """Return the menu or submenu of a command; create the submenu for its first command."""
        if not command.submenu:
            return menu
        if command.submenu not in self._submenus:
            self._submenus[command.submenu] = menu.addMenu(command.submenu)
        return self._submenus[command.submenu]

    def fill_toolbar(self, bar: QToolBar) -> None:
        """Add the commands that have an icon to a toolbar, with a separator between commands of different menus."""
        last: Menu | None = None
        for binding in self._registry:
            if binding.command.icon:
                if last is not None and binding.command.menu is not last:
                    bar.addSeparator()
                last = binding.command.menu
                bar.addAction(self.by_id[binding.command.id])

    def attach_lane_keys(self, widget: QWidget) -> None:
        """Let the keys of commands for the swimlanes work also while the given widget has the keyboard focus."""
        for action in self._lane_scope:
            widget.addAction(action)

    def set_theme(self, theme: Theme) -> None:
        """Draw the icons in the colours of a theme."""
        for binding in self._registry:
            if binding.command.icon:
                self.by_id[binding.command.id].setIcon(icon(binding.command.icon, theme))

    def run_key(self, key: QKeyCombination) -> None:
        """Run the command that a key belongs to; called for a key that was pressed before the commands were made."""
        sequence = QKeySequence(key)
        for action in self.by_id.values():
            if sequence in action.shortcuts() and action.isEnabled():
                action.trigger()
                return

    @Slot()
    def refresh(self) -> None:
        """Update the check marks of all actions, and enable or disable each action."""
        self._refresh_later.stop()
        is_met = {needs: self._is_available(needs) for needs in Needs}
        for binding in self._registry:
            action = self.by_id[binding.command.id]
            action.setEnabled(is_met[binding.command.needs])
            if binding.is_checked is not None:
                action.setChecked(action.isEnabled() and binding.is_checked())

    @Slot()
    def refresh_later(self) -> None:
        """Refresh in the next turn of the event loop; for signals that arrive in bursts, such as those of docks."""
        self._refresh_later.start(0)

    @Slot()
    def _set_keys(self) -> None:
        """Set the shortcuts from the current key bindings, and show them in the tool tips."""
        for binding in self._registry:
            command, action = binding.command, self.by_id[binding.command.id]
            keys = self._keys.keys_of(command)
            action.setShortcuts([sequence for key in keys for sequence in _sequences(key)])
            shown = f"  ({QKeySequence(keys[0]).toString(QKeySequence.SequenceFormat.NativeText)})" if keys else ""
            action.setToolTip(tool_tip(f"{command.plain_title.rstrip(chr(0x2026))}{shown}\n{command.help}"))

    def _add(self, binding: Binding, window: QMainWindow) -> None:
        command = binding.command
        action = QAction(command.title, self)
        action.setObjectName(command.id)
        action.setStatusTip("")
        action.setCheckable(command.is_checkable)
        action.setAutoRepeat(not command.is_held)
        if command.scope is KeyScope.LANES:
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            self._lane_scope.append(action)
        else:
            window.addAction(action)
        action.triggered.connect(binding.run)
        self.by_id[command.id] = action


def _sequences(key: str) -> list[QKeySequence]:
    """Return the Qt key sequences to bind for one key in the table of commands.

    `?` and `+` need Shift on most keyboards, and not every platform ignores that Shift when it compares keys.
    """
    return [QKeySequence(key), QKeySequence(f"Shift+{key}")] if key in ("?", "+") else [QKeySequence(key)]


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

    During start-up nearly all objects belong to modules. So `gc.freeze` excludes all objects from collection then,
    which saves a collection of 80 ms.
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
    """Base class of `MainWindow`, with the attributes and signals of a window that commands use.

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
