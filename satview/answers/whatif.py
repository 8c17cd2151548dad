"""What would have happened if: the activities of a trace, of its unchanged replay, and of a replay with changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import Texts
from satview.answers.table import Column, Kind, Question, Source, Table
from satview.store.trace import Trace

_Floats = NDArray[np.float64]
GOOD: Final = 0.02
POOR: Final = 0.1
"""Errors of the unchanged replay up to which it fits well, and above which it does not fit."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Responses of one activity, in ns: median and 99 % recorded, replayed unchanged, and predicted; -1 = none."""

    activity: str
    counts: tuple[int, int, int]
    medians_ns: tuple[int, int, int]
    p99s_ns: tuple[int, int, int]

    @property
    def errors(self) -> tuple[float, float]:
        """How far the unchanged replay is off in the median and in 99 %, as shares; nan if it never came."""
        return _error(self.medians_ns), _error(self.p99s_ns)


def _error(times_ns: tuple[int, int, int]) -> float:
    recorded, replayed, _ = times_ns
    return abs(replayed - recorded) / max(recorded, 1) if replayed >= 0 else float("nan")


_COLUMNS: Final = (
    Column("activity", Kind.TEXT, "what is done again and again, as in `satview late`", "Activity"),
    Column("count", Kind.COUNT, "how often it was done", "Count"),
    Column("median", Kind.DURATION, "half of the responses are not longer", "Median"),
    Column("replayed_median", Kind.DURATION, "the same of the unchanged replay", "Replayed", is_nullable=True),
    Column("median_error", Kind.SHARE, "how far the unchanged replay is off", "Error"),
    Column("p99", Kind.DURATION, "99 % of the responses are not longer", "99 %"),
    Column("replayed_p99", Kind.DURATION, "the same of the unchanged replay", "Replayed 99 %", is_nullable=True),
    Column("p99_error", Kind.SHARE, "how far the unchanged replay is off in 99 %", "Error 99 %"),
    Column("fit", Kind.TEXT, f"`good`: both errors are at most {GOOD:.0%}; `poor`: one is above {POOR:.0%}; `fair`",
           "Fit"),
)  # fmt: skip
FIT: Final = Question(
    "whatif_fit",
    "Unchanged replay",
    "How well does the trace fit when it runs again on the simulated kernel?",
    _COLUMNS,
    "",
    "The trace has no activities to compare.",
    "fit",
)
PREDICTION: Final = Question(
    "whatif",
    "Prediction",
    "What would have happened?",
    (
        *_COLUMNS[:4],
        Column("predicted_count", Kind.COUNT, "how often it would have been done", "Predicted count"),
        Column("predicted_median", Kind.DURATION, "with the changes", "Predicted", is_nullable=True),
        Column("median_change", Kind.FIGURE, "predicted against replayed, in percent", "Change %"),
        _COLUMNS[4],
        *_COLUMNS[5:7],
        Column("predicted_p99", Kind.DURATION, "with the changes", "Predicted 99 %", is_nullable=True),
        Column("p99_change", Kind.FIGURE, "predicted against replayed in 99 %, in percent", "Change 99 %"),
        *_COLUMNS[7:],
    ),
    "",
    FIT.empty,
    "fit",
)


def comparison(trace: Trace, compared: Sequence[Compared], *, has_prediction: bool) -> Table:
    """Return what was recorded beside its unchanged replay, and beside the prediction if there is one."""

    def cycles(times_ns: list[int]) -> NDArray[np.int64]:
        return np.array([trace.clock.cycles_of(ns) if ns >= 0 else -1 for ns in times_ns], np.int64)

    def change(times_ns: tuple[int, int, int]) -> float:
        _, replayed, predicted = times_ns
        return 100 * (predicted / max(replayed, 1) - 1) if min(replayed, predicted) >= 0 else float("nan")

    changes = {"median_change": np.array([change(entry.medians_ns) for entry in compared], np.float64),
               "p99_change": np.array([change(entry.p99s_ns) for entry in compared], np.float64)}  # fmt: skip
    values: dict[str, Source] = {"activity": Texts.of([entry.activity for entry in compared]),
              "fit": Texts.of([_fit(entry) for entry in compared]),
              "count": np.array([entry.counts[0] for entry in compared], np.int64),
              "predicted_count": np.array([entry.counts[2] for entry in compared], np.int64)}  # fmt: skip
    for number, prefix in enumerate(("", "replayed_", "predicted_")):
        values[f"{prefix}median"] = cycles([entry.medians_ns[number] for entry in compared])
        values[f"{prefix}p99"] = cycles([entry.p99s_ns[number] for entry in compared])
    values["median_error"] = np.array([entry.errors[0] for entry in compared], np.float64)
    values["p99_error"] = np.array([entry.errors[1] for entry in compared], np.float64)
    values |= changes
    question = PREDICTION if has_prediction else FIT
    names = {column.name for column in question.columns}
    shown = {name: column for name, column in values.items() if name in names}
    texts = {name: _percent(changes[name]) for name in names & changes.keys()}
    return Table(question, trace, shown, texts=texts, place="")


def _percent(values: _Floats) -> Callable[[int], str]:
    return lambda row: "" if np.isnan(values[row]) else f"{values[row]:+.1f}"


def _fit(entry: Compared) -> str:
    errors = entry.errors
    if not max(errors) <= POOR:
        return "poor"
    return "good" if max(errors) <= GOOD else "fair"
