"""The documented views and macros over a data set: each is worked out trace by trace, with the trace in front.

A view is written for the tables of one trace. Here it is run on the parts of one trace after the other, with the
clock of that trace, and the answers become one table with the column `trace`; a macro likewise for each list of
numbers that a query gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from satview.base.errors import UsageError
from satview.fleet.layout import Dataset
from satview.tables.views import CLOCK_MACROS, View, clock_macros, definition, mentioned, quoted, views

_NUMBER: Final = r"\s*-?\d{1,18}(?:\.\d{1,9})?\s*"


@dataclass(frozen=True, slots=True)
class Use:
    """A view or macro in a query.

    Attributes:
        view: Which.
        call: How its rows are queried: its name, with the arguments of a macro.
        table: Name of the table with its rows of all traces.
    """

    view: View
    call: str
    table: str


def uses(query: str) -> tuple[str, list[Use]]:
    """Return a query that reads tables in place of views, and which views these are.

    Raises:
        UsageError: A macro has other arguments than numbers.
    """
    found: dict[str, Use] = {}
    for name in mentioned(query)[1]:
        view = views()[name]
        if not view.parameters:
            if re.search(rf"\b{name}\b", query, re.IGNORECASE):  # not only what another view is made of
                found[name] = Use(view, name, name)
            continue
        for call in dict.fromkeys(re.findall(rf"\b{name}\s*\([^()]*\)", query, re.IGNORECASE)):
            if not re.fullmatch(rf"{name}\s*\({_NUMBER}(?:,{_NUMBER})*\)", call, re.IGNORECASE):
                raise UsageError(f"{call[:60]}: over many traces the arguments of {view.usage} are numbers")
            table = f"{name}_{len(found)}"
            found[table] = Use(view, call, table)
            query = query.replace(call, table)
        if re.search(rf"\b{name}\s*\(", query, re.IGNORECASE):
            raise UsageError(f"over many traces the arguments of {view.usage} are numbers")
    return query, list(found.values())


def view_statements(dataset: Dataset, found: list[Use], traces: list[tuple[str, int, int]]) -> Iterator[str]:
    """Yield the statements that make the tables with the rows of views, trace by trace.

    Args:
        dataset: The data set.
        found: The views.
        traces: Name and clock of every trace: cycles of its first event, and per second.

    Raises:
        UsageError: The data set lacks a table that a view needs, or has no trace.
    """
    if found and not traces:
        raise UsageError("the data set has no complete trace")
    for use in found:
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
    for name in CLOCK_MACROS if found else ():  # that of the last trace
        yield f"DROP MACRO temp.{name}"
    for use in found:
        yield f"CREATE OR REPLACE VIEW main.{use.table} AS SELECT * FROM main._{use.table}"  # noqa: S608


def _part(dataset: Dataset, name: str, trace: str) -> str:
    """Return what makes a table of one trace as the views know it."""
    path = dataset.part(name, trace).as_posix()
    rows = f"read_parquet([{quoted(_plain(path))}], hive_partitioning = false)"
    return f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM {rows}"  # noqa: S608  -- as above


def _plain(path: str) -> str:
    """Return a path in which DuckDB sees no pattern."""
    return re.sub(r"([*?\[])", r"[\1]", path)
