"""Plots worked out on the worker thread: load over time, histograms of durations, and their tables as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.doctor.figures import trust_in_durations, trust_in_load
from satview.analysis.event_divisions import Divisions, divisions
from satview.analysis.load import NOT_LOGGED, OTHERS, Load, LoadBy, load_over_time
from satview.analysis.partitions import partition_names, partition_title
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis
from satview.analysis.times.occurrences import SHARES, Histogram, Measure, Occurrences, histogram, occurrences
from satview.analysis.times.scope import scope_of
from satview.analysis.trust import EXACT, Trust
from satview.base.errors import Cancelled
from satview.base.memory import borrowed
from satview.base.new_file import new_text_file
from satview.base.safe_text import csv_text
from satview.base.time import TimeWindow
from satview.session.filtering.filter_task import FilterEvaluator
from satview.session.filtering.search import task_for
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

BINS: Final = 300
_LOGGED: Final = {
    LoadBy.PRIORITY: "The trace has no priorities: its thread events were logged fast.",
    LoadBy.PARTITION: "The trace names no partitions: its thread events were logged fast, or the target has none.",
}
_ANALYSES: Final = {  # first part of the key of a measure to the analysis that it is of
    "run": "cpu", "response": "states", "period": "states", "state": "states",
    "call": "calls", "queued": "messages", "service": "messages",
    "round_trip": "messages", "interrupt": "interrupts", "latency": "interrupts",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class LoadPlotted:
    """A load plot.

    Attributes:
        load: What is drawn.
        titles: Name of each band.
        window: The range.
        capture: Why nothing can be drawn, and how to capture it; empty = it can.
        trust: How far it can be trusted.
    """

    load: Load
    titles: tuple[str, ...]
    window: TimeWindow
    capture: str
    trust: Trust = EXACT

    @property
    def shares(self) -> NDArray[np.float64]:
        """Share of all CPUs of each band over the window, float64 (bands,)."""
        return np.asarray(self.load.busy_cycles.sum(axis=1) / max(1, int(self.load.given_cycles.sum())))

    def rows(self, trace: Trace) -> Iterator[tuple[object, ...]]:
        """Yield the table: names of columns, then one row per bin; times in nanoseconds."""
        load, clock = self.load, trace.clock
        yield ("start_ns", "end_ns", *(csv_text(title) for title in self.titles), "interrupts", "unknown")
        times = [clock.durations_ns(row) for row in (*load.busy_cycles, load.interrupt_cycles, load.unknown_cycles)]
        edges = clock.ns_array(load.edges)
        yield from zip(edges[:-1].tolist(), edges[1:].tolist(), *(row.tolist() for row in times), strict=True)


@dataclass(frozen=True, slots=True, eq=False)
class DurationsPlotted:
    """A histogram.

    Attributes:
        measure: What it is of.
        found: The occurrences.
        duration_ns: int64, (n,), how long each took.
        histogram: Their histogram; None = there are none.
        marks: Text and nanoseconds of p50, p90, p99, p99.9 and the longest.
        window: The range in which they begin.
        whose: Thread or process they are of; empty = all.
        trust: How far it can be trusted.
    """

    measure: Measure
    found: Occurrences
    duration_ns: NDArray[np.int64]
    histogram: Histogram | None
    marks: tuple[tuple[str, int], ...]
    window: TimeWindow
    whose: str
    trust: Trust = EXACT

    def rows(self, trace: Trace) -> Iterator[tuple[object, ...]]:  # noqa: ARG002  -- as of the load plot
        """Yield the table: names of columns, then one row per bin; limits in nanoseconds."""
        yield "from_ns", "to_ns", "count"
        if self.histogram is not None:
            edges = np.power(10.0, self.histogram.edges_log10).round(3)
            yield from zip(edges[:-1].tolist(), edges[1:].tolist(), self.histogram.counts.tolist(), strict=True)


@dataclass(frozen=True, slots=True, eq=False)
class CountsPlotted:
    """Counts of events over time.

    Attributes:
        divisions: What is drawn.
        titles: What each line counts: the condition, or the class.
        window: The range.
        of_classes: Lines are classes, in whose colours they are.
    """

    divisions: Divisions
    titles: tuple[str, ...]
    window: TimeWindow
    of_classes: bool

    def rows(self, trace: Trace) -> Iterator[tuple[object, ...]]:
        """Yield the table: names of columns, then one row per division; times in nanoseconds."""
        yield ("start_ns", "end_ns", *(csv_text(title) for title in self.titles))
        edges = trace.clock.ns_array(self.divisions.edges)
        yield from zip(edges[:-1].tolist(), edges[1:].tolist(), *self.divisions.counts.tolist(), strict=True)


Plotted = LoadPlotted | DurationsPlotted | CountsPlotted


def plot_load(
    trace: Trace, basis: Basis, window: TimeWindow, by: LoadBy, is_cancelled: IsCancelled, _report: Report
) -> LoadPlotted:
    """Return the load of a window.

    Raises:
        Cancelled: A newer request came.
    """
    scope = scope_of(trace, window, None, basis, borrowed(is_cancelled))
    load = load_over_time(scope, by, BINS)
    return LoadPlotted(
        load,
        tuple(_band_title(trace, by, int(subject)) for subject in load.subjects),
        scope.window,
        _missing(load),
        trust_in_load(Statistics(trace, scope.window, None, basis)),
    )


def plot_durations(
    trace: Trace,
    basis: Basis,
    window: TimeWindow,
    measure: Measure,
    threads: NDArray[np.bool_] | None,
    whose: str,
    is_cancelled: IsCancelled,
    _report: Report,
) -> DurationsPlotted:
    """Return the histogram of a measure over a window, of some threads or of all (None).

    Raises:
        Cancelled: A newer request came.
    """
    scope = scope_of(trace, window, None, basis, borrowed(is_cancelled))
    found = occurrences(scope, measure.key, threads)
    duration = trace.clock.durations_ns(found.cycles)
    if not len(found):
        return DurationsPlotted(measure, found, duration, None, (), scope.window, whose)
    names = [f"p{share * 100:g}" for share in SHARES]
    cycles = (*found.percentiles(), int(found.cycles.max()))
    marks = tuple((name, trace.clock.duration_ns(value)) for name, value in zip((*names, "max"), cycles, strict=True))
    return DurationsPlotted(measure, found, duration, histogram(duration), marks, scope.window, whose,
                            trust_in_durations(trace, _ANALYSES[measure.key.partition(":")[0]]))  # fmt: skip


def plot_counts(
    trace: Trace,
    evaluator: FilterEvaluator,
    window: TimeWindow,
    conditions: tuple[str, ...],
    count: int,
    is_cancelled: IsCancelled,
    report: Report,
) -> CountsPlotted:
    """Return how many events fit each condition in each division of a window; without any, how many of each class.

    Raises:
        UsageError: A condition is faulty.
        Cancelled: A newer request came.
    """
    if conditions:
        found = [task_for(text, trace, evaluator)(is_cancelled, report) for text in conditions]
        kinds = [rows for rows in found if isinstance(rows, np.ndarray)]
        titles = conditions
    else:
        titles, kinds = _by_class(trace, window, is_cancelled)
    return CountsPlotted(divisions(trace, window, count, kinds), titles, window, not conditions)


def _by_class(
    trace: Trace, window: TimeWindow, is_cancelled: IsCancelled
) -> tuple[tuple[str, ...], list[NDArray[np.unsignedinteger]]]:
    """Return the classes that occur in a window, most events first, and the rows of their events in it."""
    part, catalogue = trace.rows_between(window), trace.catalogue
    of_event = catalogue.class_index_of_code[trace.events.code[part]]
    totals = np.bincount(of_event, minlength=len(catalogue.classes))
    order = [number for number in np.argsort(-totals, kind="stable").tolist() if totals[number]]
    kinds = []
    for number in order:
        if is_cancelled():
            raise Cancelled("the plot was stopped")
        kinds.append((np.flatnonzero(of_event == number) + part.start).astype(np.uint32))
    return tuple(catalogue.classes[number].name for number in order), kinds


def write_csv(
    trace: Trace, plotted: Plotted, path: Path, reading: Sequence[Path], _is_cancelled: IsCancelled, _report: Report
) -> str:
    """Write the table of a plot; return what is said of it.

    Raises:
        WriteError: The file cannot be written.
    """
    with new_text_file(path, reading=reading, newline="") as file:
        csv.writer(file).writerows(plotted.rows(trace))
    return f"Wrote {path.name}"


def _band_title(trace: Trace, by: LoadBy, subject: int) -> str:
    if by is LoadBy.CPU:
        return trace.cpu_title(subject)
    if subject == NOT_LOGGED:
        return f"{by.value} not known"
    if by is LoadBy.PRIORITY:
        return f"Priority {subject}"
    if by is LoadBy.PARTITION:
        return partition_title(partition_names(trace), subject)
    if subject == OTHERS:
        return "Others"
    if not subject:
        return "Thread not known"
    if by is LoadBy.THREAD:
        return trace.thread_name(subject)
    name = trace.process_name(subject, with_pid=False)
    return f"{name} ({int(trace.processes.pid[subject])})" if trace.processes.names[subject] else name


def _missing(load: Load) -> str:
    """Return why there is nothing to draw; empty if there is."""
    if not load.busy_cycles.any():
        if load.unknown_cycles.sum() >= load.given_cycles.sum():
            return (
                "The trace does not show who had the CPUs here: it has no thread events in this window.\n"
                "Capture the class THREAD: ADDCLASS THREAD in rules."
            )
        return ""
    if load.by in _LOGGED and not np.any(load.subjects != NOT_LOGGED):
        return f"{_LOGGED[load.by]}\nCapture the class THREAD wide: SETCLASSWIDE THREAD in rules, or tracelogger -w."
    return ""
