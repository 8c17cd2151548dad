"""The item model of the event list: rows are formatted when they show, once, and cached for a while."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Slot
from PySide6.QtGui import QColor

from satview.base.memory import borrowed
from satview.base.safe_text import tool_tip, visible_line
from satview.events.spec import arguments_text
from satview.gui.colours import class_colour
from satview.gui.theme import Theme, colour
from satview.session.events.event_forms import arguments_as
from satview.session.events.event_text import COLUMNS, list_row
from satview.session.open_trace import OpenTrace
from satview.store.trace import Trace

Index = QModelIndex | QPersistentModelIndex
_HEIGHT_LIMIT_PX: Final = 2**31 - 1  # Qt counts the height of all rows in 32 bits
_CACHED_ROWS: Final = 4096
_RIGHT: Final = frozenset({0, 1, 2, 3})
_CLASS_COLUMN: Final = 6
_ALIGN_RIGHT: Final = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_DISPLAY: Final = int(Qt.ItemDataRole.DisplayRole)
_ALIGNMENT: Final = int(Qt.ItemDataRole.TextAlignmentRole)
_FOREGROUND: Final = int(Qt.ItemDataRole.ForegroundRole)
_BACKGROUND: Final = int(Qt.ItemDataRole.BackgroundRole)
_TOOL_TIP: Final = int(Qt.ItemDataRole.ToolTipRole)
_DIMMED_ALPHA: Final = 215  # faint beside other rows, but still to be read: 4 times the light of the ground or more


class EventListModel(QAbstractTableModel):
    """The events that the filter shows, as a table.

    Rows x height must stay below 2^31 pixels; of a longer trace the model holds a part (`first_row` on), which
    `bring_in` moves.

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
        self._limit = _HEIGHT_LIMIT_PX // max(1, row_height_px)
        self._texts = lru_cache(maxsize=_CACHED_ROWS)(borrowed(self._format))
        opened.filters.view_changed.connect(self._on_rows)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme

    @property
    def total(self) -> int:
        """How many events pass the filter, in the model or not."""
        return len(self._trace.events) if self._rows is None else len(self._rows)

    def event_at(self, row: int) -> int:
        """Return the event of a row of the model."""
        position = self.first_row + row
        return position if self._rows is None else int(self._rows[position])

    def bring_in(self, event: int) -> int:
        """Return the row of an event, or of the next one that shows; moves the part held if it must; -1 if empty."""
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
        self.beginResetModel()
        self._trace, self._rows = trace, rows
        self.first_row = 0
        self._texts.cache_clear()
        self.endResetModel()

    def _grow(self, trace: Trace, rows: NDArray[np.uint32] | None, before: int) -> None:
        """Take a longer reading: rows come behind the last one, and any of the others may have changed."""
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
        """Return the rows held."""
        return 0 if parent.isValid() else min(max(0, self.total - self.first_row), self._limit)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of columns."""
        return 0 if parent.isValid() else len(COLUMNS)

    def data(self, index: Index, role: int = _DISPLAY) -> Any:
        """Return text, alignment or colour of a cell."""
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
        """Return the colour a filter gives to a row: text of dimmed events, ground of marked ones."""
        view = self._opened.filters.view
        if role == _FOREGROUND and view.dimmed is not None and view.dimmed[event]:
            return colour(self._theme.dim, _DIMMED_ALPHA)
        if role == _BACKGROUND and view.marked is not None and view.marked[event]:
            return colour(self._theme.hit, 48)
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = _DISPLAY) -> Any:
        """Return text or alignment of a column's head."""
        if orientation == Qt.Orientation.Horizontal and 0 <= section < len(COLUMNS):
            if role == _DISPLAY:
                return COLUMNS[section]
            if role == _ALIGNMENT:
                return (
                    _ALIGN_RIGHT
                    if section in _RIGHT
                    else int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
                )
        return None
