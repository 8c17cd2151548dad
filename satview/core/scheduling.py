"""The compiled walk over the events of a trace that adds up states, runs and interrupts.

`scheduling.c` says what it does and which numpy code is its twin. Arrays must be contiguous and of the types named
here; sizes are taken from them.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.core.library import CODES, I64, POINTER, address, function
from satview.core.links import thread_words

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


class _Scheduling(ctypes.Structure):
    """`struct scheduling` of scheduling.c."""

    _fields_ = [
        *((name, POINTER) for name in ("code", "narrow", "wide", "cpu", "time")), ("events", I64),
        *((name, POINTER) for name in ("kind", "value", "is_idle")),
        *((name, I64) for name in (*_RULES, "threads", "cpus")),
        ("cut", POINTER), ("cuts", I64), ("lost", POINTER), ("found", POINTER), ("losses", I64),
        ("gone", POINTER), ("back", POINTER), ("gaps", I64),
        *((name, POINTER) for name in ("now", "states", "runs", "of_cpu", "busy", "known")),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rules:
    """What codes and lane values are.

    Attributes:
        kind: uint8 (32768,), by code: `IS_STATE`, with `IS_RUN` where a thread begins to run; `IS_ENTRY` and `IS_EXIT`
            of interrupts.
        value: uint8 (2, 32768), lane value by code, of threads and of idle threads.
        destroyed, created: Codes of the end and the beginning of a thread.
        running, ready, dead, absent, unknown: Lane values.
        dump_end: Until when the opening dump goes, cycles.
        start, end: Of the trace, cycles.
        values: All lane values are below.
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
        cut: (k,), since when, each time.
        lost, found: (m,), the same, ranges that touch as one: since when, and until when.
    """

    cut: NDArray[np.int64]
    lost: NDArray[np.int64]
    found: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sums:
    """What was added up; int64.

    Attributes:
        states: (threads, values, 4), by `STATE_SUMS`.
        runs: (threads, 8), by `RUN_SUMS`; -1 is the beginning of the longest where there is none.
        cpus: (cpus, 9), by `CPU_SUMS`; the same.
        busy: (cpus, threads), cycles of threads that are no idle threads; -1 where one never ran.
        events: (threads,), events of states.
        known: (2,), runs of threads that work, and those that begin before the run before them has ended.
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
    """Return states, runs and interrupts of a trace, added up; None if an event names what is not there.

    Args:
        rules: What the events mean.
        code: uint16 (events,).
        thread: uint16 or uint32 (events,), rows of the thread table.
        cpu: uint8 (events,).
        time: int64 (events,), cycles, ascending.
        idle: bool (threads,), which are idle threads.
        cpus: How many CPUs there are.
        missing: Where events are missing.
    """
    assert len(code) == len(thread) == len(cpu) == len(time)
    assert rules.kind.shape == (CODES,)
    assert rules.value.shape == (2, CODES)
    narrow, wide = thread_words(thread)
    events: list[NDArray[Any] | None] = [np.ascontiguousarray(code), narrow, wide]
    events += map(np.ascontiguousarray, (cpu, time))
    tables = [*map(np.ascontiguousarray, (rules.kind, rules.value, idle))]
    threads = len(idle)
    sums = Sums(
        np.zeros((threads, rules.values, len(STATE_SUMS)), np.int64), np.zeros((threads, len(RUN_SUMS)), np.int64),
        np.zeros((cpus, len(CPU_SUMS)), np.int64), np.full((cpus, threads), -1, np.int64), np.zeros(threads, np.int64),
        np.zeros(2, np.int64),
    )  # fmt: skip
    for table, names in ((sums.runs, RUN_SUMS), (sums.cpus, CPU_SUMS)):
        table[:, [name.endswith("_start") for name in names]] = -1  # without one
    cut, lost, found = map(np.ascontiguousarray, (missing.cut, missing.lost, missing.found))
    assert len(lost) == len(found)
    gone, back = lost[found - lost > 1], found[found - lost > 1]
    now = np.empty((threads, _THREAD_WORDS), np.int64)
    passed = _Scheduling(
        *map(address, events), len(code), *map(address, tables),
        *(getattr(rules, name) for name in _RULES), threads, cpus,
        address(cut), len(cut), address(lost), address(found), len(lost), address(gone), address(back), len(gone),
        *map(address, (now, sums.states, sums.runs, sums.cpus, sums.busy, sums.known)),
    )  # fmt: skip
    if function("satview_scheduling")(ctypes.byref(passed)):
        return None
    sums.events[:] = now[:, _EVENTS_WORD]
    return sums
