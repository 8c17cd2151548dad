"""The line under the list of events with the time between the selected rows."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from satview.base.counts import counted
from satview.base.time import TimeWindow
from satview.gui.event_list.model import EventListModel
from satview.gui.plain_label import CutLabel
from satview.gui.row_table import selected_ranges
from satview.session.measures import frequency_text, length_text
from satview.session.open_trace import OpenTrace


class RowDelta(QWidget):
    """Shows while two rows or more are selected.

    Args:
        opened: The trace.
        model: The list.
        selected: Its selected rows.
    """

    def __init__(
        self, opened: OpenTrace, model: EventListModel, selected: QItemSelectionModel, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._opened, self._model, self._selected = opened, model, selected
        self._ends = (0, 0)
        self.text = CutLabel(self)
        self.take = QPushButton("Make it the range", self)
        self.take.setProperty("flat", "true")
        self.take.clicked.connect(self._select_range)
        line = QHBoxLayout(self)
        line.setContentsMargins(8, 1, 4, 1)
        line.addWidget(self.text, 1)
        line.addWidget(self.take)
        selected.selectionChanged.connect(self._show)
        model.modelReset.connect(self._show)
        opened.reloaded.connect(self._show)
        self.hide()

    @Slot()
    def _show(self) -> None:
        ranges = selected_ranges(self._selected)
        count = sum(len(rows) for rows in ranges)
        self.setVisible(count > 1)
        if count < 2:
            return
        trace = self._opened.trace
        first, last = self._model.event_at(ranges[0].start), self._model.event_at(ranges[-1].stop - 1)
        self._ends = start, end = int(trace.events.time_cycles[first]), int(trace.events.time_cycles[last])
        frequency = frequency_text(end - start, trace.clock)
        parts = [
            f"#{first + 1:,} {trace.spec(first).name} to #{last + 1:,} {trace.spec(last).name}:  "
            f"{length_text(end - start, trace.clock)}",
            *([frequency] if frequency else []),
            f"{counted(last - first, 'event')} later",
            *([f"{count:,} rows selected"] if count > 2 else []),
        ]
        self.text.setText(" \N{MIDDLE DOT} ".join(parts))
        self.take.setEnabled(end > start)

    @Slot()
    def _select_range(self) -> None:
        self._opened.selection.set_range(TimeWindow(*self._ends))
