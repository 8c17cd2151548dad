"""A line for a condition: proposals while one types, and a wave under what is wrong or what no capture can test."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRect, Qt, Signal, Slot
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QLineEdit, QWidget

from satview.filters.diagnostics import Diagnostic
from satview.filters.expressions.complete import Completion, completions
from satview.filters.expressions.expression import Expression, validate
from satview.filters.expressions.syntax import looks_like_condition
from satview.filters.rules.capturing import check_condition
from satview.gui.filters.proposals import Proposals
from satview.gui.theme import Theme, colour
from satview.store.arguments import taught
from satview.store.trace import Trace

_WAVE_PX: Final = 2


class ExpressionLine(QLineEdit):
    """Checks what is typed at once.

    Attributes:
        fault: What is wrong with the text; None if it is a condition, or empty.
        limits: What of the condition a capture cannot test, or of wide events only.
        proposals: The list.

    Signals:
        checked: `fault` is up to date with a new text.
        submitted: Return was pressed.
        focused: It has got the keyboard.
    """

    checked = Signal()
    submitted = Signal()
    focused = Signal()

    def __init__(self, trace: Trace, theme: Theme, parent: QWidget | None = None, *, takes_names: bool = False) -> None:
        """Make an empty line.

        Args:
            trace: Whose names are proposed.
            theme: For the wave.
            parent: Owner.
            takes_names: The text may be a plain name as well; nothing is proposed before it looks like a condition.
        """
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
        """Propose names of a longer reading of the same file."""
        self._trace = trace

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        self.update()

    @Slot(str)
    def _check(self, text: str) -> None:
        if not self._is_typed:  # set from elsewhere: proposals for the text before make no sense any more
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
        found = completions(self.text(), self.cursorPosition(), self._trace.release, self._trace)
        self.proposals.propose(found, QRect(self.cursorRect().left(), 0, 1, self.height()))

    @Slot(object)
    def _on_taken(self, completion: object) -> None:
        assert isinstance(completion, Completion)
        text = self.text()
        self.setText(text[: completion.start] + completion.text + text[completion.end :])
        self.setCursorPosition(completion.start + len(completion.text))

    def event(self, event: QEvent) -> bool:
        """Keep the keys of the proposals while they show."""
        if isinstance(event, QKeyEvent) and self.proposals.handles(event):
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            if event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Tab:
                return self.proposals.on_key(event)
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Let the proposals have the key first."""
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
        """Note that a condition is about to be typed."""
        super().focusInEvent(event)
        self.focused.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Close the proposals with the keyboard gone."""
        self.proposals.hide()
        super().focusOutEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the wave over the line."""
        super().paintEvent(event)
        marks = [(self.fault, self._theme.error)] if self.fault is not None else []
        marks += [(limit, self._theme.warning) for limit in self.limits]
        if not marks:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for mark, rgb in marks:
            left, right = self._x(mark.start), self._x(max(mark.end, mark.start + 1))
            painter.setPen(QPen(colour(rgb), 1.2))
            painter.drawPolyline(wave(left, min(right, self.width() - 4.0), self.height() - 5.0))

    def _x(self, position: int) -> float:
        text, metrics, cursor = self.text(), self.fontMetrics(), self.cursorPosition()
        here = self.cursorRect().center().x() - metrics.horizontalAdvance(text[:cursor])
        return float(here + metrics.horizontalAdvance(text[:position]) + (6 if position > len(text) else 0))


def wave(left: float, right: float, y: float) -> QPolygonF:
    """Return a zigzag from left to right."""
    right = max(right, left + 6)
    steps = int((right - left) / _WAVE_PX) + 1
    return QPolygonF([QPointF(left + i * _WAVE_PX, y + (_WAVE_PX if i % 2 else 0)) for i in range(steps + 1)])


def fault_text(fault: Diagnostic) -> str:
    """Return a fault with its position, first letter large."""
    return f"Column {fault.column}: {fault.message}"
