"""Transactions, and latencies of pulses and interrupts, as rows of a table: texts are made when they show."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.latency_list import LEGS as LATENCY_LEGS
from satview.analysis.latency_list import LatencyFilter, latency_list, sources
from satview.analysis.latency_list import thread_name as answering_thread
from satview.analysis.transaction_list import (
    LEGS,
    TransactionFilter,
    by_values,
    client_name,
    nested,
    outcome,
    server_name,
    transaction_list,
    type_text,
)
from satview.base.dataclass import dataclass
from satview.base.time import format_duration, format_time
from satview.linkage.latencies import latencies
from satview.linkage.table import Certainty
from satview.linkage.transactions import transactions
from satview.session.highlight import Highlighted, of_latency, of_transaction
from satview.store.trace import Trace

Positions = NDArray[np.int64]
_RESOLUTION_NS: Final = 1


@dataclass(frozen=True, slots=True)
class RowColumn:
    """One column.

    Attributes:
        key: Stable name.
        title: For people.
        help: What it means, one sentence.
        is_text: Its values are words, which are at the left and are sorted from A to Z first.
    """

    key: str
    title: str
    help: str
    is_text: bool = False


class RowSource(ABC):
    """Rows of one kind; made in the background, read by the window.

    Attributes:
        trace: The events.
        total: How many rows there are without a filter.
        columns: What the table shows.
        first_sort: Column by which it is sorted at first, largest first.
        is_tree: Whether rows may have others below them.
    """

    columns: tuple[RowColumn, ...]
    first_sort: str
    is_tree = False

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.total = 0

    @abstractmethod
    def text(self, position: int, key: str) -> str:
        """Return the text of a cell; empty where the value is not known."""

    @abstractmethod
    def values(self, key: str) -> NDArray[np.integer]:
        """Return what a column is sorted by, one for every row; below 0 = not known.

        Returns:
            Integers (rows,).
        """

    @abstractmethod
    def event(self, position: int) -> int:
        """Return the event that a row begins with."""

    @abstractmethod
    def shown(self, position: int) -> Highlighted:
        """Return what is to be drawn of a row over the lanes."""

    def children(self, _position: int) -> Positions:
        """Return the rows below a row."""
        return np.empty(0, np.int64)

    def has_children(self, _position: int) -> bool:
        """Return whether there are rows below a row."""
        return False

    def sorted(self, positions: Positions, key: str, *, descending: bool) -> Positions:
        """Return rows in the order of a column, equal ones in that of time."""
        return by_values(np.sort(positions), self.values(key), descending=descending)

    def _time(self, event: int) -> str:
        return format_time(self.trace.clock.ns(int(self.trace.events.time_cycles[event])), _RESOLUTION_NS)

    def _duration(self, cycles: int) -> str:
        return format_duration(self.trace.clock.duration_ns(cycles)) if cycles >= 0 else ""

    def _name_ranks(self) -> NDArray[np.int64]:
        """Return for every thread where its label comes among all of them."""
        labels = [self.trace.thread_name(row).casefold() for row in range(len(self.trace.threads))]
        return np.unique(np.array(labels), return_inverse=True)[1].astype(np.int64)


class TransactionRows(RowSource):
    """Transactions; below each are those that the server sent on its behalf."""

    columns = (
        RowColumn("client", "Client", "The thread that sent the message.", is_text=True),
        RowColumn("server", "Server", "The thread that received it, else the process it was sent to.", is_text=True),
        RowColumn("type", "Type", "First word of the message, where the call's event shows it."),
        RowColumn("start", "Sent", "When it was sent."),
        *(RowColumn(key, title, text) for key, (_, title, text) in LEGS.items()),
        RowColumn("nested", "Nested", "Messages that the server sent on its behalf."),
        RowColumn("outcome", "Outcome", "How far the trace shows it to have come.", is_text=True),
        RowColumn("certainty", "Certainty", "How sure receipt and reply are.", is_text=True),
    )
    first_sort = "round-trip"
    is_tree = True

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.made, self._nested = transactions(trace), nested(trace)
        self.total = len(self.made)
        self._ranks = self._name_ranks()

    def text(self, position: int, key: str) -> str:
        """Return the text of a cell."""
        made = self.made
        if key in LEGS:
            return self._duration(int(getattr(made, LEGS[key][0])[position]))
        match key:
            case "client":
                return client_name(self.trace, made, position)
            case "server":
                return server_name(self.trace, made, position)
            case "type":
                return type_text(int(made.message_type[position]))
            case "start":
                return self._time(int(made.send_row[position]))
            case "nested":
                count = len(self._nested.of(position))
                return f"{count:,}" if count else ""
            case "outcome":
                return outcome(made, position)
        return Certainty(int(made.certainty[position])).name.lower()

    def values(self, key: str) -> NDArray[np.integer]:
        """Return what a column is sorted by.

        Returns:
            Integers (rows,).
        """
        made = self.made
        if key in LEGS:
            return np.asarray(getattr(made, LEGS[key][0]))
        if key in ("client", "server"):
            thread = getattr(made, key)
            return np.where(thread > 0, self._ranks[thread], -1)
        if key == "outcome":
            moments = np.stack((made.receive_row, made.reply_row, made.done_row))
            return np.asarray((moments >= 0).sum(axis=0))
        other: dict[str, NDArray[np.integer]] = {
            "type": made.message_type, "start": made.send_row, "nested": self._nested.counts,
            "certainty": made.certainty,
        }  # fmt: skip
        return other[key]

    def event(self, position: int) -> int:
        """Return the event SND_MESSAGE."""
        return int(self.made.send_row[position])

    def shown(self, position: int) -> Highlighted:
        """Return arrows and legs of a transaction."""
        return of_transaction(self.made, position)

    def children(self, position: int) -> Positions:
        """Return the transactions sent on behalf of one."""
        return self._nested.of(position)

    def has_children(self, position: int) -> bool:
        """Return whether any was."""
        return bool(self._nested.start[position + 1] > self._nested.start[position])


class LatencyRows(RowSource):
    """Pulses, and interrupts that make threads ready."""

    columns = (
        RowColumn("source", "Source", "The interrupt, the timer, or the thread that sends the pulse.", is_text=True),
        RowColumn("thread", "Thread", "The thread that receives it, or is made ready by it.", is_text=True),
        RowColumn("start", "Start", "When it began."),
        *(RowColumn(key, LATENCY_LEGS[key][1], LATENCY_LEGS[key][2]) for key in ("total", *list(LATENCY_LEGS)[:-1])),
        RowColumn("certainty", "Certainty", "How sure the least certain of its links is.", is_text=True),
    )
    first_sort = "total"

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.made, self._sources = latencies(trace), sources(trace)
        self.total = len(self.made)
        self._first = self.made.first_row
        self._ranks = self._name_ranks()

    def text(self, position: int, key: str) -> str:
        """Return the text of a cell."""
        made = self.made
        if key in LATENCY_LEGS:
            return self._duration(int(getattr(made, LATENCY_LEGS[key][0])[position]))
        if key == "source":
            return self._sources.name(self.trace, position)
        if key == "thread":
            return answering_thread(self.trace, made, position)
        if key == "start":
            return self._time(int(self._first[position]))
        return Certainty(int(made.certainty[position])).name.lower()

    def values(self, key: str) -> NDArray[np.integer]:
        """Return what a column is sorted by.

        Returns:
            Integers (rows,).
        """
        made = self.made
        if key in LATENCY_LEGS:
            return np.asarray(getattr(made, LATENCY_LEGS[key][0]))
        if key == "source":  # interrupts by number, then timers, then threads
            return np.asarray(self._sources.kind << 33 | self._sources.value)
        if key == "thread":
            return np.where(made.thread > 0, self._ranks[made.thread], -1)
        return self._first if key == "start" else made.certainty

    def event(self, position: int) -> int:
        """Return the event that it begins with."""
        return int(self._first[position])

    def shown(self, position: int) -> Highlighted:
        """Return arrow and legs of a latency."""
        return of_latency(self.made, position)


def rows_of(trace: Trace, requested: TransactionFilter | LatencyFilter) -> tuple[RowSource, Positions]:
    """Return the rows of a kind, and those of them that pass a filter, in time order."""
    if isinstance(requested, TransactionFilter):
        return TransactionRows(trace), transaction_list(trace, requested, "time")
    return LatencyRows(trace), latency_list(trace, requested, "time")
