from __future__ import annotations

from satview.linkage.chain import link_of
from satview.session.event_text import event_details, list_row, span_details

CLIENT_1 = 3


def row_at(opened, ns_value):
    times = opened.trace.clock.ns_array(opened.trace.events.time_cycles)
    return times.tolist().index(ns_value)


def lines(details):
    return {line.name: line for section in details.sections for line in section.lines}


def test_row_of_the_list(opened):
    event = row_at(opened, 2_000)
    row = list_row(opened.trace, event, event - 1)
    assert row[:8] == (f"{event + 1}", "0.000 002 000 s", "1.000 \u00b5s", "0", "client", "1", "KER_CALL", "MSG_SENDV")
    assert row[8].startswith("coid=0x40000001")


def test_details_of_a_kernel_call(opened):
    event = row_at(opened, 2_000)
    details = event_details(opened.trace, event, link_of(opened.trace, event))
    found = lines(details)
    assert details.title == "MSG_SENDV"
    assert details.kind == "KER_CALL"
    assert "MsgSendv()" in found["Public call"].text
    assert found["Ends with"].event == row_at(opened, 9_000)
    assert found["Duration"].text == "7.000 \u00b5s"
    assert found["Process"].text == "usr/bin/client"
    assert found["Time"].text == "0.000 002 000 s"
    assert found["0"].text == "40000001  51524f54"
    assert found["coid"].text == "0x40000001"
    for part in (
        "MSG_SENDV",
        "KER_CALL",
        "MsgSendv()",
        "7.000 \u00b5s",
        "usr/bin/client",
        "coid",
        "40000001  51524f54",
    ):
        assert part in details.as_text(), "what is copied has everything"


def test_details_of_an_interval(opened, ns):
    span = opened.timeline.lane(CLIENT_1).at(ns(6_000))
    found = lines(span_details(opened.timeline, CLIENT_1, span))
    assert found["Length"].text == "4.001 \u00b5s"
    assert "waiting for the server" in found["Meaning"].text
    assert found["Begun by"].event == row_at(opened, 4_000)
    assert found["Ended by"].event == row_at(opened, 8_001)


def test_the_length_of_an_interval_that_a_loss_cuts_is_a_lower_bound(opened, ns):
    server = opened.lane_of_thread(opened.trace.threads.row(3, 1))
    cut, whole = (lines(span_details(opened.timeline, server, opened.timeline.lane(server).at(ns(at))))["Length"]
                  for at in (9_000, 5_000))  # fmt: skip
    assert (cut.text, cut.note) == ("\u2265 4.001 \u00b5s", "4,001 cycles, events are missing from its end on")
    assert whole.text == "3.999 \u00b5s"
