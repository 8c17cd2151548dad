"""The panel Marks: bookmarks and notes, with search; a click goes to a mark, notes are edited in place."""

from __future__ import annotations

from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QEvent, QModelIndex, QObject, QPersistentModelIndex, Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLineEdit,
    QStackedWidget,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from satview.base.column_arrays import borrowed
from satview.base.safe_text import csv_text, tool_tip, visible_line
from satview.base.time import format_duration, format_moment
from satview.gui.panel import PanelContext, TablePanel, select_row, set_up_rows
from satview.gui.theme import Theme
from satview.gui.widgets import Notice, PlainLabel, line_up
from satview.session.open_trace import OpenTrace
from satview.store.mark_file import TEXT_MAX, Mark

Index = QModelIndex | QPersistentModelIndex
_COLUMNS: Final = ("Time", "Length", "Note")
_NOTE: Final = 2
_WIDTHS_PX: Final = (190, 110)
_NONE: Final = (
    "Nothing is marked yet.\nPoint at a time and press M for a temporary mark, B for a bookmark, or Shift+M for a note."
)


class MarksModel(QAbstractTableModel):
    """The marks that match the search, in time order."""

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._words: tuple[str, ...] = ()
        self.marks: tuple[Mark, ...] = ()
        opened.marks.changed.connect(self.refresh)
        self.refresh()

    def set_theme(self, _theme: Theme) -> None:
        """Do nothing: rows have the table's own colours."""

    def look_for(self, text: str) -> None:
        """Show only marks whose note or time contains all words of a text."""
        self._words = tuple(text.casefold().split())
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show the current marks."""
        shown = tuple(mark for mark in self._opened.marks if self._has_words(mark))
        if shown != self.marks:
            self.beginResetModel()
            self.marks = shown
            self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  -- Qt's own default
        """Return the number of marks."""
        return 0 if parent.isValid() else len(self.marks)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of columns."""
        return 0 if parent.isValid() else len(_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return title or alignment of a column heading."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[section]
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignLeft if section == _NOTE else Qt.AlignmentFlag.AlignRight
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Return the flags of a cell; cells with notes are editable."""
        return super().flags(index) | (
            Qt.ItemFlag.ItemIsEditable if index.column() == _NOTE else Qt.ItemFlag.NoItemFlags
        )

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text and alignment of a cell."""
        if not index.isValid():
            return None
        mark = self.marks[index.row()]
        if role == Qt.ItemDataRole.EditRole:
            return mark.text
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(mark, index.column())
        if role == Qt.ItemDataRole.ToolTipRole and index.column() == _NOTE:
            return tool_tip(mark.text)
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() != _NOTE:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Change the note of a mark."""
        mark = self.marks[index.row()]
        if role != Qt.ItemDataRole.EditRole or str(value) == mark.text:
            return False
        self._opened.marks.replace(mark, Mark(mark.start_cycles, mark.end_cycles, str(value)[:TEXT_MAX]))
        return True

    def text(self, mark: Mark, column: int) -> str:
        """Return the text of the cell of a mark in a column."""
        clock = self._opened.trace.clock
        if column == 0:
            return format_moment(mark.start_cycles, clock)
        if column == 1:
            length = mark.end_cycles - mark.start_cycles
            return format_duration(clock.duration_ns(length)) if length else ""
        return visible_line(mark.text) or ("temporary mark" if mark.is_temporary else "bookmark")

    def _has_words(self, mark: Mark) -> bool:
        text = f"{self.text(mark, 0)} {self.text(mark, _NOTE)}".casefold()
        return all(word in text for word in self._words)


class MarksPanel(TablePanel[MarksModel]):
    """The marks as a table, with a search field."""

    saved_fields = ("line",)

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.setMinimumSize(120, 64)
        self.model = MarksModel(self._opened, self)
        self.table = QTableView(self)
        self.line = QLineEdit(self, placeholderText="Find a note", clearButtonEnabled=True)
        self.line.textChanged.connect(borrowed(self.model.look_for))
        self.count = PlainLabel(self, role="dim")
        self._empty_notice = Notice(_NONE, self)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.table)
        self._stack.addWidget(self._empty_notice)
        head = line_up(QHBoxLayout(), (self.line, 1), self.count, margins=(8, 4, 8, 4), spacing=10)
        line_up(QVBoxLayout(self), head, (self._stack, 1), margins=(0, 0, 0, 0), spacing=0)
        self._set_up_table(context.settings.number("events/row_height_px"))
        self.model.modelReset.connect(self._on_reset)
        self._opened.marks.changed.connect(self._follow)
        self._on_reset()

    def copied_text(self) -> str:
        """Return the visible marks as tab-separated text with column titles, if the table has the focus."""
        if not self.table.hasFocus():
            return ""
        rows = [
            [csv_text(self.model.text(mark, column)) for column in range(len(_COLUMNS))] for mark in self.model.marks
        ]
        return "\n".join("\t".join(row) for row in [list(_COLUMNS), *rows])

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Handle Return (go to the mark) and Delete (remove it) in the table."""
        if event.type() not in (QEvent.Type.KeyPress, QEvent.Type.ShortcutOverride) or not isinstance(event, QKeyEvent):
            return False
        row = self.table.currentIndex().row()
        if event.key() not in (Qt.Key.Key_Delete, Qt.Key.Key_Return, Qt.Key.Key_Enter) or row < 0:
            return False
        event.accept()
        if event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Delete:
            self._opened.marks.remove(self.model.marks[row])
            select_row(self.table, min(row, self.model.rowCount() - 1))
        elif event.type() == QEvent.Type.KeyPress:
            self._go_to(row)
        return True

    def _set_up_table(self, height_px: int) -> None:
        table = self.table
        set_up_rows(table, self.model, "Marks and notes", height_px)
        table.horizontalHeader().setStretchLastSection(True)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        triggers = QAbstractItemView.EditTrigger
        table.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        table.clicked.connect(self._on_clicked)
        table.customContextMenuRequested.connect(self._on_menu)
        table.installEventFilter(self)
        for column, width_px in enumerate(_WIDTHS_PX):
            table.setColumnWidth(column, width_px)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        self._go_to(index.row())

    def _go_to(self, row: int) -> None:
        mark, opened = self.model.marks[row], self._opened
        if not opened.viewport.window.contains(mark.start_cycles) or mark.end_cycles > opened.viewport.window.end:
            self._navigation.show_mark(mark)
        opened.marks.select(mark)

    @Slot()
    def _on_reset(self) -> None:
        total = len(self._opened.marks)
        self._stack.setCurrentIndex(0 if self.model.marks or total else 1)
        self.count.setText(f"{len(self.model.marks):,} of {total:,}" if total else "")
        self.count.setVisible(bool(total))
        self._follow()

    @Slot()
    def _follow(self) -> None:
        """Select the row of the selected mark."""
        selected = self._opened.marks.selected
        if selected is None:
            self.table.clearSelection()
        elif selected in self.model.marks:
            select_row(self.table, self.model.marks.index(selected))
