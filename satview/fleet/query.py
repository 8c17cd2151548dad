"""Runs a DuckDB query over all traces of a data set: read-only, without access to other files or the network."""

from __future__ import annotations

import glob
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from satview.base.errors import UsageError
from satview.fleet.layout import RECORD, Dataset, open_dataset
from satview.tables.question import Limits, Query, SqlQuestion
from satview.tables.result import Result
from satview.tables.schema import SCHEMAS
from satview.tables.views import CLOCK_MACROS, View, clock_macros, definition, mentioned, quoted, views, with_list

# The documented views and macros over a data set: each is evaluated per trace, and the name of the trace is added.


_NUMBER: Final = r"\s*-?\d{1,18}(?:\.\d{1,9})?\s*"


@dataclass(frozen=True, slots=True)
class ViewUse:
    """A view or macro that a query uses.

    Attributes:
        view: The view or macro.
        call: Its name in SQL; for a macro, with arguments.
        table: Name of the table that holds its rows of all traces.
    """

    view: View
    call: str
    table: str


def uses(query: str) -> tuple[str, list[ViewUse]]:
    """Return a query with each call of a macro replaced by a table name, and the views and macros that it uses.

    Raises:
        UsageError: A macro has an argument that is not a number.
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

    Args:
        dataset: The data set.
        used: The views.
        traces: For every trace its name, the cycles of its first event, and cycles per second.

    Raises:
        UsageError: The data set lacks a table that a view needs, or has no traces.
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
        return Query(reading, limits, cancelled).answer(is_part_enough)
    except UsageError as error:
        if (name := _IN_CYCLES.search(str(error))) is None:
            raise
        absent = f"{name['column']}_cycles; there is {name['column']}_ns" if name["column"] else f"{name['macro']}()"
        raise UsageError(f"traces have different clocks, so that over many of them there is no {absent}") from error


def _kind_rows(dataset: Dataset) -> Iterator[tuple[str, str, str]]:
    """Yield name, `table`, and description of each table that holds the events of a single kind."""
    return (
        (name, "table", "events of that kind, arguments as columns") for name in dataset.tables if name not in SCHEMAS
    )


def _tables(dataset: Dataset, query: str) -> Iterator[str]:
    """Yield the SQL statements that create the tables that a query uses."""
    there = dataset.tables
    yield f"CREATE VIEW {_CLOCK} AS SELECT trace, start_cycles, cycles_per_s FROM {_rows(dataset, RECORD)}"  # noqa: S608
    for name in (RECORD, *(table for table in mentioned(query, there)[0] if table in there and table != RECORD)):
        columns = SCHEMAS[name].names if name in SCHEMAS else ("time_cycles",)
        cycles = ", ".join(column for column in columns if column.endswith("_cycles"))
        shown = f"* EXCLUDE ({cycles})" if cycles else "*"  # cycles of different clocks cannot be compared
        yield f"CREATE VIEW {name} AS SELECT {shown} FROM {_rows(dataset, name)}"  # noqa: S608  -- names of the schema


def _rows(dataset: Dataset, name: str) -> str:
    """Return the SQL that reads a table of all traces; tables of event kinds may have different columns per trace."""
    return (f"read_parquet({quoted(dataset.pattern(name))}, hive_partitioning = true, "
            f"hive_types = {{'trace': VARCHAR}}, union_by_name = {name not in SCHEMAS})")  # fmt: skip
