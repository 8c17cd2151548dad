"""SQL over the tables of a trace, by DuckDB: read-only, without files and network, within limits of time and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from satview.analysis.thread_names import thread_of
from satview.analysis.timing import Timing
from satview.base.time import NS_PER_S
from satview.store.arguments import was_described
from satview.store.trace import Trace
from satview.tables.arguments import argument_chunks, argument_table, kind_rows, kinds
from satview.tables.query_process import owner_number
from satview.tables.question import Limits, Query, SqlQuestion
from satview.tables.result import Result
from satview.tables.schema import SCHEMAS, SqlColumn, TableSchema
from satview.tables.table import NOT_CACHED, table, table_of
from satview.tables.views import clock_macros, definition, mentioned, views, with_list, with_thread_rows

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_S: Final = 292 * 365 * 86_400  # longest time in nanoseconds of 64 bits
_TIMED: Final = frozenset(name for name, schema in SCHEMAS.items() if schema.timed is not None)
_WAS_TIMED: Final = "tables.was_timed"
_RATE_MAX: Final = (2**63 - 1) // NS_PER_S


def sql(
    trace: Trace,
    query: str,
    limits: Limits | None = None,
    cancelled: Callable[[], bool] | None = None,
    is_part_enough: bool = False,
    timing: Mapping[str, Timing] | None = None,
) -> Result:
    """Return the rows of a query over the tables, views and macros of a trace (docs/tables.md).

    The query runs in a separate process, which receives the tables that it uses. It has no access to files, the
    network, extensions, or the tables of other queries.

    Args:
        trace: The trace.
        query: One SELECT, WITH, VALUES, SHOW TABLES, DESCRIBE, SUMMARIZE or EXPLAIN.
        limits: Resource limits; None = the default ones.
        cancelled: Called repeatedly while the query runs.
        is_part_enough: Return only the first rows of an answer that is too large, with `Result.is_cut` set.
        timing: Content of a timing file, from `analysis.timing.read_timing`, for the tables about activities.

    Raises:
        UsageError: The query is faulty, is no such statement, or exceeds a limit; or a package is not installed.
        Cancelled: `cancelled()` returned True.
    """
    return start_query(trace, query, limits, cancelled, timing).answer(is_part_enough)


def start_query(
    trace: Trace,
    query: str,
    limits: Limits | None = None,
    cancelled: Callable[[], bool] | None = None,
    timing: Mapping[str, Timing] | None = None,
) -> Query:
    """Make the tables that a query uses, start the query, and return it while it runs; arguments as for `sql`.

    Raises:
        UsageError: See `sql`; some errors are raised only by `Query.answer`.
        Cancelled: See `sql`.
    """
    known = kinds(trace)
    query = with_thread_rows(with_list(query, SCHEMAS, kind_rows(trace)), partial(thread_of, trace))
    tables, needed = mentioned(query, known)
    is_plain = _fits_plain_numbers(trace)
    statements = (
        *clock_macros(trace.clock.start_cycles, trace.clock.cycles_per_s),
        *(_kind_view(name) if name in known else _table_view(SCHEMAS[name], is_plain) for name in tables),
        *(definition(views()[name]) for name in needed),
    )
    others = {"argument", *(name for name in tables if name in known)} if was_described(trace) else set[str]()
    if timing:
        trace.cached(_WAS_TIMED, lambda _: True)
    if trace.is_cached(_WAS_TIMED):  # the process may hold tables that were made with another timing file or none
        others |= _TIMED
    question = SqlQuestion(
        query, statements, tuple(tables), lambda name: _parts(trace, name, is_plain, timing),
        tuple(NOT_CACHED - {"argument"} | others),
        owner_number(trace), known=tuple(known),
    )  # fmt: skip
    return Query(question, limits or Limits(), cancelled)


def _parts(trace: Trace, name: str, is_plain: bool, timing: Mapping[str, Timing] | None) -> Iterator[pa.Table]:
    """Yield the rows of a table in one or more parts.

    Columns in nanoseconds are left out where they are SQL expressions, which cost only queries that use them.
    """
    if name not in SCHEMAS:
        yield argument_table(trace, name).arrow()
        return
    read = [column.name for column in SCHEMAS[name].columns if not (is_plain and column.cycles)]
    parts = (
        (table_of(trace, name, columns) for columns in argument_chunks(trace))
        if name == "argument"
        else (table(trace, name, timing),)
    )
    for part in parts:
        yield part.arrow(read)


def _kind_view(name: str) -> str:
    return f"CREATE TEMP VIEW {name} AS SELECT * FROM _{name}"  # noqa: S608  -- made of letters and digits


def _table_view(schema: TableSchema, is_plain: bool) -> str:
    shown = ", ".join(_shown(column) if is_plain and column.cycles else column.name for column in schema.columns)
    return f"CREATE TEMP VIEW {schema.name} AS SELECT {shown} FROM _{schema.name}"  # noqa: S608  -- names of the schema


def _shown(column: SqlColumn) -> str:
    return f"{'time_ns' if column.is_moment else 'duration_ns'}({column.cycles}) AS {column.name}"


def _fits_plain_numbers(trace: Trace) -> bool:
    """Return whether 64-bit arithmetic in SQL gives the results of `Clock.ns_array` for all times of the trace."""
    clock, window = trace.clock, trace.window
    furthest = max(abs(window.start - clock.start_cycles), abs(window.end - clock.start_cycles))
    return clock.cycles_per_s <= _RATE_MAX and furthest // clock.cycles_per_s < _LONGEST_S
