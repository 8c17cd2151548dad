"""Statistics of a trace or a part of it: threads, processes, CPUs, events, kernel calls, messages, interrupts.

    statistics = satview.Statistics(trace, satview.TimeWindow(start, end))
    statistics.threads.cpu_cycles                 # int64, by row of the thread table
    statistics.calls.times.most_cycles            # the longest call of each kind

Times come from the whole trace, cut at the range; a mask of events selects the events to count, but not those that
determine times and states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from satview.analysis.client_server import ClientServer, client_server
from satview.analysis.partitions import Bankruptcies, PartitionTable, bankruptcies, partition_times
from satview.analysis.times.basis import Basis, Mask, Scope, scope_of
from satview.analysis.times.cpu_times import CpuTable, Migrations, RunTimes, cpu_times, measured_cpu, migrations
from satview.analysis.times.message_times import (
    IS_SEND,
    CallTable,
    EventKinds,
    InterruptTable,
    MessageTable,
    ThreadCounts,
    call_times,
    event_counts,
    interrupt_times,
    message_times,
)
from satview.analysis.times.state_times import StateLengths, StateTimes, state_lengths, state_times
from satview.base.threads import Begun
from satview.base.time import TimeWindow
from satview.events.states import READY
from satview.linkage.messages import messages
from satview.linkage.table import NO_EVENT
from satview.store.axis import CoveredRange
from satview.store.time_ranges import Cycles
from satview.store.trace import Trace

# Messages by the CPU on which they are sent and the CPU on which they are received.


@dataclass(frozen=True, slots=True)
class CpuMessages:
    """Messages by sending and receiving CPU. Source: formula 3 of the reference; replies do not count.

    Attributes:
        count: int64, (cpus, cpus), messages sent on the CPU of the row and received on that of the column.
        unknown: int64, (cpus,), messages sent on a CPU whose receipt is missing or not certain.
    """

    count: NDArray[np.int64]
    unknown: NDArray[np.int64]

    @property
    def elsewhere(self) -> NDArray[np.int64]:
        """Messages sent on each CPU and received on another, int64 (cpus,)."""
        return np.asarray(self.count.sum(axis=1) - np.diagonal(self.count))


def cpu_messages(scope: Scope) -> CpuMessages:
    """Return the numbers of messages sent within the range, by sending and, even if later, receiving CPU."""
    sends, cpu, cpus = scope.selected(IS_SEND), scope.trace.events.cpu, scope.trace.cpu_count
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
            window: The range, in cycles; None = the range that can be trusted (`store.doubts.trusted_window`).
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
        """Return lengths in nanoseconds, rounded down.

        Returns:
            int64, same shape.
        """
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
        """Lost time within the range; if there is any, counts are lower bounds, and times in it are unknown."""
        lost = self.basis.lost.within(np.array([self.window.start]), np.array([self.window.end]))
        return int(lost[0])

    @cached_property
    def states(self) -> StateTimes:
        """Times per thread and state."""
        return state_times(self._scope)

    @cached_property
    def state_lengths(self) -> StateLengths:
        """Single intervals of states."""
        return state_lengths(self._scope)

    @cached_property
    def cpus(self) -> CpuTable:
        """One row per CPU."""
        return self._cpu_times[0]

    @cached_property
    def events(self) -> EventKinds:
        """One row per kind of event."""
        return self._event_counts[0]

    @cached_property
    def calls(self) -> CallTable:
        """One row per kernel call."""
        return call_times(self._scope)

    @cached_property
    def messages(self) -> MessageTable:
        """One row per client thread and server process."""
        return message_times(self._scope)

    @cached_property
    def interrupts(self) -> InterruptTable:
        """One row per interrupt vector."""
        return interrupt_times(self._scope)

    @cached_property
    def client_server(self) -> ClientServer:
        """CPU time of servers for their clients, one row per thread."""
        return client_server(self._scope)

    @cached_property
    def migrations(self) -> Migrations:
        """One row per run that began on another CPU than the one before."""
        return migrations(self._scope)

    @cached_property
    def cpu_messages(self) -> CpuMessages:
        """Messages by sending and receiving CPU."""
        return cpu_messages(self._scope)

    @cached_property
    def partitions(self) -> PartitionTable:
        """Budgets and use of partitions, one row per configuration and partition."""
        return partition_times(self._scope)

    @cached_property
    def bankruptcies(self) -> Bankruptcies:
        """When partitions overran their critical budgets."""
        return bankruptcies(self._scope)

    @cached_property
    def threads(self) -> ThreadStatistics:
        """One row per thread."""
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
        """One row per process."""
        process, is_working = self.trace.threads.process, ~self._scope.basis.is_idle
        columns = {name.name: np.zeros(len(self.trace.processes), np.int64) for name in fields(ProcessStatistics)}
        for name, total in columns.items():
            values = np.ones(len(process), np.int64) if name == "threads" else getattr(self.threads, name)
            counts = name in ("threads", "events", "calls", "sent", "received")
            np.add.at(total, process[1:], (values if counts else values * is_working)[1:])
        return ProcessStatistics(**columns)

    @property
    def measures_cpu(self) -> bool:
        """True if threads measured their processor time: then RUNNING is only "not known to wait"."""
        return self._measured_cpu is not None

    @cached_property
    def _measured_cpu(self) -> Cycles | None:
        return measured_cpu(self.trace, self.window)

    @cached_property
    def _cpu_times(self) -> tuple[CpuTable, RunTimes]:
        return cpu_times(self._scope)

    @cached_property
    def _event_counts(self) -> tuple[EventKinds, ThreadCounts]:
        return event_counts(self._scope)
