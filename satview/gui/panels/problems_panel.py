"""The panel Problems: problems of the file; a click goes to the position."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QHeaderView, QStackedWidget, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from satview.base.safe_text import tool_tip, visible_line
from satview.base.time_text import format_moment
from satview.gui.panel import Panel, PanelContext
from satview.gui.theme import Theme, colour
from satview.gui.widgets import Notice, line_up
from satview.store.problems import KINDS, Problem

_TIME: Final = int(Qt.ItemDataRole.UserRole)


class ProblemsPanel(Panel):
    """Panel with a tree of the problems of the file: kinds, and below these the positions in the file."""

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.tree = QTreeWidget(self)
        self.tree.setAccessibleName("Problems")
        self.tree.setHeaderLabels(["Problem", "Count", "Time", "Detail"])
        self.tree.setUniformRowHeights(True)
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
        item = QTreeWidgetItem(
            top,
            [
                visible_line(f"{problem.file} {position}".strip() or "whole file"),
                f"{problem.count:,}",
                time,
                visible_line(problem.detail),
            ],
        )
        item.setData(0, _TIME, problem.time_cycles)
        item.setToolTip(3, tool_tip(problem.detail))
        item.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)

    @Slot(QTreeWidgetItem, int)
    def _on_item(self, item: QTreeWidgetItem, _column: int) -> None:
        cycles = item.data(0, _TIME)
        if isinstance(cycles, int):
            self._navigation.show_time(cycles)
