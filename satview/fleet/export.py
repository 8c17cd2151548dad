"""Exports many traces into one data set with several processes; traces that were exported before are skipped."""

from __future__ import annotations

import csv
import io
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satview.base.child import safe_children
from satview.base.errors import SatviewError, UsageError, one_line
from satview.base.new_file import NewFile
from satview.base.plugins import required
from satview.base.safe_text import csv_text
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.user_events import UserEvent
from satview.export.tables import arrow_of, write_parquet
from satview.fleet.query import (
    DEFAULT_TABLES,
    RECORD,
    SKIPPED,
    Dataset,
    DatasetSource,
    begin_dataset,
    find_sources,
    record_metadata,
)
from satview.formats.registry import open_trace
from satview.store.arguments import describe_events, misfits
from satview.store.trace import Trace
from satview.tables.schema import SCHEMAS, unknown_table
from satview.tables.table import kinds_of, why_empty

if TYPE_CHECKING:
    import pyarrow as pa


# Export of one trace, as a worker process does it.


_WIDENED: Final = {"uint16": "uint32"}  # thread rows have the smallest type that fits a trace; a data set has one type


@dataclass(frozen=True, slots=True)
class TraceResult:
    """Result of exporting one trace.

    Attributes:
        events: Number of its events.
        costs_data: Whether data was lost to problems in the file.
        fault: Error that prevented the export of the trace; empty = the trace was exported.
        misfits: Messages about descriptions of events that do not fit the trace.
    """

    name: str
    events: int = 0
    costs_data: bool = False
    fault: str = ""
    misfits: tuple[str, ...] = ()


def export_one(source: DatasetSource, dataset: Dataset, tables: tuple[str, ...]) -> TraceResult:
    """Write the tables of one trace; any error is returned as the fault of the result."""
    try:
        return _exported(source, dataset, tables)
    except (SatviewError, OSError) as error:
        return TraceResult(source.name, fault=" ".join(str(error).split()))
    except Exception as error:  # noqa: BLE001  -- one bad file must not end the export of hundreds
        return TraceResult(source.name, fault=f"an error inside satview: {one_line(error)}")


def _exported(source: DatasetSource, dataset: Dataset, tables: tuple[str, ...]) -> TraceResult:
    record = dataset.part(RECORD, source.name)
    record.unlink(missing_ok=True)
    trace = open_trace(source.path)
    describe_events(trace, source.user_events)
    lacks = list[str]()
    for name in tables:
        rows = arrow_of(trace, name)
        if not len(rows):
            lacks += why_empty(trace, name)
        _write(_widened(rows), dataset, name, source)
    _write(_record(trace, source, tables, lacks), dataset, RECORD, source)
    return TraceResult(source.name, len(trace.events), trace.problems.cost_data, misfits=tuple(misfits(trace)))


def _write(table: pa.Table, dataset: Dataset, name: str, source: DatasetSource) -> None:
    path = dataset.part(name, source.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Only the record is flushed to the disk: a table that a power cut damages is noticed when it is read.
    with NewFile(path, is_durable=name == RECORD) as file:
        write_parquet(table, file.stream)


def _widened(table: pa.Table) -> pa.Table:
    pyarrow = required("pyarrow")
    for position, column in enumerate(table.schema):
        if str(column.type) in _WIDENED:
            wide = pyarrow.type_for_alias(_WIDENED[str(column.type)])
            table = table.set_column(position, column.name, table.column(position).cast(wide))
    return table


def _record(trace: Trace, source: DatasetSource, tables: tuple[str, ...], lacks: Sequence[str]) -> pa.Table:
    """Return the row of table `trace` for one trace, with the columns that only a data set has, such as its path."""
    pyarrow = required("pyarrow")
    record = _widened(arrow_of(trace, RECORD))
    begin = trace.clock.wall_time(trace.window.start) if len(trace.events) else None
    more: dict[str, Any] = {
        "path": pyarrow.array([os.fsencode(source.path.resolve()).decode("utf-8", "replace")], pyarrow.string()),
        "begin": pyarrow.array([begin], pyarrow.timestamp("us", "UTC")),
        "node": pyarrow.array([trace.header.get("NODENAME") or ""], pyarrow.string()),
        "machine": pyarrow.array([trace.header.get("MACHINE") or ""], pyarrow.string()),
        "problems": pyarrow.array([sum(trace.problems.counts().values())], pyarrow.int64()),
        "costs_data": pyarrow.array([trace.problems.cost_data], pyarrow.bool_()),
        "cannot_show": pyarrow.array(["\n".join(lacks)], pyarrow.string()),
    }
    for name, column in more.items():
        record = record.append_column(name, column)
    metadata = {**(record.schema.metadata or {}), **record_metadata(source, tables)}
    return record.replace_schema_metadata(metadata)


Report = Callable[[TraceResult, int, int], None]


@dataclass(slots=True)
class Exported:
    """Result of an export.

    Attributes:
        done: Traces that this export wrote.
        unchanged: Number of traces that an earlier export wrote and that have not changed.
        skipped: Traces that could not be exported, each with its fault.
        gone: Names of traces of the data set whose files no longer exist; their tables stay.
    """

    dataset: Dataset
    done: list[TraceResult] = field(default_factory=list)
    unchanged: int = 0
    gone: tuple[str, ...] = ()
    skipped: list[TraceResult] = field(default_factory=list)

    def add(self, trace: TraceResult) -> None:
        """Add one trace to `done`, or to `skipped` if it has a fault."""
        (self.skipped if trace.fault else self.done).append(trace)


def export_folder(
    folder: Path | str,
    out: Path | str,
    tables: Sequence[str] = (),
    jobs: int = 1,
    patterns: Sequence[str] = (),
    report: Report | None = None,
    user_events: Mapping[int, UserEvent] | None = None,
) -> Exported:
    """Write the tables of all traces below a folder into one Parquet data set, or update that data set.

    Traces that have not changed since an earlier export are not written again. Files that cannot be read are skipped,
    and listed in `skipped.csv`.

    Args:
        folder: Folder of the traces.
        out: Folder of the data set: a new folder, or that of an earlier export.
        tables: Names of the tables to write; none = `DEFAULT_TABLES`.
        jobs: Number of processes.
        patterns: Patterns of file names, such as `*.txt`; none = `TRACE_PATTERNS`.
        report: Called after each trace with its result, the number of traces done, and the total.
        user_events: Descriptions of events of all traces; None = none.

    Raises:
        UsageError: There are no traces, a table does not exist, `out` is not a data set, or a package is missing.
        WriteError: The data set cannot be created, or `skipped.csv` cannot be written.
    """
    todo = plan(folder, out, tables, patterns, user_events)
    exported = Exported(todo.dataset, unchanged=todo.unchanged, gone=todo.gone)
    steps = _in_this_process(todo) if jobs <= 1 or len(todo.sources) <= 1 else _by_processes(todo, jobs)
    for number, trace in enumerate(steps, 1):
        exported.add(trace)
        if report is not None:
            report(trace, number, len(todo.sources))
    write_skipped(exported)
    return exported


@dataclass(frozen=True, slots=True)
class Plan:
    """The work of an export: new or changed files, and names of traces of the data set whose files are gone."""

    dataset: Dataset
    sources: list[DatasetSource]
    unchanged: int
    tables: tuple[str, ...]
    gone: tuple[str, ...] = ()


def plan(
    folder: Path | str,
    out: Path | str,
    tables: Sequence[str] = (),
    patterns: Sequence[str] = (),
    user_events: Mapping[int, UserEvent] | None = None,
) -> Plan:
    """Return the plan of an export, and create the folder of the data set; arguments as for `export_folder`.

    Raises:
        UsageError: See `export_folder`.
    """
    required("pyarrow.parquet")
    names = tuple(name for name in (tables or DEFAULT_TABLES) if name != RECORD)
    of_kinds = set[str]() if set(names) <= set(SCHEMAS) else {
        kind for release in Release for kind in kinds_of(catalogue(release))
    }  # fmt: skip
    for name in names:
        if name not in SCHEMAS and name not in of_kinds:
            raise UsageError(unknown_table(name, of_kinds))
    sources = find_sources(folder, patterns, Path(out), user_events)
    dataset = begin_dataset(out)
    left = [source for source in sources if not dataset.has(source, names)]
    return Plan(dataset, left, len(sources) - len(left), names, tuple(dataset.gone(sources)))


def write_skipped(exported: Exported) -> None:
    """Write `skipped.csv`, or delete it if no trace was skipped; WriteError if it cannot be written."""
    path = exported.dataset.folder / SKIPPED
    if not exported.skipped:
        path.unlink(missing_ok=True)
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("trace", "fault"))
    writer.writerows((csv_text(trace.name), csv_text(trace.fault)) for trace in exported.skipped)
    with NewFile(path) as file:
        file.stream.write(text.getvalue().encode("utf-8", "replace"))


def _in_this_process(todo: Plan) -> Iterator[TraceResult]:
    for source in todo.sources:
        yield export_one(source, todo.dataset, todo.tables)


def _by_processes(todo: Plan, jobs: int) -> Iterator[TraceResult]:
    """Export traces by worker processes; yield each result. A file that crashes its worker affects no other."""
    left = list(todo.sources)
    while left:
        running: dict[Future[TraceResult], DatasetSource] = {}
        try:
            with safe_children(), _pool(min(jobs, len(left))) as pool:
                yield from _in_pool(pool, todo, left, running, jobs)
        except BrokenProcessPool:
            # The crash does not say which trace caused it, so each running trace is tried in a process of its own.
            for source in running.values():
                yield _in_own_process(source, todo)


def _in_pool(
    pool: ProcessPoolExecutor,
    todo: Plan,
    left: list[DatasetSource],
    running: dict[Future[TraceResult], DatasetSource],
    jobs: int,
) -> Iterator[TraceResult]:
    while left or running:
        while left and len(running) < 2 * jobs:  # a queued trace per process, so that no process idles
            source = left.pop()
            running[pool.submit(export_one, source, todo.dataset, todo.tables)] = source
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            outcome = future.result()
            del running[future]
            yield outcome


def _in_own_process(source: DatasetSource, todo: Plan) -> TraceResult:
    with safe_children(), _pool(1) as pool:
        try:
            return pool.submit(export_one, source, todo.dataset, todo.tables).result()
        except BrokenProcessPool:
            return TraceResult(source.name, fault="the process that read it was ended, perhaps as memory ran out")


def _pool(jobs: int) -> ProcessPoolExecutor:
    # Spawn instead of fork, as Arrow and Qt run threads.
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


# The same export on a Dask cluster. Its workers need the same folders and the extra `dask`.


def fleet_bag(todo: Plan) -> Any:
    """Return a Dask bag whose computation exports the traces of a `plan`; its items are then their `TraceResult`.

    Raises UsageError if Dask is not installed.
    """
    bag = required("dask.bag")
    export = partial(export_one, dataset=todo.dataset, tables=todo.tables)
    return bag.from_sequence(todo.sources, partition_size=1).map(export)


def export_on_cluster(
    folder: Path | str,
    out: Path | str,
    address: Any,
    tables: Sequence[str] = (),
    patterns: Sequence[str] = (),
    user_events: Mapping[int, UserEvent] | None = None,
) -> Exported:
    """Do the work of `export_folder` on a Dask cluster; the other arguments and the errors are the same.

    Both folders must have the same path on every worker. `address` is the address of the scheduler, such as
    `tcp://10.0.0.1:8786`, or a cluster object; UsageError also if no scheduler answers.
    """
    distributed = required("distributed")
    todo = plan(Path(folder).resolve(), Path(out).resolve(), tables, patterns, user_events)
    exported = Exported(todo.dataset, unchanged=todo.unchanged, gone=todo.gone)
    if todo.sources:
        try:
            client = distributed.Client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise UsageError(f"no scheduler of Dask answers at {address}: {error}") from error
        with client:
            for trace in client.compute(fleet_bag(todo)).result():
                exported.add(trace)
    write_skipped(exported)
    return exported
