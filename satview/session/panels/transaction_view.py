"""What the panel of transactions shows: which kind of rows, filter, order and range; worked out in the background."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from PySide6.QtCore import QObject, Slot

from satview.answers.latencies import LatencyFilter, latency_figures, latency_table
from satview.answers.table import Table
from satview.answers.transactions import TransactionFilter, transaction_table
from satview.base.time import TimeWindow
from satview.session.open_trace import OpenTrace
from satview.session.questions import Answer
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace


class RowMode(StrEnum):
    """What the rows are; the values are titles."""

    MESSAGES = "Messages"
    LATENCIES = "Pulses and interrupts"
    FIGURES = "Latencies by source"


@dataclass(frozen=True, slots=True, eq=False)
class FoundRows:
    """What was found.

    Attributes:
        mode: What the rows are.
        window: The range they are in; None = the whole trace.
        total: How many there are without filter and range.
        table: The rows, in the order they show.
    """

    mode: RowMode
    window: TimeWindow | None
    total: int
    table: Table


class TransactionView(Answer):
    """Follows filter, order and selected range once somebody looks.

    Attributes:
        mode: What the rows are.
        client, server: Filter of messages; in the other modes `server` is that of threads.
        number: Type of message, or number of the interrupt; None = any.
        found: What shows; None = nothing yet.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self.mode = RowMode.MESSAGES
        self.client = self.server = ""
        self.number: int | None = None
        self.found: FoundRows | None = None
        self._orders: dict[RowMode, tuple[str, bool]] = {}

    @property
    def order(self) -> tuple[str, bool]:
        """The column that rows are sorted by, empty for that of the question, and whether the largest come first."""
        return self._orders.get(self.mode, ("", True))

    def set_mode(self, mode: RowMode, client: str = "", server: str = "", number: int | None = None) -> None:
        """Show rows of another kind, those that pass a filter."""
        if mode is not self.mode:
            self.mode, self.found = mode, None
            self.client, self.server, self.number = client, server, number
            self.start()

    def set_filter(self, client: str, server: str, number: int | None) -> None:
        """Show the rows that pass a filter."""
        if (client, server, number) != (self.client, self.server, self.number):
            self.client, self.server, self.number = client, server, number
            self.start()

    def sort(self, name: str, *, descending: bool) -> None:
        """Show the rows in the order of a column."""
        if (name, descending) != self.order:
            self._orders[self.mode] = name, descending
            self.start()

    @Slot()
    def start(self) -> None:
        """Look for what is to be shown now."""
        window = self._opened.selection.time_range
        requested: TransactionFilter | LatencyFilter = LatencyFilter(self.number, self.server, window)
        if self.mode is RowMode.MESSAGES:
            requested = TransactionFilter(self.client, self.server, self.number, window)
        self._start(partial(_find, self._opened.trace, self.mode, requested, self.order))

    def _take(self, result: object) -> None:
        self.found = result if isinstance(result, FoundRows) else None


def _find(
    trace: Trace, mode: RowMode, requested: TransactionFilter | LatencyFilter, order: tuple[str, bool],
    _is_cancelled: IsCancelled, _report: Report,
) -> FoundRows:  # fmt: skip
    """Run in the task; holds the trace, no widget."""
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
