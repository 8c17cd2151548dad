"""The panel Results: all hits of the search, with copy and export; a click goes to the event."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QModelIndex, Slot
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QTableView, QVBoxLayout, QWidget

from satview.gui import dialogs
from satview.gui.event_list import EventListModel, column_widths
from satview.gui.panel import PanelContext, TablePanel, add_copy_and_export, selected_rows, set_up_rows
from satview.gui.save_events import write_list
from satview.gui.theme import Theme
from satview.gui.widgets import PlainLabel, capitalized, line_up
from satview.session.open_trace import OpenTrace, hits_text
from satview.session.tasks import Task

_COPY_LIMIT: Final = 200_000
_PATIENCE_S: Final = 0.1  # wait so long for a copy, so that most copies are complete after the click


class HitModel(EventListModel):
    """The hits of the search, as an event list."""

    def __init__(self, opened: OpenTrace, row_height_px: int, theme: Theme, parent: QWidget) -> None:
        super().__init__(opened, row_height_px, theme, parent)
        self._rows = opened.search.hits
        opened.search.changed.connect(self._on_hits)

    def _highlight(self, _event: int, _role: int) -> QColor | None:
        """Return None: filters do not colour hits."""
        return None

    @Slot()
    def _on_hits(self) -> None:
        if self._rows is not self._opened.search.hits:
            self._on_rows()

    @Slot()
    def _on_rows(self) -> None:
        self._reset(self._opened.search.hits)


class ResultsPanel(TablePanel[HitModel]):
    """The table of hits; its signal `menu_requested` sends the global position of a right click on a row."""

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        opened = self._opened
        self.setMinimumSize(120, 64)
        height_px = context.settings.number("events/row_height_px")
        self.model = HitModel(opened, height_px, context.theme, self)
        self.table = QTableView(self)
        self._set_up(height_px)
        self.message = PlainLabel(self, role="dim")
        self.message.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        head = line_up(QHBoxLayout(), (self.message, 1), margins=(10, 4, 8, 4))
        self._copy, self._export = add_copy_and_export(head, self, self.copy, self.ask_export)
        line_up(QVBoxLayout(self), head, self.table, margins=(0, 0, 0, 0), spacing=0)
        self._progress_text = self._success_text = ""  # messages during and after the background task
        self._job = Task(self, self._on_done, self._on_failed)
        self._job.progress.connect(self._on_progress)
        opened.search.changed.connect(self._on_search)
        self.table.selectionModel().currentRowChanged.connect(self._on_row)
        self.model.modelReset.connect(self._on_search)
        self._on_search()

    @Slot()
    def copy(self) -> None:
        """Copy the selected hits (all if fewer than two are selected), at most `_COPY_LIMIT`, in the background."""
        selected = selected_rows(self.table)
        hits = self._opened.search.hits
        rows = hits[[row + self.model.first_row for row in selected]] if len(selected) > 1 else hits
        more = f"; the other {len(rows) - _COPY_LIMIT:,} only fit into a file" if len(rows) > _COPY_LIMIT else ""
        self._progress_text, self._success_text = "Copying", f"Copied {min(len(rows), _COPY_LIMIT):,} events{more}"
        self._job.start_reporting(partial(hits_text, self._opened.trace, rows[:_COPY_LIMIT]), _PATIENCE_S)

    @Slot()
    def ask_export(self) -> None:
        """Ask for a file, and write all hits to it."""
        path = dialogs.ask_save(self, Path(f"{self._opened.trace.path.stem}.csv"), "CSV (*.csv)")
        if path is not None:
            hits = self._opened.search.hits
            self._progress_text, self._success_text = "Writing", ""  # the task returns what to say
            self._job.start_reporting(partial(write_list, self._opened.trace, path, hits))

    def _set_up(self, height_px: int) -> None:
        table = self.table
        set_up_rows(table, self.model, "Search results", height_px)
        table.horizontalHeader().setStretchLastSection(True)
        table.customContextMenuRequested.connect(self._on_menu)
        for column, width in enumerate(column_widths(table, self._opened.trace)):
            table.setColumnWidth(column, width)

    @Slot(QModelIndex, QModelIndex)
    def _on_row(self, current: QModelIndex, _before: QModelIndex) -> None:
        if current.isValid():
            self._opened.select_event(self.model.event_at(current.row()))

    @Slot()
    def _on_search(self) -> None:
        search = self._opened.search
        for button in (self._copy, self._export):
            button.setEnabled(len(search.hits) > 0)
        if search.error:
            text = search.error
        elif not search.text:
            text = "Press / and type a name or a condition"
        elif search.is_pending:
            text = "Looking\N{HORIZONTAL ELLIPSIS}"
        else:
            text = f"{len(search.hits):,} hits for {search.text}"
        self.message.setText(text)

    @Slot(object)
    def _on_done(self, result: object) -> None:
        if isinstance(result, str) and self._success_text:
            QGuiApplication.clipboard().setText(result)
        self.message.setText(self._success_text or str(result))

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self.message.setText(capitalized(str(error)))

    @Slot(float)
    def _on_progress(self, share: float) -> None:
        self.message.setText(f"{self._progress_text}\N{HORIZONTAL ELLIPSIS} {100 * share:.0f} %")
