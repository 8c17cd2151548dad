"""The status bar: time at the mouse, cursors and range with their lengths, what shows, verdicts, problems."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QStatusBar, QToolButton, QWidget

from satview.base.counts import counted
from satview.base.safe_text import tool_tip
from satview.base.time import TimeWindow
from satview.base.time_text import format_duration, format_moment
from satview.gui.theme import restyle
from satview.gui.widgets import CutLabel, PlainLabel
from satview.session.measures import length_text
from satview.session.open_trace import OpenTrace

_VERDICTS_AT_MOST: Final = 8  # that a tool tip lists


class StatusFields(QWidget):
    """Owns the fields that show while a trace is open; puts them into a status bar and takes them out again.

    Signals:
        problems_requested: The number of problems of the file was clicked.
        verdicts_requested: What is wrong in the system was clicked.
    """

    problems_requested = Signal()
    verdicts_requested = Signal()

    def __init__(self, opened: OpenTrace, bar: QStatusBar) -> None:
        super().__init__(bar)
        self.hide()
        self._opened = opened
        self._bar = bar
        # Empty ones stay: the bar hides its fields behind a message, and one that is shown then is painted over that.
        self.mouse, self.window_field = PlainLabel(bar), PlainLabel(bar)
        self.selected, self.cursors, self.time_range = (CutLabel(bar) for _ in range(3))
        self.problems = QToolButton(bar)
        self.problems.clicked.connect(self.problems_requested)
        self.verdicts = QToolButton(bar)
        self.verdicts.setObjectName("verdicts")
        self.verdicts.clicked.connect(self.verdicts_requested)
        for label in (self.mouse, self.selected, self.cursors, self.time_range):
            bar.addWidget(label)
        for widget in (self.window_field, self.verdicts, self.problems):
            bar.addPermanentWidget(widget)
        opened.selection.mouse_changed.connect(self._show_mouse)
        opened.selection.changed.connect(self._show_selected)
        opened.selection.cursors_changed.connect(self._show_cursors)
        opened.selection.range_changed.connect(self._show_range)
        opened.viewport.window_changed.connect(self._show_window)
        opened.filters.view_changed.connect(self._show_window)
        opened.lanes.changed.connect(self._show_window)
        opened.reloaded.connect(self._show_problems)
        opened.reloaded.connect(self._show_range)
        opened.verdicts.changed.connect(self._show_verdicts)
        for show in (
            self._show_mouse,
            self._show_selected,
            self._show_cursors,
            self._show_range,
            self._show_window,
            self._show_problems,
            self._show_verdicts,
        ):
            show()

    def take_out(self) -> None:
        """Leave the status bar."""
        labels = (self.mouse, self.selected, self.cursors, self.time_range, self.window_field)
        for widget in (*labels, self.verdicts, self.problems):
            self._bar.removeWidget(widget)
            widget.deleteLater()
        self.deleteLater()

    @Slot()
    def _show_mouse(self) -> None:
        cycles = self._opened.selection.mouse_cycles
        self.mouse.setText(self._time(cycles) if cycles is not None else "\N{EM DASH}")

    @Slot()
    def _show_selected(self) -> None:
        selection, trace = self._opened.selection, self._opened.trace
        parts = []
        if selection.event is not None:
            parts.append(f"#{selection.event + 1:,} {trace.spec(selection.event).name}")
        if selection.span is not None and selection.span.value:
            length = selection.span.end_cycles - selection.span.start_cycles
            parts.append(f"{self._opened.timeline.label(selection.span)} {self._length(length)}")
        self.selected.setText(" in ".join(parts))

    @Slot()
    def _show_cursors(self) -> None:
        first, second = self._opened.selection.cursor_a, self._opened.selection.cursor_b
        parts = [
            f"{letter} {self._time(cycles)}" for letter, cycles in (("A", first), ("B", second)) if cycles is not None
        ]
        if first is not None and second is not None:
            length = length_text(second - first, self._opened.trace.clock)
            parts.insert(0, f"\N{GREEK CAPITAL LETTER DELTA} {length}")  # first: what is last may be cut
        self.cursors.setText("   ".join(parts))

    @Slot()
    def _show_range(self) -> None:
        time_range, text = self._opened.selection.time_range, ""
        if time_range is not None:
            rows = self._opened.trace.rows_between(time_range)
            text = (
                f"Range {length_text(time_range.length, self._opened.trace.clock)}"
                f"   {rows.stop - rows.start:,} events"
                f"   {self._time(time_range.start)} \N{EN DASH} {self._time(time_range.end)}"
            )
        self.time_range.setText(text)

    @Slot()
    def _show_window(self) -> None:
        window: TimeWindow = self._opened.viewport.window
        filters = self._opened.filters
        hidden = self._opened.lanes.hidden_count
        text = f"{counted(hidden, 'lane')} hidden   " if hidden else ""
        text += f"Showing {self._length(window.length)}"
        if filters.is_active:
            text += f"   filter: {filters.row_count:,} of {len(self._opened.trace.events):,} events"
        self.window_field.setText(text)

    @Slot()
    def _show_problems(self) -> None:
        counts = self._opened.trace.problems.counts()
        kinds = len(counts)
        of = f"{counted(kinds, 'kind')} of problems" if kinds else "no problems"
        self.problems.setText(f"File: {of}")
        lines = [f"{slug}: {count:,}" for slug, count in counts.items()] or ["All of the file was understood"]
        self.problems.setToolTip(tool_tip("\n".join(lines)))

    @Slot()
    def _show_verdicts(self) -> None:
        search, state = self._opened.verdicts, ""
        text, hint = "Check for verdicts", "Click to look for deadlocks, inversions, threads that wait long"
        if search.is_busy:
            text, hint = (
                "Checking\N{HORIZONTAL ELLIPSIS}",
                "Looking for deadlocks, inversions, threads that wait long",
            )
        elif search.error:
            text, hint = "Verdicts: not known", search.error
        elif search.found is not None:
            found = search.found
            text = found.summary
            lines = [f"{verdict.severity}: {verdict.kind}" for verdict in found.verdicts[:_VERDICTS_AT_MOST]]
            lines += [f"and {left} more"] if (left := len(found.verdicts) - len(lines)) > 0 else []
            lines += ["Undecided: " + ", ".join(found.undecided["kind"])] if len(found.undecided) else []
            hint = "\n".join(lines) or "No deadlock, no inversion, no thread that waits too long was found"
            state = str(found.verdicts[0].severity) if found.verdicts else ""
        self.verdicts.setText(text)
        self.verdicts.setToolTip(tool_tip(hint))
        restyle(self.verdicts, "state", state)

    def _time(self, cycles: int) -> str:
        return format_moment(cycles, self._opened.trace.clock)

    def _length(self, cycles: int) -> str:
        return format_duration(self._opened.trace.clock.duration_ns(cycles))
