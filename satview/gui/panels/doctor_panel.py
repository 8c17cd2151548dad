"""The panels Doctor and Problems: what the trace can answer exactly, and what is damaged in its file."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QMenu,
    QStackedWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.doctor import notes
from satview.analysis.needs import CaptureLine
from satview.answers.doctor import capture_for, exact_in
from satview.answers.table import Table
from satview.base.safe_text import tool_tip, visible_line
from satview.base.time import format_moment
from satview.gui.answer_table import AnswerPanel
from satview.gui.panel import Panel, PanelContext, selected_rows
from satview.gui.theme import Theme, colour
from satview.gui.widgets import ElidedLabel, Notice, flat_button, line_up, list_tree
from satview.store.problems import KINDS, Problem

# The panel Doctor: which analyses the trace answers exactly, as a bound or not at all, and the capture that would.


class DoctorPanel(AnswerPanel):
    """A table of all analyses and how exact they are; computed when the panel is first shown."""

    waits_to_be_seen = True
    shown_names = ("title", "trust", "reason", "remedy", "command")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, "Doctor", parent)
        self.setMinimumSize(120, 64)
        self._shown: Table | None = None  # table of the model; while it is the same, selected rows stay
        self._order = "trust", True  # the least trusted first, as they are what can be improved
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
        """Return the capture that makes the selected (or else all) analyses exact; None if no capture can."""
        answer, rows = self.model.answer, selected_rows(self.table)
        if answer is None:
            return None
        return capture_for(answer.at(answer.positions[rows]) if rows else answer)

    @Slot()
    def _on_selection(self) -> None:
        answer, line, rows = self.model.answer, self._line(), selected_rows(self.table)
        names = ", ".join(answer.text(row, "title").lower() for row in rows) if answer is not None else ""
        for button, does in ((self.copy_line, "Copy the tracelogger command line"), (self.capture, "Capture")):
            button.setEnabled(line is not None)
            command = f":\n{line.command}" if line is not None else ""
            button.setToolTip(tool_tip(f"{does} for {names or 'everything that is not exact'}{command}"))

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


# The panel Problems: problems of the file; a click goes to the position.


_TIME: Final = int(Qt.ItemDataRole.UserRole)


class ProblemsPanel(Panel):
    """Panel with a tree of the problems of the file: kinds, and below these the positions in the file."""

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.tree = list_tree(self, "Problems", ["Problem", "Count", "Time", "Detail"], is_flat=False)
        self.tree.header().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.tree.itemClicked.connect(self._on_item)
        self.tree.itemActivated.connect(self._on_item)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.tree)
        fine = Notice(
            "The file has no problems: every slot was understood.\n"
            "For problems of the traced system, see Verdicts (Ctrl+Shift+V).",
            self,
        )
        self._stack.addWidget(fine)
        line_up(QVBoxLayout(self), self._stack, margins=(0, 0, 0, 0))
        for column, width_px in enumerate((240, 80, 170)):
            self.tree.setColumnWidth(column, width_px)
        self._counts: dict[str, int] = {}
        self.reload()

    def reload(self) -> None:
        """Show the problems if they changed; keep expanded branches and the scroll position."""
        counts = self._opened.trace.problems.counts()
        self._stack.setCurrentIndex(0 if counts else 1)
        if counts == self._counts:
            return
        tops = [self.tree.topLevelItem(i) for i in range(self.tree.topLevelItemCount())]
        opened = {top.text(0): top.isExpanded() for top in tops if top is not None}
        position = self.tree.verticalScrollBar().value()
        self.tree.clear()
        self._fill(opened)
        self._counts = counts
        self.tree.verticalScrollBar().setValue(position)

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme = theme
        for i in range(self.tree.topLevelItemCount()):
            item = self.tree.topLevelItem(i)
            if item is not None:
                item.setForeground(0, colour(theme.error if item.data(0, _TIME + 1) else theme.warning))

    def _fill(self, opened: dict[str, bool]) -> None:
        problems = self._opened.trace.problems
        for slug, count in problems.counts().items():
            kind = KINDS[slug]
            top = QTreeWidgetItem(self.tree, [kind.title, f"{count:,}", "", kind.meaning])
            top.setData(0, _TIME + 1, kind.costs_data)
            top.setToolTip(3, tool_tip(kind.meaning))
            for problem in problems:
                if problem.kind is kind:
                    self._add(top, problem)
            left_out = problems.suppressed.get(slug, 0)
            if left_out:
                QTreeWidgetItem(top, [f"\N{HORIZONTAL ELLIPSIS} {left_out:,} more of this kind"])
            top.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            top.setExpanded(opened.get(kind.title, top.childCount() <= 5))
        self.set_theme(self._theme)

    def _add(self, top: QTreeWidgetItem, problem: Problem) -> None:
        position = f"byte 0x{problem.offset:x}" if problem.offset is not None else ""
        if problem.line is not None:
            position = f"line {problem.line:,}"
        time = format_moment(problem.time_cycles, self._opened.trace.clock) if problem.time_cycles is not None else ""
        where = visible_line(f"{problem.file} {position}".strip() or "whole file")
        item = QTreeWidgetItem(top, [where, f"{problem.count:,}", time, visible_line(problem.detail)])
        item.setData(0, _TIME, problem.time_cycles)
        item.setToolTip(3, tool_tip(problem.detail))
        item.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)

    @Slot(QTreeWidgetItem, int)
    def _on_item(self, item: QTreeWidgetItem, _column: int) -> None:
        cycles = item.data(0, _TIME)
        if isinstance(cycles, int):
            self._navigation.show_time(cycles)
