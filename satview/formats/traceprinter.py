"""Opens listings that traceprinter printed, of QNX 6, 7.1 and 8.0, as traces.

A listing is what people have when the .kev file is gone: it is parsed back into slots, so that all views and tools work
on it. What a listing does not carry (the system page, words that were not printed) is missing or zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError
from satview.formats.kev.assemble import LISTING, trace_from_slots
from satview.formats.kev.payloads import SlotPayloads
from satview.formats.listing.model import Listing
from satview.formats.listing.reader import read_listing
from satview.store.problems import Problems
from satview.store.trace import Listed, Trace

_EVENT_LINE = re.compile(
    rb"^.{0,40}?\b[tc]:\S{1,40}\s+(?:[tce]:\S{1,40}\s+){0,2}CPU:\d{1,3}\s+"
    rb"(?:[tce]:\S{1,40}\s+){0,2}[A-Z]",
    re.MULTILINE,
)
_TITLE = re.compile(
    rb"^\s*(?:TRACEPRINTER version|-- HEADER FILE INFORMATION --|-- KERNEL EVENTS --|TRACE_\w+:: )", re.MULTILINE
)


def score(first_bytes: bytes, _path: Path) -> int:
    """Return how sure we are that a file is a listing: by its banner, else by a line that is an event."""
    if first_bytes.startswith(b"TRACE_HEADER_BEGIN::"):
        return 0
    sample = first_bytes[:4096]
    if sample.startswith(b"TRACEPRINTER version"):
        return 95
    if _EVENT_LINE.search(sample):
        return 90 if _TITLE.search(sample) else 70
    return 60 if _TITLE.search(sample) and b"\0" not in sample else 0


def open_listing(
    path: Path | str, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
) -> Trace:
    """Open a listing.

    Args:
        path: The text file.
        progress: Called with 0 to 1.
        cancelled: Called now and then; True stops the load.

    Raises:
        TraceFormatError: No line of the file is an event.
        OSError: It cannot be read.
        Cancelled: `cancelled()` returned True.
    """
    path = Path(path)
    size = max(1, path.stat().st_size)
    report_progress = None if progress is None else lambda done: progress(min(0.9, 0.9 * done / size))
    with path.open("rb") as file:
        return trace_of_stream(file, path, report_progress, cancelled)


def trace_of_stream(
    file: BinaryIO,
    path: Path,
    progress: Callable[[int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Trace:
    """Read a listing from an open stream, such as a pipe; `path` is for titles and messages."""
    problems = Problems()
    listing = read_listing(file, problems, progress, cancelled)
    return trace_of_listing(listing, path, cancelled)


def trace_of_listing(listing: Listing, path: Path, cancelled: Callable[[], bool] | None = None) -> Trace:
    """Return a listing as a trace.

    Raises:
        TraceFormatError: It has neither a header nor an event.
    """
    if not len(listing.slots) and not listing.pairs:
        raise TraceFormatError(
            path, 0, "it has no line with an event", "open a .kev file, or text printed by traceprinter"
        )
    if not listing.is_release_known:
        listing.problems.add(
            "release-assumed", f"no usable SYS_RELEASE; {listing.release_reason or f'taken as {listing.release}'}"
        )
    trace = trace_from_slots(
        path,
        LISTING,
        listing.header,
        b"",
        listing.slot_array(),
        listing.byte_order,
        listing.problems,
        cancelled=cancelled,
        has_whole_buffers=False,
        times=listing.full_times(),
        release=listing.release,
    )
    listed = _listed_rows(trace, *listing.slots.listed())
    if isinstance(trace.payloads, SlotPayloads):
        trace.payloads.listed = dict(zip(*(column.tolist() for column in listed), strict=True))
    return replace(trace, lines=listing.line_counts.counts(), listed=listed if len(listed[0]) else None)


def _listed_rows(trace: Trace, slots: NDArray[np.int64], variants: NDArray[np.int32]) -> Listed:
    """Return the rows of the events with these last slots, ascending, and their variants."""
    last = trace.last_slots()
    order = np.argsort(last, kind="stable")
    position = np.minimum(np.searchsorted(last[order], slots), max(0, len(last) - 1))
    is_there = last[order][position] == slots if len(last) else np.zeros(len(slots), np.bool_)
    rows = order[position[is_there]] if len(last) else slots
    by_row = np.argsort(rows, kind="stable")
    return rows[by_row].astype(np.int64), variants[is_there][by_row]
