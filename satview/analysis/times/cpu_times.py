"""Use of the CPUs by threads, idle threads and interrupts: sums for a range, and in equal bins of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Basis, Runs, Scope, largest_by, sum_by
from satview.analysis.times.state_times import CpuSums, walk
from satview.base.column_arrays import ColumnTable
from satview.base.time import TimeWindow
from satview.core.links import stable_order
from satview.events.spec import Release
from satview.events.states import FIRST_PROCESS, IDLE, KERNEL_CALL, RUNNING
from satview.events.unixware import cpu_time_codes
from satview.store.axis import covered_by_cpus
from satview.store.time_ranges import Cycles, TimeRanges, cut_at, losses, losses_of
from satview.store.trace import Trace
from satview.timeline.state_lanes import thread_spans, value_of_code

# Processor time that threads measured themselves: traces of Python programs by `satview.threadtrace`.


_RUNNING_COUNTS: Final = 1000.0  # weight of running time against waiting time, in which processor time also passes
_FEWEST: Final = 2


def measured_cpu(trace: Trace, window: TimeWindow) -> Cycles | None:
    """Return the measured processor time of every thread within a range.

    Args:
        trace: The data.
        window: The range, in cycles. A cycle of a thread trace is a nanosecond, the unit of the measurements too.

    Returns:
        int64 (threads,), cycles; -1 for threads with fewer than two measurements. None if the trace has none at all.
    """
    if trace.release is not Release.UNIXWARE:
        return None
    rows = np.flatnonzero(np.isin(trace.events.code, cpu_time_codes()))
    if not len(rows):
        return None
    low, high = trace.payloads.column(rows, 0), trace.payloads.column(rows, 1)
    cpu = (high.astype(np.uint64) << np.uint64(32) | low).astype(np.int64)
    thread = trace.events.thread[rows].astype(np.int64)
    order = np.argsort(thread, kind="stable")
    rows, cpu = rows[order], cpu[order]
    edges = np.searchsorted(thread[order], np.arange(len(trace.threads) + 1))
    out = np.full(len(trace.threads), -1, np.int64)
    values = value_of_code(trace)
    for number in np.flatnonzero(np.diff(edges) >= _FEWEST).tolist():
        part = slice(edges[number], edges[number + 1])
        out[number] = _measured_by_thread(
            trace, number, values, trace.events.time_cycles[rows[part]], cpu[part], window
        )
    return out


def _measured_by_thread(
    trace: Trace, thread: int, values: NDArray[np.uint8], time: Cycles, cpu: NDArray[np.int64], window: TimeWindow
) -> int:
    spans = thread_spans(trace, thread, values)
    start = trace.window.start
    knots = np.append(spans.start_cycles, spans.end_cycles) - start
    weight = np.where(spans.value == RUNNING, _RUNNING_COUNTS, 1.0)
    passed = np.append(0.0, np.cumsum(np.diff(knots) * weight))

    def weighted(cycles: Cycles) -> NDArray[np.float64]:
        return np.asarray(np.interp(cycles - start, knots, passed), np.float64)

    bounds = np.interp(weighted(np.array([window.start, window.end])), weighted(time), cpu - cpu[0])
    return round(float(bounds[1] - bounds[0]))


_PAIRS: Final = 1 << 20  # pairs of CPU and thread; up to so many, every pair has a sum


@dataclass(frozen=True, slots=True)
class CpuTable:
    """One row per CPU. The four times add up to the length of the range, or of the part that the CPU's file covers.

    Attributes:
        cpu: int64, (n,), number of the CPU.
        busy_cycles: int64, time in which threads ran, other than idle ones, without interrupts; where the trace has no
            states of threads, time in kernel calls.
        idle_cycles: int64, time the idle thread of the CPU ran.
        interrupt_cycles: int64, time the CPU handled interrupts, whatever they interrupted.
        unknown_cycles: int64, time the trace does not show: events were lost, nothing was logged yet, or the kernel was
            switching threads.
        runs: int64, runs of threads that begin in the range, those of idle threads included.
        switches: int64, runs that begin in the range with another thread than the run before.
        longest_run_cycles: int64, the longest run of a thread that is no idle thread, cut at the range.
        longest_run_start_cycles: int64, when that run begins; -1 without one.
        busiest: int64, the thread that had the CPU for the longest time, 0 = none.
        busiest_cycles: int64, time of that thread.
    """

    cpu: NDArray[np.int64]
    busy_cycles: Cycles
    idle_cycles: Cycles
    interrupt_cycles: Cycles
    unknown_cycles: Cycles
    runs: NDArray[np.int64]
    switches: NDArray[np.int64]
    longest_run_cycles: Cycles
    longest_run_start_cycles: Cycles
    busiest: NDArray[np.int64]
    busiest_cycles: Cycles

    def __len__(self) -> int:
        return len(self.cpu)


@dataclass(frozen=True, slots=True)
class RunTimes:
    """CPU use of each thread; every column int64 (threads,). Row 0 is for unknown threads.

    Attributes:
        cpu_cycles: Time the thread ran without an interrupt being handled. Threads except idle ones add up to
            `CpuTable.busy_cycles`, idle threads to `CpuTable.idle_cycles`.
        interrupted_cycles: Time in which interrupts were handled while the thread had a CPU.
        runs: Runs within the range, including those cut at its ends.
        switches: Runs that begin in the range.
        longest_cycles: The longest run, cut at the range.
        longest_start_cycles: When that run begins; -1 without one.
        migrations: Runs that begin in the range on another CPU than the thread's run before; none for idle threads.
    """

    cpu_cycles: Cycles
    interrupted_cycles: Cycles
    runs: NDArray[np.int64]
    switches: NDArray[np.int64]
    longest_cycles: Cycles
    longest_start_cycles: Cycles
    migrations: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Migrations:
    """Runs that begin on another CPU than the thread's run before, by thread, then in time order.

    Source: formula 3 of the reference.

    Attributes:
        thread: int64, (n,), row of the thread table.
        from_cpu: int64, CPU of the run before; -1 = uncertain, events are missing in between.
        to_cpu: int64, CPU of this run.
        time_cycles: int64, when that run begins.
    """

    thread: NDArray[np.int64]
    from_cpu: NDArray[np.int64]
    to_cpu: NDArray[np.int64]
    time_cycles: Cycles

    def __len__(self) -> int:
        return len(self.thread)


def cpu_times(scope: Scope) -> tuple[CpuTable, RunTimes]:
    """Return the use of each CPU, and the CPU use of each thread."""
    scope.check()
    if scope.is_whole and (walked := walk(scope.trace)) is not None and walked.cpus is not None:
        return _tables_of(scope, walked.cpus)
    times = cut_runs(scope)
    return _cpu_table(scope, times), _run_times(scope, times)


def _tables_of(scope: Scope, sums: CpuSums) -> tuple[CpuTable, RunTimes]:
    cpus, threads = sums.cpus, sums.threads
    return (
        CpuTable(
            np.arange(scope.trace.cpu_count),
            cpus["busy"],
            cpus["idle"],
            cpus["handled"],
            scope.covered.cpus - cpus["busy"] - cpus["idle"] - cpus["handled"],
            cpus["runs"],
            cpus["switches"],
            cpus["longest"],
            cpus["longest_start"],
            sums.busiest,
            sums.busiest_cycles,
        ),
        RunTimes(
            threads["cpu"],
            threads["interrupted"],
            threads["runs"],
            threads["switches"],
            threads["longest"],
            threads["longest_start"],
            threads["migrations"],
        ),
    )


def cut_runs(scope: Scope) -> CutRuns:
    """Return all runs of the trace, cut at the range."""
    runs = scope.basis.runs
    start, end = scope.cut(runs.start, runs.end)
    interrupted = np.zeros(len(start), np.int64)
    for cpu, handled in enumerate(scope.basis.interrupts):
        of_cpu = slice(*np.searchsorted(runs.cpu, (cpu, cpu + 1)))
        interrupted[of_cpu] = handled.within(start[of_cpu], end[of_cpu])
    scope.check()
    net = end - start - interrupted
    goes_on = _goes_on(scope)
    return CutRuns(runs, start, end, net, interrupted, _begins(scope, goes_on), goes_on)


@dataclass(frozen=True, slots=True)
class CutRuns:
    """Runs cut at a range; every column has shape (runs,).

    Attributes:
        runs: The runs, not cut.
        start, end: int64, cycles, cut at the range: equal where a run is outside.
        net: int64, cycles of the run without interrupts.
        interrupted: int64, cycles in which interrupts were handled.
        begins: bool, runs of threads that begin in the range.
        goes_on: bool, runs that may continue the run before, as events are missing in between.
    """

    runs: Runs
    start: Cycles
    end: Cycles
    net: Cycles
    interrupted: Cycles
    begins: NDArray[np.bool_]
    goes_on: NDArray[np.bool_]

    @property
    def is_busy(self) -> NDArray[np.bool_]:
        """Which runs are those of threads, or kernel calls of unknown threads, bool (runs,)."""
        return np.asarray((self.runs.value >= FIRST_PROCESS) | (self.runs.value == KERNEL_CALL))

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Which runs overlap the range and are of a known thread or kind, bool (runs,)."""
        return np.asarray((self.is_busy | (self.runs.value == IDLE)) & (self.end > self.start))


def _goes_on(scope: Scope) -> NDArray[np.bool_]:
    """Return which runs may continue the thread's run before, because events are missing in between, bool (runs,).

    RUNNING also reports a new priority, so it does not prove a new run.
    """
    runs, lost = scope.basis.runs, losses(scope.trace)
    out = np.zeros(len(runs.cpu), np.bool_)
    for cpu in range(scope.trace.cpu_count if len(lost) else 0):
        missing = TimeRanges.of_rows(losses_of(lost, cpu))
        own_runs = np.flatnonzero((runs.cpu == cpu) & (runs.thread > 0))
        before, after = own_runs[:-1], own_runs[1:]
        out[after] = (runs.thread[before] == runs.thread[after]) & missing.meet(runs.end[before], runs.start[after])
    return out


def _cpu_table(scope: Scope, times: CutRuns) -> CpuTable:
    runs, net, begins, cpus = times.runs, times.net, times.begins, scope.trace.cpu_count
    is_busy, at_rest = times.is_busy, runs.value == IDLE
    busy = sum_by(runs.cpu[is_busy], net[is_busy], cpus)
    resting = sum_by(runs.cpu[at_rest], net[at_rest], cpus)
    handled = sum_by(runs.cpu, times.interrupted, cpus)
    known = np.flatnonzero(is_busy & times.is_known)
    longest, longest_start = _longest(runs.cpu[known], times.start[known], times.end[known], cpus)
    busiest, most = _busiest(runs, net, known, cpus, len(scope.trace.threads))
    return CpuTable(
        np.arange(cpus),
        busy,
        resting,
        handled,
        scope.covered.cpus - busy - resting - handled,
        np.bincount(runs.cpu[begins], minlength=cpus),
        np.bincount(runs.cpu[begins & switches(runs)], minlength=cpus),
        longest,
        longest_start,
        busiest,
        most,
    )


def switches(runs: Runs) -> NDArray[np.bool_]:
    """Return which runs are of another thread than the run before on that CPU, bool (runs,)."""
    out = np.zeros(len(runs.cpu), np.bool_)
    known_runs = np.flatnonzero(runs.thread > 0)
    out[known_runs[1:]] = (runs.thread[known_runs[1:]] != runs.thread[known_runs[:-1]]) & (
        runs.cpu[known_runs[1:]] == runs.cpu[known_runs[:-1]]
    )
    return out


def _longest(keys: NDArray[np.integer], start: Cycles, end: Cycles, count: int) -> tuple[Cycles, Cycles]:
    """Return the longest interval of each key, and when it begins, int64 (count,), cycles; 0 and -1 without one."""
    longest, position = largest_by(keys, end - start, count)
    return longest, np.append(start, -1)[position]


def _busiest(
    runs: Runs, net: Cycles, busy: NDArray[np.intp], cpus: int, threads: int
) -> tuple[NDArray[np.int64], Cycles]:
    """Return for each CPU the thread that had it longest in the runs at `busy` (0 = none), and for how many cycles."""
    pair = runs.cpu[busy].astype(np.int64) * threads + runs.thread[busy]
    if cpus * threads <= max(len(pair), _PAIRS):
        key = np.flatnonzero(np.bincount(pair, minlength=cpus * threads))
        cycles = sum_by(pair, net[busy], cpus * threads)[key]
    else:  # too many pairs for a sum each
        key, position = np.unique(pair, return_inverse=True)
        cycles = sum_by(position, net[busy], len(key))
    most, which = largest_by(key // threads, cycles, cpus)
    return np.where(which >= 0, key[which] % threads, 0) if len(key) else np.zeros(cpus, np.int64), most


def _run_times(scope: Scope, times: CutRuns) -> RunTimes:
    threads, runs, begins, is_known = len(scope.trace.threads), times.runs, times.begins, times.is_known
    thread = runs.thread[is_known]
    is_first = _first_in_range(times)
    longest, longest_start = _longest(thread, times.start[is_known], times.end[is_known], threads)
    return RunTimes(
        sum_by(thread, times.net[is_known], threads),
        sum_by(thread, times.interrupted[is_known], threads),
        np.bincount(runs.thread[is_known & is_first], minlength=threads),
        np.bincount(runs.thread[begins], minlength=threads),
        longest,
        longest_start,
        np.bincount(_migrations(scope, begins).thread, minlength=threads),
    )


def _first_in_range(times: CutRuns) -> NDArray[np.bool_]:
    """Return which runs continue no earlier run of the same thread in the range, bool (runs,)."""
    known_runs = np.flatnonzero(times.runs.thread > 0)
    out = ~times.goes_on
    out[known_runs[1:]] |= (times.end <= times.start)[known_runs[:-1]]
    return out


def migrations(scope: Scope) -> Migrations:
    """Return the migrations of threads, except idle ones, to runs that begin within the range."""
    return _migrations(scope, _begins(scope, _goes_on(scope)))


def _begins(scope: Scope, goes_on: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which runs of threads begin in the range, bool (runs,)."""
    runs, window = scope.basis.runs, scope.window
    return (runs.start >= window.start) & (runs.start < window.end) & (runs.thread > 0) & ~goes_on


def _migrations(scope: Scope, begins: NDArray[np.bool_]) -> Migrations:
    runs = scope.basis.runs
    # Runs before the range show where a thread came from; those behind it do not matter.
    rows = np.flatnonzero((runs.thread > 0) & (runs.start < scope.window.end) & ~scope.basis.is_idle[runs.thread])
    rows = rows[stable_order(runs.start[rows])]
    rows = rows[stable_order(runs.thread[rows])]
    before, after = rows[:-1], rows[1:]
    moved = (runs.cpu[before] != runs.cpu[after]) & (runs.thread[before] == runs.thread[after]) & begins[after]
    before, after = before[moved], after[moved]
    # Where events are missing in between, the thread may have run on other CPUs meanwhile.
    is_sure = ~scope.basis.lost.meet(runs.end[before], runs.start[after])
    return Migrations(
        runs.thread[after],
        np.where(is_sure, runs.cpu[before].astype(np.int64), -1),
        runs.cpu[after].astype(np.int64),
        runs.start[after],
    )


# CPU time in equal bins of a window, exact to the cycle: the sums of the statistics, spread over time.
#
# Busy time is defined as in `cpu_times`: runs of threads without interrupts handled meanwhile, without idle threads.


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
        edges: int64, (bins + 1,), cycles, ascending, from the start to the end of the window.
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
    """Return the edges, cycles, of bins whose lengths differ by at most one cycle, int64 (bins + 1,).

    Args:
        window: The window to divide.
        bins: Maximum number of bins; a window of fewer cycles has one for each cycle.
    """
    count = max(1, min(bins, window.length))
    whole, rest = divmod(window.length, count)
    number = np.arange(count + 1, dtype=np.int64)
    return window.start + whole * number + rest * number // count


def load_over_time(scope: Scope, by: LoadBy, bins: int) -> Load:
    """Return the load of the window of a scope; the scope's mask of events is ignored, as for all CPU times.

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
    """Return all runs, and priority or partition of each if the load is by that, which cuts runs; else None."""
    if by is LoadBy.PRIORITY:
        return basis.runs_by_priority
    return basis.runs_by_partition[:2] if by is LoadBy.PARTITION else (basis.runs, None)


@dataclass(frozen=True, slots=True)
class _Pieces(ColumnTable):
    """Runs cut at the edges of bins; columns of shape (n,)."""

    cpu: NDArray[np.uint8]
    thread: NDArray[np.int64]  # row of the thread; 0 = none, or not known
    value: NDArray[np.uint8]  # as on the lane of the CPU
    logged: NDArray[np.int64]  # priority or partition that RUNNING events log, if the load is split by it
    bin: NDArray[np.int64]
    net: Cycles  # length without interrupts, cycles


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
        net = end - start - handled.within(start, end)
        parts.append(_Pieces(runs.cpu[rows], runs.thread[rows], runs.value[rows], logged[rows], number, net))
    return _Pieces.concatenated(parts)


def _interrupted(basis: Basis, edges: Cycles) -> Cycles:
    """Return how long all CPUs together handled interrupts in each bin, cycles, int64 (bins,)."""
    total = np.zeros(len(edges) - 1, np.int64)
    for handled in basis.interrupts:
        total += handled.within(edges[:-1], edges[1:])
    return total


def _largest(owner: NDArray[np.int64], net: Cycles, count: int) -> NDArray[np.int64]:
    """Return `owner` with `OTHERS` in place of all except the `LARGEST` processes or threads with the most CPU time."""
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
    """Return the counts of events of each kind (ascending rows) in equal divisions of a window, without its end."""
    edges = bin_edges(window, count)
    bounds_of = np.searchsorted(trace.events.time_cycles, edges)  # the first event of each division
    counts = np.zeros((len(kinds), len(edges) - 1), np.int64)
    earliest = np.full(counts.shape, -1, np.int64)
    for kind, rows in enumerate(kinds):
        bounds = np.searchsorted(rows, bounds_of)
        counts[kind] = np.diff(bounds)
        filled = np.flatnonzero(counts[kind])
        earliest[kind, filled] = rows[bounds[filled]]
    return Divisions(edges, counts, earliest)
