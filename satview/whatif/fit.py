"""How well a replay fits: the activities of two traces side by side, and whether threads wake up in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import CALLED, Activities, activities
from satview.analysis.blame import writes_trace
from satview.analysis.timing import Timing
from satview.linkage.table import OPEN
from satview.linkage.waits import waits
from satview.store.trace import Trace

WARNS_ABOVE: Final = 0.05
"""Median error of the activities' medians above which a replay does not fit: it is said before each prediction."""
_END_NS: Final = 1_000_000  # instances that end closer to the end are left out of both
Key = tuple[str, str, int, int]  # trigger, process, tid (0 = any of a server's), number among those


@dataclass(frozen=True, slots=True)
class Figures:
    """Responses of one activity: how many are done, and half and 99 % of them are not longer than this.

    Attributes:
        deadline_ns: -1 = none.
        misses: Responses that are longer.
        is_own: It is of the program that writes the trace.
    """

    name: str
    count: int
    median_ns: int
    p99_ns: int
    mean_ns: float
    longest_ns: int
    deadline_ns: int
    misses: int
    is_own: bool


@dataclass(frozen=True, slots=True)
class ActivityFit:
    """One activity, recorded and replayed."""

    recorded: Figures
    replayed: Figures | None

    @property
    def median_error(self) -> float:
        """How far the replayed median is off, as a share of the recorded one; infinite if there is none."""
        return _error(self.recorded.median_ns, self.replayed.median_ns if self.replayed else None)

    @property
    def p99_error(self) -> float:
        """The same of 99 %."""
        return _error(self.recorded.p99_ns, self.replayed.p99_ns if self.replayed else None)


@dataclass(frozen=True, slots=True)
class Fit:
    """How well an unchanged replay fits.

    Attributes:
        activities: By key, those with most instances first.
        same_order: Share of neighbouring wake-ups that come in the same order in both.
    """

    activities: Mapping[Key, ActivityFit]
    same_order: float

    @property
    def median_error(self) -> float:
        """Half of the activities' medians are not further off; those of the program that writes the trace apart."""
        errors = [found.median_error for found in self.activities.values() if not found.recorded.is_own]
        return float(np.median(errors)) if errors else float("inf")

    @property
    def p99_error(self) -> float:
        """The same of 99 %."""
        errors = [found.p99_error for found in self.activities.values() if not found.recorded.is_own]
        return float(np.median(errors)) if errors else float("inf")

    def sentences(self) -> list[str]:
        """Return the fit in words, the warning first."""
        if self.median_error == float("inf"):
            return ["Warning: no activity can be compared, so that nothing says how well the replay fits."]
        says = (f"The unchanged replay is off by {self.median_error:.1%} in the median of an activity, by "
                f"{self.p99_error:.1%} in 99 %; {self.same_order:.0%} of the wake-ups come in the same order."
        )  # fmt: skip
        if self.median_error <= WARNS_ABOVE:
            return [says]
        return [f"Warning: {says[0].lower()}{says[1:]} Above {WARNS_ABOVE:.0%} do not rely on predictions."]


def _error(recorded: int, other: int | None) -> float:
    return float("inf") if other is None else abs(other - recorded) / max(recorded, 1)


def figures(
    trace: Trace,
    begin_cycles: int,
    length_ns: int,
    timing: Mapping[str, Timing] | None = None,
    bounds_ns: Mapping[Key, int] | None = None,
) -> dict[Key, Figures]:
    """Return the activities of a trace with what is done within a time.

    Args:
        trace: The events.
        begin_cycles: When that begins.
        length_ns: How long it is.
        timing: As of `read_timing`.
        bounds_ns: Deadlines, -1 = none; None = those of the trace itself.
    """
    found = activities(trace, timing)
    instances = found.instances
    end_cycles = begin_cycles + trace.clock.cycles_of(length_ns - _END_NS)
    is_done = ~instances.is_open & instances.is_known & (instances.start_cycles >= begin_cycles)
    is_done &= instances.end_cycles <= end_cycles
    own = writes_trace(trace)
    out: dict[Key, Figures] = {}
    for number, key in enumerate(_keys(trace, found)):
        if found.activities[number].trigger in CALLED:
            continue  # a part of what its thread does
        response = instances.response_cycles[is_done & (instances.activity == number)]
        if len(response):
            median, p99, longest = (
                trace.clock.duration_ns(int(np.percentile(response, share, method="inverted_cdf")))
                for share in (50, 99, 100)
            )
            activity, mean_ns = found.activities[number], response.mean() * 1e9 / trace.clock.cycles_per_s
            deadline_ns = trace.clock.duration_ns(activity.deadline_cycles) if activity.deadline_cycles > 0 else -1
            deadline_ns = deadline_ns if bounds_ns is None else bounds_ns.get(key, -1)
            is_late = response > trace.clock.cycles_of(max(deadline_ns, 0))
            misses = int(np.count_nonzero(is_late)) if deadline_ns > 0 else 0
            out[key] = Figures(activity.name, len(response), median, p99, float(mean_ns), longest, deadline_ns, misses,
                               bool(own[activity.thread]))  # fmt: skip
    return out


def _keys(trace: Trace, found: Activities) -> list[Key]:
    """Return a key for each activity that it has in both traces, whichever thread of a pool does it most often."""
    seen: dict[tuple[str, str, int], int] = {}
    out = []
    for activity in found.activities:
        process = trace.process_name(int(trace.threads.process[activity.thread]))
        tid = 0 if activity.trigger in ("message", "pulse", "said") else int(trace.threads.tid[activity.thread])
        key = (activity.trigger, activity.name if activity.trigger == "said" else process, tid)
        seen[key] = seen.get(key, -1) + 1
        out.append((*key, seen[key]))
    return out


def fit_of(
    recorded: tuple[Trace, int], replayed: tuple[Trace, int], length_ns: int, timing: Mapping[str, Timing] | None = None
) -> Fit:
    """Return how well a replay fits.

    Args:
        recorded: A trace, and when it begins in cycles.
        replayed: The same of its replay.
        length_ns: Of both.
        timing: As of `read_timing`.
    """
    first = figures(*recorded, length_ns, timing)
    second = figures(*replayed, length_ns, own_activities(timing))
    by_count = sorted(first, key=lambda key: (first[key].is_own, -first[key].count))
    return Fit({key: ActivityFit(first[key], second.get(key)) for key in by_count}, _same_order(recorded, replayed))


def own_activities(timing: Mapping[str, Timing] | None) -> dict[str, Timing]:
    """Return what a file of timing says of activities of its own: others have other names where a pool does them."""
    return {name: said for name, said in (timing or {}).items() if said.start}


def _same_order(one: tuple[Trace, int], other: tuple[Trace, int]) -> float:
    """Return the share of neighbouring wake-ups of one trace that come in the same order in the other."""
    numbers: dict[int, int] = {}
    first, second = (_wake_ups(*trace, numbers) for trace in (one, other))
    position = {int(wake): at for at, wake in enumerate(second.tolist())}
    at = np.array([position.get(wake, -1) for wake in first.tolist()], np.int64)
    both = (at[:-1] >= 0) & (at[1:] >= 0)
    return float((at[1:] > at[:-1])[both].mean()) if both.any() else 0.0


def _wake_ups(trace: Trace, begin_cycles: int, numbers: dict[int, int]) -> NDArray[np.int64]:
    """Return who woke up, in time order: a number for each thread, from `numbers`, and how often it did before."""
    found = waits(trace)
    rows = found.end_row[found.end_row < OPEN].astype(np.int64)
    thread = found.thread[found.end_row < OPEN]
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
