"""The tables of a trace and the meanings of their columns, and the SQL views and macros on them."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, partial
from typing import Final

from satview.analysis import needs
from satview.analysis.activities import Timing
from satview.analysis.needs import Need
from satview.answers import doctor, functions, late, latencies, locks, transactions, verdicts
from satview.answers.late_comparison import CAUSES, COMPARISON, OF_ACTIVITY, PATHS
from satview.answers.table import FRACTIONS, KNOWN_WORDS, Column, Kind, Question, Table
from satview.base.named_files import resource_path
from satview.base.time import NS_PER_S
from satview.store.trace import Trace

# The tables of a trace and the meanings of their columns; docs/tables.md is generated from them.


class SqlKind(StrEnum):
    """Types of columns; the value names the numpy type."""

    INT64 = "int64"
    INT32 = "int32"
    UINT32 = "uint32"
    UINT16 = "uint16"
    UINT8 = "uint8"
    FLOAT64 = "float64"
    ROW = "uint16, uint32"  # the narrower one where it is enough for the trace
    BOOL = "bool"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """One column of a table, as SQL and data frames show it.

    Attributes:
        name: Name; that of a time or duration ends with the unit.
        is_nullable: Whether a row may lack a value: null in Arrow and SQL, -1 or the empty text in numpy.
        cycles: For a column of nanoseconds, the column of cycles from which it is computed; else empty.
        is_moment: For a column of nanoseconds, whether it is a time since the first event, not a duration.
    """

    name: str
    kind: SqlKind
    meaning: str
    is_nullable: bool = False
    cycles: str = ""
    is_moment: bool = False


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One table of a trace, as SQL and data frames show it.

    Attributes:
        question: The question that the table answers: its title, and the same columns in the form that answers use.
        answer: Function that makes the table; None = a function of `BUILDERS` in `tables.table` makes its columns.
        timed: Function that makes the table from the trace and a timing file; None = the table needs no such file.
    """

    name: str
    meaning: str
    columns: tuple[SqlColumn, ...]
    question: Question
    answer: Callable[[Trace], Table] | None = None
    timed: Callable[[Trace, Mapping[str, Timing]], Table] | None = None

    def column(self, name: str) -> SqlColumn:
        """Return a column by name; KeyError if there is none."""
        return dict(zip(self.names, self.columns, strict=True))[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def _column(kind: Kind, name: str, meaning: str, *, is_nullable: bool = False) -> Column:
    return Column(name, kind, meaning, name.replace("_", " ").capitalize(), is_nullable=is_nullable)


_moment, _length = partial(_column, Kind.TIME), partial(_column, Kind.DURATION)
_event, _thread = partial(_column, Kind.EVENT), partial(_column, Kind.THREAD)
_number, _text, _flag = partial(_column, Kind.NUMBER), partial(_column, Kind.TEXT), partial(_column, Kind.FLAG)


_KIND_OF_ANSWER: Final = {  # INT64 for all others
    Kind.TEXT: SqlKind.TEXT,
    Kind.STATE: SqlKind.TEXT,
    Kind.SENTENCE: SqlKind.TEXT,
    Kind.CPU: SqlKind.UINT8,
    Kind.FLAG: SqlKind.BOOL,
    **dict.fromkeys(FRACTIONS, SqlKind.FLOAT64),
}
_NARROW: Final = {  # by table and column, types that are narrower than usual for their kind
    ("event", "event"): SqlKind.UINT32,
    ("event", "thread"): SqlKind.ROW,
    ("event", "code"): SqlKind.UINT16,
    ("argument", "event"): SqlKind.UINT32,
    ("thread", "pid"): SqlKind.INT32,
    ("thread", "tid"): SqlKind.INT32,
    ("thread", "process"): SqlKind.INT32,
    ("process", "pid"): SqlKind.INT32,
    ("process", "parent_pid"): SqlKind.INT32,
}
_KNOWN: Final = SqlColumn("", SqlKind.TEXT, "how that is known: " + ", ".join(f"`{word}`" for word in KNOWN_WORDS))


def _of_answer(
    table: str,
    meaning: str,
    question: Question,
    answer: Callable[[Trace], Table] | None = None,
    timed: Callable[[Trace, Mapping[str, Timing]], Table] | None = None,
) -> TableSchema:
    """Return the schema of a table made by an answer: times in cycles and ns, `_known` columns for inexact values.

    `timed` makes the table from a trace and a timing file; without both functions another one makes it.
    """
    columns: list[SqlColumn] = []
    for column in question.columns:
        name, is_nullable = column.sql_name, column.is_nullable
        if not name:
            continue
        if column.kind.is_cycles:
            is_moment = column.kind is Kind.TIME
            same = "the same, since the first event" if is_moment else "the same, rounded down"
            columns.append(SqlColumn(f"{name}_cycles", SqlKind.INT64, column.meaning, is_nullable))
            columns.append(SqlColumn(f"{name}_ns", SqlKind.INT64, same, is_nullable, f"{name}_cycles", is_moment))
        else:
            kind = _NARROW.get((table, name)) or _KIND_OF_ANSWER.get(column.kind, SqlKind.INT64)
            columns.append(SqlColumn(name, kind, _of_row(column), is_nullable))
        if column.reasons:
            columns.append(replace(_KNOWN, name=f"{name}_known"))
    return TableSchema(table, meaning, tuple(columns), question, answer, timed)


def _of_slow(table: str, meaning: str, question: Question, name: str) -> TableSchema:
    """Return the schema of the table `SlowAgainstFast.<name>` for all activities."""
    return _of_answer(
        table,
        meaning,
        replace(question, columns=(OF_ACTIVITY, *question.columns)),
        timed=lambda trace, timing: getattr(late.late(trace, timing).every_comparison(), name),
    )


def _table(name: str, meaning: str, *columns: Column) -> TableSchema:
    """Return the schema of a table with data of the trace itself, such as `event` and `thread`."""
    question = Question(name, name.replace("_", " ").capitalize(), meaning, columns, "", "It has no rows.")
    return _of_answer(name, meaning, question)


def _of_row(column: Column) -> str:
    """Return the meaning of a column in SQL, where threads and events are given as row numbers."""
    if column.kind is Kind.THREAD:
        return f"row of `thread`: {column.meaning}"
    return f"row of `event`: {column.meaning}" if column.kind is Kind.EVENT else column.meaning


_CERTAINTY: Final = _text(
    "certainty", "`exact`: events name it; `inferred`: it follows from their order; `guess`: one of several"
)
_CPU: Final = _column(Kind.CPU, "cpu", "CPU, from 0")
_IS_CUT: Final = _flag("is_cut", "the trace does not hold both ends: of its length only a lower bound is known")

SCHEMAS: Final[dict[str, TableSchema]] = {
    table.name: table
    for table in (
        _table(
            "event",
            "Every event, in time order.",
                _number("event", "its row, from 0; the window counts events from 1"),
                _moment("time", "when it was logged; never decreases"),
                _column(Kind.CPU, "cpu", "the CPU that logged it, from 0"),
                _thread("thread", "whose state changes, else who ran there; 0 = not known"),
                _number("code", "internal class and event, 15 bits"),
                _text("class", "printed class, such as `KER_CALL`"),
                _text("name", "as QNX spells it, such as `MSG_SENDV`"),
        ),
        _table(
            "argument",
            "Every argument of every event, one a row: by event, then in the order of its payload.",
                _event("event", "whose argument it is"),
                _moment("time", "when the event was logged"),
                _text("kind", "which table has the events of that kind, such as `call_msg_sendv`"),
                _text("argument", "its name, such as `coid`"),
                _number("number", "its value; null where that is a text", is_nullable=True),
                _text("text", "its value, null where that is a number", is_nullable=True),
        ),
        _table(
            "state",
            "Every interval of every thread in one state, by thread, then in time order; those of a thread touch. An "
            "idle thread is never `RUNNING` or `READY`, but `IDLE` while it has a CPU and else `WAITING`.",
                _thread("thread", "whose state it is"),
                _text("state", "`RUNNING`, `READY`, `MUTEX`, ..., `UNKNOWN`; `ABSENT` before it is created "
                      "and where an axis does not have its file"),
                _text("state_before", "the state of the interval before", is_nullable=True),
                _moment("start", "when it begins"),
                _moment("end", "when it ends; not included"),
                _length("length", "how long it is"),
                _event("event", "the event that begins it", is_nullable=True),
                _IS_CUT,
        ),
        _table(
            "run",
            "Every run of a thread on a CPU without a break, by CPU, then in time order.",
                _CPU,
                _thread("thread", "who ran"),
                _moment("start", "when it begins"),
                _moment("end", "when it ends; not included"),
                _length("length", "how long it is, interrupts included"),
                Column("cpu_time", Kind.DURATION, "the same without interrupts; in a trace of a threads library the "
                       "thread was RUNNING, which is not known to wait: the statistics have the time that it measured",
                       "CPU time", sql="cpu"),
                _length("interrupted", "interrupts were handled meanwhile"),
                _flag("is_idle", "of an idle thread"),
                _flag("is_start", "false where events are missing: it may be the rest of the run before"),
                _flag("is_switch", "another thread had the CPU before"),
                _flag("is_migration", "the thread ran on another CPU before; never of idle threads"),
                _number("from_cpu", "that CPU, where no events are missing in between", is_nullable=True),
                _number("priority", "as it begins, where the event shows it", is_nullable=True),
                _event("event", "the event `THRUNNING` that begins it", is_nullable=True),
                _IS_CUT,
        ),
        _table(
            "cpu_state",
            "What each CPU did, by CPU, then in time order: intervals that touch and fill the whole trace, on an axis "
            "the time of the CPU's file.",
                _CPU,
                _text("kind", "`thread`, `idle`, `interrupt`, `unknown`; `kernel call` where the thread is not known"),
                _thread("thread", "who ran, or was interrupted; 0 = not known"),
                _moment("start", "when it begins"),
                _moment("end", "when it ends; not included"),
                _length("length", "how long it is"),
        ),
        _table(
            "call",
            "Every kernel call, in the order of its entries.",
                _event("event", "the event of its entry"),
                _event("exit_event", "the event that ends it", is_nullable=True),
                _CPU,
                _thread("thread", "who made it; 0 = not known"),
                _text("name", "as QNX spells it, such as `MSG_SENDV`"),
                _moment("start", "when it is entered"),
                _moment("end", "when it is left", is_nullable=True),
                _length("length", "from entry to exit", is_nullable=True),
                _length("running", "of that, its caller had a CPU", is_nullable=True),
                _flag("is_interrupted", "it ended in its interrupted form"),
                _flag("is_failed", "it returned with an error"),
                _number("errno", "that error", is_nullable=True),
        ),
        _of_answer(
            "message",
            "Every message that was sent, in time order; queued + service + reply = round trip.",
            transactions.QUESTION, transactions.transaction_table,
        ),
        _table(
            "pulse",
            "Every pulse that was sent, in time order.",
                _event("event", "the event that sends it"),
                _text("name", "which event: `SND_PULSE`, `SND_PULSE_EXE`, `SND_PULSE_DIS`, ..."),
                _CPU,
                _thread("thread", "who ran on that CPU; 0 = not known"),
                _number("scoid", "connection of the server"),
                _number("server_pid", "process that it was sent to"),
                _moment("time", "when it was sent"),
                _event("receive_event", "the event `REC_PULSE`", is_nullable=True),
                _thread("receiver", "who received it", is_nullable=True),
                _length("queued", "from the send to the receipt", is_nullable=True),
                _text("certainty", "of the receipt, as in `message`", is_nullable=True),
        ),
        _of_answer(
            "latency",
            "Every pulse and every interrupt that ends InterruptWait(), from its cause to the thread that answers.",
            latencies.QUESTION, latencies.latency_table,
        ),
        _table(
            "interrupt",
            "Every interrupt, in the order of its entries; in 8.0 every delivery, which has no exit.",
                _event("event", "the event of its entry"),
                _event("exit_event", "the event of its exit", is_nullable=True),
                _event("handler_event", "the entry of its first handler", is_nullable=True),
                _CPU,
                _thread("thread", "who was interrupted; 0 = not known"),
                _number("vector", "its number"),
                _moment("start", "when it is entered"),
                _moment("end", "when it is left", is_nullable=True),
                _length("length", "from entry to exit, interrupts nested in it included", is_nullable=True),
                _length("handler_entry", "from entry to the entry of its first handler", is_nullable=True),
        ),
        _table(
            "wake_up",
            "Everything that ends a wait: who or what makes a thread ready, or lets it run at once; by cause.",
                _event("cause_event", "the event that ends the wait"),
                _event("event", "the event `THREADY` or `THRUNNING` that follows"),
                _thread("waker", "whose event the cause is; 0 = not known"),
                _thread("thread", "who is woken"),
                _column(Kind.CPU, "cpu", "CPU of the cause"),
                _moment("cause", "when the cause was logged"),
                _moment("time", "when the thread becomes ready, or runs"),
                _CERTAINTY,
        ),
        _table(
            "wait",
            "Every wait of every thread that the trace holds whole, by thread, then in time order, and whom it is for.",
                _thread("thread", "who waits"),
                _text("state", "`MUTEX`, `REPLY`, `NANOSLEEP`, ..."),
                _moment("start", "when it begins"),
                _moment("end", "when it ends", is_nullable=True),
                _length("length", "how long it is; to the end of the trace where that comes first"),
                _event("event", "the event that begins it"),
                _event("end_event", "the event that ends it", is_nullable=True),
                _event("call_event", "the entry of the kernel call that the thread waits in", is_nullable=True),
                _number("object", "what it waits for: address, channel or thread number, by state", is_nullable=True),
                _thread("blocker", "who can end it, as it begins", is_nullable=True),
                _number("blocker_pid", "process of that thread, or that a message was sent to", is_nullable=True),
                _text("certainty", "of the blocker, as in `message`", is_nullable=True),
        ),
        _table(
            "activation",
            "Every span in which a thread was READY or RUNNING without a wait, by thread, then in time order.",
                _thread("thread", "who was active"),
                _moment("start", "when a wait was over, or the thread began"),
                _moment("end", "when it began to wait again, or ended"),
                _length("response", "from start to end"),
                _length("running", "of that, it ran"),
                _length("period", "since the start of its activation before, where that is known", is_nullable=True),
                _event("event", "the event that begins it", is_nullable=True),
                _IS_CUT,
        ),
        _table(
            "thread",
            "Every thread; row 0 represents what belongs to no known thread.",
                _number("thread", "its row"),
                _number("pid", "process id; -1 in row 0"),
                _number("tid", "number within its process, from 1; -1 in row 0, 0 = not known"),
                _number("process", "row of `process`"),
                _text("name", "as last given; empty where none was"),
                _text("label", "process and thread for people, such as `devb-eide 2`"),
                _flag("is_idle", "an idle thread"),
        ),
        _table(
            "process",
            "Every process; row 0 represents what belongs to no known process.",
                _number("process", "its row"),
                _number("pid", "process id; -1 in row 0"),
                _number("parent_pid", "that of its parent", is_nullable=True),
                _text("name", "path or name as last given; empty where none was"),
                _text("label", "its name without folders, or `pid N`"),
                _moment("created", "when it was created, if the trace shows", is_nullable=True),
                _moment("destroyed", "when it ended, if the trace shows", is_nullable=True),
        ),
        _table(
            "cpu",
            "Every CPU of the target.",
                _CPU,
                _text("label", "as its lane is called, such as `CPU 0`"),
                _text("model", "as the system page names it; empty where it does not"),
                _number("speed_mhz", "as the system page has it; 0 where it does not"),
        ),
        _table(
            "loss",
            "Every span of time in which events are missing, by start.",
                _number("cpu", "the CPU whose events are missing; null = every CPU", is_nullable=True),
                _moment("start", "the last event before"),
                _moment("end", "the first event after"),
                _length("length", "how long it is"),
        ),
        _of_answer(
            "function_stack", "Every function of every thread below its callers: calls that programs log, and samples.",
            functions.QUESTION, functions.function_table,
        ),
        _of_answer(
            "activity", "Everything that is done again and again, with its response times and deadline.",
            late.ACTIVITIES, timed=lambda trace, timing: late.late(trace, timing).activities(),
        ),
        _of_answer(
            "activity_instance", "Each time that an activity was done, the latest first.",
            late.INSTANCES, timed=lambda trace, timing: late.late(trace, timing).instances(),
        ),
        _of_answer(
            "blame", "Where the time of the hundred worst instances of activities went; rows of depth 0 add up to it.",
            late.BLAME, timed=late.blame_table,
        ),
        _of_slow(
            "slow_against_fast", "What the slowest tenth of the instances of an activity spend more time with than the "
            "faster half.", COMPARISON, "times",
        ),
        _of_slow(
            "more_in_slow",
            "What happens more often in slow instances of an activity (the slowest tenth) than in fast ones.",
            CAUSES,
            "causes",
        ),
        _of_slow(
            "slow_path",
            "Ways that slow instances take and fast ones do not: through whom they wait for, and functions.",
            PATHS,
            "paths",
        ),
        _of_answer(
            "chain", "How long each chain of a timing file reacts, and how old its input is; none without a file.",
            late.CHAINS, timed=lambda trace, timing: late.late(trace, timing).chains(),
        ),
        _of_answer(
            "schedulability", "Everything that is done again and again, with the longest that a response may be.",
            late.QUESTION, timed=late.schedulability,
        ),
        _of_answer(
            "verdict", "Everything that `satview check` finds wrong, the most severe first.",
            verdicts.QUESTION, lambda trace: verdicts.find(trace).table,
        ),
        _of_answer(
            "analysis", "Every analysis, and how far the trace can show what it answers.",
            doctor.QUESTION, doctor.doctor,
        ),
        _of_answer(
            "undecided", "Every kind of verdict that the trace cannot show, or not all of them.",
            verdicts.UNDECIDED, verdicts.undecided_table,
        ),
        _of_answer(
            "lock", "Every lock in a trace of a threads library.",
            locks.QUESTION, lambda trace: locks.lock_tables(trace)[0],
        ),
        _of_answer(
            "lock_wait", "Every call of a threads library that waited, in time order.",
            locks.WAITS, lambda trace: locks.lock_tables(trace)[1],
        ),
        _table(
            "mark",
            "Every mark and note that was set in the window, by time.",
                _moment("start", "where it begins"),
                _moment("end", "where it ends; the same for a moment"),
                _text("text", "what was written; may be empty"),
        ),
        _table(
            "client_time",
            "For whom threads ran, one row per thread; times on a CPU, interrupts included.",
                _thread("thread", "who ran"),
                _length("self", "it ran"),
                _length("imposed", "servers ran that it waited for, or that those waited for"),
                _length("own", "it ran and no message that it had received was unanswered"),
                _length("caused", "others ran for it at the end of a chain of messages"),
        ),
        _table(
            "server_time",
            "What each client had each server do, by client, then by server.",
                _thread("client", "for whom it ran"),
                _thread("server", "who ran, at the end of a chain of messages"),
                _length("imposed", "how long it ran meanwhile"),
        ),
        _table(
            "trace",
            "The trace itself: one row.",
                _text("file", "its name"),
                _text("format", "what was read: `kev`, `qst`, `traceprinter`, `thread_trace` ..."),
                _text("release", "whose numbers and names apply: `6.x`, `6.6`, `7.x`, `8.0`, `unixware`, `linux`"),
                _moment("start", "the first event"),
                _moment("end", "just after the last event"),
                _length("length", "from the first event to just after the last"),
                _number("cycles_per_s", "rate of the counter"),
                _number("cpus", "CPUs of the target"),
                _number("events", "events"),
        ),
    )
}  # fmt: skip


# The documented SQL views and macros, the search for the names that a query uses, and time conversion in SQL.


_LONGEST_NAME: Final = 64  # longest name of a table
_LITERALS: Final = re.compile(r"'(?:[^']|'')*'")
_ALIASES: Final = re.compile(r"(?i)\bas\s+[a-z_]\w*")
_WORDS: Final = re.compile(r"(?:(\w+)\.)?\b([A-Za-z_]\w*)")
_SHOW_TABLES: Final = re.compile(
    r"\s*(?:show\s+(?:all\s+)?(?:tables|views|(macros))|describe|\.tables)\s*;?\s*", re.IGNORECASE
)
_THREAD_ROW: Final = "thread_row"  # parameter of macros
_THREAD_NAMED: Final = "thread_named"
_TEXT_ARGUMENT: Final = re.compile(  # skips strings, quoted names and comments
    r"""'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\b(?P<macro>\w+)\s*\(\s*'(?P<text>(?:[^']|'')*)'""", re.IGNORECASE
)
_SOURCES: Final = re.compile(r"\b(?:from|join)\s+(\w+)")  # tables and views in the SQL of views.toml


# Tables of what a trace says about itself, in which no row is missing if events were lost.
SAFE_FROM_LOSSES: Final = frozenset({"trace", "loss", "mark", "analysis", "undecided"})


@dataclass(frozen=True, slots=True)
class View:
    """A documented view or macro.

    Attributes:
        parameters: Parameters of a macro; empty for views.
        own_columns: Columns of the query that defines it, in order.
        needs: What a trace must have, besides what the tables need, for a result without rows to mean anything. If a
            need can never be met, rows mean nothing either.
    """

    name: str
    meaning: str
    sql: str
    parameters: tuple[str, ...]
    group: str
    own_columns: tuple[str, ...]
    needs: tuple[Need, ...] = ()

    @property
    def columns(self) -> dict[str, str]:
        """SQL expressions of the columns by name; each column in cycles is followed by the same one in ns."""
        selected: dict[str, str] = {}
        for name in self.own_columns:
            selected[name] = name
            ns = f"{name.removesuffix('_cycles')}_ns"
            if name.endswith("_cycles") and ns not in self.own_columns:
                selected[ns] = f"_length_ns({name}) AS {ns}"
        return selected

    @property
    def usage(self) -> str:
        """The form in which a query uses the view or macro: `cpu_load`, `load_per(bin_ns)`."""
        return f"{self.name}({', '.join(self.parameters)})" if self.parameters else self.name


@cache
def views() -> dict[str, View]:
    """Return the documented views and macros by name, in the order of their file."""
    with resource_path("tables/views.toml").open("rb") as file:
        rows = tomllib.load(file)["view"]
    documented = [
        View(
            row["name"],
            row["says"],
            row["sql"].strip(),
            tuple(row.get("parameters", ())),
            row["group"],
            tuple(row["columns"].split()),
            tuple(getattr(needs, name) for name in row.get("needs", ())),
        )
        for row in rows
    ]
    return {view.name: view for view in documented}


def with_list(query: str, tables: Iterable[str], more: Iterable[tuple[str, str, str]] = ()) -> str:
    """Return a query that lists all tables, views and macros for `show tables`; return other queries unchanged.

    DuckDB itself has only the tables that a query uses. For `show macros`, the query lists macros only. `more` are
    name, kind and meaning of entries for the end.
    """
    shown = _SHOW_TABLES.fullmatch(query)
    if shown is None:
        return query
    rows = [(name, "table", SCHEMAS[name].meaning) for name in tables if name in SCHEMAS]
    rows += [(view.usage, "macro" if view.parameters else "view", view.meaning) for view in views().values()]
    rows = [row for row in rows if row[1] == "macro"] if shown[1] else [*rows, *more]
    values = ", ".join(f"({', '.join(map(quoted, row))})" for row in rows)
    return f"SELECT * FROM (VALUES {values}) AS _(name, kind, meaning)"  # noqa: S608  -- of ours, and quoted


def with_thread_rows(query: str, row_of: Callable[[str], int]) -> str:
    """Return a query in which thread names in macros and `thread_named` are row numbers, by `row_of` (UsageError)."""
    taking = {view.name for view in views().values() if view.parameters[:1] == (_THREAD_ROW,)}

    def replaced(part: re.Match[str]) -> str:
        macro = (part["macro"] or "").lower()
        if macro not in taking and macro != _THREAD_NAMED:
            return part[0]
        row = row_of(part["text"].replace("''", "'"))
        return f"({row}" if macro == _THREAD_NAMED else f"{part['macro']}({row}"

    return _TEXT_ARGUMENT.sub(replaced, query)


def mentioned(text: str, more: Container[str] = ()) -> tuple[list[str], list[str]]:
    """Return the names of tables and views that a query uses, directly or through views; views follow their sources.

    Every word that is such a name counts, unless it is in a string, follows an alias (`w.state`) or is one (`as
    event`): a table too many costs only time, a missing one is an error.
    """
    tables, needed_views = dict[str, None](), dict[str, None]()

    def add(name: str) -> None:
        if name in views() and name not in needed_views:
            for source in _SOURCES.findall(views()[name].sql):
                add(source)
            needed_views[name] = None
        elif name in SCHEMAS or name in more:
            tables[name] = None

    for qualifier, word in _WORDS.findall(_ALIASES.sub(" ", _LITERALS.sub(" ", text))):
        if not qualifier or qualifier.lower() == "main":
            add(word.lower())
    return list(tables), list(needed_views)


def near_tables(name: str, more: Iterable[str] = ()) -> str:
    """Return a sentence that suggests tables, views or `more` with a similar name; empty if none is similar."""
    near = difflib.get_close_matches(name[:_LONGEST_NAME].lower(), (*SCHEMAS, *views(), *more), 2, 0.7)
    return f"is {' or '.join(near)} meant? " if near else ""


def unknown_table(name: str, more: Iterable[str] = ()) -> str:
    """Return the error message for a name that is no table, nor one of `more`, where views cannot be used."""
    if view := views().get(name.lower()):
        kind = "macro" if view.parameters else "view"
        return f'{view.name} is a {kind} of SQL and no table; `satview query` writes it: "from {view.usage}"'
    known = f"there are {', '.join(SCHEMAS)}, and those of kinds of events"
    return f"there is no table {name[:40]!r}; {near_tables(name, more)}{known}"


_CHECKED: Final = {
    "bin_ns": "CASE WHEN bin_ns > 0 THEN bin_ns ELSE error('bin_ns is not above 0') END",
    "to_ns": "CASE WHEN to_ns >= from_ns THEN to_ns ELSE error('to_ns is before from_ns') END",
}


def definition(view: View) -> str:
    """Return the statement that creates a view or macro as a temporary object of a connection.

    A query with a macro fails if `bin_ns` is not above 0, or if `to_ns` is before `from_ns`.
    """
    kind, query = f"MACRO {view.usage} AS TABLE" if view.parameters else f"VIEW {view.name} AS", view.sql
    for name in view.parameters:
        query = re.sub(rf"\b{name}\b", f"({_CHECKED.get(name, name)})", query)
    return f"CREATE TEMP {kind} SELECT {', '.join(view.columns.values())} FROM ({query})"  # noqa: S608  -- of ours


def quoted(text: str) -> str:
    """Return a text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


CLOCK_MACROS: Final = ("time_ns", "duration_ns", "cycles", "_length_ns")


def clock_macros(start: int, rate: int) -> Iterator[str]:
    """Yield statements that create the macros from cycles to ns and back, exactly as `base.time.Clock` does."""
    second = NS_PER_S
    # Integer division of DuckDB rounds towards zero; two per value determine the speed of a query over all events.
    seconds = f"(cycles::BIGINT // {rate})"
    part = f"(cycles::BIGINT - {seconds} * {rate})"
    rest = f"((ns::BIGINT % {second} + {second}) % {second})"
    yield (
        "CREATE OR REPLACE TEMP MACRO duration_ns(cycles) AS "
        f"{seconds} * {second} + ({part} * {second} - CASE WHEN {part} < 0 THEN {rate - 1} ELSE 0 END) // {rate}"
    )
    # Sums of many durations may exceed 64 bits: null, so that the query does not fail.
    yield (
        f"CREATE OR REPLACE TEMP MACRO _length_ns(cycles) AS TRY_CAST(cycles::HUGEINT * {second} // {rate} AS BIGINT)"
    )
    yield f"CREATE OR REPLACE TEMP MACRO time_ns(cycles) AS duration_ns(cycles - ({start}))"
    yield (
        "CREATE OR REPLACE TEMP MACRO cycles(ns) AS "
        f"({start}) + (ns::BIGINT - {rest}) // {second} * {rate} + ({rest} * {rate} + {second - 1}) // {second}"
    )
