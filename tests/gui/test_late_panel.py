"""The panel Late: activities, their instances, blame, and a timing file; by keys and clicks."""

from __future__ import annotations

import os

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest

from satview.answers.activity_lanes import IN_TIME, LATE
from satview.base.time import TimeWindow
from satview.events.spec import Release
from satview.gui.colours import state_colour
from satview.gui.theme import LIGHT
from satview.gui.windows.workspace_keeper import restore_session, workspace_state
from satview.session.workspace_file import WorkspaceState
from tests.answers.test_late_comparison import locking, moving
from tests.capture.made import WIDE, traced
from tests.gui.conftest import settle as wait_for_lanes
from tests.gui.hands import CONTROL_SHIFT, LEFT, K, click_box, click_cell, click_tab, colours, rgb
from tests.helpers.commands import satview
from tests.helpers.scene import rounds_of_a_loop

CLOSED = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE} "
BASE = 1 << 32  # of all times, as TraceBuilder writes them


@pytest.fixture
def looping(tmp_path):
    """Rounds of 10,000 ns: those that begin at 110,000, 210,000 and 310,000 take 5,100, all others 1,100."""
    return rounds_of_a_loop().write(tmp_path / "looping.kev")


@pytest.fixture
def looped(empty_window, load, looping):
    """A window with them."""
    return load(empty_window, looping)


def set_deadline(path, deadline="5us"):
    """Write a timing file beside a trace; rounds of 5,100 ns are late by it."""
    path.with_name("timing.toml").write_text(f'["control 1"]\ndeadline = "{deadline}"\n')


def show(window, qtbot):
    QTest.keyClick(window.workspace.area.view, K.Key_H, CONTROL_SHIFT)
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
    click_cell(table.table, row, x_px=60)


def test_the_worst_instance_is_explained_at_first_and_slow_compared_with_fast_behind_a_tab(looped, qtbot):
    before = looped.session.opened.viewport.window
    panel = show(looped, qtbot)
    (activity,) = (texts(panel.activities, row) for row in range(panel.activities.model.rowCount()))
    assert {title: activity[title] for title in ("Activity", "Count", "Misses", "Max", "Deadline")} == {
        "Activity": "control 1", "Count": "40", "Misses": "0", "Max": "5.100 µs", "Deadline": "10.00 µs"}  # fmt: skip
    assert panel.instances.model.rowCount() == 40
    assert [texts(panel.instances, row)["Response"] for row in (0, 2, 3)] == ["5.100 µs", "5.100 µs", "1.100 µs"]
    assert [texts(panel.blame, row)["Length"] for row in (0, 1)] == ["4.100 µs", "1.000 µs"]
    assert [texts(panel.blame, row)["Part"] for row in (0, 1)] == ["preempted", "own work"]
    assert panel.sentence.text().startswith("control 1 took 5.100 µs from")
    assert panel.sentence.text().endswith("4.100 µs ready while hog 1 ran, 1.000 µs own work.")
    assert looped.session.opened.viewport.window == before, "nothing was clicked"
    # Three of the slowest four rounds take 4,000 more: 3,000 on average.
    panel.blame.tabs.setCurrentIndex(1)
    assert [panel.blame.tabs.tabText(tab) for tab in (0, 1)] == ["Blame", "Slow against fast"]
    row = texts(panel.blame, 0)
    assert (row["Part"], row["Whom"], row["Explains"]) == ("preempted", "hog 1", "3.000 µs")


@pytest.mark.thorough
def test_a_long_name_leaves_room_for_the_figure_beside_it(empty_window, load, tmp_path, qtbot):
    trace = (
        rounds_of_a_loop()
        .process_name(3, 5, "bin/control_of_the_brake_of_the_front_left_wheel")
        .write(tmp_path / "long.kev")
    )
    panel = show(load(empty_window, trace), qtbot)
    table, columns = panel.activities.table, panel.activities.model.columns
    assert [column.name for column in columns[:2]] == ["activity", "misses"]
    assert table.sizeHintForColumn(0) > table.columnWidth(0) >= 160
    assert table.columnViewportPosition(1) + table.columnWidth(1) <= table.viewport().width()


def test_a_click_shows_an_instance_on_the_lanes(looped, qtbot):
    panel = show(looped, qtbot)
    click(panel.instances, 1)
    opened = looped.session.opened
    assert int(opened.trace.events.time_cycles[opened.selection.event]) - BASE == 210_000
    (leg,) = opened.highlight.shown.legs
    ends = opened.trace.events.time_cycles[[leg.from_row, leg.to_row]] - BASE
    assert (leg.title, ends.tolist()) == ("control 1", [210_000, 215_100])
    shown = opened.viewport.window
    assert shown.start - BASE < 210_000 < 215_100 < shown.end - BASE < 220_000
    settle(panel, qtbot)
    assert panel.instance_view.answer.row == 1
    assert "from 0.000 210 000 s" in panel.sentence.text()


@pytest.mark.thorough
def test_a_key_explains_the_selected_thread_at_its_moment(looped, qtbot):
    trace, navigation = looped.session.opened.trace, looped.workspace.navigation
    row = int(trace.events.time_cycles.searchsorted(BASE + 50_500))
    navigation.show_event(row)
    assert int(trace.events.time_cycles[row]) - BASE == 51_100, "the round of 50,000 is done"
    QTest.keyClick(looped.workspace.area.view, K.Key_U)
    panel = looped.workspace.panels["late"]
    qtbot.waitUntil(lambda: panel.instance_view.answer is not None, timeout=10_000)
    settle(panel, qtbot)
    found = panel.instance_view.answer
    assert int(found.late.learned.instances.start_cycles[found.positions[found.row]]) - BASE == 50_000
    assert texts(panel.instances, panel.instances.table.currentIndex().row())["Response"] == "1.100 µs"


@pytest.mark.thorough
def test_a_file_of_timing_is_obeyed_and_its_error_is_a_sentence(looped, looping, qtbot):
    set_deadline(looping)
    panel = show(looped, qtbot)
    panel.timing.setFocus()
    QTest.keyClicks(panel.timing, "timing.toml")
    QTest.keyClick(panel.timing, K.Key_Return)
    settle(panel, qtbot)
    assert texts(panel.activities, 0)["Misses"] == "3"
    assert texts(panel.instances, 0)["Outcome"] == "late"
    assert workspace_state(panel.window().workspace).timing == "timing.toml"
    opened = looped.workspace.opened
    opened.verdicts.start()
    qtbot.waitUntil(lambda: opened.verdicts.answer is not None and not opened.verdicts.is_busy)
    assert [verdict.kind for verdict in opened.verdicts.answer.verdicts] == ["deadline"]
    set_deadline(looping, "soon")
    panel.reload()
    settle(panel, qtbot)
    assert panel.message.isVisible()
    assert panel.message.text().startswith("timing.toml: [control 1] deadline: ")
    panel.timing.clear()
    panel.timing.editingFinished.emit()
    settle(panel, qtbot)
    assert texts(panel.activities, 0)["Misses"] == "0"


@pytest.mark.thorough
def test_the_name_of_a_missing_file_of_timing_is_shown_as_it_was_typed(looped, qtbot):
    panel = show(looped, qtbot)
    panel.on_lanes.click()
    QTest.keyClicks(panel.timing, "none.toml")
    QTest.keyClick(panel.timing, K.Key_Return)
    qtbot.waitUntil(lambda: looped.statusBar().currentMessage() == "none.toml: there is no such file; check the name")
    settle(panel, qtbot)


@pytest.mark.thorough
def test_a_saved_window_has_its_lanes_of_activities_and_their_deadlines(looped, looping, qtbot):
    set_deadline(looping)
    opened = looped.session.opened
    opened.time_activities("timing.toml")
    opened.lanes.show_classes(frozenset({"activities"}))
    state = workspace_state(looped.workspace)
    opened.lanes.show_classes(frozenset())
    opened.time_activities("")
    restore_session(looped.workspace, state)
    qtbot.waitUntil(lambda: not opened.class_loader.is_busy)
    (lane,) = opened.timeline.lanes_of_class("activities")
    assert lane in [row.index for row in opened.lanes.rows]
    assert opened.timeline.infos[lane].track.content.value.tolist().count(LATE) == 3


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes in folders")
def test_a_pipe_in_place_of_a_file_of_timing_is_not_waited_for(looped, looping, qtbot):
    os.mkfifo(looping.with_name("timing.toml"))
    restore_session(looped.workspace, WorkspaceState(timing="timing.toml"))
    assert show(looped, qtbot).message.text() == "timing.toml: there is no such file; check the name"


@pytest.mark.thorough
def test_a_trace_without_activities_says_so(window, qtbot):
    panel = show(window, qtbot)
    assert panel.message.isVisible()
    assert panel.message.text().startswith("Cannot tell: no pulse is received; capture the class COMM.")
    assert panel.sentence.text() == ""


@pytest.mark.thorough
def test_a_thread_that_does_nothing_again_is_reported(looped, qtbot):
    hog = next(row for row in range(len(looped.session.opened.trace.threads))
               if looped.session.opened.trace.thread_name(row) == "hog 1")  # fmt: skip
    panel = show(looped, qtbot)
    before = panel.instance_view.answer
    panel.explain(hog, 20_000)
    assert looped.statusBar().currentMessage().startswith("hog 1 does nothing again and again")
    assert panel.instance_view.answer is before


@pytest.mark.thorough
def test_the_car_s_control_loop_waits_for_the_logger(empty_window, load, tmp_path, qtbot):
    """As docs/late.md says: the worst round waits for a lock of the logger, which runs meanwhile."""
    path = tmp_path / "car.kev"
    assert satview("tracelogger", "--workload", "automotive", "-s", "0.5", "-f", path).returncode == 0
    window = load(empty_window, path)
    panel = show(window, qtbot)
    names = [texts(panel.activities, row)["Activity"] for row in range(panel.activities.model.rowCount())]
    click(panel.activities, names.index("vehicle_control 1 (control-10ms)"))
    settle(panel, qtbot)
    click(panel.instances, 0)
    settle(panel, qtbot)
    worst = texts(panel.blame, 0)
    assert (worst["Part"].lstrip(CLOSED), worst["Whom"], worst["Length"]) == ("lock", "logger 1 (writer)", "1.379 ms")
    panel.blame.table.setFocus()
    panel.blame.table.setCurrentIndex(panel.blame.model.index(0, 0))
    QTest.keyClick(panel.blame.table, K.Key_Right)
    assert texts(panel.blame, 1)["Part"] == "own work"
    assert texts(panel.blame, 1)["Whom"] == "logger 1 (writer)"
    window.workspace.area.view.setFocus()
    explained = panel.instance_view.answer
    window.workspace.navigation.show_event(int(explained.late.learned.instances.end_row[explained.positions[1]]))
    QTest.keyClick(window.workspace.area.view, K.Key_U)
    qtbot.waitUntil(lambda: panel.instance_view.answer.row == 1, timeout=10_000)


def lane_of(opened, title):
    return next(row for row in opened.lanes.rows if opened.timeline.infos[row.unit].title == title)


def show_lanes(window, panel, qtbot):
    click_box(panel.on_lanes)
    opened = window.session.opened
    qtbot.waitUntil(lambda: not opened.class_loader.is_busy)
    wait_for_lanes(qtbot, window)
    return lane_of(opened, "control 1")


def column_of(window, row, cycles):
    """Return the colours of a lane at a moment, from its top to its bottom."""
    view = window.workspace.area.view
    image = view.grab().toImage()
    x = round(view.scale.x(BASE + cycles))
    return [rgb(image, x, row.y_px - view.scroll_px + y) for y in range(row.height_px)]


@pytest.mark.thorough
def test_activities_on_the_lanes_are_red_where_late_and_a_click_explains_them(looped, looping, qtbot):
    """The round at 110,000 takes 5,100 of 5,000 ns: its bar is red, and a line is where its deadline was."""
    set_deadline(looping)
    opened, theme = looped.session.opened, LIGHT
    opened.time_activities("timing.toml")
    panel = show(looped, qtbot)
    row = show_lanes(looped, panel, qtbot)
    assert panel.on_lanes.isChecked()
    opened.viewport.jump(TimeWindow(BASE + 95_000, BASE + 120_000))
    wait_for_lanes(qtbot, looped)
    late, in_time = state_colour(LATE, theme), state_colour(IN_TIME, theme)
    assert column_of(looped, row, 113_500).count(late) > row.height_px // 2
    assert column_of(looped, row, 100_600).count(in_time) > row.height_px // 2
    assert {late, in_time}.isdisjoint(column_of(looped, row, 108_000)), "nothing is done then"
    assert theme.text in column_of(looped, row, 105_000), "the deadline of the round that was in time"
    assert late in column_of(looped, row, 115_000), "a tick where it was missed"
    view = looped.workspace.area.view
    point = QPoint(round(view.scale.x(BASE + 112_000)), row.y_px - view.scroll_px + row.height_px // 2)
    QTest.mouseClick(view, LEFT, pos=point)
    settle(panel, qtbot)
    assert (opened.selection.span.text, opened.selection.lane) == ("5.100 µs, 100 ns late", row.index)
    assert "from 0.000 110 000 s, 100 ns longer than its deadline" in panel.sentence.text()
    assert texts(panel.blame, 0)["Length"] == "4.100 µs"
    click_box(panel.on_lanes)
    assert "control 1" not in [opened.timeline.infos[row.unit].title for row in opened.lanes.rows]


@pytest.mark.thorough
def test_a_missed_deadline_shows_however_little_of_the_time_it_is(empty_window, load, tmp_path, qtbot):
    """One of 4,000 rounds is late: 0.01 % of the time, a pixel of whose bin is red, and a tick above."""
    path = rounds_of_a_loop(4_000, (2_000,)).write(tmp_path / "long.kev")
    set_deadline(path)
    window = load(empty_window, path)
    opened, theme = window.session.opened, LIGHT
    opened.time_activities("timing.toml")
    row = show_lanes(window, show(window, qtbot), qtbot)
    late, view = state_colour(LATE, theme), window.workspace.area.view
    image = view.grab().toImage()
    of_late = {(x, y) for x in range(view.width()) for y in range(row.height_px)
               if rgb(image, x, row.y_px - view.scroll_px + y) == late}  # fmt: skip
    moment = view.scale.x(BASE + 20_010_000)
    assert row.index in view.stacks, "drawn by share"
    assert of_late
    assert all(abs(x - moment) <= 3 for x, _ in of_late)
    assert {y < row.height_px / 3 for _, y in of_late} == {True, False}, "a tick above, and in the stack"


@pytest.mark.thorough
def test_a_key_explains_the_bar_that_is_selected_on_a_lane(looped, qtbot):
    opened = looped.session.opened
    opened.lanes.show_classes(frozenset({"activities"}))
    qtbot.waitUntil(lambda: not opened.class_loader.is_busy)
    wait_for_lanes(qtbot, looped)
    opened.select_at(lane_of(opened, "control 1").index, BASE + 30_500)
    looped.workspace.area.view.setFocus()
    QTest.keyClick(looped.workspace.area.view, K.Key_U)
    panel = looped.workspace.panels["late"]
    qtbot.waitUntil(lambda: panel.instance_view.answer is not None, timeout=10_000)
    settle(panel, qtbot)
    assert "from 0.000 030 000 s" in panel.sentence.text()
    assert panel.on_lanes.isChecked()


@pytest.mark.thorough
def test_lanes_of_activities_say_why_there_are_none(empty_window, load, looping, window, qtbot):
    """Of a trace in which nothing comes again; and of a timing file that names what is not there."""
    window.actions_by_id.by_id["lanes.show_activities"].trigger()
    qtbot.waitUntil(lambda: "no lanes of activities" in window.statusBar().currentMessage())
    load(window, looping)
    opened = window.session.opened
    qtbot.waitUntil(lambda: len(opened.timeline.lanes_of_class("activities")) == 1)
    looping.with_name("timing.toml").write_text('[nobody]\ndeadline = "5us"\n')
    opened.time_activities("timing.toml")
    qtbot.waitUntil(lambda: "'nobody' names no activity" in window.statusBar().currentMessage())


@pytest.mark.thorough
def test_the_histogram_is_red_beyond_the_deadline_and_a_bar_shows_its_worst(looped, looping, qtbot):
    """37 rounds take 1,100 ns, three 5,100 of the 5,000 that they may: two bars, the second one red."""
    set_deadline(looping)
    looped.session.opened.time_activities("timing.toml")
    panel = show(looped, qtbot)
    click_tab(panel.instances.tabs, 1)
    drawn = panel.responses.plot
    assert panel.instances.tabs.tabText(1) == "Histogram"
    assert panel.instances.statement.text() == "40 responses"
    made = panel.instance_view.answer.responses
    assert [count for count in made.counts.tolist() if count] == [37, 3]
    qtbot.waitUntil(lambda: drawn.plot.getViewBox().width() > 50)
    assert {state_colour(LATE, LIGHT), state_colour(IN_TIME, LIGHT)} <= colours(drawn.plot.grab().toImage())
    for fast, start in ((True, "10 000"), (False, "110 000")):
        bar = int(made.bin[-1 if fast else 0])
        middle = QPointF(float(made.edges_log10[bar : bar + 2].mean()), 0.1)
        point = drawn.plot.mapFromScene(drawn.plot.getViewBox().mapViewToScene(middle))
        QTest.mouseClick(drawn.plot.viewport(), LEFT, pos=point)
        settle(panel, qtbot)
        assert f"from 0.000 {start.zfill(7)} s" in panel.sentence.text()


def tab_of(panel, title):
    """Click the tab of a title."""
    tabs = panel.blame.tabs
    click_tab(tabs, [tabs.tabText(tab) for tab in range(tabs.count())].index(title))


@pytest.fixture
def moving_trace(tmp_path):
    """Every tenth round takes 3,000 instead of 1,000: it locks a mutex twice, and goes on on the other CPU."""
    return moving(tmp_path).path


@pytest.mark.thorough
def test_what_is_more_in_slow_ones_is_behind_a_tab_and_leads_to_its_event(empty_window, load, moving_trace, qtbot):
    window = load(empty_window, moving_trace)
    panel = show(window, qtbot)
    window.resize(1600, 900)
    tab_of(panel, "More in slow")
    rows = [texts(panel.blame, row) for row in range(panel.blame.model.rowCount())]
    assert [(row["Happens"], row["What"], row["Slow"], row["In slow"]) for row in rows] == [
        ("call", "SYNC_MUTEX_LOCK", "2.00", "4"), ("CPU moved", "", "1.00", "4")]  # fmt: skip
    opened, times = window.session.opened, window.session.opened.trace.events.time_cycles
    for row, after in ((1, 101_000), (0, 100_100)):
        click(panel.blame, row)
        settle(panel, qtbot)
        assert int(times[opened.selection.event]) - BASE == after
        assert panel.blame.tabs.tabText(panel.blame.tabs.currentIndex()) == "More in slow", "the tab stays"
        assert panel.blame.table.currentIndex().row() == row, "the row stays selected"
        shown = opened.viewport.window
        assert shown.start - BASE < 100_000 < 103_000 < shown.end - BASE < 106_000, "with the instance that it is in"
        found = panel.instance_view.answer
        assert int(found.late.learned.instances.start_cycles[found.positions[found.row]]) - BASE == 100_000


@pytest.mark.thorough
def test_a_path_of_slow_ones_shows_the_slow_one_with_most_of_it(empty_window, load, tmp_path, qtbot):
    trace = traced(locking, 405, tmp_path, Release.QNX_8, modes=WIDE, skew_ns=0).trace
    window = load(empty_window, trace.path)
    panel = show(window, qtbot)
    names = [activity.name for activity in panel.activities_view.answer.late.learned.activities]
    high = next(number for number, name in enumerate(names) if name.endswith("(high)"))
    panel.activities.show_row(high)
    click(panel.activities, panel.activities.table.currentIndex().row())
    settle(panel, qtbot)
    tab_of(panel, "Paths")
    path = texts(panel.blame, 0)["Path"]
    assert path.startswith("lock 0x")
    assert path.rpartition("> ")[2].startswith(("own work", "preempted by"))
    click(panel.blame, 0)
    settle(panel, qtbot)
    found = panel.instance_view.answer
    response_cycles = int(found.late.learned.instances.response_cycles[found.positions[found.row]])
    assert trace.clock.duration_ns(response_cycles) == pytest.approx(5_000_000, rel=0.01)
    tab_of(panel, "Blame")
    assert texts(panel.blame, 0)["Part"].endswith("lock")


@pytest.mark.thorough
@pytest.mark.parametrize("is_chosen", [False, True])
def test_what_a_file_of_timing_says_is_late_is_explained_unless_the_user_chose(dense, tmp_path, qtbot, is_chosen):
    opened, panel = dense.session.opened, show(dense, qtbot)

    def explained():
        answer = panel.instance_view.answer
        is_settled = answer is not None and not panel.activities_view.is_busy and not panel.instance_view.is_busy
        return answer.late.learned.activities[answer.activity].name if is_settled else ""

    qtbot.waitUntil(lambda: explained() != "", timeout=20_000)
    before = explained()
    other = next(
        activity.name for activity in panel.activities_view.answer.late.learned.activities if activity.name != before
    )
    if is_chosen:
        names = [activity.name for activity in panel.activities_view.answer.late.learned.activities]
        panel.activities.chosen.emit(names.index(before))
    (tmp_path / "t.toml").write_text(f'["{other}"]\ndeadline = "1ns"\n')
    opened.time_activities(str(tmp_path / "t.toml"))
    late = panel.activities_view.answer.late
    qtbot.waitUntil(lambda: explained() != "" and panel.activities_view.answer.late is not late, timeout=20_000)
    qtbot.waitUntil(lambda: explained() == (before if is_chosen else other))
