"""Exports hundreds of traces into one data set, by several processes; traces that it has already are skipped."""

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
from satview.base.extras import required
from satview.base.new_file import NewFile
from satview.base.safe_text import csv_text
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.events.user_events import UserEvent
from satview.export.viewers.tables import arrow_of, write_parquet
from satview.fleet.layout import (
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
from satview.tables.arguments import kinds_of
from satview.tables.schema import SCHEMAS
from satview.tables.views import near_tables

if TYPE_CHECKING:
    import pyarrow as pa


# One trace into a data set: what a worker does.


_ONE_TYPE: Final = {"uint16": "uint32"}  # rows of threads are as wide as each trace needs; a data set has one type


@dataclass(frozen=True, slots=True)
class Done:
    """Result of exporting one trace.

    Attributes:
        name: Name of the trace.
        events: Number of its events.
        costs_data: Whether data was lost to problems in the file.
        fault: Why it is not in the data set; empty = it is.
        misfits: Which descriptions of events do not fit it.
    """

    name: str
    events: int = 0
    costs_data: bool = False
    fault: str = ""
    misfits: tuple[str, ...] = ()


def export_one(source: DatasetSource, dataset: Dataset, tables: tuple[str, ...]) -> Done:
    """Write the tables of one trace; an error in its file is returned as the fault of the result."""
    try:
        return _exported(source, dataset, tables)
    except (SatviewError, OSError) as error:
        return Done(source.name, fault=" ".join(str(error).split()))
    except Exception as error:  # noqa: BLE001  -- one file must not end the export of hundreds
        return Done(source.name, fault=f"an error inside satview: {one_line(error)}")


def _exported(source: DatasetSource, dataset: Dataset, tables: tuple[str, ...]) -> Done:
    record = dataset.part(RECORD, source.name)
    record.unlink(missing_ok=True)
    trace = open_trace(source.path)
    describe_events(trace, source.user_events)
    for name in tables:
        _write(_one_type(arrow_of(trace, name)), dataset, name, source)
    _write(_record(trace, source, tables), dataset, RECORD, source)
    return Done(source.name, len(trace.events), trace.problems.cost_data, misfits=tuple(misfits(trace)))


def _write(table: pa.Table, dataset: Dataset, name: str, source: DatasetSource) -> None:
    path = dataset.part(name, source.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The record alone waits for the disk: a file beside it that a power cut damages is found when it is read.
    with NewFile(path, is_durable=name == RECORD) as file:
        write_parquet(table, file.stream)


def _one_type(table: pa.Table) -> pa.Table:
    pyarrow = required("pyarrow")
    for position, column in enumerate(table.schema):
        if str(column.type) in _ONE_TYPE:
            wide = pyarrow.type_for_alias(_ONE_TYPE[str(column.type)])
            table = table.set_column(position, column.name, table.column(position).cast(wide))
    return table


def _record(trace: Trace, source: DatasetSource, tables: tuple[str, ...]) -> pa.Table:
    """Return the row of the table `trace`, with the columns that only a data set has."""
    pyarrow = required("pyarrow")
    table = _one_type(arrow_of(trace, RECORD))
    begin = trace.clock.wall_time(trace.window.start) if len(trace.events) else None
    more: dict[str, Any] = {
        "path": pyarrow.array([os.fsencode(source.path.resolve()).decode("utf-8", "replace")], pyarrow.string()),
        "begin": pyarrow.array([begin], pyarrow.timestamp("us", "UTC")),
        "node": pyarrow.array([trace.header.get("NODENAME") or ""], pyarrow.string()),
        "machine": pyarrow.array([trace.header.get("MACHINE") or ""], pyarrow.string()),
        "problems": pyarrow.array([sum(trace.problems.counts().values())], pyarrow.int64()),
        "costs_data": pyarrow.array([trace.problems.cost_data], pyarrow.bool_()),
    }
    for name, column in more.items():
        table = table.append_column(name, column)
    metadata = {**(table.schema.metadata or {}), **record_metadata(source, tables)}
    return table.replace_schema_metadata(metadata)


Report = Callable[[Done, int, int], None]


@dataclass(slots=True)
class Exported:
    """Result of an export.

    Attributes:
        dataset: Where it is.
        done: Traces that were written now.
        unchanged: How many were there already, unchanged.
        skipped: Traces that are not in it, each with its fault.
    """

    dataset: Dataset
    done: list[Done] = field(default_factory=list)
    unchanged: int = 0
    skipped: list[Done] = field(default_factory=list)

    def add(self, trace: Done) -> None:
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
    """Write the tables of all traces below a folder as one data set of Parquet; go on where an earlier run stopped.

    A trace whose file is as it was is left alone. Damaged files are skipped, and listed in `skipped.csv`.

    Args:
        folder: Where the traces are.
        out: Folder of the data set: a new one, or that of an earlier run.
        tables: Which tables; none = all but marks.
        jobs: How many processes run at once.
        patterns: Names of files to take, such as `*.txt`; none = `.kev`, compressed too.
        report: Called after each trace with what became of it, how many are done, and of how many.
        user_events: Descriptions of events of all traces; None = none.

    Raises:
        UsageError: There is no trace, no such table, the target is something else, or a package is missing.
    """
    todo = plan(folder, out, tables, patterns, user_events)
    exported = Exported(todo.dataset, unchanged=todo.unchanged)
    steps = _here(todo) if jobs <= 1 or len(todo.sources) <= 1 else _by_processes(todo, jobs)
    for number, trace in enumerate(steps, 1):
        exported.add(trace)
        if report is not None:
            report(trace, number, len(todo.sources))
    write_skipped(exported)
    return exported


@dataclass(frozen=True, slots=True)
class Plan:
    """The work that an export has to do.

    Attributes:
        dataset: Where.
        sources: The files that are not in it as they are now.
        unchanged: How many are.
        tables: Which tables.
    """

    dataset: Dataset
    sources: list[DatasetSource]
    unchanged: int
    tables: tuple[str, ...]


def plan(
    folder: Path | str,
    out: Path | str,
    tables: Sequence[str] = (),
    patterns: Sequence[str] = (),
    user_events: Mapping[int, UserEvent] | None = None,
) -> Plan:
    """Return the plan of an export, and make the folder of the data set.

    Raises:
        UsageError: As of `export_folder`.
    """
    required("pyarrow.parquet")
    names = tuple(name for name in (tables or DEFAULT_TABLES) if name != RECORD)
    of_kinds = set[str]() if set(names) <= set(SCHEMAS) else {
        kind for release in Release for kind in kinds_of(catalogue(release))
    }  # fmt: skip
    for name in names:
        if name not in SCHEMAS and name not in of_kinds:
            raise UsageError(f"there is no table {name[:40]!r}; {near_tables(name, of_kinds)}"
                             f"there are {', '.join(SCHEMAS)}, and those of kinds of events")  # fmt: skip
    sources = find_sources(folder, patterns, Path(out), user_events)
    dataset = begin_dataset(out)
    left = [source for source in sources if not dataset.has(source, names)]
    return Plan(dataset, left, len(sources) - len(left), names)


def write_skipped(exported: Exported) -> None:
    """Write the list of files that are not in the data set; delete it if there are none.

    Raises:
        WriteError: It cannot be written.
    """
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


def _here(todo: Plan) -> Iterator[Done]:
    for source in todo.sources:
        yield export_one(source, todo.dataset, todo.tables)


def _by_processes(todo: Plan, jobs: int) -> Iterator[Done]:
    """Yield the result of each trace; a file that crashes the process that reads it affects no other trace."""
    left = list(todo.sources)
    while left:
        running: dict[Future[Done], DatasetSource] = {}
        try:
            with safe_children(), _pool(min(jobs, len(left))) as pool:
                yield from _in_pool(pool, todo, left, running, jobs)
        except BrokenProcessPool:
            # One of those that ran; which one is not reported.
            for source in running.values():
                yield _alone(source, todo)


def _in_pool(
    pool: ProcessPoolExecutor,
    todo: Plan,
    left: list[DatasetSource],
    running: dict[Future[Done], DatasetSource],
    jobs: int,
) -> Iterator[Done]:
    while left or running:
        while left and len(running) < 2 * jobs:  # as many again wait, so that no process does
            source = left.pop()
            running[pool.submit(export_one, source, todo.dataset, todo.tables)] = source
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            outcome = future.result()
            del running[future]
            yield outcome


def _alone(source: DatasetSource, todo: Plan) -> Done:
    with safe_children(), _pool(1) as pool:
        try:
            return pool.submit(export_one, source, todo.dataset, todo.tables).result()
        except BrokenProcessPool:
            return Done(source.name, fault="the process that read it was ended, perhaps as memory ran out")


def _pool(jobs: int) -> ProcessPoolExecutor:
    # Not by fork: Arrow and Qt have threads.
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


# The same export as a bag of Dask, for clusters; the workers see the same folders, and have the extra `dask`.


def fleet_bag(todo: Plan) -> Any:
    """Return a bag whose items, once computed, are what became of each trace (`Done`).

    Args:
        todo: What is to be done, of `plan`.

    Raises:
        UsageError: Dask is not installed.
    """
    bag = required("dask.bag")
    return bag.from_sequence(todo.sources, partition_size=1).map(partial(_one, todo=todo))


def export_on_cluster(
    folder: Path | str,
    out: Path | str,
    address: Any,
    tables: Sequence[str] = (),
    patterns: Sequence[str] = (),
    user_events: Mapping[int, UserEvent] | None = None,
) -> Exported:
    """Write the traces below a folder as one data set, on a cluster of Dask; otherwise as `export_folder`.

    Args:
        folder: Where the traces are, on every worker.
        out: Folder of the data set, on every worker.
        address: Of the scheduler, such as `tcp://10.0.0.1:8786`, or a cluster object.
        tables: As of `export_folder`.
        patterns: The same.
        user_events: The same.

    Raises:
        UsageError: As of `export_folder`; or no scheduler answers.
    """
    distributed = required("distributed")
    todo = plan(Path(folder).resolve(), Path(out).resolve(), tables, patterns, user_events)
    exported = Exported(todo.dataset, unchanged=todo.unchanged)
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


def _one(source: DatasetSource, todo: Plan) -> Done:
    return export_one(source, todo.dataset, todo.tables)
