"""Search hits as text: to the clipboard and to a CSV file, however many there are."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled
from satview.base.new_file import new_text_file
from satview.base.safe_text import csv_text
from satview.formats.registry import source_files
from satview.session.events.event_text import COLUMNS, list_row
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

_BLOCK: Final = 1 << 10
_FIRST_TEXT: Final = COLUMNS.index("Process")  # from here on cells hold what programs called themselves


def hits_text(trace: Trace, rows: NDArray[np.uint32], is_cancelled: IsCancelled, report: Report) -> str:
    """Return event rows as tab-separated text with a line of column names, for the clipboard.

    Raises:
        Cancelled: `is_cancelled()` said so.
    """
    lines = _lines(trace, rows, is_cancelled, report)
    return "\n".join(["\t".join(COLUMNS), *("\t".join(cells) for cells in lines)])


def write_hits(trace: Trace, rows: NDArray[np.uint32], path: Path, is_cancelled: IsCancelled, report: Report) -> int:
    """Write event rows to a CSV file, which appears only once it is complete; return how many, the names left out.

    Raises:
        WriteError: The file cannot be written.
        Cancelled: `is_cancelled()` said so.
    """
    with new_text_file(path, reading=source_files(trace.path), newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(_lines(trace, rows, is_cancelled, report))
    return len(rows)


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
