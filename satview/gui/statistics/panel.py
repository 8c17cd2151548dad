"""The statistics panel: sheets behind tabs, the range, whether numbers follow the filter, and the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from PySide6.QtCore import QModelIndex, QPoint, Qt, Slot
from PySide6.QtGui import QFontMetrics, QGuiApplication, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QButtonGroup,
    QCheckBox,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QTabBar,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.sheets.sheet import Kind, Subject
from satview.analysis.statistics_sheets import sheet_titles
from satview.base.safe_text import tool_tip
from satview.gui.panel import Panel, PanelContext
from satview.gui.plain_label import PlainLabel
from satview.gui.row_table import add_copy_and_export, select_row, set_up_rows
from satview.gui.saved_values import Value
from satview.gui.sheet_export import SheetExport
from satview.gui.statistics.frozen_column import FrozenColumn
from satview.gui.statistics.model import SheetModel, has_position
from satview.gui.statistics.positions import Positions
from satview.gui.statistics.share_bar import ShareBar
from satview.gui.theme import Theme
from satview.session.extent import NO_RANGE, Extent
from satview.session.panels.statistics_task import sheet_text
from satview.session.panels.statistics_view import StatisticsView

_MEASURED_ROWS: Final = 60
_WIDEST_PX: Final = 320
_SORTED: Final = "sort "  # and the key of a sheet: by what it is sorted, + up or - down
_BAR_PX: Final = 2  # room for the bar of a share under the text
_EXTENT_TIPS: Final = {
    Extent.TRACE: "All of the trace",
    Extent.VIEW: "What the lanes show now",
    Extent.RANGE: "The selected range: drag over the lanes, or press R for the selected interval",
}


class StatisticsPanel(Panel):
    """Statistics of the open trace. Works only while it can be seen.

    Attributes:
        view: What is worked out.
        model, table: What shows.

    Signals:
        menu_requested: Right click on a row: global position.
    """

    saved_fields = ("tabs", "extents", "follows")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.setMinimumSize(120, 64)
        opened, theme = context.opened, context.theme
        self.view = StatisticsView(opened, self)
        self.model = SheetModel(theme, self)
        self._bars = ShareBar(theme, self)
        self._positions = Positions(opened, context.navigation)
        self._is_marking = False
        self._widths: dict[str, dict[str, int]] = {}
        self.table = QTableView(self)
        self._set_up_table(context.settings.number("events/row_height_px"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(self._head())
        layout.addLayout(self._selectors())
        self._csv = SheetExport(self, self.statement)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.table)
        self._stack.addWidget(self._message_page())
        layout.addWidget(self._stack, 1)
        self.view.changed.connect(self._on_view)
        opened.selection.changed.connect(self._mark_selected)
        self._on_view()

    def saved_values(self) -> dict[str, Value]:
        """Return what shows, and how the sheets are sorted."""
        sorting = {f"{_SORTED}{sheet}": ("-" if descends else "+") + key
                   for sheet, (key, descends) in self.model.sorting.items()}  # fmt: skip
        return super().saved_values() | sorting

    def take_values(self, values: Mapping[str, Value]) -> None:
        """Show saved values."""
        for name, value in values.items():
            if name.startswith(_SORTED) and isinstance(value, str):
                self.model.sorting[name.removeprefix(_SORTED)] = value[1:], value.startswith("-")
        super().take_values(values)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self.model.set_theme(theme)
        self._bars.theme = theme
        self.table.viewport().update()

    def close_down(self) -> None:
        """Cancel the background task."""
        self.view.close()
        self._csv.close()

    def copied_text(self) -> str:
        """Return the selected rows, or all, while the table has the focus."""
        return self.selected_text() if self.table.hasFocus() else ""

    def selected_text(self) -> str:
        """Return the selected rows, or all if none or one is selected, as tab-separated text with column names."""
        selected = sorted(index.row() for index in self.table.selectionModel().selectedRows())
        rows = selected if len(selected) > 1 else range(self.model.rowCount())
        if self.model.sheet is None:
            return ""
        shown = replace(self.model.sheet, columns=self.model.columns)
        return sheet_text(shown, (int(self.model.order[row]) for row in rows))

    @Slot()
    def copy(self) -> None:
        """Copy the selected rows, or all."""
        QGuiApplication.clipboard().setText(self.selected_text())

    @Slot()
    def ask_export(self) -> None:
        """Let the user name a file, and write the sheet to it, in the order it has."""
        self._csv.save_as(self.model.sheet, self.model.order, self._opened.trace.path)

    def _head(self) -> QHBoxLayout:
        self.tabs = QTabBar(self)
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self.tabs.setUsesScrollButtons(True)
        self.tabs.setAccessibleName("Kind of statistics")
        for key, title in sheet_titles().items():
            self.tabs.setTabData(self.tabs.addTab(title), key)
        self.tabs.currentChanged.connect(self._on_tab)
        head = QHBoxLayout()
        head.setContentsMargins(2, 0, 8, 0)
        head.addWidget(self.tabs, 1)
        self._copy, self._export = add_copy_and_export(head, self, self.copy, self.ask_export)
        return head

    def _selectors(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setContentsMargins(8, 1, 8, 2)
        line.setSpacing(2)
        self.extents = QButtonGroup(self)
        for number, extent in enumerate(Extent):
            button = QToolButton(self)
            button.setText(extent.value)
            button.setToolTip(tool_tip(_EXTENT_TIPS[extent]))
            button.setCheckable(True)
            button.setChecked(extent is self.view.extent)
            self.extents.addButton(button, number)
            line.addWidget(button)
        self.extents.idClicked.connect(self._on_extent)
        line.addSpacing(12)
        self.follows = QCheckBox("Follow the filter", self)
        self.follows.setToolTip(
            "Count only the events that the filter shows. Times of threads and CPUs never follow:\n"
            "they come from the lanes, and hiding events does not change who ran."
        )
        self.follows.toggled.connect(self.view.set_follows)
        line.addWidget(self.follows)
        line.addSpacing(12)
        self.statement = PlainLabel(self)
        self.statement.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        line.addWidget(self.statement, 1)
        return line

    def _set_up_table(self, height_px: int) -> None:
        table = self.table
        set_up_rows(table, self.model, "Statistics", height_px + _BAR_PX)
        table.setItemDelegate(self._bars)
        table.horizontalHeader().setSectionsMovable(True)
        table.setSortingEnabled(True)
        table.horizontalHeader().setSortIndicatorShown(False)  # the model writes it into the title
        table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        table.selectionModel().currentRowChanged.connect(self._select)
        self._names = FrozenColumn(table)
        for view in (table, self._names):
            view.customContextMenuRequested.connect(self._on_menu)
            view.clicked.connect(self._on_clicked)
            view.activated.connect(self._on_activated)

    def _message_page(self) -> QWidget:
        page = QWidget(self)
        self.message = PlainLabel(page)
        self.message.setProperty("role", "dim")
        self.count_all = QPushButton("Count all events", page)
        self.count_all.clicked.connect(self._count_all)
        layout = QVBoxLayout(page)
        layout.addStretch()
        layout.addWidget(self.message, alignment=Qt.AlignmentFlag.AlignHCenter)
        layout.addWidget(self.count_all, alignment=Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch()
        return page

    def _fit_columns(self) -> None:
        """Give every column the width of its longest text, but for those the user gave another."""
        assert self.model.sheet is not None
        known = self._widths.setdefault(self.model.sheet.key, {})
        metrics = QFontMetrics(self.table.font())
        for section, column in enumerate(self.model.columns):
            rows = self.model.order[:_MEASURED_ROWS].tolist()
            texts = (column.marked_title + "   ", *(column.marked(row) for row in rows))
            width = min(max(metrics.horizontalAdvance(text) for text in texts) + 22, _WIDEST_PX)
            width += 10 if self.model.follows and column.follows else 0
            known[column.key] = max(width, known.get(column.key, 0), 84 if column.kind is Kind.SHARE else 0)
            self.table.setColumnWidth(section, known[column.key])

    @Slot(int)
    def _on_tab(self, number: int) -> None:
        self.view.show_sheet(self.tabs.tabData(number))

    @Slot(int)
    def _on_extent(self, number: int) -> None:
        self.view.set_extent(list(Extent)[number])

    @Slot()
    def _count_all(self) -> None:
        self.follows.setChecked(False)

    @Slot()
    def _on_view(self) -> None:
        """Show what there is: the table, or why there is none."""
        self.extents.button(list(Extent).index(self.view.extent)).setChecked(True)  # it follows the selected range
        counted = self.view.counted
        if counted is not None and counted.sheet is not self.model.sheet and counted.sheet.key == self.view.key:
            self._show_sheet()
        is_there = counted is not None and counted.sheet.key == self.view.key
        reason = self._reason(is_there)
        self._stack.setCurrentIndex(1 if reason else 0)
        self.message.setText(reason)
        self.count_all.setVisible(
            bool(reason) and is_there and self.view.follows and not self.view.needs_range and not self.view.is_pending
        )
        for button in (self._copy, self._export):
            button.setEnabled(not reason)
        self._report()

    def _reason(self, is_there: bool) -> str:
        """Return why no table shows; empty if one does."""
        view = self.view
        if view.error:
            return view.error
        if view.needs_range:
            return NO_RANGE
        if not is_there:
            return "Counting\N{HORIZONTAL ELLIPSIS}"
        assert view.counted is not None
        return view.counted.sheet.empty if not len(view.counted.sheet) else ""

    def _report(self) -> None:
        """Say what is counted."""
        view, parts = self.view, []
        if view.is_pending:
            parts.append("Counting\N{HORIZONTAL ELLIPSIS}")
        elif view.counted is not None and not view.needs_range:
            parts.append(view.counted.statement)
            parts += ["whatever the filter hides"] if view.ignores_filter else []
            parts += [view.counted.warning] if view.counted.warning else []
            if view.counted.sheet.note:
                parts.append(view.counted.sheet.note)
        self.statement.setText(" \N{MIDDLE DOT} ".join(parts))
        self.statement.setToolTip(tool_tip("\n".join(parts)))

    def _show_sheet(self) -> None:
        counted, header = self.view.counted, self.table.horizontalHeader()
        assert counted is not None
        same = self.model.sheet is not None and self.model.sheet.key == counted.sheet.key
        bars = (self.table.verticalScrollBar(), self.table.horizontalScrollBar())
        positions = [bar.value() if same else 0 for bar in bars]
        header.blockSignals(True)  # what the arrow shows is what the model already has
        self.model.set_sheet(counted.sheet, counted.follows)
        order = Qt.SortOrder.DescendingOrder if self.model.is_descending else Qt.SortOrder.AscendingOrder
        header.setSortIndicator(self.model.section_of(self.model.sort_key), order)
        header.blockSignals(False)
        self._fit_columns()
        for bar, position in zip(bars, positions, strict=True):
            bar.setValue(position)
        self._mark_selected()

    @Slot()
    def _mark_selected(self) -> None:
        """Mark the row of the selected lane, so that it is found again when numbers change or lanes are clicked."""
        sheet, lane = self.model.sheet, self._opened.selection.lane
        current = self.table.currentIndex()
        if sheet is None or lane is None or sheet.subject in (Subject.EVENT, Subject.NONE):
            return
        if current.isValid() and self._positions.lane_of(sheet, int(self.model.order[current.row()])) == lane:
            return
        row = self._positions.row_of(sheet, lane)
        position = np.flatnonzero(self.model.order == row)
        if len(position):
            self._is_marking = True
            select_row(self.table, int(position[0]))
            self._is_marking = False

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        """Go where a blue value happened; of any other value select what its row is about."""
        if self.model.sheet is not None and has_position(
            self.model.columns[index.column()], int(self.model.order[index.row()])
        ):
            self._on_activated(index)
        else:
            self._select(index)

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        if self.model.sheet is not None and index.isValid():
            self._positions.go_to(
                self.model.sheet, self.model.columns[index.column()], int(self.model.order[index.row()])
            )

    @Slot(QModelIndex)
    def _select(self, index: QModelIndex, _before: QModelIndex | None = None) -> None:
        if self.model.sheet is not None and index.isValid() and not self._is_marking:
            self._positions.select(self.model.sheet, int(self.model.order[index.row()]))

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        """Request the menu of what the row is about; it acts on the selection."""
        self._select(self.table.indexAt(position))
        self.menu_requested.emit(self.table.viewport().mapToGlobal(position), "")

    def showEvent(self, event: QShowEvent) -> None:
        """Begin to follow the trace."""
        super().showEvent(event)
        self.view.watch(True)

    def rest(self) -> None:
        """Stop working: nobody looks."""
        self.view.watch(False)
