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

_DUMP_EVENTS = 1 << 17  # no target has so many threads that its dump is longer
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


def _name(payloads: SlotPayloads, row: int) -> str:
    return payloads.raw(row)[8:].split(b"\0", 1)[0].decode("utf-8", "replace")


def thread_and_process_tables(
    events: EventTable,
    payloads: SlotPayloads,
    process_rows: NDArray[np.int64],
    process_words: NDArray[np.uint32],
    keys: NDArray[np.uint64],
    dump_end_cycles: int,
) -> tuple[ThreadTable, ProcessTable]:
    """Build the tables of threads and processes.

    Args:
        events: In time order.
        payloads: Of the same trace.
        process_rows: Rows of the PROCESS events, ascending.
        process_words: (len(process_rows), 2): the first two payload words of each.
        keys: (pid, tid) per thread row as two payload words; row 0 is nobody.
        dump_end_cycles: Creations up to here belong to the opening state dump: the process is older than the trace.
    """
    pids = keys.view(np.uint32).reshape(-1, 2)[:, 0].astype(np.int32)
    tids = keys.view(np.uint32).reshape(-1, 2)[:, 1].astype(np.int32)
    # Row 0 means "not known" in all tables.
    pids[0], tids[0] = -1, -1
    processes: dict[int, _Process] = {}
    thread_names: dict[tuple[int, int], int] = {}  # (pid, tid) to the row of the last event that names it
    firsts, seconds = (column.astype(np.int32).tolist() for column in process_words.T)
    codes, times = events.code[process_rows].tolist(), events.time_cycles[process_rows].tolist()
    for row, first, second, code, time in zip(process_rows.tolist(), firsts, seconds, codes, times, strict=True):
        if code == wire.PROC_THREAD_NAME:
            thread_names[first, second] = row
            continue
        # Word 0 is the parent, word 1 the process (section 8.5).
        process = processes.setdefault(second, _Process())
        if code in _NAMED and (name := _name(payloads, row)):
            process.name = name
        if code in _CREATED:
            process.parent_pid = first
            # START reports processes that exist, so the same pid may be "created" again (section 8.5): only a creation
            # after the dump, of a pid that had not been heard of, is one.
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
        for key, named_at in thread_names.items():
            if key in rows:
                names[rows[key]] = _name(payloads, named_at)
    return ThreadTable(pids, tids, process_of, tuple(names)), process_table


def _in_range(pid: int) -> int:
    return pid if -(1 << 31) <= pid < 1 << 31 else -1


def dump_end(events: EventTable, code_is_activity: NDArray[np.bool_], first_loss_cycles: int) -> int:
    """Return when the opening state dump ends: just before the first event that is real activity.

    START reports every process and thread that exists, first of all events and from the CPU that called it: creations,
    names and one state each. So the dump ends before that CPU's first event of any other kind (a kernel call, an
    interrupt, a message), or before it reports a second state of a thread. Other CPUs may be active meanwhile. A state
    before the first creation shows that there is no dump: the trace begins later. Source: kernel event trace format
    8.5, capture 4.4.

    Args:
        events: In time order.
        code_is_activity: (32768,), codes that no dump holds.
        first_loss_cycles: Where events are missing for the first time: the dump ends there at the latest.

    Returns:
        Cycles; one before the first event if there is no dump.
    """
    # Behind a gap a second dump may follow, of a capture that was started again; it is no part of the opening one.
    count = min(_DUMP_EVENTS, int(np.searchsorted(events.time_cycles, first_loss_cycles)))
    code, creations = events.code[:count], (wire.PROC_CREATE, wire.PROC_CREATE_NAME, wire.THREAD_CREATE)
    if not len(code):
        return int(events.time_cycles[0]) - 1 if len(events) else 0
    first_creation = int(np.argmax(np.isin(code, creations)))
    before = code[:first_creation]
    if int(code[first_creation]) not in creations or code_is_activity[before].any() or _is_state(before).any():
        return int(events.time_cycles[0]) - 1
    mine = np.flatnonzero(events.cpu[: len(code)] == events.cpu[first_creation])
    active = code_is_activity[code[mine]]
    end = int(np.argmax(active)) if active.any() else len(mine)
    dumped = code[mine[:end]]
    states = np.flatnonzero(_is_state(dumped))
    again = _first_repetition(events.thread[mine[states]])
    last = mine[int(states[again]) - 1] if again is not None else mine[end - 1]
    return int(events.time_cycles[last])


def _is_state(code: NDArray[np.uint16]) -> NDArray[np.bool_]:
    """Return which codes are states of threads."""
    is_thread = (code >> wire.CLASS_SHIFT == wire.WireClass.PR_TH) & (code & wire.EVENT_MASK < 64)
    return np.asarray(is_thread & (code != wire.THREAD_CREATE))


def _first_repetition(values: NDArray[np.unsignedinteger]) -> int | None:
    """Return the first position whose value stood earlier; looks at twice as many each time, as it comes early."""
    size = 256
    while True:
        part = values[:size]
        _, first = np.unique(part, return_index=True)
        if len(first) < len(part):
            is_first = np.zeros(len(part), np.bool_)
            is_first[first] = True
            return int(np.argmin(is_first))
        if size >= len(values):
            return None
        size *= 2
