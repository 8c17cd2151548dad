"""Single durations of one kind: run slices, waits by state, kernel calls, message legs, interrupts.

These are the values that statistics sum per thread or call, for histograms and percentiles. An occurrence belongs to
the window in which it begins and is not cut at its end. If the begin or end is not in the trace, the occurrence is
counted but has no duration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Mask, Scope, percentiles_by
from satview.analysis.times.message_times import CALL_NUMBERS, IS_CALL, IS_INTERRUPT
from satview.analysis.times.state_times import activations, runs_are_cut, state_spans, states_are_cut
from satview.events import wire
from satview.events.states import DEAD, FIRST_PROCESS, READY, RUNNING, STATE_BY_NAME, STATE_BY_VALUE
from satview.linkage.table import LinkKind
from satview.linkage.transactions import transactions
from satview.store.time_ranges import Cycles
from satview.store.trace import Trace

_BINS_PER_DECADE: Final = (40, 20, 10, 5)
_MOST_BINS: Final = 80
SHARES: Final = (0.5, 0.9, 0.99, 0.999)
_MESSAGE_LEGS: Final = {
    "queued": ("Message queued", "queued_cycles"),
    "service": ("Message service", "service_cycles"),
    "round_trip": ("Message round trip", "round_trip_cycles"),
}
_NO_WAIT: Final = frozenset({RUNNING, READY, DEAD})


@dataclass(frozen=True, slots=True)
class Measure:
    """A kind of duration for histograms.

    Attributes:
        key: `run`, `response`, `period`, `state:NAME`, `call`, `call:NAME`, `queued`, `service`, `round_trip`,
            `interrupt`, `latency`.
        title: Display title.
        capture: Events that a capture needs for this measure, as text.
        is_of_threads: False for interrupts, which belong to no thread.
    """

    key: str
    title: str
    capture: str
    is_of_threads: bool = True


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Occurrences of one kind that begin in a window, unsorted.

    Attributes:
        cycles: int64, (n,), how long each took; at least 0.
        start: int64, (n,), when each began, in cycles.
        thread: int64, (n,), row of the thread table; 0 = not known.
        event: int64, (n,), row of the event that began each; -1 = `event_of` finds the event.
        unfinished: Number of further occurrences whose begin or end is not in the trace.
    """

    cycles: Cycles
    start: Cycles
    thread: NDArray[np.int64]
    event: NDArray[np.int64]
    unfinished: int

    def __len__(self) -> int:
        return len(self.cycles)

    def percentiles(self, shares: tuple[float, ...] = SHARES) -> tuple[int, ...]:
        """Return for each share the shortest time that this share of the occurrences does not exceed, in cycles."""
        key = np.zeros(len(self), np.uint8)
        return tuple(int(cycles[0]) for cycles in percentiles_by(key, self.cycles, 1, shares))

    def longest(self, count: int, among: Mask | None = None) -> NDArray[np.int64]:
        """Return positions of the longest occurrences, longest first, then earliest first, int64.

        Args:
            count: Maximum number of positions.
            among: bool (n,), whether each occurrence may be returned; None = all.
        """
        positions = np.arange(len(self)) if among is None else np.flatnonzero(among)
        if len(positions) > count:  # sorting millions of rows would take noticeably long
            least = np.partition(self.cycles[positions], len(positions) - count)[len(positions) - count]
            positions = positions[self.cycles[positions] >= least]
        return positions[np.lexsort((self.start[positions], -self.cycles[positions]))][:count]


def measures(trace: Trace) -> tuple[Measure, ...]:
    """Return the measures that may have durations in a trace; only states and kernel calls that occur in it."""
    offered = [
        Measure("run", "Run slice", "THREAD events"),
        Measure("response", "Response: from ready to the next wait", "THREAD events"),
        Measure("period", "Period: from one activation to the next", "THREAD events"),
        Measure("state:READY", "READY: wait for a CPU", "THREAD events"),
    ]
    values = trace.catalogue.state_value_of_code[np.flatnonzero(trace.code_counts)]
    states = [STATE_BY_VALUE[value] for value in np.unique(values).tolist() if value in STATE_BY_VALUE]
    offered += [
        Measure(f"state:{state.name}", f"{state.name}: {state.meaning}", "THREAD events")
        for state in states
        if state.value not in _NO_WAIT
    ]
    offered.append(Measure("call", "Kernel call, any", "KER_CALL and KER_EXIT events"))
    offered += [
        Measure(f"call:{name}", f"Kernel call {name}", "KER_CALL and KER_EXIT events") for name in _calls(trace)
    ]
    offered += [Measure(key, title, "COMM events") for key, (title, _) in _MESSAGE_LEGS.items()]
    offered.append(Measure("interrupt", "Interrupt, entry to exit", "INTERRUPT events", False))
    offered.append(Measure("latency", "Interrupt, entry to first handler", "INTERRUPT events", False))
    return tuple(offered)


def occurrences(scope: Scope, key: str, threads: Mask | None = None) -> Occurrences:
    """Return the occurrences of a measure that begin in the window of a scope.

    Args:
        scope: Trace and window; the mask of events in it applies only to measures that count events.
        key: As `Measure.key`.
        threads: bool (threads,), whose occurrences count; None = all. Interrupts belong to no thread: all count.

    Raises:
        Cancelled: The scope was cancelled.
    """
    kind, _, name = key.partition(":")
    if kind == "run":
        return _runs(scope, threads)
    if kind in ("response", "period"):
        return _activations(scope, kind == "period", threads)
    if kind == "state":
        return _states(scope, STATE_BY_NAME[name].value, threads)
    if kind in _MESSAGE_LEGS:
        return _messages(scope, _MESSAGE_LEGS[kind][1], threads)
    if kind == "call":
        return _links(scope, _is_call(scope.trace, name) if name else IS_CALL, LinkKind.CALL, threads)
    return _links(scope, IS_INTERRUPT, LinkKind.INTERRUPT if kind == "interrupt" else LinkKind.DISPATCH, None)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of durations in bins of equal width on a logarithmic scale, except for one that a bound may divide.

    Attributes:
        edges_log10: float64, (bins + 1,), logarithms of nanoseconds to the base 10.
        counts: int64, (bins,).
        bin: int64, (n,), the bin of each duration.
        first_beyond: Index of the first bin of durations beyond the bound; the number of bins if there are none.
    """

    edges_log10: NDArray[np.float64]
    counts: NDArray[np.int64]
    bin: NDArray[np.int64]
    first_beyond: int


def histogram(
    duration_ns: NDArray[np.int64], is_beyond: NDArray[np.bool_] | None = None, bound_ns: int = 0
) -> Histogram:
    """Return the histogram of some durations; durations below a nanosecond count as one nanosecond.

    Args:
        duration_ns: int64, (n,), nanoseconds; n > 0.
        is_beyond: bool (n,), whether each duration is longer than the bound, compared in cycles, as these may be
            shorter than a nanosecond; None = there is no bound.
        bound_ns: The bound.
    """
    position = np.log10(np.maximum(duration_ns, 1))
    width = float(position.max() - position.min())
    per_decade = next((count for count in _BINS_PER_DECADE if width * count <= _MOST_BINS), _BINS_PER_DECADE[-1])
    number = np.floor(position * per_decade).astype(np.int64)
    lowest = int(number.min())
    number -= lowest
    edges = (lowest + np.arange(int(number.max()) + 2)) / per_decade
    first_beyond = len(edges) - 1
    if is_beyond is not None and is_beyond.any():
        bound = math.log10(max(bound_ns, 1))
        first_beyond = max(0, math.floor(bound * per_decade) - lowest + 1)
        if first_beyond:  # the bound splits its bin
            edges = np.insert(edges, first_beyond, bound)
            number += is_beyond
    return Histogram(edges, np.bincount(number, minlength=len(edges) - 1), number, first_beyond)


def event_of(trace: Trace, start: int, thread: int) -> int:
    """Return the event of a thread at a moment, else the first event at or after it.

    Args:
        trace: The trace.
        start: The moment, cycles.
        thread: Row of the thread table.
    """
    begin, stop = (int(row) for row in np.searchsorted(trace.events.time_cycles, (start, start + 1)))
    own = np.flatnonzero(trace.events.thread[begin:stop] == thread)
    return begin + int(own[-1]) if len(own) else min(begin, len(trace.events) - 1)


def _calls(trace: Trace) -> list[str]:
    """Return the names of the kernel calls in the trace, sorted."""
    codes = np.flatnonzero((trace.code_counts > 0) & IS_CALL[: len(trace.code_counts)])
    numbers = np.unique(codes & (CALL_NUMBERS - 1))
    return sorted({trace.catalogue.name(wire.code(wire.WireClass.KER_CALL, number)) for number in numbers.tolist()})


def _is_call(trace: Trace, name: str) -> Mask:
    """Return a table over codes, bool (32768,), of the entries of a kernel call."""
    number = trace.catalogue.kernel_call_number(name)
    return np.asarray(IS_CALL & (np.arange(len(IS_CALL)) & (CALL_NUMBERS - 1) == (-1 if number is None else number)))


def _known(
    cycles: Cycles, start: Cycles, thread: NDArray[np.int64], event: NDArray[np.int64], threads: Mask | None
) -> Occurrences:
    """Return the occurrences of some threads; negative cycles mean an unknown duration."""
    if threads is not None:
        is_selected = threads[np.maximum(thread, 0)]
        cycles, start, thread, event = cycles[is_selected], start[is_selected], thread[is_selected], event[is_selected]
    known = cycles >= 0
    return Occurrences(
        cycles[known], start[known], np.maximum(thread[known], 0), event[known], int(np.count_nonzero(~known))
    )


def _begin_in(scope: Scope, start: Cycles) -> Mask:
    return np.asarray((start >= scope.window.start) & (start < scope.window.end))


def _links(scope: Scope, codes: Mask, kind: LinkKind, threads: Mask | None) -> Occurrences:
    rows = np.asarray(scope.selected(codes), np.int64)
    cycles, _ = scope.lengths(rows, kind)
    events = scope.trace.events
    return _known(cycles, events.time_cycles[rows], events.thread[rows].astype(np.int64), rows, threads)


def _messages(scope: Scope, column: str, threads: Mask | None) -> Occurrences:
    """Return a leg of the messages sent in the window; a message belongs to both its client and its server."""
    exchanges, events = transactions(scope.trace), scope.trace.events
    begin, stop = np.searchsorted(exchanges.send_row, (scope.rows.start, scope.rows.stop))
    part = slice(int(begin), int(stop))
    client, server = np.maximum(exchanges.client[part], 0), np.maximum(exchanges.server[part], 0)
    rows, cycles = exchanges.send_row[part], getattr(exchanges, column)[part]
    if threads is not None:
        is_selected = threads[client] | threads[server]
        rows, cycles, client = rows[is_selected], cycles[is_selected], client[is_selected]
    return _known(cycles, events.time_cycles[rows], client, rows, None)


def _runs(scope: Scope, threads: Mask | None) -> Occurrences:
    """Return the runs of threads that are no idle threads, interrupts included, as `CpuTable.longest_run_cycles`."""
    runs, trace = scope.basis.runs, scope.trace
    begun = np.flatnonzero((runs.value >= FIRST_PROCESS) & (runs.thread > 0) & _begin_in(scope, runs.start))
    cpu, start, end, thread = runs.cpu[begun], runs.start[begun], runs.end[begun], runs.thread[begun]
    cycles = np.where(runs_are_cut(trace, cpu, start, end), -1, end - start)
    return _known(cycles, start, thread, np.full(len(begun), -1, np.int64), threads)


def _activations(scope: Scope, is_period: bool, threads: Mask | None) -> Occurrences:
    """Return the durations of activations that begin in the window, or the periods that end with them."""
    spans = activations(scope)
    begun = np.flatnonzero(_begin_in(scope, spans.start))
    cycles = spans.period_cycles if is_period else np.where(spans.is_cut, -1, spans.end - spans.start)
    if is_period:  # no period ends with the first activation of a thread
        begun = begun[np.append(False, spans.thread[1:] == spans.thread[:-1])[: len(spans)][begun]]
    start = spans.start[begun] - np.maximum(cycles[begun], 0) if is_period else spans.start[begun]
    return _known(cycles[begun], start, spans.thread[begun], np.full(len(begun), -1, np.int64), threads)


def _states(scope: Scope, value: int, threads: Mask | None) -> Occurrences:
    """Return the intervals in a state; one that ends where events are missing has no known end."""
    trace, parts = scope.trace, []
    for spans in state_spans(scope):
        begun = np.flatnonzero((spans.value == value) & _begin_in(scope, spans.start))
        parts.append(
            (
                np.where(states_are_cut(trace, spans, begun), -1, spans.end[begun] - spans.start[begun]),
                spans.start[begun],
                spans.thread[begun].astype(np.int64),
            )
        )
    none = np.empty(0, np.int64)
    cycles, start, thread = (np.concatenate([none, *(part[i] for part in parts)]) for i in range(3))
    return _known(cycles, start, thread, np.full(len(cycles), -1, np.int64), threads)
