"""Messages, pulses and interrupts, the slowest first: filter, table, and the way of a row drawn over the lanes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QTabBar, QVBoxLayout, QWidget

from satview.gui.answer_table.panel import AnswerPanel
from satview.gui.panel import PanelContext
from satview.gui.transactions.filter_line import NO_FILTER, FilterLine
from satview.session.panels.transaction_view import FoundRows, RowMode, TransactionView


class TransactionsPanel(AnswerPanel):
    """The table of transactions and latencies. Works only while it can be seen.

    Attributes:
        view: What is looked for.
        line: The filter, and what it leaves.
    """

    waits_to_be_seen = True

    saved_fields = ("tabs", "line.client", "line.server", "line.number")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, "Transactions", parent)
        self.setMinimumSize(120, 64)
        self.view = TransactionView(self._opened, self)
        self._is_stale = True
        self._shown: FoundRows | None = None
        self._dock: QDockWidget | None = None
        self.line = FilterLine(self)
        self.line.changed.connect(self._on_filter)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(self._head())
        layout.addWidget(self.line)
        layout.addWidget(self.stack, 1)
        self.view.changed.connect(self._on_found)
        self._opened.selection.range_changed.connect(self._on_range)

    def reload(self) -> None:
        """Look for rows, at first and in a refreshed trace."""
        self._is_stale = False
        self.view.start()

    def close_down(self) -> None:
        """Cancel the background tasks."""
        super().close_down()
        self.line.close_down()
        self.view.close()

    def sort(self, name: str, *, descending: bool) -> None:
        """Show the rows in the order of a column."""
        self.view.sort(name, descending=descending)

    def _head(self) -> QHBoxLayout:
        self.tabs = QTabBar(self)
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.setAccessibleName("Messages or latencies")
        for mode in RowMode:
            self.tabs.setTabData(self.tabs.addTab(mode.value), mode)
        self.tabs.currentChanged.connect(self._on_tab)
        head = QHBoxLayout()
        head.setContentsMargins(2, 0, 8, 0)
        head.addWidget(self.tabs, 1)
        self.add_buttons(head, self.line.statement)
        return head

    @Slot()
    def _on_found(self) -> None:
        found, view = self.view.found, self.view
        if found is None:
            self.show_page(view.error or "Looking\N{HORIZONTAL ELLIPSIS}")
            return
        if view.is_busy:  # what shows stays until there is better
            return
        if self._shown is not found:
            self._shown = found
            name, descending = view.order
            self.show_answer(found.table, name or found.table.question.sort_name, is_descending=descending)
        self._say()

    def _say(self) -> None:
        """Say what the filter leaves, or why there is nothing."""
        found = self.view.found
        assert found is not None
        where = "the selected range" if found.window is not None else "the trace"
        kind = "messages" if found.mode is RowMode.MESSAGES else "pulses and interrupts that wake threads"
        doubts = "".join(f"; {doubt}" for doubt in found.table.doubts())
        if found.mode is RowMode.FIGURES:
            self.line.say(f"Of {found.total:,} {kind} in {where}{doubts}")
        else:
            self.line.say(f"{len(found.table):,} of {found.total:,} {kind}" + (
                ", those that begin in the selected range" if found.window is not None else "") + doubts)  # fmt: skip
        fits = " that fit the filter" if self.line.requested != NO_FILTER else ""
        if found.table.cannot_tell and not found.total:
            self.show_page(found.table.says_why_empty)
        else:
            self.show_page("" if len(found.table) else f"There are no {kind} in {where}{fits}.")

    @Slot()
    def _on_filter(self) -> None:
        self.view.set_filter(*self.line.requested)

    @Slot(int)
    def _on_tab(self, number: int) -> None:
        mode = RowMode(self.tabs.tabData(number))  # Qt keeps the text of it
        self.line.begin(is_of_messages=mode is RowMode.MESSAGES)
        self.view.set_mode(mode, *self.line.requested)

    @Slot()
    def _on_range(self) -> None:
        self._is_stale = True
        self._catch_up()

    @Slot()
    def _catch_up(self) -> None:
        """Look for the rows of another range, once the panel can be seen; one behind another tab cannot."""
        if self._is_stale and self.view.found is not None and not self.visibleRegion().isEmpty():
            self.reload()

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the dock: it knows when the panel comes to the front of others."""
        super().showEvent(event)
        dock = self.parentWidget()
        if isinstance(dock, QDockWidget) and dock is not self._dock:
            self._dock = dock
            dock.visibilityChanged.connect(self._catch_up, Qt.ConnectionType.QueuedConnection)  # after it is laid out
