from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from satview.base.time import TimeWindow
from satview.events import wire
from satview.formats.axis import Member, trace_on_axis
from satview.session.lanes.class_loader import busy_lanes, event_near, silent_cpus
from satview.timeline.event_marks import belongs, marks
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.spans import pixel_edges
from tests.helpers.kev import TraceBuilder

ALL = np.ones(32768, np.bool_)
ALL.setflags(write=False)


@pytest.mark.parametrize("lane", range(6))
def test_what_is_on_a_lane_is_what_the_timeline_says(opened, lane):
    rows = np.arange(len(opened.trace.events))
    mine = rows[belongs(opened.trace, opened.timeline.infos[lane], rows)]
    assert mine.tolist() == opened.timeline.events_of(lane).tolist()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(0, 20_000), length=st.integers(1, 20_000))
def test_busy_lanes_are_those_with_events_in_the_window(opened, start, length):
    window = TimeWindow(opened.trace.clock.cycles(start), opened.trace.clock.cycles(start + length))
    times = opened.trace.events.time_cycles
    expected = {
        info.index
        for info in opened.timeline.infos
        if any(window.contains(int(times[row])) for row in opened.timeline.events_of(info.index))
    }
    assert busy_lanes(opened.timeline, window) == expected


def test_nearest_event_of_a_lane(opened, ns):
    times = opened.trace.events.time_cycles
    found = event_near(opened.timeline, 3, ns(2_100), 500, ALL)
    assert int(times[found]) == ns(2_000)
    assert event_near(opened.timeline, 3, ns(2_900), 500, ALL) is None
    hidden = ALL.copy()
    hidden[opened.trace.events.code[found]] = False
    assert event_near(opened.timeline, 3, ns(2_100), 500, hidden) is None


def test_marks_are_in_their_pixel_on_their_lanes(opened, ns):
    event = int(np.searchsorted(opened.trace.events.time_cycles, ns(5_000)))  # user event of the server
    window = TimeWindow(ns(0), ns(20_000))
    infos = [opened.timeline.infos[lane] for lane in (0, 3, 5)]
    found = marks(opened.trace, infos, np.array([event], np.uint32), pixel_edges(window, 20))
    assert np.argwhere(found).tolist() == [[0, 5], [2, 5]]


def test_interrupts_are_marked_on_their_own_lane_only(qapp, tmp_path):
    """One CPU: a thread runs, an interrupt comes at 2,000 and ends at 2,400, a user event follows at 3,000.

    All are events of the CPU and of the thread that runs.
    """
    builder = TraceBuilder().time_event(0).state("RUNNING", 1_000, 2, 1)
    builder.event(wire.code(wire.WireClass.INT, 1), 2_000, (5, 0)).event(
        wire.code(wire.WireClass.INT, 2), 2_400, (5, 0)
    )
    timeline = Timeline(builder.event(wire.code(wire.WireClass.USER, 1), 3_000).open(tmp_path))
    lane = next(info.index for info in timeline.infos if info.kind is LaneKind.INTERRUPTS)
    rows = np.arange(len(timeline.trace.events))
    mine = rows[belongs(timeline.trace, timeline.infos[lane], rows)]
    assert mine.tolist() == timeline.events_of(lane).tolist()
    assert len(mine) == 2
    start = timeline.trace.clock.start_cycles
    edges = pixel_edges(TimeWindow(start, start + 4_000), 10)
    interrupts = rows[belongs(timeline.trace, timeline.infos[lane], rows)].astype(np.uint32)
    user = rows[timeline.trace.events.time_cycles == start + 3_000].astype(np.uint32)
    infos = [timeline.infos[lane], timeline.infos[0]]
    infos += [info for info in timeline.infos if timeline.trace.processes.pid[info.process] == 2]
    assert [info.kind for info in infos[1:]] == [LaneKind.CPU, LaneKind.PROCESS, LaneKind.THREAD]
    found = marks(timeline.trace, infos, np.concatenate((interrupts, user)), edges)
    assert [np.flatnonzero(lane_marks).tolist() for lane_marks in found] == [[5, 6], [7], [7], [7]]
    assert np.isin(interrupts, timeline.events_of(0)).all()
    assert event_near(timeline, lane, start + 2_010, 50, ALL) == interrupts[0]
    assert event_near(timeline, 0, start + 2_010, 50, ALL) is None
    assert lane in busy_lanes(timeline, TimeWindow(start + 1_900, start + 2_100))
    assert lane not in busy_lanes(timeline, TimeWindow(start + 2_900, start + 3_100))


def test_cpus_of_an_axis_are_told_apart_and_counted(tmp_path):
    """Two files of 60 CPUs each, of which the first and the last one log: CPUs 0 and 59, 60 and 119 of the axis."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    builder = TraceBuilder(cpus=60).time_event(0).time_event(0, cpu=59)
    builder.state("RUNNING", 1_000, 2, 1).state("RUNNING", 2_000, 3, 1, cpu=59)
    both = [Member(name, builder.open(tmp_path / name)) for name in "ab"]
    timeline = Timeline(trace_on_axis(tmp_path / "x.sataxis", both))
    cpus = {info.index: info.cpu for info in timeline.infos if info.kind is LaneKind.CPU}
    assert sorted(cpus.values()) == list(range(120))
    silent = silent_cpus(timeline)
    assert [cpu for lane, cpu in cpus.items() if lane not in silent] == [0, 59, 60, 119]
