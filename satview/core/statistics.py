"""Compiled passes of statistics; see statistics.c and scheduling.c."""

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
    """Return the nesting of the interrupts of a CPU, one element for each entry or exit.

    Args:
        code: uint16 (events,).
        cpu: uint8 (events,).
        time: int64 (events,), cycles, ascending.
        step: int8 (32768,), by code: 1 for entries, -1 for exits, 0 for others.
        rows: uint32 (k,), ascending, rows of the events of class INT.
        number: Number of the CPU.
        lost: int64 (m,), end of each loss of events on the CPU, cycles, ascending.

    Returns:
        Each (n,): row of the event; index of the part between losses; step; nesting depth after the event; whether the
        event is an exit before the first entry of its part.
    """
    rows, lost, room = np.ascontiguousarray(rows), np.ascontiguousarray(lost), len(rows)
    columns = (
        np.empty(room, np.uint32), np.empty(room, np.int64), np.empty(room, np.int8), np.empty(room, np.int64),
        np.empty(room, np.bool_),
    )  # fmt: skip
    count = call("nesting", code, cpu, time, step, rows, number, lost, *columns)
    for column in columns:
        column.resize(count, refcheck=False)  # in place, which frees the unused part without a copy
    return columns


def left_open(
    code: NDArray[np.uint16], cpu: NDArray[np.uint8], step: NDArray[np.int8], rows: NDArray[np.uint32], most: int
) -> NDArray[np.bool_]:
    """Return which CPUs have an interrupt that is never left, bool (256,).

    Such an interrupt is still open at the end of the trace, or remains open for `most` events. CPUs without interrupt
    exits are never included.

    Args:
        code: uint16 (events,).
        cpu: uint8 (events,).
        step: int8 (32768,), see `nesting`.
        rows: uint32 (k,), ascending, rows of the events of class INT.
        most: Number of consecutive INT events of a CPU within interrupts from which an interrupt counts as never left.
    """
    is_open = np.empty(256, np.bool_)
    call("left_open", code, cpu, step, np.ascontiguousarray(rows), most, is_open)
    return is_open


def covered(
    start: NDArray[np.int64], end: NDArray[np.int64], interval_start: NDArray[np.int64], interval_end: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the number of cycles of each interval that are covered by disjoint ranges, int64 (n,).

    Args:
        start: int64 (ranges,), start of each range, cycles, ascending.
        end: int64 (ranges,), end of each range, before the start of the next.
        interval_start: int64 (n,), start of each interval, cycles.
        interval_end: int64 (n,), end of each interval, cycles.
    """
    start, end, interval_start, interval_end = map(np.ascontiguousarray, (start, end, interval_start, interval_end))
    out = np.empty(len(interval_start), np.int64)
    call("covered", start, end, np.empty(len(start) + 1, np.uint64), interval_start, interval_end, out)
    return out


def window_sums(
    start: NDArray[np.int64], end: NDArray[np.int64], begins: NDArray[np.int64], window: int
) -> NDArray[np.int64]:
    """Return the total length of intervals within each window, int64 (n,), cycles; overlaps count repeatedly.

    Args:
        start: int64 (k,), start times of the intervals, cycles, ascending.
        end: int64 (k,), end times of the intervals, cycles, sorted independently of `start`.
        begins: int64 (n,), start of each window, cycles, ascending.
        window: Length of the windows in cycles.
    """
    sums = np.zeros(len(begins), np.int64)
    call("window_sums", start, begins, window, False, sums)
    call("window_sums", end, begins, window, True, sums)
    return sums


def event_counts(
    code: NDArray[np.uint16], thread: NDArray[np.unsignedinteger], start: int, role: NDArray[np.uint8], sums: EventSums
) -> None:
    """Add a block of events to the counts, first rows and last rows by code, and to the counts by thread and role.

    Args:
        code: uint16 (n,).
        thread: uint16 or uint32 (n,), rows of the thread table.
        start: Row of the first event of the block.
        role: uint8 (32768,), role of each code.
        sums: Results for the events before the block, updated in place: count, first row and last row by code, int64
            (32768,) each, and counts by thread and role, int64 (threads, roles).
    """
    counts, first_row, last_row, by_thread = sums
    threads, roles = by_thread.shape
    call("event_counts", code, thread, start, role, roles, threads, counts, first_row, last_row, by_thread)


@dataclass(frozen=True, slots=True)
class Rules:
    """Meaning of event codes and lane values, for `scheduling`.

    Attributes:
        kind: uint8 (32768,), flags by code: `IS_STATE`, also `IS_RUN` if the thread starts to run; `IS_ENTRY` and
            `IS_EXIT` for interrupts.
        value: uint8 (2, 32768), lane value by code, for normal threads and for idle threads.
        destroyed, created: Codes of the end and the start of a thread.
        running, ready, dead, absent, unknown: Lane values.
        dump_end: End of the initial dump of thread states, cycles.
        start, end: Start and end of the trace, cycles.
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
    """Losses: ranges in which events of all CPUs are missing; int64, cycles, ascending.

    Attributes:
        cut: (k,), start of each loss.
        lost, regained: (m,), start and end of each loss, adjacent losses merged.
    """

    cut: NDArray[np.int64]
    lost: NDArray[np.int64]
    regained: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of states, runs and interrupts; int64 each.

    Attributes:
        states: (threads, values, 4), by `STATE_SUMS`.
        runs: (threads, 8), by `RUN_SUMS`; start times are -1 without runs.
        cpus: (cpus, 9), by `CPU_SUMS`; start times are -1 without runs.
        busy: (cpus, threads), cycles of threads except idle threads; -1 for a thread that never ran on the CPU.
        events: (threads,), number of state events.
        known: (2,), number of runs of non-idle threads, and of those that start before the previous run has ended.
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
    """Return sums of states, runs and interrupts; None if an event has a thread or lane value that does not exist.

    Args:
        rules: Meaning of the events.
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
        table[:, [name.endswith("_start") for name in names]] = -1
    cut, lost, regained = map(np.ascontiguousarray, (missing.cut, missing.lost, missing.regained))
    silent_from, silent_to = lost[regained - lost > 1], regained[regained - lost > 1]
    now = np.empty((threads, _THREAD_WORDS), np.int64)
    is_other = call(
        "scheduling", *map(np.ascontiguousarray, (code, thread, cpu, time, rules.kind, rules.value, idle)),
        *(getattr(rules, name) for name in _RULES), cpus, cut, lost, regained, silent_from, silent_to, now, sums.states,
        sums.runs, sums.cpus, sums.busy, sums.known,
    )  # fmt: skip
    if is_other:
        return None
    sums.events[:] = now[:, _EVENTS_WORD]
    return sums
