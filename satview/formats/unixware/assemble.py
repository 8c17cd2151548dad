"""From columns to a `Trace`: merge the files by time, number threads and LWPs, derive states."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import NS_PER_S, Clock
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.unixware import FIRST_CLASS, OTHER, OWN_CATEGORY, WHICH_SHIFT, record_code
from satview.formats.unixware.calls import (
    NOBODY,
    Calls,
    effects,
    last_of_thread,
    pair_records,
    waits,
    which_of,
    with_outcomes,
)
from satview.formats.unixware.changes import needed_for_own_state, state_index
from satview.formats.unixware.columns import Columns, concatenated
from satview.formats.unixware.names import Names
from satview.formats.unixware.payloads import OddRecords, RecordPayloads
from satview.store.head import Header
from satview.store.problems import Problems
from satview.store.tables import BufferTable, EventTable, ProcessTable, ThreadTable
from satview.store.trace import Trace

_MOST_LANES: Final = 256  # the event table has eight bits for a CPU
_MANY: Final = 200
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Numbering:
    """Threads and processes, and the thread of every record."""

    threads: ThreadTable
    processes: ProcessTable
    thread: NDArray[np.unsignedinteger]
    row_of: dict[tuple[int, int], int]


def trace_from_columns(path: Path, files: Sequence[Path], columns: Columns, names: Names, problems: Problems) -> Trace:
    """Build a trace from the records of a set.

    Args:
        path: What was opened, for titles.
        files: The files that were read.
        columns: Their records; emptied, so that they need not be held twice.
        names: Names reported beside the traces.
        problems: Receives what is found wrong; becomes part of the trace.
    """
    time_ns = np.concatenate(columns.time_ns) if columns.time_ns else np.empty(0, np.int64)
    columns.time_ns.clear()
    order = np.argsort(time_ns, kind="stable")
    time_ns = time_ns[order]
    lwp_id, pid, tid = (concatenated(part)[order].astype(np.int64) for part in columns.ids)
    is_own = concatenated(columns.is_own)[order].astype(np.bool_)
    code, odd = _codes([concatenated(part)[order].astype(np.int64) for part in columns.kind], is_own, time_ns, problems)
    arguments = tuple(concatenated(part)[order] for part in columns.arguments)
    line_counts = _numbering(pid, tid, code, arguments, names)
    lane, titles = _lanes(pid, lwp_id, problems)
    del pid, tid, lwp_id, order, is_own  # a third of what is held by now
    calls = pair_records(time_ns, code, line_counts.thread, arguments)
    _report_unfinished(calls, problems)
    process = line_counts.threads.process
    waiting = waits(calls, line_counts.row_of, process)
    other = effects(calls, line_counts.row_of, process, needed_for_own_state(calls, waiting, lane))
    code = with_outcomes(calls, waiting, other)
    states = state_index(calls, code, lane, other, len(line_counts.threads))
    n = len(time_ns)
    events = EventTable(time_ns, code, lane, line_counts.thread, np.arange(n, dtype=np.uint32), np.ones(n, np.uint16))
    payloads = RecordPayloads(arguments, copy(events), line_counts.threads, calls.partner, odd, names.objects)
    start = int(time_ns[0]) if n else 0
    return Trace(
        path,
        "thread_trace",
        _header(files),
        None,
        Release.UNIXWARE,
        "little",
        Clock(NS_PER_S, start, 0),
        max(1, len(titles)),
        n,
        events,
        line_counts.threads,
        line_counts.processes,
        states,
        BufferTable.none(),
        payloads,
        problems,
        catalogue(Release.UNIXWARE),
        start - 1,
        pairs=calls.partner,
        cpu_titles=titles,
    )


def _header(files: Sequence[Path]) -> Header:
    first = files[0].parent.as_posix() if files else ""
    return Header((("FILE_COUNT", str(len(files))), ("DIRECTORY", first)))


def _codes(
    kind: list[Ints], is_own: NDArray[np.bool_], time_ns: Ints, problems: Problems
) -> tuple[NDArray[np.uint16], OddRecords]:
    """Return the code of every record, and the numbers of those that no code can hold."""
    category, interface, which = kind
    fits = np.where(is_own, category == OWN_CATEGORY, (category >= 1) & (category < OWN_CATEGORY))
    fits &= (interface >= 0) & (interface < 32)
    fits &= (which >= 0) & (which <= 2)
    code = np.full(len(category), OTHER, np.uint16)
    made = (FIRST_CLASS + category) << wire.CLASS_SHIFT | interface | which << WHICH_SHIFT
    code[fits] = made[fits].astype(np.uint16)
    known = np.zeros(wire.CODE_COUNT, np.bool_)
    known[list(catalogue(Release.UNIXWARE).codes())] = True
    known[record_code("thr_exit")] = True
    unknown = np.flatnonzero(~known[code])
    if len(unknown):
        numbers = np.stack([column[unknown] for column in kind], axis=1)
        kinds, first, counts = np.unique(numbers, axis=0, return_index=True, return_counts=True)
        for (one, two, third), at, count in zip(kinds[:_MANY].tolist(), first.tolist(), counts.tolist(), strict=False):
            problems.add(
                "unknown-events",
                f"event1 {one}, event2 {two}, which {third} is in no table",
                None,
                count,
                int(time_ns[unknown[at]]),
            )
        if len(kinds) > _MANY:
            problems.add("unknown-events", "and more of the same", None, int(counts[_MANY:].sum()))
    odd = np.flatnonzero(~fits)
    return code, OddRecords(odd, np.stack([column[odd] for column in kind], axis=1))


def _numbering(
    pid: Ints, tid: Ints, code: NDArray[np.uint16], arguments: tuple[NDArray[np.signedinteger], ...], names: Names
) -> _Numbering:
    """Number the threads that wrote records or were created; row 0 means nobody."""
    key = pid << 32 | tid
    created = np.flatnonzero(
        (code == record_code("thr_create", 2)) & (arguments[0] == 0) & (arguments[1] > 0) & (arguments[1] < 1 << 31)
    )
    new = pid[created] << 32 | arguments[1][created].astype(np.int64)
    keys = np.unique(np.concatenate((key, new)))
    pids, process = np.unique(keys >> 32, return_inverse=True)
    thread = np.searchsorted(keys, key) + 1
    thread_pid = np.concatenate(([-1], keys >> 32)).astype(np.int32)
    thread_tid = np.concatenate(([-1], keys & 0xFFFFFFFF)).astype(np.int32)
    process_row = np.concatenate(([0], process + 1)).astype(np.int32)
    pairs = zip(thread_pid.tolist(), thread_tid.tolist(), strict=True)
    thread_names = tuple(names.threads.get(pair, "") for pair in pairs)
    nothing = np.full(len(pids) + 1, -1, np.int64)
    processes = ProcessTable(
        np.concatenate(([-1], pids)).astype(np.int32),
        nothing.astype(np.int32),
        ("", *(names.processes.get(number, "") for number in pids.tolist())),
        nothing,
        nothing.copy(),
    )
    row_of = {pair: row for row, pair in enumerate(zip(process_row.tolist(), thread_tid.tolist(), strict=True)) if row}
    small = np.uint16 if len(keys) < 1 << 16 else np.uint32
    threads = ThreadTable(thread_pid, thread_tid, process_row, thread_names)
    return _Numbering(threads, processes, thread.astype(small), row_of)


def _lanes(pid: Ints, lwp_id: Ints, problems: Problems) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Return the lane of every record's LWP and the titles of the lanes."""
    keys, lane = np.unique(pid << 32 | lwp_id, return_inverse=True)
    several = len(np.unique(keys >> 32)) > 1
    titles = [f"LWP {k & 0xFFFFFFFF}" + (f" of {k >> 32}" if several else "") for k in keys[:_MOST_LANES].tolist()]
    if len(keys) > _MOST_LANES:
        problems.add(
            "lwp-lanes",
            f"{len(keys)} LWPs; those from number {_MOST_LANES} on share one lane",
            count=len(keys) - _MOST_LANES + 1,
        )
        titles[-1] = "other LWPs"
    return np.minimum(lane, _MOST_LANES - 1).astype(np.uint8), tuple(titles)


def _report_unfinished(calls: Calls, problems: Problems) -> None:
    """List calls of which only one of two records is there; those that still wait at the end are no fault."""
    which = which_of(calls.code)
    alone = (which != 0) & (calls.partner == NOBODY) & (calls.code >> wire.CLASS_SHIFT != FIRST_CLASS)
    alone &= ~((which == 1) & last_of_thread(calls))
    rows = np.flatnonzero(alone)
    for row in rows[:_MANY].tolist():
        name = catalogue(Release.UNIXWARE).name(int(calls.code[row]))
        problems.add("unfinished-calls", f"{name} has no counterpart", None, 1, int(calls.time_ns[row]))
    if len(rows) > _MANY:
        problems.add("unfinished-calls", "and more of the same", None, len(rows) - _MANY)
