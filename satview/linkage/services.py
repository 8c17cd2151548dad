"""When which thread serves whom: from the receipt of a message until it is answered or its client waits no more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.linkage.blockers import REPLY
from satview.linkage.rows import rows_of_codes
from satview.linkage.table import ReadOnlyColumns
from satview.linkage.transactions import Transactions, transactions
from satview.store.losses import losses
from satview.store.trace import Trace

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Services(ReadOnlyColumns):
    """Messages that were received, by client, then in time order; every column has shape (n,), int64, is read-only.

    Of one client no two overlap: a thread has one message under way. A server may have received several.

    Attributes:
        transaction: Row in `Transactions`.
        client, server: Rows of the thread table.
        start, end: Cycles. It begins with the receipt, or with the send where that finds the server in RECEIVE: all
            that the server does from then on is for the client. It ends with the reply or error, when the client stops
            waiting or either end dies, else with the trace; and where events are missing, as nobody knows what follows.
    """

    transaction: _Ints
    client: _Ints
    server: _Ints
    start: _Ints
    end: _Ints

    def __len__(self) -> int:
        return len(self.client)


def services(trace: Trace) -> Services:
    """Return who serves whom when; computed once and cached with the trace. Source: formula 2 of the reference.

    Messages from or to threads that the trace does not know are left out.
    """
    return trace.cached("links.services", _services)


def _services(trace: Trace) -> Services:
    sent, time = transactions(trace), np.append(trace.events.time_cycles, trace.window.end)
    at = np.flatnonzero((sent.server > 0) & (sent.client > 0) & (sent.server != sent.client))
    start = time[np.where(_finds_receiver(trace, sent, at), sent.send_row[at], sent.receive_row[at])]
    end = time[sent.over_row[at]]  # -1 is the end of the trace
    unsure = np.flatnonzero(sent.over_row[at] < 0)
    end[unsure] = np.minimum(end[unsure], _next_loss(trace, time[sent.receive_row[at[unsure]]]))
    end = np.minimum(end, time[_next(sent.client, sent.send_row, sent.client[at], sent.send_row[at])])
    ended = rows_of_codes(trace, wire.THREAD_DESTROY).astype(np.int64)
    end = np.minimum(end, time[_next(trace.events.thread[ended], ended, sent.server[at], sent.receive_row[at])])
    keep = np.flatnonzero(end > start)
    keep = keep[np.lexsort((start[keep], sent.client[at[keep]]))]
    at = at[keep]
    return Services(at.astype(np.int64), sent.client[at], sent.server[at], start[keep], end[keep])


def _finds_receiver(trace: Trace, sent: Transactions, at: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return for transactions whether the server waited in RECEIVE at the send: then the client is in REPLY at once."""
    row = sent.blocked_row[at]
    out = row >= 0
    out[out] = trace.catalogue.state_value_of_code[trace.events.code[row[out]]] == REPLY
    return np.asarray(out)


def _next_loss(trace: Trace, moment: _Ints) -> _Ints:
    """Return when the first loss from each moment on begins, on whatever CPU; far away if none does."""
    begins = np.append(np.sort(losses(trace)[:, 0]), np.iinfo(np.int64).max)
    return begins[np.searchsorted(begins, moment)]


def _next(
    threads: NDArray[np.integer], rows: _Ints, thread: _Ints, row: _Ints,
) -> _Ints:  # fmt: skip
    """Return for each thread and row the next one of some rows that belong to threads; -1 for none."""
    key = np.sort(threads.astype(np.int64) << 32 | rows)
    position = np.searchsorted(key, thread << 32 | row, side="right")
    found = np.append(key, -1)[position]
    return np.where(found >> 32 == thread, found & 0xFFFFFFFF, -1)
