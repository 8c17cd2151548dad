"""The panel Statistics: a table per tab, for the trace, the view or the selected range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QPoint, QRectF, Qt, Slot
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QSizePolicy,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTabBar,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from satview.answers.statistics import statistics_titles
from satview.answers.table import SUBJECT, Kind, Table
from satview.base.safe_text import tool_tip
from satview.base.time import TimeWindow
from satview.gui.answer_table import SHARE_ROLE, AnswerPanel
from satview.gui.panel import PanelContext, Value, select_row, set_up_rows
from satview.gui.swimlane.shares import longest_of
from satview.gui.theme import Theme, colour
from satview.gui.widgets import ElidedLabel, line_up, named, push_button
from satview.session.navigation import Navigation
from satview.session.open_trace import OpenTrace
from satview.session.panels.statistics import Counted, StatisticsView
from satview.session.range_view import NO_RANGE, Extent
from satview.timeline.lane_tree import LaneKind

# Keeps the first column of a table visible while the others are scrolled.


class FrozenColumn(QTableView):
    """The first column of a table, drawn over the table's left edge; stays visible while the table is scrolled."""

    def __init__(self, table: QTableView) -> None:
        """Create the view above a table, with the table's model and appearance."""
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
        self.horizontalHeader().sectionClicked.connect(table.horizontalHeader().sectionClicked)  # sort the table
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
        """Adjust to the size of the table."""
        if event.type() == QEvent.Type.Resize:
            self._position()
        return super().eventFilter(watched, event)

    @Slot()
    def _position(self) -> None:
        """Place this view over the left edge of the table, or hide it while the table is not scrolled."""
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


# Navigation from rows of statistics to the lanes.


_AROUND = 0.5  # margin on both sides of a range that is shown, as a share of its length


class RowNavigator:
    """Goes from a table row to the row's thread, process, CPU or event in the lanes, or to the time of a value."""

    def __init__(self, opened: OpenTrace, navigation: Navigation) -> None:
        self._opened, self._navigation = opened, navigation

    def select(self, table: Table, row: int) -> None:
        """Select the lane of a row's thread, process or CPU, else an event of its kind, without moving the view."""
        lane = self.lane_of(table, row)
        if lane is not None:
            self._navigation.show_lane(lane)
        elif (event := table.event(row)) >= 0:
            self._opened.select_event(event, reveal=False)

    def go_to(self, table: Table, name: str, row: int) -> None:
        """Go to the time or event at which a value occurred; if the value has none, to the lane or event of the row."""
        moment, event, lane = table.moment(row, name), table.event(row, name), self.lane_of(table, row)
        is_length = table.question.column(name).kind is Kind.DURATION
        if moment >= 0 and (lane is not None or subject_kind(table) is None):
            if lane is not None:
                self._opened.lanes.reveal(lane)
                self._opened.select_at(lane, moment)
            if is_length:
                self._fit(moment, table.held(row, name))
            else:
                self._opened.viewport.reveal(moment)
        elif event >= 0 or table.event(row) >= 0:
            self._navigation.show_event(event if event >= 0 else table.event(row))
            if is_length and event >= 0:
                start = int(self._opened.trace.events.time_cycles[event])
                self._select_longest(event, self._fit(start, table.held(row, name)))
        elif lane is not None:
            self._navigation.show_lane(lane)

    def _select_longest(self, event: int, window: TimeWindow) -> None:
        """Select an event, its lane, and the longest interval of this lane in a window.

        The event of a call is its entry, whose own interval ends when the call begins to wait.
        """
        opened, lane = self._opened, self._opened.lane_of_cause(event)
        if lane is None:
            return
        opened.lanes.reveal(lane)
        moment = longest_of(opened.timeline.lane(lane).spans, window, None)
        if moment is not None:
            opened.selection.select(event, lane, opened.timeline.lane(lane).at(moment))

    def _fit(self, start_cycles: int, length_cycles: int) -> TimeWindow:
        """Show a time span with margins; return the span."""
        window = TimeWindow(start_cycles, start_cycles + max(1, length_cycles))
        self._opened.viewport.fit(window, _AROUND)
        return window

    def row_of(self, table: Table, lane: int) -> int:
        """Return the first row whose subject is the thread, process or CPU of a lane; -1 = none."""
        info, kind = self._opened.timeline.infos[lane], subject_kind(table)
        subjects = {LaneKind.THREAD: (Kind.THREAD, info.thread), LaneKind.PROCESS: (Kind.PROCESS, info.process),
                    LaneKind.CPU: (Kind.CPU, info.cpu)}  # fmt: skip
        rows = (row for row in range(len(table)) if (kind, table.held(row, SUBJECT)) == subjects.get(info.kind))
        return next(rows, -1)

    def lane_of(self, table: Table, row: int) -> int | None:
        """Return the lane of the thread, process or CPU that is the subject of a row; None = none."""
        kind, opened = subject_kind(table), self._opened
        if kind is Kind.THREAD:
            return opened.lane_of_thread(table.held(row, SUBJECT))
        if kind is Kind.CPU:
            return opened.lane_of_cpu(table.held(row, SUBJECT))
        if kind is Kind.PROCESS:
            process = table.held(row, SUBJECT)
            infos = (info for info in opened.timeline.infos if info.kind is LaneKind.PROCESS)
            return next((info.index for info in infos if info.process == process), None)
        return None


def subject_kind(table: Table) -> Kind | None:
    """Return the kind of subject that each row of a table has: THREAD, PROCESS, CPU or EVENT; None = none of these."""
    return next((column.kind for column in table.question.columns if column.name == SUBJECT), None)


# Bars below shares.


_HEIGHT_PX: Final = 3
_MARGIN_PX: Final = 6


class ShareBar(QStyledItemDelegate):
    """Draws a thin bar below the text of each cell with a share, as long as the share."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.theme = theme

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw a cell."""
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
_SORTED: Final = "sort "  # prefix, before the key of a table, of saved values: + or - and the sort column
_BAR_PX: Final = 2  # additional row height for the bar of a share
_EXTENT_TIPS: Final = {
    Extent.TRACE: "All of the trace",
    Extent.VIEW: "What the lanes show now",
    Extent.RANGE: "The selected range: drag over the lanes, or press R for the selected interval",
}


class StatisticsPanel(AnswerPanel):
    """Statistics of the open trace. They are computed only while the panel is visible."""

    saved_fields = ("tabs", "extents", "follows")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, "Statistics", parent)
        self.setMinimumSize(120, 64)
        self.view = self.watched = StatisticsView(self._opened, self)
        self._bars = ShareBar(context.theme, self)
        self._navigator = RowNavigator(self._opened, self._navigation)
        self._is_marking = False
        self._shown_table: Table | None = None
        self._sorting: dict[str, tuple[str, bool]] = {}  # the user's sort column and whether descending, by table key
        self._widths: dict[str, dict[str, int]] = {}
        self._add_bars_and_names(context.settings.number("events/row_height_px"))
        head, selectors = self._head(), self._selectors()
        self.add_buttons(head, self.statement)
        self._add_message_page()
        self._lay_out(head, selectors, self.stack)
        self.view.changed.connect(self._on_view)
        self._opened.selection.changed.connect(self._mark_selected)
        self._on_view()

    def saved_values(self) -> dict[str, Value]:
        """Return the selected tab, part of the trace, "Follow the filter", and the sort order of each table."""
        sorting = {f"{_SORTED}{table}": ("-" if descends else "+") + key
                   for table, (key, descends) in self._sorting.items()}  # fmt: skip
        return super().saved_values() | sorting

    def restore_values(self, values: Mapping[str, Value]) -> None:
        """Restore saved values."""
        for name, value in values.items():
            if name.startswith(_SORTED) and isinstance(value, str):
                self._sorting[name.removeprefix(_SORTED)] = value[1:], value.startswith("-")
        super().restore_values(values)

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        super().set_theme(theme)
        self._bars.theme = theme

    def sort(self, name: str, *, descending: bool) -> None:
        """Sort the rows by a column; the current row stays current."""
        answer = self.model.answer
        if answer is None:
            return
        current = self.table.currentIndex()
        position = answer.positions[current.row()] if current.isValid() else -1
        self._sorting[answer.question.name] = answer.question.column(name).key, descending
        self.show_answer(answer.whole().sorted_by(name, descending), name, is_descending=descending)
        assert self.model.answer is not None
        self._mark(np.flatnonzero(self.model.answer.positions == position))

    def _head(self) -> QHBoxLayout:
        self.tabs = named(QTabBar(self, expanding=False, drawBase=False, usesScrollButtons=True), "Kind of statistics")
        for key, title in statistics_titles().items():
            self.tabs.setTabData(self.tabs.addTab(title), key)
        self.tabs.currentChanged.connect(self._on_tab)
        return line_up(QHBoxLayout(), (self.tabs, 1), margins=(2, 0, 8, 0))

    def _selectors(self) -> QHBoxLayout:
        self.extents = QButtonGroup(self)
        for number, extent in enumerate(Extent):
            button = QToolButton(self)
            button.setText(extent.value)
            button.setToolTip(tool_tip(_EXTENT_TIPS[extent]))
            button.setCheckable(True)
            button.setChecked(extent is self.view.extent)
            self.extents.addButton(button, number)
        self.extents.idClicked.connect(self._on_extent)
        self.follows = QCheckBox("Follow the filter", self)
        self.follows.setToolTip(
            "Count only the events that the filter shows. Times of threads and CPUs never follow:\n"
            "they come from the lanes, and hiding events does not change who ran."
        )
        self.follows.toggled.connect(self.view.set_follows)
        self.statement = ElidedLabel(self)
        self.statement.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        return line_up(QHBoxLayout(), *self.extents.buttons(), 12, self.follows, 12, (self.statement, 1),
                       margins=(8, 1, 8, 2), spacing=2)  # fmt: skip

    def _add_bars_and_names(self, height_px: int) -> None:
        """Add the bars below shares, and the column of names that stays visible while the table is scrolled."""
        table = self.table
        table.setItemDelegate(self._bars)
        rows = table.verticalHeader()
        rows.setMinimumSectionSize(height_px + _BAR_PX)
        rows.setDefaultSectionSize(height_px + _BAR_PX)
        table.horizontalHeader().setSectionsMovable(True)
        self._names = FrozenColumn(table)
        self._names.customContextMenuRequested.connect(self._on_menu)
        self._names.clicked.connect(self._on_clicked)
        self._names.activated.connect(self._on_activated)

    def _add_message_page(self) -> None:
        """Add the page with the message and a button."""
        page = QWidget(self)
        self.count_all = push_button("Count all events", page, self._count_all)
        layout = QVBoxLayout(page)
        layout.addStretch()
        layout.addWidget(self.message)
        self.message.show()  # the stack hid it
        layout.addWidget(self.count_all, alignment=Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch()
        self.stack.addWidget(page)

    def _fit_columns(self) -> None:
        """Set column widths from the longest texts in the first rows, never narrower than before."""
        answer = self.model.answer
        assert answer is not None
        widths_px = self._widths.setdefault(answer.question.name, {})
        metrics = QFontMetrics(self.table.font())
        for section, column in enumerate(self.model.columns):
            rows = range(min(len(answer), _MEASURED_ROWS))
            texts = (column.marked_title + "   ", *(answer.text(row, column.name) for row in rows))
            width = min(max(metrics.horizontalAdvance(text) for text in texts) + 22, _WIDEST_PX)
            width += 10 if self.model.follows and column.follows_filter else 0
            widths_px[column.name] = max(width, widths_px.get(column.name, 0), 84 if column.kind is Kind.SHARE else 0)
            self.table.setColumnWidth(section, widths_px[column.name])

    @Slot(int)
    def _on_tab(self, number: int) -> None:
        self.view.show_table(self.tabs.tabData(number))

    @Slot(int)
    def _on_extent(self, number: int) -> None:
        self.view.set_extent(list(Extent)[number])

    @Slot()
    def _count_all(self) -> None:
        self.follows.setChecked(False)

    @Slot()
    def _on_view(self) -> None:
        """Show the table, or why there is none."""
        self.extents.button(list(Extent).index(self.view.extent)).setChecked(True)  # the view may have changed it
        counted, view = self.view.counted, self.view
        is_there = counted is not None and counted.table.question.name == view.key
        if is_there and counted is not None and counted.table is not self._shown_table:
            self._show_table(counted)
        reason = self._reason(is_there)
        self.show_page(reason)
        can_count = is_there and view.follows and not view.needs_range and not view.is_pending
        self.count_all.setVisible(bool(reason) and can_count)
        self._report()

    def _reason(self, is_there: bool) -> str:
        """Return why no table is shown, "" if one is; `is_there` if the requested table has been computed."""
        view = self.view
        if view.error:
            return view.error
        if view.needs_range:
            return NO_RANGE
        if not is_there:
            return "Counting\N{HORIZONTAL ELLIPSIS}"
        assert view.counted is not None
        return view.counted.table.says_why_empty if not len(view.counted.table) else ""

    def _report(self) -> None:
        """Show which events are counted, and warnings about losses."""
        view, parts = self.view, []
        if view.is_pending:
            parts.append("Counting\N{HORIZONTAL ELLIPSIS}")
        elif view.counted is not None and not view.needs_range:
            parts.append(view.counted.statement)
            parts += ["whatever the filter hides"] if view.ignores_filter else []
            parts += [view.counted.warning] if view.counted.warning else []
            parts += filter(None, [view.counted.table.question.note])
        self.statement.setText(" \N{MIDDLE DOT} ".join(parts))
        self.statement.setToolTip(tool_tip("\n".join(parts)))

    def _show_table(self, counted: Counted) -> None:
        """Show a new table in the user's sort order; keep the scroll position if the question is the same as before."""
        table, before = counted.table, self._shown_table
        is_same = before is not None and before.question.name == table.question.name
        bars = (self.table.verticalScrollBar(), self.table.horizontalScrollBar())
        positions = [bar.value() if is_same else 0 for bar in bars]
        self._shown_table, self.model.follows = table, counted.follows
        keys = {column.key: column.name for column in table.filled()}
        key, descending = self._sorting.get(table.question.name, ("", True))
        name = keys.get(key, "") if key else table.question.sort_name
        ordered = table.sorted_by(name, descending) if name else table
        self.show_answer(ordered, name, is_descending=descending)
        for bar, position in zip(bars, positions, strict=True):
            bar.setValue(position)
        self._mark_selected()

    @Slot()
    def _mark_selected(self) -> None:
        """Select the row of the selected lane."""
        table, lane, current = self.model.answer, self._opened.selection.lane, self.table.currentIndex()
        if table is None or lane is None or subject_kind(table) in (Kind.EVENT, None):
            return
        if current.isValid() and self._navigator.lane_of(table, current.row()) == lane:
            return
        row = self._navigator.row_of(self._shown_table or table, lane)
        self._mark(np.flatnonzero(table.positions == row))

    def _mark(self, rows: NDArray[np.intp]) -> None:
        """Select the first of the given rows, if any, without moving the lanes."""
        if len(rows):
            self._is_marking = True
            select_row(self.table, int(rows[0]))
            self._is_marking = False

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        """Go to the position of the clicked value if it has one (blue text); else select the subject of the row."""
        answer = self.model.answer
        if answer is not None and answer.has_place(index.row(), self.model.columns[index.column()].name):
            self._on_activated(index)
        else:
            self._select(index)

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        if self.model.answer is not None and index.isValid():
            self._navigator.go_to(self.model.answer, self.model.columns[index.column()].name, index.row())

    @Slot(QModelIndex, QModelIndex)
    def _on_current(self, index: QModelIndex, _before: QModelIndex) -> None:
        self._select(index)

    def _select(self, index: QModelIndex) -> None:
        if self.model.answer is not None and index.isValid() and not self._is_marking:
            self._navigator.select(self.model.answer, index.row())

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        """Select the subject of the row, and request the context menu, which acts on the selection."""
        self._select(self.table.indexAt(position))
        super()._on_menu(position)
