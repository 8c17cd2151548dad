"""The panel Transactions: messages, pulses and interrupts with their latencies, slowest first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLineEdit, QSizePolicy, QTabBar, QWidget

from satview.answers.latencies import LatencyFilter, latency_figures, latency_table
from satview.answers.table import Table
from satview.answers.transactions import TransactionFilter, transaction_table
from satview.base.safe_text import tool_tip
from satview.base.time import TimeWindow
from satview.gui.answer_table import AnswerPanel
from satview.gui.panel import PanelContext
from satview.gui.widgets import ElidedLabel, line_up, named
from satview.session.open_trace import OpenTrace
from satview.session.tasks import IsCancelled, LastAnswer
from satview.store.trace import Trace

# Computes the rows in the background.


class RowMode(StrEnum):
    """Kinds of rows: messages, latencies, or figures of latencies; the values are the titles of tabs."""

    MESSAGES = "Messages"
    LATENCIES = "Pulses and interrupts"
    FIGURES = "Latencies by source"


@dataclass(frozen=True, slots=True, eq=False)
class FoundRows:
    """The transactions or latencies that were found.

    Attributes:
        mode: Kind of rows.
        window: The range in which rows were searched for; None = the whole trace.
        total: Number of rows without filter and range; for FIGURES, the number of latencies that the table sums up.
        table: The rows, sorted.
    """

    mode: RowMode
    window: TimeWindow | None
    total: int
    table: Table


class TransactionView(LastAnswer[FoundRows]):
    """Finds the transactions or latencies for the present filter, order and selected range.

    Attributes:
        mode: Kind of rows.
        client, server: Filter for messages; in other modes `server` filters threads.
        number: Message type or interrupt number; None = any.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self.mode = RowMode.MESSAGES
        self.client = self.server = ""
        self.number: int | None = None
        self._sort_of_mode: dict[RowMode, tuple[str, bool]] = {}

    @property
    def order(self) -> tuple[str, bool]:
        """Column to sort by (empty = default of the question), and True for descending order."""
        return self._sort_of_mode.get(self.mode, ("", True))

    def set_mode(self, mode: RowMode, client: str = "", server: str = "", number: int | None = None) -> None:
        """Switch to another kind of rows, and find the transactions or latencies that match a filter."""
        if mode is not self.mode:
            self.mode, self.answer = mode, None
            self.client, self.server, self.number = client, server, number
            self.start()

    def set_filter(self, client: str, server: str, number: int | None) -> None:
        """Set the filter by names and number, and find the transactions or latencies that match it."""
        if (client, server, number) != (self.client, self.server, self.number):
            self.client, self.server, self.number = client, server, number
            self.start()

    def sort(self, name: str, *, descending: bool) -> None:
        """Sort the rows by a column."""
        if (name, descending) != self.order:
            self._sort_of_mode[self.mode] = name, descending
            self.start()

    @Slot()
    def start(self) -> None:
        """Start to find the transactions or latencies in the background."""
        window = self._opened.selection.time_range
        requested: TransactionFilter | LatencyFilter = LatencyFilter(self.number, self.server, window)
        if self.mode is RowMode.MESSAGES:
            requested = TransactionFilter(self.client, self.server, self.number, window)
        self._start(partial(_find, self._opened.trace, self.mode, requested, self.order))


def _find(
    trace: Trace, mode: RowMode, requested: TransactionFilter | LatencyFilter, order: tuple[str, bool],
    _is_cancelled: IsCancelled,
) -> FoundRows:  # fmt: skip
    """Return the transactions or latencies that match a request, sorted; runs in the background task."""
    if isinstance(requested, TransactionFilter):
        rows = transaction_table(trace, requested)
    else:
        rows = latency_table(trace, requested)
    table = latency_figures(trace, rows) if mode is RowMode.FIGURES else rows
    name, descending = order
    if name or table.question.sort_name:
        table = table.sorted_by(name or table.question.sort_name, descending)
    total = len(rows) if mode is RowMode.FIGURES else rows.total
    return FoundRows(mode, requested.window, total, table)


# The input for the filter.


LineFilter = tuple[str, str, int | None]  # client, server or thread, number
NO_FILTER: Final[LineFilter] = ("", "", None)
_TYPING_MS: Final = 200  # delay after the last letter
_FIELD_PX: Final = 190
_NAME_TIP: Final = "Part of a name, a pid, or PID:TID"
_NUMBER_TIP: Final = "A number, in decimal or with 0x"


class FilterLine(QWidget):
    """A line with three input fields for the filter, and a statement about the transactions or latencies shown.

    Attributes:
        client, server, number: Input fields. `client` is for messages only; for other rows, `server` is the thread.
        requested: The last valid filter.

    Signals:
        changed: `requested` changed.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.requested = NO_FILTER
        self._statement_text = ""
        self._typing = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._typing.timeout.connect(self._on_typed)
        self.client, self.server, self.number = (QLineEdit(self) for _ in range(3))
        for field in (self.client, self.server, self.number):
            field.setMaximumWidth(_FIELD_PX)
            field.setClearButtonEnabled(True)
            field.setToolTip(tool_tip(_NUMBER_TIP if field is self.number else _NAME_TIP))
            field.textChanged.connect(self._typing.start)
            field.returnPressed.connect(self._on_typed)
        self.statement = ElidedLabel(self, role="dim")
        self.statement.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        line_up(QHBoxLayout(self), (self.client, 1), (self.server, 1), (self.number, 1), 6, (self.statement, 2),
                margins=(8, 3, 8, 3), spacing=6)  # fmt: skip
        self.begin(is_of_messages=True)

    def begin(self, *, is_of_messages: bool) -> None:
        """Clear the filter, and set the fields up for messages or latencies."""
        for field in (self.client, self.server, self.number):
            field.clear()
        self._typing.stop()
        self.requested = NO_FILTER
        self.client.setVisible(is_of_messages)
        names = ("Client: name or pid", "Server: name or pid", "Type: 0x100") if is_of_messages else (
            "", "Thread: name or pid", "Interrupt: 0x1b")  # fmt: skip
        for field, text in zip((self.client, self.server, self.number), names, strict=True):
            field.setPlaceholderText(text)
            field.setAccessibleName(text)

    def say(self, text: str) -> None:
        """Show a statement about the transactions or latencies in the table."""
        self._statement_text = text
        self.statement.setText(text)

    @Slot()
    def _on_typed(self) -> None:
        self._typing.stop()
        text = self.number.text().strip()
        try:
            number = None if not text else int(text, 16) if text[:2].lower() == "0x" else int(text)
        except ValueError:
            self.statement.setText("Write the number in decimal, or in hexadecimal with 0x")
            return
        self.statement.setText(self._statement_text)
        requested = (self.client.text(), self.server.text(), number)
        if requested != self.requested:
            self.requested = requested
            self.changed.emit()


# The panel.


class TransactionsPanel(AnswerPanel):
    """The table of transactions and latencies. It is computed only while the panel is visible."""

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
        self._lay_out(self._head(), self.line, self.stack)
        self.view.changed.connect(self._on_found)
        self._opened.selection.range_changed.connect(self._on_range)

    def reload(self) -> None:
        """Find the transactions or latencies, initially and after the trace was refreshed."""
        self._is_stale = False
        self.view.start()

    def sort(self, name: str, *, descending: bool) -> None:
        """Sort the rows by a column."""
        self.view.sort(name, descending=descending)

    def _head(self) -> QHBoxLayout:
        self.tabs = named(QTabBar(self, expanding=False, drawBase=False), "Messages or latencies")
        for mode in RowMode:
            self.tabs.setTabData(self.tabs.addTab(mode.value), mode)
        self.tabs.currentChanged.connect(self._on_tab)
        head = line_up(QHBoxLayout(), (self.tabs, 1), margins=(2, 0, 8, 0))
        self.add_buttons(head, self.line.statement)
        return head

    @Slot()
    def _on_found(self) -> None:
        answer, view = self.view.answer, self.view
        if answer is None:
            self.show_page(view.error or "Looking\N{HORIZONTAL ELLIPSIS}")
            return
        if view.is_busy:  # keep the old rows until the search ends
            return
        if self._shown is not answer:
            self._shown = answer
            name, descending = view.order
            self.show_answer(answer.table, name or answer.table.question.sort_name, is_descending=descending)
        self._show_count()

    def _show_count(self) -> None:
        """Show how many transactions or latencies there are, or why there are none."""
        answer = self.view.answer
        assert answer is not None
        where = "the selected range" if answer.window is not None else "the trace"
        kind = "messages" if answer.mode is RowMode.MESSAGES else "pulses and interrupts that wake threads"
        missing = answer.table.missing
        doubts = "".join(f"; {doubt}" for doubt in (*(f"not all: {line}" for line in missing), *answer.table.doubts()))
        if answer.mode is RowMode.FIGURES:
            self.line.say(f"Of {answer.total:,} {kind} in {where}{doubts}")
        else:
            self.line.say(f"{len(answer.table):,} of {answer.total:,} {kind}" + (
                ", those that begin in the selected range" if answer.window is not None else "") + doubts)  # fmt: skip
        fits = " that fit the filter" if self.line.requested != NO_FILTER else ""
        if answer.table.cannot_tell and not answer.total:
            self.show_page(answer.table.says_why_empty)
        else:
            nothing = (f"There are no {kind} in {where}{fits}.", *(f"Not all: {line}." for line in missing))
            self.show_page("" if len(answer.table) else "\n".join(nothing))

    @Slot()
    def _on_filter(self) -> None:
        self.view.set_filter(*self.line.requested)

    @Slot(int)
    def _on_tab(self, number: int) -> None:
        mode = RowMode(self.tabs.tabData(number))  # Qt converts the StrEnum to str
        self.line.begin(is_of_messages=mode is RowMode.MESSAGES)
        self.view.set_mode(mode, *self.line.requested)

    @Slot()
    def _on_range(self) -> None:
        self._is_stale = True
        self._catch_up()

    @Slot()
    def _catch_up(self) -> None:
        """Find the transactions or latencies in a changed range, if the panel is visible and not behind another tab."""
        if self._is_stale and self.view.answer is not None and not self.visibleRegion().isEmpty():
            self.reload()

    def showEvent(self, event: QShowEvent) -> None:
        """Connect to the dock's signal of visibility, which is also sent when the panel comes to the front of tabs."""
        super().showEvent(event)
        dock = self.parentWidget()
        if isinstance(dock, QDockWidget) and dock is not self._dock:
            self._dock = dock
            dock.visibilityChanged.connect(self._catch_up, Qt.ConnectionType.QueuedConnection)  # after it is laid out
