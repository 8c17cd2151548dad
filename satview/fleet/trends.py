"""Computes a metric for each trace of a data set, in the order of their start, and marks outliers."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import Texts
from satview.answers.table import Column, Kind, Question, Table
from satview.base.errors import UsageError
from satview.base.resources import resource_path
from satview.base.time import NS_PER_S, Clock, TimeWindow
from satview.base.time_text import format_duration
from satview.fleet.query import query_dataset
from satview.store.time_ranges import Location
from satview.tables.question import Limits
from satview.tables.result import Result

# B. Iglewicz, D. Hoaglin: How to Detect and Handle Outliers (1993): the modified z-score and its usual limit.
_MEDIAN_DEVIATION: Final = 1.4826
_MEAN_DEVIATION: Final = 1.253314
_OUTLIER: Final = 3.5
_MIN_TRACES: Final = 5  # minimum number of values for which outliers are determined
_TRACES: Final = "select trace, begin, path, length_ns from trace order by begin nulls last, trace"


class MetricUnit(StrEnum):
    """Unit of a metric."""

    NS = "ns"
    SHARE = "share"
    COUNT = "count"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a trace, defined by a query over the data set.

    Attributes:
        name: Name on the command line.
        title: Name for readers.
        unit: Unit of the value.
        sql: Query with the columns `trace` and `value`; optional columns are `start_ns`, `end_ns` and `event`.
        is_zero: Whether a trace without a row in the result has the value 0; otherwise it has no value.
    """

    name: str
    title: str
    unit: MetricUnit
    sql: str
    is_zero: bool = False

    def text(self, value: float) -> str:
        """Format a value with its unit; nan gives an empty text."""
        if np.isnan(value):
            return ""
        if self.unit is MetricUnit.NS:
            return format_duration(round(value))
        if self.unit is MetricUnit.SHARE:
            return f"{value:.1%}"
        return f"{value:,.1f} /s" if self.unit is MetricUnit.RATE else f"{value:,g}"


_OUTLIER_TEXTS: Final = ("", "far from the others")
_COLUMNS: Final = (
    Column("trace", Kind.TEXT, "its name in the data set", "Trace"),
    Column("begin", Kind.TEXT, "when it begins, UTC; empty if its file does not say", "Begins (UTC)"),
    Column("value", Kind.FIGURE, "the figure", "Value", is_nullable=True),
    Column("outlier", Kind.TEXT, "whether its modified z-score is above 3.5", "Outlier"),
    Column("start", Kind.TIME, "where in the trace the figure comes from", "From", is_nullable=True),
    Column("end", Kind.TIME, "the end of that", is_nullable=True),
    Column("event", Kind.EVENT, "the event there", "Event", is_nullable=True),
    Column("length", Kind.DURATION, "of the trace", sql="trace_length"),
    Column("path", Kind.TEXT, "its file when it was exported", "File"),
    Column("command", Kind.TEXT, "opens an outlier where its figure comes from", "Opened by"),
    Column("tone", Kind.TEXT, "`error` of an outlier", sql=""),
)


@cache
def metrics() -> dict[str, Metric]:
    """Return the predefined metrics, by name."""
    with resource_path("fleet/metrics.toml").open("rb") as file:
        rows = tomllib.load(file)["metric"]
    return {row["name"]: Metric(row["name"], row["title"], MetricUnit(row["unit"]), row["sql"].strip(),
                                row.get("zero", False)) for row in rows}  # fmt: skip


def metric_of(text: str) -> Metric:
    """Return a predefined metric by name, or a metric that evaluates the text as a query.

    Raises:
        UsageError: The text is neither the name of a metric nor a query.
    """
    if text in metrics():
        return metrics()[text]
    if not any(c.isspace() for c in text.strip()):
        raise UsageError(f"there is no metric {text[:40]!r}; there are {', '.join(metrics())}, or a query")
    return Metric("query", " ".join(text.split())[:80], MetricUnit.COUNT, text)


def trend(
    path: Path | str,
    metric: str = "ready-longest",
    limits: Limits | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Table:
    """Return a table with the value of a metric for each trace of a data set.

    Traces are sorted by start time; traces without a start time are last, sorted by name.

    Args:
        path: Folder of the data set.
        metric: Name of one of `metrics()`, or a query with the columns `trace` and `value`.
        limits: See `query_dataset`.
        cancelled: See `query_dataset`.

    Raises:
        UsageError: There is no such metric, or the query lacks a column; see also `query_dataset`.
        Cancelled: `cancelled()` returned True.
    """
    selected = metric_of(metric)
    traces = query_dataset(path, _TRACES, limits, cancelled)
    result = query_dataset(path, selected.sql, limits, cancelled)
    if "trace" not in result.columns or "value" not in result.columns:
        raise UsageError(f"the query has the columns {', '.join(result.columns)}; it needs trace and value")
    by_trace = {row["trace"]: row for row in _records(result)}
    missing = 0.0 if selected.is_zero else float("nan")
    order = list(traces.rows())
    rows = [by_trace.get(name, {}) for name, *_ in order]
    values = np.array([_number(row.get("value"), missing) for row in rows], np.float64)
    is_far, begins = outliers(values), [begin for _, begin, *_ in order]
    start, end, event = (np.array([-1 if row.get(name) is None else int(row[name]) for row in rows], np.int64)
                         for name in ("start_ns", "end_ns", "event"))  # fmt: skip
    median = selected.text(middle(values)) or "unknown"
    note = f"median {median}, {len(order):,} traces, {int(is_far.sum()):,} far from the others"
    question = Question("trend", selected.title, selected.title, _COLUMNS, "", "The data set has no traces.",
                        tone="tone", note=note)  # fmt: skip
    table = Table(question, None, {
        "trace": Texts.of([name for name, *_ in order]),
        "begin": Texts.of([begin.isoformat() if begin else "" for begin in begins]),
        "value": values,
        "outlier": Texts(is_far.astype(np.uint8), _OUTLIER_TEXTS),
        "start": start,
        "end": end,
        "event": event,
        "length": np.array([length_ns for *_, length_ns in order], np.int64),
        "path": Texts.of([file for _, _, file, _ in order]),
        "command": lambda: Texts.of([location(table, row).command if far else "" for row, far in enumerate(is_far)]),
        "tone": Texts(is_far.astype(np.uint8), ("", "error")),
    }, texts={"value": lambda row: selected.text(values[row])})  # fmt: skip
    return table


def middle(values: NDArray[np.float64]) -> float:
    """Return the median of values, float64 (n,), ignoring nan; nan if no value remains."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")


def location(table: Table, row: int) -> Location:
    """Return the location in its trace that the value of a row comes from; the whole trace if there is none."""
    # Times in a data set are rounded down to nanoseconds, so the last event may be later than the length.
    clock, whole = Clock(NS_PER_S), TimeWindow(0, table.held(row, "length") + 1)
    path, start = Path(table.text(row, "path")), table.held(row, "start")
    if start < 0:
        return Location(path, whole.start, whole.end, 0, clock, whole)
    return Location(path, start, max(table.held(row, "end"), start), table.event(row) + 1, clock, whole)


def outliers(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which values are outliers, bool (n,): values whose modified z-score exceeds 3.5, but never nan.

    Args:
        values: float64 (n,); fewer than `_MIN_TRACES` known values have no outliers.
    """
    known = ~np.isnan(values)
    if int(known.sum()) < _MIN_TRACES:
        return np.zeros(len(values), np.bool_)
    away = np.abs(values - np.median(values[known]))
    usual = float(np.median(away[known])) * _MEDIAN_DEVIATION
    usual = usual or float(away[known].mean()) * _MEAN_DEVIATION  # the median is 0 if more than half of them are equal
    return known & (np.nan_to_num(away) > _OUTLIER * usual) if usual else np.zeros(len(values), np.bool_)


def _records(result: Result) -> list[dict[str, Any]]:
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows()]


def _number(value: Any, missing: float) -> float:
    try:
        return missing if value is None else float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{str(value)[:40]!r} is no number; the column value holds numbers") from None
