"""The panel Events: the event list, the time between selected rows, and a page for an empty list."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    QTimer,
    Slot,
)
from PySide6.QtGui import QColor, QFontMetrics
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QHBoxLayout,
    QStackedWidget,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from satview.base.column_arrays import borrowed
from satview.base.safe_text import counted, tool_tip, visible_line
from satview.base.time import TimeWindow, format_moment
from satview.events.spec import arguments_text
from satview.gui.colours import class_colour
from satview.gui.panel import HEIGHT_LIMIT_PX, PanelContext, TablePanel, Value, select_row, selected_ranges, set_up_rows
from satview.gui.theme import Theme, colour
from satview.gui.widgets import ElidedLabel, PlainLabel, flat_button, line_up, paint_next_frame, push_button
from satview.session.event_text import COLUMNS, arguments_as, list_row
from satview.session.open_trace import OpenTrace
from satview.session.range_view import frequency_text, length_text
from satview.store.trace import Trace

# The item model of the event list: rows are formatted when shown, and cached.


Index = QModelIndex | QPersistentModelIndex
_CACHED_ROWS: Final = 4096
_RIGHT: Final = frozenset({0, 1, 2, 3})
_CLASS_COLUMN: Final = 6
_ALIGN_RIGHT: Final = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_DISPLAY: Final = int(Qt.ItemDataRole.DisplayRole)
_ALIGNMENT: Final = int(Qt.ItemDataRole.TextAlignmentRole)
_FOREGROUND: Final = int(Qt.ItemDataRole.ForegroundRole)
_BACKGROUND: Final = int(Qt.ItemDataRole.BackgroundRole)
_TOOL_TIP: Final = int(Qt.ItemDataRole.ToolTipRole)
_DIMMED_ALPHA: Final = 215  # fainter than other rows but legible: contrast of at least 4


_PIN_PX: Final = 130  # least width of the last heading for the word "Pin" beside its title


class EventListModel(QAbstractTableModel):
    """The events that pass the filter, as a table.

    Qt limits the height of all rows to 2^31 pixels. For a longer list, the model contains only a part of the list, from
    `first_row` on, which `bring_in` moves.

    Attributes:
        first_row: Position in the filtered list of the model's row 0.
    """

    def __init__(self, opened: OpenTrace, row_height_px: int, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._trace = opened.trace
        self._rows = opened.filters.rows
        self._theme = theme
        self.first_row = 0
        self._limit = HEIGHT_LIMIT_PX // max(1, row_height_px)
        self._texts = lru_cache(maxsize=_CACHED_ROWS)(borrowed(self._format))
        opened.filters.view_changed.connect(self._on_rows)

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme = theme

    @property
    def total(self) -> int:
        """Number of events that pass the filter, including those outside the model's part."""
        return len(self._trace.events) if self._rows is None else len(self._rows)

    def event_at(self, row: int) -> int:
        """Return the event row of a model row."""
        position = self.first_row + row
        return position if self._rows is None else int(self._rows[position])

    def bring_in(self, event: int) -> int:
        """Return the model row of an event, or of the next event in the list; -1 if the list is empty.

        The part of the list in the model is moved if necessary.
        """
        if not self.total:
            return -1
        position = event if self._rows is None else int(np.searchsorted(self._rows, event))
        position = min(position, self.total - 1)
        if not self.first_row <= position < self.first_row + self.rowCount():
            self.beginResetModel()
            self.first_row = max(0, min(position - self._limit // 2, self.total - self._limit))
            self._texts.cache_clear()
            self.endResetModel()
        return position - self.first_row

    @Slot()
    def _on_rows(self) -> None:
        trace, rows, before = self._opened.trace, self._opened.filters.rows, self.rowCount()
        if trace is not self._trace and (rows is None) == (self._rows is None):
            self._grow(trace, rows, before)
            return
        self._reset(rows)

    def _reset(self, rows: NDArray[np.uint32] | None) -> None:
        """Show other rows of the present trace, from the first one on."""
        self.beginResetModel()
        self._trace, self._rows = self._opened.trace, rows
        self.first_row = 0
        self._texts.cache_clear()
        self.endResetModel()

    def _grow(self, trace: Trace, rows: NDArray[np.uint32] | None, before: int) -> None:
        """Switch to a refreshed trace of which `rows` (None = all) pass; `before` is the count of rows shown so far."""
        count = min((len(trace.events) if rows is None else len(rows)) - self.first_row, self._limit)
        if count > before:
            self.beginInsertRows(QModelIndex(), before, count - 1)
        elif count < before:
            self.beginRemoveRows(QModelIndex(), max(count, 0), before - 1)
        self._trace, self._rows = trace, rows
        self._texts.cache_clear()
        if count > before:
            self.endInsertRows()
        elif count < before:
            self.endRemoveRows()

    def _format(self, row: int) -> tuple[str, ...]:
        trace, event = self._trace, self.event_at(row)
        texts = list_row(trace, event, self.event_at(row - 1) if row + self.first_row else None)
        is_wide = self._opened.filters.is_wide.get(int(trace.events.code[event]))
        if is_wide is None:
            return texts
        return (*texts[:-1], arguments_text(arguments_as(trace, event, is_wide=is_wide)))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  -- Qt's own default
        """Return the number of rows of the part."""
        return 0 if parent.isValid() else min(max(0, self.total - self.first_row), self._limit)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of columns."""
        return 0 if parent.isValid() else len(COLUMNS)

    def data(self, index: Index, role: int = _DISPLAY) -> Any:
        """Return text, alignment, colour or tool tip of a cell."""
        if role == _DISPLAY:
            return visible_line(self._texts(index.row())[index.column()]) if index.isValid() else None
        if role == _ALIGNMENT:
            return _ALIGN_RIGHT if index.column() in _RIGHT else None
        if role in (_FOREGROUND, _BACKGROUND) and index.isValid():
            highlight = self._highlight(self.event_at(index.row()), role)
            if highlight is not None:
                return highlight
        if role == _FOREGROUND and index.column() == _CLASS_COLUMN and index.isValid():
            return colour(class_colour(self._texts(index.row())[_CLASS_COLUMN], self._theme.is_dark))
        if role == _TOOL_TIP and index.isValid():
            return tool_tip(self._texts(index.row())[index.column()])
        return None

    def _highlight(self, event: int, role: int) -> QColor | None:
        """Return the text colour of a dimmed event, or the background of a marked event, for this role; else None."""
        view = self._opened.filters.view
        if role == _FOREGROUND and view.dimmed is not None and view.dimmed[event]:
            return colour(self._theme.dim, _DIMMED_ALPHA)
        if role == _BACKGROUND and view.marked is not None and view.marked[event]:
            return colour(self._theme.hit, 48)
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = _DISPLAY) -> Any:
        """Return text or alignment of a column heading."""
        if orientation == Qt.Orientation.Horizontal and 0 <= section < len(COLUMNS):
            if role == _DISPLAY:
                return COLUMNS[section]
            if role == _ALIGNMENT:
                side = Qt.AlignmentFlag.AlignRight if section in _RIGHT else Qt.AlignmentFlag.AlignLeft
                return int(side | Qt.AlignmentFlag.AlignVCenter)
        return None


# The line below the event list with the time between the selected rows.


class RowDelta(QWidget):
    """A line with the time between the first and last selected row; visible while two or more rows are selected."""

    def __init__(
        self, opened: OpenTrace, model: EventListModel, selected: QItemSelectionModel, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._opened, self._model, self._selected = opened, model, selected
        self._ends = (0, 0)
        self.text = ElidedLabel(self)
        self.take = flat_button("Make it the range", self, self._select_range)
        line_up(QHBoxLayout(self), (self.text, 1), self.take, margins=(8, 1, 4, 1))
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
        begin_row, end_row = self._model.event_at(ranges[0].start), self._model.event_at(ranges[-1].stop - 1)
        self._ends = start, end = int(trace.events.time_cycles[begin_row]), int(trace.events.time_cycles[end_row])
        frequency = frequency_text(end - start, trace.clock)
        parts = [
            f"#{begin_row + 1:,} {trace.spec(begin_row).name} to #{end_row + 1:,} {trace.spec(end_row).name}:  "
            f"{length_text(end - start, trace.clock)}",
            *([frequency] if frequency else []),
            f"{counted(end_row - begin_row, 'event')} later",
            *([f"{count:,} rows selected"] if count > 2 else []),
        ]
        self.text.setText(" \N{MIDDLE DOT} ".join(parts))
        self.take.setEnabled(end > start)

    @Slot()
    def _select_range(self) -> None:
        self._opened.selection.set_range(TimeWindow(*self._ends))


# Column widths are measured on samples, because measuring all rows would take long.
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
_TIME_COLUMN: Final = COLUMNS.index("Time")
_TOP: Final = "top"
_RESTS_AFTER_MS: Final = 120  # delay after the last move, so that the list does not slow down the lanes
_COPY_ROWS_MAX: Final = 100_000


class EventListPanel(TablePanel[EventListModel]):
    """The event list, and the time between its selected rows.

    The list follows the lanes: once these stop moving, it scrolls to the first event in the visible range, unless the
    selected event is visible in both lanes and list, or the list is `pinned`.

    Signals:
        menu_requested: A row was right-clicked; sends the global position of the mouse.
    """

    saved_fields = ("pinned",)

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
        self.delta = RowDelta(opened, self.model, self.table.selectionModel(), self)
        line_up(QVBoxLayout(self), self._stack, self.delta, margins=(0, 0, 0, 0), spacing=0)
        self.pinned = self._pin()
        self._view_rests = QTimer(self, singleShot=True, interval=_RESTS_AFTER_MS)
        self._view_rests.timeout.connect(self._follow_view)
        opened.viewport.window_changed.connect(self._view_rests.start)
        self._is_at_end = False
        self.model.modelReset.connect(self._on_reset)
        opened.begins_reload.connect(self._note_end)
        opened.reloaded.connect(self._on_reloaded)
        self.table.selectionModel().selectionChanged.connect(self._on_rows_selected)
        opened.selection.changed.connect(self._follow)
        self._on_reset()
        self._view_rests.start()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme, and column widths for its text size."""
        is_resized = theme.text_percent != self._theme.text_percent
        super().set_theme(theme)
        if is_resized:
            self._fit_columns()

    def _fit_columns(self) -> None:
        for column, width in enumerate(column_widths(self.table, self._opened.trace)):
            self.table.setColumnWidth(column, width)

    def saved_values(self) -> dict[str, Value]:
        """Return the event at the top, and whether the list is pinned."""
        top = self.table.rowAt(0)
        return super().saved_values() | ({_TOP: self.model.event_at(top)} if top >= 0 else {})

    def restore_values(self, values: Mapping[str, Value]) -> None:
        """Restore the event at the top, and whether the list is pinned."""
        super().restore_values(values)
        event = values.get(_TOP)
        if isinstance(event, int) and event >= 0:
            self._view_rests.stop()
            QTimer.singleShot(0, self, partial(self._show_top, event))  # once the table has its height

    def _show_top(self, event: int) -> None:
        row = self.model.bring_in(event)
        if row >= 0:
            self.table.scrollTo(self.model.index(row, 0), QAbstractItemView.ScrollHint.PositionAtTop)

    def copied_text(self) -> str:
        """Return the selected rows if the table has the focus, otherwise an empty text."""
        return self.selected_text() if self.table.hasFocus() else ""

    def selected_text(self) -> str:
        """Return the selected rows, at most `_COPY_ROWS_MAX`, as tab-separated text after a line of column titles."""
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
        self._fit_columns()

    def _pin(self) -> QCheckBox:
        """Create the check box at the right end of the headings."""
        head = self.table.horizontalHeader()
        pin = QCheckBox("Pin", head)
        pin.setToolTip(tool_tip("Keep the list where it is while the lanes move; otherwise it follows them"))
        pin.setAccessibleName("Pin")
        pin.toggled.connect(self._on_pin)
        pin.setAutoFillBackground(True)
        for signal in (head.sectionResized, head.geometriesChanged, self.table.horizontalScrollBar().valueChanged):
            signal.connect(self._fit_pin)
        line_up(QHBoxLayout(head), None, pin, margins=(0, 0, 8, 0))
        return pin

    @Slot()
    def _fit_pin(self) -> None:
        """Show the word "Pin" only if it hides no column title."""
        head = self.table.horizontalHeader()
        room_px = head.width() - head.sectionViewportPosition(len(COLUMNS) - 1)
        self.pinned.setText("Pin" if room_px > _PIN_PX else "")

    def _empty_page(self) -> QWidget:
        page = QWidget(self)
        self._empty_notice = PlainLabel(page, role="dim")
        self._show_all = push_button("Show all events", page, self._opened.filters.show_all)
        layout = QVBoxLayout(page)
        layout.addStretch()
        layout.addWidget(self._empty_notice, alignment=Qt.AlignmentFlag.AlignHCenter)
        layout.addWidget(self._show_all, alignment=Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch()
        return page

    @Slot()
    def _on_reset(self) -> None:
        is_filtered_empty = self.model.total == 0
        has_events = len(self._opened.trace.events) > 0
        self._empty_notice.setText("No event passes the filter." if has_events else "There are no events.")
        self._show_all.setVisible(has_events and self._opened.filters.is_active)
        self._stack.setCurrentIndex(1 if is_filtered_empty else 0)
        self._follow()

    @Slot()
    def _note_end(self) -> None:
        bar = self.table.verticalScrollBar()
        self._is_at_end = bar.value() >= bar.maximum()

    @Slot()
    def _on_reloaded(self) -> None:
        """Show the refreshed trace; a list that was scrolled to its end is scrolled to the new end."""
        if self.shows_nothing != (self.model.total == 0):
            self._on_reset()
        if self._is_at_end:
            self.table.scrollToBottom()
        paint_next_frame(self.table.viewport())

    @Slot()
    def _follow(self) -> None:
        """Select the row of the selected event, and scroll the list to that row."""
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

    @Slot(bool)
    def _on_pin(self, is_pinned: bool) -> None:
        if not is_pinned:
            self._follow_view()

    @Slot()
    def _follow_view(self) -> None:
        """Scroll to the first event in view, unless pinned, both ends show, or the selection shows in both."""
        opened, bar = self._opened, self.table.verticalScrollBar()
        window, events = opened.viewport.window, opened.trace.events
        is_at_both_ends = bar.value() >= bar.maximum() > 0 and window.end >= opened.trace.window.end
        if self.pinned.isChecked() or is_at_both_ends or self._shows_selected_in(window):
            return
        row = self.model.bring_in(int(np.searchsorted(events.time_cycles, window.start)))
        if row >= 0:
            self.table.scrollTo(self.model.index(row, 0), QAbstractItemView.ScrollHint.PositionAtTop)

    def _shows_selected_in(self, window: TimeWindow) -> bool:
        """Return whether the selected event is in a time window, and its row is visible."""
        event, current = self._opened.selection.event, self.table.currentIndex()
        if event is None or not current.isValid() or self.model.event_at(current.row()) != event:
            return False
        is_seen = self.table.viewport().rect().intersects(self.table.visualRect(current))
        return is_seen and window.contains(int(self._opened.trace.events.time_cycles[event]))

    @Slot(QItemSelection, QItemSelection)
    def _on_rows_selected(self, _selected: QItemSelection, _deselected: QItemSelection) -> None:
        current: QModelIndex = self.table.currentIndex()
        if not self._is_following and current.isValid() and self.table.selectionModel().isRowSelected(current.row()):
            self._opened.select_event(self.model.event_at(current.row()))


def column_widths(table: QTableView, trace: Trace) -> list[int]:
    """Return the widths of all columns except the last, in pixels."""
    metrics = QFontMetrics(table.font())
    samples = [*_SAMPLES[:-1]]
    samples[_TIME_COLUMN] = max(format_moment(trace.window.end, trace.clock), samples[_TIME_COLUMN], key=len)
    return [
        metrics.horizontalAdvance(max(sample, COLUMNS[column], key=len)) + 24 for column, sample in enumerate(samples)
    ]
