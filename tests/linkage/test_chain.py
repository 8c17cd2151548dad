"""From an event to its cause and its effects, on a message exchange written out by hand."""

from __future__ import annotations

import pytest

from satview.events.kernel_calls import call_numbers
from satview.events.spec import Release
from satview.linkage import messages
from satview.linkage.chain import Relation, causes, connections, effects, waits_for, way
from satview.linkage.table import Certainty
from satview.session.events.event_text import event_details
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


def shown(trace, steps):
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
    assert shown(trace, causes(trace, at(trace, time))) == before
    assert shown(trace, effects(trace, at(trace, time))) == after


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
