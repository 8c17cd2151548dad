"""One query over all traces of a data set, by DuckDB: read-only, and without other files or the network."""

from __future__ import annotations

import glob
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from satview.base.time import NS_PER_S
from satview.fleet.layout import RECORD, Dataset, open_dataset
from satview.fleet.views import uses, view_statements
from satview.tables.question import Limits, Query, Question
from satview.tables.result import Result
from satview.tables.views import mentioned, quoted, with_list

# Only a query that names it pays for it: a comparison with the clock of its trace for each event.
_TIME_NS: Final = re.compile(r"\btime_ns\b|(?:^|[\s,.])\*|\bdescribe\b", re.IGNORECASE)
_TRACES: Final = f"SELECT trace, start_cycles, cycles_per_s FROM main.{RECORD} ORDER BY trace"  # noqa: S608  -- of ours
_LEAST_S: Final = 0.001


def query_dataset(
    path: Path | str,
    query: str,
    limits: Limits | None = None,
    cancelled: Callable[[], bool] | None = None,
    is_part_enough: bool = False,
) -> Result:
    """Return the rows of a query over a data set; its tables and views have the column `trace`, the name of the trace.

    Args:
        path: Folder of the data set.
        query: One query that reads, in the SQL of DuckDB.
        limits: How much it may take; None = the usual ones.
        cancelled: Called now and then while it runs.
        is_part_enough: Return the first rows of an answer that is too large; `Result.is_cut` says so.

    Raises:
        UsageError: There is no data set, the query is faulty or went over a limit, or a package is missing.
        Cancelled: `cancelled()` returned True.
    """
    dataset, limits = open_dataset(path), limits or Limits()
    shown, found = uses(with_list(query, dataset.tables))
    folder = dataset.folder.as_posix()
    # As DuckDB compares them with patterns too, in which brackets and stars of the folder's name are escaped.
    reading = Question(shown, tuple(_tables(dataset, shown)), folders=(folder, glob.escape(folder)))
    begin_s = time.monotonic()
    if found:
        traces = Query(replace(reading, query=_TRACES), limits, cancelled).answer().rows()
        views = tuple(view_statements(dataset, found, traces))
        reading = replace(reading, statements=(*reading.statements, *views))
        left_s = limits.time_s - (time.monotonic() - begin_s)
        limits = replace(limits, time_s=max(left_s, _LEAST_S))
    return Query(reading, limits, cancelled).answer(is_part_enough)


def _tables(dataset: Dataset, query: str) -> Iterator[str]:
    """Yield the statements that make the tables which a query mentions."""
    there = dataset.tables
    needs_ns = _TIME_NS.search(query) is not None
    for name in (RECORD, *(table for table in mentioned(query)[0] if table in there and table != RECORD)):
        rows = (f"read_parquet({quoted(dataset.pattern(name))}, hive_partitioning = true, "
                "hive_types = {'trace': VARCHAR})")  # fmt: skip
        shown = f"SELECT * FROM {rows}"  # noqa: S608  -- names of the schema, and a path in quotes
        if name == "event" and needs_ns:
            since = "(e.time_cycles - t.start_cycles)::HUGEINT"
            shown = (
                f"SELECT e.*, ({since} * {NS_PER_S} // t.cycles_per_s)::BIGINT AS time_ns FROM {rows} e "  # noqa: S608
                f"JOIN {RECORD} t USING (trace)"
            )
        yield f"CREATE VIEW {name} AS {shown}"
