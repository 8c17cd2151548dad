"""The links of a trace for scripts: one table per kind, computed at the first request."""

from __future__ import annotations

from satview.linkage.blockers import Blockers, blockers
from satview.linkage.chain import link_table
from satview.linkage.latencies import Latencies, latencies
from satview.linkage.table import LinkKind, LinkTable
from satview.linkage.transactions import Transactions, transactions
from satview.store.trace import Trace


def links(trace: Trace) -> Links:
    """Return the links between the events of a trace: one table of event rows per kind of link."""
    return Links(trace)


class Links:
    """The links between the events of a trace: tables of event rows, computed at the first use and then cached.

        wake_ups = satview.links(trace).wake_ups
        waker = wake_ups.from_row[wake_ups.ended_by(rows)]

    Every table has `from_row`, `to_row` and `certainty` (`satview.linkage.table.LinkTable`); no link crosses a range
    in which events are missing.

    Args:
        trace: The events.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def of(self, kind: LinkKind) -> LinkTable:
        """Return the table of all links of one kind."""
        return link_table(self.trace, kind)

    @property
    def calls(self) -> LinkTable:
        """Kernel calls and their exits."""
        return self.of(LinkKind.CALL)

    @property
    def interrupts(self) -> LinkTable:
        """Entries of interrupts and their exits."""
        return self.of(LinkKind.INTERRUPT)

    @property
    def handlers(self) -> LinkTable:
        """Entries of interrupt handlers and their exits."""
        return self.of(LinkKind.HANDLER)

    @property
    def dispatches(self) -> LinkTable:
        """Entries of interrupts and of their first handlers."""
        return self.of(LinkKind.DISPATCH)

    @property
    def states(self) -> LinkTable:
        """Events that begin states of threads, and the events that end them."""
        return self.of(LinkKind.STATE)

    @property
    def messages(self) -> LinkTable:
        """Messages that are sent and their receipts."""
        return self.of(LinkKind.MESSAGE)

    @property
    def replies(self) -> LinkTable:
        """Receipts of messages and the replies or errors that answer them."""
        return self.of(LinkKind.REPLY)

    @property
    def round_trips(self) -> LinkTable:
        """Messages that are sent and the ends of the kernel calls that sent them."""
        return self.of(LinkKind.ROUND_TRIP)

    @property
    def pulses(self) -> LinkTable:
        """Pulses that are sent and their receipts."""
        return self.of(LinkKind.PULSE)

    @property
    def deliveries(self) -> LinkTable:
        """Kernel calls, timer expiries and interrupts, and the pulses and signals that they deliver."""
        return self.of(LinkKind.DELIVERY)

    @property
    def wake_ups(self) -> LinkTable:
        """Causes that end waits of threads, and the events that make the threads ready, or run at once."""
        return self.of(LinkKind.WAKE_UP)

    @property
    def holds(self) -> LinkTable:
        """Kernel calls that lock a mutex and the calls that unlock it."""
        return self.of(LinkKind.HOLD)

    @property
    def creations(self) -> LinkTable:
        """Kernel calls and the threads and processes that they create."""
        return self.of(LinkKind.CREATION)

    @property
    def blockers(self) -> Blockers:
        """Every wait of every thread, and the thread or process that it waits for."""
        return blockers(self.trace)

    @property
    def transactions(self) -> Transactions:
        """Every message with its receipt, reply, times, server and parent transaction."""
        return transactions(self.trace)

    @property
    def latencies(self) -> Latencies:
        """The times from cause to answering thread, for each pulse and each interrupt that ends InterruptWait()."""
        return latencies(self.trace)
