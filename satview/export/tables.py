"""Tables of a trace in files: one table in a file, or several, or the events by class, in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from satview.base.installed import required
from satview.base.new_file import NewFile, new_folder
from satview.export.table_files import Report, writer_for
from satview.formats.registry import source_files
from satview.store.trace import Trace
from satview.tables.arguments import argument_made, argument_table, kinds
from satview.tables.schema import SCHEMAS
from satview.tables.table import Table, table

if TYPE_CHECKING:
    import pyarrow as pa


def write_table(
    trace: Trace, path: Path | str, name: str, kind: str, rows: NDArray[np.bool_] | None = None,
    report: Report | None = None,
) -> int:  # fmt: skip
    """Write one table of a trace as a file.

    Args:
        trace: The trace.
        path: The new file, or `-`; an old file is replaced once the new one is complete.
        name: Of the table.
        kind: `parquet`, `arrow`, `csv` or `jsonl`.
        rows: As of `arrow_of`.
        report: Called with the share of the rows that is written, 0 to 1.

    Returns:
        How many rows.

    Raises:
        UsageError: There is no such table or format, a package is missing, or the file cannot be written.
    """
    write = writer_for(kind)
    found = arrow_of(trace, name, rows)
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        write(found, file.stream, report)
    return int(found.num_rows)


def write_folder(
    trace: Trace, path: Path | str, names: Sequence[str], kind: str, rows: NDArray[np.bool_] | None = None,
    report: Report | None = None,
) -> int:  # fmt: skip
    """Write tables of a trace as files of a new folder, `state.parquet` and so on; return how many rows in all.

    Arguments are those of `write_table`, for several names.

    Raises:
        UsageError: As `write_table`; or there is something of that name already.
    """
    write, count = writer_for(kind), 0
    with new_folder(path) as folder:
        for number, name in enumerate(names):
            found = arrow_of(trace, name, rows)
            with NewFile(folder / f"{name}.{kind}") as file:
                write(found, file.stream)
            count += found.num_rows
            if report is not None:
                report((number + 1) / len(names))
    return count


def write_by_class(
    trace: Trace, path: Path | str, kind: str, rows: NDArray[np.bool_] | None = None, report: Report | None = None
) -> int:
    """Write the events of a trace as files of a new folder, one per class: `class=KER_CALL/event.parquet`.

    Programs that read data sets take the names of the folders for a column.

    Raises:
        UsageError: As `write_folder`.
    """
    write, count = writer_for(kind), 0
    found = arrow_of(trace, "event", rows).drop_columns(["class"])
    index = trace.catalogue.class_index_of_code.take(trace.events.code)
    index = index if rows is None else index[rows]
    with new_folder(path) as folder:
        for number in np.unique(index).tolist():
            part = found.take(required("pyarrow").array(np.flatnonzero(index == number)))
            home = folder / f"class={trace.catalogue.classes[number].name.replace(' ', '_')}"
            home.mkdir()
            with NewFile(home / f"event.{kind}") as file:
                write(part, file.stream)
            count += part.num_rows
            if report is not None:
                report(count / found.num_rows)
    return count


def arrow_of(trace: Trace, name: str, rows: NDArray[np.bool_] | None = None) -> pa.Table:
    """Return a table ready to be written, with what the trace is as metadata of its schema.

    Args:
        trace: The trace.
        name: Of the table, or of a kind of event such as `call_msg_sendv`.
        rows: bool (events,), of which events; None = all. For tables of events: `event`, `argument` and kinds.

    Raises:
        UsageError: There is no such table.
    """
    found = _arrow_of(trace, name, rows)
    for position, field in enumerate(found.schema):
        if required("pyarrow").types.is_dictionary(field.type):
            found = found.set_column(position, field.name, _with_used_texts(found.column(position).combine_chunks()))
    return found.replace_schema_metadata(_metadata(trace, name))


def _arrow_of(trace: Trace, name: str, rows: NDArray[np.bool_] | None) -> pa.Table:
    selected = None if rows is None else np.flatnonzero(rows).astype(np.uint32)
    if name in kinds(trace):
        return argument_table(trace, name, selected).arrow()
    if name == "argument" and selected is not None:
        return Table(trace, SCHEMAS[name], argument_made(trace, selected)).arrow()
    found = table(trace, name).arrow()
    return found if rows is None else found.filter(required("pyarrow").array(rows))


def _with_used_texts(column: Any) -> Any:
    """Return a column of texts that knows only the texts that are in it, each once.

    The names of all codes are many, and a kernel call's entry and exit share one; Parquet would give up on that.
    """
    pyarrow = required("pyarrow")
    column = column.chunk(0) if hasattr(column, "chunks") else column
    index, is_null = column.indices.fill_null(0).to_numpy(zero_copy_only=False), column.is_null()
    used = np.flatnonzero(np.bincount(index, minlength=len(column.dictionary)))
    texts = column.dictionary.take(pyarrow.array(used)).dictionary_encode()
    number = np.zeros(max(len(column.dictionary), 1), np.uint32)
    number[used] = texts.indices.to_numpy()
    narrow = np.uint8 if len(texts.dictionary) < 1 << 8 else np.uint32
    codes = pyarrow.array(number.astype(narrow)[index], mask=is_null.to_numpy(zero_copy_only=False))
    return pyarrow.DictionaryArray.from_arrays(codes, texts.dictionary, safe=False)


def _metadata(trace: Trace, name: str) -> dict[str, str]:
    clock = trace.clock
    reported: dict[str, Any] = {
        "table": name,
        "file": trace.path.name,
        "release": trace.release,
        "cycles_per_s": clock.cycles_per_s,
        "start_cycles": clock.start_cycles,
        "boot_time_s": "" if clock.boot_time_s is None else clock.boot_time_s,
    }
    return {f"satview.{key}": str(value).encode("utf-8", "replace").decode() for key, value in reported.items()}
