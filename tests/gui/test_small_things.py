"""Small things that a user trips over: what is selected, proposed and shown while one types, points and saves."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QStandardPaths
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QMenu, QSpinBox

from satview.gui import dialogs
from satview.gui.settings_dialog import SettingsDialog
from satview.gui.theme import LIGHT
from satview.gui.widgets import LinePrompt, capitalized
from satview.session.filter_stack import suggested
from satview.session.lanes.lane_arrangement import QUIET
from tests.gui.conftest import part, settle
from tests.gui.hands import LEFT, RIGHT, SHIFT, K, move_mouse, rgb, turn_wheel
from tests.helpers.scene import scene

CLIENT_1, SERVER_1 = 3, 5


def middle_of(opened, lane):
    row = opened.lanes.row_of(lane)
    return row.y_px + row.height_px // 2


@pytest.mark.thorough
def test_a_proposed_range_is_replaced_by_what_is_typed(window, view, opened):
    opened.selection.set_range(part(opened, 2_000, 4_000))
    QTest.keyClick(view, K.Key_R, SHIFT)
    line = window.findChild(LinePrompt).line
    assert line.selectedText() == line.text() == "0.000002s..0.000004s"
    QTest.keyClicks(line, "3us..5us")
    QTest.keyClick(line, K.Key_Return)
    assert opened.selection.time_range == part(opened, 3_000, 5_000)


@pytest.mark.thorough
def test_a_prompt_keeps_what_is_typed_while_its_menu_or_another_window_is_in_front(
    application, window, view, opened, qtbot
):
    opened.select_event(3)
    window.activateWindow()
    QTest.keyClick(view, K.Key_M, SHIFT)
    line = window.findChild(LinePrompt).line
    qtbot.waitUntil(line.hasFocus)
    QTest.keyClicks(line, "late here")
    position = QPoint(20, 10)
    QApplication.sendEvent(
        line, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, position, line.mapToGlobal(position))
    )
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    assert any("Paste" in action.text() for action in menu.actions())
    menu.close()
    assert line.hasFocus()
    other = application.new_window()
    other.activateWindow()
    qtbot.waitUntil(lambda: not window.isActiveWindow())
    window.activateWindow()
    qtbot.waitUntil(line.hasFocus)
    QTest.keyClicks(line, "!")
    QTest.keyClick(line, K.Key_Return)
    assert [mark.text for mark in opened.marks] == ["late here!"]


@pytest.mark.thorough
def test_a_prompt_keeps_what_is_typed_until_it_is_entered_or_given_up(window, view, opened):
    def prompt():
        view.setFocus()
        QTest.keyClick(view, K.Key_M, SHIFT)
        return next(each for each in window.findChildren(LinePrompt) if each.isVisible())

    opened.select_event(3)
    first = prompt()
    QTest.keyClicks(first.line, "important")
    for key in (K.Key_Tab, K.Key_Backtab):
        QTest.keyClick(first.line, key)
        assert first.isVisible()
        assert first.line.text() == "important"
    view.setFocus()
    assert first.isHidden()
    said = "Note on the selected range or moment: not entered, and offered again the next time"
    assert window.statusBar().currentMessage() == said
    assert not len(opened.marks)
    again = prompt()
    assert again.line.selectedText() == "important"
    QTest.keyClick(again.line, K.Key_Escape)
    assert again.isHidden()
    last = prompt()
    assert last.line.text() == ""
    QTest.keyClicks(last.line, "so late")
    QTest.keyClick(last.line, K.Key_Return)
    assert [mark.text for mark in opened.marks] == ["so late"]
    opened.selection.set_mouse(opened.trace.clock.cycles(15_000))
    opened.select_event(5)
    assert prompt().line.text() == ""


@pytest.mark.thorough
def test_find_says_that_the_filter_hides_all_hits(window, view, opened, qtbot):
    bar, message = window.workspace.find_bar, window.statusBar()
    hides = "hits, all hidden by the filter"
    QTest.keyClick(view, K.Key_Slash)
    QTest.keyClicks(bar.line, "MSG_SENDV")
    QTest.keyClick(bar.line, K.Key_Return)
    qtbot.waitUntil(lambda: bar.count.text() == "2 hits")
    opened.filters.add_pass("class == THREAD")
    qtbot.waitUntil(lambda: bar.count.text() == f"2 {hides}")
    before = opened.selection.event
    QTest.keyClick(bar.line, K.Key_Return)
    assert message.currentMessage() == "The filter hides all 2 hits of the search"
    message.clearMessage()
    view.setFocus()
    QTest.keyClick(view, K.Key_F3)
    assert message.currentMessage() == "The filter hides all 2 hits of the search"
    assert opened.selection.event == before
    opened.filters.show_all()
    qtbot.waitUntil(lambda: hides not in bar.count.text())
    message.clearMessage()
    QTest.keyClick(view, K.Key_F3)
    assert bar.count.text() == "1 of 2"
    assert message.currentMessage() == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("none.toml: there is no such file", "none.toml: there is no such file"),
        ("timing: there is no such file", "timing: there is no such file"),
        ("devb2 is no process", "devb2 is no process"),
        ("lib/x cannot be read", "lib/x cannot be read"),
        ("there is no file 'a'", "There is no file 'a'"),
        ("read-only file system", "Read-only file system"),
        ("pattern, column 3: unexpected end", "Pattern, column 3: unexpected end"),
        ("stopped; nothing was written", "Stopped; nothing was written"),
        ("stopped", "Stopped"),
        ("", ""),
    ],
)
def test_a_message_begins_with_a_capital_letter_but_a_name_stays_as_it_is(text, shown):
    assert capitalized(text) == shown


@pytest.mark.thorough
def test_a_right_click_on_the_name_of_the_selected_lane_keeps_what_is_selected(window, opened):
    labels = window.workspace.area.labels
    opened.select_at(CLIENT_1, opened.trace.clock.cycles(6_000))
    span = opened.selection.span
    assert opened.timeline.label(span).startswith("REPLY")
    position = QPoint(60, middle_of(opened, CLIENT_1))
    QTest.mouseClick(labels, RIGHT, pos=position)
    assert opened.selection.span == span
    QTest.mouseClick(labels, RIGHT, pos=QPoint(60, middle_of(opened, SERVER_1)))
    assert opened.selection.lane == SERVER_1, "the menu of another lane is about that lane"
    request = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, position, labels.mapToGlobal(position))
    QApplication.sendEvent(labels, request)
    assert isinstance(QApplication.activePopupWidget(), QMenu)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("pid 86023", "pid == 86023"), ("name devb-ahci", ""), ("cpu 3", "cpu == 3"), ("writer 1", ""), ("pid", "")],
)
def test_a_field_beside_a_value_suggests_a_condition(typed, meant):
    assert suggested(typed) == meant


@pytest.mark.thorough
def test_find_says_what_was_meant_and_a_click_looks_for_it(window, view, opened, qtbot):
    QTest.keyClick(view, K.Key_Slash)
    bar = window.workspace.find_bar
    QTest.keyClicks(bar.line, "pid 2")
    qtbot.waitUntil(bar.suggestion.isVisible)
    assert bar.suggestion.text() == "Did you mean pid == 2?"
    qtbot.mouseClick(bar.suggestion, LEFT)
    qtbot.waitUntil(lambda: len(opened.search.hits) > 0)
    assert bar.line.text() == "pid == 2"
    assert not bar.suggestion.isVisible()


@pytest.mark.thorough
def test_the_time_of_the_mouse_shows_over_lanes_only(window, view, opened):
    field, x = window.workspace.status.mouse, round(view.scale.x(opened.trace.clock.cycles(5_000)))
    move_mouse(view, QPoint(x, middle_of(opened, CLIENT_1)))
    assert field.text().startswith("0.000 00")
    move_mouse(view, QPoint(x, view.height() - 2))
    assert view.row_at(view.height() - 2) is None
    assert field.text() == "\N{EM DASH}"
    move_mouse(view, QPoint(x, middle_of(opened, CLIENT_1)))
    move_mouse(window.workspace.area.ruler, QPoint(x, 10))
    assert field.text() == "\N{EM DASH}"


@pytest.mark.thorough
def test_the_card_names_the_interval_that_a_click_selects(window, view, opened, qtbot):
    """Two pixels before an edge the mouse is on the interval before, and means the event that begins the next one."""
    edge = opened.trace.clock.cycles(4_000)  # client 1 goes from RUNNING to REPLY
    opened.viewport.zoom(0.5, edge)
    view.repaint()
    qtbot.waitUntil(lambda: window.workspace.area.is_exact)
    position = QPoint(round(view.scale.x(edge)) - 2, middle_of(opened, CLIENT_1))
    move_mouse(view, position)
    card = window.workspace.area.hover.text()
    QTest.mouseClick(view, LEFT, pos=position)
    selected = opened.timeline.label(opened.selection.span)
    assert selected.startswith("REPLY")
    assert f"<b>{selected}</b>" in card


@pytest.mark.thorough
def test_save_dialogs_start_in_a_folder_of_the_user_and_then_where_was_saved_last(window, monkeypatch, tmp_path):
    documents = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation))
    proposed = []
    answers = iter(((str(tmp_path / "mine.png"), "PNG (*.png)"), ("", "")))

    def ask(_parent, _title, name, _pattern):
        proposed.append(Path(name))
        return next(answers)

    monkeypatch.setattr(dialogs, "_last_saved_in", [])
    monkeypatch.setattr(QFileDialog, "getSaveFileName", ask)  # a dialog of the system, which no test can click
    window.registry["file.export_picture"].run()
    window.registry["file.export_picture"].run()
    start = documents if documents.is_dir() else Path.home()
    assert proposed == [start / "scene.png", tmp_path / "scene.png"]


@pytest.mark.thorough
def test_a_save_dialog_replaces_neither_an_open_trace_nor_a_file_that_the_user_did_not_name(
    window, monkeypatch, tmp_path
):
    """The dialog asks about a name as it is typed; the ending that is added may make it that of another file."""
    typed = iter([str(window.session.path), str(tmp_path / "mine"), str(tmp_path / "mine"), ""])
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (next(typed), "CSV (*.csv)"))
    said = []
    monkeypatch.setattr(dialogs, "report", lambda _parent, _title, text: said.append(text))
    monkeypatch.setattr(dialogs, "may_replace", lambda _parent, path: said.append(path.name))
    assert dialogs.ask_save(window, Path("x.csv"), "CSV (*.csv)") == tmp_path / "mine.csv"
    assert [text.partition(": ")[2] for text in said] == ["this is the file that is being read; give another name."]
    (tmp_path / "mine.csv").write_text("a note")
    assert dialogs.ask_save(window, Path("x.csv"), "CSV (*.csv)") is None
    assert said[1:] == ["mine.csv"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["events", "details"])
def test_the_panel_with_the_keyboard_has_a_frame(window, name):
    panel = window.workspace.panels[name]
    view = panel.table if name == "events" else panel.browser
    window.workspace.area.view.setFocus()
    assert rgb(view.grab().toImage(), view.width() / 2, view.height() - 1) != LIGHT.accent
    view.setFocus()
    assert rgb(view.grab().toImage(), view.width() / 2, view.height() - 1) == LIGHT.accent


@pytest.mark.thorough
def test_a_larger_text_makes_icons_and_lanes_larger(dense, application, qtbot):
    window = dense
    lanes = window.session.opened.lanes
    table = window.workspace.panels["events"].table
    lanes.fold_group(QUIET)  # there are too many to grow into the room
    assert (lanes.rows[-1].height_px, window.workspace.area.labels.width()) == (20 + 4, 232)
    button = window._bar.widgetForAction(window.actions_by_id.by_id["file.open"])
    assert inked(button) == (16, 12)
    details, bar = window.workspace.docks["details"], window.statusBar()
    width_px, height_px = details.width(), bar.height()
    application.settings.set("window/text_percent", 150)
    qtbot.waitUntil(lambda: lanes.rows[-1].height_px == 30 + 4)
    qtbot.waitUntil(lambda: details.width() == pytest.approx(min(1.5 * width_px, 0.4 * window.width()), abs=2))
    qtbot.waitUntil(lambda: bar.height() == 1.5 * height_px)
    assert window.workspace.area.labels.width() == 348
    assert table.rowHeight(0) == 30
    qtbot.waitUntil(lambda: inked(button) == (24, 18))  # half as large again
    application.settings.set("window/text_percent", 100)
    qtbot.waitUntil(lambda: lanes.rows[-1].height_px == 20 + 4)
    assert table.rowHeight(0) == 20
    qtbot.waitUntil(lambda: inked(button) == (16, 12))
    qtbot.waitUntil(lambda: bar.height() == height_px)


def inked(button):
    """Return how wide and high what a button shows is, in pixels."""
    image = button.grab().toImage()
    ground = image.pixel(1, 1)
    inked = [(x, y) for x in range(image.width()) for y in range(image.height()) if image.pixel(x, y) != ground]
    xs, ys = zip(*inked, strict=True)
    return max(xs) - min(xs) + 1, max(ys) - min(ys) + 1


@pytest.mark.thorough
def test_details_show_the_trace_while_nothing_is_selected(window, view, opened):
    browser = window.workspace.panels["details"].browser
    assert "scene.kev" in browser.toPlainText()
    lines = browser.toPlainText().splitlines()
    assert lines[lines.index("CPUs") + 1] == "2"
    assert lines[lines.index("Events") + 1] == "17"
    opened.select_event(8)
    assert "scene.kev" not in browser.toPlainText()
    QTest.keyClick(view, K.Key_Escape)
    assert "scene.kev" in browser.toPlainText()


@pytest.mark.thorough
def test_details_say_where_a_trace_is_without_the_way_to_the_current_folder(empty_window, load, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    path = scene(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    details = load(empty_window, path).workspace.panels["details"]
    assert f"{path.name}  trace\nruns\n" in details.browser.toPlainText()
    monkeypatch.chdir(tmp_path / "runs")
    details = load(empty_window, path).workspace.panels["details"]
    assert f"{path.name}  trace\n{tmp_path / 'runs'}\n" in details.browser.toPlainText()


@pytest.mark.thorough
def test_the_head_above_the_names_is_cut_with_an_ellipsis(window, opened, qtbot):
    area = window.workspace.area
    head = area._heads[1]
    opened.lanes.fold_all()
    settle(qtbot, window)
    assert head.text() == "Time, processes up to 1 CPU"
    area.labels.width_requested.emit(120)
    assert head.text().startswith("Time, ")
    assert head.text().endswith("\N{HORIZONTAL ELLIPSIS}")
    assert "the whole height is 1 CPU" in head.toolTip()
    area.labels.width_requested.emit(300)
    assert head.text() == "Time, processes up to 1 CPU"


def scroll(field):
    turn_wheel(field, field.rect().center(), -1)


@pytest.mark.thorough
def test_the_wheel_changes_no_field_that_it_passes(window, application, qtbot):
    dialog = SettingsDialog(application.settings, window)
    dialog.show()
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow)
    spins, combos = dialog.findChildren(QSpinBox), dialog.findChildren(QComboBox)
    before = [spin.value() for spin in spins], [combo.currentIndex() for combo in combos]
    dialog.setFocus()
    for field in (*spins, *combos):
        if not field.hasFocus():
            scroll(field)
    assert ([spin.value() for spin in spins], [combo.currentIndex() for combo in combos]) == before
    spins[0].setFocus()
    scroll(spins[0])
    assert spins[0].value() == before[0][0] - 1  # one that was clicked
    dialog.close()


@pytest.mark.thorough
def test_panels_are_forms_too(window, view, qtbot):
    qtbot.keyClick(view, K.Key_G)
    plots = window.workspace.panels["plots"]
    qtbot.waitUntil(lambda: plots.load is not None and not plots.view.is_pending, timeout=10_000)
    before = plots.by.currentIndex()
    view.setFocus()
    scroll(plots.by)
    assert plots.by.currentIndex() == before
