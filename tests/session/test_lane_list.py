from __future__ import annotations

import pytest

from satview.base.time import TimeWindow

CPU0, CPU1, CLIENT, CLIENT_1, SERVER, SERVER_1 = range(6)


def shown(opened):
    """Return the lanes; each of the two processes has one thread, which shows in its place when it is open."""
    return [row.index for row in opened.lanes.rows]


def test_small_traces_are_unfolded(opened):
    assert shown(opened) == [CPU0, CPU1, CLIENT_1, SERVER_1]
    titles = [opened.timeline.infos[row.unit].title for row in opened.lanes.rows]
    assert titles == ["CPU 0", "CPU 1", "client", "server"]


def test_fold_and_unfold(opened):
    opened.lanes.fold(CLIENT)
    assert shown(opened) == [CPU0, CPU1, CLIENT, SERVER_1]
    opened.lanes.fold(SERVER_1)  # it folds into its process
    assert shown(opened) == [CPU0, CPU1, CLIENT, SERVER]
    opened.lanes.fold(SERVER_1)
    assert shown(opened) == [CPU0, CPU1, CLIENT, SERVER_1]
    opened.lanes.fold_all()
    assert shown(opened) == [CPU0, CPU1, CLIENT, SERVER]
    opened.lanes.unfold_all()
    assert shown(opened) == [CPU0, CPU1, CLIENT_1, SERVER_1]


@pytest.mark.parametrize("lane", [CLIENT, CLIENT_1])
def test_hide_takes_all_of_a_process_along_and_can_be_undone(opened, lane):
    opened.lanes.hide(lane)
    assert shown(opened) == [CPU0, CPU1, SERVER_1]
    assert opened.lanes.hidden_count == 1
    opened.edits.undo()
    assert len(shown(opened)) == 4


def test_pinned_lane_is_first_and_goes_back(opened):
    opened.lanes.pin(SERVER_1)
    assert shown(opened) == [SERVER_1, CPU0, CPU1, CLIENT_1, SERVER]
    assert opened.lanes.rows[0].is_pinned
    opened.lanes.pin(SERVER_1)
    assert shown(opened) == [CPU0, CPU1, CLIENT_1, SERVER_1]
    opened.lanes.pin(SERVER_1)
    opened.lanes.fold(SERVER)
    assert shown(opened)[0] == SERVER_1, "it stays when its process is folded"


def test_empty_lanes_of_a_window(opened, ns):
    opened.lanes.hide_empty(True, TimeWindow(ns(4_500), ns(7_000)))  # only the server's user event is there
    assert shown(opened) == [CPU0, SERVER_1]
    opened.lanes.set_window(TimeWindow(ns(1_500), ns(3_000)))  # the client's call
    assert shown(opened) == [CPU0, CLIENT_1]
    opened.lanes.show_all()
    assert len(shown(opened)) == 4


def test_reveal_opens_and_unhides(opened):
    opened.lanes.fold(CLIENT)
    opened.lanes.hide(CLIENT)
    opened.lanes.reveal(CLIENT_1)
    assert CLIENT_1 in shown(opened)


def test_rows_touch_and_can_be_found_by_height(opened):
    rows = opened.lanes.rows
    for row in rows:
        assert opened.lanes.row_at(row.y_px) == row
        assert opened.lanes.row_at(row.y_px + row.height_px - 1) == row
    assert opened.lanes.row_at(-1) is None
    assert opened.lanes.row_at(opened.lanes.height_px) is None
    assert opened.lanes.rows_between(rows[2].y_px, rows[3].y_px) == rows[2:4]


@pytest.mark.parametrize("height_px", [8, 20, 64])
def test_height_of_lanes(opened, height_px):
    opened.lanes.set_lane_height(height_px)
    opened.lanes.fold(SERVER)
    assert opened.lanes.row_of(CLIENT_1).height_px == height_px
    assert opened.lanes.row_of(SERVER).height_px == height_px + 4  # several CPUs may be stacked in it


def test_a_few_lanes_grow_into_the_free_height(opened):
    """2 CPUs, 2 processes with a thread each: at a height of 20 px they take 96 px with a gap of 8."""
    lanes = opened.lanes
    assert (len(lanes.rows), lanes.height_px) == (4, 96)
    lanes.set_room(140)
    assert 130 < lanes.height_px <= 140
    lanes.set_room(2_000)
    assert lanes.row_of(3).height_px == 40  # twice is enough
    lanes.set_room(90)
    assert lanes.height_px == 96  # too little is what the scroll bar is for
    lanes.set_room(2_000)
    assert lanes.keep_height() == 40
    lanes.set_lane_height(30)
    assert lanes.row_of(3).height_px == 30  # the user's own height is not grown
