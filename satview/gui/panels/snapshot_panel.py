"""The panel Snapshot: the state of every thread at the selected time, grouped by state."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
from PySide6.QtCore import QModelIndex, QObject, Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from satview.analysis.times.basis import Basis
from satview.answers.snapshot import snapshot
from satview.answers.table import Table
from satview.base.time import format_moment
from satview.gui.answer_table import AnswerPanel
from satview.gui.panel import PanelContext
from satview.gui.widgets import ElidedLabel, line_up
from satview.session.open_trace import OpenTrace
from satview.session.tasks import IsCancelled, WatchedAnswer
from satview.store.trace import Trace

_SETTLE_MS = 60  # delay after the last change, for keys that are held


class SnapshotView(WatchedAnswer):
    """Computes the states of all threads at the selected time or at cursor A, whichever was set last, while visible.

    Attributes:
        answer: The last result, states with their threads below; None = none yet.
        answer_cycles: Time of this result.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(_SETTLE_MS, parent)
        self._opened = opened
        self.answer: Table | None = None
        self.answer_cycles = -1
        self._cycles = self._selected()
        if self._cycles is None:
            self._cycles = opened.selection.cursor_a
        self._is_held = False
        opened.selection.changed.connect(self._on_selection)
        opened.selection.cursors_changed.connect(self._on_cursors)
        opened.reloaded.connect(self._on_reloaded)

    @property
    def at_cycles(self) -> int | None:
        """Time in cycles for which a snapshot is requested; None = nothing is selected, and cursor A is not set."""
        return self._cycles

    def hold(self, is_held: bool) -> None:
        """Set whether changes of the selection are ignored, as while the panel itself changes the selection."""
        self._is_held = is_held

    def _selected(self) -> int | None:
        selection, trace = self._opened.selection, self._opened.trace
        if selection.point_cycles is not None:
            return selection.point_cycles
        if selection.is_interval and selection.span is not None:  # the middle, to be inside the interval
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
            self._settle.start()  # keep the result until then
        else:
            self._job.cancel()
            self.answer = None  # otherwise it would keep the previous trace in memory

    @Slot()
    def _request(self) -> None:
        if not self._is_watched or self._cycles is None:
            return
        trace, moment_cycles = self._opened.trace, self._cycles
        is_there = self.answer is not None and self.answer_cycles == moment_cycles and self.answer.trace is trace
        if is_there or not trace.window.contains(moment_cycles):
            self.changed.emit()
        else:
            self._start(partial(_find, trace, moment_cycles, self._opened.basis))

    def _take(self, result: object) -> None:
        if isinstance(result, tuple):
            self.answer_cycles, self.answer = result


def _find(trace: Trace, moment_cycles: int, basis: Basis, is_cancelled: IsCancelled) -> object:
    """Return a time and the states of all threads at that time, on a pool thread."""
    return moment_cycles, snapshot(trace, moment_cycles, basis, is_cancelled, by_state=True)


_OPEN_UP_TO: Final = 12  # states with at most so many threads are unfolded initially


class SnapshotPanel(AnswerPanel):
    """Threads by state at the time of the selection or cursor A. It is computed only while the panel is visible."""

    keeps_unfolded = False  # by state, also between two moments
    shown_names = ("state", "thread", "count", "cpu", "waits_for", "holder", "length")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, "Snapshot", parent)
        self.view = self.watched = SnapshotView(self._opened, self)
        self.moment = ElidedLabel("", self, role="dim")
        head = line_up(QHBoxLayout(), (self.moment, 1), margins=(8, 3, 8, 3))
        self.add_buttons(head, self.moment)
        self._lay_out(head, self.stack)
        self._shown: Table | None = None
        self._is_open: dict[str, bool] = {}  # by state, as the user left it
        self.view.changed.connect(self._on_view)
        self._on_view()

    @property
    def exported(self) -> Table | None:
        """All threads of the snapshot, folded ones too, for the button Export."""
        table = self.view.answer
        return table and table.at(np.concatenate([table.children(row) for row in range(len(table))]))

    def _all_as_text(self) -> str:
        return self.exported.lines(range(len(self.exported))) if self.exported is not None else ""

    @Slot()
    def _on_view(self) -> None:
        """Show the snapshot, or why there is none."""
        view = self.view
        reason = view.error
        if not reason and view.answer is None:
            reason = ("Select an event or interval, or set cursor A (1), to see the state of every thread at that time."
                      if view.at_cycles is None else "Examining all threads\N{HORIZONTAL ELLIPSIS}")  # fmt: skip
        self.show_page(reason)
        if reason:
            self.moment.setText("")
        if view.answer is None:
            return
        count = sum(view.answer.held(row, "count") for row in range(len(view.answer)))
        waits = " \N{MIDDLE DOT} updating\N{HORIZONTAL ELLIPSIS}" if view.is_pending else ""
        moment = format_moment(view.answer_cycles, view.answer.trace.clock)
        self.moment.setText(f"At {moment}: {count:,} threads{waits}")
        if self._shown is not view.answer:
            self._fill()

    def _fill(self) -> None:
        """Show the states, with the same states unfolded as before."""
        table = self.view.answer
        if table is None:
            return
        if (before := self.model.answer) is not None:
            self._is_open |= {before.text(row, "state"): self.model.is_open(row) for row in range(len(before))
                              if not self.model.depth_at(row)}  # fmt: skip
        bar = self.table.verticalScrollBar()
        position, self._shown = bar.value(), table
        self._show_in_order(table)
        rows = self.model.answer
        for row in reversed(range(len(table))):
            if rows is not None and self._is_open.get(rows.text(row, "state"), rows.held(row, "count") <= _OPEN_UP_TO):
                self.model.unfold(row)
        self._fit_columns()
        bar.setValue(position)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        """Go to the thread of the clicked row; if the cell with the holder was clicked, to the holder."""
        answer = self.model.answer
        if answer is not None and self.model.columns[index.column()].name == "holder":
            self._show_thread(answer.held(index.row(), "holder"))
        else:
            super()._on_clicked(index)

    def _show(self, row: int) -> None:
        """Select the event that began the state of a row's thread, or else the thread's interval at that time."""
        answer = self.model.answer
        if answer is None or not 0 <= row < len(answer):
            return
        if answer.event(row) < 0 or answer.trace is not self._opened.trace:
            self._show_thread(answer.held(row, "thread"))
            return
        self.view.hold(True)
        self._navigation.show_event(answer.event(row))
        self.view.hold(False)

    def _show_thread(self, thread: int) -> None:
        """Select the interval of a thread at the time of the snapshot, unless the trace was refreshed since."""
        answer, lane = self.model.answer, self._opened.lane_of_thread(thread) if thread > 0 else None
        if lane is None or answer is None or answer.trace is not self._opened.trace:
            return
        self.view.hold(True)
        self._opened.lanes.reveal(lane)
        self._opened.select_at(lane, self.view.answer_cycles)
        self.view.hold(False)
