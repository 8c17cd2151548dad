"""The process that queries run in: DuckDB over tables that come through standard input; answers go to standard output.

It is started by `satview.tables.query_process`, which says what it may take. It has no network, cannot write files, and
ends when its standard input does: also in the middle of a query, since a thread of its own reads that.

Messages of both directions are a letter, eight bytes of length, and so many bytes: `J` is JSON, `A` a stream of Arrow.
A request is JSON. The answer is JSON that names the tables which are missing here; these follow, each as streams of
Arrow and the JSON of its name behind them. Then come the rows as streams of Arrow, and JSON that says how it ended.
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
from satview.base.extras import required

JSON: Final = b"J"
ARROW: Final = b"A"
_LENGTH_BYTES: Final = 8
_BATCH_ROWS: Final = 1 << 15
_TEXT_MOST: Final = 20_000  # characters of what DuckDB says of an error
_CPU_GRACE_S: Final = 5  # processor time beyond what the clock allows: the parent, which looks at it, comes first
_OWN_BYTES: Final = 128 << 20  # address space that Python and Arrow may need for an answer, beside what DuckDB has
# Types that Arrow, Python, CSV and Parquet all know. What is neither here nor made of these becomes text.
_COMMON: Final = frozenset(
    ("boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "hugeint",
     "float", "double", "decimal", "varchar", "blob", "date", "time", "timestamp", "timestamp_s", "timestamp_ms",
     "timestamp_ns", "timestamp with time zone")
)  # fmt: skip
_Message = tuple[bytes, bytes]


def send(stream: BinaryIO, kind: bytes, data: Any) -> None:
    """Write a message; JSON is given as what it represents, Arrow as something with bytes."""
    payload = memoryview(json.dumps(data).encode() if kind == JSON else data)
    stream.write(kind + payload.nbytes.to_bytes(_LENGTH_BYTES, "little"))
    stream.write(payload)


def receive(stream: BinaryIO) -> _Message:
    """Return the next message: its kind and bytes.

    Raises:
        EOFError: The other side has ended.
    """
    head = stream.read(1 + _LENGTH_BYTES)
    size = int.from_bytes(head[1:], "little")
    payload = stream.read(size) if len(head) == 1 + _LENGTH_BYTES else b""
    if len(head) != 1 + _LENGTH_BYTES or len(payload) != size:
        raise EOFError
    return head[:1], payload


def arrow_bytes(rows: Any) -> Any:
    """Return a batch or a table of Arrow as the bytes of a stream."""
    pyarrow = required("pyarrow")
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return sink.getvalue()


def arrow_rows(payload: bytes) -> Any:
    """Return the table of Arrow that the bytes of a stream hold, without copying them."""
    return required("pyarrow").ipc.open_stream(payload).read_all()


def serve() -> NoReturn:
    """Answer requests until standard input ends."""
    with contextlib.suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C of a terminal is for the parent, which then ends this
    answers = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123  -- whatever a library prints is no message
        os.dup2(nowhere.fileno(), 1)
    inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, inbox), daemon=True).start()
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_FSIZE", 0)
    try:
        # Both look for packages that nothing here needs, which take three times as long to import as themselves.
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
    """Pass messages on; end the process when standard input is closed, even during a query."""
    try:
        while True:
            inbox.put(receive(stream))
    except BaseException:  # noqa: BLE001  -- the parent is gone, or this process has no memory left to hear it
        os._exit(0)


def _limit(name: str, value: int) -> None:
    """Limit what this process may take, where the system does that (it does not on Windows)."""
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
    """Return the size of the address space of this process; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class _Child:
    """What the process has: a database, and the tables of the trace that was queried last."""

    def __init__(self, next_message: Callable[[], _Message], answers: BinaryIO) -> None:
        self._next, self._answers = next_message, answers
        self._key: object = None
        self._database: Any = None
        self._owner: object = None
        self._tables: dict[str, Any] = {}
        self._begin_bytes = 0

    def answer(self) -> None:
        """Wait for a request and answer it."""
        kind, payload = self._next()
        assert kind == JSON
        request = json.loads(payload)
        if request["owner"] != self._owner:
            self._tables.clear()
            self._owner = request["owner"]
        if "query" not in request:  # its trace is closed
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
        except Exception as error:  # noqa: BLE001  -- Arrow's, which are of many kinds: it is told, and this process goes
            end = {"error": "memory" if "Out of Memory" in str(error) else "fatal", "text": str(error)[:_TEXT_MOST]}
        finally:
            if connection is not None:
                connection.close()
        own_bytes = self._begin_bytes + sum(table.nbytes for table in self._tables.values())
        # What allocators keep of a large query would be missing in the address space of the next one.
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
        for name in ("RLIMIT_AS", "RLIMIT_CPU"):  # those of the query before
            _limit(name, (1 << 63) - 1)
        folders = request["folders"]
        key = request["memory_bytes"], request["threads"]
        if folders or key != self._key:
            self._database = _database(*key, folders)
            self._key = None if folders else key
            self._begin_bytes = _address_bytes()
        return self._database.cursor()

    def _receive_tables(self, request: dict[str, Any]) -> None:
        """Ask for the tables that are not here yet, and take them."""
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
        """Run a query and send its rows, as many as are allowed; return how it ended."""
        if taken_bytes := _address_bytes():
            _limit("RLIMIT_AS", taken_bytes + request["memory_bytes"] + _OWN_BYTES)
        threads = request["threads"] or os.cpu_count() or 1
        _limit("RLIMIT_CPU", int(_processor_s() + request["time_s"] * threads) + _CPU_GRACE_S)
        for name in request["tables"]:
            connection.register(f"_{name}", self._tables[name])
        for statement in request["statements"]:
            connection.execute(statement)
        rows = _common(connection.sql(request["query"]))
        # Before 1.5 it was called otherwise.
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
    """Return an empty database in memory that reaches nothing, or with `folders` files of these.

    What a query makes is temporary: only its own connection sees it.
    """
    database = required("duckdb").connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            "temp_directory": "",  # else it makes a folder in the current one, and nothing may be written there
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
    """Refuse a text that is not exactly one query.

    Raises:
        UsageError: It is several, none, or would change something.
    """
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise UsageError(f"this is {len(statements)} statements; give one query")
    if statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise UsageError(f"{statements[0].type.name} is no query; SELECT, SHOW TABLES, DESCRIBE and EXPLAIN are")


def _rows_that_fit(batch: Any, most_bytes: int) -> int:
    """Return how many of the first rows of a batch have so many bytes at most."""
    if batch.nbytes <= most_bytes:
        return int(batch.num_rows)
    least, more = 0, batch.num_rows
    while least + 1 < more:
        middle = (least + more) // 2
        least, more = (middle, more) if batch.slice(0, middle).nbytes <= most_bytes else (least, middle)
    return int(least)


def _common(rows: Any) -> Any:
    """Return a relation in which values of types that some output formats lack are texts, as DuckDB writes them."""
    if rows is None:
        raise UsageError("this is no query that has rows")
    shown = [_common_type(kind) for kind in rows.types]
    if all(name is None for name in shown):
        return rows
    columns = []
    for position, (name, kind) in enumerate(zip(rows.columns, shown, strict=True), 1):
        columns.append(f"{f'CAST(#{position} AS {kind})' if kind else f'#{position}'} AS {_quoted_name(name)}")
    return rows.project(", ".join(columns))


def _common_type(kind: Any, is_nested: bool = False) -> str | None:
    """Return the type in SQL that values of a type are converted to; None if they stay as they are."""
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
