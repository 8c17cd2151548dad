"""The event list as a panel: the table, its count, and the state in which the filter shows nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain, islice
from typing import Final

from PySide6.QtCore import QItemSelection, QModelIndex, Qt, QTimer, Slot
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QAbstractItemView,
    QPushButton,
    QStackedWidget,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from satview.gui.event_list.model import EventListModel
from satview.gui.event_list.row_delta import RowDelta
from satview.gui.next_frame import paint_next_frame
from satview.gui.panel import PanelContext
from satview.gui.plain_label import PlainLabel
from satview.gui.row_table import select_row, selected_ranges, set_up_rows
from satview.gui.saved_values import Value
from satview.gui.table_panel import TablePanel
from satview.session.events.event_text import COLUMNS

# Widths come from these, not from the rows: measuring all rows would cost time on every load.
_SAMPLES: Final = (
    "10,000,000",
    "1234.567 890 123 s",
    "999.9 ms ",
    "CPU",
    "devb-eide-server",
    "12 worker",
    "INT_HANDLER_ENTR",
    "PROCPROCESS_NAME_64",
    "",
)
_TOP: Final = "top"
_COPY_ROWS_MAX: Final = 100_000


class EventListPanel(TablePanel[EventListModel]):
    """The list of events, and how far apart the selected ones are.

    Signals:
        menu_requested: Right click on a row: global position.
    """

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        opened = self._opened
        height_px = context.settings.number("events/row_height_px")
        self.model = EventListModel(opened, height_px, context.theme, self)
        self.table = QTableView(self)
        self._stack = QStackedWidget(self)
        self._is_following = False
        self._set_up_table(height_px)
        self._stack.addWidget(self.table)
        self._stack.addWidget(self._empty_page())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._stack)
        self.delta = RowDelta(opened, self.model, self.table.selectionModel(), self)
        layout.addWidget(self.delta)
        self._is_at_end = False
        self.model.modelReset.connect(self._on_reset)
        opened.begins_reload.connect(self._note_end)
        opened.reloaded.connect(self._on_reloaded)
        self.table.selectionModel().selectionChanged.connect(self._on_rows_selected)
        opened.selection.changed.connect(self._follow)
        self._on_reset()

    def saved_values(self) -> dict[str, Value]:
        """Return the event at the top."""
        top = self.table.rowAt(0)
        return {_TOP: self.model.event_at(top)} if top >= 0 else {}

    def take_values(self, values: Mapping[str, Value]) -> None:
        """Show the event at the top that was there."""
        event = values.get(_TOP)
        if isinstance(event, int) and event >= 0:
            QTimer.singleShot(0, self, partial(self._show_top, event))  # once the table has its height

    def _show_top(self, event: int) -> None:
        row = self.model.bring_in(event)
        if row >= 0:
            self.table.scrollTo(self.model.index(row, 0), QAbstractItemView.ScrollHint.PositionAtTop)

    def copied_text(self) -> str:
        """Return the selected rows, while the table has the focus."""
        return self.selected_text() if self.table.hasFocus() else ""

    def selected_text(self) -> str:
        """Return the selected rows as tab-separated text with a line of column names."""
        rows = islice(chain.from_iterable(selected_ranges(self.table.selectionModel())), _COPY_ROWS_MAX)
        lines = [
            "\t".join(str(self.model.index(row, column).data() or "") for column in range(len(COLUMNS))) for row in rows
        ]
        return "\n".join(["\t".join(COLUMNS), *lines]) if lines else ""

    @property
    def shows_nothing(self) -> bool:
        """True while the page for an empty list shows."""
        return self._stack.currentIndex() == 1

    def _set_up_table(self, height_px: int) -> None:
        table = self.table
        set_up_rows(table, self.model, "Events", height_px)
        table.horizontalHeader().setStretchLastSection(True)
        table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        table.customContextMenuRequested.connect(self._on_menu)
        for column, width in enumerate(column_widths(table)):
            table.setColumnWidth(column, width)

    def _empty_page(self) -> QWidget:
        page = QWidget(self)
        self._nothing = PlainLabel(page)
        self._nothing.setProperty("role", "dim")
        self._show_all = QPushButton("Show all events", page)
        self._show_all.clicked.connect(self._opened.filters.show_all)
        layout = QVBoxLayout(page)
        layout.addStretch()
        layout.addWidget(self._nothing, alignment=Qt.AlignmentFlag.AlignHCenter)
        layout.addWidget(self._show_all, alignment=Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch()
        return page

    @Slot()
    def _on_reset(self) -> None:
        is_filtered_empty = self.model.total == 0
        has_events = len(self._opened.trace.events) > 0
        self._nothing.setText("No event passes the filter." if has_events else "There are no events.")
        self._show_all.setVisible(has_events and self._opened.filters.is_active)
        self._stack.setCurrentIndex(1 if is_filtered_empty else 0)
        self._follow()

    @Slot()
    def _note_end(self) -> None:
        bar = self.table.verticalScrollBar()
        self._is_at_end = bar.value() >= bar.maximum()

    @Slot()
    def _on_reloaded(self) -> None:
        """Show the longer reading; a list that was at its end stays there."""
        if self.shows_nothing != (self.model.total == 0):
            self._on_reset()
        if self._is_at_end:
            self.table.scrollToBottom()
        paint_next_frame(self.table.viewport())

    @Slot()
    def _follow(self) -> None:
        """Show the selected event in the list."""
        event = self._opened.selection.event
        current = self.table.currentIndex()
        if event is None or (current.isValid() and self.model.event_at(current.row()) == event):
            return
        row = self.model.bring_in(event)
        if row < 0:
            return
        self._is_following = True
        if self.model.event_at(row) == event:
            select_row(self.table, row)
        else:
            self.table.clearSelection()
        self.table.scrollTo(self.model.index(row, 0), QAbstractItemView.ScrollHint.PositionAtCenter)
        self._is_following = False

    @Slot(QItemSelection, QItemSelection)
    def _on_rows_selected(self, _selected: QItemSelection, _deselected: QItemSelection) -> None:
        current: QModelIndex = self.table.currentIndex()
        if not self._is_following and current.isValid() and self.table.selectionModel().isRowSelected(current.row()):
            self._opened.select_event(self.model.event_at(current.row()))


def column_widths(table: QTableView) -> list[int]:
    """Return the widths of all columns but the last, in pixels."""
    metrics = QFontMetrics(table.font())
    return [
        metrics.horizontalAdvance(max(sample, COLUMNS[column], key=len)) + 24
        for column, sample in enumerate(_SAMPLES[:-1])
    ]
