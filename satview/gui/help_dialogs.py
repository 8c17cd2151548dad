"""Dialogs about the open trace, the keys and the plug-ins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialogButtonBox,
    QHBoxLayout,
    QHeaderView,
    QKeySequenceEdit,
    QLineEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.base.plugins import all_plugins
from satview.base.safe_text import tool_tip, visible_line
from satview.gui.widgets import Dialog, PlainLabel, line_up, resize_on_screen
from satview.session.commands import COMMANDS, Command, KeyBindings
from satview.session.events.event_text import trace_rows
from satview.store.trace import Trace

# Information about the open trace.


Rows = Iterable[tuple[str, str]]


class InfoDialog(Dialog):
    """Shows header, system page and event counts of the trace."""

    def __init__(self, trace: Trace, parent: QWidget | None = None) -> None:
        super().__init__(f"{trace.title} \N{EM DASH} information", parent)
        self.tree = QTreeWidget(self)
        self.tree.setHeaderLabels(["Name", "Value"])
        self.tree.setUniformRowHeights(True)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        for title, rows in info_sections(trace):
            top = QTreeWidgetItem(self.tree, [title])
            for name, value in rows:
                item = QTreeWidgetItem(top, [visible_line(name), visible_line(value)])
                item.setToolTip(1, tool_tip(value))
            top.setExpanded(title in ("Trace", "Events", "CPUs", "Header"))
            top.setHidden(not top.childCount())
        buttons = self.close_box()
        line_up(QVBoxLayout(self), self.tree, buttons)
        resize_on_screen(self, 640, 620)


def info_sections(trace: Trace) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the sections of the dialog: titles with rows of (name, value)."""
    system = trace.system
    return [
        ("Trace", list(trace_rows(trace))),
        (
            "Events",
            [(name, f"{count:,}") for name, count in sorted(trace.class_counts().items(), key=lambda pair: -pair[1])],
        ),
        (
            "CPUs",
            [
                (
                    f"CPU {cpu.number}",
                    "  ".join(
                        filter(
                            None, (cpu.name, f"{cpu.speed_mhz} MHz" if cpu.speed_mhz else "", " ".join(cpu.flag_names))
                        )
                    ),
                )
                for cpu in (system.cpus if system else ())
            ],
        ),
        ("Header", list(trace.header.pairs)),
        (
            "System page",
            [
                *(system.strings if system else ()),
                *((name, f"{value:,} (0x{value:x})") for name, value in (system.values.items() if system else ())),
            ],
        ),
        ("Buffers", list(_buffer_rows(trace))),
    ]


def _buffer_rows(trace: Trace) -> Rows:
    buffers = trace.buffers
    if len(buffers):
        yield "Buffers", f"{len(buffers):,}"
        yield "Lost", f"{int(buffers.lost_before.sum()):,}"


# The dialog for key bindings.


_SIZE_PX: Final = (560, 480)
_COMMAND: Final = int(Qt.ItemDataRole.UserRole)


class KeysDialog(Dialog):
    """All commands with their keys, which can be changed. Changes take effect and are stored immediately.

    Attributes:
        search: Input field; only commands that contain all its words are listed.
        tree: The commands.
        edit: Input for a key.
        message: Label that names the command which the typed key runs now.
    """

    def __init__(self, keys: KeyBindings, parent: QWidget) -> None:
        super().__init__("Change keys", parent)
        self._keys = keys
        self.search = QLineEdit(self, placeholderText="Find a command or a key")
        self.search.textChanged.connect(self._fill)
        self.tree = QTreeWidget(self)
        self.tree.setAccessibleName("Commands and keys")
        self.tree.setHeaderLabels(["Command", "Keys"])
        self.tree.setRootIsDecorated(False)
        self.tree.setUniformRowHeights(True)
        self.tree.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.currentItemChanged.connect(self._on_current)
        self.edit = QKeySequenceEdit(self)
        self.edit.setMaximumSequenceLength(1)
        self.edit.setAccessibleName("Key to set")
        self.edit.keySequenceChanged.connect(self._emit_keys)
        self.set_button, self.add_button, self.none_button, self.usual_button = (
            self.button(text, tip, run)
            for text, tip, run in (
                ("Set", "Make this the only key of the command", self._set),
                ("Add", "Add this key to the command", self._add),
                ("None", "The command has no key", self._clear),
                ("Usual", "Restore the default keys of the command", self._use_table),
            )
        )
        self.message = PlainLabel("", self, role="dim")
        self.message.setWordWrap(True)
        self._lay_out()
        keys.changed.connect(self._fill)
        self._fill()
        self.resize(min(_SIZE_PX[0], parent.width() - 40), min(_SIZE_PX[1], parent.height() - 40))

    @property
    def command(self) -> Command | None:
        """The selected command."""
        item = self.tree.currentItem()
        return None if item is None else next(row for row in COMMANDS if row.id == item.data(0, _COMMAND))

    def _lay_out(self) -> None:
        line = line_up(QHBoxLayout(), (self.edit, 1), self.set_button, self.add_button, self.none_button,
                       self.usual_button)  # fmt: skip
        buttons = self.close_box()
        all_usual = buttons.addButton("All usual keys", QDialogButtonBox.ButtonRole.ResetRole)
        all_usual.setAutoDefault(False)
        all_usual.clicked.connect(self._use_table_for_all)
        line_up(QVBoxLayout(self), self.search, (self.tree, 1), line, self.message, buttons, margins=(20, 18, 20, 16),
                spacing=10)  # fmt: skip

    @Slot()
    def _fill(self) -> None:
        selected = self.command
        words = self.search.text().casefold().split()
        self.tree.blockSignals(True)
        self.tree.clear()
        for command in COMMANDS:
            area = command.menu.value.replace("&", "")
            title = f"{area}: {command.whole_title}"
            keys = ", ".join(native(key) for key in self._keys.keys_of(command))
            if all(word in f"{title} {keys}".casefold() for word in words):
                item = QTreeWidgetItem(self.tree, [title, keys])
                item.setData(0, _COMMAND, command.id)
                item.setToolTip(0, tool_tip(command.help))
                font = item.font(1)
                font.setBold(self._keys.is_changed(command))
                item.setFont(1, font)
                if selected is command:
                    self.tree.setCurrentItem(item)
        topmost = self.tree.topLevelItem(0)
        if self.tree.currentItem() is None and topmost is not None:
            self.tree.setCurrentItem(topmost)
        self.tree.resizeColumnToContents(1)
        self.tree.blockSignals(False)
        self._emit_keys()

    @Slot()
    def _on_current(self) -> None:
        self.edit.clear()
        self._emit_keys()

    @Slot()
    def _emit_keys(self) -> None:
        """Show which command the typed key runs now, before the user assigns the key to another."""
        key, command = self._pressed(), self.command
        for button in (self.set_button, self.add_button):
            button.setEnabled(bool(key) and command is not None)
        owner = self._keys.owner_of(key) if key else None
        if owner is not None and owner is not command:
            self.message.setText(f"{native(key)} runs {owner.whole_title} now, and would not any more.")
        else:
            self.message.setText("Click the line and press a key. Bold: changed keys.")

    def _pressed(self) -> str:
        """Return the typed key in the notation of the command table."""
        return table_key(self.edit.keySequence().toString(QKeySequence.SequenceFormat.PortableText))

    @Slot()
    def _set(self) -> None:
        if self.command is not None and self._pressed():
            self._keys.set_keys(self.command, (self._pressed(),))

    @Slot()
    def _add(self) -> None:
        if self.command is not None and self._pressed():
            self._keys.set_keys(self.command, (*self._keys.keys_of(self.command), self._pressed()))

    @Slot()
    def _clear(self) -> None:
        if self.command is not None:
            self._keys.set_keys(self.command, ())

    @Slot()
    def _use_table(self) -> None:
        if self.command is not None:
            self._keys.use_table(self.command)

    @Slot()
    def _use_table_for_all(self) -> None:
        self._keys.use_table()


def native(key: str) -> str:
    """Return a key in the notation of this platform."""
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)


def table_key(text: str) -> str:
    """Return a key in the notation of the command table, such as `?` where Qt writes `Shift+?`."""
    if text in ("Shift+?", "Shift++"):
        return text.removeprefix("Shift+")
    same = (key for command in COMMANDS for key in command.keys if QKeySequence(key) == QKeySequence(text))
    return next(same, text)


# The dialog for plug-ins.


_NONE = "No plug-ins are installed. docs/plugins.md explains how to write one; examples/plugins has one of each kind."
_SOME = "These come from other installed packages. A plug-in that fails is switched off until the next start."


class PluginsDialog(Dialog):
    """The installed plug-ins with their packages, and why some are switched off."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Plug-ins", parent)
        installed = all_plugins()
        self.head = PlainLabel(self)
        self.head.setWordWrap(True)
        self.head.setText(_SOME if installed else _NONE)
        self.tree = QTreeWidget(self)
        self.tree.setAccessibleName("Plug-ins")
        self.tree.setHeaderLabels(["Kind", "Name", "Package", "State"])
        self.tree.setRootIsDecorated(False)
        for plugin in installed:
            plugin.value()  # imports it, and sets `fault` if that fails
            state = f"switched off: {plugin.fault}" if plugin.fault else "on"
            words = (plugin.kind.word, plugin.name, plugin.package, state)
            item = QTreeWidgetItem(self.tree, [visible_line(word) for word in words])
            item.setToolTip(3, tool_tip(state))
        for column, width_px in enumerate((80, 140, 200)):
            self.tree.setColumnWidth(column, width_px)
        buttons = self.close_box()
        line_up(QVBoxLayout(self), self.head, self.tree, buttons)
        self.resize(QSize(720, 320))
