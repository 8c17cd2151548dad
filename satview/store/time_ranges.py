"""Sets of time ranges, ranges in which events are missing, and CPUs and threads that occur only in damaged slots."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import numbers_of
from satview.base.safe_text import counted
from satview.base.threads import Once
from satview.base.time import Clock, TimeWindow, format_duration, format_moment, range_text
from satview.core import statistics
from satview.events import wire
from satview.events.spec import Release
from satview.events.states import READY, RUNNING
from satview.store.axis import files_of
from satview.store.problems import Problem, ProblemKind
from satview.store.tables import BufferTable, EventTable, StateIndex
from satview.store.trace import Trace

# Locations in a trace, such as that of a failed test, as text and as a command that shows the location.


_ROOM: Final = 4  # the view is this many times as wide as the location, to show its surroundings
_LEAST_NS: Final = 20_000  # minimum width of a location; that of a point in time


@dataclass(frozen=True, slots=True)
class Location:
    """A time range in a trace, and the event at its start.

    Attributes:
        path: The file.
        start_cycles, end_cycles: Start and end; equal for a point in time.
        event: Number of the event, from 1; 0 = no particular event.
        clock: Clock of the trace.
        whole: Range of the whole trace, cycles.
    """

    path: Path
    start_cycles: int
    end_cycles: int
    event: int
    clock: Clock
    whole: TimeWindow

    def __str__(self) -> str:
        """Return the location as text: `at 1.234 567 s (event 28,700)`."""
        event = f" (event {self.event:,})" if self.event else ""
        return f"at {format_moment(self.start_cycles, self.clock)}{event}"

    @property
    def range_text(self) -> str:
        """The part of the trace to show, as an argument of `--range`; events at the end are included."""
        length = max(self.end_cycles - self.start_cycles, self.clock.cycles_of(_LEAST_NS))
        room = length * (_ROOM - 1) // 2
        begin, end = self.start_cycles - room, self.start_cycles + length + room + 1
        return range_text(TimeWindow(begin, end).within(self.whole), self.clock)

    @property
    def options(self) -> list[str]:
        """Options of a `satview` command that select this location in the file; empty if it is the whole trace."""
        if not self.event and self.start_cycles <= self.whole.start and self.end_cycles >= self.whole.end:
            return []
        return ["--range", self.range_text, *(["--select", str(self.event)] if self.event else [])]

    @property
    def command(self) -> str:
        """The command that opens the trace at this location."""
        return shlex.join(["satview", str(self.path), *self.options])


def location_of(trace: Trace, start_cycles: int, end_cycles: int, row: int = -1) -> Location:
    """Return a location in a trace.

    Args:
        trace: The trace.
        start_cycles: Start.
        end_cycles: End.
        row: Row of the event at the start; -1 = none.
    """
    return Location(trace.path, start_cycles, end_cycles, row + 1, trace.clock, trace.window)


Cycles = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TimeRanges:
    """Sorted time ranges that do not overlap or touch.

    Attributes:
        start, end: int64, (n,), cycles; the end is not included.
    """

    start: Cycles
    end: Cycles

    @classmethod
    def of(cls, start: Cycles, end: Cycles) -> TimeRanges:
        """Return the union of some ranges in any order; empty ranges are ignored."""
        keep = end > start
        start, end = start[keep], end[keep]
        order = np.argsort(start, kind="stable")
        start, latest = start[order], np.maximum.accumulate(end[order])
        begins = np.append(True, start[1:] > latest[:-1])[: len(start)]
        return cls(start[begins], latest[np.append(begins[1:], True)[: len(start)]])

    @classmethod
    def of_rows(cls, rows: Cycles) -> TimeRanges:
        """Return the union of ranges, given as `rows`, int64 (n, 2 or more), with start and end as first columns."""
        return cls.of(rows[:, 0], rows[:, 1])

    @classmethod
    def none(cls) -> TimeRanges:
        """Return an empty set of ranges."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    def within(self, start: Cycles, end: Cycles) -> Cycles:
        """Return the cycles of each [start, end) that these ranges cover, int64 of the same shape."""
        return statistics.covered(self.start, self.end, start, end)

    def meet(self, start: Cycles, end: Cycles) -> NDArray[np.bool_]:
        """Return for each [start, end) whether it overlaps any of the ranges.

        Returns:
            bool (n,).
        """
        ended_before = np.searchsorted(self.end, start, side="right")
        return np.asarray(np.searchsorted(self.start, end) > ended_before)


def cut_at(start: Cycles, end: Cycles, edges: Cycles) -> tuple[NDArray[np.int64], NDArray[np.int64], Cycles, Cycles]:
    """Split ranges at edges; parts outside the first and last edge are dropped.

    Args:
        start: int64, (n,), cycles.
        end: int64, (n,), cycles; not included.
        edges: int64, (bins + 1,), ascending.

    Returns:
        Four columns, int64 (pieces,): index of the original range, bin, start and end of each piece.
    """
    start, end = np.clip(start, edges[0], edges[-1]), np.clip(end, edges[0], edges[-1])
    nonempty = np.flatnonzero(end > start)
    first_edge = np.searchsorted(edges, start[nonempty], side="right") - 1
    last_edge = np.searchsorted(edges, end[nonempty]) - 1
    size = last_edge - first_edge + 1
    number = numbers_of(first_edge, size)
    rows = np.repeat(nonempty, size)
    return rows, number, np.maximum(start[rows], edges[number]), np.minimum(end[rows], edges[number + 1])


def overlaps(
    thread: NDArray[np.integer], begin: Cycles, end: Cycles, spans_thread: NDArray[np.integer],
    spans_begin: NDArray[np.integer], spans_end: NDArray[np.integer],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:  # fmt: skip
    """Return pairs of overlapping intervals of the same thread.

    Args:
        thread: (n,), thread of each interval of the first set.
        begin: int64 (n,), starts: rows of the event table, or any numbers below 2^32 that increase with time.
        end: int64 (n,), ends; not included.
        spans_thread: (m,), thread of each interval of the second set, in which intervals of a thread do not overlap.
        spans_begin: (m,), starts; the second set is sorted by thread and start.
        spans_end: (m,), ends; not included.

    Returns:
        Indices into the first and the second set, (k,) each.
    """
    key, own = spans_thread.astype(np.int64), thread.astype(np.int64) << 32
    key <<= 32
    key |= spans_begin
    stop = np.searchsorted(key, own | end)
    start = np.searchsorted(key, own | begin, side="right") - 1
    # The last interval that begins before `begin` may belong to another thread, or have ended.
    is_over = start < 0
    is_over[~is_over] = (spans_thread[start[~is_over]] != thread[~is_over]) | (
        spans_end[start[~is_over]] <= begin[~is_over])  # fmt: skip
    start = start + is_over
    sizes = np.maximum(stop - start, 0)
    position = np.repeat(np.arange(len(thread)), sizes)
    return position, numbers_of(start, sizes)


# Idle threads, which run on a CPU if no other thread does.


KERNEL_PID: Final = 1
"""Pid of the process of the kernel's own threads, QNX only."""


def idle_threads(trace: Trace) -> NDArray[np.bool_]:
    """Return which threads are idle threads, bool (threads,).

    In Linux these are the threads of process 0; in QNX the threads of process 1 with a name that starts with `idle`.
    Threads of process 1 without a name whose tid is at most the number of CPUs are idle, too (inferred in the format
    description, 8.4); in 8.0, where the description leaves this open, only if they never wait.
    """
    if (axis := files_of(trace)) is not None:
        idle = np.zeros(len(trace.threads), np.bool_)
        for part in axis.parts:
            idle[part.threads[idle_threads(part.trace)]] = True
        return idle
    threads = trace.threads
    if trace.release is Release.LINUX:
        return np.asarray(threads.pid == 0)
    idle = np.array([name.startswith("idle") for name in threads.names], np.bool_)
    if trace.release.is_qnx:
        unnamed = np.array([not name for name in threads.names], np.bool_)
        unnamed &= (threads.tid <= trace.cpu_count) & (threads.pid == KERNEL_PID)
        if trace.release is Release.QNX_8:
            for row in np.flatnonzero(unnamed).tolist():
                code = trace.events.code[trace.states.of(row)]
                state = trace.catalogue.state_value_of_code[code[code != wire.THREAD_CREATE]]
                unnamed[row] = len(state) > 0 and bool(np.isin(state, (READY, RUNNING)).all())
        idle |= unnamed
    return np.asarray(idle & (threads.pid == KERNEL_PID))


EVERY_CPU: Final = -1
_FULL: Final = 0.98  # of the largest buffer; the fill level at hand-over varies by a slot or two


def losses(trace: Trace) -> NDArray[np.int64]:
    """Return the time ranges in which events are missing, int64 (k, 3): start and end in cycles, CPU; sorted by start.

    The range of a lost buffer is from the last event before it to the next buffer. Up to 7.x all CPUs share the
    buffers, so the CPU is `EVERY_CPU`. In 8.0 the kernel also reports events that it dropped. A trace of 8.0 may begin
    later on one CPU than on another, because a ring reaches back further on a quiet CPU than on a busy one. The trace
    may also end earlier on a CPU, because the last buffer is missing if the logger did not collect it.
    """
    return trace.cached("losses", _losses)


def _losses(trace: Trace) -> NDArray[np.int64]:
    buffers, events = trace.buffers, trace.events
    per_cpu = trace.release == Release.QNX_8
    gaps = np.flatnonzero(buffers.lost_before)
    drops = gaps[:0]
    if trace.code_counts[wire.CONTROL_DROPPED]:
        drops = np.flatnonzero(events.code == wire.CONTROL_DROPPED)
    ends = np.concatenate((buffers.time_cycles[gaps], events.time_cycles[drops]))
    cpus = np.full(len(ends), EVERY_CPU, np.int64)
    if per_cpu:
        cpus = np.concatenate((buffers.cpu[gaps], events.cpu[drops])).astype(np.int64)
    ranges = np.stack((_last_before(trace, ends, cpus), ends, cpus), axis=1)
    # The loss in a truncated buffer is inside it, not just before the next buffer, which reveals the loss.
    is_elsewhere = np.isin(ends, trace.gaps[:, 3]) & np.isin(cpus, trace.gaps[:, 2])
    ranges = np.concatenate((ranges[~is_elsewhere], trace.gaps[:, :3]))
    if per_cpu:
        late = [(trace.window.start - 1, end, cpu) for end, cpu in _late_starts(trace)]
        early = [(start, trace.window.end, cpu) for start, cpu in _early_ends(trace)]
        ranges = np.concatenate((ranges, np.array(late + early, np.int64).reshape(-1, 3)))
    ranges[:, 1] = np.maximum(ranges[:, 1], ranges[:, 0] + 1)
    return np.unique(ranges, axis=0)


def _last_before(trace: Trace, ends: NDArray[np.int64], cpus: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the time of the last event before each of `ends` on its CPU, cycles, int64 (n,).

    Without such an event, the result is the time in `ends` itself.
    """
    starts = ends.copy()
    for cpu in np.unique(cpus).tolist():
        of_cpu = np.flatnonzero(cpus == cpu)
        times = trace.events.time_cycles
        if cpu != EVERY_CPU:
            times = times[trace.events.cpu == cpu]
        stop = np.searchsorted(times, ends[of_cpu])
        starts[of_cpu[stop > 0]] = times[stop[stop > 0] - 1]
    return starts


def _late_starts(trace: Trace) -> list[tuple[int, int]]:
    """Return (time in cycles, CPU) of the oldest buffer of each CPU whose earlier buffers are missing.

    Earlier buffers are missing if the oldest buffer has a number above 1 and one of two conditions holds: the buffer
    has no slot count, as in a ring; or the buffers of another CPU start at number 1, because all CPUs count from the
    same time. This other CPU must have two or more buffers: a single buffer flushed by STOP has number 1 again.
    """
    buffers = trace.buffers
    rows_by_cpu = [np.flatnonzero(buffers.cpu == cpu) for cpu in np.unique(buffers.cpu)]
    oldest = [int(rows[np.argmin(buffers.time_cycles[rows])]) for rows in rows_by_cpu]
    is_fresh = any(
        buffers.sequence[oldest_row] == 1 for oldest_row, rows in zip(oldest, rows_by_cpu, strict=True) if len(rows) > 1
    )
    return [
        (int(buffers.time_cycles[oldest_row]), int(buffers.cpu[oldest_row]))
        for oldest_row in oldest
        if buffers.sequence[oldest_row] > 1 and (is_fresh or not buffers.slots[oldest_row])
    ]


def _early_ends(trace: Trace) -> list[tuple[int, int]]:
    """Return (cycles of the last event, CPU) of the CPUs whose newest buffer is full and whose events end early.

    A buffer that is handed over at the end of a trace, or on request, is rarely full. So the events after a full buffer
    are in a buffer that was never handed over. Buffers of a ring have no slot count until they are handed over.
    """
    buffers, events = trace.buffers, trace.events
    full = int(buffers.slots.max(initial=0)) * _FULL
    ends = []
    for cpu in np.unique(buffers.cpu).tolist():
        own = np.flatnonzero(buffers.cpu == cpu)
        newest = own[np.argmax(buffers.time_cycles[own])]
        if not 0 < full <= buffers.slots[newest]:
            continue
        row = int(np.searchsorted(events.time_cycles, buffers.time_cycles[newest]))
        last = int(events.time_cycles[row + np.flatnonzero(events.cpu[row:] == cpu)[-1]])
        if last < trace.window.end - 1:
            ends.append((last, cpu))
    return ends


def losses_of(lost: NDArray[np.int64], cpu: int) -> NDArray[np.int64]:
    """Return start and end, cycles, int64 (k, 2), of the losses that affect a CPU."""
    return lost[(lost[:, 2] == EVERY_CPU) | (lost[:, 2] == cpu), :2]


def merged(ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ranges sorted, with overlapping and touching ones merged, int64 (m, 2)."""
    time_ranges = TimeRanges.of_rows(ranges)
    return np.stack((time_ranges.start, time_ranges.end), axis=1)


def lost_marks(trace: Trace) -> NDArray[np.int64]:
    """Return the time ranges in which events are missing, shape (k, 2): start and end in cycles, ascending."""
    return merged(losses(trace)[:, :2])


# CPUs, processes and threads that occur only in damaged slots, and the time span in which a trace can be trusted.
#
# A flipped bit turns the CPU of an event into CPU 37, or its process into 67,108,867. Nothing else in the trace refers
# to these, so the window shows them in a separate lane and not among the real ones.


CPU_NUMBERS: Final = 256  # the event table has eight bits for a CPU
_RARE: Final = 100  # a CPU that the header does not declare is doubtful if it logged less than one in 100 events
_LEAST: Final = 3  # minimum number of events of a CPU after a gap in the numbers, if no CPUs are declared
_FEW_STATES: Final = 2  # a real thread has more state events, or its creation or end is in the trace
_LOSSES: Final = frozenset({"lost-buffers", "lost-events"})
_BEYOND: Final = frozenset({"ring-tail", "clock-unproven"})  # problems with events long before or after the rest


@dataclass(frozen=True, slots=True)
class Doubts:
    """CPUs, processes and threads that occur only in damaged slots.

    Attributes:
        cpus: bool (256,), by CPU number.
        threads: bool, by row of the thread table.
        processes: bool, by row of the process table.
    """

    cpus: NDArray[np.bool_]
    threads: NDArray[np.bool_]
    processes: NDArray[np.bool_]

    def __bool__(self) -> bool:
        return bool(self.cpus.any() or self.threads.any() or self.processes.any())


def doubts(trace: Trace) -> Doubts:
    """Return the CPUs, processes and threads that occur only in damaged slots; cached with the trace."""
    return trace.cached("doubts", _doubts)


@dataclass(frozen=True, slots=True)
class Outside:
    """Events outside the trusted time span of a trace.

    Attributes:
        events: Number of events.
        start_cycles, end_cycles: Times of the first and the last of these events.
        reasons: Kinds of problems that are the cause, in the order found.
    """

    events: int
    start_cycles: int
    end_cycles: int
    reasons: tuple[ProblemKind, ...]

    def words(self, trace: Trace) -> str:
        """Return a sentence on the events outside; times are relative to the first event of the trace."""
        start, end = (format_duration(trace.clock.ns(time)) for time in (self.start_cycles, self.end_cycles))
        why = ", ".join(kind.title for kind in self.reasons)
        events, lie = counted(self.events, "event"), "lies" if self.events == 1 else "lie"
        return f"{events} from {start} to {end} {lie} outside of the time that can be trusted ({why})"

    def record(self, trace: Trace) -> dict[str, Any]:
        """Return number, times and reasons of these events as values for JSON.

        Times are in nanoseconds since the first event of the trace.
        """
        return {
            "events": self.events,
            "start_ns": trace.clock.ns(self.start_cycles),
            "end_ns": trace.clock.ns(self.end_cycles),
            "reasons": [kind.slug for kind in self.reasons],
        }


def trusted_window(trace: Trace) -> TimeWindow:
    """Return the time span in which the trace can be trusted.

    The span excludes events written while a ring was saved. If the trace is divided by a TIME event that is much later
    than those before and may be damaged (the problem `clock-unproven`), the span excludes the part with fewer events.
    """
    times = trace.events.time_cycles
    begin, end = 0, len(times)
    for time, problem in _beyond(trace):
        row = int(np.searchsorted(times, time))
        if begin < row < end:
            if problem.kind.slug == "ring-tail" or row - begin >= end - row:
                end = row
            else:
                begin = row
    if end - begin == len(times):
        return trace.window
    return TimeWindow(int(times[begin]), int(times[end - 1]) + 1)


def trusted_duration_ns(trace: Trace) -> int:
    """Return the time from the first to the last event of `trusted_window`; 0 if there is no event."""
    window = trusted_window(trace)
    return trace.clock.duration_ns(window.end - 1 - window.start) if len(trace.events) else 0


def outside(trace: Trace) -> Outside | None:
    """Return the events outside `trusted_window`, None if there are none."""
    window, whole = trusted_window(trace), trace.window
    if window == whole:
        return None
    rows = trace.rows_between(window)
    times = trace.events.time_cycles
    start = whole.start if rows.start else int(times[rows.stop])
    last = whole.end - 1 if rows.stop < len(times) else int(times[rows.start - 1])
    kinds = tuple(dict.fromkeys(problem.kind for _, problem in _beyond(trace)))
    return Outside(len(times) - (rows.stop - rows.start), start, last, kinds)


def outside_words(trace: Trace) -> str:
    """Return a sentence on the events outside `trusted_window`, empty if there are none."""
    left_out = outside(trace)
    return left_out.words(trace) if left_out is not None else ""


def outside_record(trace: Trace) -> dict[str, Any] | None:
    """Return the events outside `trusted_window` as values for JSON, None if there are none."""
    left_out = outside(trace)
    return left_out.record(trace) if left_out is not None else None


def trusted_part(trace: Trace) -> Trace:
    """Return the trace without the events after `trusted_window`; row numbers are unchanged.

    A trace of several files is returned whole.
    """
    if trace.axis is not None or trusted_window(trace).end == trace.window.end:
        return trace
    return trace.cached("trusted_part", _trusted_part)


def _trusted_part(trace: Trace) -> Trace:
    window, events = trusted_window(trace), trace.events
    end = int(np.searchsorted(events.time_cycles, window.end))
    cut = events.before(end)
    is_state = trace.states.event < end
    kept = np.concatenate(([0], np.cumsum(is_state)))
    states = StateIndex(trace.states.event[is_state], kept[trace.states.start].astype(np.int64))
    is_buffer = trace.buffers.time_cycles < window.end
    pairs = trace.pairs
    if pairs is not None:
        pairs = np.where(pairs[:end] < end, pairs[:end], np.uint32(0xFFFFFFFF))
    return replace(
        trace,
        events=cut,
        states=states,
        buffers=BufferTable(*(getattr(trace.buffers, column.name)[is_buffer] for column in fields(BufferTable))),
        fragments=trace.fragments.before(end),
        truncated=trace.truncated[trace.truncated < end],
        pairs=pairs,
        _cached=Once(),
    )


def _beyond(trace: Trace) -> list[tuple[int, Problem]]:
    """Return the problems whose events may be long before or after all others, each with its time, cycles."""
    return [(p.time_cycles, p) for p in trace.problems if p.kind.slug in _BEYOND and p.time_cycles is not None]


def count_cpus(events: EventTable, declared: int) -> int:
    """Return the number of CPUs of a target, 1 to 64.

    All declared CPUs count; if nothing is declared, all CPUs up to the first gap in the numbers, because a damaged
    number is rarely just the next number. A CPU with a larger number counts, together with all CPUs before it, if it
    logged TIME events and other events, or at least 1 % of all events (if nothing is declared, at least 3 events, too).

    Args:
        events: Events of the trace.
        declared: Number of CPUs according to header or system page; 0 = not declared.
    """
    logged_cpus = int(events.cpu.max(initial=0)) + 1
    if 0 < logged_cpus <= declared:
        return declared
    counts = np.bincount(events.cpu, minlength=CPU_NUMBERS)
    trusted_cpus = declared or int(np.argmin(np.append(counts, 0) > 0))
    if not trusted_cpus < logged_cpus:
        return max(1, logged_cpus)
    is_real = counts >= max(1 if declared else _LEAST, len(events) // _RARE)
    has_time = np.bincount(events.cpu[events.code == wire.CONTROL_TIME], minlength=CPU_NUMBERS)
    is_real |= (has_time > 0) & (counts > has_time)
    is_real[:trusted_cpus] = False
    return max(1, trusted_cpus, int(np.flatnonzero(is_real)[-1]) + 1 if is_real.any() else 0)


def damage(trace: Trace) -> list[tuple[int, Problem]]:
    """Return problems that damaged the trace, except losses, with their times in cycles, sorted by time.

    If only the byte offset of a problem in a .kev file is known, its time is roughly that of the first event at or
    after the offset. Other problems without a time are left out.
    """
    first_byte = trace.header.length + (trace.header.number("SYSPAGE_LEN") or 0)
    damages = []
    for problem in trace.problems:
        time = problem.time_cycles
        if problem.kind.slug in _LOSSES or not (problem.kind.costs_data or problem.kind.slug in _BEYOND):
            continue
        if time is None and problem.offset is not None and trace.format == "kev" and len(trace.events):
            slot = max(0, problem.offset - first_byte) // wire.SLOT_BYTES
            # Time order is nearly file order, and an approximate mark suffices.
            row = int(np.searchsorted(trace.events.slot, slot))
            time = int(trace.events.time_cycles[min(row, len(trace.events) - 1)])
        if time is not None:
            damages.append((time, problem))
    return sorted(damages, key=itemgetter(0))


def _doubts(trace: Trace) -> Doubts:
    threads = _doubtful_threads(trace)
    known = np.zeros(len(trace.processes), np.bool_)
    known[trace.threads.process[~threads]] = True
    named = [bool(name) for name in trace.processes.names]
    processes = (
        ~known & ~np.array(named, np.bool_) & np.isin(np.arange(len(trace.processes)), trace.threads.process[threads])
    )
    cpus = np.zeros(CPU_NUMBERS, np.bool_)
    if int(trace.events.cpu.max(initial=0)) >= trace.cpu_count:  # else counting them would take 6 ns an event
        cpus[trace.cpu_count :] = True
        cpus &= np.bincount(trace.events.cpu, minlength=CPU_NUMBERS) > 0
    return Doubts(cpus, threads, processes)


def _doubtful_threads(trace: Trace) -> NDArray[np.bool_]:
    """Return which threads have few state events and no creation or end, bool (threads,).

    A thread is doubtful only if the trace shows the creation of every real thread: it begins with the dump of all
    threads, logs the creation of threads, and lost no events. Otherwise all are False.
    """
    none = np.zeros(len(trace.threads), np.bool_)
    created = trace.code_counts[wire.THREAD_CREATE]
    if len(trace.events) == 0 or trace.dump_end_cycles < trace.window.start or trace.buffers.lost_before.any():
        return none
    if created < len(trace.threads) // 2 or trace.problems.counts().get("lost-events"):
        return none
    rows, start = trace.states.event, trace.states.start
    few = np.diff(start) <= _FEW_STATES
    few[0] = False
    suspects = np.flatnonzero(few)
    for thread in suspects.tolist():
        codes = trace.events.code[rows[start[thread] : start[thread + 1]]]
        none[thread] = len(codes) > 0 and not np.any((codes == wire.THREAD_CREATE) | (codes == wire.THREAD_DESTROY))
    return none
