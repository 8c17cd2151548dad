"""Tables that compare the activities of a trace as recorded, in the unchanged replay, and in a replay with changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import Texts
from satview.answers.table import Column, Kind, Known, Question, Source, Table
from satview.base.safe_text import percent
from satview.store.time_ranges import losses
from satview.store.trace import Trace

_Floats = NDArray[np.float64]
GOOD: Final = 0.02
POOR: Final = 0.1
"""The unchanged replay fits well up to the error `GOOD`, and poorly above the error `POOR`."""


class Direction(StrEnum):
    """Direction in which a change moves a response."""

    SHORTER = "shorter"
    LONGER = "longer"
    SAME = "same"
    """The change is smaller than the error of the unchanged replay."""
    CANNOT_TELL = "cannot tell"
    """The difference may be due to chance, or depends on what the trace does not show."""
    NONE = "none"
    """The activity was not replayed, or never occurs in the prediction."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Responses of one activity; tuples have three values: recorded, replayed unchanged, and predicted. -1 = none.

    Attributes:
        activity: Name of the activity.
        counts: Number of instances.
        medians_ns, p99s_ns: Median and 99 % quantile of the responses.
        median_ranges_ns, p99_ranges_ns: Range in which each median and 99 % quantile may lie, due to chance and to
            properties that the trace leaves open; empty if unknown.
    """

    activity: str
    counts: tuple[int, int, int]
    medians_ns: tuple[int, int, int]
    p99s_ns: tuple[int, int, int]
    median_ranges_ns: tuple[tuple[int, int], ...]
    p99_ranges_ns: tuple[tuple[int, int], ...]

    @property
    def errors(self) -> tuple[float, float]:
        """Relative errors of the unchanged replay, in median and 99 % quantile; nan if the replay has no instance."""
        return _error(self.medians_ns), _error(self.p99s_ns)

    @property
    def directions(self) -> tuple[Direction, Direction]:
        """Directions in which median and 99 % quantile of the prediction differ from those of the unchanged replay."""
        return (_direction(self.medians_ns, self.median_ranges_ns, self.errors[0]),
                _direction(self.p99s_ns, self.p99_ranges_ns, self.errors[1]))  # fmt: skip


def _error(times_ns: tuple[int, int, int]) -> float:
    recorded, replayed, _ = times_ns
    return abs(replayed - recorded) / max(recorded, 1) if replayed >= 0 else float("nan")


def _direction(times_ns: tuple[int, int, int], ranges_ns: tuple[tuple[int, int], ...], error: float) -> Direction:
    _, replayed, predicted = times_ns
    if min(replayed, predicted) < 0:
        return Direction.NONE
    if abs(predicted / max(replayed, 1) - 1) <= 2 * max(error, GOOD):
        return Direction.SAME
    *before, (low, high) = ranges_ns
    if low <= max(high for _, high in before) and high >= min(low for low, _ in before):
        return Direction.CANNOT_TELL
    return Direction.SHORTER if predicted < replayed else Direction.LONGER


_LOST: Final = "events are missing, so that some responses are not known"
_COLUMNS: Final = (
    Column("activity", Kind.TEXT, "what is done again and again, as in `satview late`", "Activity"),
    Column("count", Kind.COUNT, "how often it was done", "Count", reasons={Known.AT_LEAST: _LOST}),
    Column("median", Kind.DURATION, "half of the responses are not longer", "Median",
           reasons={Known.ESTIMATE: _LOST}),
    Column("replayed_median", Kind.DURATION, "the same of the unchanged replay", "Replayed", is_nullable=True),
    Column("median_error", Kind.SHARE, "how far the unchanged replay is off", "Error"),
    Column("p99", Kind.DURATION, "99 % of the responses are not longer", "99 %", reasons={Known.ESTIMATE: _LOST}),
    Column("replayed_p99", Kind.DURATION, "the same of the unchanged replay", "Replayed 99 %", is_nullable=True),
    Column("p99_error", Kind.SHARE, "how far the unchanged replay is off in 99 %", "Error 99 %"),
    Column("fit", Kind.TEXT, f"`good`: both errors are at most {percent(GOOD, 0)}; `poor`: one is above "
           f"{percent(POOR, 0)}; `fair`",
           "Fit"),
)  # fmt: skip
OPEN: Final = "it may be the other way, by chance or by what the trace leaves open"
_REASONS: Final = {Known.GUESS: OPEN}
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
        Column("median_change", Kind.FIGURE, "predicted against replayed, in percent", "Change %", reasons=_REASONS),
        _COLUMNS[4],
        *_COLUMNS[5:7],
        Column("predicted_p99", Kind.DURATION, "with the changes", "Predicted 99 %", is_nullable=True),
        Column(
            "p99_change", Kind.FIGURE, "predicted against replayed in 99 %, in percent", "Change 99 %", reasons=_REASONS
        ),
        *_COLUMNS[7:],
    ),
    "",
    FIT.empty,
    "fit",
)
SHOWN: Final = tuple(
    column.name for column in PREDICTION.columns if column.name not in ("predicted_count", "replayed_p99")
)
"""Columns of a prediction that are shown to people; programs get all."""
SEARCH: Final = Question(
    "whatif_search",
    "Candidates",
    "Which of these keep all deadlines?",
    (
        Column("change", Kind.TEXT, "what is changed", "Change"),
        Column("outcome", Kind.TEXT, "`holds`: no deadline is missed; `missed`; `failed`: it cannot run", "Outcome"),
        Column("misses", Kind.COUNT, "instances that miss their deadlines, with those that are not done", "Misses"),
        Column("not_done", Kind.COUNT, "of these, those that never end, as fewer end than were recorded; one fewer may "
               "be due to the end of the trace, and does not count", "Not done"),
        Column("tightest", Kind.TEXT, "the activity that misses most, or comes closest to its deadline", "Tightest"),
        Column("margin", Kind.FIGURE, "its deadline less its longest response of those that end, in ms", "Margin ms"),
        Column("median_error", Kind.SHARE, "how far its unchanged replay is off in the median", "Error"),
        Column("p99_error", Kind.SHARE, "the same in 99 %", "Error 99 %"),
    ),
    "",
    "There is no candidate.",
)  # fmt: skip
SENSITIVITY: Final = Question(
    "whatif_sensitivity",
    "What helps",
    "Where does saved work shorten the responses most?",
    (
        Column("process", Kind.TEXT, "whose work is a tenth less", "Process"),
        Column("saved", Kind.DURATION, "work that is saved within the trace", "Saved"),
        Column("gain", Kind.FIGURE, "how much shorter the mean response is, in us", "Mean shorter by us"),
        Column("gain_p99", Kind.FIGURE, "how much shorter 99 % of the responses are, in us", "99 % shorter by us"),
        Column("leverage", Kind.FIGURE, "microseconds of all responses together for each one saved", "Per saved us"),
    ),
    "",
    "No process works long enough.",
    note="against the unchanged replay; below a tenth of the median's error it is chance",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate change of a search, with its result.

    Attributes:
        change: Text of the change.
        outcome: `holds` (no deadline is missed), `missed`, or `failed` (the change cannot be replayed).
        misses: Number of missed deadlines, `not_done` included.
        not_done: Number of instances that end in the trace but not in the replay. For an activity of which some
            instances end, one missing end is not counted, as it may be due to the end of the trace.
        tightest: Activity that misses its deadline most, or comes closest to it; for `failed` the reason.
        margin_ns: Deadline of that activity less its longest response; negative = a response is too long. If the
            activity never ends, minus the deadline.
        errors: Relative errors of the unchanged replay for that activity, in median and 99 % quantile.
    """

    change: str
    outcome: str
    misses: int
    not_done: int
    tightest: str
    margin_ns: int
    errors: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Leverage:
    """The effect on an activity if one process does a tenth less work.

    Attributes:
        process: Name of the process.
        saved_ns: Work that is saved in the whole trace.
        mean_gain_ns: How much shorter the activity's mean response becomes.
        p99_gain_ns: How much shorter its 99 % quantile becomes.
        count: Number of instances of the activity in the prediction.
    """

    process: str
    saved_ns: int
    mean_gain_ns: float
    p99_gain_ns: int
    count: int


def candidates_table(trace: Trace, candidates: Sequence[Candidate]) -> Table:
    """Return a table of the changes that a search of `satview whatif` tried, in the given order."""
    margins = np.array([candidate.margin_ns / 1e6 for candidate in candidates], np.float64)
    values: dict[str, Source] = {
        name: Texts.of([getattr(candidate, name) for candidate in candidates])
        for name in ("change", "outcome", "tightest")
    }
    values |= {"misses": np.array([candidate.misses for candidate in candidates], np.int64), "margin": margins,
               "not_done": np.array([candidate.not_done for candidate in candidates], np.int64),
               "median_error": np.array([candidate.errors[0] for candidate in candidates], np.float64),
               "p99_error": np.array([candidate.errors[1] for candidate in candidates], np.float64)}  # fmt: skip
    return Table(SEARCH, trace, values, texts={"margin": _figure(margins, "+z.3f")}, place="")


def sensitivity_table(trace: Trace, leverages: Sequence[Leverage]) -> Table:
    """Return a table of the processes in which less work shortens an activity, the most effective first."""
    ordered = sorted(leverages, key=lambda entry: -entry.mean_gain_ns * entry.count / max(entry.saved_ns, 1))
    figures = {
        "gain": np.array([entry.mean_gain_ns / 1e3 for entry in ordered], np.float64),
        "gain_p99": np.array([entry.p99_gain_ns / 1e3 for entry in ordered], np.float64),
        "leverage": np.array(
            [entry.mean_gain_ns * entry.count / max(entry.saved_ns, 1) for entry in ordered], np.float64
        ),
    }
    values: dict[str, Source] = {"process": Texts.of([entry.process for entry in ordered]), **figures}
    values["saved"] = np.array([trace.clock.cycles_of(entry.saved_ns) for entry in ordered], np.int64)
    texts = {name: _figure(column, "+z.2f") for name, column in figures.items()}
    return Table(SENSITIVITY, trace, values, texts=texts, place="")


def comparison(trace: Trace, compared: Sequence[Compared], *, has_prediction: bool) -> Table:
    """Return a table of figures: recorded, of the unchanged replay, and predicted if there is a prediction."""

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
    texts = {name: _figure(changes[name], "+z.1f") for name in names & changes.keys()}
    known = {f"{name}_change": np.array([Known.GUESS if entry.directions[number] is Direction.CANNOT_TELL
                                         else Known.EXACT for entry in compared], np.uint8)
             for number, name in enumerate(("median", "p99")) if has_prediction}  # fmt: skip
    if len(losses(trace)):
        for name, how in (("count", Known.AT_LEAST), ("median", Known.ESTIMATE), ("p99", Known.ESTIMATE)):
            known[name] = np.full(len(compared), how, np.uint8)
    return Table(question, trace, shown, texts=texts, known=known, place="")


def _figure(values: _Floats, form: str) -> Callable[[int], str]:
    """Return a function that returns the text of the figure in a row; empty for nan."""
    return lambda row: "" if np.isnan(values[row]) else f"{values[row]:{form}}"


def _fit(entry: Compared) -> str:
    errors = entry.errors
    if not max(errors) <= POOR:
        return "poor"
    return "good" if max(errors) <= GOOD else "fair"
