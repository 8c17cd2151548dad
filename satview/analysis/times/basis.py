"""Computes and caches the data from which statistics of any range of a trace are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled, UsageError
from satview.base.safe_text import AT_LEAST_SIGN
from satview.base.time import TimeWindow
from satview.events import wire
from satview.events.states import INTERRUPT
from satview.filters.derived_columns import UNKNOWN as NOT_LOGGED
from satview.filters.derived_columns import TraceDerivedColumns
from satview.linkage.chain import ends_of
from satview.linkage.links import OPEN, LinkKind
from satview.store.arguments import argument_under
from satview.store.axis import CoveredRange, covered
from satview.store.time_ranges import EVERY_CPU, Cycles, TimeRanges, cut_at, idle_threads, losses, trusted_window
from satview.store.trace import Trace
from satview.timeline.spans import LaneSpans
from satview.timeline.state_lanes import cpu_spans, interrupt_spans, run_slices

_CRITICAL: Final = 1  # bit of sched_flags


@dataclass(frozen=True, slots=True)
class Runs:
    """Ranges in which a CPU ran one thread, was idle, or ran an unknown thread; by CPU, then in time order.

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
    """Lost ranges, runs and interrupts of one trace, each computed when first requested.

    Attributes:
        trace: The trace.
        derived: Source of durations, lengths and priorities.
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
        """True if some CPUs lost events at times at which others did not."""
        return bool(np.any(losses(self.trace)[:, 2] != EVERY_CPU))

    @cached_property
    def lost(self) -> TimeRanges:
        """Ranges in which events are missing."""
        return TimeRanges.of_rows(losses(self.trace))

    @cached_property
    def runs(self) -> Runs:
        """Runs of all CPUs over the whole trace."""
        parts = [_runs_of(cpu, cpu_spans(self.trace, cpu, self.is_idle)) for cpu in range(self.trace.cpu_count)]
        return Runs(*(np.concatenate([getattr(part, name) for part in parts]) for name in Runs.__slots__))

    @cached_property
    def runs_by_priority(self) -> tuple[Runs, NDArray[np.int64]]:
        """The runs, cut where a RUNNING event shows another priority, and the priorities.

        Returns:
            The runs, and int64 of the same length, -1 where unknown: events logged fast have no priority.
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
        """Return the runs, cut where RUNNING events log another value, such as a priority, and the value in each."""
        cpu, time = self.trace.events.cpu[rows], self.trace.events.time_cycles[rows]
        parts = [
            _with_value(self.runs, number, time[cpu == number], logged[cpu == number])
            for number in range(self.trace.cpu_count)
        ]
        runs = Runs(*(np.concatenate([getattr(part, name) for part, _ in parts]) for name in Runs.__slots__))
        return runs, np.concatenate([values for _, values in parts])

    @cached_property
    def interrupts(self) -> tuple[TimeRanges, ...]:
        """Ranges in which each CPU handled interrupts, as far as the trace shows."""
        by_cpu = []
        for cpu in range(self.trace.cpu_count):
            spans = interrupt_spans(self.trace, cpu)
            by_cpu.append(_handled(spans) if spans is not None else TimeRanges.none())
        return tuple(by_cpu)


def _runs_of(cpu: int, spans: LaneSpans) -> Runs:
    """Return the intervals of a CPU lane, with adjacent ones of one thread merged."""
    end = np.append(spans.start_cycles[1:], spans.end_cycles)
    thread = spans.thread.astype(np.int64) if spans.thread is not None else np.zeros(len(spans), np.int64)
    begins = np.append(True, (thread[1:] != thread[:-1]) | (spans.value[1:] != spans.value[:-1]))
    last = np.append(begins[1:], True)
    number = np.full(int(np.count_nonzero(begins)), cpu, np.uint8)
    return Runs(number, spans.start_cycles[begins], end[last], thread[begins], spans.value[begins])


def _with_value(runs: Runs, cpu: int, time: Cycles, logged: NDArray[np.int64]) -> tuple[Runs, NDArray[np.int64]]:
    """Return the runs of a CPU, cut where its RUNNING events log another value, and the value in each run."""
    keep = np.append(time[1:] != time[:-1], True)[: len(time)]  # of events at one time the last counts
    time, logged = time[keep], logged[keep]
    if not len(time):
        logged = np.array([NOT_LOGGED])
    begin, stop = np.searchsorted(runs.cpu, (cpu, cpu + 1))
    far = np.iinfo(np.int64)
    # Before the first event too: the opening dump shows who ran from the start of the trace on.
    edges = np.concatenate(([far.min], time[1:], [far.max]))
    rows, number, start, end = cut_at(runs.start[begin:stop], runs.end[begin:stop], edges)
    rows = rows + begin
    values = np.where(runs.thread[rows] > 0, logged[number], NOT_LOGGED)
    return Runs(runs.cpu[rows], start, end, runs.thread[rows], runs.value[rows]), values


def _handled(spans: LaneSpans) -> TimeRanges:
    end = np.append(spans.start_cycles[1:], spans.end_cycles)
    is_handled = spans.value == INTERRUPT
    return TimeRanges.of(spans.start_cycles[is_handled], end[is_handled])


# The scope of statistics: a trace, a range of time, and the events that count.


Mask = NDArray[np.bool_]
Rows = NDArray[np.integer]
_CHUNK: Final = 1 << 17


def _never() -> bool:
    return False


@dataclass
class Scope:
    """A trace, a range, and the events that count.

    Attributes:
        trace: The data.
        window: The range, within the trace.
        passes: bool (events,), events that count; None = all.
        basis: Data that is the same for every range.
        is_cancelled: Called now and then; true stops the computation.
    """

    trace: Trace
    window: TimeWindow
    passes: Mask | None
    basis: Basis
    is_cancelled: Callable[[], bool] = field(default=_never)

    @cached_property
    def rows(self) -> slice:
        """Rows of the events in the range."""
        return self.trace.rows_between(self.window)

    @property
    def is_whole(self) -> bool:
        """True if the range has all events of the trace."""
        return (self.rows.start, self.rows.stop) == (0, len(self.trace.events))

    @cached_property
    def covered(self) -> CoveredRange:
        """Part of the range that the file of each thread, process and CPU covers."""
        return covered(self.trace, self.window)

    @property
    def length_s(self) -> float:
        """Length of the range in seconds."""
        return self.window.length / self.trace.clock.cycles_per_s

    def check(self) -> None:
        """Raise `Cancelled` if the caller has cancelled."""
        if self.is_cancelled():
            raise Cancelled("the statistics were stopped")

    def chunks(self) -> Iterator[slice]:
        """Yield the events of the range in parts that fit the processor's cache."""
        for start in range(self.rows.start, self.rows.stop, _CHUNK):
            self.check()
            yield slice(start, min(start + _CHUNK, self.rows.stop))

    def selected(self, table: Mask) -> Rows:
        """Return the events of the range that count and whose code is in a table, int64 rows, ascending.

        Args:
            table: bool (32768,), codes.
        """
        parts = []
        for part in self.chunks():
            fits = table[self.trace.events.code[part]]
            if self.passes is not None:
                fits &= self.passes[part]
            parts.append(np.flatnonzero(fits) + part.start)
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def cut(self, start: Cycles, end: Cycles) -> tuple[Cycles, Cycles]:
        """Return starts and ends of spans, cycles, int64 (n,), cut at the range; spans outside become empty."""
        start = np.clip(start, self.window.start, self.window.end)
        return start, np.maximum(np.clip(end, self.window.start, self.window.end), start)

    def lengths(self, begins: Rows, kind: LinkKind = LinkKind.CALL) -> tuple[Cycles, NDArray[np.int64]]:
        """Return the lengths (cycles) of the links of a kind that begin with the given events, and their end events.

        Args:
            begins: (n,), rows of the event table.
            kind: Kind of the links.

        Returns:
            Two columns, int64 (n,); -1 where the end is not in the trace or not sure.
        """
        ends = ends_of(self.trace, kind, begins).astype(np.int64)
        time = self.trace.events.time_cycles
        ends[ends >= OPEN] = -1
        known = np.flatnonzero(ends >= 0)
        cycles = np.full(len(ends), -1, np.int64)
        cycles[known] = time[ends[known]] - time[begins[known]]
        return cycles, ends


def scope_of(
    trace: Trace,
    window: TimeWindow | None,
    passes: Mask | None,
    basis: Basis | None,
    is_cancelled: Callable[[], bool] | None,
) -> Scope:
    """Return a scope; the arguments are those of `Statistics`.

    Raises:
        UsageError: The range is outside the trace, or the mask is that of another trace.
    """
    whole = trace.window
    if window is None:
        window = trusted_window(trace)
    elif window.end <= whole.start or window.start >= whole.end:
        raise UsageError("the range is outside the trace")
    if passes is not None and passes.shape != trace.events.time_cycles.shape:
        raise UsageError(f"the mask has {len(passes):,} rows, the trace {len(trace.events):,} events")
    inside = TimeWindow(max(window.start, whole.start), min(window.end, whole.end))
    return Scope(trace, inside, passes, basis or Basis(trace), is_cancelled or _never)


def codes_where(test: Callable[[NDArray[np.int64], NDArray[np.int64]], Mask]) -> Mask:
    """Return which codes pass a test, bool (32768,); the test takes the internal classes and event numbers of codes."""
    codes = np.arange(wire.CODE_COUNT)
    return test(codes >> wire.CLASS_SHIFT, codes & wire.EVENT_MASK)


# Sums, maxima and percentiles of values by key, in whole cycles.


Keys = NDArray[np.integer[Any]]


def sum_by(keys: Keys, values: Cycles, count: int) -> Cycles:
    """Return the sum of the values of each key below `count`, exact, int64 (count,)."""
    total = np.zeros(count, np.int64)
    np.add.at(total, keys, values)
    return total


def largest_by(keys: Keys, values: Cycles, count: int) -> tuple[Cycles, Cycles]:
    """Return the largest value of each key and its first position, int64 (count,); 0 and -1 for keys without one."""
    largest, position = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    np.maximum.at(largest, keys, values)
    largest_rows = np.flatnonzero(values == largest[keys])[::-1]  # so that the first of equals is written last
    position[keys[largest_rows]] = largest_rows
    return largest, position


def percentile_by(keys: Keys, values: Cycles, count: int, share: float) -> Cycles:
    """Return the percentile of each key's values, at a share from 0 to 1, int64 (count,); 0 for keys without one."""
    return percentiles_by(keys, values, count, (share,))[0]


def percentiles_by(keys: Keys, values: Cycles, count: int, shares: Sequence[float]) -> tuple[Cycles, ...]:
    """Return what `percentile_by` returns for each of several shares; the values are sorted only once."""
    size = np.bincount(keys, minlength=count)
    span = int(values.max(initial=0)) + 1
    if int(values.min(initial=0)) >= 0 and count * span < 1 << 63:  # numpy sorts numbers faster than their order
        ascending = np.sort(keys.astype(np.int64) * span + values) - np.repeat(np.arange(count) * span, size)
    else:
        ascending = values[np.lexsort((values, keys))]
    start, ascending = np.cumsum(size) - size, np.append(ascending, 0)
    ranks = (np.maximum(np.ceil(share * size).astype(np.int64) - 1, 0) for share in shares)
    return tuple(ascending[np.where(size > 0, start + rank, len(values))] for rank in ranks)


# Marks: how far a figure or an answer can be trusted.


class Mark(StrEnum):
    """Degrees of trust in a result from a trace, the highest first."""

    EXACT = "exact"
    """Nothing that the result depends on is missing."""
    LOWER_BOUND = "lower-bound"
    """The true value is at least this: the missing events could only add to it."""
    ESTIMATE = "estimate"
    """The true value may be larger or smaller, as events are missing."""
    NEEDS_WIDE = "needs-wide"
    """No result: only wide events have the arguments that it needs."""
    NEEDS_CLASS = "needs-class"
    """No result: the events that it needs were not captured."""
    NOT_LOGGED = "not-logged"
    """No result: the kernel of this release does not log what it needs, or the trace is not that of a kernel."""

    @property
    def is_answer(self) -> bool:
        """True if a value with this mark is a result, though perhaps not an exact one."""
        return self in (Mark.EXACT, Mark.LOWER_BOUND, Mark.ESTIMATE)


TITLES: Final = {
    Mark.EXACT: "Exact",
    Mark.LOWER_BOUND: "Lower bound",
    Mark.ESTIMATE: "Estimate",
    Mark.NEEDS_WIDE: "Needs wide events",
    Mark.NEEDS_CLASS: "Needs other events",
    Mark.NOT_LOGGED: "Not logged",
}
SIGNS: Final = {Mark.EXACT: "", Mark.LOWER_BOUND: AT_LEAST_SIGN}
_DOUBTFUL: Final = "\N{ALMOST EQUAL TO}"


def sign(mark: Mark) -> str:
    """Return the sign to put before a value: empty, or the sign that means "at least" or "about"."""
    return SIGNS.get(mark, _DOUBTFUL)


@dataclass(frozen=True, slots=True)
class Trust:
    """The trust in a result: a mark with its reason.

    Attributes:
        mark: How far the result can be trusted.
        reason: Why the result is not exact, without a full stop; empty if it is.
    """

    mark: Mark = Mark.EXACT
    reason: str = ""

    def at_worst(self, other: Trust) -> Trust:
        """Return the one of `self` and `other` that can be trusted less; `self` if their marks are equal."""
        order = tuple(Mark)
        return other if order.index(other.mark) > order.index(self.mark) else self

    @property
    def says(self) -> str:
        """The sign, the mark and the reason on one line; empty if the result is exact."""
        return f"{sign(self.mark)} {TITLES[self.mark]}: {self.reason}" if self.mark is not Mark.EXACT else ""

    def as_record(self) -> dict[str, str]:
        """Return the mark, and the reason if there is one, as plain values."""
        return {"mark": str(self.mark)} | ({"reason": self.reason} if self.reason else {})


EXACT: Final = Trust()
