"""The process that runs queries with DuckDB: tables come in through standard input, answers go to standard output.

`satview.tables.sql` starts the process. It has no network access, cannot write files, and its memory and
time are limited. It ends when its standard input is closed, even during a query, as a separate thread reads the input.

A message in either direction is a letter, eight bytes of length, and the data: `J` is JSON, `A` an Arrow stream. For
each request (JSON) the process first names the tables that it lacks (JSON). The other side sends these, each as Arrow
streams followed by its name (JSON). The answer is the rows (Arrow streams), then JSON about how the query ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Final, NoReturn, cast

from satview.base.errors import UsageError
from satview.base.plugins import required

JSON: Final = b"J"
ARROW: Final = b"A"
_LENGTH_BYTES: Final = 8
_BATCH_ROWS: Final = 1 << 15
_TEXT_MOST: Final = 20_000  # characters of an error message of DuckDB
_CPU_GRACE_S: Final = 5  # added to the limit of processor time, so that the parent's limit of elapsed time comes first
_OWN_BYTES: Final = 128 << 20  # address space for Python and Arrow, in addition to that of DuckDB
# Types that Arrow, Python, CSV and Parquet all have. Values of types not made of these become text.
_COMMON: Final = frozenset(
    ("boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "hugeint",
     "float", "double", "decimal", "varchar", "blob", "date", "time", "timestamp", "timestamp_s", "timestamp_ms",
     "timestamp_ns", "timestamp with time zone")
)  # fmt: skip
_Message = tuple[bytes, bytes]


def send(stream: BinaryIO, kind: bytes, data: Any) -> None:
    """Write a message; `data` is a value to encode for JSON, and a bytes-like object for Arrow."""
    payload = memoryview(json.dumps(data).encode() if kind == JSON else data)
    stream.write(kind + payload.nbytes.to_bytes(_LENGTH_BYTES, "little"))
    stream.write(payload)


def receive(stream: BinaryIO) -> _Message:
    """Return the next message: its kind and bytes; EOFError if the other side has ended."""
    head = stream.read(1 + _LENGTH_BYTES)
    size = int.from_bytes(head[1:], "little")
    payload = stream.read(size) if len(head) == 1 + _LENGTH_BYTES else b""
    if len(head) != 1 + _LENGTH_BYTES or len(payload) != size:
        raise EOFError
    return head[:1], payload


def arrow_bytes(rows: Any) -> Any:
    """Return an Arrow batch or table as the bytes of an Arrow stream."""
    pyarrow = required("pyarrow")
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return sink.getvalue()


def arrow_rows(payload: bytes) -> Any:
    """Return the Arrow table in the bytes of an Arrow stream, without copying them."""
    return required("pyarrow").ipc.open_stream(payload).read_all()


def serve() -> NoReturn:
    """Answer requests until standard input ends."""
    with contextlib.suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl+C in a terminal, the parent ends this process
    answers = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    with open(os.devnull, "wb") as devnull:  # noqa: PTH123  -- output of libraries must not mix with messages
        os.dup2(devnull.fileno(), 1)
    inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, inbox), daemon=True).start()
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_FSIZE", 0)
    try:
        # Both import these packages if present, which are not needed here and take three times as long to import.
        for unused in ("numpy", "pandas", "polars"):
            sys.modules[unused] = cast("ModuleType", None)
        required("pyarrow.ipc"), required("duckdb")
    except UsageError as error:
        while True:
            inbox.get()
            send(answers, JSON, {"error": "usage", "text": str(error)})
            answers.flush()
    child = _Child(inbox.get, answers)
    while True:
        child.answer()


def _read(stream: BinaryIO, inbox: queue.SimpleQueue[_Message]) -> None:
    """Put all messages into the inbox; end the process when standard input is closed, even during a query."""
    try:
        while True:
            inbox.put(receive(stream))
    except BaseException:  # noqa: BLE001  -- the parent is gone, or this process has no memory left to read on
        os._exit(0)


def _limit(name: str, value: int) -> None:
    """Set a resource limit of this process, where the system has such limits (Windows does not)."""
    try:
        import resource
    except ImportError:
        return
    number = getattr(resource, name, None)
    with contextlib.suppress(ValueError, OSError):
        if number is not None:
            hard = resource.getrlimit(number)[1]
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (most, hard))


def _address_bytes() -> int:
    """Return the size of the address space of this process; 0 if it is not known."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class _Child:
    """The state of the process: a database, and the tables of the trace that was queried last."""

    def __init__(self, next_message: Callable[[], _Message], answers: BinaryIO) -> None:
        self._next, self._answers = next_message, answers
        self._key: object = None
        self._database: Any = None
        self._owner: object = None
        self._tables: dict[str, Any] = {}
        self._begin_bytes = 0

    def answer(self) -> None:
        """Wait for one request and send the answer."""
        kind, payload = self._next()
        assert kind == JSON
        request = json.loads(payload)
        if request["owner"] != self._owner:
            self._tables.clear()
            self._owner = request["owner"]
        if "query" not in request:  # the trace was closed
            return
        duckdb = required("duckdb")
        connection = None
        try:
            connection = self._connection(request)
            _refuse_other(duckdb, connection, request["query"])
            self._receive_tables(request)
            end = self._run(connection, request)
        except UsageError as error:
            end = {"error": "usage", "text": str(error)}
        except MemoryError:
            end = {"error": "memory", "text": ""}
        except duckdb.OutOfMemoryException as error:
            end = {"error": "memory", "text": str(error)[:_TEXT_MOST]}
        except (duckdb.InternalException, duckdb.FatalException) as error:
            end = {"error": "fatal", "text": str(error)[:_TEXT_MOST]}
        except (duckdb.Error, UnicodeError, OverflowError) as error:
            end = {"error": "duckdb", "text": str(error)[:_TEXT_MOST]}
        except Exception as error:  # noqa: BLE001  -- errors of Arrow have many types; the parent ends this process
            end = {"error": "memory" if "Out of Memory" in str(error) else "fatal", "text": str(error)[:_TEXT_MOST]}
        finally:
            if connection is not None:
                connection.close()
        own_bytes = self._begin_bytes + sum(table.nbytes for table in self._tables.values())
        # Memory that allocators keep after a large query would be missing in the address space of the next one.
        end["is_worn"] = _address_bytes() > own_bytes + request["memory_bytes"] // 2
        self._send(JSON, end)
        self._answers.flush()

    def _send(self, kind: bytes, data: Any) -> None:
        try:
            send(self._answers, kind, data)
        except OSError:  # the parent is gone
            os._exit(0)

    def _connection(self, request: dict[str, Any]) -> Any:
        """Return a new connection; the database takes 20 ms to open and is reused unless the request has folders."""
        for name in ("RLIMIT_AS", "RLIMIT_CPU"):  # lift the limits of the previous query
            _limit(name, (1 << 63) - 1)
        folders = request["folders"]
        key = request["memory_bytes"], request["threads"]
        if folders or key != self._key:
            self._database = _database(*key, folders)
            self._key = None if folders else key
            self._begin_bytes = _address_bytes()
        return self._database.cursor()

    def _receive_tables(self, request: dict[str, Any]) -> None:
        """Request the tables that the process lacks, and receive them."""
        for name in request["changing"]:
            self._tables.pop(name, None)
        missing = [name for name in request["tables"] if name not in self._tables]
        self._send(JSON, {"missing": missing})
        self._answers.flush()
        parts: list[Any] = []
        for _ in range(len(missing)):
            while (message := self._next())[0] == ARROW:
                parts.append(arrow_rows(message[1]))
            self._tables[json.loads(message[1])] = required("pyarrow").concat_tables(parts)
            parts = []

    def _run(self, connection: Any, request: dict[str, Any]) -> dict[str, Any]:
        """Run a query and send its rows up to the size limit; return the last message: whether rows were cut off."""
        if taken_bytes := _address_bytes():
            _limit("RLIMIT_AS", taken_bytes + request["memory_bytes"] + _OWN_BYTES)
        threads = request["threads"] or os.cpu_count() or 1
        _limit("RLIMIT_CPU", int(_processor_s() + request["time_s"] * threads) + _CPU_GRACE_S)
        for name in request["tables"]:
            connection.register(f"_{name}", self._tables[name])
        for statement in request["statements"]:
            connection.execute(statement)
        rows = _common(connection.sql(request["query"]))
        # Before DuckDB 1.5 the method had another name.
        reader = (getattr(rows, "to_arrow_reader", None) or rows.fetch_record_batch)(_BATCH_ROWS)
        self._send(ARROW, arrow_bytes(reader.schema.empty_table()))
        left_bytes = request["answer_bytes"]
        for batch in reader:
            fits = _rows_that_fit(batch, left_bytes)
            self._send(ARROW, arrow_bytes(batch.slice(0, fits)))
            if fits < batch.num_rows:
                return {"is_cut": True}
            left_bytes -= batch.nbytes
        return {"is_cut": False}


def _processor_s() -> float:
    times = os.times()
    return times.user + times.system


def _database(memory_bytes: int, threads: int, folders: list[str]) -> Any:
    """Return an empty database in memory, for temporary objects only, that reads no files except those in `folders`."""
    database = required("duckdb").connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            "temp_directory": "",  # else it would create a folder in the current directory
            "memory_limit": f"{memory_bytes}B",
            **({"threads": str(threads)} if threads else {}),
        }
    )
    if folders:
        database.execute("SET allowed_directories = ?", [folders])
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")
    return database


def _refuse_other(duckdb: Any, connection: Any, query: str) -> None:
    """Raise UsageError if a text is not exactly one query."""
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise UsageError(f"this is {len(statements) or 'no'} statement{'s' * bool(statements)}; give one query")
    if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise UsageError(f"{statements[0].type.name} is not a query; SELECT, SHOW TABLES, DESCRIBE and EXPLAIN are")


def _rows_that_fit(batch: Any, most_bytes: int) -> int:
    """Return the largest number of first rows of a batch that together have at most `most_bytes`."""
    if batch.nbytes <= most_bytes:
        return int(batch.num_rows)
    least, more = 0, batch.num_rows
    while least + 1 < more:
        middle = (least + more) // 2
        least, more = (middle, more) if batch.slice(0, middle).nbytes <= most_bytes else (least, middle)
    return int(least)


def _common(rows: Any) -> Any:
    """Return a query's relation, changed so that DuckDB converts to text the types that some output formats lack."""
    if rows is None:
        raise UsageError("this is not a query that returns rows")
    shown = [_common_type(kind) for kind in rows.types]
    if all(name is None for name in shown):
        return rows
    columns = []
    for position, (name, kind) in enumerate(zip(rows.columns, shown, strict=True), 1):
        columns.append(f"{f'CAST(#{position} AS {kind})' if kind else f'#{position}'} AS {_quoted_name(name)}")
    return rows.project(", ".join(columns))


def _common_type(kind: Any, is_nested: bool = False) -> str | None:
    """Return the SQL type to which `_common` converts values of a type; None if it leaves them as they are."""
    name = kind.id.lower()
    if name in _COMMON or (name == "enum" and not is_nested):
        return None
    if name not in ("list", "array", "struct", "map"):
        return "VARCHAR"
    parts = [(part, _common_type(inner, is_nested=True)) for part, inner in _children(kind) if part != "size"]
    if name != "array" and all(changed is None for _, changed in parts):
        return None
    types = [changed or str(inner) for (_, changed), (_, inner) in zip(parts, _children(kind), strict=False)]
    if name == "map":
        return f"MAP({types[0]}, {types[1]})"
    if name == "struct":
        fields = (f"{_quoted_name(part)} {kind}" for (part, _), kind in zip(parts, types, strict=True))
        return f"STRUCT({', '.join(fields)})"
    return f"{types[0]}[]"


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _children(kind: Any) -> Iterator[tuple[str, Any]]:
    yield from kind.children
