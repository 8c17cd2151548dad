"""Saves what a window shows as a session under a name: what of it, and with which patterns for names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QLineEdit,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.base.errors import SatviewError
from satview.base.safe_text import visible_line
from satview.gui.widgets import PlainLabel
from satview.session.put_state import PARTS, check_name, names_in, session_of
from satview.session.workspace_file import WorkspaceState

_WIDTH_PX: Final = 520
_TABLE_PX: Final = 180
_AT_FIRST: Final = frozenset({"lanes", "filter", "panels"})
Save = Callable[[str, WorkspaceState], object]


class SaveSessionDialog(QDialog):
    """The dialog of the name under which a session is saved.

    Attributes:
        name: Of the session.
        parts: Key of a part to its check box.
        table: Names with the patterns that replace them.
        error: What is wrong.
    """

    def __init__(self, state: WorkspaceState, known: tuple[str, ...], save: Save, parent: QWidget) -> None:
        """Show what can be saved.

        Args:
            state: What the window shows.
            known: Names of sessions that are there.
            save: Stores a session under a name; raises `SatviewError` if it cannot.
            parent: The window.
        """
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Save session")
        self._state, self._known, self._save = state, known, save
        self.name = QLineEdit(self)
        self.name.setPlaceholderText("Name")
        self.name.setAccessibleName("Name of the session")
        self.name.textChanged.connect(self._on_name)
        self.parts = {key: QCheckBox(title, self) for key, title in PARTS.items()}
        self.table = QTableWidget(self)
        self._fill()
        self.error = PlainLabel(self)
        self.error.setProperty("role", "error")
        self.error.setWordWrap(True)
        self.error.hide()
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel, self
        )
        self.buttons.accepted.connect(self._on_save)
        self.buttons.rejected.connect(self.close)
        self._lay_out()
        self._on_name()
        self.resize(min(_WIDTH_PX, parent.width() - 40), self.sizeHint().height())

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 18, 20, 16)
        layout.setSpacing(8)
        layout.addWidget(self.name)
        for key, box in self.parts.items():
            box.setChecked(key in _AT_FIRST)
            layout.addWidget(box)
        if self.table.rowCount():
            hint = PlainLabel("Names in other traces; * stands for any letters, as in devb-*", self)
            hint.setProperty("role", "dim")
            hint.setWordWrap(True)
            layout.addWidget(hint)
            layout.addWidget(self.table, 1)
        else:
            self.table.hide()
        layout.addWidget(self.error)
        layout.addWidget(self.buttons)

    def _fill(self) -> None:
        names = names_in(self._state)
        self.table.setColumnCount(2)
        self.table.setRowCount(len(names))
        self.table.setHorizontalHeaderLabels(["Here", "In other traces"])
        self.table.verticalHeader().hide()
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.table.setMinimumHeight(_TABLE_PX)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.AllEditTriggers)
        self.table.setAccessibleName("Names and patterns")
        for row, name in enumerate(names):
            here = QTableWidgetItem(visible_line(name))
            here.setData(Qt.ItemDataRole.UserRole, name)
            here.setFlags(Qt.ItemFlag.ItemIsEnabled)
            self.table.setItem(row, 0, here)
            self.table.setItem(row, 1, QTableWidgetItem(name))

    def _patterns(self) -> dict[str, str]:
        found = {}
        for row in range(self.table.rowCount()):
            here, there = self.table.item(row, 0), self.table.item(row, 1)
            if here is not None and there is not None and there.text().strip():
                found[str(here.data(Qt.ItemDataRole.UserRole))] = there.text().strip()
        return found

    @Slot()
    def _on_name(self) -> None:
        replaces = self.name.text().strip() in self._known
        self.buttons.button(QDialogButtonBox.StandardButton.Save).setText("Replace" if replaces else "Save")

    @Slot()
    def _on_save(self) -> None:
        parts = frozenset(key for key, box in self.parts.items() if box.isChecked())
        try:
            name = check_name(self.name.text())
            self._save(name, session_of(self._state, parts, self._patterns()))
        except SatviewError as error:
            text = str(error)
            self.error.setText(f"{text[:1].upper()}{text[1:]}.")
            self.error.show()
        else:
            self.close()
