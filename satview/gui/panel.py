"""What every panel of the workspace has, and what it is made with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Protocol, TypeVar

from PySide6.QtCore import QAbstractItemModel, QItemSelectionModel, QPoint, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QTabBar,
    QTableView,
    QTabWidget,
    QWidget,
)

from satview.gui.theme import Theme, css
from satview.session.commands import PanelRow
from satview.session.navigation import Navigation

if TYPE_CHECKING:
    from satview.gui.swimlane.area import SwimlaneArea
    from satview.session.comparison import Comparison
    from satview.session.navigation import Navigation
    from satview.session.open_trace import OpenTrace
    from satview.session.questions import WatchedAnswer
    from satview.session.settings import Settings


# Values of fields of a panel by name, stored from one opening of a trace to the next.


Value = str | int | bool


def values_of(panel: QWidget, names: Iterable[str]) -> dict[str, Value]:
    """Return the values of fields.

    Args:
        panel: What has the fields.
        names: Names of attributes, which may have dots in them.
    """
    return {name: _value(attrgetter(name)(panel)) for name in names}


def put_values(panel: QWidget, names: Iterable[str], values: Mapping[str, Value]) -> None:
    """Give fields values, as if the user did; values of another type, or that a field does not have, are left out."""
    for name in names:
        value = values.get(name)
        if value is not None and value != _value(field := attrgetter(name)(panel)):
            _put(field, value)


def _value(field: object) -> Value:
    if isinstance(field, QTabBar | QTabWidget):
        return field.currentIndex()
    if isinstance(field, QComboBox):
        return field.currentText()
    if isinstance(field, QCheckBox):
        return field.isChecked()
    if isinstance(field, QLineEdit):
        return field.text()
    if isinstance(field, QSpinBox):
        return field.value()
    if isinstance(field, QButtonGroup):
        return field.checkedId()
    assert isinstance(field, QPlainTextEdit), f"{type(field).__name__} has no value to keep"
    return field.toPlainText()


def _put(field: object, value: Value) -> None:
    if isinstance(field, QTabBar | QTabWidget) and type(value) is int and 0 <= value < field.count():
        field.setCurrentIndex(value)
    elif isinstance(field, QComboBox) and isinstance(value, str):
        index = field.findText(value)
        if index >= 0:
            field.setCurrentIndex(index)
    elif isinstance(field, QCheckBox) and isinstance(value, bool):
        field.setChecked(value)
    elif isinstance(field, QLineEdit) and isinstance(value, str):
        field.setText(value)
        field.editingFinished.emit()
    elif isinstance(field, QSpinBox) and type(value) is int:
        field.setValue(min(max(value, field.minimum()), field.maximum()))
    elif isinstance(field, QPlainTextEdit) and isinstance(value, str):
        field.setPlainText(value)
    elif isinstance(field, QButtonGroup) and type(value) is int and field.button(value) is not None:
        field.button(value).click()


@dataclass(frozen=True, slots=True)
class PanelContext:
    """What a panel is made with.

    Attributes:
        opened: The trace, its selection, filter and lanes.
        navigation: Goes to events, times and lanes.
        settings: Settings of the program.
        theme: Colours at first.
        area: The swimlanes, for panels whose time axis is theirs.
        find: Searches for a condition, as if it were typed into the find bar.
        report: Says something in the status bar for a few seconds.
        comparison: The trace with a second one, if there is one.
    """

    opened: OpenTrace
    navigation: Navigation
    settings: Settings
    theme: Theme
    area: SwimlaneArea
    find: Callable[[str], None]
    report: Callable[[str], None]
    comparison: Comparison


class Panel(QWidget):
    """A widget in a dock beside the swimlanes.

    Attributes:
        saved_fields: Fields whose values are there again when the trace is next opened, as `saved_values` returns them.
        waits_to_be_seen: `reload` is called when the panel is first seen too, for what nothing else needs.
        watched: What is worked out while the panel can be seen, and only then; None = nothing.

    Signals:
        menu_requested: Right click: global position, name of the argument under it or empty.
    """

    waits_to_be_seen: ClassVar[bool] = False
    saved_fields: ClassVar[tuple[str, ...]] = ()
    watched: WatchedAnswer | None = None
    menu_requested = Signal(QPoint, str)

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = context.opened
        self._navigation = context.navigation
        self._theme = context.theme

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme

    def reload(self) -> None:
        """Show what a refreshed trace has more, once the panel can be seen; for panels that do not follow signals."""

    def rest(self) -> None:
        """Stop working: nobody looks."""
        if self.watched is not None:
            self.watched.watch(False)

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the trace from now on."""
        super().showEvent(event)
        if self.watched is not None:
            self.watched.watch(True)

    def hideEvent(self, event: QHideEvent) -> None:
        """Rest."""
        super().hideEvent(event)
        self.rest()

    def close_down(self) -> None:
        """Cancel the background task."""

    def saved_values(self) -> dict[str, Value]:
        """Return what is to be there again when the trace is opened the next time."""
        return values_of(self, self.saved_fields)

    def take_values(self, values: Mapping[str, Value]) -> None:
        """Show saved values; those that do not fit, of a file that somebody changed, are left out."""
        put_values(self, self.saved_fields, values)

    def copied_text(self) -> str:
        """Return what Copy takes while the panel has the focus; empty leaves Copy to the details."""
        return ""


def make_panel(row: PanelRow, context: PanelContext, parent: QWidget) -> Panel:
    """Return the panel of a row of the table, imported on first use."""
    panel = getattr(import_module(row.module), row.home.partition(":")[2])(context, parent)
    assert isinstance(panel, Panel), f"{row.home} is not a Panel"
    return panel


# A panel around one table of rows that are about events.


class ThemedModel(Protocol):
    """A model that gives colours to its rows."""

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""


Model = TypeVar("Model", bound=ThemedModel)


class TablePanel(Panel, Generic[Model]):
    """What the list of events, the results of a search and the transactions have in common.

    Attributes:
        table: The table.
        model: What it shows.

    Signals:
        menu_requested: Right click on a row: global position, and an empty text.
    """

    table: QTableView
    model: Model

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        super().set_theme(theme)
        self.model.set_theme(theme)
        self.table.viewport().update()

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        self.menu_requested.emit(self.table.viewport().mapToGlobal(position), "")


# What tables of rows have in common: their looks, and the buttons above them.


HEIGHT_LIMIT_PX: Final = 2**31 - 1  # Qt counts the height of all rows in 32 bits


def set_up_rows(table: QTableView, model: QAbstractItemModel, name: str, height_px: int) -> None:
    """Make a table one of whole rows, all equally tall.

    Args:
        table: The table.
        model: What it shows.
        name: For screen readers.
        height_px: Of a row.
    """
    table.setAccessibleName(name)
    # With this header visible, a reset would call Python for a text per row: minutes at ten million rows.
    rows = table.verticalHeader()
    rows.setVisible(False)
    rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    rows.setMinimumSectionSize(height_px)
    rows.setDefaultSectionSize(height_px)
    table.setModel(model)  # not before: Qt would request a thousand texts to learn how tall rows are
    table.horizontalHeader().setHighlightSections(False)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setShowGrid(False)
    table.setAlternatingRowColors(True)
    table.setWordWrap(False)
    table.setTabKeyNavigation(False)
    table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)


def set_row_height(panel: QWidget, height_px: int) -> None:
    """Give the rows of all tables of a panel another height; of one with too many rows for it when it is next made."""
    for table in panel.findChildren(QTableView):
        rows = table.verticalHeader()
        if rows.count() * height_px < HEIGHT_LIMIT_PX:
            rows.setMinimumSectionSize(height_px)
            rows.setDefaultSectionSize(height_px)


def add_copy_and_export(
    head: QHBoxLayout, parent: QWidget, copy: Callable[[], None], export: Callable[[], None]
) -> tuple[QPushButton, QPushButton]:
    """Put the buttons "Copy" and "Export CSV" at the right of a line; return them."""
    buttons = QPushButton("Copy", parent), QPushButton("Export CSV\N{HORIZONTAL ELLIPSIS}", parent)
    for button, run in zip(buttons, (copy, export), strict=True):
        button.setProperty("flat", "true")
        button.clicked.connect(run)
        head.addWidget(button)
    return buttons


def select_row(table: QTableView, row: int) -> None:
    """Select a row and no other, whatever keys are held; a range that is then clicked with Shift begins there.

    `QTableView.selectRow` alone adds it to others while Ctrl is held, and selects none with Shift.

    Args:
        table: The table.
        row: Of its model.
    """
    table.selectRow(row)
    flags, selected = QItemSelectionModel.SelectionFlag, table.selectionModel()
    if selected_ranges(selected) != [range(row, row + 1)]:
        selected.setCurrentIndex(table.currentIndex(), flags.ClearAndSelect | flags.Rows)


def selected_ranges(selected: QItemSelectionModel) -> list[range]:
    """Return the selected rows as ranges, ascending: Ctrl+A selects millions of rows, which nobody should list."""
    ranges = selected.selection()
    rectangles = (ranges.at(number) for number in range(ranges.count()))
    return sorted((range(rows.top(), rows.bottom() + 1) for rows in rectangles), key=lambda rows: rows.start)


# Links in texts of panels: to an event, to the lane of a thread or process, to a thread at a moment.


def linked(target: str, html: str, theme: Theme) -> str:
    """Return text as a link that `follow` understands.

    Args:
        target: `event:ROW`, `thread:ROW`, `process:ROW` or `at:THREAD/CYCLES`.
        html: What it shows.
        theme: The colours.
    """
    return f"<a href='{target}' style='color:{css(theme.accent)}; text-decoration:none'>{html}</a>"


def follow(navigation: Navigation, url: QUrl) -> None:
    """Go where a link leads; nowhere if it is another kind of link."""
    where = url.path()
    if url.scheme() == "event" and where.isdigit():
        navigation.show_event(int(where))
    elif url.scheme() in ("thread", "process") and where.isdigit():
        navigation.show_owner(url.scheme() == "thread", int(where))
    elif url.scheme() == "at":
        thread, _, cycles = where.partition("/")
        navigation.show_interval(int(thread), int(cycles))
