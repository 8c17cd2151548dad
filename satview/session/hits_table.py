"""Search hits as text: to the clipboard and to a CSV file, however many there are."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled
from satview.base.new_file import new_text_file
from satview.base.safe_text import csv_text
from satview.formats.registry import source_files
from satview.session.event_text import COLUMNS, list_row
from satview.session.jobs import IsCancelled, Report
from satview.store.trace import Trace

_BLOCK: Final = 1 << 10
_FIRST_TEXT: Final = COLUMNS.index("Process")  # from here on cells hold what programs called themselves


class CopyWork:
    """The work of copying: tab-separated text with a line of column names."""

    def __init__(self, trace: Trace, rows: NDArray[np.uint32]) -> None:
        self._trace, self._rows = trace, rows

    def __call__(self, is_cancelled: IsCancelled, report: Report) -> object:
        """Return the text."""
        lines = _lines(self._trace, self._rows, is_cancelled, report)
        return "\n".join(["\t".join(COLUMNS), *("\t".join(cells) for cells in lines)])


class CsvWork:
    """The work of an export; the file appears only once it is complete."""

    def __init__(self, trace: Trace, rows: NDArray[np.uint32], path: Path) -> None:
        self._trace, self._rows, self._path = trace, rows, path

    def __call__(self, is_cancelled: IsCancelled, report: Report) -> object:
        """Return the number of lines written, the line of names left out.

        Raises:
            WriteError: The file cannot be written.
        """
        with new_text_file(self._path, reading=source_files(self._trace.path), newline="") as file:
            self._write(file, is_cancelled, report)
        return len(self._rows)

    def _write(self, file: TextIO, is_cancelled: IsCancelled, report: Report) -> None:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(_lines(self._trace, self._rows, is_cancelled, report))


def _lines(
    trace: Trace, rows: NDArray[np.uint32], is_cancelled: IsCancelled, report: Report
) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each event.

    Raises:
        Cancelled: `is_cancelled()` said so.
    """
    previous: int | None = None
    for start in range(0, len(rows), _BLOCK):
        if is_cancelled():
            raise Cancelled("the copy was stopped")
        report(start / len(rows))
        for event in rows[start : start + _BLOCK].tolist():
            cells = list_row(trace, event, previous)
            yield (*cells[:_FIRST_TEXT], *map(csv_text, cells[_FIRST_TEXT:]))
            previous = event
