from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication

from satview.base.time import TimeWindow
from tests.gui.conftest import settle
from tests.gui.hands import ALT, CONTROL, CONTROL_SHIFT, LEFT, MIDDLE, RIGHT, SHIFT, K, drag, turn_wheel
from tests.helpers.commands import ROOT

CLIENT_1, SERVER_1 = 3, 5


@pytest.fixture
def point_at(view, opened):
    """Return a function from lane and time to a point of the view."""

    def at(lane, ns):
        row = opened.lanes.row_of(lane)
        x = round(view.scale.x(opened.trace.clock.cycles(ns)))
        return QPoint(x, row.y_px - view.scroll_px + row.height_px // 2)

    return at


@pytest.fixture
def shown_ns(opened):
    """Return a function that gives the start and the end of a part of the trace, in nanoseconds."""
    return lambda window: (opened.trace.clock.ns(window.start), opened.trace.clock.ns(window.end))


@pytest.mark.thorough
def test_click_selects_the_interval_in_all_views(window, opened, view, point_at, shown_ns):
    drag(view, point_at(CLIENT_1, 6_000), point_at(CLIENT_1, 6_000) + QPoint(1, 0))  # a hand shakes
    assert opened.selection.time_range is None
    span = opened.selection.span
    assert shown_ns(TimeWindow(span.start_cycles, span.end_cycles)) == (4_000, 8_001)
    assert opened.trace.spec(opened.selection.event).name == "THREPLY"
    assert "REPLY" in window.workspace.panels["details"].browser.toPlainText()
    assert window.workspace.status.selected.text().endswith("THREPLY in REPLY 4.001 \u00b5s")
    table = window.workspace.panels["events"].table
    assert window.workspace.panels["events"].model.event_at(table.currentIndex().row()) == opened.selection.event


@pytest.mark.thorough
def test_click_on_a_mark_selects_the_event_and_beside_all_lanes_clears(opened, view, point_at, qtbot):
    qtbot.mouseClick(view, LEFT, pos=point_at(SERVER_1, 5_000))
    assert opened.trace.spec(opened.selection.event).name == "EVENT 7"
    assert opened.timeline.label(opened.selection.span) == "RUNNING"
    qtbot.mouseClick(view, LEFT, pos=QPoint(50, opened.lanes.height_px + 30))
    assert opened.selection.is_empty


@pytest.mark.thorough
def test_left_drag_selects_a_range_that_snaps_to_edges_but_not_with_alt(window, opened, view, point_at, shown_ns):
    drag(view, point_at(CLIENT_1, 1_000) + QPoint(2, 0), point_at(CLIENT_1, 8_001) + QPoint(-3, 0))
    assert shown_ns(opened.selection.time_range) == (1_000, 8_001)
    assert "7.001" in window.workspace.status.time_range.text()
    drag(view, point_at(CLIENT_1, 1_000) + QPoint(3, 0), point_at(CLIENT_1, 8_001) + QPoint(-3, 0), modifiers=ALT)
    start, end = shown_ns(opened.selection.time_range)
    assert 1_000 < start < end < 8_001


@pytest.mark.thorough
def test_shift_drag_extends_the_range(opened, view, point_at, shown_ns):
    drag(view, point_at(CLIENT_1, 1_000), point_at(CLIENT_1, 4_000))
    drag(view, point_at(CLIENT_1, 7_900), point_at(CLIENT_1, 8_001), modifiers=SHIFT)
    assert shown_ns(opened.selection.time_range) == (1_000, 8_001)


@pytest.mark.thorough
def test_right_drag_zooms_to_what_was_dragged(opened, view, point_at, shown_ns):
    drag(view, point_at(CLIENT_1, 4_000), point_at(CLIENT_1, 8_000), button=RIGHT)
    assert shown_ns(opened.viewport.window) == pytest.approx((4_000, 8_000), abs=40)
    opened.viewport.back()
    assert opened.viewport.is_whole


@pytest.mark.thorough
def test_middle_drag_pans(opened, view, point_at):
    opened.viewport.zoom(0.25, opened.trace.clock.cycles(10_000))
    before = opened.viewport.window
    start = QPoint(400, 40)
    drag(view, start, start + QPoint(-100, 0), button=MIDDLE)
    moved = opened.viewport.window.start - before.start
    assert moved == pytest.approx(before.length * 100 / view.width(), rel=0.05)


@pytest.mark.thorough
def test_control_wheel_zooms_at_the_mouse(opened, view, point_at):
    point = point_at(CLIENT_1, 5_000)
    turn_wheel(view, point, 3, CONTROL)
    assert opened.viewport.window.length < opened.viewport.limits.length / 1.8
    assert opened.trace.clock.ns(view.scale.cycles(point.x())) == pytest.approx(5_000, abs=60)
    turn_wheel(view, point, -10, CONTROL)
    assert opened.viewport.is_whole


@pytest.mark.thorough
def test_shift_wheel_pans_and_a_setting_swaps_wheel_and_control_wheel(opened, view, application, point_at):
    opened.viewport.zoom(0.25, opened.trace.clock.cycles(10_000))
    before = opened.viewport.window
    turn_wheel(view, QPoint(100, 40), -1, SHIFT)
    assert opened.viewport.window.start > before.start
    assert opened.viewport.window.length == before.length
    application.settings.set("window/wheel_zooms", True)
    turn_wheel(view, point_at(CLIENT_1, 5_000), 3)
    assert opened.viewport.window.length < before.length


@pytest.mark.thorough
def test_control_shift_wheel_changes_the_height_of_lanes(application, opened, view):
    before = opened.lanes.row_of(CLIENT_1).height_px  # grown into the free height
    turn_wheel(view, QPoint(100, 40), 1, CONTROL_SHIFT)
    assert application.settings.number("swimlane/lane_height_px") == before + 2
    assert opened.lanes.row_of(CLIENT_1).height_px == before + 2


@pytest.mark.thorough
def test_wheel_scrolls_lanes_within_bounds(window, view, opened, qtbot):
    opened.lanes.set_lane_height(64)
    window.resize(900, 500)
    settle(qtbot, window)
    assert "Scroll with the mouse wheel, zoom with `Ctrl`+wheel" in (ROOT / "README.md").read_text()
    turn_wheel(view, QPoint(100, 40), -100)
    assert view.scroll_px == opened.lanes.height_px - view.height() > 0
    turn_wheel(view, QPoint(100, 40), 100)
    assert view.scroll_px == 0


@pytest.mark.thorough
def test_double_click_fits_the_interval(opened, view, point_at, shown_ns, qtbot):
    qtbot.mouseDClick(view, LEFT, pos=point_at(CLIENT_1, 6_000))
    assert shown_ns(opened.viewport.window) == pytest.approx((3_600, 8_400), abs=60)


@pytest.mark.thorough
def test_hover_shows_state_length_thread_and_cpu(window, view, point_at, qtbot):
    qtbot.mouseMove(view, point_at(CLIENT_1, 6_000))
    hover = window.workspace.area.hover
    assert hover.isVisible()
    for part in ("REPLY", "4.001 \u00b5s", "client", "pid 2", "CPU 0"):
        assert part in hover.text()
    assert window.workspace.status.mouse.text()[:11] in ("0.000 005 9", "0.000 006 0")
    assert window.rect().contains(hover.geometry())


@pytest.mark.thorough
def test_details_begin_with_what_was_clicked_and_say_nothing_twice(window, view, opened, point_at, qtbot):
    """The interval REPLY of a client from 4 to 8 us, between its events; then the event that begins it."""
    qtbot.mouseClick(view, LEFT, pos=point_at(CLIENT_1, 6_000))
    panel = window.workspace.panels["details"]
    qtbot.waitUntil(lambda: not opened.event_links.is_busy)
    interval, event = panel.details()
    assert (interval.title, event.title) == ("REPLY", "THREPLY")
    names = [line.name for line in interval.sections[0].lines]
    assert names == ["Meaning", "From", "To", "Length", "Begun by", "Ended by"]
    text = panel.as_text()
    assert [text.count(name) for name in ("Length", "Begun by", "Until", "Duration")] == [1, 1, 0, 0]
    picked = opened.selection.event
    opened.select_event(picked)
    event, interval = panel.details()
    assert (event.title, interval.title) == ("THREPLY", "REPLY"), "an event that was selected comes first"


@pytest.mark.thorough
def test_double_click_on_the_ruler_shows_everything_and_the_wheel_works_there_too(window, opened, qtbot):
    opened.viewport.zoom(0.1, opened.trace.clock.cycles(10_000))
    qtbot.mouseDClick(window.workspace.area.ruler, LEFT, pos=QPoint(200, 10))
    assert opened.viewport.is_whole
    turn_wheel(window.workspace.area.ruler, QPoint(300, 10), 3, CONTROL)
    once = opened.viewport.window.length
    assert once < opened.viewport.limits.length
    turn_wheel(window.workspace.area.overview, QPoint(300, 10), 3)
    assert opened.viewport.window.length < once


@pytest.mark.thorough
def test_overview_click_goes_there_and_drag_moves(window, opened, qtbot):
    overview = window.workspace.area.overview
    opened.viewport.zoom(0.1, opened.trace.clock.cycles(2_000))
    x = overview.width() * 3 // 4
    drag(overview, QPoint(x, 20), QPoint(x + overview.width() // 10, 20))
    limits, shown = opened.viewport.limits, opened.viewport.window
    middle = (shown.start + shown.length / 2 - limits.start) / limits.length
    assert middle == pytest.approx(0.85, abs=0.02)


@pytest.mark.thorough
def test_overview_edge_can_be_dragged(window, opened, qtbot):
    overview = window.workspace.area.overview
    drag(overview, QPoint(overview.width() - 1, 20), QPoint(overview.width() // 2, 20))
    assert opened.viewport.window.length == pytest.approx(opened.viewport.limits.length / 2, rel=0.03)
    assert opened.viewport.window.start == opened.viewport.limits.start


def test_click_on_a_triangle_folds(window, opened, qtbot):
    labels = window.workspace.area.labels
    row = opened.lanes.row_of(2)
    qtbot.mouseClick(labels, LEFT, pos=QPoint(10, row.y_px + 8))
    assert opened.lanes.row_of(CLIENT_1) is None
    qtbot.mouseDClick(labels, LEFT, pos=QPoint(100, row.y_px + 8))
    assert opened.lanes.row_of(CLIENT_1) is not None


@pytest.mark.thorough
def test_label_column_can_be_resized(window, application, qtbot):
    labels = window.workspace.area.labels
    drag(labels, QPoint(labels.width() - 2, 30), QPoint(300, 30))
    assert labels.width() == 300
    assert application.settings.number("swimlane/label_width_px") == 300


@pytest.mark.thorough
@pytest.mark.qt_log_ignore("grabbing the keyboard", extend=True)
def test_right_click_opens_a_menu_for_what_is_there(window, opened, view, point_at, qtbot):
    qtbot.mouseClick(view, RIGHT, pos=point_at(CLIENT_1, 6_000))
    menu = QApplication.activePopupWidget()
    texts = [action.text() for action in menu.actions()]
    menu.close()
    assert texts[:3] == ["Filter &to", "E&xclude", "Hi&ghlight"]
    assert opened.selection.lane == CLIENT_1


@pytest.mark.thorough
def test_keys_zoom_at_the_mouse_however_the_view_moved(opened, view, qtbot):
    """17 steps, and pans in between: what is under the mouse stays there to a pixel."""
    x = 433
    qtbot.mouseMove(view, QPoint(x, 60))

    for direction, steps in ((K.Key_W, 8), (K.Key_S, 4), (K.Key_W, 5)):
        moment = view.scale.cycles(x)
        for _ in range(steps):
            qtbot.keyClick(view, direction)
            assert abs(view.scale.x(moment) - x) <= 1.5  # windows begin at whole pixels
        qtbot.keyClick(view, K.Key_D)


@pytest.mark.thorough
def test_a_drag_with_the_middle_button_takes_the_moment_along(opened, view, qtbot):
    opened.viewport.zoom(0.3, opened.trace.clock.cycles(6_000))
    moment = view.scale.cycles(200)
    drag(view, QPoint(200, 40), QPoint(341, 40), MIDDLE)
    assert abs(view.scale.x(moment) - 341) <= 1.5
    left, right = view.scale.cycles(100), view.scale.cycles(300)
    drag(view, QPoint(100, 40), QPoint(300, 40), RIGHT)
    assert abs(view.scale.x(left)) <= 1.5
    assert abs(view.scale.x(right) - view.width()) <= 1.5
