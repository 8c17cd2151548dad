"""Client and server time of scenes that a reader can add up, and damage that must not bill anybody too much."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from satview.__main__ import main
from satview.analysis.statistics import Statistics, _older
from satview.answers.statistics import TABLES
from satview.base.time import TimeWindow
from satview.events import wire
from satview.linkage.transactions import services
from tests.helpers.kev import START, TraceBuilder

SENDV, RECEIVEV = 11, 14
SEND, RECEIPT, REPLY = (wire.code(7, n) for n in (0, 2, 10))
A, B, C, D = 2, 3, 4, 5


class Scene(TraceBuilder):
    """Threads 1 of processes that send to one another; a rcvid is the pid of the client << 16 | 1."""

    def __init__(self) -> None:
        super().__init__()
        self.event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0)
        for pid in (A, B, C, D):
            self.state("RECEIVE" if pid > A else "READY", 1 + pid, pid, 1)

    def run(self, pid: int, time: int) -> Scene:
        self.state("RUNNING", time, pid, 1)
        return self

    def send(self, client: int, server: int, time: int, state: str = "REPLY") -> Scene:
        self.event(SEND, time - 1, (client << 16 | 1, server)).state(state, time, client, 1)
        return self

    def receive(self, client: int, server: int, time: int) -> Scene:
        self.event(RECEIPT, time, (client << 16 | 1, server))
        return self

    def reply(self, client: int, time: int) -> Scene:
        self.event(REPLY, time, (1, client)).state("READY", time, client, 1)
        return self


def chain() -> Scene:
    """A runs 2 units, B 10, C 2, as A sends to B and B to C: the vendor's example, a unit is 1,000 cycles."""
    made = Scene().run(A, 1_000).send(A, B, 2_000).run(B, 2_000).receive(A, B, 2_010)
    made.send(B, C, 7_000).run(C, 7_000).receive(B, C, 7_010).reply(B, 8_999).state("RECEIVE", 9_000, C, 1)
    made.run(B, 9_000).reply(A, 13_999).state("RECEIVE", 14_000, B, 1)
    return made.run(A, 14_000).state("NANOSLEEP", 15_000, A, 1).state("NANOSLEEP", 16_000, A, 1)


def reported(trace, window=None):
    """Return {pid: (self, imposed, own, caused)} of the threads, and {(client, server): cycles}."""
    found = Statistics(trace, window).client_server
    pid = trace.threads.pid
    columns = (found.self_cycles, found.imposed_cycles, found.own_cycles, found.caused_cycles)
    assert found.bill_cycles.sum() == found.self_cycles.sum(), "the bill adds up"
    imposed = {(int(pid[client]), int(pid[server])): int(cycles) for client, server, cycles in
               zip(found.imposed.client, found.imposed.server, found.imposed.cycles, strict=True)}  # fmt: skip
    return {int(pid[i]): tuple(int(column[i]) for column in columns) for i in range(1, len(pid))}, imposed


def test_the_example_of_the_vendor(tmp_path):
    threads, imposed = reported(chain().open(tmp_path))
    # C replies a cycle before it blocks, and so does B: that much they run for themselves.
    assert threads[A] == (2_000, 11_998, 2_000, 11_998)
    assert threads[B] == (10_000, 1_999, 1, 0)
    assert threads[C] == (2_000, 0, 1, 0)
    assert imposed == {(A, B): 9_999, (A, C): 1_999, (B, C): 1_999}


def test_a_range_cuts_it(tmp_path):
    threads, imposed = reported(chain().open(tmp_path), TimeWindow(START + 6_000, START + 7_500))
    assert imposed == {(A, B): 1_000, (A, C): 500, (B, C): 500}
    assert (threads[A], threads[B], threads[C]) == ((0, 1_500, 0, 1_500), (1_000, 500, 0, 0), (500, 0, 0, 0))


def test_a_server_with_two_clients_counts_for_both_and_is_billed_to_the_newest(tmp_path):
    """B keeps the message of A while it works for D, answers D, works on for A, answers A, works for itself."""
    made = Scene().run(A, 1_000).send(A, B, 2_000).run(B, 2_000).receive(A, B, 2_010)
    made.state("READY", 3_000, B, 1).run(D, 3_000).send(D, B, 4_000, "SEND").run(B, 4_000)
    made.receive(D, B, 5_000).reply(D, 8_000).reply(A, 10_000).state("RECEIVE", 11_000, B, 1)
    made.state("READY", 11_001, D, 1)
    threads, imposed = reported(made.open(tmp_path))
    assert imposed == {(A, B): 1_000 + 6_000, (D, B): 3_000}
    assert threads[A][3] == 1_000 + 1_000 + 2_000  # from the send to when D runs, to D's receipt, and after D's reply
    assert threads[D][3] == 3_000
    assert threads[B] == (8_000, 0, 1_000, 0)


def test_a_client_that_stops_waiting_is_not_billed_on(tmp_path):
    made = Scene().run(A, 1_000).send(A, B, 2_000).run(B, 2_000).receive(A, B, 2_010)
    made.state("READY", 5_000, A, 1).state("RECEIVE", 9_000, B, 1).state("READY", 9_001, B, 1)
    threads, imposed = reported(made.open(tmp_path))
    assert imposed == {(A, B): 3_000}
    assert threads[B] == (7_000, 0, 4_000, 0)


def test_a_thread_with_the_number_of_a_dead_server_serves_nobody(tmp_path):
    made = Scene().run(A, 1_000).send(A, B, 2_000).run(B, 2_000).receive(A, B, 2_010)
    made.event(wire.THREAD_DESTROY, 3_000, (B, 1)).event(wire.THREAD_CREATE, 4_000, (B, 1)).run(B, 5_000)
    made.state("RECEIVE", 9_000, B, 1).state("READY", 9_001, B, 1)
    assert reported(made.open(tmp_path))[1] == {(A, B): 1_000}


def test_servers_that_seem_to_serve_each_other_bill_each_run_once(tmp_path):
    """No kernel does this: B and C run on, though each waits for the other to answer, and A for B."""
    made = TraceBuilder(cpus=3).time_event(0)
    for cpu, pid in enumerate((A, B, C)):
        made.state("RUNNING", 10 + cpu, pid, 1, cpu)
    for time, client, server in ((1_000, A, B), (2_000, B, C), (3_000, C, B)):
        made.event(SEND, time, (client << 16 | 1, server), client - A)
        made.event(RECEIPT, time + 1, (client << 16 | 1, server), server - A)
    made.event(wire.code(6, 1), 9_999)
    threads, imposed = reported(made.open(tmp_path))
    assert imposed == {(A, B): 8_999, (A, C): 7_999, (B, C): 7_999, (C, B): 6_999}
    assert sum(own + caused for _, _, own, caused in threads.values()) == 3 * 10_000 - 33


def test_a_client_has_one_message_under_way(tmp_path):
    """Without changes of state and a reply, the next send shows that the one before is over."""
    made = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 10, A, 1, 0).state("RUNNING", 11, B, 1, 1)
    for time in (1_000, 3_000):
        made.event(SEND, time, (A << 16 | 1, B), 0).event(RECEIPT, time + 1, (A << 16 | 1, B), 1)
    trace = made.event(wire.code(6, 1), 9_999).open(tmp_path)
    assert (services(trace).end - START).tolist() == [3_000, 10_000]
    assert reported(trace)[1] == {(A, B): 10_000 - 1_001 - 1}


def test_nothing_is_billed_beyond_lost_events(tmp_path):
    """The reply may be among what is missing."""
    whole = services(chain().open(tmp_path))
    assert (whole.end - START).tolist() == [13_999, 8_999]
    builder = Scene().run(A, 1_000).send(A, B, 2_000).run(B, 2_000).receive(A, B, 2_010)
    builder.event(wire.code(6, 1), 4_000).event(wire.CONTROL_BUFFER, 8_999, (3, 0)).time_event(8_999)
    builder.state("RECEIVE", 9_000, B, 1).state("READY", 9_001, B, 1)
    threads, imposed = reported(builder.open(tmp_path))
    assert imposed == {(A, B): 2_000}
    assert threads[B][0] == 2_001  # to just after the last event before the loss


@pytest.mark.parametrize(("last", "expected"), [
    ([5, 4, 3, 2, 6], [-1, 0, 1, 2, -1]), ([9, 1, 2, 3, 4], [-1, 0, 0, 0, 0]), ([3, 3, 3], [-1, -1, -1]), ([], []),
])  # fmt: skip
def test_the_newest_message_that_is_answered_later(last, expected):
    assert _older(np.zeros(len(last), np.int64), np.array(last, np.int64)).tolist() == expected


def test_messages_of_other_servers_do_not_count_as_older():
    assert _older(np.array([1, 1, 2, 2]), np.array([9, 9, 5, 4])).tolist() == [-1, -1, -1, 2]


def test_the_table_and_its_columns_per_server(tmp_path, capsys):
    path = str(chain().write(tmp_path / "chain.kev"))
    assert main(["stats", path, "--by", "client-server", "--per-server", "--format", "csv"]) == 0
    rows = {row["pid"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert (rows["2"]["self_ns"], rows["2"]["imposed_ns"], rows["2"]["total_ns"]) == ("2000", "11998", "13998")
    assert (rows["2"]["imposed_on_3_1_ns"], rows["2"]["imposed_on_4_1_ns"]) == ("9999", "1999")
    assert rows["3"]["imposed_on_3_1_ns"] == "0"
    assert rows["2"]["most_on"] == rows["3"]["thread"]
    assert main(["stats", path, "--by", "client-server", "--format", "json"]) == 0
    [first, *_] = json.loads(capsys.readouterr().out)["client-server"]
    assert (first["bill_ns"], first["bill_share"]) == (13_998, round(13_998 / 14_000, 6))
    assert not any(key.startswith("imposed_on_") for key in first)


def test_columns_per_server_are_those_of_client_and_server(tmp_path, capsys):
    path = str(chain().write(tmp_path / "chain.kev"))
    assert main(["stats", path, "--by", "thread", "--per-server"]) == 2
    assert "--by client-server" in capsys.readouterr().err


def test_without_messages_the_table_says_what_to_capture(tmp_path):
    made = Scene().run(A, 1_000).state("READY", 2_000, A, 1).state("READY", 2_001, A, 1)
    table = TABLES["client-server"](Statistics(made.open(tmp_path)), None)
    assert table.question.note.endswith("capture the class COMM.")
    assert table.records()[0]["own_ns"] == 1_000
