"""What the selected range holds: totals by state and thread, percentiles, counts; worked out in the background."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from PySide6.QtCore import QObject, Slot

from satview.analysis.sheet import Column, Sheet
from satview.analysis.times.basis import Basis
from satview.base.memory import borrowed
from satview.base.time import TimeWindow
from satview.base.time_text import format_cycles, format_exactly, format_moment
from satview.session.events.event_text import Cell, Details, Line, Section, Table
from satview.session.extent import frequency_text
from satview.session.open_trace import OpenTrace
from satview.session.questions import WatchedAnswer
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

_SETTLE_MS: Final = 120
_ROWS: Final = 8  # of threads and events: the panel Statistics has all
_STATE: Final = (("state", "State"), ("total_ns", "Time"), ("share", "Of all"), ("count", "Times"))
_LENGTHS: Final = (
    ("state", "State"),
    ("p50_ns", "Half"),
    ("p90_ns", "90 %"),
    ("p99_ns", "99 %"),
    ("longest_ns", "Longest"),
)
_THREAD: Final = (("thread", "Thread"), ("cpu_ns", "CPU time"), ("cpu_share", "Of a CPU"), ("ready_ns", "READY"))
_EVENT: Final = (("event", "Event"), ("count", "Count"), ("per_s", "Per second"))


@dataclass(frozen=True, slots=True, eq=False)
class RangeSummary:
    """The sheets of a range.

    Attributes:
        trace: Of which trace.
        window: The range.
        states, threads, events: `state-total`, `thread` and `event` of `analysis.statistics_sheets`.
    """

    trace: Trace
    window: TimeWindow
    states: Sheet
    threads: Sheet
    events: Sheet


def summarize(
    trace: Trace, window: TimeWindow, basis: Basis, is_cancelled: IsCancelled, _report: Report
) -> RangeSummary:
    """Return the summary of a range; runs on the worker.

    Raises:
        Cancelled: Another range is requested.
    """
    from satview.analysis.statistics import Statistics  # with the first range: no picture waits for it
    from satview.analysis.statistics_sheets import SHEETS

    found = Statistics(trace, window, None, basis, borrowed(is_cancelled))
    states, threads, events = (SHEETS[key](found, None) for key in ("state-total", "thread", "event"))
    return RangeSummary(trace, window, states, threads, events)


class RangeView(WatchedAnswer):
    """Sums the selected range up, once it rests and while somebody looks.

    Attributes:
        found: The summary of the selected range; None while there is none yet.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(_SETTLE_MS, parent)
        self._opened = opened
        self.found: RangeSummary | None = None
        opened.selection.range_changed.connect(self._on_range)
        opened.reloaded.connect(self._on_range)

    def details(self) -> Details | None:
        """Return what is known of the selected range; None without one."""
        window = self._opened.selection.time_range
        return range_details(self._opened.trace, window, self.found, self.error) if window is not None else None

    @Slot()
    def _request(self) -> None:
        trace, requested = self._opened.trace, self._opened.selection.time_range
        if not self._is_watched or requested is None or (self.found is not None and self.found.window == requested):
            return
        if requested.start < trace.window.end and requested.end > trace.window.start:
            self._start(partial(summarize, trace, requested.within(trace.window), self._opened.basis))

    def _take(self, result: object) -> None:
        self.found = result if isinstance(result, RangeSummary) else None

    @Slot()
    def _on_range(self) -> None:
        self.found, self.error = None, ""
        self._job.cancel()
        self._settle.stop()
        if self._is_watched and self._opened.selection.time_range is not None:
            self._settle.start()
        self.changed.emit()


def range_details(trace: Trace, window: TimeWindow, found: RangeSummary | None, error: str = "") -> Details:
    """Return what is known of a range.

    Args:
        trace: The trace.
        window: The range.
        found: Its summary; None = not known yet.
        error: Why there is none.
    """
    clock, rows = trace.clock, trace.rows_between(window)
    lines = (
        Line("Length", format_exactly(window.length, clock), format_cycles(window.length)),
        Line("Frequency", frequency_text(window.length, clock)),
        Line("From", format_moment(window.start, clock), f"{window.start:,} cycles"),
        Line("To", format_moment(window.end, clock), f"{window.end:,} cycles"),
        Line("Events", f"{rows.stop - rows.start:,}"),
    )
    measured = Section("Measured", lines)
    if found is None:
        text = error or "Counting\N{HORIZONTAL ELLIPSIS}"
        return Details("Range", "", "selected", (measured, Section("Totals", (Line("", text),), is_prose=True)))
    tables = (
        _table("States of all threads", found.states, _STATE),
        _table("How long states last", found.states, _LENGTHS),
        _table("Threads", found.threads, _THREAD, _ROWS),
        _table("Events", found.events, _EVENT, _ROWS),
    )
    return Details("Range", "", "selected", (measured,), tables)


def _table(title: str, sheet: Sheet, requested: tuple[tuple[str, str], ...], most: int | None = None) -> Table:
    """Return some columns of a sheet, the largest rows first."""
    columns = [column for key, _ in requested for column in sheet.columns if column.key == key]
    order = sheet.column(sheet.sort_key).order(descending=True) if len(sheet) else np.empty(0, np.intp)
    rows = tuple(tuple(_cell(sheet, column, row) for column in columns) for row in order[:most].tolist())
    left = len(sheet) - len(rows)
    more = f"{left:,} more: Statistics has all" if left else ""
    titles = tuple(head for key, head in requested if any(column.key == key for column in columns))
    return Table(title, titles, rows, more or ("" if rows else sheet.empty))


def _cell(sheet: Sheet, column: Column, row: int) -> Cell:
    text = column.marked(row)
    if column.key == "longest_ns" and column.cycles is not None and column.cycles[row] >= 0:
        return Cell(text, thread=int(sheet.subjects[row]), cycles=int(column.cycles[row]))
    if column.key == "thread":
        return Cell(text, thread=int(sheet.subjects[row]))
    return Cell(text, event=int(sheet.subjects[row])) if column.key == "event" else Cell(text)
