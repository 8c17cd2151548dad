"""The panel of what changed between two traces: a row for each figure, a click shows it in both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, QSignalBlocker, Qt, Slot
from PySide6.QtGui import QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QSplitter,
    QStackedWidget,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from satview.answers.comparison import Change, change_text, difference, value_text
from satview.base.safe_text import csv_text, tool_tip, visible_line
from satview.gui.panel import PanelContext, TablePanel, select_row, selected_ranges, set_up_rows
from satview.gui.statistics import Positions
from satview.gui.theme import Theme, colour
from satview.gui.widgets import Notice, PlainLabel
from satview.session.comparison import ChangesView, OverlaidView
from satview.session.navigation import Navigation
from satview.session.open_trace import OpenTrace
from satview.session.range_view import NO_RANGE, Extent

if TYPE_CHECKING:
    from satview.gui.comparison.overlay_plot import OverlayPlot


# The table of what changed between two traces.


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
        found = [change for change in self.all if self._kind in ("", change.by) and
                 all(word in f"{change.name} {_figure(change)}".casefold() for word in words)]  # fmt: skip
        if not self._every:
            first: dict[tuple[str, str], Change] = {}
            for change in found:
                first.setdefault((change.by, change.name), change)
            found = list(first.values())
        if self.sort_column != WEIGHT or not self.is_descending:
            found.sort(key=self._key, reverse=self.is_descending)
        found.sort(key=is_of_logger)  # it changed with the capture, not with the system
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
            whose = _OF_LOGGER if is_of_logger(self.shown[index.row()]) else ""
            return tool_tip(self.text(index.row(), index.column()) + whose)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if index.column() in (NAME, FIGURE) else _RIGHT
        change = self.shown[index.row()]
        if role == Qt.ItemDataRole.ForegroundRole and is_of_logger(change):
            return colour(self._theme.dim)
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


def is_of_logger(change: Change) -> bool:
    """Return whether a change is of the program that wrote the trace, which is listed after all others."""
    return change.name.split(" ", 1)[0].rsplit("/", 1)[-1] == _LOGGER


def _figure(change: Change) -> str:
    return f"{KINDS[change.by].lower() if change.by != 'cpu' else 'CPUs'}: {change.column.title}"


_LOGGER: Final = "tracelogger"
_OF_LOGGER: Final = "\nOf the logger itself, so it follows what was captured."
_ROW_PX: Final = 22
_WIDTHS_PX: Final = (300, 140, 80, 80, 80, 66)
_PLOT_PX: Final = 340
_EXTENTS: Final = {Extent.TRACE: "Whole traces", Extent.VIEW: "In view", Extent.RANGE: "Selected range"}
_NO_SECOND: Final = (
    "There is no second trace.\nFile > Compare with another trace (Ctrl+D) opens one beside this one: "
    "this one is before, the other one after a change."
)


class ComparisonPanel(TablePanel[ChangesModel]):
    """What changed from the first trace to the second.

    Attributes:
        view: What is worked out.
        overlaid: The durations behind the selected row.
        table, model: The rows.
        kind, words, every, extent: What of it shows.
        statement: Both traces, and how they are aligned.
        plot: The histograms; None until the first row is selected.
    """

    saved_fields = ("kind", "words", "every", "extent")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.setMinimumSize(120, 64)
        self._comparison = context.comparison
        self._second: tuple[OpenTrace, Navigation] | None = None
        self.view = ChangesView(context.comparison, self)
        self.overlaid = OverlaidView(self.view, self)
        self.plot: OverlayPlot | None = None
        self.model = ChangesModel(context.theme, self)
        self.table = QTableView(self)
        set_up_rows(self.table, self.model, "What changed", _ROW_PX)
        self._set_up_table()
        self._stack = QStackedWidget(self)
        self.message = Notice(self)
        self._split = QSplitter(Qt.Orientation.Horizontal, self)
        self._split.setChildrenCollapsible(False)
        self._split.addWidget(self.table)
        self._plots = QStackedWidget(self)
        self._plots.setMinimumWidth(160)
        self._no_plot = Notice("A row shows the durations behind it", self)
        self._plots.addWidget(self._no_plot)
        self._split.addWidget(self._plots)
        self._split.setStretchFactor(0, 1)
        self._split.setSizes([10 * _PLOT_PX, _PLOT_PX])
        self._stack.addWidget(self.message)
        self._stack.addWidget(self._split)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(self._head())
        layout.addWidget(self._stack, 1)
        self.view.changed.connect(self._on_view)
        self.overlaid.changed.connect(self._on_overlaid)
        context.comparison.changed.connect(self._on_comparison)
        self._on_comparison()

    def _set_up_table(self) -> None:
        head = self.table.horizontalHeader()
        head.setSectionsClickable(True)
        head.sectionClicked.connect(self._on_head)
        head.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        for column, width_px in enumerate(_WIDTHS_PX):
            if column != NAME:
                self.table.setColumnWidth(column, width_px)
        self.table.selectionModel().selectionChanged.connect(self._on_rows)
        self.table.clicked.connect(self._on_click)
        self.table.activated.connect(self._on_click)

    def _head(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setContentsMargins(8, 4, 8, 4)
        line.setSpacing(8)
        self.kind = QComboBox(self)
        self.kind.setAccessibleName("What of")
        for key, title in KINDS.items():
            self.kind.addItem(title, key)
        self.extent = QComboBox(self)
        self.extent.setAccessibleName("Part of the traces")
        for extent, title in _EXTENTS.items():
            self.extent.addItem(title, extent)
        self.words = QLineEdit(self)
        self.words.setPlaceholderText("Words in the name or figure")
        self.words.setAccessibleName("Words in the name or figure")
        self.words.setClearButtonEnabled(True)
        self.every = QCheckBox("Every figure", self)
        self.every.setToolTip("All figures of a thread, call or state, not only the one that changed most.")
        self.copy = QPushButton("Copy", self)
        self.copy.setProperty("flat", "true")
        self.statement = PlainLabel(self)
        self.statement.setProperty("role", "dim")
        self.statement.setMinimumWidth(1)
        for widget in (self.kind, self.extent, self.words, self.every):
            line.addWidget(widget)
        self.words.setMaximumWidth(220)
        line.addWidget(self.statement, 1)
        line.addWidget(self.copy)
        self.kind.currentIndexChanged.connect(self._sift)
        self.words.textChanged.connect(self._sift)
        self.every.toggled.connect(self._sift)
        self.extent.currentIndexChanged.connect(self._on_extent)
        self.copy.clicked.connect(self._on_copy)
        return line

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        super().set_theme(theme)
        if self.plot is not None:
            self.plot.set_theme(theme)

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the trace while the panel is seen."""
        super().showEvent(event)
        self.view.watch(is_watched=True)

    def hideEvent(self, event: QHideEvent) -> None:
        """Rest."""
        self.view.watch(is_watched=False)
        super().hideEvent(event)

    def close_down(self) -> None:
        """Cancel the background task."""
        self.view.close()
        self.overlaid.close()

    def copied_text(self) -> str:
        """Return the selected rows, tab-separated under their titles, for Copy; empty while the table has no focus."""
        return self.rows_text() if self.table.hasFocus() else ""

    def rows_text(self) -> str:
        """Return the selected rows, or all, tab-separated under their titles."""
        selected = [row for rows in selected_ranges(self.table.selectionModel()) for row in rows]
        rows = selected or range(len(self.model.shown))
        lines = [TITLES, *([csv_text(self.model.text(row, column)) for column in range(len(TITLES))] for row in rows)]
        return "\n".join("\t".join(line) for line in lines)

    def go_to(self, change: Change) -> None:
        """Show what a row is about in both traces: where the longest is, else its lane or an event of its kind."""
        linked = self._comparison.is_linked
        self._comparison.is_linked = False  # each has its own position
        for side, positions in enumerate(self._positions()):
            if name := change.time_column(side):
                positions.go_to(change.tables[side], name, change.rows[side])
        self._comparison.is_linked = linked

    def _positions(self) -> list[Positions]:
        second = self._comparison.second
        found = [Positions(self._opened, self._navigation)]
        if second is not None:
            if self._second is None or self._second[0] is not second:
                self._second = second, Navigation(second, self)
            found.append(Positions(*self._second))
        return found

    def _select_first(self) -> None:
        """Select what changed most, so that its durations show; where it is shows at a click."""
        select_row(self.table, 0)
        self._on_rows()

    @Slot()
    def _sift(self) -> None:
        self.model.sift(str(self.kind.currentData()), self.words.text(), every=self.every.isChecked())
        self._select_first()

    @Slot(int)
    def _on_head(self, column: int) -> None:
        descending = column not in (NAME, FIGURE)
        if column == self.model.sort_column:
            descending = not self.model.is_descending
        order = Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
        self.model.sort(column, order)

    @Slot(int)
    def _on_extent(self, _index: int) -> None:
        self.view.set_extent(self.extent.currentData())

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.rows_text())

    @Slot(QModelIndex)
    def _on_click(self, index: QModelIndex) -> None:
        if index.isValid():
            self.go_to(self.model.shown[index.row()])

    @Slot()
    def _on_rows(self) -> None:
        row = self.table.currentIndex().row()
        self.overlaid.show_change(self.model.shown[row] if 0 <= row < len(self.model.shown) else None)

    @Slot()
    def _on_comparison(self) -> None:
        second = self._comparison.second
        if second is None:
            self._second = None
            self.statement.setText("")
        else:
            names = f"{self._opened.trace.path.name} \N{RIGHTWARDS ARROW} {second.trace.path.name}"
            said = (f"{names}, aligned by {self._comparison.aligned_by}: the second begins "
                    f"{self._comparison.offset_text} after the first")  # fmt: skip
            self.statement.setText(visible_line(said))
            self.statement.setToolTip(tool_tip(said))
        self._on_view()

    @Slot()
    def _on_view(self) -> None:
        with QSignalBlocker(self.extent):
            self.extent.setCurrentIndex(list(_EXTENTS).index(self.view.extent))
        changes = self.view.changes
        if self._comparison.second is None:
            said = _NO_SECOND
        elif self.view.error:
            said = self.view.error
        elif changes is None:
            said = "Comparing\N{HORIZONTAL ELLIPSIS}"
        elif self.view.extent is Extent.RANGE and self._opened.selection.time_range is None:
            said = NO_RANGE
        else:
            said = "" if changes.found else "Nothing is known of these parts of the traces."
        self.message.setText(said)
        self._stack.setCurrentWidget(self.message if said else self._split)
        shown = () if changes is None else changes.found
        if shown != self.model.all:
            self.model.show(shown)
            self._select_first()

    @Slot()
    def _on_overlaid(self) -> None:
        found = self.overlaid.overlaid
        if found is None or not any(map(len, found.sides)):
            self._no_plot.setText(self.overlaid.error or (
                "Looking for durations\N{HORIZONTAL ELLIPSIS}" if self.overlaid.is_busy
                else "A row shows the durations behind it" if not self.table.selectionModel().hasSelection()
                else "There are no durations behind this figure"
            ))  # fmt: skip
            self._plots.setCurrentWidget(self._no_plot)
            return
        if self.plot is None:
            from satview.gui.comparison.overlay_plot import OverlayPlot  # on first use: brings pyqtgraph

            self.plot = OverlayPlot(self._theme, self)
            self._plots.addWidget(self.plot)
        self.plot.show_overlaid(found)
        self._plots.setCurrentWidget(self.plot)
