"""One trace into a data set: what a worker does."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from satview.base.errors import SatviewError, one_line
from satview.base.installed import required
from satview.base.new_file import NewFile
from satview.export.table_files import write_parquet
from satview.export.tables import arrow_of
from satview.fleet.layout import RECORD, Dataset, Source, record_metadata
from satview.formats.registry import open_trace
from satview.store.trace import Trace

if TYPE_CHECKING:
    import pyarrow as pa

_ONE_TYPE: Final = {"uint16": "uint32"}  # rows of threads are as wide as each trace needs; a data set has one type


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one trace.

    Attributes:
        name: Of the trace.
        events: How many it has.
        costs_data: Problems of the file cost data.
        fault: Why it is not in the data set; empty = it is.
    """

    name: str
    events: int = 0
    costs_data: bool = False
    fault: str = ""


def export_one(source: Source, dataset: Dataset, tables: tuple[str, ...]) -> Done:
    """Write the tables of one trace; whatever is wrong with its file becomes the fault of the result."""
    try:
        return _exported(source, dataset, tables)
    except (SatviewError, OSError) as error:
        return Done(source.name, fault=" ".join(str(error).split()))
    except Exception as error:  # noqa: BLE001  -- one file must not end the export of hundreds
        return Done(source.name, fault=f"an error inside satview: {one_line(error)}")


def _exported(source: Source, dataset: Dataset, tables: tuple[str, ...]) -> Done:
    record = dataset.part(RECORD, source.name)
    record.unlink(missing_ok=True)
    trace = open_trace(source.path)
    for name in tables:
        _write(_one_type(arrow_of(trace, name)), dataset, name, source)
    _write(_record(trace, source, tables), dataset, RECORD, source)
    return Done(source.name, len(trace.events), trace.problems.cost_data)


def _write(found: pa.Table, dataset: Dataset, name: str, source: Source) -> None:
    path = dataset.part(name, source.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The record alone waits for the disk: a file beside it that a power cut damages is found when it is read.
    with NewFile(path, is_durable=name == RECORD) as file:
        write_parquet(found, file.stream)


def _one_type(found: pa.Table) -> pa.Table:
    pyarrow = required("pyarrow")
    for position, field in enumerate(found.schema):
        if str(field.type) in _ONE_TYPE:
            wide = pyarrow.type_for_alias(_ONE_TYPE[str(field.type)])
            found = found.set_column(position, field.name, found.column(position).cast(wide))
    return found


def _record(trace: Trace, source: Source, tables: tuple[str, ...]) -> pa.Table:
    """Return the row of the table `trace`, with what only many traces need."""
    pyarrow = required("pyarrow")
    found = _one_type(arrow_of(trace, RECORD))
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
        found = found.append_column(name, column)
    metadata = {**(found.schema.metadata or {}), **record_metadata(source, tables)}
    return found.replace_schema_metadata(metadata)
