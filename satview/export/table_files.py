"""Tables of Arrow as files: Parquet, Arrow, CSV, JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from satview.base.errors import UsageError
from satview.base.installed import required
from satview.base.safe_text import csv_text
from satview.tables.result import beyond_python, texts_of

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE: Final = 1 << 20  # of a row group of Parquet, a batch of Arrow, a piece of text
_LEVEL: Final = 1  # of zstd: higher ones take longer and save a few percent
Report = Callable[[float], None]  # takes the share that is done, 0 to 1
Writer = Callable[..., None]  # takes a table of Arrow, a stream, and optionally a `Report`


def _parts(found: pa.Table, report: Report | None) -> Iterator[pa.Table]:
    """Yield a table in parts of `ROWS_AT_ONCE` rows, an empty one as one part; report after each."""
    for start in range(0, max(found.num_rows, 1), ROWS_AT_ONCE):
        yield found.slice(start, ROWS_AT_ONCE)
        if report is not None:
            report(min(1.0, (start + ROWS_AT_ONCE) / max(found.num_rows, 1)))


def write_parquet(found: pa.Table, stream: BinaryIO, report: Report | None = None) -> None:
    """Write a table as Parquet: times as differences, texts as numbers, all of it by zstd.

    Args:
        found: The table.
        stream: Takes the bytes.
        report: Called after each part of the rows.
    """
    parquet = required("pyarrow.parquet")
    numbers = [field.name for field in found.schema if _is_wide_number(field.type)]
    others = [field.name for field in found.schema if not _is_wide_number(field.type)]
    with parquet.ParquetWriter(
        stream,
        found.schema,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=others or False,
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED") or None,
        write_statistics=True,
    ) as writer:
        for part in _parts(found, report):
            writer.write_table(part, ROWS_AT_ONCE)


def _is_wide_number(kind: Any) -> bool:
    types = required("pyarrow").types
    return bool(types.is_int64(kind) or types.is_uint32(kind) or types.is_int32(kind))


def write_arrow(found: pa.Table, stream: BinaryIO, report: Report | None = None) -> None:
    """Write a table as a file of Arrow (Feather, version 2), compressed by zstd."""
    ipc = required("pyarrow.ipc")
    with ipc.new_file(stream, found.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        for part in _parts(found, report):
            writer.write_table(part, ROWS_AT_ONCE)


def write_csv(found: pa.Table, stream: BinaryIO, report: Report | None = None) -> None:
    """Write a table as CSV; null is empty, no text is a formula for a spreadsheet, and lists are as in SQL."""
    csv = required("pyarrow.csv")
    safe = _with_texts(_flat(found), csv_text)
    options = csv.WriteOptions(include_header=True, quoting_style="needed")
    with csv.CSVWriter(stream, safe.schema, write_options=options) as writer:
        for part in _parts(safe, report):
            writer.write_table(part)


def write_json_lines(found: pa.Table, stream: BinaryIO, report: Report | None = None) -> None:
    """Write a table as JSON, one object a line; columns that are null are in it."""
    duckdb, compute = required("duckdb"), required("pyarrow.compute")
    connection = duckdb.connect()  # makes text of millions of rows at once
    try:
        for part in _parts(found, report):
            connection.register("part", part)
            texts = connection.sql("SELECT to_json(part)::VARCHAR AS line FROM part")
            for batch in arrow_reader(texts):
                lines = compute.binary_join_element_wise(batch.column(0), "", "\n")
                stream.write(text_bytes(lines))
            connection.unregister("part")
    finally:
        connection.close()


def arrow_reader(relation: Any) -> Iterable[Any]:
    """Return the rows of a relation of DuckDB in batches."""
    # Before 1.5 it was called otherwise.
    read: Callable[[int], Iterable[Any]] = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
    return read(ROWS_AT_ONCE)


def text_bytes(texts: Any) -> memoryview:
    """Return the bytes of all texts of an Arrow array, one after the other, without copying."""
    compute = required("pyarrow.compute")
    offsets = texts.buffers()[1]
    width = 8 if str(texts.type).startswith("large") else 4
    first = texts.offset * width
    begin = int.from_bytes(memoryview(offsets)[first : first + width], "little")
    size = compute.sum(compute.binary_length(texts)).as_py() or 0
    return memoryview(texts.buffers()[2])[begin : begin + size] if size else memoryview(b"")


def _flat(found: pa.Table) -> pa.Table:
    """Return a table in which what CSV has no form for is text: lists, structs, maps, bytes, days beyond 9999."""
    types = required("pyarrow").types
    for position, field in enumerate(found.schema):
        column = found.column(position)
        if types.is_nested(field.type) or types.is_binary(field.type) or beyond_python(column):
            found = found.set_column(position, field.name, texts_of(column))
    return found


def _with_texts(found: pa.Table, change: Callable[[str], str]) -> pa.Table:
    """Return a table with its texts changed; of equal ones only one is looked at."""
    pyarrow = required("pyarrow")
    for position, field in enumerate(found.schema):
        if not (pyarrow.types.is_dictionary(field.type) or pyarrow.types.is_string(field.type)):
            continue
        column = found.column(position).combine_chunks()
        coded = column if pyarrow.types.is_dictionary(field.type) else column.dictionary_encode()
        for array in coded.chunks if hasattr(coded, "chunks") else [coded]:
            texts = pyarrow.array([None if text is None else change(text) for text in array.dictionary.to_pylist()],
                                  pyarrow.string())  # fmt: skip
            changed = texts.take(array.indices) if len(texts) else pyarrow.nulls(len(array), pyarrow.string())
            found = found.set_column(position, field.name, changed)
    return found


WRITERS: Final[dict[str, Writer]] = {
    "parquet": write_parquet,
    "arrow": write_arrow,
    "csv": write_csv,
    "jsonl": write_json_lines,
}


def writer_for(name: str) -> Writer:
    """Return the writer of a format by its name, which is its extension too.

    Raises:
        UsageError: There is none.
    """
    if name not in WRITERS:
        raise UsageError(f"{name[:20]!r} is no format of tables; there are {', '.join(WRITERS)}")
    return WRITERS[name]
