"""CPU time of servers charged to their clients, through chains of servers, and a bill that adds up to all run time.

    bill = satview.Statistics(trace).client_server
    bill.imposed_cycles                     # int64, by row of the thread table: what servers did for each thread
    bill.own_cycles + bill.caused_cycles    # adds up to bill.self_cycles over all threads

Source: formula 2 of the reference. A runs 2, sends to B, which runs 10 and sends to C, which runs 2: A has itself 2,
imposed 12, total 14; and as B and C ran for nobody else, A caused all 14 of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Scope, sum_by
from satview.analysis.times.message_times import RunSums
from satview.linkage.servers import services
from satview.store.time_ranges import Cycles, overlaps

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ImposedTable:
    """CPU time that servers spent for clients, one row per client and server with any such time, in that order.

    Attributes:
        client: int64, (n,), row of the thread table.
        server: int64, the thread that ran, at the end of a chain of messages of any length.
        cycles: int64, how long the server ran while the client waited.
    """

    client: _Ints
    server: _Ints
    cycles: Cycles

    def __len__(self) -> int:
        return len(self.client)


@dataclass(frozen=True, slots=True)
class ClientServer:
    """CPU time by the thread that caused it; every column int64 (threads,), cycles within the range.

    Times are gross: they include interrupts handled meanwhile. Where events are missing, `self_cycles` and
    `imposed_cycles` are lower bounds. Then, and for messages received before the trace began, a server may have worked
    for an unknown client: that time is part of the server's `own_cycles`.

    Attributes:
        self_cycles: Time the thread ran; 0 for idle threads.
        imposed_cycles: Time that servers ran while the thread waited for them, directly or through others. A server
            with several clients counts for each client, so the sum may be more than the time that threads ran.
        own_cycles: Time the thread ran with no received message left unanswered.
        caused_cycles: Time that others ran for the thread at the end of a chain of messages; a server with several
            messages works for the newest. Own and caused times of all threads add up to all times that threads ran.
        imposed: `imposed_cycles` by client and server.
    """

    self_cycles: Cycles
    imposed_cycles: Cycles
    own_cycles: Cycles
    caused_cycles: Cycles
    imposed: ImposedTable

    @property
    def total_cycles(self) -> Cycles:
        """Time that the thread, or a server for it, ran: what its absence would save, as the vendor's tool counts."""
        return self.self_cycles + self.imposed_cycles

    @property
    def bill_cycles(self) -> Cycles:
        """Own and caused time; over all threads it adds up to the time that threads ran."""
        return self.own_cycles + self.caused_cycles


def client_server(scope: Scope) -> ClientServer:
    """Return the CPU time that threads spent for themselves and for others within the range."""
    scope.check()
    threads, served = len(scope.trace.threads), _Served.within(scope)
    scope.check()
    itself = served.run.total(threads)
    imposed = _imposed(scope, served)
    scope.check()
    own, caused = _bill(scope, served, itself)
    return ClientServer(itself, sum_by(imposed.client, imposed.cycles, threads), own, caused, imposed)


@dataclass(frozen=True, slots=True)
class _Served:
    """Services within a range, by client, then in time order; `run` sums how long threads ran during them.

    Attributes:
        client, server: int64, (n,), rows of the thread table.
        begin, end: int64, (n,), when they begin and end, as indices of the moments of `run`.
    """

    client: _Ints
    server: _Ints
    begin: _Ints
    end: _Ints
    run: RunSums

    @classmethod
    def within(cls, scope: Scope) -> _Served:
        """Return the services within a range, cut at its ends."""
        served, runs = services(scope.trace), scope.basis.runs
        start, end = scope.cut(served.start, served.end)
        begin, stop = scope.cut(runs.start, runs.end)
        working = np.flatnonzero((runs.thread > 0) & ~scope.basis.is_idle[runs.thread] & (stop > begin))
        time = np.sort(np.concatenate((start, end, begin[working])))  # np.unique hashes, which takes four times as long
        lasting = np.flatnonzero(end > start)
        return cls(served.client[lasting], served.server[lasting], np.searchsorted(time, start[lasting]),
                   np.searchsorted(time, end[lasting]),
                   RunSums.of(runs, working, begin, stop, time, len(scope.trace.threads)))  # fmt: skip


def _imposed(scope: Scope, served: _Served) -> ImposedTable:
    """Return the time that servers ran for each client, along the chain of servers that the client waits for."""
    client, server, begin, end = served.client, served.server, served.begin, served.end
    parts: list[tuple[_Ints, ...]] = []
    chain: list[tuple[_Ints, NDArray[np.intp]]] = []  # of each earlier step, the servers and the pieces cut
    while len(client):
        scope.check()
        cycles = served.run.between(server, begin, end)
        ran = np.flatnonzero(cycles)
        parts.append((client[ran], server[ran], cycles[ran]))
        position, spans = overlaps(server, begin, end, served.client, served.begin, served.end)
        after = served.server[spans]
        # Damaged data may show threads that serve each other: each counts once in a chain.
        goes_on = np.flatnonzero((after != client[position]) & ~_has(after, [*chain, (server, position)]))
        position, spans = position[goes_on], spans[goes_on]
        chain.append((server, position))
        client, server = client[position], after[goes_on]
        begin, end = np.maximum(begin[position], served.begin[spans]), np.minimum(end[position], served.end[spans])
    threads = len(scope.trace.threads)
    client, server, cycles = (np.concatenate([np.empty(0, np.int64), *(part[i] for part in parts)]) for i in range(3))
    pair, which = np.unique(client * threads + server, return_inverse=True)
    return ImposedTable(pair // threads, pair % threads, sum_by(which, cycles, len(pair)))


def _has(server: _Ints, chain: list[tuple[_Ints, NDArray[np.intp]]]) -> NDArray[np.bool_]:
    """Return whether the last server of each chain also occurs earlier in it."""
    is_there, link_of = np.zeros(len(server), np.bool_), np.arange(len(server))
    for servers, position in reversed(chain):
        link_of = position[link_of]
        is_there |= servers[link_of] == server
    return is_there


def _bill(scope: Scope, served: _Served, itself: Cycles) -> tuple[Cycles, Cycles]:
    """Return own and caused times of threads: every run goes to the thread at the beginning of its chain of messages.

    While a thread serves messages, its newest client pays; while that client serves messages itself, its own newest
    client pays, and so on. A client has one message under way, so only the running thread itself can recur.
    """
    threads = len(itself)
    newest = _newest(served)
    own, caused = itself.copy(), np.zeros(threads, np.int64)
    runner, payer, begin, end = newest.server, newest.client, newest.begin, newest.end
    cycles = served.run.between(runner, begin, end)
    own -= sum_by(runner, cycles, threads)
    while len(runner):
        scope.check()
        ran = np.flatnonzero(cycles > 0)
        runner, payer, begin, end, cycles = runner[ran], payer[ran], begin[ran], end[ran], cycles[ran]
        caused += sum_by(payer, cycles, threads)
        position, spans = overlaps(payer, begin, end, newest.server, newest.begin, newest.end)
        position, spans = (part[newest.client[spans] != runner[position]] for part in (position, spans))
        begin, end = np.maximum(begin[position], newest.begin[spans]), np.minimum(end[position], newest.end[spans])
        cycles = served.run.between(runner[position], begin, end)
        caused -= sum_by(payer[position], cycles, threads)
        runner, payer = runner[position], newest.client[spans]
    return own, caused


def _newest(served: _Served) -> _Served:
    """Return each server's newest unanswered message over time, by server, then in time order.

    These ranges do not overlap, and there are none while the server serves nobody.
    """
    order = np.lexsort((served.begin, served.server))
    client, server, begin, end = (part[order] for part in (served.client, served.server, served.begin, served.end))
    older = _older(server, end)
    # Whose message it is can change where one is received, and where one is answered.
    edge = np.sort(np.concatenate((server << 32 | begin, server << 32 | end)))
    edge = edge[np.append(True, edge[1:] != edge[:-1])[: len(edge)]]
    server_of_edge, moment = edge >> 32, edge & 0xFFFFFFFF
    newest = np.searchsorted(server << 32 | begin, edge, side="right") - 1
    while True:
        is_over = newest >= 0
        is_over[is_over] = end[newest[is_over]] <= moment[is_over]
        if not is_over.any():
            break
        newest[is_over] = older[newest[is_over]]
    newest[newest >= 0] = np.where(server[newest[newest >= 0]] == server_of_edge[newest >= 0], newest[newest >= 0], -1)
    known = np.flatnonzero(newest >= 0)
    newest = newest[known]
    return _Served(client[newest], server[newest], moment[known], moment[known + 1], served.run)


def _older(server: _Ints, answered: _Ints) -> _Ints:
    """Return for each message the newest older one of the same server that is answered later, -1 for none.

    Args:
        server: int64 (n,), ascending; the messages of each in the order of their receipts.
        answered: int64 (n,), when each is answered.
    """
    older = np.arange(len(server)) - 1
    while True:
        # All messages between `older` and the message itself are answered no later than the message.
        has_older = older >= 0
        has_older[has_older] = (server[older[has_older]] == server[has_older]) & (
            answered[older[has_older]] <= answered[has_older]
        )
        if not has_older.any():
            break
        older[has_older] = older[older[has_older]]
    older[(older >= 0) & (server[older] != server)] = -1
    return older
