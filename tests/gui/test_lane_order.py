"""Lanes are dragged by their names, moved by keys, sorted and grouped by the menu."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor

from satview.__main__ import main
from satview.analysis.statistics import Statistics
from satview.base.time import TimeWindow
from satview.events.states import QUIET_PROCESS
from satview.filters.passes import Effect
from satview.gui.swimlane.shares import figure, quiet_figure, quiet_use
from satview.session.lanes.lane_arrangement import IDLE_CPUS, QUIET, SortBy
from satview.session.lanes.lane_list import bottom_px
from satview.timeline.lane_tree import LaneKind
from tests.gui.conftest import DENSE, part, settle, stack_of
from tests.gui.hands import LEFT, answer_prompt

CPU0, CPU1, CLIENT, CLIENT_1, SERVER, SERVER_1 = range(6)


def shown(opened):
    """Return the lanes; each of the two processes has one thread, which shows in its place."""
    return [row.index for row in opened.lanes.rows]


def middle_of(opened, lane):
    row = opened.lanes.row_of(lane)
    return QPoint(80, row.y_px + row.height_px // 2)


def drag(qtbot, labels, start, end):
    qtbot.mousePress(labels, LEFT, pos=start)
    qtbot.mouseMove(labels, start + QPoint(0, 3))
    qtbot.mouseMove(labels, (start + end) / 2)
    qtbot.mouseMove(labels, end)


@pytest.fixture
def labels(window):
    return window.workspace.area.labels


@pytest.mark.thorough
def test_a_name_is_dragged_above_another_process_with_its_threads(labels, opened, qtbot):
    start, end = middle_of(opened, SERVER), middle_of(opened, CLIENT)
    drag(qtbot, labels, start, end - QPoint(0, 6))
    assert shown(opened) == [CPU0, CPU1, CLIENT_1, SERVER_1]  # not before it is let go
    qtbot.mouseRelease(labels, LEFT, pos=end)
    assert shown(opened) == [CPU0, CPU1, SERVER_1, CLIENT_1]
    opened.edits.undo()
    assert shown(opened) == [CPU0, CPU1, CLIENT_1, SERVER_1]


@pytest.mark.thorough
def test_a_process_stays_below_the_cpus_and_a_click_moves_nothing(labels, opened, qtbot):
    drag(qtbot, labels, middle_of(opened, SERVER), QPoint(80, 2))
    qtbot.mouseRelease(labels, LEFT, pos=QPoint(80, 2))
    assert shown(opened) == [CPU0, CPU1, SERVER_1, CLIENT_1]
    qtbot.mouseClick(labels, LEFT, pos=middle_of(opened, CLIENT))
    assert shown(opened) == [CPU0, CPU1, SERVER_1, CLIENT_1]
    assert opened.selection.lane == CLIENT_1


def test_alt_and_arrows_move_the_selected_lane(view, opened, qtbot):
    opened.select_at(SERVER, opened.trace.clock.cycles(5_000))
    qtbot.keyClick(view, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert shown(opened)[2:] == [SERVER_1, CLIENT_1]
    qtbot.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert shown(opened)[2:] == [CLIENT_1, SERVER_1]


@pytest.mark.thorough
def test_menu_sorts_and_tells_by_what(window, opened, qtbot):
    actions = window.actions_by_id
    actions.by_id["lanes.sort_name"].trigger()
    qtbot.waitUntil(lambda: not opened.sorter.is_busy)
    actions.by_id["lanes.sort_cpu"].trigger()
    qtbot.waitUntil(lambda: not opened.sorter.is_busy)
    assert shown(opened)[2:] == [CLIENT_1, SERVER_1]  # 7 us of the CPU, and 4
    actions.refresh()
    checked = [name for name, action in actions.by_id.items() if name.startswith("lanes.sort") and action.isChecked()]
    assert checked == ["lanes.sort_cpu"]


@pytest.mark.thorough
def test_groups_by_typed_names_have_headings_that_fold(window, opened, labels, qtbot):
    window.actions_by_id.by_id["lanes.group_pattern"].trigger()
    answer_prompt(window, qtbot, "Servers: serv*")
    qtbot.waitUntil(lambda: not opened.sorter.is_busy)
    settle(qtbot, window)
    assert [(head.title, head.count) for head in opened.lanes.heads] == [("Servers", 1), ("Others", 1)]
    assert shown(opened)[2:] == [SERVER_1, CLIENT_1]
    head = opened.lanes.heads[0]
    qtbot.mouseClick(labels, LEFT, pos=QPoint(40, head.y_px + head.height_px // 2))
    assert shown(opened)[2:] == [CLIENT_1]


@pytest.mark.thorough
def test_what_the_trace_does_not_tell_is_said(window, opened, qtbot):
    window.actions_by_id.by_id["lanes.group_priority"].trigger()  # its thread events are fast ones
    qtbot.waitUntil(lambda: not opened.sorter.is_busy)
    assert window.statusBar().currentMessage().startswith("The trace has no priorities")


@pytest.mark.thorough
def test_a_process_of_one_thread_has_one_lane_with_the_name_and_use_of_the_process(window, labels, opened, qtbot):
    """Open it shows the states of the thread, closed the CPU use of the process; in 10 us the client ran for 7."""
    row = opened.lanes.row_of(CLIENT)
    assert (row.index, row.unit, row.depth, row.is_open) == (CLIENT_1, CLIENT, 0, True)
    opened.viewport.jump(part(opened, 0, 10_000))
    settle(qtbot, window)
    used = Statistics(opened.trace, opened.viewport.window).processes.cpu_cycles[opened.timeline.infos[CLIENT].process]
    share = f"{used / opened.viewport.window.length:.2f} CPU"
    assert figure(opened.timeline, row, opened.viewport.window) == share
    triangle = QPoint(11, row.y_px + row.height_px // 2)
    qtbot.mouseClick(labels, LEFT, pos=triangle)
    assert shown(opened) == [CPU0, CPU1, CLIENT, SERVER_1]
    settle(qtbot, window)
    assert figure(opened.timeline, opened.lanes.row_of(CLIENT), opened.viewport.window) == share
    qtbot.mouseClick(labels, LEFT, pos=triangle)
    assert shown(opened) == [CPU0, CPU1, CLIENT_1, SERVER_1]


# ---- what a trace of many lanes begins with ---------------------------------------------------------------------


def titles(window):
    opened = window.session.opened
    return [opened.timeline.infos[row.unit].title for row in opened.lanes.rows if row.depth == 0]


@pytest.mark.thorough
def test_processes_are_sorted_by_use_and_quiet_ones_folded(dense, qtbot):
    """By the statistics: map_update 1.05, sensor_fusion 0.53, planner 0.19, hmi 0.18 CPU; 14 others 0.19 together."""
    opened, labels = dense.session.opened, dense.workspace.area.labels
    assert titles(dense) == ["CPU 0", "CPU 1", "CPU 2", "CPU 3", "map_update", "sensor_fusion", "planner", "hmi"]
    assert opened.lanes.arrangement.sort is SortBy.CPU
    (head,) = opened.lanes.heads
    assert (head.title, head.count, head.is_open) == (QUIET, 14, False)
    source = dense.workspace.area.view.source

    def quiet():
        left = partial(source.overlay.shown, waits=True)
        return quiet_figure(opened.timeline, opened.trace.window, left)

    assert quiet() == "0.19 CPU"
    (logger,) = (row for row in range(1, 19) if opened.trace.process_name(row) == "logger")  # one of the 14
    opened.filters.add_pass(f"pid == {opened.trace.processes.pid[logger]}")
    qtbot.waitUntil(lambda: quiet() == "0.04 CPU")
    opened.edits.undo()
    qtbot.waitUntil(lambda: opened.filters.view.by_passes is None and quiet() == "0.19 CPU")
    (head,) = opened.lanes.heads
    point = QPoint(80, head.y_px + head.height_px // 2)
    qtbot.mouseClick(labels, LEFT, pos=point)
    assert len(titles(dense)) == 4 + 18
    assert titles(dense)[8:10] == ["logger", "screen"]  # 0.04 and 0.03 CPU
    opened.edits.undo()
    assert len(titles(dense)) == 8


@pytest.mark.thorough
def test_the_row_of_quiet_processes_shows_their_use_together(dense):
    """In every bin: the statistics of the 14, and strength of colour by it."""
    opened, view = dense.session.opened, dense.workspace.area.view
    columns, cpus = quiet_use(opened.timeline, view.scale, view.width())
    rows = range(len(opened.trace.processes))
    are_quiet = np.array([opened.timeline.process_value(row) == QUIET_PROCESS for row in rows])
    window = TimeWindow(*(view.scale.cycles(int(columns[at])) for at in (20, 40)))
    used = Statistics(opened.trace, window).processes.cpu_cycles[are_quiet].sum() / window.length
    assert cpus[20:40].mean() == pytest.approx(used, rel=0.05)
    (head,) = opened.lanes.heads
    image, y = view.grab().toImage(), head.y_px - view.scroll_px + head.height_px // 2
    strength = [255 - QColor(image.pixel(int(x), y)).red() for x in (columns[:-1] + columns[1:]) // 2]
    busiest, quietest = np.argmax(cpus[3:-3]) + 3, np.argmin(cpus[3:-3]) + 3
    assert strength[busiest] > strength[quietest] > 20


@pytest.mark.thorough
def test_the_row_of_quiet_processes_obeys_the_filter_as_lanes_do(dense, qtbot):
    """No interval of a CPU begins with a message, so that nothing remains; it is as pale as a lane if all is dimmed."""
    opened, view = dense.session.opened, dense.workspace.area.view

    def greens():
        settle(qtbot, dense)
        (head,) = opened.lanes.heads
        image, y = view.grab().toImage(), head.y_px - view.scroll_px + head.height_px // 2
        background = QColor(image.pixel(view.width() // 2, head.y_px - view.scroll_px + 2)).red()
        return [background - QColor(image.pixel(x, y)).red() for x in range(20, view.width() - 20)]

    before = greens()
    assert min(before) > 20
    opened.filters.add_pass("class == COMM")
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    assert max(greens()) <= 0
    opened.filters.show_all()
    opened.filters.add_pass("class == COMM", effect=Effect.DIM)
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    assert 0 < max(greens()) < min(before)
    opened.filters.show_all()
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    assert greens() == before


@pytest.mark.thorough
def test_a_quiet_process_is_revealed_and_lanes_that_somebody_arranged_stay_as_they_are(dense):
    opened = dense.session.opened
    diag = next(info.index for info in opened.timeline.infos if info.title == "diag")
    assert opened.lanes.row_of(diag) is None
    opened.lanes.reveal(diag)
    assert opened.lanes.row_of(diag) is not None
    opened.lanes.sort(SortBy.TRACE, ())
    assert titles(dense)[4:7] == ["planner", "map_update", "sensor_fusion"]  # by pid, as in the trace
    kept = opened.lanes.arrangement
    opened.lanes.begin_with(kept, opened.viewport.window)
    opened.lanes.sort_by_use(range(len(opened.timeline.infos))[::-1], ())
    assert opened.lanes.arrangement == kept
    assert not opened.lanes.heads


@pytest.mark.thorough
def test_few_lanes_are_sorted_too_but_not_folded(empty_window, load, lesson):
    """In the lesson `middle` runs most, then `low`; the logger and the kernel, which is first in the file, are last."""
    window = load(empty_window, lesson("inversion"))
    assert titles(window) == ["CPU 0", "middle", "low", "high", "procnto-smp-instr", "tracelogger"]
    assert window.session.opened.lanes.heads == ()
    assert "idle" in [window.session.opened.timeline.infos[row.index].title for row in window.session.opened.lanes.rows]


@pytest.fixture(scope="module")
def many_cpus(tmp_path_factory):
    """Return a trace of 18 CPUs of which 10 to 17, but for 15, have nothing to do."""
    path = tmp_path_factory.mktemp("cpus") / "wide.kev"
    words = ["tracelogger", "--workload", "automotive", "--events", "300000", "--cpus", "18", "-w", "-f", str(path)]
    assert main(words) == 0
    return path


@pytest.mark.thorough
def test_idle_cpus_are_one_row_and_the_overview_is_as_high_as_ever_needed(empty_window, load, many_cpus, qtbot):
    """By the statistics these 7 were idle all the time; one that ran for a moment keeps its lane."""
    window = load(empty_window, many_cpus)
    opened = window.session.opened
    busy = np.bincount(Statistics(opened.trace).cpus.busy_cycles > 0, minlength=2)
    head = opened.lanes.heads[0]
    assert (head.title, head.count, head.is_open) == (IDLE_CPUS, 7, False)
    cpus = [title for title in titles(window) if title.startswith("CPU")]
    assert cpus == [f"CPU {cpu}" for cpu in (*range(10), 15)]
    assert busy.tolist() == [7, 11]
    qtbot.mouseClick(window.workspace.area.labels, LEFT, pos=QPoint(80, head.y_px + head.height_px // 2))
    assert sum(title.startswith("CPU") for title in titles(window)) == 18
    opened.edits.undo()
    lane = next(info.index for info in opened.timeline.infos if info.title == "CPU 17")
    opened.lanes.reveal(lane)
    assert opened.lanes.row_of(lane) is not None
    # Of 18 CPUs no more than 5 are in use at once: the height is 5 of them, and the strip says so.
    overview = window.workspace.area.overview
    overview.repaint()
    use = overview.shown_use
    assert (use.cpus, use.high_cpus) == (18, 5)
    assert 4 < use.most.max() <= 5


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("height", "unfolded"),
    [(1000, []), (1300, ["map_update"]), (2160, ["map_update", "sensor_fusion", "planner", "hmi"])],
)
def test_what_room_is_left_shows_threads_of_who_used_most(empty_window, load, qtbot, height, unfolded):
    """Lanes grow to twice their height at first; then they would be bars without more to see."""
    empty_window.resize(1920, height)
    window = load(empty_window, DENSE)
    lanes, infos = window.session.opened.lanes, window.session.opened.timeline.infos
    assert [infos[row.index].title for row in lanes.rows if row.is_open and row.depth == 0][3:] == unfolded
    assert bottom_px(lanes.rows, lanes.heads) <= window.workspace.area.view.height()
    empty_window.resize(1920, 800)
    settle(qtbot, window)
    assert titles(window) == ["CPU 0", "CPU 1", "CPU 2", "CPU 3", "map_update", "sensor_fusion", "planner", "hmi"]
    assert not any(row.is_open for row in lanes.rows if infos[row.index].kind is LaneKind.PROCESS)
    lanes.fold(lanes.rows[-1].unit)
    empty_window.resize(1920, height)
    settle(qtbot, window)
    assert [infos[row.index].title for row in lanes.rows if row.is_open and row.depth == 0][3:] == ["hmi"], (
        "as arranged"
    )


@pytest.mark.thorough
def test_a_row_of_quiet_processes_shows_their_work_by_strength_of_colour(dense, qtbot):
    """The logger, which uses 0.04 CPU, has a strip of greens above its lane; map_update has none."""
    opened, view = dense.session.opened, dense.workspace.area.view
    greens = {}
    for title in ("logger", "map_update"):
        lane = next(info.index for info in opened.timeline.infos if info.title == title)
        opened.lanes.reveal(lane)
        view.reveal_lane(lane)
        stack_of(qtbot, dense, lane)
        settle(qtbot, dense)
        row = opened.lanes.row_of(lane)
        image, y = view.grab().toImage(), row.y_px - view.scroll_px + 3
        colours = [QColor(image.pixel(x, y)) for x in range(20, view.width() - 20)]
        greens[title] = {colour.red() for colour in colours if colour.green() > colour.red() + 10}
    assert len(greens["logger"]) >= 3
    assert not greens["map_update"]
