"""The item model of transactions: rows of columns, those nested in a row unfold below it; a text when it shows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from satview.base.memory import borrowed
from satview.base.safe_text import tool_tip, visible_line
from satview.gui.theme import Theme, colour
from satview.session.panels.transaction_table import RowColumn
from satview.session.panels.transaction_view import FoundRows

Index = QModelIndex | QPersistentModelIndex
_LEFT: Final = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
_RIGHT: Final = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_DOWN: Final = "\N{BLACK DOWN-POINTING SMALL TRIANGLE}"
_UP: Final = "\N{BLACK UP-POINTING SMALL TRIANGLE}"
_CLOSED: Final = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
_STEP: Final = "\N{EM SPACE}"
_CACHED_ROWS: Final = 4096
_Order = Qt.SortOrder


class TransactionModel(QAbstractTableModel):
    """The rows found, as a flat table in which rows unfold: a tree would call Python for every row it has.

    Attributes:
        found: What it shows; None = nothing.
        sort_key: Column that it is sorted by.
        is_descending: Largest first.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.found: FoundRows | None = None
        self.sort_key, self.is_descending = "", True
        self._positions = np.empty(0, np.int64)
        self._depth = np.empty(0, np.uint8)
        self._open: set[int] = set()  # rows that are unfolded
        self._texts = lru_cache(maxsize=_CACHED_ROWS)(borrowed(self._format))

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme

    def show(self, found: FoundRows | None, sort_key: str, *, is_descending: bool) -> None:
        """Show other rows."""
        self.beginResetModel()
        self.found, self.sort_key, self.is_descending = found, sort_key, is_descending
        self._positions = found.positions if found is not None else np.empty(0, np.int64)
        self._depth = np.zeros(len(self._positions), np.uint8)
        self._open.clear()
        self._texts.cache_clear()
        self.endResetModel()

    @property
    def columns(self) -> tuple[RowColumn, ...]:
        """The columns that show."""
        return self.found.source.columns if self.found is not None and self.found.source is not None else ()

    def position_at(self, row: int) -> int:
        """Return what a row shows: a position among the rows of the source."""
        return int(self._positions[row])

    def depth_at(self, row: int) -> int:
        """Return how deep a row is nested."""
        return int(self._depth[row])

    def can_unfold(self, row: int) -> bool:
        """Return whether rows are nested in a row."""
        source = self.found.source if self.found is not None else None
        return source is not None and source.has_children(self.position_at(row))

    def is_open(self, row: int) -> bool:
        """Return whether a row is unfolded."""
        return row in self._open

    def unfold(self, row: int) -> None:
        """Show the rows nested in a row below it."""
        if self.is_open(row) or not self.can_unfold(row):
            return
        assert self.found is not None
        assert self.found.source is not None
        children = self.found.source.children(self.position_at(row))
        self._open.add(row)
        self._say_changed(row)
        self.beginInsertRows(QModelIndex(), row + 1, row + len(children))
        self._positions = np.insert(self._positions, row + 1, children)
        self._depth = np.insert(self._depth, row + 1, np.full(len(children), self._depth[row] + 1, np.uint8))
        self._open = {other + len(children) if other > row else other for other in self._open}
        self._texts.cache_clear()
        self.endInsertRows()

    def fold(self, row: int) -> None:
        """Hide what is below a row."""
        if not self.is_open(row):
            return
        count = self._below(row)
        self.beginRemoveRows(QModelIndex(), row + 1, row + count)
        gone = slice(row + 1, row + 1 + count)
        self._positions, self._depth = np.delete(self._positions, gone), np.delete(self._depth, gone)
        self._open = {other - count if other > row else other for other in self._open
                      if other <= row or other > row + count}  # fmt: skip
        self._texts.cache_clear()
        self.endRemoveRows()
        self._open.discard(row)
        self._say_changed(row)

    def _below(self, row: int) -> int:
        """Return how many rows are below a row that is unfolded."""
        back = np.flatnonzero(self._depth[row + 1 :] <= self._depth[row])
        return int(back[0]) if len(back) else len(self._depth) - row - 1

    def _say_changed(self, row: int) -> None:
        self._texts.cache_clear()
        self.dataChanged.emit(self.index(row, 0), self.index(row, 0))

    def _format(self, row: int) -> tuple[str, ...]:
        assert self.found is not None
        assert self.found.source is not None
        position = self.position_at(row)
        texts = [self.found.source.text(position, column.key) for column in self.columns]
        if self.found.source.is_tree:
            sign = _DOWN if self.is_open(row) else _CLOSED
            is_parent = self.found.source.has_children(position)
            texts[0] = f"{_STEP * self.depth_at(row)}{sign if is_parent else _STEP} {texts[0]}"
        return tuple(texts)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  -- Qt's own default
        """Return the rows, unfolded ones included."""
        return 0 if parent.isValid() else len(self._positions)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the columns."""
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, alignment, colour or tip of a cell."""
        if not index.isValid():
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            text = self._texts(index.row())[index.column()]
            return visible_line(text) if role == Qt.ItemDataRole.DisplayRole else tool_tip(text.strip())
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if self.columns[index.column()].is_text else _RIGHT
        if role == Qt.ItemDataRole.ForegroundRole and self._depth[index.row()]:
            return colour(self._theme.dim)
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, tip, alignment or first order of a column's head."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.columns):
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            if column.key != self.sort_key:
                return column.title
            return f"{_DOWN if self.is_descending else _UP} {column.title}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return tool_tip(column.help)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if column.is_text else _RIGHT
        if role == Qt.ItemDataRole.InitialSortOrderRole:
            # PySide loses an enumeration here; Qt needs its number.
            return (_Order.AscendingOrder if column.is_text else _Order.DescendingOrder).value
        return None
