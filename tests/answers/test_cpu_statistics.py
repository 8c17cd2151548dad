"""Migrations and messages between CPUs, drawn so that a reader can count them."""

from __future__ import annotations

import json

import pytest

from satview.__main__ import main
from satview.analysis.statistics import Statistics
from satview.answers.statistics import TABLES
from satview.base.time import TimeWindow
from satview.events import wire
from tests.helpers.kev import START, TraceBuilder, from_lanes

SEND, RECEIPT = (wire.code(7, n) for n in (0, 2))


def lanes(tmp_path):
    return from_lanes(
        tmp_path,
        """
        cpu0  A A . B A . A
        cpu1  . B B . . A .
    """,
    )


def moves(found):
    return [(row["thread"], row["from_cpu"], row["to_cpu"], row["count"], row["thread_count"], row["first_ns"])
            for row in TABLES["migration"](found, None).records()]  # fmt: skip


def test_migrations_by_pair_of_cpus(tmp_path):
    trace = lanes(tmp_path)
    a, b = (trace.thread_name(trace.threads.row(pid, 1)) for pid in (2, 3))
    assert moves(Statistics(trace)) == [(a, 0, 1, 1, 2, 5_011), (a, 1, 0, 1, 2, 6_010), (b, 1, 0, 1, 1, 3_010)]


def test_a_range_has_the_migrations_whose_runs_begin_in_it(tmp_path):
    trace = lanes(tmp_path)
    found = Statistics(trace, TimeWindow(START + 3_500, START + 5_500))
    assert [row[1:4] for row in moves(found)] == [(0, 1, 1)]
    [row] = TABLES["migration"](found, None).records()
    assert row["share"] == 0.5  # A begins to run on CPU 0 and on CPU 1
    assert row["per_s"] == pytest.approx(1 / 2_000e-9)


def test_where_events_are_missing_it_is_not_said_where_from(tmp_path):
    made = TraceBuilder(cpus=2).event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("RUNNING", 10, 5, 1, 0)
    made.event(wire.CONTROL_BUFFER, 500, (3, 0)).time_event(500).state("RUNNING", 600, 5, 1, 1)
    found = Statistics(made.event(wire.code(6, 1), 700).open(tmp_path))
    assert [row[1:5] for row in moves(found)] == [(None, 1, 1, 1)]


def test_one_cpu_has_no_migrations_and_says_so(tmp_path):
    table = TABLES["migration"](Statistics(from_lanes(tmp_path, "cpu0  A B A")), None)
    assert (len(table), table.says_why_empty) == (0, "The trace has one CPU, so that no thread migrates.")


@pytest.fixture
def messages(tmp_path):
    """On CPU 0 one message stays, two go to CPU 1, one is never received; from CPU 1 none goes back."""
    made = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 10, 5, 1, 0).state("RUNNING", 11, 6, 1, 1)
    for time, rcvid, receiver in ((100, 1, 0), (200, 2, 1), (300, 3, 1), (400, 4, None)):
        made.event(SEND, time, (rcvid, 6 if receiver else 5), 0)
        if receiver is not None:
            made.event(RECEIPT, time + 10, (rcvid, 6 if receiver else 5), receiver)
    return made.event(wire.code(6, 1), 500).write(tmp_path / "messages.kev")


def test_messages_from_cpu_to_cpu(messages, capsys):
    assert main(["stats", str(messages), "--by", "cpu-matrix", "--format", "json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["cpu-matrix"]
    name = row.pop("from_cpu")
    assert "0" in name
    assert row == {"to_cpu_0": 1, "to_cpu_1": 2, "unknown": 1, "count": 4, "elsewhere": 2,
                   "elsewhere_share": round(2 / 3, 6)}  # fmt: skip


@pytest.mark.thorough
def test_messages_follow_the_filter_and_their_receipts_do_not(messages, capsys):
    main(["stats", str(messages), "--by", "cpu-matrix", "--format", "json", "-e", "event == SND_MESSAGE"])
    [row] = json.loads(capsys.readouterr().out)["cpu-matrix"]
    assert (row["to_cpu_0"], row["to_cpu_1"], row["unknown"]) == (1, 2, 1)
    main(["stats", str(messages), "--by", "cpu-matrix", "--format", "json", "-e", "event == REC_MESSAGE"])
    assert json.loads(capsys.readouterr().out)["cpu-matrix"] == []


def test_a_cpu_that_the_target_does_not_have_has_no_row(tmp_path):
    """As flipped bits in the header of an event leave it."""
    made = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 10, 5, 1, 0).event(SEND, 100, (1, 5), 9)
    made.event(RECEIPT, 110, (1, 5), 0).event(SEND, 200, (2, 5), 0).event(RECEIPT, 210, (2, 5), 9)
    for time in range(300, 900):
        made.event(wire.code(6, 1), time)
    found = Statistics(made.open(tmp_path))
    assert found.trace.cpu_count == 2
    assert found.trace.events.cpu.max() == 9
    assert found.cpu_messages.count.tolist() == [[0, 0], [0, 0]]
    assert found.cpu_messages.unknown.tolist() == [1, 0]
