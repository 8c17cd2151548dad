"""The sheets of statistics: which columns they have, what these are called and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.doctor_figures import with_trust
from satview.analysis.partitions import IDLE as IDLE_PARTITION
from satview.analysis.partitions import (
    NOT_LOGGED,
    averaging_window_ms,
    has_partitions,
    logs_partitions,
    partition_names,
    partition_title,
)
from satview.analysis.sheet import (
    Column,
    Columns,
    Kind,
    Sheet,
    Shown,
    Subject,
    columns_of,
    sheet_of,
    thread_columns,
    threads_shown,
)
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import largest_by, percentiles_by, sum_by
from satview.analysis.times.message_times import Durations
from satview.analysis.times.state_times import SHARES
from satview.base.plugins import PluginKind, plugin, plugins
from satview.events.states import ABSENT, IDLE, READY, RUNNING, STATE_BY_VALUE, UNKNOWN, VALUE_COUNT, WAITING
from satview.events.wire import WireClass, code
from satview.store.axis import files_of
from satview.store.time_ranges import Cycles

# The sheets of what goes from one CPU to another: threads that migrate, and messages.


def migration_sheet(found: Statistics, shown: Shown = None) -> Sheet:
    """Return one row per thread and pair of CPUs that it went between."""
    trace, moves = found.trace, found.migrations
    cpus = trace.cpu_count + 1  # from -1 on
    mine = np.flatnonzero(np.isin(moves.thread, threads_shown(found, shown)))
    key = (moves.thread[mine] * cpus + moves.from_cpu[mine] + 1) * cpus + moves.to_cpu[mine]
    kinds, first, count = np.unique(key, return_index=True, return_counts=True)
    thread, from_cpu, to_cpu = kinds // cpus // cpus, kinds // cpus % cpus - 1, kinds % cpus
    columns = columns_of(found, np.arange(len(kinds)))
    thread_columns(columns, found, thread)
    columns.number("from_cpu", "From CPU", from_cpu,
                   "Where it ran before; empty where events were lost in between.")  # fmt: skip
    columns.number("to_cpu", "To CPU", to_cpu, "Where it runs then.")
    columns.count("count", "Migrations", count, "Runs that begin there after a run on the other CPU.")
    columns.made.append(Column("per_s", "Per second", Kind.RATE, count / found.length_s,
                               "Such migrations per second of the range."))  # fmt: skip
    columns.count("thread_count", "Of the thread", found.threads.migrations[thread], "All migrations of the thread.")
    runs = np.maximum(found.threads.switches[thread], 1)
    columns.made.append(Column("share", "Of its runs", Kind.SHARE, count / runs,
                              "Such migrations as a share of its runs that begin in the range."))  # fmt: skip
    start = trace.clock.ns_array(moves.time_cycles[mine[first]])
    columns.made.append(Column("first_ns", "First", Kind.TIME, start, "When the first one happened.",
                               cycles=moves.time_cycles[mine[first]]))  # fmt: skip
    none = ("No thread runs on one CPU and then on another in this range." if trace.cpu_count > 1 else
            "The trace has one CPU, so that no thread migrates.")  # fmt: skip
    return sheet_of("migration", "Migrations", Subject.THREAD, columns, "count", none,
                    "Where a run begins on another CPU than the thread's run before; idle threads never migrate.",
                    subjects=thread)  # fmt: skip


def cpu_matrix_sheet(found: Statistics, _shown: Shown = None) -> Sheet:
    """Return one row per CPU that messages are sent on, one column per CPU that they are received on."""
    trace, table = found.trace, found.cpu_messages
    sent = table.count.sum(axis=1) + table.unknown
    columns = columns_of(found, np.flatnonzero(sent))
    columns.text("from_cpu", "Sent on", trace.cpu_title)
    for cpu in range(trace.cpu_count):
        columns.count(f"to_cpu_{cpu}", f"To {trace.cpu_title(cpu)}", table.count[:, cpu],
                      f"Messages that {trace.cpu_title(cpu)} received.", follows=True)  # fmt: skip
    columns.count("unknown", "Not known", table.unknown,
                  "Messages of which the trace has no receipt: not received, or events were lost.",
                  follows=True)  # fmt: skip
    columns.count("count", "Messages", sent, "Messages sent on this CPU.", follows=True)
    columns.count("elsewhere", "To other CPUs", table.elsewhere, "Those that another CPU received.", follows=True)
    columns.made.append(Column("elsewhere_share", "Share", Kind.SHARE,
                               (table.elsewhere / np.maximum(sent - table.unknown, 1))[columns.rows],
                               "Those that another CPU received, as a share of those of which the receipt is known.",
                               follows=True))  # fmt: skip
    return sheet_of(
        "cpu-matrix",
        "Between CPUs",
        Subject.CPU,
        columns,
        "",
        "No message of the range counts.",
        "Messages by the CPU that sent and the CPU that received; replies do not count.",
    )


# The sheet of partitions: what each may use of the CPUs against what it uses.


_NAMES: Final = {IDLE_PARTITION: "System Idle", NOT_LOGGED: "not logged"}
_NO_PARTITION: Final = ("No event names a partition: the adaptive partitioning scheduler was not loaded, "
                        "or the class SYSTEM was not captured.")  # fmt: skip
_NEEDS_WIDE: Final = ("Thread events do not show in which partition threads run; "
                      "capture wide events of the class THREAD (SETCLASSWIDE THREAD).")  # fmt: skip


def partition_sheet(found: Statistics, _shown: Shown = None) -> Sheet:
    """Return one row per configuration of budgets and partition."""
    trace, table = found.trace, found.partitions
    names = partition_names(trace) | _NAMES
    columns = columns_of(found, np.arange(len(table)))
    columns.text("partition", "Partition", lambda row: partition_title(names, int(table.partition[row])))
    columns.number("id", "id", np.where(table.partition == NOT_LOGGED, -1, table.partition), "Number of the partition.")
    if len(table) and table.configuration[-1] > 1:
        columns.number("configuration", "Configuration", table.configuration,
                       "A new one begins where a budget changes.")  # fmt: skip
        columns.made.append(Column("from_ns", "From", Kind.TIME, trace.clock.ns_array(table.start_cycles),
                                   "When the configuration begins, cut at the range.",
                                   cycles=table.start_cycles))  # fmt: skip
    columns.share("budget_share", "Budget", table.budget, 1.0, "Share of all CPUs that it is given.")
    _observed(columns, found)
    columns.count("critical_budget_ms", "Critical budget, ms", table.critical_budget_ms,
                  "How much more its critical threads may run in an averaging window.")  # fmt: skip
    columns.duration("critical_ns", "Critical", table.critical_cycles,
                     "Threads ran that may draw on the critical budget.")  # fmt: skip
    columns.duration("peak_ns", "Most in a window", table.peak_cycles,
                     f"The most that it ran within {averaging_window_ms(trace)} ms, all CPUs together.",
                     start=table.peak_start_cycles)  # fmt: skip
    columns.count("bankruptcies", "Bankruptcies", table.bankruptcies, "How often it overran its critical budget.")
    columns.text("bankrupt_threads", "Bankrupt by", lambda row: _culprits(found, row), "Threads that ran then.")
    is_logged = logs_partitions(found.basis)
    note = ("Budget against use of all CPUs, interrupts included; servers count where their clients belong."
            if is_logged else _NEEDS_WIDE)  # fmt: skip
    if is_logged and found.lost_cycles:
        note += " Events were lost: run times are lower bounds."
    return sheet_of("partition", "Partitions", Subject.NONE, columns, "", _NO_PARTITION,
                    note if has_partitions(trace) else "")  # fmt: skip


def _observed(columns: Columns, found: Statistics) -> None:
    """Add what partitions used; nothing where thread events do not show."""
    table = found.partitions
    known = np.full(len(table), logs_partitions(found.basis))
    known |= np.isin(table.partition, (IDLE_PARTITION, NOT_LOGGED))
    used = np.where(known, table.run_cycles / np.maximum(table.length_cycles, 1), -1.0)
    columns.share("used_share", "Used", used, 1.0, "Share of all CPUs that it used.")
    has_budget = known & (table.budget > 0)
    of_budget = np.where(has_budget, used / np.where(has_budget, table.budget, 1.0), -1.0)
    columns.share("of_budget_share", "Of its budget", of_budget, 1.0,
                  "Use as a share of the budget; what is above 100 % others left free.")  # fmt: skip
    columns.duration("run_ns", "Ran", table.run_cycles, "Its threads ran, and servers for them.", known)


def _culprits(found: Statistics, row: int) -> str:
    """Return the threads that made a partition bankrupt in a configuration, in the order of the events."""
    table, broke = found.partitions, found.bankruptcies
    time = found.trace.events.time_cycles[broke.row]
    begin = int(table.start_cycles[row])
    later = table.start_cycles[table.start_cycles > begin]
    end = int(later.min()) if len(later) else found.window.end
    mine = broke.thread[(broke.partition == table.partition[row]) & (time >= begin) & (time < end)]
    return ", ".join(found.trace.thread_name(int(thread)) for thread in dict.fromkeys(mine.tolist()))


# The sheet of client and server time: what threads ran themselves, had servers run, and what all that adds up to.


_NOTE = ("Own and caused times add up to the time that threads ran; imposed times may add up to more, "
         "as a server works for all its clients at once.")  # fmt: skip
_NO_MESSAGES = "No messages are there, so that all time is own time; capture the class COMM."
_LOST = " Events were lost: self and imposed are lower bounds, and some of what is own may be for clients not known."


def client_server_sheet(found: Statistics, shown: Shown = None, per_server: bool = False) -> Sheet:
    """Return one row per thread that ran, or for which others ran.

    Args:
        found: The statistics.
        shown: bool (threads,), those to show; None = all.
        per_server: True for one more column per server.
    """
    trace, table = found.trace, found.client_server
    rows = threads_shown(found, shown)
    rows = rows[(table.total_cycles[rows] > 0) & (rows > 0)]
    columns = columns_of(found, rows)
    threads = np.arange(len(trace.threads))
    thread_columns(columns, found, threads)
    columns.duration("self_ns", "Self", table.self_cycles, "It ran, for itself or for others, interrupts included.")
    columns.duration("imposed_ns", "Imposed", table.imposed_cycles,
                     "Servers ran while it waited for them, or for others that waited for them.")  # fmt: skip
    columns.duration("total_ns", "Total", table.total_cycles, "Self and imposed.")
    columns.duration("own_ns", "Own", table.own_cycles, "It ran with no message to answer.")
    columns.duration("caused_ns", "Caused", table.caused_cycles,
                     "Others ran for it, as the first one in a chain of messages.")  # fmt: skip
    columns.duration("bill_ns", "Own and caused", table.bill_cycles, "Adds up to the time that threads ran.")
    columns.share("bill_share", "Of all runs", table.bill_cycles, int(table.self_cycles.sum()),
                  "Own and caused as a share of the time that threads ran.")  # fmt: skip
    _most(columns, found)
    if per_server:
        _servers(columns, found)
    is_logged = all(trace.code_counts[code(WireClass.COMM, event)] for event in (0, 2))
    note = (_NOTE if is_logged else _NO_MESSAGES) + (_LOST if found.lost_cycles else "")
    return sheet_of("client-server", "Client and server", Subject.THREAD, columns, "total_ns",
                    "No thread is known to run in this range.", note)  # fmt: skip


def _most(columns: Columns, found: Statistics) -> None:
    """Add the server on which each thread imposed most."""
    trace, imposed = found.trace, found.client_server.imposed
    order = np.lexsort((imposed.cycles, imposed.client))
    is_last = np.append(np.diff(imposed.client[order]) != 0, True)[: len(order)]
    server, most = np.zeros(len(trace.threads), np.int64), np.zeros(len(trace.threads), np.int64)
    best = order[is_last]
    server[imposed.client[best]], most[imposed.client[best]] = imposed.server[best], imposed.cycles[best]
    columns.text("most_on", "Most on", lambda row: trace.thread_name(int(server[row])) if server[row] else "",
                 "The server on which it imposed most.")  # fmt: skip
    columns.duration("most_on_ns", "Of that", most, "What it imposed on that server.")


def _servers(columns: Columns, found: Statistics) -> None:
    """Add a column for each server on which any thread imposed something, those imposed on most first."""
    trace, imposed = found.trace, found.client_server.imposed
    total = np.bincount(imposed.server, imposed.cycles, len(trace.threads))
    for server in np.argsort(-total, kind="stable")[: np.count_nonzero(total)].tolist():
        mine = imposed.server == server
        cycles = np.zeros(len(trace.threads), np.int64)
        cycles[imposed.client[mine]] = imposed.cycles[mine]
        selected = cycles[columns.rows]
        name = f"{trace.threads.pid[server]}_{trace.threads.tid[server]}"
        columns.made.append(Column(f"imposed_on_{name}_ns", f"On {trace.thread_name(server)}", Kind.DURATION,
                                   np.where(selected > 0, columns.ns(selected), -1),
                                   f"Imposed on {trace.thread_name(server)}."))  # fmt: skip


# The sheets of states: one row per thread and state, and one per state over all threads.


_LEFT_OUT = (ABSENT, IDLE, WAITING)
_TITLES = {0.5: "Half within", 0.9: "90 % within", 0.99: "99 % within"}


def state_sheet(found: Statistics, shown: Shown = None) -> Sheet:
    """Return one row per thread and state."""
    trace, states = found.trace, found.states
    rows = np.flatnonzero(~np.isin(states.value, _LEFT_OUT))
    rows = rows[np.isin(states.thread[rows], threads_shown(found, shown))]
    columns = columns_of(found, rows)
    columns.text("thread", "Thread", lambda row: trace.thread_name(int(states.thread[row])))
    columns.text("state", "State", lambda row: state_name(int(states.value[row])))
    columns.duration("total_ns", "Time", states.total_cycles, "Time in this state.")
    whole = found.covered.threads[states.thread]
    columns.share("share", "Of the range", states.total_cycles, whole, "Share of the range.")
    _length_columns(
        columns,
        states.count,
        states.total_cycles,
        found.state_lengths.percentiles_of(states),
        states.longest_cycles,
        states.longest_start_cycles,
    )
    return sheet_of(
        "state",
        "States",
        Subject.THREAD,
        columns,
        "total_ns",
        "No state is known in this range.",
        subjects=states.thread,
    )


def state_total_sheet(found: Statistics, shown: Shown = None) -> Sheet:
    """Return one row per state: all threads together, idle ones left out."""
    trace, lengths = found.trace, found.state_lengths
    keep = np.isin(lengths.thread, threads_shown(found, shown)) & ~np.isin(lengths.value, _LEFT_OUT)
    value, cycles = lengths.value[keep].astype(np.int64), lengths.cycles[keep]
    thread, start = lengths.thread[keep], lengths.start[keep]
    total = sum_by(value, cycles, VALUE_COUNT)
    longest, at = largest_by(value, cycles, VALUE_COUNT)
    pairs = np.unique(value * len(trace.threads) + thread) // len(trace.threads)
    of, begin = np.append(thread, 0)[at], np.append(start, -1)[at]
    columns = columns_of(found, np.flatnonzero(total))
    columns.text("state", "State", state_name)
    columns.duration("total_ns", "Time", total, "Time of all threads in this state; idle threads are left out.")
    columns.share("share", "Of all threads", total, int(total.sum()), "Share of the time of all threads.")
    columns.count("threads", "Threads", np.bincount(pairs, minlength=VALUE_COUNT), "Threads that were in this state.")
    _length_columns(
        columns,
        np.bincount(value, minlength=VALUE_COUNT),
        total,
        percentiles_by(value, cycles, VALUE_COUNT, SHARES),
        longest,
        begin,
    )
    columns.text("longest_thread", "Longest of", lambda row: trace.thread_name(int(of[row])), "Whose was the longest.")
    return sheet_of(
        "state-total",
        "All states",
        Subject.THREAD,
        columns,
        "total_ns",
        "No state is known in this range.",
        "All threads together, idle ones left out.",
        subjects=of,
    )


def state_name(value: int) -> str:
    """Return what a state is called."""
    return STATE_BY_VALUE[value].name if value in STATE_BY_VALUE else "unknown"


def _length_columns(
    columns: Columns,
    count: NDArray[np.int64],
    total: Cycles,
    percentiles: tuple[Cycles, ...],
    longest: Cycles,
    start: Cycles,
) -> None:
    columns.count("count", "Times", count, "Intervals in this state, those that the range cuts included.")
    columns.mean("mean_ns", "Mean", total, count, "Mean length, cut at the range.")
    for share, cycles in zip(SHARES, percentiles, strict=True):
        text = f"Of a hundred intervals {100 * share:g} took at most this time, cut at the range."
        columns.duration(f"p{100 * share:g}_ns", _TITLES[share], cycles, text)
    columns.duration("longest_ns", "Longest", longest, "The longest interval, cut at the range.", start=start)


def thread_sheet(found: Statistics, shown: Shown = None) -> Sheet:
    """Return one row per thread that exists in the range, idle threads left out."""
    threads, states = found.threads, found.states
    columns = columns_of(found, threads_shown(found, shown))
    thread_columns(columns, found, np.arange(len(threads)))
    _cpu_columns(columns, found, threads.cpu_cycles, found.covered.threads)
    if found.measures_cpu:
        columns.duration("running_ns", "RUNNING", threads.run_cycles, "Not known to wait; CPU time is what it worked.")
    columns.count("runs", "Runs", threads.runs, "Intervals on a CPU.")
    columns.mean(
        "mean_run_ns", "Mean run", threads.run_cycles, threads.runs, "Mean length of a run, interrupts included."
    )
    columns.duration(
        "longest_run_ns",
        "Longest run",
        threads.longest_run_cycles,
        "The longest run, interrupts included.",
        start=threads.longest_run_start_cycles,
    )
    columns.duration("ready_ns", "READY", threads.ready_cycles, "It could have run, but others had the CPUs.")
    columns.duration(
        "longest_ready_ns",
        "Longest READY",
        threads.longest_ready_cycles,
        "The longest wait for a CPU.",
        start=threads.longest_ready_start_cycles,
    )
    for value in sorted(set(states.value.tolist()) - {ABSENT, READY, RUNNING, IDLE, WAITING, UNKNOWN}):
        name = STATE_BY_VALUE[value].name
        columns.duration(
            f"{name.lower()}_ns",
            name,
            states.of_state(value, states.total_cycles, len(threads)),
            f"State {name}: {STATE_BY_VALUE[value].meaning}.",
        )
    columns.duration(
        "unknown_ns",
        "Unknown",
        states.of_state(UNKNOWN, states.total_cycles, len(threads)),
        "The trace does not show the state: before its first event, or events were lost.",
    )
    _switch_columns(columns, threads.switches, threads.preemptions, threads.migrations)
    _logged_columns(columns, threads.sent, threads.received, threads.calls, threads.events)
    return sheet_of(
        "thread",
        "Threads",
        Subject.THREAD,
        columns,
        "cpu_ns",
        "No thread is known in this range.",
        "Idle threads are under CPUs.",
    )


def process_sheet(found: Statistics, shown: Shown = None) -> Sheet:
    """Return one row per process: sums over its threads."""
    trace, processes = found.trace, found.processes
    mine = np.zeros(len(processes), np.bool_)
    mine[trace.threads.process[threads_shown(found, shown)]] = True
    mine[0] = False
    columns = columns_of(found, np.flatnonzero(mine))
    columns.text("process", "Process", trace.process_name)
    columns.number("pid", "pid", trace.processes.pid, "Process number.")
    columns.count("threads", "Threads", processes.threads, "Threads that the trace knows.")
    _cpu_columns(columns, found, processes.cpu_cycles, found.covered.processes)
    columns.duration(
        "ready_ns", "READY", processes.ready_cycles, "Its threads could have run; times of several threads add up."
    )
    columns.count("runs", "Runs", processes.runs, "Intervals of its threads on a CPU.")
    _switch_columns(columns, processes.switches, processes.preemptions, processes.migrations)
    _logged_columns(columns, processes.sent, processes.received, processes.calls, processes.events)
    return sheet_of(
        "process",
        "Processes",
        Subject.PROCESS,
        columns,
        "cpu_ns",
        "No process is known in this range.",
        "Idle threads count as no process's.",
    )


def cpu_sheet(found: Statistics, _shown: Shown = None) -> Sheet:
    """Return one row per CPU."""
    trace, cpus = found.trace, found.cpus
    length = found.covered.cpus
    columns = columns_of(found, np.arange(len(cpus)))
    columns.text("cpu", "CPU", trace.cpu_title)
    columns.duration("busy_ns", "Busy", cpus.busy_cycles, "Threads ran, interrupts and idle threads left out.")
    columns.share("busy_share", "Busy share", cpus.busy_cycles, length, "The same as a share of the range.")
    for key, title, cycles, text in (
        ("interrupt", "Interrupts", cpus.interrupt_cycles, "Interrupts were handled, whatever they interrupted."),
        ("idle", "Idle", cpus.idle_cycles, "Its idle thread ran."),
        (
            "unknown",
            "Unknown",
            cpus.unknown_cycles,
            "On the way from one thread to the next, before the first event, or events were lost.",
        ),
    ):
        columns.duration(f"{key}_ns", title, cycles, text)
        columns.share(f"{key}_share", f"{title} share", cycles, length, "The same as a share of the range.")
    columns.count("switches", "Switches", cpus.switches, "Runs that begin with another thread than the one before.")
    columns.made.append(
        Column(
            "switches_per_s",
            "Per second",
            Kind.RATE,
            cpus.switches * trace.clock.cycles_per_s / np.maximum(length, 1),
            "Switches per second.",
        )
    )
    columns.duration(
        "longest_run_ns",
        "Longest run",
        cpus.longest_run_cycles,
        "The longest time it was with one thread.",
        start=cpus.longest_run_start_cycles,
    )
    columns.text(
        "busiest",
        "Busiest thread",
        lambda row: trace.thread_name(int(cpus.busiest[row])) if cpus.busiest[row] else "",
        "The thread that had most of it.",
    )
    columns.share("busiest_share", "Its share", cpus.busiest_cycles, length, "Share of the range.")
    return sheet_of(
        "cpu",
        "CPUs",
        Subject.CPU,
        columns,
        "",
        "The trace names no CPU.",
        "Busy, interrupts, idle and unknown add up to the range"
        + (" for as long as the file of the CPU lasts." if files_of(trace) is not None else "."),
    )


def event_sheet(found: Statistics, _shown: Shown = None) -> Sheet:
    """Return one row per kind of event."""
    trace, events = found.trace, found.events
    columns = columns_of(found, np.arange(len(events)))
    columns.text("class", "Class", lambda row: trace.catalogue.class_name(int(events.code[row])))
    columns.text("event", "Event", lambda row: trace.catalogue.name(int(events.code[row])))
    columns.count("count", "Count", events.count, "How many.", follows=True)
    columns.share(
        "share", "Of all counted", events.count, int(events.count.sum()), "Share of the events counted.", follows=True
    )
    columns.rate("per_s", events.count, "Events per second of the range.")
    for key, title, rows in (("first_ns", "First", events.first), ("last_ns", "Last", events.last)):
        times = trace.clock.ns_array(trace.events.time_cycles[rows])
        columns.made.append(
            Column(key, title, Kind.TIME, times, f"When the {title.lower()} one happened.", True, events=rows)
        )
    return sheet_of(
        "event", "Events", Subject.EVENT, columns, "count", "No event of the range counts.", subjects=events.first
    )


def call_sheet(found: Statistics, _shown: Shown = None) -> Sheet:
    """Return one row per kernel call."""
    trace, calls = found.trace, found.calls
    columns = columns_of(found, np.arange(len(calls)))
    columns.text("call", "Kernel call", lambda row: trace.catalogue.name(int(calls.code[row])))
    columns.count("count", "Calls", calls.count, "Entered in the range.", follows=True)
    columns.rate("per_s", calls.count, "Calls per second of the range.")
    _duration_columns(columns, calls.times, "", "", "from entry to exit")
    columns.duration(
        "running_ns",
        "Running",
        calls.running.total_cycles,
        "Of the sum, while the caller had a CPU: the rest it was blocked, or ready.",
        follows=True,
    )
    columns.mean(
        "mean_running_ns",
        "Mean running",
        calls.running.total_cycles,
        calls.running.count,
        "Of a call, while the caller had a CPU.",
        follows=True,
    )
    columns.count("failed", "Failed", calls.failed, "Came back with an error.", follows=True)
    columns.text("errors", "Errors", lambda row: _errors(found, calls.errors[row]), "How often each error came back.")
    columns.count("interrupted", "Interrupted", calls.interrupted, "Ended by a signal or a timeout.", follows=True)
    columns.count(
        "open",
        "No exit",
        calls.count - calls.times.count,
        "The exit is not in the trace, events were lost before it, or the caller is not known.",
        follows=True,
    )
    return sheet_of(
        "call",
        "Kernel calls",
        Subject.EVENT,
        columns,
        "total_ns",
        "No kernel call of the range counts.",
        subjects=calls.first,
    )


def message_sheet(found: Statistics, _shown: Shown = None) -> Sheet:
    """Return one row per client thread and server process."""
    trace, messages = found.trace, found.messages
    columns = columns_of(found, np.arange(len(messages)))
    columns.text("client", "Client", lambda row: trace.thread_name(int(messages.client[row])))
    columns.text("server", "Server", lambda row: _server(found, int(messages.server_pid[row])))
    columns.number("server_pid", "pid", messages.server_pid, "Process number of the server.")
    columns.count("count", "Messages", messages.count, "SND_MESSAGE events.", follows=True)
    columns.rate("per_s", messages.count, "Messages per second of the range.")
    _duration_columns(
        columns, messages.send_blocked, "send_", "SEND ", "client blocked until the server received it", is_short=True
    )
    _duration_columns(columns, messages.reply_blocked, "reply_", "REPLY ", "client blocked until the reply")
    columns.count(
        "bytes",
        "Bytes",
        np.where(messages.sized > 0, messages.bytes, -1),
        "Sizes of the messages whose MSG_RECEIVEV was logged wide; fast events do not show.",
        follows=True,
    )
    return sheet_of(
        "message",
        "Messages",
        Subject.EVENT,
        columns,
        "count",
        "No message of the range counts.",
        subjects=messages.first,
    )


def interrupt_sheet(found: Statistics, _shown: Shown = None) -> Sheet:
    """Return one row per interrupt vector."""
    interrupts = found.interrupts
    columns = columns_of(found, np.arange(len(interrupts)))
    columns.text("vector", "Vector", lambda row: f"0x{int(interrupts.vector[row]):x}", "As the entry gives it.")
    columns.text("cpus", "CPUs", lambda row: ", ".join(map(str, interrupts.cpus[row])), "CPUs that took it.")
    columns.count("count", "Count", interrupts.count, "Entered in the range.", follows=True)
    columns.rate("per_s", interrupts.count, "Interrupts per second of the range.")
    columns.share(
        "share",
        "Of one CPU",
        interrupts.times.total_cycles,
        found.window.length,
        "Time as a share of the range; 100 % is one CPU.",
        follows=True,
    )
    _duration_columns(columns, interrupts.times, "", "", "from entry to exit, nested interrupts included")
    _duration_columns(
        columns, interrupts.latency, "latency_", "Latency ", "from entry to its first handler", is_short=True
    )
    return sheet_of(
        "interrupt",
        "Interrupts",
        Subject.EVENT,
        columns,
        "total_ns",
        "No interrupt of the range counts.",
        subjects=interrupts.first,
    )


def _trusted(make: Callable[[Statistics, Shown], Sheet]) -> Callable[[Statistics, Shown], Sheet]:
    """Return what makes a sheet whose columns say how far they can be trusted."""

    def trusted(found: Statistics, shown: Shown = None) -> Sheet:
        return with_trust(make(found, shown), found)

    return trusted


_MAKERS: Final[dict[str, Callable[[Statistics, Shown], Sheet]]] = {
    "thread": thread_sheet,
    "state": state_sheet,
    "state-total": state_total_sheet,
    "process": process_sheet,
    "cpu": cpu_sheet,
    "event": event_sheet,
    "call": call_sheet,
    "message": message_sheet,
    "interrupt": interrupt_sheet,
    "client-server": client_server_sheet,
    "migration": migration_sheet,
    "cpu-matrix": cpu_matrix_sheet,
    "partition": partition_sheet,
}
SHEETS: Final = {key: _trusted(make) for key, make in _MAKERS.items()}
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
}


def sheet_keys() -> tuple[str, ...]:
    """Return the keys of all sheets, those of plug-ins last."""
    return (*SHEETS, *(each.name for each in plugins(PluginKind.ANALYSIS) if each.name not in SHEETS))


def sheet_titles() -> dict[str, str]:
    """Return key to title of all sheets; a plug-in's is the attribute `title` of what it names, else its name."""
    plugged = {each.name: each for each in plugins(PluginKind.ANALYSIS) if each.name not in TITLES}
    return TITLES | {key: str(getattr(each.value(), "title", key)) for key, each in plugged.items()}


def make_sheet(key: str, found: Statistics, shown: Shown = None) -> Sheet:
    """Return a sheet by its key; that of a plug-in that fails is empty and says so.

    Args:
        key: One of `sheet_keys()`.
        found: The statistics.
        shown: bool (threads,), which threads; None = all.
    """
    if key in SHEETS:
        return SHEETS[key](found, shown)
    by = plugin(PluginKind.ANALYSIS, key)
    assert by is not None
    made = by.run(lambda analysis: analysis(found, shown), None)
    if isinstance(made, Sheet):
        return made
    if not by.fault:
        by.switch_off(TypeError(f"it returned {type(made).__name__}, no Sheet"))
    why = f"The plug-in {by.name} of {by.package} is switched off: {by.fault}"
    return sheet_of(key, key, Subject.NONE, columns_of(found, np.zeros(0, np.intp)), "", why)


def _cpu_columns(columns: Columns, found: Statistics, cycles: NDArray[np.int64], length: NDArray[np.int64]) -> None:
    columns.duration(
        "cpu_ns",
        "CPU time",
        cycles,
        "Processor time, measured by the threads themselves." if found.measures_cpu else "It ran, interrupts left out.",
    )
    columns.share("cpu_share", "Of one CPU", cycles, length, "CPU time as a share of the range; 100 % is one CPU.")
    if found.trace.cpu_count > 1:
        columns.share(
            "all_share",
            "Of all CPUs",
            cycles,
            int(found.covered.cpus.sum()),
            "CPU time as a share of what all CPUs had to give.",
        )


def _switch_columns(
    columns: Columns, switches: NDArray[np.int64], preemptions: NDArray[np.int64], migrations: NDArray[np.int64]
) -> None:
    columns.count("switches", "Switches", switches, "Runs that begin in the range.")
    columns.count(
        "preemptions",
        "Preempted",
        preemptions,
        "Left a CPU though it could have gone on: preempted, time slice over, or yielded.",
    )
    columns.count("migrations", "Migrations", migrations, "Runs that begin on another CPU than the run before.")


def _logged_columns(
    columns: Columns,
    sent: NDArray[np.int64],
    received: NDArray[np.int64],
    calls: NDArray[np.int64],
    events: NDArray[np.int64],
) -> None:
    for key, title, values, text in (
        ("sent", "Sent", sent, "Messages sent."),
        ("received", "Received", received, "Messages received."),
        ("calls", "Kernel calls", calls, "Kernel calls entered."),
        ("events", "Events", events, "Changes of state, and what was logged while it ran."),
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
        columns.duration(f"{key}{name}_ns", heading, cycles, f"{text} {what}.", known, follows=True, events=events)


def _errors(found: Statistics, errors: tuple[tuple[int, int], ...]) -> str:
    name = found.trace.catalogue.errno_name
    return ", ".join(f"{name(number) or number} {count:,}" for number, count in errors)


def _server(found: Statistics, pid: int) -> str:
    if pid < 0:
        return "failed"
    if pid == 0:
        return "another node"
    row = found.trace.processes.row(pid)
    return found.trace.process_name(row) if row else f"pid {pid}"
