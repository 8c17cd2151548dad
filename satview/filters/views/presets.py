"""Ready-made selections of threads: who used the CPU, changed state, exchanged messages, and where threads send to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.events.wire import THREAD_RUNNING, WireClass, code
from satview.filters.derived_columns import state_rows
from satview.filters.rows import Bools
from satview.linkage.rows import rows_of_codes, thread_rows
from satview.linkage.table import LinkKind
from satview.linkage.trace_links import link_table
from satview.store.losses import idle_threads
from satview.store.trace import Trace

_SEND, _RECEIVE, _REPLY, _ERROR = (code(WireClass.COMM, event) for event in (0, 2, 10, 11))
_PAIR_LIMIT = 1 << 20


def used_cpu(trace: Trace) -> Bools:
    """Return the threads that ran, idle threads left out; bool (threads,)."""
    rows = rows_of_codes(trace, THREAD_RUNNING)
    selected = np.zeros(len(trace.threads), np.bool_)
    selected[trace.events.thread[rows]] = True
    return _real(selected & ~idle_threads(trace))


def changed_state(trace: Trace) -> Bools:
    """Return the threads with more than one state in the trace, bool (threads,): START reports one of each."""
    _, owner = state_rows(trace)
    return _real(np.bincount(owner, minlength=len(trace.threads)) > 1)


def did_ipc(trace: Trace) -> Bools:
    """Return the threads that sent, received or replied, or were answered; bool (threads,)."""
    rows = rows_of_codes(trace, *(code(WireClass.COMM, event) for event in (0, 1, 2, 3, 10, 11)))
    selected = np.zeros(len(trace.threads), np.bool_)
    selected[trace.events.thread[rows]] = True
    results = rows_of_codes(trace, _REPLY, _ERROR)
    selected[thread_rows(trace, trace.payloads.column(results, 1), trace.payloads.column(results, 0))] = True
    return _real(selected)


def top_by_cpu(trace: Trace, count: int, cpu_cycles: NDArray[np.int64]) -> Bools:
    """Return the threads that ran longest, at most `count`, idle threads left out; bool (threads,).

    Args:
        trace: The threads.
        count: How many.
        cpu_cycles: (threads,), how long each ran; `satview.Statistics(trace).threads.cpu_cycles`.
    """
    cycles = np.where(idle_threads(trace), 0, cpu_cycles)
    selected = np.zeros(len(cycles), np.bool_)
    order = np.argsort(-cycles, kind="stable")[: max(count, 0)]
    selected[order[cycles[order] > 0]] = True
    return selected


def message_graph(trace: Trace) -> NDArray[np.int64]:
    """Return who sends to which thread, int64 (pairs, 2): thread rows (client, server), each pair once.

    The server is the thread that received the message or replied to the client. Where neither is known of a client and
    a process, it is every thread of that process that receives, or every thread of it if none is seen receiving.
    """
    replies = rows_of_codes(trace, _REPLY, _ERROR)
    payloads, events = trace.payloads, trace.events
    clients = thread_rows(trace, payloads.column(replies, 1), payloads.column(replies, 0))
    answered = _unique_pairs(clients, events.thread[replies])
    sends = rows_of_codes(trace, _SEND)
    to_process = _unique_pairs(events.thread[sends], payloads.column(sends, 1).view(np.int32))
    receivers = np.unique(events.thread[rows_of_codes(trace, _RECEIVE)])
    received = link_table(trace, LinkKind.MESSAGE)
    direct = np.concatenate((answered, _unique_pairs(events.thread[received.from_row], events.thread[received.to_row])))
    edges = [direct]
    known = {(int(client), int(trace.threads.pid[server])) for client, server in direct if server > 0}
    for client, pid in to_process.tolist():
        if (client, pid) not in known:
            servers = np.flatnonzero(trace.threads.pid == pid)
            receiving = servers[np.isin(servers, receivers)]
            servers = receiving if len(receiving) else servers
            edges.append(np.column_stack((np.full(len(servers), client), servers)).astype(np.int64))
    pairs = np.concatenate(edges)
    return np.unique(pairs[(pairs > 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])], axis=0)


def message_family(trace: Trace, threads: Bools, graph: NDArray[np.int64] | None = None) -> Bools:
    """Return some threads and everyone they send to, nested sends included; bool (threads,)."""
    pairs = message_graph(trace) if graph is None else graph
    selected = threads.copy()
    while True:
        fresh = pairs[selected[pairs[:, 0]] & ~selected[pairs[:, 1]], 1]
        if not len(fresh):
            return selected
        selected[fresh] = True


def _real(selected: Bools) -> Bools:
    selected[0] = False  # the row that means "not known"
    return selected


def _unique_pairs(first: NDArray[np.integer], second: NDArray[np.integer]) -> NDArray[np.int64]:
    pairs = np.unique(first.astype(np.int64) << 32 | second.astype(np.int64) & 0xFFFFFFFF)[:_PAIR_LIMIT]
    return np.column_stack((pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.uint32).view(np.int32)))
