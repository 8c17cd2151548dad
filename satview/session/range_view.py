"""Selects the part of a trace for which statistics are computed, and computes the summary of a selected range."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from PySide6.QtCore import QObject, Slot

from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis
from satview.answers.statistics import TABLES
from satview.answers.table import SUBJECT, Table
from satview.base.column_arrays import borrowed
from satview.base.time import Clock, TimeWindow, format_cycles, format_duration, format_exactly, format_moment
from satview.session.event_text import Cell, DetailLine, Details, DetailTable, Section
from satview.session.open_trace import OpenTrace
from satview.session.tasks import IsCancelled, WatchedAnswer
from satview.store.trace import Trace

# Lengths of measured ranges as text: exactly, in time and in cycles.


def length_text(cycles: int, clock: Clock) -> str:
    """Return a length without rounding: `1.204 562 5 ms (2,409,125 cycles)`."""
    return f"{format_exactly(cycles, clock)} ({format_cycles(cycles)})"


def length_texts(cycles: int, clock: Clock) -> tuple[str, ...]:
    """Return a length as three texts of decreasing width; the shortest is rounded and begins with `≈`."""
    exact, short = format_exactly(cycles, clock), format_duration(clock.duration_ns(cycles))
    return length_text(cycles, clock), exact, f"\N{ALMOST EQUAL TO} {short}"


def frequency_text(cycles: int, clock: Clock) -> str:
    """Return the reciprocal of a length as a frequency: `830.2 Hz`; empty for a length of 0."""
    if not cycles:
        return ""
    hertz = clock.cycles_per_s / abs(cycles)
    for unit, scale in (("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3), ("Hz", 1.0)):
        if hertz >= scale or unit == "Hz":
            return f"{hertz / scale:.4g} {unit}"
    raise AssertionError("unreachable")


NO_RANGE: Final = "Select a range: drag over the lanes, press R for the selected interval, or Shift+R to type one."


class Extent(StrEnum):
    """Part of the trace that an answer is about."""

    TRACE = "Whole trace"
    VIEW = "View"
    RANGE = "Selection"


class ExtentSelection:
    """The part of the trace that an answer is about, as chosen by the user; becomes RANGE when a range is selected.

    Attributes:
        extent: Whole trace, visible or selected range.
    """

    def __init__(self, opened: OpenTrace, extent: Extent) -> None:
        self._opened = opened
        self.extent = extent
        self._before: Extent | None = None  # restored when the range is gone
        self._has_range = False
        self.follow_range()

    def select(self, extent: Extent) -> None:
        """Set `extent`, which stays until the user selects a range while none is selected."""
        self.extent, self._before = extent, None

    def follow_range(self) -> None:
        """Set `extent` to RANGE if a range has just been selected; restore the earlier part after it was cleared."""
        had_range, self._has_range = self._has_range, self._opened.selection.time_range is not None
        if self._has_range and not had_range and self.extent is not Extent.RANGE:
            self.extent, self._before = Extent.RANGE, self.extent
        elif had_range and not self._has_range and self._before is not None:
            self.extent, self._before = self._before, None

    @property
    def needs_range(self) -> bool:
        """True if the selected range is requested, but no range is selected."""
        return self.extent is Extent.RANGE and self._opened.selection.time_range is None

    def window(self) -> TimeWindow:
        """Return the time range of the part, clipped to the trace; the whole trace if the part is empty or outside."""
        whole = self._opened.trace.window
        requested = {
            Extent.TRACE: whole,
            Extent.VIEW: self._opened.viewport.window,
            Extent.RANGE: self._opened.selection.time_range or whole,
        }[self.extent]
        return requested.within(whole)


class ExtentAnswer(WatchedAnswer):
    """An answer about a selectable part of the trace, computed again when that part changes.

    Args:
        opened: The open trace.
        extent: The initial part.
        settle_ms: How long the part must stay unchanged before the answer is computed again.
        parent: Owner.
    """

    def __init__(self, opened: OpenTrace, extent: Extent, settle_ms: int, parent: QObject | None = None) -> None:
        super().__init__(settle_ms, parent)
        self._extent = ExtentSelection(opened, extent)
        opened.viewport.window_changed.connect(self._on_window)
        opened.selection.range_changed.connect(self._on_range)
        opened.reloaded.connect(self._on_reloaded)

    @property
    def extent(self) -> Extent:
        """The part of the trace that the answer is about."""
        return self._extent.extent

    @property
    def needs_range(self) -> bool:
        """True if the selected range is requested, but no range is selected."""
        return self._extent.needs_range

    def _later(self) -> None:
        """Compute the answer again once the part of the trace stays unchanged for `settle_ms`."""
        if self._is_watched:
            self._settle.start()

    @Slot()
    def _on_window(self) -> None:
        if self.extent is Extent.VIEW:
            self._later()

    @Slot()
    def _on_range(self) -> None:
        before = self.extent
        self._extent.follow_range()
        if self.extent is Extent.RANGE or self.extent is not before:
            self._later()
            self.changed.emit()  # even if the panel is hidden, as the part may have changed

    @Slot(object)
    def _on_reloaded(self, _reload: object) -> None:
        self._later()


_SETTLE_MS: Final = 120
_ROWS: Final = 8  # threads and events shown; the panel Statistics has all
_STATE: Final = (("state", "State"), ("total", "Time"), ("share", "Of all"), ("count", "Times"))
_LENGTHS: Final = (
    ("state", "State"),
    ("p50", "Half"),
    ("p90", "90 %"),
    ("p99", "99 %"),
    ("longest", "Longest"),
)
_THREAD: Final = (("thread", "Thread"), ("cpu", "CPU time"), ("cpu_share", "Of a CPU"), ("ready", "READY"))
_EVENT: Final = (("event", "Event"), ("count", "Count"), ("per_s", "Per second"))


@dataclass(frozen=True, slots=True, eq=False)
class RangeSummary:
    """Statistics of a range, as shown when it is selected.

    Attributes:
        trace: The trace.
        window: The range.
        states, threads, events: The tables `state-total`, `thread` and `event` of `answers.statistics`.
    """

    trace: Trace
    window: TimeWindow
    states: Table
    threads: Table
    events: Table


def summarize(trace: Trace, window: TimeWindow, basis: Basis, is_cancelled: IsCancelled) -> RangeSummary:
    """Return the summary of a range; runs on the worker thread.

    Raises:
        Cancelled: Another range is requested.
    """
    statistics = Statistics(trace, window, None, basis, borrowed(is_cancelled))
    states, threads, events = (TABLES[key](statistics, None) for key in ("state-total", "thread", "event"))
    return RangeSummary(trace, window, states, threads, events)


class RangeView(WatchedAnswer):
    """Summarizes the selected range once it stays unchanged, while the summary is visible.

    Attributes:
        answer: The summary of the selected range; None = not yet computed.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(_SETTLE_MS, parent)
        self._opened = opened
        self.answer: RangeSummary | None = None
        opened.selection.range_changed.connect(self._on_range)
        opened.reloaded.connect(self._on_range)

    def details(self) -> Details | None:
        """Return the details of the selected range; None if no range is selected."""
        window = self._opened.selection.time_range
        return range_details(self._opened.trace, window, self.answer, self.error) if window is not None else None

    @Slot()
    def _request(self) -> None:
        trace, requested = self._opened.trace, self._opened.selection.time_range
        if not self._is_watched or requested is None or (self.answer is not None and self.answer.window == requested):
            return
        if requested.start < trace.window.end and requested.end > trace.window.start:
            self._start(partial(summarize, trace, requested.within(trace.window), self._opened.basis))

    def _take(self, result: object) -> None:
        self.answer = result if isinstance(result, RangeSummary) else None

    @Slot()
    def _on_range(self) -> None:
        self.answer, self.error = None, ""
        self._job.cancel()
        self._settle.stop()
        if self._is_watched and self._opened.selection.time_range is not None:
            self._settle.start()
        self.changed.emit()


def range_details(trace: Trace, window: TimeWindow, summary: RangeSummary | None, error: str = "") -> Details:
    """Return the details of a range.

    Args:
        trace: The trace.
        window: The range.
        summary: Its summary; None = not yet computed.
        error: Why there is no summary.
    """
    clock, rows = trace.clock, trace.rows_between(window)
    lines = (
        DetailLine("Length", format_exactly(window.length, clock), format_cycles(window.length)),
        DetailLine("Frequency", frequency_text(window.length, clock)),
        DetailLine("From", format_moment(window.start, clock), f"{window.start:,} cycles"),
        DetailLine("To", format_moment(window.end, clock), f"{window.end:,} cycles"),
        DetailLine("Events", f"{rows.stop - rows.start:,}"),
    )
    measured = Section("Measured", lines)
    if summary is None:
        text = error or "Counting\N{HORIZONTAL ELLIPSIS}"
        return Details("Range", "", "selected", (measured, Section("Totals", (DetailLine("", text),), is_prose=True)))
    tables = (
        _table("States of all threads", summary.states, _STATE),
        _table("How long states last", summary.states, _LENGTHS),
        _table("Threads", summary.threads, _THREAD, _ROWS),
        _table("Events", summary.events, _EVENT, _ROWS),
    )
    return Details("Range", "", "selected", (measured,), tables)


def _table(title: str, answer: Table, requested: tuple[tuple[str, str], ...], most: int | None = None) -> DetailTable:
    """Return the requested columns of an answer as a table: at most `most` rows, largest first."""
    columns = {column.name for column in answer.question.columns}
    shown = {name: head for name, head in requested if name in columns}
    largest = answer.sorted_by(answer.question.sort_name).head(most)
    rows = tuple(tuple(_cell(largest, name, row) for name in shown) for row in range(len(largest)))
    left = len(answer) - len(rows)
    more = f"{left:,} more: Statistics has all" if left else ""
    return DetailTable(title, tuple(shown.values()), rows, more or ("" if rows else answer.says_why_empty))


def _cell(answer: Table, name: str, row: int) -> Cell:
    text = answer.text(row, name)
    if name == "longest" and (moment := answer.moment(row, name)) >= 0:
        return Cell(text, thread=answer.held(row, SUBJECT), cycles=moment)
    if name == "thread":
        return Cell(text, thread=answer.held(row, SUBJECT))
    return Cell(text, event=answer.event(row)) if name == "event" else Cell(text)
