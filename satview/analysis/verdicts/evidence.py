"""Data and functions for the rules of verdicts: intervals of threads, windows over them, names, and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from satview.analysis.wait_graph import StateIntervals, WaitGraph, end_rows, has_whole_states, whole_states
from satview.base.time import format_duration, format_moment
from satview.core import links, statistics
from satview.events.states import READY, RUNNING, STATE_BY_NAME, STATE_BY_VALUE
from satview.filters.derived_columns import TraceDerivedColumns
from satview.linkage.blockers import JOIN, REPLY, RWLOCKS, SEND, Blockers
from satview.linkage.calls import ends_of_interrupts, interrupt_rows, numbers_of_interrupts
from satview.linkage.links import NO_EVENT, Certainty, Rows
from satview.linkage.waits import MUTEX, Waits
from satview.store.time_ranges import KERNEL_PID, Location, TimeRanges, idle_threads, location_of, overlaps
from satview.store.trace import Trace
from satview.timeline.state_lanes import run_slices

# One verdict: the problem, its time, the events that show it, and the remedy.


class Severity(StrEnum):
    """Degrees of severity of a verdict."""

    ERROR = "error"
    """Something does not work: it hangs, is wrong, or is missing."""
    WARNING = "warning"
    """Something works, but later than it should."""
    INFO = "info"
    """Something worth knowing, which may be intended."""


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """One time at which a problem occurs.

    Attributes:
        start_cycles, end_cycles: Start and end; the end is not included.
        row: The event that begins the occurrence; -1 if there is no particular one.
    """

    start_cycles: int
    end_cycles: int
    row: int = -1


@dataclass(frozen=True, slots=True)
class Verdict:
    """A problem that was found in a trace.

    Attributes:
        kind: Kind of problem, the name of the rule or plug-in that found it.
        severity: How much the problem matters.
        start_cycles, end_cycles: The time that the sentence names, the end not included: the longest occurrence, or the
            worst one if the rule examines windows of a fixed length.
        threads: Rows of the thread table, affected threads first.
        objects: Texts for the objects concerned: mutexes, channels, interrupts, CPUs.
        evidence: Rows of the events that show the problem, ascending; the first ones if there are many.
        says: One sentence: who, what, when, for how long; with names of the trace that are not escaped.
        remedy: One sentence: what would help.
        occurrences: All times at which the problem occurs, in time order, including the one in the sentence.
        roles: Role of each event of `evidence`: waits, holder, preempts, ...; empty if unknown.
        certainty: Certainty of the weakest link that the verdict rests on.
        proof: One sentence: what would prove the problem, if that link is not exact; else empty.
    """

    kind: str
    severity: Severity
    start_cycles: int
    end_cycles: int
    threads: tuple[int, ...]
    objects: tuple[str, ...]
    evidence: tuple[int, ...]
    says: str
    remedy: str
    certainty: Certainty = Certainty.EXACT
    occurrences: tuple[Occurrence, ...] = ()
    roles: tuple[str, ...] = ()
    proof: str = ""

    def location(self, trace: Trace) -> Location:
        """Return the location of the problem in the trace, with the event at its start.

        If neither the evidence nor an occurrence names that event, the first event of the evidence is taken.
        """
        rows = [*self.evidence, *(case.row for case in self.occurrences if case.row >= 0)]
        at_start = (row for row in rows if int(trace.events.time_cycles[row]) == self.start_cycles)
        return location_of(trace, self.start_cycles, self.end_cycles, next(at_start, rows[0] if rows else -1))


# Data for the rules of verdicts: intervals of threads, windows over them, and names.


_Ints = NDArray[np.int64]
_MOST_EVENTS: Final = 24  # rows of evidence of one verdict
_STATES_AT_ONCE: Final = 1 << 18
_SLICES_AT_FIRST: Final = 1 << 10  # slices searched first for the last one of each CPU
MOST_NAMED: Final = 3
"""Maximum number of threads or interrupts that a sentence names; of the others it gives the number."""


class Times:
    """The times of all events, followed by the end of the trace, in cycles; the column of the trace is not copied.

    Args:
        trace: The events.
    """

    def __init__(self, trace: Trace) -> None:
        self._time, self._end = trace.events.time_cycles, trace.window.end

    def __len__(self) -> int:
        return len(self._time) + 1

    @overload
    def __getitem__(self, rows: int | np.integer) -> np.int64: ...
    @overload
    def __getitem__(self, rows: Rows | list[int]) -> _Ints: ...
    def __getitem__(self, rows: int | np.integer | Rows | list[int]) -> np.int64 | _Ints:
        """Return the times of events, cycles, same shape; the row after the last event is the end of the trace."""
        if isinstance(rows, int | np.integer):
            return self._time[rows] if rows < len(self._time) else np.int64(self._end)
        return links.times_of(self._time, np.asarray(rows), self._end)


class Evidence:
    """A trace and data that several rules need; each part is computed when first requested.

    Args:
        trace: The events.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.derived = TraceDerivedColumns(trace)

    # Intervals

    @cached_property
    def times(self) -> Times:
        """The times of all events, followed by the end of the trace, cycles."""
        return Times(self.trace)

    @cached_property
    def is_idle(self) -> NDArray[np.bool_]:
        """Which threads are idle threads, bool (threads,)."""
        return idle_threads(self.trace)

    @cached_property
    def all_cpus_cycles(self) -> int:
        """Time from which on every CPU has events, cycles; in a ring, CPUs may begin at different times."""
        trace = self.trace
        if trace.dump_end_cycles >= trace.window.start:
            return trace.window.start
        _, earliest = np.unique(trace.events.cpu, return_index=True)
        return int(trace.events.time_cycles[earliest].max())

    @cached_property
    def states(self) -> StateIntervals:
        """State intervals of threads; empty if the trace does not show them (`has_states`)."""
        return self._states if self.has_states else self._states.taken(slice(0))

    def states_of_threads(self) -> Iterator[slice]:
        """Yield slices of `states` that hold complete threads, for computations that need much memory."""
        threads, stop = self.states.thread, 0
        while (start := stop) < len(threads):
            last = threads[min(start + _STATES_AT_ONCE, len(threads)) - 1]
            stop = int(np.searchsorted(threads, last, side="right"))
            yield slice(start, stop)

    def ready_of(self, threads: Rows) -> StateIntervals:
        """Return the ready intervals of some threads.

        Args:
            threads: (n,), rows of the thread table, in any order.
        """
        is_asked = np.zeros(len(self.trace.threads), np.bool_)
        is_asked[threads] = True
        return self.states.taken(np.flatnonzero((self.states.value == READY) & is_asked[self.states.thread]))

    def runs_in(self, begin: _Ints, stop: _Ints) -> list[StateIntervals]:
        """Return the intervals in which threads ran and that overlap a range: an item per CPU, each in time order.

        CPUs without such intervals have no item.

        Args:
            begin: int64 (n,), first row of each range, rows of the event table.
            stop: int64 (n,), row after the last of each range.
        """
        ranges, states, overlapping = TimeRanges.of(begin, stop), self.states, [np.empty(0, np.intp)]
        starts = np.append(ranges.start, np.iinfo(np.int64).max)
        for part in self.states_of_threads():
            running = np.flatnonzero(states.value[part] == RUNNING) + part.start
            following = np.searchsorted(ranges.end, states.row[running], side="right")
            overlapping.append(running[starts[following] < states.end_row[running]])
        rows = np.concatenate(overlapping)
        runs = states.taken(rows[np.argsort(states.row[rows], kind="stable")])
        return [runs.taken(positions) for _, positions in groups(self.trace.events.cpu[runs.row])]

    def readies(self) -> Iterator[tuple[StateIntervals, _Ints, _Ints]]:
        """Yield the ready intervals of threads that begin once every CPU has events (at `all_cpus_cycles`).

        Intervals of kernel threads that begin in the opening dump are left out: it reports these threads as ready
        although they sleep.

        Yields:
            The intervals of some complete threads; int64 (n,) each, their starts and ends, cycles.
        """
        states, is_kernel = self.states, self.trace.threads.pid == KERNEL_PID
        for part in self.states_of_threads():
            ready = np.flatnonzero(states.value[part] == READY) + part.start
            begin = self.times[states.row[ready]]
            is_kept = begin >= self.all_cpus_cycles
            is_kept &= ~is_kernel[states.thread[ready]] | (begin > self.trace.dump_end_cycles)
            spans = states.taken(ready[is_kept])
            yield spans, begin[is_kept], self.times[spans.end_row]

    @cached_property
    def has_states(self) -> bool:
        """True if the trace has all events of threads between its losses: `has_whole_states`."""
        return has_whole_states(self.trace)

    @cached_property
    def _states(self) -> StateIntervals:
        return whole_states(self.trace)

    @cached_property
    def wait_graph(self) -> WaitGraph:
        """The waits that last to the end of the trace, with the threads that can end them."""
        return WaitGraph(self.trace)

    @cached_property
    def slices(self) -> tuple[NDArray[np.uint32], _Ints]:
        """Events at which threads got a CPU, uint32 (n,), and when they lost it, int64 (n,), cycles (`run_slices`)."""
        return run_slices(self.trace)

    @cached_property
    def _cpus_with_slices(self) -> int:
        return int(np.count_nonzero(np.bincount(self.trace.events.cpu[self.slices[0]])))

    def slices_in(self, span: tuple[int, int]) -> NDArray[np.intp]:
        """Return the positions of the `slices` that overlap a span of time, (k,), without searching all of them.

        Args:
            span: Start and end in cycles.
        """
        rows = np.searchsorted(self.trace.events.time_cycles, span).astype(np.uint32)
        begin, stop = np.searchsorted(self.slices[0], rows).astype(np.uint32)
        slices = np.concatenate((self._last_slices_before(int(begin)), np.arange(begin, stop)))
        return np.asarray(slices[self.slices[1][slices] > span[0]])

    def _last_slices_before(self, position: int) -> NDArray[np.intp]:
        """Return for each CPU the index of its last slice before index `position` of `slices`, intp (k,), ascending.

        That slice may still last when the slice at `position` begins. CPUs without an earlier slice are left out.
        """
        count = _SLICES_AT_FIRST
        while True:
            start = max(0, position - count)
            cpu = self.trace.events.cpu[self.slices[0][start:position]]
            _, back = np.unique(cpu[::-1], return_index=True)
            if start == 0 or len(back) == self._cpus_with_slices:
                return np.sort(position - 1 - back)
            count *= 8

    def end_rows(self, rows: Rows) -> _Ints:
        """Return rows with `OPEN` replaced by the number of events, int64, same shape."""
        return end_rows(self.trace, rows)

    def lengths(self, begin: Rows, end: Rows) -> _Ints:
        """Return the cycles from one event to another, int64 (n,); the row after the last event is the trace's end."""
        lengths = self.times[end]
        lengths -= self.times[begin]
        return lengths

    # Words

    def name(self, thread: int) -> str:
        """Return the label of a thread."""
        return self.trace.thread_name(thread)

    def process_of(self, pid: int) -> str:
        """Return the label of a process by its pid."""
        return self.trace.name_of_pid(pid)

    def length(self, cycles: int) -> str:
        """Return a length in cycles as display text."""
        return format_duration(self.trace.clock.duration_ns(int(cycles)))

    def moment(self, cycles: int, length_cycles: int) -> str:
        """Return a moment from the start of the trace as display text, as exact as the given length requires."""
        return format_moment(int(cycles), self.trace.clock, int(length_cycles))

    def length_from(self, start: int, end: int) -> str:
        """Return a span of time as display text: `97.00 ms from 0.002 995 s`."""
        return f"{self.length(end - start)} from {self.moment(start, end - start)}"

    def ran_in(self, span: tuple[int, int]) -> tuple[_Ints, _Ints]:
        """Return the threads of the slices that overlap a span of time, and the length of each overlap, cycles.

        Returns:
            int64 (k,) each: rows of the thread table, cycles.
        """
        rows, ends = self.slices
        inside = self.slices_in(span)
        part = np.minimum(ends[inside], span[1]) - np.maximum(self.times[rows[inside]], span[0])
        return self.trace.events.thread[rows[inside]].astype(np.int64), part

    def most_of(self, threads: _Ints, cycles: _Ints) -> list[tuple[int, int]]:
        """Return (thread, cycles) of all threads with any cycles, largest first, without idle and unknown threads.

        Args:
            threads: int64 (n,), rows of the thread table, in any order, with repetitions.
            cycles: int64 (n,).
        """
        total = np.bincount(threads, cycles, len(self.is_idle)).astype(np.int64)
        total[self.is_idle] = total[0] = 0
        return _most_first(total)

    def shares(self, who: Sequence[tuple[int, int]], name: Callable[[int], str] | None = None) -> str:
        """Return a text for the result of `most_of` or `interrupts_in`: the first entries by name, the rest as a sum.

        Args:
            who: (number, cycles) of each entry, most cycles first; the number is that of a thread or an interrupt.
            name: Returns the name for a number; None = the numbers are threads.
        """
        count = _named_count(who)
        shown = [f"{(name or self.name)(row)} {self.length(cycles)}" for row, cycles in who[:count]]
        if rest := [cycles for _, cycles in who[count:]]:
            shown.append(f"and {len(rest)} more {self.length(sum(rest))}")
        return ", ".join(shown)

    def interrupts_in(self, start: _Ints, end: _Ints, cpu: _Ints) -> tuple[_Ints, _Ints, _Ints]:
        """Return the interrupts that CPUs handled in spans of time: one row for each pair of span and interrupt.

        A nested interrupt counts for the one that it interrupts. Empty from 8.0 on, where threads handle interrupts.

        Args:
            start: int64 (n,), cycles.
            end: int64 (n,), cycles.
            cpu: int64 (n,).

        Returns:
            int64 (k,) each: position of the span, number of the interrupt, cycles.
        """
        cpus, entry, ends, number = self._handled
        begin, stop = (
            np.searchsorted(self.trace.events.time_cycles, moment).astype(np.int64) for moment in (start, end)
        )
        span, which = overlaps(cpu, begin, stop, cpus, entry, ends)
        cycles = np.minimum(self.times[ends[which]], end[span]) - np.maximum(self.times[entry[which]], start[span])
        return span.astype(np.int64), number[which], cycles

    def interrupts(self, start: _Ints, end: _Ints, cpu: _Ints, least: int) -> str:
        """Return a text on how long CPUs handled interrupts in spans of time: `interrupt 0x21 3.100 ms`.

        Args:
            start: As for `interrupts_in`.
            end: As for `interrupts_in`.
            cpu: As for `interrupts_in`.
            least: Minimum total of all interrupts, cycles; the text is empty if they took less.
        """
        _, number, cycles = self.interrupts_in(start, end, cpu)
        kinds, which = np.unique(number, return_inverse=True)
        total = np.bincount(which, cycles).astype(np.int64)
        if total.sum() < least:
            return ""
        taken = [(int(kinds[kind]), length) for kind, length in _most_first(total)]
        return self.shares(taken, lambda number: f"interrupt 0x{number:x}")

    def interrupts_of_all(self, span: tuple[int, int], least: int) -> str:
        """Return the text of `interrupts` for one span on all CPUs."""
        cpus = np.arange(self.trace.cpu_count)
        return self.interrupts(np.full(len(cpus), span[0]), np.full(len(cpus), span[1]), cpus, least)

    @cached_property
    def _handled(self) -> tuple[_Ints, _Ints, _Ints, _Ints]:
        """The outermost interrupts by CPU, then by row: CPU, rows of entry and exit, and number, int64 (n,) each."""
        trace, rows = self.trace, interrupt_rows(self.trace)
        exits = ends_of_interrupts(trace, rows)
        rows, exits = rows[exits != NO_EVENT].astype(np.int64), exits[exits != NO_EVENT].astype(np.int64)
        order = np.argsort(trace.events.cpu[rows], kind="stable")
        rows, exits = rows[order], exits[order]
        cpu = trace.events.cpu[rows].astype(np.int64)
        # An outer one begins after all before it have ended; the offset keeps the CPUs apart.
        offset = cpu * len(self.times)
        latest = np.maximum.accumulate(offset + exits)
        is_outer = np.append(True, (offset + rows)[1:] > latest[:-1])[: len(rows)]
        number = numbers_of_interrupts(trace, rows[is_outer]).astype(np.int64)
        return cpu[is_outer], rows[is_outer], exits[is_outer], number

    def again(self, occurrences: Sequence[tuple[int, int, int]], start: int) -> str:
        """Return a text on how often a problem occurs besides the reported time: `; it happens once more`.

        Args:
            occurrences: Start, end and first event of every time, in time order.
            start: Start of the reported time, cycles.
        """
        others = len(occurrences) - 1
        if not others:
            return ""
        begin, end, _ = occurrences[0]
        earlier = self.moment(begin, end - begin) if begin < start else ""
        if others == 1:
            return f"; it happened once before, at {earlier}" if earlier else "; it happens once more"
        return f"; it happens {others} more times{f', first at {earlier}' if earlier else ''}"

    def span_of_wait(self, waits: Waits, wait: int) -> tuple[int, int, int]:
        """Return start and end of a wait in cycles, and the event that begins it."""
        row, end = int(waits.row[wait]), int(self.end_rows(waits.end_row[[wait]])[0])
        return int(self.times[row]), int(self.times[end]), row

    def verdict(
        self, severity: Severity, span: tuple[int, int], threads: Rows | list[int],
        objects: list[str], evidence: Rows | list[int], words: tuple[str, str], certainty: int = Certainty.EXACT,
        occurrences: Sequence[tuple[int, int, int]] = (), roles: Mapping[int, str] | None = None,
    ) -> Verdict:  # fmt: skip
        """Return a verdict without its kind, which is set later; only the first rows of the evidence are kept.

        Args:
            severity: How much the problem matters.
            span: Start and end in cycles.
            threads: Rows of the thread table.
            objects: Names of the objects concerned.
            evidence: Rows of events in any order; rows beyond the last event are left out.
            words: The sentence of the verdict, and the remedy.
            certainty: Certainty of the weakest link that the verdict rests on.
            occurrences: Start, end and first event (or -1) of every occurrence; none = `span` alone.
            roles: Role of each event of the evidence, by row; other events have none.
        """
        rows = np.unique(np.asarray(evidence, np.int64))
        rows = rows[(rows >= 0) & (rows < len(self.trace.events))][:_MOST_EVENTS]
        start, end = self._cut(*span)
        in_order = sorted(Occurrence(*self._cut(begin, stop), int(row)) for begin, stop, row in occurrences)
        return Verdict("", severity, start, end, tuple(int(t) for t in threads), tuple(objects),
                       tuple(rows.tolist()), *words, Certainty(int(certainty)),
                       tuple(in_order) or (Occurrence(start, end),),
                       tuple((roles or {}).get(row, "") for row in rows.tolist()))  # fmt: skip

    def _cut(self, begin: int, end: int) -> tuple[int, int]:
        """Return the part of a span that is in the trace, at least one cycle; windows may reach beyond the trace."""
        start = max(int(begin), self.trace.window.start)
        return start, max(min(int(end), self.trace.window.end), start + 1)


def named(who: Sequence[tuple[int, int]]) -> list[int]:
    """Return the threads from `Evidence.most_of` that a sentence names."""
    return [row for row, _ in who[: _named_count(who)]]


def _named_count(who: Sequence[tuple[int, int]]) -> int:
    """Return how many entries to name: at most `MOST_NAMED`, each with at least 1 % of all cycles."""
    least = sum(cycles for _, cycles in who) / 100
    return min(MOST_NAMED, sum(cycles >= least for _, cycles in who))


def _most_first(cycles: _Ints) -> list[tuple[int, int]]:
    """Return (position, cycles) of all values that are not 0, the largest first."""
    return [(row, int(cycles[row])) for row in np.argsort(-cycles, kind="stable").tolist() if cycles[row] > 0]


def full_windows(start: _Ints, end: _Ints, window: int, least: float) -> tuple[_Ints, _Ints]:
    """Return the windows in which the summed lengths of intervals, overlaps counted repeatedly, reach `least`.

    Args:
        start: int64 (n,), cycles.
        end: int64 (n,), cycles.
        window: Length of the windows in cycles.
        least: Least sum, cycles.

    Returns:
        int64 (k,) each, k at most 2n, cycles: start of each window, ascending, and the sum. Each window begins or ends
        with an interval, because no other window covers more. None begins before the first interval, which may be the
        start of the trace.
    """
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    # No window covers more than the sum of all intervals from the first that it overlaps. Most traces end here.
    sums = np.append(0, np.cumsum(end - start))
    ends = np.maximum.accumulate(end)
    if not np.any(sums[links.positions(start, ends + window)] - sums[:-1] >= least):
        return start[:0], start[:0]
    begins = np.sort(np.concatenate((start, np.maximum(end - window, start[0]))), kind="stable")
    covers = statistics.window_sums(start, np.sort(end, kind="stable"), begins, window)
    full = covers >= least
    return begins[full], covers[full]


def counts_within(times: _Ints, window: int) -> _Ints:
    """Return how many of some times are in the window that begins at each of them, int64 (n,).

    Args:
        times: int64 (n,), cycles, ascending.
        window: Length of the window, cycles.
    """
    return links.positions(times, times + window) - np.arange(len(times))


def episodes(begin: _Ints, window: int) -> TimeRanges:
    """Return the ranges that windows cover, with adjacent ones merged; `begin` in any order."""
    return TimeRanges.of(begin, begin + window)


def episode_of(ranges: TimeRanges, moment: int) -> int:
    """Return the position of the last range that begins at or before a moment; -1 for none."""
    return int(np.searchsorted(ranges.start, moment, side="right")) - 1


def longest(occurrences: Sequence[tuple[int, int, int]]) -> int:
    """Return the position of the longest occurrence (start, end, first event), the first of equals."""
    return max(range(len(occurrences)), key=lambda which: occurrences[which][1] - occurrences[which][0])


def groups(*columns: NDArray[np.integer]) -> list[tuple[tuple[int, ...], NDArray[np.intp]]]:
    """Return every distinct row of some columns with its positions, ascending; there must be few distinct rows.

    Args:
        columns: One or more of the same length.

    Returns:
        One number per column, rows in ascending order; each with its positions, intp (n,).
    """
    if not len(columns[0]):
        return []
    order = np.lexsort(columns[::-1])
    is_new = np.any([np.diff(column[order]) for column in columns], axis=0)
    positions = np.split(order, np.flatnonzero(is_new) + 1)
    return [(tuple(int(column[own[0]]) for column in columns), own) for own in positions]


# Names of synchronisation objects, by the state in which threads wait for them.
_OBJECTS: Final = {
    "CONDVAR": "condition variable", "SEM": "semaphore", "RWLOCK_READ": "read/write lock",
    "RWLOCK_WRITE": "read/write lock",
}  # fmt: skip
_RECEIVE: Final = STATE_BY_NAME["RECEIVE"].value


def waited_for(evidence: Evidence, blocked_by: Blockers, wait: int) -> str:
    """Return a text for the object of the wait in a row of `blocked_by.waits`: a mutex, a reply, a receiver, a time."""
    waiting = blocked_by.waits
    value, thread, target = int(waiting.value[wait]), int(waiting.thread[wait]), int(waiting.object[wait])
    if value == SEND:
        pid = int(blocked_by.pid[wait])
        return f"{evidence.process_of(pid) if pid > 0 else 'a server'} to receive its message"
    if value == REPLY:
        return "the reply"
    if value == JOIN:
        return "the end"
    if value == MUTEX:
        return mutex_text(evidence, thread, target) if waiting.has_object[wait] else "a mutex"
    if value == _RECEIVE:
        return f"a message or pulse on channel {target}" if waiting.has_object[wait] else "a message or pulse"
    name = STATE_BY_VALUE[value].name
    if name in _OBJECTS and waiting.has_object[wait]:
        return object_text(evidence, _OBJECTS[name], thread, target)
    return {"NANOSLEEP": "time to pass", "INTR": "an interrupt"}.get(name, f"what ends state {name}")


def of_whom(evidence: Evidence, blocked_by: Blockers, wait: int) -> str:
    """Return a text for the holder or server of a wait's object, to follow `waited_for`; empty if not known."""
    thread = int(blocked_by.thread[wait])
    if thread <= 0:
        return ""
    links = {JOIN: " of", **dict.fromkeys((MUTEX, *RWLOCKS), ", held by")}
    link = links.get(int(blocked_by.waits.value[wait]), " from")
    return f"{link} {evidence.name(thread)}"


def mutex_text(evidence: Evidence, thread: int, address: int) -> str:
    """Return the label of a mutex: its address and the process of a thread that uses it."""
    return object_text(evidence, "mutex", thread, address)


def object_text(evidence: Evidence, kind: str, thread: int, address: int) -> str:
    """Return the label of a synchronisation object: its kind, its address, and the process of a thread that uses it."""
    process = evidence.trace.process_name(int(evidence.trace.threads.process[thread]))
    return f"{kind} 0x{address & (1 << 64) - 1:x} (process {process})"
