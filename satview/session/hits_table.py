"""Search hits as text: to the clipboard and to a CSV file, however many there are."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled
from satview.session.csv_file import write_whole
from satview.session.event_text import COLUMNS, list_row
from satview.session.jobs import IsCancelled, Report
from satview.store.trace import Trace

_BLOCK: Final = 1 << 12


def tabbed(trace: Trace, rows: NDArray[np.uint32]) -> str:
    """Return events as tab-separated text with a line of column names."""
    return "\n".join(["\t".join(COLUMNS), *("\t".join(texts) for texts in _texts(trace, rows))])


class CsvWork:
    """The work of an export; the file appears only once it is complete."""

    def __init__(self, trace: Trace, rows: NDArray[np.uint32], path: Path) -> None:
        self._trace, self._rows, self._path = trace, rows, path

    def __call__(self, is_cancelled: IsCancelled, report: Report) -> object:
        """Return the number of lines written, the line of names left out.

        Raises:
            UsageError: The file cannot be written.
        """
        write_whole(self._path, lambda file: self._write(file, is_cancelled, report))
        return len(self._rows)

    def _write(self, file: io.TextIOBase, is_cancelled: IsCancelled, report: Report) -> None:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for start in range(0, len(self._rows), _BLOCK):
            if is_cancelled():
                raise Cancelled("the export was stopped")
            before = int(self._rows[start - 1]) if start else None
            writer.writerows(_texts(self._trace, self._rows[start : start + _BLOCK], before))
            report(start / len(self._rows))


def _texts(trace: Trace, rows: NDArray[np.uint32], previous: int | None = None) -> Iterator[tuple[str, ...]]:
    for event in rows.tolist():
        yield list_row(trace, event, previous)
        previous = event
