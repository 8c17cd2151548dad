"""The list of marks and notes, and the mark at which a file of a flight recorder opens."""

from __future__ import annotations

import json

import pytest
from PySide6.QtWidgets import QLineEdit

from satview.base.time import TimeWindow
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.gui.widgets import LinePrompt
from satview.session.state_files import StateFiles
from satview.store.mark_file import Mark, note_files
from tests.capture.test_flight_recorder import MS, jobs
from tests.gui.hands import CONTROL, LEFT, SHIFT, K, all_texts, click_cell


@pytest.fixture
def panel(window, opened, qtbot):
    cycles = opened.trace.clock.cycles
    opened.marks.add(Mark(cycles(8_000), cycles(9_500), "the server is slow"))
    opened.marks.add(Mark(cycles(2_000), cycles(2_000), "call of the client"))
    opened.marks.add(Mark(cycles(5_000), cycles(5_000)))
    qtbot.keyClick(window.workspace.area.view, K.Key_M, CONTROL)
    assert window.workspace.panel_shows("marks")
    return window.workspace.panels["marks"]


@pytest.mark.thorough
def test_without_marks_the_field_is_as_wide_as_its_panel(window, qtbot):
    qtbot.keyClick(window.workspace.area.view, K.Key_M, CONTROL)
    panel = window.workspace.panels["marks"]
    qtbot.waitUntil(lambda: panel.width() - panel.line.geometry().right() == panel.line.x() + 1)


@pytest.mark.thorough
def test_lists_marks_in_order_of_time_and_finds_all_words_in_any_order(panel, qtbot):
    assert all_texts(panel.model) == [
        ["0.000 002 000 s", "", "call of the client"],
        ["0.000 005 000 s", "", "bookmark"],
        ["0.000 008 000 s", "1.500 \N{MICRO SIGN}s", "the server is slow"],
    ]
    assert panel.count.text() == "3 of 3"
    qtbot.keyClicks(panel.line, "SLOW server")
    assert [texts[2] for texts in all_texts(panel.model)] == ["the server is slow"]
    assert panel.count.text() == "1 of 3"
    panel.line.clear()
    assert panel.model.rowCount() == 3


@pytest.mark.thorough
def test_a_click_brings_the_mark_into_view_and_back_leads_back(panel, opened, window, qtbot):
    cycles = opened.trace.clock.cycles
    before = TimeWindow(cycles(1_000), cycles(3_000))
    opened.viewport.jump(before)
    click_cell(panel.table, 2, 2)
    shown = opened.viewport.window
    assert shown.contains(cycles(8_000))
    assert shown.contains(cycles(9_499))
    assert shown.length == before.length
    assert opened.marks.selected.text == "the server is slow"
    qtbot.keyClick(window.workspace.area.view, K.Key_Backspace)
    assert opened.viewport.window == before


def test_a_note_is_edited_in_place_and_stored(panel, opened, qtbot, tmp_path):
    click_cell(panel.table, 0, 2)
    qtbot.mouseDClick(panel.table.viewport(), LEFT, pos=panel.table.visualRect(panel.model.index(0, 2)).center())
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
    click_cell(panel.table, 1, 2)
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
    click_cell(panel.table, 0, 2)
    qtbot.keyClick(window.workspace.area.view, K.Key_M, SHIFT)
    assert window.findChild(LinePrompt).line.text() == ""


RULES = 'WHEN latency("tick", "done") > 5ms THEN MARK "late"; KEEP 1 buffer; STOP'


@pytest.fixture
def state_files(tmp_path):
    return StateFiles(tmp_path / "views", tmp_path / "sessions")


@pytest.fixture
def incident(tmp_path):
    """Return a file whose mark is in its second half."""
    options = LoggerOptions(is_ring=True, kernel_buffers=4)
    lates = [number == 120 for number in range(160)]
    run(
        Capture(jobs(lates, 5 * MS), duration_ns=1500 * MS, options=options, rules_text=RULES),
        tmp_path / "incident.kev",
    )
    return tmp_path / "incident.kev"


@pytest.mark.thorough
def test_a_recording_opens_at_its_mark_and_later_where_it_was_left(application, load, incident, qtbot):
    window = load(application.new_window(), incident)
    opened = window.session.opened
    (mark,) = opened.marks
    assert mark.text == "late"
    assert opened.marks.selected == mark
    shown = opened.viewport.window
    assert shown.start < mark.start_cycles < shown.end
    assert shown.length <= opened.trace.window.length // 9  # a tenth of it, at whole pixels
    assert opened.trace.events.time_cycles[opened.selection.event] == mark.start_cycles
    assert [*incident.parent.glob("*.marks.*")] == []  # it is in the trace, and not beside it
    opened.viewport.jump(opened.trace.window)
    with qtbot.waitSignal(window.destroyed):
        window.close()
    again = load(application.new_window(), incident).session.opened
    assert [other.text for other in again.marks] == ["late"]
    assert again.viewport.window.length > 0.99 * again.trace.window.length  # at whole pixels


@pytest.mark.thorough
def test_a_recorded_mark_can_be_removed_from_view(empty_window, load, incident):
    marks = load(empty_window, incident).session.opened.marks
    (mark,) = marks
    marks.remove(mark)
    assert len(marks) == 0
    assert [*incident.parent.glob("*.marks.*")] == []
