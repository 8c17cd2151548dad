"""The panel of verdicts, on a deadlock that the simulated kernel made."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
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


def test_nothing_is_looked_for_before_the_panel_is_seen_and_the_key_shows_a_deadlock(
    empty_window, load, deadlock, qtbot
):
    window = load(empty_window, deadlock)
    verdicts = window.session.opened.verdicts
    assert verdicts.found is None
    assert not verdicts.is_busy
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
