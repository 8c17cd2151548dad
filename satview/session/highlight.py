"""One transaction or latency that is drawn over the lanes: its arrows, and how long each part of it took."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from satview.answers.latencies import QUESTION as LATENCIES
from satview.answers.table import Known, Table
from satview.answers.transactions import QUESTION as TRANSACTIONS
from satview.base.time import TimeWindow
from satview.linkage.chain import Hop
from satview.linkage.latencies import Latencies, latencies
from satview.linkage.table import Certainty
from satview.linkage.transactions import Transactions, transactions
from satview.session.selection import Selection
from satview.store.trace import Trace


@dataclass(frozen=True, slots=True)
class Leg:
    """A part of it, on the lane of a thread.

    Attributes:
        thread: Row of the thread table.
        from_row, to_row: The events at its ends.
        title: What it is: `queued`, `service`.
    """

    thread: int
    from_row: int
    to_row: int
    title: str


@dataclass(frozen=True, slots=True)
class Highlighted:
    """What is drawn.

    Attributes:
        event: The event that is selected with it; it goes when another one is.
        hops: Its arrows.
        legs: Its parts.
    """

    event: int
    hops: tuple[Hop, ...]
    legs: tuple[Leg, ...]


class Highlight(QObject):
    """What is drawn over the lanes besides the way of the selected event; it goes when something else is selected.

    Signals:
        changed: Something else, or nothing any more.
    """

    changed = Signal()

    def __init__(self, selection: Selection, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self.shown: Highlighted | None = None
        selection.changed.connect(self._on_selection)

    def show(self, shown: Highlighted) -> None:
        """Draw something; its event must be selected before."""
        self.shown = shown
        self.changed.emit()

    def forget(self) -> None:
        """Draw nothing."""
        if self.shown is not None:
            self.shown = None
            self.changed.emit()

    @Slot()
    def _on_selection(self) -> None:
        if self.shown is not None and self._selection.event != self.shown.event:
            self.forget()


def of_row(table: Table, row: int) -> Highlighted:
    """Return what is to be drawn of a row of an answer: its event, and legs that are not over up to their bound."""
    trace, position = table.trace, int(table.positions[row])
    legs: tuple[tuple[str, str, NDArray[np.int64], NDArray[np.int64]], ...]
    if table.question is TRANSACTIONS:
        sent = transactions(trace)
        shown, client, received = of_transaction(sent, position), sent.client, sent.receive_row
        legs = (("queued", "queued", sent.send_row, client), ("service", "in service", received, client),
                ("service", "service", received, sent.server), ("reply", "reply", sent.reply_row, client))  # fmt: skip
    elif table.question is LATENCIES:
        ways = latencies(trace)
        shown, thread = of_latency(ways, position), ways.thread
        legs = (("scheduling", "to RUNNING", ways.ready_row, thread), ("receipt", "to receipt", ways.pulse_row, thread))
    else:
        return Highlighted(table.event(row), (), ())
    one, times = table.at(table.positions[row : row + 1]), trace.events.time_cycles
    unfinished = []
    for name, title, begins, threads in legs:
        if table.known(row, name) is Known.AT_LEAST and threads[position] > 0:
            begin = int(begins[position])
            end = int(np.searchsorted(times, times[begin] + one[f"{name}_cycles"][0]))
            unfinished.append(Leg(int(threads[position]), begin, min(end, len(times) - 1), title))
    return Highlighted(shown.event, shown.hops, (*shown.legs, *unfinished))


def of_transaction(made: Transactions, position: int) -> Highlighted:
    """Return what is to be drawn of one transaction: over the client's lane and over the server's."""
    sent, received, replied, done = (int(column[position]) for column in (
        made.send_row, made.receive_row, made.reply_row, made.done_row))  # fmt: skip
    client, server = int(made.client[position]), int(made.server[position])
    certainty = Certainty(int(made.certainty[position]))
    hops = [Hop(first, last, certainty) for first, last in ((sent, received), (replied, done)) if min(first, last) >= 0]
    legs = [Leg(thread, first, last, title) for thread, first, last, title in (
        (client, sent, received, "queued"), (client, received, replied, "in service"),
        (client, replied, done, "reply"), (server, received, replied, "service"),
    ) if min(first, last) >= 0 and thread > 0]  # fmt: skip
    return Highlighted(sent, tuple(hops), tuple(legs))


def of_latency(made: Latencies, position: int) -> Highlighted:
    """Return what is to be drawn of one latency: over the lane of the thread that answers."""
    names = (("handler_row", "to handler"), ("handler_exit_row", "handler"), ("pulse_row", "to pulse"),
             ("ready_row", "to READY"), ("running_row", "to RUNNING"), ("received_row", "to receipt"))  # fmt: skip
    thread, last = int(made.thread[position]), int(made.cause_row[position])
    first, legs = int(made.first_row[position]), []
    for name, title in names:
        row = int(getattr(made, name)[position])
        if row >= 0 and last >= 0 and thread > 0:
            legs.append(Leg(thread, last, row, title))
        last = row if row >= 0 else last
    answer = int(made.ready_row[position]) if made.ready_row[position] >= 0 else int(made.received_row[position])
    hops = (Hop(first, answer, Certainty(int(made.certainty[position]))),) if answer >= 0 else ()
    return Highlighted(first, hops, tuple(legs))


def window_of(trace: Trace, shown: Highlighted) -> TimeWindow:
    """Return the time that it takes: from its first event to its last, at least a cycle."""
    rows = [shown.event, *(row for hop in shown.hops for row in (hop.from_row, hop.to_row)),
            *(row for leg in shown.legs for row in (leg.from_row, leg.to_row))]  # fmt: skip
    times = trace.events.time_cycles
    start, end = int(times[min(rows)]), int(times[max(rows)])
    return TimeWindow(start, max(end, start + 1))
