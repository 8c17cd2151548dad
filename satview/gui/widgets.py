"""Small widgets, layouts and helpers used throughout the window."""

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
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QLabel,
    QLayout,
    QPushButton,
    QScrollBar,
    QWidget,
)

from satview.base.safe_text import tool_tip, visible
from satview.gui.theme import restyle

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent


# The label used in all windows. It shows plain text, never markup.


_BESIDE_PX: Final = 8


class PlainLabel(QLabel):
    r"""A label that shows markup such as `<b>` literally, and control characters as `\x1b`."""

    def __init__(self, text: str | QWidget | None = "", parent: QWidget | None = None, *, role: str = "") -> None:
        """Create a label.

        Args:
            text: Initial text, or the parent, as for QLabel.
            parent: Parent.
            role: Style of the text: dim, faint, title, error; empty = none.
        """
        super().__init__(parent if isinstance(text, str) else text)
        if isinstance(text, str):
            self.setText(text)
        if role:
            self.setProperty("role", role)

    def setText(self, text: str) -> None:
        """Show a text."""
        # Text without these characters is plain anyway; loading Qt's enumerations takes 20 ms of start-up.
        if "<" in text or "&" in text:
            self.setTextFormat(QtCore.Qt.TextFormat.PlainText)
        super().setText(visible(text))


class Notice(PlainLabel):
    """A label with centred text for a panel that has nothing else to show."""

    def __init__(self, text: str | QWidget | None = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent, role="dim")
        self.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
        self.setWordWrap(True)
        self.setMargin(_BESIDE_PX)


class ElidedLabel(PlainLabel):
    """A one-line label that is elided instead of widening its window; the tool tip has the whole text."""

    def minimumSizeHint(self) -> QSize:
        """Return the width of an ellipsis, or 0 without text."""
        least = min(self.fontMetrics().averageCharWidth() * 4, self.sizeHint().width())
        return QSize(least, super().minimumSizeHint().height())

    def setText(self, text: str) -> None:
        """Show a text."""
        super().setText(text)
        self.setToolTip(tool_tip(text))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the elided text."""
        painter = QtGui.QPainter(self)
        text = self.fontMetrics().elidedText(self.text(), QtCore.Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), int(self.alignment()) | int(QtCore.Qt.TextFlag.TextSingleLine), text)


def flat_button(text: str, parent: QWidget, run: object, tip: str = "") -> QPushButton:
    """Return a button without a frame that calls a function."""
    button = QPushButton(text, parent)
    button.setProperty("flat", "true")
    button.setToolTip(tool_tip(tip))
    button.clicked.connect(run)
    return button


class Dialog(QDialog):
    """A dialog that is destroyed when it is closed."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)

    def button(self, text: str, tip: str, run: object) -> QPushButton:
        """Return a button that calls a function, and that Return does not press."""
        button = QPushButton(text, self)
        button.setToolTip(tool_tip(tip))
        button.setAutoDefault(False)
        button.clicked.connect(run)
        return button

    def close_box(self) -> QDialogButtonBox:
        """Return a row of buttons with the button Close."""
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        box.rejected.connect(self.close)
        return box


# Rows and columns of widgets.


_Box = TypeVar("_Box", bound=QBoxLayout)
Part = QWidget | QLayout | tuple[QWidget | QLayout, int] | int | None


def line_up(
    box: _Box, *parts: Part, margins: tuple[int, int, int, int] | None = None, spacing: int | None = None
) -> _Box:
    """Add widgets and layouts to a row or column, and return it.

    Args:
        box: The row or column.
        parts: In order: a widget or layout, or a pair of it and its stretch; an int for a gap in pixels; None for a
            stretchable gap.
        margins: Pixels around all parts: left, top, right, bottom; None = the style's margins.
        spacing: Pixels between parts; None = the style's spacing.
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


# Stops the wheel from changing the fields of a form while the form is scrolled.


class _WheelGuard(QObject):
    """Passes wheel events of a field to its parent, unless the field has the keyboard focus."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Ignore wheel events of fields without the keyboard focus."""
        if event.type() != QEvent.Type.Wheel or not isinstance(watched, QWidget) or watched.hasFocus():
            return False
        event.ignore()
        return True


def guard_from_wheel(form: QWidget) -> None:
    """Let the wheel change a field of a form only if the field has the keyboard focus.

    Args:
        form: The form; fields added later are not affected.
    """
    guard = _WheelGuard(form)
    for kind in (QComboBox, QAbstractSpinBox, QAbstractSlider):
        for field in form.findChildren(kind):
            if not isinstance(field, QScrollBar):
                field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # otherwise the wheel gives it the focus
                field.installEventFilter(guard)


# The line below an input: a hint, a result or an error.


def sentence(text: str) -> str:
    """Return a text, such as an error message, with a capital letter and a full stop."""
    return text[:1].upper() + text[1:] + ("" if not text or text.endswith((".", "!", "?")) else ".")


class MessageLine(PlainLabel):
    """A label that shows each text in the colour of its role."""

    def say(self, text: str, role: str) -> None:
        """Show a text; role: dim, faint or error."""
        self.setText(text)
        restyle(self, "role", role)


# Panels in a low drawer: widgets go side by side instead of one above the other.


_LOW_PX: Final = 230
_WIDE_PX: Final = 400  # a narrower panel has no room for widgets side by side

Cell = tuple[QWidget, int, int, int]
"""A widget, its row, its column, its row span."""


def is_low(panel: QWidget) -> bool:
    """Return whether the widgets of a panel should be side by side, because it is low and wide."""
    return panel.height() < _LOW_PX and panel.width() >= _WIDE_PX


class LowGrid(QGridLayout):
    """A layout that stacks its widgets, or arranges them in a grid while the panel is low.

    Args:
        panel: The panel, which calls `follow` when its size changes.
        stacked: The widgets from top to bottom.
        stretched: The stacked widget that takes the remaining height.
        low: Grid positions in a low panel.
        columns: Stretch of each column in a low panel.
        low_stretched_row: The row that takes the remaining height in a low panel.
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
        """Arrange the widgets for the current size of the panel."""
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


# Painting that can wait for the next frame, so that the current one is not late.


FRAME_MS: Final = 16


def paint_next_frame(widget: QWidget) -> None:
    """Delay painting a widget by one frame.

    Args:
        widget: A visible widget; its pending paint requests are served in the next frame.
    """
    widget.setUpdatesEnabled(False)
    QTimer.singleShot(FRAME_MS, widget, lambda: widget.setUpdatesEnabled(True))


# Keeps windows and dialogs on the screen: at scale 2, a full HD screen has 960 x 540 logical pixels.


_FRAME: Final = QSize(8, 36)  # approximate size of the window manager's frame


def resize_on_screen(window: QWidget, width_px: int, height_px: int) -> None:
    """Set the size of a window before it shows, limited to the size of the screen."""
    room = window.screen().availableGeometry().size() - _FRAME
    window.resize(QSize(width_px, height_px).boundedTo(room))
