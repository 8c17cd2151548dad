"""Can it be late? The bound of the response of each activity, beside the longest that was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from satview.analysis.activities import activities
from satview.analysis.schedulability import Bound, response_bounds
from satview.analysis.timing import Timing, bound_cycles
from satview.answers.frames import Texts
from satview.answers.late import ACTIVITIES
from satview.answers.table import Column, Kind, Question, Table
from satview.store.trace import Trace

QUESTION: Final = Question(
    "schedulability",
    "Schedulability",
    "Does each activity meet its deadline even if all that its CPU has to do comes at once?",
    (
        Column("activity", Kind.TEXT, "which", "Activity"),
        Column("priority", Kind.COUNT, "the lowest at which its thread runs within its instances", "Priority",
               is_nullable=True),
        Column("cpus", Kind.TEXT, "on which CPUs its thread runs", "CPUs"),
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


def schedulability(trace: Trace, timing: Mapping[str, Timing] | None = None, only: str = "") -> Table:
    """Return the bounds of all activities; those whose deadline does not hold first, then what cannot be told.

    Args:
        trace: The events.
        timing: What a user says of activities, as of `analysis.timing.read_timing`.
        only: The name of the activity to return, or a part of it; empty = all.

    Raises:
        UsageError: As `analysis.activities.activities`; or no activity, or several, have the name.
    """
    learned, said = activities(trace, timing), timing or {}
    periods = np.full(len(learned.activities), -1, np.int64)
    for name, one in said.items():
        if one.period:
            periods[learned.named(name)] = bound_cycles(trace, one.period)
    bounds = response_bounds(trace, learned, periods.tolist())
    deadlines = [activity.deadline_cycles for activity in learned.activities]
    holds = [_holds(bound, deadline) for bound, deadline in zip(bounds, deadlines, strict=True)]
    order = np.argsort([("no", "cannot tell", "yes").index(word) for word in holds], kind="stable")
    table = Table(
        QUESTION,
        trace,
        {
            "activity": Texts.of([activity.name for activity in learned.activities]),
            "priority": _column(bounds, "priority"),
            "cpus": Texts.of([", ".join(map(str, bound.cpus)) for bound in bounds]),
            "period": _column(bounds, "period_cycles"),
            "execution": _column(bounds, "execution_cycles"),
            "blocking": _column(bounds, "blocking_cycles"),
            "bound": _column(bounds, "bound_cycles"),
            "measured": _column(bounds, "measured_cycles"),
            "deadline": np.array(deadlines, np.int64),
            "holds": Texts.of(holds),
            "reason": Texts.of([
                bound.reason or ("" if deadline > 0 else "it has no deadline")
                for bound, deadline in zip(bounds, deadlines, strict=True)
            ]),
        },
    )  # fmt: skip
    return table.at(order[order == learned.named(only)] if only else order)


def _holds(bound: Bound, deadline_cycles: int) -> str:
    if bound.reason or deadline_cycles <= 0:
        return "cannot tell"
    return "yes" if bound.bound_cycles <= deadline_cycles else "no"


def _column(bounds: list[Bound], name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array([getattr(bound, name) for bound in bounds], np.int64)
