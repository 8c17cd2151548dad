"""Several files on one axis: every row and column of every table of links is that of its file, moved to the axis."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from satview.events import wire
from satview.events.spec import Release
from satview.formats.axis import Member, trace_on_axis
from satview.linkage.blockers import blockers
from satview.linkage.calls import beginnings, partners
from satview.linkage.latencies import latencies
from satview.linkage.links import NO_EVENT, OPEN, is_whole
from satview.linkage.transactions import services, transactions
from satview.linkage.waits import mutexes, state_ends, waits
from satview.store.axis import files_of
from tests.analysis.test_client_server import A, B, Scene, chain
from tests.capture import mishaps
from tests.capture.made import WIDE, traced
from tests.helpers.kev import START, TraceBuilder

AXIS_RATE, SLOW_RATE = 1_000_000_000, 300_000_000
ROWS = {"row", "end_row", "first_row", "call_row", "send_row", "receive_row", "reply_row", "blocked_row", "over_row",
        "done_row", "cause_row", "handler_row", "handler_exit_row", "pulse_row", "ready_row", "running_row",
        "received_row"}  # fmt: skip
THREADS, PIDS, MOMENTS = {"thread", "client", "server"}, {"pid", "server_pid", "client_pid"}, {"start", "end"}
LENGTHS = {"queued_cycles", "service_cycles", "reply_cycles", "round_trip_cycles", "handler_entry_cycles",
           "handler_cycles", "delivery_cycles", "ready_cycles", "scheduling_cycles", "receipt_cycles",
           "total_cycles"}  # fmt: skip
SAME = {"value", "end_value", "call", "object", "has_object", "certainty", "message_type", "number"}
TABLES = {
    "waits": (waits, ("thread", "row")), "blockers": (blockers, None), "services": (services, ("client", "start")),
    "transactions": (transactions, ("send_row",)), "latencies": (latencies, ("first_row", "ready_row", "pulse_row")),
}  # fmt: skip


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A system in which everything goes wrong, of 7.x, and of 8.0 by a clock of 300 MHz that begins 5 ms later."""
    files = []
    for release in (Release.QNX_7, Release.QNX_8):
        folder = tmp_path_factory.mktemp("joined")
        files.append(traced(mishaps.setup, mishaps.DURATION_MS, folder, release, 1, 5, WIDE).trace)
    object.__setattr__(files[1], "clock", type(files[1].clock)(SLOW_RATE, files[1].clock.start_cycles))
    object.__setattr__(files[0], "clock", type(files[0].clock)(AXIS_RATE, files[0].clock.start_cycles))
    return trace_on_axis(folder / "x.sataxis", [Member("host", files[0]), Member("guest", files[1], 5_000_000_000)])


def on_axis(part, name, value):
    """Return a value of a column of a file's table as the axis must have it."""
    rate = part.trace.clock.cycles_per_s
    if name in ROWS:
        return value if value < 0 or value in (NO_EVENT, OPEN) else int(part.rows[value])
    if name in THREADS:
        return value if value < 0 else int(part.threads[value])
    if name in PIDS:
        process = part.trace.processes.row(value)
        return int(part.pids[process]) if process and value >= 0 else value
    if name in MOMENTS:
        return (value - part.origin_cycles) * AXIS_RATE // rate + part.at_cycles
    if name in LENGTHS:
        return value if value < 0 else value * AXIS_RATE // rate
    assert name in SAME, name
    return value


def columns(table, names):
    return list(zip(*(getattr(table, name).tolist() for name in names), strict=True))


@pytest.mark.parametrize("kind", TABLES)
def test_every_column_is_that_of_its_file(kind, both):
    table_of, order = TABLES[kind]
    joined, expected, sends = table_of(both), [], transactions(both).send_row
    references = {"parent", "transaction"}  # rows of the table of transactions: compared by their messages
    names = [field.name for field in fields(joined) if field.name not in {*references, "waits"}]
    reference = next((field.name for field in fields(joined) if field.name in references), None)
    for part in files_of(both).parts:
        own, own_sends = table_of(part.trace), transactions(part.trace).send_row
        assert len(own), part.name
        for i, row in enumerate(columns(own, names)):
            values = tuple(on_axis(part, name, value) for name, value in zip(names, row, strict=True))
            other = -1 if reference is None else int(getattr(own, reference)[i])
            expected.append((*values, int(part.rows[own_sends[other]]) if other >= 0 else -1))
    others = np.full(len(joined), -1) if reference is None else getattr(joined, reference)
    found = [(*row, int(sends[other]) if other >= 0 else -1)
             for row, other in zip(columns(joined, names), others.tolist(), strict=True)]  # fmt: skip
    if order is None:
        assert found == expected
    else:
        assert sorted(found) == sorted(expected)
        keys = columns(joined, order)
        assert keys == sorted(keys)


def test_waits_of_blockers_are_those_of_the_axis(both):
    assert len(blockers(both).waits) == len(waits(both)) == len(blockers(both)) > 20
    for field in fields(waits(both)):
        assert getattr(blockers(both).waits, field.name).tolist() == getattr(waits(both), field.name).tolist()


def test_columns_over_all_events(both):
    for column_of in (partners, state_ends):
        expected = [NO_EVENT] * len(both.events)
        for part in files_of(both).parts:
            for row, value in zip(part.rows.tolist(), column_of(part.trace).tolist(), strict=True):
                expected[row] = on_axis(part, "row", value)
        assert column_of(both).tolist() == expected
    parts = files_of(both).parts
    rows = sorted(int(part.rows[row]) for part in parts for row in beginnings(part.trace).tolist())
    assert beginnings(both).tolist() == rows


def test_mutexes_of_two_files_have_different_numbers(both):
    """Calls by row, those of the same mutex of a file with one number that no mutex of the other file has."""
    joined, number_of, parts = mutexes(both), {}, files_of(both).parts
    calls = {"gets": [], "gives": []}
    of_wait = []
    for part in parts:
        own = mutexes(part.trace)
        for name, rows in calls.items():
            rows += [(on_axis(part, "row", row), on_axis(part, "thread", thread), (part.name, mutex))
                     for row, thread, mutex in columns(getattr(own, name), ("row", "thread", "mutex"))]  # fmt: skip
        of_wait += [(part.name, mutex) for mutex in own.of_wait.tolist()]
    pairs = list(zip(of_wait, joined.of_wait.tolist(), strict=True))
    for name, rows in calls.items():
        found = columns(getattr(joined, name), ("row", "thread", "mutex"))
        assert [row[:2] for row in found] == [row[:2] for row in sorted(rows)]
        pairs += [(own[2], row[2]) for own, row in zip(sorted(rows), found, strict=True)]
    for own, number in pairs:
        assert (own[1] < 0) == (number < 0)
        if number >= 0:
            assert number_of.setdefault(own, number) == number
    assert len(set(number_of.values())) == len(number_of) >= 2
    assert {name for name, _ in number_of} == {"host", "guest"}


def test_nothing_is_whole_from_one_file_to_another(both):
    rows = [part.rows[:2] for part in files_of(both).parts]
    first, last = np.array([rows[0][0], rows[1][0], rows[0][0]]), np.array([rows[0][1], rows[1][1], rows[1][0]])
    assert is_whole(both, first, last).tolist() == [True, True, False]


def test_a_message_within_another_one_is_within_that_of_its_file(tmp_path):
    """A sends to B, which sends to C on its behalf; the other file does the same 1 us later, in between."""
    traces = []
    for name in ("host", "guest"):
        (tmp_path / name).mkdir()
        traces.append(chain().open(tmp_path / name))
    joined = trace_on_axis(tmp_path / "x", [Member("host", traces[0]), Member("guest", traces[1], 1_000_000)])
    sent, served = transactions(joined), services(joined)
    assert transactions(traces[0]).parent.tolist() == [-1, 0]
    assert (np.diff(joined.events.time_cycles[sent.send_row])).tolist() == [1000, 4000, 1000]
    assert sent.parent.tolist() == [-1, -1, 0, 1]
    assert served.transaction.tolist() == [0, 2, 1, 3]
    assert sent.client[served.transaction].tolist() == served.client.tolist()


def test_what_one_file_lost_ends_no_service_of_the_other(tmp_path):
    """B serves A from 2,000 on, until its file ends at 30,000; the other file has no events from 10,000 to 20,000."""
    host = Scene().run(A, 1_000).send(A, B, 2_000).run(B, 2_000).receive(A, B, 2_010).event(wire.code(6, 1), 30_000)
    guest = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("RUNNING", 10_000, 5, 1)
    guest.event(wire.CONTROL_BUFFER, 20_000, (3, 0)).time_event(20_000).event(wire.code(6, 1), 40_000)
    traces = []
    for name, builder in (("host", host), ("guest", guest)):
        (tmp_path / name).mkdir()
        traces.append(builder.open(tmp_path / name))
    joined = trace_on_axis(tmp_path / "x", [Member("host", traces[0]), Member("guest", traces[1])])
    for trace in (traces[0], joined):
        served = services(trace)
        assert (served.start - START).tolist() == [1_999]
        assert (served.end - START).tolist() == [30_001]
