"""The item model of an answer: rows that are below a row unfold there; a text when it shows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from satview.answers.table import Column, Known, Table
from satview.base.memory import borrowed
from satview.base.safe_text import tool_tip, visible_line
from satview.gui.theme import Theme, colour

Index = QModelIndex | QPersistentModelIndex
_LEFT: Final = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
_RIGHT: Final = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_DOWN: Final = "\N{BLACK DOWN-POINTING SMALL TRIANGLE}"
_UP: Final = "\N{BLACK UP-POINTING SMALL TRIANGLE}"
_CLOSED: Final = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
_STEP: Final = "\N{EM SPACE}"
_CACHED_ROWS: Final = 4096
_Order = Qt.SortOrder


class AnswerModel(QAbstractTableModel):
    """An answer as a flat table in which rows unfold: a tree would call Python for every row it has.

    Attributes:
        answer: The rows that show, unfolded ones included; None = nothing.
        columns: The columns that show: those that say something in any row of the whole answer, of the requested ones.
        sort_name: Column that it is sorted by; empty = in the order of the answer.
        is_descending: Largest first.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None, names: tuple[str, ...] = ()) -> None:
        """Make an empty model.

        Args:
            theme: The colours.
            parent: Its owner.
            names: The columns to show, where not all have room; none = all.
        """
        super().__init__(parent)
        self._theme, self._names = theme, names
        self.answer: Table | None = None
        self.columns: tuple[Column, ...] = ()
        self.sort_name, self.is_descending = "", True
        self._depth = np.empty(0, np.uint8)
        self._open: set[int] = set()  # rows that are unfolded
        self._texts = lru_cache(maxsize=_CACHED_ROWS)(borrowed(self._format))

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme

    def show(self, answer: Table | None, sort_name: str, *, is_descending: bool) -> None:
        """Show other rows."""
        self.beginResetModel()
        self.answer, self.sort_name, self.is_descending = answer, sort_name, is_descending
        self.columns = self._columns_of(answer) if answer is not None else ()
        self._depth = np.zeros(len(answer) if answer is not None else 0, np.uint8)
        self._open.clear()
        self._texts.cache_clear()
        self.endResetModel()

    def _columns_of(self, answer: Table) -> tuple[Column, ...]:
        if self._names:
            return tuple(answer.question.column(name) for name in self._names)
        return answer.whole().filled()

    def depth_at(self, row: int) -> int:
        """Return how deep a row is nested."""
        return int(self._depth[row])

    def can_unfold(self, row: int) -> bool:
        """Return whether rows are below a row of the answer."""
        return self.answer is not None and len(self.answer.children(row)) > 0

    def is_open(self, row: int) -> bool:
        """Return whether a row is unfolded."""
        return row in self._open

    def unfold(self, row: int) -> None:
        """Show the rows below a row."""
        if self.answer is None or self.is_open(row) or not self.can_unfold(row):
            return
        children = self.answer.children(row)
        self._open.add(row)
        self._say_changed(row)
        self.beginInsertRows(QModelIndex(), row + 1, row + len(children))
        self.answer = self.answer.at(np.insert(self.answer.positions, row + 1, children))
        self._depth = np.insert(self._depth, row + 1, np.full(len(children), self._depth[row] + 1, np.uint8))
        self._open = {other + len(children) if other > row else other for other in self._open}
        self._texts.cache_clear()
        self.endInsertRows()

    def fold(self, row: int) -> None:
        """Hide what is below a row."""
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
        self._say_changed(row)

    def _below(self, row: int) -> int:
        """Return how many rows are below a row that is unfolded."""
        back = np.flatnonzero(self._depth[row + 1 :] <= self._depth[row])
        return int(back[0]) if len(back) else len(self._depth) - row - 1

    def _say_changed(self, row: int) -> None:
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
        """Return the rows, unfolded ones included."""
        return 0 if parent.isValid() else len(self._depth)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the columns."""
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, alignment, colour or tip of a cell; the tip says why a value is not exact."""
        if not index.isValid() or self.answer is None:
            return None
        row, column = index.row(), self.columns[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return visible_line(self._texts(row)[index.column()])
        if role == Qt.ItemDataRole.ToolTipRole:
            text, doubt = self._texts(row)[index.column()].strip(), self.answer.doubt(row, column.name)
            return tool_tip("\n".join(filter(None, (text, doubt))))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if column.kind.is_words else _RIGHT
        if role == Qt.ItemDataRole.ForegroundRole and index.column() == 0 and (tone := self.answer.tone(row)):
            return colour({"error": self._theme.error, "warning": self._theme.warning}.get(tone, self._theme.dim))
        if role == Qt.ItemDataRole.ForegroundRole and (
            self._depth[row] or self.answer.known(row, column.name) is Known.UNKNOWN
        ):
            return colour(self._theme.dim)
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, tip, alignment or first order of a column's head."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.columns):
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            if column.name != self.sort_name:
                return column.title
            return f"{_DOWN if self.is_descending else _UP} {column.title}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return tool_tip(column.tip)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if column.kind.is_words else _RIGHT
        if role == Qt.ItemDataRole.InitialSortOrderRole:
            # PySide loses an enumeration here; Qt needs its number.
            return (_Order.AscendingOrder if column.kind.is_words else _Order.DescendingOrder).value
        return None
