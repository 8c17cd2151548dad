"""Export of a sheet from a panel: the dialog of the file, writing in the background, says what came of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QLabel, QWidget

from satview.analysis.sheets.sheet import Sheet
from satview.answers.table import Table
from satview.formats.registry import source_files
from satview.gui import dialogs
from satview.session.panels.statistics_task import write_sheet, write_table
from satview.session.tasks import Task


class SheetExport(QObject):
    """Writes the rows that a panel shows to CSV files.

    Args:
        panel: The panel; dialogs are shown above it.
        statement: Shows how many rows were written, or why none were.
    """

    def __init__(self, panel: QWidget, statement: QLabel) -> None:
        super().__init__(panel)
        self._panel, self._statement = panel, statement
        self._job = Task(self)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(self._on_failed)

    def save_as(self, sheet: Sheet | None, order: NDArray[np.intp], trace_path: Path) -> None:
        """Let the user name a file, and write a sheet to it; nothing happens without a sheet.

        Args:
            sheet: The table; its key ends the proposed name.
            order: Its rows in the order of the file.
            trace_path: The trace, whose files are never replaced.
        """
        if sheet is not None:
            self._ask(sheet.key, partial(write_sheet, sheet, order), trace_path)

    def save_table(self, table: Table, trace_path: Path) -> None:
        """Let the user name a file, and write an answer to it.

        Args:
            table: The rows, in the order of the file; the name of its question ends the proposed name.
            trace_path: The trace, whose files are never replaced.
        """
        self._ask(table.question.name, partial(write_table, table), trace_path)

    def _ask(self, key: str, write: Callable[..., int], trace_path: Path) -> None:
        path = dialogs.ask_save(self._panel, trace_path.with_name(f"{trace_path.stem}-{key}.csv"), "CSV (*.csv)")
        if path is not None:
            self._job.start(partial(write, path, source_files(trace_path)))

    def close(self) -> None:
        """Stop what runs in the background."""
        self._job.close()

    @Slot(object)
    def _on_done(self, count: object) -> None:
        if isinstance(count, int):
            self._statement.setText(f"Wrote {count:,} rows")

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        self._statement.setText(str(error))
