"""The panel SQL: queries over the tables of the trace; rows with an event or time link to the lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar, Final, cast

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QTabBar,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from satview.base.errors import SatviewError, one_line
from satview.base.safe_text import counted, tool_tip, visible, visible_line
from satview.filters.expressions.syntax import Completion
from satview.gui.filters.editing import ProposingEditor
from satview.gui.panel import Panel, PanelContext, selected_rows, set_up_rows
from satview.gui.plots.time_plot import ResultPlot
from satview.gui.theme import Theme
from satview.gui.widgets import Notice, PlainLabel, capitalized, line_up, named
from satview.session.panels.sql import (
    Drawing,
    cell_text,
    drawing_of,
    event_of_row,
    query_of,
    run_query,
    sql_completions,
    window_of_row,
)
from satview.session.tasks import Task
from satview.store.trace import Trace
from satview.tables.result import Result
from satview.tables.schema import views
from satview.tables.sql import close_processes, start_early
from satview.tables.table import kind_rows

_LINES: Final = 3  # visible lines of the query
_COPY_LIMIT: Final = 100_000
_PATIENCE_S: Final = 0.1  # wait so long for a drawing, so that most show at once
_Index = QModelIndex | QPersistentModelIndex


class ResultModel(QAbstractTableModel):
    """The rows of a query result, formatted when shown."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.result: Result | None = None

    def show(self, result: Result | None) -> None:
        """Show another result, or none."""
        self.beginResetModel()
        self.result = result
        self.endResetModel()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008  -- as Qt declares it
        """Return the number of rows."""
        return 0 if parent.isValid() or self.result is None else len(self.result)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008  -- as Qt declares it
        """Return the number of columns."""
        return 0 if parent.isValid() or self.result is None else len(self.result.columns)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text and alignment of a cell."""
        if self.result is None or not index.isValid():
            return None
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.TextAlignmentRole):
            return None
        value = self.result.value(index.row(), self.result.columns[index.column()])
        if role == Qt.ItemDataRole.DisplayRole:
            return cell_text(value)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        side = Qt.AlignmentFlag.AlignRight if is_number else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the name of a column."""
        if self.result is None or orientation != Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        return visible_line(self.result.columns[section])


class QueryEditor(ProposingEditor):
    """An editor for queries; `more_tables` returns further tables of the trace, as pairs of name and description.

    Signals:
        run_requested: Ctrl+Return was pressed.
    """

    run_requested = Signal()
    more_tables: Callable[[], Iterable[tuple[str, str]]] = tuple

    def completions(self) -> tuple[list[Completion], int]:
        """Return tables, columns and keywords that fit at the cursor."""
        return sql_completions(self.toPlainText(), self.textCursor().position(), self.more_tables), 0

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Run the query on Ctrl+Return."""
        is_return = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_return and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.proposals.hide()
            self.run_requested.emit()
            event.accept()
        else:
            super().keyPressEvent(event)


class ResultView(StrEnum):
    """Ways to show a result."""

    ROWS = "Rows"
    PLOT = "Plot"
    LANES = "Lanes"


class SqlPanel(Panel):
    """A query, the list of views, and the result as rows, as values over time, or as lanes of intervals."""

    waits_to_be_seen: ClassVar[bool] = True

    saved_fields = ("editor", "shown")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.editor = QueryEditor(self)
        self.editor.more_tables = self._tables_of_kinds
        self.editor.setAccessibleName("Query")
        self.editor.setPlaceholderText("select * from ready_wait    (Ctrl+Return runs it)")
        self.editor.setTabChangesFocus(True)
        self.editor.setMaximumHeight(self.editor.fontMetrics().lineSpacing() * _LINES + 12)
        self.views = named(QComboBox(self), "Views")
        self.run_button = QPushButton("Run", self)
        self.message = PlainLabel("", self, role="dim", wraps=True)
        self.model = ResultModel(self)
        self.table = QTableView(self)
        set_up_rows(self.table, self.model, "Result", context.settings.number("events/row_height_px"))
        self.shown = named(QTabBar(self, expanding=False, drawBase=False), "How the answer shows")
        for shown in ResultView:
            self.shown.addTab(shown.value)
        self.value = named(QComboBox(self), "Column that is plotted")
        self.value.hide()
        self.plot: ResultPlot | None = None
        self._drawing: Drawing | str | None = ""  # None = not looked for yet
        self.reason = Notice("", self)
        self._lay_out()
        labels = context.area.labels
        self._left_px = labels.width()  # plots share the time axis of the lanes
        labels.width_requested.connect(self._set_left)
        self.shown.currentChanged.connect(self._show)
        self.value.activated.connect(self._show)
        self._job = Task(self, self._on_done, self._on_failed)
        self._drawing_job = Task(self, self._on_drawing, self._on_not_drawn)  # millions of rows take seconds
        self._requested: Trace | None = None  # trace of the rows shown, which may have been refreshed since
        self.editor.run_requested.connect(self.run)
        self.run_button.clicked.connect(self._on_button)
        self.views.activated.connect(self._on_view)
        self.table.clicked.connect(self._on_row)
        self.table.activated.connect(self._on_row)

    def close_down(self) -> None:
        """Cancel the query, and end the query process."""
        super().close_down()
        if self.views.count():  # the panel was shown
            close_processes(self._opened.trace)

    def reload(self) -> None:
        """List the SQL views when the panel is first shown; repeat the query after the trace was refreshed."""
        if not self.views.count():
            self._fill_views()
            start_early(self._opened.trace)
        if self._requested is not None and self._requested is not self._opened.trace:
            self.run()

    def copied_text(self) -> str:
        """Return the selected rows, at most `_COPY_LIMIT`, as tab-separated text after a line of column names."""
        result = self.model.result
        selected = selected_rows(self.table)[:_COPY_LIMIT]
        if result is None or not selected:
            return ""
        lines = ["\t".join(cell_text(result.value(row, name)) for name in result.columns) for row in selected]
        return "\n".join(["\t".join(map(visible_line, result.columns)), *lines])

    @Slot()
    def run(self) -> None:
        """Run the query that is in the editor."""
        text = self.editor.toPlainText().strip()
        if not text:
            return
        self._requested = self._opened.trace
        self.editor.proposals.hide()
        self.message.setText("Running\N{HORIZONTAL ELLIPSIS}")
        self.run_button.setText("Stop")
        self._job.start(partial(run_query, self._opened.trace, text, self._opened.timing_file))

    def _lay_out(self) -> None:
        buttons = line_up(QVBoxLayout(), self.views, self.run_button)
        head = line_up(QHBoxLayout(), (self.editor, 1), buttons, margins=(8, 4, 8, 4))
        self.message.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.message.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        line = line_up(QHBoxLayout(), self.shown, self.value, (self.message, 1), margins=(2, 0, 8, 2))
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.table)
        self._stack.addWidget(self.reason)
        line_up(QVBoxLayout(self), head, line, (self._stack, 1), margins=(0, 0, 0, 0), spacing=0)

    def _tables_of_kinds(self) -> list[tuple[str, str]]:
        """Return the tables of arguments in the trace: pairs of name and description."""
        return [(name, says) for name, _, says in kind_rows(self._opened.trace)]

    def _fill_views(self) -> None:
        self.views.addItem("Views")
        for view in views().values():
            self.views.addItem(view.usage, view.name)
            self.views.setItemData(self.views.count() - 1, tool_tip(view.meaning), Qt.ItemDataRole.ToolTipRole)

    @Slot()
    def _on_button(self) -> None:
        if self._job.is_busy:
            self._job.cancel()
            self._finish("Stopped")
        else:
            self.run()

    @Slot(int)
    def _on_view(self, index: int) -> None:
        name = self.views.itemData(index)
        if name:
            view = views()[name]
            self.editor.setPlainText(query_of(view, self._opened.trace, self._opened.viewport.window))
            self.views.setCurrentIndex(0)
            self.run()

    @Slot(object)
    def _on_done(self, answer: object) -> None:
        result = cast("Result", answer)
        self.model.show(result)
        self.table.resizeColumnsToContents()
        self._show_anew(None)
        summary = f"{result.summary}; add a LIMIT" if result.is_cut else result.summary
        first, *others = result.reservations or ("",)
        more = f", and {counted(len(others), 'more reason')}" if others else ""  # there is room for one
        self._finish(f"{summary}\n{first}{more}".rstrip(), "\n".join((first, *others)) if others else "")

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._theme = theme
        if self.plot is not None:
            self.plot.set_theme(theme)

    @Slot(int)
    def _set_left(self, left_px: int) -> None:
        self._left_px = left_px
        if self.plot is not None:
            self.plot.set_left(left_px)

    def _show_anew(self, drawing: Drawing | str | None) -> None:
        self._drawing_job.cancel()
        self._drawing = drawing
        self._show()

    @Slot(object)
    def _on_drawing(self, drawing: Drawing | str) -> None:
        """Show the rows of the result that can be drawn, and list the columns that can be plotted."""
        before = self.value.currentText()
        self.value.clear()
        if isinstance(drawing, Drawing):
            for name in drawing.values:
                self.value.addItem(visible_line(name), name)
            self.value.setCurrentIndex(max(0, self.value.findText(before)))
        self._show_anew(drawing)

    @Slot(object)
    def _on_not_drawn(self, error: Exception) -> None:
        self._on_drawing(f"The rows cannot be drawn: {one_line(error)}")

    @Slot()
    def _show(self) -> None:
        """Show rows, plot or lanes, or why the result cannot be drawn."""
        shown = list(ResultView)[self.shown.currentIndex()]
        drawing = self._drawing
        self.value.setVisible(shown is ResultView.PLOT and isinstance(drawing, Drawing) and len(drawing.values) > 0)
        if shown is ResultView.ROWS or drawing == "":
            self._stack.setCurrentWidget(self.table)
        elif drawing is None:
            self._refuse("Looking for the rows that can be drawn\N{HORIZONTAL ELLIPSIS}")
            if not self._drawing_job.is_busy:
                trace, result = self._opened.trace, cast("Result", self.model.result)
                self._drawing_job.start(lambda _is_cancelled: drawing_of(trace, result), _PATIENCE_S)
        elif isinstance(drawing, str):
            self._refuse(drawing)
        elif shown is ResultView.LANES and not drawing.has_ends:
            self._refuse("No column gives a duration: a lane needs end_ns, length_ns or cycles next to the start.")
        elif shown is ResultView.PLOT and not drawing.values:
            self._refuse("No column has values to plot.")
        else:
            if self.plot is None:
                self.plot = ResultPlot(self._opened, self._left_px, self._theme, self)
                self.plot.row_requested.connect(self._go_to_row)
                self._stack.addWidget(self.plot)
            self._stack.setCurrentWidget(self.plot)
            self.plot.show_drawing(drawing, self.value.currentData() if shown is ResultView.PLOT else None)

    def _refuse(self, reason: str) -> None:
        self.reason.setText(reason)
        self._stack.setCurrentWidget(self.reason)

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self.model.show(None)
        self._show_anew("")
        self._finish(capitalized(visible(str(error))) if isinstance(error, SatviewError) else one_line(error))

    def _finish(self, text: str, tip: str = "") -> None:
        self.message.setText(text)
        self.message.setToolTip(tool_tip(tip))
        self.run_button.setText("Run")

    @Slot(QModelIndex)
    def _on_row(self, index: QModelIndex) -> None:
        self._go_to_row(index.row())

    @Slot(int)
    def _go_to_row(self, row: int) -> None:
        result, trace = self.model.result, self._opened.trace
        if result is None or trace is not self._requested:
            return
        event, window = event_of_row(trace, result, row), window_of_row(trace, result, row)
        if event is not None:
            self._navigation.show_event(event)
        elif window is not None and window.length > 1:
            self._opened.viewport.fit(window)
        elif window is not None:
            self._navigation.show_time(window.start)
