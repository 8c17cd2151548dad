"""Messages, pulses and interrupts, the slowest first: filter, table, and the way of a row drawn over the lanes."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt, Slot
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDockWidget,
    QHBoxLayout,
    QStackedWidget,
    QTabBar,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from satview.base.safe_text import csv_text
from satview.events import wire
from satview.gui.panel import PanelContext
from satview.gui.plain_label import Notice
from satview.gui.row_table import set_up_rows
from satview.gui.statistics.model import SheetModel
from satview.gui.table_panel import TablePanel
from satview.gui.theme import Theme
from satview.gui.transactions.filter_line import NO_FILTER, FilterLine
from satview.gui.transactions.model import TransactionModel
from satview.session.highlight import window_of
from satview.session.panels.transaction_view import RowMode, TransactionView

_PADDING_PX: Final = 24
_MEASURED_ROWS: Final = 24
_LEAST_PX, _WIDEST_PX = 48, 260
_CELL_PX, _NEAR_PX = 6, 4  # padding of a cell; how far beside the sign a click may be
_COPY_ROWS_MAX: Final = 10_000
_MARGIN: Final = 0.25  # on both sides of what is shown of a row
_SAMPLES: Final = {"client": "a server 2 (work)", "server": "a server 2 (work)", "certainty": "inferred"}


class TransactionsPanel(TablePanel[TransactionModel]):
    """The table of transactions and latencies. Works only while it can be seen.

    Attributes:
        view: What is looked for.
        model, table: The rows.
        figures, figure_table: Latencies by source.
        line: The filter, and what it leaves.
    """

    waits_to_be_seen = True

    saved_fields = ("tabs", "line.client", "line.server", "line.number")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.setMinimumSize(120, 64)
        self._area = context.area
        self.view = TransactionView(self._opened, self)
        self._is_stale = True
        self._is_down, self._pressed_x = False, 0.0
        self._dock: QDockWidget | None = None
        height_px = context.settings.number("events/row_height_px")
        self.model = TransactionModel(context.theme, self)
        self.table = QTableView(self)
        self._set_up_table(height_px)
        self.figures = SheetModel(context.theme, self)
        self.figure_table = QTableView(self)
        self._set_up_figures(height_px)
        self.message = Notice("", self)
        self._stack = QStackedWidget(self)
        for page in (self.table, self.figure_table, self.message):
            self._stack.addWidget(page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(self._head())
        self.line = FilterLine(self)
        self.line.changed.connect(self._on_filter)
        layout.addWidget(self.line)
        layout.addWidget(self._stack, 1)
        self.view.changed.connect(self._on_found)
        self._opened.selection.range_changed.connect(self._on_range)

    def reload(self) -> None:
        """Look for rows, at first and in a refreshed trace."""
        self._is_stale = False
        self.view.start()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        super().set_theme(theme)
        self.figures.set_theme(theme)
        self.figure_table.viewport().update()

    def close_down(self) -> None:
        """Cancel the background task."""
        self.line.close_down()
        self.view.close()

    def copied_text(self) -> str:
        """Return the selected rows, or the first ones, while the table has the focus."""
        if not self.table.hasFocus():
            return ""
        selected = sorted(index.row() for index in self.table.selectionModel().selectedRows())
        rows = selected if len(selected) > 1 else range(min(self.model.rowCount(), _COPY_ROWS_MAX))
        columns = range(self.model.columnCount())
        lines = ["\t".join(csv_text(str(self.model.index(row, column).data()).strip()) for column in columns)
                 for row in rows]  # fmt: skip
        return "\n".join(["\t".join(column.title for column in self.model.columns), *lines])

    def _head(self) -> QHBoxLayout:
        self.tabs = QTabBar(self)
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.setAccessibleName("Messages or latencies")
        for mode in RowMode:
            self.tabs.setTabData(self.tabs.addTab(mode.value), mode)
        self.tabs.currentChanged.connect(self._on_tab)
        head = QHBoxLayout()
        head.setContentsMargins(2, 0, 8, 0)
        head.addWidget(self.tabs, 1)
        return head

    def _set_up_table(self, height_px: int) -> None:
        table = self.table
        set_up_rows(table, self.model, "Transactions", height_px)
        table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        header = table.horizontalHeader()
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(False)  # the model writes it into the title
        header.sectionClicked.connect(self._on_head)
        table.clicked.connect(self._on_clicked)
        table.activated.connect(self._on_activated)
        table.selectionModel().currentRowChanged.connect(self._on_current)
        table.customContextMenuRequested.connect(self._on_menu)
        table.installEventFilter(self)
        table.viewport().installEventFilter(self)

    def _set_up_figures(self, height_px: int) -> None:
        table = self.figure_table
        set_up_rows(table, self.figures, "Latencies by source", height_px)
        table.setSortingEnabled(True)
        table.horizontalHeader().setSortIndicatorShown(False)
        table.clicked.connect(self._on_figure)
        table.activated.connect(self._on_figure)

    @Slot()
    def _on_found(self) -> None:
        found, view = self.view.found, self.view
        if found is None:
            self.message.setText(view.error or "Looking\N{HORIZONTAL ELLIPSIS}")
            self._stack.setCurrentWidget(self.message)
            return
        if view.is_busy:  # what shows stays until there is better
            return
        if found.sheet is not None:
            self.figures.set_sheet(found.sheet, follows=False)
            self.figure_table.resizeColumnsToContents()
        else:
            assert found.source is not None
            key, descending = view.order
            if self.model.found is not found:
                self.model.show(found, key or found.source.first_sort, is_descending=descending)
                self._fit_columns()
        self._say(len(found.sheet) if found.sheet is not None else len(found.positions))

    def _say(self, count: int) -> None:
        found = self.view.found
        assert found is not None
        where = "the selected range" if found.window is not None else "the trace"
        kind = "messages" if found.mode is RowMode.MESSAGES else "pulses and interrupts that wake threads"
        if found.mode is RowMode.FIGURES:
            note = f"; {found.sheet.note}" if found.sheet is not None and found.sheet.note else ""
            self.line.say(f"Of {found.total:,} {kind} in {where}{note}")
        else:
            self.line.say(f"{count:,} of {found.total:,} {kind}" + (
                ", those that begin in the selected range" if found.window is not None else ""))  # fmt: skip
        if count:
            self._stack.setCurrentWidget(self.figure_table if found.mode is RowMode.FIGURES else self.table)
            return
        fits = " fit the filter" if self.line.requested != NO_FILTER else ""
        takes = "\nIt was captured without the class Communication." if not self._has_communication() else ""
        self.message.setText(f"There are no {kind} in {where}" + (f" that{fits}" if fits else "") + f".{takes}")
        self._stack.setCurrentWidget(self.message)

    def _has_communication(self) -> bool:
        codes = np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.COMM
        return bool(self._opened.trace.code_counts[codes].any())

    def _fit_columns(self) -> None:
        """Give every column the width of what its first rows say; measuring all would take a text from every row."""
        metrics, table = QFontMetrics(self.table.font()), self.table
        rows = range(min(self.model.rowCount(), _MEASURED_ROWS))
        for section, column in enumerate(self.model.columns):
            longest = max((str(self.model.index(row, section).data() or "") for row in rows), key=len, default="")
            texts = (longest, f"\N{BLACK DOWN-POINTING SMALL TRIANGLE} {column.title}", _SAMPLES.get(column.key, ""))
            width = max(metrics.horizontalAdvance(text) for text in texts) + _PADDING_PX
            table.setColumnWidth(section, min(max(width, _LEAST_PX), _WIDEST_PX))

    @Slot()
    def _on_filter(self) -> None:
        self.view.set_filter(*self.line.requested)

    @Slot(int)
    def _on_tab(self, number: int) -> None:
        mode = RowMode(self.tabs.tabData(number))  # Qt keeps the text of it
        self.line.begin(is_of_messages=mode is RowMode.MESSAGES)
        self.view.set_mode(mode, *self.line.requested)

    @Slot(int)
    def _on_head(self, section: int) -> None:
        column = self.model.columns[section]
        is_same = column.key == self.model.sort_key
        descending = not self.model.is_descending if is_same else not column.is_text
        self.view.sort(column.key, descending=descending)

    @Slot()
    def _on_range(self) -> None:
        self._is_stale = True
        self._catch_up()

    @Slot()
    def _catch_up(self) -> None:
        """Look for the rows of another range, once the panel can be seen; one behind another tab cannot."""
        if self._is_stale and self.view.found is not None and not self.visibleRegion().isEmpty():
            self.reload()

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        if index.column() == 0 and self.model.can_unfold(index.row()) and self._is_on_sign(index):
            self._toggle(index.row())
        else:
            self._show(index.row())

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        self._show(index.row())

    @Slot(QModelIndex, QModelIndex)
    def _on_current(self, index: QModelIndex, before: QModelIndex) -> None:
        # By keys only: a click comes as `clicked` too, and may be meant for the sign that unfolds. The first row is
        # made the current one as the table gets the focus.
        if index.isValid() and before.isValid() and self.table.hasFocus() and not self._is_down:
            self._show(index.row())

    @Slot(QModelIndex)
    def _on_figure(self, index: QModelIndex) -> None:
        """Go to the longest time of a row."""
        sheet = self.figures.sheet
        if sheet is not None and index.isValid():
            event = int(sheet.subjects[self.figures.order[index.row()]])
            if event >= 0:
                self._navigation.show_event(event)

    def _show(self, row: int) -> None:
        """Select the event of a row, and show its time and its way over the lanes."""
        source = self.model.found.source if self.model.found is not None else None
        if source is None or not 0 <= row < self.model.rowCount():
            return
        shown, opened = source.shown(self.model.position_at(row)), self._opened
        lanes = [opened.lane_of_thread(leg.thread) for leg in reversed(shown.legs)]  # the first one is in view at last
        for lane in lanes:
            if lane is not None:
                opened.lanes.reveal(lane)
        self._navigation.show_event(shown.event)
        for lane in lanes:
            if lane is not None:
                self._area.view.reveal_lane(lane)
        opened.highlight.show(shown)
        opened.viewport.fit(window_of(opened.trace, shown), _MARGIN)

    def _toggle(self, row: int) -> None:
        if self.model.is_open(row):
            self.model.fold(row)
        else:
            self.model.unfold(row)

    def _is_on_sign(self, index: QModelIndex) -> bool:
        """Return whether the mouse is on the sign before the name, or before it."""
        letter_px = QFontMetrics(self.table.font()).horizontalAdvance("\N{EM SPACE}")
        right_px = _CELL_PX + letter_px * (self.model.depth_at(index.row()) + 1) + _NEAR_PX
        return self._pressed_x - self.table.visualRect(index).left() <= right_px

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Unfold and fold rows by Right and Left; note where the mouse was pressed."""
        if watched is self.table.viewport() and isinstance(event, QMouseEvent):
            if event.type() == QEvent.Type.MouseButtonPress:
                self._is_down, self._pressed_x = True, event.position().x()
            elif event.type() == QEvent.Type.MouseButtonRelease:
                self._is_down = False
        if watched is self.table and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            row = self.table.currentIndex().row()
            if row >= 0 and event.key() == Qt.Key.Key_Right and not self.model.is_open(row):
                self.model.unfold(row)
                return True
            if row >= 0 and event.key() == Qt.Key.Key_Left and self.model.is_open(row):
                self.model.fold(row)
                return True
        return super().eventFilter(watched, event)

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the dock: it knows when the panel comes to the front of others."""
        super().showEvent(event)
        dock = self.parentWidget()
        if isinstance(dock, QDockWidget) and dock is not self._dock:
            self._dock = dock
            dock.visibilityChanged.connect(self._catch_up, Qt.ConnectionType.QueuedConnection)  # after it is laid out
