"""Base class of panels with a table of one answer: sorting, unfolding, links to the lanes, copying and export."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSize,
    Qt,
    QTimer,
    Slot,
)
from PySide6.QtGui import QFontMetrics, QGuiApplication, QKeyEvent, QMouseEvent, QPixmap
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLabel,
    QLayout,
    QSplitter,
    QStackedWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from satview.answers.table import Column, Kind, Known, Table
from satview.base.column_arrays import borrowed
from satview.base.safe_text import counted, tool_tip, visible_line
from satview.base.time import TimeWindow
from satview.formats.registry import source_files
from satview.gui import dialogs
from satview.gui.colours import state_colour
from satview.gui.panel import PanelContext, TablePanel, add_copy_and_export, select_row, selected_rows, set_up_rows
from satview.gui.theme import Theme, colour, icon
from satview.gui.widgets import Notice, line_up
from satview.session.highlight import of_row, window_of
from satview.session.panels.statistics import write_table
from satview.session.tasks import Task

# The item model of an answer; child rows unfold below their parent, and texts are formatted when shown.


Index = QModelIndex | QPersistentModelIndex
_LEFT: Final = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
_RIGHT: Final = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_DOWN: Final = "\N{BLACK DOWN-POINTING SMALL TRIANGLE}"
_UP: Final = "\N{BLACK UP-POINTING SMALL TRIANGLE}"
_CLOSED: Final = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
_STEP: Final = "\N{EM SPACE}"
_CACHED_ROWS: Final = 4096
_FUNNEL_PX: Final = 12
_SWATCH_PX: Final = 10
SHARE_ROLE: Final = int(Qt.ItemDataRole.UserRole)  # the filled part of a share's bar, 0 to 1
_Order = Qt.SortOrder


class AnswerModel(QAbstractTableModel):
    """Qt model of an answer with nested rows, as a flat table: child rows are inserted when their row is unfolded.

    A tree model would call Python for every row.

    Attributes:
        answer: The visible rows, including unfolded ones; None = nothing.
        names: Columns to show when the next answer is set; empty = all columns that have content.
        columns: The visible columns.
        sort_name: Column to sort by; empty = the order of the answer.
        is_descending: True if the largest value of that column comes first.
        follows: True if the answer counts only the events that the filter shows. The headings of the columns that
            this affects then have a funnel.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None, names: tuple[str, ...] = ()) -> None:
        super().__init__(parent)
        self.names, self.follows = names, False
        self.set_theme(theme)
        self.answer: Table | None = None
        self.columns: tuple[Column, ...] = ()
        self.sort_name, self.is_descending = "", True
        self._depth = np.empty(0, np.uint8)
        self._open: set[int] = set()  # rows that are unfolded
        self._texts = lru_cache(maxsize=_CACHED_ROWS)(borrowed(self._format))

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme, self._funnel = theme, icon("filter", theme, _FUNNEL_PX)

    def show(self, answer: Table | None, sort_name: str, *, is_descending: bool) -> None:
        """Show another answer, or none; the caller has sorted the rows by `sort_name`."""
        self.beginResetModel()
        self.answer, self.sort_name, self.is_descending = answer, sort_name, is_descending
        self.columns = ()
        if answer is not None:
            self.columns = tuple(map(answer.question.column, self.names)) or answer.whole().filled()
        self._depth = np.zeros(len(answer) if answer is not None else 0, np.uint8)
        self._open.clear()
        self._texts.cache_clear()
        self.endResetModel()

    def depth_at(self, row: int) -> int:
        """Return the nesting depth of a row, 0 for top rows."""
        return int(self._depth[row])

    def can_unfold(self, row: int) -> bool:
        """Return whether a row has child rows."""
        return self.answer is not None and len(self.answer.children(row)) > 0

    def is_open(self, row: int) -> bool:
        """Return whether a row is unfolded."""
        return row in self._open

    def unfold(self, row: int) -> None:
        """Show the child rows of a row."""
        if self.answer is None or self.is_open(row) or not self.can_unfold(row):
            return
        children = self.answer.children(row)
        self._open.add(row)
        self._emit_row_changed(row)
        self.beginInsertRows(QModelIndex(), row + 1, row + len(children))
        self.answer = self.answer.at(np.insert(self.answer.positions, row + 1, children))
        self._depth = np.insert(self._depth, row + 1, np.full(len(children), self._depth[row] + 1, np.uint8))
        self._open = {other + len(children) if other > row else other for other in self._open}
        self._texts.cache_clear()
        self.endInsertRows()

    def fold(self, row: int) -> None:
        """Hide all rows below a row."""
        if self.answer is None or not self.is_open(row):
            return
        count = self._below(row)
        self.beginRemoveRows(QModelIndex(), row + 1, row + count)
        hidden = slice(row + 1, row + 1 + count)
        self.answer = self.answer.at(np.delete(self.answer.positions, hidden))
        self._depth = np.delete(self._depth, hidden)
        self._open = {other - count if other > row else other for other in self._open
                      if other <= row or other > row + count}  # fmt: skip
        self._texts.cache_clear()
        self.endRemoveRows()
        self._open.discard(row)
        self._emit_row_changed(row)

    def _below(self, row: int) -> int:
        """Return the number of visible rows below an unfolded row."""
        back = np.flatnonzero(self._depth[row + 1 :] <= self._depth[row])
        return int(back[0]) if len(back) else len(self._depth) - row - 1

    def _emit_row_changed(self, row: int) -> None:
        self._texts.cache_clear()
        self.dataChanged.emit(self.index(row, 0), self.index(row, 0))

    def _format(self, row: int) -> tuple[str, ...]:
        assert self.answer is not None
        texts = [self.answer.text(row, column.name) for column in self.columns]
        if self.answer.is_tree:
            sign = (_DOWN if self.is_open(row) else _CLOSED) if self.can_unfold(row) else _STEP
            texts[0] = f"{_STEP * self.depth_at(row)}{sign} {texts[0]}"
        return tuple(texts)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  -- Qt's own default
        """Return the number of visible rows, including unfolded ones."""
        return 0 if parent.isValid() else len(self._depth)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of columns."""
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, alignment, colour, icon or tool tip of a cell; the tip explains why a value is not exact."""
        if not index.isValid() or self.answer is None:
            return None
        row, column = index.row(), self.columns[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return visible_line(self._texts(row)[index.column()])
        if role == Qt.ItemDataRole.ToolTipRole:
            text, doubt = self._texts(row)[index.column()].strip(), self.answer.doubt(row, column.name)
            link_hint = "A click goes there." if self.answer.has_place(row, column.name) else ""
            return tool_tip("\n".join(filter(None, (text, doubt, *self._hidden(index), link_hint))))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if column.kind.is_words else _RIGHT
        if role == Qt.ItemDataRole.DecorationRole and column.kind is Kind.STATE:
            return self._swatch(self.answer.held(row, column.name))
        if role == Qt.ItemDataRole.ForegroundRole and index.column() == 0 and (tone := self.answer.tone(row)):
            return colour(self._theme.tone(tone))
        if role == Qt.ItemDataRole.ForegroundRole and (
            self._depth[row] or self.answer.known(row, column.name) is Known.UNKNOWN
        ):
            return colour(self._theme.dim)
        if role == Qt.ItemDataRole.ForegroundRole and self.answer.has_place(row, column.name):
            return colour(self._theme.accent)
        return self.answer.bar(row, column) if role == SHARE_ROLE else None

    def _hidden(self, index: Index) -> list[str]:
        """Return the sentences that a row has in hidden columns, for the tool tip of its first cell."""
        answer = self.answer
        if answer is None or index.column():
            return []
        return [answer.text(index.row(), column.name) for column in answer.question.columns
                if column.kind is Kind.SENTENCE and column.title and column not in self.columns]  # fmt: skip

    def _swatch(self, value: int) -> QPixmap:
        pixmap, rgb = QPixmap(_SWATCH_PX, _SWATCH_PX), state_colour(value, self._theme)
        pixmap.fill(colour(self._theme.base if rgb is None else rgb))
        return pixmap

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, tool tip, alignment or initial sort order of a column heading."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.columns):
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            if column.name != self.sort_name:
                return column.marked_title
            return f"{_DOWN if self.is_descending else _UP} {column.marked_title}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return tool_tip("\n".join(filter(None, (column.tip, self._says_of_filter(column)))))
        if role == Qt.ItemDataRole.DecorationRole and self.follows and column.follows_filter:
            return self._funnel
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if column.kind.is_words else _RIGHT
        if role == Qt.ItemDataRole.InitialSortOrderRole:
            # As a number, because PySide does not convert the enumeration here.
            return (_Order.AscendingOrder if column.kind.is_words else _Order.DescendingOrder).value
        return None

    def _says_of_filter(self, column: Column) -> str:
        if column.kind.is_words or not self.follows:
            return ""
        return "Follows the filter." if column.follows_filter else "Comes from all events, whatever the filter hides."

    def section_of(self, name: str) -> int:
        """Return the position of a column, or -1 if it is hidden."""
        return next((section for section, column in enumerate(self.columns) if column.name == name), -1)


# The panel of an answer.


_PADDING_PX: Final = 24
_MEASURED_ROWS: Final = 24
_LEAST_PX, _LEAST_WORDS_PX, _SCROLLED_WORDS_PX, _WIDEST_PX = 48, 120, 180, 260
_CELL_PX, _NEAR_PX = 6, 4  # padding of a cell; tolerance of clicks beside the fold sign
_ROW_GAP_PX: Final = 6  # between the wrapped sentences of two rows
_COPY_ROWS_MAX: Final = 10_000
_MARGIN: Final = 0.25  # margin on both sides when the lanes show a row
_SAMPLE: Final = "a server 2 (work)"  # least width of a column of threads, for names in later rows


class _Wrapped(QStyledItemDelegate):
    """Draws cells with wrapped sentences, in rows that are tall enough: Qt ignores the padding of the style sheet."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Return the size that a cell needs at its present width."""
        room = option.rect
        room.setWidth(room.width() - 2 * _CELL_PX)
        option.rect = room
        size = super().sizeHint(option, index)
        is_wrapped = size.height() > 2 * option.fontMetrics.lineSpacing()
        return size + QSize(0, _ROW_GAP_PX * is_wrapped)


class AnswerPanel(TablePanel[AnswerModel]):
    """A table of one answer, or a message instead; subclasses obtain and sort the answer.

    Attributes:
        shown_names: Columns to show; empty = all. If the last column has sentences, it is wrapped.
        widest_px: Limit of the automatic column width.
        keeps_unfolded: True if rows stay unfolded after the trace was read again; False if the subclass unfolds rows.
    """

    shown_names: tuple[str, ...] = ()
    widest_px = _WIDEST_PX
    keeps_unfolded = True

    def __init__(self, context: PanelContext, name: str, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._area = context.area
        self._is_down, self._pressed_x = False, 0.0
        self._needed_px: dict[int, int] = {}  # width that each column needs
        self._fitted_px: dict[int, int] = {}  # width that it was given
        self._order = "", False  # sort column and whether descending; no column = the order of the answer
        self.model = AnswerModel(context.theme, self, self.shown_names)
        self.table = QTableView(self)
        self._fitting = QTimer(self, singleShot=True, interval=0)  # once after several columns or rows have changed
        self._fitting.timeout.connect(self._fit_rows)
        self._set_up_table(name, context.settings.number("events/row_height_px"))
        self._wrapped = _Wrapped(self)
        self.message = Notice("", self)
        self.stack = QStackedWidget(self)
        for page in (self.table, self.message):
            self.stack.addWidget(page)

    def sort(self, name: str, *, descending: bool) -> None:
        """Sort the rows by a column."""
        self._order = name, descending
        self._fill()

    def _fill(self) -> None:
        """Show the current answer, if any, in the order that the user selected. Subclasses implement this."""

    def _show_in_order(self, answer: Table) -> None:
        """Show an answer sorted by the column that the user selected; if there is none, in the answer's order."""
        name, descending = self._order
        self.show_answer(answer.sorted_by(name, descending) if name else answer, name, is_descending=descending)

    def _lay_out(self, *parts: QLayout | QWidget) -> None:
        """Lay out parts one below the other without gaps; tables and splitters take the remaining height."""
        stretched = [(part, int(isinstance(part, QStackedWidget | QSplitter))) for part in parts]
        line_up(QVBoxLayout(self), *stretched, margins=(0, 0, 0, 0), spacing=0)

    def add_buttons(self, head: QHBoxLayout, statement: QLabel) -> None:
        """Add the buttons Copy and Export to the layout `head`; the label `statement` shows the result of an export."""
        self._statement = statement
        self._export_task = Task(self, self._on_exported, self._on_not_exported)
        self._buttons = add_copy_and_export(head, self, self._copy, self._export)

    def show_answer(self, answer: Table, sort_name: str, *, is_descending: bool) -> None:
        """Show an answer in the table; the caller has sorted the rows by `sort_name`.

        If a file that grows was read again, the same row stays selected, and the same rows stay unfolded.
        """
        before = self.model.answer
        of_one = before is not None and before.has_trace and answer.has_trace  # a comparison is of two
        is_longer = before is not None and of_one and before.trace is not answer.trace
        rows = [row for row in range(self.model.rowCount()) if self.model.is_open(row)] if is_longer else []
        current = self.table.currentIndex()  # not selected if the table only has the keyboard
        is_selected = is_longer and self.table.selectionModel().isSelected(current)
        unfolded, selected = (list(map(self._key, chosen)) for chosen in (rows, [current.row()] * is_selected))
        self.model.show(answer, sort_name, is_descending=is_descending)
        if self._has_sentences():
            self.table.setWordWrap(True)
            self.table.setItemDelegateForColumn(len(self.model.columns) - 1, self._wrapped)
            self.table.horizontalHeader().setStretchLastSection(True)
        self._fit_columns()
        if self.keeps_unfolded:
            for row in sorted({row for row in map(self._row_of, unfolded) if row >= 0}, reverse=True):
                self.model.unfold(row)
        for row in map(self._row_of, selected):
            if row >= 0:
                select_row(self.table, row)

    def _key(self, row: int) -> tuple[str, int]:
        """Return first text and start time (-1 if none) of a row, by which the row is found again in a new answer."""
        answer = self.model.answer
        assert answer is not None
        name = next((column.name for column in self.model.columns if column.kind.is_words), "")
        return (answer.text(row, name) if name else ""), (answer.held(row, "start") if self._has_starts else -1)

    def _row_of(self, key: tuple[str, int]) -> int:
        """Return the first row with a key returned by `_key`; -1 = none."""
        answer = self.model.answer
        assert answer is not None
        starts = answer[f"{answer.question.column('start').sql_name}_cycles"] if self._has_starts else None
        rows = range(len(answer)) if starts is None else np.flatnonzero(starts == key[1]).tolist()
        return next((row for row in rows if self._key(row) == key), -1)

    @property
    def _has_starts(self) -> bool:
        return self.model.answer is not None and any(
            column.name == "start" for column in self.model.answer.question.columns
        )

    def show_page(self, why_empty: str) -> None:
        """Show the table, or a message if `why_empty` is not empty."""
        self.message.setText(why_empty)
        self.stack.setCurrentIndex(1 if why_empty else 0)
        for button in self._buttons:
            button.setEnabled(not why_empty)

    def copied_text(self) -> str:
        """Return the selected rows (without any, all up to `_COPY_ROWS_MAX`) if the table has the focus; else ""."""
        return self._rows_as_text(1) if self.table.hasFocus() else ""

    def _rows_as_text(self, least: int = 2) -> str:
        """Return the selected rows as text if there are at least `least`; else all rows, at most `_COPY_ROWS_MAX`.

        The button Copy ignores a single selected row, because a panel itself selects the row of the selected lane.
        """
        selected = selected_rows(self.table)
        if self.model.answer is None or len(selected) < least:
            return self._all_as_text()
        return self.model.answer.lines(selected)

    def _all_as_text(self) -> str:
        answer = self.model.answer
        return answer.lines(range(min(self.model.rowCount(), _COPY_ROWS_MAX))) if answer is not None else ""

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._rows_as_text())

    @property
    def exported(self) -> Table | None:
        """The rows that the button Export writes; None = nothing."""
        return self.model.answer

    @Slot()
    def _export(self) -> None:
        if (table := self.exported) is None:
            return
        trace_path = self._opened.trace.path
        path = dialogs.ask_save(self, Path(f"{trace_path.stem}-{table.question.name}.csv"), "CSV (*.csv)")
        if path is not None:
            self._export_task.start(partial(write_table, table, path, source_files(trace_path)))

    @Slot(object)
    def _on_exported(self, count: object) -> None:
        if isinstance(count, int):
            self._statement.setText(f"Wrote {counted(count, 'row')}")

    @Slot(object)
    def _on_not_exported(self, error: Exception) -> None:
        self._statement.setText(str(error))

    def _set_up_table(self, name: str, height_px: int) -> None:
        table = self.table
        set_up_rows(table, self.model, name, height_px)
        table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        header = table.horizontalHeader()
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(False)  # the model writes it into the title
        header.sectionClicked.connect(self._on_head)
        # Row heights depend on the last column's width, which each other column and a scroll bar may change.
        for changed in (header.sectionResized, table.verticalScrollBar().valueChanged, self.model.modelReset,
                        self.model.rowsInserted, self.model.rowsRemoved):  # fmt: skip
            changed.connect(self._fit_soon)
        table.clicked.connect(self._on_clicked)
        table.activated.connect(self._on_activated)
        table.selectionModel().currentRowChanged.connect(self._on_current)
        table.customContextMenuRequested.connect(self._on_menu)
        table.installEventFilter(self)
        table.viewport().installEventFilter(self)

    def _has_sentences(self) -> bool:
        """Return whether the last column has sentences, which are wrapped."""
        return bool(self.model.columns) and self.model.columns[-1].kind is Kind.SENTENCE

    @Slot()
    def _fit_soon(self) -> None:  # not the timer's own slot, which would take a number of a signal for its interval
        self._fitting.start()

    @Slot()
    def _fit_rows(self) -> None:
        """Make the rows on the screen as tall as their sentences; to measure hundreds at once would take seconds."""
        table, bottom_px = self.table, self.table.viewport().height()
        if not self._has_sentences():
            return
        current = table.currentIndex()
        is_seen = current.isValid() and 0 <= table.rowViewportPosition(current.row()) < bottom_px
        row = max(0, table.rowAt(0))
        while row < self.model.rowCount() and table.rowViewportPosition(row) < bottom_px:
            table.resizeRowToContents(row)
            row += 1
        if is_seen and table.visualRect(current).bottom() > bottom_px:  # rows above it have grown
            table.updateGeometries()  # otherwise the scroll bar still ends where the lower rows did
            table.scrollTo(current)

    def _fit_columns(self) -> None:
        """Set column widths from the texts of the first rows, since formatting all rows would take too long."""
        metrics = QFontMetrics(self.table.font())
        rows = range(min(self.model.rowCount(), _MEASURED_ROWS))
        self._needed_px = {}
        for section, column in enumerate(self.model.columns):
            if column.kind is Kind.SENTENCE:
                continue  # it takes the remaining width
            texts = [str(self.model.index(row, section).data() or "") for row in rows]
            texts += [f"\N{BLACK DOWN-POINTING SMALL TRIANGLE} {column.title}"]
            texts += [_SAMPLE] if column.kind is Kind.THREAD else []
            width = max(map(metrics.horizontalAdvance, texts)) + _PADDING_PX
            self._needed_px[section] = min(max(width, _LEAST_PX), self.widest_px)
        self._share_width()

    def _share_width(self) -> None:
        """Set column widths, with text columns narrower if the table has no room for all."""
        table, widths = self.table, self._needed_px.copy()
        words = [section for section in widths if self.model.columns[section].kind.is_words]
        missing_px = sum(widths.values()) - table.viewport().width()
        can_fit = sum(max(0, widths[section] - _LEAST_WORDS_PX) for section in words) >= missing_px
        least_px = _LEAST_WORDS_PX if can_fit else _SCROLLED_WORDS_PX  # names can be read where one has to scroll
        for section in sorted(words, key=widths.__getitem__, reverse=True):  # texts can be cut, numbers cannot
            cut_px = max(0, min(missing_px, widths[section] - least_px))
            widths[section] -= cut_px
            missing_px -= cut_px
        for section, width in widths.items():
            table.setColumnWidth(section, width)
        self._fitted_px = widths

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
        # Only for keys: clicks are handled by `_on_clicked`. Without a row before, the table has just got the focus.
        if index.isValid() and before.isValid() and self.table.hasFocus() and not self._is_down:
            self._show(index.row())

    def _show(self, row: int) -> None:
        """Select the event of a row, and show its time and links in the lanes."""
        if self.model.answer is None or not 0 <= row < self.model.rowCount():
            return
        shown, opened = of_row(self.model.answer, row), self._opened
        if shown.event < 0:
            self._fit(row)
            return
        # In reverse order, so that the first lane is visible in the end.
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
        """Fit the view to the time span of a row, if it has one."""
        if self.model.answer is not None and (span := self.model.answer.span(row)) is not None:
            self._opened.viewport.fit(TimeWindow(*span))

    def _toggle(self, row: int) -> None:
        if self.model.is_open(row):
            self.model.fold(row)
        else:
            self._unfold(row)

    def _unfold(self, row: int) -> None:
        self.model.unfold(row)
        if self.table.columnWidth(0) < (needed_px := min(self.table.sizeHintForColumn(0), self.widest_px)):
            self.table.setColumnWidth(0, needed_px)

    def _is_on_sign(self, index: QModelIndex) -> bool:
        """Return whether the mouse was pressed on the fold sign before the name, or to the left of the sign."""
        letter_px = QFontMetrics(self.table.font()).horizontalAdvance("\N{EM SPACE}")
        right_px = _CELL_PX + letter_px * (self.model.depth_at(index.row()) + 1) + _NEAR_PX
        return self._pressed_x - self.table.visualRect(index).left() <= right_px

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Fold and unfold rows with Left and Right; note where the mouse was pressed; refit columns on resize."""
        if watched is self.table.viewport() and isinstance(event, QMouseEvent):
            if event.type() == QEvent.Type.MouseButtonPress:
                self._is_down, self._pressed_x = True, event.position().x()
            elif event.type() == QEvent.Type.MouseButtonRelease:
                self._is_down = False
        if watched is self.table.viewport() and event.type() in (QEvent.Type.Resize, QEvent.Type.FontChange):
            self._fit_soon()
        # Refit only if the user has not resized a column.
        if (
            watched is self.table.viewport()
            and event.type() == QEvent.Type.Resize
            and self._fitted_px
            and self._fitted_px == {section: self.table.columnWidth(section) for section in self._fitted_px}
        ):
            self._share_width()
        is_tree = self.model.answer is not None and self.model.answer.is_tree
        if watched is self.table and is_tree and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            row = self.table.currentIndex().row()
            if row >= 0 and event.key() == Qt.Key.Key_Right and not self.model.is_open(row):
                self._unfold(row)
                return True
            if row >= 0 and event.key() == Qt.Key.Key_Left and self.model.is_open(row):
                self.model.fold(row)
                return True
        return super().eventFilter(watched, event)
