"""Causes, holders and transactions on traces small enough to work out by hand: what the workloads do not show."""

from __future__ import annotations

import numpy as np
import pytest

import satview
from satview.capture.workloads import registry
from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.spec import Release
from satview.events.states import STATE_BY_NAME
from satview.linkage.links import Certainty, LinkTable, no_pairs
from satview.linkage.wake_ups import wake_ups
from tests.capture.made import WIDE, traced
from tests.helpers.kev import START, TraceBuilder

SENDV, RECEIVEV, LOCK, UNLOCK, COND_WAIT, SIGNAL = 11, 14, 80, 81, 82, 83
KILL, WAITINFO, DESTROY, JOIN = 26, 32, 47, 50
SEND, SPULSE, RECEIPT, RPULSE, SPULSE_EXE, REPLY = (wire.code(7, n) for n in (0, 1, 2, 3, 4, 10))
TIMER, INTERRUPT = wire.code(5, 18), wire.code(3, 1)
MUTEX, OTHER_MUTEX, CONDITION = 0x1000, 0x2000, 0x3000


def times(trace, table):
    """Return links as (time, time, certainty)."""
    at = trace.events.time_cycles - START
    return [(int(at[link.from_row]), int(at[link.to_row]), link.certainty) for link in table]


def opened(builder, folder):
    """Return the trace and its links."""
    trace = builder.open(folder)
    return trace, satview.links(trace)


def blocked_on_mutex(owner=0):
    """Return thread 5.1 waiting for a mutex from 30 on, 5.2 running."""
    builder = TraceBuilder().time_event(0).state("READY", 1, 5, 2).state("RUNNING", 10, 5, 1)
    return builder.call(LOCK, 20, (MUTEX, owner)).state("MUTEX", 30, 5, 1).state("RUNNING", 40, 5, 2)


@pytest.mark.parametrize(("address", "expected"), [
    (MUTEX, [(50, 60, Certainty.EXACT)]), (OTHER_MUTEX, []),
])  # fmt: skip
def test_only_an_unlock_of_the_same_mutex_wakes(address, expected, tmp_path):
    builder = blocked_on_mutex().call(UNLOCK, 50, (address, 0)).state("READY", 60, 5, 1).exit(UNLOCK, 70)
    trace, found = opened(builder, tmp_path)
    assert times(trace, found.wake_ups) == expected


def test_a_call_that_is_over_wakes_nobody(tmp_path):
    builder = blocked_on_mutex().call(UNLOCK, 50, (MUTEX, 0)).exit(UNLOCK, 55).state("READY", 60, 5, 1)
    trace, found = opened(builder, tmp_path)
    assert times(trace, found.wake_ups) == []


@pytest.mark.parametrize(("owner", "holder"), [
    (2 << 16 | 5, 2), (0x80000000 | 2 << 16 | 5, 2), (5 << 16 | 2, 2), (2 << 16 | 6, -1), (9 << 16 | 5, -1),
])  # fmt: skip
def test_the_owner_in_a_mutex_is_the_holder(owner, holder, tmp_path):
    """In either order of its halves; a thread that the trace does not know, or another process, is none."""
    trace, found = opened(blocked_on_mutex(owner), tmp_path)
    at = found.blockers.waits.value.tolist().index(STATE_BY_NAME["MUTEX"].value)
    assert found.blockers.waits.object[at] == MUTEX
    thread = int(found.blockers.thread[at])
    assert (int(trace.threads.tid[thread]) if thread >= 0 else -1) == holder
    assert found.blockers.certainty[at] == (Certainty.EXACT if holder > 0 else 0)


def test_without_a_word_the_next_one_to_unlock_is_the_holder(tmp_path):
    builder = blocked_on_mutex().call(UNLOCK, 50, (MUTEX, 0)).state("READY", 60, 5, 1).exit(UNLOCK, 70)
    trace, found = opened(builder, tmp_path)
    at = found.blockers.waits.value.tolist().index(STATE_BY_NAME["MUTEX"].value)
    assert trace.threads.tid[found.blockers.thread[at]] == 2
    assert found.blockers.certainty[at] == Certainty.INFERRED


def test_a_broadcast_begins_several_links(tmp_path):
    builder = TraceBuilder().time_event(0)
    for tid, time in ((1, 10), (2, 40)):
        builder.state("RUNNING", time, 5, tid).call(COND_WAIT, time + 1, (CONDITION, MUTEX))
        builder.state("CONDVAR", time + 2, 5, tid)
    builder.state("RUNNING", 70, 5, 3).call(SIGNAL, 80, (CONDITION, 1)).state("READY", 81, 5, 1)
    trace, found = opened(builder.state("READY", 82, 5, 2).exit(SIGNAL, 90), tmp_path)
    woken = found.wake_ups
    assert times(trace, woken) == [(80, 81, Certainty.EXACT), (80, 82, Certainty.EXACT)]
    row = int(woken.from_row[0])
    assert woken.all_begun_by(row) == slice(0, 2)
    assert woken.all_begun_by(row + 1) == slice(2, 2)
    assert woken.begun_by(woken.from_row).tolist() == [0, 0]
    assert woken.ended_by(woken.to_row).tolist() == [0, 1]
    assert LinkTable.of(woken.kind, no_pairs()).begun_by(np.array([[1, 2]])).tolist() == [[-1, -1]]


def served(builder):
    """Add a message of 7.1 to 5.1, which is handed the CPU without having been READY."""
    builder.state("RUNNING", 10, 5, 1).call(RECEIVEV, 11, (1, 1)).state("RECEIVE", 12, 5, 1).state("RUNNING", 20, 7, 1)
    builder.call(SENDV, 21, (3, 0x105)).event(SEND, 22, (0x10001, 5)).state("REPLY", 23, 7, 1)
    return builder.state("RUNNING", 30, 5, 1).event(RECEIPT, 31, (0x10001, 5)).exit(RECEIVEV, 32, (0x10001, 0))


def test_a_thread_that_is_handed_the_cpu_is_woken_by_the_message(tmp_path):
    trace, found = opened(served(TraceBuilder().time_event(0)), tmp_path)
    assert times(trace, found.wake_ups) == [(22, 30, Certainty.EXACT)]


@pytest.mark.parametrize(("reply_first", "parent"), [(False, 0), (True, -1)])
def test_a_message_is_part_of_the_one_that_its_sender_serves(reply_first, parent, tmp_path):
    builder = served(TraceBuilder().time_event(0))
    if reply_first:
        builder.event(REPLY, 40, (1, 7)).state("READY", 41, 7, 1)
    builder.call(SENDV, 50, (4, 0)).event(SEND, 51, (0x20001, 6)).state("SEND", 52, 5, 1)
    builder.state("RUNNING", 60, 7, 1) if reply_first else builder.state("RUNNING", 60, 9, 1)
    trace = builder.open(tmp_path)
    sent = satview.transactions(trace)
    assert sent.parent.tolist() == [-1, parent]
    assert sent.message_type.tolist() == [0x105, 0]
    assert sent.queued_cycles.tolist() == [9, -1]
    assert sent.service_cycles.tolist() == [9 if reply_first else -1, -1]
    assert sent.round_trip_cycles.tolist() == [38 if reply_first else -1, -1]


def test_a_message_that_is_answered_is_not_what_its_server_sends_for(tmp_path):
    """5.1 receives from 7.1, then from 8.1 and 9.1; it has answered these two when it sends on."""
    builder = TraceBuilder().time_event(0)
    for number, client in enumerate((7, 8, 9)):
        now = 20 * number
        builder.state("RUNNING", now + 1, client, 1).event(SEND, now + 2, (number, 5)).state(
            "REPLY", now + 3, client, 1
        )
        builder.state("RUNNING", now + 4, 5, 1).event(RECEIPT, now + 5, (number, 5))
        if client > 7:
            builder.event(REPLY, now + 6, (1, client)).state("READY", now + 7, client, 1)
        builder.state("READY", now + 8, 5, 1)
    builder.state("RUNNING", 70, 5, 1).event(SEND, 80, (9, 6)).state("SEND", 81, 5, 1)
    assert satview.transactions(builder.open(tmp_path)).parent.tolist() == [-1, -1, -1, 0]


def test_pulses_are_exact_alone_and_guessed_in_company(tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 5, 5, 1)
    builder.event(SPULSE, 10, (9, 5)).event(RPULSE, 11, (9, 5))  # nobody saw the queue empty
    builder.state("RECEIVE", 20, 5, 1).state("RUNNING", 21, 6, 1).event(SPULSE, 30, (9, 5)).state("READY", 31, 5, 1)
    builder.state("RUNNING", 32, 5, 1).event(RPULSE, 33, (9, 5)).event(SPULSE, 40, (9, 5)).event(RPULSE, 41, (9, 5))
    builder.event(SPULSE, 50, (9, 5)).event(SPULSE, 51, (9, 5)).event(RPULSE, 52, (9, 5)).event(RPULSE, 53, (9, 5))
    trace, found = opened(builder, tmp_path)
    guess, exact = Certainty.GUESS, Certainty.EXACT
    assert times(trace, found.pulses) == [
        (10, 11, guess), (30, 33, exact), (40, 41, exact), (50, 52, guess), (51, 53, guess)]  # fmt: skip


def test_the_receipt_of_a_lost_pulse_is_not_that_of_one_before(tmp_path):
    """A thread is woken by a pulse; its receipt, and what follows, is lost. The next receipt is of the next pulse."""
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("RECEIVE", 20, 5, 1)
    builder.state("RUNNING", 21, 6, 1).event(SPULSE, 30, (9, 5)).state("READY", 31, 5, 1)
    builder.event(wire.CONTROL_BUFFER, 100, (3, 0)).time_event(100).state("RUNNING", 101, 6, 1)
    builder.event(SPULSE, 110, (9, 5)).state("READY", 111, 5, 1).state("RUNNING", 112, 5, 1).event(RPULSE, 113, (9, 5))
    trace, found = opened(builder, tmp_path)
    assert times(trace, found.pulses) == [(110, 113, Certainty.GUESS)]
    table = satview.latencies(trace)
    assert table.received_row.tolist()[0] == -1


def test_a_pulse_of_another_connection_is_not_what_the_thread_received(tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 5, 5, 1).state("RECEIVE", 20, 5, 1)
    builder.state("RUNNING", 21, 6, 1).event(SPULSE, 30, (8, 5)).state("READY", 31, 5, 1).state("RUNNING", 32, 5, 1)
    trace, found = opened(builder.event(RPULSE, 33, (9, 5)), tmp_path)
    assert times(trace, found.pulses) == times(trace, found.wake_ups) == []


@pytest.mark.parametrize(("is_stale", "expected"), [(False, 20), (True, 40)])
def test_a_pulse_comes_from_the_timer_only_if_nothing_else_happened_since(is_stale, expected, tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 5, 5, 1).event(TIMER, 20, (5, 1, 3, 0x111))
    if is_stale:
        builder.state("RUNNING", 30, 5, 1).event(INTERRUPT, 40, (7, 0))
    trace, found = opened(builder.event(SPULSE_EXE, 50, (9, 5)), tmp_path)
    assert [(first, last) for first, last, _ in times(trace, found.deliveries)] == [(expected, 50)]


def test_nothing_is_linked_across_lost_events(tmp_path):
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("RUNNING", 10, 5, 1)
    builder.call(LOCK, 20, (MUTEX, 0)).state("MUTEX", 30, 5, 1).state("RUNNING", 40, 5, 2).call(UNLOCK, 50, (MUTEX, 0))
    builder.event(SEND, 51, (0x10001, 6)).event(SPULSE, 52, (9, 6))
    builder.event(wire.CONTROL_BUFFER, 500, (3, 0)).time_event(500).state("READY", 510, 5, 1)
    builder.state("RUNNING", 520, 6, 1)
    trace, found = opened(builder.event(RECEIPT, 530, (0x10001, 6)).event(RPULSE, 540, (9, 6)), tmp_path)
    for table in (found.wake_ups, found.messages, found.pulses, found.holds):
        assert times(trace, table) == []
    assert len(found.blockers) == 0
    assert satview.transactions(trace).receive_row.tolist() == [-1]


@pytest.mark.parametrize(("number", "is_known"), [(2, True), (3, False)])
def test_a_wait_is_in_the_call_before_it_unless_events_are_missing(number, is_known, tmp_path):
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("RUNNING", 10, 5, 1)
    builder.call(LOCK, 20, (MUTEX, 0)).event(wire.CONTROL_BUFFER, 30, (number, 0)).time_event(30)
    builder.state("MUTEX", 40, 5, 1).state("RUNNING", 41, 5, 2).state("READY", 50, 5, 1)
    trace, found = opened(builder.event(wire.code(6, 1), 60), tmp_path)
    waits = found.blockers.waits
    assert (trace.events.time_cycles[waits.row] - START).tolist() == [40]
    assert waits.has_object.tolist() == [is_known]
    assert (waits.call.tolist() == [LOCK]) is is_known
    assert waits.call.dtype == np.int16, "there may be millions of waits"


@pytest.mark.parametrize(("joined_tid", "expected"), [(2, [(51, 53, Certainty.EXACT)]), (3, [])])
def test_a_thread_that_joins_another_waits_for_it_and_goes_on_with_its_end(joined_tid, expected, tmp_path):
    builder = TraceBuilder().time_event(0).state("READY", 1, 5, 3).state("READY", 2, 5, 2).state("RUNNING", 10, 5, 1)
    builder.call(JOIN, 20, (joined_tid, 0)).state("JOIN", 30, 5, 1).state("RUNNING", 40, 5, 2).call(DESTROY, 50, (0, 0))
    builder.event(wire.THREAD_DESTROY, 51, (5, 2)).state("DEAD", 52, 5, 2).state("READY", 53, 5, 1)
    trace, found = opened(builder, tmp_path)
    assert times(trace, found.wake_ups) == expected
    at = found.blockers.waits.value.tolist().index(STATE_BY_NAME["JOIN"].value)
    assert trace.threads.tid[found.blockers.thread[at]] == joined_tid
    assert found.blockers.certainty[at] == Certainty.EXACT


@pytest.mark.parametrize(("dead", "is_received", "expected"), [
    ((5, 1), True, [(50, 60, Certainty.EXACT)]), ((9, 1), True, []), ((5, 2), True, []),
    ((5, 2), False, [(50, 60, Certainty.INFERRED)]), ((9, 1), False, []),
])  # fmt: skip
def test_who_waits_for_a_thread_that_ends_goes_on(dead, is_received, expected, tmp_path):
    """7.1 has sent to 5.1, which has received it, or to process 5, where nobody has."""
    builder = TraceBuilder().time_event(0).state("READY", 1, 5, 2).state("READY", 2, 9, 1).state("RUNNING", 10, 7, 1)
    builder.event(SEND, 20, (0x10001, 5)).state("SEND", 21, 7, 1).state("RUNNING", 22, 5, 1)
    if is_received:
        builder.event(RECEIPT, 23, (0x10001, 5)).state("REPLY", 24, 7, 1)
    builder.state("RUNNING", 30, *dead).event(wire.THREAD_DESTROY, 50, dead).state("READY", 60, 7, 1)
    trace, found = opened(builder, tmp_path)
    assert times(trace, found.wake_ups) == expected


def test_a_signal_wakes_whom_it_is_sent_to(tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 5, 1).call(WAITINFO, 20).state("SIGWAITINFO", 30, 5, 1)
    builder.state("RUNNING", 40, 6, 1).call(KILL, 50, (5, 16)).event(wire.code(7, 9), 51, (16, 0))
    trace, found = opened(builder.state("READY", 52, 5, 1).exit(KILL, 60), tmp_path)
    assert times(trace, found.wake_ups) == [(51, 52, Certainty.INFERRED)]
    assert times(trace, found.deliveries) == [(50, 51, Certainty.EXACT)]


LOCKED = 0x7000


def rwlock_scene(number):
    """5.1 reads under a lock; 5.2 waits to write from 30 on, 5.3 to read from 50 on; 5.1 gives it up at 60."""
    builder = TraceBuilder(release="8.0.0").time_event(0).state("RUNNING", 10, 5, 2)
    builder.call(number, 20, (LOCKED, 0)).state("RWLOCK_WRITE", 30, 5, 2).state("RUNNING", 31, 5, 3)
    builder.call(number, 40, (LOCKED, 0)).state("RWLOCK_READ", 50, 5, 3).state("RUNNING", 51, 5, 1)
    builder.call(number, 60, (LOCKED, 0)).state("READY", 65, 5, 2).exit(number, 70)
    builder.state("SEM", 75, 5, 1).state("RUNNING", 80, 5, 2).exit(number, 85)
    return builder.call(number, 90, (LOCKED, 0)).state("READY", 95, 5, 3).exit(number, 99)


def test_who_lets_others_in_held_the_lock(tmp_path):
    """The writer 5.2 gives it to 5.3, but held nothing yet when 5.3 began to wait."""
    number = kernel_call("SYNC_RWLOCK")
    trace, found = opened(rwlock_scene(number), tmp_path)
    reported = {(int(trace.threads.tid[found.blockers.waits.thread[i]])): int(found.blockers.thread[i])
            for i in range(len(found.blockers)) if found.blockers.waits.object[i] == LOCKED}  # fmt: skip
    assert trace.threads.tid[reported[2]] == 1
    assert reported[3] == -1
    assert found.blockers.certainty[found.blockers.thread == reported[2]].tolist() == [Certainty.INFERRED]


def kernel_call(name):
    return call_numbers(Release.QNX_8)[name]


@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_6_6, Release.QNX_7], ids=str)
def test_the_interrupt_that_a_thread_attached_wakes_it_and_not_the_clock_behind_it(release, tmp_path):
    """In the guide's first lesson the clock interrupts between the device and the thread that it wakes."""
    made = traced(registry.find("two-threads").setup, 20, tmp_path, release, modes=WIDE)
    trace, found = made.trace, wake_ups(made.trace)
    [waiting] = np.flatnonzero([change.state == "INTR" for change in made.truth.states])
    thread = made.truth.states[waiting].thread
    row = np.flatnonzero((trace.threads.pid == thread[0]) & (trace.threads.tid == thread[1]))[0]
    mine = np.flatnonzero(trace.events.thread[found.to_row] == row)
    causes = [int(trace.payloads.column(found.from_row[[link]], 0)[0]) for link in mine
              if trace.events.code[found.from_row[link]] >> wire.CLASS_SHIFT == wire.WireClass.INT]  # fmt: skip
    assert causes == [5]
