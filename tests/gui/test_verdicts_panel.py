"""The panel of verdicts, on a deadlock that the simulated kernel made."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtTest import QTest

from satview.__main__ import main
from satview.gui.theme import LIGHT
from tests.gui.hands import CONTROL_SHIFT, LEFT, K, click_cell, rgb, row_texts
from tests.helpers.extent import fewer


@pytest.fixture
def deadlock(lesson):
    return lesson("deadlock")


@pytest.fixture
def inversion(lesson):
    return lesson("inversion")


def show(window, qtbot):
    QTest.keyClick(window.workspace.area.view, K.Key_V, CONTROL_SHIFT)
    qtbot.waitUntil(lambda: window.session.opened.verdicts.answer is not None, timeout=10_000)
    return window.workspace.panels["verdicts"]


def texts(panel, row):
    """Return what a row of the panel shows."""
    return [text.strip() for text in row_texts(panel.model, row)]


def click(panel, row):
    click_cell(panel.table, row, x_px=60)  # right of the sign that unfolds it


@pytest.mark.thorough
def test_the_status_bar_announces_what_is_wrong_and_a_click_shows_it(empty_window, load, deadlock, qtbot):
    window = load(empty_window, deadlock)
    workspace, button = window.workspace, window.workspace.status.verdicts
    qtbot.waitUntil(lambda: button.text() == "1 verdict: deadlock", timeout=10_000)
    assert "verdicts" not in workspace.panels.created, "the panel is not needed for that"
    assert "error: deadlock" in button.toolTip()
    assert button.palette().color(QPalette.ColorRole.ButtonText).rgb() & 0xFFFFFF == LIGHT.error
    assert workspace.status.problems.text() == "File: no problems"
    assert workspace.docks["verdicts"].windowTitle() == "Verdicts (1)"
    QTest.mouseClick(button, LEFT)
    qtbot.waitUntil(lambda: workspace.panel_shows("verdicts"))
    assert texts(workspace.panels["verdicts"], 0)[0].endswith("deadlock")
    overview, (when,) = workspace.area.overview, window.session.opened.verdicts.answer.verdicts[0].occurrences
    picture, edges = overview.grab().toImage(), [overview._scale.x(c) for c in (when.start_cycles, when.end_cycles)]
    marked = [x for x in range(picture.width()) if rgb(picture, x, overview.height() - 3) == LIGHT.error]
    left, right = round(edges[0]), round(max(edges[1], edges[0] + 8))
    assert marked == list(range(left, min(right, picture.width())))


@pytest.mark.thorough
def test_what_a_trace_cannot_show_is_said_beside_no_verdicts(empty_window, load, tmp_path, qtbot):
    """Without wide events there are no priorities."""
    main(["tracelogger", "--workload", "polite", "-f", str(tmp_path / "fast.kev")])
    window = load(empty_window, tmp_path / "fast.kev")
    button = window.workspace.status.verdicts
    qtbot.waitUntil(lambda: button.text() == "No verdicts, 1 kind cannot be decided", timeout=10_000)
    assert "Undecided: priority-inversion" in button.toolTip()
    assert window.workspace.docks["verdicts"].windowTitle() == "Verdicts"


@pytest.mark.thorough
def test_nothing_is_looked_for_in_a_longer_trace_before_it_is_requested(empty_window, load, deadlock, qtbot):
    empty_window.settings.set("verdicts/check_up_to_events", 10)
    window = load(empty_window, deadlock)
    assert len(window.session.opened.trace.events) > 10
    qtbot.waitUntil(lambda: not window.workspace.is_checking)
    verdicts, button = window.session.opened.verdicts, window.workspace.status.verdicts
    assert verdicts.answer is None
    assert button.text() == "Check for verdicts"
    QTest.mouseClick(button, LEFT)
    qtbot.waitUntil(lambda: button.text() == "1 verdict: deadlock", timeout=10_000)
    assert window.workspace.panel_shows("verdicts")


@pytest.mark.thorough
def test_a_higher_limit_in_the_settings_takes_effect_at_once(empty_window, load, deadlock, qtbot):
    empty_window.settings.set("verdicts/check_up_to_events", 0)
    window = load(empty_window, deadlock)
    qtbot.waitUntil(lambda: not window.workspace.is_checking)
    assert window.session.opened.verdicts.answer is None
    empty_window.settings.set("verdicts/check_up_to_events", 1000)
    qtbot.waitUntil(lambda: window.workspace.status.verdicts.text() == "1 verdict: deadlock", timeout=10_000)


def test_the_key_shows_a_deadlock(empty_window, load, deadlock, qtbot):
    panel = show(load(empty_window, deadlock), qtbot)
    model = panel.model
    assert panel.statement.text() == "1 error"
    assert panel.capture.isHidden(), "the trace shows all"
    assert texts(panel, 0)[0].endswith("deadlock")
    assert model.index(0, 0).data(Qt.ItemDataRole.ForegroundRole).rgb() & 0xFFFFFF == LIGHT.error
    assert texts(panel, 0)[2].startswith("\N{GREATER-THAN OR EQUAL TO} ")
    assert "waits for mutex" in texts(panel, 0)[3]
    assert model.index(0, 2).data(Qt.ItemDataRole.ToolTipRole).endswith("At least: it is still so when the trace ends.")
    assert model.rowCount() == 1
    panel.table.setFocus()
    panel.table.setCurrentIndex(model.index(0, 0))
    QTest.keyClick(panel.table, K.Key_Right)
    assert [texts(panel, row)[0] for row in (1, 2)] == ["advice", "event 90"]
    assert "same order" in texts(panel, 1)[3]
    assert texts(panel, 2)[3].startswith("asks: deadlock 3 (backwards)  SYNC_MUTEX_LOCK  sync_p=0x00000000080f6c80")


@pytest.mark.thorough
def test_click_shows_the_position_and_the_thread_that_suffers(empty_window, load, deadlock, qtbot):
    window = load(empty_window, deadlock)
    panel, opened = show(window, qtbot), window.session.opened
    verdict = opened.verdicts.answer.verdicts[0]
    click(panel, 0)
    assert opened.viewport.window.start < verdict.start_cycles < verdict.end_cycles < opened.viewport.window.end
    assert opened.viewport.window.length < 2 * (verdict.end_cycles - verdict.start_cycles)
    assert int(opened.trace.events.thread[opened.selection.event]) == verdict.threads[0]
    assert window.statusBar().currentMessage().startswith("Press Y to see why the selected thread is in its state")
    panel.model.unfold(0)
    click(panel, 3)
    assert opened.selection.event == verdict.evidence[1]


@pytest.mark.thorough
def test_every_time_of_a_fault_is_a_row_that_leads_there_and_a_mark(empty_window, load, inversion, qtbot):
    """In 200 ms *high* waits twice: from 66.99 ms for 34.03 ms, and from 136.99 ms for 34.06 ms."""
    window = load(empty_window, inversion)
    panel, opened = show(window, qtbot), window.session.opened
    [verdict] = opened.verdicts.answer.verdicts
    assert texts(panel, 0)[1:3] == ["0.136 993 119 598 s", "34.06 ms"]
    assert "it happened once before, at 0.066 994 s." in texts(panel, 0)[3]
    panel.model.unfold(0)
    assert [texts(panel, row)[:3] for row in range(1, 6)] == [
        ["advice", "", ""],
        ["proof", "", ""],
        ["2 of 2", "0.136 993 119 598 s", "34.06 ms"],
        ["1 of 2", "0.066 993 213 734 s", "34.03 ms"],
        ["event 376", "0.136 993 119 598 s", ""],
    ]
    said = [texts(panel, row)[3].partition(":")[0] for row in range(5, panel.model.rowCount())]
    assert said == ["waits", "holder, ready", "preempts", "preempts", "preempts", "goes on"]
    overview = window.workspace.area.overview
    opened.viewport.show_all()
    picture = overview.grab().toImage()
    x_of = {at: overview._scale.x(opened.trace.clock.cycles(at * 1_000_000)) for at in (30, 80, 120, 150, 190)}
    assert [at for at, x in x_of.items() if rgb(picture, x, overview.height() - 3) == LIGHT.error] == [80, 150]
    click(panel, 3)
    assert opened.selection.event == verdict.occurrences[1].row
    first, last = (opened.trace.clock.cycles(at) for at in (136_993_000, 171_058_000))
    assert opened.viewport.window.start < first < last < opened.viewport.window.end


@pytest.mark.thorough
def test_a_sentence_takes_as_many_lines_as_it_needs(empty_window, load, inversion, qtbot):
    window = load(empty_window, inversion)
    table = show(window, qtbot).table
    line_px = table.fontMetrics().lineSpacing()
    table.horizontalHeader().setStretchLastSection(False)
    table.setColumnWidth(3, 3000)
    qtbot.waitUntil(lambda: table.rowHeight(0) < 2.5 * line_px)
    table.setColumnWidth(3, 400)
    qtbot.waitUntil(lambda: table.rowHeight(0) > 3 * line_px)
    text = str(table.model().index(0, 3).data())
    words = table.fontMetrics().boundingRect(0, 0, 390, 10_000, int(Qt.TextFlag.TextWordWrap), text)
    assert table.rowHeight(0) >= words.height(), "no line is cut"


@pytest.mark.thorough
def test_of_hundreds_of_sentences_those_on_the_screen_are_measured(empty_window, load, inversion, qtbot):
    """To measure all rows held the window for two seconds, at each new width again."""
    window = load(empty_window, inversion)
    panel = show(window, qtbot)
    table, answer = panel.table, panel.model.answer
    line_px = table.fontMetrics().lineSpacing()
    panel.show_answer(answer.at(np.repeat(answer.positions[:1], 800)), "", is_descending=False)

    def measured():
        return [row for row in range(800) if table.rowHeight(row) > 2 * line_px]

    qtbot.waitUntil(lambda: 0 in measured())
    assert set(measured()) <= set(range(20))
    table.selectRow(799)
    table.scrollTo(panel.model.index(799, 0))
    qtbot.waitUntil(lambda: 799 in measured())
    assert len(measured()) < 60
    shown = table.visualRect(panel.model.index(799, 0))
    assert 0 < shown.bottom() <= table.viewport().height()


@pytest.mark.thorough
def test_a_trace_without_calls_says_what_it_cannot_show(window, qtbot):
    panel = show(window, qtbot)
    said = panel.missing.text() if panel.missing.isVisible() else panel.message.text()
    assert re.search(r"interrupt-flood.*: .*capture", said)
    assert "events were lost for " in said, "there may be more"


@pytest.mark.parametrize(("who", "held_by"), fewer((("forwards", "3 (backwards)"), ("backwards", "2 (forwards)")), 1))
def test_y_says_why_the_selected_thread_waits(who, held_by, empty_window, load, deadlock, qtbot):
    window = load(empty_window, deadlock)
    opened, panel = window.session.opened, window.workspace.panels["details"]
    thread = next(row for row, name in enumerate(opened.trace.threads.names) if name == who)
    lane = opened.lane_of_thread(thread)
    opened.select_at(lane, opened.trace.clock.cycles(50_000_000))
    qtbot.waitUntil(lambda: "Waits for" in panel.as_text(), timeout=10_000)
    interval = panel.details()[0]
    [waits] = [line for line in interval.sections[0].lines if line.name == "Waits for"]
    assert (interval.title, waits.text) == ("MUTEX", f"deadlock {held_by}")
    assert panel.as_text().count("Waits for") == 1
    QTest.keyClick(window.workspace.area.view, K.Key_Y)
    panel = window.workspace.panels["why"]
    qtbot.waitUntil(lambda: "Why MUTEX?" in panel.as_text(), timeout=10_000)
    text = panel.as_text()
    assert f"held by deadlock {held_by}." in text
    assert "closes the circle: none of them goes on by itself." in text
    QTest.keyClick(window.workspace.area.view, K.Key_Down)
    assert panel.as_text() == text, "it names its thread and moment, so that it can stay while others are selected"


@pytest.mark.thorough
def test_y_without_a_thread_says_what_is_missing(window, opened, view):
    opened.selection.select(None, None, None)
    QTest.keyClick(view, K.Key_Y)
    assert "No thread is known for the selection" in window.statusBar().currentMessage()


def outlined(window, thread):
    """Return whether the lane of a thread has an outline in the colour of what is selected, at its lower edge."""
    area, opened = window.workspace.area, window.session.opened
    row = opened.lanes.row_of(opened.lane_of_thread(thread))
    image, y = area.view.grab().toImage(), row.y_px - area.view.scroll_px + row.height_px - 1
    return sum(rgb(image, x, y) == LIGHT.accent for x in range(image.width())) > 100


@pytest.mark.thorough
def test_a_click_shows_the_worst_case_on_the_lanes(empty_window, load, inversion, qtbot):
    window = load(empty_window, inversion)
    panel = show(window, qtbot)
    opened = window.session.opened
    [verdict] = opened.verdicts.answer.verdicts
    high, low, middle = verdict.threads
    worst = max(verdict.occurrences, key=lambda case: case.end_cycles - case.start_cycles)
    assert worst.start_cycles == verdict.start_cycles, "the sentence is about it"
    assert not outlined(window, low)
    click(panel, 0)
    shown = opened.highlight.shown
    [wait] = shown.waits
    assert (wait.thread, wait.holder, wait.title) == (high, low, "holds it")
    assert (wait.start_cycles, wait.end_cycles) == (worst.start_cycles, worst.end_cycles)
    assert list(dict.fromkeys((leg.thread, leg.title) for leg in shown.legs)) == [
        (high, "waits"), (low, "holds it, ready"), (middle, "runs")]  # fmt: skip
    assert shown.event == worst.row == opened.selection.event
    assert opened.viewport.window.start < worst.start_cycles < worst.end_cycles < opened.viewport.window.end
    assert outlined(window, low)
    assert not outlined(window, middle)
    QTest.keyClick(panel.table, K.Key_Right)
    names = [texts(panel, row)[0] for row in range(6)]
    assert names[:3] == ["\N{BLACK DOWN-POINTING SMALL TRIANGLE} priority-inversion", "advice", "proof"]
    number = verdict.occurrences.index(worst) + 1
    assert names[3] == f"{number} of {len(verdict.occurrences)}", "the worst one first"
    for _ in range(4):
        QTest.keyClick(panel.table, K.Key_Down)
    second = sorted(verdict.occurrences, key=lambda case: case.start_cycles - case.end_cycles)[1]
    [wait] = opened.highlight.shown.waits
    assert (wait.start_cycles, wait.end_cycles) == (second.start_cycles, second.end_cycles)
    window.workspace.area.view.setFocus()
    QTest.keyClick(window.workspace.area.view, K.Key_Escape)
    assert opened.highlight.shown is None
    assert not outlined(window, low)


@pytest.mark.thorough
def test_both_threads_of_a_deadlock_wait_for_each_other(empty_window, load, deadlock, qtbot):
    window = load(empty_window, deadlock)
    panel = show(window, qtbot)
    click(panel, 0)
    first, second = window.session.opened.highlight.shown.waits
    assert (first.thread, first.holder) == (second.holder, second.thread)
    assert {first.end_cycles, second.end_cycles} == {window.session.opened.trace.window.end}
    assert outlined(window, first.holder)
    assert outlined(window, second.holder)


@pytest.mark.thorough
def test_one_click_captures_again_wide(empty_window, load, tmp_path, qtbot):
    main(["tracelogger", "--workload", "inversion", "--fast", "-f", str(tmp_path / "fast.kev")])
    window = load(empty_window, tmp_path / "fast.kev")
    panel, requested = show(window, qtbot), []
    assert "tracelogger -F2 -F5 -F7 -w -f " in panel.capture.toolTip()
    window.session.opened.capture_requested.disconnect()
    window.session.opened.capture_requested.connect(requested.append)
    QTest.mouseClick(panel.capture, LEFT)
    [rules] = requested
    assert "SETALLCLASSESWIDE" in rules


@pytest.mark.thorough
def test_a_verdict_of_several_cases_leads_to_the_longest_and_each_case_says_whom_it_hits(dense, qtbot):
    panel, opened = show(dense, qtbot), dense.session.opened
    (verdict,) = opened.verdicts.answer.verdicts
    ms = [round(opened.trace.clock.duration_ns(case.end_cycles - case.start_cycles) / 1e6, 3)
          for case in verdict.occurrences]  # fmt: skip
    assert ms == [1.391, 2.065, 3.814]
    click(panel, 0)
    longest = verdict.occurrences[2]
    assert opened.selection.event == longest.row
    assert opened.viewport.window.start < longest.start_cycles < longest.end_cycles < opened.viewport.window.end
    panel.model.unfold(0)
    cases = [texts(panel, row) for row in range(panel.model.rowCount()) if " of 3" in texts(panel, row)[0]]
    who = "vehicle_control 1 (control-10ms), from THMUTEX on"
    assert [(case[0], case[2], case[3]) for case in cases] == [
        ("3 of 3", "3.814 ms", f"{who}; the longest; the one that the sentence is about"),
        ("2 of 3", "2.065 ms", who),
        ("1 of 3", "1.391 ms", who),
    ]
