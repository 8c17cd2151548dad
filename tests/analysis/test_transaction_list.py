"""Transactions and latencies as lists: filters, order, nesting, distributions; checked by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from satview.analysis.latency_list import LatencyFilter, latency_list, latency_sheet, latency_statistics_sheet
from satview.analysis.thread_names import processes_named, threads_named
from satview.analysis.transaction_list import (
    SORTS,
    TransactionFilter,
    nested,
    transaction_list,
    transaction_sheet,
    with_nested,
)
from satview.base.time import TimeWindow
from satview.events import wire
from satview.linkage.transactions import transactions
from satview.store.trace import Trace
from tests.helpers.kev import START, TraceBuilder
from tests.linkage.test_latencies import interrupted

SND, REC, REP = (wire.code(wire.WireClass.COMM, event) for event in (0, 2, 10))
MSG_SENDV = 11


class Exchange:
    """Writes a trace of messages between processes of one thread each; pids are 2, 3, 4."""

    def __init__(self) -> None:
        self.build = TraceBuilder().time_event(0)
        for pid, name in ((2, "usr/bin/shell"), (3, "sbin/disk"), (4, "sbin/driver")):
            self.build.process_name(pid, pid, name)

    def send(self, time: int, client: int, server: int, word: int) -> None:
        self.build.state("RUNNING", time, client, 1).call(MSG_SENDV, time + 1, (0x40000001, word))
        self.build.event(SND, time + 2, (0x10000 + client, server)).state("SEND", time + 3, client, 1)

    def receive(self, time: int, client: int, server: int) -> None:
        self.build.state("RUNNING", time, server, 1).event(REC, time + 1, (0x10000 + client, server))
        self.build.state("REPLY", time + 2, client, 1)

    def reply(self, time: int, client: int) -> None:
        self.build.event(REP, time, (1, client)).state("READY", time + 1, client, 1)

    def goes_on(self, time: int, client: int) -> None:
        self.build.state("RUNNING", time, client, 1)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Transaction 0: shell to disk, and 1 within it: disk to driver. 2: shell to driver. 3: never received."""
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


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("round-trip", [0, 2, 1, 3]),
        ("queued", [2, 0, 1, 3]),
        ("service", [0, 1, 2, 3]),
        ("reply", [0, 1, 2, 3]),
        ("time", [0, 1, 2, 3]),
    ],
)
def test_the_slowest_come_first_and_unknown_ones_last(trace: Trace, sort: str, expected: list[int]) -> None:
    assert transaction_list(trace, sort=sort).tolist() == expected
    assert transaction_list(trace, sort=sort, top=2).tolist() == expected[:2]


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
    assert transaction_list(trace, requested).tolist() == expected


def test_nested_ones_are_below_their_parent(trace: Trace) -> None:
    assert nested(trace).counts.tolist() == [1, 0, 0, 0]
    assert nested(trace).of(0).tolist() == [1]
    positions, depth = with_nested(trace, transaction_list(trace))
    assert (positions.tolist(), depth.tolist()) == ([0, 1, 2, 3], [0, 1, 0, 0])
    positions, depth = with_nested(trace, np.array([2, 1]))  # without its parent it represents itself
    assert (positions.tolist(), depth.tolist()) == ([2, 1], [0, 0])


def test_the_sheet_says_the_same(trace: Trace) -> None:
    first, second, third = transaction_sheet(trace, *with_nested(trace, np.array([0, 3]))).records()
    assert (first["client"], first["server"], first["type"], first["outcome"]) == ("shell 1", "disk 1", "0x57", "done")
    assert [first[f"{leg}_ns"] for leg in ("queued", "service", "reply", "round_trip")] == [99, 499, 100, 698]
    assert (second["client"], second["depth"], second["parent_event"]) == ("  disk 1", 1, first["event"])
    assert (third["server"], third["outcome"], third["queued_ns"]) == ("disk", "sent", None)
    made = transactions(trace)
    assert first["event"] == made.send_row[0] + 1


@pytest.mark.parametrize("sort", SORTS)
def test_a_trace_without_messages(tmp_path: Path, sort: str) -> None:
    empty = TraceBuilder().time_event(0).state("RUNNING", 5, 1, 1).open(tmp_path)
    assert len(transaction_list(empty, TransactionFilter("x", "y", 1), sort)) == 0
    positions, depth = with_nested(empty, np.empty(0, np.int64))
    assert len(transaction_sheet(empty, positions, depth)) == 0
    assert len(latency_statistics_sheet(empty, latency_list(empty))) == 0
    assert len(latency_sheet(empty, latency_list(empty))) == 0


def test_threads_by_name_or_number(trace: Trace) -> None:
    pid = trace.threads.pid
    assert set(pid[threads_named(trace, "sk")].tolist()) == {3}
    assert set(pid[threads_named(trace, " 4 ")].tolist()) == {4}
    assert threads_named(trace, "").all()
    assert processes_named(trace, "SHELL").tolist() == [2]


def test_how_latencies_are_distributed(tmp_path: Path) -> None:
    """One interrupt twice: legs of 10 and 20, of 10 and 5 to the pulse; and a pulse of an unknown source."""
    build = interrupted()
    for event, time, words in ((1, 400, (7, 0)), (3, 420, (5, 7, 0x1000, 0)), (4, 425, (7, 4, 5, 1)), (2, 430, (7, 0))):
        build.event(wire.code(wire.WireClass.INT, event), time, words)
    build.event(wire.code(wire.WireClass.COMM, 4), 435, (0x40000001, 5))
    build.state("READY", 440, 5, 2).state("RUNNING", 450, 5, 2)
    trace = build.event(wire.code(wire.WireClass.COMM, 3), 460, (0x40000001, 5)).open(tmp_path)
    rows = {record["leg"]: record for record in latency_statistics_sheet(trace, latency_list(trace)).records()}
    assert list(rows) == ["handler-entry", "handler", "delivery", "ready", "scheduling", "receipt", "total"]
    figures = {
        leg: [row[name] for name in ("count", "min_ns", "median_ns", "p95_ns", "max_ns")] for leg, row in rows.items()
    }
    assert figures["handler-entry"] == [2, 10, 10, 20, 20]
    assert figures["handler"] == [2, 5, 5, 20, 20]
    assert figures["total"] == [2, 60, 60, 90, 90]
    assert {(row["source"], row["thread"]) for row in rows.values()} == {("interrupt 0x7", "driver 2")}
    assert latency_list(trace).tolist() == [0, 1]
    assert latency_list(trace, sort="handler-entry").tolist() == [1, 0]
    assert latency_list(trace, LatencyFilter(thread="other")).tolist() == []
    assert latency_list(trace, LatencyFilter(interrupt=7, window=TimeWindow(START + 300, START + 999))).tolist() == [1]
    single = latency_sheet(trace, latency_list(trace)).records()[0]
    legs = [single[f"{leg.replace('-', '_')}_ns"] for leg in list(rows)[:-1]]
    assert sum(legs) == single["total_ns"] == 90
