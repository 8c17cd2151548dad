"""What statistics of any range of a trace are made of: computed once, cached, the same for every range."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.states import INTERRUPT
from satview.filters.derived_columns import UNKNOWN as NOT_LOGGED
from satview.filters.derived_columns import TraceDerivedColumns
from satview.store.arguments import argument_under
from satview.store.losses import EVERY_CPU, idle_threads, losses
from satview.store.time_ranges import Cycles, TimeRanges, cut_at
from satview.store.trace import Trace
from satview.timeline.spans import LaneSpans
from satview.timeline.state_lanes import cpu_spans, interrupt_spans, run_slices

_CRITICAL: Final = 1  # bit of sched_flags


@dataclass(frozen=True, slots=True)
class Runs:
    """Ranges in which a CPU was with one thread, idle, or with nobody known; by CPU, then in time order.

    Attributes:
        cpu: uint8, (n,).
        start, end: int64, cycles.
        thread: (n,), row of the thread; 0 = none, or not known.
        value: uint8, as on the lane of the CPU.
    """

    cpu: NDArray[np.uint8]
    start: Cycles
    end: Cycles
    thread: NDArray[np.int64]
    value: NDArray[np.uint8]


class Basis:
    """Of one trace: lost ranges, runs, interrupts; each made when first requested.

    Attributes:
        trace: The trace.
        derived: Where durations, lengths and priorities come from.
    """

    def __init__(self, trace: Trace, derived: TraceDerivedColumns | None = None) -> None:
        self.trace = trace
        self.derived = derived or TraceDerivedColumns(trace)

    @cached_property
    def is_idle(self) -> NDArray[np.bool_]:
        """Which threads are idle threads, bool (threads,)."""
        return idle_threads(self.trace)

    @cached_property
    def loses_per_cpu(self) -> bool:
        """True if events are missing of some CPUs and not of others."""
        return bool(np.any(losses(self.trace)[:, 2] != EVERY_CPU))

    @cached_property
    def lost(self) -> TimeRanges:
        """Ranges in which events are missing."""
        return TimeRanges.of_rows(losses(self.trace))

    @cached_property
    def runs(self) -> Runs:
        """Who had the CPUs, over the whole trace."""
        slices = run_slices(self.trace)
        parts = [_runs_of(cpu, cpu_spans(self.trace, cpu, slices, self.is_idle)) for cpu in range(self.trace.cpu_count)]
        return Runs(*(np.concatenate([getattr(part, name) for part in parts]) for name in Runs.__slots__))

    @cached_property
    def runs_by_priority(self) -> tuple[Runs, NDArray[np.int64]]:
        """The runs, cut where a RUNNING event shows another priority, and the priorities.

        Returns:
            The runs, and int64 of the same length, -1 where the trace does not show: events logged fast have none.
        """
        rows, _ = run_slices(self.trace)
        return self._runs_by(rows, self.derived.priority(rows))

    @cached_property
    def runs_by_partition(self) -> tuple[Runs, NDArray[np.int64], NDArray[np.bool_]]:
        """The runs, cut where a RUNNING event shows another partition, the partitions, and whether they are critical.

        Returns:
            The runs, int64 of the same length, -1 where the trace does not show (events logged fast, or no partitions),
            and bool of the same length: the thread may draw on the critical budget.
        """
        rows, _ = run_slices(self.trace)
        partition = argument_under(self.trace, rows, "partition", "partition_id")  # 6.x, later
        is_critical = np.maximum(argument_under(self.trace, rows, "sched_flags"), 0) & _CRITICAL
        runs, logged = self._runs_by(rows, np.where(partition >= 0, partition << 1 | is_critical, NOT_LOGGED))
        return runs, logged >> 1, (logged >= 0) & (logged & 1 > 0)

    def _runs_by(self, rows: NDArray[np.uint32], logged: NDArray[np.int64]) -> tuple[Runs, NDArray[np.int64]]:
        """Return the runs cut where RUNNING events show another value, and the value of each."""
        cpu, time = self.trace.events.cpu[rows], self.trace.events.time_cycles[rows]
        parts = [
            _with_value(self.runs, number, time[cpu == number], logged[cpu == number])
            for number in range(self.trace.cpu_count)
        ]
        runs = Runs(*(np.concatenate([getattr(part, name) for part, _ in parts]) for name in Runs.__slots__))
        return runs, np.concatenate([values for _, values in parts])

    @cached_property
    def interrupts(self) -> tuple[TimeRanges, ...]:
        """When each CPU handled interrupts, as far as the trace shows."""
        found = []
        for cpu in range(self.trace.cpu_count):
            spans = interrupt_spans(self.trace, cpu)
            found.append(_handled(spans) if spans is not None else TimeRanges.none())
        return tuple(found)


def _runs_of(cpu: int, spans: LaneSpans) -> Runs:
    """Return the intervals of a CPU lane, those of one thread that touch combined."""
    end = np.append(spans.start_cycles[1:], spans.end_cycles)
    thread = spans.thread.astype(np.int64) if spans.thread is not None else np.zeros(len(spans), np.int64)
    begins = np.append(True, (thread[1:] != thread[:-1]) | (spans.value[1:] != spans.value[:-1]))
    last = np.append(begins[1:], True)
    number = np.full(int(np.count_nonzero(begins)), cpu, np.uint8)
    return Runs(number, spans.start_cycles[begins], end[last], thread[begins], spans.value[begins])


def _with_value(runs: Runs, cpu: int, time: Cycles, logged: NDArray[np.int64]) -> tuple[Runs, NDArray[np.int64]]:
    """Return the runs of a CPU cut where its RUNNING events show another value, and the value of each."""
    keep = np.append(time[1:] != time[:-1], True)[: len(time)]  # of events at one time the last counts
    time, logged = time[keep], logged[keep]
    if not len(time):
        logged = np.array([NOT_LOGGED])
    first, last = np.searchsorted(runs.cpu, (cpu, cpu + 1))
    far = np.iinfo(np.int64)
    # Before the first event too: the opening dump shows who ran from the start of the trace on.
    edges = np.concatenate(([far.min], time[1:], [far.max]))
    rows, number, start, end = cut_at(runs.start[first:last], runs.end[first:last], edges)
    rows = rows + first
    values = np.where(runs.thread[rows] > 0, logged[number], NOT_LOGGED)
    return Runs(runs.cpu[rows], start, end, runs.thread[rows], runs.value[rows]), values


def _handled(spans: LaneSpans) -> TimeRanges:
    end = np.append(spans.start_cycles[1:], spans.end_cycles)
    mine = spans.value == INTERRUPT
    return TimeRanges.of(spans.start_cycles[mine], end[mine])
