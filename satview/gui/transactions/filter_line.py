"""The filter of the table of transactions: who, to whom, which number; and what it leaves."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QSizePolicy, QWidget

from satview.base.safe_text import tool_tip
from satview.gui.plain_label import CutLabel

LineFilter = tuple[str, str, int | None]  # client, server or thread, number
NO_FILTER: Final[LineFilter] = ("", "", None)
_TYPING_MS: Final = 200  # after the last letter
_FIELD_PX: Final = 190
_NAME_TIP: Final = "Part of a name, a pid, or PID:TID"
_NUMBER_TIP: Final = "A number, in decimal or with 0x"


class FilterLine(QWidget):
    """Three fields and a sentence.

    Attributes:
        client, server, number: The fields; the first one is for messages only, the second is that of threads else.
        statement: What is shown, in words.
        requested: The filter, as it was last complete.

    Signals:
        changed: `requested` changed.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.requested = NO_FILTER
        self._said = ""
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.setInterval(_TYPING_MS)
        self._typing.timeout.connect(self._on_typed)
        self.client, self.server, self.number = (QLineEdit(self) for _ in range(3))
        line = QHBoxLayout(self)
        line.setContentsMargins(8, 3, 8, 3)
        line.setSpacing(6)
        for field in (self.client, self.server, self.number):
            field.setMaximumWidth(_FIELD_PX)
            field.setClearButtonEnabled(True)
            field.setToolTip(tool_tip(_NUMBER_TIP if field is self.number else _NAME_TIP))
            field.textChanged.connect(self._typing.start)
            field.returnPressed.connect(self._on_typed)
            line.addWidget(field, 1)
        self.statement = CutLabel(self)
        self.statement.setProperty("role", "dim")
        self.statement.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        line.addSpacing(6)
        line.addWidget(self.statement, 2)
        self.begin(is_of_messages=True)

    def begin(self, *, is_of_messages: bool) -> None:
        """Build the line, of messages or of latencies, without a condition."""
        for field in (self.client, self.server, self.number):
            field.clear()
        self._typing.stop()
        self.requested = NO_FILTER
        self.client.setVisible(is_of_messages)
        names = ("Client: name or pid", "Server: name or pid", "Type: 0x100") if is_of_messages else (
            "", "Thread: name or pid", "Interrupt: 0x1b")  # fmt: skip
        for field, text in zip((self.client, self.server, self.number), names, strict=True):
            field.setPlaceholderText(text)
            field.setAccessibleName(text)

    def say(self, text: str) -> None:
        """Show what the filter leaves."""
        self._said = text
        self.statement.setText(text)

    def close_down(self) -> None:
        """Wait for no more letters."""
        self._typing.stop()

    @Slot()
    def _on_typed(self) -> None:
        self._typing.stop()
        text = self.number.text().strip()
        try:
            number = None if not text else int(text, 16) if text[:2].lower() == "0x" else int(text)
        except ValueError:
            self.statement.setText("The number is to be decimal, or hexadecimal with 0x in front")
            return
        self.statement.setText(self._said)
        requested = (self.client.text(), self.server.text(), number)
        if requested != self.requested:
            self.requested = requested
            self.changed.emit()
