"""Colours of processes: by name in every trace, and none of their own for those that used little."""

from __future__ import annotations

import numpy as np
import pytest

from satview.analysis.statistics import Statistics
from satview.capture.run import Capture, run
from satview.events.states import FIRST_PROCESS, QUIET_PROCESS, process_value
from satview.formats.axis import Member, trace_on_axis
from satview.formats.kev.reader import open_kev
from satview.timeline.lane_tree import LaneKind, Timeline, add_lanes, lanes_of
from satview.timeline.state_lanes import name_values
from tests.helpers.kev import TraceBuilder
from tests.timeline.test_cpu_kinds import SAMPLE


def built(path) -> Timeline:
    timeline = Timeline(open_kev(path))
    timeline.build(timeline.cpu_lanes)
    return timeline


def short_names(timeline: Timeline) -> list[str]:
    return [name.rpartition("/")[2] for name in timeline.trace.processes.names]


def values_of(timeline: Timeline) -> dict[str, int]:
    return {name: timeline.process_value(row) for row, name in enumerate(short_names(timeline)) if row}


@pytest.fixture(scope="module")
def dense() -> Timeline:
    return built(SAMPLE)


def test_only_busy_processes_have_colours(dense):
    """Those with a fiftieth of the time that all used: by the statistics, which add it up on another way."""
    used = Statistics(dense.trace).processes.cpu_cycles
    values = values_of(dense)
    busy = {name for row, name in enumerate(short_names(dense)) if row and used[row] >= used.sum() / 50}
    assert busy == {"map_update", "sensor_fusion", "planner", "hmi"}
    assert {name for name, value in values.items() if value != QUIET_PROCESS} == busy
    assert all(values[name] == process_value(name) for name in busy)
    assert len({values[name] for name in busy}) == 4


def test_intervals_have_the_colour_of_their_process(dense):
    spans = dense.lane(0).spans
    assert dense.infos[0].kind is LaneKind.CPU
    runs = np.flatnonzero(spans.value >= FIRST_PROCESS)
    processes = dense.trace.threads.process[spans.thread[runs]]
    assert spans.value[runs].tolist() == [dense.process_value(row) for row in processes.tolist()]


def test_lanes_of_a_cache_say_which_are_quiet(dense):
    other = Timeline(dense.trace)
    assert QUIET_PROCESS not in values_of(other).values()
    add_lanes(other, *lanes_of(dense, dense.cpu_lanes))
    assert values_of(other) == values_of(dense)


@pytest.mark.parametrize("name", ["client", "/usr/bin/client", "proc/boot/client"])
def test_paths_do_not_count(name):
    assert process_value(name) == process_value("client")


@pytest.mark.thorough
def test_a_process_has_the_same_colour_in_two_captures(dense, tmp_path):
    """Another release, and other CPUs: the process is elsewhere in the table of processes, its colour stays."""
    run(Capture("automotive", release="6.x", cpus=2, duration_ns=300_000_000), path := tmp_path / "other.kev")
    first, second = values_of(dense), values_of(built(path))
    assert {"map_update", "sensor_fusion"} <= {name for name, value in second.items() if value != QUIET_PROCESS}
    for name in first.keys() & second.keys():
        assert QUIET_PROCESS in (first[name], second[name]) or first[name] == second[name]


def test_the_name_of_a_file_on_an_axis_does_not_count(tmp_path):
    """Of a program by its path, a task whose last part is a number, and a process without a name."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "usr/sbin/io-pkt").process_name(2, 8, "kworker/1")
    trace = builder.state("RUNNING", 10, 7, 1).state("RUNNING", 20, 8, 1).state("RUNNING", 30, 9, 1).open(tmp_path)
    both = trace_on_axis(tmp_path / "x.sataxis", [Member("host", trace), Member("guest", trace)])
    expected = [process_value(name) for name in ("io-pkt", "kworker/1", "9")]
    assert [name_values(trace)[trace.processes.row(pid)] for pid in (7, 8, 9)] == expected
    assert [name_values(both)[both.processes.row(pid)] for pid in (7, 8, 9, 17, 18, 19)] == expected * 2


def test_lanes_of_an_axis_have_the_colours_of_the_processes_of_the_axis(dense, tmp_path):
    """Beside another target that works more, a process of a quiet target has no colour, on its own CPUs either."""
    path = tmp_path / "few.kev"
    builder = TraceBuilder().time_event(0)
    builder.process_name(10, 7, "bin/seldom").process_name(20, 8, "bin/idler")
    for round_cycles in range(1_000, 1_000_000, 100_000):
        builder.state("RUNNING", round_cycles, 7, 1).state("NANOSLEEP", round_cycles + 1_000, 7, 1)
    few = open_kev(builder.write(path))
    alone = Timeline(few)
    alone.build(alone.cpu_lanes)
    assert values_of(alone)["seldom"] == process_value("seldom")
    axis = Timeline(trace_on_axis(tmp_path / "x.sataxis", [Member("car", dense.trace), Member("few", few)]))
    axis.build(axis.cpu_lanes)
    assert values_of(axis)["few:seldom"] == QUIET_PROCESS
    for info in axis.infos:
        if info.kind is LaneKind.CPU:
            spans = axis.lane(info.index).spans
            runs = np.flatnonzero(spans.value >= FIRST_PROCESS)
            assert len(runs)
            processes = axis.trace.threads.process[spans.thread[runs]]
            assert spans.value[runs].tolist() == [axis.process_value(row) for row in processes.tolist()]
