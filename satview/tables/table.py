"""The tables of a trace by name, as `Table`s (numpy, Arrow, pandas, Polars), and the functions that build them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.statistics import client_server
from satview.analysis.times.basis import Basis, Scope, scope_of
from satview.analysis.times.cpu_times import CutRuns, cut_runs, migrations, switches
from satview.analysis.times.message_times import interrupts, kernel_calls
from satview.analysis.times.state_times import activations, runs_are_cut, state_spans, states_are_cut
from satview.analysis.timing import Timing
from satview.answers.frames import ColumnsByName, Partial, Texts
from satview.answers.table import CERTAINTIES, Table, names_in_sql
from satview.base.errors import UsageError
from satview.base.time import Cycles
from satview.events.states import IDLE, KERNEL_CALL, NAMES_BY_VALUE, VALUE_COUNT
from satview.events.wire import CODE_COUNT
from satview.linkage.blockers import blockers
from satview.linkage.messages import SENDS, pulses
from satview.linkage.rows import comm_words, rows_of_codes
from satview.linkage.table import OPEN
from satview.linkage.wake_ups import wake_ups
from satview.store.mark_file import stored_marks
from satview.store.time_ranges import EVERY_CPU, TimeRanges, idle_threads, losses
from satview.store.trace import Trace
from satview.tables.arguments import argument_columns, kinds
from satview.tables.schema import SCHEMAS, near_tables
from satview.timeline.state_lanes import run_slices

# Shared by the functions that build tables: names of events, times of event rows.


Ints = NDArray[np.int64]


def whole_scope(trace: Trace) -> Scope:
    """Return the scope for analyses of the whole trace."""
    return scope_of(trace, None, None, Basis(trace), None)


def event_names(trace: Trace) -> tuple[str, ...]:
    """Return the event names of all 32,768 codes, empty for codes not in the trace; cached with the trace."""
    return trace.cached("tables.event_names", _event_names)


def _event_names(trace: Trace) -> tuple[str, ...]:
    names = [""] * CODE_COUNT
    for code in np.flatnonzero(trace.code_counts).tolist():
        names[code] = trace.catalogue.name(code)
    return tuple(names)


def event_rows(rows: NDArray[np.unsignedinteger[Any]]) -> Ints:
    """Return rows of the event table as int64 (n,), with -1 for `NO_EVENT` and `OPEN`."""
    return np.where(rows >= OPEN, -1, rows.astype(np.int64))


def times_of(trace: Trace, rows: Ints) -> Cycles:
    """Return the times of event rows, in cycles, int64 (n,); -1 where the row is -1."""
    out = np.full(len(rows), -1, np.int64)
    known = rows >= 0
    out[known] = trace.events.time_cycles[rows[known]]
    return out


def column(values: Sequence[int]) -> Ints:
    """Return numbers as an array, int64 (n,)."""
    return np.array(values, np.int64)


# Tables of calls, pulses, interrupts, wake-ups and waits.


def call(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `call`, which has one row for each kernel call."""
    calls, events = kernel_calls(whole_scope(trace)), trace.events
    return {
        "event": calls.row,
        "exit_event": calls.exit_row,
        "cpu": events.cpu[calls.row],
        "thread": events.thread[calls.row].astype(np.int64),
        "name": Texts(events.code[calls.row], event_names(trace)),
        "start_cycles": events.time_cycles[calls.row],
        "end_cycles": times_of(trace, calls.exit_row),
        "length_cycles": calls.cycles,
        "running_cycles": calls.running_cycles,
        "is_interrupted": calls.is_interrupted,
        "is_failed": calls.is_failed,
        "errno": np.where(calls.is_failed, calls.error, -1),
    }


def pulse(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `pulse`, which has one row for each pulse that was sent."""
    events = trace.events
    rows = rows_of_codes(trace, *SENDS) if trace.pairs is None else np.empty(0, np.uint32)
    table = pulses(trace)
    link = table.begun_by(rows)
    received, certainty = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.uint8)
    known = link >= 0
    received[known], certainty[known] = table.to_row[link[known]], table.certainty[link[known]]
    queued, receiver = times_of(trace, received), np.full(len(rows), -1, np.int64)
    queued[known] -= events.time_cycles[rows[known]]
    receiver[known] = events.thread[received[known]]
    scoid, pid = comm_words(trace, rows) if len(rows) else (rows, rows)
    return {
        "event": rows.astype(np.int64),
        "name": Texts(events.code[rows], event_names(trace)),
        "cpu": events.cpu[rows],
        "thread": events.thread[rows].astype(np.int64),
        "scoid": scoid.astype(np.int64),
        "server_pid": pid.view(np.int32).astype(np.int64),
        "time_cycles": events.time_cycles[rows],
        "receive_event": received,
        "receiver": np.where(receiver > 0, receiver, -1),
        "queued_cycles": queued,
        "certainty": Texts(certainty, CERTAINTIES),
    }


def interrupt(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `interrupt`, which has one row for each interrupt."""
    handled, events = interrupts(whole_scope(trace)), trace.events
    return {
        "event": handled.row,
        "exit_event": handled.exit_row,
        "handler_event": handled.handler_row,
        "cpu": events.cpu[handled.row],
        "thread": events.thread[handled.row].astype(np.int64),
        "vector": handled.vector,
        "start_cycles": events.time_cycles[handled.row],
        "end_cycles": times_of(trace, handled.exit_row),
        "length_cycles": handled.cycles,
        "handler_entry_cycles": handled.latency_cycles,
    }


def wake_up(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `wake_up`, which has one row for each wake-up of a thread."""
    table, events = wake_ups(trace), trace.events
    return {
        "cause_event": table.from_row.astype(np.int64),
        "event": table.to_row.astype(np.int64),
        "waker": events.thread[table.from_row].astype(np.int64),
        "thread": events.thread[table.to_row].astype(np.int64),
        "cpu": events.cpu[table.from_row],
        "cause_cycles": events.time_cycles[table.from_row],
        "time_cycles": events.time_cycles[table.to_row],
        "certainty": Texts(table.certainty, CERTAINTIES),
    }


def wait(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `wait`, which has one row for each wait of a thread."""
    all_blockers = blockers(trace)
    waits = all_blockers.waits
    start, end_row = trace.events.time_cycles[waits.row], event_rows(waits.end_row)
    end = times_of(trace, end_row)
    return {
        "thread": waits.thread.astype(np.int64),
        "state": Texts(waits.value, NAMES_BY_VALUE),
        "start_cycles": start,
        "end_cycles": end,
        "length_cycles": np.where(end_row >= 0, end, trace.window.end) - start,
        "event": waits.row.astype(np.int64),
        "end_event": end_row,
        "call_event": event_rows(waits.call_row),
        "object": np.where(waits.has_object, waits.object, -1),
        "blocker": all_blockers.thread.astype(np.int64),
        "blocker_pid": all_blockers.pid.astype(np.int64),
        "certainty": Texts(all_blockers.certainty, CERTAINTIES),
    }


# Tables of states, runs, CPUs, activations and losses.


_KINDS: Final = ("unknown", "thread", "idle", "kernel call", "interrupt")
_INTERRUPTED: Final = 4


def state(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `state`, which has one row for each interval of a state of a thread."""
    parts: list[tuple[NDArray[Any], ...]] = []
    for spans in state_spans(whole_scope(trace)):
        before = np.append(np.uint8(VALUE_COUNT - 1), spans.value[:-1])
        before[np.append(True, spans.thread[1:] != spans.thread[:-1])] = VALUE_COUNT - 1  # has no name
        parts.append((spans.thread.astype(np.int64), spans.value, before, spans.start, spans.end,
                      event_rows(spans.event), states_are_cut(trace, spans)))  # fmt: skip
    types = (np.int64, np.uint8, np.uint8, np.int64, np.int64, np.int64, np.bool_)
    thread, value, before, start, end, event, is_cut = (
        np.concatenate([np.empty(0, kind), *(part[i] for part in parts)]) for i, kind in enumerate(types)
    )
    return {
        "thread": thread,
        "state": Texts(value, NAMES_BY_VALUE),
        "state_before": Texts(before, NAMES_BY_VALUE),
        "start_cycles": start,
        "end_cycles": end,
        "length_cycles": end - start,
        "event": event,
        "is_cut": is_cut,
    }


def run(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `run`, which has one row for each interval in which a CPU ran a thread."""
    scope = whole_scope(trace)
    times = cut_runs(scope)
    runs, known_runs = times.runs, np.flatnonzero(times.runs.thread > 0)
    event = _first_events(trace, times, known_runs)
    priority = np.full(len(known_runs), -1, np.int64)
    logged = np.flatnonzero(event >= 0)
    priority[logged] = scope.basis.derived.priority(event[logged])
    is_migration, from_cpu = _moves(scope, times)
    return {
        "cpu": runs.cpu[known_runs],
        "thread": runs.thread[known_runs],
        "start_cycles": runs.start[known_runs],
        "end_cycles": runs.end[known_runs],
        "length_cycles": (runs.end - runs.start)[known_runs],
        "cpu_cycles": times.net[known_runs],
        "interrupted_cycles": times.interrupted[known_runs],
        "is_idle": scope.basis.is_idle[runs.thread[known_runs]],
        "is_start": times.begins[known_runs],
        "is_switch": (times.begins & switches(runs))[known_runs],
        "is_migration": is_migration[known_runs],
        "from_cpu": from_cpu[known_runs],
        "priority": priority,
        "event": event,
        "is_cut": runs_are_cut(trace, runs.cpu[known_runs], runs.start[known_runs], runs.end[known_runs]),
    }


def _first_events(trace: Trace, times: CutRuns, run_positions: NDArray[np.intp]) -> Ints:
    """Return for each run the row of its first event, RUNNING; -1 for runs that only the opening dump reported."""
    rows, _ = run_slices(trace)
    order = np.argsort(trace.events.cpu[rows], kind="stable")
    rows = rows[order]
    cpu, time, out = trace.events.cpu[rows], trace.events.time_cycles[rows], np.full(len(run_positions), -1, np.int64)
    for number in range(trace.cpu_count):
        low, high = np.searchsorted(cpu, (number, number + 1))
        of_cpu = np.flatnonzero(times.runs.cpu[run_positions] == number)
        start = times.runs.start[run_positions[of_cpu]]
        position = np.searchsorted(time[low:high], start, side="right") - 1 + low
        fits = position >= low
        fits[fits] = time[position[fits]] == start[fits]
        out[of_cpu[fits]] = rows[position[fits]]
    return out


def _moves(scope: Scope, times: CutRuns) -> tuple[NDArray[np.bool_], Ints]:
    """Return for each run whether the thread ran on another CPU before, and the number of that CPU, -1 = none known."""
    runs, moved = times.runs, migrations(scope)
    is_migration, from_cpu = np.zeros(len(runs.cpu), np.bool_), np.full(len(runs.cpu), -1, np.int64)
    for number in range(scope.trace.cpu_count):
        low, high = np.searchsorted(runs.cpu, (number, number + 1))
        of_cpu = np.flatnonzero(moved.to_cpu == number)
        position = np.searchsorted(runs.start[low:high], moved.time_cycles[of_cpu]) + low
        is_migration[position], from_cpu[position] = True, moved.from_cpu[of_cpu]
    return is_migration, from_cpu


def cpu_state(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `cpu_state`: one row per interval of a CPU's runs, calls and interrupts."""
    times = cut_runs(whole_scope(trace))
    basis = Basis(trace)
    parts = [_pieces(times, cpu, handled) for cpu, handled in enumerate(basis.interrupts)]
    cpu, kind, thread, start, end = (np.concatenate([part[i] for part in parts]) for i in range(5))
    return {
        "cpu": cpu,
        "kind": Texts(kind, _KINDS),
        "thread": thread,
        "start_cycles": start,
        "end_cycles": end,
        "length_cycles": end - start,
    }


def _pieces(times: CutRuns, cpu: int, handled: TimeRanges) -> tuple[NDArray[Any], ...]:
    """Return CPU, kind, thread, start and end of a CPU's intervals, which are its runs, split by interrupts."""
    runs = times.runs
    low, high = np.searchsorted(runs.cpu, (cpu, cpu + 1))
    start, bound = runs.start[low:high], int(runs.end[high - 1])
    edges = np.concatenate((start, handled.start, handled.end))
    edges = np.unique(edges[(edges >= start[0]) & (edges < bound)])
    position = np.searchsorted(start, edges, side="right") - 1 + low
    number = np.searchsorted(handled.start, edges, side="right")
    is_handled = edges < np.append(np.iinfo(np.int64).min, handled.end)[number]
    value = runs.value[position]
    kind = np.where(times.is_busy[position], 1, 0).astype(np.uint8)
    kind[value == IDLE], kind[value == KERNEL_CALL] = 2, 3
    kind[is_handled] = _INTERRUPTED
    end = np.append(edges[1:], bound)
    return np.full(len(edges), cpu, np.uint8), kind, runs.thread[position], edges, end


def activation(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `activation`, which has one row for each activation of a thread."""
    table = activations(whole_scope(trace))
    return {
        "thread": table.thread,
        "start_cycles": table.start,
        "end_cycles": table.end,
        "response_cycles": table.end - table.start,
        "running_cycles": table.running_cycles,
        "period_cycles": table.period_cycles,
        "event": event_rows(table.event),
        "is_cut": table.is_cut,
    }


def loss(trace: Trace) -> ColumnsByName:
    """Return the columns of the table `loss`, which has one row for each range of time in which events were lost."""
    lost = losses(trace)
    return {
        "cpu": np.where(lost[:, 2] == EVERY_CPU, -1, lost[:, 2]),
        "start_cycles": lost[:, 0].copy(),
        "end_cycles": lost[:, 1].copy(),
        "length_cycles": lost[:, 1] - lost[:, 0],
    }


Builder = Callable[[Trace], ColumnsByName]


def _event(trace: Trace) -> ColumnsByName:
    events, book = trace.events, trace.catalogue
    return {
        "event": np.arange(len(events), dtype=np.uint32),
        "time_cycles": events.time_cycles,
        "cpu": events.cpu,
        "thread": events.thread,
        "code": events.code,
        "class": Texts(book.class_index_of_code.take(events.code), tuple(kind.name for kind in book.classes)),
        "name": Texts(events.code, event_names(trace)),
    }


def _thread(trace: Trace) -> ColumnsByName:
    threads = trace.threads
    rows = np.arange(len(threads), dtype=np.int64)
    return {
        "thread": rows,
        "pid": threads.pid,
        "tid": threads.tid,
        "process": threads.process,
        "name": Texts.of(threads.names),
        "label": Texts.of([trace.thread_name(row) for row in rows.tolist()]),
        "is_idle": idle_threads(trace),
    }


def _process(trace: Trace) -> ColumnsByName:
    processes = trace.processes
    rows = np.arange(len(processes), dtype=np.int64)
    return {
        "process": rows,
        "pid": processes.pid,
        "parent_pid": processes.parent_pid,
        "name": Texts.of(processes.names),
        "label": Texts.of([trace.process_name(row) for row in rows.tolist()]),
        "created_cycles": processes.created_cycles,
        "destroyed_cycles": processes.destroyed_cycles,
    }


def _cpu(trace: Trace) -> ColumnsByName:
    numbers = range(trace.cpu_count)
    known = {cpu.number: cpu for cpu in trace.system.cpus} if trace.system else {}
    return {
        "cpu": np.arange(trace.cpu_count, dtype=np.uint8),
        "label": Texts.of([trace.cpu_title(number) for number in numbers]),
        "model": Texts.of([known[number].name if number in known else "" for number in numbers]),
        "speed_mhz": np.array([known[n].speed_mhz if n in known else 0 for n in numbers], np.int64),
    }


def _mark(trace: Trace) -> ColumnsByName:
    marks = stored_marks(trace.path, trace.window)
    return {
        "start_cycles": column([mark.start_cycles for mark in marks]),
        "end_cycles": column([mark.end_cycles for mark in marks]),
        "text": Texts.of([mark.text for mark in marks]),
    }


def _client_time(trace: Trace) -> ColumnsByName:
    times = client_server(whole_scope(trace))
    return {
        "thread": np.arange(len(trace.threads), dtype=np.int64),
        "self_cycles": times.self_cycles,
        "imposed_cycles": times.imposed_cycles,
        "own_cycles": times.own_cycles,
        "caused_cycles": times.caused_cycles,
    }


def _server_time(trace: Trace) -> ColumnsByName:
    imposed = client_server(whole_scope(trace)).imposed
    return {"client": imposed.client, "server": imposed.server, "imposed_cycles": imposed.cycles}


def _trace(trace: Trace) -> ColumnsByName:
    window = trace.window
    return {
        "file": Texts.of([trace.path.name]),
        "format": Texts.of([trace.format]),
        "release": Texts.of([str(trace.release)]),
        "start_cycles": column([window.start]),
        "end_cycles": column([window.end]),
        "length_cycles": column([window.length]),
        "cycles_per_s": column([trace.clock.cycles_per_s]),
        "cpus": column([trace.cpu_count]),
        "events": column([len(trace.events)]),
    }


BUILDERS: Final[dict[str, Builder]] = {
    "event": _event,
    "argument": argument_columns,
    "state": state,
    "run": run,
    "cpu_state": cpu_state,
    "call": call,
    "pulse": pulse,
    "interrupt": interrupt,
    "wake_up": wake_up,
    "wait": wait,
    "activation": activation,
    "thread": _thread,
    "process": _process,
    "cpu": _cpu,
    "loss": loss,
    "mark": _mark,
    "client_time": _client_time,
    "server_time": _server_time,
    "trace": _trace,
}
NOT_CACHED: Final = frozenset({"mark", "argument"})  # marks may change any time; arguments are larger than the trace


def table(trace: Trace, name: str, timing: Mapping[str, Timing] | None = None) -> Table:
    """Return a table of a trace by name; its columns are made when first requested and cached with the trace.

    Args:
        trace: The trace.
        name: One of `SCHEMAS`, such as `state`; docs/tables.md describes them.
        timing: Content of a timing file, from `analysis.timing.read_timing`, for the tables about activities.

    Raises:
        UsageError: There is no such table, or the timing does not fit the trace.
    """
    if name not in SCHEMAS:
        raise UsageError(f"there is no table {name[:40]!r}; {near_tables(name, kinds(trace))}"
                         f"there are {', '.join(SCHEMAS)}, and those of kinds of events")  # fmt: skip
    if (timed := SCHEMAS[name].timed) is not None:
        return timed(trace, timing or {})
    if (answer := SCHEMAS[name].answer) is not None:
        return answer(trace)
    build = BUILDERS[name]
    return table_of(
        trace,
        name,
        build(trace) if name in NOT_CACHED else trace.cached(f"tables.{name}", partial(_frozen, build=build)),
    )


def table_of(trace: Trace, name: str, columns: ColumnsByName) -> Table:
    """Return a table from columns that have been computed.

    Args:
        trace: The trace.
        name: Name of the table, see `table`.
        columns: Values by SQL column name, without the columns in nanoseconds.
    """
    question = SCHEMAS[name].question
    values = {column.name: columns[names_in_sql(column)[0]] for column in question.columns}
    return Table(question, trace, values, place="event" if "event" in values else "")


def _frozen(trace: Trace, build: Builder) -> ColumnsByName:
    columns = build(trace)
    for values in columns.values():
        assert not isinstance(values, Partial)  # such tables are too large to be cached
        (values.code if isinstance(values, Texts) else values).setflags(write=False)
    return columns
