"""CPU time in equal bins of a window, exact to the cycle: the sums of the statistics, spread over time.

Busy time is defined as in `cpu_times`: runs of threads without interrupts handled meanwhile, without idle threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Basis, Runs, Scope, sum_by
from satview.base.time import TimeWindow
from satview.events.states import FIRST_PROCESS, IDLE, KERNEL_CALL
from satview.store.axis import covered_by_cpus
from satview.store.time_ranges import Cycles, cut_at
from satview.store.trace import Trace

LARGEST: Final = 8  # processes, or threads, with a band of their own
NOBODY: Final = 0  # subject of a process or thread band: row 0 of the tables, the thread is not known
NOT_LOGGED: Final = -1  # subject of a band of priority or partition that the trace does not show
OTHERS: Final = -2  # subject of the band of all that are not among the largest


class LoadBy(StrEnum):
    """Kinds of subjects by which a load plot splits CPU time; each band of the plot is for one CPU, process, ..."""

    CPU = "CPU"
    PROCESS = "Process"
    THREAD = "Thread"
    PRIORITY = "Priority"
    PARTITION = "Partition"


_OWNERS: Final = (LoadBy.PROCESS, LoadBy.THREAD)


@dataclass(frozen=True, slots=True)
class Load:
    """CPU time per band (one CPU, process, thread, ...) and bin (period of time).

    Attributes:
        by: Kind of subject of the bands.
        edges: int64, (bins + 1,), cycles, ascending, from the begin to the end of the window.
        subjects: int64, (bands,), number of the CPU, row of the process or thread table, priority or number of the
            partition of each band; `OTHERS` for the rest of the processes or threads, `NOT_LOGGED` for a priority or
            partition that the trace does not show. Processes, threads, partitions: largest first; priorities: highest
            first.
        busy_cycles: int64, (bands, bins); the total equals that of `CpuTable.busy_cycles`.
        interrupt_cycles: int64, (bins,), time in which CPUs handled interrupts, whatever they interrupted.
        unknown_cycles: int64, (bins,), time unknown on all CPUs, as in `CpuTable.unknown_cycles`.
        given_cycles: int64, (bins,), time of all CPUs; on an axis, CPUs of a file count while the file lasts.
        cpus: Number of CPUs; a bin has at most that many times its length of CPU time.
    """

    by: LoadBy
    edges: Cycles
    subjects: NDArray[np.int64]
    busy_cycles: Cycles
    interrupt_cycles: Cycles
    unknown_cycles: Cycles
    given_cycles: Cycles
    cpus: int

    @property
    def lengths(self) -> Cycles:
        """Cycles of each bin, int64 (bins,)."""
        return np.diff(self.edges)


def bin_edges(window: TimeWindow, bins: int) -> Cycles:
    """Return the edges of bins whose lengths differ by at most one cycle, int64 (bins + 1,).

    Args:
        window: The window to divide.
        bins: Maximum number of bins; a window of fewer cycles has one for each cycle.
    """
    count = max(1, min(bins, window.length))
    whole, rest = divmod(window.length, count)
    number = np.arange(count + 1, dtype=np.int64)
    return window.start + whole * number + rest * number // count


def load_over_time(scope: Scope, by: LoadBy, bins: int) -> Load:
    """Return the load of the window of a scope; its mask of events is ignored, as for all CPU times.

    Args:
        scope: Trace and window.
        by: Kind of subject of the bands.
        bins: Maximum number of bins.

    Raises:
        Cancelled: The scope was cancelled.
    """
    edges, basis = bin_edges(scope.window, bins), scope.basis
    count = len(edges) - 1
    runs, logged = _runs_of(basis, by)
    pieces = _pieces_of(scope, runs, logged, edges)
    is_working = (pieces.value >= FIRST_PROCESS) | (pieces.value == KERNEL_CALL)
    is_known = is_working | (pieces.value == IDLE)
    key = {
        LoadBy.CPU: pieces.cpu.astype(np.int64),
        LoadBy.PROCESS: scope.trace.threads.process[pieces.thread].astype(np.int64),
        LoadBy.THREAD: pieces.thread,
        LoadBy.PRIORITY: pieces.logged,
        LoadBy.PARTITION: pieces.logged,
    }[by][is_working]
    scope.check()
    if by in _OWNERS:
        owners = scope.trace.processes if by is LoadBy.PROCESS else scope.trace.threads
        key = _largest(key, pieces.net[is_working], len(owners))
    subjects, band = np.unique(key, return_inverse=True)
    total = sum_by(band, pieces.net[is_working], len(subjects))
    if by is LoadBy.CPU:
        order = np.arange(len(subjects))
    elif by is LoadBy.PRIORITY:
        order = np.argsort(-subjects)
    else:
        order = np.lexsort((-total, subjects < 0))
    position = np.argsort(order)[band]
    busy = sum_by(position * count + pieces.bin[is_working], pieces.net[is_working], len(subjects) * count).reshape(
        -1, count
    )
    interrupted = _interrupted(basis, edges)
    known = sum_by(pieces.bin[is_known], pieces.net[is_known], count)
    given, cpus = covered_by_cpus(scope.trace, edges), scope.trace.cpu_count
    return Load(
        by,
        edges,
        subjects[order].astype(np.int64),
        busy,
        interrupted,
        given - known - interrupted,
        given,
        cpus,
    )


def _runs_of(basis: Basis, by: LoadBy) -> tuple[Runs, NDArray[np.int64] | None]:
    """Return all runs; if the load is split by priority or partition, also the one that each RUNNING event logs."""
    if by is LoadBy.PRIORITY:
        return basis.runs_by_priority
    return basis.runs_by_partition[:2] if by is LoadBy.PARTITION else (basis.runs, None)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Runs cut at the edges of bins; `net` is the length of each without interrupts."""

    cpu: NDArray[np.uint8]
    thread: NDArray[np.int64]
    value: NDArray[np.uint8]
    logged: NDArray[np.int64]
    bin: NDArray[np.int64]
    net: Cycles


def _pieces_of(scope: Scope, runs: Runs, logged: NDArray[np.int64] | None, edges: Cycles) -> _Pieces:
    parts = []
    if logged is None:
        logged = np.zeros(len(runs.cpu), np.int64)
    for cpu, handled in enumerate(scope.basis.interrupts):
        scope.check()
        begin, stop = np.searchsorted(runs.cpu, (cpu, cpu + 1))
        # Runs of one CPU do not overlap: both of their columns ascend.
        low = begin + np.searchsorted(runs.end[begin:stop], edges[0], side="right")
        high = begin + np.searchsorted(runs.start[begin:stop], edges[-1])
        rows, number, start, end = cut_at(runs.start[low:high], runs.end[low:high], edges)
        rows = rows + low
        parts.append(
            (
                runs.cpu[rows],
                runs.thread[rows],
                runs.value[rows],
                logged[rows],
                number,
                end - start - handled.within(start, end),
            )
        )
    return _Pieces(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _interrupted(basis: Basis, edges: Cycles) -> Cycles:
    """Return how long all CPUs together handled interrupts in each bin."""
    total = np.zeros(len(edges) - 1, np.int64)
    for handled in basis.interrupts:
        total += handled.within(edges[:-1], edges[1:])
    return total


def _largest(owner: NDArray[np.int64], net: Cycles, count: int) -> NDArray[np.int64]:
    """Return the process or thread of each piece, `OTHERS` for those that are not among the largest."""
    total = sum_by(owner, net, count)
    ranked = np.argsort(-total, kind="stable")
    small = np.ones(count, np.bool_)
    small[ranked[:LARGEST]] = False
    if np.count_nonzero(total[small]) == 1:  # a band "others" for one alone would save none
        small[ranked[LARGEST]] = False
    return np.where(small[owner], OTHERS, owner)


# Counts of events, by kind, in equal divisions of a window.


@dataclass(frozen=True, slots=True)
class Divisions:
    """Counts of events of several kinds in equal divisions of a window.

    Attributes:
        edges: int64, (divisions + 1,), cycles; the lengths differ by at most one cycle.
        counts: int64, (kinds, divisions).
        first_row: int64, (kinds, divisions), row of the first such event in each; -1 without one.
    """

    edges: Cycles
    counts: NDArray[np.int64]
    first_row: NDArray[np.int64]


def divisions(trace: Trace, window: TimeWindow, count: int, kinds: Sequence[NDArray[np.unsignedinteger]]) -> Divisions:
    """Return the counts of events of each kind in equal divisions of a window.

    Args:
        trace: The trace.
        window: The window to divide; an event at its end does not count.
        count: Maximum number of divisions, as for `bin_edges`.
        kinds: Rows of the events of each kind, ascending.
    """
    edges = bin_edges(window, count)
    bounds_of = np.searchsorted(trace.events.time_cycles, edges)  # the first event of each division
    counts = np.zeros((len(kinds), len(edges) - 1), np.int64)
    earliest = np.full(counts.shape, -1, np.int64)
    for kind, rows in enumerate(kinds):
        bounds = np.searchsorted(rows, bounds_of)
        counts[kind] = np.diff(bounds)
        has = np.flatnonzero(counts[kind])
        earliest[kind, has] = rows[bounds[has]]
    return Divisions(edges, counts, earliest)
