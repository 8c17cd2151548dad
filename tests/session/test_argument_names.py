"""Details name what the numbers of an event mean, and lead there."""

from __future__ import annotations

from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.linkage.chain import connections
from satview.session.event_text import argument_names, event_details
from tests.capture.made import damaged
from tests.helpers.extent import points
from tests.helpers.kev import TraceBuilder
from tests.linkage.test_servers import CALLS, CHID, CLIENT, SERVER, at, attached, row_of

__all__ = ["attached"]


def named(trace, time):
    return {name: meaning.text for name, meaning in argument_names(trace, at(trace, time)).items()}


def test_connection_channel_message_process_and_thread(attached):
    assert named(attached, 90) == {"coid": "to server, channel 3"}
    assert named(attached, 40) == {"chid": "channel of server"}
    assert named(attached, 70) == {"pid": "server", "chid": "channel of server"}
    assert named(attached, 130) == {"rcvid": "message of client 1"}
    assert named(attached, 140) == {"tid": "client 1", "pid": "client"}
    assert named(attached, 100) == {"pid": "server"}  # the number is the one that the event itself makes known
    assert named(attached, 210) == {}  # a process that the trace does not have


def test_every_name_leads_somewhere(attached):
    server, client = row_of(attached, SERVER), attached.threads.row(CLIENT, 1)
    assert argument_names(attached, at(attached, 90))["coid"].process == server
    assert argument_names(attached, at(attached, 40))["chid"].event == at(attached, 20)
    assert argument_names(attached, at(attached, 130))["rcvid"].event == at(attached, 100)
    assert argument_names(attached, at(attached, 140))["tid"].thread == client
    for event in range(len(attached.events)):
        for meaning in argument_names(attached, event).values():
            assert meaning.thread or meaning.process or meaning.event >= 0


def test_details_show_them_beside_the_numbers(attached):
    row = at(attached, 90)
    details = event_details(attached, row, None, connected=connections(attached, row),
                            names=argument_names(attached, row))  # fmt: skip
    lines = {line.name: line for section in details.sections for line in section.lines}
    assert (lines["coid"].text, lines["coid"].means) == ("0x40000001", "to server, channel 3")
    assert lines["coid"].process == row_of(attached, SERVER)
    assert lines["Process"].process == row_of(attached, CLIENT)
    assert "0x40000001  to server, channel 3" in details.as_text()
    row = at(attached, 170)
    details = event_details(attached, row, None, connected=connections(attached, row))
    lines = {line.name: line for section in details.sections for line in section.lines}
    assert lines["Returns"].text == "not before the trace ends"
    assert lines["Waits for"].text == f"channel {CHID:#x}"


def test_the_owner_of_a_mutex_and_its_holder(tmp_path):
    builder = TraceBuilder().time_event(0).process_name(1, 2, "pair").state("READY", 10, 2, 1)
    builder.state("RUNNING", 20, 2, 3).call(CALLS["SYNC_MUTEX_LOCK"], 30, (0x1000, 65538)).state("MUTEX", 40, 2, 3)
    trace = builder.state("RUNNING", 50, 2, 1).open(tmp_path)
    found = argument_names(trace, at(trace, 30))
    holder = trace.threads.row(2, 1)
    assert {name: (meaning.text, meaning.thread) for name, meaning in found.items()} == {
        "sync_p": ("held by pair 1", holder),
        "owner": ("held by pair 1", holder),
    }


@points(
    name=["automotive", "client-server", "inversion", "deadlock"], release=[Release.QNX_6, Release.QNX_7, Release.QNX_8]
)
def test_all_events_of_traces_with_holes_can_be_named(name, release, tmp_path):
    trace = damaged(registry.find(name).setup, 20, tmp_path, release, 1, ring=False, wide=True).trace
    named = [argument_names(trace, event) for event in range(len(trace.events))]
    assert sum(map(len, named)) > 20
