"""The panel Doctor: which analyses the trace answers exactly, as a bound or not at all, and the capture that would."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QMenu, QWidget

from satview.analysis.capture_line import CaptureLine
from satview.analysis.doctor import notes
from satview.answers.doctor import capture_for, exact_in
from satview.answers.table import Table
from satview.base.safe_text import tool_tip, visible_line
from satview.gui.answer_table import AnswerPanel
from satview.gui.panel import PanelContext
from satview.gui.widgets import ElidedLabel, flat_button, line_up


class DoctorPanel(AnswerPanel):
    """A table of all analyses and how exact they are; computed when the panel is first shown.

    Attributes:
        statement: Number of analyses that are exact, and notes on the capture.
        copy_line, capture: Buttons that copy or open the capture for the selected rows, or for all rows not exact.
    """

    waits_to_be_seen = True
    shown_names = ("title", "trust", "reason", "remedy", "command")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, "Doctor", parent)
        self.setMinimumSize(120, 64)
        self._shown: Table | None = None  # table of the model; while it is the same, selected rows stay
        self._lay_out(self._head(), self.stack)
        self.table.selectionModel().selectionChanged.connect(self._on_selection)
        self._opened.doctor.changed.connect(self._fill)
        self._fill()

    def reload(self) -> None:
        """Start to compute the analyses, when first shown and after the trace was refreshed."""
        self._opened.doctor.start()

    def sort(self, name: str, *, descending: bool) -> None:
        """Sort the analyses by a column."""
        self._shown = None
        super().sort(name, descending=descending)

    def _head(self) -> QHBoxLayout:
        self.statement = ElidedLabel("", self, role="dim")
        self.copy_line = flat_button("Copy command", self, self._on_copy_line)
        self.capture = flat_button("New capture\N{HORIZONTAL ELLIPSIS}", self, self._on_capture)
        head = line_up(QHBoxLayout(), (self.statement, 1), self.copy_line, self.capture, margins=(10, 4, 8, 4))
        self.add_buttons(head, self.statement)
        return head

    @Slot()
    def _fill(self) -> None:
        search = self._opened.doctor
        answers = search.answer
        if answers is None or search.error:
            self.statement.setText("")
            self.show_page(search.error or "Examining the trace\N{HORIZONTAL ELLIPSIS}")
        elif answers is not self._shown:
            self._shown = answers
            self._show_in_order(answers)
            exact = exact_in(answers)
            statements = (exact[0].upper() + exact[1:], *notes(self._opened.trace))
            self.statement.setText(visible_line(" \N{MIDDLE DOT} ".join(statements)))
            self.show_page("")
        self._on_selection()

    def _line(self) -> CaptureLine | None:
        """Return the capture that makes the selected analyses exact, or all if none is selected; None if none does."""
        answer, rows = self.model.answer, self._rows()
        if answer is None:
            return None
        return capture_for(answer.at(answer.positions[rows]) if rows else answer)

    def _rows(self) -> list[int]:
        return [index.row() for index in self.table.selectionModel().selectedRows()]

    @Slot()
    def _on_selection(self) -> None:
        answer, line, rows = self.model.answer, self._line(), self._rows()
        names = ", ".join(answer.text(row, "title").lower() for row in rows) if answer is not None else ""
        for button, does in ((self.copy_line, "Copy the tracelogger command line"), (self.capture, "Capture")):
            button.setEnabled(line is not None)
            command = f":\n{line.command}" if line is not None else ""
            button.setToolTip(tool_tip(f"{does} for {names or 'all that is not exact'}{command}"))

    @Slot()
    def _on_copy_line(self) -> None:
        if (line := self._line()) is not None:
            QGuiApplication.clipboard().setText(line.command)

    @Slot()
    def _on_capture(self) -> None:
        if (line := self._line()) is not None:
            self._opened.capture_requested.emit(line.rules)

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for title, run in (("Copy command", self._on_copy_line), ("Copy rules", self._on_copy_rules),
                           ("New capture with these rules\N{HORIZONTAL ELLIPSIS}", self._on_capture)):  # fmt: skip
            menu.addAction(title, run).setEnabled(self._line() is not None)
        menu.popup(self.table.viewport().mapToGlobal(position))

    @Slot()
    def _on_copy_rules(self) -> None:
        if (line := self._line()) is not None:
            QGuiApplication.clipboard().setText(line.rules)
