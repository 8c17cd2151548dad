"""The plot that a window shows: what of, of which part of the trace, of whom; worked out in the background."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Slot

from satview.analysis.load import LoadBy
from satview.analysis.times.occurrences import Measure, measures
from satview.base.time import TimeWindow
from satview.session.extent import Extent, ExtentAnswer
from satview.session.open_trace import OpenTrace
from satview.session.panels.plots_task import (
    CountsPlotted,
    DurationsPlotted,
    LoadPlotted,
    Plotted,
    plot_counts,
    plot_durations,
    plot_load,
)

DIVISIONS: Final = 100
MOST_CONDITIONS: Final = 12  # more lines cannot be distinguished
_SETTLE_MS: Final = 40  # a moving view requests a new plot that often at most


class PlotKind(StrEnum):
    """The plots there are."""

    LOAD = "Load over time"
    DURATIONS = "Histogram"
    COUNTS = "Events over time"


class PlotsView(ExtentAnswer):
    """Works the requested plot out whenever what it depends on changes and the panel can be seen.

    Attributes:
        plotted: The last result for each kind; missing = nothing yet.
        kind: The requested plot.
        by: Bands of the load plot.
        measure: What the histogram is of.
        only_selected: True to take only the selected thread or process.
        conditions: What is counted over time; empty = the classes of events.
        divisions: Into how many parts the window is divided for that.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        """Prepare; nothing is worked out before `watch`."""
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
        """True if a histogram of the selected range is requested and there is none."""
        return self.kind is PlotKind.DURATIONS and self._extent.needs_range

    @property
    def is_pending(self) -> bool:
        """True while the plot is older than what is requested."""
        return super().is_pending or self._is_outdated

    @property
    def selected(self) -> tuple[NDArray[np.bool_], str] | None:
        """The threads of the selected lane, bool (threads,), and what the lane is called; None without such a lane."""
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
        """Show another plot."""
        self.kind = kind
        self._request()

    def set_by(self, by: LoadBy) -> None:
        """Divide by something else."""
        self.by = by
        self._request()

    def set_measure(self, measure: Measure) -> None:
        """Show a histogram of something else."""
        self.measure = measure
        self._request()

    def set_extent(self, extent: Extent) -> None:
        """Show a histogram of another part of the trace."""
        self._extent.select(extent)
        self._request()

    def set_only_selected(self, only_selected: bool) -> None:
        """Show a histogram of the selected thread or process, or of all."""
        self.only_selected = only_selected
        self._request()

    def set_conditions(self, text: str) -> None:
        """Show counts of other events: conditions with `;` between, as the search takes them."""
        self.conditions = tuple(part.strip() for part in text.split(";") if part.strip())[:MOST_CONDITIONS]
        self._request()

    def set_divisions(self, divisions: int) -> None:
        """Show more or fewer counts."""
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
        if self._is_outdated:  # by what changed while the plot was worked out
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
        """Request a new plot soon. A view that moves on lets the running plot finish, or none would ever be."""
        if not self._is_watched:
            return
        if self._job.is_busy:
            self._is_outdated = True
        elif not self._settle.isActive():
            self._settle.start()
