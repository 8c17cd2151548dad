"""The flame graph of the whole trace or of the selected range, worked out in the background."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import QObject, Slot

from satview.answers.flame_graph import FlameGraph, FlameWidth, flame_graph
from satview.answers.functions import function_table
from satview.answers.table import Table
from satview.base.time import TimeWindow
from satview.session.open_trace import OpenTrace
from satview.session.range_view import Extent, ExtentAnswer
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

_SETTLE_MS: Final = 150  # the range has to rest that long before it is added up again


class FlameView(ExtentAnswer):
    """Adds functions up whenever the range or their names change, and somebody looks.

    Attributes:
        graph: What was worked out last; None = nothing yet.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(opened, Extent.TRACE, _SETTLE_MS, parent)
        self._opened = opened
        self.graph: FlameGraph | None = None
        self._table: Table | None = None  # of what is requested: other widths need no other
        self._measure: FlameWidth | None = None
        self._is_by_thread = False
        opened.described.connect(self._later)

    def show_measure(self, measure: FlameWidth) -> None:
        """Make rectangles as wide as something else."""
        self._measure = measure
        self._request()

    def show_by_thread(self, is_by_thread: bool) -> None:
        """Tell processes and threads apart, or add up what they call."""
        self._is_by_thread = is_by_thread
        self._request()

    @Slot()
    def _request(self) -> None:
        self._settle.stop()
        if self._is_watched:
            trace, window = self._opened.trace, self._extent.window()
            self._start(partial(_graph, trace, window, self._table, self._measure, self._is_by_thread))

    def _take(self, result: object) -> None:
        if isinstance(result, FlameGraph):
            self.graph, self._table = result, result.table

    @Slot()
    def _later(self) -> None:
        """Add up again once things rest; what is being added up is of no use any more."""
        self._table = None
        self._job.cancel()
        super()._later()
        self.changed.emit()


def _graph(
    trace: Trace,
    window: TimeWindow,
    table: Table | None,
    measure: FlameWidth | None,
    is_by_thread: bool,
    _is_cancelled: IsCancelled,
    _report: Report,
) -> FlameGraph:
    """Run in the task; holds the trace, no widget."""
    table = function_table(trace, window) if table is None else table
    return flame_graph(table, measure, is_by_thread=is_by_thread)
