"""Sorts and groups lanes by figures that are computed in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from satview.analysis.partitions import partition_names, partition_title
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis, Runs, sum_by
from satview.base.errors import SatviewError, UsageError
from satview.base.time import TimeWindow
from satview.events.states import ABSENT, DEAD, FIRST_PROCESS, IDLE, READY, RUNNING, UNKNOWN
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.nodes import glob
from satview.session.lanes.lane_arrangement import GroupBy, LaneGroup, SortBy
from satview.session.lanes.lane_list import LaneIndex, LaneList
from satview.session.tasks import IsCancelled, Task
from satview.store.axis import of_capture
from satview.store.time_ranges import idle_threads
from satview.store.trace import Trace
from satview.timeline.lane_tree import LaneInfo, LaneKind, Timeline

# Patterns of process and thread names as users type them: `devb-*`, or several with a heading for groups of lanes.


Fits = Callable[[str], bool]
_MOST: Final = 200
_WILD: Final = "*?["


def fits_name(text: str) -> Fits:
    """Return a function that tells whether a name matches a pattern: the name, or a glob with `*`, `?` and `[abc]`.

    Raises:
        UsageError: The pattern is faulty.
    """
    if not any(char in text for char in _WILD):
        return text.__eq__
    try:
        return glob(text).matches
    except ExpressionError as error:
        raise UsageError(f"{text[:40]!r} is not a pattern of names: {error}") from error


def parse_groups(text: str) -> tuple[tuple[str, Fits], ...]:
    """Return the headings in a text like `Drivers: devb-*, io-*; HMI: hmi*`, each with a function that tests a name.

    A group without a heading is titled by its patterns.

    Raises:
        UsageError: There is no pattern, one is faulty, or two groups have the same heading.
    """
    groups: dict[str, Fits] = {}
    for part in text.replace("\n", ";").split(";"):
        title, colon, rest = part.partition(":")
        names = [name.strip() for name in (rest if colon else title).split(",") if name.strip()]
        if not names:
            continue
        heading = title.strip() if colon and title.strip() else ", ".join(names)
        if heading in groups:
            raise UsageError(f"two groups are called {heading[:40]!r}")
        groups[heading] = _any_of(names)
    if not groups:
        raise UsageError(
            "write patterns of names of processes, such as devb-*, io-* or Drivers: devb-*, io-*; HMI: hmi*"
        )
    if len(groups) > _MOST:
        raise UsageError(f"there can be {_MOST} groups at a time")
    return tuple(groups.items())


def _any_of(names: list[str]) -> Fits:
    rules = [fits_name(name) for name in names]
    return lambda text: any(fits(text) for fits in rules)


# Figures of threads in a time window, to sort and group lanes by. Arrays only, for a worker thread.


_Ints = NDArray[np.int64]
NOT_KNOWN: Final = -1
_MUCH: Final = 0.05  # CPUs
_NO_WAIT: Final = (ABSENT, DEAD, READY, RUNNING, UNKNOWN)


@dataclass(frozen=True, slots=True)
class SortFigures:
    """Figures that threads and processes are sorted by, largest first.

    Attributes:
        of_thread: int64 (threads,), figure of each thread: cycles or priority.
        of_process: int64 (processes,), figure of each process, likewise.
    """

    of_thread: _Ints
    of_process: _Ints


def sort_figures(basis: Basis, sort: SortBy, window: TimeWindow, is_cancelled: Callable[[], bool]) -> SortFigures:
    """Return the figures of a window: cycles (a process has the sum of its threads), or priorities (the highest).

    Raises:
        Cancelled: `is_cancelled()` returned True.
    """
    trace = basis.trace
    process = trace.threads.process
    if sort is SortBy.PRIORITY:
        priority = mostly(*basis.runs_by_priority, None, len(trace.threads))
        highest = np.full(len(trace.processes), NOT_KNOWN, np.int64)
        np.maximum.at(highest, process, priority)
        return SortFigures(priority, highest)
    statistics = Statistics(trace, window, basis=basis, cancelled=is_cancelled)
    if sort is SortBy.CPU:
        cycles = statistics.threads.cpu_cycles
    else:
        states = statistics.states
        counts = states.value == READY if sort is SortBy.READY else ~np.isin(states.value, _NO_WAIT)
        cycles = sum_by(states.thread[counts], states.total_cycles[counts], len(trace.threads))
    cycles = np.where(basis.is_idle, 0, cycles)
    of_process = sum_by(process, cycles, len(trace.processes))
    return SortFigures(cycles, _with_system_last(trace, of_process, window) if sort is SortBy.CPU else of_process)


def sorted_lanes(timeline: Timeline, sort: SortBy, figures: SortFigures | None) -> tuple[int, ...]:
    """Return the lanes of processes and threads, sorted by figures or by name (None); empty if `sort` is TRACE."""
    infos = [info for info in timeline.infos if info.kind in (LaneKind.PROCESS, LaneKind.THREAD)]
    if sort is SortBy.TRACE:
        return ()
    if figures is None:
        return tuple(info.index for info in sorted(infos, key=lambda info: (info.title.casefold(), info.index)))
    return tuple(info.index for info in sorted(infos, key=lambda info: (-_figure(figures, info), info.index)))


def use_of(timeline: Timeline) -> SortFigures | None:
    """Return the CPU time of threads and processes, taken from CPU lanes; None until all of these are ready."""
    trace, lanes = timeline.trace, timeline.lanes_of_cpus
    if not lanes:
        return None
    cycles = np.zeros(len(trace.threads), np.int64)
    for spans in (lane.spans for lane in lanes):
        if spans.thread is not None:
            length = np.diff(np.append(spans.start_cycles, spans.end_cycles))
            length[spans.value < FIRST_PROCESS] = 0
            cycles += sum_by(spans.thread, length, len(cycles))
    of_process = sum_by(trace.threads.process, cycles, len(trace.processes))
    return SortFigures(cycles, _with_system_last(trace, of_process, trace.window))


def _with_system_last(trace: Trace, of_process: _Ints, window: TimeWindow) -> _Ints:
    """Return the CPU times, but NOT_KNOWN for kernel and trace logger if they used little, so that both sort last.

    Both are rarely of interest, yet would come first in a trace in which little happens.

    Returns:
        int64 (processes,), cycles.
    """
    is_system = of_capture(trace)
    is_system[trace.threads.process[idle_threads(trace)]] = True
    return np.where(is_system & (of_process < _MUCH * window.length), NOT_KNOWN, of_process)


def idle_cpus(timeline: Timeline) -> list[int]:
    """Return the lanes of CPUs that were idle in the whole trace, without unknown times, and had no interrupt."""
    parents = {info.parent for info in timeline.infos if info.kind is LaneKind.INTERRUPTS}
    lanes = zip(
        (info.index for info in timeline.infos if info.kind is LaneKind.CPU), timeline.lanes_of_cpus, strict=True
    )
    return [index for index, lane in lanes if index not in parents and {*lane.shares.values.tolist()} <= {IDLE, ABSENT}]


def _figure(figures: SortFigures, info: LaneInfo) -> int:
    of_process = info.kind is LaneKind.PROCESS
    return int(figures.of_process[info.process] if of_process else figures.of_thread[info.thread])


def mostly(runs: Runs, value: NDArray[np.integer[Any]], window: TimeWindow | None, threads: int) -> _Ints:
    """Return the value, such as a priority, with which each thread ran longest, int64 (threads,); -1 = not known.

    Args:
        runs: The times at which each thread ran.
        value: The value of each run; negative = not known.
        window: Only this part of the trace; None = all of it.
        threads: Number of rows of the thread table.
    """
    start, end = runs.start, runs.end
    if window is not None:
        start, end = np.maximum(start, window.start), np.minimum(end, window.end)
    counts = np.flatnonzero((value >= 0) & (end > start))
    out = np.full(threads, NOT_KNOWN, np.int64)
    if not len(counts):
        return out
    span = int(value[counts].max()) + 1
    pairs, pair = np.unique(runs.thread[counts] * span + value[counts], return_inverse=True)
    cycles = sum_by(pair, (end - start)[counts], len(pairs))
    order = np.argsort(cycles, kind="stable")  # the largest is written last
    out[pairs[order] // span] = pairs[order] % span
    return out


def thread_groups(timeline: Timeline, basis: Basis, group: GroupBy, window: TimeWindow) -> tuple[LaneGroup, ...]:
    """Return threads by the CPU (in the window), priority or partition with which they ran longest, if known."""
    count = len(basis.trace.threads)
    if group is GroupBy.CPU:
        runs = basis.runs
        value, title = mostly(runs, runs.cpu.astype(np.int64), window, count), "Mostly on CPU {}".format
        subjects = np.unique(value).tolist()
    elif group is GroupBy.PRIORITY:
        value, title = mostly(*basis.runs_by_priority, None, count), "Priority {}".format
        subjects = np.unique(value).tolist()[::-1]
    else:
        runs, partition, _ = basis.runs_by_partition
        value, title = mostly(runs, partition, None, count), partial(_partition_title, partition_names(basis.trace))
        subjects = np.unique(value).tolist()
    lanes = LaneIndex(timeline)
    threads = [info for info in timeline.infos if info.kind is LaneKind.THREAD]
    return tuple(
        LaneGroup(title(subject), lanes.keys_of(info.index for info in threads if value[info.thread] == subject))
        for subject in subjects
        if subject != NOT_KNOWN
    )


def _partition_title(names: dict[int, str], partition: int) -> str:
    return f"Partition {partition}: {partition_title(names, partition)}"  # two may have one name


def pattern_groups(timeline: Timeline, rules: Iterable[tuple[str, Callable[[str], bool]]]) -> tuple[LaneGroup, ...]:
    """Return processes grouped by their names, each in the first group whose predicate is true."""
    lanes, left = LaneIndex(timeline), [info for info in timeline.infos if info.kind is LaneKind.PROCESS]
    groups = []
    for title, fits in rules:
        members = [info for info in left if fits(info.title)]
        left = [info for info in left if info not in members]
        if members:
            groups.append(LaneGroup(title, lanes.keys_of(info.index for info in members)))
    return tuple(groups)


_PATIENCE_S: Final = 0.01  # small traces have their answer by then
_SILENT: Final = {
    GroupBy.PRIORITY: "the trace has no priorities: capture wide events of the class THREAD",
    GroupBy.PARTITION: "the trace has no partitions: capture wide events of the class THREAD",
    GroupBy.CPU: "nothing is known to have run in this part of the trace",
    GroupBy.PATTERN: "no process has such a name",
}


@dataclass(frozen=True, slots=True)
class _Sorted:
    sort: SortBy
    order: tuple[int, ...]
    timeline: Timeline


@dataclass(frozen=True, slots=True)
class _Grouped:
    group: GroupBy
    groups: tuple[LaneGroup, ...]
    patterns: str


class LaneSorter(QObject):
    """Sorts or groups the lanes of one view on command; figures that change afterwards move no lane.

    Signals:
        failed: Lanes could not be sorted or grouped; the text says why.
    """

    failed = Signal(str)

    def __init__(self, lanes: LaneList, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lanes = lanes
        self._sorting, self._grouping = (Task(self, self._on_done, self._on_failed) for _ in range(2))

    @property
    def is_busy(self) -> bool:
        """True while figures are being computed."""
        return self._sorting.is_busy or self._grouping.is_busy

    def sort(self, timeline: Timeline, basis: Basis, sort: SortBy, window: TimeWindow) -> None:
        """Sort processes, and the threads in each; times are added up in the window."""
        self._sorting.start(partial(_sorted, timeline, basis, sort, window), _PATIENCE_S)

    def group(self, timeline: Timeline, basis: Basis, group: GroupBy, window: TimeWindow, patterns: str = "") -> None:
        """Group the lanes, by the CPUs of threads in the window, or by patterns as for `parse_groups`.

        Raises:
            UsageError: The patterns are faulty.
        """
        if group is GroupBy.PROCESS:
            self._grouping.cancel()
            self._lanes.group_by(group, ())
            return

        find: Callable[[], tuple[LaneGroup, ...]] = partial(thread_groups, timeline, basis, group, window)
        if group is GroupBy.PATTERN:
            find = partial(pattern_groups, timeline, parse_groups(patterns))
        self._grouping.start(partial(_grouped, find, group, patterns), _PATIENCE_S)

    def close(self) -> None:
        """Cancel the background task and wait for it."""
        self._sorting.close()
        self._grouping.close()

    @Slot(object)
    def _on_done(self, result: object) -> None:
        if isinstance(result, _Sorted):
            if result.timeline is self._lanes.timeline:  # else the trace was reloaded meanwhile
                self._lanes.sort(result.sort, result.order)
        elif isinstance(result, _Grouped):
            if result.groups:
                self._lanes.group_by(result.group, result.groups, result.patterns)
            else:
                self.failed.emit(_SILENT[result.group])

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, SatviewError):
            raise error
        self.failed.emit(str(error))


def _sorted(timeline: Timeline, basis: Basis, sort: SortBy, window: TimeWindow, is_cancelled: IsCancelled) -> _Sorted:
    needs_none = sort in (SortBy.TRACE, SortBy.NAME)
    figures = None if needs_none else sort_figures(basis, sort, window, is_cancelled)
    return _Sorted(sort, sorted_lanes(timeline, sort, figures), timeline)


def _grouped(
    find: Callable[[], tuple[LaneGroup, ...]],
    group: GroupBy,
    patterns: str,
    _is_cancelled: IsCancelled,
) -> _Grouped:
    return _Grouped(group, find(), patterns)
