"""Writes part of a trace as a smaller .kev that keeps times, names and opening states.

A file with events left out would say wrong things: other events would belong to the wrong thread once the switches
between them are gone, clocks would lose a rollover over a long silence, processes would have no names. So besides the
selected events the file gets what these need: names and creations, the switch before each selected event, a state
dump where the window begins, and fresh TIME and BUFFER events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.new_file import NewFile
from satview.base.targets import find_target
from satview.base.time import TimeWindow
from satview.events.wire import (
    CONTROL_BUFFER,
    CONTROL_BUFFER_END,
    CONTROL_DROPPED,
    THREAD_CREATE,
    THREAD_DESTROY,
    THREAD_RUNNING,
    WireClass,
)
from satview.export.subset_opening import Opening, opening_state
from satview.export.subset_slots import write_slots
from satview.filters.derived_columns import state_rows
from satview.filters.rows import chunks
from satview.formats.kev.head.header import holds_key, is_key
from satview.formats.kev.writer import write_start
from satview.formats.registry import source_files
from satview.linkage.rows import rows_of_codes
from satview.store.trace import Trace

MARK: Final = ("SATVIEW", "subset")  # header attribute of files written here; short, for the vendor's old library
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SubsetReport:
    """What was written.

    Attributes:
        path: The file.
        selected: Events that were requested.
        context: Events written besides, because the selected ones cannot be understood without them.
        opening: Events made up to show the state where the window begins.
        total: Events of the whole trace.
        remade: BUFFER events (and their ends) that were requested and are not copied: the new file has its own.
        slots: Slots in the new file, its TIME and BUFFER events included.
    """

    path: Path
    selected: int
    context: int
    opening: int
    total: int
    remade: int
    slots: int

    @property
    def remade_text(self) -> str:
        """What became of the BUFFER events, as a sentence without a full stop; empty if none was requested."""
        if not self.remade:
            return ""
        return (
            f"{self.remade:,} BUFFER events are not copied: the new file has its own, numbered by its buffers, "
            "and TIME events where they need them"
        )


def write_subset(
    trace: Trace,
    path: Path | str,
    selected: Bools,
    window: TimeWindow | None = None,
    *,
    with_context: bool = True,
    progress: Callable[[float], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> SubsetReport:
    """Write some events of a trace as a .kev file.

    Args:
        trace: A trace of QNX; of a listing the header keys it has are written.
        path: The new file, or a pipe or device; an old file is replaced once the new one is complete.
        selected: bool (events,), which events; BUFFER events are made again whatever it says.
        window: Only events in it; None = all.
        with_context: False leaves out everything but the selected events and the TIME and BUFFER events.
        progress: Called with 0 to 1.
        cancelled: Called between chunks; True stops.

    Raises:
        UsageError: The file would replace the trace itself, or cannot be written; or it is a thread trace.
        Cancelled: `cancelled()` returned True; nothing is left behind.
    """
    path = Path(path)
    if not trace.release.is_qnx:
        raise UsageError(f"{trace.path.name}: traces of other systems have events that no .kev file can hold")
    if trace.axis is not None:
        raise UsageError(
            f"{trace.path.name}: one .kev file cannot hold events of several targets; write each file's own"
        )
    find_target(path, source_files(trace.path), streams=True)  # refused before the long part
    rows = trace.rows_between(window) if window is not None else slice(0, len(trace.events))
    keep = _selected(trace, selected, rows)
    count = int(np.count_nonzero(keep))
    # Names that came behind a ring capture are no events of it: the new file has them in front.
    has_names_apart = "ring-names" in trace.problems.counts()
    opening = Opening.empty()
    if with_context and (rows.start > 0 or has_names_apart):
        opening = opening_state(trace, rows.start, with_all_names=has_names_apart)
    if with_context:
        _add_context(trace, keep, rows, opening)
    written = np.flatnonzero(keep).astype(np.uint32)
    # Written by first slots, so that the switch between threads stays before the events that follow it.
    written = written[np.argsort(trace.events.slot[written], kind="stable")]
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        write_start(file.stream, header_pairs(trace), _system_page(trace))
        slots = write_slots(file.stream, trace, written, opening, progress, cancelled)
    remade = int(np.count_nonzero(selected[rows])) - count
    return SubsetReport(path, count, len(written) - count, len(opening), len(trace.events), remade, slots)


def _selected(trace: Trace, selected: Bools, rows: slice) -> Bools:
    keep = np.zeros(len(trace.events), np.bool_)
    keep[rows] = selected[rows]
    code = trace.events.code
    for part in chunks(len(keep)):
        keep[part] &= (code[part] != CONTROL_BUFFER) & (code[part] != CONTROL_BUFFER_END)
    return keep


def _add_context(trace: Trace, keep: Bools, rows: slice, opening: Opening) -> None:
    """Add what the selected events need: names, creations, opening states, who ran, and marks of lost events."""
    code = trace.events.code
    names = np.zeros(1 << 15, np.bool_)
    codes = np.arange(1 << 15)
    names[(codes >> 10 == WireClass.PR_TH) & (codes & 1023 >= 64)] = True
    names[[THREAD_CREATE, THREAD_DESTROY, CONTROL_DROPPED]] = True
    switches = _switches_needed(trace, keep, rows)
    for part in chunks(rows.stop - rows.start):
        inside = slice(part.start + rows.start, part.stop + rows.start)
        keep[inside] |= names[code[inside]]
    keep[switches] = True
    first = _first_states(trace, rows)
    keep[first[~np.isin(trace.events.thread[first], opening.threads)]] = True


def _switches_needed(trace: Trace, keep: Bools, rows: slice) -> NDArray[np.uint32]:
    """Return the RUNNING events that say to whom the selected events belong: on each CPU the last one before each."""
    events = trace.events
    running = rows_of_codes(trace, THREAD_RUNNING)
    running = running[(running >= rows.start) & (running < rows.stop)]
    others = np.flatnonzero(keep).astype(np.uint32)
    is_thread = (events.code[others] >> 10 == WireClass.PR_TH) & (events.code[others] & 1023 < 64)
    others = others[~is_thread]
    needed = []
    for cpu in np.unique(events.cpu[others]):
        switches = running[events.cpu[running] == cpu]
        switches = switches[np.argsort(events.slot[switches], kind="stable")]
        own = others[events.cpu[others] == cpu]
        before = np.searchsorted(events.slot[switches], events.slot[own]) - 1
        needed.append(switches[np.unique(before[before >= 0])])
    return np.concatenate(needed) if needed else np.empty(0, np.uint32)


def _first_states(trace: Trace, rows: slice) -> NDArray[np.uint32]:
    """Return each thread's first state event in the window."""
    states, threads = state_rows(trace)
    inside = (states >= rows.start) & (states < rows.stop)
    _, first = np.unique(threads[inside], return_index=True)
    return np.asarray(states[inside][first])


def header_pairs(trace: Trace) -> tuple[tuple[str, str], ...]:
    """Return the header of the new file: that of the trace, its length and byte order put right, and a mark."""
    order = f"{trace.byte_order.upper()}_ENDIAN"
    # Made-up keys cannot be decided from the real ones once they are read, so they are not written.
    pairs = [
        (key, value)
        for key, value in trace.header.pairs
        if is_key(key) and not holds_key(value) and key != MARK[0] and (not key.endswith("_ENDIAN") or key == order)
    ]
    length = str(len(_system_page(trace)))
    pairs = [(key, length if key == "SYSPAGE_LEN" else value) for key, value in pairs]
    keys = {key for key, _ in pairs}
    if order not in keys:
        pairs.insert(0, (order, "TRUE"))
    if "CYCLES_PER_SEC" not in keys:
        pairs.append(("CYCLES_PER_SEC", str(trace.clock.cycles_per_s)))
    if "SYSPAGE_LEN" not in keys:
        pairs.append(("SYSPAGE_LEN", length))
    return (*pairs, MARK)


def _system_page(trace: Trace) -> bytes:
    return trace.system.raw if trace.system is not None else b""
