"""Input fields for conditions and queries, with completion and marked faults; and the find bar under the swimlanes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPen, QPolygonF, QTextCursor
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QWidget,
)

from satview.base.safe_text import counted, menu_text
from satview.filters.diagnostics import Diagnostic
from satview.filters.expressions.expression import Expression, validate
from satview.filters.expressions.syntax import Completion, completions, looks_like_condition
from satview.filters.rules.capturing import check_condition
from satview.gui.theme import Theme, colour
from satview.gui.widgets import PlainLabel, capitalized, flat_button, line_up, push_button
from satview.session.commands import BACK, ON
from satview.session.filter_stack import suggested
from satview.session.open_trace import OpenTrace
from satview.store.arguments import taught
from satview.store.trace import Trace

# Input fields for conditions and queries, with completion and marked faults.


# The list of completions: arrows move in it, Tab or Return takes one, Escape closes it.


_ROWS: Final = 8
_WIDTH_PX: Final = 360
_LEAST_PX: Final = 180
_DATA: Final = int(Qt.ItemDataRole.UserRole)
_STEPS: Final = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: _ROWS, Qt.Key.Key_PageUp: -_ROWS}


class Proposals(QListWidget):
    """A list of completions below an editor, which keeps the keyboard focus.

    Signals:
        taken: A completion was selected; sends the `Completion`.
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
        self.itemClicked.connect(self._take)
        self.hide()

    def propose(self, completions: Sequence[Completion], position: QRect) -> None:
        """Show completions next to a position of the editor; if there are none, close the list."""
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
        """Return whether the list is open and handles a key, which then must not run a command of the window."""
        keys = (*_STEPS, Qt.Key.Key_Escape, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Tab)
        return self.isVisible() and Qt.Key(event.key()) in keys

    def on_key(self, event: QKeyEvent) -> bool:
        """Handle a key that was pressed in the editor; return False if the editor must handle the key itself."""
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


# Input field for a condition, with completion and a wavy line below faults and what no capture can test.


_WAVE_PX: Final = 2


class ExpressionLine(QLineEdit):
    """An input field for a condition (filter expression), which is checked on each change.

    Attributes:
        fault: Error in the condition; None if it is correct or empty.
        limits: Parts of the condition that a capture cannot test, or can test for wide events only.

    Signals:
        checked: `fault` was updated for a new text.
        submitted: Return was pressed.
        focused: The line got the keyboard focus.
    """

    checked = Signal()
    submitted = Signal()
    focused = Signal()

    def __init__(self, trace: Trace, theme: Theme, parent: QWidget | None = None, *, takes_names: bool = False) -> None:
        """Create an empty line; with `takes_names`, completion starts once the text looks like a condition."""
        super().__init__(parent)
        self._trace = trace
        self._theme = theme
        self._takes_names = takes_names
        self.fault: Diagnostic | None = None
        self.limits: tuple[Diagnostic, ...] = ()
        self.proposals = Proposals(self)
        self.proposals.taken.connect(self._on_taken)
        self.textChanged.connect(self._check)
        self._is_typed = False
        self.textEdited.connect(self._propose)
        self.setClearButtonEnabled(True)

    def set_trace(self, trace: Trace) -> None:
        """Take proposed names from a refreshed trace."""
        self._trace = trace

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme = theme
        self.update()

    @Slot(str)
    def _check(self, text: str) -> None:
        if not self._is_typed:  # set by a program: completions for the old text are obsolete
            self.proposals.hide()
        self._is_typed = False
        self.fault = validate(text, self._trace.release, taught(self._trace)) if text.strip() else None
        is_name = self._takes_names and not looks_like_condition(text)
        if is_name:
            self.fault = None
        is_condition = bool(text.strip()) and self.fault is None and not is_name
        self.limits = (
            check_condition(Expression(text, self._trace.release, taught=taught(self._trace))) if is_condition else ()
        )
        self.checked.emit()
        self.update()

    @Slot(str)
    def _propose(self, text: str) -> None:
        self._is_typed = True
        if self._takes_names and not looks_like_condition(text):
            self.proposals.hide()
            return
        if not text.strip() or text[: self.cursorPosition()].endswith(('"', ")", "]", "/")):
            self.proposals.hide()
            return
        self._show_proposals()

    def _show_proposals(self) -> None:
        offered = completions(self.text(), self.cursorPosition(), self._trace.release, self._trace)
        self.proposals.propose(offered, QRect(self.cursorRect().left(), 0, 1, self.height()))

    @Slot(object)
    def _on_taken(self, completion: object) -> None:
        assert isinstance(completion, Completion)
        text = self.text()
        self.setText(text[: completion.start] + completion.text + text[completion.end :])
        self.setCursorPosition(completion.start + len(completion.text))

    def event(self, event: QEvent) -> bool:
        """Handle the keys of the completion list while it is open."""
        if isinstance(event, QKeyEvent) and self.proposals.handles(event):
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            if event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Tab:
                return self.proposals.on_key(event)
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Pass the key to the completion list first."""
        if self.proposals.on_key(event):
            return
        has_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if event.key() == Qt.Key.Key_Down or (has_control and event.key() == Qt.Key.Key_Space):
            self._show_proposals()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.submitted.emit()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Report that the line got the keyboard focus."""
        super().focusInEvent(event)
        self.focused.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Close the completion list."""
        self.proposals.hide()
        super().focusOutEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the line, with wavy lines below faults and limits."""
        super().paintEvent(event)
        marks = [(self.fault, self._theme.error)] if self.fault is not None else []
        marks += [(limit, self._theme.warning) for limit in self.limits]
        if not marks:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for mark, rgb in marks:
            left, right = self._x_of(mark.start), self._x_of(max(mark.end, mark.start + 1))
            painter.setPen(QPen(colour(rgb), 1.2))
            painter.drawPolyline(wave(left, min(right, self.width() - 4.0), self.height() - 5.0))

    def _x_of(self, position: int) -> float:
        text, metrics, cursor = self.text(), self.fontMetrics(), self.cursorPosition()
        origin_px = self.cursorRect().center().x() - metrics.horizontalAdvance(text[:cursor])
        return float(origin_px + metrics.horizontalAdvance(text[:position]) + (6 if position > len(text) else 0))


def wave(left: float, right: float, y: float) -> QPolygonF:
    """Return a zigzag line between two x positions, which underlines a fault."""
    right = max(right, left + 6)
    steps = int((right - left) / _WAVE_PX) + 1
    return QPolygonF([QPointF(left + i * _WAVE_PX, y + (_WAVE_PX if i % 2 else 0)) for i in range(steps + 1)])


def fault_text(fault: Diagnostic) -> str:
    """Return the text of a fault with its column."""
    return f"Column {fault.column}: {fault.message}"


# Multi-line editor with completion.


class ProposingEditor(QPlainTextEdit):
    """An editor with completion while typing and on Ctrl+Space; subclasses provide the completions."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.proposals = Proposals(self)
        self.proposals.taken.connect(self._on_taken)

    def completions(self) -> tuple[list[Completion], int]:
        """Return the completions at the cursor, and the document position to which their positions are relative."""
        raise NotImplementedError

    def left_px(self) -> int:
        """Return the width of the margin left of the text."""
        return 0

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Pass the key to the completion list first."""
        if self.proposals.on_key(event):
            return
        is_request = event.key() == Qt.Key.Key_Space and bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if not is_request:
            super().keyPressEvent(event)
        if is_request or (event.text().strip() and event.text().isprintable()):
            self.propose()
        else:
            self.proposals.hide()

    def propose(self) -> None:
        """Show the completions at the cursor."""
        offered, _ = self.completions()
        cursor_rect = self.cursorRect()
        cursor_box = QRect(cursor_rect.left() + self.left_px(), cursor_rect.top(), 1, cursor_rect.height() + 2)
        self.proposals.propose(offered, cursor_box)

    def event(self, event: QEvent) -> bool:
        """Handle the keys of the completion list while it is open."""
        is_for_proposals = isinstance(event, QKeyEvent) and self.proposals.handles(event)
        if is_for_proposals and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if is_for_proposals and event.type() == QEvent.Type.KeyPress:  # otherwise Tab would leave the editor
            assert isinstance(event, QKeyEvent)
            self.keyPressEvent(event)
            return True
        return super().event(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Close the completion list."""
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


# The find bar under the swimlanes.


_TYPING_MS = 200
_NO_HITS = "No hits"


class FindBar(QWidget):
    """A bar with a search field: searches while the user types; Enter and Shift+Enter step through the hits.

    Signals:
        step_requested: Go to the next (1) or previous (-1) hit.
        list_requested: Show the list of all hits.
        closed: The bar was closed.
    """

    step_requested = Signal(int)
    list_requested = Signal()
    closed = Signal()

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._all_hidden = False
        self.line = ExpressionLine(opened.trace, theme, self, takes_names=True)
        self.line.setPlaceholderText("Name, /pattern/, or a condition such as event == MSG_SENDV and duration > 2ms")
        self.count = PlainLabel(self, role="dim")
        self.count.setMinimumWidth(160)
        self._typing = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._typing.timeout.connect(self._find)
        row = line_up(QHBoxLayout(self), PlainLabel("Find", self), (self.line, 1), self.count, margins=(10, 6, 10, 6))
        self.suggestion = flat_button("", self, self._on_suggestion)
        self.suggestion.hide()
        row.addWidget(self.suggestion)
        for title, slot in (
            ("Previous", partial(self.step_requested.emit, BACK)),
            ("Next", partial(self.step_requested.emit, ON)),
            ("List", self.list_requested.emit),
            ("Close", self.leave),
        ):
            button = push_button(title, self, slot)
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            row.addWidget(button)
        self.line.textChanged.connect(self._typing.start)
        self.line.installEventFilter(self)
        opened.search.changed.connect(self._on_hits)
        opened.filters.view_changed.connect(self._on_hits)
        opened.reloaded.connect(self._on_reloaded)
        opened.selection.changed.connect(self._show_count)
        self.hide()

    @Slot()
    def _on_reloaded(self) -> None:
        self.line.set_trace(self._opened.trace)

    def start(self) -> None:
        """Show the bar and give it the keyboard focus."""
        self.show()
        self.line.setFocus()
        self.line.selectAll()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self.line.set_theme(theme)

    @Slot(str)
    def look_for(self, text: str) -> None:
        """Show the bar and search for a text."""
        self.line.setText(text)
        self.start()
        self._find()

    def restore(self, text: str, shows: bool) -> None:
        """Repeat a saved search without taking the keyboard focus."""
        if text:
            self.line.setText(text)
            self._find()
        self.setVisible(shows)

    @Slot()
    def leave(self) -> None:
        """Close the bar; hits stay marked until the text is cleared."""
        self.hide()
        self.closed.emit()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Handle Enter and Escape in the search field."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            if event.key() == Qt.Key.Key_Escape:
                event.accept()  # before the window's own command for Escape takes it
                return True
        elif self.line.proposals.isVisible():
            return False
        elif event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                if self._typing.isActive():
                    self._find()
                is_back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
                self.step_requested.emit(BACK if is_back else ON)
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.leave()
                return True
        return False

    @Slot()
    def _find(self) -> None:
        self._typing.stop()
        if self.line.text().strip() != self._opened.search.text:
            self._opened.search.find(self.line.text())

    @Slot()
    def _on_suggestion(self) -> None:
        self.look_for(suggested(self._opened.search.text))

    @Slot()
    def _on_hits(self) -> None:
        search = self._opened.search
        self._all_hidden = len(search.hits) > 0 and not len(search.shown_hits(self._opened.filters.rows))
        self._show_count()

    @Slot()
    def _show_count(self) -> None:
        search, event = self._opened.search, self._opened.selection.event
        if search.error:
            text = capitalized(search.error)
        elif not search.text:
            text = ""
        elif search.is_pending:
            text = "Looking\N{HORIZONTAL ELLIPSIS}"
        elif not len(search.hits):
            text = _NO_HITS
        elif self._all_hidden:
            text = f"{counted(len(search.hits), 'hit')}, all hidden by the filter"
        else:
            position = int(search.hits.searchsorted(event)) if event is not None else len(search.hits)
            is_hit = position < len(search.hits) and int(search.hits[position]) == event
            text = f"{position + 1:,} of {len(search.hits):,}" if is_hit else counted(len(search.hits), "hit")
        self.count.setText(text)
        meant = suggested(search.text) if text == _NO_HITS else ""
        self.suggestion.setText(menu_text(f"Did you mean {meant}?"))
        self.suggestion.setVisible(bool(meant))
