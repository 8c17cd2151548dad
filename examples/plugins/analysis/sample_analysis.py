"""How often each thread runs for less than 50 us: a sample of an analysis for satview.

It is a tab of the panel Statistics, and `satview stats FILE --by short-runs`.
"""

import numpy as np

from satview.answers.statistics import Columns, table_of, thread_columns, threads_shown
from satview.answers.table import Kind
from satview.tables.table import table

LIMIT_NS = 50_000


def short_runs(found, shown):
    """Return the table; `found` is satview.Statistics, `shown` says which threads the window shows (None: all)."""
    runs = table(found.trace, "run")
    start, window = runs["start_cycles"], found.window
    is_short = (runs["length_ns"] < LIMIT_NS) & (start >= window.start) & (start < window.end)
    count = np.bincount(runs["thread"][is_short], minlength=len(found.trace.threads))
    columns = Columns(found, threads_shown(found, shown))
    thread_columns(columns, np.arange(len(count)))
    columns.count("short", "Short runs", count, "runs of less than 50 us")
    return table_of("short-runs", Kind.THREAD, columns, "short", "No thread runs here.", title="Short runs")


short_runs.title = "Short runs"
