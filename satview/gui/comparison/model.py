"""The table of what changed between two traces."""

from __future__ import annotations

import math
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from satview.answers.comparison import Change, change_text, difference, value_text
from satview.base.safe_text import tool_tip, visible_line
from satview.gui.theme import Theme, colour

Index = QModelIndex | QPersistentModelIndex
NAME, FIGURE, BEFORE, AFTER, CHANGE, WEIGHT = range(6)
TITLES: Final = ("What", "Figure", "Before", "After", "Change", "Weight")
_HELP: Final = (
    "Matched by name: a thread by its process, number and name, a call by its name.",
    "What was measured; counts and total times are per second.",
    "In the first trace.",
    "In the second trace.",
    "New and gone: only one of the traces has it.",
    "How much it changed: the difference as a share of the larger value, less for what is small among its kind.",
)
KINDS: Final = {
    "": "Everything", "process": "Processes", "thread": "Threads", "state": "States", "call": "Kernel calls",
    "message": "Messages", "latency": "Latencies", "interrupt": "Interrupts", "cpu": "CPUs",
}  # fmt: skip
_LEFT: Final = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
_RIGHT: Final = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_SORTED: Final = ("\N{BLACK UP-POINTING SMALL TRIANGLE}", "\N{BLACK DOWN-POINTING SMALL TRIANGLE}")


class ChangesModel(QAbstractTableModel):
    """Changes, sorted and sifted.

    Attributes:
        all: All changes, what changed most first.
        shown: The changes that show, in order.
        sort_column: Column that they are sorted by.
        is_descending: Largest first.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.all: tuple[Change, ...] = ()
        self._kind, self._words, self._every = "", "", False
        self.shown: tuple[Change, ...] = ()
        self.sort_column, self.is_descending = WEIGHT, True

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme

    def show(self, found: tuple[Change, ...]) -> None:
        """Show other changes, given with what changed most first."""
        self.all = found
        self._refresh()

    def sift(self, kind: str, words: str, *, every: bool) -> None:
        """Show some of them.

        Args:
            kind: Key of `KINDS`.
            words: All of these words are in what it is or in the figure.
            every: Every figure of a thing, not only the one that changed most.
        """
        self._kind, self._words, self._every = kind, words.casefold(), every
        self._refresh()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.DescendingOrder) -> None:
        """Sort by a column."""
        self.sort_column, self.is_descending = column, order == Qt.SortOrder.DescendingOrder
        self._refresh()

    def _refresh(self) -> None:
        words = self._words.split()
        found = [change for change in self.all if self._kind in ("", change.sheet) and
                 all(word in f"{change.name} {_figure(change)}".casefold() for word in words)]  # fmt: skip
        if not self._every:
            first: dict[tuple[str, str], Change] = {}
            for change in found:
                first.setdefault((change.sheet, change.name), change)
            found = list(first.values())
        if self.sort_column != WEIGHT or not self.is_descending:
            found.sort(key=self._key, reverse=self.is_descending)
        self.beginResetModel()
        self.shown = tuple(found)
        self.endResetModel()

    def _key(self, change: Change) -> tuple[float, str]:
        number = {
            BEFORE: change.before, AFTER: change.after, CHANGE: difference(change), WEIGHT: change.weight,
        }.get(self.sort_column, 0.0)  # fmt: skip
        text = {NAME: change.name, FIGURE: _figure(change)}.get(self.sort_column, "")
        return -1.0 if math.isnan(number) else number, text.casefold()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  -- Qt's own default
        """Return the number of changes that show."""
        return 0 if parent.isValid() else len(self.shown)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of columns."""
        return 0 if parent.isValid() else len(TITLES)

    def text(self, row: int, column: int) -> str:
        """Return what a cell says."""
        change = self.shown[row]
        if column == WEIGHT:
            return f"{change.weight:.0%}"
        if column in (BEFORE, AFTER):
            return value_text(change, change.before if column == BEFORE else change.after)
        return {NAME: change.name, FIGURE: _figure(change), CHANGE: change_text(change)}[column]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, tip, alignment or colour of a cell."""
        if not index.isValid():
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return visible_line(self.text(index.row(), index.column()))
        if role == Qt.ItemDataRole.ToolTipRole and index.column() in (NAME, FIGURE):
            return tool_tip(self.text(index.row(), index.column()))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if index.column() in (NAME, FIGURE) else _RIGHT
        change = self.shown[index.row()]
        if role == Qt.ItemDataRole.ForegroundRole:
            if index.column() == CHANGE and change.is_longer and change.ratio > 1.1:
                return colour(self._theme.error)
            return colour(self._theme.dim) if index.column() in (FIGURE, WEIGHT) else None
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return title, tip or alignment of a column's head."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            mark = f"{_SORTED[self.is_descending]} " if section == self.sort_column else ""
            return f"{mark}{TITLES[section]}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return tool_tip(_HELP[section])
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if section in (NAME, FIGURE) else _RIGHT
        return None


def _figure(change: Change) -> str:
    return f"{KINDS[change.sheet].lower() if change.sheet != 'cpu' else 'CPUs'}: {change.column.title}"
