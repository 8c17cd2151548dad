"""Converts a decoded .kev file to arrays and plain values for a cache, and back. Payloads stay in the file itself.

Types, lengths, and the range of every row and slot number from the cache are checked here. The cache itself checks that
the file is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.shared_file import DamagedFileError
from satview.base.time import Clock
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.wire import CODE_COUNT
from satview.formats.kev.payloads import SlotPayloads
from satview.formats.kev.reader import KevStart
from satview.formats.kev.syspage import parse_syspage
from satview.store.problems import Problems
from satview.store.tables import BufferTable, EventTable, Fragments, ProcessTable, StateIndex, ThreadTable
from satview.store.trace import Trace

Arrays = Mapping[str, NDArray[Any]]
_TABLES: Final = {
    "events": EventTable, "threads": ThreadTable, "processes": ProcessTable, "states": StateIndex,
    "buffers": BufferTable, "fragments": Fragments,
}  # fmt: skip
_DTYPES: Final = {
    "events.time_cycles": "i8", "events.code": "u2", "events.cpu": "u1", "events.thread": "u2 u4",
    "events.slot": "u4 u8", "events.slot_count": "u2 u4", "threads.pid": "i4", "threads.tid": "i4",
    "threads.process": "i4", "processes.pid": "i4", "processes.parent_pid": "i4", "processes.created_cycles": "i8",
    "processes.destroyed_cycles": "i8", "states.event": "u4", "states.start": "i8", "buffers.slot": "i8",
    "buffers.cpu": "u1", "buffers.sequence": "u4", "buffers.slots": "u4", "buffers.time_cycles": "i8",
    "buffers.lost_before": "u4", "fragments.event": "u4", "fragments.start": "i8", "fragments.slot": "u4 u8",
    "truncated": "u4", "code_counts": "i8", "gaps": "i8",
}  # fmt: skip
_CPUS: Final = 64


def arrays_of(trace: Trace) -> dict[str, NDArray[Any]]:
    """Return the columns of a trace by name, without copying them.

    Returns:
        Arrays (n,) of the types in `satview.store.tables`.
    """
    columns = {
        f"{name}.{column.name}": getattr(getattr(trace, name), column.name)
        for name, table in _TABLES.items()
        for column in fields(table)
        if column.name != "names"
    }
    return columns | {"truncated": trace.truncated, "code_counts": trace.code_counts, "gaps": trace.gaps.ravel()}


def values_of(trace: Trace) -> dict[str, Any]:
    """Return the values of a trace that are neither columns nor in the header of its file, for JSON."""
    return {
        "release": str(trace.release),
        "is_absolute": trace.clock.is_absolute,
        "cycles_per_s": trace.clock.cycles_per_s,
        "cpu_count": trace.cpu_count,
        "dump_end_cycles": trace.dump_end_cycles,
        "threads": list(trace.threads.names),
        "processes": list(trace.processes.names),
        "problems": trace.problems.values(),
    }


def trace_of(path: Path, start: KevStart, values: Mapping[str, Any], arrays: Arrays) -> Trace:
    """Return the trace of a file from its cached values.

    Args:
        path: The file.
        start: Header, system page and slots of the file.
        values: Result of `values_of`.
        arrays: Result of `arrays_of`.

    Raises:
        DamagedFileError: The values or arrays cannot belong to this file.
    """
    try:
        return _trace_of(path, start, values, arrays)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DamagedFileError(f"it holds no trace: {error}") from error


def _trace_of(path: Path, start: KevStart, values: Mapping[str, Any], arrays: Arrays) -> Trace:
    for name, kinds in _DTYPES.items():
        if arrays[name].dtype not in [np.dtype(kind) for kind in kinds.split()] or arrays[name].ndim != 1:
            raise ValueError(f"column {name} is of another type")
    names = {name: tuple(map(str, values[name])) for name in ("threads", "processes")}
    tables: dict[str, Any] = {}
    for name, table in _TABLES.items():
        columns = {
            column.name: names[name] if column.name == "names" else arrays[f"{name}.{column.name}"]
            for column in fields(table)
        }
        tables[name] = table(**columns)
        # EventTable checks its lengths itself; lengths of groups are checked below.
        if name in ("threads", "processes", "buffers") and len({len(column) for column in columns.values()}) != 1:
            raise ValueError(f"the columns of {name} differ in length")
    _check_numbers(tables, arrays, len(start.slots))
    system, _ = parse_syspage(start.page, start.byte_order)
    release = Release(str(values["release"]))
    events, tables_of = tables["events"], catalogue(release)
    begin = int(events.time_cycles[0]) if len(events) else 0
    clock = Clock(int(values["cycles_per_s"]), begin, system.boot_time_s if system else None,
                  bool(values["is_absolute"]))  # fmt: skip
    cpu_count = int(values["cpu_count"])
    if not 1 <= cpu_count <= _CPUS or clock.cycles_per_s < 1:
        raise ValueError("impossible number of CPUs or clock rate")
    payloads = SlotPayloads(start.slots, events, tables["fragments"], start.byte_order, tables_of)
    trace = Trace(
        path,
        "kev",
        start.header,
        system,
        release,
        start.byte_order,
        clock,
        cpu_count,
        len(start.slots),
        events,
        tables["threads"],
        tables["processes"],
        tables["states"],
        tables["buffers"],
        payloads,
        Problems.of_values(values["problems"]),
        tables_of,
        int(values["dump_end_cycles"]),
        tables["fragments"],
        arrays["truncated"],
        gaps=np.ascontiguousarray(arrays["gaps"]).reshape(-1, 4),
    )
    trace.cached("code_counts", lambda _trace: arrays["code_counts"])
    return trace


def _check_numbers(tables: Mapping[str, Any], arrays: Arrays, slots: int) -> None:
    """Raise ValueError if rows or slots do not exist, or lengths and counts contradict each other."""
    events, threads, processes = len(tables["events"]), len(tables["threads"]), len(tables["processes"])
    for name, below in (
        ("events.code", CODE_COUNT), ("events.cpu", _CPUS), ("events.thread", threads), ("events.slot", slots),
        ("threads.process", processes), ("states.event", events), ("fragments.event", events),
        ("fragments.slot", slots), ("truncated", events), ("buffers.slot", slots),
    ):  # fmt: skip
        # These numbers are used as indices without further checks: an invalid one would read another row or raise an
        # exception long after the file was opened.
        column = arrays[name]
        if len(column) and not (int(column.max()) < below and int(column.min()) >= 0):
            raise ValueError(f"column {name} names what is not there")
    for name, of, count in (("states", "event", threads), ("fragments", "slot", len(arrays["fragments.event"]))):
        start, rows = arrays[f"{name}.start"], arrays[f"{name}.{of}"]
        if len(start) != count + 1 or int(start[0]) or int(start[-1]) != len(rows) or np.any(start[1:] < start[:-1]):
            raise ValueError(f"the groups of {name} do not fit")
    if len(arrays["code_counts"]) != CODE_COUNT or int(arrays["code_counts"].sum()) != events:
        raise ValueError("the counts of events do not fit")
    if len(arrays["fragments.event"]) and int(np.diff(arrays["fragments.start"]).min()) < 1:
        raise ValueError("an event has no slots")
    if int(arrays["events.slot_count"].min(initial=1)) < 1:
        raise ValueError("an event has no slots")
    if threads < 1 or processes < 1:
        raise ValueError("the first thread or process is missing")
