"""Whether activities can be late: upper bounds of response times, and the longest measured and replayed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from satview.analysis.activities import activities
from satview.analysis.schedulability import Bound, response_bounds
from satview.analysis.timing import Timing, bound_cycles
from satview.answers.frames import Texts
from satview.answers.late import ACTIVITIES
from satview.answers.table import Column, Kind, Known, Question, Table
from satview.base.errors import UsageError
from satview.store.trace import Trace

QUESTION: Final = Question(
    "schedulability",
    "Schedulability",
    "Does each activity meet its deadline even if all that its CPU has to do comes at once?",
    (
        Column("activity", Kind.TEXT, "which", "Activity"),
        Column("priority", Kind.COUNT, "the lowest at which its thread runs within its instances", "Priority",
               is_nullable=True),
        Column("cpus", Kind.TEXT, "on which CPUs its thread may run", "CPUs", reasons={
            Known.INFERRED: "no event of the trace, and no file of timing, shows its runmask: it ran on these"}),
        Column("period", Kind.DURATION, "least time from start to start, as the file of timing says or as seen",
               "Period", is_nullable=True),
        Column("execution", Kind.DURATION, "the most that its thread runs in an instance, without interrupts",
               "Execution", is_nullable=True),
        Column("blocking", Kind.DURATION, "the most that an instance waits, but for CPUs that do work of its priority "
               "or a higher one", "Blocking", is_nullable=True),
        Column("bound", Kind.DURATION, "longest possible response, under the assumptions", "Bound", is_nullable=True),
        Column("measured", Kind.DURATION, "longest response in the trace", "Measured", is_nullable=True),
        Column("deadline", Kind.DURATION, "how long a response may be", "Deadline", is_nullable=True),
        Column("holds", Kind.TEXT, "`yes`: the bound is not longer than the deadline; `no`; `cannot tell`", "Holds"),
        Column("reason", Kind.TEXT, "why that cannot be told", "Reason"),
    ),
    "",
    ACTIVITIES.empty,
)  # fmt: skip
_REPLAYED: Final = Column(
    "replayed", Kind.DURATION, "longest response of the unchanged replay (`satview whatif`)", "Replayed",
    is_nullable=True, reasons={
        Known.ESTIMATE: "the trace ran again on the simulated kernel, where calls and switches may take another time",
        Known.UNKNOWN: "it is a part of other work, is not done within the replay, or the trace cannot be replayed",
    },
)  # fmt: skip
_MEASURED: Final = [column.name for column in QUESTION.columns].index("measured")
WITH_REPLAY: Final = replace(
    QUESTION, columns=(*QUESTION.columns[: _MEASURED + 1], _REPLAYED, *QUESTION.columns[_MEASURED + 1 :])
)
"""`QUESTION` with a column for the replay."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Response times in the unchanged replay of a trace, which the caller has made.

    Attributes:
        longest_ns: Longest response of each activity in the replay, by its name in the trace.
        why_none: Why there is no replay; empty if there is one.
    """

    longest_ns: Mapping[str, int]
    why_none: str = ""


def schedulability(
    trace: Trace, timing: Mapping[str, Timing] | None = None, only: str = "", replayed: Replayed | None = None
) -> Table:
    """Return the response bounds of activities; those that may miss their deadline first, then undecided ones.

    Args:
        trace: The events.
        timing: The user's settings for activities, from `analysis.timing.read_timing`.
        only: The name of the activity to return, or a part of it; empty = all.
        replayed: Result of the unchanged replay, for the column `replayed`; None = without that column.

    Raises:
        UsageError: An entry of `timing` is wrong, see `analysis.activities.activities`; or `only` matches no activity
            or several.
    """
    learned, settings = activities(trace, timing), timing or {}
    periods = np.full(len(learned.activities), -1, np.int64)
    for name, entry in settings.items():
        if entry.period:
            periods[learned.named(name)] = bound_cycles(trace, entry.period)
    cpus = {learned.named(name): entry.cpus for name, entry in settings.items() if entry.cpus}
    if wrong := [cpu for own_cpus in cpus.values() for cpu in own_cpus if not 0 <= cpu < trace.cpu_count]:
        raise UsageError(f"the file of timing names CPU {wrong[0]}; the trace has CPUs 0 to {trace.cpu_count - 1}")
    bounds = response_bounds(trace, learned, periods.tolist(), cpus)
    deadlines = [activity.deadline_cycles for activity in learned.activities]
    holds = [_holds(bound, deadline) for bound, deadline in zip(bounds, deadlines, strict=True)]
    order = np.argsort([("no", "cannot tell", "yes").index(word) for word in holds], kind="stable")
    names = [activity.name for activity in learned.activities]
    longest_ns = [-1 if replayed is None else replayed.longest_ns.get(name, -1) for name in names]
    table = Table(
        QUESTION if replayed is None else WITH_REPLAY,
        trace,
        {
            "activity": Texts.of(names),
            "priority": _column(bounds, "priority"),
            "cpus": Texts.of([", ".join(map(str, bound.cpus)) for bound in bounds]),
            "period": _column(bounds, "period_cycles"),
            "execution": _column(bounds, "execution_cycles"),
            "blocking": _column(bounds, "blocking_cycles"),
            "bound": _column(bounds, "bound_cycles"),
            "measured": _column(bounds, "measured_cycles"),
            "replayed": np.array([trace.clock.cycles_of(ns) if ns >= 0 else -1 for ns in longest_ns], np.int64),
            "deadline": np.array(deadlines, np.int64),
            "holds": Texts.of(holds),
            "reason": Texts.of([
                bound.reason or ("" if deadline > 0 else "it has no deadline")
                for bound, deadline in zip(bounds, deadlines, strict=True)
            ]),
        },
        known={
            "cpus": np.array([Known.INFERRED if bound.cpus and not bound.is_affinity_shown else Known.EXACT
                              for bound in bounds], np.uint8),
            "replayed": np.array([Known.ESTIMATE if ns >= 0 else Known.UNKNOWN for ns in longest_ns], np.uint8),
        },
        cannot_tell=f"no replay: {replayed.why_none}" if names and replayed is not None and replayed.why_none else "",
    )  # fmt: skip
    return table.at(order[order == learned.named(only)] if only else order)


def _holds(bound: Bound, deadline_cycles: int) -> str:
    if bound.reason or deadline_cycles <= 0:
        return "cannot tell"
    return "yes" if bound.bound_cycles <= deadline_cycles else "no"


def _column(bounds: list[Bound], name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array([getattr(bound, name) for bound in bounds], np.int64)
