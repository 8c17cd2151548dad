"""The panel Late: activities, their instances, blame, and a file of timing; by keys and clicks."""

from __future__ import annotations

import os

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from satview.__main__ import main
from tests.helpers.scene import rounds_of_a_loop

CLOSED = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE} "
BASE = 1 << 32  # of all times, as TraceBuilder writes them


@pytest.fixture
def looping(tmp_path):
    """Rounds of 10,000 ns: those that begin at 110,000, 210,000 and 310,000 take 5,100, all others 1,100."""
    return rounds_of_a_loop().write(tmp_path / "looping.kev")


def show(window, qtbot):
    modifiers = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(window.workspace.area.view, Qt.Key.Key_H, modifiers)
    qtbot.waitUntil(lambda: window.workspace.panel_shows("late"))
    panel = window.workspace.panels["late"]
    settle(panel, qtbot)
    return panel


def settle(panel, qtbot):
    views = panel.activities_view, panel.instance_view
    qtbot.waitUntil(lambda: not any(view.is_busy for view in views), timeout=10_000)


def texts(table, row):
    """Return what a row of a table shows, by the title of the column."""
    model, across = table.model, Qt.Orientation.Horizontal
    return {model.headerData(section, across).lstrip("\N{BLACK DOWN-POINTING SMALL TRIANGLE} "):
            model.index(row, section).data().strip() for section in range(model.columnCount())}  # fmt: skip


def click(table, row):
    table.table.scrollTo(table.model.index(row, 0))
    position = table.table.visualRect(table.model.index(row, 0)).center()
    QTest.mouseClick(table.table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(60, position.y()))


def test_the_worst_instance_is_explained_at_first(empty_window, load, looping, qtbot):
    window = load(empty_window, looping)
    before = window.session.opened.viewport.window
    panel = show(window, qtbot)
    (activity,) = (texts(panel.activities, row) for row in range(panel.activities.model.rowCount()))
    assert {title: activity[title] for title in ("Activity", "Count", "Misses", "Max", "Deadline")} == {
        "Activity": "control 1", "Count": "40", "Misses": "0", "Max": "5.100 µs", "Deadline": "10.00 µs"}  # fmt: skip
    assert panel.instances.model.rowCount() == 40
    assert [texts(panel.instances, row)["Response"] for row in (0, 2, 3)] == ["5.100 µs", "5.100 µs", "1.100 µs"]
    assert [texts(panel.blame, row)["Length"] for row in (0, 1)] == ["4.100 µs", "1.000 µs"]
    assert [texts(panel.blame, row)["Part"] for row in (0, 1)] == ["preempted", "own work"]
    assert panel.says.text().startswith("control 1 took 5.100 µs from")
    assert panel.says.text().endswith("4.100 µs ready while hog 1 ran, 1.000 µs own work.")
    assert window.session.opened.viewport.window == before, "nothing was clicked"


def test_a_click_shows_an_instance_on_the_lanes(empty_window, load, looping, qtbot):
    window = load(empty_window, looping)
    panel = show(window, qtbot)
    click(panel.instances, 1)
    opened = window.session.opened
    assert int(opened.trace.events.time_cycles[opened.selection.event]) - BASE == 210_000
    (leg,) = opened.highlight.shown.legs
    ends = opened.trace.events.time_cycles[[leg.from_row, leg.to_row]] - BASE
    assert (leg.title, ends.tolist()) == ("control 1", [210_000, 215_100])
    shown = opened.viewport.window
    assert shown.start - BASE < 210_000 < 215_100 < shown.end - BASE < 220_000
    settle(panel, qtbot)
    assert panel.instance_view.found.row == 1
    assert "from 0.000 210 000 s" in panel.says.text()


def test_a_key_explains_the_selected_thread_at_its_moment(empty_window, load, looping, qtbot):
    window = load(empty_window, looping)
    trace, navigation = window.session.opened.trace, window.workspace.navigation
    row = int(trace.events.time_cycles.searchsorted(BASE + 50_500))
    navigation.show_event(row)
    assert int(trace.events.time_cycles[row]) - BASE == 51_100, "the round of 50,000 is done"
    QTest.keyClick(window.workspace.area.view, Qt.Key.Key_U)
    panel = window.workspace.panels["late"]
    qtbot.waitUntil(lambda: panel.instance_view.found is not None, timeout=10_000)
    settle(panel, qtbot)
    found = panel.instance_view.found
    assert int(found.late.found.instances.start_cycles[found.positions[found.row]]) - BASE == 50_000
    assert texts(panel.instances, panel.instances.table.currentIndex().row())["Response"] == "1.100 µs"


def test_slow_is_compared_with_fast_behind_a_tab(empty_window, load, looping, qtbot):
    """Three of the slowest four rounds take 4,000 more: 3,000 on average."""
    panel = show(load(empty_window, looping), qtbot)
    panel.blame.tabs.setCurrentIndex(1)
    assert [panel.blame.tabs.tabText(tab) for tab in (0, 1)] == ["Blame", "Slow against fast"]
    row = texts(panel.blame, 0)
    assert (row["Part"], row["Whom"], row["Explains"]) == ("preempted", "hog 1", "3.000 µs")


def test_a_file_of_timing_is_obeyed_and_its_error_is_a_sentence(empty_window, load, looping, qtbot):
    looping.with_name("timing.toml").write_text('["control 1"]\ndeadline = "5us"\n')
    panel = show(load(empty_window, looping), qtbot)
    panel.timing.setFocus()
    QTest.keyClicks(panel.timing, "timing.toml")
    QTest.keyClick(panel.timing, Qt.Key.Key_Return)
    settle(panel, qtbot)
    assert texts(panel.activities, 0)["Misses"] == "3"
    assert texts(panel.instances, 0)["Outcome"] == "late"
    assert panel.saved_values() == {"timing": "timing.toml"}
    opened = empty_window.workspace.opened
    opened.verdicts.start()
    qtbot.waitUntil(lambda: opened.verdicts.found is not None and not opened.verdicts.is_busy)
    assert [verdict.kind for verdict in opened.verdicts.found.verdicts] == ["deadline"]
    looping.with_name("timing.toml").write_text('["control 1"]\ndeadline = "soon"\n')
    panel.reload()
    settle(panel, qtbot)
    assert panel.message.isVisible()
    assert panel.message.text().startswith("timing.toml: [control 1] deadline: ")
    panel.timing.clear()
    panel.timing.editingFinished.emit()
    settle(panel, qtbot)
    assert texts(panel.activities, 0)["Misses"] == "0"


def test_a_saved_file_of_timing_is_used_at_once(empty_window, load, looping, qtbot):
    looping.with_name("timing.toml").write_text('["control 1"]\ndeadline = "5us"\n')
    window = load(empty_window, looping)
    window.workspace.panels["late"].take_values({"timing": "timing.toml"})
    assert texts(show(window, qtbot).activities, 0)["Misses"] == "3"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
def test_a_pipe_in_place_of_a_file_of_timing_is_not_waited_for(empty_window, load, looping, qtbot):
    os.mkfifo(looping.with_name("timing.toml"))
    window = load(empty_window, looping)
    window.workspace.panels["late"].take_values({"timing": "timing.toml"})
    assert show(window, qtbot).message.text() == "timing.toml: there is no such file"


def test_a_trace_without_activities_says_so(window, qtbot):
    panel = show(window, qtbot)
    assert panel.message.isVisible()
    assert panel.message.text().startswith("Cannot tell: no pulse is received; capture the class COMM.")
    assert panel.says.text() == ""


def test_a_thread_that_does_nothing_again_is_reported(empty_window, load, looping, qtbot):
    window = load(empty_window, looping)
    hog = next(row for row in range(len(window.session.opened.trace.threads))
               if window.session.opened.trace.thread_name(row) == "hog 1")  # fmt: skip
    panel = show(window, qtbot)
    before = panel.instance_view.found
    panel.explain(hog, 20_000)
    assert window.statusBar().currentMessage().startswith("hog 1 does nothing again and again")
    assert panel.instance_view.found is before


@pytest.mark.thorough
def test_the_car_s_control_loop_waits_for_the_logger(empty_window, load, tmp_path, qtbot):
    """As docs/late.md says: the worst round waits for a lock of the logger, which runs meanwhile."""
    path = tmp_path / "car.kev"
    assert main(["tracelogger", "--workload", "automotive", "-s", "0.5", "-f", str(path)]) == 0
    window = load(empty_window, path)
    panel = show(window, qtbot)
    names = [texts(panel.activities, row)["Activity"] for row in range(panel.activities.model.rowCount())]
    click(panel.activities, names.index("vehicle_control 1 (control-10ms)"))
    settle(panel, qtbot)
    click(panel.instances, 0)
    settle(panel, qtbot)
    worst = texts(panel.blame, 0)
    assert (worst["Part"].lstrip(CLOSED), worst["Whom"], worst["Length"]) == ("lock", "logger 1 (writer)", "1.262 ms")
    panel.blame.table.setFocus()
    panel.blame.table.setCurrentIndex(panel.blame.model.index(0, 0))
    QTest.keyClick(panel.blame.table, Qt.Key.Key_Right)
    assert texts(panel.blame, 1)["Part"] == "own work"
    assert texts(panel.blame, 1)["Whom"] == "logger 1 (writer)"
    window.workspace.area.view.setFocus()
    explained = panel.instance_view.found
    window.workspace.navigation.show_event(int(explained.late.found.instances.end_row[explained.positions[1]]))
    QTest.keyClick(window.workspace.area.view, Qt.Key.Key_U)
    qtbot.waitUntil(lambda: panel.instance_view.found.row == 1, timeout=10_000)
