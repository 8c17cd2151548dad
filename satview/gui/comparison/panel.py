"""The panel that compares two traces, and an object that shows the lanes of the second trace in the window."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QObject, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QSplitter, QStackedWidget, QWidget

from satview.answers.comparison import KINDS, ChangedRow
from satview.answers.table import Table
from satview.base.errors import SatviewError, UsageError
from satview.base.safe_text import tool_tip, visible_line
from satview.gui.answer_table import AnswerPanel
from satview.gui.panel import PanelContext, select_row
from satview.gui.statistics import RowNavigator
from satview.gui.swimlane.area import Panes
from satview.gui.theme import Theme
from satview.gui.widgets import ElidedLabel, Notice, drop_down, line_up, named
from satview.session.comparison import Changes, ChangesView, Comparison, OverlaidView
from satview.session.highlight import Marks
from satview.session.navigation import Navigation
from satview.session.open_trace import OpenTrace
from satview.session.range_view import NO_RANGE, Extent
from satview.session.session import Session, Stage
from satview.session.settings import Settings
from satview.session.tasks import dismantle
from satview.session.trace_state import lanes_state, restore_lanes
from satview.session.workspace_file import ComparedState

if TYPE_CHECKING:
    from satview.gui.plots.duration_plot import OverlayPlot


# The panel Comparison: figures that changed between two traces; a click shows a figure in both.


_PLOT_PX, _LEAST_PLOT_PX = 340, 140
_FIGURES_PX: Final = 660
_EXTENTS: Final = {Extent.TRACE: "Whole traces", Extent.VIEW: "In view", Extent.RANGE: "Selected range"}
_NO_SECOND: Final = (
    "There is no second trace.\nFile > Compare with another trace (Ctrl+D) opens one beside this one: "
    "this one is before, the other one after a change."
)


class ComparisonPanel(AnswerPanel):
    """Panel with the figures that changed from the first trace to the second, and histograms of a selected row."""

    saved_fields = ("kind", "words", "every", "extent")
    shown_names = ("name", "title", "before", "after", "ratio", "weight")

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, "What changed", parent)
        self.setMinimumSize(120, 64)
        self._comparison = context.comparison
        self._second: tuple[OpenTrace, Navigation] | None = None
        self.view = self.watched = ChangesView(context.comparison, self)
        self.overlaid = OverlaidView(self.view, self)
        self.plot: OverlayPlot | None = None
        self._shown: Changes | None = None
        self._order = "weight", True
        self.table.selectionModel().selectionChanged.connect(self._on_rows)
        self._split = QSplitter(Qt.Orientation.Horizontal, self, childrenCollapsible=False)
        self._split.addWidget(self.stack)
        self._plots = QStackedWidget(self)
        self._plots.setMinimumWidth(_LEAST_PLOT_PX)
        self._plot_notice = Notice("A row shows the durations behind it", self)
        self._plots.addWidget(self._plot_notice)
        self._split.addWidget(self._plots)
        self._split.setStretchFactor(0, 1)
        self._is_split_by_user = False
        self._split.splitterMoved.connect(self._on_split)
        self.missing = ElidedLabel(self, role="dim")
        self.missing.setContentsMargins(8, 3, 8, 3)
        self._lay_out(self._head(), self._split, self.missing)
        self.view.changed.connect(self._on_view)
        self.overlaid.changed.connect(self._on_overlaid)
        context.comparison.changed.connect(self._on_comparison)
        self._on_comparison()

    def _head(self) -> QHBoxLayout:
        self.kind = drop_down(self, "What of", {"": "Everything"} | KINDS)
        self.extent = drop_down(self, "Part of the traces", _EXTENTS)
        words = "Words in the name or figure"
        self.words = named(QLineEdit(self, placeholderText=words, clearButtonEnabled=True), words)
        self.every = QCheckBox("Every figure", self)
        self.every.setToolTip("All figures of a thread, call or state, not only the one that changed most.")
        self.statement = ElidedLabel(self, role="dim")
        self.statement.setMinimumWidth(1)
        self.words.setMaximumWidth(220)
        line = line_up(QHBoxLayout(), self.kind, self.extent, self.words, self.every, (self.statement, 1),
                       margins=(8, 4, 8, 4), spacing=8)  # fmt: skip
        self.add_buttons(line, self.statement)
        self.kind.currentIndexChanged.connect(self._fill)
        self.words.textChanged.connect(self._fill)
        self.every.toggled.connect(self._fill)
        self.extent.currentIndexChanged.connect(self._on_extent)
        return line

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        super().set_theme(theme)
        if self.plot is not None:
            self.plot.set_theme(theme)

    @Slot()
    def _on_split(self) -> None:
        self._is_split_by_user = True

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the plot the width that the table does not need, unless the user has set the widths."""
        super().resizeEvent(event)
        if not self._is_split_by_user:
            plot_px = max(_LEAST_PLOT_PX, min(_PLOT_PX, self.width() - _FIGURES_PX))
            self._split.setSizes([self.width() - plot_px, plot_px])

    def go_to(self, change: ChangedRow) -> None:
        """Show in both traces where the value of a changed figure occurred, such as the longest duration.

        For a figure without a position in time, show the longest duration of its thread, state or other subject. If
        there is none either, show the lane of the subject or one of its events.
        """
        linked = self._comparison.is_linked
        self._comparison.is_linked = False  # the positions differ
        for side, navigator in enumerate(self._navigators()):
            if name := change.time_column(side):
                navigator.go_to(change.tables[side], name, change.rows[side])
        self._comparison.is_linked = linked

    def _navigators(self) -> list[RowNavigator]:
        second = self._comparison.second
        navigators = [RowNavigator(self._opened, self._navigation)]
        if second is not None:
            if self._second is None or self._second[0] is not second:
                self._second = second, Navigation(second, self)
            navigators.append(RowNavigator(*self._second))
        return navigators

    def _select_first(self) -> None:
        """Select the first row, so that the plot shows the durations of this row, without moving the lanes."""
        select_row(self.table, 0)
        self._on_rows()

    @Slot()
    def _fill(self) -> None:
        """Show the rows that match `kind` and `words`: one figure of each subject, or all if `every` is checked."""
        if self._shown is None:
            self.model.show(None, "", is_descending=True)
            self._on_rows()
            return
        kind, words = str(self.kind.currentData()), self.words.text().casefold().split()
        rows: dict[tuple[object, ...], int] = {}  # the largest changes come first
        for row, change in enumerate(self._shown.figures):
            if kind in ("", change.by) and all(word in f"{change.name} {change.title}".casefold() for word in words):
                rows.setdefault((row if self.every.isChecked() else -1, change.by, change.name), row)
        self._show_in_order(self._shown.table.at(np.array([*rows.values()], np.int64)))
        self._select_first()

    def _show_in_order(self, answer: Table) -> None:
        """Show changes in the selected order; changes of the logger last, as they depend on the classes captured.

        By weight, changes that the traces do not show for certain come after the others.
        """
        name, descending = self._order
        ordered = answer.sorted_by(name, descending) if name else answer
        changes = self._shown.figures if self._shown is not None else ()
        ranks = [(changes[row].is_of_logger, name == "weight" and changes[row].is_in_doubt)
                 for row in ordered.positions.tolist()]  # fmt: skip
        ordered = ordered.at(ordered.positions[sorted(range(len(ranks)), key=ranks.__getitem__)])
        self.show_answer(ordered, name, is_descending=descending)

    @Slot(int)
    def _on_extent(self, _index: int) -> None:
        self.view.set_extent(Extent(self.extent.currentData()))  # Qt makes it a plain text

    def _show(self, row: int) -> None:
        if (change := self._change(row)) is not None:
            self.go_to(change)

    def _change(self, row: int) -> ChangedRow | None:
        answer = self.model.answer
        if self._shown is None or answer is None or not 0 <= row < len(answer):
            return None
        return self._shown.figures[int(answer.positions[row])]

    @Slot()
    def _on_rows(self) -> None:
        self.overlaid.show_change(self._change(self.table.currentIndex().row()))

    @Slot()
    def _on_comparison(self) -> None:
        second = self._comparison.second
        if second is None:
            self._second = None
            self.statement.setText("")
        else:
            names = f"{self._opened.trace.title} \N{RIGHTWARDS ARROW} {second.trace.title}"
            alignment = (f"{names}, aligned by {self._comparison.aligned_by}: the second begins "
                    f"{self._comparison.offset_text} after the first")  # fmt: skip
            self.statement.setText(visible_line(alignment))
            self.statement.setToolTip(tool_tip(alignment))
        self._on_view()

    @Slot()
    def _on_view(self) -> None:
        with QSignalBlocker(self.extent):
            self.extent.setCurrentIndex(list(_EXTENTS).index(self.view.extent))
        changes = self.view.changes
        if self._comparison.second is None:
            message = _NO_SECOND
        elif self.view.error:
            message = self.view.error
        elif changes is None:
            message = "Comparing\N{HORIZONTAL ELLIPSIS}"
        elif self.view.extent is Extent.RANGE and self._opened.selection.time_range is None:
            message = NO_RANGE
        else:
            message = "" if changes.figures else "Nothing is known of these parts of the traces."
        self.show_page(message)
        self._plots.setVisible(not message)
        missing = changes.table.missing if changes is not None and not message else ()
        self.missing.setText("; ".join(f"Cannot tell: {visible_line(line)}" for line in missing))
        self.missing.setVisible(bool(missing))
        if changes is not self._shown:
            self._shown = changes
            self._fill()

    @Slot()
    def _on_overlaid(self) -> None:
        overlaid = self.overlaid.overlaid
        if overlaid is None or not any(map(len, overlaid.sides)):
            self._plot_notice.setText(self.overlaid.error or (
                "Looking for durations\N{HORIZONTAL ELLIPSIS}" if self.overlaid.is_busy
                else "A row shows the durations behind it" if not self.table.selectionModel().hasSelection()
                else "There are no durations behind this figure"
            ))  # fmt: skip
            self._plots.setCurrentWidget(self._plot_notice)
            return
        if self.plot is None:
            from satview.gui.plots.duration_plot import OverlayPlot  # on first use: imports pyqtgraph

            self.plot = OverlayPlot(self._theme, self)
            self._plots.addWidget(self.plot)
        self.plot.show_overlaid(overlaid)
        self._plots.setCurrentWidget(self.plot)


# Opens and closes a second trace below the lanes of the first one.


class SecondTrace(QObject):
    """Opens and closes the second trace of a workspace, and shows its lanes below the first.

    Attributes:
        comparison: The comparison of both traces.
        path: File of the second trace, which may still be loading; None = none.
        error: Why the last file could not be shown; None = no error.

    Signals:
        opened: The second trace is shown.
        failed: The second trace cannot be shown; sends a message.
        marks_left: The second trace was closed before its marks could be saved; sends the `Marks`.
    """

    opened = Signal()
    failed = Signal(str)
    marks_left = Signal(object)

    def __init__(self, comparison: Comparison, panes: Panes, settings: Settings, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self.comparison = comparison
        self.theme = theme
        self.path: Path | None = None
        self.error: SatviewError | None = None
        self._state: ComparedState | None = None
        self._panes, self._settings = panes, settings
        self._session: Session | None = None
        self._folder: TemporaryDirectory[str] | None = None
        panes.removed.connect(self._on_removed)

    @property
    def is_reading(self) -> bool:
        """True while the second trace is being read."""
        return self._session is not None and self._session.stage is Stage.LOADING

    def open(
        self, path: Path, state: ComparedState | None = None, folder: TemporaryDirectory[str] | None = None
    ) -> None:
        """Load a file and show its lanes below those of the first trace, in place of any other second trace.

        Args:
            path: The file.
            state: The saved alignment; None = align the starts.
            folder: Temporary folder of the file, removed when the trace is closed.

        Raises:
            UsageError: The file is already open as the first trace.
        """
        if path.absolute() == self.comparison.first.trace.path.absolute():
            raise UsageError("that file is open here already; View > Split view shows another part of it")
        self.close()
        self.path, self.error, self._state, self._folder = path, None, state, folder
        self._session = Session(self._settings, self)
        self._session.stage_changed.connect(self._on_stage)
        self._session.open(path)

    def unstored_marks(self) -> list[Marks]:
        """Return the marks of the second trace that could not be saved yet."""
        return [] if self._session is None else self._session.unstored_marks()

    def close(self) -> None:
        """Close the second trace, or cancel loading it."""
        self.path = None
        session, self._session = self._session, None
        if session is None:
            return
        session.stage_changed.disconnect(self._on_stage)
        self.comparison.end()
        if session.opened is not None and self._panes.shows(session.opened):
            self._panes.join()
        session.shut_down()
        for marks in session.unstored_marks():
            self.marks_left.emit(marks)
        dismantle(session)
        if self._folder is not None:
            folder, self._folder = self._folder, None
            folder.cleanup()

    def state(self) -> ComparedState | None:
        """Return the second trace and its alignment, to be saved; None if there is none, or its file is temporary."""
        second = self.comparison.second
        if second is None or self.path is None or self._folder is not None:
            return None
        same = self.comparison.map
        return ComparedState(str(self.path.absolute()), same.from_cycles, same.to_cycles, self.comparison.aligned_by,
                             self.comparison.is_linked)  # fmt: skip

    @Slot()
    def _on_removed(self) -> None:
        """Close the file when its lanes are removed."""
        if self.comparison.second is not None:
            self.close()

    @Slot()
    def _on_stage(self) -> None:
        session = self._session
        if session is None or session.stage is Stage.LOADING:
            return
        if session.stage is Stage.READY and session.opened is not None:
            with suppress(UsageError):  # a malformed name pattern from a session
                restore_lanes(session.opened, lanes_state(self.comparison.first.lanes), is_same=False, is_first=True)
            self._panes.show_beside(session.opened, self.theme)
            self.comparison.begin(session.opened)
            if self._state is not None:
                state, self._state = self._state, None
                with suppress(UsageError):  # the file may have changed
                    self.comparison.align(state.first_cycles, state.second_cycles, state.aligned_by)
                self.comparison.set_linked(state.is_linked)
            self.opened.emit()
        elif session.stage is Stage.FAILED:
            error = session.error
            self.close()
            if not isinstance(error, SatviewError):
                raise error if error is not None else RuntimeError("the trace could not be read")
            self.error = error
            self.failed.emit(str(error))
