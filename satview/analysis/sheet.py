"""What the sheets have in common: their columns begun, their rows selected, the sheet made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import EXACT, TITLES, Trust, sign
from satview.base.time_text import format_duration, format_time
from satview.events.states import ABSENT

# Statistics as tables to be read: named columns with units, what each means, and where each longest time happened.


Numbers = NDArray[np.integer] | NDArray[np.floating]


class Kind(StrEnum):
    """What the values of a column are, and so how they are written."""

    TEXT = "text"
    NUMBER = "number"  # a name that is a number, such as a pid
    COUNT = "count"
    DURATION = "duration"  # nanoseconds
    TIME = "time"  # nanoseconds since the start of the trace
    SHARE = "share"  # 0 to 1; of one CPU, it may be more for a process
    RATE = "rate"  # per second


class Subject(StrEnum):
    """What a row of a sheet is about."""

    THREAD = "thread"
    PROCESS = "process"
    CPU = "cpu"
    EVENT = "event"  # the row of an event that represents all of its kind
    NONE = "none"  # nothing that a lane or event represents, such as a partition


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column of a sheet.

    Attributes:
        key: Name in files: `cpu_ns`.
        title: Name for people.
        kind: What the values are.
        values: One per row; numbers below 0 mean "not known" or "does not apply".
        help: What it means, one sentence.
        follows: True if it follows a mask of events: it counts events, or times that these begin.
        cycles: Where in time each value happened; -1 = no position; None = the column has no positions.
        events: The same as rows of the event table.
        trust: How far the values can be trusted.
        doubtful: bool (rows,), those to which `trust` applies, the others are exact; None = all of them.
    """

    key: str
    title: str
    kind: Kind
    values: Numbers | tuple[str, ...]
    help: str = ""
    follows: bool = False
    cycles: NDArray[np.int64] | None = None
    events: NDArray[np.int64] | None = None
    trust: Trust = EXACT
    doubtful: NDArray[np.bool_] | None = None

    def trust_in(self, row: int) -> Trust:
        """Return how far one value can be trusted."""
        return self.trust if self.doubtful is None or self.doubtful[row] else EXACT

    def marked(self, row: int) -> str:
        """Return a value for people with the sign of its mark before it; empty where it is not known."""
        text, before = self.text(row), sign(self.trust_in(row).mark)
        return f"{before} {text}" if text and before else text

    @property
    def marked_title(self) -> str:
        """The title, with the sign of the mark behind it if it is not exact."""
        return f"{self.title} {sign(self.trust.mark)}".rstrip()

    @property
    def says_of_trust(self) -> str:
        """The mark and its reason as a sentence; empty if it is exact."""
        if self.trust is EXACT:
            return ""
        some = "" if self.doubtful is None or self.doubtful.all() else ", in some rows"
        return f"{TITLES[self.trust.mark]}{some}: {self.trust.reason}."

    def text(self, row: int) -> str:
        """Return a value for people; empty where it is not known."""
        value = self.values[row]
        if isinstance(value, str):
            return value
        return "" if value < 0 else written(self.kind, value)

    def plain(self, row: int) -> str | int | float | None:
        """Return a value for programs; None where it is not known."""
        value = self.values[row]
        if isinstance(value, str):
            return value
        if value < 0:
            return None
        return round(float(value), 6) if self.kind in (Kind.SHARE, Kind.RATE) else int(value)

    def order(self, descending: bool) -> NDArray[np.intp]:
        """Return the rows in the order of this column; equal ones keep theirs, unknown ones come last.

        Returns:
            intp (rows,).
        """
        if isinstance(self.values, tuple):
            names = [text.lower() for text in self.values]
            return np.array(sorted(range(len(names)), key=names.__getitem__, reverse=descending), np.intp)
        values = self.values.astype(np.float64)
        values[values < 0] = -np.inf if descending else np.inf
        return np.argsort(-values if descending else values, kind="stable")


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """One table.

    Attributes:
        key: `thread`, `state`, `process`, `cpu`, `event`, `call`, `message`, `interrupt`.
        title: For people.
        subject: What the rows are about.
        subjects: int64, (n,), their rows of the tables of threads, processes or events, or numbers of CPUs.
        columns: The columns, the first ones naming the row.
        sort_key: The column by which it is sorted at first, largest first.
        empty: What to say if it has no row.
        note: What else is to be known about it; may be empty.
    """

    key: str
    title: str
    subject: Subject
    subjects: NDArray[np.int64]
    columns: tuple[Column, ...]
    sort_key: str
    empty: str
    note: str = ""

    def __len__(self) -> int:
        return len(self.subjects)

    def column(self, key: str) -> Column:
        """Return a column by its key."""
        return next(column for column in self.columns if column.key == key)

    def trust(self) -> dict[str, dict[str, str]]:
        """Return the marks of the columns by key as plain values."""
        return {column.key: column.trust.as_record() for column in self.columns if column.kind is not Kind.TEXT}

    def records(self, order: NDArray[np.intp] | None = None) -> list[dict[str, Any]]:
        """Return plain values by key, one dictionary per row."""
        rows = range(len(self)) if order is None else order.tolist()
        return [{column.key: column.plain(row) for column in self.columns} for row in rows]


def _share(value: float) -> str:
    return f"{100 * value:.1f} %" if value == 0 or value >= 0.0005 else "<0.1 %"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


_WRITTEN: Final[dict[Kind, Callable[[Any], str]]] = {
    Kind.NUMBER: lambda value: str(int(value)),
    Kind.COUNT: lambda value: f"{int(value):,}",
    Kind.DURATION: lambda value: format_duration(int(value)),
    Kind.TIME: lambda value: format_time(int(value)),
    Kind.SHARE: _share,
    Kind.RATE: _rate,
}


def written(kind: Kind, value: float) -> str:
    """Return a value of a kind for people."""
    return _WRITTEN[kind](value)


@dataclass
class Columns:
    """Makes the columns of one sheet for some of the rows of its statistics.

    Attributes:
        rows: Rows of the statistics that the sheet shows, in its order.
        length_s: Seconds of the range.
        ns: Converts cycles to nanoseconds.
    """

    rows: NDArray[np.integer]
    length_s: float
    ns: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    made: list[Column] = field(default_factory=list)

    def text(self, key: str, title: str, of: Callable[[int], str], help: str = "") -> None:  # noqa: A002
        """Add names, made from the number of the row in the statistics."""
        self.made.append(Column(key, title, Kind.TEXT, tuple(of(row) for row in self.rows.tolist()), help))

    def number(self, key: str, title: str, values: Numbers, help: str) -> None:  # noqa: A002
        """Add numbers that are names."""
        self.made.append(Column(key, title, Kind.NUMBER, values[self.rows], help))

    def count(self, key: str, title: str, values: Numbers, help: str, **more: Any) -> None:  # noqa: A002
        """Add numbers."""
        self.made.append(Column(key, title, Kind.COUNT, values[self.rows], help, **more))

    def rate(self, key: str, values: Numbers, help: str) -> None:  # noqa: A002
        """Add how often something happened per second."""
        self.made.append(Column(key, "Per second", Kind.RATE, values[self.rows] / self.length_s, help, follows=True))

    def share(
        self,
        key: str,
        title: str,
        part: Numbers,
        whole: float | Numbers,
        help: str,  # noqa: A002
        **more: Any,
    ) -> None:
        """Add shares of a whole: one for all rows of the statistics, or one for each."""
        wholes = np.broadcast_to(np.asarray(whole, np.float64), part.shape)[self.rows]
        values = np.where(wholes > 0, part[self.rows] / np.maximum(wholes, 1), -1.0)
        self.made.append(Column(key, title, Kind.SHARE, values, help, **more))

    def duration(
        self,
        key: str,
        title: str,
        cycles: NDArray[np.int64],
        help: str,  # noqa: A002
        known: NDArray[np.bool_] | None = None,
        start: NDArray[np.int64] | None = None,
        **more: Any,
    ) -> None:
        """Add lengths of time.

        Args:
            key: As of the column.
            title: As of the column.
            help: As of the column.
            cycles: The lengths.
            known: False where there is nothing to show; None = where the length is above 0.
            start: When they begin, if one can go there.
            more: Other fields of the column.
        """
        selected = cycles[self.rows]
        is_known = selected > 0 if known is None else known[self.rows]
        positions = None if start is None else np.where(is_known, start[self.rows], -1)
        self.made.append(
            Column(key, title, Kind.DURATION, np.where(is_known, self.ns(selected), -1), help, cycles=positions, **more)
        )

    def mean(
        self,
        key: str,
        title: str,
        total: NDArray[np.int64],
        count: NDArray[np.int64],
        help: str,  # noqa: A002
        **more: Any,
    ) -> None:
        """Add mean lengths."""
        self.duration(key, title, total // np.maximum(count, 1), help, count > 0, **more)


Shown = NDArray[np.bool_] | None


def columns_of(found: Statistics, rows: NDArray[np.integer]) -> Columns:
    """Return the columns of a sheet, none yet, for some rows of the statistics."""
    return Columns(rows, found.length_s, found.ns)


def sheet_of(
    key: str, title: str, subject: Subject, columns: Columns, sort_key: str, empty: str, note: str = "",
    subjects: NDArray[np.int64] | None = None,
) -> Sheet:  # fmt: skip
    """Return a sheet of columns.

    Args:
        key: As of the sheet.
        title: As of the sheet.
        subject: As of the sheet.
        columns: The columns.
        sort_key: As of the sheet.
        empty: As of the sheet.
        note: As of the sheet.
        subjects: What the rows of the statistics are about; None = the rows themselves.
    """
    about = columns.rows if subjects is None else subjects[columns.rows]
    return Sheet(key, title, subject, about.astype(np.int64), tuple(columns.made), sort_key, empty, note)


def threads_shown(found: Statistics, shown: Shown) -> NDArray[np.intp]:
    """Return the threads that exist in the range and are to be shown, idle threads left out; row 0 if it has events.

    Returns:
        intp (n,), rows of the thread table, ascending.
    """
    absent = found.states.of_state(ABSENT, found.states.total_cycles, len(found.threads))
    mine = (absent < found.covered.threads) & ~found.basis.is_idle
    if shown is not None:
        mine &= shown
    mine[0] = found.threads.events[0] > 0
    return np.flatnonzero(mine)


def thread_columns(columns: Columns, found: Statistics, threads: NDArray[np.int64]) -> None:
    """Add the columns that name a thread: its name, process number and thread number.

    Args:
        columns: Where they go.
        found: The statistics.
        threads: int64, row of the thread table for each row of the statistics.
    """
    trace = found.trace
    columns.text("thread", "Thread", lambda row: trace.thread_name(int(threads[row])))
    columns.number("pid", "pid", trace.threads.pid[threads], "Process number.")
    columns.number("tid", "tid", trace.threads.tid[threads], "Thread number within the process.")
