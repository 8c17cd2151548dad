"""The same export as a bag of Dask, for clusters; the workers see the same folders, and have the extra `dask`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from satview.base.errors import UsageError
from satview.base.installed import required
from satview.fleet.export import Exported, Plan, plan, write_skipped
from satview.fleet.layout import Source
from satview.fleet.one import Done, export_one


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
    folder: Path | str, out: Path | str, address: Any, tables: Sequence[str] = (), patterns: Sequence[str] = ()
) -> Exported:
    """Write the traces below a folder as one data set, on a cluster of Dask; otherwise as `export_folder`.

    Args:
        folder: Where the traces are, on every worker.
        out: Folder of the data set, on every worker.
        address: Of the scheduler, such as `tcp://10.0.0.1:8786`, or a cluster object.
        tables: As of `export_folder`.
        patterns: The same.

    Raises:
        UsageError: As of `export_folder`; or no scheduler answers.
    """
    distributed = required("distributed")
    todo = plan(Path(folder).resolve(), Path(out).resolve(), tables, patterns)
    found = Exported(todo.dataset, unchanged=todo.unchanged)
    if todo.sources:
        try:
            client = distributed.Client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise UsageError(f"no scheduler of Dask answers at {address}: {error}") from error
        with client:
            for each in client.compute(fleet_bag(todo)).result():
                found.add(each)
    write_skipped(found)
    return found


def _one(source: Source, todo: Plan) -> Done:
    return export_one(source, todo.dataset, todo.tables)
