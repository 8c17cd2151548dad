"""Two traces side by side: the figures of the same threads, calls, messages and interrupts in both.

Figures that grow with a trace (counts, total times) are taken per second, so that traces of different lengths compare.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from satview.analysis.sheets import Column, Kind, Sheet, written
from satview.analysis.statistics import Statistics
from satview.analysis.statistics_sheets import SHEETS
from satview.analysis.verdicts.find import find_verdicts
from satview.base.time import NS_PER_S
from satview.store.trace import Trace

FIGURES: Final[dict[str, tuple[str, ...]]] = {
    "process": ("cpu_share",),
    "thread": ("cpu_share", "longest_ready_ns", "preemptions"),
    "call": ("mean_ns", "p99_ns", "longest_ns"),
    "message": ("reply_mean_ns", "reply_p99_ns", "reply_longest_ns"),
    "interrupt": ("mean_ns", "longest_ns"),
    "cpu": ("busy_share",),
}
_NAMES: Final = {"message": 2}  # columns that name a row; one elsewhere
_OF_ONE: Final = ("mean", "longest", "least", "p99")  # in keys of durations that do not grow with the trace


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one thing in two traces.

    Attributes:
        sheet: Key of the sheet that it is from.
        name: What it is of; the same in both traces.
        column: The column, for its title and kind.
        before, after: In the first and the second trace; nan = it is not there, or has no such figure.
        is_per_s: Counts and total times: per second of the trace.
    """

    sheet: str
    name: str
    column: Column
    before: float
    after: float
    is_per_s: bool

    @property
    def ratio(self) -> float:
        """The second by the first; nan if one is not there, infinite if it was 0."""
        if math.isnan(self.before) or math.isnan(self.after):
            return math.nan
        if self.before:
            return self.after / self.before
        return math.inf if self.after else 1.0

    @property
    def is_longer(self) -> bool:
        """It is a length of time, of which more is worse, and more than before."""
        return self.column.kind is Kind.DURATION and self.after > self.before


def compare(before: Trace, after: Trace, sheets: Sequence[str] = ()) -> list[Change]:
    """Return the figures of what is in either trace, those of a figure together, the largest difference first.

    Args:
        before: The trace to compare with.
        after: The trace that is compared.
        sheets: Keys of `FIGURES`; none = all.
    """
    found = []
    first, second = Statistics(before), Statistics(after)
    for key in sheets or FIGURES:
        old, new = (SHEETS[key](statistics, None) for statistics in (first, second))
        for figure in FIGURES[key]:
            values = [_values(sheet, figure, key, statistics.length_s)
                      for sheet, statistics in ((old, first), (new, second))]  # fmt: skip
            column = new.column(figure)
            changes = [Change(key, name, column, values[0].get(name, math.nan), values[1].get(name, math.nan),
                              _grows(column)) for name in dict.fromkeys((*values[1], *values[0]))]  # fmt: skip
            found += sorted(changes, key=_difference, reverse=True)
    return found


def verdict_changes(before: Trace, after: Trace) -> dict[str, tuple[int, int]]:
    """Return how many verdicts of each kind the two traces have, of kinds that either has."""
    first, second = (Counter(str(verdict.kind) for verdict in find_verdicts(trace)) for trace in (before, after))
    return {kind: (first[kind], second[kind]) for kind in dict.fromkeys((*second, *first))}


def _values(sheet: Sheet, figure: str, key: str, length_s: float) -> dict[str, float]:
    """Return the values of a column by the name of the row; the second of a name has a number behind it."""
    column = sheet.column(figure)
    names = [each for each in sheet.columns if each.kind is Kind.TEXT][: _NAMES.get(key, 1)]
    found: dict[str, float] = {}
    seen = Counter[str]()
    for row in range(len(sheet)):
        name = " to ".join(each.text(row) for each in names)
        seen[name] += 1
        value = float(column.values[row])
        value = math.nan if value < 0 else value / length_s if _grows(column) and length_s else value
        found[name if seen[name] == 1 else f"{name} ({seen[name]})"] = value
    return found


def _grows(column: Column) -> bool:
    if column.kind is Kind.COUNT:
        return True
    return column.kind is Kind.DURATION and not any(word in column.key for word in _OF_ONE)


def _difference(change: Change) -> float:
    return abs((0 if math.isnan(change.after) else change.after) - (0 if math.isnan(change.before) else change.before))


def value_text(change: Change, value: float) -> str:
    """Return a value for people; `-` for none."""
    if math.isnan(value):
        return "-"
    if change.column.kind is Kind.DURATION and change.is_per_s:
        return f"{value / NS_PER_S:.2%}"
    return f"{value:,.1f} /s" if change.is_per_s else written(change.column.kind, value)
