"""Lanes of events in traces that are read again, and in other traces."""

from __future__ import annotations

import numpy as np
import pytest

from satview.analysis.activities import Timing
from satview.answers.activity_lanes import ACTIVITIES, LATE, ActivityLanes
from satview.events import wire
from satview.events.user_events import parse_rules
from satview.events.wire import KER_64BIT, WireClass
from satview.session.filter_stack import FilterEvaluator, FilterState
from satview.session.lanes.lane_row import lane_keys
from satview.session.loading.loaded_trace import LoadedTrace, ShownState, prepared
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.session.trace_state import lanes_state, restore_lanes
from satview.timeline.finders import UserLanes
from satview.timeline.lane_tree import Timeline
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import rounds_of_a_loop

ALPHA, BETA = 2, 3


def trace_of(folder, pids, until=5_000):
    """Write processes that call a function each, one after the other."""
    folder.mkdir(exist_ok=True)
    made = TraceBuilder().time_event(0)
    for pid, name in pids.items():
        made.process_name(10 + pid, pid, f"usr/bin/{name}")
    for index, pid in enumerate(pids):
        time = 1_000 + index * 1_000
        made.state("RUNNING", time, pid, 1).event(wire.code(WireClass.SYSTEM, 10 | KER_64BIT), time + 10, (8, 0, 0, 0))
        made.event(wire.code(WireClass.SYSTEM, 11 | KER_64BIT), time + 500, (8, 0, 0, 0))
    return made.event(wire.code(WireClass.USER, 7), until, (3, 0)).open(folder)


@pytest.fixture
def opening(qapp):
    opened = []

    def run(trace):
        opened.append(OpenTrace(trace, Timeline(trace), Settings(None)))
        opened[-1].viewport.set_width(1_000)
        return opened[-1]

    yield run
    for each in opened:
        each.shut_down()


def test_a_longer_reading_has_the_lanes_that_showed(tmp_path):
    short = Timeline(trace_of(tmp_path / "a", {ALPHA: "alpha"}))
    short.describe_user_events(UserLanes(rules=parse_rules("7 counter")))
    short.show_classes(["functions", "user"])
    lane = next(iter(short.lanes_of_class("functions")))
    long = trace_of(tmp_path / "b", {ALPHA: "alpha", BETA: "beta"})
    shown = ShownState(short, (lane,), _state(long), FilterEvaluator(short.trace), "")
    reload = prepared(LoadedTrace.of(long), shown, lambda: False)
    timeline = reload.loaded.timeline
    assert timeline.known_classes == {"functions", "user"}
    assert timeline.infos[reload.moved[lane]].title == "functions"
    assert timeline.is_ready(reload.moved[lane])
    assert [info.title for info in timeline.infos if info.is_counter] == ["event 7"]


def _state(trace):
    return FilterState(np.ones(wire.CODE_COUNT, np.bool_), np.ones(len(trace.threads), np.bool_))


def test_a_session_finds_lanes_of_threads_by_name_in_another_trace(tmp_path, opening, qtbot):
    first = opening(trace_of(tmp_path / "a", {ALPHA: "alpha", BETA: "beta"}))
    first.lanes.show_classes(frozenset({"functions"}))
    qtbot.waitUntil(lambda: not first.class_loader.is_busy)
    of_beta = max(first.timeline.lanes_of_class("functions"))
    first.lanes.pin(of_beta)
    state = lanes_state(first.lanes)
    other = opening(trace_of(tmp_path / "b", {7: "gamma", 8: "beta"}))
    other.lanes.show_classes(frozenset({"functions"}))
    qtbot.waitUntil(lambda: not other.class_loader.is_busy)
    restore_lanes(other, state, is_same=False)
    assert [row.index for row in other.lanes.rows if row.is_pinned] == [max(other.timeline.lanes_of_class("functions"))]
    assert other.timeline.infos[other.lanes.rows[0].index].process == 2


def test_keys_of_lanes_are_all_different(tmp_path):
    timeline = Timeline(trace_of(tmp_path / "a", {ALPHA: "alpha", BETA: "beta"}))
    timeline.show_classes(["functions", "user", "calls", "paths"])
    keys = lane_keys(timeline)
    assert len(set(keys)) == len(keys)


def test_a_longer_reading_times_activities_as_before(tmp_path):
    """Round 10 of the first reading and round 20 of the longer one take 5,100 of the 5,000 ns that a file allows."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    short = Timeline(rounds_of_a_loop(15, (10,)).open(tmp_path / "a"))
    short.use_finder(ACTIVITIES, ActivityLanes({"control": Timing(deadline="5us")}))
    short.show_classes([ACTIVITIES])
    (lane,) = short.lanes_of_class(ACTIVITIES)
    long = rounds_of_a_loop(30, (10, 20)).open(tmp_path / "b")
    shown = ShownState(short, (lane,), _state(long), FilterEvaluator(short.trace), "")
    timeline = prepared(LoadedTrace.of(long), shown, lambda: False).loaded.timeline
    late = [
        np.count_nonzero(reading.infos[lane].track.content.value == LATE)
        for reading in (short, timeline)
        for lane in reading.lanes_of_class(ACTIVITIES)
    ]
    assert late == [1, 2]
