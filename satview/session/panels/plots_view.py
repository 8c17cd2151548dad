"""The plot that a window shows: what of, of which part of the trace, of whom; worked out in the background."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Slot

from satview.analysis.load import LoadBy
from satview.analysis.occurrences import Measure, measures
from satview.base.time import TimeWindow
from satview.session.open_trace import OpenTrace
from satview.session.panels.plots_task import DurationsPlotted, LoadPlotted, plot_durations, plot_load
from satview.session.panels.statistics_view import Extent, part_of
from satview.session.questions.answer import WatchedAnswer

_SETTLE_MS: Final = 40  # a moving view asks for a new plot that often at most


class PlotKind(StrEnum):
    """The plots there are."""

    LOAD = "Load over time"
    DURATIONS = "Histogram"


class PlotsView(WatchedAnswer):
    """Works the requested plot out whenever what it depends on changes and the panel can be seen.

    Attributes:
        plotted: The last result for each kind; missing = nothing yet.
        kind: The requested plot.
        by: Bands of the load plot.
        measure: What the histogram is of.
        extent: Part of the trace that the histogram is of: all of it, or what the lanes show.
        only_selected: True to take only the selected thread or process.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        """Prepare; nothing is worked out before `watch`."""
        super().__init__(_SETTLE_MS, parent)
        self._opened = opened
        self.plotted: dict[PlotKind, LoadPlotted | DurationsPlotted] = {}
        self.kind = PlotKind.LOAD
        self.by = LoadBy.PROCESS
        self.measure: Measure = measures(opened.trace)[0]
        self.extent = Extent.VIEW
        self.only_selected = False
        self._is_outdated = False
        opened.viewport.window_changed.connect(self._on_window)
        opened.selection.changed.connect(self._on_selection)
        opened.reloaded.connect(self._on_reloaded)

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
        """Want another plot."""
        self.kind = kind
        self._ask()

    def set_by(self, by: LoadBy) -> None:
        """Want other bands."""
        self.by = by
        self._ask()

    def set_measure(self, measure: Measure) -> None:
        """Want a histogram of something else."""
        self.measure = measure
        self._ask()

    def set_extent(self, extent: Extent) -> None:
        """Want a histogram of another part of the trace."""
        self.extent = extent
        self._ask()

    def set_only_selected(self, only_selected: bool) -> None:
        """Want a histogram of the selected thread or process, or of all."""
        self.only_selected = only_selected
        self._ask()

    def _window(self) -> TimeWindow:
        whole = self._opened.trace.window
        is_view = self.kind is PlotKind.LOAD or self.extent is Extent.VIEW
        return part_of(self._opened.viewport.window, whole) if is_view else whole

    @Slot()
    def _ask(self) -> None:
        self._settle.stop()
        self._is_outdated = False
        if not self._is_watched:
            return
        trace, window = self._opened.trace, self._window()
        basis = self._opened.basis
        if self.kind is PlotKind.LOAD:
            self._start(partial(plot_load, trace, basis, window, self.by))
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
        if self._is_outdated:  # by what changed while the plot was worked out
            self._settle.start()

    @Slot()
    def _on_window(self) -> None:
        if self.kind is PlotKind.LOAD or self.extent is Extent.VIEW:
            self._later()

    @Slot()
    def _on_selection(self) -> None:
        if self.kind is PlotKind.DURATIONS and self.only_selected:
            self._later()

    @Slot(object)
    def _on_reloaded(self, _reload: object) -> None:
        self._later()

    def _later(self) -> None:
        """Ask for a new plot soon. A view that moves on lets the plot at work be finished, or none would ever be."""
        if not self._is_watched:
            return
        if self._job.is_busy:
            self._is_outdated = True
        elif not self._settle.isActive():
            self._settle.start()
