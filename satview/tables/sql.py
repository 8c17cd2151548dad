"""SQL over the tables of a trace by DuckDB, in a query process: read-only, without files and network, within limits."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, cast

from satview.analysis.activities import Timing
from satview.analysis.thread_names import thread_of
from satview.analysis.times.basis import Mark
from satview.base.child import child_command, child_environment
from satview.base.errors import Cancelled, UsageError
from satview.base.plugins import refuse_missing, required
from satview.base.time import NS_PER_S
from satview.store.arguments import was_described
from satview.store.trace import Trace
from satview.tables.query_child import ARROW, JSON, arrow_bytes, arrow_rows, receive, send
from satview.tables.result import Result
from satview.tables.schema import (
    SCHEMAS,
    SqlColumn,
    TableSchema,
    clock_macros,
    definition,
    mentioned,
    near_tables,
    views,
    with_list,
    with_thread_rows,
)
from satview.tables.table import (
    NOT_CACHED,
    argument_chunks,
    argument_table,
    kind_rows,
    kinds,
    table,
    table_of,
    why_empty,
    why_not_all,
)

if TYPE_CHECKING:
    import pyarrow as pa


# The pool of processes that run queries: started early, kept for the next query, ended when this process ends.
#
# The processes run `satview.tables.query_child`; `satview.tables.sql` sends the requests. This module imports no
# numpy, so that a process can start while other modules are imported.


_PIPE_BYTES: Final = 1 << 20
_MOST_IDLE: Final = 2


class QueryProcess:
    """A process that answers one question at a time; `owner` is the trace whose tables it holds, 0 = none."""

    def __init__(self) -> None:
        # Allocators reserve much of the limited address space: 64 MiB for each of eight arenas per processor, and
        # Arrow's own allocator 1 GiB.
        environment = child_environment(MALLOC_ARENA_MAX="2", ARROW_DEFAULT_MEMORY_POOL="system")
        try:
            self._child = subprocess.Popen(  # noqa: S603  -- satview itself
                child_command("satview.tables.query_child:serve"),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
                pipesize=_PIPE_BYTES, creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )  # fmt: skip
        except OSError as error:
            raise UsageError(f"the process that runs queries does not start: {error}") from error
        self.owner = 0

    def send(self, kind: bytes, data: Any) -> None:
        """Send a message; if the process has ended, `receive` reports it."""
        with contextlib.suppress(OSError):
            send(cast("BinaryIO", self._child.stdin), kind, data)

    def receive(self) -> tuple[bytes, bytes]:
        """Return the next message of the process; EOFError if it has ended."""
        with contextlib.suppress(OSError):
            cast("BinaryIO", self._child.stdin).flush()
        return receive(cast("BinaryIO", self._child.stdout))

    def forget(self) -> None:
        """Make the process free its tables."""
        self.owner = 0
        self.send(JSON, {"owner": 0})
        with contextlib.suppress(OSError):
            cast("BinaryIO", self._child.stdin).flush()

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._child.poll() is None

    def kill(self) -> None:
        """Kill the process; callable from any thread, also while another thread waits for an answer."""
        with contextlib.suppress(OSError):
            self._child.kill()

    def close(self) -> int:
        """Kill the process and wait for its end; return its exit code, negative for a signal."""
        self.kill()
        for stream in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError):
                cast("BinaryIO", stream).close()
        return self._child.wait()


class Waiting:
    """The idle query processes, and those of the parent process if this process was forked."""

    def __init__(self) -> None:
        self.idle: list[QueryProcess] = []
        self.foreign: list[QueryProcess] = []
        # Reentrant: a trace may be freed, which calls `_forget`, whenever Python allocates an object.
        self.lock = threading.RLock()

    def after_fork(self) -> None:
        """Forget the query processes in a forked process, because they belong to the parent process."""
        self.foreign, self.idle, self.lock = self.idle, [], threading.RLock()

    def of_owner(self, owner: int) -> list[QueryProcess]:
        """Return the idle processes that hold the tables of the trace with this `owner_number`; 0 = hold no tables."""
        return [process for process in self.idle if process.owner == owner]

    def keep(self, process: QueryProcess) -> None:
        """Add a process to the idle ones; close the oldest one if there are too many."""
        with self.lock:
            self.idle.append(process)
            while len(self.idle) > _MOST_IDLE:
                self.idle.pop(0).close()

    def take(self, owner: int) -> QueryProcess:
        """Return a process for a query, if possible an idle one with the tables of its trace."""
        with self.lock:
            oldest = self.idle[: len(self.idle) - _MOST_IDLE + 1]
            for process in dict.fromkeys((*self.of_owner(owner), *self.of_owner(0), *oldest)):
                self.idle.remove(process)
                if process.is_alive:
                    return process
                process.close()
        return QueryProcess()


waiting = Waiting()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=waiting.after_fork)
_numbers = count(1)


class _Owner:
    """Object in the cache of a trace that frees the trace's tables in query processes when the trace is freed."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        weakref.finalize(self, _forget, self.number).atexit = False


def owner_number(trace: Trace) -> int:
    """Return the number that identifies the tables of a trace in query processes."""
    return trace.cached("tables.owner", lambda _trace: _Owner()).number


def _forget(owner: int) -> None:
    """Free the tables of a trace in the idle processes."""
    with waiting.lock:
        for process in waiting.of_owner(owner):
            process.forget()


def close_processes(trace: Trace | None = None) -> None:
    """End the idle query processes that have no tables, and those with the tables of `trace`."""
    with waiting.lock:
        for process in waiting.of_owner(0) + (waiting.of_owner(owner_number(trace)) if trace is not None else []):
            waiting.idle.remove(process)
            process.close()


@atexit.register
def _close_all() -> None:
    with waiting.lock:
        while waiting.idle:
            waiting.idle.pop().close()


def start_early(trace: Trace | None = None) -> None:
    """Start a process for a trace that has no idle one, so that it is ready for the first query; this takes 0.2 s.

    It ends with `close_processes(trace)`; None = the trace is not known.
    """
    owner = owner_number(trace) if trace is not None else 0
    with waiting.lock, contextlib.suppress(UsageError):  # the query will raise the same error
        if not waiting.of_owner(owner):
            process = QueryProcess()
            process.owner = owner
            waiting.keep(process)


# Sends queries to a query process, so that no query can crash or block this process.
#
# The query process is ended when time runs out, when the query is cancelled, and when an exception is raised here, as
# by Ctrl+C. The operating system limits its memory. The tables that it lacks are sent to its standard input.


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
        statements: Statements to run before the query, which create the views and macros that it uses.
        table_names: Names of the tables that query and statements read; in the process each has `_` before its name.
        make_table: Function that makes a table that the process lacks, in one or more parts.
        changing: Names of the tables whose content may have changed since the last query.
        owner: Number of the trace from `owner_number`; 0 = none.
        known: Names of existing tables other than the documented ones.
        doubts: Returns `Result.cannot_tell` and `Result.not_all` for the rows; None = the rows are beyond doubt.
    """

    query: str
    statements: tuple[str, ...] = ()
    table_names: tuple[str, ...] = ()
    make_table: Callable[[str], Iterable[pa.Table]] | None = None
    changing: tuple[str, ...] = ()
    owner: int = 0
    folders: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    doubts: Callable[[Result], tuple[tuple[str, ...], tuple[str, ...]]] | None = None


class Query:
    """A query that a process is answering; creating it builds and sends the tables.

    Raises UsageError if it is faulty or exceeds a limit, the process has ended, or a package is not installed, and
    Cancelled if `cancelled()` returned True.
    """

    def __init__(self, question: SqlQuestion, limits: Limits, cancelled: Callable[[], bool] | None = None) -> None:
        for package in ("pyarrow", "duckdb"):
            refuse_missing(package)
        self._limits, self._cancelled, self._question = limits, cancelled or _never, question
        self._process = waiting.take(question.owner)
        self._process.owner = question.owner
        self._why: Literal["", "time", "cancelled"] = ""
        self._is_refused = False  # a faulty query, after which the process can be used again
        self._end_s = time.monotonic() + _START_S + limits.time_s
        self._is_over = threading.Event()
        self._watch = threading.Thread(target=self._look, name="satview sql", daemon=True)
        self._watch.start()
        with self._guarded():
            self._ask(question)

    def answer(self, is_part_enough: bool = False) -> Result:
        """Wait for the answer and return its rows, only the first of one that is too large if a part is enough.

        Raises UsageError and Cancelled as the class says; UsageError also if the answer is too large.
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
        result = Result(required("pyarrow").concat_tables(parts), end["is_cut"])
        if self._question.doubts is not None:
            result.cannot_tell, result.not_all = self._question.doubts(result)
        return result

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """End the query process if the block raises an exception, unless the process only refused a faulty query."""
        try:
            yield
        except EOFError as error:
            code = self._leave(is_sound=False)
            raise self._ended(code) from error
        except BaseException:
            self._leave(is_sound=self._is_refused)
            raise

    def _ask(self, question: SqlQuestion) -> None:
        limits, process = self._limits, self._process
        try:
            question.query.encode()
        except UnicodeEncodeError as error:
            self._is_refused = True
            raise UsageError("the query is not text in UTF-8") from error
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
            for arrow_table in question.make_table(name):
                for part in (arrow_table.schema.empty_table(), *arrow_table.to_batches(_PART_ROWS)):
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
        self._is_refused = not answer.get("is_worn")
        raise UsageError(text if kind == "usage" else _first_lines(text, self._question.known))

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
        """Stop watching the process; keep it if it is sound and return 0, else end it and return its exit code."""
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


# SQL over the tables of a trace, by DuckDB: read-only, without files and network, within limits of time and memory.


_LONGEST_S: Final = 292 * 365 * 86_400  # longest time in nanoseconds of 64 bits
_TIMED: Final = frozenset(name for name, schema in SCHEMAS.items() if schema.timed is not None)
_WAS_TIMED: Final = "tables.was_timed"
_RATE_MAX: Final = (2**63 - 1) // NS_PER_S


def sql(
    trace: Trace,
    query: str,
    limits: Limits | None = None,
    cancelled: Callable[[], bool] | None = None,
    is_part_enough: bool = False,
    timing: Mapping[str, Timing] | None = None,
) -> Result:
    """Return the rows of a query over the tables, views and macros of a trace (docs/tables.md).

    The query runs in a separate process, which receives the tables that it uses. It has no access to files, the
    network, extensions, or the tables of other queries.

    Args:
        trace: The trace.
        query: One SELECT, WITH, VALUES, SHOW TABLES, DESCRIBE, SUMMARIZE or EXPLAIN.
        limits: Resource limits; None = the default ones.
        cancelled: Called repeatedly while the query runs.
        is_part_enough: Return only the first rows of an answer that is too large, with `Result.is_cut` set.
        timing: Content of a timing file, from `analysis.activities.read_timing`, for the tables about activities.

    Raises:
        UsageError: The query is faulty, is no such statement, or exceeds a limit; or a package is not installed.
        Cancelled: `cancelled()` returned True.
    """
    return start_query(trace, query, limits, cancelled, timing).answer(is_part_enough)


def start_query(
    trace: Trace,
    query: str,
    limits: Limits | None = None,
    cancelled: Callable[[], bool] | None = None,
    timing: Mapping[str, Timing] | None = None,
) -> Query:
    """Make the tables that a query uses, start the query, and return it while it runs; arguments as for `sql`.

    Raises UsageError and Cancelled as `sql`; some errors are raised only by `Query.answer`.
    """
    known = kinds(trace)
    query = with_thread_rows(with_list(query, SCHEMAS, kind_rows(trace)), partial(thread_of, trace))
    tables, needed = mentioned(query, known)
    is_plain = _fits_plain_numbers(trace)
    statements = (
        *clock_macros(trace.clock.start_cycles, trace.clock.cycles_per_s),
        *(_kind_view(name) if name in known else _table_view(SCHEMAS[name], is_plain) for name in tables),
        *(definition(views()[name]) for name in needed),
    )
    others = {"argument", *(name for name in tables if name in known)} if was_described(trace) else set[str]()
    if timing:
        trace.cached(_WAS_TIMED, lambda _: True)
    if trace.is_cached(_WAS_TIMED):  # the process may hold tables that were made with another timing file or none
        others |= _TIMED
    question = SqlQuestion(
        query, statements, tuple(tables), lambda name: _parts(trace, name, is_plain, timing),
        tuple(NOT_CACHED - {"argument"} | others),
        owner_number(trace), known=tuple(known), doubts=partial(_doubts, trace, tables, needed),
    )  # fmt: skip
    return Query(question, limits or Limits(), cancelled)


def _parts(trace: Trace, name: str, is_plain: bool, timing: Mapping[str, Timing] | None) -> Iterator[pa.Table]:
    """Yield the rows of a table in parts, `is_plain` without nanoseconds, which SQL computes where used."""
    lacks = _lacks(trace)
    if name not in SCHEMAS:
        lacks[name] = True, why_empty(trace, name)
        yield argument_table(trace, name).arrow()
        return
    read = [column.name for column in SCHEMAS[name].columns if not (is_plain and column.cycles)]
    parts = (
        (table_of(trace, name, columns) for columns in argument_chunks(trace))
        if name == "argument"
        else (table(trace, name, timing),)
    )
    for part in parts:
        lacks[name] = not len(part), tuple(f"{name}: {why}" for why in part.missing)
        yield part.arrow(read)


def _doubts(
    trace: Trace, tables: Sequence[str], view_names: Iterable[str], result: Result
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return `Result.cannot_tell` and `Result.not_all` of a query that used some tables and views."""
    lacks = _lacks(trace)
    cannot_tell, not_all = list[str](), list[str]()
    for is_empty, reasons in (lacks[name] for name in tables if name in lacks):
        (cannot_tell if is_empty else not_all).extend(reasons)
    for name in view_names:
        for need in views()[name].needs:
            if why := need.advice(trace):  # what is never logged is not in rows that happen to be there either
                shows_none = result.shows_nothing or need.lack is Mark.NOT_LOGGED
                (cannot_tell if shows_none else not_all).append(f"{name}: {why}")
    not_all += [why for why in why_not_all(trace, tables) if not any(why in line for line in not_all)]
    return tuple(cannot_tell), tuple(not_all)


def _lacks(trace: Trace) -> dict[str, tuple[bool, tuple[str, ...]]]:
    """Return for each table made so far whether it is empty, and why rows may be missing in it; cached."""
    lacks: dict[str, tuple[bool, tuple[str, ...]]] = trace.cached("tables.lacks", lambda _: {})
    return lacks


def _kind_view(name: str) -> str:
    return f"CREATE TEMP VIEW {name} AS SELECT * FROM _{name}"  # noqa: S608  -- made of letters and digits


def _table_view(schema: TableSchema, is_plain: bool) -> str:
    shown = ", ".join(_shown(column) if is_plain and column.cycles else column.name for column in schema.columns)
    return f"CREATE TEMP VIEW {schema.name} AS SELECT {shown} FROM _{schema.name}"  # noqa: S608  -- names of the schema


def _shown(column: SqlColumn) -> str:
    return f"{'time_ns' if column.is_moment else 'duration_ns'}({column.cycles}) AS {column.name}"


def _fits_plain_numbers(trace: Trace) -> bool:
    """Return whether 64-bit arithmetic in SQL gives the results of `Clock.ns_array` for all times of the trace."""
    clock, window = trace.clock, trace.window
    furthest = max(abs(window.start - clock.start_cycles), abs(window.end - clock.start_cycles))
    return clock.cycles_per_s <= _RATE_MAX and furthest // clock.cycles_per_s < _LONGEST_S
