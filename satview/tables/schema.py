"""What tables a trace has, and what each of their columns means: the one position, of which docs/tables.md is made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from satview.answers.latencies import QUESTION as LATENCIES
from satview.answers.table import KNOWN_WORDS, Question
from satview.answers.table import Column as AnswerColumn
from satview.answers.table import Kind as AnswerKind
from satview.answers.transactions import QUESTION as TRANSACTIONS
from satview.answers.verdicts import QUESTION as VERDICTS
from satview.answers.verdicts import UNDECIDED


class Kind(StrEnum):
    """What the values of a column are; the value is the type in numpy."""

    INT64 = "int64"
    INT32 = "int32"
    UINT32 = "uint32"
    UINT16 = "uint16"
    UINT8 = "uint8"
    ROW = "uint16, uint32"  # as narrow as the trace has it
    BOOL = "bool"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        name: A time or length ends in its unit.
        kind: What its values are.
        meaning: One sentence without a full stop.
        is_nullable: Not every row has a value: null in Arrow and SQL, -1 in numpy (texts: the empty one).
        cycles: Of a column of nanoseconds the column of cycles that it is made from; empty for all others.
        is_moment: Of such a column: a moment since the first event rather than a length.
    """

    name: str
    kind: Kind
    meaning: str
    is_nullable: bool = False
    cycles: str = ""
    is_moment: bool = False

    @property
    def unit(self) -> str:
        """The unit as its name has it; empty for what is no quantity."""
        unit = self.name.rpartition("_")[2]
        return unit if unit in ("cycles", "ns", "bytes", "mhz") else ""


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One table.

    Attributes:
        name: As in SQL.
        meaning: What a row is.
        columns: In order.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column:
        """Return a column by name.

        Raises:
            KeyError: There is none.
        """
        return dict(zip(self.names, self.columns, strict=True))[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns, in order."""
        return tuple(column.name for column in self.columns)


def _moment(name: str, meaning: str, *, is_nullable: bool = False) -> tuple[Column, Column]:
    """Return a moment in exact cycles of the target's counter, and in nanoseconds since the first event."""
    return (
        Column(f"{name}_cycles", Kind.INT64, meaning, is_nullable),
        Column(f"{name}_ns", Kind.INT64, "the same, since the first event", is_nullable, f"{name}_cycles", True),
    )


def _length(name: str, meaning: str, *, is_nullable: bool = False) -> tuple[Column, Column]:
    """Return a length in exact cycles, and in nanoseconds, rounded down."""
    return (
        Column(f"{name}_cycles", Kind.INT64, meaning, is_nullable),
        Column(f"{name}_ns", Kind.INT64, "the same, rounded down", is_nullable, f"{name}_cycles"),
    )


def _number(name: str, meaning: str) -> Column:
    """Return a column of numbers, or of rows of another table."""
    return Column(name, Kind.INT64, meaning)


def _maybe(name: str, meaning: str) -> Column:
    """Return the same, of which not every row has a value."""
    return Column(name, Kind.INT64, meaning, is_nullable=True)


def _text(name: str, meaning: str) -> Column:
    return Column(name, Kind.TEXT, meaning)


def _flag(name: str, meaning: str) -> Column:
    return Column(name, Kind.BOOL, meaning)


_KIND_OF_ANSWER: Final = {  # INT64 of all others
    AnswerKind.TEXT: Kind.TEXT,
    AnswerKind.STATE: Kind.TEXT,
    AnswerKind.SENTENCE: Kind.TEXT,
    AnswerKind.CPU: Kind.UINT8,
}
_KNOWN: Final = Column("", Kind.TEXT, "how that is known: " + ", ".join(f"`{word}`" for word in KNOWN_WORDS))


def _of_answer(name: str, meaning: str, question: Question) -> TableSchema:
    """Return the table of an answer: its columns, those of times twice, and how values are known that may not be exact.

    Args:
        name: As in SQL.
        meaning: What a row is.
        question: The answer's columns.
    """
    columns: list[Column] = []
    for column in question.columns:
        if column.sql_name:
            if column.kind.is_cycles:
                make = _moment if column.kind is AnswerKind.TIME else _length
                columns += make(column.sql_name, column.meaning, is_nullable=column.is_nullable)
            else:
                kind = _KIND_OF_ANSWER.get(column.kind, Kind.INT64)
                columns.append(Column(column.sql_name, kind, _of_row(column), column.is_nullable))
            if column.reasons:
                columns.append(replace(_KNOWN, name=f"{column.sql_name}_known"))
    return TableSchema(name, meaning, tuple(columns))


def _of_row(column: AnswerColumn) -> str:
    """Return what a column means, of threads and events by what SQL has of them: rows."""
    if column.kind is AnswerKind.THREAD:
        return f"row of `thread`: {column.meaning}"
    return f"row of `event`: {column.meaning}" if column.kind is AnswerKind.EVENT else column.meaning


_CERTAINTY: Final = Column(
    "certainty", Kind.TEXT, "`exact`: events name it; `inferred`: it follows from their order; `guess`: one of several"
)
_THREAD: Final = _number("thread", "row of `thread`; 0 = not known")
_CPU: Final = Column("cpu", Kind.UINT8, "CPU, from 0")
_IS_CUT: Final = Column(
    "is_cut", Kind.BOOL, "the trace does not hold both ends: of its length only a lower bound is known"
)

SCHEMAS: Final[dict[str, TableSchema]] = {
    table.name: table
    for table in (
        TableSchema(
            "event",
            "Every event, in time order.",
            (
                Column("event", Kind.UINT32, "its row, from 0; the window counts events from 1"),
                *_moment("time", "when it was logged; never decreases"),
                Column("cpu", Kind.UINT8, "the CPU that logged it, from 0"),
                Column("thread", Kind.ROW, "row of `thread`: whose state changes, else who ran there; 0 = not known"),
                Column("code", Kind.UINT16, "internal class and event, 15 bits"),
                _text("class", "printed class, such as `KER_CALL`"),
                _text("name", "as QNX spells it, such as `MSG_SENDV`"),
            ),
        ),
        TableSchema(
            "argument",
            "Every argument of every event, one a row: by event, then in the order of its payload.",
            (
                Column("event", Kind.UINT32, "row of `event`"),
                *_moment("time", "when the event was logged"),
                _text("kind", "which table has the events of that kind, such as `call_msg_sendv`"),
                _text("argument", "its name, such as `coid`"),
                Column("number", Kind.INT64, "its value; null where that is a text", is_nullable=True),
                Column("text", Kind.TEXT, "its value, null where that is a number", is_nullable=True),
            ),
        ),
        TableSchema(
            "state",
            "Every interval of every thread in one state, by thread, then in time order; those of a thread touch. An "
            "idle thread is never `RUNNING` or `READY`, but `IDLE` while it has a CPU and else `WAITING`.",
            (
                _number("thread", "row of `thread`"),
                _text("state", "`RUNNING`, `READY`, `MUTEX`, ..., `UNKNOWN`; `ABSENT` before it is created "
                      "and where an axis does not have its file"),
                Column("state_before", Kind.TEXT, "the state of the interval before", is_nullable=True),
                *_moment("start", "when it begins"),
                *_moment("end", "when it ends; not included"),
                *_length("length", "how long it is"),
                _maybe("event", "row of the event that begins it"),
                _IS_CUT,
            ),
        ),
        TableSchema(
            "run",
            "Every run of a thread on a CPU without a break, by CPU, then in time order.",
            (
                _CPU,
                _number("thread", "row of `thread`"),
                *_moment("start", "when it begins"),
                *_moment("end", "when it ends; not included"),
                *_length("length", "how long it is, interrupts included"),
                *_length("cpu", "the same without interrupts"),
                *_length("interrupted", "interrupts were handled meanwhile"),
                _flag("is_idle", "of an idle thread"),
                _flag("is_start", "false where events are missing: it may be the rest of the run before"),
                _flag("is_switch", "another thread had the CPU before"),
                _flag("is_migration", "the thread ran on another CPU before; never of idle threads"),
                _maybe("from_cpu", "that CPU, where no events are missing in between"),
                _maybe("priority", "as it begins, where the event shows it"),
                _maybe("event", "row of the event `THRUNNING` that begins it"),
                _IS_CUT,
            ),
        ),
        TableSchema(
            "cpu_state",
            "What each CPU did, by CPU, then in time order: intervals that touch and fill the whole trace.",
            (
                _CPU,
                _text("kind", "`thread`, `idle`, `interrupt`, `unknown`; `kernel call` where the thread is not known"),
                _number("thread", "row of `thread`: who ran, or was interrupted; 0 = not known"),
                *_moment("start", "when it begins"),
                *_moment("end", "when it ends; not included"),
                *_length("length", "how long it is"),
            ),
        ),
        TableSchema(
            "call",
            "Every kernel call, in the order of its entries.",
            (
                _number("event", "row of the event of its entry"),
                _maybe("exit_event", "row of the event that ends it"),
                _CPU,
                _THREAD,
                _text("name", "as QNX spells it, such as `MSG_SENDV`"),
                *_moment("start", "when it is entered"),
                *_moment("end", "when it is left", is_nullable=True),
                *_length("length", "from entry to exit", is_nullable=True),
                *_length("running", "of that, its caller had a CPU", is_nullable=True),
                _flag("is_interrupted", "it ended in its interrupted form"),
                _flag("is_failed", "it returned with an error"),
                _maybe("errno", "that error"),
            ),
        ),
        _of_answer(
            "message",
            "Every message that was sent, in time order; queued + service + reply = round trip.",
            TRANSACTIONS,
        ),
        TableSchema(
            "pulse",
            "Every pulse that was sent, in time order.",
            (
                _number("event", "row of the event that sends it"),
                _text("name", "which event: `SND_PULSE`, `SND_PULSE_EXE`, `SND_PULSE_DIS`, ..."),
                _CPU,
                _number("thread", "row of `thread`: who ran on that CPU; 0 = not known"),
                _number("scoid", "connection of the server"),
                _number("server_pid", "process that it was sent to"),
                *_moment("time", "when it was sent"),
                _maybe("receive_event", "row of the event `REC_PULSE`"),
                _maybe("receiver", "row of `thread`: who received it"),
                *_length("queued", "from the send to the receipt", is_nullable=True),
                Column("certainty", Kind.TEXT, "of the receipt, as in `message`", is_nullable=True),
            ),
        ),
        _of_answer(
            "latency",
            "Every pulse and every interrupt that ends InterruptWait(), from its cause to the thread that answers.",
            LATENCIES,
        ),
        TableSchema(
            "interrupt",
            "Every interrupt, in the order of its entries; in 8.0 every delivery, which has no exit.",
            (
                _number("event", "row of the event of its entry"),
                _maybe("exit_event", "row of the event of its exit"),
                _maybe("handler_event", "row of the entry of its first handler"),
                _CPU,
                _number("thread", "row of `thread`: who was interrupted; 0 = not known"),
                _number("vector", "its number"),
                *_moment("start", "when it is entered"),
                *_moment("end", "when it is left", is_nullable=True),
                *_length("length", "from entry to exit, interrupts nested in it included", is_nullable=True),
                *_length("handler_entry", "from entry to the entry of its first handler", is_nullable=True),
            ),
        ),
        TableSchema(
            "wake_up",
            "Everything that ends a wait: who or what makes a thread ready, or lets it run at once; by cause.",
            (
                _number("cause_event", "row of the event that ends the wait"),
                _number("event", "row of the event `THREADY` or `THRUNNING` that follows"),
                _number("waker", "row of `thread`: whose event the cause is; 0 = not known"),
                _number("thread", "row of `thread`: who is woken"),
                Column("cpu", Kind.UINT8, "CPU of the cause"),
                *_moment("cause", "when the cause was logged"),
                *_moment("time", "when the thread becomes ready, or runs"),
                _CERTAINTY,
            ),
        ),
        TableSchema(
            "wait",
            "Every wait of every thread that the trace holds whole, by thread, then in time order, and whom it is for.",
            (
                _number("thread", "row of `thread`: who waits"),
                _text("state", "`MUTEX`, `REPLY`, `NANOSLEEP`, ..."),
                *_moment("start", "when it begins"),
                *_moment("end", "when it ends", is_nullable=True),
                *_length("length", "how long it is; to the end of the trace where that comes first"),
                _number("event", "row of the event that begins it"),
                _maybe("end_event", "row of the event that ends it"),
                _maybe("call_event", "row of the entry of the kernel call that the thread waits in"),
                _maybe("object", "what it waits for: address, channel or thread number, by state"),
                _maybe("blocker", "row of `thread`: who can end it, as it begins"),
                _maybe("blocker_pid", "process of that thread, or that a message was sent to"),
                Column("certainty", Kind.TEXT, "of the blocker, as in `message`", is_nullable=True),
            ),
        ),
        TableSchema(
            "activation",
            "Every span in which a thread was READY or RUNNING without a wait, by thread, then in time order.",
            (
                _number("thread", "row of `thread`"),
                *_moment("start", "when a wait was over, or the thread began"),
                *_moment("end", "when it began to wait again, or ended"),
                *_length("response", "from start to end"),
                *_length("running", "of that, it ran"),
                *_length("period", "since the start of its activation before, where that is known", is_nullable=True),
                _maybe("event", "row of the event that begins it"),
                _IS_CUT,
            ),
        ),
        TableSchema(
            "thread",
            "Every thread; row 0 represents what belongs to no known thread.",
            (
                _number("thread", "its row"),
                Column("pid", Kind.INT32, "process id; -1 in row 0"),
                Column("tid", Kind.INT32, "number within its process, from 1; -1 in row 0, 0 = not known"),
                Column("process", Kind.INT32, "row of `process`"),
                _text("name", "as last given; empty where none was"),
                _text("label", "process and thread for people, such as `devb-eide 2`"),
                _flag("is_idle", "an idle thread"),
            ),
        ),
        TableSchema(
            "process",
            "Every process; row 0 represents what belongs to no known process.",
            (
                _number("process", "its row"),
                Column("pid", Kind.INT32, "process id; -1 in row 0"),
                Column("parent_pid", Kind.INT32, "that of its parent", is_nullable=True),
                _text("name", "path or name as last given; empty where none was"),
                _text("label", "its name without folders, or `pid N`"),
                *_moment("created", "when it was created, if the trace shows", is_nullable=True),
                *_moment("destroyed", "when it ended, if the trace shows", is_nullable=True),
            ),
        ),
        TableSchema(
            "cpu",
            "Every CPU of the target.",
            (
                _CPU,
                _text("label", "as its lane is called, such as `CPU 0`"),
                _text("model", "as the system page names it; empty where it does not"),
                _number("speed_mhz", "as the system page has it; 0 where it does not"),
            ),
        ),
        TableSchema(
            "loss",
            "Every span of time in which events are missing, by start.",
            (
                _maybe("cpu", "the CPU whose events are missing; null = every CPU"),
                *_moment("start", "the last event before"),
                *_moment("end", "the first event after"),
                *_length("length", "how long it is"),
            ),
        ),
        _of_answer("verdict", "Everything that `satview check` finds wrong, the most severe first.", VERDICTS),
        _of_answer("undecided", "Every kind of verdict that the trace cannot show, or not all of them.", UNDECIDED),
        TableSchema(
            "mark",
            "Every mark and note that was set in the window, by time.",
            (
                *_moment("start", "where it begins"),
                *_moment("end", "where it ends; the same for a moment"),
                _text("text", "what was written; may be empty"),
            ),
        ),
        TableSchema(
            "client_time",
            "For whom threads ran, one row per thread; times on a CPU, interrupts included.",
            (
                _number("thread", "row of `thread`"),
                *_length("self", "it ran"),
                *_length("imposed", "servers ran that it waited for, or that those waited for"),
                *_length("own", "it ran and no message that it had received was unanswered"),
                *_length("caused", "others ran for it at the end of a chain of messages"),
            ),
        ),
        TableSchema(
            "server_time",
            "What each client had each server do, by client, then by server.",
            (
                _number("client", "row of `thread`"),
                _number("server", "row of `thread`: who ran, at the end of a chain of messages"),
                *_length("imposed", "how long it ran meanwhile"),
            ),
        ),
        TableSchema(
            "trace",
            "The trace itself: one row.",
            (
                _text("file", "its name"),
                _text("format", "what was read: `kev`, `qst`, `traceprinter`, `thread_trace` ..."),
                _text("release", "whose numbers and names apply: `6.x`, `6.6`, `7.x`, `8.0`, `unixware`, `linux`"),
                *_moment("start", "the first event"),
                *_moment("end", "just after the last event"),
                *_length("length", "from the first event to just after the last"),
                _number("cycles_per_s", "rate of the counter"),
                _number("cpus", "CPUs of the target"),
                _number("events", "events"),
            ),
        ),
    )
}  # fmt: skip
