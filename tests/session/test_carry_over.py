from __future__ import annotations

from satview.base.time import TimeWindow
from satview.session.carry_over import carry_over, event_of_slot
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.session.viewport import Viewport
from satview.timeline.lane_tree import Timeline
from tests.helpers.kev import TraceBuilder


def early():
    return TraceBuilder(cpus=2).time_event(0).state("RUNNING", 100, 5, 1).state("RECEIVE", 900, 5, 1)


def test_event_is_found_again_when_older_ones_come_late(tmp_path):
    old = early().open(tmp_path)
    # Another CPU's buffer is written later but is earlier in time: rows behind it move.
    late = early().state("RUNNING", 300, 6, 1, cpu=1).state("RECEIVE", 400, 6, 1, cpu=1)
    new = late.open(tmp_path)
    event = len(old.events) - 1
    found = event_of_slot(new, old, event)
    assert found == event + 2
    assert new.events.time_cycles[found] == old.events.time_cycles[event]
    assert new.events.code[found] == old.events.code[event]
    assert event_of_slot(new, old, 0) == 0
    assert event_of_slot(old, new, 3) is None or old.events.slot[event_of_slot(old, new, 3)] == new.events.slot[3]


def test_hidden_thread_stays_hidden_when_another_takes_its_row(qapp, tmp_path):
    settings = Settings(None)
    trace = early().open(tmp_path)
    old = OpenTrace(trace, Timeline(trace), settings)
    old.filters.show_threads([trace.threads.row(5, 1)], False)
    longer = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 50, 3, 1)
    longer.state("RUNNING", 100, 5, 1).state("RECEIVE", 900, 5, 1)
    now = longer.open(tmp_path)
    new = OpenTrace(now, Timeline(now), settings)
    carry_over(old, new, is_at_end=True)
    hidden = [(int(now.threads.pid[row]), int(now.threads.tid[row])) for row in (~new.filters.threads).nonzero()[0]]
    assert hidden == [(5, 1)]
    for opened in (old, new):
        opened.shut_down()


def test_short_window_at_the_end_is_not_filled_with_air(qapp):
    old = Viewport(TimeWindow(-5_000, 1_005_000), None, 1_000_000)
    old.set_width(1_000)
    old.jump(TimeWindow(999_000, 1_000_010))
    assert old.is_at_end
    new = Viewport(TimeWindow(-10_000, 2_010_000), None, 2_000_000)
    new.resume(old, is_at_end=True)
    assert new.window.length == 1_010
    assert new.window.end == 2_000_020
    assert new.is_at_end
    assert not new.is_whole
    new.back()
    assert new.window.length == 1_010_000
    assert abs(new.window.start + 5_000) <= 1_010  # a pixel


def test_window_stays_when_it_is_not_at_the_end(qapp):
    old = Viewport(TimeWindow(0, 1_000), None, 1_000)
    old.jump(TimeWindow(200, 300))
    new = Viewport(TimeWindow(0, 5_000), None, 5_000)
    new.resume(old, is_at_end=False)
    assert new.window == TimeWindow(200, 300)
    assert not new.is_at_end
    new.go_to_end()
    assert new.is_at_end
    assert new.window.length == 100
