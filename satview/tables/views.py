"""The documented SQL views and macros, the search for the names that a query uses, and time conversion in SQL."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from satview.base.resources import resource_path
from satview.base.time import NS_PER_S
from satview.tables.schema import SCHEMAS

_LONGEST_NAME: Final = 64  # longest name of a table
_LITERALS: Final = re.compile(r"'(?:[^']|'')*'")
_WORDS: Final = re.compile(r"(?:(\w+)\.)?\b([A-Za-z_]\w*)")
_SHOW_TABLES: Final = re.compile(
    r"\s*(?:show\s+(?:all\s+)?(?:tables|views|(macros))|describe|\.tables)\s*;?\s*", re.IGNORECASE
)
_THREAD_ROW: Final = "thread_row"  # parameter of macros
_THREAD_NAMED: Final = "thread_named"
_TEXT_ARGUMENT: Final = re.compile(  # skips strings, quoted names and comments
    r"""'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\b(?P<macro>\w+)\s*\(\s*'(?P<text>(?:[^']|'')*)'""", re.IGNORECASE
)
_SOURCES: Final = re.compile(r"\b(?:from|join)\s+(\w+)")  # tables and views in the SQL of views.toml


@dataclass(frozen=True, slots=True)
class View:
    """A documented view or macro.

    Attributes:
        name: Name in SQL.
        meaning: Meaning of a row.
        sql: The query that defines the view or macro.
        parameters: Parameters of a macro; empty for views.
        group: Topic, for the docs.
        own_columns: Columns of the query that defines it, in order.
    """

    name: str
    meaning: str
    sql: str
    parameters: tuple[str, ...]
    group: str
    own_columns: tuple[str, ...]

    @property
    def columns(self) -> dict[str, str]:
        """SQL expressions of the columns by name: those of the query, each one in cycles followed by one in ns."""
        selected: dict[str, str] = {}
        for name in self.own_columns:
            selected[name] = name
            ns = f"{name.removesuffix('_cycles')}_ns"
            if name.endswith("_cycles") and ns not in self.own_columns:
                selected[ns] = f"_length_ns({name}) AS {ns}"
        return selected

    @property
    def usage(self) -> str:
        """The form in which a query uses the view or macro: `cpu_load`, `load_per(bin_ns)`."""
        return f"{self.name}({', '.join(self.parameters)})" if self.parameters else self.name


@cache
def views() -> dict[str, View]:
    """Return the documented views and macros by name, in the order of their file."""
    with resource_path("tables/views.toml").open("rb") as file:
        rows = tomllib.load(file)["view"]
    documented = [
        View(
            row["name"],
            row["says"],
            row["sql"].strip(),
            tuple(row.get("parameters", ())),
            row["group"],
            tuple(row["columns"].split()),
        )
        for row in rows
    ]
    return {view.name: view for view in documented}


def with_list(query: str, tables: Iterable[str], more: Iterable[tuple[str, str, str]] = ()) -> str:
    """Return a query that lists all tables, views and macros for `show tables`; return other queries unchanged.

    DuckDB itself has only the tables that a query uses. For `show macros`, the query lists macros only.

    Args:
        query: The user's query.
        tables: Names of the tables.
        more: Name, kind and meaning of additional entries for the end of the list.
    """
    shown = _SHOW_TABLES.fullmatch(query)
    if shown is None:
        return query
    rows = [(name, "table", SCHEMAS[name].meaning) for name in tables if name in SCHEMAS]
    rows += [(view.usage, "macro" if view.parameters else "view", view.meaning) for view in views().values()]
    rows = [row for row in rows if row[1] == "macro"] if shown[1] else [*rows, *more]
    values = ", ".join(f"({', '.join(map(quoted, row))})" for row in rows)
    return f"SELECT * FROM (VALUES {values}) AS _(name, kind, meaning)"  # noqa: S608  -- of ours, and quoted


def with_thread_rows(query: str, row_of: Callable[[str], int]) -> str:
    """Return a query with the rows of threads in place of their names as arguments of macros and `thread_named`.

    Args:
        query: The user's query.
        row_of: Function that returns the row of a thread by one of its names, or raises UsageError.
    """
    taking = {view.name for view in views().values() if view.parameters[:1] == (_THREAD_ROW,)}

    def replaced(part: re.Match[str]) -> str:
        macro = (part["macro"] or "").lower()
        if macro not in taking and macro != _THREAD_NAMED:
            return part[0]
        row = row_of(part["text"].replace("''", "'"))
        return f"({row}" if macro == _THREAD_NAMED else f"{part['macro']}({row}"

    return _TEXT_ARGUMENT.sub(replaced, query)


def mentioned(text: str, more: Container[str] = ()) -> tuple[list[str], list[str]]:
    """Return the names of tables and views that a query uses, directly or through views; views follow their sources.

    Every word that is such a name counts, unless it is in a string or follows an alias (`w.state`): a table too many
    costs only time, a missing one is an error.

    Args:
        text: The query.
        more: Names of tables beside `SCHEMAS`.
    """
    tables, needed_views = dict[str, None](), dict[str, None]()

    def add(name: str) -> None:
        if name in views() and name not in needed_views:
            for source in _SOURCES.findall(views()[name].sql):
                add(source)
            needed_views[name] = None
        elif name in SCHEMAS or name in more:
            tables[name] = None

    for qualifier, word in _WORDS.findall(_LITERALS.sub(" ", text)):
        if not qualifier or qualifier.lower() == "main":
            add(word.lower())
    return list(tables), list(needed_views)


def near_tables(name: str, more: Iterable[str] = ()) -> str:
    """Return a sentence that suggests tables, views or `more` with a similar name; empty if none is similar."""
    near = difflib.get_close_matches(name[:_LONGEST_NAME].lower(), (*SCHEMAS, *views(), *more), 2, 0.7)
    return f"is {' or '.join(near)} meant? " if near else ""


def definition(view: View) -> str:
    """Return the statement that creates a view or macro as a temporary object of a connection."""
    kind = f"MACRO {view.usage} AS TABLE" if view.parameters else f"VIEW {view.name} AS"
    return f"CREATE TEMP {kind} SELECT {', '.join(view.columns.values())} FROM ({view.sql})"  # noqa: S608  -- of ours


def quoted(text: str) -> str:
    """Return a text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


CLOCK_MACROS: Final = ("time_ns", "duration_ns", "cycles", "_length_ns")


def clock_macros(start: int, rate: int) -> Iterator[str]:
    """Yield statements that create the macros which convert cycles to ns and back, exactly as `base.time.Clock` does.

    Args:
        start: Cycles of the first event.
        rate: Cycles per second.
    """
    second = NS_PER_S
    # Integer division of DuckDB rounds towards zero; two per value determine the speed of a query over all events.
    seconds = f"(cycles::BIGINT // {rate})"
    part = f"(cycles::BIGINT - {seconds} * {rate})"
    rest = f"((ns::BIGINT % {second} + {second}) % {second})"
    yield (
        "CREATE OR REPLACE TEMP MACRO duration_ns(cycles) AS "
        f"{seconds} * {second} + ({part} * {second} - CASE WHEN {part} < 0 THEN {rate - 1} ELSE 0 END) // {rate}"
    )
    # Sums of many durations may exceed 64 bits: null, so that the query does not fail.
    yield (
        f"CREATE OR REPLACE TEMP MACRO _length_ns(cycles) AS TRY_CAST(cycles::HUGEINT * {second} // {rate} AS BIGINT)"
    )
    yield f"CREATE OR REPLACE TEMP MACRO time_ns(cycles) AS duration_ns(cycles - ({start}))"
    yield (
        "CREATE OR REPLACE TEMP MACRO cycles(ns) AS "
        f"({start}) + (ns::BIGINT - {rest}) // {second} * {rate} + ({rest} * {rate} + {second - 1}) // {second}"
    )
