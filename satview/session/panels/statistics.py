"""Model of the panel Statistics: the requested table, and its computation in the background."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Slot

from satview.analysis.needs import lost_words
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis
from satview.answers.statistics import statistics_table
from satview.answers.table import Table
from satview.base.column_arrays import borrowed
from satview.base.new_file import new_text_file
from satview.base.safe_text import counted
from satview.base.time import TimeWindow
from satview.session.open_trace import OpenTrace
from satview.session.range_view import Extent, ExtentAnswer
from satview.session.tasks import IsCancelled
from satview.store.trace import Trace

# Statistics computed on the worker thread: a table with its description, and its export.


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A statistics table, with the numbers of events, kinds and threads that are counted in it.

    Attributes:
        table: The table.
        window: The time range.
        follows: True if only events that the filter shows are counted.
        events, all_events: Number of counted events in the range, and of all events in the range.
        kinds, all_kinds: Number of kinds of events in the trace that the filter shows, and of all kinds in the trace.
        threads, all_threads: Number of threads that the filter shows, and of all threads in the trace.
        lost: Sentence about the part of the range in which events were lost; empty if none were.
    """

    table: Table
    window: TimeWindow
    follows: bool
    events: int
    all_events: int
    kinds: int
    all_kinds: int
    threads: int
    all_threads: int
    lost: str

    @property
    def statement(self) -> str:
        """Sentence on how many events are counted, and whether only those that the filter shows."""
        if not self.follows:
            return "Counts 1 event" if self.all_events == 1 else f"Counts all {self.all_events:,} events"
        if self.events == self.all_events and self.kinds == self.all_kinds:
            return f"Follows the filter, which hides none of the {self.all_events:,} events"
        return (
            f"Follows the filter: {self.kinds:,} of {self.all_kinds:,} kinds, {self.threads:,} of "
            f"{counted(self.all_threads, 'thread')}; counts {self.events:,} of {counted(self.all_events, 'event')}"
        )

    @property
    def warning(self) -> str:
        """Warning for a range in which events were lost; empty if none were."""
        return f"{self.lost}: counts are lower bounds" if self.lost else ""


class RangeStatistics:
    """Computes statistics tables of one range and filter; the tables share intermediate results."""

    def __init__(
        self,
        trace: Trace,
        window: TimeWindow,
        follows: bool,
        rows: NDArray[np.uint32] | None,
        threads: NDArray[np.bool_] | None,
        basis: Basis,
    ) -> None:
        self._trace, self._window, self._follows, self._rows, self._threads = trace, window, follows, rows, threads
        self._basis = basis
        self._statistics: Statistics | None = None
        self._kinds = 0
        self._is_cancelled: IsCancelled = bool  # of the task that runs now

    def is_like(self, other: RangeStatistics) -> bool:
        """Return whether other statistics are of the same trace, range and filter."""
        threads, others = self._threads, other._threads
        same_threads = threads is others or (
            threads is not None and others is not None and np.array_equal(threads, others)
        )
        return (
            self._trace is other._trace
            and self._rows is other._rows
            and same_threads
            and (self._window, self._follows) == (other._window, other._follows)
        )

    def counted(self, key: str, is_cancelled: IsCancelled) -> object:
        """Return the statistics table named `key` as a `Counted`; for the worker thread, one call at a time."""
        self._is_cancelled = is_cancelled
        trace = self._trace
        if self._statistics is None:
            passes = None
            if self._rows is not None:
                passes = np.zeros(len(trace.events), np.bool_)
                passes[self._rows] = True
            self._kinds = int(np.count_nonzero(self._counts_by_code()))
            self._statistics = Statistics(trace, self._window, passes, self._basis, borrowed(self._should_stop))
        statistics = self._statistics
        table = statistics_table(key, statistics, self._threads)
        part = trace.rows_between(self._window)
        total = part.stop - part.start
        threads = len(trace.threads) - 1
        return Counted(
            table,
            self._window,
            self._follows,
            total if statistics.passes is None else int(np.count_nonzero(statistics.passes[part])),
            total,
            self._kinds,
            int(np.count_nonzero(trace.code_counts)),
            threads if self._threads is None else int(np.count_nonzero(self._threads[1:])),
            threads,
            lost_words(trace, statistics.lost_cycles),
        )

    def _counts_by_code(self) -> NDArray[np.int64]:
        if self._rows is None:
            return self._trace.code_counts
        return np.bincount(self._trace.events.code[self._rows])

    def _should_stop(self) -> bool:
        return self._is_cancelled()


def write_table(table: Table, path: Path, reading: Sequence[Path], _is_cancelled: IsCancelled) -> int:
    """Write an answer, row by row, to a CSV file that is none of the trace (`reading`); return the number of rows.

    Raises:
        WriteError: The file cannot be written.
    """
    with new_text_file(path, reading=reading, newline="") as file:
        csv.writer(file).writerows(table.csv_rows())
    return len(table)


# The statistics that a window shows: which table, of which part of the trace, and whether they follow the filter.


_SETTLE_MS: Final = 150  # the range must be unchanged for this long before it is counted again


class StatisticsView(ExtentAnswer):
    """Computes statistics in the background whenever their input has changed, while the panel is visible.

    Attributes:
        counted: The last result; None = not yet computed.
        key: The requested table.
        follows: True to count only events that the filter shows.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(opened, Extent.TRACE, _SETTLE_MS, parent)
        self._opened = opened
        self.counted: Counted | None = None
        self.key = "thread"
        self.follows = False
        self._statistics: RangeStatistics | None = None
        opened.filters.view_changed.connect(self._on_filter)
        opened.described.connect(self._on_described)
        opened.filters.changed.connect(self.changed)

    @property
    def ignores_filter(self) -> bool:
        """True if a filter is active, but the statistics also count the events that it hides."""
        return not self.follows and self._opened.filters.is_active

    def show_table(self, key: str) -> None:
        """Request another of the statistics tables."""
        if key != self.key:
            self.key = key
            self._request()

    def set_extent(self, extent: Extent) -> None:
        """Set the part of the trace for which statistics are computed."""
        before = self.extent
        self._extent.select(extent)
        if extent is not before:
            self._request()

    def set_follows(self, follows: bool) -> None:
        """Set whether the statistics count only events that the filter shows."""
        if follows != self.follows:
            self.follows = follows
            self._request()

    @Slot()
    def _request(self) -> None:
        self._settle.stop()
        if not self._is_watched:
            return
        self.error = ""
        if self.needs_range:
            self._job.cancel()
            self.changed.emit()
            return
        filters, trace, window = self._opened.filters, self._opened.trace, self._extent.window()
        rows = filters.rows if self.follows else None
        threads = filters.threads if self.follows else None
        requested = RangeStatistics(trace, window, self.follows, rows, threads, self._opened.basis)
        if self._statistics is None or not self._statistics.is_like(requested):
            self._statistics = requested
        self._start(partial(self._statistics.counted, self.key))

    def _take(self, result: object) -> None:
        if isinstance(result, Counted):
            self.counted = result

    @Slot()
    def _on_filter(self) -> None:
        if self.follows:
            self._later()

    @Slot()
    def _on_described(self) -> None:
        """Compute the statistics again, as changed descriptions or symbols may give functions other names."""
        self._statistics = None
        self._later()

    @Slot(object)
    def _on_reloaded(self, _reload: object) -> None:
        self._statistics = None  # it holds the shorter trace
        self._later()

    def _later(self) -> None:
        """Stop the running task, and count again once the input is unchanged for a while."""
        if self._is_watched:
            self._job.cancel()
            self._settle.start()
            self.changed.emit()
