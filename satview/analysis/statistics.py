"""Statistics of a trace or a part of it, and the CPU time of servers charged to their clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from satview.analysis.partitions import Bankruptcies, PartitionTable, bankruptcies, partition_times
from satview.analysis.times import message_times
from satview.analysis.times.basis import Basis, Mask, Scope, scope_of, sum_by
from satview.analysis.times.cpu_times import CpuTable, Migrations, RunTimes, cpu_times, measured_cpu, migrations
from satview.analysis.times.state_times import StateLengths, StateTimes, state_lengths, state_times
from satview.base.threads import Begun
from satview.base.time import TimeWindow
from satview.events.states import READY
from satview.linkage.links import NO_EVENT
from satview.linkage.messages import messages
from satview.linkage.transactions import services
from satview.store.axis import CoveredRange
from satview.store.time_ranges import Cycles, overlaps
from satview.store.trace import Trace

# CPU time of servers charged to their clients, through chains of servers, and a bill that adds up to all run time.
#
# In `bill = satview.Statistics(trace).client_server`, `bill.imposed_cycles` is int64, by row of the thread table: what
# servers did for each thread. Over all threads `own_cycles` plus `caused_cycles` add up to `self_cycles`.
#
# Source: formula 2 of the reference. A runs 2, sends to B, which runs 10 and sends to C, which runs 2: A has itself 2,
# imposed 12, total 14; and as B and C ran for nobody else, A caused all 14 of it.


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
        """Time that the thread, or a server for it, ran: the CPU time that would be saved without the thread.

        The vendor's tool defines it in the same way.
        """
        return self.self_cycles + self.imposed_cycles

    @property
    def bill_cycles(self) -> Cycles:
        """Own plus caused time; the sum over all threads is the time that threads ran."""
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
    """Services within a range, by client, then in time order: times in which a server works on a client's message.

    Attributes:
        client, server: int64, (n,), rows of the thread table.
        begin, end: int64, (n,), when the services begin and end, as indices of the moments of `run`.
        run: Cumulative run times of all threads.
    """

    client: _Ints
    server: _Ints
    begin: _Ints
    end: _Ints
    run: message_times.RunSums

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
                   message_times.RunSums.of(runs, working, begin, stop, time, len(scope.trace.threads)))  # fmt: skip


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
    """Return whether the last server of each chain of messages also occurs earlier in the same chain, bool (n,).

    `chain` has an item for the first servers of the chains, one for the second, and so on: the servers, and for each
    chain up to the next server its index in them.
    """
    is_there, link_of = np.zeros(len(server), np.bool_), np.arange(len(server))
    for servers, position in reversed(chain):
        link_of = position[link_of]
        is_there |= servers[link_of] == server
    return is_there


def _bill(scope: Scope, served: _Served, itself: Cycles) -> tuple[Cycles, Cycles]:
    """Return own and caused time of each thread, cycles, int64 (threads,) each.

    Every run is charged to the thread at the beginning of its chain of messages. While a thread serves messages, its
    newest client pays; while that client serves messages itself, its own newest client pays, and so on. A client has
    one message under way, so only the running thread itself can recur.
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
    """Return each server's newest unanswered message over time, without overlaps, by server, then in time order."""
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
    """Return for each message, by server and receipt, the newest older one of it that is answered later; -1 = none."""
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


# Statistics of a trace or a part of it: threads, processes, CPUs, events, kernel calls, messages, interrupts.
#
# In `satview.Statistics(trace, satview.TimeWindow(start, end))`, `threads.cpu_cycles` is int64, by row of the thread
# table, and `calls.times.most_cycles` is the length of the longest call of each kind.
#
# Times come from the whole trace, cut at the range; a mask of events selects the events to count, but not those that
# determine times and states.


# Messages by the CPU on which they are sent and the CPU on which they are received.


@dataclass(frozen=True, slots=True)
class CpuMessages:
    """Numbers of messages by sending and receiving CPU. Source: formula 3 of the reference; replies do not count.

    Attributes:
        count: int64, (cpus, cpus), messages sent on the CPU of the row and received on that of the column.
        unknown: int64, (cpus,), messages sent on a CPU whose receipt is missing or not certain.
    """

    count: NDArray[np.int64]
    unknown: NDArray[np.int64]

    @property
    def elsewhere(self) -> NDArray[np.int64]:
        """Number of messages that were sent on each CPU and received on another one, int64 (cpus,)."""
        return np.asarray(self.count.sum(axis=1) - np.diagonal(self.count))


def cpu_messages(scope: Scope) -> CpuMessages:
    """Return the numbers of messages sent within the range, by sending and, even if later, receiving CPU."""
    sends, cpu, cpus = scope.selected(message_times.IS_SEND), scope.trace.events.cpu, scope.trace.cpu_count
    sends = sends[cpu[sends] < cpus]  # damaged events name CPUs that the target does not have
    received = messages(scope.trace).ends_of(sends)
    known = received != NO_EVENT
    known[known] = cpu[received[known]] < cpus
    pair = cpu[sends[known]].astype(np.int64) * cpus + cpu[received[known]]
    return CpuMessages(
        np.bincount(pair, minlength=cpus * cpus).reshape(cpus, cpus), np.bincount(cpu[sends[~known]], minlength=cpus)
    )


@dataclass(frozen=True, slots=True)
class ThreadStatistics:
    """One row per row of the thread table; row 0 is for unknown threads. Every column int64 (threads,).

    Attributes:
        cpu_cycles: Time the thread ran, without interrupts; or the processor time that the thread itself measured.
        run_cycles: Time the thread was on a CPU, interrupts included; never a measurement.
        interrupted_cycles: Time in which interrupts were handled while the thread had a CPU.
        runs, longest_run_cycles, longest_run_start_cycles: Intervals on a CPU, and the longest of them.
        switches, preemptions, migrations: Runs that began; runs that ended in READY; runs that began on another CPU
            than the run before.
        ready_cycles, longest_ready_cycles, longest_ready_start_cycles: Time the thread was ready and did not run, and
            the longest such interval.
        events, calls, sent, received: Numbers of events that the thread logged; only these columns follow the mask.
    """

    cpu_cycles: Cycles
    run_cycles: Cycles
    interrupted_cycles: Cycles
    runs: NDArray[np.int64]
    longest_run_cycles: Cycles
    longest_run_start_cycles: Cycles
    switches: NDArray[np.int64]
    preemptions: NDArray[np.int64]
    migrations: NDArray[np.int64]
    ready_cycles: Cycles
    longest_ready_cycles: Cycles
    longest_ready_start_cycles: Cycles
    events: NDArray[np.int64]
    calls: NDArray[np.int64]
    sent: NDArray[np.int64]
    received: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.cpu_cycles)


@dataclass(frozen=True, slots=True)
class ProcessStatistics:
    """One row per row of the process table: sums over its threads. Every column int64 (processes,).

    Times and runs of idle threads are left out: their process does nothing meanwhile.

    Attributes:
        threads: Threads that the trace knows.
        cpu_cycles, interrupted_cycles, ready_cycles, runs, switches, preemptions, migrations, events, calls, sent,
            received: As for threads; times of threads that ran on several CPUs at once are added.
    """

    threads: NDArray[np.int64]
    cpu_cycles: Cycles
    interrupted_cycles: Cycles
    ready_cycles: Cycles
    runs: NDArray[np.int64]
    switches: NDArray[np.int64]
    preemptions: NDArray[np.int64]
    migrations: NDArray[np.int64]
    events: NDArray[np.int64]
    calls: NDArray[np.int64]
    sent: NDArray[np.int64]
    received: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.threads)


class Statistics:
    """Statistics over one range; each table is computed when first requested and cached.

    Times are whole cycles of the trace's clock, so that sums are exact; `ns()` converts them to nanoseconds.

    Attributes:
        trace: The data.
        window: The range, cut to the trace.
        passes: The mask of events that count, or None.
        basis: Data that is the same for every range; pass it to further statistics.
    """

    def __init__(
        self,
        trace: Trace,
        window: TimeWindow | None = None,
        passes: Mask | None = None,
        basis: Basis | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        """Store the arguments; nothing is computed yet.

        Args:
            trace: The data.
            window: The range, in cycles; None = the range that can be trusted (`store.time_ranges.trusted_window`).
            passes: bool (events,), events that count, as from `RuleSet.mask`; None = all. Only numbers of events,
                kernel calls, messages and interrupts follow it. Times in states and on CPUs, and durations of calls,
                come from all events.
            basis: Data that is the same for every range; pass one to several statistics to compute it once.
            cancelled: Called now and then; the table being made raises `Cancelled` when it returns true.

        Raises:
            UsageError: The range is outside the trace, or the mask is that of another trace.
        """
        self._scope = scope_of(trace, window, passes, basis, cancelled)
        self.trace, self.window, self.passes = trace, self._scope.window, passes
        self.basis = self._scope.basis

    def ns(self, cycles: Cycles) -> NDArray[np.int64]:
        """Return lengths in nanoseconds, rounded down, int64, same shape."""
        return self.trace.clock.durations_ns(cycles)

    @property
    def covered(self) -> CoveredRange:
        """Part of the range that the file of each thread, process and CPU covers; with one file all of it."""
        return self._scope.covered

    @property
    def length_s(self) -> float:
        """Length of the range in seconds."""
        return self._scope.length_s

    @property
    def lost_cycles(self) -> int:
        """Time within the range in which events are missing; if above 0, counts are lower bounds."""
        lost = self.basis.lost.within(np.array([self.window.start]), np.array([self.window.end]))
        return int(lost[0])

    @cached_property
    def states(self) -> StateTimes:
        """Times of threads in states, one row per thread and state."""
        return state_times(self._scope)

    @cached_property
    def state_lengths(self) -> StateLengths:
        """Every interval of a thread in a state, one row each."""
        return state_lengths(self._scope)

    @cached_property
    def cpus(self) -> CpuTable:
        """Use of the CPUs by threads and interrupts, one row per CPU."""
        return self._cpu_times[0]

    @cached_property
    def events(self) -> message_times.EventKinds:
        """Numbers of events, one row per kind of event."""
        return self._event_counts[0]

    @cached_property
    def calls(self) -> message_times.CallTable:
        """Numbers and durations of kernel calls, one row per call."""
        return message_times.call_times(self._scope)

    @cached_property
    def messages(self) -> message_times.MessageTable:
        """Numbers of messages and times that clients were blocked, one row per client thread and server process."""
        return message_times.message_times(self._scope)

    @cached_property
    def interrupts(self) -> message_times.InterruptTable:
        """Numbers and durations of interrupts, one row per interrupt vector."""
        return message_times.interrupt_times(self._scope)

    @cached_property
    def client_server(self) -> ClientServer:
        """CPU time of servers for their clients, one row per thread."""
        return client_server(self._scope)

    @cached_property
    def migrations(self) -> Migrations:
        """Migrations of threads: one row per run that began on another CPU than the thread's run before."""
        return migrations(self._scope)

    @cached_property
    def cpu_messages(self) -> CpuMessages:
        """Numbers of messages by sending and receiving CPU."""
        return cpu_messages(self._scope)

    @cached_property
    def partitions(self) -> PartitionTable:
        """Budgets and use of partitions, one row per configuration and partition."""
        return partition_times(self._scope)

    @cached_property
    def bankruptcies(self) -> Bankruptcies:
        """Events at which partitions overran their critical budgets."""
        return bankruptcies(self._scope)

    @cached_property
    def threads(self) -> ThreadStatistics:
        """CPU use, waits for a CPU, and numbers of events of threads, one row per thread."""
        counting = Begun(lambda: self._event_counts[1], "satview-statistics")  # nearly all of it in the core
        try:
            runs, states = self._cpu_times[1], self.states
        finally:
            counting.wait()
        counts = counting.result()
        count = len(self.trace.threads)
        cpu, measured = runs.cpu_cycles, self._measured_cpu
        if measured is not None:
            cpu = np.where(measured >= 0, measured, cpu)
        return ThreadStatistics(
            cpu,
            runs.cpu_cycles + runs.interrupted_cycles,
            runs.interrupted_cycles,
            runs.runs,
            runs.longest_cycles,
            runs.longest_start_cycles,
            runs.switches,
            states.preemptions,
            runs.migrations,
            states.of_state(READY, states.total_cycles, count),
            states.of_state(READY, states.longest_cycles, count),
            states.of_state(READY, states.longest_start_cycles, count),
            counts.events,
            counts.calls,
            counts.sent,
            counts.received,
        )

    @cached_property
    def processes(self) -> ProcessStatistics:
        """The statistics of threads added up by process, one row per process."""
        process, is_working = self.trace.threads.process, ~self._scope.basis.is_idle
        columns = {name.name: np.zeros(len(self.trace.processes), np.int64) for name in fields(ProcessStatistics)}
        for name, total in columns.items():
            values = np.ones(len(process), np.int64) if name == "threads" else getattr(self.threads, name)
            counts = name in ("threads", "events", "calls", "sent", "received")
            np.add.at(total, process[1:], (values if counts else values * is_working)[1:])
        return ProcessStatistics(**columns)

    @property
    def measures_cpu(self) -> bool:
        """True if threads measured their processor time; RUNNING then only means that a thread is not known to wait."""
        return self._measured_cpu is not None

    @cached_property
    def _measured_cpu(self) -> Cycles | None:
        return measured_cpu(self.trace, self.window)

    @cached_property
    def _cpu_times(self) -> tuple[CpuTable, RunTimes]:
        return cpu_times(self._scope)

    @cached_property
    def _event_counts(self) -> tuple[message_times.EventKinds, message_times.ThreadCounts]:
        return message_times.event_counts(self._scope)
