"""The item model of a sheet: sorted by any column, written when it shows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from satview.analysis.sheets.sheet import Column, Kind, Sheet
from satview.analysis.trust import TITLES
from satview.base.safe_text import tool_tip, visible_line
from satview.gui.icons import icon
from satview.gui.theme import Theme, colour

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
