"""Two sets of lanes in one window, and two windows on one trace: linked or not."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from satview.session.session import Stage
from tests.gui.conftest import part, settle
from tests.gui.hands import CONTROL, CONTROL_SHIFT, K

CPU0, CPU1, CLIENT, CLIENT_1, SERVER, SERVER_1 = range(6)


@pytest.fixture
def split(window, view, qtbot):
    """Return the second set of lanes, which has the keyboard."""
    window.actions_by_id.by_id["view.split"].trigger()
    second = window.workspace.panes.second
    qtbot.waitUntil(lambda: second.area.view.hasFocus() and window.workspace.active is second)
    return second


def shown(opened):
    return [row.index for row in opened.lanes.rows]


def test_linked_views_show_the_same_part_whoever_moves_and_have_one_selection_and_filter(split, opened):
    opened.viewport.jump(part(opened, 2_000, 9_000))
    assert split.opened.viewport.window == opened.viewport.window
    split.opened.viewport.jump(part(opened, 5_000, 6_000))
    assert opened.viewport.window == part(opened, 5_000, 6_000)
    split.opened.viewport.back()
    assert opened.viewport.window == part(opened, 2_000, 9_000)
    opened.select_event(8, reveal=False)
    assert split.opened.selection.event == 8
    opened.filters.show_threads([opened.timeline.infos[CLIENT_1].thread], False)
    assert CLIENT_1 not in shown(split.opened)


@pytest.mark.thorough
def test_keys_act_on_the_lanes_with_the_keyboard(split, window, opened, view, qtbot):
    qtbot.keyClick(split.area.view, K.Key_L, CONTROL_SHIFT)  # each its own way
    opened.select_at(CLIENT, opened.trace.clock.cycles(5_000))
    qtbot.keyClick(split.area.view, K.Key_H)
    qtbot.keyPress(split.area.view, K.Key_W)
    qtbot.keyRelease(split.area.view, K.Key_W)
    assert opened.viewport.is_whole
    assert not split.opened.viewport.is_whole
    assert shown(opened) == [CPU0, CPU1, CLIENT_1, SERVER_1]
    assert shown(split.opened) == [CPU0, CPU1, SERVER_1]
    view.setFocus()
    qtbot.keyPress(view, K.Key_W)
    qtbot.keyRelease(view, K.Key_W)
    assert not opened.viewport.is_whole


@pytest.mark.thorough
def test_the_second_view_goes_by_the_same_command_and_leaves_nothing(split, window, application, opened, view, qtbot):
    split.opened.select_event(8, reveal=False)
    gone = split.opened
    qtbot.keyClick(split.area.view, K.Key_Backslash, CONTROL)
    assert not window.workspace.is_split
    assert view.hasFocus()
    assert opened.others == []
    qtbot.waitUntil(lambda: not vars(gone), timeout=10_000)
    assert not application.shared.view_links.has(gone)
    opened.viewport.jump(part(opened, 2_000, 9_000))  # pytest-qt fails where this reaches somebody who is gone
    opened.lanes.fold(CLIENT)
    opened.select_event(3, reveal=False)
    opened.selection.set_range(part(opened, 2_000, 9_000))
    opened.selection.set_cursors(1, 2)
    opened.viewport.show_all()


@pytest.mark.thorough
def test_what_was_done_to_lanes_that_are_gone_is_not_undone(split, window, opened, qtbot):
    opened.lanes.fold(CLIENT)
    split.opened.lanes.fold(SERVER)
    assert opened.edits.undo_title == "folding"
    gone = split.opened
    window.actions_by_id.by_id["view.split"].trigger()
    qtbot.waitUntil(lambda: not vars(gone), timeout=10_000)
    assert shown(opened) == [CPU0, CPU1, CLIENT, SERVER_1]
    opened.edits.undo()
    assert shown(opened) == [CPU0, CPU1, CLIENT_1, SERVER_1]
    assert opened.edits.undo_title == ""


@pytest.mark.thorough
def test_another_window_shows_the_trace_without_reading_it_again(window, application, opened, view, qtbot):
    opened.viewport.jump(part(opened, 2_000, 9_000))
    qtbot.keyClick(view, K.Key_W, CONTROL_SHIFT)
    other = application.windows[1]
    assert other.session.stage is Stage.READY
    assert other.session.opened.trace is opened.trace
    settle(qtbot, other)
    theirs = other.session.opened
    opened.viewport.jump(part(opened, 3_000, 5_000))
    assert theirs.viewport.window == opened.viewport.window
    theirs.select_event(8, reveal=False)
    assert (opened.selection.event, opened.selection.lane) == (8, theirs.selection.lane)
    other.actions_by_id.by_id["view.linked"].trigger()
    opened.viewport.show_all()
    assert theirs.viewport.window == part(opened, 3_000, 5_000)
    opened.select_event(3, reveal=False)
    assert theirs.selection.event == 8
    other.actions_by_id.by_id["view.linked"].trigger()
    assert theirs.viewport.is_whole
    with qtbot.waitSignal(other.destroyed):
        other.close()
    opened.viewport.jump(part(opened, 2_000, 9_000))
    opened.select_event(2, reveal=False)


@pytest.mark.thorough
def test_closing_the_first_window_leaves_the_other_one_whole(window, application, opened, view, qtbot):
    qtbot.keyClick(view, K.Key_W, CONTROL_SHIFT)
    other = application.windows[1]
    settle(qtbot, other)
    with qtbot.waitSignal(window.destroyed):
        window.close()
    QApplication.processEvents()
    theirs = other.session.opened
    theirs.select_event(8)
    theirs.viewport.jump(part(theirs, 2_000, 9_000))
    settle(qtbot, other)
    assert theirs.trace.payloads.decode(8).arguments is not None
