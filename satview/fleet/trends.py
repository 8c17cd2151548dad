"""One figure for each trace of a data set, in the order of time, and which ones are far from the others."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
_LEAST_TRACES: Final = 5  # fewer have no rule to depart from
_TRACES: Final = "select trace, begin, path, length_ns from trace order by begin nulls last, trace"


class MetricUnit(StrEnum):
    """What a figure counts."""

    NS = "ns"
    SHARE = "share"
    COUNT = "count"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a trace.

    Attributes:
        name: As given on the command line.
        title: For people.
        unit: What it counts.
        sql: Its query over a data set: `trace`, `value`, and perhaps `start_ns`, `end_ns`, `event`.
        is_zero: A trace without a row has 0 rather than none.
    """

    name: str
    title: str
    unit: MetricUnit
    sql: str
    is_zero: bool = False

    def text(self, value: float) -> str:
        """Return a value for people; empty for none."""
        if np.isnan(value):
            return ""
        if self.unit is MetricUnit.NS:
            return format_duration(round(value))
        if self.unit is MetricUnit.SHARE:
            return f"{value:.1%}"
        return f"{value:,.1f} /s" if self.unit is MetricUnit.RATE else f"{value:,g}"


@dataclass(frozen=True, slots=True)
class Point:
    """A trace in a trend.

    Attributes:
        trace: Its name in the data set.
        path: Its file when it was exported.
        begin: When it begins, UTC; None = the file does not say.
        value: The figure; nan = there is none.
        is_outlier: It is far from the others.
        start_ns, end_ns: Where in the trace it comes from; -1 = nowhere in particular.
        event: Row of the event there, -1 for none.
        length_ns: Of the trace.
    """

    trace: str
    path: Path
    begin: datetime | None
    value: float
    is_outlier: bool
    start_ns: int = -1
    end_ns: int = -1
    event: int = -1
    length_ns: int = 0

    @property
    def location(self) -> Location:
        """Where in the trace it comes from; the whole trace if nowhere in particular."""
        # A data set has whole nanoseconds, rounded down; its last event may be later than the last of them.
        clock, whole = Clock(NS_PER_S), TimeWindow(0, self.length_ns + 1)
        if self.start_ns < 0:
            return Location(self.path, whole.start, whole.end, 0, clock, whole)
        return Location(self.path, self.start_ns, max(self.end_ns, self.start_ns), self.event + 1, clock, whole)


@dataclass(frozen=True, slots=True)
class Trend:
    """A figure over all traces of a data set.

    Attributes:
        metric: What it is.
        points: The traces, by when they begin; those that do not say are last, by name.
        middle: The median of the values; nan without any.
    """

    metric: Metric
    points: tuple[Point, ...]
    middle: float

    def __len__(self) -> int:
        return len(self.points)

    @property
    def outliers(self) -> list[Point]:
        """Those far from the others."""
        return [point for point in self.points if point.is_outlier]


@cache
def metrics() -> dict[str, Metric]:
    """Return the metrics that satview has, by name."""
    with resource_path("fleet/metrics.toml").open("rb") as file:
        rows = tomllib.load(file)["metric"]
    return {row["name"]: Metric(row["name"], row["title"], MetricUnit(row["unit"]), row["sql"].strip(),
                                row.get("zero", False)) for row in rows}  # fmt: skip


def trend(
    path: Path | str,
    metric: str = "ready-longest",
    limits: Limits | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Trend:
    """Return a figure for each trace of a data set.

    Args:
        path: Folder of the data set.
        metric: Name of one of `metrics()`, or a query with the columns `trace` and `value`.
        limits: As of a query.
        cancelled: The same.

    Raises:
        UsageError: There is no such metric, or the query does not have these columns; and as of `query_dataset`.
        Cancelled: `cancelled()` returned True.
    """
    selected = metrics().get(metric) or _own(metric)
    traces = query_dataset(path, _TRACES, limits, cancelled)
    found = query_dataset(path, selected.sql, limits, cancelled)
    if "trace" not in found.columns or "value" not in found.columns:
        raise UsageError(f"the query has the columns {', '.join(found.columns)}; it needs trace and value")
    rows = {row["trace"]: row for row in _records(found)}
    missing = 0.0 if selected.is_zero else float("nan")
    order = list(traces.rows())
    values = np.array([_number(rows.get(name, {}).get("value"), missing) for name, *_ in order], np.float64)
    far = outliers(values)
    points = tuple(
        Point(name, Path(file), begin, float(value), bool(is_far), *_location(rows.get(name, {})), length_ns)
        for (name, begin, file, length_ns), value, is_far in zip(order, values.tolist(), far.tolist(), strict=True)
    )
    known = values[~np.isnan(values)]
    return Trend(selected, points, float(np.median(known)) if len(known) else float("nan"))


def outliers(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which values are far from the others, bool (n,): their modified z-score is beyond 3.5; nan never is.

    Args:
        values: float64 (n,).
    """
    known = ~np.isnan(values)
    if int(known.sum()) < _LEAST_TRACES:
        return np.zeros(len(values), np.bool_)
    away = np.abs(values - np.median(values[known]))
    usual = float(np.median(away[known])) * _MEDIAN_DEVIATION
    usual = usual or float(away[known].mean()) * _MEAN_DEVIATION  # more than half of them are equal
    return known & (np.nan_to_num(away) > _OUTLIER * usual) if usual else np.zeros(len(values), np.bool_)


def _own(text: str) -> Metric:
    if not any(c.isspace() for c in text.strip()):
        raise UsageError(f"there is no metric {text[:40]!r}; there are {', '.join(metrics())}, or a query")
    return Metric("query", " ".join(text.split())[:80], MetricUnit.COUNT, text)


def _records(found: Result) -> list[dict[str, Any]]:
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows()]


def _number(value: Any, missing: float) -> float:
    try:
        return missing if value is None else float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{str(value)[:40]!r} is no number; the column value holds numbers") from None


def _location(row: dict[str, Any]) -> tuple[int, int, int]:
    start, end, event = (row.get(name) for name in ("start_ns", "end_ns", "event"))
    return (-1 if start is None else int(start), -1 if end is None else int(end), -1 if event is None else int(event))
