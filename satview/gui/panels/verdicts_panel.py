"""The panel Verdicts: problems of the traced system that were found automatically, with evidence and remedy."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from satview.base.safe_text import tool_tip, visible_line
from satview.gui.answer_table import AnswerPanel
from satview.gui.panel import PanelContext, select_row
from satview.gui.widgets import ElidedLabel, PlainLabel, flat_button, line_up


class VerdictsPanel(AnswerPanel):
    """Verdicts, each with its remedy, occurrences and events below. The search starts when the panel is first shown.

    Attributes:
        statement: Number of verdicts by severity.
        capture: Button that opens the capture dialog, with rules for data that this trace lacks.
        missing: Label with the data that this trace lacks for verdicts, and the classes to capture.
    """

    waits_to_be_seen = True
    shown_names = ("kind", "start", "length", "says")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, "Verdicts", parent)
        self._report = context.report
        self.statement = ElidedLabel("", self)
        self.missing = PlainLabel("", self, role="dim")
        self.missing.setWordWrap(True)
        self.missing.setContentsMargins(8, 4, 8, 4)
        self.capture = flat_button("Capture again\N{HORIZONTAL ELLIPSIS}", self, self._on_capture)
        head = line_up(QHBoxLayout(), (self.statement, 1), self.capture, margins=(8, 2, 8, 2))
        self.add_buttons(head, self.statement)
        self._lay_out(head, self.stack, self.missing)
        self._opened.verdicts.changed.connect(self._fill)
        self._fill()

    def reload(self) -> None:
        """Search for verdicts, initially and after the trace was refreshed."""
        self._opened.verdicts.start()

    def show_worst(self) -> None:
        """Go to the most severe verdict, if there is one."""
        if self._opened.verdicts.answer is not None and self.model.rowCount():
            self.sort("", descending=False)
            select_row(self.table, 0)
            self._show(0)

    @Slot()
    def _fill(self) -> None:
        search = self._opened.verdicts
        answer = search.answer
        self.missing.hide()
        line = answer.capture if answer is not None else None
        self.capture.setVisible(line is not None)
        if line is not None:
            does = "Capture again in wide mode to see what this trace cannot show"
            self.capture.setToolTip(tool_tip(f"{does}:\n{line.command}"))
        if answer is None or search.error:
            self.statement.setText("")
            self.show_page(search.error or "Looking for problems\N{HORIZONTAL ELLIPSIS}")
            return
        table = answer.table
        self._show_in_order(table)
        self.statement.setText(answer.severities or answer.summary)
        self.missing.setText("\n".join(f"Not all: {visible_line(line)}." for line in table.missing))
        self.missing.setVisible(bool(table.missing and len(table)))
        self.show_page("" if len(table) else table.says_why_empty)

    @Slot()
    def _on_capture(self) -> None:
        answer = self._opened.verdicts.answer
        if answer is not None and answer.capture is not None:
            self._opened.capture_requested.emit(answer.capture.rules)

    def _show(self, row: int) -> None:
        super()._show(row)
        if self.model.answer is not None and self.model.answer.event(row) >= 0:
            self._report("Press Y to see why the selected thread is in its state, or I for its details")
