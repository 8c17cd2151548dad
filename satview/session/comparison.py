"""Compares two traces: maps times of one to times of the other, and computes the figures that changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from satview.analysis.alignment import anchor_of, offset_ps
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis
from satview.answers.comparison import (
    ChangedRow,
    by_weight,
    change_table,
    compare_statistics,
    durations,
    has_durations,
)
from satview.answers.table import Table
from satview.base.column_arrays import borrowed
from satview.base.errors import Cancelled, UsageError
from satview.base.time import NS_PER_S, TimeWindow, format_exactly, parse_length
from satview.session.open_trace import OpenTrace
from satview.session.range_view import Extent, ExtentAnswer
from satview.session.tasks import IsCancelled, Task, WatchedAnswer
from satview.session.viewport import with_margin
from satview.store.trace import Trace


@dataclass(frozen=True, slots=True)
class TimeMap:
    """Converts times of a source trace to times of a target trace, from one aligned moment and both clock rates.

    Attributes:
        from_cycles: The aligned moment in cycles of the source trace.
        to_cycles: The same moment in cycles of the target trace.
        from_rate: Cycles per second of the source clock.
        to_rate: Cycles per second of the target clock.
    """

    from_cycles: int
    to_cycles: int
    from_rate: int
    to_rate: int

    def cycles(self, cycles: int) -> int:
        """Return a time of the source trace in cycles of the target trace, rounded to the nearest cycle."""
        return self.to_cycles + (2 * (cycles - self.from_cycles) * self.to_rate + self.from_rate) // (
            2 * self.from_rate
        )

    def window(self, window: TimeWindow) -> TimeWindow:
        """Return a time range of the source trace in cycles of the target trace; at least one cycle long."""
        start = self.cycles(window.start)
        return TimeWindow(start, max(start + 1, self.cycles(window.end)))

    @property
    def inverse(self) -> TimeMap:
        """The map in the opposite direction."""
        return TimeMap(self.to_cycles, self.from_cycles, self.to_rate, self.from_rate)


# A second trace beside the open one: aligned at a moment that both have, zoomed and moved together.


_MOST_S = 366 * 86_400


class Comparison(QObject):
    """Pairs the open trace with a second trace: aligned at one moment, their views can move together.

    Attributes:
        first: The open trace, taken as the state before a change.
        second: The second trace, taken as the state after the change; None = not open.
        aligned_by: Description of the moment at which the traces are aligned.
        is_linked: True if moving the view of one trace moves the other.

    Signals:
        changed: The second trace was opened, closed or aligned differently.
        failed: An alignment failed; the text says why.
    """

    changed = Signal()
    failed = Signal(str)

    def __init__(self, first: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.first = first
        self.second: OpenTrace | None = None
        self.aligned_by = ""
        self.is_linked = True
        self._map: TimeMap | None = None
        self._is_passing_on = False
        self._search = Task(self, self._on_found, self._on_failed)
        first.viewport.window_changed.connect(self._on_first)
        first.reloaded.connect(self._on_reloaded)

    @property
    def map(self) -> TimeMap:
        """Map from the time of the first trace to that of the second.

        Raises:
            UsageError: There is no second trace.
        """
        if self._map is None:
            raise UsageError("there is no second trace; File > Compare with another trace opens one")
        return self._map

    def begin(self, second: OpenTrace) -> None:
        """Set the second trace, and align the starts of both traces."""
        self.second = second
        second.viewport.window_changed.connect(self._on_second)
        self.align_starts()

    def end(self) -> None:
        """Remove the second trace."""
        self._search.cancel()
        if self.second is not None:
            self.second.viewport.window_changed.disconnect(self._on_second)
            self.second, self._map, self.aligned_by = None, None, ""
            self._set_limits()
            self.changed.emit()

    def close(self) -> None:
        """Stop the background task."""
        self._search.close()

    def align_starts(self) -> None:
        """Align the first events of both traces."""
        self.align(self.first.trace.window.start, self._second().trace.window.start, "starts")

    def align_cursors(self) -> None:
        """Align cursor A of both traces.

        Raises:
            UsageError: A trace has no cursor A.
        """
        cursors = self.first.selection.cursor_a, self._second().selection.cursor_a
        if cursors[0] is None or cursors[1] is None:
            ordinal = "first" if cursors[0] is None else "second"
            raise UsageError(f"the {ordinal} trace has no cursor A; press 1 over its lanes to set it")
        self.align(cursors[0], cursors[1], "cursors A")

    def align_selected(self) -> None:
        """Align the selected events of both traces.

        Raises:
            UsageError: A trace has no selected event.
        """
        moments = []
        for opened, ordinal in ((self.first, "first"), (self._second(), "second")):
            event = opened.selection.event
            if event is None:
                raise UsageError(f"no event of the {ordinal} trace is selected; click one in its lanes")
            moments.append(int(opened.trace.events.time_cycles[event]))
        self.align(moments[0], moments[1], "selected events")

    def align_by(self, text: str) -> None:
        """Align the first event of each trace that meets a condition, or shift the second trace by an offset.

        `text` is a filter expression, evaluated in the background; or the time from the first event of the first trace
        to that of the second, such as `12.5ms` or `-2s`.
        """
        second = self._second()
        try:
            offset_ns = parse_length(text)
        except UsageError:
            self._search.start(partial(_anchors, self.first, second, text))
            return
        rate = self.first.trace.clock.cycles_per_s
        start = self.first.trace.window.start + round(offset_ns * rate / NS_PER_S)
        self.align(start, second.trace.window.start, f"offset {text.strip()}")

    def align(self, first_cycles: int, second_cycles: int, by: str) -> None:
        """Align a moment of the first trace with one of the second; `by` describes the moment.

        Raises:
            UsageError: The traces would be more than a year apart, which is surely an input error.
        """
        second = self._second()
        old, new = self.first.trace, second.trace
        same = TimeMap(first_cycles, second_cycles, old.clock.cycles_per_s, new.clock.cycles_per_s)
        if abs(same.inverse.cycles(new.window.start) - old.window.start) > _MOST_S * old.clock.cycles_per_s:
            raise UsageError("the traces would be more than a year apart; check the offset")
        self._map = same
        self.aligned_by = by
        self._set_limits()
        self._pass_on(self.first, second, self._map)
        self.changed.emit()

    def set_linked(self, is_linked: bool) -> None:
        """Set whether moving the view of one trace moves the view of the other."""
        self.is_linked = is_linked
        if is_linked and self.second is not None:
            self._pass_on(self.first, self.second, self.map)
        self.changed.emit()

    @property
    def offset_text(self) -> str:
        """Time from the first event of the first trace to that of the second, with all digits."""
        second = self._second()
        start = self.map.inverse.cycles(second.trace.window.start)
        return format_exactly(start - self.first.trace.window.start, self.first.trace.clock)

    @property
    def offset_ps(self) -> int:
        """Time from the first event of the first trace to that of the second in picoseconds, the unit of axis files."""
        second, same = self._second(), self.map
        return offset_ps(self.first.trace, second.trace, same.from_cycles, same.to_cycles)

    def _second(self) -> OpenTrace:
        if self.second is None:
            raise UsageError("there is no second trace; File > Compare with another trace opens one")
        return self.second

    def _set_limits(self) -> None:
        """Let the viewports of both traces scroll over the whole time that the two traces cover together."""
        own = with_margin(self.first.trace.window)
        if self.second is None or self._map is None:
            self.first.viewport.grow(own, self.first.trace.window.end, is_at_end=False)
            return
        second_limits = with_margin(self.second.trace.window)
        mapped = self._map.inverse.window(second_limits)
        combined = TimeWindow(min(own.start, mapped.start), max(own.end, mapped.end))
        was_whole = self.first.viewport.is_whole
        self.first.viewport.grow(combined, self.first.trace.window.end, is_at_end=False)
        self.second.viewport.grow(self._map.window(combined), self.second.trace.window.end, is_at_end=False)
        if was_whole:
            self.first.viewport.move(combined)

    @Slot()
    def _on_first(self) -> None:
        if self.is_linked and self.second is not None and self._map is not None:
            self._pass_on(self.first, self.second, self._map)

    @Slot()
    def _on_second(self) -> None:
        if self.is_linked and self.second is not None and self._map is not None:
            self._pass_on(self.second, self.first, self._map.inverse)

    def _pass_on(self, moved: OpenTrace, other: OpenTrace, same: TimeMap) -> None:
        if not self._is_passing_on:
            self._is_passing_on = True
            other.viewport.move(same.window(moved.viewport.window))
            self._is_passing_on = False

    @Slot(object)
    def _on_reloaded(self, _reload: object) -> None:
        if self.second is not None:
            self._set_limits()

    @Slot(object)
    def _on_found(self, result: object) -> None:
        if isinstance(result, tuple) and self.second is not None:
            try:
                self.align(*result)
            except UsageError as error:
                self.failed.emit(str(error))

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, UsageError):
            raise error
        self.failed.emit(str(error))


def _anchors(old: OpenTrace, new: OpenTrace, condition: str, _is_cancelled: IsCancelled) -> tuple[int, int, str]:
    """Return the times in cycles of the first event in each trace that meets a condition, and `first CONDITION`."""
    return anchor_of(old.trace, condition).cycles, anchor_of(new.trace, condition).cycles, f"first {condition}"


# What changed between two traces: figures and histograms, computed in the background while a panel shows them.


_SETTLE_MS: Final = 200  # a moving view requests new figures at most this often
_WORSE: Final = 1.1  # times as long as before
_Side = tuple[Trace, Basis, TimeWindow]


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """The changes between two traces.

    Attributes:
        figures: All compared figures, largest change first.
        table: The figures as a table, in which a duration that grew by more than a tenth is marked as worse.
        windows: The compared range of the first trace, and of the second.
    """

    figures: tuple[ChangedRow, ...]
    table: Table
    windows: tuple[TimeWindow, TimeWindow]


@dataclass(frozen=True, slots=True, eq=False)
class Overlaid:
    """The durations in both traces from which one compared figure was computed, to be drawn as histograms.

    Attributes:
        change: The compared figure.
        sides: Durations in the first trace and in the second, nanoseconds, int64 (n,) each.
    """

    change: ChangedRow
    sides: tuple[NDArray[np.int64], NDArray[np.int64]]


class ChangesView(ExtentAnswer):
    """Computes the changes between both traces while watched, and again whenever a compared range changes.

    Attributes:
        changes: The last result; None = not yet computed.
        extent: The part of the traces that is compared.
    """

    def __init__(self, comparison: Comparison, parent: QObject | None = None) -> None:
        super().__init__(comparison.first, Extent.TRACE, _SETTLE_MS, parent)
        self._comparison = comparison
        self.changes: Changes | None = None
        comparison.changed.connect(self._on_comparison)

    def set_extent(self, extent: Extent) -> None:
        """Set the part of the traces that is compared, and compare again."""
        self._extent.select(extent)
        self._request()

    def sides(self) -> tuple[_Side, _Side] | None:
        """Return trace, basis of statistics and compared range, for each trace; None while there is no second trace."""
        old, new = self._comparison.first, self._comparison.second
        if new is None:
            return None
        if self.extent is Extent.TRACE or self._extent.needs_range:
            windows = old.trace.window, new.trace.window
        else:
            requested = old.selection.time_range if self.extent is Extent.RANGE else old.viewport.window
            assert requested is not None
            windows = (requested.within(old.trace.window),
                       self._comparison.map.window(requested).within(new.trace.window))  # fmt: skip
        return (old.trace, old.basis, windows[0]), (new.trace, new.basis, windows[1])

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


def _changes(old: _Side, new: _Side, is_cancelled: IsCancelled) -> Changes:
    cancelled = borrowed(is_cancelled)

    def check() -> None:
        if cancelled():
            raise Cancelled

    first, second = (Statistics(trace, window, None, basis) for trace, basis, window in (old, new))
    every_change, cannot_tell = compare_statistics(first, second, (), check)
    weighed = [change for change in every_change if change.weight or _is_there(change)]
    changes = tuple(by_weight(weighed))
    table = change_table(changes, _WORSE)
    table.cannot_tell = "\n".join(cannot_tell)
    return Changes(changes, table, (old[2], new[2]))


def _is_there(change: ChangedRow) -> bool:
    """Return whether a figure has a value in either trace."""
    return max(0, change.before) > 0 or max(0, change.after) > 0


class OverlaidView(WatchedAnswer):
    """Finds the durations from which the selected figure was computed, in both traces.

    Attributes:
        overlaid: The last result; None = not yet computed, or the figure has no durations.
    """

    def __init__(self, changes: ChangesView, parent: QObject | None = None) -> None:
        super().__init__(0, parent)
        self._changes = changes
        self._requested: ChangedRow | None = None
        self.overlaid: Overlaid | None = None
        self.watch(is_watched=True)

    def show_change(self, change: ChangedRow | None) -> None:
        """Request the durations from which a figure was computed; None clears the result."""
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


def _overlaid(old: _Side, new: _Side, change: ChangedRow, is_cancelled: IsCancelled) -> Overlaid:
    cancelled = borrowed(is_cancelled)
    sides = [durations(trace, basis, window, change, side, cancelled)
             for side, (trace, basis, window) in enumerate((old, new))]  # fmt: skip
    return Overlaid(change, (sides[0], sides[1]))
