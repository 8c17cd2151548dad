"""Keys do what the table says: press them as a user would, look at the session."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu

from satview.gui import dialogs
from satview.gui.widgets import LinePrompt, QuickPick
from satview.gui.windows.window_commands import KeyOverlay
from satview.store.mark_file import note_files
from tests.gui.conftest import part
from tests.gui.hands import ALT, CONTROL, CONTROL_SHIFT, NONE, SHIFT, K, answer_prompt
from tests.helpers.extent import fewer

CPU1, CLIENT_1, SERVER_1 = 1, 3, 5  # a process of one thread has one lane


@pytest.fixture
def press(view, qtbot):
    def run(key, modifiers=NONE, target=None):
        qtbot.keyClick(target or view, key, modifiers)

    return run


@pytest.fixture
def client(opened):
    """Select the client's REPLY interval."""
    opened.select_at(CLIENT_1, opened.trace.clock.cycles(6_000))


def ns_of(opened, cycles):
    return opened.trace.clock.ns(cycles)


def ends_ns(opened, window):
    """Return begin and end of a part of the trace, in nanoseconds."""
    return ns_of(opened, window.start), ns_of(opened, window.end)


def test_zoom_in_and_out(press, opened):
    press(K.Key_W)
    once = opened.viewport.window.length
    assert once < opened.viewport.limits.length
    press(K.Key_W)
    assert opened.viewport.window.length < once
    press(K.Key_S)
    press(K.Key_S)
    assert opened.viewport.window.length == pytest.approx(opened.viewport.limits.length, rel=0.01)
    press(K.Key_Plus)
    assert not opened.viewport.is_whole
    press(K.Key_Minus)


@pytest.mark.thorough
def test_holding_a_key_goes_on_faster_and_faster(view, opened, qtbot):
    qtbot.keyPress(view, K.Key_W)
    after_press = opened.viewport.window.length
    qtbot.waitUntil(lambda: opened.viewport.window.length < after_press / 3, timeout=3000)
    qtbot.keyRelease(view, K.Key_W)
    rest = opened.viewport.window
    qtbot.wait(80)
    assert opened.viewport.window == rest


def test_pan_home_and_end(press, opened):
    opened.viewport.zoom(0.2, opened.trace.clock.cycles(10_000))
    before = opened.viewport.window
    press(K.Key_D)
    assert opened.viewport.window.start > before.start
    press(K.Key_A)
    assert opened.viewport.window.start == pytest.approx(before.start, abs=20)
    press(K.Key_D, SHIFT)
    assert opened.viewport.window.start == pytest.approx(before.end, abs=20)
    press(K.Key_Home)
    assert opened.viewport.window.start == opened.viewport.limits.start
    press(K.Key_End)
    assert opened.viewport.window.end == opened.viewport.limits.end


@pytest.mark.thorough
@pytest.mark.parametrize(("key", "modifiers"), [(K.Key_0, NONE), (K.Key_Z, SHIFT)])
def test_whole_trace(press, opened, key, modifiers):
    opened.viewport.zoom(0.2, opened.trace.clock.cycles(10_000))
    press(key, modifiers)
    assert opened.viewport.is_whole


@pytest.mark.thorough
def test_focus_fits_and_goes_back(press, opened, client):
    """REPLY lasts from 4,000 to 8,001."""
    opened.viewport.zoom(0.5, opened.trace.clock.cycles(4_000))
    before = opened.viewport.window
    for _ in range(3):
        press(K.Key_F)
        assert ends_ns(opened, opened.viewport.window) == pytest.approx((3_600, 8_400), abs=60)
        press(K.Key_F)
        assert opened.viewport.window == before


@pytest.mark.thorough
def test_focus_begins_anew_after_a_move(press, opened, client):
    assert opened.viewport.is_whole
    press(K.Key_F)
    assert ns_of(opened, opened.viewport.window.start) == pytest.approx(3_600, abs=60)
    fitted = opened.viewport.window
    press(K.Key_D)
    press(K.Key_F)
    assert opened.viewport.window == fitted, "not where the view was long ago"
    press(K.Key_F)
    assert opened.viewport.window.start > fitted.start, "where it was before"


@pytest.mark.thorough
def test_range_from_selection_and_zoom_to_it(press, opened, client):
    press(K.Key_R)
    assert ends_ns(opened, opened.selection.time_range) == (4_000, 8_001)
    press(K.Key_Z)
    assert ns_of(opened, opened.viewport.window.start) == pytest.approx(4_000, abs=20)
    press(K.Key_Escape)
    assert opened.selection.time_range is None
    press(K.Key_Escape)
    assert opened.selection.is_empty


@pytest.mark.thorough
def test_view_history(press, opened):
    first = opened.viewport.window
    press(K.Key_W)
    second = opened.viewport.window
    press(K.Key_Left, ALT)
    assert opened.viewport.window == first
    press(K.Key_Right, ALT)
    assert opened.viewport.window == second
    press(K.Key_Backspace)
    assert opened.viewport.window == first


@pytest.mark.thorough
def test_arrows_walk_states_and_lanes(press, opened, client):
    press(K.Key_Right)
    assert opened.timeline.label(opened.selection.span) == "RUNNING"
    press(K.Key_Left)
    press(K.Key_Left)
    assert ns_of(opened, opened.selection.span.start_cycles) == 1_000
    press(K.Key_Right, SHIFT)
    assert ns_of(opened, opened.selection.time_range.end) == 4_000
    press(K.Key_Down)
    assert opened.selection.lane == SERVER_1
    press(K.Key_Up)
    press(K.Key_Up)
    assert opened.selection.lane == CPU1
    press(K.Key_End, CONTROL)
    assert opened.selection.lane == 5
    press(K.Key_Home, CONTROL)
    assert opened.selection.lane == 0


@pytest.mark.thorough
def test_comma_and_period_walk_events_and_j_goes_to_the_partner(press, window, opened, client):
    press(K.Key_J)
    assert "no matching" in window.statusBar().currentMessage()
    press(K.Key_Period)
    assert opened.trace.spec(opened.selection.event).name == "THRUNNING"
    press(K.Key_Period)
    assert opened.trace.spec(opened.selection.event).name == "MSG_SENDV"
    press(K.Key_J)
    assert ns_of(opened, int(opened.trace.events.time_cycles[opened.selection.event])) == 2_000
    press(K.Key_Comma)
    assert opened.trace.spec(opened.selection.event).name == "THRUNNING"


@pytest.mark.thorough
def test_cursors_and_delta(press, window, opened):
    opened.selection.set_mouse(opened.trace.clock.cycles(1_000))
    press(K.Key_1)
    opened.selection.set_mouse(opened.trace.clock.cycles(5_500))
    press(K.Key_2)
    assert opened.selection.cursor_b - opened.selection.cursor_a == 4_500
    assert window.workspace.status.cursors.text().startswith("\u0394 4.5 \u00b5s (4,500 cycles)   A 0.0")
    press(K.Key_3)
    assert opened.selection.cursor_a is None


@pytest.mark.thorough
def test_marks(press, opened, client, tmp_path):
    opened.selection.set_mouse(opened.trace.clock.cycles(2_000))
    press(K.Key_B)
    opened.selection.set_mouse(opened.trace.clock.cycles(9_000))
    press(K.Key_M)
    assert [ns_of(opened, mark.start_cycles) for mark in opened.marks] == [2_000, 9_000]
    press(K.Key_N)
    assert ns_of(opened, opened.marks.selected.start_cycles) == 2_000
    press(K.Key_N, SHIFT)
    assert ns_of(opened, opened.marks.selected.start_cycles) == 9_000
    press(K.Key_Delete)
    assert len(opened.marks) == 1
    assert len(note_files(tmp_path / "scene.kev")) == 1


@pytest.mark.thorough
def test_note_is_requested_and_kept(press, window, opened, client, qtbot):
    press(K.Key_R)
    press(K.Key_M, SHIFT)
    answer_prompt(window, qtbot, "slow reply")
    (mark,) = opened.marks
    assert (mark.text, ns_of(opened, mark.start_cycles), ns_of(opened, mark.end_cycles)) == ("slow reply", 4_000, 8_001)


@pytest.mark.thorough
def test_a_second_note_starts_empty_and_the_first_can_be_changed(press, window, opened, qtbot):
    at = opened.trace.clock.cycles

    def write(moment, text):
        """Write a note on a moment, behind what is there; return that."""
        opened.selection.set_mouse(at(moment))
        press(K.Key_M, SHIFT)
        line = window.findChildren(LinePrompt)[-1].line
        before = line.text()
        opened.selection.set_mouse(at(15_000))  # while one types, the mouse may go anywhere
        qtbot.keyClicks(line, text)
        press(K.Key_Return, target=line)
        window.workspace.area.view.setFocus()
        return before

    assert write(2_000, "first") == ""
    assert write(9_000, "second") == ""
    assert write(2_000, ", changed") == "first"
    assert [(ns_of(opened, mark.start_cycles), mark.text) for mark in opened.marks] == [
        (2_000, "first, changed"),
        (9_000, "second"),
    ]


@pytest.mark.thorough
def test_lanes_pin_hide_show_fold(press, opened, client):
    press(K.Key_P)
    assert opened.lanes.rows[0].index == CLIENT_1
    press(K.Key_P)
    press(K.Key_H)
    assert opened.lanes.row_of(CLIENT_1) is None
    press(K.Key_H, SHIFT)
    assert opened.lanes.row_of(CLIENT_1) is not None
    press(K.Key_C, SHIFT)
    assert opened.lanes.row_of(CLIENT_1) is None
    press(K.Key_E, SHIFT)
    assert opened.lanes.row_of(CLIENT_1) is not None
    opened.select_at(2, opened.trace.clock.cycles(6_000))
    press(K.Key_Return)
    assert opened.lanes.row_of(CLIENT_1) is None
    press(K.Key_Z, CONTROL)
    assert opened.lanes.row_of(CLIENT_1) is not None
    press(K.Key_Y, CONTROL)
    assert opened.lanes.row_of(CLIENT_1) is None


@pytest.mark.thorough
def test_empty_lanes(press, opened):
    opened.viewport.zoom(0.2, opened.trace.clock.cycles(5_000))
    press(K.Key_X)
    assert len(opened.lanes.rows) < 4
    press(K.Key_X)
    assert len(opened.lanes.rows) == 4


@pytest.mark.thorough
def test_panels(press, window):
    docks = window.workspace.docks
    press(K.Key_E)
    assert docks["events"].isHidden()
    press(K.Key_E)
    assert window.workspace.panel_shows("events")
    press(K.Key_Q)
    assert docks["events"].isHidden()
    assert docks["problems"].isHidden()
    press(K.Key_Q)
    assert not docks["events"].isHidden()
    press(K.Key_I)
    assert docks["details"].isHidden()


@pytest.mark.thorough
def test_tab_goes_through_a_panel_as_it_is_read(press, window):
    window.actions_by_id.by_id["panels.transactions"].trigger()
    panel = window.workspace.panels.created["transactions"]
    names, widget = [], panel.nextInFocusChain()
    while widget is not panel:
        names.append(widget.accessibleName() if panel.isAncestorOf(widget) else "")
        widget = widget.nextInFocusChain()
    order = ["Messages or latencies", "Client: name or pid", "Transactions"]
    assert [name for name in names if name in order] == order


def test_no_two_entries_of_a_menu_have_one_letter(window):
    for menu in window.menuBar().findChildren(QMenu):
        titles = [action.text() for action in menu.actions() if "&" in action.text()]
        letters = [title[title.index("&") + 1].lower() for title in titles]
        assert sorted(set(letters)) == sorted(letters), titles


@pytest.mark.thorough
def test_find_with_enter_and_shift_enter(press, window, opened, qtbot):
    press(K.Key_Slash)
    line = window.workspace.find_bar.line
    assert line.hasFocus()
    qtbot.keyClicks(line, "EVENT")
    qtbot.waitUntil(lambda: len(opened.search.hits) == 2)
    press(K.Key_Return, target=line)
    assert opened.trace.spec(opened.selection.event).name == "EVENT 7"
    assert window.workspace.find_bar.count.text() == "1 of 2"
    press(K.Key_Return, target=line)
    assert opened.trace.spec(opened.selection.event).name == "EVENT 8"
    press(K.Key_Return, SHIFT, target=line)
    assert opened.trace.spec(opened.selection.event).name == "EVENT 7"
    press(K.Key_Escape, target=line)
    assert not window.workspace.find_bar.isVisible()
    press(K.Key_F3)
    assert opened.trace.spec(opened.selection.event).name == "EVENT 8"
    press(K.Key_F, CONTROL)
    qtbot.keyClicks(line, "wasd0")
    assert opened.viewport.is_whole, "letters that are typed are no commands"
    assert line.text() == "wasd0"


@pytest.mark.thorough
def test_go_to_time(press, window, opened, qtbot):
    press(K.Key_G, CONTROL)
    assert "is not a time" in answer_prompt(window, qtbot, "soon").error.text()
    answer_prompt(window, qtbot, "5us")
    assert opened.trace.spec(opened.selection.event).name == "EVENT 7"


@pytest.mark.thorough
def test_go_to_lane(press, window, opened, qtbot):
    press(K.Key_P, CONTROL)
    pick = window.findChild(QuickPick)
    qtbot.keyClicks(pick.line, "server thr")
    press(K.Key_Return, target=pick.line)
    assert opened.selection.lane == 5


@pytest.mark.thorough
def test_palette_says_when_no_command_matches_and_runs_one_that_does(press, window, opened, qtbot):
    opened.viewport.zoom(0.2, opened.trace.clock.cycles(5_000))
    press(K.Key_P, CONTROL_SHIFT)
    pick = window.findChild(QuickPick)
    qtbot.keyClicks(pick.line, "xyzzy")
    assert (pick.list.isVisible(), pick.nothing.isVisible(), pick.nothing.text()) == (False, True, "No command matches")
    press(K.Key_Down, target=pick.line)
    press(K.Key_Return, target=pick.line)  # there is nothing to run
    assert pick.isVisible()
    pick.line.clear()
    assert (pick.list.isVisible(), pick.nothing.isVisible()) == (True, False)
    qtbot.keyClicks(pick.line, "everything")
    press(K.Key_Return, target=pick.line)
    assert opened.viewport.is_whole


@pytest.mark.thorough
def test_question_mark_shows_the_keys(press, window, qtbot):
    press(K.Key_Question, SHIFT)
    overlay = window.findChild(KeyOverlay)
    text = overlay.browser.toPlainText()
    for title in ("Zoom in", "Ctrl+Shift+P", "Previous state change", "Left drag"):
        assert title in text
    overlay.search.setText("bookm")
    assert "Zoom in" not in overlay.browser.toPlainText()
    overlay.search.clear()
    press(K.Key_Escape, target=overlay)
    qtbot.waitUntil(lambda: window.findChild(KeyOverlay) is None)


@pytest.mark.thorough
def test_copy_details_or_rows(press, window, opened, client, qtbot):
    press(K.Key_C, CONTROL)
    assert "THREPLY" in QGuiApplication.clipboard().text()
    table = window.workspace.panels["events"].table
    table.setFocus()
    table.selectRow(0)
    press(K.Key_C, CONTROL, target=table)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].split("\t")[0] == "Number"
    assert lines[1].split("\t")[0] == "1"


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "begin"), fewer([("a.PDF", b"%PDF-"), ("a.png", b"\x89PNG"), ("a.svg", b"<?xml")], 1))
def test_export_picture(press, window, tmp_path, monkeypatch, name, begin):
    monkeypatch.setattr(dialogs, "ask_save", lambda *arguments: tmp_path / name)
    press(K.Key_E, CONTROL)
    assert (tmp_path / name).read_bytes().startswith(begin)


@pytest.mark.thorough
def test_a_picture_has_title_time_span_and_legend(press, window, opened, tmp_path, monkeypatch):
    """In an SVG texts are texts. The legend is in the picture even if it is not on the screen."""
    press(K.Key_L, SHIFT)
    assert not window.workspace.area.legend.isVisible()
    opened.viewport.jump(part(opened, 2_000, 6_000))
    monkeypatch.setattr(dialogs, "ask_save", lambda *arguments: tmp_path / "a.svg")
    press(K.Key_E, CONTROL)
    svg = ET.parse(tmp_path / "a.svg")
    texts = [text.text.strip() for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "scene.kev"
    assert texts[1].startswith("0.000 002 000 s to 0.000 006 000 s \u00b7 4 \u00b5s (4,000 cycles)")
    assert {"CPU 0", "client", "RUNNING", "NANOSLEEP", "idle"} <= set(texts)
    assert window.statusBar().currentMessage() == "Saved a.svg"


@pytest.mark.thorough
def test_only_this_thread(press, opened, client):
    press(K.Key_T, SHIFT)
    client_row = opened.trace.threads.row(2, 1)
    assert opened.filters.threads.nonzero()[0].tolist() == [client_row]
    press(K.Key_F, SHIFT)
    assert not opened.filters.is_active


@pytest.mark.thorough
def test_keys_without_selection_do_nothing_harmful(press, window, opened):
    for key in (*"FZRHP,N", K.Key_Delete, K.Key_Return, K.Key_Left):
        press(key)
    QApplication.processEvents()
    assert window.workspace is not None
