"""The label of all windows: what it shows is text, never mark-up."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from satview.base.safe_text import visible


class PlainLabel(QLabel):
    r"""A label that shows `<b>` as it is written, and control characters as `\x1b`."""

    def __init__(self, text: str | QWidget | None = "", parent: QWidget | None = None) -> None:
        """Make a label.

        Args:
            text: Its first text, or its owner, as QLabel takes them.
            parent: Owner.
        """
        super().__init__(parent if isinstance(text, str) else text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        if isinstance(text, str):
            self.setText(text)

    def setText(self, text: str) -> None:
        """Show a text."""
        super().setText(visible(text))
