"""Transactions as a table: filters, order, nesting, and messages that are not over; checked by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from satview.analysis.thread_names import processes_named, threads_named
from satview.answers.table import Known, Outcome, Table
from satview.answers.transactions import LEGS, TransactionFilter, transaction_table
from satview.base.time import TimeWindow
from satview.events import wire
from satview.linkage.transactions import transactions
from satview.store.trace import Trace
from tests.helpers.exchange import SND, Exchange
from tests.helpers.kev import START, TraceBuilder

USER_EVENT = wire.code(wire.WireClass.USER, 7)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Transaction 0: shell to disk, and 1 within it: disk to driver. 2: shell to driver. 3: open; the end is 1403."""
    made = Exchange()
    made.send(100, 2, 3, 0x57)  # sent at 102
    made.receive(200, 2, 3)  # received at 201: queued 99
    made.send(300, 3, 4, 0x101)  # sent at 302
    made.receive(400, 3, 4)  # 401: queued 99
    made.reply(500, 3)  # service 99
    made.goes_on(600, 3)  # reply 100, round trip 298
    made.reply(700, 2)  # service 499
    made.goes_on(800, 2)  # reply 100, round trip 698
    made.send(900, 2, 4, 0x57)  # sent at 902
    made.receive(1300, 2, 4)  # queued 399
    made.reply(1310, 2)  # service 9
    made.goes_on(1320, 2)  # reply 10, round trip 418
    made.send(1400, 2, 3, 0x58)
    return made.build.open(tmp_path)


def messages(table: Table) -> list[int]:
    """Return which messages a table has, in its order."""
    return [int(number) for number in table["message"]]


def known(table: Table, row: int) -> list[str]:
    """Return how the legs of a row are known."""
    return [table.known(row, leg).word for leg in LEGS]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("round_trip", [0, 2, 1, 3]),
        ("queued", [2, 0, 1, 3]),
        ("service", [0, 1, 2, 3]),
        ("reply", [0, 1, 2, 3]),
        ("event", [3, 2, 1, 0]),
    ],
)
def test_the_slowest_come_first_and_absent_legs_last(trace: Trace, sort: str, expected: list[int]) -> None:
    table = transaction_table(trace).sorted_by(sort)
    assert messages(table) == expected
    assert messages(table.head(2)) == expected[:2]


def test_a_message_that_waits_for_ever_is_the_slowest(tmp_path: Path) -> None:
    """1 is never received, and the trace goes on for 8,000 cycles; 0 is received and never answered."""
    made = Exchange()
    made.send(100, 2, 3, 0x57)  # sent at 102
    made.receive(200, 2, 3)  # received at 201
    made.send(1000, 5, 3, 0x58)  # sent at 1002, never received
    made.send(1100, 3, 4, 0x59)
    made.receive(1200, 3, 4)
    made.reply(1300, 3)
    made.goes_on(1400, 3)
    made.build.event(USER_EVENT, 9001)  # the end of the trace is just behind it
    table = transaction_table(made.build.open(tmp_path)).sorted_by("round_trip")
    assert messages(table) == [0, 1, 2]
    assert table["round_trip_cycles"].tolist() == [9002 - 102, 9002 - 1002, 298]
    assert known(table, 0) == ["exact", "at least", "exact", "at least"]
    assert known(table, 1) == ["at least", "exact", "exact", "at least"]
    assert (table["service_cycles"][0], table["reply_cycles"][0], table["queued_cycles"][1]) == (8801, -1, 8000)
    assert table.text(0, "round_trip") == "\N{GREATER-THAN OR EQUAL TO} 8.900 \N{MICRO SIGN}s"
    assert table.text(2, "round_trip") == "298 ns"
    record = table.records()[0]
    assert record["round_trip_ns"] == 8900
    assert record["known"] == dict.fromkeys(("service_ns", "round_trip_ns", "nested"), "at least")
    assert "known" not in table.records()[2]
    assert [doubt.split(":")[0][2:] for doubt in table.doubts()] == [
        "1 of 3 in Queued, Service",
        "2 of 3 in Round trip",
        "1 of 3 in Nested",
    ]


def test_a_client_that_stops_waiting_has_no_reply_to_wait_for(tmp_path: Path) -> None:
    """Its wait ends at 500 without a receipt; it runs at 600. What did not take place is absent, not unknown."""
    made = Exchange()
    made.send(100, 2, 3, 0x57)
    made.build.state("READY", 500, 2, 1).state("RUNNING", 600, 2, 1)
    table = transaction_table(made.build.open(tmp_path))
    assert [table[f"{leg}_cycles"][0] for leg in LEGS] == [-1, -1, -1, 498]
    assert known(table, 0) == ["exact"] * 4
    assert table.text(0, "outcome") == "ended without reply"


def test_a_client_that_dies_waits_no_longer(tmp_path: Path) -> None:
    made = Exchange()
    made.send(100, 2, 3, 0x57)  # sent at 102
    made.build.state("DEAD", 500, 2, 1)
    made.build.event(USER_EVENT, 9001)
    table = transaction_table(made.build.open(tmp_path))
    assert (table["round_trip_cycles"][0], table.known(0, "round_trip")) == (398, Known.AT_LEAST)


def test_a_send_that_does_not_block_has_no_round_trip(tmp_path: Path) -> None:
    """The next state of its client is no wait: it does not wait to the end of the trace."""
    made = Exchange()
    made.build.state("RUNNING", 100, 2, 1).event(SND, 102, (0x10002, 3)).state("READY", 110, 2, 1)
    made.build.event(USER_EVENT, 9001)
    table = transaction_table(made.build.open(tmp_path))
    assert (table["round_trip_cycles"][0], table.known(0, "round_trip")) == (-1, Known.EXACT)


def test_across_lost_events_times_are_unknown(tmp_path: Path) -> None:
    """Four buffers are lost after the receipt: whether there was a reply is not known, and the end is no bound."""
    made = Exchange()
    made.build.event(wire.CONTROL_BUFFER, 50, (1, 0))
    made.send(100, 2, 3, 0x57)
    made.receive(200, 2, 3)
    made.build.event(wire.CONTROL_BUFFER, 1000, (6, 0)).event(USER_EVENT, 9001)
    table = transaction_table(made.build.open(tmp_path))
    assert known(table, 0) == ["exact", "unknown", "unknown", "unknown"]
    assert (table.text(0, "queued"), table.text(0, "service")) == ("99 ns", "unknown")
    assert table.records()[0]["round_trip_ns"] is None
    assert table.doubts()[0].startswith("unknown 1 of 1 in Service, Reply, Round trip: events are missing")


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (TransactionFilter(client="SHELL"), [0, 2, 3]),
        (TransactionFilter(client="3"), [1]),
        (TransactionFilter(client="2:1"), [0, 2, 3]),
        (TransactionFilter(client="2:2"), []),
        (TransactionFilter(server="disk"), [0, 3]),
        (TransactionFilter(server="driver 1"), [2, 1]),
        (TransactionFilter(message_type=0x57), [0, 2]),
        (TransactionFilter(client="shell", server="4"), [2]),
        (TransactionFilter(window=TimeWindow(START + 302, START + 903)), [2, 1]),
        (TransactionFilter(client="nobody"), []),
        (TransactionFilter(server="unknown"), []),
    ],
)
def test_filters(trace: Trace, requested: TransactionFilter, expected: list[int]) -> None:
    table = transaction_table(trace, requested).sorted_by("round_trip")
    assert (messages(table), table.total) == (expected, 4)


def test_nested_ones_are_below_their_parent(trace: Trace) -> None:
    table = transaction_table(trace)
    assert [table.children(row).tolist() for row in range(4)] == [[1], [], [], []]
    assert table.sort_keys("nested").tolist() == [1, 0, 0, 0]
    unfolded = table.sorted_by("round_trip").unfolded()
    assert (messages(unfolded), unfolded.sort_keys("depth").tolist()) == ([0, 1, 2, 3], [0, 1, 0, 0])
    assert [unfolded.text(row, "client") for row in range(2)] == ["shell 1", "  disk 1"]
    alone = table.at(np.array([2, 1])).unfolded()  # without its parent it represents itself
    assert (messages(alone), alone.sort_keys("depth").tolist()) == ([2, 1], [0, 0])


def test_records_say_the_same(trace: Trace) -> None:
    first, second, third = transaction_table(trace).at(np.array([0, 3])).unfolded().records()
    assert (first["client"], first["server"], first["type"], first["outcome"]) == ("shell 1", "disk 1", "0x57", "done")
    assert [first[f"{leg}_ns"] for leg in LEGS] == [99, 499, 100, 698]
    assert (second["client"], second["depth"], second["parent_event"]) == ("disk 1", 1, first["event"])
    assert (third["server"], third["outcome"], third["queued_ns"], third["service_ns"]) == ("disk", "sent", 2, None)
    assert third["known"] == {"queued_ns": "at least", "round_trip_ns": "at least"}
    assert first["event"] == transactions(trace).send_row[0] + 1


@pytest.mark.parametrize("sort", LEGS)
def test_a_trace_without_messages_cannot_tell(tmp_path: Path, sort: str) -> None:
    empty = TraceBuilder().time_event(0).state("RUNNING", 5, 1, 1).open(tmp_path)
    table = transaction_table(empty, TransactionFilter("x", "y", 1)).sorted_by(sort).unfolded()
    assert (len(table), table.outcome) == (0, Outcome.CANNOT_TELL)
    assert "capture the class COMM" in table.says_why_empty


def test_a_filter_that_nothing_passes_finds_nothing(trace: Trace) -> None:
    table = transaction_table(trace, TransactionFilter(client="nobody"))
    assert (table.outcome, table.says_why_empty) == (Outcome.NOTHING, "No message fits.")


def test_threads_by_name_or_number(trace: Trace) -> None:
    pid = trace.threads.pid
    assert set(pid[threads_named(trace, "sk")].tolist()) == {3}
    assert set(pid[threads_named(trace, " 4 ")].tolist()) == {4}
    assert threads_named(trace, "").all()
    assert processes_named(trace, "SHELL").tolist() == [2]
