"""Lanes are dragged by their names, moved by keys, sorted and grouped by the menu."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt

from satview.gui.quick_pick import LinePrompt
from tests.gui.conftest import settle

CPU0, CPU1, CLIENT, CLIENT_1, SERVER, SERVER_1 = range(6)
LEFT = Qt.MouseButton.LeftButton


def shown(opened):
    return [row.index for row in opened.lanes.rows]


def middle_of(opened, lane):
    row = opened.lanes.row_of(lane)
    return QPoint(80, row.y_px + row.height_px // 2)


def drag(qtbot, labels, start, end):
    qtbot.mousePress(labels, LEFT, pos=start)
    qtbot.mouseMove(labels, start + QPoint(0, 3))
    qtbot.mouseMove(labels, (start + end) / 2)
    qtbot.mouseMove(labels, end)


@pytest.fixture
def labels(window):
    return window.workspace.area.labels


def test_a_name_is_dragged_above_another_process_with_its_threads(labels, opened, qtbot):
    start, end = middle_of(opened, SERVER), middle_of(opened, CLIENT)
    drag(qtbot, labels, start, end - QPoint(0, 6))
    assert shown(opened) == [CPU0, CPU1, CLIENT, CLIENT_1, SERVER, SERVER_1]  # not before it is let go
    qtbot.mouseRelease(labels, LEFT, pos=end)
    assert shown(opened) == [CPU0, CPU1, SERVER, SERVER_1, CLIENT, CLIENT_1]
    opened.edits.undo()
    assert shown(opened) == [CPU0, CPU1, CLIENT, CLIENT_1, SERVER, SERVER_1]


@pytest.mark.thorough
def test_a_process_stays_below_the_cpus_and_a_click_moves_nothing(labels, opened, qtbot):
    drag(qtbot, labels, middle_of(opened, SERVER), QPoint(80, 2))
    qtbot.mouseRelease(labels, LEFT, pos=QPoint(80, 2))
    assert shown(opened) == [CPU0, CPU1, SERVER, SERVER_1, CLIENT, CLIENT_1]
    qtbot.mouseClick(labels, LEFT, pos=middle_of(opened, CLIENT))
    assert shown(opened) == [CPU0, CPU1, SERVER, SERVER_1, CLIENT, CLIENT_1]
    assert opened.selection.lane == CLIENT


def test_alt_and_arrows_move_the_selected_lane(view, opened, qtbot):
    opened.select_at(SERVER, opened.trace.clock.cycles(5_000))
    qtbot.keyClick(view, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert shown(opened)[2:] == [SERVER, SERVER_1, CLIENT, CLIENT_1]
    qtbot.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert shown(opened)[2:] == [CLIENT, CLIENT_1, SERVER, SERVER_1]


@pytest.mark.thorough
def test_menu_sorts_and_tells_by_what(window, opened, qtbot):
    actions = window.actions_by_id
    actions.by_id["lanes.sort_name"].trigger()
    qtbot.waitUntil(lambda: not opened.sorter.is_busy)
    actions.by_id["lanes.sort_cpu"].trigger()
    qtbot.waitUntil(lambda: not opened.sorter.is_busy)
    assert shown(opened)[2:] == [CLIENT, CLIENT_1, SERVER, SERVER_1]  # 7 us of the CPU, and 4
    actions.refresh()
    checked = [name for name, action in actions.by_id.items() if name.startswith("lanes.sort") and action.isChecked()]
    assert checked == ["lanes.sort_cpu"]


def test_groups_by_typed_names_have_headings_that_fold(window, opened, labels, qtbot):
    window.actions_by_id.by_id["lanes.group_pattern"].trigger()
    prompt = window.findChild(LinePrompt)
    qtbot.keyClicks(prompt.line, "Servers: serv*")
    qtbot.keyClick(prompt.line, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not opened.sorter.is_busy)
    settle(qtbot, window)
    assert [(head.title, head.count) for head in opened.lanes.heads] == [("Servers", 1), ("Others", 1)]
    assert shown(opened)[2:] == [SERVER, SERVER_1, CLIENT, CLIENT_1]
    head = opened.lanes.heads[0]
    qtbot.mouseClick(labels, LEFT, pos=QPoint(40, head.y_px + head.height_px // 2))
    assert shown(opened)[2:] == [CLIENT, CLIENT_1]


def test_what_the_trace_does_not_tell_is_said(window, opened, qtbot):
    window.actions_by_id.by_id["lanes.group_priority"].trigger()  # its thread events are fast ones
    qtbot.waitUntil(lambda: not opened.sorter.is_busy)
    assert window.statusBar().currentMessage().startswith("The trace has no priorities")
