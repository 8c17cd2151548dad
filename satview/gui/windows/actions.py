"""QActions for the menus, the toolbar and the keys, made from the command table."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QKeyCombination, QObject, Qt, QTimer, Slot
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu, QToolBar, QWidget

from satview.base.safe_text import tool_tip
from satview.gui.theme import Theme, icon
from satview.session.commands import Binding, Command, CommandRegistry, KeyBindings, KeyScope, Menu, Needs


class CommandActions(QObject):
    """One QAction per command; `refresh` updates their check marks and whether they are enabled.

    Attributes:
        by_id: Action by command id.
        menus: Menus of the menu bar, once `fill_menus` has filled them.
    """

    def __init__(
        self, registry: CommandRegistry, is_met: Callable[[Needs], bool], keys: KeyBindings, window: QMainWindow
    ) -> None:
        """Make the actions.

        Args:
            registry: The commands with the functions that they run.
            is_met: Returns whether the prerequisite of a command is met.
            keys: Key bindings.
            window: Window in which the keys work.
        """
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
        """Add the commands with an icon to a toolbar, with a separator between those of different menus."""
        last: Menu | None = None
        for binding in self._registry:
            if binding.command.icon:
                if last is not None and binding.command.menu is not last:
                    bar.addSeparator()
                last = binding.command.menu
                bar.addAction(self.by_id[binding.command.id])

    def attach_lane_keys(self, widget: QWidget) -> None:
        """Let the keys of commands for the swimlanes work while a widget has the keyboard focus too."""
        for action in self._lane_scope:
            widget.addAction(action)

    def set_theme(self, theme: Theme) -> None:
        """Draw the icons in the colours of a theme."""
        for binding in self._registry:
            if binding.command.icon:
                self.by_id[binding.command.id].setIcon(icon(binding.command.icon, theme))

    def run_key(self, key: QKeyCombination) -> None:
        """Run the command of a key; for a key that was pressed before the commands were made."""
        sequence = QKeySequence(key)
        for action in self.by_id.values():
            if sequence in action.shortcuts() and action.isEnabled():
                action.trigger()
                return

    @Slot()
    def refresh(self) -> None:
        """Update the check marks of actions, and whether they are enabled."""
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
