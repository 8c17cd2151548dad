"""What the sheets have in common: their columns begun, their rows selected, the sheet made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.analysis.sheets.sheet import Columns, Sheet, Subject
from satview.analysis.statistics import Statistics
from satview.events.states import ABSENT

Shown = NDArray[np.bool_] | None


def columns_of(found: Statistics, rows: NDArray[np.integer]) -> Columns:
    """Return the columns of a sheet, none yet, for some rows of the statistics."""
    return Columns(rows, found.length_s, found.ns)


def sheet_of(
    key: str, title: str, subject: Subject, columns: Columns, sort_key: str, empty: str, note: str = "",
    subjects: NDArray[np.int64] | None = None,
) -> Sheet:  # fmt: skip
    """Return a sheet of columns.

    Args:
        key: As of the sheet.
        title: As of the sheet.
        subject: As of the sheet.
        columns: The columns.
        sort_key: As of the sheet.
        empty: As of the sheet.
        note: As of the sheet.
        subjects: What the rows of the statistics are about; None = the rows themselves.
    """
    about = columns.rows if subjects is None else subjects[columns.rows]
    return Sheet(key, title, subject, about.astype(np.int64), tuple(columns.made), sort_key, empty, note)


def threads_shown(found: Statistics, shown: Shown) -> NDArray[np.intp]:
    """Return the threads that exist in the range and are to be shown, idle threads left out; row 0 if it has events.

    Returns:
        intp (n,), rows of the thread table, ascending.
    """
    absent = found.states.of_state(ABSENT, found.states.total_cycles, len(found.threads))
    mine = (absent < found.covered.threads) & ~found.basis.is_idle
    if shown is not None:
        mine &= shown
    mine[0] = found.threads.events[0] > 0
    return np.flatnonzero(mine)


def thread_columns(columns: Columns, found: Statistics, threads: NDArray[np.int64]) -> None:
    """Add the columns that name a thread: its name, process number and thread number.

    Args:
        columns: Where they go.
        found: The statistics.
        threads: int64, row of the thread table for each row of the statistics.
    """
    trace = found.trace
    columns.text("thread", "Thread", lambda row: trace.thread_name(int(threads[row])))
    columns.number("pid", "pid", trace.threads.pid[threads], "Process number.")
    columns.number("tid", "tid", trace.threads.tid[threads], "Thread number within the process.")
