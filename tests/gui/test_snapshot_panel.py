"""The panel of all threads at a moment, on a deadlock that the simulated kernel made."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

import satview
from satview.__main__ import main
from satview.gui.colours import value_colour
from satview.gui.panels.snapshot_panel import SnapshotPanel
from tests.helpers.kev import TraceBuilder

SHOWN_AT_NS = 20_500_000


@pytest.fixture(scope="module")
def deadlock(tmp_path_factory):
    path = tmp_path_factory.mktemp("snapshot") / "deadlock.kev"
    main(["tracelogger", "--workload", "deadlock", "-w", "-f", str(path)])  # 1: the program got stuck
    return path


def show(window, qtbot) -> SnapshotPanel:
    QTest.keyClick(
        window.workspace.area.view,
        Qt.Key.Key_T,
        Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier,
    )
    return window.workspace.panels["snapshot"]


def look_at(window, qtbot, panel, time_ns):
    """Set cursor A and wait for the snapshot of that moment."""
    at = window.session.opened.trace.clock.cycles(time_ns)
    window.session.opened.selection.set_cursors(at, None)
    qtbot.waitUntil(lambda: panel.view.found is not None and panel.view.found.at_cycles == at, timeout=10_000)
    return at


def states(panel):
    tree = panel.tree
    return {tree.topLevelItem(i).text(0): tree.topLevelItem(i) for i in range(tree.topLevelItemCount())}


@pytest.fixture
def shown(empty_window, load, deadlock, qtbot):
    window = load(empty_window, deadlock)
    panel = show(window, qtbot)
    look_at(window, qtbot, panel, SHOWN_AT_NS)
    return window, panel


@pytest.mark.thorough
def test_nothing_selected_says_what_to_do(empty_window, load, deadlock, qtbot):
    window = load(empty_window, deadlock)
    panel = show(window, qtbot)
    assert panel.view.found is None
    assert "Select an event" in panel._empty.text()
    assert panel._empty.isVisible()
    assert not panel.tree.isVisible()


@pytest.mark.thorough
def test_nothing_is_worked_out_before_it_is_seen(empty_window, load, deadlock, qtbot):
    window = load(empty_window, deadlock)
    panel = show(window, qtbot)
    show(window, qtbot)  # and hidden again
    window.session.opened.select_event(100)
    qtbot.wait(150)
    assert panel.view.found is None
    show(window, qtbot)
    qtbot.waitUntil(lambda: panel.view.found is not None, timeout=10_000)


def test_the_tree_has_states_what_is_waited_for_and_holders(shown, qtbot):
    _, panel = shown
    found = states(panel)
    order = list(found)
    assert (order[0], order[-2:]) == ("MUTEX", ["RECEIVE", "IDLE"]), "who waits for somebody is first"
    assert found["IDLE"].child(0).text(2) == "CPU 0"
    assert found["RECEIVE"].child(0).text(0) == "6 threads"
    mutex = found["MUTEX"]
    assert (mutex.text(1), mutex.isExpanded(), mutex.childCount()) == ("2", True, 2)
    forwards = next(mutex.child(i) for i in range(2) if mutex.child(i).text(0).endswith("(forwards)"))
    assert forwards.text(2).startswith("mutex 0x")
    assert forwards.text(3) == "deadlock 3 (backwards)"
    assert forwards.text(4).endswith("ms")
    assert "12 threads" in panel.moment.text()
    assert "0.020 500" in panel.moment.text()


@pytest.mark.thorough
def test_states_have_the_colours_of_the_lanes(shown):
    window, panel = shown
    group = next(group for group in panel.view.found.groups if group.state == "MUTEX")
    image = states(panel)["MUTEX"].icon(0).pixmap(10, 10).toImage()
    assert image.pixelColor(5, 5).rgb() & 0xFFFFFF == value_colour(group.value, window.theme.is_dark)


@pytest.mark.thorough
def test_it_follows_the_selection_without_being_requested(shown, qtbot):
    window, panel = shown
    opened = window.session.opened
    row = len(opened.trace.events) // 2
    opened.select_event(row)
    at = int(opened.trace.events.time_cycles[row])
    qtbot.waitUntil(lambda: panel.view.found.at_cycles == at, timeout=10_000)
    expected = satview.snapshot(opened.trace, at)
    assert [group.state for group in panel.view.found.groups] == [group.state for group in expected.groups]


@pytest.mark.thorough
def test_a_click_goes_to_the_thread_and_stays_at_the_moment(shown, qtbot):
    window, panel = shown
    opened, moment = window.session.opened, panel.view.found.at_cycles
    mutex = states(panel)["MUTEX"]
    panel.tree.scrollToItem(mutex.child(0))
    position = panel.tree.visualItemRect(mutex.child(0)).center()
    position.setX(panel.tree.visualItemRect(mutex.child(0)).left() + 20)
    qtbot.mouseClick(panel.tree.viewport(), Qt.MouseButton.LeftButton, pos=position)
    event = opened.selection.event
    assert opened.trace.spec(event).name == "THMUTEX"
    assert opened.trace.thread_name(int(opened.trace.events.thread[event])) == mutex.child(0).text(0)
    qtbot.wait(150)
    assert panel.view.found.at_cycles == moment, "the event is long before it"
    column = panel.tree.columnViewportPosition(3) + 10
    position.setX(column)
    qtbot.mouseClick(panel.tree.viewport(), Qt.MouseButton.LeftButton, pos=position)
    lane = opened.selection.lane
    assert opened.trace.thread_name(opened.timeline.infos[lane].thread) == mutex.child(0).text(3)


@pytest.mark.thorough
def test_branches_stay_as_the_user_left_them(shown, qtbot):
    window, panel = shown
    states(panel)["MUTEX"].setExpanded(False)
    assert states(panel)["RECEIVE"].isExpanded()
    look_at(window, qtbot, panel, SHOWN_AT_NS + 1_000_000)
    assert not states(panel)["MUTEX"].isExpanded()
    assert states(panel)["RECEIVE"].isExpanded()


@pytest.mark.thorough
def test_copy_takes_all_threads_while_the_tree_has_the_focus(shown, qtbot):
    window, panel = shown
    window.session.opened.select_event(len(window.session.opened.trace.events) // 2)
    qtbot.waitUntil(lambda: not panel.view.is_pending)
    window.activateWindow()
    window.workspace.area.view.setFocus()
    assert panel.copied_text() == ""
    panel.tree.setFocus()
    qtbot.waitUntil(panel.tree.hasFocus)
    qtbot.keyClick(panel.tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 1 + panel.view.found.thread_count
    assert lines[0] == "State\tWaits for\tHeld or served by\tThread\tFor"
    assert any(line.startswith("MUTEX\tmutex 0x") for line in lines)


@pytest.mark.thorough
def test_many_threads_are_shown_in_part_and_counted_whole(empty_window, load, tmp_path, qtbot):
    made = TraceBuilder().time_event(0)
    for tid in range(1, 301):
        made.state("NANOSLEEP", 10 + tid, 5, tid)
    window = load(empty_window, made.state("RUNNING", 1_000, 6, 1).write(tmp_path / "many.kev"))
    panel = show(window, qtbot)
    look_at(window, qtbot, panel, 900)
    top = states(panel)["NANOSLEEP"]
    assert (top.text(1), top.isExpanded(), top.childCount()) == ("300", False, 0)
    top.setExpanded(True)
    assert top.childCount() == 201
    assert top.child(200).text(0) == "and 100 more"


@pytest.mark.thorough
def test_an_interval_that_is_clicked_is_looked_at_in_its_middle(shown):
    """At its first instant everybody would wait for 0 ns, and a deadlock would be none yet."""
    window, panel = shown
    opened = window.session.opened
    lane = next(info.index for info in opened.timeline.infos if info.title == "forwards")
    waits = opened.timeline.lane(lane).at(opened.trace.window.end - 1)
    opened.select_at(lane, waits.start_cycles)
    assert opened.selection.is_interval
    assert panel.view.at_cycles == (waits.start_cycles + waits.end_cycles) // 2
