"""Sends queries to a query process, so that no query can crash or block this process.

The query process is ended when time runs out, when the query is cancelled, and when an exception is raised here, as by
Ctrl+C. The operating system limits its memory. The tables that it lacks are sent to its standard input.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from satview.base.errors import Cancelled, UsageError
from satview.base.extras import refuse_missing, required
from satview.tables.query_child import ARROW, JSON, arrow_bytes, arrow_rows
from satview.tables.query_process import waiting
from satview.tables.result import Result
from satview.tables.views import near_tables, views

if TYPE_CHECKING:
    import pyarrow as pa

_LOOK_S: Final = 0.05  # interval of checks for cancellation
_START_S: Final = 30.0  # time allowed for the start of the process, which may be slow on a busy machine
_PART_ROWS: Final = 1 << 18  # rows of a table in one message
_MIB: Final = 1 << 20
_MISSING: Final = re.compile(r"Catalog Error: Table with name (\S+) does not exist!")


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of a query.

    Attributes:
        time_s: Elapsed seconds, counted from when the query's tables have been made.
        memory_bytes: Memory in addition to the tables and the answer.
        threads: Number of processors used at once; 0 = all.
        answer_bytes: Maximum size of the answer's rows as Arrow columns.
    """

    time_s: float = 60.0
    memory_bytes: int = 2 << 30
    threads: int = 0
    answer_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class SqlQuestion:
    """One request to a query process.

    Attributes:
        query: The user's query.
        statements: Statements to run before the query, which create the views and macros that it uses.
        table_names: Names of the tables that query and statements read; the process has each as `_` and its name.
        make_table: Function that makes a table that the process lacks, in one or more parts.
        changing: Names of the tables whose content may have changed since the last query.
        owner: Number of the trace from `owner_number`; 0 = none.
        folders: The only folders from which files may be read.
        known: Names of existing tables other than the documented ones.
    """

    query: str
    statements: tuple[str, ...] = ()
    table_names: tuple[str, ...] = ()
    make_table: Callable[[str], Iterable[pa.Table]] | None = None
    changing: tuple[str, ...] = ()
    owner: int = 0
    folders: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


class Query:
    """A query that a process is answering; creating it builds and sends the tables.

    Raises:
        UsageError: The query is faulty or exceeds a limit, the process has ended, or a package is not installed.
        Cancelled: `cancelled()` returned True.
    """

    def __init__(self, question: SqlQuestion, limits: Limits, cancelled: Callable[[], bool] | None = None) -> None:
        for package in ("pyarrow", "duckdb"):
            refuse_missing(package)
        self._limits, self._cancelled, self._known = limits, cancelled or _never, question.known
        self._process = waiting.take(question.owner)
        self._process.owner = question.owner
        self._why: Literal["", "time", "cancelled"] = ""
        self._end_s = time.monotonic() + _START_S + limits.time_s
        self._is_over = threading.Event()
        self._watch = threading.Thread(target=self._look, name="satview sql", daemon=True)
        self._watch.start()
        with self._guarded():
            self._ask(question)

    def answer(self, is_part_enough: bool = False) -> Result:
        """Wait for the answer and return its rows.

        Args:
            is_part_enough: Return only the first rows of an answer that is too large, with `Result.is_cut` set.

        Raises:
            UsageError: See the class; or the answer is too large.
            Cancelled: See the class.
        """
        with self._guarded():
            parts = []
            while (message := self._process.receive())[0] == ARROW:
                parts.append(arrow_rows(message[1]))
            end = self._checked(message[1])
        self._leave(is_sound=not end["is_worn"])
        if end["is_cut"] and not is_part_enough:
            limit = _size_text(self._limits.answer_bytes)
            raise UsageError(f"the answer has more than {limit}; add a LIMIT, or allow more")
        return Result(required("pyarrow").concat_tables(parts), end["is_cut"])

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """End the query process if the block raises an exception, as nobody would wait for the answer."""
        try:
            yield
        except EOFError as error:
            code = self._leave(is_sound=False)
            raise self._ended(code) from error
        except BaseException as error:
            # After a faulty query the process can be used again.
            self._leave(is_sound=isinstance(error, _RefusedError))
            raise

    def _ask(self, question: SqlQuestion) -> None:
        limits, process = self._limits, self._process
        try:
            question.query.encode()
        except UnicodeEncodeError as error:
            raise _RefusedError("the query is no text in UTF-8") from error
        process.send(
            JSON,
            {
                "query": question.query, "statements": question.statements, "tables": question.table_names,
                "changing": question.changing, "owner": question.owner, "folders": question.folders,
                "time_s": limits.time_s, "memory_bytes": limits.memory_bytes, "threads": limits.threads,
                "answer_bytes": limits.answer_bytes,
            },
        )  # fmt: skip
        missing = self._checked(process.receive()[1])["missing"]
        self._end_s = float("inf")  # the time for making tables does not count
        for name in missing:
            if self._cancelled():
                raise Cancelled("the query was stopped")
            assert question.make_table is not None
            for table in question.make_table(name):
                for part in (table.schema.empty_table(), *table.to_batches(_PART_ROWS)):
                    process.send(ARROW, arrow_bytes(part))
            process.send(JSON, name)
        self._end_s = time.monotonic() + limits.time_s

    def _checked(self, payload: bytes) -> dict[str, Any]:
        """Return a decoded answer; raise an exception if it reports an error."""
        answer: dict[str, Any] = json.loads(payload)
        kind, text = answer.get("error"), answer.get("text", "")
        if kind is None:
            return answer
        if kind == "memory":
            raise UsageError(
                f"the query needs more than {_size_text(self._limits.memory_bytes)} of memory and was stopped"
            )
        if kind == "fatal":
            raise UsageError(f"DuckDB failed: {_first_lines(text)}")
        refused = _RefusedError(text if kind == "usage" else _first_lines(text, self._known))
        if answer.get("is_worn"):
            raise UsageError(str(refused))
        raise refused

    def _look(self) -> None:
        """Watch the query, in a thread: end the process when time runs out or the query is cancelled."""
        while not self._is_over.wait(min(_LOOK_S, max(self._end_s - time.monotonic(), 0.0))):
            if self._cancelled():
                self._why = "cancelled"
            elif time.monotonic() >= self._end_s:
                self._why = "time"
            else:
                continue
            self._process.kill()
            return

    def _leave(self, is_sound: bool) -> int:
        """Stop watching the process, and keep it for the next query or end it; return its exit code, 0 if kept."""
        self._is_over.set()
        self._watch.join()
        if is_sound and not self._why:
            waiting.keep(self._process)
            return 0
        return self._process.close()

    def _ended(self, code: int) -> Exception:
        """Return the exception for a process that ended before it answered."""
        if self._why == "cancelled":
            return Cancelled("the query was stopped")
        if self._why == "time" or -code == getattr(signal, "SIGXCPU", None):
            return UsageError(f"the query took longer than {self._limits.time_s:g} s and was stopped")
        how = _signal_name(-code) if code < 0 else f"exit code {code}"
        return UsageError(f"the process that ran the query has ended ({how}), most likely for want of memory; "
                          "the next query has a new one")  # fmt: skip


class _RefusedError(UsageError):
    """A faulty query, after which the process can be used again."""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes // _MIB:,} MiB" if size_bytes >= _MIB else f"{size_bytes:,} bytes"


def _never() -> bool:
    return False


def _first_lines(text: str, known: Sequence[str] = ()) -> str:
    """Return the first lines of an error message of DuckDB, without hints about DuckDB's own interface."""
    if missing := _MISSING.match(text):
        return f"a table {missing[1][:40]!r} does not exist; {_remedy(missing[1], known)}"
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("Possible solutions", "* "))]
    return "\n".join(lines[:6])


def _remedy(name: str, known: Sequence[str]) -> str:
    """Return advice for a table that does not exist, in place of DuckDB's advice, which would name internal tables."""
    view = views().get(name.lower())
    if view is not None and view.parameters:
        return f"it is a macro: `from {view.usage}`, `describe from {view.usage}`, with numbers"
    return f"{near_tables(name, known)}`show tables` lists them, with the views and macros"
