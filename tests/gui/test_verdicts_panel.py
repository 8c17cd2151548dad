"""The panel of verdicts, on a deadlock that the simulated kernel made."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtTest import QTest

from satview.__main__ import main
from satview.gui.theme import LIGHT


@pytest.fixture(scope="module")
def deadlock(tmp_path_factory):
    path = tmp_path_factory.mktemp("verdicts") / "deadlock.kev"
    main(["tracelogger", "--workload", "deadlock", "-w", "-f", str(path)])  # 1: the program got stuck
    return path


def show(window, qtbot):
    QTest.keyClick(
        window.workspace.area.view,
        Qt.Key.Key_V,
        Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier,
    )
    qtbot.waitUntil(lambda: window.session.opened.verdicts.found is not None, timeout=10_000)
    return window.workspace.panels["verdicts"]


def test_the_status_bar_announces_what_is_wrong_and_a_click_shows_it(empty_window, load, deadlock, qtbot):
    window = load(empty_window, deadlock)
    work, button = window.workspace, window.workspace.status.verdicts
    qtbot.waitUntil(lambda: button.text() == "1 verdict: deadlock", timeout=10_000)
    assert "verdicts" not in work.panels.made, "the panel is not needed for that"
    assert "error: deadlock" in button.toolTip()
    assert button.palette().color(QPalette.ColorRole.ButtonText).rgb() & 0xFFFFFF == LIGHT.error
    assert work.status.problems.text() == "File: no problems"
    assert work.docks["verdicts"].windowTitle() == "Verdicts (1)"
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: work.panel_shows("verdicts"))
    assert work.panels["verdicts"].tree.topLevelItem(0).text(0) == "deadlock"


def test_what_a_trace_cannot_tell_is_said_beside_no_verdicts(empty_window, load, tmp_path, qtbot):
    """Without wide events the same deadlock cannot be found."""
    main(["tracelogger", "--workload", "deadlock", "-f", str(tmp_path / "fast.kev")])
    window = load(empty_window, tmp_path / "fast.kev")
    button = window.workspace.status.verdicts
    qtbot.waitUntil(lambda: button.text() == "No verdicts, 2 kinds cannot be told", timeout=10_000)
    assert "Cannot be told: deadlock, priority-inversion" in button.toolTip()
    assert window.workspace.docks["verdicts"].windowTitle() == "Verdicts"


def test_nothing_is_looked_for_in_a_longer_trace_before_it_is_asked(empty_window, load, deadlock, qtbot):
    empty_window.settings.set("verdicts/check_up_to_events", 10)
    window = load(empty_window, deadlock)
    assert len(window.session.opened.trace.events) > 10
    qtbot.waitUntil(lambda: not window.workspace.is_checking)
    verdicts, button = window.session.opened.verdicts, window.workspace.status.verdicts
    assert verdicts.found is None
    assert button.text() == "Check for verdicts"
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: button.text() == "1 verdict: deadlock", timeout=10_000)
    assert window.workspace.panel_shows("verdicts")


def test_a_higher_limit_in_the_settings_takes_effect_at_once(empty_window, load, deadlock, qtbot):
    empty_window.settings.set("verdicts/check_up_to_events", 0)
    window = load(empty_window, deadlock)
    qtbot.waitUntil(lambda: not window.workspace.is_checking)
    assert window.session.opened.verdicts.found is None
    empty_window.settings.set("verdicts/check_up_to_events", 1000)
    qtbot.waitUntil(lambda: window.workspace.status.verdicts.text() == "1 verdict: deadlock", timeout=10_000)


def test_the_key_shows_a_deadlock(empty_window, load, deadlock, qtbot):
    window = load(empty_window, deadlock)
    tree = show(window, qtbot).tree
    top = tree.topLevelItem(0)
    assert top.text(0) == "deadlock"
    assert top.foreground(0).color().rgb() & 0xFFFFFF == LIGHT.error
    assert "waits for mutex" in top.text(3)
    assert top.child(0).text(0) == "remedy"
    assert top.child(1).text(0) == "event 90"


def test_click_shows_the_place_and_the_thread_that_suffers(empty_window, load, deadlock, qtbot):
    window = load(empty_window, deadlock)
    tree, opened = show(window, qtbot).tree, window.session.opened
    verdict = opened.verdicts.found.verdicts[0]
    tree.itemClicked.emit(tree.topLevelItem(0), 0)
    assert opened.viewport.window.start < verdict.start_cycles < verdict.end_cycles < opened.viewport.window.end
    assert opened.viewport.window.length < 2 * (verdict.end_cycles - verdict.start_cycles)
    assert int(opened.trace.events.thread[opened.selection.event]) == verdict.threads[0]
    tree.itemClicked.emit(tree.topLevelItem(0).child(2), 0)
    assert opened.selection.event == verdict.evidence[1]


def test_overview_marks_the_verdict(empty_window, load, deadlock, qtbot):
    empty_window.settings.set("verdicts/check_up_to_events", 0)
    window = load(empty_window, deadlock)
    overview, opened = window.workspace.area.overview, window.session.opened
    before = overview.grab().toImage()
    show(window, qtbot)
    verdict = opened.verdicts.found.verdicts[0]
    x, y = round(overview._scale.x((verdict.start_cycles + verdict.end_cycles) // 2)), overview.height() - 3
    opened.viewport.show_all()
    assert overview.grab().toImage().pixelColor(x, y).rgb() & 0xFFFFFF == LIGHT.error
    assert before.pixelColor(x, y).rgb() & 0xFFFFFF != LIGHT.error


def test_a_trace_without_calls_says_what_it_cannot_tell(window, qtbot):
    tree = show(window, qtbot).tree
    last = tree.topLevelItem(tree.topLevelItemCount() - 1)
    reasons = {last.child(i).text(0): last.child(i).text(3) for i in range(last.childCount())}
    assert "capture" in reasons["interrupt-flood"]


@pytest.mark.parametrize(("who", "held_by"), [("forwards", "3 (backwards)"), ("backwards", "2 (forwards)")])
def test_y_says_why_the_selected_thread_waits(who, held_by, empty_window, load, deadlock, qtbot):
    window = load(empty_window, deadlock)
    opened, panel = window.session.opened, window.workspace.panels["details"]
    thread = next(row for row, name in enumerate(opened.trace.threads.names) if name == who)
    lane = opened.lane_of_thread(thread)
    opened.select_at(lane, opened.trace.clock.cycles(50_000_000))
    QTest.keyClick(window.workspace.area.view, Qt.Key.Key_Y)
    qtbot.waitUntil(lambda: "Why MUTEX?" in panel.as_text(), timeout=10_000)
    text = panel.as_text()
    assert f"held by deadlock {held_by}, until the trace ends." in text
    assert "waits for it in turn: none of them goes on by itself." in text
    QTest.keyClick(window.workspace.area.view, Qt.Key.Key_Down)
    assert "Why MUTEX?" not in panel.as_text()


def test_y_without_a_thread_says_what_is_missing(window, view):
    opened = window.session.opened
    opened.selection.select(None, None, None)
    QTest.keyClick(view, Qt.Key.Key_Y)
    assert "No thread is known for the selection" in window.statusBar().currentMessage()
