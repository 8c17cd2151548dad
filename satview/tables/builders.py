"""The tables, made from what a trace and its analyses have already: nothing is worked out here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activations import activations
from satview.analysis.basis import Basis
from satview.analysis.call_times import interrupts, kernel_calls
from satview.analysis.client_server import client_server
from satview.analysis.cpu_times import CutRuns, cut_runs, migrations, switches
from satview.analysis.message_times import sent_messages
from satview.analysis.occurrences import runs_are_cut, states_are_cut
from satview.analysis.scope import Scope, scope_of
from satview.analysis.state_times import state_spans
from satview.analysis.verdicts.find import find_verdicts
from satview.base.time import Cycles
from satview.events.states import ABSENT, IDLE, KERNEL_CALL, STATES, UNKNOWN, VALUE_COUNT, WAITING
from satview.events.wire import CODE_COUNT
from satview.linkage.blockers import blockers
from satview.linkage.latencies import latencies
from satview.linkage.pulses import SENDS, pulses
from satview.linkage.rows import comm_words, rows_of_codes
from satview.linkage.table import OPEN
from satview.linkage.transactions import transactions
from satview.linkage.wake_ups import wake_ups
from satview.store.idle import idle_threads
from satview.store.losses import EVERY_CPU, losses
from satview.store.mark_file import stored_marks
from satview.store.time_ranges import TimeRanges
from satview.store.trace import Trace
from satview.tables.columns import Made, Texts
from satview.timeline.per_cpu import run_slices

Builder = Callable[[Trace], Made]
_Ints = NDArray[np.int64]
_CERTAINTIES: Final = ("", "guess", "inferred", "exact")  # by `Certainty`; 0 = there is nothing to be certain of
_KINDS: Final = ("unknown", "thread", "idle", "kernel call", "interrupt")
_INTERRUPTED: Final = 4


def state_names() -> tuple[str, ...]:
    """Return what the table `state` calls lane values, by value."""
    names = [""] * VALUE_COUNT
    names[ABSENT], names[UNKNOWN], names[IDLE], names[WAITING] = "ABSENT", "UNKNOWN", "IDLE", "WAITING"
    for state in STATES:
        names[state.value] = state.name
    return tuple(names)


def _scope(trace: Trace) -> Scope:
    return scope_of(trace, None, None, Basis(trace), None)


def _event_names(trace: Trace) -> tuple[str, ...]:
    return trace.kept("tables.event_names", lambda trace: tuple(map(trace.catalogue.name, range(CODE_COUNT))))


def _certainty(values: NDArray[np.integer[Any]]) -> Texts:
    return Texts(values.astype(np.uint8), _CERTAINTIES)


def _rows(rows: NDArray[np.unsignedinteger[Any]]) -> _Ints:
    """Return rows of the event table as int64, -1 for none."""
    return np.where(rows >= OPEN, -1, rows.astype(np.int64))


def _times(trace: Trace, rows: _Ints) -> Cycles:
    """Return when events were logged, -1 where there is none."""
    out = np.full(len(rows), -1, np.int64)
    known = rows >= 0
    out[known] = trace.events.time_cycles[rows[known]]
    return out


def _event(trace: Trace) -> Made:
    events, book = trace.events, trace.catalogue
    return {
        "event": np.arange(len(events), dtype=np.uint32),
        "time_cycles": events.time_cycles,
        "cpu": events.cpu,
        "thread": events.thread,
        "code": events.code,
        "class": Texts(book.class_index_of_code.take(events.code), tuple(kind.name for kind in book.classes)),
        "name": Texts(events.code, _event_names(trace)),
    }


def _state(trace: Trace) -> Made:
    parts: list[tuple[NDArray[Any], ...]] = []
    for spans in state_spans(_scope(trace)):
        before = np.append(np.uint8(VALUE_COUNT - 1), spans.value[:-1])
        before[np.append(True, spans.thread[1:] != spans.thread[:-1])] = VALUE_COUNT - 1  # has no name
        parts.append((spans.thread.astype(np.int64), spans.value, before, spans.start, spans.end,
                      _rows(spans.event), states_are_cut(trace, spans)))  # fmt: skip
    types = (np.int64, np.uint8, np.uint8, np.int64, np.int64, np.int64, np.bool_)
    thread, value, before, start, end, event, is_cut = (
        np.concatenate([np.empty(0, kind), *(part[i] for part in parts)]) for i, kind in enumerate(types)
    )
    names = state_names()
    return {
        "thread": thread,
        "state": Texts(value, names),
        "state_before": Texts(before, names),
        "start_cycles": start,
        "end_cycles": end,
        "length_cycles": end - start,
        "event": event,
        "is_cut": is_cut,
    }


def _run(trace: Trace) -> Made:
    scope = _scope(trace)
    times = cut_runs(scope)
    runs, at = times.runs, np.flatnonzero(times.runs.thread > 0)
    event = _first_events(trace, times, at)
    priority = np.full(len(at), -1, np.int64)
    told = np.flatnonzero(event >= 0)
    priority[told] = scope.basis.facts.priority(event[told])
    is_migration, from_cpu = _moves(scope, times)
    return {
        "cpu": runs.cpu[at],
        "thread": runs.thread[at],
        "start_cycles": runs.start[at],
        "end_cycles": runs.end[at],
        "length_cycles": (runs.end - runs.start)[at],
        "cpu_cycles": times.net[at],
        "interrupted_cycles": times.interrupted[at],
        "is_idle": scope.basis.is_idle[runs.thread[at]],
        "is_start": times.begins[at],
        "is_switch": (times.begins & switches(runs))[at],
        "is_migration": is_migration[at],
        "from_cpu": from_cpu[at],
        "priority": priority,
        "event": event,
        "is_cut": runs_are_cut(trace, runs.cpu[at], runs.start[at], runs.end[at]),
    }


def _first_events(trace: Trace, times: CutRuns, at: NDArray[np.intp]) -> _Ints:
    """Return the events RUNNING that begin runs, -1 for runs that none begins: the opening dump told of them."""
    rows, _ = run_slices(trace)
    order = np.argsort(trace.events.cpu[rows], kind="stable")
    rows = rows[order]
    cpu, time, out = trace.events.cpu[rows], trace.events.time_cycles[rows], np.full(len(at), -1, np.int64)
    for number in range(trace.cpu_count):
        first, last = np.searchsorted(cpu, (number, number + 1))
        mine = np.flatnonzero(times.runs.cpu[at] == number)
        start = times.runs.start[at[mine]]
        place = np.searchsorted(time[first:last], start, side="right") - 1 + first
        fits = place >= first
        fits[fits] = time[place[fits]] == start[fits]
        out[mine[fits]] = rows[place[fits]]
    return out


def _moves(scope: Scope, times: CutRuns) -> tuple[NDArray[np.bool_], _Ints]:
    """Return which runs begin on another CPU than the thread's run before, and on which that was; -1 = not sure."""
    runs, moved = times.runs, migrations(scope)
    is_migration, from_cpu = np.zeros(len(runs.cpu), np.bool_), np.full(len(runs.cpu), -1, np.int64)
    for number in range(scope.trace.cpu_count):
        first, last = np.searchsorted(runs.cpu, (number, number + 1))
        mine = np.flatnonzero(moved.to_cpu == number)
        place = np.searchsorted(runs.start[first:last], moved.time_cycles[mine]) + first
        is_migration[place], from_cpu[place] = True, moved.from_cpu[mine]
    return is_migration, from_cpu


def _cpu_state(trace: Trace) -> Made:
    times = cut_runs(_scope(trace))
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
    """Return CPU, kind, thread, start and end of the intervals of a CPU: its runs, cut where it handled interrupts."""
    runs = times.runs
    first, last = np.searchsorted(runs.cpu, (cpu, cpu + 1))
    start, bound = runs.start[first:last], int(runs.end[last - 1])
    edges = np.concatenate((start, handled.start, handled.end))
    edges = np.unique(edges[(edges >= start[0]) & (edges < bound)])
    place = np.searchsorted(start, edges, side="right") - 1 + first
    number = np.searchsorted(handled.start, edges, side="right")
    is_handled = edges < np.append(np.iinfo(np.int64).min, handled.end)[number]
    value = runs.value[place]
    kind = np.where(times.is_busy[place], 1, 0).astype(np.uint8)
    kind[value == IDLE], kind[value == KERNEL_CALL] = 2, 3
    kind[is_handled] = _INTERRUPTED
    end = np.append(edges[1:], bound)
    return np.full(len(edges), cpu, np.uint8), kind, runs.thread[place], edges, end


def _call(trace: Trace) -> Made:
    calls, events = kernel_calls(_scope(trace)), trace.events
    return {
        "event": calls.row,
        "exit_event": calls.exit_row,
        "cpu": events.cpu[calls.row],
        "thread": events.thread[calls.row].astype(np.int64),
        "name": Texts(events.code[calls.row], _event_names(trace)),
        "start_cycles": events.time_cycles[calls.row],
        "end_cycles": _times(trace, calls.exit_row),
        "length_cycles": calls.cycles,
        "running_cycles": calls.running_cycles,
        "is_interrupted": calls.is_interrupted,
        "is_failed": calls.is_failed,
        "errno": np.where(calls.is_failed, calls.error, -1),
    }


def _message(trace: Trace) -> Made:
    made, sent = transactions(trace), sent_messages(_scope(trace))
    rows = made.send_row
    place = np.searchsorted(sent.row, rows)  # a format that pairs its records itself has no transactions
    return {
        "message": np.arange(len(made), dtype=np.int64),
        "event": rows,
        "cpu": trace.events.cpu[rows],
        "client": made.client,
        "server": made.server,
        "server_pid": made.server_pid,
        "time_cycles": trace.events.time_cycles[rows],
        "receive_event": made.receive_row,
        "reply_event": made.reply_row,
        "done_event": made.done_row,
        "queued_cycles": made.queued_cycles,
        "service_cycles": made.service_cycles,
        "reply_cycles": made.reply_cycles,
        "round_trip_cycles": made.round_trip_cycles,
        "send_blocked_cycles": sent.send_blocked_cycles[place],
        "reply_blocked_cycles": sent.reply_blocked_cycles[place],
        "size_bytes": sent.size_bytes[place],
        "message_type": made.message_type,
        "parent": made.parent,
        "certainty": _certainty(made.certainty),
    }


def _pulse(trace: Trace) -> Made:
    events = trace.events
    rows = rows_of_codes(trace, *SENDS) if trace.pairs is None else np.empty(0, np.uint32)
    table = pulses(trace)
    link = table.begun_by(rows)
    received, certainty = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.uint8)
    known = link >= 0
    received[known], certainty[known] = table.to_row[link[known]], table.certainty[link[known]]
    queued, receiver = _times(trace, received), np.full(len(rows), -1, np.int64)
    queued[known] -= events.time_cycles[rows[known]]
    receiver[known] = events.thread[received[known]]
    scoid, pid = comm_words(trace, rows) if len(rows) else (rows, rows)
    return {
        "event": rows.astype(np.int64),
        "name": Texts(events.code[rows], _event_names(trace)),
        "cpu": events.cpu[rows],
        "thread": events.thread[rows].astype(np.int64),
        "scoid": scoid.astype(np.int64),
        "server_pid": pid.view(np.int32).astype(np.int64),
        "time_cycles": events.time_cycles[rows],
        "receive_event": received,
        "receiver": np.where(receiver > 0, receiver, -1),
        "queued_cycles": queued,
        "certainty": _certainty(certainty),
    }


def _latency(trace: Trace) -> Made:
    found = latencies(trace)
    return {
        "cause_event": found.cause_row,
        "handler_event": found.handler_row,
        "handler_exit_event": found.handler_exit_row,
        "pulse_event": found.pulse_row,
        "ready_event": found.ready_row,
        "running_event": found.running_row,
        "receive_event": found.received_row,
        "thread": found.thread,
        "vector": found.number,
        "start_cycles": _times(trace, found.first_row),
        "handler_entry_cycles": found.handler_entry_cycles,
        "handler_cycles": found.handler_cycles,
        "delivery_cycles": found.delivery_cycles,
        "ready_cycles": found.ready_cycles,
        "scheduling_cycles": found.scheduling_cycles,
        "receipt_cycles": found.receipt_cycles,
        "total_cycles": found.total_cycles,
        "certainty": _certainty(found.certainty),
    }


def _interrupt(trace: Trace) -> Made:
    found, events = interrupts(_scope(trace)), trace.events
    return {
        "event": found.row,
        "exit_event": found.exit_row,
        "handler_event": found.handler_row,
        "cpu": events.cpu[found.row],
        "thread": events.thread[found.row].astype(np.int64),
        "vector": found.vector,
        "start_cycles": events.time_cycles[found.row],
        "end_cycles": _times(trace, found.exit_row),
        "length_cycles": found.cycles,
        "handler_entry_cycles": found.latency_cycles,
    }


def _wake_up(trace: Trace) -> Made:
    table, events = wake_ups(trace), trace.events
    return {
        "cause_event": table.from_row.astype(np.int64),
        "event": table.to_row.astype(np.int64),
        "waker": events.thread[table.from_row].astype(np.int64),
        "thread": events.thread[table.to_row].astype(np.int64),
        "cpu": events.cpu[table.from_row],
        "cause_cycles": events.time_cycles[table.from_row],
        "time_cycles": events.time_cycles[table.to_row],
        "certainty": _certainty(table.certainty),
    }


def _wait(trace: Trace) -> Made:
    found = blockers(trace)
    waits = found.waits
    start, end_row = trace.events.time_cycles[waits.row], _rows(waits.end_row)
    end = _times(trace, end_row)
    return {
        "thread": waits.thread,
        "state": Texts(waits.value, state_names()),
        "start_cycles": start,
        "end_cycles": end,
        "length_cycles": np.where(end_row >= 0, end, trace.window.end) - start,
        "event": waits.row.astype(np.int64),
        "end_event": end_row,
        "call_event": _rows(waits.call_row),
        "object": np.where(waits.has_object, waits.object, -1),
        "blocker": found.thread,
        "blocker_pid": found.pid,
        "certainty": _certainty(found.certainty),
    }


def _activation(trace: Trace) -> Made:
    found = activations(_scope(trace))
    return {
        "thread": found.thread,
        "start_cycles": found.start,
        "end_cycles": found.end,
        "response_cycles": found.end - found.start,
        "running_cycles": found.running_cycles,
        "period_cycles": found.period_cycles,
        "event": _rows(found.event),
        "is_cut": found.is_cut,
    }


def _thread(trace: Trace) -> Made:
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


def _process(trace: Trace) -> Made:
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


def _cpu(trace: Trace) -> Made:
    numbers = range(trace.cpu_count)
    known = {cpu.number: cpu for cpu in trace.system.cpus} if trace.system else {}
    return {
        "cpu": np.arange(trace.cpu_count, dtype=np.uint8),
        "label": Texts.of([trace.cpu_title(number) for number in numbers]),
        "model": Texts.of([known[number].name if number in known else "" for number in numbers]),
        "speed_mhz": np.array([known[n].speed_mhz if n in known else 0 for n in numbers], np.int64),
    }


def _loss(trace: Trace) -> Made:
    lost = losses(trace)
    return {
        "cpu": np.where(lost[:, 2] == EVERY_CPU, -1, lost[:, 2]),
        "start_cycles": lost[:, 0].copy(),
        "end_cycles": lost[:, 1].copy(),
        "length_cycles": lost[:, 1] - lost[:, 0],
    }


def _verdict(trace: Trace) -> Made:
    found = find_verdicts(trace)
    return {
        "kind": Texts.of([str(verdict.kind) for verdict in found]),
        "severity": Texts.of([str(verdict.severity) for verdict in found]),
        "start_cycles": _column([verdict.start_cycles for verdict in found]),
        "end_cycles": _column([verdict.end_cycles for verdict in found]),
        "thread": _column([next(iter(verdict.threads), -1) for verdict in found]),
        "event": _column([next(iter(verdict.evidence), -1) for verdict in found]),
        "objects": Texts.of([", ".join(verdict.objects) for verdict in found]),
        "says": Texts.of([verdict.says for verdict in found]),
        "remedy": Texts.of([verdict.remedy for verdict in found]),
        "certainty": _certainty(_column([verdict.certainty for verdict in found])),
    }


def _column(values: Sequence[int]) -> _Ints:
    return np.array(values, np.int64)


def _mark(trace: Trace) -> Made:
    found = stored_marks(trace.path, trace.window)
    return {
        "start_cycles": _column([mark.start_cycles for mark in found]),
        "end_cycles": _column([mark.end_cycles for mark in found]),
        "text": Texts.of([mark.text for mark in found]),
    }


def _client_time(trace: Trace) -> Made:
    found = client_server(_scope(trace))
    return {
        "thread": np.arange(len(trace.threads), dtype=np.int64),
        "self_cycles": found.self_cycles,
        "imposed_cycles": found.imposed_cycles,
        "own_cycles": found.own_cycles,
        "caused_cycles": found.caused_cycles,
    }


def _server_time(trace: Trace) -> Made:
    found = client_server(_scope(trace)).imposed
    return {"client": found.client, "server": found.server, "imposed_cycles": found.cycles}


def _trace(trace: Trace) -> Made:
    window = trace.window
    return {
        "file": Texts.of([trace.path.name]),
        "format": Texts.of([trace.format]),
        "release": Texts.of([str(trace.release)]),
        "start_cycles": _column([window.start]),
        "end_cycles": _column([window.end]),
        "length_cycles": _column([window.length]),
        "cycles_per_s": _column([trace.clock.cycles_per_s]),
        "cpus": _column([trace.cpu_count]),
        "events": _column([len(trace.events)]),
    }


BUILDERS: Final[dict[str, Builder]] = {
    "event": _event,
    "state": _state,
    "run": _run,
    "cpu_state": _cpu_state,
    "call": _call,
    "message": _message,
    "pulse": _pulse,
    "latency": _latency,
    "interrupt": _interrupt,
    "wake_up": _wake_up,
    "wait": _wait,
    "activation": _activation,
    "thread": _thread,
    "process": _process,
    "cpu": _cpu,
    "loss": _loss,
    "verdict": _verdict,
    "mark": _mark,
    "client_time": _client_time,
    "server_time": _server_time,
    "trace": _trace,
}
NOT_KEPT: Final = frozenset({"mark"})  # a file that others write
