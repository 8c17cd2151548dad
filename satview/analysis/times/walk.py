"""What statistics of a whole trace add up, from one walk of the compiled core over its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core.statistics import (
    CPU_SUMS,
    IS_ENTRY,
    IS_EXIT,
    IS_RUN,
    IS_STATE,
    RUN_SUMS,
    STATE_SUMS,
    Missing,
    Rules,
    Sums,
    scheduling,
)
from satview.events import wire
from satview.events.spec import Release
from satview.events.states import ABSENT, DEAD, FIRST_PROCESS, NOT_A_STATE, READY, RUNNING, STEP_OF_CODE, UNKNOWN
from satview.store.losses import EVERY_CPU, idle_threads, losses
from satview.store.time_ranges import Cycles, TimeRanges
from satview.store.trace import Trace
from satview.timeline.state_lanes import idle_values, value_of_code

Sum = dict[str, NDArray[np.int64]]
_MOST_THREADS: Final = 1 << 16  # each has a sum for every state and CPU: bounds the memory, whatever the trace


@dataclass(frozen=True, slots=True)
class CpuSums:
    """Who had the CPUs.

    Attributes:
        threads: `statistics.RUN_SUMS` by name, int64 (threads,).
        cpus: `statistics.CPU_SUMS` by name, int64 (cpus,).
        busiest: int64 (cpus,), the thread that had most of each, 0 = none.
        busiest_cycles: int64 (cpus,), how much.
        works: Runs of threads that are no idle threads.
        overlaps: Of these, those that begin on a CPU that the one before has not left, though no event is missing.
    """

    threads: Sum
    cpus: Sum
    busiest: NDArray[np.int64]
    busiest_cycles: Cycles
    works: int
    overlaps: int


@dataclass(frozen=True, slots=True)
class Walk:
    """What was added up.

    Attributes:
        thread, value: int64 (n,), rows of the thread table and the lane values of states they were in.
        states: `statistics.STATE_SUMS` of these by name, int64 (n,).
        preemptions: int64 (threads,).
        cpus: Who had the CPUs; None where that takes more than the events of states.
    """

    thread: NDArray[np.int64]
    value: NDArray[np.int64]
    states: Sum
    preemptions: NDArray[np.int64]
    cpus: CpuSums | None


def walk(trace: Trace) -> Walk | None:
    """Return what a whole trace adds up to; None where this code cannot tell: then lanes are added up.

    It can where no CPU loses events for itself. Made at the first call and cached with the
    trace.
    """
    is_plain = trace.axis is None and trace.pairs is None and trace.release is not Release.UNIXWARE
    is_small = len(trace.events) > 0 and len(trace.threads) <= _MOST_THREADS
    if not (is_plain and is_small) or np.any(losses(trace)[:, 2] != EVERY_CPU):
        return None
    return trace.cached("analysis.walk", _walked)


def _walked(trace: Trace) -> Walk | None:
    events, cut = trace.events, losses(trace)[:, 0]
    lost = TimeRanges.of_rows(losses(trace))
    columns = events.code, events.thread, events.cpu, events.time_cycles
    sums = scheduling(_rules(trace), *columns, idle_threads(trace), trace.cpu_count,
                      Missing(cut, lost.start, lost.end))  # fmt: skip
    # What is of which thread is also in the index of states: a trace in which they differ is walked by that.
    if sums is None or not np.array_equal(sums.events, np.diff(trace.states.start)):
        return None
    sums.states[0] = 0  # row 0 is nobody
    thread, value = np.nonzero(sums.states[..., STATE_SUMS.index("total")])
    runs = _named(RUN_SUMS, sums.runs)
    states = _named(STATE_SUMS, sums.states[thread, value])
    return Walk(thread, value, states, runs["preemptions"], _of_cpus(trace, runs, sums))


def _of_cpus(trace: Trace, runs: Sum, sums: Sums) -> CpuSums | None:
    cpus = _named(CPU_SUMS, sums.cpus)
    is_silent = cpus["events"] == 0
    if is_silent.any() and np.bincount(trace.events.cpu, minlength=len(is_silent))[: len(is_silent)][is_silent].any():
        return None  # kernel calls may show when such a CPU was busy
    busiest = np.argmax(sums.busy, axis=1)
    most = sums.busy[np.arange(len(busiest)), busiest]
    works, overlaps = sums.known.tolist()
    return CpuSums(runs, cpus, np.where(most < 0, 0, busiest), np.maximum(most, 0), works, overlaps)


def _rules(trace: Trace) -> Rules:
    states, values = trace.catalogue.state_value_of_code, value_of_code(trace)
    kind = (states != NOT_A_STATE) * np.uint8(IS_STATE)
    kind[[wire.THREAD_CREATE, wire.THREAD_DESTROY]] = IS_STATE
    kind[states == RUNNING] |= IS_RUN
    kind[STEP_OF_CODE > 0] = IS_ENTRY
    kind[STEP_OF_CODE < 0] = IS_EXIT
    return Rules(
        kind, np.stack((values, idle_values(values))), wire.THREAD_DESTROY, wire.THREAD_CREATE, RUNNING, READY, DEAD,
        ABSENT, UNKNOWN, trace.dump_end_cycles, trace.window.start, trace.window.end, FIRST_PROCESS,
    )  # fmt: skip


def _named(names: tuple[str, ...], sums: NDArray[np.int64]) -> Sum:
    """Return the columns of sums by name, each in memory of its own."""
    return dict(zip(names, np.ascontiguousarray(sums.T), strict=True))
