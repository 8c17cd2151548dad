"""File > Save events: writes a range or the filtered events as a smaller trace, a listing or a table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from satview.base.new_file import refuse_ending
from satview.base.safe_text import counted
from satview.base.time import TimeWindow
from satview.export.kev import write_subset
from satview.export.listing.printer import left_out_of_listing, write_event_list, write_listing
from satview.gui import dialogs
from satview.gui.widgets import Dialog, MessageLine, PlainLabel, guard_from_wheel, line_up
from satview.session.open_trace import OpenTrace
from satview.session.range_view import length_text
from satview.session.tasks import IsCancelled, Report, Task
from satview.store.trace import Trace

# Writing events; called in the background.


KINDS = {
    "kev": ("Kernel event trace", "Kernel event traces (*.kev)"),
    "txt": ("Listing, as traceprinter prints it", "Listings (*.txt)"),
    "csv": ("List of events, for spreadsheets", "CSV (*.csv)"),
}


def write_events(
    trace: Trace,
    path: Path,
    kind: str,
    rows: NDArray[np.uint32] | None,
    window: TimeWindow | None,
    is_cancelled: IsCancelled,
    report: Report,
) -> str:
    """Write selected events of a trace, all of them for None; return a summary.

    Args:
        trace: The trace.
        path: The new file, which appears once it is complete.
        kind: Key of `KINDS`.
        rows: uint32, ascending event rows.
        window: Only events in this window.
        is_cancelled: Polled regularly; then `Cancelled` is raised.
        report: Called with the progress, 0 to 1.

    Raises:
        UsageError: The trace cannot be written as this kind, or the file cannot be written.
    """
    mask = event_mask(trace, rows, window)
    if kind == "kev":
        refuse_ending(path, ".kev")
        written = write_subset(trace, path, mask, window, progress=report, cancelled=is_cancelled)
        more = written.context + written.opening
        with_more = f", and {more:,} more to keep threads, names and states correct" if more else ""
        return "; ".join((f"{path.name}: {counted(written.selected, 'event')}{with_more}", *written.left_out))
    write = write_listing if kind == "txt" else write_event_list
    return f"{path.name}: {_counted(trace, mask, write(trace, path, mask, report, is_cancelled))}"


def write_list(trace: Trace, path: Path, rows: NDArray[np.uint32], is_cancelled: IsCancelled, report: Report) -> str:
    """Write the events in `rows` as CSV; return a summary. Raises `UsageError` or `Cancelled` like `write_events`."""
    mask = event_mask(trace, rows, None)
    return f"Wrote {_counted(trace, mask, write_event_list(trace, path, mask, report, is_cancelled))}"


def _counted(trace: Trace, mask: NDArray[np.bool_], written: int) -> str:
    """Return text on how many events were written, and how many of the events in `mask` were left out."""
    return "; ".join(filter(None, (counted(written, "event"), left_out_of_listing(trace, mask, written))))


def event_mask(trace: Trace, rows: NDArray[np.uint32] | None, window: TimeWindow | None) -> NDArray[np.bool_]:
    """Return which events are in `rows` (None = all) and in a window (None = all), bool (events,)."""
    part = trace.rows_between(window) if window is not None else slice(0, len(trace.events))
    mask = np.zeros(len(trace.events), np.bool_)
    if rows is None:
        mask[part] = True
    else:
        begin, stop = np.searchsorted(rows, (part.start, part.stop))
        mask[rows[begin:stop]] = True
    return mask


_WIDTH_PX: Final = 600
_NOTES = {
    "kev": "Opens in satview and in the vendor's tools. Times stay the same; the names, initial states and other "
    "context that the events need are included.",
    "txt": "In the layout of the release's own traceprinter, in the order of the file.",
    "csv": "In the order of the list, with times in nanoseconds and in cycles, process and thread names, arguments.",
}


class SaveEventsDialog(Dialog):
    """Dialog that asks for events and a file format, writes the events in the background, and reports the result."""

    def __init__(self, opened: OpenTrace, parent: QWidget) -> None:
        super().__init__("Save events", parent)
        self._opened = opened
        self._job = Task(self)
        self._make_editors()
        self.message = MessageLine(self, wraps=True)
        self.progress = QProgressBar(self)
        self.progress.setRange(0, 100)
        self.progress.hide()
        self.save_button = QPushButton("&Save\N{HORIZONTAL ELLIPSIS}", self, default=True)
        self.stop_button = QPushButton("Stop", self)
        self.stop_button.hide()
        self.close_button = QPushButton("Close", self)
        self._lay_out()
        self._connect()
        guard_from_wheel(self)
        self._show()

    def _make_editors(self) -> None:
        selection, filters = self._opened.selection, self._opened.filters
        self.kind = QComboBox(self)
        has_slots = self._opened.trace.has_slots
        for key, (title, _) in KINDS.items():
            if key == "csv" or has_slots:  # formats without slots can be saved as CSV only
                self.kind.addItem(f"{title} (.{key})", key)
        self.in_range = QCheckBox("Only those in the selected &range", self)
        if selection.time_range is not None:
            length = length_text(selection.time_range.length, self._opened.trace.clock)
            self.in_range.setText(f"Only those in the selected &range of {length}")
        self.in_range.setEnabled(selection.time_range is not None)
        self.in_range.setChecked(selection.time_range is not None)
        self.filtered = QCheckBox("Only those that the &filter shows", self)
        self.filtered.setEnabled(filters.is_active)
        self.filtered.setChecked(filters.is_active)
        self.count, self.note = PlainLabel(self), PlainLabel(self, role="dim")
        self.note.setWordWrap(True)

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.setVerticalSpacing(8)
        form.setHorizontalSpacing(20)
        form.addRow("Save as", self.kind)
        form.addRow("", self.note)
        form.addRow("Events", self.in_range)
        form.addRow("", self.filtered)
        form.addRow("", self.count)
        foot = line_up(QHBoxLayout(), (self.progress, 1), None, self.save_button, self.stop_button, self.close_button)
        line_up(QVBoxLayout(self), form, self.message, foot, margins=(20, 18, 20, 16), spacing=12)
        for label in (self.note, self.message):  # two lines each, so that changing texts move nothing
            label.setFixedHeight(2 * self.fontMetrics().lineSpacing() + 2)
            label.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.resize(_WIDTH_PX, self.sizeHint().height())

    def _connect(self) -> None:
        self.kind.currentIndexChanged.connect(self._show)
        self.in_range.toggled.connect(self._show)
        self.filtered.toggled.connect(self._show)
        self.save_button.clicked.connect(self._save)
        self.stop_button.clicked.connect(self._stop)
        self.close_button.clicked.connect(self.close)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(self._on_failed)
        self._job.progress.connect(self._on_progress)

    @property
    def _window(self) -> TimeWindow | None:
        return self._opened.selection.time_range if self.in_range.isChecked() else None

    @Slot()
    def _show(self) -> None:
        rows = self._opened.filters.rows if self.filtered.isChecked() else None
        selected, trace = int(event_mask(self._opened.trace, rows, self._window).sum()), self._opened.trace
        self.count.setText(f"{selected:,} of {counted(len(trace.events), 'event')}")
        self.note.setText(_NOTES[self.kind.currentData()])
        self.save_button.setEnabled(selected > 0 and not self._job.is_busy)

    @Slot()
    def _save(self) -> None:
        kind, trace = self.kind.currentData(), self._opened.trace
        part = "-part" if self.in_range.isChecked() or self.filtered.isChecked() or kind == "kev" else ""
        path = dialogs.ask_save(self, Path(f"{trace.path.stem}{part}.{kind}"), KINDS[kind][1])
        if path is None:
            return
        rows = self._opened.filters.rows if self.filtered.isChecked() else None
        self._job.start_reporting(partial(write_events, trace, path, kind, rows, self._window))
        self.message.say("", "dim")
        self._set_busy(True)

    @Slot()
    def _stop(self) -> None:
        self._job.cancel()
        self.message.say("Stopped; nothing was written.", "dim")
        self._set_busy(False)

    def _set_busy(self, is_busy: bool) -> None:
        for widget in (self.progress, self.stop_button):
            widget.setVisible(is_busy)
        self.progress.setValue(0)
        self._show()

    @Slot(float)
    def _on_progress(self, share: float) -> None:
        self.progress.setValue(round(100 * share))

    @Slot(object)
    def _on_done(self, summary: object) -> None:
        if isinstance(summary, str):
            self.message.say(f"Saved {summary}.", "dim")
        self._set_busy(False)

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self.message.say(f"Not saved: {error}.", "error")
        self._set_busy(False)

    def done(self, result: int) -> None:
        """Cancel the background task; also called for Escape and the window's close button."""
        self._job.close()
        super().done(result)
