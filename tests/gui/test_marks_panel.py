"""The list of marks and notes: shown, searched, visited, edited, removed."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from satview.base.time import TimeWindow
from satview.gui.widgets import LinePrompt
from satview.store.mark_file import Mark, note_files

K = Qt.Key


@pytest.fixture
def panel(window, opened, qtbot):
    cycles = opened.trace.clock.cycles
    opened.marks.add(Mark(cycles(8_000), cycles(9_500), "the server is slow"))
    opened.marks.add(Mark(cycles(2_000), cycles(2_000), "call of the client"))
    opened.marks.add(Mark(cycles(5_000), cycles(5_000)))
    qtbot.keyClick(window.workspace.area.view, K.Key_M, Qt.KeyboardModifier.ControlModifier)
    assert window.workspace.panel_shows("marks")
    return window.workspace.panels["marks"]


def rows(panel):
    model = panel.model
    return [tuple(model.index(row, column).data() for column in range(3)) for row in range(model.rowCount())]


def click(qtbot, panel, row, double=False):
    point = panel.table.visualRect(panel.model.index(row, 2)).center()
    qtbot.mouseClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=point)
    if double:
        qtbot.mouseDClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=point)


def test_lists_marks_in_order_of_time(panel):
    assert rows(panel) == [
        ("0.000 002 000 s", "", "call of the client"),
        ("0.000 005 000 s", "", "bookmark"),
        ("0.000 008 000 s", "1.500 \N{MICRO SIGN}s", "the server is slow"),
    ]
    assert panel.count.text() == "3 of 3"


@pytest.mark.thorough
def test_search_finds_all_words_in_any_order(panel, qtbot):
    qtbot.keyClicks(panel.line, "SLOW server")
    assert [row[2] for row in rows(panel)] == ["the server is slow"]
    assert panel.count.text() == "1 of 3"
    panel.line.clear()
    assert len(rows(panel)) == 3


def test_a_click_brings_the_mark_into_view_and_back_leads_back(panel, opened, window, qtbot):
    cycles = opened.trace.clock.cycles
    before = TimeWindow(cycles(1_000), cycles(3_000))
    opened.viewport.jump(before)
    click(qtbot, panel, 2)
    shown = opened.viewport.window
    assert shown.contains(cycles(8_000))
    assert shown.contains(cycles(9_499))
    assert shown.length == before.length
    assert opened.marks.selected.text == "the server is slow"
    qtbot.keyClick(window.workspace.area.view, K.Key_Backspace)
    assert opened.viewport.window == before


def test_a_note_is_edited_in_place_and_stored(panel, opened, qtbot, tmp_path):
    click(qtbot, panel, 0, double=True)
    editor = panel.table.findChild(QLineEdit)
    editor.selectAll()
    qtbot.keyClicks(editor, "changed")
    qtbot.keyClick(editor, K.Key_Return)
    qtbot.waitUntil(lambda: [mark.text for mark in opened.marks] == ["changed", "", "the server is slow"])
    (file,) = note_files(tmp_path / "scene.kev")
    stored = json.loads(file.read_text())
    assert [row["text"] for row in stored["marks"]] == ["changed", "", "the server is slow"]


@pytest.mark.thorough
def test_del_removes_the_mark_of_the_row_and_goes_on_to_the_next(panel, opened, qtbot):
    click(qtbot, panel, 1)
    qtbot.keyClick(panel.table, K.Key_Delete)
    assert [mark.text for mark in opened.marks] == ["call of the client", "the server is slow"]
    assert panel.table.currentIndex().row() == 1


@pytest.mark.thorough
def test_the_list_follows_what_is_visited_in_the_lanes(panel, window, opened, qtbot):
    opened.marks.select(None)
    qtbot.keyClick(window.workspace.area.view, K.Key_N)
    assert opened.marks.selected is not None
    assert panel.table.currentIndex().row() == panel.model.marks.index(opened.marks.selected)


@pytest.mark.thorough
def test_a_second_note_starts_empty(panel, window, qtbot):
    click(qtbot, panel, 0)
    qtbot.keyClick(window.workspace.area.view, K.Key_M, Qt.KeyboardModifier.ShiftModifier)
    assert window.findChild(LinePrompt).line.text() == ""
