"""All commands with their keys, to be changed by pressing others."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QHeaderView,
    QKeySequenceEdit,
    QLineEdit,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.base.safe_text import tool_tip
from satview.gui.plain_label import PlainLabel
from satview.session.command_table import COMMANDS
from satview.session.commands import Command
from satview.session.key_bindings import KeyBindings

_SIZE_PX: Final = (560, 480)
_COMMAND: Final = int(Qt.ItemDataRole.UserRole)


class KeysDialog(QDialog):
    """Every change takes effect and is stored at once.

    Attributes:
        search: Words of the commands that are listed.
        tree: The commands.
        edit: Takes the keys that are pressed.
        message: Whose key it is.
    """

    def __init__(self, keys: KeyBindings, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Change keys")
        self._keys = keys
        self.search = QLineEdit(self)
        self.search.setPlaceholderText("Find a command or a key")
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
            self._button(text, tip, run)
            for text, tip, run in (
                ("Set", "The command has this key and no other", self._set),
                ("Add", "The command has this key as well", self._add),
                ("None", "The command has no key", self._clear),
                ("Usual", "The command has the keys that it comes with", self._use_table),
            )
        )
        self.message = PlainLabel("", self)
        self.message.setProperty("role", "dim")
        self.message.setWordWrap(True)
        self._lay_out()
        keys.changed.connect(self._fill)
        self._fill()
        self.resize(min(_SIZE_PX[0], parent.width() - 40), min(_SIZE_PX[1], parent.height() - 40))

    @property
    def command(self) -> Command | None:
        """The command that is selected."""
        item = self.tree.currentItem()
        return None if item is None else next(row for row in COMMANDS if row.id == item.data(0, _COMMAND))

    def _lay_out(self) -> None:
        line = QHBoxLayout()
        line.addWidget(self.edit, 1)
        for button in (self.set_button, self.add_button, self.none_button, self.usual_button):
            line.addWidget(button)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        all_usual = buttons.addButton("All usual keys", QDialogButtonBox.ButtonRole.ResetRole)
        all_usual.setAutoDefault(False)
        all_usual.clicked.connect(self._use_table_for_all)
        buttons.rejected.connect(self.close)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 18, 20, 16)
        layout.setSpacing(10)
        layout.addWidget(self.search)
        layout.addWidget(self.tree, 1)
        layout.addLayout(line)
        layout.addWidget(self.message)
        layout.addWidget(buttons)

    def _button(self, text: str, tip: str, run: object) -> QPushButton:
        button = QPushButton(text, self)
        button.setToolTip(tool_tip(tip))
        button.setAutoDefault(False)  # Return is a key like others here
        button.clicked.connect(run)
        return button

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
        first = self.tree.topLevelItem(0)
        if self.tree.currentItem() is None and first is not None:
            self.tree.setCurrentItem(first)
        self.tree.resizeColumnToContents(1)
        self.tree.blockSignals(False)
        self._emit_keys()

    @Slot()
    def _on_current(self) -> None:
        self.edit.clear()
        self._emit_keys()

    @Slot()
    def _emit_keys(self) -> None:
        """Say whose key was pressed, before it is taken away."""
        key, command = self._pressed(), self.command
        for button in (self.set_button, self.add_button):
            button.setEnabled(bool(key) and command is not None)
        owner = self._keys.owner_of(key) if key else None
        if owner is not None and owner is not command:
            self.message.setText(f"{native(key)} runs {owner.whole_title} now, and would not any more.")
        else:
            self.message.setText("Click the line and press a key. Bold: not the usual keys.")

    def _pressed(self) -> str:
        """Return the key in the line as the table of commands would write it."""
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
    """Return a key as this system writes it."""
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)


def table_key(text: str) -> str:
    """Return the spelling of a key in the table of commands, which is not always Qt's own: `Shift+?` is `?` there."""
    if text in ("Shift+?", "Shift++"):
        return text.removeprefix("Shift+")
    same = (key for command in COMMANDS for key in command.keys if QKeySequence(key) == QKeySequence(text))
    return next(same, text)
