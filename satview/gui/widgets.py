"""Small widgets, layouts and helpers used throughout the window, and pickers that float over it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar

from PySide6 import QtCore, QtGui
from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QSize, Qt, QTimer, Slot
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPalette
from PySide6.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QBoxLayout,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFrame,
    QGridLayout,
    QLabel,
    QLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMainWindow,
    QPushButton,
    QScrollBar,
    QSplitter,
    QStatusBar,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QVBoxLayout,
    QWidget,
)

from satview.base.errors import UsageError
from satview.base.safe_text import tool_tip, visible, visible_line
from satview.gui.theme import restyle

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QShowEvent


# The label used in all windows. It shows plain text, never markup.


_BESIDE_PX: Final = 8


class PlainLabel(QLabel):
    r"""A label that shows markup such as `<b>` literally, and control characters as `\x1b`."""

    def __init__(
        self, text: str | QWidget | None = "", parent: QWidget | None = None, *, role: str = "", wraps: bool = False
    ) -> None:
        """Create a label with a text (or the parent, as for QLabel), in the style dim, faint, title or error."""
        super().__init__(parent if isinstance(text, str) else text, wordWrap=wraps)
        self.setTextFormat(QtCore.Qt.TextFormat.PlainText)
        if isinstance(text, str):
            self.setText(text)
        if role:
            self.setProperty("role", role)

    def setText(self, text: str) -> None:
        """Show a text."""
        super().setText(visible(text))


class Notice(PlainLabel):
    """A label with centred text for a panel that has nothing else to show."""

    def __init__(self, text: str | QWidget | None = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent, role="dim", wraps=True)
        self.setAlignment(QtCore.Qt.AlignmentFlag.AlignCenter)
        self.setMargin(_BESIDE_PX)


class ElidedLabel(PlainLabel):
    """A one-line label that is elided instead of widening its window; the tool tip has the whole text."""

    def minimumSizeHint(self) -> QSize:
        """Return the least size: as wide as a few letters, or as the text if that is narrower."""
        least = min(self.fontMetrics().averageCharWidth() * 4, self.sizeHint().width())
        return QSize(least, super().minimumSizeHint().height())

    def setText(self, text: str) -> None:
        """Show a text."""
        super().setText(text)
        self.setToolTip(tool_tip(text))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the elided text."""
        painter = QtGui.QPainter(self)
        area = self.contentsRect()
        text = self.fontMetrics().elidedText(self.text(), QtCore.Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, int(self.alignment()) | int(QtCore.Qt.TextFlag.TextSingleLine), text)


def push_button(
    text: str, parent: QWidget, run: object, tip: str = "", *, is_primary: bool = False, takes_return: bool = True
) -> QPushButton:
    """Return a button that calls a function, and that in dialogs the Return key triggers if `takes_return`."""
    button = QPushButton(text, parent)
    if is_primary:
        button.setProperty("primary", "true")
    if not takes_return:
        button.setAutoDefault(False)
    button.setToolTip(tool_tip(tip))
    button.clicked.connect(run)
    return button


def flat_button(text: str, parent: QWidget, run: object, tip: str = "") -> QPushButton:
    """Return a button without a frame that calls a function."""
    button = push_button(text, parent, run, tip)
    button.setProperty("flat", "true")
    return button


_Widget = TypeVar("_Widget", bound=QWidget)


def named(widget: _Widget, name: str, tip: str = "") -> _Widget:
    """Give a widget a name for screen readers and a tool tip, if any; return the widget."""
    widget.setAccessibleName(name)
    if tip:
        widget.setToolTip(tool_tip(tip))
    return widget


class Dialog(QDialog):
    """A dialog that is destroyed when it is closed."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)

    def showEvent(self, event: QShowEvent) -> None:
        """Let Tab go through the dialog in reading order."""
        tab_as_read(self)
        super().showEvent(event)

    def close_box(self) -> QDialogButtonBox:
        """Return a row of buttons with the button Close."""
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        box.rejected.connect(self.close)
        return box


def tab_as_read(root: QWidget) -> None:
    """Let Tab go through the widgets of a window or panel in the order of its layouts, not of their creation."""
    for before, after in pairwise(_laid_out(root)):
        QWidget.setTabOrder(before, after)


def _laid_out(part: QWidget | QLayout | None) -> Iterator[QWidget]:
    """Yield the widgets that take the keyboard, in the order in which the layouts place them."""
    if isinstance(part, QWidget) and part.focusPolicy() is not Qt.FocusPolicy.NoFocus:
        yield part
        return
    inner: list[QWidget | QLayout | None]
    if isinstance(part, QSplitter):
        inner = [part.widget(number) for number in range(part.count())]
    else:
        layout = part.layout() if isinstance(part, QWidget) else part
        items = map(layout.itemAt, range(layout.count())) if layout is not None else ()
        inner = [item.widget() or item.layout() for item in items if item is not None]
    for inner_part in inner:
        yield from _laid_out(inner_part)


def drop_down(parent: QWidget, name: str, titles: Mapping[Any, str] | Iterable[str]) -> QComboBox:
    """Return a combo box with a name for screen readers, and an item for each title, with data from a mapping."""
    box = named(QComboBox(parent), name)
    for data, title in titles.items() if isinstance(titles, Mapping) else ((None, title) for title in titles):
        box.addItem(title, data)
    return box


def list_tree(parent: QWidget, name: str, heads: Sequence[str], *, is_flat: bool = True) -> QTreeWidget:
    """Return a tree of rows of equal heights with a name for screen readers, without branches if it `is_flat`."""
    tree = named(QTreeWidget(parent), name)
    tree.setHeaderLabels(heads)
    tree.setRootIsDecorated(not is_flat)
    tree.setUniformRowHeights(True)
    return tree


# Rows and columns of widgets.


_Box = TypeVar("_Box", bound=QBoxLayout)
Part = QWidget | QLayout | tuple[QWidget | QLayout, int] | int | None


def line_up(
    box: _Box, *parts: Part, margins: tuple[int, int, int, int] | None = None, spacing: int | None = None
) -> _Box:
    """Add widgets and layouts to a row or column; return this row or column.

    Each part is a widget, a layout, a pair of a widget or layout and its stretch factor, an int for a gap in pixels, or
    None for a stretchable gap. Margins (left, top, right, bottom) and spacing are in pixels; None = those of the style.
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
    """Let the wheel change a present field of a form only if the field has the keyboard focus."""
    guard = _WheelGuard(form)
    for kind in (QComboBox, QAbstractSpinBox, QAbstractSlider):
        for field in form.findChildren(kind):
            if not isinstance(field, QScrollBar):
                field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # otherwise the wheel gives it the focus
                field.installEventFilter(guard)


class SecondsBox(QDoubleSpinBox):
    """Box for a length of time in seconds; a comma is read as a decimal point, whatever the system's language is.

    Qt takes one of the two characters for a separator of thousands and ignores it, so that 2.5 or 2,5 would be 25.
    """

    def __init__(self, parent: QWidget, least_s: float, most_s: float, decimals: int) -> None:
        super().__init__(parent)
        self.setLocale(QtCore.QLocale.c())
        self.setDecimals(decimals)
        self.setRange(least_s, most_s)
        self.setSuffix(" s")
        self.lineEdit().setTextMargins(4, 0, 0, 0)  # the style sheet's padding does not apply to the text

    def validate(self, text: str, position: int) -> tuple[QtGui.QValidator.State, str, int]:
        """Return what Qt says of a text with points for commas: whether it is valid, the text, and the position."""
        typed = text if text == self.specialValueText() else text.replace(",", ".")
        return super().validate(typed, position)


# The line below an input: a hint, a result or an error.


_BEGINS_WITH_WORD: Final = re.compile(r"[a-z][a-z'-]*[,;.!?]?(?!\S)")


def capitalized(text: str) -> str:
    """Return a text, such as an error message, with a capital letter, unless it begins with a name like `boot.kev`.

    A name is recognized by what no word has: a digit, a capital letter, a sign such as a dot, or a colon at its end.
    """
    return text[:1].upper() + text[1:] if _BEGINS_WITH_WORD.match(text) else text


def sentence(text: str) -> str:
    """Return a text, such as an error message, with a capital letter and a full stop."""
    return capitalized(text) + ("" if not text or text.endswith((".", "!", "?")) else ".")


def withdraw(bar: QStatusBar, text: str) -> None:
    """Remove a message that is no longer true from a status bar; if another message is shown, it stays."""
    if bar.currentMessage() == text:
        bar.clearMessage()


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
    """Return whether a panel is so low and wide that its widgets should be side by side."""
    return panel.height() < _LOW_PX and panel.width() >= _WIDE_PX


class LowGrid(QGridLayout):
    """A layout that stacks its widgets, or arranges them in a grid while the panel is low.

    Args:
        panel: The panel, which calls `follow` when its size changes.
        stacked: The widgets from top to bottom.
        stretched: The stacked widget that takes the remaining height.
        low: Grid positions of the widgets in a low panel.
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
    """Delay the pending paint requests of a visible widget by one frame."""
    widget.setUpdatesEnabled(False)
    QTimer.singleShot(FRAME_MS, widget, lambda: widget.setUpdatesEnabled(True))


# Keeps windows and dialogs on the screen: at scale 2, a full HD screen has 960 x 540 logical pixels.


_FRAME: Final = QSize(8, 36)  # approximate size of the window manager's frame


def resize_on_screen(window: QWidget, width_px: int, height_px: int) -> None:
    """Set the size of a window before it shows, limited to the size of the screen."""
    room = window.screen().availableGeometry().size() - _FRAME
    window.resize(QSize(width_px, height_px).boundedTo(room))


# Pickers that float over the window: a searchable list of commands or lanes, and a prompt for one line.


_ROWS_MAX: Final = 200
_WIDTH_PX: Final = 520
_HEIGHT_PX: Final = 380
_LEAST_PX: Final = 60  # height of the text shown if nothing matches
_BESIDE_ENTRY_PX: Final = 3  # margin above and below the text of a row
_NOTE_PX: Final = 10  # margin beside a note
_FOCUS_RETURNS: Final = (Qt.FocusReason.PopupFocusReason, Qt.FocusReason.ActiveWindowFocusReason)
_OPTION: Final = int(Qt.ItemDataRole.UserRole)


@dataclass(frozen=True, slots=True)
class Option:
    """One entry of a `QuickPick`.

    Attributes:
        text: Text to show and search.
        note: Text at the right, such as keys or numbers.
        run: Called when the entry is selected.
    """

    text: str
    note: str
    run: Callable[[], None]


class _Floating(QFrame):
    """An input field in a frame over the window, which closes on Escape and when another field gets the focus.

    The frame stays open while a menu (such as that of the field) or another window has the focus.
    """

    def __init__(self, placeholder: str, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("role", "floating")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.line = QLineEdit(text, self, placeholderText=placeholder)
        self.line.installEventFilter(self)

    def _show_over(self, parent: QWidget, height_px: int) -> None:
        self.resize(min(_WIDTH_PX, parent.width() - 40), height_px)
        self.move((parent.width() - self.width()) // 2, 48)
        self.show()
        self.raise_()
        self.line.setFocus()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Handle keys of the input field, and keep Escape from running a command of the window."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            is_escape = event.key() == Qt.Key.Key_Escape
            if is_escape:
                event.accept()
            return is_escape
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return self._on_key(Qt.Key(event.key()))
        if isinstance(event, QFocusEvent) and event.lostFocus() and event.reason() not in _FOCUS_RETURNS:
            self._leave()
        return False

    def _leave(self) -> None:
        """Close, because another field got the focus."""
        self.close()

    def _on_key(self, key: Qt.Key) -> bool:
        """Handle a key of the input field; return False if the field must handle it."""
        if key == Qt.Key.Key_Escape:
            self.close()
        return key == Qt.Key.Key_Escape


class QuickPick(_Floating):
    """A searchable list over the window, which also closes on selection."""

    def __init__(self, options: list[Option], placeholder: str, nothing: str, parent: QWidget) -> None:
        """Show all options, with a hint in the empty input field, and a text if nothing matches."""
        super().__init__(placeholder, "", parent)
        self.setAutoFillBackground(True)
        self._options = options
        self.list = QListWidget(self)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setUniformItemSizes(True)
        self.list.setItemDelegate(_Rows(self.list))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.nothing = Notice(nothing, self)
        layout = line_up(QVBoxLayout(self), self.line, (self.list, 1), (self.nothing, 1), margins=(10, 10, 10, 10))
        self.line.textChanged.connect(self._fill)
        self.list.itemClicked.connect(self._run)
        self._fill("")
        rows_px = max(self.list.sizeHintForRow(0), 0) * len(options) + 2 * self.list.frameWidth()
        needed_px = self.line.sizeHint().height() + layout.spacing() + max(rows_px, _LEAST_PX) + 20
        self._show_over(parent, min(needed_px, _HEIGHT_PX, parent.height() - 60))

    def _on_key(self, key: Qt.Key) -> bool:
        steps = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 10, Qt.Key.Key_PageUp: -10}
        if key in steps:
            self.list.setCurrentRow(min(max(self.list.currentRow() + steps[key], 0), self.list.count() - 1))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            item = self.list.currentItem()
            if item is not None:
                self._run(item)
        else:
            return super()._on_key(key)
        return True

    @Slot(str)
    def _fill(self, text: str) -> None:
        self.list.clear()
        scored = [(score(option.text, text), i) for i, option in enumerate(self._options)]
        for points, i in sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:_ROWS_MAX]:
            if points <= 0:
                break
            self._add(self._options[i])
        self.list.setVisible(self.list.count() > 0)
        self.nothing.setVisible(self.list.count() == 0)
        if self.list.count():
            self.list.setCurrentRow(0)

    def _add(self, entry: Option) -> None:
        item = QListWidgetItem(visible_line(entry.text), self.list)
        item.setData(_OPTION, entry)

    @Slot(QListWidgetItem)
    def _run(self, item: QListWidgetItem) -> None:
        option = item.data(_OPTION)
        self.close()
        option.run()


class _Rows(QStyledItemDelegate):
    """Draws entries with their notes at the right; a widget per entry would block the window for 0.1 s."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Return the size of a row."""
        size = super().sizeHint(option, index)
        return QSize(size.width(), max(size.height(), option.fontMetrics.height() + 2 * _BESIDE_ENTRY_PX))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw a row."""
        note, rows = visible_line(index.data(_OPTION).note), QStyleOptionViewItem(option)
        self.initStyleOption(rows, index)
        text, rows.text = rows.text, ""
        option.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, rows, painter, option.widget)
        room, middle = option.rect.adjusted(_NOTE_PX, 0, -_NOTE_PX, 0), Qt.AlignmentFlag.AlignVCenter
        text_px = room.width() - option.fontMetrics.horizontalAdvance(note) - 2 * _NOTE_PX
        painter.save()
        painter.setPen(option.palette.color(QPalette.ColorRole.Text))
        painter.drawText(room, middle, option.fontMetrics.elidedText(text, Qt.TextElideMode.ElideMiddle, text_px))
        painter.setPen(option.palette.color(QPalette.ColorRole.PlaceholderText))
        painter.drawText(room, Qt.AlignmentFlag.AlignRight | middle, note)
        painter.restore()


def score(text: str, requested: str) -> int:
    """Return how well a text matches the input: 0 = not at all; highest if it contains the input as a whole."""
    text, requested = text.casefold(), requested.casefold().strip()
    if not requested:
        return 1
    position = text.find(requested)
    if position >= 0:
        return (
            1000
            - min(position, 400)
            - min(len(text), 400)
            + (300 if position == 0 or not text[position - 1].isalnum() else 0)
        )
    words = requested.split()
    if len(words) > 1 and all(word in text for word in words):
        return 200
    letter_position = -1
    for letter in requested:
        letter_position = text.find(letter, letter_position + 1)
        if letter_position < 0:
            return 0
    return max(1, 100 - len(text))


class LinePrompt(_Floating):
    """A prompt for one line over the window; errors show below the line.

    If another field gets the focus, the prompt closes, and the next prompt with the same title and initial text
    offers the typed text again. After Escape, the text is lost.
    """

    def __init__(
        self, title: str, placeholder: str, accept: Callable[[str], None], parent: QWidget, text: str = ""
    ) -> None:
        kept = f"typed into {title}, from {text}"  # a property of the window
        super().__init__(placeholder, parent.property(kept) or text, parent)
        self._over, self._kept, self._title, self._proposed = parent, kept, title, text
        self._is_over = False  # accepted or given up
        parent.setProperty(kept, None)
        self._accept = accept
        self.error = PlainLabel(self, role="error", wraps=True)
        self.error.hide()
        line_up(QVBoxLayout(self), PlainLabel(title, self), self.line, self.error, margins=(14, 12, 14, 12))
        self._show_over(parent, self.sizeHint().height())
        if self.line.text() != text:
            self.line.selectAll()  # typing replaces the text

    def _on_key(self, key: Qt.Key) -> bool:
        if key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            return True  # there is no other field here
        if key not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._is_over |= key == Qt.Key.Key_Escape
            return super()._on_key(key)
        self._check()
        return True

    def _leave(self) -> None:
        typed, window = self.line.text(), self._over
        if not self._is_over and typed.strip() and typed != self._proposed:
            window.setProperty(self._kept, typed)
            if isinstance(window, QMainWindow):
                window.statusBar().showMessage(f"{self._title}: not entered, and offered again the next time", 15_000)
        super()._leave()

    def _check(self) -> None:
        self._is_over = True  # the action may give the focus to another field
        try:
            self._accept(self.line.text())
        except UsageError as error:
            self._is_over = False
            self.error.setText(sentence(str(error)))
            self.error.show()
            self.adjustSize()
        else:
            self.close()
