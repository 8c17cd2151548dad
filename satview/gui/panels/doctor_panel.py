"""What the trace shows exactly, what as a bound, what not at all; each with the capture that would answer it."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QMenu,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.capture_line import CaptureLine
from satview.analysis.doctor import Diagnosis, capture_for, notes
from satview.analysis.times.basis import TITLES, Mark, sign
from satview.base.safe_text import tool_tip, visible_line
from satview.gui.panel import Panel, PanelContext
from satview.gui.theme import Theme, colour
from satview.gui.widgets import Notice, PlainLabel

_ROW: Final = int(Qt.ItemDataRole.UserRole)
_COLUMNS: Final = (("Analysis", 190), ("Trust", 150), ("Why, and what to do", 380), ("Capture with", 0))


class DoctorPanel(Panel):
    """One row for each analysis; what is worked out begins when the panel is first seen.

    Attributes:
        tree: The rows.
        copy_line, capture: Buttons that act on the selected row, or on all that is not exact.
    """

    waits_to_be_seen = True

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.setMinimumSize(120, 64)
        self.tree = QTreeWidget(self)
        self._set_up_tree()
        self.message = Notice("", self)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.tree)
        self._stack.addWidget(self.message)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(self._head())
        layout.addWidget(self._stack, 1)
        self._opened.doctor.changed.connect(self._fill)
        self._fill()

    def reload(self) -> None:
        """Request what the trace can show, at first and of a refreshed trace."""
        self._opened.doctor.start()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        self._fill()

    def copied_text(self) -> str:
        """Return the command line of the selected row, or that for all that is not exact."""
        line = self._line()
        return line.command if line is not None else ""

    def _set_up_tree(self) -> None:
        tree = self.tree
        tree.setAccessibleName("Doctor")
        tree.setHeaderLabels([title for title, _ in _COLUMNS])
        tree.setUniformRowHeights(True)
        tree.header().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        tree.header().setStretchLastSection(True)
        for column, (_, width_px) in enumerate(_COLUMNS[:-1]):
            tree.setColumnWidth(column, width_px)
        tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        tree.customContextMenuRequested.connect(self._on_menu)
        tree.itemSelectionChanged.connect(self._on_selection)

    def _head(self) -> QHBoxLayout:
        head = QHBoxLayout()
        head.setContentsMargins(10, 4, 8, 4)
        self.statement = PlainLabel("", self)
        self.statement.setProperty("role", "dim")
        self.statement.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        head.addWidget(self.statement, 1)
        self.copy_line = QPushButton("Copy command", self)
        self.capture = QPushButton("New capture\N{HORIZONTAL ELLIPSIS}", self)
        for button, run in ((self.copy_line, self._on_copy), (self.capture, self._on_capture)):
            button.setProperty("flat", "true")
            button.clicked.connect(run)
            head.addWidget(button)
        return head

    @Slot()
    def _fill(self) -> None:
        """Show what is known; open groups and the selected row stay."""
        answer = self._opened.doctor
        selected = self._selected()
        self.tree.clear()
        found = answer.found
        self._stack.setCurrentWidget(self.message if found is None or answer.error else self.tree)
        if found is None or answer.error:
            self.message.setText(answer.error or "Examining the trace\N{HORIZONTAL ELLIPSIS}")
            self.statement.setText("")
            self._on_selection()
            return
        for title, is_verdict in (("Analyses", False), ("Verdicts", True)):
            self._add_group(title, [one for one in found if one.analysis.is_verdict is is_verdict], selected)
        exact = sum(one.trust.mark is Mark.EXACT for one in found)
        said = (f"Exact in {exact} of {len(found)} analyses", *notes(self._opened.trace))
        self.statement.setText(visible_line(" \N{MIDDLE DOT} ".join(said)))
        self.statement.setToolTip(tool_tip("\n".join(said)))
        self._on_selection()

    def _add_group(self, title: str, rows: list[Diagnosis], selected: Diagnosis | None) -> None:
        exact = sum(one.trust.mark is Mark.EXACT for one in rows)
        group = QTreeWidgetItem(self.tree, [title, f"{exact} of {len(rows)} exact"])
        group.setFlags(Qt.ItemFlag.ItemIsEnabled)
        group.setForeground(1, colour(self._theme.dim))
        for one in rows:
            item = self._add(group, one)
            if selected is not None and one.analysis is selected.analysis:
                self.tree.setCurrentItem(item)
        group.setExpanded(True)

    def _add(self, group: QTreeWidgetItem, one: Diagnosis) -> QTreeWidgetItem:
        mark, theme = one.trust.mark, self._theme
        command = one.capture.command if one.capture is not None else ""
        says = one.says[:1].upper() + one.says[1:]
        item = QTreeWidgetItem(group, [
            one.analysis.title, f"{_symbol(mark)}  {TITLES[mark]}", visible_line(says or one.analysis.question),
            visible_line(command),
        ])  # fmt: skip
        item.setForeground(1, colour(_colour_of(mark, theme)))
        if not says:
            item.setForeground(2, colour(theme.dim))
        item.setToolTip(0, tool_tip(one.analysis.question))
        item.setToolTip(2, tool_tip(says))
        item.setToolTip(3, tool_tip(command))
        item.setData(0, _ROW, one)
        return item

    def _selected(self) -> Diagnosis | None:
        items = self.tree.selectedItems()
        row = items[0].data(0, _ROW) if items else None
        return row if isinstance(row, Diagnosis) else None

    def _line(self) -> CaptureLine | None:
        """Return the capture for the selected row; without one that for all that is not exact."""
        one, found = self._selected(), self._opened.doctor.found or ()
        return one.capture if one is not None else capture_for(self._opened.trace, found)

    @Slot()
    def _on_selection(self) -> None:
        line, one = self._line(), self._selected()
        what = one.analysis.title.lower() if one is not None else "all that is not exact"
        for button, does in ((self.copy_line, "Copy the tracelogger command line"), (self.capture, "Capture")):
            button.setEnabled(line is not None)
            button.setToolTip(tool_tip(f"{does} for {what}" + (f":\n{line.command}" if line is not None else "")))

    @Slot()
    def _on_copy(self) -> None:
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
        for title, run in (("Copy command", self._on_copy), ("Copy rules", self._on_copy_rules),
                           ("New capture with these rules\N{HORIZONTAL ELLIPSIS}", self._on_capture)):  # fmt: skip
            menu.addAction(title, run).setEnabled(self._line() is not None)
        menu.popup(self.tree.viewport().mapToGlobal(position))

    @Slot()
    def _on_copy_rules(self) -> None:
        if (line := self._line()) is not None:
            QGuiApplication.clipboard().setText(line.rules)


def _symbol(mark: Mark) -> str:
    """Return a sign beside the words, so that colour alone shows nothing."""
    if mark is Mark.EXACT:
        return "="
    return sign(mark) if mark.is_answer else "\N{MULTIPLICATION SIGN}"


def _colour_of(mark: Mark, theme: Theme) -> int:
    if mark is Mark.EXACT:
        return theme.dim
    return theme.warning if mark.is_answer else theme.error
