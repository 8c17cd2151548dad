"""The panel Critical path: its pieces in time order, and the time spent per thread."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, Qt, Slot
from PySide6.QtWidgets import QHBoxLayout, QHeaderView, QSizePolicy, QSplitter, QTableView, QWidget

from satview.analysis.reasons.critical_path import count_of_pieces
from satview.answers.table import Table
from satview.base.safe_text import visible_line
from satview.base.time_text import format_duration, format_moment
from satview.gui.answer_table import AnswerModel, AnswerPanel
from satview.gui.panel import PanelContext, set_up_rows
from satview.gui.theme import Theme
from satview.gui.widgets import PlainLabel, line_up

_HOW: Final = (
    "Click an interval of a thread, or drag over a range in its lane, then press Shift+Y\n"
    "to see the chain of work that the thread depended on."
)
_TOTAL_WIDTHS_PX: Final = (120, 88, 76, 74, 80)
_LEAST_NAME_PX, _WIDEST_NAME_PX = 90, 420


class PathPanel(AnswerPanel):
    """The last requested critical path; repeated pieces are folded.

    Attributes:
        totals, sums: Model and table of the time per thread.
        statement: The thread and the length of the path.
    """

    shown_names = ("thread", "start", "length", "does")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, "Pieces of the critical path", parent)
        self.setMinimumSize(120, 64)
        self.totals, self.sums = AnswerModel(context.theme, self), QTableView(self)
        set_up_rows(self.sums, self.totals, "Critical path by thread", context.settings.number("events/row_height_px"))
        for table in (self.table, self.sums):
            table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
            table.horizontalHeader().setStretchLastSection(table is self.table)
        self.sums.clicked.connect(self._on_sum)
        self.sums.activated.connect(self._on_sum)
        self._set_up()
        self._opened.path.changed.connect(self._on_path)
        self._on_path()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        super().set_theme(theme)
        self.totals.set_theme(theme)
        self.sums.viewport().update()

    def _rows_as_text(self) -> str:
        """Return the times per thread if their table has the focus; else the selected pieces of the path, or all."""
        if self.sums.hasFocus() and self.totals.answer is not None:
            return self.totals.answer.lines(range(self.totals.rowCount()))
        if len(self.table.selectionModel().selectedRows()) > 1 or self.exported is None:
            return super()._rows_as_text()
        return self.exported.lines(range(len(self.exported)))

    def copied_text(self) -> str:
        """Return rows of the table that has the focus, as text; "" if none has."""
        return self._rows_as_text() if self.table.hasFocus() or self.sums.hasFocus() else ""

    @property
    def exported(self) -> Table | None:
        """All pieces of the path, folded ones too, for the button Export."""
        answer = self._opened.path.answer
        return answer.pieces if answer is not None else None

    def _set_up(self) -> None:
        self.statement = PlainLabel(self)
        self.statement.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        head = line_up(QHBoxLayout(), (self.statement, 1), margins=(10, 4, 8, 4))
        self.add_buttons(head, self.statement)
        split = QSplitter(Qt.Orientation.Vertical, self)
        split.addWidget(self.stack)
        split.addWidget(self.sums)
        split.setStretchFactor(0, 1)
        split.setStretchFactor(1, 0)
        split.setSizes([200, 110])
        self._lay_out(head, split)

    @Slot()
    def _on_path(self) -> None:
        self._order = "", False
        search, trace = self._opened.path, self._opened.trace
        answer = search.answer
        self.sums.setVisible(answer is not None)
        if answer is None:
            self.statement.setText("")
            self.show_page(search.error or ("Finding the path\N{HORIZONTAL ELLIPSIS}" if search.is_busy else _HOW))
            return
        window, clock = answer.path.window, trace.clock
        self.statement.setText(visible_line(
            f"{trace.thread_name(answer.path.thread)}, {format_moment(window.start, clock)} to "
            f"{format_moment(window.end, clock)}: {format_duration(clock.duration_ns(window.length))} in "
            f"{count_of_pieces(len(answer.path))}"
        ))  # fmt: skip
        self._fill()
        self.totals.show(answer.totals, "", is_descending=False)
        for section, width_px in enumerate(_TOTAL_WIDTHS_PX):
            self.sums.setColumnWidth(section, width_px)
        self.sums.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.show_page("")

    def _fill(self) -> None:
        if (answer := self._opened.path.answer) is not None:
            self._show_in_order(answer.folded)
            self.table.resizeColumnToContents(0)
            self.table.setColumnWidth(0, min(max(self.table.columnWidth(0), _LEAST_NAME_PX), _WIDEST_NAME_PX))

    def _show(self, row: int) -> None:
        """Go to the piece of the path in a row, on the lane of its thread."""
        answer, opened = self.model.answer, self._opened
        if answer is None or not 0 <= row < self.model.rowCount():
            return
        lane = opened.lane_of_thread(int(answer["thread"][row]))
        if lane is not None:
            start = int(answer["start_cycles"][row])
            opened.lanes.reveal(lane)
            opened.viewport.reveal(start)
            opened.select_at(lane, start)

    @Slot(QModelIndex)
    def _on_sum(self, index: QModelIndex) -> None:
        """Go to the thread in a row of the times per thread."""
        answer, opened = self.totals.answer, self._opened
        if answer is None or not index.isValid():
            return
        lane = opened.lane_of_thread(int(answer["thread"][index.row()]))
        if lane is not None:
            opened.lanes.reveal(lane)
            self._navigation.show_lane(lane)
