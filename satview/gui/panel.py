"""Base classes of the panels of a workspace, and helpers for their tables, saved fields and links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Protocol, TypeVar

from PySide6.QtCore import QAbstractItemModel, QItemSelectionModel, QPoint, Qt, QTimer, QUrl, Signal, Slot
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
from satview.gui.widgets import flat_button, line_up, tab_as_read
from satview.session.commands import PanelRow
from satview.session.navigation import Navigation
from satview.session.tasks import Task

if TYPE_CHECKING:
    from satview.gui.swimlane.area import SwimlaneArea
    from satview.session.comparison import Comparison
    from satview.session.open_trace import OpenTrace
    from satview.session.settings import Settings
    from satview.session.tasks import WatchedAnswer


# Values of a panel's fields by name, saved until the trace is opened again.


Value = str | int | bool


def values_of(panel: QWidget, names: Iterable[str]) -> dict[str, Value]:
    """Return the values of a panel's input fields, such as texts and check states, by (dotted) attribute name."""
    return {name: _value(attrgetter(name)(panel)) for name in names}


def set_values(panel: QWidget, names: Iterable[str], values: Mapping[str, Value]) -> None:
    """Set a panel's input fields as if the user did; values that a field does not allow are ignored."""
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
    """Objects that are passed to each new panel.

    Attributes:
        opened: The trace, its selection, filter and lanes.
        navigation: Object that goes to events, times and lanes.
        settings: Settings of the program.
        theme: Initial theme.
        area: The swimlanes, for panels that share their time axis.
        find: Function that searches for a condition, as if typed into the find bar.
        report: Function that shows a message in the status bar for a few seconds.
        comparison: Comparison with a second trace.
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
        saved_fields: Names of the fields whose values are saved with the trace and restored when it is opened again.
        waits_to_be_seen: True to call `reload` when the panel is first shown, to compute data that only it uses.
        watched: The answer that is computed only while the panel is visible; None = none.

    Signals:
        menu_requested: A right click; sends the global position and the name of the argument under the mouse, or "".
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
        """Use the colours of a theme."""
        self._theme = theme

    def reload(self) -> None:
        """Show a refreshed trace, once the panel is visible; panels that refresh themselves on signals need not."""

    def showEvent(self, event: QShowEvent) -> None:
        """Resume background work."""
        super().showEvent(event)
        if self.watched is not None:
            self.watched.watch(True)

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop background work."""
        super().hideEvent(event)
        if self.watched is not None:
            self.watched.watch(False)

    def close_down(self) -> None:
        """Stop all timers and background tasks of the panel, and wait for the tasks."""
        for timer in self.findChildren(QTimer):
            timer.stop()
        for task in self.findChildren(Task):
            task.close()

    def saved_values(self) -> dict[str, Value]:
        """Return the values of the saved fields, by name."""
        return values_of(self, self.saved_fields)

    def restore_values(self, values: Mapping[str, Value]) -> None:
        """Restore saved values of fields; values that are not valid, as in a file edited by hand, are ignored."""
        set_values(self, self.saved_fields, values)

    def copied_text(self) -> str:
        """Return the text that the command Copy copies from this panel; empty if the panel does not have the focus.

        If it is empty, Copy takes the text of the panel Details.
        """
        return ""


def make_panel(row: PanelRow, context: PanelContext, parent: QWidget) -> Panel:
    """Create the panel of a row of `PANELS`; its module is imported on first use."""
    panel = getattr(import_module(row.module), row.home.partition(":")[2])(context, parent)
    assert isinstance(panel, Panel), f"{row.home} is not a Panel"
    tab_as_read(panel)
    return panel


# A panel with one table of events.


class ThemedModel(Protocol):
    """A model whose rows have colours of the theme."""

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""


Model = TypeVar("Model", bound=ThemedModel)


class TablePanel(Panel, Generic[Model]):
    """Base class of panels with a table, such as the event list, the marks and the panels with an answer.

    Signals:
        menu_requested: A row was right-clicked; sends the global position of the mouse and "".
    """

    table: QTableView
    model: Model

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        super().set_theme(theme)
        self.model.set_theme(theme)
        self.table.viewport().update()

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        self.menu_requested.emit(self.table.viewport().mapToGlobal(position), "")


# Helpers for tables: their appearance, and the buttons above them.


HEIGHT_LIMIT_PX: Final = 2**31 - 1  # Qt counts the height of all rows in 32 bits


def set_up_rows(table: QTableView, model: QAbstractItemModel, name: str, height_px: int) -> None:
    """Set up a table, named for screen readers, whose rows have equal heights and are selected as a whole."""
    table.setAccessibleName(name)
    # If this header were visible, a reset would request a text for each row: minutes for ten million rows.
    rows = table.verticalHeader()
    rows.setVisible(False)
    rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    rows.setMinimumSectionSize(height_px)
    rows.setDefaultSectionSize(height_px)
    table.setModel(model)  # after the height is set: otherwise Qt requests 1,000 texts to measure rows
    table.horizontalHeader().setHighlightSections(False)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setShowGrid(False)
    table.setAlternatingRowColors(True)
    table.setWordWrap(False)
    table.setTabKeyNavigation(False)
    table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)


def set_row_height(panel: QWidget, height_px: int) -> None:
    """Change the row height of all tables of a panel, except those whose total height would exceed Qt's limit."""
    for table in panel.findChildren(QTableView):
        rows = table.verticalHeader()
        if rows.count() * height_px < HEIGHT_LIMIT_PX:
            rows.setMinimumSectionSize(height_px)
            rows.setDefaultSectionSize(height_px)


def add_copy_and_export(
    head: QHBoxLayout, parent: QWidget, copy: Callable[[], None], export: Callable[[], None]
) -> tuple[QPushButton, QPushButton]:
    """Add the buttons "Copy" and "Export CSV" at the right end of a line; return both buttons."""
    buttons = flat_button("Copy", parent, copy), flat_button("Export CSV\N{HORIZONTAL ELLIPSIS}", parent, export)
    line_up(head, *buttons)
    return buttons


def select_row(table: QTableView, row: int) -> None:
    """Select one row only, even while Ctrl or Shift is held; a later Shift+click extends the selection from this row.

    `QTableView.selectRow` adds the row while Ctrl is held, and selects nothing while Shift is held.
    """
    table.selectRow(row)
    flags, selected = QItemSelectionModel.SelectionFlag, table.selectionModel()
    if selected_ranges(selected) != [range(row, row + 1)]:
        selected.setCurrentIndex(table.currentIndex(), flags.ClearAndSelect | flags.Rows)


def selected_ranges(selected: QItemSelectionModel) -> list[range]:
    """Return the selected rows as ascending ranges; after Ctrl+A these may be millions of rows."""
    ranges = selected.selection()
    rectangles = (ranges.at(number) for number in range(ranges.count()))
    return sorted((range(rows.top(), rows.bottom() + 1) for rows in rectangles), key=lambda rows: rows.start)


def selected_rows(table: QTableView) -> list[int]:
    """Return the selected rows of a table whose rows are selected as a whole, in ascending order."""
    return [row for rows in selected_ranges(table.selectionModel()) for row in rows]


# Links in panel texts: to an event, to the lane of a thread or process, to a thread at a time.


def linked(target: str, html: str, theme: Theme) -> str:
    """Return HTML as a link for `follow`: to `event:ROW`, `thread:ROW`, `process:ROW` or `at:THREAD/CYCLES`."""
    return f"<a href='{target}' style='color:{css(theme.accent)}; text-decoration:none'>{html}</a>"


def follow(navigation: Navigation, url: QUrl) -> None:
    """Go to the target of a link made by `linked`; ignore other links."""
    where = url.path()
    if url.scheme() == "event" and where.isdigit():
        navigation.show_event(int(where))
    elif url.scheme() in ("thread", "process") and where.isdigit():
        navigation.show_owner(url.scheme() == "thread", int(where))
    elif url.scheme() == "at":
        thread, _, cycles = where.partition("/")
        navigation.show_interval(int(thread), int(cycles))
