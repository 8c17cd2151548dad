"""A trace that is opened again shows what it showed when it was closed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from satview.base.time import TimeWindow
from satview.filters.passes import Effect
from satview.session.lanes.lane_arrangement import GroupBy
from satview.session.session import Stage
from satview.session.state_files import SUFFIX, StateFiles
from satview.store.mark_file import Mark
from tests.gui.conftest import part, settle
from tests.gui.hands import CONTROL, CONTROL_SHIFT, K, take_keyboard
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

CPU0, CPU1, CLIENT, CLIENT_1, SERVER, SERVER_1 = range(6)
SIZE = (1200, 800)


@pytest.fixture
def state_files(tmp_path):
    return StateFiles(tmp_path / "views", tmp_path / "sessions")


@pytest.fixture
def open_again(application, load, qtbot):
    """Return a function that opens a trace in a window of its own, at rest."""

    def run(path):
        window = application.new_window()
        window.resize(*SIZE)
        qtbot.waitExposed(window)
        load(window, path)
        rest(qtbot, window)
        return window

    return run


def rest(qtbot, window):
    workspace = window.workspace
    qtbot.waitUntil(
        lambda: not (workspace.is_checking or workspace.opened.filters.is_pending or workspace.opened.sorter.is_busy)
    )
    qtbot.waitUntil(lambda: not (workspace.opened.search.is_pending or workspace.opened.event_links.is_busy))
    QApplication.processEvents()
    settle(qtbot, window)


def pixels(window):
    """Return what a window shows, uint8 (height, width, 4)."""
    window.statusBar().clearMessage()
    window.workspace.area.view.setFocus()
    QApplication.processEvents()
    image = window.grab().toImage()
    return np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), -1).copy()


def close(window, qtbot):
    with qtbot.waitSignal(window.destroyed):
        window.close()


def workspace_file(tmp_path):
    return next((tmp_path / "views").glob(f"*{SUFFIX}"))


@pytest.fixture
def path(tmp_path):
    return scene(tmp_path)


@pytest.fixture
def stored(open_again, path, qtbot, tmp_path):
    """What a window that showed the scene has stored."""
    close(open_again(path), qtbot)
    return workspace_file(tmp_path)


@pytest.mark.thorough
def test_closed_and_opened_again_gives_the_same_pixels(open_again, path, qtbot):
    window = open_again(path)
    first = pixels(window)
    opened, cycles = window.session.opened, window.session.opened.trace.clock.cycles
    opened.viewport.jump(part(opened, 1_000, 9_500))
    opened.lanes.fold(CLIENT)
    opened.lanes.pin(SERVER_1)
    opened.lanes.move(SERVER, CLIENT)
    opened.group_lanes(GroupBy.PATTERN, "Servers: ser*")
    opened.filters.add_pass("event != BUFFER", effect=Effect.DIM)
    opened.select_event(8, reveal=False)
    opened.selection.set_range(part(opened, 2_000, 4_000))
    opened.selection.set_cursors(cycles(3_000), cycles(7_000))
    opened.marks.add(Mark(cycles(5_000), cycles(6_000), "look here"))
    window.workspace.show_panel("statistics")
    window.workspace.panels["statistics"].tabs.setCurrentIndex(2)
    window.workspace.toggle_panel("details")
    window.workspace.show_panel("filter")
    window.workspace.panels["filter"].tabs.setCurrentIndex(1)
    window.workspace.find_bar.look_for("MSG_SENDV")
    window.workspace.find_bar.leave()  # a button in its line fades in for a while
    opened.marks.select(None)
    rest(qtbot, window)
    before = pixels(window)
    assert not np.array_equal(before, first)
    close(window, qtbot)

    window = open_again(path)
    after = pixels(window)
    differing = np.argwhere((before != after).any(axis=2))
    assert not len(differing), (
        f"{len(differing)} pixels differ, between {differing.min(axis=0)} and {differing.max(axis=0)}"
    )
    assert window.session.opened.edits.undo_title == ""  # there is nothing to undo in a view that just opened
    assert not window.session.opened.viewport.can_go_back
    assert window.session.opened.search.text == "MSG_SENDV"


def many_processes(tmp_path, name="many.kev", count=40, first_pid=100):
    builder = TraceBuilder(cpus=1).time_event(0)
    for number in range(count):
        builder.process_name(10 + number, first_pid + number, f"bin/proc{number:02}")
        builder.state("RUNNING", 1_000 + 100 * number, first_pid + number, 1)
    return builder.write(tmp_path / name)


@pytest.mark.thorough
def test_scrolled_lanes_and_list_are_where_they_were(open_again, qtbot, tmp_path):
    path = many_processes(tmp_path)
    window = open_again(path)
    view, table = window.workspace.area.view, window.workspace.panels["events"].table
    view.scroll_to(137)
    table.verticalScrollBar().setValue(21)
    close(window, qtbot)
    window = open_again(path)
    QApplication.processEvents()
    assert window.workspace.area.view.scroll_px == 137
    assert window.workspace.panels["events"].table.verticalScrollBar().value() == 21


@pytest.mark.thorough
def test_an_interval_of_a_lane_out_of_sight_is_selected_again(open_again, qtbot, tmp_path):
    path = many_processes(tmp_path)
    window = open_again(path)
    opened = window.session.opened
    last = opened.lanes.rows[-1].index
    opened.select_at(last, opened.trace.window.start + 4_950)
    window.workspace.area.view.scroll_to(0)
    span = opened.selection.span
    close(window, qtbot)
    window = open_again(path)
    qtbot.waitUntil(lambda: window.session.opened.selection.span == span)
    assert window.session.opened.selection.lane == last
    assert window.workspace.area.view.scroll_px == 0


@pytest.mark.thorough
def test_another_file_under_the_name_gets_the_lanes_by_name_and_no_part_of_time(open_again, qtbot, tmp_path):
    path = many_processes(tmp_path, count=6)
    window = open_again(path)
    opened = window.session.opened
    titles = {info.title: info.index for info in opened.timeline.infos}
    opened.lanes.hide(titles["proc02"])
    opened.lanes.pin(titles["proc04"])
    opened.viewport.jump(TimeWindow(opened.trace.window.start, opened.trace.window.start + 200))
    close(window, qtbot)
    many_processes(tmp_path, count=6, first_pid=300)
    window = open_again(path)
    opened = window.session.opened
    shown = [opened.timeline.infos[row.index].title for row in opened.lanes.rows]
    assert shown[0] == "proc04"
    assert "proc02" not in shown
    assert opened.viewport.is_whole


@pytest.mark.thorough
def test_a_damaged_file_is_named_and_set_aside_and_costs_no_note(open_again, path, qtbot, tmp_path):
    window = open_again(path)
    cycles = window.session.opened.trace.clock.cycles
    window.session.opened.marks.add(Mark(cycles(5_000), cycles(5_000), "stays"))
    close(window, qtbot)
    stored = workspace_file(tmp_path)
    content = json.loads(stored.read_text())
    content["lanes"]["pinned"] = [99]  # of no lanes
    stored.write_text(json.dumps(content))
    window = open_again(path)
    assert [mark.text for mark in window.session.opened.marks] == ["stays"]
    aside = stored.with_name(stored.name + ".damaged-1")
    qtbot.waitUntil(aside.exists)
    assert json.loads(aside.read_text()) == content
    notice = window.keeper.file.notice
    assert f"{stored.name} was damaged and is now {aside.name}" in notice
    assert "lanes: there is no lane 99" in notice
    close(window, qtbot)
    assert open_again(path).keeper.file.notice == ""


@pytest.mark.thorough
@pytest.mark.parametrize("content", ["{", '{"satview_session": 1, "second": {"view": {}, "lanes": {}}}'])
def test_whatever_the_file_holds_the_trace_opens(open_again, path, stored, content):
    """What else a file may hold is in tests/session."""
    stored.write_text(content)
    window = open_again(path)
    assert window.session.stage is Stage.READY
    assert not window.workspace.is_split
    assert stored.name in window.keeper.file.notice


@pytest.mark.thorough
def test_docks_of_a_stranger_and_values_that_fit_nothing_do_no_harm(open_again, path, stored):
    content = json.loads(stored.read_text())
    content["panels"]["layout"] = {"groups": [{"area": "top", "tabs": ["events", "x", "events"], "front": "x",
                                               "width_px": 30_000}], "hidden": ["y"],
                                   "floating": [{"name": "sql", "x_px": -30_000, "width_px": 1}]}  # fmt: skip
    content["panels"]["values"] = {"statistics": {"tabs": 99, "follows": "yes"}, "events": {"top": -1}, "x": {"y": 1}}
    content["view"] |= {"start_cycles": -(2**62), "end_cycles": 2**62, "width_px": 1 << 20}
    content["selection"] = {"event": 10**12, "lane": ["thread", 9, 9, 9], "cursor_a": 2**62}
    stored.write_text(json.dumps(content))
    window = open_again(path)
    assert window.session.opened.viewport.is_whole
    assert window.session.opened.selection.is_empty
    window.workspace.show_panel("statistics")


def test_rules_of_a_kept_file_run_no_python(open_again, path, qtbot, tmp_path):
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef look(event):\n    return True\n")
    window = open_again(path)
    window.session.opened.filters.add_pass(rules=f"ADDCLASSEVHANDLER CONTROL python:{trap}:look")
    rest(qtbot, window)
    close(window, qtbot)
    window = open_again(path)
    rest(qtbot, window)
    assert len(window.session.opened.filters.state.stack.passes) == 1
    assert not (tmp_path / "ran").exists()


@pytest.mark.thorough
def test_a_live_demo_and_standard_input_leave_nothing(open_again, qtbot, tmp_path):
    folder = tmp_path / "satview-demo"
    folder.mkdir()
    close(open_again(scene(folder)), qtbot)
    assert not (tmp_path / "views").exists()


@pytest.mark.thorough
def test_panels_that_were_moved_stay_where_they_were_put(open_again, path, qtbot):
    window = open_again(path)
    docks = window.workspace.docks
    window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, docks["details"])
    window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, docks["plots"])  # below the details
    docks["plots"].show()
    docks["sql"].setFloating(True)
    docks["sql"].setGeometry(40, 60, 420, 300)
    window.workspace.show_panel("problems")
    docks["doctor"].hide()
    qtbot.wait(100)  # Qt moves panels in several passes of its loop
    before = window.workspace.layout_of_panels()
    assert [(group.area, group.tabs) for group in before.groups if group.area != "bottom"] == [
        ("left", ("details",)), ("left", ("plots",)), ("right", ("filter",))]  # fmt: skip
    assert "doctor" in before.hidden
    close(window, qtbot)
    window = open_again(path)
    after = window.workspace.layout_of_panels()
    assert [(group.area, group.tabs, group.front) for group in after.groups] == [
        (group.area, group.tabs, group.front) for group in before.groups
    ]
    assert (after.floating, after.hidden) == (before.floating, before.hidden)
    for group, was in zip(after.groups, before.groups, strict=True):
        assert abs(group.width_px - was.width_px) <= 8
        assert abs(group.height_px - was.height_px) <= 8


@pytest.mark.thorough
@pytest.mark.parametrize("is_linked", [True, False])
def test_a_split_view_is_split_again_and_linked_as_it_was(open_again, path, qtbot, is_linked):
    window = open_again(path)
    view = window.workspace.area.view
    take_keyboard(window, qtbot)
    qtbot.keyClick(view, K.Key_Backslash, CONTROL)
    second = window.workspace.panes.second
    if not is_linked:
        qtbot.keyClick(second.area.view, K.Key_L, CONTROL_SHIFT)
    second.opened.viewport.zoom(0.2, second.opened.trace.clock.cycles(6_000))
    second.opened.lanes.hide(4)
    before = second.opened.viewport.window, window.session.opened.viewport.window
    assert (before[0] == before[1]) is is_linked
    close(window, qtbot)
    window = open_again(path)
    second = window.workspace.panes.second
    assert (second.opened.viewport.window, window.session.opened.viewport.window) == before
    assert second.opened.lanes.hidden_count == 1
    assert window.session.opened.lanes.hidden_count == 0
    links = window.shared.view_links
    assert all(links.has(view) for view in window.workspace.views()) is is_linked


@pytest.mark.thorough
def test_a_second_trace_is_beside_it_again(open_again, qtbot, tmp_path):
    first, second = many_processes(tmp_path), many_processes(tmp_path, "after.kev", count=3)
    window = open_again(first)
    window.workspace.second_trace.open(second)
    qtbot.waitUntil(lambda: window.workspace.comparison.second is not None)
    window.workspace.comparison.align_by("1.5us")
    window.workspace.comparison.set_linked(is_linked=False)
    close(window, qtbot)

    window = open_again(first)
    comparison = window.workspace.comparison
    qtbot.waitUntil(lambda: comparison.second is not None)
    assert comparison.second.trace.path == second
    assert (comparison.offset_text, comparison.aligned_by, comparison.is_linked) == ("1.5 µs", "offset 1.5us", False)
    window.workspace.second_trace.close()
    close(window, qtbot)

    second.unlink()
    window = open_again(first)
    assert not window.workspace.second_trace.is_reading, "it was taken away, and it is gone"
