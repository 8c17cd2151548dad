"""The panel of an answer: a table that sorts by its heads, unfolds, goes to what a row is about, copies and exports."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QSize, Qt, Slot
from PySide6.QtGui import QFontMetrics, QGuiApplication, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QStackedWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from satview.answers.table import Kind, Table
from satview.base.time import TimeWindow
from satview.gui.answer_table.model import AnswerModel
from satview.gui.panel import PanelContext
from satview.gui.plain_label import Notice
from satview.gui.row_table import add_copy_and_export, set_up_rows
from satview.gui.sheet_export import SheetExport
from satview.gui.table_panel import TablePanel
from satview.session.highlight import of_row, window_of

_PADDING_PX: Final = 24
_MEASURED_ROWS: Final = 24
_LEAST_PX, _WIDEST_PX = 48, 260
_CELL_PX, _NEAR_PX = 6, 4  # padding of a cell; how far beside the sign a click may be
_COPY_ROWS_MAX: Final = 10_000
_MARGIN: Final = 0.25  # on both sides of what is shown of a row
_SAMPLE: Final = "a server 2 (work)"  # names are not cut when other rows come


class _Wrapped(QStyledItemDelegate):
    """Cells of sentences that are as tall as their text: Qt forgets the padding of a style sheet as it wraps."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Return the size that a cell needs at the width that it has."""
        room = option.rect
        room.setWidth(room.width() - 2 * _CELL_PX)
        option.rect = room
        return super().sizeHint(option, index)


class AnswerPanel(TablePanel[AnswerModel]):
    """A table of one answer at a time, or a sentence in its place; subclasses get the answer and sort it.

    Attributes:
        shown_names: The columns to show, where not all have room; none = all. A last one of sentences is wrapped.
        model, table: The rows.
        message: Why there are none.
        stack: The table or the message.
    """

    shown_names: tuple[str, ...] = ()

    def __init__(self, context: PanelContext, name: str, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._area = context.area
        self._is_down, self._pressed_x = False, 0.0
        self.model = AnswerModel(context.theme, self, self.shown_names)
        self.table = QTableView(self)
        self._set_up_table(name, context.settings.number("events/row_height_px"))
        self._wrapped = _Wrapped(self)
        self.message = Notice("", self)
        self.stack = QStackedWidget(self)
        for page in (self.table, self.message):
            self.stack.addWidget(page)

    @abstractmethod
    def sort(self, name: str, *, descending: bool) -> None:
        """Show the rows in the order of a column."""

    def add_buttons(self, head: QHBoxLayout, statement: QLabel) -> None:
        """Put Copy and Export at the right of a line; a label says what came of an export."""
        self._csv = SheetExport(self, statement)
        self._buttons = add_copy_and_export(head, self, self._copy, self._export)

    def show_answer(self, answer: Table, sort_name: str, *, is_descending: bool) -> None:
        """Show an answer, which is sorted already."""
        self.model.show(answer, sort_name, is_descending=is_descending)
        if self.model.columns and self.model.columns[-1].kind is Kind.SENTENCE:  # few rows, each as tall as it needs
            self.table.setWordWrap(True)
            self.table.setItemDelegateForColumn(len(self.model.columns) - 1, self._wrapped)
            self.table.horizontalHeader().setStretchLastSection(True)
            self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
            # The heights depend on the width that is left, which a scroll bar changes after they were taken.
            self.table.horizontalHeader().sectionResized.connect(
                self.table.resizeRowsToContents, Qt.ConnectionType.UniqueConnection
            )
        self._fit_columns()

    def show_page(self, why_empty: str) -> None:
        """Show the table, or why there is none."""
        self.message.setText(why_empty)
        self.stack.setCurrentWidget(self.message if why_empty else self.table)
        for button in self._buttons:
            button.setEnabled(not why_empty)

    def close_down(self) -> None:
        """Cancel the background task."""
        self._csv.close()

    def copied_text(self) -> str:
        """Return the selected rows, or the first ones, while the table has the focus."""
        return self._rows_as_text() if self.table.hasFocus() else ""

    def _rows_as_text(self) -> str:
        if self.model.answer is None:
            return ""
        selected = sorted(index.row() for index in self.table.selectionModel().selectedRows())
        rows = selected if len(selected) > 1 else range(min(self.model.rowCount(), _COPY_ROWS_MAX))
        return self.model.answer.lines(rows)

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._rows_as_text())

    @property
    def exported(self) -> Table | None:
        """The rows that Export writes: those that show."""
        return self.model.answer

    @Slot()
    def _export(self) -> None:
        if self.exported is not None:
            self._csv.save_table(self.exported, self._opened.trace.path)

    def _set_up_table(self, name: str, height_px: int) -> None:
        table = self.table
        set_up_rows(table, self.model, name, height_px)
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

    def _fit_columns(self) -> None:
        """Give every column the width of what its first rows say; measuring all would take a text from every row."""
        metrics, table = QFontMetrics(self.table.font()), self.table
        rows = range(min(self.model.rowCount(), _MEASURED_ROWS))
        for section, column in enumerate(self.model.columns):
            if column.kind is Kind.SENTENCE:
                continue  # it takes what the others leave
            texts = [str(self.model.index(row, section).data() or "") for row in rows]
            texts += [f"\N{BLACK DOWN-POINTING SMALL TRIANGLE} {column.title}"]
            texts += [_SAMPLE] if column.kind is Kind.THREAD else []
            width = max(map(metrics.horizontalAdvance, texts)) + _PADDING_PX
            table.setColumnWidth(section, min(max(width, _LEAST_PX), _WIDEST_PX))

    @Slot(int)
    def _on_head(self, section: int) -> None:
        column = self.model.columns[section]
        is_same = column.name == self.model.sort_name
        self.sort(column.name, descending=not self.model.is_descending if is_same else not column.kind.is_words)

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

    def _show(self, row: int) -> None:
        """Select the event of a row, and show its time and its way over the lanes."""
        if self.model.answer is None or not 0 <= row < self.model.rowCount():
            return
        shown, opened = of_row(self.model.answer, row), self._opened
        if shown.event < 0:
            self._fit(row)
            return
        # The first one is in view at last.
        lanes = [opened.lane_of_thread(thread) for thread in reversed(shown.threads)]
        for lane in lanes:
            if lane is not None:
                opened.lanes.reveal(lane)
        self._navigation.show_event(shown.event)
        for lane in lanes:
            if lane is not None:
                self._area.view.reveal_lane(lane)
        if shown.threads or shown.hops:
            opened.highlight.show(shown)
            opened.viewport.fit(window_of(opened.trace, shown), _MARGIN)
        else:
            self._fit(row)

    def _fit(self, row: int) -> None:
        """Show the time of a row, if it lasts."""
        if self.model.answer is not None and (span := self.model.answer.span(row)) is not None:
            self._opened.viewport.fit(TimeWindow(*span))

    def _toggle(self, row: int) -> None:
        if self.model.is_open(row):
            self.model.fold(row)
        else:
            self._unfold(row)

    def _unfold(self, row: int) -> None:
        self.model.unfold(row)
        if self.table.columnWidth(0) < (needed_px := min(self.table.sizeHintForColumn(0), _WIDEST_PX)):
            self.table.setColumnWidth(0, needed_px)

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
                self._unfold(row)
                return True
            if row >= 0 and event.key() == Qt.Key.Key_Left and self.model.is_open(row):
                self.model.fold(row)
                return True
        return super().eventFilter(watched, event)
