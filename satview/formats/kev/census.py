"""Processes and threads of a trace: ids, parents, names, lifetimes.

Names count for the whole trace, whenever they come.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.formats.kev.payloads import SlotPayloads
from satview.store.tables import EventTable, ProcessTable, ThreadTable

_NAMED = (wire.PROC_CREATE_NAME, wire.PROC_DESTROY_NAME)
_CREATED = (wire.PROC_CREATE, wire.PROC_CREATE_NAME)
_DESTROYED = (wire.PROC_DESTROY, wire.PROC_DESTROY_NAME)


@dataclass(slots=True)
class _Process:
    parent_pid: int = -1
    name: str = ""
    created_cycles: int = -1
    destroyed_cycles: int = -1
    has_history: bool = False


def _signed(word: int) -> int:
    return word - (1 << 32) if word >= 1 << 31 else word


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def take_census(
    events: EventTable,
    payloads: SlotPayloads,
    process_rows: NDArray[np.int64],
    keys: NDArray[np.uint64],
    dump_end_cycles: int,
) -> tuple[ThreadTable, ProcessTable]:
    """Build the tables of threads and processes.

    Args:
        events: In time order.
        payloads: Of the same trace.
        process_rows: Rows of the PROCESS events, ascending.
        keys: (pid, tid) per thread row as two payload words; row 0 is nobody.
        dump_end_cycles: Creations up to here belong to the opening state dump: the process is older than the trace.
    """
    pids = keys.view(np.uint32).reshape(-1, 2)[:, 0].astype(np.int32)
    tids = keys.view(np.uint32).reshape(-1, 2)[:, 1].astype(np.int32)
    pids[0], tids[0] = -1, -1
    processes: dict[int, _Process] = {}
    thread_names: dict[tuple[int, int], str] = {}
    for row in process_rows.tolist():
        words = payloads.column(np.array([row]), 0), payloads.column(np.array([row]), 1)
        first, second = _signed(int(words[0][0])), _signed(int(words[1][0]))
        code, time = int(events.code[row]), int(events.time_cycles[row])
        if code == wire.PROC_THREAD_NAME:
            thread_names[first, second] = _text(payloads.raw(row)[8:])
            continue
        process = processes.setdefault(second, _Process())
        if code in _NAMED and (name := _text(payloads.raw(row)[8:])):
            process.name = name
        if code in _CREATED:
            process.parent_pid = first
            if time > dump_end_cycles and not process.has_history:
                process.created_cycles = time
            process.destroyed_cycles = -1
        elif code in _DESTROYED:
            process.destroyed_cycles = time
        process.has_history = True
    all_pids = np.unique(
        np.concatenate((pids[1:], np.array(sorted({*processes, *(p for p, _ in thread_names)}), np.int32)))
    )
    table = [processes.get(int(pid), _Process()) for pid in all_pids]
    process_table = ProcessTable(
        np.concatenate((np.array([-1], np.int32), all_pids.astype(np.int32))),
        np.array([-1, *(_in_range(p.parent_pid) for p in table)], np.int32),
        ("", *(p.name for p in table)),
        np.array([-1, *(p.created_cycles for p in table)], np.int64),
        np.array([-1, *(p.destroyed_cycles for p in table)], np.int64),
    )
    process_of = (np.searchsorted(all_pids, pids) + 1).astype(np.int32)
    process_of[0] = 0
    names = [""] * len(pids)
    if thread_names:
        rows = {key: row for row, key in enumerate(zip(pids.tolist(), tids.tolist(), strict=True))}
        for key, name in thread_names.items():
            if key in rows:
                names[rows[key]] = name
    return ThreadTable(pids, tids, process_of, tuple(names)), process_table


def _in_range(pid: int) -> int:
    return pid if -(1 << 31) <= pid < 1 << 31 else -1


def dump_end(events: EventTable, code_is_activity: NDArray[np.bool_]) -> int:
    """Return when the opening state dump ends: just before the first event that is real activity.

    START reports every process and thread that exists, first of all events: creations, names and one state each. The
    dump ends before the first event of any other kind (a kernel call, an interrupt, a message), or before the second
    state event of a thread. Source: kernel event trace format 8.5, capture 4.4.
    """
    head = min(len(events), 1 << 17)
    if not head:
        return 0
    code = events.code[:head]
    active = np.flatnonzero(code_is_activity[code])
    end = int(active[0]) if len(active) else head
    states = np.flatnonzero(
        (code[:end] >> wire.CLASS_SHIFT == wire.WireClass.PR_TH)
        & (code[:end] & wire.EVENT_MASK < 64)
        & (code[:end] != wire.THREAD_CREATE)
    )
    threads = events.thread[states]
    _, first = np.unique(threads, return_index=True)
    again = np.setdiff1d(np.arange(len(states)), first)
    if len(again):
        end = min(end, int(states[again[0]]))
    has_dump = np.isin(code[:end], (wire.PROC_CREATE, wire.PROC_CREATE_NAME, wire.THREAD_CREATE)).any()
    return int(events.time_cycles[max(0, end - 1)]) if has_dump else int(events.time_cycles[0]) - 1
