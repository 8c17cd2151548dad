"""The label of all windows: what it shows is text, never mark-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6 import QtCore, QtGui
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel, QWidget

from satview.base.safe_text import tool_tip, visible

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent


_BESIDE_PX: Final = 8


class PlainLabel(QLabel):
    r"""A label that shows `<b>` as it is written, and control characters as `\x1b`."""

    def __init__(self, text: str | QWidget | None = "", parent: QWidget | None = None) -> None:
        """Make a label.

        Args:
            text: Its first text, or its owner, as QLabel takes them.
            parent: Owner.
        """
        super().__init__(parent if isinstance(text, str) else text)
        if isinstance(text, str):
            self.setText(text)

    def setText(self, text: str) -> None:
        """Show a text."""
        # Qt takes text without these two for plain; the first enumeration of Qt takes 20 ms of the start.
        if "<" in text or "&" in text:
            self.setTextFormat(QtCore.Qt.TextFormat.PlainText)
        super().setText(visible(text))


class Notice(PlainLabel):
    """Sentences in the middle of a panel, where there is nothing else to show."""

    def __init__(self, text: str | QWidget | None = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setProperty("role", "dim")
        self.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
        self.setWordWrap(True)
        self.setMargin(_BESIDE_PX)


class CutLabel(PlainLabel):
    """A label of one line that is cut where there is no room, instead of making its window wider; the tip has all."""

    def minimumSizeHint(self) -> QSize:
        """Return the room for the ellipsis, or none for no text."""
        least = min(self.fontMetrics().averageCharWidth() * 4, self.sizeHint().width())
        return QSize(least, super().minimumSizeHint().height())

    def setText(self, text: str) -> None:
        """Show a text."""
        super().setText(text)
        self.setToolTip(tool_tip(text))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw what fits."""
        painter = QtGui.QPainter(self)
        text = self.fontMetrics().elidedText(self.text(), QtCore.Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), int(self.alignment()) | int(QtCore.Qt.TextFlag.TextSingleLine), text)
