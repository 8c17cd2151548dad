"""The compiled passes of statistics; see statistics.c and scheduling.c."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core.library import call

IS_STATE: Final = 1
IS_RUN: Final = 2
IS_ENTRY: Final = 4
IS_EXIT: Final = 8
STATE_SUMS: Final = ("count", "total", "longest", "longest_start")
RUN_SUMS: Final = ("cpu", "interrupted", "runs", "switches", "longest", "longest_start", "migrations", "preemptions")
CPU_SUMS: Final = ("busy", "idle", "handled", "runs", "switches", "longest", "longest_start", "events", "first_start")
_THREAD_WORDS: Final = 10
_EVENTS_WORD: Final = 3
_RULES: Final = (
    "destroyed", "created", "running", "ready", "dead", "absent", "unknown", "dump_end", "start", "end", "values",
)  # fmt: skip
EventSums = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
Nested = tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int8], NDArray[np.int64], NDArray[np.bool_]]


def nesting(
    code: NDArray[np.uint16],
    cpu: NDArray[np.uint8],
    time: NDArray[np.int64],
    step: NDArray[np.int8],
    rows: NDArray[np.uint32],
    number: int,
    lost: NDArray[np.int64],
) -> Nested:
    """Return how the interrupts of a CPU are nested: rows, part, step, depth and whether an exit is stray, each (n,).

    Args:
        code: uint16 (events,).
        cpu: uint8 (events,).
        time: int64 (events,), cycles, ascending.
        step: int8 (32768,), by code: 1 for entries, -1 for exits, 0 for others.
        rows: uint32 (k,), ascending, the events of class INT.
        number: Number of the CPU.
        lost: int64 (m,), ends of its losses, cycles, ascending.
    """
    rows, lost, room = np.ascontiguousarray(rows), np.ascontiguousarray(lost), len(rows)
    columns = (
        np.empty(room, np.uint32), np.empty(room, np.int64), np.empty(room, np.int8), np.empty(room, np.int64),
        np.empty(room, np.bool_),
    )  # fmt: skip
    count = call("nesting", code, cpu, time, step, rows, number, lost, *columns)
    for column in columns:
        column.resize(count, refcheck=False)  # in place: what is not needed goes back without a copy
    return columns


def left_open(
    code: NDArray[np.uint16], cpu: NDArray[np.uint8], step: NDArray[np.int8], rows: NDArray[np.uint32], most: int
) -> NDArray[np.bool_]:
    """Return which CPUs are in interrupts at the end, or were for `most` events in a row, bool (256,).

    A CPU without any interrupt exit is never among them.

    Args:
        code: uint16 (events,).
        cpu: uint8 (events,).
        step: int8 (32768,), as for `nesting`.
        rows: uint32 (k,), ascending, the events of class INT.
        most: How many of these events in a row on one CPU count as an interrupt left open.
    """
    is_open = np.empty(256, np.bool_)
    call("left_open", code, cpu, step, np.ascontiguousarray(rows), most, is_open)
    return is_open


def covered(
    start: NDArray[np.int64], end: NDArray[np.int64], interval_start: NDArray[np.int64], interval_end: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many cycles of each interval the ranges cover, int64 (n,).

    Args:
        start: int64 (ranges,), cycles, ascending.
        end: int64 (ranges,); none touches the next start.
        interval_start: int64 (n,), where the intervals begin.
        interval_end: int64 (n,), where they end.
    """
    start, end, interval_start, interval_end = map(np.ascontiguousarray, (start, end, interval_start, interval_end))
    out = np.empty(len(interval_start), np.int64)
    call("covered", start, end, np.empty(len(start) + 1, np.uint64), interval_start, interval_end, out)
    return out


def window_sums(
    start: NDArray[np.int64], end: NDArray[np.int64], begins: NDArray[np.int64], window: int
) -> NDArray[np.int64]:
    """Return the summed lengths of intervals within each window, overlaps counted repeatedly, int64 (n,), cycles.

    Args:
        start: int64 (k,), when intervals begin, cycles, ascending.
        end: int64 (k,), when intervals end, cycles, sorted independently of `start`.
        begins: int64 (n,), when windows begin, cycles, ascending.
        window: Their length in cycles.
    """
    sums = np.zeros(len(begins), np.int64)
    call("window_sums", start, begins, window, False, sums)
    call("window_sums", end, begins, window, True, sums)
    return sums


def event_counts(
    code: NDArray[np.uint16], thread: NDArray[np.unsignedinteger], start: int, role: NDArray[np.uint8], sums: EventSums
) -> None:
    """Count the events of every code, note the first and the last of each, and count those of each thread by role.

    Args:
        code: uint16 (n,).
        thread: uint16 or uint32 (n,), rows of the thread table.
        start: Row of the first of these events.
        role: uint8 (32768,), role of every code.
        sums: Sums of the events before these, updated in place: count, first and last row of every code, int64
            (32768,) each, and int64 (threads, roles).
    """
    counts, first_row, last_row, by_thread = sums
    threads, roles = by_thread.shape
    call("event_counts", code, thread, start, role, roles, threads, counts, first_row, last_row, by_thread)


@dataclass(frozen=True, slots=True)
class Rules:
    """What event codes and lane values mean.

    Attributes:
        kind: uint8 (32768,), by code: `IS_STATE`, with `IS_RUN` where a thread begins to run; `IS_ENTRY` and `IS_EXIT`
            of interrupts.
        value: uint8 (2, 32768), lane value by code, of threads and of idle threads.
        destroyed, created: Codes of the end and the beginning of a thread.
        running, ready, dead, absent, unknown: Lane values.
        dump_end: End of the opening dump, cycles.
        start, end: Begin and end of the trace, cycles.
        values: Upper bound of lane values, exclusive.
    """

    kind: NDArray[np.uint8]
    value: NDArray[np.uint8]
    destroyed: int
    created: int
    running: int
    ready: int
    dead: int
    absent: int
    unknown: int
    dump_end: int
    start: int
    end: int
    values: int


@dataclass(frozen=True, slots=True)
class Missing:
    """Where events of all CPUs are missing, cycles; every column int64, ascending.

    Attributes:
        cut: (k,), begin of each loss.
        lost, regained: (m,), begin and end of losses, with adjacent ranges merged.
    """

    cut: NDArray[np.int64]
    lost: NDArray[np.int64]
    regained: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of states, runs and interrupts; int64 each.

    Attributes:
        states: (threads, values, 4), by `STATE_SUMS`.
        runs: (threads, 8), by `RUN_SUMS`; the begin of the longest run is -1 if there is no run.
        cpus: (cpus, 9), by `CPU_SUMS`; -1 likewise.
        busy: (cpus, threads), cycles of threads except idle threads; -1 for a thread that never ran there.
        events: (threads,), number of state events.
        known: (2,), number of runs of working threads, and of those that begin before the run before has ended.
    """

    states: NDArray[np.int64]
    runs: NDArray[np.int64]
    cpus: NDArray[np.int64]
    busy: NDArray[np.int64]
    events: NDArray[np.int64]
    known: NDArray[np.int64]


def scheduling(
    rules: Rules, code: NDArray[np.uint16], thread: NDArray[np.unsignedinteger], cpu: NDArray[np.uint8],
    time: NDArray[np.int64], idle: NDArray[np.bool_], cpus: int, missing: Missing,
) -> Sums | None:  # fmt: skip
    """Return sums of states, runs and interrupts; None if an event names a thread or lane value that does not exist.

    Args:
        rules: What the events mean.
        code: uint16 (events,).
        thread: uint16 or uint32 (events,), rows of the thread table.
        cpu: uint8 (events,).
        time: int64 (events,), cycles, ascending.
        idle: bool (threads,), which are idle threads.
        cpus: Number of CPUs.
        missing: Ranges in which events are missing.
    """
    threads = len(idle)
    sums = Sums(
        np.zeros((threads, rules.values, len(STATE_SUMS)), np.int64), np.zeros((threads, len(RUN_SUMS)), np.int64),
        np.zeros((cpus, len(CPU_SUMS)), np.int64), np.full((cpus, threads), -1, np.int64), np.zeros(threads, np.int64),
        np.zeros(2, np.int64),
    )  # fmt: skip
    for table, names in ((sums.runs, RUN_SUMS), (sums.cpus, CPU_SUMS)):
        table[:, [name.endswith("_start") for name in names]] = -1  # without one
    cut, lost, regained = map(np.ascontiguousarray, (missing.cut, missing.lost, missing.regained))
    gone, back = lost[regained - lost > 1], regained[regained - lost > 1]
    now = np.empty((threads, _THREAD_WORDS), np.int64)
    is_other = call(
        "scheduling", *map(np.ascontiguousarray, (code, thread, cpu, time, rules.kind, rules.value, idle)),
        *(getattr(rules, name) for name in _RULES), cpus, cut, lost, regained, gone, back, now, sums.states,
        sums.runs, sums.cpus, sums.busy, sums.known,
    )  # fmt: skip
    if is_other:
        return None
    sums.events[:] = now[:, _EVENTS_WORD]
    return sums
