"""Events of the open trace as files: what the worker does for the window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from satview.base.time import TimeWindow
from satview.export.listing_part import write_event_list, write_listing
from satview.export.subset import write_subset
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

KINDS = {
    "kev": ("Kernel event trace", "Kernel event traces (*.kev)"),
    "txt": ("Listing, as traceprinter prints it", "Listings (*.txt)"),
    "csv": ("List of events, for spreadsheets", "CSV (*.csv)"),
}


def write_events(
    trace: Trace,
    path: Path,
    kind: str,
    rows: NDArray[np.uint32] | None,
    window: TimeWindow | None,
    is_cancelled: IsCancelled,
    report: Report,
) -> str:
    """Write some events of a trace; return what is said of it.

    Args:
        trace: The trace.
        path: The new file, which appears once it is complete.
        kind: One of `KINDS`.
        rows: uint32, ascending rows of the event table; None = all.
        window: Only events in it; None = all.
        is_cancelled: Called now and then; True stops.
        report: Called with 0 to 1.

    Raises:
        UsageError: The kind does not suit the trace, or the file cannot be written.
        Cancelled: `is_cancelled()` said so.
    """
    mask = event_mask(trace, rows, window)
    if kind == "kev":
        written = write_subset(trace, path, mask, window, progress=report, cancelled=is_cancelled)
        more = written.context + written.opening
        with_more = f", and {more:,} more so that threads, names and states stay right" if more else ""
        remade = f"; {written.remade_text}" if written.remade else ""
        return f"{path.name}: {written.selected:,} events{with_more}{remade}"
    write = write_listing if kind == "txt" else write_event_list
    return f"{path.name}: {write(trace, path, mask, report, is_cancelled):,} events"


def write_list(trace: Trace, path: Path, rows: NDArray[np.uint32], is_cancelled: IsCancelled, report: Report) -> int:
    """Write some rows of the list of events as CSV; return how many. Raises as `write_events`."""
    return write_event_list(trace, path, event_mask(trace, rows, None), report, is_cancelled)


def event_mask(trace: Trace, rows: NDArray[np.uint32] | None, window: TimeWindow | None) -> NDArray[np.bool_]:
    """Return the events that are among some rows and in a window as bool (events,); None = all of them."""
    part = trace.rows_between(window) if window is not None else slice(0, len(trace.events))
    mask = np.zeros(len(trace.events), np.bool_)
    if rows is None:
        mask[part] = True
    else:
        first, last = np.searchsorted(rows, (part.start, part.stop))
        mask[rows[first:last]] = True
    return mask
