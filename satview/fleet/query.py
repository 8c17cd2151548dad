"""One query over all traces of a data set, by DuckDB: read-only, and without other files or the network."""

from __future__ import annotations

import glob
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from satview.base.errors import Cancelled, UsageError
from satview.base.time import NS_PER_S
from satview.fleet.layout import RECORD, Dataset, open_dataset
from satview.fleet.views import add_views, uses
from satview.tables.extras import required
from satview.tables.sql import Limits, Result, answered, interrupted, mentioned, quoted

# Only a query that names it pays for it: a comparison with the clock of its trace for each event.
_TIME_NS: Final = re.compile(r"\btime_ns\b|(?:^|[\s,.])\*|\bdescribe\b", re.IGNORECASE)


def query_dataset(
    path: Path | str, query: str, limits: Limits | None = None, cancelled: Callable[[], bool] | None = None
) -> Result:
    """Return the rows of a query over a data set; its tables and views have the column `trace`, the name of the trace.

    Args:
        path: Folder of the data set.
        query: One query that reads, in the SQL of DuckDB.
        limits: How much it may take; None = 60 s and 2 GiB.
        cancelled: Called now and then while it runs.

    Raises:
        UsageError: There is no data set, the query is faulty or went over a limit, or a package is missing.
        Cancelled: `cancelled()` returned True.
    """
    dataset, limits = open_dataset(path), limits or Limits()
    connection = _connected(dataset, limits)
    shown, found = uses(query)
    end_s = time.monotonic() + limits.time_s

    def check() -> None:
        if cancelled is not None and cancelled():
            raise Cancelled("the query was stopped")
        if time.monotonic() > end_s:
            raise UsageError(f"the query took longer than {limits.time_s:g} s and was stopped")

    def prepare() -> None:
        _add_tables(connection, dataset, shown)
        with interrupted(connection, limits.time_s, cancelled or (lambda: False)):
            add_views(connection, dataset, found, check)

    return answered(connection, shown, prepare, limits, cancelled)


def _connected(dataset: Dataset, limits: Limits) -> Any:
    connection = required("duckdb").connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "max_temp_directory_size": "0B",
            "memory_limit": f"{limits.memory_bytes}B",
            **({"threads": str(limits.threads)} if limits.threads else {}),
        }
    )
    folder = dataset.folder.as_posix()
    # As DuckDB compares them with patterns too, in which brackets and stars of the folder's name are escaped.
    connection.execute(f"SET allowed_directories = [{quoted(folder)}, {quoted(glob.escape(folder))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _add_tables(connection: Any, dataset: Dataset, query: str) -> None:
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
        connection.execute(f"CREATE VIEW {name} AS {shown}")
