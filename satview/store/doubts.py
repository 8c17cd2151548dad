"""CPUs, processes and threads that occur only in damaged slots, and the time span in which a trace can be trusted.

A flipped bit turns the CPU of an event into CPU 37, or its process into 67,108,867. Nothing else in the trace refers to
these, so the window shows them in a separate lane and not among the real ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.threads import Once
from satview.base.time import TimeWindow
from satview.base.time_text import format_duration
from satview.events import wire
from satview.store.problems import Problem, ProblemKind
from satview.store.tables import BufferTable, EventTable, StateIndex
from satview.store.trace import Trace

_CPUS: Final = 64
_RARE: Final = 100  # a CPU that the header does not declare is doubtful if it logged less than one in 100 events
_LEAST: Final = 3  # minimum number of events of a CPU after a gap in the numbers, if no CPUs are declared
_FEW_STATES: Final = 2  # a real thread has more state events, or its creation or end is in the trace
_LOSSES: Final = frozenset({"lost-buffers", "lost-events"})
_BEYOND: Final = frozenset({"ring-tail", "clock-unproven"})  # problems with events long before or after the rest


@dataclass(frozen=True, slots=True)
class Doubts:
    """CPUs, processes and threads that occur only in damaged slots.

    Attributes:
        cpus: bool (64,).
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
        """Return a sentence on these events; times are relative to the first event of the trace."""
        start, end = (format_duration(trace.clock.ns(time)) for time in (self.start_cycles, self.end_cycles))
        why = ", ".join(kind.title for kind in self.reasons)
        return f"{self.events:,} events from {start} to {end} lie outside of the time that can be trusted ({why})"

    def record(self, trace: Trace) -> dict[str, Any]:
        """Return values for JSON; times are in nanoseconds since the first event of the trace."""
        return {
            "events": self.events,
            "start_ns": trace.clock.ns(self.start_cycles),
            "end_ns": trace.clock.ns(self.end_cycles),
            "reasons": [kind.slug for kind in self.reasons],
        }


def trusted_window(trace: Trace) -> TimeWindow:
    """Return the time span in which the trace can be trusted.

    It excludes events written while a ring was saved. If a TIME event without proof separates two parts of the trace,
    it excludes the part with fewer events.
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
    """Return the trace without the events after `trusted_window`; row numbers are unchanged."""
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
    """Return the problems whose events may be long before or after the rest, with their times."""
    return [(p.time_cycles, p) for p in trace.problems if p.kind.slug in _BEYOND and p.time_cycles is not None]


def count_cpus(events: EventTable, declared: int) -> int:
    """Return the number of CPUs of a target, 1 to 64.

    A CPU whose number is too large for the declared number of CPUs counts if it logged TIME events and other events, or
    at least 1 % of all events. If nothing is declared, all CPUs up to the first gap in the numbers count, because a
    damaged number is rarely just the next number.

    Args:
        events: Events of the trace.
        declared: Number of CPUs according to header or system page; 0 = not declared.
    """
    logged_cpus = int(events.cpu.max(initial=0)) + 1
    if 0 < logged_cpus <= declared:
        return declared
    counts = np.bincount(events.cpu, minlength=_CPUS)
    trusted_cpus = declared or int(np.argmin(np.append(counts, 0) > 0))
    if not trusted_cpus < logged_cpus:
        return max(1, logged_cpus)
    is_real = counts >= max(1 if declared else _LEAST, len(events) // _RARE)
    has_time = np.bincount(events.cpu[events.code == wire.CONTROL_TIME], minlength=_CPUS)
    is_real |= (has_time > 0) & (counts > has_time)
    is_real[:trusted_cpus] = False
    return max(1, trusted_cpus, int(np.flatnonzero(is_real)[-1]) + 1 if is_real.any() else 0)


def damage(trace: Trace) -> list[tuple[int, Problem]]:
    """Return problems that damaged the trace, except losses, with their times in cycles, sorted by time.

    If only the byte offset of a problem is known, its time is that of the first event at or after the offset.
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
    cpus = np.zeros(_CPUS, np.bool_)
    if int(trace.events.cpu.max(initial=0)) >= trace.cpu_count:  # else counting them would take 6 ns an event
        cpus[trace.cpu_count :] = True
        cpus &= np.bincount(trace.events.cpu, minlength=_CPUS)[:_CPUS] > 0
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
