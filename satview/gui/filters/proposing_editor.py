"""An editor of several lines that proposes what fits at the cursor."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, Qt, Slot
from PySide6.QtGui import QFocusEvent, QKeyEvent, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from satview.filters.expressions.complete import Completion
from satview.gui.filters.proposals import Proposals


class ProposingEditor(QPlainTextEdit):
    """Proposes while somebody types, and at Ctrl+Space; what it proposes a subclass says.

    Attributes:
        proposals: The list.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.proposals = Proposals(self)
        self.proposals.taken.connect(self._on_taken)

    def completions(self) -> tuple[list[Completion], int]:
        """Return what fits at the cursor, and the position in the document from which its positions count."""
        raise NotImplementedError

    def left_px(self) -> int:
        """Return the width of what is left of the text."""
        return 0

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Let the proposals have the key first."""
        if self.proposals.on_key(event):
            return
        is_request = event.key() == Qt.Key.Key_Space and bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if not is_request:
            super().keyPressEvent(event)
        if is_request or (event.text().strip() and event.text().isprintable()):
            found, _ = self.completions()
            index = self.cursorRect()
            cursor_box = QRect(index.left() + self.left_px(), index.top(), 1, index.height() + 2)
            self.proposals.propose(found, cursor_box)
        else:
            self.proposals.hide()

    def event(self, event: QEvent) -> bool:
        """Keep the keys of the proposals while they show."""
        is_mine = isinstance(event, QKeyEvent) and self.proposals.handles(event)
        if is_mine and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if is_mine and event.type() == QEvent.Type.KeyPress:  # else Tab would leave the editor
            assert isinstance(event, QKeyEvent)
            self.keyPressEvent(event)
            return True
        return super().event(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Close the proposals with the keyboard gone."""
        self.proposals.hide()
        super().focusOutEvent(event)

    @Slot(object)
    def _on_taken(self, completion: object) -> None:
        assert isinstance(completion, Completion)
        cursor = self.textCursor()
        base = self.completions()[1]
        cursor.setPosition(base + completion.start)
        cursor.setPosition(base + completion.end, QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(completion.text)
        self.setTextCursor(cursor)
