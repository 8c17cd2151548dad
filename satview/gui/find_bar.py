"""The find bar under the swimlanes."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from satview.base.safe_text import counted, menu_text
from satview.gui.filters.editing import ExpressionLine
from satview.gui.theme import Theme
from satview.gui.widgets import PlainLabel, flat_button, line_up
from satview.session.commands import BACK, ON
from satview.session.filter_stack import suggested
from satview.session.open_trace import OpenTrace

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
            ("Previous", self._on_previous),
            ("Next", self._on_next),
            ("List", self.list_requested.emit),
            ("Close", self.leave),
        ):
            button = QPushButton(title, self)
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            button.clicked.connect(slot)
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
    def _on_next(self) -> None:
        self.step_requested.emit(ON)

    @Slot()
    def _on_previous(self) -> None:
        self.step_requested.emit(BACK)

    @Slot()
    def _on_hits(self) -> None:
        search = self._opened.search
        self._all_hidden = len(search.hits) > 0 and not len(search.shown_hits(self._opened.filters.rows))
        self._show_count()

    @Slot()
    def _show_count(self) -> None:
        search, event = self._opened.search, self._opened.selection.event
        if search.error:
            text = search.error
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
            text = f"{position + 1:,} of {len(search.hits):,}" if is_hit else f"{len(search.hits):,} hits"
        self.count.setText(text)
        meant = suggested(search.text) if text == _NO_HITS else ""
        self.suggestion.setText(menu_text(f"Did you mean {meant}?"))
        self.suggestion.setVisible(bool(meant))
