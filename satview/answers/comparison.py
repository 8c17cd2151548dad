"""Compares the figures of threads, states, calls, messages, latencies and interrupts in two traces, matched by name.

Figures that grow with the length of a trace (counts, total times) are compared per second.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.analysis.doctor import FIGURES as TRUST_IN
from satview.analysis.doctor import diagnosis, may_be_more
from satview.analysis.needs import NAMES, NO_DAMAGE
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis, Scope, scope_of
from satview.analysis.times.message_times import Occurrences, occurrences
from satview.answers.frames import Texts
from satview.answers.latencies import LatencyFilter, latency_figures, latency_table
from satview.answers.statistics import TABLES
from satview.answers.table import SUBJECT, Column, Kind, Known, Question, Table, known_where, least_known, number_text
from satview.answers.verdicts import find
from satview.base.safe_text import percent
from satview.base.time import NS_PER_S, TimeWindow
from satview.events.states import STATE_BY_NAME
from satview.linkage.transactions import transactions
from satview.store.axis import of_capture
from satview.store.trace import OF_CAPTURE, Trace

FIGURES: Final[dict[str, tuple[str, ...]]] = {
    "process": ("cpu_share",),
    "thread": ("cpu_share", "longest_run", "longest_ready", "preemptions"),
    "state": ("share", "mean", "p99", "longest"),
    "call": ("mean", "p99", "longest", "count"),
    "message": ("reply_mean", "reply_p99", "reply_longest", "count"),
    "latency": ("median", "p99", "max"),
    "interrupt": ("mean", "longest", "count"),
    "cpu": ("busy_share",),
}
_NAMES: Final[dict[str, tuple[str, ...]]] = {  # words between the columns that name a row; other rows have one column
    "message": (" to ",),
    "state": (" in ",),
    "latency": (" to ", ", "),
}
_TIMES_OF: Final = {  # the column whose value has a position in time, for rows whose compared figure has none
    "thread": "longest_run", "state": "longest", "call": "longest", "message": "reply_longest",
    "latency": "max", "interrupt": "longest", "cpu": "longest_run",
}  # fmt: skip
_OF_PROCESSES: Final = frozenset({"process", "thread", "state", "message", "latency"})  # rows named by processes
KINDS: Final = {
    "process": "Processes", "thread": "Threads", "state": "States", "call": "Kernel calls",
    "message": "Messages", "latency": "Latencies", "interrupt": "Interrupts", "cpu": "CPUs",
}  # fmt: skip
_WHY_INEXACT: Final = {
    Known.AT_LEAST: "a trace lacks events, or ends before what is measured is over",
    Known.AT_MOST: "a trace lacks events, or ends before what is measured is over",
    Known.INFERRED: "it follows from the order of events; no event shows it",
    Known.GUESS: "it is one of several possibilities that a trace does not distinguish",
    Known.UNKNOWN: "a trace does not show it: it lacks events, or ends before what is measured is over",
    Known.ESTIMATE: "a trace lacks some of the events from which it is computed",
}
QUESTION: Final = Question(
    "changes",
    "Changed most",
    "What is different in two traces?",
    (
        Column("by", Kind.TEXT, "what it is one of", "By"),
        Column("name", Kind.TEXT, "matched by name: a thread by its process, number and name, a call by its name",
               "What"),
        Column("figure", Kind.TEXT, "the figure's name as the statistics have it in JSON", "Name"),
        Column("title", Kind.TEXT, "what was measured; counts and total times are per second", "Figure"),
        Column("before", Kind.FIGURE, "in the first trace", "Before", is_nullable=True, reasons=_WHY_INEXACT),
        Column("after", Kind.FIGURE, "in the second trace", "After", is_nullable=True, reasons=_WHY_INEXACT),
        Column("ratio", Kind.FIGURE, "the second by the first; new and gone: only one of the traces has it", "Change",
               is_nullable=True, reasons=_WHY_INEXACT),
        Column("weight", Kind.SHARE, "how much it changed: the difference as a share of the larger value, less for "
               "what is small among its kind", "Weight"),
        Column("worse", Kind.FLAG, "a length of time that grew by more than is allowed", "Worse",
               reasons={Known.UNKNOWN: "a trace lacks events, or ends before what is measured is over"}),
        Column("tone", Kind.TEXT, "`error` if it is worse, `dim` if it is of the logger itself", sql=""),
    ),
    "weight",
    "Nothing is known of these parts of the traces.",
    tone="tone",
)  # fmt: skip
_TONES: Final = ("", "error", "dim")
_MANY_TIMES: Final = 100  # from here on a change is written as a factor instead of percent
_OF_ONE: Final = ("mean", "longest", "least", "p99", "median", "max")  # parts of names of durations that are not totals
_WORSE_IF_LONGER: Final = ("READY", "MUTEX", "SEND", "REPLY", "RWLOCK_READ", "RWLOCK_WRITE")  # states: longer is worse


def _of_ratio(before: Known, after: Known) -> Known:
    """Return how well the ratio of two values is known."""
    divisor = {Known.AT_LEAST: Known.AT_MOST, Known.AT_MOST: Known.AT_LEAST}.get(before, before)
    if {divisor, after} == {Known.AT_LEAST, Known.AT_MOST}:
        return Known.ESTIMATE
    return Known(int(least_known(*(np.array([known], np.uint8) for known in (divisor, after)))[0]))


_OF_RATIO: Final = {(before, after): _of_ratio(before, after) for before in Known for after in Known}


@dataclass(frozen=True, slots=True, eq=False)
class ChangedRow:
    """One figure (a column of a statistics table), such as mean length, of one row in two traces.

    Attributes:
        by: Name of the statistics table, as for `satview compare --by`.
        name: Name of the row in both traces.
        column: Description of the column, such as title and kind.
        before, after: Value in the first and the second trace; nan = the row is missing, or has no such figure.
        known: How well each of these values is known; a missing row is UNKNOWN if the trace lacks events.
        is_per_s: Whether the values are counts or total times per second of the trace.
        scale: Largest value of the figure in all rows of both traces; for durations the largest of all durations.
        tables: The statistics table of each trace.
        rows: Index of the row in each table; -1 = missing.
    """

    by: str
    name: str
    column: Column
    before: float
    after: float
    is_per_s: bool
    scale: float
    tables: tuple[Table, Table]
    rows: tuple[int, int]
    known: tuple[Known, Known] = (Known.EXACT, Known.EXACT)

    @property
    def title(self) -> str:
        """Display title of the measured figure: `kernel calls: Mean`."""
        kind = KINDS[self.by]
        return f"{kind if self.by == 'cpu' else kind.lower()}: {self.column.title}"

    @property
    def is_of_logger(self) -> bool:
        """True if the row is about a program that captured the trace; such rows are listed last."""
        if OF_CAPTURE in self.name:
            return True
        labels = {label for table in self.tables for label in table.trace.cached("comparison.of_capture", _of_capture)}
        return any(self.name == label or self.name.startswith(f"{label} ") for label in labels)

    @property
    def ratio(self) -> float:
        """The second value divided by the first; nan if one is missing, 1 if both are 0, infinite if the first is 0."""
        if math.isnan(self.before) or math.isnan(self.after):
            return math.nan
        if self.before:
            return self.after / self.before
        return math.inf if self.after else 1.0

    @property
    def ratio_known(self) -> Known:
        """How well the ratio is known; a lower bound of the first value makes an upper bound of the ratio."""
        return _OF_RATIO[self.known]

    @property
    def is_in_doubt(self) -> bool:
        """True if the traces do not show whether the figure changed: they lack events, or the state is not known."""
        known = self.ratio_known
        return (
            known in (Known.UNKNOWN, Known.GUESS)
            or (known is Known.AT_LEAST and self.ratio <= 1)
            or (known is Known.AT_MOST and self.ratio >= 1)
            or self.has_unknown_state
        )

    def is_worse(self, limit: float) -> bool | None:
        """Return whether a length of time grew above a ratio; None if the traces do not show that.

        Of states only waits for a CPU or for other threads count; waiting longer for work, or running longer, is not
        bad.
        """
        is_above = self.ratio > limit
        if not self._is_bad_if_longer or math.isinf(limit) or self.ratio_known in (Known.EXACT, Known.INFERRED):
            return self._is_bad_if_longer and is_above
        is_decided = self.ratio_known is (Known.AT_LEAST if is_above else Known.AT_MOST)
        return is_above if is_decided else None

    @property
    def weight(self) -> float:
        """Weight of the change, 0 to 1, comparable across figures: high for a large relative change of a large value.

        The difference as a share of the larger value, times the square root of that value's share of `scale`.
        """
        larger = max(np.nan_to_num([self.before, self.after]).tolist())
        return difference(self) / larger * math.sqrt(larger / self.scale) if larger and self.scale else 0.0

    @property
    def state(self) -> str:
        """Name of the state that a row of states is about, `unknown` if no event shows it; empty for other rows."""
        side = 0 if self.rows[0] >= 0 else 1
        return self.tables[side].text(self.rows[side], "state") if self.by == "state" else ""

    @property
    def has_unknown_state(self) -> bool:
        """True if the row is about the time for which the states of threads are not known."""
        return self.by == "state" and self.state not in STATE_BY_NAME

    @property
    def _is_bad_if_longer(self) -> bool:
        if self.by == "state":
            return self.state in _WORSE_IF_LONGER
        return self.column.kind is Kind.DURATION and self.column.name != "longest_run"

    def time_column(self, side: int) -> str:
        """Return the column to find the row's position in time in trace 0 or 1; empty if the row is missing."""
        row, name = self.rows[side], self.column.name
        if row < 0:
            return ""
        return name if self.tables[side].is_placed(name) else _TIMES_OF.get(self.by, name)


def compare(before: Trace, after: Trace, tables: Sequence[str] = ()) -> list[ChangedRow]:
    """Return the changes of `FIGURES` between two traces, for each figure the largest difference first.

    Args:
        before: The first trace.
        after: The second trace.
        tables: Keys of `FIGURES`; empty = all.
    """
    return compare_statistics(Statistics(before), Statistics(after), tables)[0]


def compare_statistics(
    first: Statistics,
    second: Statistics,
    tables: Sequence[str] = (),
    check: Callable[[], None] | None = None,
    report: Callable[[float], None] | None = None,
) -> tuple[list[ChangedRow], list[str]]:
    """Return the changes between the statistics of two traces, or of parts of them, and what cannot be compared.

    Args:
        first: Statistics of the first trace.
        second: Statistics of the second trace.
        tables: Keys of `FIGURES`; empty = all.
        check: Called between tables; an exception that it raises ends the comparison.
        report: Called between tables with the share of tables that is done, 0 to 1.

    Returns:
        The changes, as `compare` returns them; and lines on what a trace does not show, each with the reason. A table
        that both traces lack has a line only if it is in `tables`.
    """
    changes: list[ChangedRow] = []
    lines: list[str] = []
    keys, sides = tuple(tables or FIGURES), (first, second)
    missing, unnamed = [_missing(side) for side in sides], [NAMES.advice(side.trace) for side in sides]
    for number, key in enumerate(keys):
        if check is not None:
            check()
        if report is not None:
            report(number / len(keys))
        both = _table(first, key), _table(second, key)
        names = tuple(_rows_by_name(table, key) for table in both)
        lacking = [_why_rows_lack(side.trace, key, table) for side, table in zip(sides, both, strict=True)]
        is_unnamed = key in _OF_PROCESSES and any(unnamed)
        absent = tuple(Known.UNKNOWN if lacking[i] or missing[i] or is_unnamed else Known.EXACT for i in (0, 1))
        for figure in FIGURES[key]:
            changes += _changes(key, figure, both, names, (first.length_s, second.length_s), absent)
        if tables or not all(lacking):
            lines += [f"{key} of {side.trace.path.name}: {reason}"
                      for side, reasons in zip(sides, lacking, strict=True) for reason in reasons]  # fmt: skip
    if any(min(change.rows) < 0 for change in changes if change.by in _OF_PROCESSES):
        lines += [f"names in {side.trace.path.name}: {reason}"
                  for side, reason in zip(sides, unnamed, strict=True) if reason]  # fmt: skip
    lines += [f"{side.trace.path.name}: {reason}" for side, reason in zip(sides, missing, strict=True) if reason]
    return _scaled(changes), lines


def _why_rows_lack(trace: Trace, key: str, table: Table) -> list[str]:
    """Return the reasons why a table may lack rows although no events are lost, some with a remedy; empty = no row."""
    analysis = TRUST_IN[key].analysis if key in TRUST_IN else "pulses"  # pulses begin most latencies
    result = diagnosis(trace, analysis, is_quick=True)
    if not result.trust.mark.is_answer:
        return [result.advice]
    if key == "message" and any(table.held(row, SUBJECT) == 0 for row in range(len(table))):
        return ["the clients of some messages are unknown"]
    return [line for line in table.cannot_tell.splitlines() if line != may_be_more(trace)]


def _missing(side: Statistics) -> str:
    """Return the reason why a part of a trace lacks events; empty if it lacks none."""
    return may_be_more(side.trace) if side.lost_cycles else NO_DAMAGE.reason(side.trace)


def by_weight(changes: Sequence[ChangedRow], *, once: bool = False) -> list[ChangedRow]:
    """Return changes by weight, largest first, doubtful ones later, the logger's last; `once` = one for each row."""
    ordered = sorted(
        changes,
        key=lambda change: (change.is_of_logger, change.is_in_doubt, -change.weight, -difference(change), change.name),
    )
    if not once:
        return ordered
    by_subject: dict[tuple[str, str], ChangedRow] = {}
    for change in ordered:
        by_subject.setdefault((change.by, change.name), change)
    return list(by_subject.values())


def change_table(changes: Sequence[ChangedRow], limit: float = math.inf) -> Table:
    """Return changes as a table, in the same order; a duration with a ratio above the limit is marked as worse."""
    verdicts = [change.is_worse(limit) for change in changes]
    is_worse = np.array([verdict is True for verdict in verdicts], np.bool_)
    before, after, ratio = (np.array([getattr(change, name) for change in changes], np.float64)
                            for name in ("before", "after", "ratio"))  # fmt: skip
    return Table(QUESTION, None, {
        "by": Texts.of([change.by for change in changes]),
        "name": Texts.of([change.name for change in changes]),
        "figure": Texts.of([change.column.key + ("_per_s" if change.is_per_s else "") for change in changes]),
        "title": Texts.of([change.title for change in changes]),
        "before": before,
        "after": after,
        "ratio": np.where(np.isfinite(ratio), ratio, math.nan),
        "weight": np.array([change.weight for change in changes], np.float64),
        "worse": is_worse,
        "tone": Texts(np.where([change.is_of_logger for change in changes], 2, is_worse).astype(np.uint8), _TONES),
    }, texts={
        "before": lambda row: value_text(changes[row], before[row]),
        "after": lambda row: value_text(changes[row], after[row]),
        "ratio": lambda row: change_text(changes[row]),
    }, known={
        "before": np.array([change.known[0] for change in changes], np.uint8),
        "after": np.array([change.known[1] for change in changes], np.uint8),
        "ratio": np.array([change.ratio_known for change in changes], np.uint8),
        "worse": known_where(np.array([verdict is None for verdict in verdicts], np.bool_), Known.UNKNOWN),
    }, place="")  # fmt: skip


class VerdictCounts(NamedTuple):
    """Verdicts on one trace.

    Attributes:
        found: Number of verdicts by kind; a lower bound for undecided kinds.
        undecided: Kinds of which the trace does not show whether there are (more) problems.
    """

    found: dict[str, int]
    undecided: tuple[str, ...]

    def count_of(self, kind: str) -> int | None:
        """Return the number of verdicts of a kind; None if there is none, but the trace cannot show that."""
        return self.found.get(kind, None if kind in self.undecided else 0)


def verdict_counts(trace: Trace, window: TimeWindow | None = None) -> VerdictCounts:
    """Return the number of verdicts by kind; with a window, only of those whose problem occurs in it."""
    answer = find(trace, everything=window is not None).within(window)
    kinds = Counter(str(verdict.kind) for verdict in answer.verdicts)
    return VerdictCounts(dict(kinds), tuple(map(str, answer.undecided["kind"])))


def _of_capture(trace: Trace) -> tuple[str, ...]:
    """Return the labels of the processes that captured a trace, as in the names of rows."""
    return tuple(trace.process_name(row) for row in np.flatnonzero(of_capture(trace)).tolist())


def _table(statistics: Statistics, key: str) -> Table:
    if key == "latency":
        trace = statistics.trace
        return latency_figures(trace, latency_table(trace, LatencyFilter(window=statistics.window)))
    return TABLES[key](statistics, None)


def _changes(
    key: str,
    figure: str,
    both: tuple[Table, Table],
    rows: tuple[dict[str, int], ...],
    lengths_s: tuple[float, float],
    absent: tuple[Known, ...],
) -> list[ChangedRow]:
    """Return the changes of one figure for all rows of either table, the largest difference first."""
    column = both[1].question.column(figure)
    grows = _grows(column)
    names = list(dict.fromkeys((*rows[1], *rows[0])))
    rows_of_both = [(rows[0].get(name, -1), rows[1].get(name, -1)) for name in names]
    columns = [table[column.key] for table in both]
    known = [tuple(absent[side] if row < 0 else both[side].known(row, figure) for side, row in enumerate(pair))
             for pair in rows_of_both]  # fmt: skip
    values = [
        [_value(columns[side], pair[side], how[side], lengths_s[side] if grows else 0.0)
         for pair, how in zip(rows_of_both, known, strict=True)]
        for side in (0, 1)
    ]  # fmt: skip
    changes = [ChangedRow(key, name, column, old, new, grows, 0.0, both, pair, (how[0], how[1]))
               for name, pair, old, new, how in zip(names, rows_of_both, *values, known, strict=True)]  # fmt: skip
    return sorted(changes, key=difference, reverse=True)


def _scaled(changes: list[ChangedRow]) -> list[ChangedRow]:
    """Return the changes with their `scale` set."""

    def kind(change: ChangedRow) -> str:
        is_length = change.column.kind is Kind.DURATION and not change.is_per_s
        return "length" if is_length else f"{change.by} {change.column.name}"

    largest: dict[str, float] = {}
    for change in changes:
        values = np.nan_to_num([change.before, change.after])
        largest[kind(change)] = max(largest.get(kind(change), 0.0), float(values.max()))
    return [replace(change, scale=largest[kind(change)]) for change in changes]


def _value(values: NDArray[Any], row: int, known: Known, length_s: float) -> float:
    """Return a value of a column, nan if missing or unknown; divided by `length_s` if that is not 0."""
    value = math.nan if row < 0 or known is Known.UNKNOWN else float(values[row])
    return math.nan if value < 0 else value / (length_s or 1.0)


def _rows_by_name(table: Table, key: str) -> dict[str, int]:
    """Return the index of each row by its name; further rows with the same name get a number: `name (2)`."""
    between = _NAMES.get(key, ())
    names = [column.name for column in table.question.columns if column.title and column.kind.is_words]
    row_of: dict[str, int] = {}
    seen = Counter[str]()
    for row in range(len(table)):
        texts = [table.text(row, name) for name in names[: len(between) + 1]]
        name = texts[0] + "".join(word + text for word, text in zip(between, texts[1:], strict=False))
        seen[name] += 1
        row_of[name if seen[name] == 1 else f"{name} ({seen[name]})"] = row
    return row_of


def _grows(column: Column) -> bool:
    if column.kind is Kind.COUNT:
        return True
    return column.kind is Kind.DURATION and not any(word in column.name for word in _OF_ONE)


def difference(change: ChangedRow) -> float:
    """Return the absolute difference of the two values; a missing value counts as 0."""
    return abs((0 if math.isnan(change.after) else change.after) - (0 if math.isnan(change.before) else change.before))


def change_text(change: ChangedRow) -> str:
    """Return the change of a value as display text: `+12.5 %`, `250 times`, `new`, `gone`, `from none`."""
    if math.isnan(change.before):
        return "" if math.isnan(change.after) else "new"
    if math.isnan(change.after):
        return "gone"
    if math.isinf(change.ratio):
        return "from none"
    return f"{change.ratio:,.0f} times" if change.ratio >= _MANY_TIMES else f"{100 * (change.ratio - 1):+z,.1f} %"


def value_text(change: ChangedRow, value: float) -> str:
    """Return a value as display text; `-` for none."""
    if math.isnan(value):
        return "-"
    if change.column.kind is Kind.DURATION and change.is_per_s:
        return percent(value / NS_PER_S, 2)
    return f"{value:,.1f} /s" if change.is_per_s else number_text(change.column.kind, value)


# The single durations that a compared figure sums up, for a plot of the histograms of both traces.


_RUN: Final = "run"
_WAIT: Final = "state:READY"
_OF_READY: Final = frozenset({"longest_ready"})
_Durations = NDArray[np.int64]


def has_durations(change: ChangedRow) -> bool:
    """Return whether `durations` accepts a figure: any figure except CPU load and time in an unknown state."""
    return change.by != "cpu" and not change.has_unknown_state


def durations(
    trace: Trace,
    basis: Basis,
    window: TimeWindow,
    change: ChangedRow,
    side: int,
    is_cancelled: Callable[[], bool] | None = None,
) -> _Durations:
    """Return the single durations that a figure sums up in one trace, ns, int64 (n,); empty if its row is missing.

    Args:
        trace: The trace.
        basis: Data that is the same for every part of the trace.
        window: The part of the trace.
        change: The figure.
        side: 0 = the trace is the first of the comparison, 1 = the second.
        is_cancelled: Called repeatedly during the work.

    Raises:
        Cancelled: `is_cancelled` returned true.
    """
    table, row = change.tables[side], change.rows[side]
    if row < 0:
        return np.empty(0, np.int64)
    scope = scope_of(trace, window, None, basis, is_cancelled)
    if change.by == "latency":
        return trace.clock.durations_ns(_latencies(trace, window, table, row))
    return trace.clock.durations_ns(_occurrences(scope, change, table, row).cycles)


def _occurrences(scope: Scope, change: ChangedRow, table: Table, row: int) -> Occurrences:
    trace, subject = scope.trace, table.held(row, SUBJECT)
    threads = np.arange(len(trace.threads))
    if change.by == "state":
        return occurrences(scope, f"state:{table.text(row, 'state')}", threads == subject)
    if change.by in ("thread", "process"):
        is_own = threads == subject if change.by == "thread" else trace.threads.process == subject
        return occurrences(scope, _WAIT if change.column.name in _OF_READY else _RUN, np.asarray(is_own))
    if change.by == "call":
        return occurrences(scope, f"call:{table.text(row, 'call')}")
    if change.by == "interrupt":
        return _of_vector(trace, occurrences(scope, "interrupt"), int(table.text(row, "vector"), 16))
    return _of_pair(trace, occurrences(scope, "round_trip"), int(trace.events.thread[subject]),
                    table.held(row, "server_pid"))  # fmt: skip


def _of_vector(trace: Trace, waits: Occurrences, vector: int) -> Occurrences:
    return _some(waits, trace.payloads.column(waits.event, 0) == vector)


def _of_pair(trace: Trace, waits: Occurrences, client: int, server_pid: int) -> Occurrences:
    """Return the waits that are messages of one client to one server."""
    sent = transactions(trace)
    position = np.searchsorted(sent.send_row, waits.event)
    return _some(waits, (sent.client[position] == client) & (sent.server_pid[position] == server_pid))


def _some(times: Occurrences, chosen: NDArray[np.bool_]) -> Occurrences:
    return Occurrences(
        times.cycles[chosen], times.start[chosen], times.thread[chosen], times.event[chosen], times.unfinished
    )


def _latencies(trace: Trace, window: TimeWindow, table: Table, row: int) -> _Durations:
    """Return the durations, in cycles, of one section, source and thread that one row of the statistics sums up."""
    latencies = latency_table(trace, LatencyFilter(window=window))
    names = table.text(row, "source"), table.text(row, "thread")
    keys = np.stack([latencies.sort_keys(name) for name in ("source", "thread")])
    groups, example, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    is_same = [(latencies.text(i, "source"), latencies.text(i, "thread")) == names for i in example.tolist()]
    leg = table.text(row, "leg").replace("-", "_")
    cycles = latencies[f"{leg}_cycles"]
    is_of_pair = np.array(is_same, np.bool_)[group.reshape(-1)] if groups.size else np.zeros(0, np.bool_)
    return np.asarray(cycles[is_of_pair & (cycles >= 0)])
