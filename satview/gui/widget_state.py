"""What the user has done to a widget, so that another one made for a longer trace can take its place unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from PySide6.QtCore import QSize
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractScrollArea,
    QHeaderView,
    QLineEdit,
    QPlainTextEdit,
    QScrollBar,
    QTabWidget,
    QTextEdit,
    QTreeWidget,
    QWidget,
)

_Give = Callable[[QWidget], None]


@dataclass(frozen=True, slots=True)
class WidgetState:
    """Size, visibility, focus, texts, tabs, open branches and scroll places of a widget and of all in it.

    Attributes:
        size: Of the widget.
        is_hidden: It was hidden.
        parts: What to do with the widget of each number; the numbers count all widgets in the order of their making.
    """

    size: QSize
    is_hidden: bool
    count: int
    parts: list[tuple[int, _Give]] = field(default_factory=list)

    @classmethod
    def of(cls, widget: QWidget) -> WidgetState:
        """Return the state of a widget."""
        inner = _inner(widget)
        state = cls(widget.size(), widget.isHidden(), len(inner))
        for number, part in enumerate(inner):
            state.parts.extend((number, give) for give in _gives(part))
        for number, part in enumerate(inner):
            if part.hasFocus():
                state.parts.append((number, lambda other: other.setFocus()))
        return state

    def give(self, widget: QWidget) -> None:
        """Bring a widget of the same make into this state."""
        widget.resize(self.size)
        widget.setHidden(self.is_hidden)
        inner = _inner(widget)
        for number, give in self.parts:
            if number < len(inner):
                give(inner[number])


def _inner(widget: QWidget) -> list[QWidget]:
    return [widget, *(part for part in widget.findChildren(QWidget) if not isinstance(part, QHeaderView))]


def _gives(part: QWidget) -> list[_Give]:
    if isinstance(part, QLineEdit):
        return [_line(part)] if part.text() else []
    if isinstance(part, QPlainTextEdit):
        return [] if part.isReadOnly() else [_text(part)]
    if isinstance(part, QTabWidget):
        return [_tab(part.currentIndex())]
    gives: list[_Give] = []
    if isinstance(part, QTreeWidget):
        gives.append(_branches(part))
    if isinstance(part, QAbstractScrollArea) and not isinstance(part, QTextEdit):
        gives.append(_scroll(part))
    return gives


def _line(part: QLineEdit) -> _Give:
    text, cursor = part.text(), part.cursorPosition()

    def give(other: QWidget) -> None:
        if isinstance(other, QLineEdit) and other.text() != text:
            other.setText(text)
            other.setCursorPosition(cursor)

    return give


def _text(part: QPlainTextEdit) -> _Give:
    text, cursor = part.toPlainText(), part.textCursor().position()

    def give(other: QWidget) -> None:
        if isinstance(other, QPlainTextEdit):
            if other.toPlainText() != text:
                other.setPlainText(text)
            place = other.textCursor()
            place.setPosition(cursor)
            other.setTextCursor(place)

    return give


def _tab(index: int) -> _Give:
    def give(other: QWidget) -> None:
        if isinstance(other, QTabWidget) and index < other.count():
            other.setCurrentIndex(index)

    return give


def _branches(part: QTreeWidget) -> _Give:
    tops = [part.topLevelItem(i) for i in range(part.topLevelItemCount())]
    opened = {item.text(0): item.isExpanded() for item in tops if item is not None}

    def give(other: QWidget) -> None:
        if isinstance(other, QTreeWidget):
            for i in range(other.topLevelItemCount()):
                item = other.topLevelItem(i)
                if item is not None and item.text(0) in opened:
                    item.setExpanded(opened[item.text(0)])

    return give


def _scroll(part: QAbstractScrollArea) -> _Give:
    size = part.size()
    both = (part.verticalScrollBar(), part.horizontalScrollBar())
    bars = [(bar.value(), bar.value() >= bar.maximum()) for bar in both]

    def give(other: QWidget) -> None:
        if not isinstance(other, QAbstractScrollArea):
            return
        if isinstance(other, QAbstractItemView):
            other.resize(size)
            other.doItemsLayout()  # else the bars do not know their range yet
        ends: tuple[QScrollBar, QScrollBar] = (other.verticalScrollBar(), other.horizontalScrollBar())
        for bar, (value, was_at_end), sticks in zip(ends, bars, (True, False), strict=True):
            bar.setValue(bar.maximum() if was_at_end and sticks else value)

    return give
