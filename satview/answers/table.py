"""The table type of all answers, which the window, the command line, files, SQL and data frames read alike.

A `Question` describes columns without a trace. A `Table` binds them to arrays of one trace, which are made when they
are first needed, and to a selection and order of rows. Filtering and sorting return tables over the same arrays. Texts
are made only for rows that are printed or drawn.

For each row a table says how a value is known (`Known`). A value may be absent (below 0 or the empty text, and `EXACT`:
there is none, such as the reply of a message that timed out) or `UNKNOWN` (the trace does not show it).
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
from satview.base.plugins import required
from satview.base.safe_text import AT_LEAST_SIGN, csv_text, percent, visible_line, with_sign
from satview.base.time import NS_PER_S, Clock, format_duration, format_moment
from satview.linkage.links import Certainty
from satview.store.trace import Trace

if TYPE_CHECKING:
    import pyarrow as pa

    from satview.analysis.times.basis import Trust

Positions = NDArray[np.int64]
Source = Values | Several | Callable[[], Values]
SCHEMA_VERSION: Final = 1  # of the JSON documents described in docs/transactions.md
SUBJECT: Final = "subject"  # column for programs: the thread, process, CPU or event that a row is about
_SHOWN_ROWS: Final = 10  # in notebooks and `repr`
_LOOKED_AT_ROWS: Final = 1 << 10  # rows searched for a value before all rows are
_CACHED_NAMES: Final = 4096
_DECIMALS: Final = 6  # of shares and rates, for programs
_MOST_LISTED: Final = 8  # values in the text of one cell


class Known(IntEnum):
    """Degrees of certainty of a value: exact, a bound, inferred, ..."""

    EXACT = 0
    """The trace shows the value, or shows that there is none."""
    AT_LEAST = 1
    """A lower bound: what is measured goes on when the trace ends, or a part of it is not known."""
    AT_MOST = 2
    """An upper bound."""
    INFERRED = 3
    """The value follows from the order of events; no event shows it directly."""
    GUESS = 4
    """One of several possibilities that the trace does not distinguish."""
    UNKNOWN = 5
    """The trace does not show the value."""
    ESTIMATE = 6
    """The true value may be larger or smaller, as some of the data for it is missing."""

    @property
    def word(self) -> str:
        """Text for the value in JSON, CSV and SQL, such as `at least`."""
        return self.name.lower().replace("_", " ")

    @property
    def sign(self) -> str:
        """Sign to put before a displayed value, such as an approximation sign; may be empty."""
        return ("", AT_LEAST_SIGN, "\N{LESS-THAN OR EQUAL TO}", "~", "?", "", "\N{ALMOST EQUAL TO}")[self]


CERTAINTIES: Final = ("", *(certainty.name.lower() for certainty in Certainty))  # by `Certainty`
KNOWN_WORDS: Final = tuple(known.word for known in Known)
# By `Known`: a lower bound of what is inferred is a lower bound.
_DOUBT: Final = np.array((0, 2, 2, 1, 4, 5, 3), np.uint8)
_OF_CERTAINTY: Final = {Certainty.GUESS: Known.GUESS, Certainty.INFERRED: Known.INFERRED, Certainty.EXACT: Known.EXACT}


def known_by_certainty(certainty: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return for each certainty of a link the `Known` of values that are computed from the link, uint8 (n,).

    Args:
        certainty: uint8 (n,), `Certainty`.
    """
    by_value = np.zeros(max(Certainty) + 1, np.uint8)
    for value, known in _OF_CERTAINTY.items():
        by_value[value] = known
    return by_value[certainty]


def least_known(*parts: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the `Known` of sums and maxima, which is that of the least known part. Takes and returns uint8 (n,)."""
    worst = parts[0].copy()
    for part in parts[1:]:
        worst = np.where(_DOUBT[part] > _DOUBT[worst], part, worst)
    return worst


def known_where(is_so: NDArray[np.bool_], known: Known) -> NDArray[np.uint8]:
    """Return the `Known` of values of which some are not exact, uint8 (n,): `known` where `is_so`, else exact."""
    return np.where(is_so, known, Known.EXACT).astype(np.uint8)


class Kind(StrEnum):
    """The kind of the values of a column, which decides how they are written."""

    TIME = "time"  # cycles of the trace's clock; written as nanoseconds since the start of the trace
    DURATION = "duration"  # cycles; written as nanoseconds
    COUNT = "count"
    SHARE = "share"  # of a whole, from 0 to 1, or more than 1 of one CPU; written as percent for people
    RATE = "rate"  # per second
    FLAG = "flag"  # bool
    FIGURE = "figure"  # float64 of any sign, nan = none; the table has a function that writes it
    NUMBER = "number"  # a name that is a number, such as a pid
    HEX = "hex"  # a number that is usually written in hexadecimal
    CPU = "cpu"
    THREAD = "thread"  # row of the thread table; written as its label
    PROCESS = "process"  # row of the process table
    EVENT = "event"  # row of the event table; written as its number from 1
    TEXT = "text"  # `Texts`, sorted by their codes
    STATE = "state"  # `Texts` of `events.states.NAMES_BY_VALUE`: with the colour of its lane in windows
    SENTENCE = "sentence"  # `Texts` that are read as a whole: wrapped in windows, below the row on the command line

    @property
    def is_words(self) -> bool:
        """Whether values are treated like texts: aligned left, and sorted in ascending order first."""
        return self in (Kind.TEXT, Kind.STATE, Kind.SENTENCE, Kind.THREAD, Kind.HEX)

    @property
    def is_cycles(self) -> bool:
        """Whether values are held in cycles and written in nanoseconds."""
        return self in (Kind.TIME, Kind.DURATION)


FRACTIONS: Final = (Kind.SHARE, Kind.RATE, Kind.FIGURE)  # held as float64


@dataclass(frozen=True, slots=True)
class Column:
    """The description of a column, without its values.

    Attributes:
        name: Stable name without a unit, such as `queued`; with the unit if another column has the same name.
        kind: Kind of the values.
        meaning: One sentence that begins in lower case and has no full stop.
        title: Title for people; columns with an empty title are left out of the window, text, CSV and JSON.
        sql: Name in SQL, Arrow and data frames, without a unit; None = `name`, empty = the column is not included.
        is_nullable: Whether values may be absent, which is null in SQL and Arrow.
        reasons: Reasons why values are not exact, by their `Known`; empty = all values are exact.
        follows_filter: Whether only events that pass the filter count, or times that begin with such events.
        hides_zero: Whether 0 is blank in texts for people, as in a column of times that most rows did not spend.
        trust: The reason why values are not exact, if it is the same for the whole column; else None.
    """

    name: str
    kind: Kind
    meaning: str
    title: str = ""
    sql: str | None = None
    is_nullable: bool = False
    reasons: Mapping[Known, str] = field(default_factory=dict)
    follows_filter: bool = False
    hides_zero: bool = False
    trust: Trust | None = None

    @property
    def marked_title(self) -> str:
        """The title, followed by the sign of `Known` if all values of the column are inexact for one reason."""
        return " ".join((self.title, *(known.sign for known in self.reasons if self.trust is not None)))

    @property
    def key(self) -> str:
        """Name in CSV and JSON, such as `queued_ns`."""
        return f"{self.name.removesuffix('_ns')}_ns" if self.kind.is_cycles else self.name

    @property
    def sql_name(self) -> str:
        """Name in SQL and Arrow without a unit; empty = the column is not included."""
        return self.name.removesuffix("_ns") if self.sql is None else self.sql

    @property
    def tip(self) -> str:
        """Text of the tool tip: the meaning as a sentence, and the reasons why values may not be exact."""
        doubts = (f"{known.sign or known.word}: {reason}." for known, reason in self.reasons.items())
        return "\n".join((f"{self.meaning[:1].upper()}{self.meaning[1:]}.", *doubts))


@dataclass(frozen=True, slots=True)
class Question:
    """The question that a table answers, and the table's columns.

    Attributes:
        name: Stable name, such as `transactions`.
        title: Title for people.
        text: The question itself, such as `Which messages took longest?`.
        columns: The columns in order; people see those with a title.
        sort_name: Column by which the table is sorted at first, largest first; empty = in the order of its rows.
        empty: Text for a table without rows.
        tone: Column of texts; its values `error` and `warning` colour the row; empty = none.
        note: Additional remark; may be empty.
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
        """The column by which people recognize rows: the first column with a title."""
        return next(column for column in self.columns if column.title)

    def column(self, name: str) -> Column:
        """Return a column by its name without a unit.

        Raises:
            UsageError: There is no such column.
        """
        for column in self.columns:
            if column.name == name:
                return column
        names = [column.name for column in self.columns]
        near = difflib.get_close_matches(name, names, 1)
        meant = f"; is {near[0]} meant?" if near else f"; it has {', '.join(names)}"
        raise UsageError(f"the table {self.name} has no column {name[:40]!r}{meant}")


class Outcome(StrEnum):
    """Whether a question has an answer in a trace."""

    FOUND = "found"
    """There are rows."""
    NOTHING = "nothing"
    """There are no rows, and the trace would show them."""
    CANNOT_TELL = "cannot tell"
    """There are no rows, but the trace lacks the data to be sure."""


class _Data:
    """The values of all rows of an answer, computed when first needed; shared by all tables of this answer."""

    def __init__(self, trace: Trace | None, sources: Mapping[str, Source]) -> None:
        self.trace, self.clock = trace, Clock(NS_PER_S) if trace is None else trace.clock
        self.sources = sources
        self.known: Mapping[str, NDArray[np.uint8]] = {}
        self.texts: Mapping[str, Callable[[int], str]] = {}
        self.parent: Positions | None = None
        self.moments: Mapping[str, Positions] = {}
        self.events: Mapping[str, Positions] = {}
        self._cache: dict[str, Any] = {}
        self._writers: dict[str, Callable[[int], str]] = {}
        self.thread_name = lru_cache(_CACHED_NAMES)(str if trace is None else trace.thread_name)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the cached result of a function, which runs only at the first call with that name."""
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]

    def values(self, name: str) -> Any:
        """Return the values of a column: an array, `Texts` or `Several`, (n,)."""
        source = self.sources[name]
        return source if not callable(source) else self.once(f"values {name}", source)

    def writer(self, column: Column) -> Callable[[int], str]:
        """Return a function that takes a row and returns its display text in a column, empty if there is no value."""
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
        write, least = written.get(column.kind, str), int(column.hides_zero)
        return lambda row: write(int(values[row])) if values[row] >= least else ""

    def shown_one(self, column: Column) -> Callable[[Any], Any]:
        """Return a function that converts single values of a `Several` column to their form in JSON and CSV."""
        if column.kind is Kind.THREAD:
            return self.thread_name
        return (lambda event: event + 1) if column.kind is Kind.EVENT else lambda value: value

    def keys(self, column: Column) -> NDArray[np.integer[Any]]:
        """Return the sort keys of a column, integers (n,); rows with keys below 0 come last."""
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
        """Return the rank of every thread in the alphabetical order of labels, int64 (threads,)."""
        assert self.trace is not None
        labels = [self.thread_name(row).casefold() for row in range(len(self.trace.threads))]
        return np.unique(np.array(labels), return_inverse=True)[1].astype(np.int64)

    def children(self) -> tuple[Positions, Positions]:
        """Return the rows that have a parent, sorted by parent, and where the children of each row begin there."""
        assert self.parent is not None
        child = np.flatnonzero(self.parent >= 0)
        child = child[np.argsort(self.parent[child], kind="stable")]
        return child, np.searchsorted(self.parent[child], np.arange(len(self.parent) + 1))


class Table(Frames):
    """The answer to a question: rows of the answer, some or all, in a certain order.

        slow = satview.answers.transactions.transaction_table(trace).sorted_by("round_trip").head(20)
        slow["round_trip_ns"], slow.text(0, "round_trip"), slow.to_pandas()

    Attributes:
        question: The question that the table answers, with its columns.
        cannot_tell: Why the trace cannot answer the question in full, and what to capture, a line each; may be empty.
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
        """Create a table of all rows from the values of its columns.

        Args:
            question: The columns.
            trace: The events; None = the table is about many traces, with times in nanoseconds.
            values: By column name, arrays (n,) or functions that make them; cycles for times and durations.
            known: By column name, `Known` of the values, uint8 (n,); columns that are not in the mapping are exact.
            texts: By column name, a function that returns the text of a row, if the column's kind does not suffice.
            parent: int64 (n,), the row that each row is nested below, -1 for none; None = no row is nested.
            has_parts: Whether nested rows are parts of their parent and do not count as rows of their own.
            place: Name of the EVENT column with each row's position in the trace, below 0 = none; empty = no column.
            cannot_tell: See the attribute.
            moments: By column name, the times at which the values happened, cycles, int64 (n,); below 0 = not known.
            events: By column name, the events at which the values happened, int64 (n,); below 0 = not known.
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
        """The trace; a table about many traces has none."""
        assert self._data.trace is not None, f"{self.question.name} is about many traces"
        return self._data.trace

    @property
    def has_trace(self) -> bool:
        """Whether the table is about one trace, which `trace` returns."""
        return self._data.trace is not None

    # ---- rows ---------------------------------------------------------------------------------------------------

    @property
    def positions(self) -> Positions:
        """Indices of the selected rows among all rows of the answer, in the table's order, int64 (rows,)."""
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
        """Number of rows in the whole answer, whatever this table selects."""
        return self._count if self._whole is None else len(self._whole)

    def whole(self) -> Table:
        """Return the table of all rows of the answer, in their original order."""
        return self._with(self._whole)

    @property
    def outcome(self) -> Outcome:
        """Whether the table has rows, has none, or the trace cannot tell."""
        if len(self):
            return Outcome.FOUND
        return Outcome.CANNOT_TELL if self.cannot_tell else Outcome.NOTHING

    @property
    def says_why_empty(self) -> str:
        """Message to show instead of rows if the table has none."""
        return "\n".join(f"Cannot tell: {line}." for line in self.missing) or self.question.empty

    @property
    def missing(self) -> list[str]:
        """Deficits of the trace, the lines of `cannot_tell`, each a sentence without a full stop."""
        return self.cannot_tell.splitlines()

    def at(self, positions: Positions) -> Table:
        """Return a table of the rows of the answer with the given indices, int64 (k,), in the given order."""
        return self._with(positions)

    def _with(self, positions: Positions | None) -> Table:
        other = object.__new__(Table)
        other.__dict__.update(self.__dict__, _positions=positions)
        return other

    def rows(self, mask: NDArray[np.bool_]) -> Table:
        """Return a table of those rows of this table for which a mask, bool (rows,), is true."""
        return self.at(self.positions[mask])

    def head(self, count: int | None) -> Table:
        """Return a table of the first `count` rows of this table; None = all."""
        return self.at(self.positions[:count])

    def sorted_by(self, name: str, descending: bool = True) -> Table:
        """Return the table sorted by a column; bounds count with their value, absent and unknown values come last.

        The sort is stable.

        Args:
            name: Name of the column, without a unit.
            descending: Sort the largest value first.

        Raises:
            UsageError: There is no such column.
        """
        keys = self.sort_keys(name)
        keys = np.where(keys < 0, np.iinfo(np.int64).max, -keys if descending else keys)
        return self.at(self.positions[np.argsort(keys, kind="stable")])

    def sort_keys(self, name: str) -> Positions:
        """Return the sort keys of a column, int64 (rows,): equal for equal values; rows with keys below 0 come last.

        Raises:
            UsageError: There is no such column.
        """
        return self._data.keys(self.question.column(name))[self.positions].astype(np.int64)

    # ---- nested rows --------------------------------------------------------------------------------------------

    @property
    def is_tree(self) -> bool:
        """Whether rows may be nested below others."""
        return self._data.parent is not None

    def children(self, row: int) -> Positions:
        """Return the `positions` of the rows directly below a row, in their original order, int64."""
        if not self.is_tree:
            return np.empty(0, np.int64)
        child, start = self._data.once("children", self._data.children)
        position = int(self.positions[row])
        return np.asarray(child[start[position] : start[position + 1]])

    def parent(self, row: int) -> int:
        """Return the index, as in `positions`, of the row below which a row is nested; -1 for none."""
        return -1 if self._data.parent is None else int(self._data.parent[self.positions[row]])

    def unfolded(self) -> Table:
        """Return the table with the nested rows after each row, and with a column for the depth of nesting.

        A selected row that is also nested below another selected row appears only once, below that row.
        """
        parent = self._data.parent
        assert parent is not None
        rank = np.full(len(parent) + 1, -1, np.int64)  # the last element is for parent -1
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
        """Return the values of a row, as stored, in a column for which `is_list` is true."""
        return tuple(self._data.values(name).rows[self.positions[row]])

    def tone(self, row: int) -> str:
        """Return the severity that colours a row, such as `error`; empty for nested rows and questions without tone."""
        position = int(self.positions[row])
        if not self.question.tone or (self._data.parent is not None and self._data.parent[position] >= 0):
            return ""
        return self._data.writer(self.question.column(self.question.tone))(position)

    # ---- one value ----------------------------------------------------------------------------------------------

    def event(self, row: int, name: str = "") -> int:
        """Return the event that a row is about; with `name`, the event at which that column's value happened; or -1."""
        if name:
            return int(self._data.events[name][self.positions[row]]) if name in self._data.events else -1
        return int(self._data.values(self._place)[self.positions[row]]) if self._place else -1

    def moment(self, row: int, name: str) -> int:
        """Return the time at which a row's value in a column happened, cycles; -1 if it is not known."""
        return int(self._data.moments[name][self.positions[row]]) if name in self._data.moments else -1

    def has_place(self, row: int, name: str) -> bool:
        """Return whether a row's value in a column has a known position in time: a `moment` or an `event`."""
        return max(self.moment(row, name), self.event(row, name)) >= 0

    def is_placed(self, name: str) -> bool:
        """Return whether the table stores the times or events at which the values of a column happened."""
        return name in self._data.moments or name in self._data.events

    def held(self, row: int, name: str) -> int:
        """Return a value as stored: cycles for times, table rows for threads, codes for texts; below 0 for none."""
        values = self._data.values(name)
        return int((values.code if isinstance(values, Texts) else values)[self.positions[row]])

    def bar(self, row: int, column: Column) -> float | None:
        """Return the length of the bar that shows a share, from 0 to 1; None if the column is not of kind SHARE.

        Length 1 stands for a share of 1, or for the column's largest share if that is above 1, as with several CPUs.
        """
        if column.kind is not Kind.SHARE:
            return None
        values = self._data.values(column.name)
        full = self._data.once(f"full {column.name}", lambda: max(1.0, float(values.max(initial=0))))
        return max(0.0, float(values[self.positions[row]])) / float(full)

    def span(self, row: int) -> tuple[int, int] | None:
        """Return the values of the columns `start` and `end` in a row, in cycles; None if there are none."""
        position = int(self.positions[row])
        if not {"start", "end"} <= self._data.sources.keys():
            return None
        start, end = (int(self._data.values(name)[position]) for name in ("start", "end"))
        return (start, end) if end > start >= 0 else None

    def known(self, row: int, name: str) -> Known:
        """Return whether the value in a row and a column is exact, a bound, inferred, a guess, ...: its `Known`."""
        known = self._data.known.get(name)
        return Known.EXACT if known is None else Known(int(known[self.positions[row]]))

    def text(self, row: int, name: str) -> str:
        """Return a value as text for people, after `~` or another sign if not exact; empty if there is no value."""
        position, by_row = int(self.positions[row]), self._data.known.get(name)
        known = 0 if by_row is None else int(by_row[position])  # an int for speed: this runs for every shown cell
        if known == Known.UNKNOWN:
            return Known.UNKNOWN.word
        text = self._data.writer(self.question.column(name))(position)
        if _DEPTH.name in self._data.sources and name == self.question.names_rows.name:
            text = "  " * int(self._data.values(_DEPTH.name)[position]) + text
        return with_sign(Known(known).sign, text) if text else text

    def plain(self, row: int, name: str) -> str | int | float | None:
        """Return a value for programs: nanoseconds for times, names for threads; None if there is no value."""
        plain: str | int | float | None = self.at(self.positions[row : row + 1])._plain(self.question.column(name))[0]
        return plain

    def doubt(self, row: int, name: str) -> str:
        """Return a sentence about why a value is not exact; empty if it is exact."""
        known = self.known(row, name)
        return f"{known.word.capitalize()}: {self.question.column(name).reasons[known]}." if known else ""

    # ---- for people and for files -------------------------------------------------------------------------------

    def filled(self) -> tuple[Column, ...]:
        """Return the columns with a title in which at least one row has something to show."""
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
        return bool(np.any(values[self.positions] >= int(column.hides_zero)))

    def doubts(self, names: Sequence[str] = ()) -> list[str]:
        """Return the footnotes of a table: how many values of which columns are not exact, and why.

        Args:
            names: The columns that are shown; empty = all.
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
        """Return the rows as dictionaries of plain values by key; under `known` are the words for inexact values.

        Columns without a title are left out.
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
        """Return the JSON document: schema version, outcome, reason or deficits if any, and the rows under `key`."""
        deficits = {"reason" if self.outcome is Outcome.CANNOT_TELL else "incomplete": ". ".join(self.missing)}
        return {"schema_version": SCHEMA_VERSION, "outcome": str(self.outcome),
                **{name: text for name, text in deficits.items() if text}, key: self.records()}  # fmt: skip

    def csv_rows(self) -> Iterator[Sequence[object]]:
        """Yield the header, then the cells of every row; after a column with inexact values follows `NAME_known`."""
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
        """Return the values of a column in machine-readable form; None = no value; lists if rows may have several."""
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
        """Return the word of `Known` for each row, empty for exact values; an empty list if all rows are exact."""
        known = self._data.known.get(column.name)
        if known is None or not np.any(known[self.positions]):
            return []
        return [KNOWN_WORDS[value] if value else "" for value in known[self.positions].tolist()]

    # ---- for programs -------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns in numpy, Arrow and SQL: `queued_cycles`, `queued_ns`, `queued_known`."""
        return tuple(name for column in self.question.columns if column.sql_name for name in names_in_sql(column))

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one column as a numpy array, (rows,): -1 = absent or unknown; texts, also of `_known`, as objects.

        Raises:
            UsageError: There is no such column.
        """
        values = self.column_values(name)
        return values if isinstance(values, np.ndarray) else values.numpy()

    def column_values(self, name: str) -> Values:
        """Return one column by its name in SQL: an array (rows,), -1 for none, or dictionary-encoded `Texts`.

        The stored array is not copied if the table has all rows in their original order.

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
        """Return the table in Arrow, null where a value is absent or unknown; stored columns are not copied.

        Args:
            names: The columns to include; None = all.

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
        """Return the first rows as HTML for notebooks."""
        columns, head = self.filled(), self.head(_SHOWN_ROWS)
        rows = ((head.text(row, column.name) for column in columns) for row in range(len(head)))
        tips = [column.tip for column in columns]
        return html_rows((column.title for column in columns), rows, f"{len(self):,} rows", tips)


def below_each_other(question: Question, by: Column, tables: Mapping[str, Table]) -> Table:
    """Return one table with the rows of several tables of one trace, one table after the other.

    Args:
        question: The question of all tables; its columns must be arrays or `Texts`.
        by: The first column of the result, with the key of the table that a row is from.
        tables: The tables by key; at least one.
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
    """Return a number as text for people, as the kind of its column requires; durations are in nanoseconds."""
    if kind is Kind.SHARE:
        return percent(value)
    if kind is Kind.RATE:
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return format_duration(int(value)) if kind is Kind.DURATION else f"{int(value):,}"


def _listed(texts: Sequence[str]) -> str:
    """Return several values of one cell as text: the first ones, and the number of the others."""
    more = len(texts) - _MOST_LISTED
    return ", ".join(texts[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _csv_cell(value: Any) -> Any:
    """Return a value for CSV: lists become one text, and no text looks like a formula to a spreadsheet."""
    text = "; ".join(map(str, value)) if isinstance(value, list) else value
    return csv_text(text) if isinstance(text, str) else text


def names_in_sql(column: Column) -> tuple[str, ...]:
    """Return the names that a column has in SQL, Arrow and numpy: one each for cycles, nanoseconds and `Known`."""
    name = column.sql_name
    plain = (f"{name}_cycles", f"{name}_ns") if column.kind.is_cycles else (name,)
    return (*plain, f"{name}_known") if column.reasons else plain


_DEPTH: Final = Column("depth", Kind.COUNT, "how deep it is nested", "Depth", sql="")
