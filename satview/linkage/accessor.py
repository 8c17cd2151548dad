"""The links of a trace for scripts: one table per kind, made when first requested."""

from __future__ import annotations

from satview.linkage.blockers import Blockers, blockers
from satview.linkage.latencies import Latencies, latencies
from satview.linkage.table import LinkKind, LinkTable
from satview.linkage.trace_links import link_table
from satview.linkage.transactions import Transactions, transactions
from satview.store.trace import Trace


def links(trace: Trace) -> Links:
    """Return what belongs together in a trace: causes and effects, one table of event rows per kind."""
    return Links(trace)


class Links:
    """What belongs together in a trace: tables of event rows, each computed at the first use and cached with the trace.

        found = satview.links(trace)
        woken = found.wake_ups
        waker = woken.from_row[woken.ended_by(rows)]

    Every table has `from_row`, `to_row` and `certainty` (`satview.linkage.table.LinkTable`); no link crosses a range
    in which events are missing.

    Args:
        trace: The events.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def of(self, kind: LinkKind) -> LinkTable:
        """Return the table of one kind."""
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
        """Messages that are sent and the ends of their clients' calls."""
        return self.of(LinkKind.ROUND_TRIP)

    @property
    def pulses(self) -> LinkTable:
        """Pulses that are sent and their receipts."""
        return self.of(LinkKind.PULSE)

    @property
    def deliveries(self) -> LinkTable:
        """Kernel calls, timers and interrupts and the pulses and signals that they deliver."""
        return self.of(LinkKind.DELIVERY)

    @property
    def wake_ups(self) -> LinkTable:
        """Causes that end waits of threads, and the events that make the threads ready, or run at once."""
        return self.of(LinkKind.WAKE_UP)

    @property
    def holds(self) -> LinkTable:
        """Calls that get a mutex and those that give it up."""
        return self.of(LinkKind.HOLD)

    @property
    def creations(self) -> LinkTable:
        """Kernel calls and the threads and processes that are created in them."""
        return self.of(LinkKind.CREATION)

    @property
    def blockers(self) -> Blockers:
        """Every wait of every thread, and whom it is for."""
        return blockers(self.trace)

    @property
    def transactions(self) -> Transactions:
        """Every message with its receipt, reply, times, server and the transaction it is part of."""
        return transactions(self.trace)

    @property
    def latencies(self) -> Latencies:
        """Every pulse, and every interrupt that ends InterruptWait(), from its cause to the thread that answers."""
        return latencies(self.trace)
