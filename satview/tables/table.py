"""One table of a trace by name, as an answer: its columns in numpy, Arrow, pandas or Polars."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from satview.analysis.timing import Timing
from satview.answers.frames import Made, Partial, Texts
from satview.answers.table import Table, names_in_sql
from satview.base.errors import UsageError
from satview.store.trace import Trace
from satview.tables import builders
from satview.tables.arguments import kinds
from satview.tables.schema import SCHEMAS
from satview.tables.views import near_tables


def table(trace: Trace, name: str, timing: Mapping[str, Timing] | None = None) -> Table:
    """Return a table of a trace by name; its columns are made when first requested and cached with the trace.

    Args:
        trace: The trace.
        name: One of `SCHEMAS`, such as `state`; docs/tables.md describes them.
        timing: What a file of timing says, as of `analysis.timing.read_timing`, for the tables on activities.

    Raises:
        UsageError: There is no such table, or the timing does not fit the trace.
    """
    if name not in SCHEMAS:
        raise UsageError(f"there is no table {name[:40]!r}; {near_tables(name, kinds(trace))}"
                         f"there are {', '.join(SCHEMAS)}, and those of kinds of events")  # fmt: skip
    if (timed := SCHEMAS[name].timed) is not None:
        return timed(trace, timing or {})
    if (answer := SCHEMAS[name].answer) is not None:
        return answer(trace)
    build = builders.BUILDERS[name]
    return table_of(
        trace,
        name,
        build(trace) if name in builders.NOT_CACHED else trace.cached(f"tables.{name}", partial(_frozen, build=build)),
    )


def table_of(trace: Trace, name: str, columns: Made) -> Table:
    """Return a table from columns that have been computed.

    Args:
        trace: The trace.
        name: As of `table`.
        columns: Values by SQL column name, without the columns in nanoseconds.
    """
    question = SCHEMAS[name].question
    values = {column.name: columns[names_in_sql(column)[0]] for column in question.columns}
    return Table(question, trace, values, place="event" if "event" in values else "")


def _frozen(trace: Trace, build: builders.Builder) -> Made:
    columns = build(trace)
    for values in columns.values():
        assert not isinstance(values, Partial)  # such tables are too large to be cached
        (values.code if isinstance(values, Texts) else values).setflags(write=False)
    return columns
