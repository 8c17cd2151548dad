"""Small widgets, layouts and helpers that every part of the window uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from PySide6 import QtCore, QtGui
from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer
from PySide6.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QBoxLayout,
    QComboBox,
    QGridLayout,
    QLabel,
    QLayout,
    QScrollBar,
    QWidget,
)

from satview.base.safe_text import tool_tip, visible
from satview.gui.theme import restyle

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent


# The label of all windows: what it shows is text, never mark-up.


_BESIDE_PX: Final = 8


class PlainLabel(QLabel):
    r"""A label that shows `<b>` as it is written, and control characters as `\x1b`."""

    def __init__(self, text: str | QWidget | None = "", parent: QWidget | None = None, *, role: str = "") -> None:
        """Make a label.

        Args:
            text: Its first text, or its owner, as QLabel takes them.
            parent: Owner.
            role: What its colour says of it: dim, faint, title, error; empty = nothing.
        """
        super().__init__(parent if isinstance(text, str) else text)
        if isinstance(text, str):
            self.setText(text)
        if role:
            self.setProperty("role", role)

    def setText(self, text: str) -> None:
        """Show a text."""
        # Qt takes text without these two for plain; the first enumeration of Qt takes 20 ms of the start.
        if "<" in text or "&" in text:
            self.setTextFormat(QtCore.Qt.TextFormat.PlainText)
        super().setText(visible(text))


class Notice(PlainLabel):
    """Sentences in the middle of a panel, where there is nothing else to show."""

    def __init__(self, text: str | QWidget | None = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent, role="dim")
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


# Rows and columns of widgets.


_Box = TypeVar("_Box", bound=QBoxLayout)
Part = QWidget | QLayout | tuple[QWidget | QLayout, int] | int | None


def line_up(
    box: _Box, *parts: Part, margins: tuple[int, int, int, int] | None = None, spacing: int | None = None
) -> _Box:
    """Put widgets and layouts into a row or a column, and return that.

    Args:
        box: The row or column.
        parts: In their order: a widget or layout, with its stretch if it takes what is left; pixels that stay empty;
            None = empty room that takes what is left.
        margins: Pixels around all of them: left, top, right, bottom; None = those of the style.
        spacing: Pixels between them; None = those of the style.
    """
    if margins is not None:
        box.setContentsMargins(*margins)
    if spacing is not None:
        box.setSpacing(spacing)
    for part in parts:
        item, stretch = part if isinstance(part, tuple) else (part, 0)
        if isinstance(item, QWidget):
            box.addWidget(item, stretch)
        elif isinstance(item, QLayout):
            box.addLayout(item, stretch)
        elif item is None:
            box.addStretch()
        else:
            box.addSpacing(item)
    return box


# Keeps the wheel from changing fields that it only passes while a form, or what is behind it, is scrolled.


class _Quiet(QObject):
    """Passes wheel events of a field on to its parent, unless the field has the keyboard focus."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the wheel from fields without the keyboard."""
        if event.type() != QEvent.Type.Wheel or not isinstance(watched, QWidget) or watched.hasFocus():
            return False
        event.ignore()
        return True


def keep_quiet(form: QWidget) -> None:
    """Let the wheel change a field of a form only after it was clicked or reached by Tab.

    Args:
        form: The form with all its fields; fields that come later are not looked at.
    """
    quiet = _Quiet(form)
    for kind in (QComboBox, QAbstractSpinBox, QAbstractSlider):
        for field in form.findChildren(kind):
            if not isinstance(field, QScrollBar):
                field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # else the wheel itself would give it the keyboard
                field.installEventFilter(quiet)


# The line under what the user types: a hint, a result, or what is wrong.


class MessageLine(PlainLabel):
    """A label that shows texts in the colour of their role."""

    def say(self, text: str, role: str) -> None:
        """Show a text; role: dim, faint or error."""
        self.setText(text)
        restyle(self, "role", role)


# Panels in a low drawer: what is stacked otherwise goes side by side, so that nothing is squeezed.


_LOW_PX: Final = 230
_WIDE_PX: Final = 400  # below, there is no room side by side

Cell = tuple[QWidget, int, int, int]
"""A widget, its row, its column, how many rows it takes."""


def is_low(panel: QWidget) -> bool:
    """Return whether a panel has more room beside each other than one above the other."""
    return panel.height() < _LOW_PX and panel.width() >= _WIDE_PX


class LowGrid(QGridLayout):
    """The layout of a panel whose widgets are one above the other, and otherwise where it is low.

    Args:
        panel: The panel, which calls `follow` when its size changes.
        stacked: The widgets from top to bottom.
        stretched: The one of them that takes the height that is left.
        low: Where they are in a low panel.
        columns: How the columns of a low panel share its width.
        low_stretched_row: The row that takes the height that is left there.
    """

    def __init__(
        self,
        panel: QWidget,
        stacked: Sequence[QWidget],
        stretched: QWidget,
        low: Sequence[Cell],
        columns: Sequence[int],
        low_stretched_row: int,
    ) -> None:
        super().__init__(panel)
        self._panel, self._low, self._columns = panel, low, columns
        self._stacked = [(widget, row, 0, 1) for row, widget in enumerate(stacked)]
        self._stretched_rows = stacked.index(stretched), low_stretched_row
        self._is_low: bool | None = None
        self.follow()

    def follow(self) -> None:
        """Arrange the widgets for the size that the panel has."""
        low = is_low(self._panel)
        if low is self._is_low:
            return
        self._is_low = low
        cells = self._low if low else self._stacked
        for widget, *_ in cells:
            self.removeWidget(widget)
        for widget, row, column, rows in cells:
            self.addWidget(widget, row, column, rows, 1)
        for row in range(self.rowCount()):
            self.setRowStretch(row, int(row == self._stretched_rows[low]))
        for column, share in enumerate(self._columns):
            self.setColumnStretch(column, share if low else int(column == 0))


# What can wait for the next frame, so that the frame before it is not late.


FRAME_MS: Final = 16


def paint_next_frame(widget: QWidget) -> None:
    """Let a widget show what it shows for one more frame; then it is painted, whatever it missed.

    Args:
        widget: On the screen. What Qt has noted to be painted of it is left out of the frame before.
    """
    widget.setUpdatesEnabled(False)
    QTimer.singleShot(FRAME_MS, widget, lambda: widget.setUpdatesEnabled(True))


# Keeps windows and dialogs on the screen: at twice the size a full HD screen has 960 x 540 logical pixels.


_FRAME: Final = QSize(8, 36)  # what a window manager puts around a window, about


def resize_on_screen(window: QWidget, width_px: int, height_px: int) -> None:
    """Give a window that does not show yet a size, or as much of it as the screen has."""
    room = window.screen().availableGeometry().size() - _FRAME
    window.resize(QSize(width_px, height_px).boundedTo(room))
