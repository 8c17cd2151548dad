"""SQL over the tables of a trace, by DuckDB: read-only, without files and network, within limits of time and memory."""

from __future__ import annotations

import difflib
import re
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.dataclass import dataclass
from satview.base.errors import Cancelled, UsageError
from satview.base.resources import resource_path
from satview.base.safe_text import html_text
from satview.base.time import NS_PER_S
from satview.store.trace import Trace
from satview.tables.arrow import arrow_table
from satview.tables.extras import required
from satview.tables.frames import Frames
from satview.tables.schema import SCHEMAS, Column
from satview.tables.table import table

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN_ROWS: Final = 20
_BATCH_ROWS: Final = 1 << 17
_WATCH_S: Final = 0.05
_LITERALS: Final = re.compile(r"'(?:[^']|'')*'")
_WORDS: Final = re.compile(r"(?:(\w+)\.)?\b([A-Za-z_]\w*)")
_SOURCES: Final = re.compile(r"\b(?:from|join)\s+(\w+)")  # as the file of views writes them
_MISSING: Final = re.compile(r"Catalog Error: Table with name (\S+) does not exist!")
_LONGEST_S: Final = 292 * 365 * 86_400  # what fits into nanoseconds of 64 bits
_RATE_MAX: Final = (2**63 - 1) // NS_PER_S


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a query may take.

    Attributes:
        time_s: Seconds of the clock, from when its tables are made.
        memory_bytes: Of DuckDB; and of the result.
        threads: How many processors it uses at once; 0 = all.
    """

    time_s: float = 60.0
    memory_bytes: int = 2 << 30
    threads: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """A documented view or macro.

    Attributes:
        name: As in SQL.
        says: What a row is.
        sql: The query behind it.
        parameters: Of a macro; empty for views.
        group: What it is about, for the docs.
    """

    name: str
    says: str
    sql: str
    parameters: tuple[str, ...]
    group: str

    @property
    def usage(self) -> str:
        """How it is written in a query: `cpu_load`, `load_per(bin_ns)`."""
        return f"{self.name}({', '.join(self.parameters)})" if self.parameters else self.name


@cache
def views() -> dict[str, View]:
    """Return the documented views and macros by name, in the order of their file."""
    with resource_path("tables/views.toml").open("rb") as file:
        rows = tomllib.load(file)["view"]
    found = [
        View(row["name"], row["says"], row["sql"].strip(), tuple(row.get("parameters", ())), row["group"])
        for row in rows
    ]
    return {view.name: view for view in found}


def sql(trace: Trace, query: str, limits: Limits | None = None, cancelled: Callable[[], bool] | None = None) -> Result:
    """Return the rows of a query over the tables, views and macros of a trace (docs/tables.md).

    Only the tables that the query mentions are made, and nothing is copied into DuckDB. It can reach neither files nor
    the network nor extensions, nor the tables of another query.

    Args:
        trace: The trace.
        query: One SELECT, WITH, VALUES, DESCRIBE, SUMMARIZE or EXPLAIN.
        limits: How much it may take; None = the usual ones.
        cancelled: Called now and then while it runs.

    Raises:
        UsageError: The query is faulty, is none of these, or went over a limit; or a package is not installed.
        Cancelled: `cancelled()` returned True.
    """
    limits = limits or Limits()
    required("duckdb")
    required("pyarrow")
    connection = _database(limits.memory_bytes, limits.threads).cursor()
    return answered(connection, query, lambda: _prepare(connection, trace, query), limits, cancelled)


def answered(
    connection: Any,
    query: str,
    prepare: Callable[[], None],
    limits: Limits,
    cancelled: Callable[[], bool] | None = None,
) -> Result:
    """Return the rows of a query over what a connection has, and close it.

    Args:
        connection: Of DuckDB.
        query: What somebody typed.
        prepare: Makes what the query needs, once it is known to be one that reads.
        limits: How much it may take.
        cancelled: Called now and then while it runs.

    Raises:
        UsageError: As of `sql`.
        Cancelled: `cancelled()` returned True.
    """
    duckdb, is_cancelled = required("duckdb"), cancelled or _never
    try:
        _refuse_other(duckdb, connection, query)
        prepare()
        with interrupted(connection, limits.time_s, is_cancelled):
            return _fetched(connection, query, limits)
    except duckdb.InterruptException as error:
        if is_cancelled():
            raise Cancelled("the query was stopped") from error
        raise UsageError(f"the query took longer than {limits.time_s:g} s and was stopped") from error
    except duckdb.Error as error:
        raise UsageError(_first_lines(str(error))) from error
    finally:
        connection.close()


class Result(Frames):
    """The rows of a query, as columns."""

    def __init__(self, found: pa.Table) -> None:
        self._found = found
        self._columns: tuple[str, ...] = tuple(found.column_names)

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names, in order."""
        return self._columns

    def __len__(self) -> int:
        return int(self._found.num_rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column in numpy, (n,); with nulls in it as objects, None for null.

        Raises:
            UsageError: There is no such column.
        """
        if name not in self.columns:
            raise UsageError(f"the result has no column {name[:40]!r}; it has {', '.join(self.columns)}")
        column = self._found.column(name)
        if not column.null_count:
            return np.asarray(column.to_numpy())
        values = np.empty(len(self), np.object_)
        values[:] = column.to_pylist()
        return values

    def __repr__(self) -> str:
        return f"<Result: {len(self):,} rows of {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        """Return the first rows for notebooks."""
        head = "".join(f"<th>{html_text(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html_text(str(value))}</td>" for value in row) + "</tr>"
            for row in self.rows(_SHOWN_ROWS)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{len(self):,} rows</p>"

    def rows(self, most: int | None = None) -> list[tuple[Any, ...]]:
        """Return the rows one by one, as tuples.

        Args:
            most: The first so many; None = all.
        """
        part = self._found if most is None else self._found.slice(0, most)
        return list(zip(*(column.to_pylist() for column in part.columns), strict=True))

    def value(self, row: int, name: str) -> Any:
        """Return one value, None for null."""
        return self._found.column(name)[row].as_py()

    def arrow(self) -> pa.Table:
        """Return it as a table of Arrow."""
        return self._found


def mentioned(text: str) -> tuple[list[str], list[str]]:
    """Return the tables and the views that a query needs, those that views need included, each before its users.

    Every word of a query counts that is one of their names, is not part of a text and no column of something
    (`w.state`): a table too many costs time, one too few would be an error.
    """
    tables, found = dict[str, None](), dict[str, None]()

    def add(name: str) -> None:
        if name in views() and name not in found:
            for source in _SOURCES.findall(views()[name].sql):
                add(source)
            found[name] = None
        elif name in SCHEMAS:
            tables[name] = None

    for of, word in _WORDS.findall(_LITERALS.sub(" ", text)):
        if not of or of.lower() == "main":
            add(word.lower())
    return list(tables), list(found)


@lru_cache(maxsize=4)
def _database(memory_bytes: int, threads: int) -> Any:
    """Return an empty database in memory, of which every query has a connection; to make one takes 20 ms.

    What a query makes is temporary: only its own connection sees it.
    """
    found = required("duckdb").connect(
        config={
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "max_temp_directory_size": "0B",
            "memory_limit": f"{memory_bytes}B",
            **({"threads": str(threads)} if threads else {}),
        }
    )
    found.execute("SET lock_configuration = true")
    return found


def _refuse_other(duckdb: Any, connection: Any, query: str) -> None:
    """Refuse what is not one query.

    Raises:
        UsageError: It is several, none, or would change something.
    """
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise UsageError(f"this is {len(statements)} statements; give one query")
    if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise UsageError(f"{statements[0].type.name} is no query; SELECT, DESCRIBE, SUMMARIZE and EXPLAIN are")


def _prepare(connection: Any, trace: Trace, query: str) -> None:
    """Make the tables, views and macros that a query mentions."""
    for statement in clock_macros(trace.clock.start_cycles, trace.clock.cycles_per_s):
        connection.execute(statement)
    tables, found = mentioned(query)
    for name in tables:
        _add_table(connection, trace, name)
    for name in found:
        connection.execute(definition(views()[name]))


def definition(view: View) -> str:
    """Return the statement that makes a view or macro, for the connection that runs it only."""
    kind = f"MACRO {view.usage} AS TABLE" if view.parameters else f"VIEW {view.name} AS"
    return f"CREATE TEMP {kind} {view.sql}"


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def _add_table(connection: Any, trace: Trace, name: str) -> None:
    """Add a table; columns of nanoseconds are expressions, so that only a query that looks at one makes it."""
    found = table(trace, name)
    is_plain = _fits_plain_numbers(trace)
    read = [column for column in found.schema.columns if not (is_plain and column.cycles)]
    arrow = arrow_table(read, {column.name: found.values(column) for column in read})
    connection.register(f"_{name}", arrow)
    shown = ", ".join(_shown(column) if is_plain and column.cycles else column.name for column in found.schema.columns)
    connection.execute(f"CREATE TEMP VIEW {name} AS SELECT {shown} FROM _{name}")  # noqa: S608  -- names of the schema


def _shown(column: Column) -> str:
    return f"{'time_ns' if column.is_moment else 'duration_ns'}({column.cycles}) AS {column.name}"


def _fits_plain_numbers(trace: Trace) -> bool:
    """Return whether the arithmetic of `Clock.ns_array` needs neither its limit of 292 years nor more than 64 bits."""
    clock, window = trace.clock, trace.window
    furthest = max(abs(window.start - clock.start_cycles), abs(window.end - clock.start_cycles))
    return clock.cycles_per_s <= _RATE_MAX and furthest // clock.cycles_per_s < _LONGEST_S


def clock_macros(start: int, rate: int) -> Iterator[str]:
    """Yield the macros that convert cycles to nanoseconds and back, exactly as `base.time.Clock` does.

    Args:
        start: Cycles of the first event.
        rate: Cycles per second.
    """
    second = NS_PER_S
    # Integer division of DuckDB rounds towards zero; two of them for each value are what a query of all events takes.
    seconds = f"(cycles::BIGINT // {rate})"
    part = f"(cycles::BIGINT - {seconds} * {rate})"
    rest = f"((ns::BIGINT % {second} + {second}) % {second})"
    yield (
        "CREATE OR REPLACE TEMP MACRO duration_ns(cycles) AS "
        f"{seconds} * {second} + ({part} * {second} - CASE WHEN {part} < 0 THEN {rate - 1} ELSE 0 END) // {rate}"
    )
    yield f"CREATE OR REPLACE TEMP MACRO time_ns(cycles) AS duration_ns(cycles - ({start}))"
    yield (
        "CREATE OR REPLACE TEMP MACRO cycles(ns) AS "
        f"({start}) + (ns::BIGINT - {rest}) // {second} * {rate} + ({rest} * {rate} + {second - 1}) // {second}"
    )


def _never() -> bool:
    return False


@contextmanager
def interrupted(connection: Any, time_s: float, cancelled: Callable[[], bool]) -> Iterator[None]:
    """Interrupt what a connection does in the block after a time, or when it is cancelled."""
    is_over, end_s = threading.Event(), time.monotonic() + time_s

    def watch() -> None:
        while not is_over.wait(min(_WATCH_S, max(end_s - time.monotonic(), 0.0))):
            if cancelled() or time.monotonic() >= end_s:
                connection.interrupt()
                # What was fetched before the next look goes on: look again.
                is_over.wait(_WATCH_S)

    watcher = threading.Thread(target=watch, name="satview sql", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def _fetched(connection: Any, query: str, limits: Limits) -> Result:
    """Return the rows, batch by batch, so that a result beyond the limit never is in memory as a whole."""
    pyarrow = required("pyarrow")
    relation = connection.sql(query)
    # Before 1.5 it was called otherwise.
    reader = (getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch)(_BATCH_ROWS)
    batches, size = [], 0
    for batch in reader:
        size += batch.nbytes
        if size > limits.memory_bytes:
            raise UsageError(f"the result has more than {limits.memory_bytes:,} bytes; add a LIMIT")
        batches.append(batch)
    return Result(_whole_numbers(pyarrow.Table.from_batches(batches, reader.schema)))


def _whole_numbers(found: pa.Table) -> pa.Table:
    """Return a result with sums, which DuckDB makes 128 bits wide, as 64-bit numbers where they fit."""
    pyarrow, compute = required("pyarrow"), required("pyarrow.compute")
    for position, field in enumerate(found.schema):
        if not (pyarrow.types.is_decimal128(field.type) and field.type.scale == 0):
            continue
        column = found.column(position)
        bounds: Sequence[Any] = tuple(compute.min_max(column).as_py().values())
        if None in bounds or -(2**63) <= bounds[0] <= bounds[1] < 2**63:
            found = found.set_column(position, field.name, column.cast(pyarrow.int64()))
    return found


def _first_lines(text: str) -> str:
    """Return what DuckDB says of a query, without the hints about its own interface."""
    if missing := _MISSING.match(text):
        return f"a table {missing[1][:40]!r} does not exist; {_remedy(missing[1])}"
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[:6])


def _remedy(name: str) -> str:
    """Return what to do about a table that does not exist: DuckDB would propose those of its own."""
    near = difflib.get_close_matches(name.lower(), (*SCHEMAS, *views()), 2, 0.7)
    proposed = f"is {' or '.join(near)} meant? " if near else ""
    return f"{proposed}`satview query --list` shows the tables, views and macros"
