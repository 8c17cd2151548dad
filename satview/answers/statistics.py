"""Tables of statistics: use of CPUs, states, kernel calls, messages and others, with the meaning of each column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.doctor import FIGURES, Judge, diagnosis
from satview.analysis.partitions import IDLE as IDLE_PARTITION
from satview.analysis.partitions import (
    NOT_LOGGED,
    averaging_window_ms,
    has_partitions,
    logs_partitions,
    partition_names,
    partition_title,
)
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Mark, largest_by, percentiles_by, sum_by
from satview.analysis.times.message_times import Durations
from satview.analysis.times.state_times import SHARES
from satview.answers.frames import Texts
from satview.answers.functions import function_table
from satview.answers.table import SUBJECT, Column, Kind, Known, Question, Source, Table, known_where
from satview.base.plugins import PluginKind, plugin, plugins
from satview.events.states import (
    ABSENT,
    IDLE,
    NAMES_BY_VALUE,
    READY,
    RUNNING,
    STATE_BY_VALUE,
    UNKNOWN,
    VALUE_COUNT,
    WAITING,
)
from satview.events.wire import WireClass, code
from satview.store.axis import files_of
from satview.store.time_ranges import Cycles

Shown = NDArray[np.bool_] | None
Numbers = NDArray[np.integer] | NDArray[np.floating]


# Shared by all tables: collecting columns, selecting rows, and making the table.


@dataclass
class Columns:
    """Collects the columns of one table, which shows selected rows of the statistics.

    Attributes:
        statistics: The statistics.
        rows: Rows of the statistics that the table shows, in the order of the table.
        described: Descriptions of the columns.
        values: Values of the columns by name.
        moments, events: Times and events at which values happened, by column name; see `Table`.
    """

    statistics: Statistics
    rows: NDArray[np.integer]
    described: list[Column] = field(default_factory=list)
    values: dict[str, Source] = field(default_factory=dict)
    moments: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    events: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    def add(
        self,
        name: str,
        title: str,
        kind: Kind,
        values: Numbers | Texts,
        meaning: str,
        *,
        follows: bool = False,
        hides_zero: bool = False,
        moments: NDArray[np.int64] | None = None,
        events: NDArray[np.int64] | None = None,
    ) -> None:
        """Add a column.

        All arrays have one element per row of the table; all other methods of this class take all rows of the
        statistics.

        Args:
            name: `Column.name`.
            title: `Column.title`.
            kind: `Column.kind`.
            values: The cells.
            meaning: `Column.meaning`.
            follows: `Column.follows_filter`.
            hides_zero: Whether 0 is shown as an empty cell.
            moments: Time to which a click on each cell goes, cycles; None = the cells lead nowhere.
            events: Event to which it goes instead; None = to none.
        """
        self.described.append(Column(name, kind, meaning, title, is_nullable=not kind.is_words, follows_filter=follows,
                                     hides_zero=hides_zero))  # fmt: skip
        self.values[name] = values
        if moments is not None:
            self.moments[name] = moments
        if events is not None:
            self.events[name] = events

    def text(self, name: str, title: str, of: Callable[[int], str], meaning: str) -> None:
        """Add a column of texts; `of` returns the text of a row of the statistics."""
        self.add(name, title, Kind.TEXT, Texts.of([of(row) for row in self.rows.tolist()]), meaning)

    def number(self, name: str, title: str, values: Numbers, meaning: str) -> None:
        """Add a column of numbers that are names, such as pids."""
        self.add(name, title, Kind.NUMBER, values[self.rows], meaning)

    def count(self, name: str, title: str, values: Numbers, meaning: str, **more: Any) -> None:
        """Add a column of counts."""
        self.add(name, title, Kind.COUNT, values[self.rows], meaning, **more)

    def rate(self, values: Numbers, meaning: str, *, follows: bool = True) -> None:
        """Add a column of counts per second of the range."""
        values = values[self.rows] / self.statistics.length_s
        self.add("per_s", "Per second", Kind.RATE, values, meaning, follows=follows)

    def share(self, name: str, title: str, part: Numbers, whole: float | Numbers, meaning: str, **more: Any) -> None:
        """Add a column of shares, `part` of `whole`; the whole is one number, or one for each row of the statistics."""
        wholes = np.broadcast_to(np.asarray(whole, np.float64), part.shape)[self.rows]
        values = np.where(wholes > 0, part[self.rows] / np.maximum(wholes, 1), -1.0)
        self.add(name, title, Kind.SHARE, values, meaning, **more)

    def duration(
        self,
        name: str,
        title: str,
        cycles: NDArray[np.int64],
        meaning: str,
        known: NDArray[np.bool_] | None = None,
        start: NDArray[np.int64] | None = None,
        **more: Any,
    ) -> None:
        """Add a column of durations.

        Args:
            name: Name of the column.
            title: Title of the column.
            cycles: The durations.
            meaning: Meaning of the column.
            known: Whether each row has a value; None = all rows have one, or those above 0 if there is a `start`.
            start: Start times, cycles, for going to a duration, if each is the longest one of its row.
            more: More arguments of `add`.
        """
        selected = cycles[self.rows]
        is_known = selected >= (start is not None) if known is None else known[self.rows]
        moments = None if start is None else np.where(is_known, start[self.rows], -1)
        self.add(name, title, Kind.DURATION, np.where(is_known, selected, -1), meaning, hides_zero=known is None,
                 moments=moments, **more)  # fmt: skip

    def mean(
        self, name: str, title: str, total: NDArray[np.int64], count: NDArray[np.int64], meaning: str, **more: Any
    ) -> None:
        """Add a column of mean durations."""
        self.duration(name, title, total // np.maximum(count, 1), meaning, count > 0, **more)


def table_of(
    key: str, subject: Kind | None, columns: Columns, sort_name: str, empty: str, note: str = "",
    subjects: NDArray[np.int64] | None = None, title: str = "", unknown: NDArray[np.bool_] | None = None,
) -> Table:  # fmt: skip
    """Return a table of the columns, with `Known` for each value that may not be exact.

    Args:
        key: Name of the question, such as `thread`.
        subject: Kind of thing that a row is about: THREAD, PROCESS, CPU or EVENT; None = nothing with a lane or event.
        columns: The columns.
        sort_name: Column to sort by, see `Question`.
        empty: Text for a table without rows, see `Question`.
        note: Note of the question, see `Question`.
        subjects: The thread, process, CPU or event of each row of the statistics; None = the number of the row.
        title: Title of the question; empty = the one in `TITLES`.
        unknown: Whether a row of the statistics is about what is not known, which is exact; None = no row is.
    """
    statistics, rows = columns.statistics, columns.rows
    about = (rows if subjects is None else subjects[rows]).astype(np.int64)
    is_unknown = np.zeros(len(rows), np.bool_) if unknown is None else unknown[rows]
    judge = Judge(statistics, key, about) if key in FIGURES else None
    known: dict[str, NDArray[np.uint8]] = {}
    described = []
    for column in columns.described:
        if judge is not None and column.kind not in (Kind.TEXT, Kind.NUMBER):
            trust, doubtful = judge.of_column(column.key)
            if trust.mark is not Mark.EXACT:
                how = Known.AT_LEAST if trust.mark is Mark.LOWER_BOUND else Known.ESTIMATE
                column = replace(column, trust=trust, reasons={how: trust.reason})  # noqa: PLW2901
                is_so = ~is_unknown if doubtful is None else doubtful & ~is_unknown
                known[column.name] = known_where(is_so, how)
        described.append(column)
    values = dict(columns.values)
    if subject is not None:
        described.append(Column(SUBJECT, subject, "what the row is about", sql=""))
        values[SUBJECT] = about
    title = title or TITLES.get(key, key)
    question = Question(key, title, title, tuple(described), sort_name, empty, note=note)
    diagnosed = diagnosis(statistics.trace, FIGURES[key].analysis, is_quick=True) if judge and not len(about) else None
    cannot_tell = diagnosed.advice if diagnosed is not None and not diagnosed.trust.mark.is_answer else ""
    return Table(question, statistics.trace, values, known=known, place=SUBJECT if subject is Kind.EVENT else "",
                 moments=columns.moments, events=columns.events, cannot_tell=cannot_tell)  # fmt: skip


def threads_shown(statistics: Statistics, shown: Shown) -> NDArray[np.intp]:
    """Return the threads that exist in the range and are selected by `shown`, without idle threads.

    Returns:
        intp (n,), rows of the thread table, ascending; row 0 (unknown thread) is included if it has events.
    """
    absent = statistics.states.of_state(ABSENT, statistics.states.total_cycles, len(statistics.threads))
    is_shown = (absent < statistics.covered.threads) & ~statistics.basis.is_idle
    if shown is not None:
        is_shown &= shown
    is_shown[0] = statistics.threads.events[0] > 0
    return np.flatnonzero(is_shown)


def _passing(shown: Shown) -> str:
    """Return the text that follows "no thread" in the message of an empty table; empty if no filter is set."""
    return "" if shown is None else " with an event that passes the filter"


def thread_columns(columns: Columns, threads: NDArray[np.int64]) -> None:
    """Add three columns that identify a thread: name, process number and thread number.

    Args:
        columns: The columns to add to.
        threads: int64, row of the thread table for each row of the statistics.
    """
    trace = columns.statistics.trace
    columns.text("thread", "Thread", lambda row: trace.thread_name(int(threads[row])), "name of the thread")
    columns.number("pid", "pid", trace.threads.pid[threads], "process number")
    columns.number("tid", "tid", trace.threads.tid[threads], "thread number within the process")


# Tables of what goes from one CPU to another: migrating threads and messages.


def migration_table(statistics: Statistics, shown: Shown = None) -> Table:
    """Return a table with a row per thread and pair of CPUs between which the thread migrated."""
    trace, moves = statistics.trace, statistics.migrations
    cpus = trace.cpu_count + 1  # from -1 on
    chosen = np.flatnonzero(np.isin(moves.thread, threads_shown(statistics, shown)))
    key = (moves.thread[chosen] * cpus + moves.from_cpu[chosen] + 1) * cpus + moves.to_cpu[chosen]
    kinds, example, count = np.unique(key, return_index=True, return_counts=True)
    thread, from_cpu, to_cpu = kinds // cpus // cpus, kinds // cpus % cpus - 1, kinds % cpus
    columns = Columns(statistics, np.arange(len(kinds)))
    thread_columns(columns, thread)
    columns.number("from_cpu", "From CPU", from_cpu, "where it ran before; empty where events were lost in between")
    columns.number("to_cpu", "To CPU", to_cpu, "where it runs then")
    columns.count("count", "Migrations", count, "runs that begin there after a run on the other CPU")
    columns.rate(count, "such migrations per second of the range", follows=False)
    columns.count(
        "thread_count", "Of the thread", statistics.threads.migrations[thread], "all migrations of the thread"
    )
    runs = np.maximum(statistics.threads.switches[thread], 1)
    columns.share("share", "Of its runs", count, runs, "such migrations as a share of its runs that begin in the range")
    start = moves.time_cycles[chosen[example]]
    columns.add("first", "First", Kind.TIME, start, "when the first one happened", moments=start)
    none = (f"No thread{_passing(shown)} runs on one CPU and then on another in this range." if trace.cpu_count > 1 else
            "The trace has one CPU, so that no thread migrates.")  # fmt: skip
    return table_of("migration", Kind.THREAD, columns, "count", none,
                    "Where a run begins on another CPU than the thread's run before; idle threads never migrate.",
                    subjects=thread)  # fmt: skip


def cpu_matrix_table(statistics: Statistics, _shown: Shown = None) -> Table:
    """Return a table with a row per CPU on which messages are sent, and a column per CPU on which they are received."""
    trace, table = statistics.trace, statistics.cpu_messages
    sent = table.count.sum(axis=1) + table.unknown
    columns = Columns(statistics, np.flatnonzero(sent))
    columns.text("from_cpu", "Sent on", trace.cpu_title, "CPU on which they are sent")
    for cpu in range(trace.cpu_count):
        columns.count(f"to_cpu_{cpu}", f"To {trace.cpu_title(cpu)}", table.count[:, cpu],
                      f"messages that {trace.cpu_title(cpu)} received", follows=True)  # fmt: skip
    columns.count(
        "unknown",
        "Not known",
        table.unknown,
        "messages of which the trace has no receipt: not received, or events were lost",
        follows=True,
    )
    columns.count("count", "Messages", sent, "messages sent on this CPU", follows=True)
    columns.count("elsewhere", "To other CPUs", table.elsewhere, "those that another CPU received", follows=True)
    columns.share(
        "elsewhere_share",
        "Share",
        table.elsewhere,
        np.maximum(sent - table.unknown, 1),
        "those that another CPU received, as a share of those of which the receipt is known",
        follows=True,
    )
    return table_of("cpu-matrix", Kind.CPU, columns, "", "No message of the range counts.",
                    "Messages by the CPU that sent and the CPU that received; replies do not count.")  # fmt: skip


# Partitions: the CPU budget of each, and its use.


_NAMES: Final = {IDLE_PARTITION: "System Idle", NOT_LOGGED: "not logged"}
_NO_PARTITION: Final = ("No event names a partition: the adaptive partitioning scheduler was not loaded, "
                        "or the class SYSTEM was not captured.")  # fmt: skip
_NEEDS_WIDE: Final = ("Thread events do not show in which partition threads run; "
                      "capture wide events of the class THREAD (SETCLASSWIDE THREAD).")  # fmt: skip


def partition_table(statistics: Statistics, _shown: Shown = None) -> Table:
    """Return a table with a row per partition and configuration of budgets."""
    trace, table = statistics.trace, statistics.partitions
    names = partition_names(trace) | _NAMES
    columns = Columns(statistics, np.arange(len(table)))
    columns.text("partition", "Partition", lambda row: partition_title(names, int(table.partition[row])),
                 "name of the partition")  # fmt: skip
    columns.number("id", "id", np.where(table.partition == NOT_LOGGED, -1, table.partition), "number of the partition")
    if len(table) and table.configuration[-1] > 1:
        columns.number("configuration", "Configuration", table.configuration, "a new one begins where a budget changes")
        columns.add("from", "From", Kind.TIME, table.start_cycles, "when the configuration begins, cut at the range",
                    moments=table.start_cycles)  # fmt: skip
    columns.share("budget_share", "Budget", table.budget, 1.0, "share of all CPUs that it is given")
    known = np.full(len(table), logs_partitions(statistics.basis))
    known |= np.isin(table.partition, (IDLE_PARTITION, NOT_LOGGED))
    _observed(columns, statistics, known)
    columns.count("critical_budget_ms", "Critical budget, ms", table.critical_budget_ms,
                  "how much more its critical threads may run in an averaging window")  # fmt: skip
    columns.duration("critical", "Critical", table.critical_cycles, "threads ran that may draw on the critical budget",
                     known)  # fmt: skip
    columns.duration("peak", "Most in a window", table.peak_cycles,
                     f"the most that it ran within {averaging_window_ms(trace)} ms, all CPUs together",
                     start=table.peak_start_cycles)  # fmt: skip
    columns.count("bankruptcies", "Bankruptcies", table.bankruptcies, "how often it overran its critical budget")
    columns.text("bankrupt_threads", "Bankrupt by", lambda row: _culprits(statistics, row), "threads that ran then")
    is_logged = logs_partitions(statistics.basis)
    note = ("Budget against use of all CPUs, interrupts included; servers count where their clients belong."
            if is_logged else _NEEDS_WIDE)  # fmt: skip
    if is_logged and statistics.lost_cycles:
        note += " Events were lost: run times are lower bounds."
    return table_of("partition", None, columns, "", _NO_PARTITION, note if has_partitions(trace) else "")


def _observed(columns: Columns, statistics: Statistics, known: NDArray[np.bool_]) -> None:
    """Add columns about the CPU use of partitions; `known` is whether thread events show it, bool (n,)."""
    table = statistics.partitions
    used = np.where(known, table.run_cycles / np.maximum(table.length_cycles, 1), -1.0)
    columns.share("used_share", "Used", used, 1.0, "share of all CPUs that it used")
    has_budget = known & (table.budget > 0)
    of_budget = np.where(has_budget, used / np.where(has_budget, table.budget, 1.0), -1.0)
    columns.share("of_budget_share", "Of its budget", of_budget, 1.0,
                  "use as a share of the budget; what is above 100 % others left free")  # fmt: skip
    columns.duration("run", "Ran", table.run_cycles, "its threads ran, and servers for them", known)


def _culprits(statistics: Statistics, row: int) -> str:
    """Return the names of threads that made a partition bankrupt during one configuration, in time order."""
    table, broke = statistics.partitions, statistics.bankruptcies
    time = statistics.trace.events.time_cycles[broke.row]
    begin = int(table.start_cycles[row])
    later = table.start_cycles[table.start_cycles > begin]
    end = int(later.min()) if len(later) else statistics.window.end
    chosen = broke.thread[(broke.partition == table.partition[row]) & (time >= begin) & (time < end)]
    return ", ".join(statistics.trace.thread_name(int(thread)) for thread in dict.fromkeys(chosen.tolist()))


# Client and server time: how long threads ran themselves, and how long servers ran for them.


_NOTE = ("Own and caused times add up to the time that threads ran; imposed times may add up to more, "
         "as a server works for all its clients at once.")  # fmt: skip
_NO_MESSAGES = "The trace has no messages, so that all time is own time; capture the class COMM."
_LOST = " Events were lost: self and imposed are lower bounds, and some of what is own may be for clients not known."


def client_server_table(statistics: Statistics, shown: Shown = None, per_server: bool = False) -> Table:
    """Return a table with a row per thread that ran or for which other threads ran.

    Args:
        statistics: The statistics.
        shown: bool (threads,), threads to show; None = all.
        per_server: Add a column for each server.
    """
    trace, table = statistics.trace, statistics.client_server
    rows = threads_shown(statistics, shown)
    rows = rows[(table.total_cycles[rows] > 0) & (rows > 0)]
    columns = Columns(statistics, rows)
    threads = np.arange(len(trace.threads))
    thread_columns(columns, threads)
    columns.duration("self", "Self", table.self_cycles, "it ran, for itself or for others, interrupts included")
    columns.duration("imposed", "Imposed", table.imposed_cycles,
                     "servers ran while it waited for them, or for others that waited for them")  # fmt: skip
    columns.duration("total", "Total", table.total_cycles, "self and imposed")
    columns.duration("own", "Own", table.own_cycles, "it ran with no message to answer")
    columns.duration("caused", "Caused", table.caused_cycles,
                     "others ran for it, as the first one in a chain of messages")  # fmt: skip
    columns.duration("bill", "Own and caused", table.bill_cycles, "adds up to the time that threads ran")
    columns.share("bill_share", "Of all runs", table.bill_cycles, int(table.self_cycles.sum()),
                  "own and caused as a share of the time that threads ran")  # fmt: skip
    _most(columns, statistics)
    if per_server:
        _servers(columns, statistics)
    is_logged = all(trace.code_counts[code(WireClass.COMM, event)] for event in (0, 2))
    note = (_NOTE if is_logged else _NO_MESSAGES) + (_LOST if statistics.lost_cycles else "")
    return table_of(
        "client-server",
        Kind.THREAD,
        columns,
        "total",
        f"No thread{_passing(shown)} is known to run in this range.",
        note,
    )


def _most(columns: Columns, statistics: Statistics) -> None:
    """Add columns for the server that ran longest on behalf of each thread: its name, and that time."""
    trace, imposed = statistics.trace, statistics.client_server.imposed
    order = np.lexsort((imposed.cycles, imposed.client))
    is_last = np.append(np.diff(imposed.client[order]) != 0, True)[: len(order)]
    server, most = np.zeros(len(trace.threads), np.int64), np.zeros(len(trace.threads), np.int64)
    best = order[is_last]
    server[imposed.client[best]], most[imposed.client[best]] = imposed.server[best], imposed.cycles[best]
    columns.text("most_on", "Most on", lambda row: trace.thread_name(int(server[row])) if server[row] else "",
                 "the server on which it imposed most")  # fmt: skip
    columns.duration("most_on_ns", "Of that", most, "what it imposed on that server", most > 0)


def _servers(columns: Columns, statistics: Statistics) -> None:
    """Add a column for each server that ran on behalf of threads, the server with the most such time first."""
    trace, imposed = statistics.trace, statistics.client_server.imposed
    total = np.bincount(imposed.server, imposed.cycles, len(trace.threads))
    for server in np.argsort(-total, kind="stable")[: np.count_nonzero(total)].tolist():
        chosen = imposed.server == server
        cycles = np.zeros(len(trace.threads), np.int64)
        cycles[imposed.client[chosen]] = imposed.cycles[chosen]
        name = f"{trace.threads.pid[server]}_{trace.threads.tid[server]}"
        columns.duration(f"imposed_on_{name}", f"On {trace.thread_name(server)}", cycles,
                         f"imposed on {trace.thread_name(server)}")  # fmt: skip


# States: one row per thread and state, and one per state over all threads.


_LEFT_OUT = (ABSENT, IDLE, WAITING)
_TITLES = {0.5: "Half within", 0.9: "90 % within", 0.99: "99 % within"}


def state_table(statistics: Statistics, shown: Shown = None, thread: int | None = None) -> Table:
    """Return a table with a row per thread and state.

    Args:
        statistics: The statistics.
        shown: bool (threads,), threads to show; None = all that exist in the range but idle ones.
        thread: Row of the only thread to show, whether idle or not and with the times at which it did not exist.
    """
    trace, states = statistics.trace, statistics.states
    if thread is None:
        is_of_thread = np.isin(states.thread, threads_shown(statistics, shown)) & ~np.isin(states.value, _LEFT_OUT)
    else:
        is_of_thread = states.thread == thread
    rows = np.flatnonzero(is_of_thread)
    columns = Columns(statistics, rows)
    columns.text("thread", "Thread", lambda row: trace.thread_name(int(states.thread[row])), "name of the thread")
    columns.text("state", "State", lambda row: state_name(int(states.value[row])), "name of the state")
    columns.duration("total", "Time", states.total_cycles, "time in this state")
    whole = statistics.covered.threads[states.thread]
    columns.share("share", "Of the range", states.total_cycles, whole, "share of the range")
    _length_columns(columns, states.count, states.total_cycles, statistics.state_lengths.percentiles_of(states),
                    states.longest_cycles, states.longest_start_cycles)  # fmt: skip
    of = "" if shown is None else f" of a thread{_passing(shown)}"
    none = f"No state{of} is known in this range."
    return table_of("state", Kind.THREAD, columns, "total", none, subjects=states.thread,
                    unknown=states.value == UNKNOWN)  # fmt: skip


def state_total_table(statistics: Statistics, _shown: Shown = None) -> Table:
    """Return a table with a row per state, in which all threads except idle ones are added up.

    A filter leaves no thread out, because it does not change the times of threads.
    """
    trace, lengths = statistics.trace, statistics.state_lengths
    keep = np.isin(lengths.thread, threads_shown(statistics, None)) & ~np.isin(lengths.value, _LEFT_OUT)
    value, cycles = lengths.value[keep].astype(np.int64), lengths.cycles[keep]
    thread, start = lengths.thread[keep], lengths.start[keep]
    total = sum_by(value, cycles, VALUE_COUNT)
    longest, longest_of = largest_by(value, cycles, VALUE_COUNT)
    pairs = np.unique(value * len(trace.threads) + thread) // len(trace.threads)
    of, begin = np.append(thread, 0)[longest_of], np.append(start, -1)[longest_of]
    columns = Columns(statistics, np.flatnonzero(total))
    columns.text("state", "State", state_name, "name of the state")
    columns.duration("total", "Time", total, "time of all threads in this state; idle threads are left out")
    columns.share("share", "Of all threads", total, int(total.sum()), "share of the time of all threads")
    columns.count("threads", "Threads", np.bincount(pairs, minlength=VALUE_COUNT), "threads that were in this state")
    _length_columns(columns, np.bincount(value, minlength=VALUE_COUNT), total,
                    percentiles_by(value, cycles, VALUE_COUNT, SHARES), longest, begin)  # fmt: skip
    columns.text("longest_thread", "Longest of", lambda row: trace.thread_name(int(of[row])), "whose was the longest")
    return table_of("state-total", Kind.THREAD, columns, "total", "No state is known in this range.",
                    "All threads together, idle ones left out.", subjects=of,
                    unknown=np.arange(VALUE_COUNT) == UNKNOWN)  # fmt: skip


def state_name(value: int) -> str:
    """Return the name of the thread state that a lane value stands for: that of QNX, `unknown`, `ABSENT` and others."""
    return "unknown" if value == UNKNOWN else NAMES_BY_VALUE[value]


def _length_columns(
    columns: Columns,
    count: NDArray[np.int64],
    total: Cycles,
    percentiles: tuple[Cycles, ...],
    longest: Cycles,
    start: Cycles,
) -> None:
    columns.count("count", "Times", count, "intervals in this state, those that the range cuts included")
    columns.mean("mean", "Mean", total, count, "mean length, cut at the range")
    for share, cycles in zip(SHARES, percentiles, strict=True):
        text = f"of a hundred intervals {100 * share:g} took at most this time, cut at the range"
        columns.duration(f"p{100 * share:g}", _TITLES[share], cycles, text)
    columns.duration("longest", "Longest", longest, "the longest interval, cut at the range", start=start)


def thread_table(statistics: Statistics, shown: Shown = None, rows: NDArray[np.integer] | None = None) -> Table:
    """Return a table with a row per thread.

    Args:
        statistics: The statistics.
        shown: bool (threads,), threads to show; None = all that exist in the range but idle ones.
        rows: Rows of the thread table to show instead, whether idle or not.
    """
    threads, states = statistics.threads, statistics.states
    columns = Columns(statistics, threads_shown(statistics, shown) if rows is None else rows)
    thread_columns(columns, np.arange(len(threads)))
    _cpu_columns(columns, statistics, threads.cpu_cycles, statistics.covered.threads)
    if statistics.measures_cpu:
        columns.duration("running", "RUNNING", threads.run_cycles, "not known to wait; CPU time is what it worked")
    columns.count("runs", "Runs", threads.runs, "intervals on a CPU")
    columns.mean("mean_run", "Mean run", threads.run_cycles, threads.runs, "mean length of a run, interrupts included")
    columns.duration("longest_run", "Longest run", threads.longest_run_cycles, "the longest run, interrupts included",
                     start=threads.longest_run_start_cycles)  # fmt: skip
    columns.duration("ready", "READY", threads.ready_cycles, "it could have run, but others had the CPUs")
    columns.duration("longest_ready", "Longest READY", threads.longest_ready_cycles, "the longest wait for a CPU",
                     start=threads.longest_ready_start_cycles)  # fmt: skip
    for value in sorted(set(states.value.tolist()) - {ABSENT, READY, RUNNING, IDLE, WAITING, UNKNOWN}):
        name = STATE_BY_VALUE[value].name
        columns.duration(name.lower(), name, states.of_state(value, states.total_cycles, len(threads)),
                         f"state {name}: {STATE_BY_VALUE[value].meaning}")  # fmt: skip
    columns.duration("unknown", "Unknown", states.of_state(UNKNOWN, states.total_cycles, len(threads)),
                     "the trace does not show the state: before its first event, or events were lost")  # fmt: skip
    _switch_columns(columns, threads.switches, threads.preemptions, threads.migrations)
    _logged_columns(columns, threads.sent, threads.received, threads.calls, threads.events)
    return table_of("thread", Kind.THREAD, columns, "cpu", f"No thread{_passing(shown)} is known in this range.",
                    "Idle threads are under CPUs.")  # fmt: skip


def process_table(statistics: Statistics, shown: Shown = None, rows: NDArray[np.integer] | None = None) -> Table:
    """Return a table with a row per process: sums over its threads.

    Args:
        statistics: The statistics.
        shown: bool (threads,), threads whose processes to show; None = all that exist in the range but idle ones.
        rows: Rows of the process table to show instead, whether they have such threads or not.
    """
    trace, processes = statistics.trace, statistics.processes
    if rows is None:
        rows = np.unique(trace.threads.process[threads_shown(statistics, shown)])
        rows = rows[rows > 0]
    columns = Columns(statistics, rows)
    columns.text("process", "Process", trace.process_name, "name of the process")
    columns.number("pid", "pid", trace.processes.pid, "process number")
    columns.count("threads", "Threads", processes.threads, "threads that the trace knows")
    _cpu_columns(columns, statistics, processes.cpu_cycles, statistics.covered.processes)
    columns.duration("ready", "READY", processes.ready_cycles,
                     "its threads could have run; times of several threads add up")  # fmt: skip
    columns.count("runs", "Runs", processes.runs, "intervals of its threads on a CPU")
    _switch_columns(columns, processes.switches, processes.preemptions, processes.migrations)
    _logged_columns(columns, processes.sent, processes.received, processes.calls, processes.events)
    return table_of("process", Kind.PROCESS, columns, "cpu", f"No process{_passing(shown)} is known in this range.",
                    "Idle threads count as no process's.")  # fmt: skip


def cpu_table(statistics: Statistics, _shown: Shown = None) -> Table:
    """Return a table with a row per CPU."""
    trace, cpus = statistics.trace, statistics.cpus
    length = statistics.covered.cpus
    columns = Columns(statistics, np.arange(len(cpus)))
    columns.text("cpu", "CPU", trace.cpu_title, "name of the CPU")
    columns.duration("busy", "Busy", cpus.busy_cycles, "threads ran, interrupts and idle threads left out")
    columns.share("busy_share", "Busy share", cpus.busy_cycles, length, "the same as a share of the range")
    for key, title, cycles, text in (
        ("interrupt", "Interrupts", cpus.interrupt_cycles, "interrupts were handled, whatever they interrupted"),
        ("idle", "Idle", cpus.idle_cycles, "its idle thread ran"),
        (
            "unknown",
            "Unknown",
            cpus.unknown_cycles,
            "on the way from one thread to the next, before the first event, or events were lost",
        ),
    ):
        columns.duration(key, title, cycles, text)
        columns.share(f"{key}_share", f"{title} share", cycles, length, "the same as a share of the range")
    columns.count("switches", "Switches", cpus.switches, "runs that begin with another thread than the one before")
    per_s = cpus.switches * trace.clock.cycles_per_s / np.maximum(length, 1)
    columns.add("switches_per_s", "Per second", Kind.RATE, per_s, "switches per second")
    columns.duration("longest_run", "Longest run", cpus.longest_run_cycles, "the longest time it was with one thread",
                     start=cpus.longest_run_start_cycles)  # fmt: skip
    columns.text("busiest", "Busiest thread",
                 lambda row: trace.thread_name(int(cpus.busiest[row])) if cpus.busiest[row] else "",
                 "the thread that had most of it")  # fmt: skip
    columns.share("busiest_share", "Its share", cpus.busiest_cycles, length, "share of the range")
    return table_of(
        "cpu",
        Kind.CPU,
        columns,
        "",
        "The trace names no CPU.",
        "Busy, interrupts, idle and unknown add up to the range"
        + (" for as long as the file of the CPU lasts." if files_of(trace) is not None else "."),
    )


def event_table(statistics: Statistics, _shown: Shown = None) -> Table:
    """Return a table with a row per kind of event."""
    trace, events = statistics.trace, statistics.events
    columns = Columns(statistics, np.arange(len(events)))
    columns.text("class", "Class", lambda row: trace.catalogue.class_name(int(events.code[row])), "class of the events")
    columns.text("event", "Event", lambda row: trace.catalogue.name(int(events.code[row])), "name of the events")
    columns.count("count", "Count", events.count, "how many", follows=True)
    columns.share("share", "Of all counted", events.count, int(events.count.sum()), "share of the events counted",
                  follows=True)  # fmt: skip
    columns.rate(events.count, "events per second of the range")
    for key, title, rows in (("first", "First", events.first), ("last", "Last", events.last)):
        columns.add(key, title, Kind.TIME, trace.events.time_cycles[rows], f"when the {title.lower()} one happened",
                    follows=True, events=rows)  # fmt: skip
    return table_of("event", Kind.EVENT, columns, "count", "No event of the range counts.", subjects=events.first)


def call_table(statistics: Statistics, _shown: Shown = None) -> Table:
    """Return a table with a row per kernel call."""
    trace, calls = statistics.trace, statistics.calls
    columns = Columns(statistics, np.arange(len(calls)))
    columns.text("call", "Kernel call", lambda row: trace.catalogue.name(int(calls.code[row])), "name of the call")
    columns.count("count", "Calls", calls.count, "entered in the range", follows=True)
    columns.rate(calls.count, "calls per second of the range")
    _duration_columns(columns, calls.times, "", "", "from entry to exit")
    columns.duration(
        "running",
        "Running",
        calls.running.total_cycles,
        "of the sum, while the caller had a CPU: the rest it was blocked, or ready",
        follows=True,
    )
    columns.mean("mean_running", "Mean running", calls.running.total_cycles, calls.running.count,
                 "of a call, while the caller had a CPU", follows=True)  # fmt: skip
    columns.count("failed", "Failed", calls.failed, "came back with an error", follows=True)
    columns.text(
        "errors", "Errors", lambda row: _errors(statistics, calls.errors[row]), "how often each error came back"
    )
    columns.count("interrupted", "Interrupted", calls.interrupted, "ended by a signal or a timeout", follows=True)
    columns.count("open", "No exit", calls.count - calls.times.count,
                  "the exit is not in the trace, events were lost before it, or the caller is not known",
                  follows=True)  # fmt: skip
    return table_of("call", Kind.EVENT, columns, "total", "No kernel call of the range counts.", subjects=calls.first)


def message_table(statistics: Statistics, _shown: Shown = None) -> Table:
    """Return a table with a row per client thread and server process."""
    trace, messages = statistics.trace, statistics.messages
    columns = Columns(statistics, np.arange(len(messages)))
    columns.text("client", "Client", lambda row: trace.thread_name(int(messages.client[row])), "thread that sends")
    columns.text(
        "server", "Server", lambda row: _server(statistics, int(messages.server_pid[row])), "process that receives"
    )
    columns.number("server_pid", "pid", messages.server_pid, "process number of the server")
    columns.count("count", "Messages", messages.count, "SND_MESSAGE events", follows=True)
    columns.rate(messages.count, "messages per second of the range")
    _duration_columns(columns, messages.send_blocked, "send_", "SEND ", "client blocked until the server received it",
                      is_short=True)  # fmt: skip
    _duration_columns(columns, messages.reply_blocked, "reply_", "REPLY ", "client blocked until the reply")
    columns.count(
        "bytes",
        "Bytes",
        np.where(messages.sized > 0, messages.bytes, -1),
        "sizes of the messages whose MSG_RECEIVEV was logged wide; fast events do not show",
        follows=True,
    )
    return table_of("message", Kind.EVENT, columns, "count", "No message of the range counts.", subjects=messages.first)


def interrupt_table(statistics: Statistics, _shown: Shown = None) -> Table:
    """Return a table with a row per interrupt vector."""
    interrupts = statistics.interrupts
    columns = Columns(statistics, np.arange(len(interrupts)))
    columns.text("vector", "Vector", lambda row: f"0x{int(interrupts.vector[row]):x}", "as the entry gives it")
    columns.text("cpus", "CPUs", lambda row: ", ".join(map(str, interrupts.cpus[row])), "CPUs that took it")
    columns.count("count", "Count", interrupts.count, "entered in the range", follows=True)
    columns.rate(interrupts.count, "interrupts per second of the range")
    columns.share("share", "Of one CPU", interrupts.times.total_cycles, statistics.window.length,
                  "time as a share of the range; 100 % is one CPU", follows=True)  # fmt: skip
    _duration_columns(columns, interrupts.times, "", "", "from entry to exit, nested interrupts included")
    _duration_columns(columns, interrupts.latency, "latency_", "Latency ", "from entry to its first handler",
                      is_short=True)  # fmt: skip
    return table_of("interrupt", Kind.EVENT, columns, "total", "No interrupt of the range counts.",
                    subjects=interrupts.first)  # fmt: skip


TABLES: Final[dict[str, Callable[[Statistics, Shown], Table]]] = {
    "thread": thread_table,
    "state": state_table,
    "state-total": state_total_table,
    "process": process_table,
    "cpu": cpu_table,
    "event": event_table,
    "call": call_table,
    "message": message_table,
    "interrupt": interrupt_table,
    "client-server": client_server_table,
    "migration": migration_table,
    "cpu-matrix": cpu_matrix_table,
    "partition": partition_table,
    "function": lambda statistics, _: function_table(statistics.trace, statistics.window),
}
TITLES: Final = {
    "thread": "Threads",
    "state": "States",
    "state-total": "All states",
    "process": "Processes",
    "cpu": "CPUs",
    "event": "Events",
    "call": "Kernel calls",
    "message": "Messages",
    "interrupt": "Interrupts",
    "client-server": "Client and server",
    "migration": "Migrations",
    "cpu-matrix": "Between CPUs",
    "partition": "Partitions",
    "function": "Functions",
}


def statistics_keys() -> tuple[str, ...]:
    """Return the keys of all tables, those of plug-ins last."""
    return (*TABLES, *(plugin.name for plugin in plugins(PluginKind.ANALYSIS) if plugin.name not in TABLES))


def statistics_titles() -> dict[str, str]:
    """Return the titles of all tables by key; those of plug-ins are their attribute `title`, else their names."""
    plugged = {plugin.name: plugin for plugin in plugins(PluginKind.ANALYSIS) if plugin.name not in TITLES}
    return TITLES | {key: str(getattr(plugin.value(), "title", key)) for key, plugin in plugged.items()}


def statistics_table(key: str, statistics: Statistics, shown: Shown = None) -> Table:
    """Return a table by its key. If a plug-in makes it and fails, the table is empty and its text names the fault.

    Args:
        key: One of `statistics_keys()`.
        statistics: The statistics.
        shown: bool (threads,), threads to show; None = all.
    """
    if key in TABLES:
        return TABLES[key](statistics, shown)
    maker = plugin(PluginKind.ANALYSIS, key)
    assert maker is not None
    table = maker.run(lambda analysis: analysis(statistics, shown), None)
    if isinstance(table, Table):
        return table
    if not maker.fault:
        maker.switch_off(TypeError(f"it returned {type(table).__name__}, no Table"))
    empty = table_of(key, Kind.THREAD, Columns(statistics, np.zeros(0, np.intp)), "", "")
    empty.cannot_tell = maker.failure
    return empty


def _cpu_columns(
    columns: Columns, statistics: Statistics, cycles: NDArray[np.int64], length: NDArray[np.int64]
) -> None:
    columns.duration(
        "cpu",
        "CPU time",
        cycles,
        "processor time, measured by the threads themselves"
        if statistics.measures_cpu
        else "it ran, interrupts left out",
    )
    columns.share("cpu_share", "Of one CPU", cycles, length, "CPU time as a share of the range; 100 % is one CPU")
    if statistics.trace.cpu_count > 1:
        columns.share("all_share", "Of all CPUs", cycles, int(statistics.covered.cpus.sum()),
                      "CPU time as a share of what all CPUs had to give")  # fmt: skip


def _switch_columns(
    columns: Columns, switches: NDArray[np.int64], preemptions: NDArray[np.int64], migrations: NDArray[np.int64]
) -> None:
    columns.count("switches", "Switches", switches, "runs that begin in the range")
    columns.count("preemptions", "Preempted", preemptions,
                  "left a CPU though it could have gone on: preempted, time slice over, or yielded")  # fmt: skip
    columns.count("migrations", "Migrations", migrations, "runs that begin on another CPU than the run before")


def _logged_columns(
    columns: Columns,
    sent: NDArray[np.int64],
    received: NDArray[np.int64],
    calls: NDArray[np.int64],
    events: NDArray[np.int64],
) -> None:
    for key, title, values, text in (
        ("sent", "Sent", sent, "messages sent"),
        ("received", "Received", received, "messages received"),
        ("calls", "Kernel calls", calls, "kernel calls entered"),
        ("events", "Events", events, "changes of state, and what was logged while it ran"),
    ):
        columns.count(key, title, values, text, follows=True)


def _duration_columns(
    columns: Columns, times: Durations, key: str, title: str, what: str, is_short: bool = False
) -> None:
    known = times.count > 0
    requested = [
        ("total", "total", times.total_cycles, "Sum of the times"),
        ("mean", "mean", times.mean_cycles, "Mean time"),
        ("least", "shortest", times.least_cycles, "Shortest time"),
        ("p99", "99 %", times.p99_cycles, "Of a hundred, ninety-nine took at most this time"),
        ("longest", "longest", times.most_cycles, "Longest time"),
    ]
    for name, head, cycles, text in requested:
        if is_short and name in ("least", "p99"):
            continue
        heading = f"{title}{head}" if title else head.capitalize()
        events = np.where(known, times.longest, -1)[columns.rows] if name == "longest" else None
        columns.duration(f"{key}{name}", heading, cycles, f"{text} {what}", known, follows=True, events=events)


def _errors(statistics: Statistics, errors: tuple[tuple[int, int], ...]) -> str:
    name = statistics.trace.catalogue.errno_name
    return ", ".join(f"{name(number) or number} {count:,}" for number, count in errors)


def _server(statistics: Statistics, pid: int) -> str:
    if pid < 0:
        return "failed"
    if pid == 0:
        return "another node"
    return statistics.trace.name_of_pid(pid)
