"""How well a replay fits: the activities of two traces side by side, and whether threads wake up in the same order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import ENCLOSED, Activities, activities
from satview.analysis.blame import writes_trace
from satview.analysis.timing import Timing
from satview.base.safe_text import counted
from satview.linkage.table import OPEN
from satview.linkage.waits import waits
from satview.store.trace import Trace

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
        misses: Responses longer than the deadline.
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
        return f"{self.recorded.name} (off by {self.median_error:.1%} in the median, by {self.p99_error:.1%} in 99 %)"


@dataclass(frozen=True, slots=True)
class ReplayFit:
    """How well a replay without changes reproduces the recorded trace.

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

    def sentences(self) -> list[str]:
        """Return sentences about the fit: a summary or warning, then activities whose predictions are unreliable."""
        if self.median_error == float("inf"):
            return ["Warning: no activity can be compared, so that nothing says how well the replay fits."]
        summary = (f"The unchanged replay is off by {self.median_error:.1%} in the median of an activity, by "
                f"{self.p99_error:.1%} in 99 %; {self.same_order:.0%} of the wake-ups come in the same order."
        )  # fmt: skip
        poor = self.poor
        if self.median_error > MEDIAN_WARNS_ABOVE or self.p99_error > P99_WARNS_ABOVE:
            bounds = f"{MEDIAN_WARNS_ABOVE:.0%} in the median or {P99_WARNS_ABOVE:.0%} in 99 %"
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

    Args:
        trace: The events.
        begin_cycles: Begin of the range.
        length_ns: Length of the range.
        timing: Result of `read_timing`.
        bounds_ns: Deadlines, -1 = none; None = the deadlines of the trace itself.
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
    """Return for each activity a key that is the same in the replay, whichever thread of a pool does most work."""
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
    """Return figures on how well a replay reproduces a recorded trace.

    Args:
        recorded: The recorded trace, and the time in cycles at which the comparison begins.
        replayed: The replayed trace, and the same time in it.
        length_ns: Length of the compared range.
        timing: Result of `read_timing`.
    """
    recorded_figures = figures(*recorded, length_ns, timing)
    replayed_figures = figures(*replayed, length_ns, own_activities(timing))
    by_count = sorted(recorded_figures, key=lambda key: (recorded_figures[key].is_own, -recorded_figures[key].count))
    return ReplayFit(
        {key: ActivityFit(recorded_figures[key], replayed_figures.get(key)) for key in by_count},
        _same_order(recorded, replayed),
    )


def own_activities(timing: Mapping[str, Timing] | None) -> dict[str, Timing]:
    """Return the timing entries that define activities themselves; names of learned ones may differ in a replay."""
    return {name: said for name, said in (timing or {}).items() if said.start}


def _same_order(one: tuple[Trace, int], other: tuple[Trace, int]) -> float:
    """Return the share of pairs of consecutive wake-ups in one trace that have the same order in the other trace."""
    numbers: dict[int, int] = {}
    one_order, other_order = (_wake_ups(*trace, numbers) for trace in (one, other))
    position = {int(wake): place for place, wake in enumerate(other_order.tolist())}
    place = np.array([position.get(wake, -1) for wake in one_order.tolist()], np.int64)
    both = (place[:-1] >= 0) & (place[1:] >= 0)
    return float((place[1:] > place[:-1])[both].mean()) if both.any() else 0.0


def _wake_ups(trace: Trace, begin_cycles: int, numbers: dict[int, int]) -> NDArray[np.int64]:
    """Return wake-ups in time order: number of the thread, from `numbers`, << 32 | its number of earlier wake-ups."""
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
