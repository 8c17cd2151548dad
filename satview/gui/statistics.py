"""The statistics panel: sheets behind tabs, the range, whether numbers follow the filter, and the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRectF,
    Qt,
    Slot,
)
from PySide6.QtGui import QFontMetrics, QGuiApplication, QPainter, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QButtonGroup,
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTabBar,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.sheet import Column, Kind, Sheet, Subject
from satview.analysis.statistics_sheets import sheet_titles
from satview.analysis.times.basis import TITLES
from satview.base.safe_text import tool_tip, visible_line
from satview.base.time import TimeWindow
from satview.gui.answer_table import SheetExport
from satview.gui.panel import Panel, PanelContext, Value, add_copy_and_export, select_row, set_up_rows
from satview.gui.swimlane.shares import longest_of
from satview.gui.theme import Theme, colour, icon
from satview.gui.widgets import PlainLabel
from satview.session.navigation import Navigation
from satview.session.open_trace import OpenTrace
from satview.session.panels.statistics import StatisticsView, sheet_text
from satview.session.range_view import NO_RANGE, Extent
from satview.timeline.lane_tree import LaneKind

# The item model of a sheet: sorted by any column, written when it shows.


Index = QModelIndex | QPersistentModelIndex
SHARE_ROLE: Final = int(Qt.ItemDataRole.UserRole)  # how much of its bar is filled, 0 to 1
_LEFT: Final = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
_RIGHT: Final = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_FUNNEL_PX: Final = 12
_DOWN: Final = "\N{BLACK DOWN-POINTING SMALL TRIANGLE} "
_UP: Final = "\N{BLACK UP-POINTING SMALL TRIANGLE} "
_Order = Qt.SortOrder


class SheetModel(QAbstractTableModel):
    """A sheet as a table. Columns that are empty in every row are left out.

    Attributes:
        sheet: What it shows; None = nothing yet.
        columns: The columns that show.
        order: Rows of the sheet from top to bottom.
        sort_key: Key of the column that it is sorted by; empty = as the sheet comes.
        is_descending: Largest first.
        sorting: Key of a sheet to the column that the user sorted it by, and whether that is the largest first.
        follows: True if numbers follow the filter: such columns get a funnel.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.sheet: Sheet | None = None
        self.columns: tuple[Column, ...] = ()
        self.order = np.empty(0, np.intp)
        self.sort_key = ""
        self.is_descending = True
        self.follows = False
        self.sorting: dict[str, tuple[str, bool]] = {}
        self._scale: dict[str, float] = {}
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        self._funnel = icon("filter", theme, _FUNNEL_PX)

    def set_sheet(self, sheet: Sheet, follows: bool) -> None:
        """Show another sheet, sorted as the user had it."""
        self.beginResetModel()
        self.sheet, self.follows = sheet, follows
        self.columns = tuple(column for column in sheet.columns if _says_something(column))
        self._scale = {column.key: _full(column) for column in self.columns if column.kind is Kind.SHARE}
        self.sort_key, self.is_descending = self.sorting.get(sheet.key, (sheet.sort_key, True))
        if self.sort_key not in {column.key for column in self.columns}:
            self.sort_key = ""
        self.order = self._ordered()
        self.endResetModel()

    def sort(self, section: int, order: _Order = _Order.AscendingOrder) -> None:
        """Sort by a column; -1 = as the sheet comes."""
        if self.sheet is None or section >= len(self.columns):
            return
        key = self.columns[section].key if section >= 0 else ""
        descending = order is _Order.DescendingOrder
        if (key, descending) == (self.sort_key, self.is_descending):
            return
        self.layoutAboutToBeChanged.emit()
        old = self.persistentIndexList()
        rows = [int(self.order[index.row()]) for index in old]
        self.sort_key, self.is_descending = key, descending
        self.sorting[self.sheet.key] = (key, descending)
        self.order = self._ordered()
        position = np.argsort(self.order)
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.columns) - 1)
        self.changePersistentIndexList(
            old, [self.index(int(position[row]), index.column()) for row, index in zip(rows, old, strict=True)]
        )
        self.layoutChanged.emit()

    def section_of(self, key: str) -> int:
        """Return where a column is, -1 if it does not show."""
        return next((i for i, column in enumerate(self.columns) if column.key == key), -1)

    def _ordered(self) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        assert self.sheet is not None
        if not self.sort_key:
            return np.arange(len(self.sheet))
        return self.sheet.column(self.sort_key).order(self.is_descending)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  -- Qt's own default
        """Return the rows of the sheet."""
        return 0 if parent.isValid() else len(self.order)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the columns that show."""
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, alignment, colour, tip or bar of a cell."""
        if not index.isValid():
            return None
        column, row = self.columns[index.column()], int(self.order[index.row()])
        if role == Qt.ItemDataRole.DisplayRole:
            return visible_line(column.marked(row))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if column.kind is Kind.TEXT else _RIGHT
        if role == Qt.ItemDataRole.ForegroundRole and has_position(column, row):
            return colour(self._theme.accent)
        if role == Qt.ItemDataRole.ToolTipRole:
            return tool_tip(_tip(column, row))
        if role == SHARE_ROLE and column.kind is Kind.SHARE:
            return max(0.0, float(column.values[row])) / self._scale[column.key]
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, tip, funnel, alignment or first order of a column's head."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.columns):
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{self._arrow(column)}{column.marked_title}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return tool_tip("\n".join(filter(None, (column.help, column.says_of_trust, self._says_of_filter(column)))))
        if role == Qt.ItemDataRole.DecorationRole and self.follows and column.follows:
            return self._funnel
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if column.kind is Kind.TEXT else _RIGHT
        if role == Qt.ItemDataRole.InitialSortOrderRole:
            # PySide loses an enumeration here; Qt needs its number.
            return (_Order.AscendingOrder if column.kind is Kind.TEXT else _Order.DescendingOrder).value
        return None

    def _arrow(self, column: Column) -> str:
        # Part of the text: Qt's own arrow would be drawn over it.
        if column.key != self.sort_key:
            return ""
        return _DOWN if self.is_descending else _UP

    def _says_of_filter(self, column: Column) -> str:
        if column.kind is Kind.TEXT or not self.follows:
            return ""
        return "Follows the filter." if column.follows else "Comes from all events, whatever the filter hides."


def has_position(column: Column, row: int) -> bool:
    """Return whether one can go to where a value happened."""
    return any(positions is not None and positions[row] >= 0 for positions in (column.cycles, column.events))


def _tip(column: Column, row: int) -> str:
    trust = column.trust_in(row)
    doubt = f"{TITLES[trust.mark]}: {trust.reason}." if trust.reason and column.text(row) else ""
    position = "A click goes there." if has_position(column, row) else ""
    return "\n".join(filter(None, (column.marked(row), doubt, position)))


def _says_something(column: Column) -> bool:
    """Return whether any value of a column is known: empty columns only take room."""
    if isinstance(column.values, tuple):
        return any(column.values)
    return not len(column.values) or bool(column.values.max() >= 0)


def _full(column: Column) -> float:
    """Return the share that fills a bar: all of it, or the largest where several CPUs make it more."""
    assert not isinstance(column.values, tuple)
    return max(1.0, float(column.values.max(initial=0)))


# Keeps the first column of a table in sight while the others are scrolled: without it numbers lose their names.


class FrozenColumn(QTableView):
    """A second view of the same model and selection that is over the left edge of a table once it is scrolled."""

    def __init__(self, table: QTableView) -> None:
        """Lie over a table that has its model and its looks."""
        super().__init__(table)
        self._table = table
        set_up_rows(self, table.model(), table.accessibleName(), table.verticalHeader().defaultSectionSize())
        self.setSelectionModel(table.selectionModel())
        self.setItemDelegate(table.itemDelegate())
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setVerticalScrollMode(table.verticalScrollMode())
        for scroll in (self.setHorizontalScrollBarPolicy, self.setVerticalScrollBarPolicy):
            scroll(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.horizontalHeader().sectionClicked.connect(self._on_head)
        self.horizontalHeader().setSectionsClickable(True)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        table.verticalScrollBar().valueChanged.connect(self.verticalScrollBar().setValue)
        self.verticalScrollBar().valueChanged.connect(table.verticalScrollBar().setValue)
        table.horizontalScrollBar().valueChanged.connect(self._position)
        table.horizontalHeader().sectionResized.connect(self._position)
        self.model().modelReset.connect(self._position)
        table.installEventFilter(self)
        self.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the size of the table."""
        if event.type() == QEvent.Type.Resize:
            self._position()
        return super().eventFilter(watched, event)

    @Slot()
    def _position(self) -> None:
        """Lie over the left edge, or be gone while the table is not scrolled."""
        table = self._table
        if table.horizontalScrollBar().value() == 0 or not self.model().columnCount():
            self.hide()
            return
        for column in range(1, self.model().columnCount()):
            self.setColumnHidden(column, True)
        width = table.columnWidth(0)
        self.setColumnWidth(0, width)
        self.horizontalHeader().setFixedHeight(table.horizontalHeader().height())
        frame = table.frameWidth()
        self.setGeometry(frame, frame, width, table.viewport().height() + table.horizontalHeader().height())
        self.verticalScrollBar().setValue(table.verticalScrollBar().value())
        self.show()
        self.raise_()

    @Slot(int)
    def _on_head(self, section: int) -> None:
        """Sort as a click on the head below would."""
        header = self._table.horizontalHeader()
        is_same = header.sortIndicatorSection() == section
        first, other = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder
        self._table.sortByColumn(section, other if is_same and header.sortIndicatorOrder() == first else first)


# From a row of statistics to what it is about, and to where its longest time happened.


_AROUND = 0.5  # of a range that is gone to, what shows on either side


class Positions:
    """Selects and shows what rows are about."""

    def __init__(self, opened: OpenTrace, navigation: Navigation) -> None:
        self._opened, self._navigation = opened, navigation

    def select(self, sheet: Sheet, row: int) -> None:
        """Select the lane of a thread, process or CPU, or an event of its kind; the view stays where it is."""
        lane = self.lane_of(sheet, row)
        if lane is not None:
            self._navigation.show_lane(lane)
        elif sheet.subject is Subject.EVENT:
            self._opened.select_event(int(sheet.subjects[row]), reveal=False)

    def go_to(self, sheet: Sheet, column: Column, row: int) -> None:
        """Go to where a value happened; without such a position to the lane or the event that the row is about."""
        cycles = int(column.cycles[row]) if column.cycles is not None else -1
        event = int(column.events[row]) if column.events is not None else -1
        lane = self.lane_of(sheet, row)
        if cycles >= 0 and (lane is not None or sheet.subject is Subject.NONE):
            if lane is not None:
                self._opened.lanes.reveal(lane)
                self._opened.select_at(lane, cycles)
            if column.kind is Kind.DURATION:
                self._fit(column, row, cycles)
            else:
                self._opened.viewport.reveal(cycles)
        elif event >= 0 or sheet.subject is Subject.EVENT:
            event = event if event >= 0 else int(sheet.subjects[row])
            self._navigation.show_event(event)
            if column.kind is Kind.DURATION and column.events is not None:
                start = int(self._opened.trace.events.time_cycles[event])
                self._fit(column, row, start)
                self._select_longest(event, TimeWindow(start, start + max(1, self._length(column, row))))
        elif lane is not None:
            self._navigation.show_lane(lane)

    def _select_longest(self, event: int, window: TimeWindow) -> None:
        """Select with an event what took most of the time that it begins: of a call the wait, not its entry's run."""
        opened, lane = self._opened, self._opened.lane_of_cause(event)
        if lane is None:
            return
        opened.lanes.reveal(lane)
        moment = longest_of(opened.timeline.lane(lane).spans, window, None)
        if moment is not None:
            opened.selection.select(event, lane, opened.timeline.lane(lane).at(moment))

    def _length(self, column: Column, row: int) -> int:
        return self._opened.trace.clock.cycles_of(int(column.values[row]))

    def _fit(self, column: Column, row: int, start_cycles: int) -> None:
        length = self._length(column, row)
        self._opened.viewport.fit(TimeWindow(start_cycles, start_cycles + max(1, length)), _AROUND)

    def row_of(self, sheet: Sheet, lane: int) -> int:
        """Return the first row that is about a lane, -1 for none."""
        info = self._opened.timeline.infos[lane]
        subject, kind = {
            Subject.THREAD: (info.thread, LaneKind.THREAD),
            Subject.PROCESS: (info.process, LaneKind.PROCESS),
            Subject.CPU: (info.cpu, LaneKind.CPU),
        }[sheet.subject]
        found = np.flatnonzero((sheet.subjects == subject) & (info.kind is kind))
        return int(found[0]) if len(found) else -1

    def lane_of(self, sheet: Sheet, row: int) -> int | None:
        """Return the lane that a row is about, None if it is about none."""
        subject, opened = int(sheet.subjects[row]), self._opened
        if sheet.subject is Subject.THREAD:
            return opened.lane_of_thread(subject)
        if sheet.subject is Subject.CPU:
            return opened.lane_of_cpu(subject)
        if sheet.subject is Subject.PROCESS:
            return next(
                (
                    info.index
                    for info in opened.timeline.infos
                    if info.kind is LaneKind.PROCESS and info.process == subject
                ),
                None,
            )
        return None


# Draws shares: a slim bar under the number.


_HEIGHT_PX: Final = 3
_MARGIN_PX: Final = 6


class ShareBar(QStyledItemDelegate):
    """Draws cells that have a share as text over a bar, all others as usual."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.theme = theme

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw one cell."""
        super().paint(painter, option, index)
        share = index.data(SHARE_ROLE)
        if share is None:
            return
        cell = QRectF(option.rect)
        track = QRectF(
            cell.left() + _MARGIN_PX, cell.bottom() - _HEIGHT_PX - 1, cell.width() - 2 * _MARGIN_PX, _HEIGHT_PX
        )
        painter.save()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(colour(self.theme.line))
        painter.drawRoundedRect(track, _HEIGHT_PX / 2, _HEIGHT_PX / 2)
        filled = track.width() * min(float(share), 1.0)
        if filled > 0:
            track.setWidth(max(filled, _HEIGHT_PX / 2))
            painter.setBrush(colour(self.theme.accent))
            painter.drawRoundedRect(track, _HEIGHT_PX / 2, _HEIGHT_PX / 2)
        painter.restore()


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
