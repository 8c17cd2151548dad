"""The snapshot that a window shows: what every thread does where the user is, worked out in the background."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Slot

from satview.analysis.times.basis import Basis
from satview.answers.snapshot import snapshot
from satview.answers.table import Table
from satview.session.open_trace import OpenTrace
from satview.session.questions import WatchedAnswer
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

_SETTLE_MS = 60  # a key that is held moves the selection faster than anybody reads


class SnapshotView(WatchedAnswer):
    """Follows the selected event or interval, and cursor A, whichever was set last; only while somebody looks.

    Attributes:
        found: What was worked out last, states with their threads below them; None = nothing yet.
        found_cycles: The moment that it is of.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(_SETTLE_MS, parent)
        self._opened = opened
        self.found: Table | None = None
        self.found_cycles = -1
        self._cycles = self._selected()
        if self._cycles is None:
            self._cycles = opened.selection.cursor_a
        self._is_held = False
        opened.selection.changed.connect(self._on_selection)
        opened.selection.cursors_changed.connect(self._on_cursors)
        opened.reloaded.connect(self._on_reloaded)

    @property
    def at_cycles(self) -> int | None:
        """The moment that is requested; None = nothing is selected."""
        return self._cycles

    def hold(self, is_held: bool) -> None:
        """Keep the moment whatever is selected, while the snapshot itself leads to other positions; or follow again."""
        self._is_held = is_held

    def _selected(self) -> int | None:
        selection, trace = self._opened.selection, self._opened.trace
        if selection.point_cycles is not None:
            return selection.point_cycles
        if selection.is_interval and selection.span is not None:  # what lasts, not what begins with it
            return (selection.span.start_cycles + selection.span.end_cycles) // 2
        if selection.event is not None:
            return int(trace.events.time_cycles[selection.event])
        return selection.span.start_cycles if selection.span is not None else None

    @Slot()
    def _on_selection(self) -> None:
        self._move_to(self._selected())

    @Slot()
    def _on_cursors(self) -> None:
        self._move_to(self._opened.selection.cursor_a)

    def _move_to(self, cycles: int | None) -> None:
        if cycles is None or cycles == self._cycles or self._is_held:
            return
        self._cycles = cycles
        if self._is_watched:
            self._job.cancel()
            self._settle.start()
            self.changed.emit()

    @Slot(object)
    def _on_reloaded(self, _reload: object) -> None:
        if self._is_watched and self._cycles is not None:
            self._settle.start()  # what is shown holds until then
        else:
            self._job.cancel()
            self.found = None  # or else the trace before it grew would stay in memory

    @Slot()
    def _request(self) -> None:
        if not self._is_watched or self._cycles is None:
            return
        trace, moment_cycles = self._opened.trace, self._cycles
        is_there = self.found is not None and self.found_cycles == moment_cycles and self.found.trace is trace
        if is_there or not trace.window.contains(moment_cycles):
            self.changed.emit()
        else:
            self._start(partial(_find, trace, moment_cycles, self._opened.basis))

    def _take(self, result: object) -> None:
        if isinstance(result, tuple):
            self.found_cycles, self.found = result


def _find(trace: Trace, moment_cycles: int, basis: Basis, is_cancelled: IsCancelled, _report: Report) -> object:
    """Run in the task; holds the trace, no widget."""
    return moment_cycles, snapshot(trace, moment_cycles, basis, is_cancelled, by_state=True)
