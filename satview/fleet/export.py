"""Hundreds of traces into one data set, by several processes; what is there already is left alone."""

from __future__ import annotations

import csv
import io
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

from satview.base.child import safe_children
from satview.base.errors import UsageError
from satview.base.installed import required
from satview.base.new_file import NewFile
from satview.base.safe_text import csv_text
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.fleet.layout import DEFAULT_TABLES, RECORD, SKIPPED, Dataset, Source, begin_dataset, find_sources
from satview.fleet.one import Done, export_one
from satview.tables.arguments import kinds_of
from satview.tables.schema import SCHEMAS
from satview.tables.views import near_tables

Report = Callable[[Done, int, int], None]


@dataclass(slots=True)
class Exported:
    """What an export did.

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

    def add(self, found: Done) -> None:
        """Take what became of one trace."""
        (self.skipped if found.fault else self.done).append(found)


def export_folder(
    folder: Path | str,
    out: Path | str,
    tables: Sequence[str] = (),
    jobs: int = 1,
    patterns: Sequence[str] = (),
    report: Report | None = None,
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

    Raises:
        UsageError: There is no trace, no such table, the target is something else, or a package is missing.
    """
    todo = plan(folder, out, tables, patterns)
    found = Exported(todo.dataset, unchanged=todo.unchanged)
    steps = _here(todo) if jobs <= 1 or len(todo.sources) <= 1 else _by_processes(todo, jobs)
    for number, each in enumerate(steps, 1):
        found.add(each)
        if report is not None:
            report(each, number, len(todo.sources))
    write_skipped(found)
    return found


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done.

    Attributes:
        dataset: Where.
        sources: The files that are not in it as they are now.
        unchanged: How many are.
        tables: Which tables.
    """

    dataset: Dataset
    sources: list[Source]
    unchanged: int
    tables: tuple[str, ...]


def plan(folder: Path | str, out: Path | str, tables: Sequence[str] = (), patterns: Sequence[str] = ()) -> Plan:
    """Return what an export has to do, and make the folder of the data set.

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
    sources = find_sources(folder, patterns, Path(out))
    dataset = begin_dataset(out)
    left = [source for source in sources if not dataset.has(source, names)]
    return Plan(dataset, left, len(sources) - len(left), names)


def write_skipped(found: Exported) -> None:
    """Write the list of files that are not in the data set; take it away if there are none.

    Raises:
        WriteError: It cannot be written.
    """
    path = found.dataset.folder / SKIPPED
    if not found.skipped:
        path.unlink(missing_ok=True)
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("trace", "fault"))
    writer.writerows((csv_text(each.name), csv_text(each.fault)) for each in found.skipped)
    with NewFile(path) as file:
        file.stream.write(text.getvalue().encode("utf-8", "replace"))


def _here(todo: Plan) -> Iterator[Done]:
    for source in todo.sources:
        yield export_one(source, todo.dataset, todo.tables)


def _by_processes(todo: Plan, jobs: int) -> Iterator[Done]:
    """Yield what became of each trace; a file that ends the process which reads it costs only itself."""
    left = list(todo.sources)
    while left:
        running: dict[Future[Done], Source] = {}
        try:
            with safe_children(), _pool(min(jobs, len(left))) as pool:
                yield from _in_pool(pool, todo, left, running, jobs)
        except BrokenProcessPool:
            # One of those that ran; which one is not reported.
            for source in running.values():
                yield _alone(source, todo)


def _in_pool(
    pool: ProcessPoolExecutor, todo: Plan, left: list[Source], running: dict[Future[Done], Source], jobs: int
) -> Iterator[Done]:
    while left or running:
        while left and len(running) < 2 * jobs:  # as many again wait, so that no process does
            source = left.pop()
            running[pool.submit(export_one, source, todo.dataset, todo.tables)] = source
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            found = future.result()
            del running[future]
            yield found


def _alone(source: Source, todo: Plan) -> Done:
    with safe_children(), _pool(1) as pool:
        try:
            return pool.submit(export_one, source, todo.dataset, todo.tables).result()
        except BrokenProcessPool:
            return Done(source.name, fault="the process that read it was ended, perhaps as memory ran out")


def _pool(jobs: int) -> ProcessPoolExecutor:
    # Not by fork: Arrow and Qt have threads.
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
