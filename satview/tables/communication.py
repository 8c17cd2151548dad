"""Tables of what threads and the kernel did with each other: calls, messages, pulses, wake-ups, waits, interrupts."""

from __future__ import annotations

import numpy as np

from satview.analysis.times.call_times import interrupts, kernel_calls
from satview.answers.frames import Made, Texts
from satview.linkage.blockers import blockers
from satview.linkage.pulses import SENDS, pulses
from satview.linkage.rows import comm_words, rows_of_codes
from satview.linkage.wake_ups import wake_ups
from satview.store.trace import Trace
from satview.tables.cells import certainty_texts, event_names, event_rows, state_names, times_of, whole_scope


def call(trace: Trace) -> Made:
    """Return the table `call`: one row for each kernel call."""
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


def pulse(trace: Trace) -> Made:
    """Return the table `pulse`: one row for each pulse that was sent."""
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
        "certainty": certainty_texts(certainty),
    }


def interrupt(trace: Trace) -> Made:
    """Return the table `interrupt`: one row for each interrupt."""
    found, events = interrupts(whole_scope(trace)), trace.events
    return {
        "event": found.row,
        "exit_event": found.exit_row,
        "handler_event": found.handler_row,
        "cpu": events.cpu[found.row],
        "thread": events.thread[found.row].astype(np.int64),
        "vector": found.vector,
        "start_cycles": events.time_cycles[found.row],
        "end_cycles": times_of(trace, found.exit_row),
        "length_cycles": found.cycles,
        "handler_entry_cycles": found.latency_cycles,
    }


def wake_up(trace: Trace) -> Made:
    """Return the table `wake_up`: one row for each thread that somebody made ready."""
    table, events = wake_ups(trace), trace.events
    return {
        "cause_event": table.from_row.astype(np.int64),
        "event": table.to_row.astype(np.int64),
        "waker": events.thread[table.from_row].astype(np.int64),
        "thread": events.thread[table.to_row].astype(np.int64),
        "cpu": events.cpu[table.from_row],
        "cause_cycles": events.time_cycles[table.from_row],
        "time_cycles": events.time_cycles[table.to_row],
        "certainty": certainty_texts(table.certainty),
    }


def wait(trace: Trace) -> Made:
    """Return the table `wait`: one row for each wait of a thread."""
    found = blockers(trace)
    waits = found.waits
    start, end_row = trace.events.time_cycles[waits.row], event_rows(waits.end_row)
    end = times_of(trace, end_row)
    return {
        "thread": waits.thread,
        "state": Texts(waits.value, state_names()),
        "start_cycles": start,
        "end_cycles": end,
        "length_cycles": np.where(end_row >= 0, end, trace.window.end) - start,
        "event": waits.row.astype(np.int64),
        "end_event": end_row,
        "call_event": event_rows(waits.call_row),
        "object": np.where(waits.has_object, waits.object, -1),
        "blocker": found.thread,
        "blocker_pid": found.pid,
        "certainty": certainty_texts(found.certainty),
    }
