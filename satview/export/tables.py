"""Writes tables of a trace: one or several as files, events by class, and functions as stacks for flame graphs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import Timing
from satview.answers.functions import SEPARATOR, SOURCES, function_table
from satview.base.errors import UsageError
from satview.base.new_file import NewFile, new_folder
from satview.base.plugins import required
from satview.base.safe_text import csv_text, visible_line
from satview.base.time import TimeWindow
from satview.formats.registry import source_files
from satview.store.trace import Trace
from satview.tables.result import beyond_python, texts_of
from satview.tables.table import argument_columns, argument_table, kinds, table, table_of

if TYPE_CHECKING:
    import pyarrow as pa


# Tables of Arrow as files: Parquet, Arrow, CSV, JSON lines.


ROWS_AT_ONCE: Final = 1 << 20  # rows in a row group of Parquet, a batch of Arrow, a piece of text
_LEVEL: Final = 1  # of zstd compression: higher levels take longer and save a few percent
Report = Callable[[float], None]  # takes the share that is done, 0 to 1
Writer = Callable[..., None]  # takes a table of Arrow, a stream, and optionally a `Report`


def _parts(arrow: pa.Table, report: Report | None) -> Iterator[pa.Table]:
    """Yield a table in parts of `ROWS_AT_ONCE` rows, at least one part; call `report` after each part."""
    for start in range(0, max(arrow.num_rows, 1), ROWS_AT_ONCE):
        yield arrow.slice(start, ROWS_AT_ONCE)
        if report is not None:
            report(min(1.0, (start + ROWS_AT_ONCE) / max(arrow.num_rows, 1)))


def write_parquet(arrow: pa.Table, stream: BinaryIO, report: Report | None = None) -> None:
    """Write a table as Parquet: numbers are delta-encoded, texts dictionary-encoded, all compressed by zstd.

    Raises UsageError if Parquet has no such type as a column of an SQL query, such as a structure without members.
    """
    pyarrow, parquet = required("pyarrow"), required("pyarrow.parquet")
    numbers = [field.name for field in arrow.schema if _is_wide_number(field.type)]
    others = [field.name for field in arrow.schema if not _is_wide_number(field.type)]
    try:
        with parquet.ParquetWriter(
            stream,
            arrow.schema,
            compression="zstd",
            compression_level=_LEVEL,
            use_dictionary=others or False,
            column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED") or None,
            write_statistics=True,
        ) as writer:
            for part in _parts(arrow, report):
                writer.write_table(part, ROWS_AT_ONCE)
    except pyarrow.ArrowNotImplementedError as error:
        raise UsageError(f"not as Parquet: {error}") from error


def _is_wide_number(kind: Any) -> bool:
    types = required("pyarrow").types
    return bool(types.is_int64(kind) or types.is_uint32(kind) or types.is_int32(kind))


def write_arrow(arrow: pa.Table, stream: BinaryIO, report: Report | None = None) -> None:
    """Write a table as an Arrow file (Feather version 2), compressed by zstd."""
    ipc = required("pyarrow.ipc")
    with ipc.new_file(stream, arrow.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        for part in _parts(arrow, report):
            writer.write_table(part, ROWS_AT_ONCE)


def write_csv(arrow: pa.Table, stream: BinaryIO, report: Report | None = None) -> None:
    """Write a table as CSV: null is empty, lists are as in SQL, and texts cannot act as spreadsheet formulas."""
    csv = required("pyarrow.csv")
    safe = _with_texts(_flat(arrow), csv_text)
    options = csv.WriteOptions(include_header=True, quoting_style="needed")
    with csv.CSVWriter(stream, safe.schema, write_options=options) as writer:
        for part in _parts(safe, report):
            writer.write_table(part)


def write_json_lines(arrow: pa.Table, stream: BinaryIO, report: Report | None = None) -> None:
    """Write a table as JSON lines: one object for each row, including its null values."""
    duckdb, compute = required("duckdb"), required("pyarrow.compute")
    connection = duckdb.connect()  # converts millions of rows to text at once
    try:
        for part in _parts(arrow, report):
            connection.register("part", part)
            texts = connection.sql("SELECT to_json(part)::VARCHAR AS line FROM part")
            # The method has another name before DuckDB 1.5.
            read: Callable[[int], Iterable[Any]] = getattr(texts, "to_arrow_reader", None) or texts.fetch_record_batch
            for batch in read(ROWS_AT_ONCE):
                lines = compute.binary_join_element_wise(batch.column(0), "", "\n")
                stream.write(text_bytes(lines))
            connection.unregister("part")
    finally:
        connection.close()


def text_bytes(texts: Any) -> memoryview:
    """Return the concatenated bytes of the texts of an Arrow array, without copying."""
    compute = required("pyarrow.compute")
    offsets = texts.buffers()[1]
    width = 8 if str(texts.type).startswith("large") else 4
    start = texts.offset * width
    begin = int.from_bytes(memoryview(offsets)[start : start + width], "little")
    size = compute.sum(compute.binary_length(texts)).as_py() or 0
    return memoryview(texts.buffers()[2])[begin : begin + size] if size else memoryview(b"")


def _flat(arrow: pa.Table) -> pa.Table:
    """Convert columns that CSV cannot hold to text: lists, structs, maps, bytes, dates after the year 9999."""
    types = required("pyarrow").types
    for position, field in enumerate(arrow.schema):
        column = arrow.column(position)
        if types.is_nested(field.type) or types.is_binary(field.type) or beyond_python(column):
            arrow = arrow.set_column(position, field.name, texts_of(column))
    return arrow


def _with_texts(arrow: pa.Table, change: Callable[[str], str]) -> pa.Table:
    """Return a table with `change` applied to all texts, once for equal texts."""
    pyarrow = required("pyarrow")
    for position, field in enumerate(arrow.schema):
        if not (pyarrow.types.is_dictionary(field.type) or pyarrow.types.is_string(field.type)):
            continue
        column = arrow.column(position).combine_chunks()
        coded = column if pyarrow.types.is_dictionary(field.type) else column.dictionary_encode()
        for array in coded.chunks if hasattr(coded, "chunks") else [coded]:
            texts = pyarrow.array([None if text is None else change(text) for text in array.dictionary.to_pylist()],
                                  pyarrow.string())  # fmt: skip
            changed = texts.take(array.indices) if len(texts) else pyarrow.nulls(len(array), pyarrow.string())
            arrow = arrow.set_column(position, field.name, changed)
    return arrow


WRITERS: Final[dict[str, Writer]] = {
    "parquet": write_parquet,
    "arrow": write_arrow,
    "csv": write_csv,
    "jsonl": write_json_lines,
}


def writer_for(name: str) -> Writer:
    """Return the function that writes a format, named as the file extension; UsageError if there is none."""
    if name not in WRITERS:
        raise UsageError(f"{name[:20]!r} is not a format for tables; there are {', '.join(WRITERS)}")
    return WRITERS[name]


def write_table(
    trace: Trace, path: Path | str, name: str, kind: str, rows: NDArray[np.bool_] | None = None,
    report: Report | None = None, timing: Mapping[str, Timing] | None = None,
) -> int:  # fmt: skip
    """Write one table of a trace as a file, which replaces an old one once it is complete; return the number of rows.

    `path` may be `-`; `kind` is `parquet`, `arrow`, `csv` or `jsonl`; `rows` and `timing` are as for `arrow_of`;
    `report` gets the share of the rows that is written, 0 to 1. Raises UsageError if there is no such table or format,
    a package is missing, or the file cannot be written.
    """
    write = writer_for(kind)
    arrow = arrow_of(trace, name, rows, timing)
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        write(arrow, file.stream, report)
    return int(arrow.num_rows)


def write_folder(
    trace: Trace, path: Path | str, names: Sequence[str], kind: str, rows: NDArray[np.bool_] | None = None,
    report: Report | None = None, timing: Mapping[str, Timing] | None = None,
) -> dict[str, int]:  # fmt: skip
    """Write tables of a trace to a new folder (`state.parquet` and so on); return the number of rows by table.

    Arguments and errors are those of `write_table`, with several names; UsageError also if the path exists.
    """
    write, counts = writer_for(kind), dict[str, int]()
    with new_folder(path) as folder:
        for number, name in enumerate(names):
            arrow = arrow_of(trace, name, rows, timing)
            with NewFile(folder / f"{name}.{kind}") as file:
                write(arrow, file.stream)
            counts[name] = int(arrow.num_rows)
            if report is not None:
                report((number + 1) / len(names))
    return counts


def write_by_class(
    trace: Trace, path: Path | str, kind: str, rows: NDArray[np.bool_] | None = None, report: Report | None = None
) -> int:
    """Write the events of each class to a file of a new folder, `class=KER_CALL/event.parquet`; return their number.

    Programs that read data sets make a column `class` of the folder names.

    Raises:
        UsageError: As for `write_folder`.
    """
    write, count = writer_for(kind), 0
    arrow = arrow_of(trace, "event", rows).drop_columns(["class"])
    index = trace.catalogue.class_index_of_code.take(trace.events.code)
    index = index if rows is None else index[rows]
    with new_folder(path) as folder:
        for number in np.unique(index).tolist():
            part = arrow.take(required("pyarrow").array(np.flatnonzero(index == number)))
            home = folder / f"class={trace.catalogue.classes[number].name.replace(' ', '_')}"
            home.mkdir()
            with NewFile(home / f"event.{kind}") as file:
                write(part, file.stream)
            count += part.num_rows
            if report is not None:
                report(count / arrow.num_rows)
    return count


def arrow_of(
    trace: Trace, name: str, rows: NDArray[np.bool_] | None = None, timing: Mapping[str, Timing] | None = None
) -> pa.Table:
    """Return a table, or a kind of event such as `call_msg_sendv`, as Arrow, with the trace described as metadata.

    `rows` are the events, bool (events,), None = all, for `event`, `argument` and tables of a kind of event; `timing`
    is of a timing file, for the tables on activities. Raises UsageError if there is no such table, or the timing does
    not fit the trace.
    """
    arrow = _arrow_of(trace, name, rows, timing)
    for position, field in enumerate(arrow.schema):
        if required("pyarrow").types.is_dictionary(field.type):
            arrow = arrow.set_column(position, field.name, _with_used_texts(arrow.column(position).combine_chunks()))
    return arrow.replace_schema_metadata(_metadata(trace, name))


def _arrow_of(trace: Trace, name: str, rows: NDArray[np.bool_] | None, timing: Mapping[str, Timing] | None) -> pa.Table:
    selected = None if rows is None else np.flatnonzero(rows).astype(np.uint32)
    if name in kinds(trace):
        return argument_table(trace, name, selected).arrow()
    if name == "argument" and selected is not None:
        return table_of(trace, name, argument_columns(trace, selected)).arrow()
    columns = table(trace, name, timing).arrow()
    return columns if rows is None else columns.filter(required("pyarrow").array(rows))


def _with_used_texts(column: Any) -> Any:
    """Return a column of texts whose dictionary has only the texts that occur, so that Parquet uses it."""
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


# Writes the functions of a trace as stacks: folded lines for flame graph tools, or a file for speedscope.
#
# A folded line is `process;thread;outer;inner WEIGHT`. The weight of a logged call is the CPU time of its thread, in
# nanoseconds; that of a sampled stack is the number of samples. A speedscope file has both, in separate profiles.


_CALLS, _SAMPLES = SOURCES
_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def write_folded(trace: Trace, path: Path | str, window: TimeWindow | None) -> tuple[int, tuple[str, ...]]:
    """Write a line for each stack; return the number of lines, and notes on omitted data, such as samples beside calls.

    `path` may be `-`; `window` is as for `function_table`. Raises UsageError if the file cannot be written.
    """
    table = function_table(trace, window)
    rows = table.records()
    source = _CALLS if any(row["source"] == _CALLS for row in rows) else _SAMPLES
    lines = [f"{SEPARATOR.join(_frames(row))} {_weight(row)}" for row in rows if row["source"] == source]
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        file.stream.write("".join(f"{line}\n" for line in lines).encode())
    samples = sum(row["count"] for row in rows if row["source"] != source)
    unit = "samples of the profiler are left out: a folded file has one unit, here nanoseconds"
    return len(lines), (*table.missing, *([f"{samples:,} {unit}"] if samples else []))


def write_speedscope(trace: Trace, path: Path | str, window: TimeWindow | None) -> tuple[int, tuple[str, ...]]:
    """Write the stacks of each thread for speedscope; return the number of stacks, and notes on omitted data.

    `path` may be `-`; `window` is as for `function_table`.

    Raises:
        UsageError: The file cannot be written.
    """
    frames: dict[tuple[str, str], int] = {}
    profiles: dict[tuple[str, str], dict[str, Any]] = {}
    table = function_table(trace, window)
    rows, stack = table.records(), list[int]()
    for row in rows:  # a function is followed by the functions that it calls
        is_calls = row["source"] == _CALLS
        thread = visible_line(f"{row['process']} {row['thread']}")
        profile = profiles.setdefault((thread, row["source"]), {
            "type": "sampled", "name": f"{thread}, {row['source']}", "unit": "nanoseconds" if is_calls else "none",
            "startValue": 0, "endValue": 0, "samples": [], "weights": [],
        })  # fmt: skip
        frame = frames.setdefault((row["function"], row["place"]), len(frames))
        stack = [*stack[: row["depth"]], frame]
        profile["samples"].append(stack)
        profile["weights"].append(_weight(row))
        profile["endValue"] += _weight(row)
    document = {
        "$schema": _SCHEMA,
        "exporter": "satview",
        "name": trace.path.name,
        "shared": {"frames": list(_described(frames))},
        "profiles": list(profiles.values()),
    }
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        file.stream.write(json.dumps(document).encode())
    return len(rows), tuple(table.missing)


def _described(frames: dict[tuple[str, str], int]) -> Iterator[dict[str, str | int]]:
    for name, place in frames:
        file, _, line = place.rpartition(":")
        yield {"name": name, "file": file, "line": int(line)} if file else {"name": name}


def _frames(row: dict[str, Any]) -> list[str]:
    """Return the frames of a folded line, outermost first; none of them contains the separator."""
    outer = (visible_line(row[name]).replace(SEPARATOR, ":") for name in ("process", "thread"))
    return [*outer, *(visible_line(name) for name in row["stack"].split(SEPARATOR))]


def _weight(row: dict[str, Any]) -> int:
    return int(row["running_ns"] if row["source"] == _CALLS else row["count"])
