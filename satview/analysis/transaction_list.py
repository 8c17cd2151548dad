"""Transactions as people look for them: of some clients and servers, of one type, the slowest first, nested ones."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.sheets.sheet import Column, Columns, Kind, Sheet, Subject
from satview.analysis.thread_names import processes_named, threads_named
from satview.base.dataclass import dataclass
from satview.base.time import TimeWindow
from satview.linkage.table import Certainty
from satview.linkage.transactions import Transactions, transactions
from satview.store.trace import Trace

Positions = NDArray[np.int64]
LEGS: Final = {  # name of a leg to its column and what it is
    "queued": ("queued_cycles", "Queued", "From the send until the server receives it."),
    "service": ("service_cycles", "Service", "From the receipt until the server replies."),
    "reply": ("reply_cycles", "Reply", "From the reply until the client runs again."),
    "round-trip": ("round_trip_cycles", "Round trip", "From the send until the client runs again."),
}
SORTS: Final = (*LEGS, "time")
_OFF_NODE, _FAILED = 0, -1  # as process of the server


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Which transactions are requested.

    Attributes:
        client: Part of the client's label, a pid or `PID:TID`; empty = any.
        server: The same for the thread that received the message, or, while none did, the process it was sent to.
        message_type: First word of the message; None = any. Only calls whose events have it show it.
        window: When they were sent; None = at any time.
    """

    client: str = ""
    server: str = ""
    message_type: int | None = None
    window: TimeWindow | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """Which transactions were sent on behalf of which.

    Attributes:
        child: int64, transactions that have a parent, by parent, then in time order.
        start: int64 (n + 1,), the children of transaction i are `child[start[i]:start[i + 1]]`.
    """

    child: Positions
    start: Positions

    def of(self, transaction: int) -> Positions:
        """Return the transactions sent on behalf of one, in time order, int64."""
        return self.child[self.start[transaction] : self.start[transaction + 1]]

    @property
    def counts(self) -> Positions:
        """How many each has, int64 (n,)."""
        return np.diff(self.start)


def nested(trace: Trace) -> Nested:
    """Return which transactions are nested; computed at the first call and cached with the trace."""
    return trace.cached("analysis.nested_transactions", _nested)


def _nested(trace: Trace) -> Nested:
    parent = transactions(trace).parent
    child = np.flatnonzero(parent >= 0)
    child = child[np.argsort(parent[child], kind="stable")]
    return Nested(child, np.searchsorted(parent[child], np.arange(len(parent) + 1)))


def matching(trace: Trace, requested: TransactionFilter) -> NDArray[np.bool_]:
    """Return which transactions pass a filter, bool (n,)."""
    made = transactions(trace)
    passes = np.ones(len(made), np.bool_)
    if requested.client.strip():
        # Row -1, a client that is not known, is the last one here: no text means it.
        passes &= np.append(_known(threads_named(trace, requested.client)), False)[made.client]
    if requested.server.strip():
        of_thread = np.append(_known(threads_named(trace, requested.server)), False)[made.server]
        of_process = np.isin(made.server_pid, processes_named(trace, requested.server)) & (made.server_pid > 0)
        passes &= np.where(made.server > 0, of_thread, of_process)
    if requested.message_type is not None:
        passes &= made.message_type == requested.message_type
    if requested.window is not None:
        part = trace.rows_between(requested.window)
        passes &= (made.send_row >= part.start) & (made.send_row < part.stop)
    return passes


def _known(threads: NDArray[np.bool_]) -> NDArray[np.bool_]:
    threads = threads.copy()
    threads[0] = False  # means "not known"
    return threads


def in_order(
    made: Transactions, positions: Positions, sort: str = "round-trip", *, descending: bool = True
) -> Positions:
    """Return transactions in another order, int64; those of which the value is not known come last, equals by time.

    Args:
        made: All of them.
        positions: Those that are requested.
        sort: One of `SORTS`.
        descending: The slowest first; `time` always goes forward.
    """
    positions = np.sort(positions)
    return positions if sort == "time" else by_values(positions, getattr(made, LEGS[sort][0]), descending=descending)


def by_values(positions: Positions, values: NDArray[np.integer], *, descending: bool) -> Positions:
    """Return positions in the order of their values, int64; those with a value below 0, not known, come last.

    Args:
        positions: (k,), positions in `values`; equal ones keep their order.
        values: (n,).
        descending: The largest first.
    """
    selected = values[positions].astype(np.int64)
    key = np.where(selected < 0, np.iinfo(np.int64).max, -selected if descending else selected)
    return positions[np.argsort(key, kind="stable")]


def transaction_list(
    trace: Trace, requested: TransactionFilter | None = None, sort: str = "round-trip", top: int = 0
) -> Positions:
    """Return the transactions that pass a filter, the slowest first: positions in the columns of `transactions`, int64.

    Args:
        trace: The events.
        requested: Which; None = all.
        sort: One of `SORTS`.
        top: How many at most; 0 = all.
    """
    found = np.flatnonzero(matching(trace, requested or TransactionFilter()))
    return in_order(transactions(trace), found, sort)[: top or None]


def with_nested(trace: Trace, positions: Positions) -> tuple[Positions, Positions]:
    """Return transactions with all that are nested in them below each, and how deep each is nested, both int64.

    One that is nested in another of those given shows below that one only.
    """
    made = transactions(trace)
    rank = np.full(len(made) + 1, -1, np.int64)  # the last one is that of no parent
    rank[positions] = np.arange(len(positions))
    root, depth = np.where(rank[:-1] >= 0, np.arange(len(made)), -1), np.zeros(len(made), np.int64)
    above, level = made.parent.copy(), 1
    while (climbing := np.flatnonzero(above >= 0)).size:  # over levels of nesting
        own = climbing[rank[above[climbing]] >= 0]
        root[own], depth[own] = above[own], level
        above[climbing] = made.parent[above[climbing]]
        level += 1
    shown = np.flatnonzero(root >= 0)
    # While a client waits for its nested message it sends no other: below one root time order is the order of a tree.
    shown = shown[np.lexsort((shown, rank[root[shown]]))]
    return shown, depth[shown]


def server_name(trace: Trace, made: Transactions, position: int) -> str:
    """Return who got a message: the thread, else the process it was sent to."""
    if made.server[position] > 0:
        return trace.thread_name(int(made.server[position]))
    pid = int(made.server_pid[position])
    if pid == _OFF_NODE:
        return "another node"
    if pid == _FAILED:
        return "nobody: the send failed"
    row = trace.processes.row(pid)
    return trace.process_name(row) if row is not None else f"pid {pid}"


def client_name(trace: Trace, made: Transactions, position: int) -> str:
    """Return who sent a message."""
    return trace.thread_name(max(0, int(made.client[position])))


def type_text(message_type: int) -> str:
    """Return the first word of a message for people; empty where it is not known."""
    return f"0x{message_type:x}" if message_type >= 0 else ""


def outcome(made: Transactions, position: int) -> str:
    """Return how far a transaction is known to have come."""
    if made.done_row[position] >= 0:
        return "done" if made.reply_row[position] >= 0 else "ended without reply"
    if made.reply_row[position] >= 0:
        return "replied"
    return "received" if made.receive_row[position] >= 0 else "sent"


def transaction_sheet(trace: Trace, positions: Positions, depth: Positions | None = None) -> Sheet:
    """Return transactions as a table, one row each, in the order given.

    Args:
        trace: The events.
        positions: Which, positions in the columns of `transactions`.
        depth: How deep each is nested below the rows before it; None = no row is below another.
    """
    made, inner = transactions(trace), nested(trace)
    time = trace.events.time_cycles
    columns = Columns(positions, 1.0, trace.clock.durations_ns)
    deep = dict(zip(positions.tolist(), depth.tolist(), strict=True)) if depth is not None else {}
    columns.text("client", "Client", lambda i: "  " * deep.get(i, 0) + client_name(trace, made, i))
    columns.text("server", "Server", lambda i: server_name(trace, made, i))
    columns.text("type", "Type", lambda i: type_text(int(made.message_type[i])), "First word of the message.")
    start = trace.clock.ns_array(time[made.send_row[positions]])
    columns.made.append(Column("start_ns", "Sent", Kind.TIME, start, "When it was sent."))
    for key, (name, title, text) in LEGS.items():
        cycles = getattr(made, name)
        columns.duration(f"{key.replace('-', '_')}_ns", title, cycles, text, cycles >= 0)
    columns.text("outcome", "Outcome", lambda i: outcome(made, i), "How far the trace shows it to have come.")
    columns.count("nested", "Nested", inner.counts, "Messages that the server sent on its behalf.")
    columns.text("certainty", "Certainty", lambda i: Certainty(int(made.certainty[i])).name.lower())
    columns.number("event", "Event", made.send_row + 1, "Number of the event SND_MESSAGE.")
    parent = np.where(made.parent >= 0, made.send_row[made.parent] + 1, -1) if len(made) else made.parent
    columns.number("parent_event", "Within", parent, "Number of the SND_MESSAGE on behalf of which it was sent.")
    if depth is not None:
        columns.made.append(Column("depth", "Depth", Kind.COUNT, depth, "How deep it is nested."))
    return Sheet(
        "transaction",
        "Transactions",
        Subject.EVENT,
        made.send_row[positions],
        tuple(columns.made),
        "",
        "No message fits.",
    )
