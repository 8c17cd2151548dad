"""What is written into intervals: priorities with what is inherited, CPUs, partners, calls, partitions."""

from __future__ import annotations

import numpy as np
import pytest

from satview.events import wire
from satview.session.lanes.label_source import IntervalLabels, priority_text
from satview.session.lanes.lane_arrangement import Label
from tests.helpers.kev import TraceBuilder

CLIENT, SERVER = 2, 3
MSG_SENDV, SCHED_SET = 11, 89
UP = "\N{UPWARDS ARROW}"


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A client of priority 20 sends to a server of its own priority 10, which then sets itself to 12."""
    builder = TraceBuilder(cpus=2).time_event(0)
    builder.process_name(10, CLIENT, "usr/bin/client").process_name(20, SERVER, "usr/bin/server")
    builder.event(wire.code(wire.WireClass.SYSTEM, 3), 30, (1, int.from_bytes(b"car\0", "little")))
    builder.state("RECEIVE", 100, SERVER, 1, 1, (10, 2, 1, 0))
    builder.state("RUNNING", 200, CLIENT, 1, 0, (20, 2, 1, 0))
    builder.call(MSG_SENDV, 300, (0x40000001, 0))
    builder.event(wire.code(wire.WireClass.COMM, 0), 310, (0x10001, SERVER))
    builder.state("REPLY", 400, CLIENT, 1, 0, (20, 2, 1, 0))
    builder.state("RUNNING", 401, SERVER, 1, 1, (20, 2, 1, 0))
    builder.event(wire.code(wire.WireClass.COMM, 2), 410, (0x10001, SERVER), 1)
    builder.call(SCHED_SET, 500, (0, 12), 1)
    builder.state("READY", 510, SERVER, 1, 1, (12, 2, 1, 0))
    builder.state("RUNNING", 600, SERVER, 1, 1, (12, 2, 1, 0))
    return builder.open(tmp_path_factory.mktemp("labels"))


def row_of(trace, time):
    return int(np.flatnonzero(trace.events.time_cycles == trace.events.time_cycles[0] + time)[0])


def texts(trace, time, *labels):
    source = IntervalLabels(trace)
    source.make_ready(labels)
    return source.texts([row_of(trace, time)], frozenset(labels))[0]


@pytest.mark.parametrize(
    ("time", "says"),
    [
        (100, "p10"),
        (200, "p20"),
        (401, f"p20{UP}10"),  # from the client
        (510, "p12"),  # it has set that itself
        (600, "p12"),
    ],
)
def test_priority_and_what_is_inherited(trace, time, says):
    assert texts(trace, time, Label.PRIORITY) == (says,)


def test_partner_call_cpu_and_partition(trace):
    everything = tuple(Label)
    assert texts(trace, 400, *everything) == (
        "p20", "\N{RIGHTWARDS ARROW} server 1", "MSG_SENDV", "car"
    )  # fmt: skip
    assert texts(trace, 401, *everything) == (f"p20{UP}10", "CPU 1", "car")
    assert texts(trace, 510, Label.CALL) == ()  # it is in SCHED_SET, but does not wait there


def test_labels_that_are_not_ready_are_left_out(trace):
    source = IntervalLabels(trace)
    requested = frozenset({Label.STATE, Label.CPU, Label.PRIORITY})
    assert source.needs(requested) == {Label.PRIORITY}
    assert source.texts([row_of(trace, 401)], requested) == [("CPU 1",)]


def test_intervals_that_no_event_begins_have_no_labels(trace):
    source = IntervalLabels(trace)
    source.make_ready(Label)
    assert source.texts([2**32 - 1], frozenset(Label)) == [()]


def test_fast_events_log_no_priority(tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, CLIENT, 1).state("READY", 20, CLIENT, 1)
    trace = builder.open(tmp_path)
    assert texts(trace, 10, Label.PRIORITY, Label.PARTITION) == ()


def test_priority_lowered_below_its_own_is_not_inherited():
    assert priority_text(8, 10) == "p8"
    assert priority_text(-1, 10) == ""
