"""Data sets of many traces: their folders and files, queries over all traces, instances, and trends of a metric."""

from __future__ import annotations

import csv
import glob
import hashlib
import json
import os
import re
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import Texts
from satview.answers.late import late
from satview.answers.late_comparison import Sample
from satview.answers.table import Column, Kind, Known, Question, Table
from satview.base.errors import UsageError
from satview.base.named_files import resource_path
from satview.base.new_file import NewFile
from satview.base.plugins import required
from satview.base.safe_text import counted, percent
from satview.base.time import NS_PER_S, Clock, TimeWindow, format_duration
from satview.events.user_events import UserEvent
from satview.formats.registry import TRACE_PATTERNS, open_trace
from satview.store.arguments import describe_events
from satview.store.time_ranges import Location
from satview.tables.result import Result
from satview.tables.schema import (
    CLOCK_MACROS,
    SAFE_FROM_LOSSES,
    SCHEMAS,
    View,
    clock_macros,
    definition,
    mentioned,
    quoted,
    views,
    with_list,
)
from satview.tables.sql import Limits, Query, SqlQuestion

# File layout of a data set: `TABLE/trace=NAME/part.parquet`, which DuckDB, Polars, Spark and Arrow can read.
#
# The file of the table `trace` is written last, so a trace that has it is complete. Its metadata contain the size and
# modification time of the source file at the time of export, and the names of the tables.


MARK: Final = "satview-fleet.json"  # in the folder of a data set
PART: Final = "part.parquet"
SKIPPED: Final = "skipped.csv"
RECORD: Final = "trace"  # the table with one row per trace
_UNASKED: Final = frozenset(("slow_against_fast", "more_in_slow", "slow_path", "chain"))
"""Tables that are written only on request: they take longer than all others, or need a timing file."""
DEFAULT_TABLES: Final = tuple(name for name in SCHEMAS if name not in {"mark", "argument", RECORD} | _UNASKED)
_VERSION: Final = 2  # 1: events without nanoseconds
_MARKED: Final = json.dumps({"satview": "fleet", "version": _VERSION}).encode() + b"\n"
_SAFE: Final = " @,+()[]'!$&;~"  # not percent-encoded in folder names


@dataclass(frozen=True, slots=True)
class DatasetSource:
    """A trace file to export, named by its path below the searched folder, with `/`; descriptions of events by code."""

    name: str
    path: Path
    size_bytes: int
    modified_ns: int
    user_events: Mapping[int, UserEvent] = field(default_factory=dict)

    def state(self) -> dict[str, Any]:
        """Return the values that are compared to decide whether the tables must be written again."""
        described = repr(sorted(self.user_events.items())).encode() if self.user_events else b""
        return {"version": _VERSION, "path": os.fsencode(self.path.resolve()).decode("utf-8", "replace"),
                "size_bytes": self.size_bytes, "modified_ns": self.modified_ns,
                **({"user_events": hashlib.sha256(described).hexdigest()} if described else {})}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set on disk."""

    folder: Path

    def part(self, table: str, name: str) -> Path:
        """Return the path of the file with a table of one trace."""
        return self.folder / table / f"trace={quote(name, safe=_SAFE)}" / PART

    def pattern(self, table: str) -> str:
        """Return a pattern that matches the files of a table."""
        return f"{glob.escape(self.folder.as_posix())}/{table}/*/{PART}"

    def files(self) -> Iterator[Path]:
        """Yield the files of the data set; `skipped.csv` may not exist."""
        yield from (self.folder / MARK, self.folder / SKIPPED)
        for name in self.tables:
            yield from (self.folder / name).glob(f"*/{PART}")

    @property
    def skipped_count(self) -> int:
        """Number of files that the last export could not read."""
        path = self.folder / SKIPPED
        if not path.is_file():
            return 0
        with path.open(encoding="utf-8", newline="") as file:
            return sum(1 for _ in csv.reader(file)) - 1  # without the heading

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables of the data set, in the order of docs/tables.md; tables of event kinds come last."""
        own = sorted(home.name for home in self.folder.iterdir() if any(home.glob("trace=*")))
        return (*(name for name in SCHEMAS if name in own), *(name for name in own if name not in SCHEMAS))

    def names(self) -> Iterator[str]:
        """Yield the names of the completely exported traces."""
        for home in sorted((self.folder / RECORD).glob("trace=*")):
            if (home / PART).is_file():
                yield unquote(home.name.removeprefix("trace="))

    def gone(self, sources: Iterable[DatasetSource]) -> list[str]:
        """Return the names of completely exported traces that are not in `sources` and whose files no longer exist."""
        source_names = {source.name for source in sources}
        return [name for name in self.names() if name not in source_names and not Path(self._path_of(name)).is_file()]

    def _path_of(self, name: str) -> str:
        """Return the path of a trace's file at the time of export; empty if the table `trace` cannot be read."""
        try:
            record = required("pyarrow.parquet").ParquetFile(self.part(RECORD, name)).read(["path"])
        except (OSError, ValueError):  # pyarrow raises subclasses of ValueError for damaged files
            return ""
        return str(record["path"][0].as_py())

    def has(self, source: DatasetSource, tables: Iterable[str]) -> bool:
        """Return whether the data set has at least these tables of a file, and the file has not changed since."""
        path = self.part(RECORD, source.name)
        if not path.is_file():
            return False
        try:
            metadata = required("pyarrow.parquet").read_schema(path).metadata or {}
            written = json.loads(metadata.get(b"satview.fleet", b"{}"))
        except (OSError, ValueError):  # pyarrow raises subclasses of ValueError for damaged files
            return False
        tables_there = written.pop("tables", ())
        return bool(written == source.state()) and set(tables) <= set(tables_there)


def record_metadata(source: DatasetSource, tables: Iterable[str]) -> dict[str, str]:
    """Return the Parquet metadata of the table `trace`: state of the source file, and names of the tables."""
    return {"satview.fleet": json.dumps({**source.state(), "tables": sorted(tables)})}


def is_dataset(path: Path | str) -> bool:
    """Return whether a folder contains a data set."""
    return (Path(path) / MARK).is_file()


def open_dataset(path: Path | str) -> Dataset:
    """Return the data set in a folder; UsageError if it has none, or one of another version."""
    folder = Path(path)
    if not is_dataset(folder):
        raise UsageError(f"{folder.name or folder}: no data set of traces; `satview export DIR -o OUT` makes one")
    if (folder / MARK).read_bytes() != _MARKED:
        raise UsageError(f"{folder.name}: a data set of another version of satview; export its traces again")
    return Dataset(folder.resolve())


def begin_dataset(path: Path | str) -> Dataset:
    """Return the data set in a folder; create it if the folder is missing or empty.

    Raises UsageError if the folder contains something else, WriteError if the data set cannot be created.
    """
    folder = Path(path)
    is_other = folder.exists() and not is_dataset(folder)
    if is_other and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder.name or folder}: it exists and is not a data set of traces; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    if not is_dataset(folder) or (folder / MARK).read_bytes() != _MARKED:
        with NewFile(folder / MARK) as file:
            file.stream.write(_MARKED)
    return Dataset(folder.resolve())


def find_sources(
    folder: Path | str,
    patterns: Iterable[str] = (),
    out: Path | None = None,
    user_events: Mapping[int, UserEvent] | None = None,
) -> list[DatasetSource]:
    """Return the trace files below a folder, sorted; hidden files and folders are left out.

    Args:
        folder: Folder to search recursively.
        patterns: Patterns of file names; none = `TRACE_PATTERNS`.
        out: A folder to leave out, as it holds the data set.
        user_events: Descriptions of events of all traces; None = none.

    Raises:
        UsageError: No file matches.
    """
    root, given = Path(folder), tuple(patterns) or TRACE_PATTERNS
    sources: dict[str, DatasetSource] = {}
    for path in sorted({path for pattern in given for path in root.rglob(pattern)}):
        below = path.relative_to(root)
        is_hidden = any(part.startswith(".") for part in below.parts)
        if is_hidden or (out is not None and out.resolve() in path.resolve().parents) or not path.is_file():
            continue
        status = path.stat()
        sources[below.as_posix()] = DatasetSource(
            below.as_posix(), path, status.st_size, status.st_mtime_ns, user_events or {}
        )
    if not sources:
        raise UsageError(f"{root.name or root}: no file in it is called {' or '.join(given)}; see --pattern")
    return list(sources.values())


# The documented views and macros over a data set: each is evaluated per trace, and the name of the trace is added.


_NUMBER: Final = r"\s*-?\d{1,18}(?:\.\d{1,9})?\s*"


@dataclass(frozen=True, slots=True)
class ViewUse:
    """A view or macro that a query uses, with its call in SQL and the table of its rows of all traces."""

    view: View
    call: str
    table: str


def uses(query: str) -> tuple[str, list[ViewUse]]:
    """Return a query with each call of a macro replaced by a table name, and the views and macros that it uses.

    Raises UsageError if a macro has an argument that is not a number.
    """
    by_table: dict[str, ViewUse] = {}
    for name in mentioned(query)[1]:
        view = views()[name]
        if not view.parameters:
            if re.search(rf"\b{name}\b", query, re.IGNORECASE):  # else only another view uses it
                by_table[name] = ViewUse(view, name, name)
            continue
        for call in dict.fromkeys(re.findall(rf"\b{name}\s*\([^()]*\)", query, re.IGNORECASE)):
            if not re.fullmatch(rf"{name}\s*\({_NUMBER}(?:,{_NUMBER})*\)", call, re.IGNORECASE):
                raise UsageError(f"{call[:60]}: over many traces the arguments of {view.usage} are numbers")
            table = f"{name}_{len(by_table)}"
            by_table[table] = ViewUse(view, call, table)
            query = query.replace(call, table)
        if re.search(rf"\b{name}\s*\(", query, re.IGNORECASE):
            raise UsageError(f"over many traces the arguments of {view.usage} are numbers")
    return query, list(by_table.values())


def view_statements(dataset: Dataset, used: list[ViewUse], traces: list[tuple[str, int, int]]) -> Iterator[str]:
    """Yield the SQL statements that create a table for each view, with its rows of all traces.

    `traces` has for every trace its name, the cycles of its first event, and cycles per second. Raises UsageError if
    the data set lacks a table that a view needs, or has no traces.
    """
    if used and not traces:
        raise UsageError("the data set has no complete trace")
    for use in used:
        tables, needed = mentioned(use.view.name)
        for name in tables:
            if name not in dataset.tables:
                raise UsageError(f"the view {use.view.name} needs the table {name}, which the data set lacks; "
                                 f"add it by `satview export DIR -o OUT --table {name}`")  # fmt: skip
        for number, (trace, start_cycles, cycles_per_s) in enumerate(traces):
            yield from clock_macros(start_cycles, cycles_per_s)
            for name in tables:
                yield _part(dataset, name, trace)
            for name in needed:
                yield definition(views()[name])
            shown = ", ".join(name for name in use.view.columns if not name.endswith("_cycles"))
            rows = f"SELECT {quoted(trace)} AS trace, {shown} FROM {use.call}"  # noqa: S608  -- numbers and names of ours
            yield f"INSERT INTO main._{use.table} {rows}" if number else f"CREATE TABLE main._{use.table} AS {rows}"
            for name in reversed(needed):
                yield f"DROP {'MACRO TABLE' if views()[name].parameters else 'VIEW'} temp.{name}"
            for name in tables:
                yield f"DROP VIEW temp.{name}"
    for name in CLOCK_MACROS if used else ():  # the macros of the last trace
        yield f"DROP MACRO temp.{name}"
    for use in used:
        yield f"CREATE OR REPLACE VIEW main.{use.table} AS SELECT * FROM main._{use.table}"  # noqa: S608


def _part(dataset: Dataset, name: str, trace: str) -> str:
    """Return the SQL that makes a table of one trace available under the name that the views use."""
    path = dataset.part(name, trace).as_posix()
    rows = f"read_parquet([{quoted(_plain(path))}], hive_partitioning = false)"
    return f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM {rows}"  # noqa: S608  -- as above


def _plain(path: str) -> str:
    """Escape the characters of a path that DuckDB would treat as a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", path)


_CLOCK: Final = "_clock_of_trace"
_TRACES: Final = f"SELECT trace, start_cycles, cycles_per_s FROM {_CLOCK} ORDER BY trace"  # noqa: S608  -- of ours
_LACKS: Final = f"""SELECT trace, cannot_show, costs_data FROM (
    SELECT NULL::VARCHAR AS cannot_show WHERE false UNION ALL BY NAME SELECT * FROM {_CLOCK})"""  # noqa: S608  -- of ours
_IN_CYCLES: Final = re.compile(rf'"(?P<column>\w+)_cycles"|Function with name "?(?P<macro>{"|".join(CLOCK_MACROS)})\b')
_MIN_S: Final = 0.001


def query_dataset(
    path: Path | str,
    query: str,
    limits: Limits | None = None,
    cancelled: Callable[[], bool] | None = None,
    is_part_enough: bool = False,
) -> Result:
    """Return the rows of a query over a data set; all tables and views have a column `trace`, the name of the trace.

    Args:
        path: Folder of the data set.
        query: One read-only query in DuckDB's SQL.
        limits: Limits on time, memory and the size of the result; None = the defaults.
        cancelled: Called repeatedly while the query runs; True cancels it.
        is_part_enough: Whether to return only the first rows of a result that is too large (see `Result.is_cut`).

    Raises:
        UsageError: There is no data set, the query is invalid or exceeded a limit, or a package is missing.
        Cancelled: `cancelled()` returned True.
    """
    dataset, limits = open_dataset(path), limits or Limits()
    shown, used = uses(with_list(query, dataset.tables, _kind_rows(dataset)))
    folder = dataset.folder.as_posix()
    # The escaped form too, because DuckDB checks patterns, which contain the escaped name, against the folders.
    reading = SqlQuestion(shown, tuple(_tables(dataset, shown)), folders=(folder, glob.escape(folder)))
    begin_s = time.monotonic()
    if used:
        traces = Query(replace(reading, query=_TRACES), limits, cancelled).answer().rows()
        views = tuple(view_statements(dataset, used, traces))
        reading = replace(reading, statements=(*reading.statements, *views))
        left_s = limits.time_s - (time.monotonic() - begin_s)
        limits = replace(limits, time_s=max(left_s, _MIN_S))
    try:
        result = Query(reading, limits, cancelled).answer(is_part_enough)
        lacks = Query(replace(reading, query=_LACKS), limits, cancelled).answer().rows()
    except UsageError as error:
        if (name := _IN_CYCLES.search(str(error))) is None:
            raise
        absent = f"{name['column']}_cycles; there is {name['column']}_ns" if name["column"] else f"{name['macro']}()"
        raise UsageError(f"traces have different clocks, so that over many of them there is no {absent}") from error
    tables = mentioned(query, dataset.tables)[0]  # of the query, and of its views
    # One text for each trace: lines that begin with the name of a table; None in older data sets.
    missing = {trace: [line for line in (text or "").splitlines() if line.partition(":")[0] in tables]
               for trace, text, _ in lacks}  # fmt: skip
    result.silent_traces = frozenset(trace for trace, lines in missing.items() if lines)
    counts = Counter(line for lines in missing.values() for line in lines)
    result.cannot_tell = tuple(
        f"{line} ({count:,} of {counted(len(lacks), 'trace')})" for line, count in counts.items()
    )
    if not SAFE_FROM_LOSSES.issuperset(tables):
        result.lossy_traces = frozenset(trace for trace, _, costs_data in lacks if costs_data)
    if lossy := len(result.lossy_traces):
        result.not_all = (f"events are missing in {lossy:,} of {counted(len(lacks), 'trace')}",)
    return result


def _kind_rows(dataset: Dataset) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the word `table`, and the description of each table with the events of a single kind."""
    return (
        (name, "table", "events of that kind, arguments as columns") for name in dataset.tables if name not in SCHEMAS
    )


def _tables(dataset: Dataset, query: str) -> Iterator[str]:
    """Yield the SQL statements that create the tables that a query uses."""
    existing = dataset.tables
    yield f"CREATE VIEW {_CLOCK} AS SELECT * FROM {_rows(dataset, RECORD)}"  # noqa: S608
    for name in (RECORD, *(table for table in mentioned(query, existing)[0] if table in existing and table != RECORD)):
        columns = SCHEMAS[name].names if name in SCHEMAS else ("time_cycles",)
        cycles = ", ".join(column for column in columns if column.endswith("_cycles"))
        shown = f"* EXCLUDE ({cycles})" if cycles else "*"  # cycles of different clocks cannot be compared
        yield f"CREATE VIEW {name} AS SELECT {shown} FROM {_rows(dataset, name)}"  # noqa: S608  -- names of the schema


def _rows(dataset: Dataset, name: str) -> str:
    """Return the SQL that reads a table of all traces, whose columns may differ per trace and version."""
    return (f"read_parquet({quoted(dataset.pattern(name))}, hive_partitioning = true, "
            f"hive_types = {{'trace': VARCHAR}}, union_by_name = {name == RECORD or name not in SCHEMAS})")  # fmt: skip


# Instances of an activity in all traces of a data set, with their response times.
#
# Only one trace is open at a time, so that instances of hundreds of traces can be compared.


_TABLE: Final = "activity_instance"


@dataclass(frozen=True, slots=True)
class RecordedInstances:
    """Instances of one activity in one trace of a data set.

    Attributes:
        event: int64 (n,), row of the first event of each instance.
        response_s: float64 (n,), response time of each instance.
        described: Descriptions of events, by code, that were used for the export.
    """

    path: Path
    activity: str
    event: NDArray[np.int64]
    response_s: NDArray[np.float64]
    described: Mapping[int, UserEvent]

    def samples(self, *selections: NDArray[np.int64]) -> tuple[Sample, ...]:
        """Open the trace and return one sample per selection; a selection is int64 (k,), positions in `event`.

        Raises UsageError if the file does not contain these instances, so it has changed since the export.
        """
        trace = open_trace(self.path)
        if self.described:
            describe_events(trace, self.described)
        learned = late(trace).learned
        names = [activity.name for activity in learned.activities]
        number = names.index(self.activity) if self.activity in names else -1
        own = learned.instances.taken(learned.instances.activity == number)
        samples = tuple(Sample(trace, own.taken(np.isin(own.start_row, self.event[part]))) for part in selections)
        if [len(sample.instances) for sample in samples] != list(map(len, selections)):
            raise UsageError(f"{self.path.name} has other instances of {self.activity} than the data set; run satview "
                             "export again")  # fmt: skip
        return samples


def recorded_instances(
    folder: Path, activity: str, described: Mapping[int, UserEvent] | None = None, without: Collection[Path] = (),
    say: Callable[[str], object] | None = None,
) -> list[RecordedInstances]:  # fmt: skip
    """Return the finished instances of an activity, per trace of a data set, except instances with lost events.

    Args:
        folder: Folder of the data set.
        activity: Name of a learned activity; activities of a timing file are not in a data set.
        described: Descriptions of events, by code, that were used for the export.
        without: Resolved paths of trace files to leave out, as the caller already has their instances.
        say: Called with a sentence if some trace files are gone, which are then left out; None = that is an error.

    Raises:
        UsageError: There is no data set, it lacks the table of instances, none of its traces has the activity, or a
            trace file is missing (with `say`: all of them are).
    """
    dataset = open_dataset(folder)
    if _TABLE not in dataset.tables:
        raise UsageError(f"the data set {folder.name} has no table {_TABLE}; add it by `satview export DIR -o OUT "
                         f"--table {_TABLE}`")  # fmt: skip
    paths = dict(query_dataset(folder, f"select trace, path from {RECORD}").rows())  # noqa: S608  -- of ours
    result = query_dataset(
        folder,
        f"select trace, event, response_ns from {_TABLE} where activity = {quoted(activity)} "  # noqa: S608  -- quoted
        "and response_known not in ('unknown', 'at least') order by trace, event",
    )
    if not len(result):
        raise UsageError(f"no trace of the data set {folder.name} has the learned activity {activity}; activities of a "
                         "timing file are not in a data set")  # fmt: skip
    trace, event, response_ns = (result[column] for column in result.columns)
    names, begins = np.unique(trace.astype(str), return_index=True)
    bounds = [*begins.tolist(), len(trace)]
    recorded = [
        RecordedInstances(Path(paths[name]), activity, event[begin:stop].astype(np.int64),
                          response_ns[begin:stop].astype(np.float64) / NS_PER_S, described or {})
        for name, begin, stop in zip(names.tolist(), bounds[:-1], bounds[1:], strict=True)
    ]  # fmt: skip
    if missing := [instances.path for instances in recorded if not instances.path.is_file()]:
        text = f"{len(missing)} of {len(recorded)} traces of the data set {folder.name} are gone, such as {missing[0]}"
        if say is None or len(missing) == len(recorded):
            raise UsageError(text)
        say(f"{text}; they are left out")
    return [instances for instances in recorded
            if instances.path not in missing and Path(os.path.realpath(instances.path)) not in without]  # fmt: skip


# B. Iglewicz, D. Hoaglin: How to Detect and Handle Outliers (1993): the modified z-score and its usual limit.
_MEDIAN_DEVIATION: Final = 1.4826
_MEAN_DEVIATION: Final = 1.253314
_OUTLIER: Final = 3.5
_MIN_TRACES: Final = 5  # minimum number of values for which outliers are determined
_TRACES_IN_ORDER: Final = "select trace, begin, path, length_ns from trace order by begin nulls last, trace"


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
        sql: Query with the columns `trace` and `value`; optional columns are `start_ns`, `end_ns` and `event`.
        is_zero: Whether a trace without a row in the result has the value 0; otherwise it has no value. If the
            trace cannot show such rows, its value is not known, except that a count is then at least 0.
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
            return percent(value)
        return f"{value:,.1f} /s" if self.unit is MetricUnit.RATE else f"{value:,g}"


_OUTLIER_TEXTS: Final = ("", "far from the others")
_COLUMNS: Final = (
    Column("trace", Kind.TEXT, "its name in the data set", "Trace"),
    Column("begin", Kind.TEXT, "when it begins, UTC; empty if its file does not say", "Begins (UTC)"),
    Column(
        "value",
        Kind.FIGURE,
        "the figure",
        "Value",
        is_nullable=True,
        reasons={
            Known.UNKNOWN: "the trace cannot show it",
            Known.AT_LEAST: "the trace cannot show all of them",
            Known.ESTIMATE: "events are missing in the trace",
        },
    ),
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
    """Return a predefined metric by name, or one that evaluates the text as a query; UsageError if it is neither."""
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
    traces = query_dataset(path, _TRACES_IN_ORDER, limits, cancelled)
    result = query_dataset(path, selected.sql, limits, cancelled)
    if "trace" not in result.columns or "value" not in result.columns:
        raise UsageError(f"the query has the columns {', '.join(result.columns)}; it needs trace and value")
    by_trace = {row["trace"]: row for row in _records(result)}
    order = list(traces.rows())
    rows = [by_trace.get(name, {}) for name, *_ in order]
    is_silent = np.array([name in result.silent_traces and name not in by_trace for name, *_ in order], np.bool_)
    is_least = is_silent & (selected.is_zero and selected.unit is MetricUnit.COUNT)
    instead = np.where(is_silent & ~is_least | (not selected.is_zero), np.nan, 0.0).tolist()
    values = np.array([_number(row.get("value"), none) for row, none in zip(rows, instead, strict=True)], np.float64)
    of_lossy = Known.AT_LEAST if selected.unit is MetricUnit.COUNT else Known.ESTIMATE
    is_lossy = np.array([name in result.lossy_traces for name, *_ in order], np.bool_)
    known = np.select([is_least, is_silent, is_lossy], [Known.AT_LEAST, Known.UNKNOWN, of_lossy], Known.EXACT)
    is_far, begins = outliers(values), [begin for _, begin, *_ in order]
    start, end, event = (np.array([-1 if row.get(name) is None else int(row[name]) for row in rows], np.int64)
                         for name in ("start_ns", "end_ns", "event"))  # fmt: skip
    median = selected.text(middle(values)) or "unknown"
    parts = [f"median {median}", counted(len(order), "trace"), f"{int(is_far.sum()):,} far from the others"]
    if without := int(np.isnan(values).sum()):
        parts.insert(2, f"{without:,} without a value")
    if skipped := open_dataset(path).skipped_count:
        parts.append(f"{counted(skipped, 'file')} skipped by the last export ({SKIPPED} says why)")
    note = ", ".join(parts)
    empty = "No trace is far from the others." if order else "The data set has no traces."
    question = Question("trend", selected.title, selected.title, _COLUMNS, "", empty, tone="tone", note=note)
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
    }, known={"value": known.astype(np.uint8)}, texts={"value": lambda row: selected.text(values[row])},
        cannot_tell="\n".join((*result.cannot_tell, *result.not_all)))  # fmt: skip
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
        raise UsageError(f"{str(value)[:40]!r} is not a number; the column value holds numbers") from None
