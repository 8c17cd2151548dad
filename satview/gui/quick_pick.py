"""Pickers that float over the window: a searchable list of commands or lanes, and a prompt for one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QSize, Qt, Slot
from PySide6.QtGui import QKeyEvent, QPainter, QPalette
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from satview.base.errors import UsageError
from satview.base.safe_text import visible_line
from satview.gui.widgets import Notice, PlainLabel, line_up, sentence

_ROWS_MAX: Final = 200
_WIDTH_PX: Final = 520
_HEIGHT_PX: Final = 380
_LEAST_PX: Final = 60  # height of the text shown if nothing matches
_BESIDE_PX: Final = 3  # margin above and below the text of a row
_NOTE_PX: Final = 10  # margin beside a note
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
    """An input field in a frame over the window; the frame closes on Escape, and when the field loses the focus."""

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
        """Handle keys of the input field; Escape before a command of the window handles it."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            is_escape = event.key() == Qt.Key.Key_Escape
            if is_escape:
                event.accept()
            return is_escape
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return self._on_key(Qt.Key(event.key()))
        if event.type() == QEvent.Type.FocusOut:
            self.close()
        return False

    def _on_key(self, key: Qt.Key) -> bool:
        """Handle a key of the input field; return False if the field must handle it."""
        if key == Qt.Key.Key_Escape:
            self.close()
        return key == Qt.Key.Key_Escape


class QuickPick(_Floating):
    """A searchable list over the window, which also closes on selection."""

    def __init__(self, options: list[Option], placeholder: str, nothing: str, parent: QWidget) -> None:
        """Show all options.

        Args:
            options: Entries to select from.
            placeholder: Hint in the empty input field.
            nothing: Text shown when no entry matches.
            parent: The window below.
        """
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
        return QSize(size.width(), max(size.height(), option.fontMetrics.height() + 2 * _BESIDE_PX))

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
    """Return how well a text matches the input: 0 = not at all; the input as a whole counts more than its letters."""
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
    """A prompt for one line over the window; errors show below the line."""

    def __init__(
        self, title: str, placeholder: str, accept: Callable[[str], None], parent: QWidget, text: str = ""
    ) -> None:
        super().__init__(placeholder, text, parent)
        self._accept = accept
        self.error = PlainLabel(self, role="error")
        self.error.setWordWrap(True)
        self.error.hide()
        line_up(QVBoxLayout(self), PlainLabel(title, self), self.line, self.error, margins=(14, 12, 14, 12))
        self._show_over(parent, self.sizeHint().height())

    def _on_key(self, key: Qt.Key) -> bool:
        if key not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            return super()._on_key(key)
        self._check()
        return True

    def _check(self) -> None:
        try:
            self._accept(self.line.text())
        except UsageError as error:
            self.error.setText(sentence(str(error)))
            self.error.show()
            self.adjustSize()
        else:
            self.close()
