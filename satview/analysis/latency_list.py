"""Latencies as people look for them: one by one, and how they are distributed per source and thread."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.sheets.sheet import Column, Columns, Kind, Sheet, Subject
from satview.analysis.thread_names import threads_named
from satview.analysis.times.by_key import percentiles_by
from satview.analysis.times.call_times import Durations
from satview.analysis.transaction_list import by_values
from satview.base.dataclass import dataclass
from satview.base.time import TimeWindow
from satview.events import wire
from satview.linkage.actors import TIMER
from satview.linkage.latencies import Latencies, latencies
from satview.linkage.table import Certainty
from satview.store.trace import Trace

Positions = NDArray[np.int64]
LEGS: Final = {  # name of a leg to its column, title and what it is
    "handler-entry": ("handler_entry_cycles", "To handler", "From the interrupt to the entry of its handler."),
    "handler": ("handler_cycles", "Handler", "From entry to exit of the handler."),
    "delivery": ("delivery_cycles", "To pulse", "From there until the pulse is sent."),
    "ready": ("ready_cycles", "To READY", "From there until the thread is ready."),
    "scheduling": ("scheduling_cycles", "To RUNNING", "From there until it runs."),
    "receipt": ("receipt_cycles", "To receipt", "From there until it has received the pulse."),
    "total": ("total_cycles", "Total", "From what causes it to the last moment that is known."),
}
SORTS: Final = (*LEGS, "time")
_UNKNOWN, _INTERRUPT, _TIMER, _CALL = range(4)  # what sorts of sources there are


@dataclass(frozen=True, slots=True)
class LatencyFilter:
    """Which latencies are requested.

    Attributes:
        interrupt: Number of the interrupt, as its entry or delivery gives it; None = any source.
        thread: Part of the label of the thread that answers, a pid or `PID:TID`; empty = any.
        window: When they began; None = at any time.
    """

    interrupt: int | None = None
    thread: str = ""
    window: TimeWindow | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """Where pulses and interrupts come from; both columns int64 (n,), by row of `latencies`.

    Attributes:
        kind: An interrupt, a timer, a kernel call, or not known.
        value: Number of the interrupt, or row of the thread that makes the call; 0 for others.
    """

    kind: Positions
    value: Positions

    def name(self, trace: Trace, position: int) -> str:
        """Return the source of one latency for people."""
        kind, value = int(self.kind[position]), int(self.value[position])
        if kind == _INTERRUPT:
            return f"interrupt 0x{value:x}"
        if kind == _CALL:
            return trace.thread_name(value)
        return "timer" if kind == _TIMER else "unknown"


def sources(trace: Trace) -> Sources:
    """Return the sources of all latencies; computed at the first call and cached with the trace."""
    return trace.cached("analysis.latency_sources", _sources)


def _sources(trace: Trace) -> Sources:
    made = latencies(trace)
    known = np.flatnonzero(made.cause_row >= 0)
    code = trace.events.code[made.cause_row[known]]
    kind, value = np.zeros(len(made), np.int64), np.zeros(len(made), np.int64)
    kind[known] = np.where(code == TIMER, _TIMER, _CALL)
    kind[known[code >> wire.CLASS_SHIFT == wire.WireClass.INT]] = _INTERRUPT
    is_interrupt = kind == _INTERRUPT
    value[is_interrupt] = made.number[is_interrupt]
    called = np.flatnonzero(kind == _CALL)
    value[called] = trace.events.thread[made.cause_row[called]]
    return Sources(kind, value)


def latency_list(trace: Trace, requested: LatencyFilter | None = None, sort: str = "total", top: int = 0) -> Positions:
    """Return the latencies that pass a filter, the longest first: positions in the columns of `latencies`, int64.

    Args:
        trace: The events.
        requested: Which; None = all.
        sort: One of `SORTS`; `time` goes forward. What has no such leg comes last.
        top: How many at most; 0 = all.
    """
    made, requested = latencies(trace), requested or LatencyFilter()
    passes = np.ones(len(made), np.bool_)
    if requested.interrupt is not None:
        passes &= made.number == requested.interrupt
    if requested.thread.strip():
        named = threads_named(trace, requested.thread)
        named[0] = False  # means "not known"
        passes &= np.append(named, False)[made.thread]
    if requested.window is not None:
        part, first = trace.rows_between(requested.window), made.first_row
        passes &= (first >= part.start) & (first < part.stop)
    found = np.flatnonzero(passes)
    if sort != "time":
        found = by_values(found, getattr(made, LEGS[sort][0]), descending=True)
    return found[: top or None]


def latency_sheet(trace: Trace, positions: Positions) -> Sheet:
    """Return latencies as a table, one row each, in the order given.

    Args:
        trace: The events.
        positions: Which, positions in the columns of `latencies`.
    """
    made, source = latencies(trace), sources(trace)
    columns = Columns(positions, 1.0, trace.clock.durations_ns)
    columns.text("source", "Source", lambda i: source.name(trace, i), "Interrupt, timer, or thread that sends it.")
    columns.text("thread", "Thread", lambda i: thread_name(trace, made, i), "Who receives it, or is made ready by it.")
    start = trace.clock.ns_array(trace.events.time_cycles[made.first_row[positions]])
    columns.made.append(Column("start_ns", "Start", Kind.TIME, start, "When it began."))
    for key, (name, title, text) in LEGS.items():
        cycles = getattr(made, name)
        columns.duration(f"{key.replace('-', '_')}_ns", title, cycles, text, cycles >= 0)
    columns.text(
        "certainty", "Certainty", lambda i: Certainty(int(made.certainty[i])).name.lower(), "Of its least certain link."
    )
    columns.number("event", "Event", made.first_row + 1, "Number of the event that begins it.")
    return Sheet(
        "latency",
        "Latencies",
        Subject.EVENT,
        made.first_row[positions],
        tuple(columns.made),
        "",
        "No pulse and no interrupt fits.",
    )


def latency_statistics_sheet(trace: Trace, positions: Positions) -> Sheet:
    """Return how legs are distributed: one row per source, thread and leg that occurs there.

    Latencies of which a link is only a guess are left out, and counted in the note.

    Args:
        trace: The events.
        positions: Which latencies count, positions in the columns of `latencies`.
    """
    made, source = latencies(trace), sources(trace)
    is_guess = made.certainty[positions] == Certainty.GUESS
    sure = positions[~is_guess]
    keys = np.stack((source.kind[sure], source.value[sure], made.thread[sure]))
    groups, group = np.unique(keys, axis=1, return_inverse=True)
    group, names = group.reshape(-1).astype(np.int64), tuple(LEGS)
    cycles = np.concatenate([getattr(made, LEGS[name][0])[sure] for name in names])
    key = np.concatenate([group * len(names) + i for i in range(len(names))])
    rows, count = np.tile(made.first_row[sure], len(names)), groups.shape[1] * len(names)
    times = Durations.of(key, cycles, rows, count)
    known = cycles >= 0
    shares = percentiles_by(key[known], cycles[known], count, (0.5, 0.95, 0.99))
    seen = np.flatnonzero(times.count)
    example = np.zeros(groups.shape[1], np.int64)
    example[group] = sure
    columns = Columns(seen, 1.0, trace.clock.durations_ns)
    columns.text(
        "source",
        "Source",
        lambda i: source.name(trace, int(example[i // len(names)])),
        "Interrupt, timer, or thread that sends it.",
    )
    columns.text(
        "thread",
        "Thread",
        lambda i: thread_name(trace, made, int(example[i // len(names)])),
        "Who receives it, or is made ready by it.",
    )
    columns.text("leg", "Leg", lambda i: names[i % len(names)], "Part of the way; legs that occur add up to the total.")
    columns.count("count", "Count", times.count, "How often it occurs.")
    for name, title, values in (("min_ns", "Shortest", times.least_cycles), ("median_ns", "Median", shares[0]),
                                ("p95_ns", "95 %", shares[1]), ("p99_ns", "99 %", shares[2])):  # fmt: skip
        columns.duration(name, title, values, f"{title} of these times.", times.count > 0)
    longest = np.append(trace.events.time_cycles, -1)[times.longest] if len(times.longest) else times.longest
    columns.duration(
        "max_ns",
        "Longest",
        times.most_cycles,
        "The longest one.",
        times.count > 0,
        start=longest,
        events=times.longest[seen],
    )
    guesses = int(np.count_nonzero(is_guess))
    note = f"{guesses:,} left out of which the receipt is a guess" if guesses else ""
    return Sheet(
        "latency",
        "Latencies",
        Subject.EVENT,
        times.longest[seen],
        tuple(columns.made),
        "",
        "No pulse and no interrupt fits.",
        note,
    )


def thread_name(trace: Trace, made: Latencies, position: int) -> str:
    """Return the thread that answers one latency."""
    thread = int(made.thread[position])
    return trace.thread_name(thread) if thread > 0 else "unknown"
