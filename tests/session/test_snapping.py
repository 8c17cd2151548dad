"""Where cursors and ranges snap to. The scene has 1 cycle = 1 ns; the client's lane changes at 4,000 and 8,001."""

from __future__ import annotations

import pytest

from satview.base.time import TimeWindow
from satview.session.navigation import Moved, snapped
from satview.store.mark_file import Mark

CLIENT_1, SERVER_1 = 3, 5


@pytest.fixture
def at(opened):
    for lane in (CLIENT_1, SERVER_1):
        opened.timeline.lane(lane)  # drawn: the mouse does not wait for lanes
    return opened.trace.clock.cycles


def test_edges_of_the_lane_under_the_mouse(opened, at):
    assert snapped(opened, at(4_090), 100, CLIENT_1) == at(4_000)
    assert snapped(opened, at(3_950), 100, CLIENT_1) == at(4_000)
    assert snapped(opened, at(4_200), 100, CLIENT_1) == at(4_200)  # nothing within 100 cycles


def test_a_lane_that_is_not_made_yet_has_no_edges(opened):
    moment = opened.trace.clock.cycles(4_090)
    assert not opened.timeline.is_ready(CLIENT_1)
    assert snapped(opened, moment, 100, CLIENT_1) == moment


def test_events_of_the_lane_under_the_mouse(opened, at):
    assert snapped(opened, at(5_060), 100, SERVER_1) == at(5_000)  # EVENT 7, amid RUNNING
    assert snapped(opened, at(5_060), 100, CLIENT_1) == at(5_060)  # which the client did not log
    assert snapped(opened, at(8_990), 100, CLIENT_1) == at(9_000)  # exit of MSG_SENDV


def test_the_ruler_snaps_to_the_events_of_all_lanes_that_show(opened, at):
    assert snapped(opened, at(5_060), 100) == at(5_000)
    code = int(opened.trace.events.code[opened.trace.events.time_cycles == at(5_000)][0])
    opened.filters.show_codes([code], False, "hide this kind of event")
    assert snapped(opened, at(5_060), 100) == at(5_060)


def test_marks_and_cursors_come_before_what_is_nearer(opened, at):
    opened.marks.add(Mark(at(3_900), at(3_900), "", True))
    assert snapped(opened, at(3_970), 100, CLIENT_1) == at(3_900)
    opened.selection.set_cursors(at(3_980), None)
    assert snapped(opened, at(3_990), 100, CLIENT_1) == at(3_980)
    assert snapped(opened, at(3_990), 50, CLIENT_1, Moved.CURSOR_A) == at(4_000)  # not to where it is itself


def test_ends_of_the_range(opened, at):
    opened.selection.set_range(TimeWindow(at(6_000), at(6_500)))
    assert snapped(opened, at(6_470), 50, CLIENT_1) == at(6_500)
    assert snapped(opened, at(6_470), 50, CLIENT_1, Moved.RANGE) == at(6_470)
