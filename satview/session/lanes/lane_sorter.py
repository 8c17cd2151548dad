"""Sorts and groups lanes by figures that are worked out in the background."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from PySide6.QtCore import QObject, Signal, Slot

from satview.analysis.times.basis import Basis
from satview.base.errors import SatviewError
from satview.base.time import TimeWindow
from satview.session.lanes.lane_arrangement import GroupBy, LaneGroup, SortBy
from satview.session.lanes.lane_list import LaneList
from satview.session.name_patterns import parse_groups
from satview.session.tasks import IsCancelled, Report, Task
from satview.timeline.lane_tree import Timeline

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
    """Sorts and groups the lanes of one view; figures are those of the moment of the command, so lanes do not jump.

    Signals:
        failed: Why lanes could not be sorted or grouped, one sentence.
    """

    failed = Signal(str)

    def __init__(self, lanes: LaneList, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lanes = lanes
        self._sorting, self._grouping = Task(self), Task(self)
        for job in (self._sorting, self._grouping):
            job.done.connect(self._on_done)
            job.failed.connect(self._on_failed)

    @property
    def is_busy(self) -> bool:
        """True while figures are worked out."""
        return self._sorting.is_busy or self._grouping.is_busy

    def sort(self, timeline: Timeline, basis: Basis, sort: SortBy, window: TimeWindow) -> None:
        """Sort processes, and the threads in each.

        Args:
            timeline: The lanes.
            basis: Of their trace.
            sort: By what.
            window: Where times are added up.
        """
        self._sorting.start(partial(_sorted, timeline, basis, sort, window), _PATIENCE_S)

    def group(self, timeline: Timeline, basis: Basis, group: GroupBy, window: TimeWindow, patterns: str = "") -> None:
        """Group the lanes by something else.

        Args:
            timeline: The lanes.
            basis: Of their trace.
            group: What the groups are.
            window: Where it counts on which CPU threads ran.
            patterns: For PATTERN: as `parse_groups` takes them.

        Raises:
            UsageError: The patterns are faulty.
        """
        if group is GroupBy.PROCESS:
            self._grouping.cancel()
            self._lanes.group_by(group, ())
            return
        from satview.session.lanes.lane_figures import pattern_groups, thread_groups  # as in `_sorted`

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
            if result.timeline is self._lanes.timeline:  # else the trace was refreshed meanwhile
                self._lanes.sort(result.sort, result.order)
        elif isinstance(result, _Grouped):
            if result.groups:
                self._lanes.group_by(result.group, result.groups, result.patterns)
            else:
                self.failed.emit(_SILENT[result.group])

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if not isinstance(error, SatviewError):
            raise error if isinstance(error, Exception) else RuntimeError(error)
        self.failed.emit(str(error))


def _sorted(
    timeline: Timeline, basis: Basis, sort: SortBy, window: TimeWindow, is_cancelled: IsCancelled, _report: Report
) -> _Sorted:
    """Run in the task; holds no widget."""
    from satview.session.lanes.lane_figures import sort_figures, sorted_lanes  # brings statistics

    needs_none = sort in (SortBy.TRACE, SortBy.NAME)
    figures = None if needs_none else sort_figures(basis, sort, window, is_cancelled)
    return _Sorted(sort, sorted_lanes(timeline, sort, figures), timeline)


def _grouped(
    find: Callable[[], tuple[LaneGroup, ...]],
    group: GroupBy,
    patterns: str,
    _is_cancelled: IsCancelled,
    _report: Report,
) -> _Grouped:
    """Run in the task."""
    return _Grouped(group, find(), patterns)
