"""The list of proposals under a line or editor: arrows move in it, Tab or Return takes one, Escape closes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPoint, QRect, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QListWidget, QListWidgetItem, QWidget

from satview.filters.expressions.complete import Completion

_ROWS: Final = 8
_WIDTH_PX: Final = 360
_LEAST_PX: Final = 180
_DATA: Final = int(Qt.ItemDataRole.UserRole)
_STEPS: Final = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: _ROWS, Qt.Key.Key_PageUp: -_ROWS}


class Proposals(QListWidget):
    """Belongs to an editor, which keeps the keyboard.

    Signals:
        taken: The proposal that was selected, a Completion.
    """

    taken = Signal(object)

    def __init__(self, editor: QWidget) -> None:
        super().__init__(editor)
        self._editor = editor
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFrameShape(QFrame.Shape.Box)
        self.setUniformItemSizes(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setObjectName("proposals")
        self.setStyleSheet(
            "#proposals { border: 1px solid palette(highlight); border-radius: 4px; padding: 2px; }"
            "#proposals::item { padding: 2px 6px; }"
        )
        self.setAccessibleName("Proposals")
        self.itemClicked.connect(self._on_clicked)
        self.hide()

    def propose(self, completions: Sequence[Completion], position: QRect) -> None:
        """Show proposals next to a position of the editor; none closes the list."""
        if not completions:
            self.hide()
            return
        self.clear()
        for completion in completions:
            item = QListWidgetItem(
                f"{completion.text}    {completion.help}" if completion.help else completion.text, self
            )
            item.setData(_DATA, completion)
        self.setCurrentRow(-1)
        self._lay_out(position)
        self.show()
        self.raise_()

    def handles(self, event: QKeyEvent) -> bool:
        """Return whether a key is for the list while it shows, before a command of the window takes it."""
        keys = (*_STEPS, Qt.Key.Key_Escape, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Tab)
        return self.isVisible() and Qt.Key(event.key()) in keys

    def on_key(self, event: QKeyEvent) -> bool:
        """Use a key of the editor; False if it is for the editor."""
        if not self.isVisible():
            return False
        key = Qt.Key(event.key())
        if key in _STEPS:
            self.setCurrentRow(min(max(self.currentRow() + _STEPS[key], 0), self.count() - 1))
            return True
        if key == Qt.Key.Key_Escape:
            self.hide()
            return True
        is_enter = key in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if key == Qt.Key.Key_Tab or (is_enter and self.currentRow() >= 0):
            self._take(self.item(max(0, self.currentRow())))
            return True
        if is_enter:
            self.hide()
        return False

    @Slot(QListWidgetItem)
    def _on_clicked(self, item: QListWidgetItem) -> None:
        self._take(item)

    def _take(self, item: QListWidgetItem | None) -> None:
        self.hide()
        if item is not None:
            self.taken.emit(item.data(_DATA))

    def _lay_out(self, position: QRect) -> None:
        home = self._editor.window()
        if self.parentWidget() is not home:
            self.setParent(home)
        self.ensurePolished()
        row_px = max(18, self.sizeHintForRow(0))
        height = row_px * min(_ROWS, self.count()) + 2 * self.frameWidth() + 8
        width = min(max(_LEAST_PX, min(_WIDTH_PX, self._editor.width())), home.width() - 8)
        below = self._editor.mapTo(home, position.bottomLeft()) + QPoint(0, 2)
        if below.y() + height > home.height() - 4:
            below.setY(max(4, self._editor.mapTo(home, position.topLeft()).y() - height - 2))
        right = self._editor.mapTo(home, self._editor.rect().topRight()).x()
        below.setX(max(4, min(below.x(), right - width)))
        self.setGeometry(below.x(), below.y(), width, height)
