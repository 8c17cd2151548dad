"""Budgets of the partitions of the adaptive scheduler, their CPU use, and their bankruptcies.

    table = satview.Statistics(trace).partitions
    table.run_cycles / table.length_cycles        # share of all CPUs, one row per configuration and partition

Source: the Partition Summary and formula 8 of the reference; format description, system events 3 to 5 and 24.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Basis, Scope, sum_by
from satview.events import wire
from satview.linkage.links import rows_of_codes, thread_rows
from satview.store.arguments import argument, argument_under
from satview.store.axis import PARTITIONS, files_of
from satview.store.time_ranges import Cycles, cut_at
from satview.store.trace import Trace

IDLE: Final = -1  # instead of a partition: an idle thread ran
NOT_LOGGED: Final = -2  # instead of a partition: thread events logged fast do not show it
NAME, BUDGET, BANKRUPTCY, INFO = (wire.code(wire.WireClass.SYSTEM, number) for number in (3, 4, 5, 24))
_WINDOW_MS: Final = 100  # averaging window, unless APS_INFO shows another
_SCALE: Final = 100  # what a budget of all CPUs is, unless the event shows another
_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PartitionTable:
    """One row per configuration of budgets and partition, in that order; every column has shape (n,).

    The run times of a configuration and the time without a running thread add up to its length on all CPUs.

    Attributes:
        configuration: int64, number of the configuration, from 1 on; a new one begins where a budget changes.
        start_cycles: int64, when the configuration begins, cut at the range.
        length_cycles: int64, how long the configuration lasts within the range, times the number of CPUs.
        partition: int64, number of the partition; `IDLE` and `NOT_LOGGED` for time that belongs to none.
        budget: float64, share of all CPUs, 0 to 1; -1 = no event shows it.
        critical_budget_ms: int64, per averaging window; -1 = no event shows it.
        run_cycles: int64, run time of the partition's threads and of servers working for them, interrupts included.
        critical_cycles: int64, the part of `run_cycles` in which the threads might draw on the critical budget.
        peak_cycles: int64, the partition's longest run time in any averaging window of the range, all CPUs together.
        peak_start_cycles: int64, when that window begins; -1 where the partition never ran.
        bankruptcies: int64, how often the partition overran its critical budget.
    """

    configuration: _Ints
    start_cycles: Cycles
    length_cycles: Cycles
    partition: _Ints
    budget: NDArray[np.float64]
    critical_budget_ms: _Ints
    run_cycles: Cycles
    critical_cycles: Cycles
    peak_cycles: Cycles
    peak_start_cycles: Cycles
    bankruptcies: _Ints

    def __len__(self) -> int:
        return len(self.partition)


@dataclass(frozen=True, slots=True)
class Bankruptcies:
    """Events at which partitions overran their critical budgets, in time order; every column int64 (n,).

    Attributes:
        row: Row of the event.
        partition: Number of the partition.
        thread: Row of the thread that ran; 0 = not known.
    """

    row: _Ints
    partition: _Ints
    thread: _Ints


@dataclass(frozen=True, slots=True)
class _Budgets:
    """Budgets of partitions, one entry per event that shows a budget, in time order; (n,) each."""

    time: Cycles  # time of the event, cycles
    partition: _Ints  # number of the partition
    budget: NDArray[np.float64]  # share of all CPUs, 0 to 1; -1 = the event does not show it
    critical_ms: _Ints  # critical budget, milliseconds; -1 likewise


def has_partitions(trace: Trace) -> bool:
    """Return whether any event names a partition, its budget or its bankruptcy."""
    return bool(trace.code_counts[[NAME, BUDGET, BANKRUPTCY]].any())


def logs_partitions(basis: Basis) -> bool:
    """Return whether any RUNNING event shows in which partition its thread runs."""
    return bool(np.any(basis.runs_by_partition[1] >= 0))


def partition_names(trace: Trace) -> dict[int, str]:
    """Return the names of partitions by number, as last logged; on an axis, names of all numbers, with the file."""
    files = files_of(trace)
    if files is not None:
        return {
            part.first_partition + number: f"{part.name}:{partition_title(names, number)}"
            for part, names in ((part, partition_names(part.trace)) for part in files.parts)
            for number in range(PARTITIONS)
        }
    rows = rows_of_codes(trace, NAME)
    numbers, known = argument(trace, rows, "partition_id")
    last = {int(number): int(row) for number, row in zip(numbers[known], rows[known], strict=True)}
    return {number: _text(trace, row) for number, row in last.items()}


def partition_title(names: dict[int, str], partition: int) -> str:
    """Return a partition's title: its name, or its number if the trace has no name."""
    return names.get(partition) or f"partition {partition}"


def first_budgets(trace: Trace) -> dict[int, tuple[float, int]]:
    """Return {partition: (budget as share of all CPUs, critical budget in ms)}, as first logged."""
    budgets = _budgets(trace)
    out: dict[int, tuple[float, int]] = {}
    for number, share, critical_ms in zip(
        budgets.partition.tolist(), budgets.budget.tolist(), budgets.critical_ms.tolist(), strict=True
    ):
        if share >= 0:
            out.setdefault(number, (share, max(0, critical_ms)))
    return out


def averaging_window_ms(trace: Trace) -> int:
    """Return the length of the averaging window, as APS_INFO last shows it; 100 ms if no event shows it."""
    rows = rows_of_codes(trace, INFO)
    value, known = argument(trace, rows, "window_size_ms")
    logged = value[known & (value > 0)]
    return int(logged[-1]) if len(logged) else _WINDOW_MS


def bankruptcies(scope: Scope) -> Bankruptcies:
    """Return the events within the range at which partitions overran their critical budgets."""
    trace = scope.trace
    rows = rows_of_codes(trace, BANKRUPTCY)
    rows = rows[(rows >= scope.rows.start) & (rows < scope.rows.stop)]
    partition, known = argument(trace, rows, "partition_id")
    known &= _is_number(trace, partition)
    pid, tid = (argument_under(trace, rows, f"suspect_{name}", name) for name in ("pid", "tid"))
    thread = thread_rows(trace, pid.astype(np.uint32), tid.astype(np.uint32))
    return Bankruptcies(rows[known].astype(np.int64), partition[known], thread[known])


def partition_times(scope: Scope) -> PartitionTable:
    """Return budgets and use of the partitions within the range; empty if no event names any."""
    trace, budgets = scope.trace, _budgets(scope.trace)
    if not has_partitions(trace):
        none = np.empty(0, np.int64)
        return PartitionTable(none, none, none, none, np.empty(0), none, none, none, none, none, none)
    edges = _edges(scope, budgets)
    runs, logged, critical = scope.basis.runs_by_partition
    partition_of_run = np.where(_is_number(trace, logged), logged, NOT_LOGGED)
    partition_of_run[scope.basis.is_idle[runs.thread]] = IDLE
    ran = np.flatnonzero(runs.thread > 0)
    pieces, number, start, end = cut_at(runs.start[ran], runs.end[ran], edges)
    scope.check()
    broke = bankruptcies(scope)
    broke_in = np.searchsorted(edges, trace.events.time_cycles[broke.row], side="right") - 1
    known = np.unique(np.concatenate((budgets.partition, partition_of_run[ran[pieces]], broke.partition)))
    partition_count, count = len(known), (len(edges) - 1) * len(known)
    key = number * partition_count + np.searchsorted(known, partition_of_run[ran[pieces]])
    total = sum_by(key, end - start, count)
    is_critical = critical[ran[pieces]]
    in_critical = sum_by(key[is_critical], (end - start)[is_critical], count)
    peak, peak_start = _peaks(scope, known, partition_of_run[ran], runs.start[ran], runs.end[ran])
    broken = np.bincount(broke_in * partition_count + np.searchsorted(known, broke.partition), minlength=count)
    budget, critical_ms = _in_force(budgets, edges, known)
    rows = np.flatnonzero((total > 0) | (budget >= 0) | (broken > 0))
    of_edge, of_known = rows // partition_count, rows % partition_count
    order = np.lexsort((known[of_known], known[of_known] < 0, of_edge))  # `IDLE` and `NOT_LOGGED` come last
    rows, of_edge, of_known = rows[order], of_edge[order], of_known[order]
    return PartitionTable(
        of_edge + 1, edges[of_edge], np.diff(edges)[of_edge] * trace.cpu_count, known[of_known], budget[rows],
        critical_ms[rows], total[rows], in_critical[rows], peak[of_known], peak_start[of_known], broken[rows],
    )  # fmt: skip


def _budgets(trace: Trace) -> _Budgets:
    rows = rows_of_codes(trace, BUDGET)
    partition, known = argument(trace, rows, "partition_id")
    known &= _is_number(trace, partition)
    rows, partition = rows[known], partition[known]
    percent = argument_under(trace, rows, "percentage_cpu_budget", "percentage_budget")
    critical_ms = argument_under(trace, rows, "critical_budget_ms", "critical_budget")
    scale, logged = argument(trace, rows, "budget_percent_scale")
    share = percent / np.where(logged & (scale > 0), scale, _SCALE) * _cpu_share(trace, rows)
    return _Budgets(trace.events.time_cycles[rows], partition, np.where(percent >= 0, share, -1.0), critical_ms)


def _is_number(trace: Trace, partition: _Ints) -> NDArray[np.bool_]:
    """Return which numbers are valid partition numbers, bool (n,); damaged events may hold any number."""
    files = files_of(trace)
    return (partition >= 0) & (partition < PARTITIONS * (len(files.parts) if files is not None else 1))


def _cpu_share(trace: Trace, rows: NDArray[np.integer]) -> NDArray[np.float64] | float:
    """Return the share of all CPUs that 100 % in each event stands for: 1.0 for a single file.

    On an axis of several files, these are the CPUs of the event's file, as a share of all CPUs, float64 (n,).
    """
    files = files_of(trace)
    if files is None:
        return 1.0
    counts = np.array([part.trace.cpu_count for part in files.parts])
    return np.asarray(counts[files.part_of[rows]] / trace.cpu_count)


def _text(trace: Trace, row: int) -> str:
    arguments = trace.payloads.decode(row).arguments
    return next((str(named.value) for named in arguments if named.name in ("name", "partition_name")), "")


def _edges(scope: Scope, budgets: _Budgets) -> Cycles:
    """Return the start of the range, the times within it at which configurations begin, and its end; cycles.

    A configuration begins where a budget changes. An event that repeats a budget, or is the first to show one, begins
    none: look-ups and ends of bankruptcies log the same event. Several changes with no start of a run in between count
    as one.
    """
    order = np.argsort(budgets.partition, kind="stable")
    before, after = order[:-1], order[1:]
    same = budgets.partition[before] == budgets.partition[after]
    equal = (budgets.budget[before] == budgets.budget[after]) & (
        budgets.critical_ms[before] == budgets.critical_ms[after])  # fmt: skip
    repeats = np.zeros(len(order), np.bool_)
    repeats[after] = same & equal
    news = np.flatnonzero(~repeats)  # changes, and the first event of each partition
    runs = scope.basis.runs
    begins = np.sort(runs.start[runs.thread > 0])
    changes = np.unique(np.searchsorted(begins, budgets.time[after[same & ~equal]]))
    time = budgets.time[news][np.searchsorted(np.searchsorted(begins, budgets.time[news]), changes)]
    window = scope.window
    inside = time[(time > window.start) & (time < window.end)]
    return np.concatenate(([window.start], np.unique(inside), [window.end]))


def _in_force(budgets: _Budgets, edges: Cycles, known: _Ints) -> tuple[NDArray[np.float64], _Ints]:
    """Return the budget (share) and the critical budget (ms) of each partition in each configuration; -1 = not known.

    The arrays are flat: all partitions in the first configuration, then all in the second, and so on.
    """
    shape = len(edges) - 1, len(known)
    budget, critical_ms = np.full(shape, -1.0), np.full(shape, -1, np.int64)
    partition = np.searchsorted(known, budgets.partition)
    configuration = np.maximum(np.searchsorted(edges, budgets.time, side="right") - 1, 0)
    inside = configuration < len(edges) - 1
    for table, values in ((budget, budgets.budget), (critical_ms, budgets.critical_ms)):
        table[configuration[inside], partition[inside]] = values[inside]  # the last of several events counts
        logged = np.where(table >= 0, np.arange(len(edges) - 1)[:, None], 0)
        table[:] = np.take_along_axis(table, np.maximum.accumulate(logged, axis=0), axis=0)
    return budget.reshape(-1), critical_ms.reshape(-1)


def _peaks(scope: Scope, known: _Ints, partition_of_run: _Ints, start: Cycles, end: Cycles) -> tuple[Cycles, Cycles]:
    """Return the longest run time of each partition in an averaging window, and its start; 0 and -1 without runs."""
    start, end = scope.cut(start, end)
    length = min(scope.trace.clock.cycles_of(averaging_window_ms(scope.trace) * 1_000_000), scope.window.length)
    peak, begin = np.zeros(len(known), np.int64), np.full(len(known), -1, np.int64)
    for i, partition in enumerate(known.tolist()):
        own_rows = np.flatnonzero((partition_of_run == partition) & (end > start))
        if len(own_rows):
            scope.check()
            peak[i], begin[i] = _peak(start[own_rows], end[own_rows], length, scope.window.start)
    return peak, begin


def _peak(start: Cycles, end: Cycles, length: int, earliest: int) -> tuple[int, int]:
    """Return the longest time that runs cover in any window, added up over CPUs, and the start of that window."""
    edges = np.concatenate((start, end))
    order = np.argsort(edges, kind="stable")
    edges, step = edges[order], np.repeat((1, -1), len(start))[order]
    running = np.cumsum(step)
    covered = np.append(0, np.cumsum(running[:-1] * np.diff(edges)))
    # The covered time is linear between the moments at which an end of the window meets an edge: one is the maximum.
    last = np.sort(np.concatenate((edges, edges + length)))
    last = last[last >= earliest + length] if np.any(last >= earliest + length) else np.array([earliest + length])

    def up_to(time: Cycles) -> Cycles:
        position = np.searchsorted(edges, time, side="right") - 1
        inside = position >= 0
        out = np.zeros(len(time), np.int64)
        out[inside] = covered[position[inside]] + running[position[inside]] * (time[inside] - edges[position[inside]])
        return out

    most = up_to(last) - up_to(last - length)
    best = int(np.argmax(most))
    return int(most[best]), int(last[best]) - length
