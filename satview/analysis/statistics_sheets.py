"""The sheets of statistics: which columns they have, what these are called and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.doctor.figures import with_trust
from satview.analysis.sheets.cpu_sheets import cpu_matrix_sheet, migration_sheet
from satview.analysis.sheets.partition_sheet import partition_sheet
from satview.analysis.sheets.served_sheets import client_server_sheet
from satview.analysis.sheets.sheet import Column, Columns, Kind, Sheet, Subject
from satview.analysis.sheets.sheet_rows import Shown, columns_of, sheet_of, thread_columns, threads_shown
from satview.analysis.sheets.state_sheets import state_sheet, state_total_sheet
from satview.analysis.statistics import Statistics
from satview.analysis.times.call_times import Durations
from satview.base.plugins import PluginKind, plugin, plugins
from satview.events.states import ABSENT, IDLE, READY, RUNNING, STATE_BY_VALUE, UNKNOWN, WAITING
from satview.store.axis import files_of


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
