"""Predicts the effect of changes, says how well the unchanged replay fits, and searches for the smallest change."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from os import cpu_count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import ENCLOSED, Activities, Timing, activities, activity_named
from satview.analysis.blame import writes_trace
from satview.answers.whatif import Candidate, Compared, Leverage
from satview.base.child import safe_children
from satview.base.errors import UsageError
from satview.base.safe_text import counted, percent, visible_line
from satview.events.spec import Release
from satview.events.user_events import UserEvent
from satview.events.wire import MAX_CPUS
from satview.formats.registry import open_trace
from satview.linkage.links import OPEN
from satview.linkage.waits import waits
from satview.store.arguments import describe_events
from satview.store.trace import PREDICTED_CHANGES, PREDICTED_FROM, Trace
from satview.whatif import steps as steps_of
from satview.whatif.program import programs_of
from satview.whatif.replay import Replay, replay
from satview.whatif.steps import Await, Changed, ProgramChange, Programs, Step, TimedWait, parse_changes, with_changes

# How well a replay fits: the activities of two traces side by side, and whether threads wake up in the same order.


MEDIAN_WARNS_ABOVE: Final = 0.05
P99_WARNS_ABOVE: Final = 0.1
"""Relative errors of median and 99 % quantile above which an activity, or the median of all, does not fit."""
_SURE: Final = 2.58  # standard deviations: 99 %
_END_NS: Final = 1_000_000  # instances that end closer to the end are left out in both traces
Key = tuple[str, str, int, int]  # trigger, process, tid (0 = any thread of a server), number among equal ones


@dataclass(frozen=True, slots=True)
class ActivityFigures:
    """Statistics of the response times of one activity, such as number, median and 99 % quantile.

    Attributes:
        median_range_ns: 99 % confidence interval of the median, from order statistics.
        p99_range_ns: The same for the 99 % quantile; with few responses the interval ends at the longest one.
        deadline_ns: Deadline, -1 = none.
        is_own: The activity belongs to the program that writes the trace.
    """

    name: str
    count: int
    median_ns: int
    p99_ns: int
    median_range_ns: tuple[int, int]
    p99_range_ns: tuple[int, int]
    mean_ns: float
    longest_ns: int
    deadline_ns: int
    misses: int
    is_own: bool


@dataclass(frozen=True, slots=True)
class ActivityFit:
    """Figures of one activity in the recording, and in the replay if it occurs there."""

    recorded: ActivityFigures
    replayed: ActivityFigures | None

    @property
    def median_error(self) -> float:
        """Relative error of the replayed median against the recorded one; infinite if the replay lacks the activity."""
        return _error(self.recorded.median_ns, self.replayed.median_ns if self.replayed else None)

    @property
    def p99_error(self) -> float:
        """Relative error of the replayed 99 % quantile against the recorded one, as `median_error`."""
        return _error(self.recorded.p99_ns, self.replayed.p99_ns if self.replayed else None)

    @property
    def badness(self) -> float:
        """The larger of both errors, as a multiple of the bound above which predictions are unreliable."""
        return max(self.median_error / MEDIAN_WARNS_ABOVE, self.p99_error / P99_WARNS_ABOVE)

    def __str__(self) -> str:
        if self.replayed is None:
            return f"{self.recorded.name} (never done)"
        median, p99 = percent(self.median_error), percent(self.p99_error)
        return f"{self.recorded.name} (off by {median} in the median, by {p99} in 99 %)"


@dataclass(frozen=True, slots=True)
class ReplayFit:
    """Figures on how well a replay without changes reproduces the recorded trace.

    Attributes:
        activities: Fit of each activity by key, those with most instances first.
        same_order: Share of pairs of consecutive wake-ups that have the same order in the recording and the replay.
    """

    activities: Mapping[Key, ActivityFit]
    same_order: float

    @property
    def median_error(self) -> float:
        """Median of the activities' median errors, without the program that writes the trace."""
        errors = [fit.median_error for fit in self.activities.values() if not fit.recorded.is_own]
        return float(np.median(errors)) if errors else float("inf")

    @property
    def p99_error(self) -> float:
        """Median of the activities' errors in the 99 % quantile, without the program that writes the trace."""
        errors = [fit.p99_error for fit in self.activities.values() if not fit.recorded.is_own]
        return float(np.median(errors)) if errors else float("inf")

    @property
    def poor(self) -> list[ActivityFit]:
        """Activities whose predictions are unreliable, those with the largest error first."""
        poor = [fit for fit in self.activities.values() if fit.badness > 1 and not fit.recorded.is_own]
        return sorted(poor, key=lambda fit: -fit.badness)

    @property
    def with_deadlines(self) -> dict[Key, ActivityFigures]:
        """Recorded figures of the activities with a deadline, without those of the program that writes the trace."""
        recorded = {key: fit.recorded for key, fit in self.activities.items()}
        return {key: figures for key, figures in recorded.items() if figures.deadline_ns > 0 and not figures.is_own}

    def sentences(self) -> list[str]:
        """Return sentences about the fit: a summary or warning, then activities whose predictions are unreliable."""
        if self.median_error == float("inf"):
            return ["Warning: no activity can be compared, so that nothing says how well the replay fits."]
        summary = (f"The unchanged replay is off by {percent(self.median_error)} in the median of an activity, by "
                f"{percent(self.p99_error)} in 99 %; {percent(self.same_order, 0)} of the wake-ups come in the same "
                "order."
        )  # fmt: skip
        poor = self.poor
        if self.median_error > MEDIAN_WARNS_ABOVE or self.p99_error > P99_WARNS_ABOVE:
            bounds = f"{percent(MEDIAN_WARNS_ABOVE, 0)} in the median or {percent(P99_WARNS_ABOVE, 0)} in 99 %"
            return [f"Warning: {summary[0].lower()}{summary[1:]} Above {bounds} do not rely on predictions; "
                    f"furthest off is {poor[0]}."]  # fmt: skip
        if not poor:
            return [summary]
        others = f" and {counted(len(poor) - 1, 'other')}" if len(poor) > 1 else ""
        known = sum(not fit.recorded.is_own for fit in self.activities.values())
        return [summary, f"Do not rely on predictions of {poor[0]}{others}, out of {known:,}."]


def _error(recorded: int, other: int | None) -> float:
    return float("inf") if other is None else abs(other - recorded) / max(recorded, 1)


def figures(
    trace: Trace,
    begin_cycles: int,
    length_ns: int,
    timing: Mapping[str, Timing] | None = None,
    bounds_ns: Mapping[Key, int] | None = None,
) -> dict[Key, ActivityFigures]:
    """Return the figures of a trace's activities within a time range, without activities that are parts of others.

    `bounds_ns` are the deadlines, -1 = none; None = those of the trace itself.
    """
    learned = activities(trace, timing)
    instances = learned.instances
    end_cycles = begin_cycles + trace.clock.cycles_of(length_ns - _END_NS)
    is_done = ~instances.is_open & instances.is_known & (instances.start_cycles >= begin_cycles)
    is_done &= instances.end_cycles <= end_cycles
    own = writes_trace(trace)
    out: dict[Key, ActivityFigures] = {}
    for number, key in enumerate(_keys(trace, learned)):
        if learned.activities[number].trigger in ENCLOSED:
            continue
        response = instances.response_cycles[is_done & (instances.activity == number)]
        if len(response):
            ordered_ns = trace.clock.durations_ns(np.sort(response))
            median, p99 = _quantile(ordered_ns, 0.5), _quantile(ordered_ns, 0.99)  # each with its range
            activity, mean_ns = learned.activities[number], response.mean() * 1e9 / trace.clock.cycles_per_s
            deadline_ns = trace.clock.duration_ns(activity.deadline_cycles) if activity.deadline_cycles > 0 else -1
            deadline_ns = deadline_ns if bounds_ns is None else bounds_ns.get(key, -1)
            is_late = response > trace.clock.cycles_of(max(deadline_ns, 0))
            misses = int(np.count_nonzero(is_late)) if deadline_ns > 0 else 0
            out[key] = ActivityFigures(activity.name, len(response), median[0], p99[0], median[1:], p99[1:],
                               float(mean_ns), int(ordered_ns[-1]), deadline_ns, misses,
                               bool(own[activity.thread]))  # fmt: skip
    return out


def _quantile(ordered_ns: NDArray[np.int64], share: float) -> tuple[int, int, int]:
    """Return a quantile of ascending times, then the lower and upper limit of its 99 % confidence interval, ns."""
    count = len(ordered_ns)
    spread = _SURE * math.sqrt(count * share * (1 - share))
    ranks = math.ceil(count * share), math.floor(count * share - spread), math.ceil(count * share + spread)
    middle, low, high = (int(ordered_ns[min(max(rank, 1), count) - 1]) for rank in ranks)
    return middle, low, high


def _keys(trace: Trace, learned: Activities) -> list[Key]:
    """Return a key for each activity, equal in recording and replay even if other threads of a pool do the work."""
    seen: dict[tuple[str, str, int], int] = {}
    out = []
    for activity in learned.activities:
        process = trace.process_name(int(trace.threads.process[activity.thread]))
        tid = 0 if activity.trigger in ("message", "pulse", "said") else int(trace.threads.tid[activity.thread])
        key = (activity.trigger, activity.name if activity.trigger == "said" else process, tid)
        seen[key] = seen.get(key, -1) + 1
        out.append((*key, seen[key]))
    return out


def fit_of(
    recorded: tuple[Trace, int], replayed: tuple[Trace, int], length_ns: int, timing: Mapping[str, Timing] | None = None
) -> ReplayFit:
    """Return figures on how well a replay reproduces a recorded trace, each compared from a time in cycles on."""
    recorded_figures = figures(*recorded, length_ns, timing)
    replayed_figures = figures(*replayed, length_ns, own_activities(timing))
    by_count = sorted(recorded_figures, key=lambda key: (recorded_figures[key].is_own, -recorded_figures[key].count))
    return ReplayFit(
        {key: ActivityFit(recorded_figures[key], replayed_figures.get(key)) for key in by_count},
        _same_order(recorded, replayed),
    )


def own_activities(timing: Mapping[str, Timing] | None) -> dict[str, Timing]:
    """Return the timing entries that define activities by expressions: names of learned ones may differ in a replay."""
    return {name: entry for name, entry in (timing or {}).items() if entry.start}


def _same_order(one: tuple[Trace, int], other: tuple[Trace, int]) -> float:
    """Return the share of pairs of consecutive wake-ups that have the same order, each after a time in cycles."""
    numbers: dict[int, int] = {}
    one_order, other_order = (_wake_ups(*trace, numbers) for trace in (one, other))
    position = {int(wake): place for place, wake in enumerate(other_order.tolist())}
    place = np.array([position.get(wake, -1) for wake in one_order.tolist()], np.int64)
    both = (place[:-1] >= 0) & (place[1:] >= 0)
    return float((place[1:] > place[:-1])[both].mean()) if both.any() else 0.0


def _wake_ups(trace: Trace, begin_cycles: int, numbers: dict[int, int]) -> NDArray[np.int64]:
    """Return for each wake-up, in time order, `thread number << 32 | count of the thread's earlier ones`, int64 (n,).

    `numbers` has the number of each thread by `pid << 32 | tid`; missing threads are added.
    """
    every_wait = waits(trace)
    rows = every_wait.end_row[every_wait.end_row < OPEN].astype(np.int64)
    thread = every_wait.thread[every_wait.end_row < OPEN]
    is_later = trace.events.time_cycles[rows] >= begin_cycles
    rows, thread = rows[is_later], thread[is_later]
    name = trace.threads.pid[thread].astype(np.int64) << 32 | trace.threads.tid[thread]
    order = np.argsort(name, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True], np.diff(name[order]) != 0)))
    count = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    names, which = np.unique(name, return_inverse=True)
    number = np.array([numbers.setdefault(value, len(numbers)) for value in names.tolist()], np.int64)
    wake = np.empty(len(order), np.int64)
    wake[order] = number[which.reshape(-1)[order]] << 32 | count
    return wake[np.argsort(rows, kind="stable")]


# Predicts the effect of changes: replays a trace unchanged, to see how well that fits, and with the changes.


_NEVER_NS: Final = 1 << 62
_LONG: Final = 200_000  # events; a shorter replay takes no longer than starting a process


@dataclass(frozen=True, slots=True)
class ReplayBasis:
    """The data that predictions for a trace start from: its programs, and how well their unchanged replay fits.

    `findings` are its problems on the simulated kernel, which predictions do not report again.
    """

    programs: Programs
    fit: ReplayFit
    timing: Mapping[str, Timing] | None
    seed: int
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """Result of a replay with changes.

    Attributes:
        changes: The texts of the changes; empty = the replay is unchanged.
        compared: Recorded, replayed and predicted figures, one entry for each activity.
        findings: Problems on the simulated kernel, such as a deadlock, a sentence each.
    """

    changes: tuple[str, ...]
    compared: tuple[Compared, ...]
    findings: tuple[str, ...]
    figures: Mapping[Key, ActivityFigures]


def basis_of(
    trace: Trace, timing: Mapping[str, Timing] | None = None, seed: int = 1, changes: Sequence[ProgramChange] = ()
) -> ReplayBasis:
    """Replay a trace without changes; return its programs, and how well the replay fits the trace.

    Changes that will be predicted are only checked, as a replay may take minutes; `seed` is that of the costs of kernel
    calls. Raises UsageError if the trace cannot be replayed, or the timing or a change does not fit it.
    """
    programs = programs_of(trace)
    with_changes(programs, changes)
    with TemporaryDirectory(prefix="satview-") as folder:
        replayed = replay(programs, Path(folder) / "unchanged.kev", seed=seed)
        fit = fit_of((trace, programs.begin_cycles), _times(replayed), programs.length_ns, timing)
        replayed.trace.payloads.close()
    return ReplayBasis(programs, fit, timing, seed, replayed.findings)


def predict(
    basis: ReplayBasis, changes: Sequence[ProgramChange], out: Path | None = None, *, has_doubts: bool = True
) -> Prediction:
    """Return the prediction of a replay with changes; each property that the trace leaves open needs one more replay.

    Without changes, the trace is compared with its unchanged replay. `out` is the file for the predicted trace; None =
    it is not kept. With `has_doubts` the variants that the trace leaves open are replayed too, to find how much
    predictions depend on them. Raises UsageError if a change does not fit the trace, CaptureError if the file cannot be
    written.
    """
    changed = with_changes(basis.programs, changes)
    if not changes and out is None:
        return Prediction((), _compared(basis.fit, {}, []), (), {})
    programs = list(_doubts(basis.programs)) if has_doubts and changes else []
    with TemporaryDirectory(prefix="satview-") as name, _parallel_doubts(basis, changes, len(programs)) as runs:
        folder = Path(name)
        findings, predicted = _predicted(basis, changed, out or folder / "predicted.kev")
        own = (entry for number, entry in reversed([*enumerate(programs)]) if not runs or runs[number].cancel())
        others = [_in_doubt(basis, changes, entry, folder) for entry in own]  # those with which nobody has begun
        others += [run.result() for run in runs if not run.cancelled()]
    findings = tuple(finding for finding in findings if finding not in basis.findings)
    return Prediction(changed.texts, _compared(basis.fit, predicted, others), findings, predicted)


def _in_doubt(
    basis: ReplayBasis, changes: Sequence[ProgramChange], programs: Programs, folder: Path
) -> dict[Key, ActivityFigures]:
    return _predicted(basis, with_changes(programs, changes), folder / "other.kev")[1]


@contextmanager
def _parallel_doubts(
    basis: ReplayBasis, changes: Sequence[ProgramChange], doubts: int
) -> Iterator[list[Future[dict[Key, ActivityFigures]]]]:
    """Start the replays of all variants left open in another process; yield their futures, none if no time is saved."""
    trace = basis.programs.trace
    if not doubts or (cpu_count() or 1) < 2 or len(trace.events) < _LONG or not trace.can_be_read_again:
        yield []
        return
    with processes(basis, 1) as pool:
        yield [pool.submit(_in_doubt_here, changes, number) for number in range(doubts)]


def _in_doubt_here(changes: Sequence[ProgramChange], number: int) -> dict[Key, ActivityFigures]:
    basis = basis_here()
    with TemporaryDirectory(prefix="satview-") as folder:
        return _in_doubt(basis, changes, next(islice(_doubts(basis.programs), number, None)), Path(folder))


def _predicted(basis: ReplayBasis, changed: Changed, path: Path) -> tuple[tuple[str, ...], dict[Key, ActivityFigures]]:
    """Replay changed programs and write the trace; return the kernel's problems, and figures of activities."""
    replayed = replay(changed.programs, path, changed.cpus, basis.seed, _attributes(basis, changed))
    bounds_ns = {key: known.recorded.deadline_ns for key, known in basis.fit.activities.items()}
    predicted = figures(*_times(replayed), basis.programs.length_ns, own_activities(basis.timing), bounds_ns)
    replayed.trace.payloads.close()
    return replayed.findings, predicted


def _doubts(programs: Programs) -> Iterator[Programs]:
    """Yield programs that fit the trace equally well; each differs in one property that no event shows.

    With fast events this property is the order of priorities. Up to 7.x, where the library builds locks from condition
    variables, it is whether a thread still waits at a condition variable after a change: in one variant all these waits
    last as recorded.
    """
    for which in range(max((len(thread.other_priorities) for thread in programs.threads), default=0)):
        yield replace(programs, threads=[
            replace(thread, priority=thread.other_priorities[which]) for thread in programs.threads
        ])  # fmt: skip
    condvars = {number for number, thing in enumerate(programs.things) if thing.kind == "CONDVAR"}

    def as_recorded(steps: list[Step]) -> list[Step]:
        return [TimedWait("CONDVAR", step.recorded_ns) if isinstance(step, Await) and step.thing in condvars else step
                for step in steps]  # fmt: skip

    if programs.trace.release is not Release.QNX_8 and condvars:
        yield replace(
            programs,
            threads=[replace(thread, steps=as_recorded(thread.steps)) for thread in programs.threads],
            messages=[replace(message, steps=as_recorded(message.steps)) if message.steps else message
                      for message in programs.messages],
            streams=[replace(stream, works=[*map(as_recorded, stream.works)]) for stream in programs.streams],
        )  # fmt: skip


def _times(replayed: Replay) -> tuple[Trace, int]:
    return replayed.trace, replayed.begin_cycles


def _attributes(basis: ReplayBasis, changed: Changed) -> tuple[tuple[str, str], ...]:
    text = "; ".join(changed.texts) or "nothing"
    name = basis.programs.trace.path.name
    return (PREDICTED_FROM, visible_line(name)), (PREDICTED_CHANGES, visible_line(text))


def _compared(
    fit: ReplayFit, predicted: Mapping[Key, ActivityFigures], others: Sequence[Mapping[Key, ActivityFigures]]
) -> tuple[Compared, ...]:
    out = []
    for key, fit_of_activity in fit.activities.items():
        runs = fit_of_activity.recorded, fit_of_activity.replayed, predicted.get(key)
        count, replayed_count, predicted_count = (figure.count if figure else 0 for figure in runs)
        median, replayed_median, predicted_median = (figure.median_ns if figure else -1 for figure in runs)
        p99, replayed_p99, predicted_p99 = (figure.p99_ns if figure else -1 for figure in runs)
        in_doubt = [predicted.get(key), *(other.get(key) for other in others)]
        median_ranges, p99_ranges = (
            (*(getattr(figure, name) for figure in runs[:2] if figure), _whole_range(in_doubt, name))
            for name in ("median_range_ns", "p99_range_ns")
        )
        out.append(Compared(fit_of_activity.recorded.name, (count, replayed_count, predicted_count),
                            (median, replayed_median, predicted_median), (p99, replayed_p99, predicted_p99),
                            median_ranges, p99_ranges))  # fmt: skip
    return tuple(out)


def _whole_range(in_doubt: Sequence[ActivityFigures | None], name: str) -> tuple[int, int]:
    """Return the range that covers the ranges `name` of several predictions; unbounded if one lacks the activity."""
    ranges_ns = [(0, _NEVER_NS) if figure is None else getattr(figure, name) for figure in in_doubt]
    return min(low for low, _ in ranges_ns), max(high for _, high in ranges_ns)


# Processes that predict.


@dataclass(frozen=True, slots=True)
class _Reading:
    """Data from which another process rebuilds a basis: it reads the trace again instead of receiving the programs."""

    path: Path
    fit: ReplayFit
    timing: Mapping[str, Timing] | None
    seed: int
    described: Mapping[int, UserEvent]


_here: list[ReplayBasis] = []  # the basis of a process that predicts, built once for all predictions


@contextmanager
def processes(basis: ReplayBasis, count: int) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes; each reads the trace once, after which `basis_here` returns its replay basis."""
    trace = basis.programs.trace
    reading = _Reading(trace.path, basis.fit, basis.timing, basis.seed, dict(trace.payloads.described))
    context = multiprocessing.get_context("spawn")  # not by fork: Arrow and Qt have threads
    with safe_children(), ProcessPoolExecutor(
        count, mp_context=context, initializer=_prepare, initargs=(reading,)
    ) as pool:  # fmt: skip
        yield pool


def _prepare(reading: _Reading) -> None:
    trace = open_trace(reading.path, None)
    if reading.described:
        describe_events(trace, reading.described)
    _here[:] = [ReplayBasis(programs_of(trace), reading.fit, reading.timing, reading.seed)]


def basis_here() -> ReplayBasis:
    """Return the replay basis of this process, which `processes` has started."""
    return _here[0]


# Searches for the smallest change that keeps all deadlines, and for the work whose reduction helps most.


MOST_CANDIDATES: Final = 24
_SAVES: Final = 0.1  # share of the work that is saved
_LEAST_SHARE: Final = 0.001  # of the trace: processes that work less cannot save much
_MORE_THREADS: Final = 4  # that a pool gets at most


def candidates(programs: Programs, asked: str) -> list[str]:
    """Return the changes that a search tries, the smallest first.

    `asked` is `cpus`, `TARGET:priority` or `TARGET:threads`. Raises UsageError for other texts and unknown targets.
    """
    target, _, key = asked.rpartition(":")
    if key == "cpus" and not target:
        return [f"cpus={count}" for count in range(1, min(programs.cpus, MAX_CPUS) + 1)]
    if key == "priority" and target:
        with_changes(programs, parse_changes([f"{target}:priority=10"]))  # raises an error if the target is unknown
        used = {thread.priority for thread in programs.threads} | {stream.priority for stream in programs.streams}
        levels = sorted({level for own in used if own > 0 for level in (own, own + 1) if level <= 255} | {1})
        step = -(-len(levels) // MOST_CANDIDATES)
        return [f"{target}:priority={level}" for level in levels[::step]]
    if key == "threads" and target:
        changed = with_changes(programs, parse_changes([f"{target}:threads=1000"])).programs
        own = len(programs.threads) - (len(changed.threads) - 1000)
        return [f"{target}:threads={count}" for count in range(1, min(own + _MORE_THREADS, MOST_CANDIDATES) + 1)]
    raise UsageError(f"--search {asked[:60]!r} is not cpus, TARGET:priority or TARGET:threads")


def search(basis: ReplayBasis, asked: str) -> list[Candidate]:
    """Return the candidate changes, smallest first, each with the deadlines that it misses; replays run in parallel.

    Raises UsageError if there is nothing to search, or no activity has a deadline.
    """
    texts = candidates(basis.programs, asked)
    if not basis.fit.with_deadlines:
        raise UsageError("no activity has a deadline: nothing in the trace is regular but for what writes it; give "
                         "some with --timing FILE.toml")  # fmt: skip
    judged = zip(texts, _predictions(basis, texts), strict=True)
    return [_judged(basis.fit, text, figures) for text, figures in judged]


def _judged(fit: ReplayFit, text: str, figures: Mapping[Key, ActivityFigures] | str) -> Candidate:
    if isinstance(figures, str):
        return Candidate(text, "failed", 0, 0, figures, 0, (0.0, 0.0))
    # An activity that never ends in the prediction misses its deadline, too.
    margins, misses, not_done = [], 0, 0
    for key, recorded in fit.with_deadlines.items():
        figure = figures.get(key)
        longest = figure.longest_ns if figure is not None else 2 * recorded.deadline_ns
        not_done += max(0, recorded.count - figure.count - 1) if figure is not None else recorded.count
        misses += figure.misses if figure is not None else 0
        margins.append(((recorded.deadline_ns - longest) / recorded.deadline_ns, recorded.deadline_ns - longest, key))
    _, margin_ns, key = min(margins)
    misses += not_done
    tightest = fit.activities[key]
    return Candidate(text, "missed" if misses else "holds", misses, not_done, tightest.recorded.name, margin_ns,
                     (tightest.median_error, tightest.p99_error))  # fmt: skip


def sensitivity(basis: ReplayBasis, activity: str) -> list[Leverage]:
    """Return, for each process with much work, how an activity changes if this process does a tenth less work.

    Raises UsageError if no activity, or several, have the name, or if the activity is not in the unchanged replay.
    """
    known = basis.fit.activities
    key = list(known)[activity_named(activity, [(known[key].recorded.name, key[0]) for key in known])]
    saved: dict[str, int] = {}
    for process, work_ns in _work(basis.programs):
        saved[process] = saved.get(process, 0) + int(work_ns * _SAVES)
    least = basis.programs.length_ns * _LEAST_SHARE * _SAVES
    names = sorted((name for name, ns in saved.items() if ns >= least), key=lambda name: -saved[name])[:MOST_CANDIDATES]
    unchanged = basis.fit.activities[key].replayed
    if unchanged is None:
        raise UsageError(f"{activity}: it never comes in the unchanged replay, so that nothing can be said")
    out = []
    for name, figures in zip(
        names, _predictions(basis, [f"{name}:speed={1 / (1 - _SAVES)}" for name in names]), strict=True
    ):
        figure = figures.get(key) if not isinstance(figures, str) else None
        if figure is not None:
            out.append(Leverage(name, saved[name], unchanged.mean_ns - figure.mean_ns,
                                unchanged.p99_ns - figure.p99_ns, figure.count))  # fmt: skip
    return out


def _work(programs: Programs) -> Iterator[tuple[str, int]]:
    """Yield (process, work in ns) for each piece of work in a trace; work for a message belongs to its server."""
    names = {thread.pid: thread.short_process for thread in programs.threads}
    for thread in programs.threads:
        yield thread.short_process, _sum_of(thread.steps)
    for message in programs.messages:
        if message.pid in names:
            yield names[message.pid], _sum_of(message.steps or ())
    for stream in programs.streams:
        if stream.pid in names:
            yield names[stream.pid], sum(map(_sum_of, stream.works))


def _sum_of(steps: Sequence[steps_of.Step]) -> int:
    return sum(step.ns for step in steps if isinstance(step, steps_of.Work))


def _predictions(basis: ReplayBasis, texts: Sequence[str]) -> list[Mapping[Key, ActivityFigures] | str]:
    """Return for each change the predicted figures, or the reason why the change is impossible."""
    jobs = min(len(texts), cpu_count() or 1)
    if jobs <= 1:
        return [_figures_of(basis, text) for text in texts]
    with processes(basis, jobs) as pool:
        return list(pool.map(_predict_here, texts))


def _predict_here(text: str) -> Mapping[Key, ActivityFigures] | str:
    return _figures_of(basis_here(), text)


def _figures_of(basis: ReplayBasis, text: str) -> Mapping[Key, ActivityFigures] | str:
    try:
        return predict(basis, parse_changes([text]), has_doubts=False).figures
    except UsageError as error:
        return str(error)
