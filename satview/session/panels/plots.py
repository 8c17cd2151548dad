"""Models of the panels Plots and Late: their data, computed in the background."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Slot

from satview.analysis.doctor import trust_in_durations, trust_in_load
from satview.analysis.needs import has_no_states
from satview.analysis.partitions import partition_names, partition_title
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import EXACT, Basis, Trust, scope_of
from satview.analysis.times.cpu_times import NOT_LOGGED, OTHERS, Divisions, Load, LoadBy, divisions, load_over_time
from satview.analysis.times.message_times import (
    SHARES,
    Histogram,
    Measure,
    Occurrences,
    histogram,
    measures,
    occurrences,
)
from satview.answers.late import Late, late, responses
from satview.answers.late_comparison import SlowAgainstFast
from satview.answers.table import Table
from satview.base.column_arrays import borrowed
from satview.base.errors import Cancelled
from satview.base.new_file import new_text_file
from satview.base.safe_text import csv_text
from satview.base.time import TimeWindow
from satview.session.filter_stack import FilterEvaluator, task_for
from satview.session.lanes.class_loader import timing_of
from satview.session.open_trace import OpenTrace
from satview.session.range_view import Extent, ExtentAnswer
from satview.session.tasks import IsCancelled, LastAnswer
from satview.store.trace import Trace

# Plots of a trace: their data, and its computation in the background.


# Plots computed on the worker thread: load over time, histograms of durations, and their tables as CSV.


BINS: Final = 300
_LOGGED: Final = {
    LoadBy.PRIORITY: "The trace has no priorities: its thread events were logged fast.",
    LoadBy.PARTITION: "The trace names no partitions: its thread events were logged fast, or the target has none.",
}


@dataclass(frozen=True, slots=True, eq=False)
class LoadPlotted:
    """Data of a load plot.

    Attributes:
        load: Load of each band over time; a band stands for one process, priority or other subject.
        titles: Name of each band.
        window: The time range.
        capture: Why nothing can be drawn, and what to capture; empty = it can be drawn.
        trust: How certain the load is.
    """

    load: Load
    titles: tuple[str, ...]
    window: TimeWindow
    capture: str
    trust: Trust = EXACT

    @property
    def shares(self) -> NDArray[np.float64]:
        """Share of the time of all CPUs that each band (such as a process) used in the window, float64 (bands,)."""
        return np.asarray(self.load.busy_cycles.sum(axis=1) / max(1, int(self.load.given_cycles.sum())))

    def rows(self, trace: Trace) -> Iterator[tuple[object, ...]]:
        """Yield the plot as rows of a CSV file: column names, then one row per time bin; times in nanoseconds."""
        load, clock = self.load, trace.clock
        yield ("start_ns", "end_ns", *(csv_text(title) for title in self.titles), "interrupts", "unknown")
        times = [clock.durations_ns(row) for row in (*load.busy_cycles, load.interrupt_cycles, load.unknown_cycles)]
        edges = clock.ns_array(load.edges)
        yield from zip(edges[:-1].tolist(), edges[1:].tolist(), *(row.tolist() for row in times), strict=True)


@dataclass(frozen=True, slots=True, eq=False)
class DurationsPlotted:
    """Data of a histogram of durations.

    Attributes:
        measure: The measured quantity.
        occurrences: All occurrences of the measured quantity.
        duration_ns: int64, (n,), duration of each occurrence.
        histogram: Histogram of the durations; None = there are no occurrences.
        marks: Text and nanoseconds of p50, p90, p99, p99.9 and the longest.
        window: The range in which the occurrences begin.
        whose: Name of the only thread or process whose occurrences are counted; empty = all.
        trust: How certain the durations are.
    """

    measure: Measure
    occurrences: Occurrences
    duration_ns: NDArray[np.int64]
    histogram: Histogram | None
    marks: tuple[tuple[str, int], ...]
    window: TimeWindow
    whose: str
    trust: Trust = EXACT

    def rows(self, trace: Trace) -> Iterator[tuple[object, ...]]:  # noqa: ARG002  -- same interface as the load plot
        """Yield the plot as rows of a CSV file: column names, then one row per bin; bounds in nanoseconds."""
        yield "from_ns", "to_ns", "count"
        if self.histogram is not None:
            edges = np.power(10.0, self.histogram.edges_log10).round(3)
            yield from zip(edges[:-1].tolist(), edges[1:].tolist(), self.histogram.counts.tolist(), strict=True)


@dataclass(frozen=True, slots=True, eq=False)
class CountsPlotted:
    """Counts of events over time.

    Attributes:
        divisions: Counts of each line of the plot, in equal parts of the window.
        titles: What each line counts: a condition, or a class.
        window: The time range.
        of_classes: True if each line is an event class, drawn in the colour of the class.
    """

    divisions: Divisions
    titles: tuple[str, ...]
    window: TimeWindow
    of_classes: bool

    def rows(self, trace: Trace) -> Iterator[tuple[object, ...]]:
        """Yield the plot as rows of a CSV file: column names, then one row per division; times in nanoseconds."""
        yield ("start_ns", "end_ns", *(csv_text(title) for title in self.titles))
        edges = trace.clock.ns_array(self.divisions.edges)
        yield from zip(edges[:-1].tolist(), edges[1:].tolist(), *self.divisions.counts.tolist(), strict=True)


Plotted = LoadPlotted | DurationsPlotted | CountsPlotted


def plot_load(trace: Trace, basis: Basis, window: TimeWindow, by: LoadBy, is_cancelled: IsCancelled) -> LoadPlotted:
    """Return the load in a time window.

    Raises:
        Cancelled: A newer request came.
    """
    scope = scope_of(trace, window, None, basis, borrowed(is_cancelled))
    load = load_over_time(scope, by, BINS)
    return LoadPlotted(
        load,
        tuple(_band_title(trace, by, int(subject)) for subject in load.subjects),
        scope.window,
        _missing(trace, load),
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
) -> DurationsPlotted:
    """Return the histogram of a measured quantity in a time window.

    Args:
        trace: The trace.
        basis: Data for statistics of the trace.
        window: The time window.
        measure: The measured quantity.
        threads: bool (threads,), the threads whose occurrences count; None = all.
        whose: Name of the thread or process that is counted; empty = all.
        is_cancelled: Polled regularly.

    Raises:
        Cancelled: A newer request came.
    """
    scope = scope_of(trace, window, None, basis, borrowed(is_cancelled))
    lengths = occurrences(scope, measure.key, threads)
    duration = trace.clock.durations_ns(lengths.cycles)
    if not len(lengths):
        return DurationsPlotted(measure, lengths, duration, None, (), scope.window, whose)
    names = [f"p{share * 100:g}" for share in SHARES]
    cycles = (*lengths.percentiles(), int(lengths.cycles.max()))
    marks = tuple((name, trace.clock.duration_ns(value)) for name, value in zip((*names, "max"), cycles, strict=True))
    return DurationsPlotted(measure, lengths, duration, histogram(duration), marks, scope.window, whose,
                            trust_in_durations(trace, measure.key))  # fmt: skip


def plot_counts(
    trace: Trace,
    evaluator: FilterEvaluator,
    window: TimeWindow,
    conditions: tuple[str, ...],
    count: int,
    is_cancelled: IsCancelled,
) -> CountsPlotted:
    """Return how many events meet each condition in each of `count` divisions; without conditions, of each class.

    Raises:
        UsageError: A condition is faulty.
        Cancelled: A newer request came.
    """
    if conditions:
        of_conditions = [task_for(text, trace, evaluator)(is_cancelled) for text in conditions]
        kinds = [rows for rows in of_conditions if isinstance(rows, np.ndarray)]
        titles = conditions
    else:
        titles, kinds = _by_class(trace, window, is_cancelled)
    return CountsPlotted(divisions(trace, window, count, kinds), titles, window, not conditions)


def _by_class(
    trace: Trace, window: TimeWindow, is_cancelled: IsCancelled
) -> tuple[tuple[str, ...], list[NDArray[np.unsignedinteger]]]:
    """Return the names of the event classes in a window, most events first, and the rows of each class, uint32 (n,)."""
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


def write_csv(trace: Trace, plotted: Plotted, path: Path, reading: Sequence[Path], _is_cancelled: IsCancelled) -> str:
    """Write the table of a plot; return the message for the user.

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
    return trace.process_name(subject)


def _missing(trace: Trace, load: Load) -> str:
    """Return sentences on why a load plot is empty and what to capture; "" if the plot is not empty."""
    is_idle = not load.busy_cycles.any()
    if has_no_states(trace) or (is_idle and load.unknown_cycles.sum() >= load.given_cycles.sum()):
        return (
            "The trace does not show who had the CPUs here: it has no thread events in this window.\n"
            "Capture the class THREAD: ADDCLASS THREAD in rules."
        )
    if is_idle:
        return ""
    if load.by in _LOGGED and not np.any(load.subjects != NOT_LOGGED):
        return f"{_LOGGED[load.by]}\nCapture the class THREAD wide: SETCLASSWIDE THREAD in rules, or tracelogger -w."
    return ""


# The plot that a window shows, and its parameters.


DIVISIONS: Final = 100
MOST_CONDITIONS: Final = 12  # more lines cannot be distinguished
_SETTLE_MS: Final = 40  # a moving view requests a new plot at most this often


class PlotKind(StrEnum):
    """Kinds of plots."""

    LOAD = "Load over time"
    DURATIONS = "Histogram"
    COUNTS = "Events over time"


class PlotsView(ExtentAnswer):
    """Computes the requested plot again whenever its input changes, while the panel is visible.

    Attributes:
        plotted: The last result for each kind; missing = not yet computed.
        kind: The requested plot.
        by: Subject of each band of the load plot, such as process or priority.
        measure: Measure of the histogram.
        only_selected: True if the histogram counts the selected thread or process only.
        conditions: Conditions counted over time; empty = the classes of events.
        divisions: Number of parts of the window for counts over time.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        """Prepare without a plot; computation begins when `watch` is called."""
        super().__init__(opened, Extent.VIEW, _SETTLE_MS, parent)
        self._opened = opened
        self.plotted: dict[PlotKind, Plotted] = {}
        self.kind = PlotKind.LOAD
        self.by = LoadBy.PROCESS
        self.measure: Measure = measures(opened.trace)[0]
        self.only_selected = False
        self.conditions: tuple[str, ...] = ()
        self.divisions = DIVISIONS
        self._is_outdated = False
        opened.selection.changed.connect(self._on_selection)

    @property
    def needs_range(self) -> bool:
        """True if a histogram of the selected range is requested, but no range is selected."""
        return self.kind is PlotKind.DURATIONS and self._extent.needs_range

    @property
    def is_pending(self) -> bool:
        """True while the plot is older than the request."""
        return super().is_pending or self._is_outdated

    @property
    def selected(self) -> tuple[NDArray[np.bool_], str] | None:
        """The threads of the selected lane, bool (threads,), and the lane's name; None if the lane has no threads."""
        lane, trace = self._opened.selection.lane, self._opened.trace
        if lane is None:
            return None
        info, rows = self._opened.timeline.infos[lane], np.arange(len(trace.threads))
        if info.thread:
            return rows == info.thread, trace.thread_name(info.thread)
        if info.process:
            return trace.threads.process == info.process, trace.process_name(info.process)
        return None

    def show_plot(self, kind: PlotKind) -> None:
        """Request another kind of plot."""
        self.kind = kind
        self._request()

    def set_by(self, by: LoadBy) -> None:
        """Set the property, such as process or priority, by which the load is divided into bands."""
        self.by = by
        self._request()

    def set_measure(self, measure: Measure) -> None:
        """Set the measure of the histogram."""
        self.measure = measure
        self._request()

    def set_extent(self, extent: Extent) -> None:
        """Set the part of the trace for the histogram."""
        self._extent.select(extent)
        self._request()

    def set_only_selected(self, only_selected: bool) -> None:
        """Set whether the histogram counts only the selected thread or process; if false, all."""
        self.only_selected = only_selected
        self._request()

    def set_conditions(self, text: str) -> None:
        """Set up to `MOST_CONDITIONS` conditions to count, separated by `;`, in the syntax of the search."""
        self.conditions = tuple(part.strip() for part in text.split(";") if part.strip())[:MOST_CONDITIONS]
        self._request()

    def set_divisions(self, divisions: int) -> None:
        """Set the number of parts of the window in which events are counted."""
        self.divisions = divisions
        self._later()

    def _window(self) -> TimeWindow:
        if self.kind is not PlotKind.DURATIONS:
            return self._opened.viewport.window.within(self._opened.trace.window)
        return self._extent.window()

    @Slot()
    def _request(self) -> None:
        self._settle.stop()
        self._is_outdated = False
        if not self._is_watched:
            return
        trace, window = self._opened.trace, self._window()
        basis = self._opened.basis
        if self.kind is PlotKind.LOAD:
            self._start(partial(plot_load, trace, basis, window, self.by))
        elif self.kind is PlotKind.COUNTS:
            evaluator = self._opened.filters.evaluator
            self._start(partial(plot_counts, trace, evaluator, window, self.conditions, self.divisions))
        else:
            threads, whose = None, ""
            if self.only_selected and self.measure.is_of_threads and (selected := self.selected) is not None:
                threads, whose = selected
            self._start(partial(plot_durations, trace, basis, window, self.measure, threads, whose))

    def _take(self, result: object) -> None:
        if isinstance(result, LoadPlotted):
            self.plotted[PlotKind.LOAD] = result
        elif isinstance(result, DurationsPlotted):
            self.plotted[PlotKind.DURATIONS] = result
        elif isinstance(result, CountsPlotted):
            self.plotted[PlotKind.COUNTS] = result
        if self._is_outdated:  # something changed while the plot was computed
            self._settle.start()

    @Slot()
    def _on_window(self) -> None:
        if self.kind is not PlotKind.DURATIONS or self.extent is Extent.VIEW:
            self._later()

    @Slot()
    def _on_range(self) -> None:
        before = self.extent
        self._extent.follow_range()
        if self.kind is PlotKind.DURATIONS and (self.extent is Extent.RANGE or self.extent is not before):
            self._later()
        if self.extent is not before:
            self.changed.emit()

    @Slot()
    def _on_selection(self) -> None:
        if self.kind is PlotKind.DURATIONS and self.only_selected:
            self._later()

    def _later(self) -> None:
        """Request a new plot soon. A running task goes on; otherwise no plot would appear while the view moves."""
        if not self._is_watched:
            return
        if self._job.is_busy:
            self._is_outdated = True
        elif not self._settle.isActive():
            self._settle.start()


# Model of the panel Late: the activities of the trace, and one instance of an activity explained.


@dataclass(frozen=True, slots=True, eq=False)
class FoundActivities:
    """The activities (recurring work) that were found in a trace.

    Attributes:
        late: Answers about the activities of the trace.
        activities: Table of the activities.
        chains: Table of the chains of activities.
        telling: Number of the activity to show first; None = none.
    """

    late: Late
    activities: Table
    chains: Table
    telling: int | None


class ActivitiesView(LastAnswer[FoundActivities]):
    """Finds the activities when `start` is called."""

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened

    def start(self) -> None:
        """Start to look for activities."""
        self._start(partial(_find, self._opened.trace, self._opened.timing_file))


def _find(trace: Trace, timing_file: str, _is_cancelled: IsCancelled) -> FoundActivities:
    answers = late(trace, timing_of(trace, timing_file))
    return FoundActivities(answers, answers.activities(), answers.chains(), answers.most_telling())


@dataclass(frozen=True, slots=True, eq=False)
class ExplainedInstance:
    """One instance of an activity, explained.

    Attributes:
        late: Answers about the activities of the trace.
        activity: Number of the activity.
        positions: int64 (n,), indices of the activity's instances in the table of all instances, worst first.
        instances: Table of the activity's instances, worst first.
        row: Row of `instances` that is explained.
        says: The explanation in a sentence.
        blame: Where the time of the instance went.
        compared: Comparison of slow instances of the activity with fast ones.
        responses: Histogram of the response times of all instances of the activity (`answers.late.responses`).
    """

    late: Late
    activity: int
    positions: NDArray[np.int64]
    instances: Table
    row: int
    says: str
    blame: Table
    compared: SlowAgainstFast
    responses: Histogram | None

    def row_of(self, event: int) -> int:
        """Return the row in `instances` of the instance that contains or begins with an event; -1 = none."""
        instances, events = self.late.learned.instances.taken(self.positions), self.late.trace.events
        is_within = (instances.start_row <= event) & ((event <= instances.end_row) | (instances.end_row < 0))
        is_within &= (instances.thread == events.thread[event]) | (instances.start_row == event)
        rows = np.flatnonzero(is_within)
        return int(rows[0]) if len(rows) else -1


class InstanceView(LastAnswer[ExplainedInstance]):
    """Explains the instance that was requested last."""

    def explain(self, late_answers: Late, activity: int, row: int = 0) -> None:
        """Start to explain one instance of an activity, given by its position among them, worst first."""
        before = self.answer
        is_same = before is not None and before.late is late_answers and before.activity == activity
        self._start(partial(_explain, late_answers, activity, row, before if is_same else None))

    def explain_thread(self, late_answers: Late, thread: int, cycles: int) -> bool:
        """Start to explain the instance of an activity that a thread works on at a time, or else its worst instance.

        Args:
            late_answers: Answers about the activities of the trace.
            thread: Row of the thread table.
            cycles: The time.

        Returns:
            False if the thread has no instance of any activity.
        """
        instances, worst = late_answers.learned.instances, late_answers.worst()
        of_thread = worst[instances.thread[worst] == thread]
        is_then = (instances.start_cycles[of_thread] <= cycles) & (cycles <= instances.end_cycles[of_thread])
        chosen = of_thread[is_then] if is_then.any() else of_thread
        if not len(chosen):
            return False
        activity = int(instances.activity[chosen[0]])
        self.explain(late_answers, activity, int(np.flatnonzero(late_answers.worst(activity) == chosen[0])[0]))
        return True

    def explain_bar(self, late_answers: Late, name: str, event: int) -> bool:
        """Start to explain the instance of an activity that begins with an event; return False if no instance does."""
        names = [activity.name for activity in late_answers.learned.activities]
        activity = names.index(name) if name in names else -1
        rows = np.flatnonzero(late_answers.learned.instances.start_row[late_answers.worst(activity)] == event)
        if len(rows):
            self.explain(late_answers, activity, int(rows[0]))
        return bool(len(rows))


def _explain(
    late_answers: Late, activity: int, row: int, same: ExplainedInstance | None, is_cancelled: IsCancelled
) -> ExplainedInstance:
    """Return an explained instance; `same` is another explained instance of the activity, or None, to reuse figures."""
    positions = same.positions if same is not None else late_answers.worst(activity)
    instances = same.instances if same is not None else late_answers.instances(activity)
    chosen = positions[row : row + 1]
    blame, (says,) = late_answers.explained(chosen)
    if is_cancelled():
        raise Cancelled
    compared = same.compared if same is not None else late_answers.compared(activity)
    drawn = same.responses if same is not None else responses(late_answers, activity)
    return ExplainedInstance(late_answers, activity, positions, instances, row, says, blame, compared, drawn)
