"""Response-time analysis: how long an activity may take if all work of its CPUs arrives at once.

The busy-window analysis of fixed priorities (Lehoczky 1990; Tindell, Burns and Wellings 1994) with arrival curves, as
in compositional performance analysis: w(q) = q * (C + B) + the sum of n(w) * C over the work of the same or a higher
priority, where n(w) is the most that arrives within w; the bound is the longest w(q) less the least time in which q
instances arrive. A thread that runs on m CPUs waits only while all of them do such work, of which an m-th delays it
(Bertogna and Cirinei 2007), plus work begun before. C, B and n are the largest values in the trace: the bound holds for
behaviour like that in the trace, not for the program.

Each thread's work is cut at its waits: the work from one wake-up to the next wait arrives with the wake-up, so that a
thread that waits within its work needs no special rule. Threads of the same priority count as higher, which is an upper
bound for both FIFO and round robin. Before a thread is dispatched, time in which its CPU does no work of at least its
priority counts as its own, because the kernel is working for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import ENCLOSED, Activities, Instances
from satview.analysis.blame import cpu_timeline, runmasks
from satview.analysis.needs import NO_LOSS, PRIORITIES, STATES
from satview.analysis.partitions import has_partitions, logs_partitions
from satview.analysis.times.basis import Basis, sum_by
from satview.base.column_arrays import ColumnTable
from satview.base.safe_text import counted
from satview.events.states import READY, RUNNING
from satview.linkage.links import OPEN
from satview.linkage.waits import waits
from satview.store.axis import AxisPart, FileAxis, files_of, scaled
from satview.store.time_ranges import TimeRanges
from satview.store.trace import Trace

ASSUMPTIONS: Final = (
    "Nothing comes more often, runs longer or blocks longer than in this trace.",
    "A thread of the highest priority that is ready runs at once on a CPU that its runmask allows; where neither an "
    "event (ThreadCtl) nor the timing file shows that, on those on which it ran in this trace.",
    "Blocking (locks, replies, sleeps, waking up, switches) is at most what the worst instance had of it.",
)
_DISTANCES: Final = 128  # arrivals in a row that are measured; longer sequences are composed of these
_FAR: Final = np.iinfo(np.int64).max
_MOST_SUM: Final = 1 << 60  # cycles: sums stay within int64
_MOST_STEPS: Final = 5000  # iterations for the busy windows of one activity
_LEAST_STEPS: Final = 50
_MOST_LOOKED_AT: Final = 1 << 32  # distances compared for all activities together: some 10 s
_MOST_KINDS: Final = 4096  # of work
_MOST_IN_A_WINDOW: Final = 1000  # instances of the activity
_UNKNOWN_PRIORITY: Final = 255  # as the highest

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Arrivals(ColumnTable):
    """Arrival curves of several kinds of work: the shortest times in which 1, 2, ... pieces of work arrive.

    Attributes:
        distances: int64 (kinds, n), cycles, shortest time from the first to the last of 1, 2, ... arrivals in a row;
            ascending from 0, and `_FAR` after the last known one.
        steps: int64 (kinds,), position of the last known distance, above 0; later arrivals repeat the known distances.
        jitter: int64 (kinds,), maximum number of cycles by which an arrival may be late.
    """

    distances: _Ints
    steps: _Ints
    jitter: _Ints

    @classmethod
    def periodic(cls, period: _Ints, jitter: _Ints | None = None) -> Arrivals:
        """Return the arrival curves of work with the given periods and largest jitters, cycles, int64 (kinds,)."""
        count = len(period)
        distances = np.stack((np.zeros(count, np.int64), period), axis=1)
        return cls(distances, np.ones(count, np.int64), np.zeros(count, np.int64) if jitter is None else jitter)

    @classmethod
    def seen(cls, times: Sequence[_Ints], span: int) -> Arrivals:
        """Return the arrival curves of observed arrivals.

        Args:
            times: int64 (n,) of each kind, cycles, ascending, n > 0.
            span: Length of the observation, cycles; one arrival more than observed is taken to need at least that.
        """
        rows = [_distances(kind_times, span) for kind_times in times]
        steps = np.array([len(row) - 1 for row in rows], np.int64)
        distances = np.full((len(rows), int(steps.max(initial=1)) + 1), _FAR)
        for row, known in zip(distances, rows, strict=True):
            row[: len(known)] = known
        return cls(distances, steps, np.zeros(len(rows), np.int64))

    def most_within(self, length: int) -> _Ints:
        """Return the largest number of arrivals within `length` cycles (above 0), int64 (kinds,)."""
        window = length + self.jitter
        whole = np.maximum(self.distances[np.arange(len(self.steps)), self.steps], 1)
        rounds = np.minimum((window - 1) // whole, 2 * _MOST_SUM // self.steps)  # beyond that there is no bound anyway
        rest = (window - 1) % whole + 1
        return np.asarray(rounds * self.steps + np.count_nonzero(self.distances < rest[:, None], axis=1), np.int64)

    def least_for(self, count: int) -> int:
        """Return the shortest time from the first to the last of `count` arrivals, cycles; only for a single kind."""
        steps = int(self.steps[0])
        rounds, rest = divmod(count - 1, steps)
        return max(0, rounds * int(self.distances[0, steps]) + int(self.distances[0, rest]) - int(self.jitter[0]))


def _distances(times: _Ints, span: int) -> _Ints:
    count = min(len(times), _DISTANCES)
    distances = [int((times[more:] - times[: len(times) - more]).min()) for more in range(1, count)]
    return np.maximum.accumulate(np.array([0, *distances, *([span] if count == len(times) else [])], np.int64))


def response_bound(
    execution: int, own: Arrivals, others: Arrivals, costs: _Ints, most_cycles: int, *, cpus: int = 1,
    is_shared: NDArray[np.bool_] | None = None, most_steps: int = _MOST_STEPS,
) -> int | None:  # fmt: skip
    """Return the longest response time of an activity in cycles; None if the analysis finds no bound.

    Args:
        execution: Cycles of each instance, blocking included; above 0.
        own: Arrivals of the activity's instances, one kind.
        others: Arrivals of all work that takes precedence.
        costs: int64 (kinds,), cycles of each kind of that work.
        most_cycles: A longer busy window counts as endless.
        cpus: Number of CPUs on which the activity may run; on several, each kind may have one more piece, begun before.
        is_shared: bool (kinds,), kinds that delay the activity only while all of these CPUs are busy; None = all.
        most_steps: Iteration limit, which bounds the time that the analysis takes.
    """
    shared = np.ones(len(costs), np.bool_) if is_shared is None else is_shared
    bound = window = steps = 0
    for count in range(1, _MOST_IN_A_WINDOW + 1):
        base = count * execution
        window = max(window, base)
        while True:
            steps += 1
            arrived = others.most_within(window) + (cpus > 1)
            if float(arrived.astype(np.float64) @ costs.astype(np.float64)) > _MOST_SUM:
                return None
            work = arrived * costs
            # A thread runs on one CPU at a time: not longer than the window.
            shared_work = int(np.minimum(work[shared], window).sum()) if cpus > 1 else int(work[shared].sum())
            longer = base + -(-shared_work // cpus) + int(work[~shared].sum())
            if longer > most_cycles or steps > most_steps:
                return None
            if longer == window:
                break
            window = longer
        bound = max(bound, window - own.least_for(count))
        if window <= own.least_for(count + 1):
            return bound
    return None


@dataclass(frozen=True, slots=True)
class Bound:
    """The response bound of one activity and its inputs; -1 = not known.

    Attributes:
        reason: Why there is no bound; empty if there is one.
        priority: The lowest priority at which the activity's thread runs within instances.
        cpus: CPUs on which the thread may run during all instances.
        is_affinity_shown: A runmask or the user defines `cpus`; else these are the CPUs on which the thread ran.
        period_cycles: The shortest time from one instance to the next, from the user or as observed.
        execution_cycles: The longest time that the thread runs in an instance.
        blocking_cycles: The longest time that an instance waits, except for a CPU that does other work.
        bound_cycles: The longest possible response time.
        measured_cycles: The longest response time in the trace.
    """

    reason: str = ""
    priority: int = -1
    cpus: tuple[int, ...] = ()
    is_affinity_shown: bool = False
    period_cycles: int = -1
    execution_cycles: int = -1
    blocking_cycles: int = -1
    bound_cycles: int = -1
    measured_cycles: int = -1


def response_bounds(
    trace: Trace, learned: Activities, periods: Sequence[int], said_cpus: Mapping[int, Sequence[int]] | None = None
) -> list[Bound]:
    """Return the response bound of each activity, in the order of the activities.

    On an axis these are the bounds in the activity's file alone, because only that file has work for its CPUs.

    Args:
        trace: The events.
        learned: Activities and instances.
        periods: The user's period of each activity, cycles; -1 = as observed.
        said_cpus: CPUs to which a user limits the threads of some activities, by position of the activity.
    """
    if (files := files_of(trace)) is not None:
        return _bounds_on_axis(files, learned, periods, said_cpus or {})
    reason = _why_none(trace)
    of_threads = {
        int(thread): tuple(cpus)
        for position, cpus in (said_cpus or {}).items()
        for thread in np.unique(learned.instances.thread[learned.instances.activity == position])
    }
    work = None if reason else _Work(trace, len(learned.activities), of_threads)
    if work is not None and len(work.thread) > _MOST_KINDS:
        reason, work = f"more than {_MOST_KINDS:,} kinds of work are more than can be analysed", None
    known = learned.instances.taken(learned.instances.is_known)
    bounds = []
    for position, period in enumerate(periods):
        instances = known.taken(known.activity == position)
        measured = int(instances.response_cycles.max(initial=-1))
        if work is None or not len(instances):
            bounds.append(Bound(reason or "no instance is known", measured_cycles=measured))
        elif learned.activities[position].trigger in ENCLOSED:
            bounds.append(Bound("it is a part of other work", measured_cycles=measured))
        else:
            bounds.append(work.bound_of(instances, period, measured))
    return bounds


def _bounds_on_axis(
    files: FileAxis, learned: Activities, periods: Sequence[int], said_cpus: Mapping[int, Sequence[int]]
) -> list[Bound]:
    """Return the bounds that activities have in their files; arguments as for `response_bounds`."""
    bounds: dict[int, Bound] = {}
    file_of = files.part_of[learned.instances.start_row]
    for number, part in enumerate(files.parts):
        instances = learned.instances.taken(file_of == number)
        start, begin, end = (
            part.own_times(times) for times in (instances.start_cycles, instances.begin_cycles, instances.end_cycles)
        )
        in_file = replace(
            instances,
            thread=np.searchsorted(part.threads, instances.thread),
            start_cycles=start,
            begin_cycles=begin,
            end_cycles=end,
            start_row=files.own_row[instances.start_row].astype(np.int64),
            end_row=np.where(
                instances.end_row >= 0, files.own_row[instances.end_row].astype(np.int64), instances.end_row
            ),
        )
        rate, cpus = part.trace.clock.cycles_per_s, range(part.first_cpu, part.first_cpu + part.trace.cpu_count)
        bounds_of_part = response_bounds(
            part.trace, replace(learned, instances=in_file),
            scaled(np.array(periods, np.int64), part.rate, rate).tolist(),
            {position: [cpu - cpus.start for cpu in allowed if cpu in cpus] for position, allowed in said_cpus.items()},
        )  # fmt: skip
        for position in np.unique(instances.activity).tolist():
            is_first = position not in bounds
            bounds[position] = (
                _on_axis(part, bounds_of_part[position]) if is_first else Bound("several files have instances")
            )
    return [bounds.get(position, Bound("no instance is known")) for position in range(len(periods))]


def _on_axis(part: AxisPart, bound: Bound) -> Bound:
    """Return a bound computed in one file, converted to the cycles and CPU numbers of the axis."""
    names = [field.name for field in fields(Bound) if field.name.endswith("_cycles")]
    own = np.array([getattr(bound, name) for name in names], np.int64)
    cycles = np.where(own >= 0, scaled(own, part.trace.clock.cycles_per_s, part.rate), own).tolist()
    cpus = tuple(cpu + part.first_cpu for cpu in bound.cpus)
    return replace(bound, cpus=cpus, **dict(zip(names, cycles, strict=True)))


def _why_none(trace: Trace) -> str:
    """Return the reason why a trace has no response bounds at all; empty if it may have bounds."""
    if trace.pairs is not None:
        return "only the kernel of QNX is known to run threads by fixed priorities"
    for need in (STATES, PRIORITIES, NO_LOSS):
        if advice := need.advice(trace):
            return advice
    basis = Basis(trace)
    if has_partitions(trace) or logs_partitions(basis):
        return "budgets of adaptive partitions decide who runs, beside priorities"
    return ""


class _Work:
    """All work of a trace that may take precedence over an activity: by thread and priority, and the interrupts.

    Attributes:
        thread: int64 (kinds,), row of the thread; 0 = an interrupt.
        level: int64 (kinds,), the highest priority at which the work runs.
        on_cpu: bool (kinds, CPUs), where the thread may run at some time, or the interrupt is handled.
        costs: int64 (kinds,), maximum number of cycles that a piece of the work takes.
        arrivals: Arrival curves of the kinds.

    Args:
        trace: The events.
        activities: Number of activities that share the time limit of the analysis.
        said_cpus: CPUs to which a user limits some threads.
    """

    def __init__(self, trace: Trace, activities: int, said_cpus: Mapping[int, tuple[int, ...]]) -> None:
        self._trace, self._span, self._said_cpus = trace, max(1, trace.window.length), said_cpus
        basis = Basis(trace)
        self._interrupts = basis.interrupts
        self._busy: dict[tuple[int, int], TimeRanges] = {}
        runs, priority = basis.runs_by_priority
        working = np.flatnonzero((runs.thread > 0) & ~basis.is_idle[runs.thread])
        working = working[np.lexsort((runs.start[working], runs.thread[working]))]
        self._thread, self._cpu = runs.thread[working].astype(np.int64), runs.cpu[working].astype(np.int64)
        self._start, self._end = runs.start[working], runs.end[working]
        self._priority = np.where(priority[working] < 0, _UNKNOWN_PRIORITY, priority[working])
        wake_thread, self._wake, self._piece = self._pieces()
        # When each run became ready: at the wake-up, or at the end of the run before in the same piece.
        self._ready = self._wake[self._piece].copy()
        goes_on = np.flatnonzero(self._piece[1:] == self._piece[:-1]) + 1
        self._ready[goes_on] = np.maximum(self._end[goes_on - 1], self._ready[goes_on])
        self._ready = np.minimum(self._ready, self._start)
        level = np.zeros(len(self._wake), np.int64)
        np.maximum.at(level, self._piece, self._priority)
        self._lag = self._lags(level[self._piece])
        handled = np.zeros(len(working), np.int64)
        for cpu, ranges in enumerate(self._interrupts):
            on_it = self._cpu == cpu
            handled[on_it] = ranges.within(self._start[on_it], self._end[on_it])
        cost = sum_by(self._piece, self._end - self._start - handled + self._lag, len(self._wake))
        ran = np.zeros((len(trace.threads), trace.cpu_count), np.bool_)
        ran[self._thread, self._cpu] = True
        calls, mask = runmasks(trace)
        np.logical_or.at(ran, trace.events.thread[calls], _allowed(mask, trace.cpu_count))
        for thread, may in said_cpus.items():
            ran[thread, list(may)] = True
        order = np.lexsort((self._wake, level, wake_thread))
        order = order[cost[order] > 0]
        is_other = (np.diff(wake_thread[order]) != 0) | (np.diff(level[order]) != 0)
        kinds = np.split(order, np.flatnonzero(is_other) + 1) if len(order) else []
        handlers = self._handlers()
        self.thread = np.array([wake_thread[kind[0]] for kind in kinds] + [0] * len(handlers), np.int64)
        self.level = np.array([level[kind[0]] for kind in kinds] + [_FAR] * len(handlers), np.int64)
        self.costs = np.array([cost[kind].max() for kind in kinds] + [longest for _, _, longest in handlers], np.int64)
        self.on_cpu = np.zeros((len(self.thread), trace.cpu_count), np.bool_)
        self.on_cpu[: len(kinds)] = ran[self.thread[: len(kinds)]]
        for row, (cpu, _, _) in enumerate(handlers, len(kinds)):
            self.on_cpu[row, cpu] = True
        times = [self._wake[kind] for kind in kinds] + [starts for _, starts, _ in handlers]
        self.arrivals = Arrivals.seen(times, self._span)
        of_step = self.arrivals.distances.size * max(1, activities)
        self._most_steps = max(_LEAST_STEPS, min(_MOST_STEPS, _MOST_LOOKED_AT // max(1, of_step)))

    def _pieces(self) -> tuple[_Ints, _Ints, NDArray[np.intp]]:
        """Return thread and time of the wake-up that begins each piece of work, and the piece of each run."""
        trace, thread_waits = self._trace, waits(self._trace)
        time = trace.events.time_cycles
        woken = (thread_waits.end_row != OPEN) & (
            (thread_waits.end_value == READY) | (thread_waits.end_value == RUNNING)
        )
        row = thread_waits.end_row[woken].astype(np.int64)
        alive = np.unique(self._thread)  # their work when the trace begins arrives then
        thread = np.concatenate((alive, thread_waits.thread[woken].astype(np.int64)))
        key = thread << 32 | np.concatenate((np.zeros(len(alive), np.int64), row + 1))
        wake = np.concatenate((np.full(len(alive), trace.window.start), time[row]))
        order = np.argsort(key, kind="stable")
        of_run = self._thread << 32 | np.searchsorted(time, self._start, side="right")
        return thread[order], wake[order], np.searchsorted(key[order], of_run, side="right") - 1

    def _busy_with(self, cpu: int, priority: int) -> TimeRanges:
        """Return the times in which a CPU does work of at least the given priority, or handles an interrupt."""
        if (cpu, priority) not in self._busy:
            does, handled = (self._cpu == cpu) & (self._priority >= priority), self._interrupts[cpu]
            self._busy[cpu, priority] = TimeRanges.of(
                np.append(self._start[does], handled.start), np.append(self._end[does], handled.end)
            )
        return self._busy[cpu, priority]

    def _lags(self, level: _Ints) -> _Ints:
        """Return for how many cycles each run was delayed while its CPU did no work of at least its level."""
        lag = self._start - self._ready
        for cpu in np.unique(self._cpu).tolist():
            waited = (self._cpu == cpu) & (lag > 0)
            for priority in np.unique(level[waited]).tolist():
                rows = np.flatnonzero(waited & (level == priority))
                lag[rows] -= self._busy_with(cpu, priority).within(self._ready[rows], self._start[rows])
        return lag

    def _handlers(self) -> list[tuple[int, _Ints, int]]:
        """Return, for each interrupt of each CPU, the CPU, all starts and the longest handling, in cycles.

        An interrupt that a nested one divides counts as several.
        """
        kinds = []
        for cpu in range(self._trace.cpu_count):
            edges, _, number = cpu_timeline(self._trace, cpu)
            for kind in np.unique(number[number >= 0]).tolist():
                rows = np.flatnonzero(number == kind)
                kinds.append((cpu, edges[rows], int((edges[rows + 1] - edges[rows]).max())))
        return kinds

    def bound_of(self, instances: Instances, period: int, measured: int) -> Bound:
        """Return the response bound of an activity, with the user's period or -1, and the longest measured response."""
        arrived = np.sort(instances.start_cycles)
        least = int(np.diff(arrived).min()) if len(arrived) > 1 else -1
        shown = Bound(period_cycles=period if period > 0 else least, measured_cycles=measured)
        threads = np.unique(instances.thread)
        if len(threads) != 1:
            return replace(shown, reason=f"{counted(len(threads), 'thread')} of a pool do it")
        thread = int(threads[0])
        begin, stop = np.searchsorted(self._thread, (thread, thread + 1)).tolist()
        runs = np.arange(begin, stop)
        is_used = TimeRanges.of(instances.start_cycles, instances.end_cycles).meet(self._start[runs], self._end[runs])
        if not is_used.any():
            return replace(shown, reason="its thread does not run")
        priority = int(self._priority[runs[is_used]].min())
        cpus, is_shown = self._may_run_on(thread, instances, runs)
        shown = replace(shown, priority=priority, cpus=tuple(cpus.tolist()), is_affinity_shown=is_shown)
        if not len(cpus):
            return replace(shown, reason="its runmask changes: there is no CPU that it allows all the time")
        if thread in self._said_cpus and (other := np.setdiff1d(self._cpu[runs], cpus)).size:
            return replace(shown, reason=f"it ran on CPU {other[0]}, which the timing file does not allow")
        execution, blocking = self._largest(instances, runs, cpus.tolist(), priority)
        shown = replace(shown, execution_cycles=execution, blocking_cycles=blocking)
        before = self.on_cpu[:, cpus].any(axis=1) & (self.level >= priority) & (self.thread != thread)
        costs, arrivals, is_shared = self.costs[before], self.arrivals.taken(before), self.thread[before] > 0
        other_costs, other_times = self._other_work(instances, runs)
        if len(other_times):
            arrivals = _joined(arrivals, Arrivals.seen([np.sort(other_times)], self._span))
            costs, is_shared = np.append(costs, other_costs.max()), np.append(is_shared, False)
        own = Arrivals.periodic(np.array([period])) if period > 0 else Arrivals.seen([arrived], self._span)
        bound = response_bound(max(1, execution + blocking), own, arrivals, costs, self._span, cpus=len(cpus),
                               is_shared=is_shared, most_steps=self._most_steps)  # fmt: skip
        if bound is None:
            return replace(shown, reason="it and what goes before it may need all the time of its CPUs")
        return replace(shown, bound_cycles=bound)

    def _may_run_on(self, thread: int, instances: Instances, runs: NDArray[np.intp]) -> tuple[_Ints, bool]:
        """Return the CPUs that a thread may use in all instances, and whether a call or the user sets them.

        Before the thread's first call that sets its runmask, the mask is unknown: if the thread waited then while one
        of the returned CPUs was free, that time counts as blocking.
        """
        if thread in self._said_cpus:
            return np.array(sorted(self._said_cpus[thread]), np.int64), True
        calls, mask = runmasks(self._trace)
        own = np.flatnonzero(self._trace.events.thread[calls] == thread)
        since = np.append(self._trace.events.time_cycles[calls[own]], _FAR)
        allowed = _allowed(mask[own], self._trace.cpu_count)
        is_met = TimeRanges.of(instances.start_cycles, instances.end_cycles).meet(since[:-1], since[1:])
        if not is_met.any():
            return np.unique(self._cpu[runs]), False
        return np.flatnonzero(allowed[is_met].all(axis=0)), True

    def _largest(self, instances: Instances, runs: NDArray[np.intp], cpus: list[int], priority: int) -> tuple[int, int]:
        """Return the longest run time of a thread in an instance, and its longest wait in one, both in cycles.

        Time in which the thread is ready and all its CPUs are busy with at least `priority` does not count as waiting.
        """
        start, end = instances.start_cycles, instances.end_cycles
        ran = np.zeros(len(instances), np.int64)
        for cpu in np.unique(self._cpu[runs]).tolist():
            own = runs[self._cpu[runs] == cpu]
            on_it = TimeRanges.of(self._start[own], self._end[own])
            ran += on_it.within(instances.begin_cycles, end)
            if cpu in cpus:  # the bound has interrupts of these CPUs only
                handled = _common([on_it, self._interrupts[cpu]])
                ran -= handled.within(instances.begin_cycles, end)
        waited = TimeRanges.of(self._ready[runs], self._start[runs])
        held_up = _common([waited, *(self._busy_with(cpu, priority) for cpu in cpus)])
        present = TimeRanges.of(self._start[runs], self._end[runs])
        blocked = end - start - present.within(start, end) - held_up.within(start, end)
        return int(ran.max()), int(blocked.max())

    def _other_work(self, instances: Instances, runs: NDArray[np.intp]) -> tuple[_Ints, _Ints]:
        """Return length and arrival of each piece of work of a thread outside of the activity's instances, cycles."""
        in_use = TimeRanges.of(instances.begin_cycles, instances.end_cycles)
        start, end = self._start[runs], self._end[runs]
        outside = end - start - in_use.within(start, end) + np.where(in_use.meet(start, end), 0, self._lag[runs])
        pieces, which = np.unique(self._piece[runs], return_inverse=True)
        cost = sum_by(which.reshape(-1), outside, len(pieces))
        return cost[cost > 0], self._wake[pieces[cost > 0]]


def _allowed(mask: _Ints, cpu_count: int) -> NDArray[np.bool_]:
    """Return which CPUs runmasks allow, bool (masks, CPUs)."""
    return np.asarray(mask[:, None] >> np.arange(cpu_count) & 1 == 1)


def _common(parts: Sequence[TimeRanges]) -> TimeRanges:
    """Return the times that are in the ranges of all parts."""
    time = np.concatenate([column for part in parts for column in (part.start, part.end)])
    step = np.concatenate([np.repeat(np.array([1, -1]), len(part.start)) for part in parts])
    order = np.lexsort((step, time))  # at equal times, ends come before starts
    covered = np.flatnonzero(np.cumsum(step[order]) == len(parts))
    return TimeRanges.of(time[order][covered], time[order][covered + 1])


def _joined(one: Arrivals, other: Arrivals) -> Arrivals:
    width = max(one.distances.shape[1], other.distances.shape[1])
    rows = [np.pad(part.distances, ((0, 0), (0, width - part.distances.shape[1])), constant_values=_FAR)
            for part in (one, other)]  # fmt: skip
    return Arrivals(np.concatenate(rows), np.append(one.steps, other.steps), np.append(one.jitter, other.jitter))
