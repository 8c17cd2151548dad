"""Where connections lead to, whose messages numbers mean, owners of mutexes, calls that never return."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from satview.capture.workloads import registry
from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.spec import Release
from satview.linkage import messages
from satview.linkage.blockers import owner_of
from satview.linkage.calls import Fate, fate_of_call, partners
from satview.linkage.links import Certainty
from satview.linkage.transactions import Server, client_of, creation_of, server_of
from satview.linkage.waits import entries_of
from satview.store.arguments import argument
from satview.store.trace import Trace
from tests.capture.made import FAST, WIDE, Traced, damaged, traced
from tests.helpers.extent import points
from tests.helpers.kev import START, TraceBuilder

CALLS = call_numbers(Release.QNX_7)
CLIENT, SERVER = 10, 20
COID, CHID, RCVID = 0x40000001, 3, 7
RELEASES = (Release.QNX_6, Release.QNX_7, Release.QNX_8)


def at(trace: Trace, time: int) -> int:
    return int(np.searchsorted(trace.events.time_cycles, START + time))


def row_of(trace: Trace, pid: int) -> int:
    row = trace.processes.row(pid)
    assert row
    return row


@pytest.fixture
def attached(tmp_path: Path) -> Trace:
    """A server creates channel 3, a client connects to it, sends, is answered, and connects to another process."""
    builder = TraceBuilder().time_event(0).process_name(1, CLIENT, "client").process_name(2, SERVER, "server")
    create = CALLS["CHANNEL_CREATE"]
    builder.state("RUNNING", 10, SERVER, 1).call(create, 20).exit(create, 30, (CHID, 0))
    builder.call(CALLS["MSG_RECEIVEV"], 40, (CHID, 0)).state("RECEIVE", 50, SERVER, 1)
    attach = CALLS["CONNECT_ATTACH"]
    builder.state("RUNNING", 60, CLIENT, 1).call(attach, 70, (0, SERVER, CHID, 0, 0)).exit(attach, 80, (COID, 0))
    builder.call(CALLS["MSG_SENDV"], 90, (COID, 0)).event(messages.SEND, 100, (RCVID, SERVER))
    builder.state("REPLY", 110, CLIENT, 1).state("RUNNING", 111, SERVER, 1)
    builder.exit(CALLS["MSG_RECEIVEV"], 120, (RCVID, 0)).event(messages.RECEIPT, 121, (RCVID, SERVER))
    builder.call(CALLS["MSG_REPLYV"], 130, (RCVID, 0)).event(messages.REPLY, 140, (1, CLIENT))
    builder.state("READY", 150, CLIENT, 1).exit(CALLS["MSG_REPLYV"], 160, (0, 0))
    builder.call(CALLS["MSG_RECEIVEV"], 170, (CHID, 0)).state("RECEIVE", 180, SERVER, 1)
    builder.state("RUNNING", 190, CLIENT, 1).exit(CALLS["MSG_SENDV"], 200, (0, 0))
    builder.call(attach, 210, (0, CLIENT + 1)).exit(attach, 220, (COID, 0)).call(CALLS["MSG_SENDV"], 230, (COID, 0))
    return builder.open(tmp_path)


def test_connect_attach_shows_server_and_channel(attached: Trace) -> None:
    client = row_of(attached, CLIENT)
    assert server_of(attached, client, COID, at(attached, 90)) == Server(
        SERVER, CHID, at(attached, 80), Certainty.EXACT
    )
    assert server_of(attached, client, COID, at(attached, 230)) == Server(
        CLIENT + 1, -1, at(attached, 220), Certainty.EXACT
    )  # fast: no channel
    before = server_of(attached, client, COID, at(attached, 60))
    assert before is not None
    assert (before.pid, before.certainty) == (SERVER, Certainty.INFERRED)
    assert server_of(attached, row_of(attached, SERVER), COID, at(attached, 90)) is None
    assert server_of(attached, client, COID + 1, at(attached, 90)) is None


@pytest.mark.parametrize(("has_call", "channel"), [(True, CHID), (False, -1)])
def test_the_channel_of_a_message_is_that_of_the_call_of_its_receiver(has_call, channel, tmp_path):
    """Another thread waits on channel 9."""
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, CLIENT, 2).call(CALLS["MSG_RECEIVEV"], 20, (9, 0))
    builder.state("RECEIVE", 30, CLIENT, 2).state("RUNNING", 31, SERVER, 1)
    if has_call:
        builder.call(CALLS["MSG_RECEIVEV"], 40, (CHID, 0))
    builder.state("RECEIVE", 50, SERVER, 1).state("RUNNING", 60, CLIENT, 1).call(CALLS["MSG_SENDV"], 90, (COID, 0))
    builder.event(messages.SEND, 100, (RCVID, SERVER)).state("REPLY", 110, CLIENT, 1).state("RUNNING", 111, SERVER, 1)
    trace = builder.event(messages.RECEIPT, 121, (RCVID, SERVER)).open(tmp_path)
    found = server_of(trace, row_of(trace, CLIENT), COID, at(trace, 110))
    assert found == Server(SERVER, channel, at(trace, 100), Certainty.EXACT)


def test_a_channel_leads_to_its_creation(attached: Trace) -> None:
    server = row_of(attached, SERVER)
    assert creation_of(attached, server, CHID, at(attached, 40)) == at(attached, 20)
    assert creation_of(attached, server, CHID, at(attached, 20)) == -1
    assert creation_of(attached, row_of(attached, CLIENT), CHID, at(attached, 90)) == -1


def test_a_number_of_a_message_leads_to_it_until_it_is_answered(attached: Trace) -> None:
    server = row_of(attached, SERVER)
    assert client_of(attached, server, RCVID, at(attached, 130)) == at(attached, 100)
    assert client_of(attached, server, RCVID, at(attached, 170)) == -1
    assert client_of(attached, server, RCVID + 1, at(attached, 130)) == -1
    assert client_of(attached, row_of(attached, CLIENT), RCVID, at(attached, 130)) == -1


def test_what_became_of_a_call(attached: Trace) -> None:
    assert fate_of_call(attached, at(attached, 90)) is None  # it has an exit
    assert fate_of_call(attached, at(attached, 170)) is Fate.NEVER
    assert fate_of_call(attached, at(attached, 100)) is None  # no call


def test_a_restarted_call(tmp_path: Path) -> None:
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, CLIENT, 1)
    builder.call(CALLS["MSG_RECEIVEV"], 20).call(CALLS["MSG_RECEIVEV"], 30).exit(CALLS["MSG_RECEIVEV"], 40)
    trace = builder.open(tmp_path)
    assert fate_of_call(trace, at(trace, 20)) is Fate.RESTARTED
    assert fate_of_call(trace, at(trace, 30)) is None


@pytest.mark.parametrize(("word", "pid", "found"), [
    (196610, 2, (2, 3, Certainty.EXACT)),  # up to 6.x: tid in the high half, pid in the low one
    (2 << 16 | 3, 2, (2, 3, Certainty.EXACT)),  # from 7.x on the other way round
    (-2147287038, 2, (2, 3, Certainty.EXACT)),  # 0x80030002: others wait
    (196610, 9, (2, 3, Certainty.INFERRED)),  # a mutex in shared memory
    (0, 2, None), (-1, 2, None), (-4, 2, None), (5 << 16 | 2, 2, None),
])  # fmt: skip
def test_the_word_of_a_mutex_names_its_owner(word, pid, found, tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 2, 3).state("RUNNING", 20, 9, 1)
    trace = builder.open(tmp_path)
    reported = owner_of(trace, word, pid)
    if reported is not None:
        thread, certainty = reported
        reported = (int(trace.threads.pid[thread]), int(trace.threads.tid[thread]), certainty)
    assert reported == found


def check_clients_and_servers(made: Traced) -> Counter[str]:
    """Check every connection that is sent over and every message that is answered against the truth."""
    trace, seen = made.trace, Counter[str]()
    row_at = {int(time): row for row, time in enumerate(trace.events.time_cycles.tolist())}
    ends = partners(trace)
    calls = entries_of(trace, "MSG_SENDV", "MSG_REPLYV")
    coid, has_coid = argument(trace, calls, "coid")
    rcvid, has_rcvid = argument(trace, calls, "rcvid")
    by_call = {}
    for message in made.truth.messages:
        for moment, what in ((message.sent, "sent"), (message.replied, "replied")):
            row = row_at.get(moment, -1)
            position = int(np.searchsorted(calls, row)) - 1
            if row >= 0 and position >= 0 and ends[calls[position]] < len(ends):
                by_call.setdefault((int(calls[position]), what), message)
    for position, call in enumerate(calls.tolist()):
        process = int(trace.threads.process[trace.events.thread[call]])
        if has_coid[position] and (message := by_call.get((call, "sent"))) and process:
            found = server_of(trace, process, int(coid[position]), call)
            if found is not None and found.certainty is Certainty.EXACT:
                assert found.pid == message.server_pid, call
                seen["server"] += 1
        if has_rcvid[position] and (message := by_call.get((call, "replied"))) and process:
            sent = client_of(trace, process, int(rcvid[position]), call)
            if sent >= 0 and trace.events.thread[sent]:
                thread = int(trace.events.thread[sent])
                assert (int(trace.threads.pid[thread]), int(trace.threads.tid[thread])) == message.client, call
                seen["client"] += 1
    return seen


@points(
    kind={
        f"{name}-{form}": (name, modes)
        for name in ("client-server", "automotive")
        for form, modes in (("fast", FAST), ("wide", WIDE))
    },
    release=RELEASES,
)
def test_clients_and_servers_are_those_of_the_simulation(kind, release, tmp_path):
    name, modes = kind
    found = registry.find(name)
    seen = check_clients_and_servers(traced(found.setup, 60, tmp_path, release, 1, 5, modes, skew_ns=0))
    assert min(seen["server"], seen["client"]) > 5


@points(name=["client-server", "automotive"], release=RELEASES)
def test_where_events_are_missing_nobody_wrong_is_named(name, release, tmp_path):
    made = damaged(registry.find(name).setup, 60, tmp_path, release, 1, ring=False, wide=True, skew_ns=0)
    check_clients_and_servers(made)
    code = made.trace.events.code
    for call in np.flatnonzero((code >> wire.CLASS_SHIFT == 2) & (code & 0x180 == 0)).tolist():
        if fate_of_call(made.trace, call) is Fate.NEVER:
            true = [span for span in made.truth.calls if span.enter == made.trace.events.time_cycles[call]]
            assert any(span.exit < 0 or span.exit > made.trace.window.end for span in true), call
