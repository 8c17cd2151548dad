"""The critical path as tables: its pieces in time order, and what it spends on which thread."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QSizePolicy,
    QSplitter,
    QStackedWidget,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.reasons.critical_path import count_of_pieces
from satview.base.safe_text import visible_line
from satview.base.time_text import format_duration, format_moment
from satview.gui.panel import Panel, PanelContext
from satview.gui.plain_label import Notice, PlainLabel
from satview.gui.row_table import add_copy_and_export, set_up_rows
from satview.gui.sheet_export import SheetExport
from satview.gui.statistics.model import SheetModel
from satview.gui.statistics.share_bar import ShareBar
from satview.gui.theme import Theme
from satview.session.panels.statistics_task import sheet_text

_HOW: Final = (
    "Click an interval of a thread, or drag over a range of its lane, and press Shift+Y:\n"
    "what had to happen for the thread to get to the end of it."
)
_BAR_PX: Final = 6  # below the text of a row with a bar
_PIECE_WIDTHS_PX: Final = (120, 80)  # before the threads; what they do takes the rest
_TOTAL_WIDTHS_PX: Final = (116, 76, 80, 66)
_THREAD: Final = 2  # column of the pieces
_NAME_WIDTHS_PX: Final = (90, 420)


class PathPanel(Panel):
    """The critical path that was requested last.

    Attributes:
        pieces, totals: Models of the two tables.
        table, sums: The tables.
    """

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.setMinimumSize(120, 64)
        height_px = context.settings.number("events/row_height_px")
        self.pieces, self.totals = SheetModel(context.theme, self), SheetModel(context.theme, self)
        self.table, self.sums = QTableView(self), QTableView(self)
        set_up_rows(self.table, self.pieces, "Pieces of the critical path", height_px)
        set_up_rows(self.sums, self.totals, "Critical path by thread", height_px + _BAR_PX)
        self._bars = ShareBar(context.theme, self)
        self.sums.setItemDelegate(self._bars)
        for table in (self.table, self.sums):
            table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
            table.horizontalHeader().setStretchLastSection(table is self.table)
            table.clicked.connect(self._on_row)
            table.activated.connect(self._on_row)
        self._lay_out()
        self._csv = SheetExport(self, self.statement)
        self._opened.path.changed.connect(self._on_path)
        self._on_path()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        super().set_theme(theme)
        for model in (self.pieces, self.totals):
            model.set_theme(theme)
        self._bars.theme = theme
        for table in (self.table, self.sums):
            table.viewport().update()

    def close_down(self) -> None:
        """Cancel the background task."""
        self._csv.close()

    def copied_text(self) -> str:
        """Return the table that has the focus as tab-separated text."""
        for table, model in ((self.table, self.pieces), (self.sums, self.totals)):
            if table.hasFocus() and model.sheet is not None:
                return sheet_text(model.sheet, model.order.tolist())
        return ""

    @Slot()
    def copy(self) -> None:
        """Copy all pieces."""
        if self.pieces.sheet is not None:
            QGuiApplication.clipboard().setText(sheet_text(self.pieces.sheet, self.pieces.order.tolist()))

    @Slot()
    def ask_export(self) -> None:
        """Let the user name a file, and write the pieces to it."""
        self._csv.save_as(self.pieces.sheet, self.pieces.order, self._opened.trace.path)

    def _lay_out(self) -> None:
        self.statement = PlainLabel(self)
        self.statement.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        head = QHBoxLayout()
        head.setContentsMargins(10, 4, 8, 4)
        head.addWidget(self.statement, 1)
        self._buttons = add_copy_and_export(head, self, self.copy, self.ask_export)
        split = QSplitter(Qt.Orientation.Horizontal, self)
        split.addWidget(self.table)
        split.addWidget(self.sums)
        split.setStretchFactor(0, 1)
        split.setStretchFactor(1, 0)
        split.setSizes([680, 418])
        self.message = Notice("", self)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(split)
        self._stack.addWidget(self.message)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self._stack, 1)

    @Slot()
    def _on_path(self) -> None:
        search, trace = self._opened.path, self._opened.trace
        found = search.found
        for button in self._buttons:
            button.setEnabled(found is not None)
        if found is None:
            self.statement.setText("")
            self.message.setText(search.error or (
                "Looking for the path\N{HORIZONTAL ELLIPSIS}" if search.is_busy else _HOW))  # fmt: skip
            self._stack.setCurrentWidget(self.message)
            return
        window, clock = found.path.window, trace.clock
        self.statement.setText(visible_line(
            f"{trace.thread_name(found.path.thread)}, {format_moment(window.start, clock)} to "
            f"{format_moment(window.end, clock)}: {format_duration(clock.duration_ns(window.length))} in "
            f"{count_of_pieces(len(found.path))}"
        ))  # fmt: skip
        self.pieces.set_sheet(found.pieces, follows=False)
        self.totals.set_sheet(found.totals, follows=False)
        for table, widths_px in ((self.table, _PIECE_WIDTHS_PX), (self.sums, _TOTAL_WIDTHS_PX)):
            for section, width_px in enumerate(widths_px):
                table.setColumnWidth(section, width_px)
        self._give_names_room()
        self._stack.setCurrentIndex(0)

    def _give_names_room(self) -> None:
        """Make the columns of threads as wide as their names; in the sums they take all that is left."""
        self.sums.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.table.resizeColumnToContents(_THREAD)
        least_px, most_px = _NAME_WIDTHS_PX
        self.table.setColumnWidth(_THREAD, min(max(self.table.columnWidth(_THREAD), least_px), most_px))

    @Slot(QModelIndex)
    def _on_row(self, index: QModelIndex) -> None:
        """Go to a piece, or to the thread of a sum."""
        found, opened = self._opened.path.found, self._opened
        if found is None or not index.isValid():
            return
        model = self.pieces if index.model() is self.pieces else self.totals
        assert model.sheet is not None
        row = int(model.order[index.row()])
        lane = opened.lane_of_thread(int(model.sheet.subjects[row]))
        if lane is None:
            return
        opened.lanes.reveal(lane)
        if model is self.totals:
            self._navigation.show_lane(lane)
            return
        start = int(found.path.start_cycles[row])
        opened.viewport.reveal(start)
        opened.select_at(lane, start)
