"""The tables, made from what a trace and its analyses have already: nothing is worked out here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from satview.analysis.client_server import client_server
from satview.answers.frames import Made, Texts
from satview.answers.latencies import latency_table
from satview.answers.transactions import transaction_table
from satview.answers.verdicts import find as find_verdicts
from satview.answers.verdicts import undecided_table
from satview.store.losses import idle_threads
from satview.store.mark_file import stored_marks
from satview.store.trace import Trace
from satview.tables import communication, scheduling
from satview.tables.arguments import argument_made
from satview.tables.cells import column, event_names, whole_scope

Builder = Callable[[Trace], Made]


def _event(trace: Trace) -> Made:
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


def _mark(trace: Trace) -> Made:
    found = stored_marks(trace.path, trace.window)
    return {
        "start_cycles": column([mark.start_cycles for mark in found]),
        "end_cycles": column([mark.end_cycles for mark in found]),
        "text": Texts.of([mark.text for mark in found]),
    }


def _client_time(trace: Trace) -> Made:
    found = client_server(whole_scope(trace))
    return {
        "thread": np.arange(len(trace.threads), dtype=np.int64),
        "self_cycles": found.self_cycles,
        "imposed_cycles": found.imposed_cycles,
        "own_cycles": found.own_cycles,
        "caused_cycles": found.caused_cycles,
    }


def _server_time(trace: Trace) -> Made:
    found = client_server(whole_scope(trace)).imposed
    return {"client": found.client, "server": found.server, "imposed_cycles": found.cycles}


def _trace(trace: Trace) -> Made:
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
    "argument": argument_made,
    "state": scheduling.state,
    "run": scheduling.run,
    "cpu_state": scheduling.cpu_state,
    "call": communication.call,
    "message": lambda trace: transaction_table(trace).values(),
    "pulse": communication.pulse,
    "latency": lambda trace: latency_table(trace).values(),
    "interrupt": communication.interrupt,
    "wake_up": communication.wake_up,
    "wait": communication.wait,
    "activation": scheduling.activation,
    "thread": _thread,
    "process": _process,
    "cpu": _cpu,
    "loss": scheduling.loss,
    "verdict": lambda trace: find_verdicts(trace).table.values(),
    "undecided": lambda trace: undecided_table(trace).values(),
    "mark": _mark,
    "client_time": _client_time,
    "server_time": _server_time,
    "trace": _trace,
}
NOT_CACHED: Final = frozenset({"mark", "argument"})  # a file that others write; larger than the trace
