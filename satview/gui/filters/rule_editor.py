"""The editor for rules: line numbers, proposals, a wave under the word that is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from PySide6.QtCore import QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QFontDatabase,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from satview.events.modes import RULE_MODES, Mode
from satview.filters.diagnostics import Diagnostic
from satview.filters.expressions.complete import Completion, completions
from satview.filters.external import classes_of
from satview.filters.names import process_names
from satview.filters.rules.capturing import check_capture
from satview.filters.rules.event_names import names_of_class
from satview.filters.rules.text import check_rules
from satview.gui.filters.proposing_editor import ProposingEditor
from satview.gui.theme import Theme, colour
from satview.store.trace import Trace

_WHERE: Final = re.compile(r"\bWHERE\s(.*)$")
_LIMIT: Final = 200
_GUTTER_PX: Final = 10


class RuleEditor(ProposingEditor):
    """Checks its text a line at a time whenever it changes.

    Attributes:
        faults: What is wrong, in the order of lines.
        limits: What a view can do and a capture cannot.
        proposals: The list.

    Signals:
        checked: `faults` is up to date.
    """

    checked = Signal()

    def __init__(self, trace: Trace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._trace = trace
        self._theme = theme
        self._names = process_names(trace)
        self.faults: tuple[Diagnostic, ...] = ()
        self.limits: tuple[Diagnostic, ...] = ()
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setAccessibleName("Rules")
        self._gutter = _Gutter(self)
        self.textChanged.connect(self._check)
        self.blockCountChanged.connect(self._on_blocks)
        self.updateRequest.connect(self._on_update)
        self._on_blocks()

    def set_trace(self, trace: Trace) -> None:
        """Know the processes of a longer reading of the same file."""
        self._trace, names = trace, process_names(trace)
        if names != self._names:
            self._names = names
            self._check()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        self._check()

    def replace_text(self, text: str) -> None:
        """Show other rules; Ctrl+Z brings back those before."""
        cursor = QTextCursor(self.document())
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(text)
        self.moveCursor(QTextCursor.MoveOperation.Start)

    def go_to(self, fault: Diagnostic) -> None:
        """Put the cursor where a fault is."""
        block = self.document().findBlockByNumber(max(0, fault.line - 1))
        cursor = QTextCursor(block)
        cursor.setPosition(min(block.position() + fault.start, block.position() + block.length() - 1))
        self.setTextCursor(cursor)
        self.setFocus()

    @Slot()
    def _check(self) -> None:
        rules, self.faults = check_rules(self.toPlainText(), self._trace.release, self._names)
        self.limits = check_capture(rules, self._trace.release)[0] if rules and not self.faults else ()
        waves = [self._wave(fault, self._theme.error) for fault in self.faults]
        self.setExtraSelections([*waves, *(self._wave(limit, self._theme.warning) for limit in self.limits)])
        self.checked.emit()

    def _wave(self, fault: Diagnostic, rgb: int) -> QTextEdit.ExtraSelection:
        block = self.document().findBlockByNumber(max(0, fault.line - 1))
        last = block.position() + max(0, block.length() - 1)
        selection = QTextEdit.ExtraSelection()
        selection.cursor = QTextCursor(block)
        selection.cursor.setPosition(min(block.position() + fault.start, last))
        end = min(max(block.position() + fault.end, block.position() + fault.start + 1), last)
        selection.cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        form = QTextCharFormat()
        form.setUnderlineStyle(QTextCharFormat.UnderlineStyle.SpellCheckUnderline)
        form.setUnderlineColor(colour(rgb))
        selection.format = form
        return selection

    def completions(self) -> tuple[list[Completion], int]:
        """Return what fits at the cursor of a rule."""
        cursor = self.textCursor()
        found = list(rule_completions(cursor.block().text(), cursor.positionInBlock(), self._trace))[:_LIMIT]
        return found, cursor.block().position()

    def left_px(self) -> int:
        """Return the width of the line numbers."""
        return self._gutter.width()

    @Slot()
    def _on_blocks(self) -> None:
        self.setViewportMargins(self._gutter.sizeHint().width(), 0, 0, 0)

    def _on_update(self, rect: QRect, dy: int) -> None:
        if dy:
            self._gutter.scroll(0, dy)
        else:
            self._gutter.update(0, rect.y(), self._gutter.width(), rect.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Follow the size."""
        super().resizeEvent(event)
        inner = self.contentsRect()
        self._gutter.setGeometry(inner.left(), inner.top(), self._gutter.sizeHint().width(), inner.height())

    def paint_gutter(self, painter: QPainter, area: QRect) -> None:
        """Draw the line numbers, those of faulty lines in red."""
        painter.fillRect(area, colour(self._theme.panel))
        wrong = {fault.line for fault in self.faults}
        block = self.firstVisibleBlock()
        painter.setFont(self.font())
        while block.isValid():
            top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
            if top > area.bottom():
                break
            number = block.blockNumber() + 1
            painter.setPen(colour(self._theme.error if number in wrong else self._theme.faint))
            index = QRect(0, round(top), self._gutter.width() - _GUTTER_PX // 2, self.fontMetrics().height())
            painter.drawText(index, int(Qt.AlignmentFlag.AlignRight), str(number))
            block = block.next()


class _Gutter(QWidget):
    """Line numbers."""

    def __init__(self, editor: RuleEditor) -> None:
        super().__init__(editor)
        self._editor = editor

    def sizeHint(self) -> QSize:
        """Return room for the largest number."""
        digits = max(2, len(str(self._editor.blockCount())))
        return QSize(self._editor.fontMetrics().horizontalAdvance("9") * digits + _GUTTER_PX, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw."""
        self._editor.paint_gutter(QPainter(self), event.rect())


def rule_completions(line: str, position: int, trace: Trace) -> Iterator[Completion]:
    """Yield what could are at a position of a rule line: a mode, a class, an event, a process, a condition."""
    before = line[:position]
    condition = _WHERE.search(before)
    if condition:
        start = condition.start(1)
        for found in completions(condition.group(1), len(condition.group(1)), trace.release, trace):
            yield Completion(found.text, found.start + start, found.end + start, found.help)
        return
    words = before.split(" ")
    begun, known = words[-1], [word.upper() for word in words[:-1] if word]
    for name, note in _words(known, trace):
        if name != begun and name.upper().startswith(begun.upper()):
            yield Completion(name, position - len(begun), position, note)


def _words(known: list[str], trace: Trace) -> Iterator[tuple[str, str]]:
    if not known:
        yield from ((mode.name, " ".join(mode.rule_arguments)) for mode in RULE_MODES)
        yield "WHERE", "condition on every event"
        return
    mode = next((mode for mode in RULE_MODES if mode.name == known[0]), None)
    arguments = mode.rule_arguments if isinstance(mode, Mode) else ()
    if len(known) > len(arguments):
        return
    requested = arguments[len(known) - 1]
    external = next((c for c in classes_of(trace.release) if len(known) > 1 and c.name == known[1]), None)
    if requested == "class":
        yield from ((c.name, "") for c in classes_of(trace.release) if c.name != "EMPTY")
    elif requested == "event" and external is not None:
        yield from ((name, "") for name in sorted(names_of_class(external, trace.release)))
    elif requested == "pid":
        for name, pids in process_names(trace).items():
            if "/" not in name and " " not in name:
                yield name, f"pid {', '.join(map(str, pids[:5]))}"
    elif requested == "handler":
        yield from (("WHERE", "a condition"), ("CALL", "a Python function: file.py:name"))
