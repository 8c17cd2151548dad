"""One answer as a table: described once, read by the window, the command line, files, SQL and data frames alike.

A `Question` describes its columns without a trace. A `Table` binds them to arrays of one trace, made when they are
first needed, and to the rows that are shown, in their order. Filters and orders make other tables over the same arrays;
a text is made for a row that is printed or drawn, never for all of them.

Where a value is not known exactly the table says how it is known (`Known`), per row. What a value cannot say at all is
either absent (below 0 or the empty text, and `EXACT`: there is none, such as the reply of a message that timed out) or
`UNKNOWN` (there may be one, but the trace does not show it).
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import Frames, Partial, Several, Texts, Values, arrow_array, html_rows
from satview.base.errors import UsageError
from satview.base.extras import required
from satview.base.safe_text import csv_text, visible_line
from satview.base.time import NS_PER_S, Clock
from satview.base.time_text import format_duration, format_moment
from satview.linkage.table import Certainty
from satview.store.trace import Trace

if TYPE_CHECKING:
    import pyarrow as pa

    from satview.analysis.times.basis import Trust

Positions = NDArray[np.int64]
Source = Values | Several | Callable[[], Values]
SCHEMA_VERSION: Final = 1  # of the form in JSON, described in docs/transactions.md
SUBJECT: Final = "subject"  # column for programs: the thread, process, CPU or event that a row is about
_SHOWN_ROWS: Final = 10
_LOOKED_AT_ROWS: Final = 1 << 10
_CACHED_NAMES: Final = 4096
_DECIMALS: Final = 6  # of shares and rates, for programs
_LEAST_SHARE: Final = 0.0005  # that is written as a number
_MOST_LISTED: Final = 8  # values of one cell, in text


class Known(IntEnum):
    """How a value is known."""

    EXACT = 0
    """The trace shows it, or shows that there is none."""
    AT_LEAST = 1
    """It is not less: it goes on when the trace ends, or a part of it is not known."""
    AT_MOST = 2
    """It is not more."""
    INFERRED = 3
    """It follows from the order of events; no event says so."""
    GUESS = 4
    """One of several possibilities that the trace does not distinguish."""
    UNKNOWN = 5
    """The trace does not show it."""
    ESTIMATE = 6
    """It may be more or less: something that it rests on is missing."""

    @property
    def word(self) -> str:
        """Its name in JSON, CSV and SQL: `at least`."""
        return self.name.lower().replace("_", " ")

    @property
    def sign(self) -> str:
        """Sign before a displayed value."""
        return ("", "\N{GREATER-THAN OR EQUAL TO}", "\N{LESS-THAN OR EQUAL TO}", "~", "?", "", "\N{ALMOST EQUAL TO}")[
            self
        ]


CERTAINTIES: Final = ("", *(certainty.name.lower() for certainty in Certainty))  # by `Certainty`
KNOWN_WORDS: Final = tuple(known.word for known in Known)
_DOUBT: Final = np.array(
    (0, 2, 2, 1, 4, 5, 3), np.uint8
)  # by `Known`: a lower bound of what is inferred is a lower bound
_OF_CERTAINTY: Final = {Certainty.GUESS: Known.GUESS, Certainty.INFERRED: Known.INFERRED, Certainty.EXACT: Known.EXACT}


def known_by_certainty(certainty: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return how values that rest on links are known, `Known` as uint8 (n,).

    Args:
        certainty: uint8 (n,), `Certainty`.
    """
    by_value = np.zeros(max(Certainty) + 1, np.uint8)
    for value, known in _OF_CERTAINTY.items():
        by_value[value] = known
    return by_value[certainty]


def least_known(*parts: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return how sums and maxima are known: as their least known part. Takes and returns `Known` as uint8 (n,)."""
    worst = parts[0].copy()
    for part in parts[1:]:
        worst = np.where(_DOUBT[part] > _DOUBT[worst], part, worst)
    return worst


class Kind(StrEnum):
    """Kinds of values of a column, which decide how they are written."""

    TIME = "time"  # cycles of the trace's clock; written as nanoseconds since the start of the trace
    DURATION = "duration"  # cycles; written as nanoseconds
    COUNT = "count"
    SHARE = "share"  # of a whole, from 0 to 1, or more than 1 of one CPU; written as percent for people
    RATE = "rate"  # per second
    FLAG = "flag"  # bool
    FIGURE = "figure"  # float64 of any sign, nan = none; the table says how it is written
    NUMBER = "number"  # a name that is a number, such as a pid
    HEX = "hex"  # a number that people know in hexadecimal
    CPU = "cpu"
    THREAD = "thread"  # row of the thread table; written as its label
    PROCESS = "process"  # row of the process table
    EVENT = "event"  # row of the event table; written as its number from 1
    TEXT = "text"  # `Texts`, in the order that they sort by
    STATE = "state"  # `Texts` of `events.states.NAMES_BY_VALUE`: with the colour of its lane in windows
    SENTENCE = "sentence"  # `Texts` that are read as a whole: wrapped in windows, below the row on the command line

    @property
    def is_words(self) -> bool:
        """Written from the left, and sorted from the first to the last at first."""
        return self in (Kind.TEXT, Kind.STATE, Kind.SENTENCE, Kind.THREAD, Kind.HEX)

    @property
    def is_cycles(self) -> bool:
        """Held in cycles, shown in nanoseconds."""
        return self in (Kind.TIME, Kind.DURATION)


FRACTIONS: Final = (Kind.SHARE, Kind.RATE, Kind.FIGURE)  # held as float64


@dataclass(frozen=True, slots=True)
class Column:
    """One column, without its values.

    Attributes:
        name: Stable name without a unit: `queued`; with it where another column has the name.
        kind: What the values are.
        meaning: One sentence that begins in lower case and has no full stop.
        title: For people; empty = a column for programs, which window, text, CSV and JSON leave out.
        sql: Its name in SQL, Arrow and data frames, without a unit; None = as `name`, empty = not there.
        is_nullable: A value may be absent: null in SQL and Arrow.
        reasons: Why a value is known less than exactly, by how it is known; none = all values are exact.
        follows_filter: It counts what passes the filter, or times that this begins.
        trust: Why its values are not all exact, where that is one thing for the column; None = it is not.
    """

    name: str
    kind: Kind
    meaning: str
    title: str = ""
    sql: str | None = None
    is_nullable: bool = False
    reasons: Mapping[Known, str] = field(default_factory=dict)
    follows_filter: bool = False
    trust: Trust | None = None

    @property
    def marked_title(self) -> str:
        """The title, with the sign of how the column is known behind it if that is one thing for the column."""
        return " ".join((self.title, *(known.sign for known in self.reasons if self.trust is not None)))

    @property
    def key(self) -> str:
        """Its name in CSV and JSON: `queued_ns`."""
        return f"{self.name.removesuffix('_ns')}_ns" if self.kind.is_cycles else self.name

    @property
    def sql_name(self) -> str:
        """Its name in SQL and Arrow without a unit; empty = not there."""
        return self.name.removesuffix("_ns") if self.sql is None else self.sql

    @property
    def tip(self) -> str:
        """What it means, as a sentence, and how its values may be known."""
        doubts = (f"{known.sign or known.word}: {reason}." for known, reason in self.reasons.items())
        return "\n".join((f"{self.meaning[:1].upper()}{self.meaning[1:]}.", *doubts))


@dataclass(frozen=True, slots=True)
class Question:
    """What a table answers, and its columns.

    Attributes:
        name: Stable name: `transactions`.
        title: For people.
        text: The question: `Which messages took longest?`.
        columns: In order; those with a title are what people see.
        sort_name: Column by which it is sorted at first, largest first; empty = in the order of its rows.
        empty: What to say when there is no row.
        tone: Column of texts of which `error` and `warning` colour a row; empty = none.
        note: What else is to be known of it; may be empty.
    """

    name: str
    title: str
    text: str
    columns: tuple[Column, ...]
    sort_name: str
    empty: str
    tone: str = ""
    note: str = ""

    @property
    def names_rows(self) -> Column:
        """The first column for people."""
        return next(column for column in self.columns if column.title)

    def column(self, name: str) -> Column:
        """Return a column by its name without a unit.

        Raises:
            UsageError: There is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        names = [column.name for column in self.columns]
        near = difflib.get_close_matches(name, names, 1)
        meant = f"; is {near[0]} meant?" if near else f"; it has {', '.join(names)}"
        raise UsageError(f"the table {self.name} has no column {name[:40]!r}{meant}")


class Outcome(StrEnum):
    """Outcomes of a question."""

    FOUND = "found"
    NOTHING = "nothing"
    """The trace could show it, and there is none."""
    CANNOT_TELL = "cannot tell"
    """The trace does not have what it takes."""


class _Data:
    """The values of all rows of an answer, made when they are first needed and shared by tables of some of the rows."""

    def __init__(self, trace: Trace | None, sources: Mapping[str, Source]) -> None:
        self.trace, self.clock = trace, Clock(NS_PER_S) if trace is None else trace.clock
        self.sources = sources
        self.known: Mapping[str, NDArray[np.uint8]] = {}
        self.texts: Mapping[str, Callable[[int], str]] = {}
        self.parent: Positions | None = None
        self.moments: Mapping[str, Positions] = {}
        self.events: Mapping[str, Positions] = {}
        self._made: dict[str, Any] = {}
        self._writers: dict[str, Callable[[int], str]] = {}
        self.thread_name = lru_cache(_CACHED_NAMES)(str if trace is None else trace.thread_name)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the result of a function, which runs only at the first call under that name."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def values(self, name: str) -> Any:
        """Return the values of a column: an array, `Texts` or `Several`, (n,)."""
        source = self.sources[name]
        return source if not callable(source) else self.once(f"values {name}", source)

    def writer(self, column: Column) -> Callable[[int], str]:
        """Return a function from a row to the display text of a column's value, empty without a value."""
        write = self._writers.get(column.name)
        if write is None:
            write = self._writers[column.name] = self.texts.get(column.name) or self._make_writer(column)
        return write

    def _make_writer(self, column: Column) -> Callable[[int], str]:
        values, clock, name = self.values(column.name), self.clock, self.thread_name
        if isinstance(values, Texts):
            code, texts = values.code, values.texts
            return lambda row: texts[code[row]]
        if isinstance(values, Several):
            rows, shown = values.rows, self.shown_one(column)
            sign = "#" if column.kind is Kind.EVENT else ""
            return lambda row: _listed([f"{sign}{shown(value)}" for value in rows[row]])
        if isinstance(values, Partial):
            plain, is_there = values.numpy(), values.known
            return lambda row: str(plain[row]) if is_there[row] else ""
        if column.kind is Kind.THREAD:
            return lambda row: name(int(values[row])) if values[row] > 0 else "unknown"
        written: dict[Kind, Callable[[int], str]] = {
            Kind.TIME: lambda cycles: format_moment(cycles, clock),
            Kind.DURATION: lambda cycles: format_duration(clock.duration_ns(cycles)),
            Kind.COUNT: lambda count: f"{count:,}",
            Kind.HEX: lambda number: f"0x{number:x}",
            Kind.EVENT: lambda event: str(event + 1),
            Kind.FLAG: lambda is_so: "yes" if is_so else "",
        }
        if column.kind in FRACTIONS:
            return lambda row: number_text(column.kind, values[row]) if values[row] >= 0 else ""
        write = written.get(column.kind, str)
        return lambda row: write(int(values[row])) if values[row] >= 0 else ""

    def shown_one(self, column: Column) -> Callable[[Any], Any]:
        """Return a function that converts one of several values in a row for programs."""
        if column.kind is Kind.THREAD:
            return self.thread_name
        return (lambda event: event + 1) if column.kind is Kind.EVENT else lambda value: value

    def keys(self, column: Column) -> NDArray[np.integer[Any]]:
        """Return integers (n,) in whose order a column is sorted; below 0 = last."""
        values = self.values(column.name)
        if isinstance(values, Several):
            return values.counts
        if isinstance(values, Texts):
            return values.code
        if column.kind in FRACTIONS:
            return np.where(_is_absent(column, values), -1, np.unique(values, return_inverse=True)[1])
        if column.kind is not Kind.THREAD:
            return np.asarray(values)
        return np.where(values > 0, self.once("name ranks", self._name_ranks)[values], -1)

    def _name_ranks(self) -> Positions:
        """Return for every thread the rank of its label in the order of all labels."""
        assert self.trace is not None
        labels = [self.thread_name(row).casefold() for row in range(len(self.trace.threads))]
        return np.unique(np.array(labels), return_inverse=True)[1].astype(np.int64)

    def children(self) -> tuple[Positions, Positions]:
        """Return the rows that have a parent, by parent, and where those of each row begin there, (n + 1,)."""
        assert self.parent is not None
        child = np.flatnonzero(self.parent >= 0)
        child = child[np.argsort(self.parent[child], kind="stable")]
        return child, np.searchsorted(self.parent[child], np.arange(len(self.parent) + 1))


class Table(Frames):
    """An answer: rows of one trace in an order.

        slow = satview.answers.transactions.transaction_table(trace).sorted_by("round_trip").head(20)
        slow["round_trip_ns"], slow.text(0, "round_trip"), slow.to_pandas()

    Attributes:
        question: What it answers, and its columns.
        cannot_tell: Why the trace cannot answer it, or not in full, and what to capture, a line each; empty = it can.
    """

    def __init__(
        self,
        question: Question,
        trace: Trace | None,
        values: Mapping[str, Source],
        *,
        known: Mapping[str, NDArray[np.uint8]] | None = None,
        texts: Mapping[str, Callable[[int], str]] | None = None,
        parent: Positions | None = None,
        has_parts: bool = False,
        place: str = "event",
        cannot_tell: str = "",
        moments: Mapping[str, Positions] | None = None,
        events: Mapping[str, Positions] | None = None,
    ) -> None:
        """Bind columns to values.

        Args:
            question: The columns.
            trace: The events; None = of many traces, with times in nanoseconds.
            values: By name of each column arrays (n,), or functions that make them; cycles for times and durations.
            known: `Known` as uint8 (n,) of columns with reasons; columns that are not here are exact.
            texts: By name of a column what writes the value of a row, where its kind does not say enough.
            parent: int64 (n,), the row that each row is below, -1 for none; None = no row is below another.
            has_parts: Rows below others are parts of these, which count as one row.
            place: Column of kind EVENT that says where a row is; below 0 = nowhere.
            cannot_tell: As of the table.
            moments: By name of a column when its values happened, cycles, int64 (n,); below 0 = nobody knows.
            events: By name of a column at which events its values happened, int64 (n,); below 0 = nobody knows.
        """
        self._data = _Data(trace, values)
        self._data.moments, self._data.events = moments or {}, events or {}
        self._data.known, self._data.texts, self._data.parent = known or {}, texts or {}, parent
        self.question, self._place = question, place
        self.cannot_tell = cannot_tell
        self._whole = np.flatnonzero(parent < 0) if has_parts and parent is not None else None  # None = every row
        self._positions: Positions | None = self._whole

    @property
    def trace(self) -> Trace:
        """The events; not of a table of many traces."""
        assert self._data.trace is not None, f"{self.question.name} is about many traces"
        return self._data.trace

    # ---- rows ---------------------------------------------------------------------------------------------------

    @property
    def positions(self) -> Positions:
        """Which of all rows of the answer it has, in its order, int64 (rows,)."""
        every: Positions = self._data.once("every row", lambda: np.arange(self._count))
        return every if self._positions is None else self._positions

    @property
    def _count(self) -> int:
        return len(self._data.values(self.question.columns[0].name))

    def __len__(self) -> int:
        return self._count if self._positions is None else len(self._positions)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records())

    @property
    def total(self) -> int:
        """How many rows the answer has without filters."""
        return self._count if self._whole is None else len(self._whole)

    def whole(self) -> Table:
        """Return all rows of the answer, in its own order."""
        return self._with(self._whole)

    @property
    def outcome(self) -> Outcome:
        """Whether there are rows, there are none, or the trace cannot tell."""
        if len(self):
            return Outcome.FOUND
        return Outcome.CANNOT_TELL if self.cannot_tell else Outcome.NOTHING

    @property
    def says_why_empty(self) -> str:
        """Message for a table without rows."""
        return "\n".join(f"Cannot tell: {line}." for line in self.missing) or self.question.empty

    @property
    def missing(self) -> list[str]:
        """Deficits of the trace that prevent a full answer, a sentence each without a full stop."""
        return self.cannot_tell.splitlines()

    def at(self, positions: Positions) -> Table:
        """Return the same answer with other rows of it, int64 (k,), in that order."""
        return self._with(positions)

    def _with(self, positions: Positions | None) -> Table:
        other = object.__new__(Table)
        other.__dict__.update(self.__dict__, _positions=positions)
        return other

    def rows(self, mask: NDArray[np.bool_]) -> Table:
        """Return the rows for which a mask, bool (rows,), is true."""
        return self.at(self.positions[mask])

    def head(self, count: int | None) -> Table:
        """Return the first rows; None = all."""
        return self.at(self.positions[:count])

    def sorted_by(self, name: str, descending: bool = True) -> Table:
        """Return the rows in the order of a column: bounds by their value; absent and unknown values come last.

        Rows of one value keep their order.

        Args:
            name: Of the column, without a unit.
            descending: The largest first.

        Raises:
            UsageError: There is no such column.
        """
        keys = self.sort_keys(name)
        keys = np.where(keys < 0, np.iinfo(np.int64).max, -keys if descending else keys)
        return self.at(self.positions[np.argsort(keys, kind="stable")])

    def sort_keys(self, name: str) -> Positions:
        """Return integers in whose order a column is sorted, int64 (rows,): equal ones for equal values, below 0 last.

        Raises:
            UsageError: There is no such column.
        """
        return self._data.keys(self.question.column(name))[self.positions].astype(np.int64)

    # ---- what is below another row ------------------------------------------------------------------------------

    @property
    def is_tree(self) -> bool:
        """Whether rows may be below others."""
        return self._data.parent is not None

    def children(self, row: int) -> Positions:
        """Return the positions of the rows below a row, in their own order, int64."""
        if not self.is_tree:
            return np.empty(0, np.int64)
        child, start = self._data.once("children", self._data.children)
        position = int(self.positions[row])
        return np.asarray(child[start[position] : start[position + 1]])

    def parent(self, row: int) -> int:
        """Return the position of the row that a row is below, -1 for none."""
        return -1 if self._data.parent is None else int(self._data.parent[self.positions[row]])

    def unfolded(self) -> Table:
        """Return the rows, below each all rows that are below it, with a column that says how deep.

        A row that is below another of these shows there only.
        """
        parent = self._data.parent
        assert parent is not None
        rank = np.full(len(parent) + 1, -1, np.int64)  # the last one is that of no parent
        rank[self.positions] = np.arange(len(self))
        root, depth = np.where(rank[:-1] >= 0, np.arange(len(parent)), -1), np.zeros(len(parent), np.int64)
        above, level = parent.copy(), 1
        while (climbing := np.flatnonzero(above >= 0)).size:  # over levels
            own = climbing[rank[above[climbing]] >= 0]
            root[own], depth[own] = above[own], level
            above[climbing] = parent[above[climbing]]
            level += 1
        shown = np.flatnonzero(root >= 0)
        other = self.at(shown[np.lexsort((shown, rank[root[shown]]))])
        other._data = _Data(self._data.trace, {**self._data.sources, _DEPTH.name: depth})
        other._data.known, other._data.texts, other._data.parent = self._data.known, self._data.texts, parent
        other._data.moments, other._data.events = self._data.moments, self._data.events
        other.question = replace(self.question, columns=(*self.question.columns, _DEPTH))
        return other

    def is_list(self, column: Column) -> bool:
        """Return whether a row may have several values in a column."""
        return isinstance(self._data.values(column.name), Several)

    def several(self, row: int, name: str) -> tuple[Any, ...]:
        """Return the values of a row in a column of which `is_list` is true, as they are held."""
        return tuple(self._data.values(name).rows[self.positions[row]])

    def tone(self, row: int) -> str:
        """Return how much a row matters, such as `error`; empty for parts of others and where the question has none."""
        position = int(self.positions[row])
        if not self.question.tone or (self._data.parent is not None and self._data.parent[position] >= 0):
            return ""
        return self._data.writer(self.question.column(self.question.tone))(position)

    # ---- one value ----------------------------------------------------------------------------------------------

    def event(self, row: int, name: str = "") -> int:
        """Return the event that a row is about, or at which its value of a column happened; -1 for none."""
        if name:
            return int(self._data.events[name][self.positions[row]]) if name in self._data.events else -1
        return int(self._data.values(self._place)[self.positions[row]]) if self._place else -1

    def moment(self, row: int, name: str) -> int:
        """Return when the value of a row in a column happened, in cycles; -1 if only its event is known, or nothing."""
        return int(self._data.moments[name][self.positions[row]]) if name in self._data.moments else -1

    def has_place(self, row: int, name: str) -> bool:
        """Return whether the moment or the event of a value is known."""
        return max(self.moment(row, name), self.event(row, name)) >= 0

    def is_placed(self, name: str) -> bool:
        """Return whether a column says where its values happened."""
        return name in self._data.moments or name in self._data.events

    def held(self, row: int, name: str) -> int:
        """Return a value as it is held: cycles of times, rows of threads, codes of texts; below 0 for none."""
        values = self._data.values(name)
        return int((values.code if isinstance(values, Texts) else values)[self.positions[row]])

    def bar(self, row: int, column: Column) -> float | None:
        """Return how much of its bar a share fills, from 0 to 1; None if the column is no share.

        A full bar is the whole, or the largest share where several CPUs make it more.
        """
        if column.kind is not Kind.SHARE:
            return None
        values = self._data.values(column.name)
        full = self._data.once(f"full {column.name}", lambda: max(1.0, float(values.max(initial=0))))
        return max(0.0, float(values[self.positions[row]])) / float(full)

    def span(self, row: int) -> tuple[int, int] | None:
        """Return begin and end of a row, in cycles; None without `start` and `end`, or without a time."""
        position = int(self.positions[row])
        if not {"start", "end"} <= self._data.sources.keys():
            return None
        start, end = (int(self._data.values(name)[position]) for name in ("start", "end"))
        return (start, end) if end > start >= 0 else None

    def known(self, row: int, name: str) -> Known:
        """Return how a value is known."""
        known = self._data.known.get(name)
        return Known.EXACT if known is None else Known(int(known[self.positions[row]]))

    def text(self, row: int, name: str) -> str:
        """Return a value for people with the sign of how it is known; empty where there is none."""
        position, by_row = int(self.positions[row]), self._data.known.get(name)
        known = 0 if by_row is None else int(by_row[position])  # a number: made for every cell that shows
        if known == Known.UNKNOWN:
            return Known.UNKNOWN.word
        text = self._data.writer(self.question.column(name))(position)
        if _DEPTH.name in self._data.sources and name == self.question.names_rows.name:
            text = "  " * int(self._data.values(_DEPTH.name)[position]) + text
        return f"{Known(known).sign} {text}" if known and text else text

    def plain(self, row: int, name: str) -> str | int | float | None:
        """Return a value for programs: nanoseconds of times, names of threads; None where there is none."""
        plain: str | int | float | None = self.at(self.positions[row : row + 1])._plain(self.question.column(name))[0]
        return plain

    def doubt(self, row: int, name: str) -> str:
        """Return why a value is not exact, as a sentence; empty if it is."""
        known = self.known(row, name)
        return f"{known.word.capitalize()}: {self.question.column(name).reasons[known]}." if known else ""

    # ---- for people and for files -------------------------------------------------------------------------------

    def filled(self) -> tuple[Column, ...]:
        """Return the columns with a title in which at least one of these rows has something to show."""
        return tuple(column for column in self.question.columns if column.title and self._says_something(column))

    def _says_something(self, column: Column) -> bool:
        if not len(self) or column.kind in (Kind.THREAD, Kind.FLAG) or column.name in self._data.texts:
            return True
        if len(self) > _LOOKED_AT_ROWS and self.head(_LOOKED_AT_ROWS)._says_something(column):  # mostly enough
            return True
        values, known = self._data.values(column.name), self._data.known.get(column.name)
        if known is not None and np.any(known[self.positions] == Known.UNKNOWN):
            return True
        if isinstance(values, Several):
            return bool(np.any(values.counts[self.positions]))
        if isinstance(values, Partial):
            return bool(np.any(values.known[self.positions]))
        if isinstance(values, Texts):
            return any(values.texts[code] for code in np.unique(values.code[self.positions]).tolist())
        return bool(np.any(values[self.positions] >= 0))

    def doubts(self, names: Sequence[str] = ()) -> list[str]:
        """Return how many values of which columns are not exact and why, a sentence each; for below a table.

        Args:
            names: The columns that show; none = all.
        """
        titles: dict[tuple[Known, int, str], list[str]] = {}
        for column in self.filled():
            if column.name in self._data.known and (not names or column.name in names):
                counts = np.bincount(self._data.known[column.name][self.positions], minlength=len(Known))
                for known in list(Known)[1:]:
                    if counts[known]:
                        key = known, int(counts[known]), column.reasons[known]
                        titles.setdefault(key, []).append(column.title)
        return [f"{known.sign or known.word} {count:,} of {len(self):,} in {', '.join(names)}: {reason}"
                for (known, count, reason), names in titles.items()]  # fmt: skip

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of plain values by key, `known` with the words of values that are not exact.

        Columns for programs alone are left out.
        """
        columns = [column for column in self.question.columns if column.title]
        keys = [column.key for column in columns]
        rows = [dict(zip(keys, row, strict=True)) for row in zip(*map(self._plain, columns), strict=True)]
        for column in columns:
            for row, word in enumerate(self._known_words(column)):
                if word:
                    rows[row].setdefault("known", {})[column.key] = word
        return rows

    def document(self, key: str) -> dict[str, Any]:
        """Return it as JSON has it: version of the form, outcome, why it cannot be told, and rows under a key."""
        said = {"reason" if self.outcome is Outcome.CANNOT_TELL else "incomplete": ". ".join(self.missing)}
        return {"schema_version": SCHEMA_VERSION, "outcome": str(self.outcome),
                **{name: text for name, text in said.items() if text}, key: self.records()}  # fmt: skip

    def csv_rows(self) -> Iterator[Sequence[object]]:
        """Yield the keys, then every row as cells; a column with values that are not exact has one of words behind."""
        keys, cells = [], []
        for column in self.question.columns:
            if not column.title:
                continue
            keys.append(column.key)
            cells.append([_csv_cell(value) for value in self._plain(column)])
            if words := self._known_words(column):
                keys.append(f"{column.name}_known")
                cells.append([word or Known.EXACT.word for word in words])
        yield keys
        yield from zip(*cells, strict=True)

    def lines(self, rows: Sequence[int]) -> str:
        """Return rows as tab-separated text below the titles, for the clipboard."""
        columns = self.filled()
        texts = ["\t".join(csv_text(self.text(row, column.name).strip()) for column in columns) for row in rows]
        return "\n".join(["\t".join(column.marked_title for column in columns), *texts])

    def _plain(self, column: Column) -> list[Any]:
        """Return the values of a column for programs, None where there is none; lists where a row has several."""
        values = self._data.values(column.name)
        if isinstance(values, Several):
            shown = self._data.shown_one(column)
            return [[shown(value) for value in values.rows[position]] for position in self.positions.tolist()]
        if isinstance(values, Partial):
            pairs = zip(values.numpy()[self.positions].tolist(), values.known[self.positions].tolist(), strict=True)
            return [value if is_known else None for value, is_known in pairs]
        if column.kind.is_words or (column.name in self._data.texts and column.kind is not Kind.FIGURE):
            written = list(map(self._data.writer(column), self.positions.tolist()))
            known = self._data.known.get(column.name)
            return written if known is None else [
                None if is_unknown else text
                for text, is_unknown in zip(written, known[self.positions] == Known.UNKNOWN, strict=True)]  # fmt: skip
        part = self._ns(column, values[self.positions]) if column.kind.is_cycles else values[self.positions]
        if column.kind is Kind.FLAG:
            return list(part.tolist())
        step, is_absent = int(column.kind is Kind.EVENT), _is_absent(column, part).tolist()
        decimals = sys.float_info.dig if column.kind is Kind.FIGURE else _DECIMALS
        return [None if absent else round(value, decimals) + step
                for value, absent in zip(part.tolist(), is_absent, strict=True)]  # fmt: skip

    def _known_words(self, column: Column) -> list[str]:
        """Return how the column's value in each row is known, empty if exact; an empty list if all are exact."""
        known = self._data.known.get(column.name)
        if known is None or not np.any(known[self.positions]):
            return []
        return [KNOWN_WORDS[value] if value else "" for value in known[self.positions].tolist()]

    # ---- for programs -------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns in numpy, Arrow and SQL: `queued_cycles`, `queued_ns`, `queued_known`."""
        return tuple(name for column in self.question.columns if column.sql_name for name in names_in_sql(column))

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one column in numpy, (rows,): -1 for what is absent or unknown; texts, `_known` too, as objects.

        Raises:
            UsageError: There is no such column.
        """
        values = self.column_values(name)
        return values if isinstance(values, np.ndarray) else values.numpy()

    def column_values(self, name: str) -> Values:
        """Return one column of SQL: an array of (rows,), -1 for none, or texts as numbers of these.

        What is held is not copied where all rows are there in their own order.

        Raises:
            UsageError: There is no such column.
        """
        for column in self.question.columns:
            if column.sql_name and name in names_in_sql(column):
                return self._values(column, name)
        raise UsageError(
            f"the table {self.question.name} has no column {name[:40]!r}; it has {', '.join(self.columns)}"
        )

    def _values(self, column: Column, name: str) -> Values:
        rows = slice(None) if self._positions is None else self._positions
        if column.reasons and name == f"{column.sql_name}_known":
            known = self._data.known.get(column.name, np.zeros(self._count, np.uint8))
            return Texts(known[rows], KNOWN_WORDS)
        values = self._data.values(column.name)
        if isinstance(values, Several):
            return Texts.of([self._data.writer(column)(position) for position in self.positions.tolist()])
        values = values[rows]
        if column.kind in FRACTIONS:
            return np.where(_is_absent(column, values), np.nan, values)
        is_ns = column.kind.is_cycles and name.endswith("_ns")
        return (
            self._ns(column, values) if is_ns else values if isinstance(values, Texts | Partial) else np.asarray(values)
        )

    def _ns(self, column: Column, cycles: NDArray[np.int64]) -> NDArray[np.int64]:
        clock = self._data.clock
        ns = clock.ns_array(cycles) if column.kind is Kind.TIME else clock.durations_ns(cycles)
        return np.where(cycles < 0, -1, ns) if column.is_nullable else ns

    def arrow(self, names: Collection[str] | None = None) -> pa.Table:
        """Return it as a table of Arrow, null where a value is absent or unknown; columns that are held are not copied.

        Args:
            names: Only these columns; None = all.

        Raises:
            UsageError: The package pyarrow is not installed.
        """
        return required("pyarrow").table({
            name: arrow_array(self._values(column, name), is_nullable=column.is_nullable)
            for column in self.question.columns if column.sql_name for name in names_in_sql(column)
            if names is None or name in names})  # fmt: skip

    def __repr__(self) -> str:
        columns, head = self.filled(), self.head(_SHOWN_ROWS)
        rows = [[column.title for column in columns]]
        rows += [[visible_line(head.text(row, column.name)) for column in columns] for row in range(len(head))]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
        name = "" if self._data.trace is None else f" of {visible_line(self._data.trace.path.name)}"
        return "\n".join((f"<Table {self.question.name}{name}: {len(self):,} of {self.total:,} rows>", *lines))

    def _repr_html_(self) -> str:
        """Return the first rows for notebooks."""
        columns, head = self.filled(), self.head(_SHOWN_ROWS)
        rows = ((head.text(row, column.name) for column in columns) for row in range(len(head)))
        tips = [column.tip for column in columns]
        return html_rows((column.title for column in columns), rows, f"{len(self):,} rows", tips)


def below_each_other(question: Question, by: Column, tables: Mapping[str, Table]) -> Table:
    """Return the rows of several tables of one trace, below each other.

    Args:
        question: Of all of them; it has columns of arrays and `Texts` only.
        by: The column of texts that says of which table each row is, the first one.
        tables: By what that column says; one at least.
    """
    parts = list(tables.values())
    bounds = np.cumsum([0, *map(len, parts)])

    def values_of(name: str) -> Values:
        columns = [part._data.values(name)[part.positions] for part in parts]
        if not isinstance(columns[0], Texts):
            return np.concatenate(columns)
        offset = np.cumsum([0, *(len(column.texts) for column in columns[:-1])])
        code = np.concatenate(
            [column.code.astype(np.int64) + shift for column, shift in zip(columns, offset.tolist(), strict=True)]
        )
        return Texts(code.astype(np.uint32), tuple(text for column in columns for text in column.texts))

    def text_of(name: str, row: int) -> str:
        number = int(np.searchsorted(bounds, row, side="right")) - 1
        part = parts[number]
        return part._data.writer(question.column(name))(int(part.positions[row - bounds[number]]))

    return Table(
        replace(question, columns=(by, *question.columns)),
        parts[0].trace,
        {by.name: Texts(np.repeat(np.arange(len(parts), dtype=np.uint32), np.diff(bounds)), tuple(tables)),
         **{column.name: values_of(column.name) for column in question.columns}},
        texts={name: partial(text_of, name) for name in parts[0]._data.texts},
        cannot_tell="\n".join(dict.fromkeys(line for part in parts for line in part.missing)),
    )  # fmt: skip


def _is_absent(column: Column, values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(np.isnan(values) if column.kind is Kind.FIGURE else ~(values >= 0))


def number_text(kind: Kind, value: float) -> str:
    """Return a number of a kind for people, of lengths in nanoseconds."""
    if kind is Kind.SHARE:
        return f"{100 * value:.1f} %" if value == 0 or value >= _LEAST_SHARE else "<0.1 %"
    if kind is Kind.RATE:
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return format_duration(int(value)) if kind is Kind.DURATION else f"{int(value):,}"


def _listed(texts: Sequence[str]) -> str:
    """Return values of one cell as text, the first ones if there are many."""
    more = len(texts) - _MOST_LISTED
    return ", ".join(texts[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _csv_cell(value: Any) -> Any:
    """Return a value as CSV has it: several as one text, and no text that a spreadsheet takes for a formula."""
    text = "; ".join(map(str, value)) if isinstance(value, list) else value
    return csv_text(text) if isinstance(text, str) else text


def names_in_sql(column: Column) -> tuple[str, ...]:
    """Return the names of the columns that a column becomes in SQL, Arrow and numpy: cycles, nanoseconds, known."""
    name = column.sql_name
    plain = (f"{name}_cycles", f"{name}_ns") if column.kind.is_cycles else (name,)
    return (*plain, f"{name}_known") if column.reasons else plain


_DEPTH: Final = Column("depth", Kind.COUNT, "how deep it is nested", "Depth", sql="")
