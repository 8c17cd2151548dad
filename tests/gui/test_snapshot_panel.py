"""The panel of all threads at a moment, on a deadlock that the simulated kernel made."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

import satview
from satview.events.states import STATE_BY_NAME
from satview.gui.colours import value_colour
from satview.gui.panel import select_row
from satview.gui.panels.snapshot_panel import SnapshotPanel
from tests.gui.hands import CONTROL, CONTROL_SHIFT, K, click_cell, rgb, take_keyboard
from tests.helpers.kev import TraceBuilder

SHOWN_AT_NS = 20_500_000


@pytest.fixture
def deadlock(empty_window, load, lesson):
    return load(empty_window, lesson("deadlock"))


def show(window) -> SnapshotPanel:
    QTest.keyClick(window.workspace.area.view, K.Key_T, CONTROL_SHIFT)
    return window.workspace.panels["snapshot"]


def look_at(window, qtbot, panel, time_ns):
    """Set cursor A and wait for the snapshot of that moment."""
    at = window.session.opened.trace.clock.cycles(time_ns)
    window.session.opened.selection.set_cursors(at, None)
    qtbot.waitUntil(lambda: panel.view.answer is not None and panel.view.answer_cycles == at, timeout=10_000)
    return at


def cells(panel, row):
    """Return the texts of a row by column; of the state without the sign that unfolds it."""
    texts = {column.name: panel.model.index(row, section).data() for section, column in enumerate(panel.model.columns)}
    return texts | {"state": texts["state"].split()[-1]}


def states(panel):
    """Return {state: row} of the states."""
    rows = range(panel.model.rowCount())
    return {cells(panel, row)["state"]: row for row in rows if not panel.model.depth_at(row)}


@pytest.mark.thorough
def test_buttons_have_the_colour_of_links_only_while_they_do_something(deadlock, qtbot):
    panel = show(deadlock)
    copy = next(button for button in panel.findChildren(QPushButton) if button.text() == "Copy")

    def blue():
        image = copy.grab().toImage()
        colours = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
        return max(colour.blue() - colour.red() for colour in colours)

    assert not copy.isEnabled()
    assert blue() < 100
    look_at(deadlock, qtbot, panel, SHOWN_AT_NS)
    assert copy.isEnabled()
    assert blue() > 150


@pytest.fixture
def shown(deadlock, qtbot):
    panel = show(deadlock)
    look_at(deadlock, qtbot, panel, SHOWN_AT_NS)
    return deadlock, panel


@pytest.mark.thorough
def test_nothing_selected_says_what_to_do(deadlock):
    panel = show(deadlock)
    assert panel.view.answer is None
    assert "Select an event" in panel.message.text()
    assert panel.message.isVisible()
    copy, _ = panel._buttons
    assert copy.geometry().left() > panel.width() // 2, "at the right, as in other panels"
    assert not panel.table.isVisible()


@pytest.mark.thorough
def test_nothing_is_worked_out_before_it_is_seen(deadlock, qtbot):
    panel = show(deadlock)
    show(deadlock)  # and hidden again
    deadlock.session.opened.select_event(100)
    qtbot.wait(150)
    assert panel.view.answer is None
    show(deadlock)
    qtbot.waitUntil(lambda: panel.view.answer is not None, timeout=10_000)


def test_it_has_states_in_their_colours_what_is_waited_for_and_holders(shown, qtbot):
    _, panel = shown
    found = states(panel)
    order = list(found)
    assert (order[0], order[-2:]) == ("MUTEX", ["RECEIVE", "IDLE"]), "who waits for somebody is first"
    assert cells(panel, found["IDLE"] + 1)["cpu"] == "0"
    assert cells(panel, found["RECEIVE"])["count"] == "7"
    assert cells(panel, found["RECEIVE"] + 1)["count"] == "6"
    assert cells(panel, found["MUTEX"]) == dict.fromkeys(panel.shown_names, "") | {"state": "MUTEX", "count": "2"}
    rows = [cells(panel, found["MUTEX"] + 1 + row) for row in range(2)]
    forwards = next(row for row in rows if row["thread"].endswith("(forwards)"))
    assert forwards["waits_for"].startswith("mutex 0x")
    assert forwards["holder"] == "deadlock 3 (backwards)"
    assert forwards["length"].endswith("ms")
    assert "12 threads" in panel.moment.text()
    assert "0.020 500" in panel.moment.text()
    window, panel = shown
    row = states(panel)["MUTEX"]
    image = panel.model.index(row, 0).data(Qt.ItemDataRole.DecorationRole).toImage()
    mutex = STATE_BY_NAME["MUTEX"].value
    assert rgb(image, 5, 5) == value_colour(mutex, window.theme.is_dark)


@pytest.mark.thorough
def test_it_follows_the_selection_without_being_requested(shown, qtbot):
    window, panel = shown
    opened = window.session.opened
    row = len(opened.trace.events) // 2
    opened.select_event(row)
    at = int(opened.trace.events.time_cycles[row])
    qtbot.waitUntil(lambda: panel.view.answer_cycles == at, timeout=10_000)
    expected = satview.snapshot(opened.trace, at)
    assert panel.exported.records() == expected.records()


@pytest.mark.thorough
def test_a_click_goes_to_the_thread_and_stays_at_the_moment(shown, qtbot):
    window, panel = shown
    opened, moment = window.session.opened, panel.view.answer_cycles
    row = states(panel)["MUTEX"] + 1
    click_cell(panel.table, row, panel.model.section_of("thread"))
    event = opened.selection.event
    assert opened.trace.spec(event).name == "THMUTEX"
    assert opened.trace.thread_name(int(opened.trace.events.thread[event])) == cells(panel, row)["thread"]
    qtbot.wait(150)
    assert panel.view.answer_cycles == moment, "the event is long before it"
    click_cell(panel.table, row, panel.model.section_of("holder"))
    lane = opened.selection.lane
    assert opened.trace.thread_name(opened.timeline.infos[lane].thread) == cells(panel, row)["holder"]


@pytest.mark.thorough
def test_branches_stay_as_the_user_left_them(shown, qtbot):
    window, panel = shown
    panel.model.fold(states(panel)["MUTEX"])
    assert panel.model.is_open(states(panel)["RECEIVE"])
    look_at(window, qtbot, panel, SHOWN_AT_NS + 1_000_000)
    assert not panel.model.is_open(states(panel)["MUTEX"])
    assert panel.model.is_open(states(panel)["RECEIVE"])


@pytest.mark.thorough
def test_copy_takes_all_threads_while_the_table_has_the_focus(shown, qtbot):
    window, panel = shown
    window.session.opened.select_event(len(window.session.opened.trace.events) // 2)
    qtbot.waitUntil(lambda: not panel.view.is_pending)
    take_keyboard(window, qtbot)
    assert panel.copied_text() == ""
    panel.table.setFocus()
    qtbot.waitUntil(panel.table.hasFocus)
    qtbot.keyClick(panel.table, K.Key_C, CONTROL)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 1 + 12
    assert lines[0] == "State\tThread\tpid\ttid\tThreads\tCPU\tWaits for\tHeld or served by\tSince\tFor\tEvent"
    assert any(line.startswith("MUTEX\tdeadlock 2 (forwards)\t") for line in lines)
    select_row(panel.table, states(panel)["MUTEX"])
    assert [line.split("\t")[0] for line in panel.copied_text().splitlines()] == ["State", "MUTEX"]


@pytest.mark.thorough
def test_many_threads_are_counted_before_they_are_shown(empty_window, load, tmp_path, qtbot):
    made = TraceBuilder().time_event(0)
    for tid in range(1, 301):
        made.state("NANOSLEEP", 10 + tid, 5, tid)
    window = load(empty_window, made.state("RUNNING", 1_000, 6, 1).write(tmp_path / "many.kev"))
    panel = show(window)
    look_at(window, qtbot, panel, 900)
    row = states(panel)["NANOSLEEP"]
    assert (cells(panel, row)["count"], panel.model.is_open(row)) == (
        "\N{GREATER-THAN OR EQUAL TO} 300",
        False,
    )  # the last is not seen yet
    panel.model.unfold(row)
    assert [cells(panel, row + 1 + number)["thread"] for number in (0, 299)] == ["pid 5 1", "pid 5 300"]


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
