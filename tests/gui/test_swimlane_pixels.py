from __future__ import annotations

import pytest
from PySide6.QtGui import QColor

from satview.base.time import TimeWindow
from satview.events import states
from satview.gui.colours import class_colour, value_colour
from satview.gui.theme import DARK, LIGHT
from tests.gui.conftest import part, settle
from tests.gui.hands import rgb
from tests.helpers.kev import TraceBuilder

CLIENT_1, SERVER_1 = 3, 5


def show(window, first_ns, last_ns, qtbot):
    window.session.opened.viewport.jump(part(window.session.opened, first_ns, last_ns))
    settle(qtbot, window)


def colour_at(window, lane, ns):
    """Return the colour in the middle of the bar of a lane at a time."""
    view, opened = window.workspace.area.view, window.session.opened
    row = opened.lanes.row_of(lane)
    image = view.grab().toImage()
    x = round(view.scale.x(opened.trace.clock.cycles(ns)))
    y = row.y_px - view.scroll_px + row.height_px * 3 // 5
    return rgb(image, x * image.devicePixelRatio(), y * image.devicePixelRatio())


@pytest.mark.thorough
def test_states_have_their_colours_in_both_themes(window, application, qtbot):
    show(window, 0, 20_000, qtbot)
    expected = {700: "READY", 3_900: "RUNNING", 7_500: "REPLY", 11_900: "RUNNING"}
    for ns, name in expected.items():
        assert colour_at(window, CLIENT_1, ns) == value_colour(states.STATE_BY_NAME[name].value, False), name
    # It went to sleep at 12,000; what it did in the lost buffers after that nobody knows.
    assert colour_at(window, CLIENT_1, 18_500) == value_colour(states.UNKNOWN, False)
    application.settings.set("window/theme", "dark")
    show(window, 0, 20_000, qtbot)
    assert window.theme == DARK
    assert colour_at(window, CLIENT_1, 3_900) == value_colour(states.RUNNING, True)


@pytest.mark.thorough
def test_interval_thinner_than_a_pixel_marks_its_pixel(window, qtbot, load, tmp_path):
    """RUNNING for 50 ns in a window of 100 ms, about a 20,000th of the width."""
    builder = TraceBuilder().time_event(0).state("RECEIVE", 100, 9, 1).state("RUNNING", 50_000_000, 9, 1)
    builder.state("RECEIVE", 50_000_050, 9, 1).state("RUNNING", 100_000_000, 1, 1)
    load(window, builder.write(tmp_path / "short.kev"))
    view, opened = window.workspace.area.view, window.session.opened
    row = opened.lanes.row_of(opened.lane_of_thread(opened.trace.threads.row(9, 1)))
    image = view.grab().toImage()
    x = view.scale.x(opened.trace.clock.cycles(50_000_000))
    column = [QColor(image.pixel(round(x) + dx, row.y_px + dy)) for dx in (-1, 0, 1) for dy in range(row.height_px)]
    assert any(each.green() > each.red() + 40 and each.green() > each.blue() + 20 for each in column)


def test_lost_buffers_are_hatched_at_any_zoom(window, qtbot):
    show(window, 0, 20_000, qtbot)
    view, opened = window.workspace.area.view, window.session.opened

    def reddish(first_ns, last_ns):
        image, clock = view.grab().toImage(), opened.trace.clock
        left, right = (round(view.scale.x(clock.cycles(ns))) for ns in (first_ns, last_ns))
        columns = range(max(0, left), min(image.width(), right))
        colours = [QColor(image.pixel(x, y)) for x in columns for y in range(60, 90)]
        return sum(each.red() > max(each.blue(), each.green()) + 30 for each in colours)

    assert reddish(12_500, 15_500) > 100
    assert reddish(17_000, 19_000) == 0


@pytest.mark.thorough
def test_single_cycles_have_lines(window, qtbot):
    show(window, 1_000, 1_040, qtbot)
    view = window.workspace.area.view
    assert view.scale.px_per_cycle > 7
    image = view.grab().toImage()
    y = window.session.opened.lanes.height_px + 20  # below all lanes
    line_columns = [x for x in range(5, image.width()) if image.pixel(x, y) & 0xFFFFFF != LIGHT.base]
    assert len(line_columns) >= 30


@pytest.mark.thorough
def test_hidden_state_is_not_drawn(window, opened, qtbot):
    show(window, 0, 20_000, qtbot)
    reply = list(opened.trace.catalogue.find("THREPLY"))
    opened.filters.show_codes(reply, False)
    settle(qtbot, window)
    assert colour_at(window, CLIENT_1, 7_500) == LIGHT.base
    assert colour_at(window, CLIENT_1, 3_900) == value_colour(states.RUNNING, False)


@pytest.mark.thorough
def test_filtered_events_lose_their_marks(window, opened, view, qtbot):
    show(window, 4_500, 5_500, qtbot)
    row = opened.lanes.row_of(SERVER_1)
    x = round(view.scale.x(opened.trace.clock.cycles(5_000)))

    def has_mark():
        image = view.grab().toImage()
        return any(image.pixel(x + dx, row.y_px + 2) & 0xFFFFFF != LIGHT.base for dx in (-1, 0, 1))

    assert has_mark()
    opened.filters.show_codes(list(opened.trace.catalogue.find("EVENT 7")), False)
    settle(qtbot, window)
    assert not has_mark()


@pytest.mark.thorough
def test_all_lanes_filtered_says_so(window, opened, view, qtbot):
    settle(qtbot, window)
    opened.lanes.hide_empty(True, TimeWindow(opened.viewport.limits.start, opened.viewport.limits.start + 1))
    assert not view.visible_rows()
    image = view.grab().toImage()
    rows = range(image.height() // 2 - 20, image.height() // 2 + 20)
    assert len({image.pixel(x, y) for x in range(0, image.width(), 2) for y in rows}) > 3  # a text is there


@pytest.mark.thorough
def test_values_are_replaced_by_exact_ones_when_the_view_rests(window, qtbot):
    source = window.workspace.area.view.source
    settle(qtbot, window)
    window.session.opened.viewport.zoom(0.7, window.session.opened.trace.clock.cycles(3_000))
    window.workspace.area.view.repaint()
    assert not source.is_refined
    qtbot.waitUntil(lambda: source.is_refined)


@pytest.mark.thorough
def test_marks_have_the_colour_of_their_class(window, qtbot):
    opened, view = window.session.opened, window.workspace.area.view
    show(window, 0, 20_000, qtbot)
    image = view.grab().toImage()
    for ns, lane, name in ((2_000, CLIENT_1, "KER_CALL"), (5_000, SERVER_1, "USREVENT"), (5_000, 0, "USREVENT")):
        row = opened.lanes.row_of(lane)
        x = view.scale.x(opened.trace.clock.cycles(ns))
        assert class_colour(name, False) in [rgb(image, x + dx, row.y_px + 2) for dx in (-1, 0, 1)], name
