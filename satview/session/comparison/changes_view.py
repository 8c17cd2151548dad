"""What changed between two traces: figures and histograms, worked out in the background while somebody looks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Slot

from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis
from satview.answers.comparison import Change, by_weight, compare_statistics
from satview.answers.comparison_durations import durations, has_durations
from satview.base.errors import Cancelled
from satview.base.memory import borrowed
from satview.base.time import TimeWindow
from satview.session.comparison.comparison import Comparison
from satview.session.extent import Extent, ExtentAnswer
from satview.session.questions.answer import WatchedAnswer
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

_SETTLE_MS: Final = 200  # a moving view requests other figures that often at most
_Side = tuple[Trace, Basis, TimeWindow]


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What was found.

    Attributes:
        found: Every figure of everything, what changed most first.
        windows: The parts that were compared, of the first trace and the second.
    """

    found: tuple[Change, ...]
    windows: tuple[TimeWindow, TimeWindow]


@dataclass(frozen=True, slots=True, eq=False)
class Overlaid:
    """The durations behind one figure.

    Attributes:
        change: The figure.
        sides: int64 (n,) each, nanoseconds, of the first trace and the second.
    """

    change: Change
    sides: tuple[NDArray[np.int64], NDArray[np.int64]]


class ChangesView(ExtentAnswer):
    """Works out what changed, whenever what it depends on changes and somebody looks.

    Attributes:
        changes: The last result; None = nothing yet.
        extent: The part that is compared.
    """

    def __init__(self, comparison: Comparison, parent: QObject | None = None) -> None:
        super().__init__(comparison.first, Extent.TRACE, _SETTLE_MS, parent)
        self._comparison = comparison
        self.changes: Changes | None = None
        comparison.changed.connect(self._on_comparison)

    def set_extent(self, extent: Extent) -> None:
        """Request another part."""
        self._extent.select(extent)
        self._request()

    def sides(self) -> tuple[_Side, _Side] | None:
        """Return trace, basis and part of both; None while there is no second trace."""
        first, second = self._comparison.first, self._comparison.second
        if second is None:
            return None
        if self.extent is Extent.TRACE or self._extent.needs_range:
            windows = first.trace.window, second.trace.window
        else:
            requested = first.selection.time_range if self.extent is Extent.RANGE else first.viewport.window
            assert requested is not None
            windows = (requested.within(first.trace.window),
                       self._comparison.map.window(requested).within(second.trace.window))  # fmt: skip
        return (first.trace, first.basis, windows[0]), (second.trace, second.basis, windows[1])

    @Slot()
    def _request(self) -> None:
        self._settle.stop()
        sides = self.sides()
        if sides is None:
            self.changes = None
            self._job.cancel()
            self.changed.emit()
        elif self._is_watched:
            self._start(partial(_changes, *sides))

    def _take(self, result: object) -> None:
        self.changes = result if isinstance(result, Changes) else None

    @Slot()
    def _on_comparison(self) -> None:
        sides = self.sides()
        if sides is None or self.changes is None or self.changes.windows != (sides[0][2], sides[1][2]):
            self.changes = None
            self._request()


def _changes(first: _Side, second: _Side, is_cancelled: IsCancelled, _report: Report) -> Changes:
    cancelled = borrowed(is_cancelled)

    def check() -> None:
        if cancelled():
            raise Cancelled

    sides = [Statistics(trace, window, None, basis) for trace, basis, window in (first, second)]
    found = [
        change for change in compare_statistics(sides[0], sides[1], (), check) if change.weight or _is_there(change)
    ]
    return Changes(tuple(by_weight(found)), (first[2], second[2]))


def _is_there(change: Change) -> bool:
    """Return whether a figure has a value in either trace."""
    return max(0, change.before) > 0 or max(0, change.after) > 0


class OverlaidView(WatchedAnswer):
    """Finds the durations behind the selected figure, in both traces.

    Attributes:
        overlaid: The last result; None = nothing yet, or there are none.
    """

    def __init__(self, changes: ChangesView, parent: QObject | None = None) -> None:
        super().__init__(0, parent)
        self._changes = changes
        self._requested: Change | None = None
        self.overlaid: Overlaid | None = None
        self.watch(is_watched=True)

    def show_change(self, change: Change | None) -> None:
        """Request the durations behind a figure, or none."""
        self._requested = change
        self.overlaid = None
        self._request()

    @Slot()
    def _request(self) -> None:
        sides, requested = self._changes.sides(), self._requested
        if sides is None or requested is None or not has_durations(requested):
            self._job.cancel()
            self.changed.emit()
        else:
            self._start(partial(_overlaid, *sides, requested))

    def _take(self, result: object) -> None:
        self.overlaid = result if isinstance(result, Overlaid) else None


def _overlaid(first: _Side, second: _Side, change: Change, is_cancelled: IsCancelled, _report: Report) -> Overlaid:
    cancelled = borrowed(is_cancelled)
    found = [durations(trace, basis, window, change, side, cancelled)
             for side, (trace, basis, window) in enumerate((first, second))]  # fmt: skip
    return Overlaid(change, (found[0], found[1]))
