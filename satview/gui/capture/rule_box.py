"""A box for rules: marks the faulty words while one types, and says what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QFont, QFontDatabase, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QTextEdit, QVBoxLayout, QWidget

from satview.events.spec import Release
from satview.filters.diagnostics import Diagnostic
from satview.filters.rules.capturing import check_capture
from satview.filters.rules.text import check_rules
from satview.gui.message_line import MessageLine
from satview.gui.theme import DARK, LIGHT, colour

_TYPING_MS = 250
_SHOWN = 3
_NAMES_SHOWN = 8


class RuleBox(QWidget):
    """A text of rules with its faults.

    Attributes:
        edit: The text.
        faults: What is wrong with it, in text order.

    Signals:
        checked: `faults` are those of the text of now.
    """

    checked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.faults: tuple[Diagnostic, ...] = ()
        self._release = Release.QNX_7
        self._is_wide = False
        self._processes: Mapping[str, Sequence[int]] = {}
        self.edit = QPlainTextEdit(self)
        self.edit.setAccessibleName("Rules")
        self.edit.setPlaceholderText("DELALLCLASSES\nADDCLASS THREAD\nADDEVENT KERCALL MSG_SENDV")
        self.edit.setFont(_fixed_font(self.edit.font().pointSizeF()))
        self.edit.setTabChangesFocus(True)
        self.edit.setMinimumHeight(64)
        # It takes what is left: with the height that it would like, it would squeeze the fields above in a low dialog.
        self.edit.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.message = MessageLine(self)
        self.message.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.edit, 1)
        layout.addWidget(self.message)
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.setInterval(_TYPING_MS)
        self._typing.timeout.connect(self.check)
        self.edit.textChanged.connect(self._typing.start)
        self.check()

    @property
    def text(self) -> str:
        """The rules."""
        return self.edit.toPlainText()

    def set_target(self, release: Release, processes: Mapping[str, Sequence[int]], is_wide: bool = False) -> None:
        """Say whose names apply, release and process names with pids, and whether events are wide by default."""
        self._release, self._processes, self._is_wide = release, processes, is_wide
        self.check()

    @Slot()
    def check(self) -> None:
        """Look for faults now."""
        self._typing.stop()
        rules, self.faults = check_rules(self.text, self._release, self._processes)
        notes: tuple[str, ...] = ()
        if rules and not self.faults:
            self.faults, notes = check_capture(rules, self._release, self._is_wide)
        self.edit.setExtraSelections([self._selection(fault) for fault in self.faults])
        if self.faults:
            more = len(self.faults) - _SHOWN
            lines = [f"Line {fault.line}: {fault.message}" for fault in self.faults[:_SHOWN]]
            self.message.say("\n".join(lines + [f"and {more} more"] * (more > 0)), "error")
        elif rules:
            count = "1 rule" if len(rules) == 1 else f"{len(rules)} rules"
            self.message.say("\n".join([count, *notes]), "faint")
        else:
            self.message.say(f"Empty: everything is logged.{self._names()}", "faint")
        self.checked.emit()

    def _names(self) -> str:
        """Return which processes rules may name, not knowing their pids."""
        names = [name for name in self._processes if "/" not in name]
        more = "" if len(names) <= _NAMES_SHOWN else ", …"
        return f" Rules may name {', '.join(names[:_NAMES_SHOWN])}{more}." if names else ""

    def _selection(self, fault: Diagnostic) -> QTextEdit.ExtraSelection:
        block = self.edit.document().findBlockByNumber(fault.line - 1)
        length = len(block.text())
        start = min(fault.start, max(0, length - 1))
        cursor = QTextCursor(block)
        cursor.setPosition(block.position() + start)
        cursor.setPosition(block.position() + min(max(fault.end, start + 1), length), QTextCursor.MoveMode.KeepAnchor)
        theme = DARK if self.palette().window().color().lightness() < 128 else LIGHT
        style = QTextCharFormat()
        style.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
        style.setUnderlineColor(colour(theme.error))
        style.setBackground(colour(theme.error, 36))
        selection = QTextEdit.ExtraSelection()
        selection.cursor, selection.format = cursor, style
        return selection


def _fixed_font(size: float) -> QFont:
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(size)
    return font
