"""From an event to its cause and its effects, on a message exchange written out by hand."""

from __future__ import annotations

import pytest

from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.spec import Release
from satview.linkage import messages
from satview.linkage.chain import Relation, causes, connections, effects, waits_for, way
from satview.linkage.links import Certainty
from satview.session.event_text import event_details
from tests.helpers.kev import TraceBuilder

CLIENT, SERVER = 10, 20
CALLS = call_numbers(Release.QNX_7)
RCVID = 0x40000001


@pytest.fixture
def trace(tmp_path):
    """A client sends to a server that waits; the server takes the CPU, receives, replies and waits again."""
    builder = TraceBuilder().time_event(0).process_name(1, CLIENT, "client").process_name(2, SERVER, "server")
    builder.state("RUNNING", 50, SERVER, 1).call(CALLS["MSG_RECEIVEV"], 60, (3, 0)).state("RECEIVE", 70, SERVER, 1)
    builder.state("RUNNING", 100, CLIENT, 1).call(CALLS["MSG_SENDV"], 110, (0x40000001, 0x51524F54))
    builder.event(messages.SEND, 120, (RCVID, SERVER))
    builder.state("REPLY", 130, CLIENT, 1).state("RUNNING", 131, SERVER, 1)
    builder.exit(CALLS["MSG_RECEIVEV"], 140, (RCVID, 0)).event(messages.RECEIPT, 150, (RCVID, SERVER))
    builder.call(CALLS["MSG_REPLYV"], 160, (RCVID, 0)).event(messages.REPLY, 170, (1, CLIENT))
    builder.state("READY", 180, CLIENT, 1).exit(CALLS["MSG_REPLYV"], 190, (0, 0))
    builder.call(CALLS["MSG_RECEIVEV"], 195, (3, 0)).state("RECEIVE", 200, SERVER, 1)
    builder.state("RUNNING", 210, CLIENT, 1).exit(CALLS["MSG_SENDV"], 220, (0, 0))
    return builder.open(tmp_path)


def at(trace, time):
    """Return the row of the event at a time."""
    return int((trace.events.time_cycles - trace.clock.start_cycles).searchsorted(time))


def shown_of(trace, steps):
    """Return steps as (what the other event is, its time)."""
    times = trace.events.time_cycles - trace.clock.start_cycles
    return [(str(step.relation), int(times[step.row])) for step in steps]


@pytest.mark.parametrize(("time", "before", "after"), [
    (110, [], [("Sends", 120)]),
    (120, [("Within", 110)], [("Received by", 150), ("Wakes", 131)]),
    (131, [("Woken by", 120)], []),
    (150, [("Sent by", 120)], [("Answered by", 170)]),
    (160, [], [("Sends", 170)]),
    (170, [("Answers", 150), ("Within", 160)], [("Wakes", 180)]),
    (180, [("Woken by", 170)], [("Runs", 210)]),
    (210, [("Was ready", 180)], []),
])  # fmt: skip
def test_a_step_leads_to_the_cause_and_to_the_effects(trace, time, before, after):
    assert shown_of(trace, causes(trace, at(trace, time))) == before
    assert shown_of(trace, effects(trace, at(trace, time))) == after


def test_effects_followed_from_the_call_lead_to_the_client_running_again(trace):
    row, way = at(trace, 110), []
    while steps := effects(trace, row):
        row = steps[0].row
        way.append(int(trace.events.time_cycles[row]) - trace.clock.start_cycles)
    assert way == [120, 150, 170, 180, 210]


def test_a_wait_names_whom_it_is_for(trace):
    reply = waits_for(trace, at(trace, 130))
    assert trace.thread_name(reply.thread).startswith("server")
    assert (reply.pid, reply.is_open, reply.certainty) == (SERVER, False, Certainty.EXACT)
    assert waits_for(trace, at(trace, 110)) == reply  # the call that it waits in
    assert waits_for(trace, at(trace, 150)) is None
    last = waits_for(trace, at(trace, 200))
    assert (last.thread, last.object, last.is_open) == (-1, 3, True)


def test_details_name_cause_effect_and_server(trace):
    row = at(trace, 110)
    details = event_details(trace, row, None, connected=connections(trace, row))
    lines = {line.name: line for section in details.sections for line in section.lines}
    assert lines["Sends"].event == at(trace, 120)
    assert lines["Sends"].note == "client 1, 10 ns later"
    assert lines["Waits for"].text == "server 1"
    row = at(trace, 195)
    details = event_details(trace, row, None, connected=connections(trace, row))
    texts = [line.text for section in details.sections if section.title == "Cause and effect" for line in section.lines]
    assert texts == ["not before the trace ends", "channel 0x3", "The wait lasts to the end of the trace."]


def test_relations_are_reported_apart():
    assert len({str(relation) for relation in Relation}) == len(Relation)


def test_the_way_leads_from_the_first_cause_to_the_last_effect(trace):
    times = (trace.events.time_cycles - trace.clock.start_cycles).tolist()
    hops = [(times[hop.from_row], times[hop.to_row]) for hop in way(trace, at(trace, 150))]
    assert hops == [(110, 120), (120, 150), (150, 170), (170, 180), (180, 210)]


@pytest.mark.parametrize(("woken", "shown"), [(16, 16), (17, 16)])
def test_of_those_that_a_broadcast_wakes_the_first_sixteen_are_shown(woken, shown, tmp_path):
    builder, broadcast = TraceBuilder().time_event(0), CALLS["SYNC_CONDVAR_SIGNAL"]
    for tid in range(1, woken + 1):
        builder.state("RUNNING", 10 * tid, 5, tid).call(CALLS["SYNC_CONDVAR_WAIT"], 10 * tid + 1, (0x3000, 0x1000))
        builder.state("CONDVAR", 10 * tid + 2, 5, tid)
    builder.state("RUNNING", 500, 5, 99).call(broadcast, 510, (0x3000, 1))
    for tid in range(1, woken + 1):
        builder.state("READY", 510 + tid, 5, tid)
    trace = builder.exit(broadcast, 600).open(tmp_path)
    assert shown_of(trace, effects(trace, at(trace, 510))) == [("Wakes", 511 + number) for number in range(shown)]


@pytest.mark.parametrize(("sent", "named"), [(64, 64), (65, 64)])
def test_of_what_one_call_sends_the_first_events_are_named(sent, named, tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 5, CLIENT, 1).call(CALLS["MSG_DELIVER_EVENT"], 10)
    for number in range(sent):
        builder.event(wire.code(7, 1), 20 + number, (9, SERVER))
    trace = builder.exit(CALLS["MSG_DELIVER_EVENT"], 200).open(tmp_path)
    found = [step.row for step in effects(trace, at(trace, 10)) if step.relation is Relation.SENDS]
    assert found == [at(trace, 20 + number) for number in range(named)]


def test_a_way_has_no_more_steps_each_way_than_asked_for(tmp_path):
    """Threads 1 and 2 signal one another: every signal wakes the one that signals next."""
    builder, wait, signal = TraceBuilder().time_event(0), CALLS["SYNC_SEM_WAIT"], CALLS["SYNC_SEM_POST"]
    builder.state("RUNNING", 1, 5, 2).call(wait, 2, (0x3002, 0)).state("SEM", 3, 5, 2).state("RUNNING", 4, 5, 1)
    for number in range(30):
        now, own, other = 100 * (number + 1), 1 + number % 2, 2 - number % 2
        builder.call(signal, now, (0x3000 + other, 0)).state("READY", now + 1, 5, other).exit(signal, now + 2)
        builder.call(wait, now + 3, (0x3000 + own, 0)).state("SEM", now + 4, 5, own)
        builder.state("RUNNING", now + 5, 5, other).exit(wait, now + 6)
    trace = builder.open(tmp_path)
    for row in (at(trace, 1501), at(trace, 1505)):
        for most in (1, 3):
            hops = way(trace, row, most)
            before = [hop for hop in hops if hop.to_row <= row]
            assert len(before) <= most
            assert before[-1].to_row == row
            assert len({hop.from_row for hop in hops if hop.from_row >= row}) <= most
    assert [hop.to_row for hop in way(trace, at(trace, 1500), 1)] == [at(trace, 1501)]
