"""Lanes of events in a window: switched in the menu, drawn, stepped through, stored; described by a file."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtTest import QTest

from satview.base.time import TimeWindow
from satview.events import wire
from satview.events.variants import text_words
from satview.events.wire import KER_64BIT, WireClass
from satview.gui import dialogs
from satview.gui.swimlane.mouse import hover_text
from satview.gui.swimlane.shares import share_text
from satview.session.event_text import span_details
from satview.session.state_files import StateFiles
from tests.gui.conftest import settle, stack_of
from tests.gui.hands import LEFT, K, answer_prompt, take_keyboard
from tests.helpers.elf import write_elf
from tests.helpers.kev import TraceBuilder

A, B = 2, 3
QUEUE = wire.code(WireClass.USER, 10)


@pytest.fixture
def state_files(tmp_path):
    return StateFiles(tmp_path / "views", tmp_path / "sessions")


def written(folder):
    """Two processes: alpha calls functions and looks up a path, beta counts a queue; the kernel logs a line."""
    made = TraceBuilder(cpus=1).time_event(0)
    made.process_name(10, A, "usr/bin/alpha").process_name(20, B, "usr/bin/beta")
    made.state("RUNNING", 100, A, 1)
    system = WireClass.SYSTEM
    for time, code, address in ((1_000, 10, 0x100), (2_000, 10, 0x200), (3_000, 11, 0x200), (4_000, 11, 0x100)):
        made.event(wire.code(system, code | KER_64BIT), time, (address, 0, 0, 0))
    made.event(wire.code(system, 2), 5_000, (A, 1, *text_words(b"/dev/ser1", "little")))
    made.event(wire.code(system, 12), 6_000, (1, 2, *text_words(b"disk is slow", "little")))
    made.state("READY", 7_000, A, 1).state("RUNNING", 7_001, B, 1)
    made.event(QUEUE, 8_000, (2, 0)).event(QUEUE, 9_000, (4, 0)).event(QUEUE, 10_000, (0, 0))
    return made.write(folder / "lanes.kev")


@pytest.fixture
def window(empty_window, load, tmp_path, qtbot):
    take_keyboard(load(empty_window, written(tmp_path)), qtbot)
    return empty_window


def show(window, qtbot, *names):
    for name in names:
        window.actions_by_id.by_id[f"lanes.show_{name}"].trigger()
    at_rest(window, qtbot)


def at_rest(window, qtbot):
    qtbot.waitUntil(lambda: not window.session.opened.class_loader.is_busy)
    settle(qtbot, window)


def titles(opened):
    return [opened.timeline.infos[row.unit].title for row in opened.lanes.rows]


def lane(opened, title):
    return next(row for row in opened.lanes.rows if opened.timeline.infos[row.unit].title == title)


@pytest.mark.thorough
def test_lanes_are_switched_on_and_off_where_they_belong(window, opened, qtbot):
    assert titles(opened) == ["CPU 0", "alpha", "beta"]
    show(window, qtbot, "functions", "log")
    assert titles(opened) == ["CPU 0", "kernel log", "alpha", "functions", "functions 2", "beta"]
    assert [row.depth for row in opened.lanes.rows] == [0, 0, 0, 1, 1, 0]
    assert window.settings.text("swimlane/lane_classes") == "functions,log"
    opened.lanes.fold(lane(opened, "alpha").index)
    assert titles(opened) == ["CPU 0", "kernel log", "alpha", "beta"]
    opened.lanes.fold(lane(opened, "alpha").index)
    thread = opened.lanes.rows[2]
    assert (thread.is_foldable, thread.is_open) == (True, True)
    show(window, qtbot, "functions", "log")
    assert titles(opened) == ["CPU 0", "alpha", "beta"]
    window.actions_by_id.by_id["edit.undo"].trigger()
    assert "kernel log" in titles(opened)


@pytest.mark.thorough
def test_a_class_without_events_is_refused_in_one_sentence(window, qtbot):
    show(window, qtbot, "guests")
    assert "The trace has no events for lanes of guest" in window.statusBar().currentMessage()
    assert window.session.opened.lanes.arrangement.classes == frozenset()


@pytest.mark.thorough
def test_keys_step_through_the_events_of_a_lane(window, qtbot):
    show(window, qtbot, "user")
    opened, view = window.session.opened, window.workspace.area.view
    row = lane(opened, "event 10")
    opened.select_at(row.index, opened.trace.window.start + 8_500)
    assert opened.trace.events.code[opened.selection.event] == QUEUE
    first = opened.selection.event
    QTest.keyClick(view, K.Key_Period)
    assert (opened.selection.event, opened.selection.lane) == (first + 1, row.index)
    QTest.keyClick(view, K.Key_Comma)
    assert opened.selection.event == first


def test_moments_are_marked_and_named_and_have_no_length(window, qtbot):
    show(window, qtbot, "log")
    opened, view = window.session.opened, window.workspace.area.view
    row = lane(opened, "kernel log")
    here = opened.timeline.lane(row.index).at(opened.trace.window.start + 6_500)
    text = hover_text(opened, row.index, here, None, here.start_cycles)
    assert "<b>disk is slow</b>&nbsp;&nbsp;<br>kernel log" in text
    details = span_details(opened.timeline, row.index, here)
    assert (details.title, details.kind) == ("disk is slow", "kernel log")
    assert [line.name for line in details.sections[0].lines] == ["At", "Event"]
    image = view.grab().toImage()
    column = round(view.scale.x(opened.trace.window.start + 6_000))
    colours = {image.pixelColor(column + 1, row.y_px + y).rgb() for y in range(row.height_px)}
    empty = {image.pixelColor(column - 30, row.y_px + y).rgb() for y in range(row.height_px)}
    assert colours - empty, "a mark is where the line was logged"


@pytest.mark.thorough
def test_a_click_selects_the_interval_of_a_function(window, qtbot):
    show(window, qtbot, "functions")
    opened, view = window.session.opened, window.workspace.area.view
    row = lane(opened, "functions 2")
    point = QPointF(view.scale.x(opened.trace.window.start + 2_500), row.y_px + row.height_px / 2).toPoint()
    QTest.mouseClick(view, LEFT, pos=point)
    span = opened.selection.span
    assert (span.end_cycles - span.start_cycles, span.text) == (1_000, "0x200")
    assert opened.selection.lane == row.index


@pytest.mark.thorough
def test_a_rule_makes_steps_whose_heights_are_the_numbers(window, opened, view, qtbot):
    window.actions_by_id.by_id["lanes.user_rules"].trigger()
    assert "is not a rule for user events" in answer_prompt(window, qtbot, "10 gauge").error.text()
    answer_prompt(window, qtbot, "10 counter queue")
    at_rest(window, qtbot)
    row = lane(opened, "queue")
    stack = stack_of(qtbot, window, row.index)
    here = [stack.bin_at(opened.trace.window.start + time) for time in (7_500, 8_500, 9_500)]
    assert stack.tops[0, here].tolist() == [0.0, 0.5, 1.0]
    image = view.grab().toImage()
    heights = []
    for time in (8_500, 9_500):
        x = round(view.scale.x(opened.trace.window.start + time))
        column = [image.pixelColor(x, row.y_px + y).rgb() for y in range(row.height_px)]
        heights.append(column.count(column[row.height_px - 4]))
    assert 0.4 * heights[1] < heights[0] < 0.6 * heights[1]
    assert window.settings.text("events/user_rules") == "10 counter queue"


@pytest.mark.thorough
def test_descriptions_from_a_file(window, qtbot, tmp_path, monkeypatch):
    opened, path = window.session.opened, tmp_path / "events.xml"
    monkeypatch.setattr(dialogs, "ask_file", lambda *_: path)
    path.write_text("<!DOCTYPE x><a/>")
    window.actions_by_id.by_id["lanes.user_file"].trigger()
    assert "take <!DOCTYPE> out" in window.statusBar().currentMessage()
    path.write_text('<eventclass id="6"><event id="10" name="work left" sformat="%4u1d items"/></eventclass>')
    window.actions_by_id.by_id["lanes.user_file"].trigger()
    at_rest(window, qtbot)
    assert "work left" in titles(opened)
    opened.select_at(lane(opened, "work left").index, opened.trace.window.start + 9_500)
    text = window.workspace.panels["details"].as_text()
    assert re.search(r"Described as\s+work left\n", text), text
    assert re.search(r"Arguments\n\s*items\s+4\n\s*d0\s+0x00000004\n\s*d1\s+0x00000000\n", text), text
    opened.filters.add_pass(expression="arg.items == 4")
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    assert opened.filters.row_count == 1
    window.actions_by_id.by_id["lanes.no_user_file"].trigger()
    at_rest(window, qtbot)
    assert "event 10" in titles(opened)
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    assert opened.filters.row_count == 0, "no event has the argument any more"


@pytest.mark.thorough
def test_a_trace_keeps_the_file_that_describes_its_events(window, application, load, qtbot, tmp_path, monkeypatch):
    path = tmp_path / "events.xml"
    monkeypatch.setattr(dialogs, "ask_file", lambda *_: path)
    path.write_text('<a><datakey format="%4ux items"><event class="6" id="10"/><thing/></datakey></a>')
    window.actions_by_id.by_id["lanes.user_file"].trigger()
    assert "1 kinds of events described by events.xml; events.xml: line 1: 'thing' in datakey" in (
        window.statusBar().currentMessage())  # fmt: skip
    at_rest(window, qtbot)
    opened = opened_again(application, load, qtbot, tmp_path, window)
    assert opened.user_file == str(path)
    rows = np.flatnonzero(opened.trace.events.code == wire.code(wire.WireClass.USER, 10))
    assert opened.trace.payloads.decode(int(rows[-1])).arguments[0].name == "items"


@pytest.mark.thorough
def test_programs_name_functions_in_lanes_and_details(window, application, load, qtbot, tmp_path, monkeypatch):
    """0x100 and 0x200 are `plan` and `search` of the program alpha; the trace keeps the folder."""
    write_elf(tmp_path / "build" / "alpha", {"plan": (0x100, 0x40), "search": (0x200, 0x40)}, base=0)
    opened = window.session.opened
    show(window, qtbot, "functions")
    monkeypatch.setattr(dialogs, "ask_folder", lambda *_: tmp_path)
    with qtbot.waitSignal(opened.named):
        window.actions_by_id.by_id["lanes.symbols"].trigger()
    assert "2 functions of" in window.statusBar().currentMessage()
    at_rest(window, qtbot)
    info = lane(opened, "functions 2")
    opened.select_at(info.index, opened.trace.window.start + 2_500)
    assert opened.selection.span.text == "search"
    assert re.search(r"thisfn\s.*\bsearch\b", window.workspace.panels["details"].as_text())
    opened = opened_again(application, load, qtbot, tmp_path, window)
    qtbot.waitUntil(lambda: opened.symbols_folder == str(tmp_path))
    monkeypatch.setattr(dialogs, "ask_folder", lambda *_: tmp_path / "nothing")
    with qtbot.waitSignal(opened.named):
        application.windows[0].actions_by_id.by_id["lanes.symbols"].trigger()
    assert "there is no such folder" in application.windows[0].statusBar().currentMessage()


@pytest.mark.thorough
def test_a_text_of_pidin_names_processes_and_threads(window, application, load, qtbot, tmp_path, monkeypatch):
    """Thread 1 of alpha has a name there, pid 3 another one than in the trace; the trace keeps the text."""
    text = tmp_path / "board.txt"
    text.write_text("pid tid name          thread name\n2   1   usr/bin/alpha planner\n3   1   bin/other     -\n")
    opened = window.session.opened
    opened.select_at(lane(opened, "alpha").index, opened.trace.window.start + 2_500)
    monkeypatch.setattr(dialogs, "ask_file", lambda *_: text)
    with qtbot.waitSignal(opened.named):
        window.actions_by_id.by_id["lanes.pidin"].trigger()
    message = window.statusBar().currentMessage()
    assert message == "0 process names and 1 thread name from pidin (board.txt)"
    at_rest(window, qtbot)
    thread = opened.trace.threads.row(A, 1)
    assert opened.timeline.infos[opened.lane_of_thread(thread)].title == "planner"
    assert "name from pidin" in window.workspace.panels["details"].as_text()
    assert opened.trace.problems.counts()["other-name"] == 1
    opened = opened_again(application, load, qtbot, tmp_path, window)
    qtbot.waitUntil(lambda: opened.trace.pidin is not None)
    assert opened.trace.thread_name(thread) == "alpha 1 (planner)"
    text.write_text("no titles")
    with qtbot.waitSignal(opened.named):
        application.windows[0].actions_by_id.by_id["lanes.pidin"].trigger()
    assert "board.txt: line 1 is not a line of titles" in application.windows[0].statusBar().currentMessage()
    assert opened.pidin_file == str(text)  # the names that show are still from it


@pytest.mark.thorough
def test_a_trace_opens_with_the_lanes_that_it_had(window, opened, application, load, qtbot, tmp_path):
    show(window, qtbot, "functions", "paths")
    opened.lanes.pin(lane(opened, "functions 2").index)
    shown = titles(opened)
    assert shown[0] == "functions 2"
    application.shared.settings.set("swimlane/lane_classes", "")
    assert titles(opened_again(application, load, qtbot, tmp_path, window)) == shown
    application.shared.settings.set("swimlane/lane_classes", "log", is_saved=False)  # as --lanes does
    assert "kernel log" in titles(opened_again(application, load, qtbot, tmp_path))


def opened_again(application, load, qtbot, tmp_path, closed=None):
    """Close a window and open its trace in another one."""
    if closed is not None:
        with qtbot.waitSignal(closed.destroyed):
            closed.close()
    again = application.new_window()
    again.resize(1200, 800)
    load(again, tmp_path / "lanes.kev")
    at_rest(again, qtbot)
    return again.session.opened


@pytest.mark.thorough
def test_a_second_view_has_lanes_of_its_own(window, qtbot):
    window.actions_by_id.by_id["view.split"].trigger()
    views = window.workspace.panes
    second = views.second.opened
    second.lanes.show_classes(frozenset({"log"}))
    at_rest(window, qtbot)
    assert "kernel log" in titles(second)
    assert "kernel log" not in titles(window.session.opened)


@pytest.mark.thorough
def test_empty_lanes_of_events_are_hidden_too(window, opened, qtbot):
    show(window, qtbot, "log", "functions")
    begin = opened.trace.window.start
    opened.lanes.hide_empty(True, type(opened.trace.window)(begin + 900, begin + 4_500))
    assert "functions 2" in titles(opened)
    assert "kernel log" not in titles(opened)


@pytest.mark.thorough
def test_lanes_of_a_hidden_thread_are_hidden(window, opened, qtbot):
    show(window, qtbot, "functions", "paths")
    thread = opened.timeline.infos[lane(opened, "functions").index].thread
    opened.filters.only_threads([int(np.flatnonzero(opened.trace.threads.pid == B)[0])], "only beta")
    assert "functions" not in titles(opened)
    opened.filters.only_threads([thread], "only alpha")
    assert "functions" in titles(opened)


@pytest.mark.thorough
def test_the_card_of_a_stretch_names_what_took_most_of_it(window, qtbot):
    """PLAN (0x100) takes 3,000 cycles from 1,000 on, SEARCH (0x200) a third of them."""
    show(window, qtbot, "functions")
    opened = window.session.opened
    begin = opened.trace.window.start
    for title, says in (("functions", "75.0 %&nbsp;&nbsp;0x100"), ("functions 2", "25.0 %&nbsp;&nbsp;0x200")):
        text = share_text(opened, lane(opened, title).index, TimeWindow(begin + 1_000, begin + 5_000))
        assert says in text
    assert "3 intervals" in text
