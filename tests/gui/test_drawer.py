"""Panels at the bottom are tabs of four topics; those that nobody sees leave their room, and do not work."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QTabBar

from satview.gui.windows.docks import one_topic_in_each_row
from satview.gui.windows.workspace import PanelSet
from satview.session.commands import PANELS, Topic
from satview.session.range_view import Extent
from satview.session.workspace_file import PanelGroup, PanelLayout
from tests.gui.conftest import settle
from tests.gui.hands import LEFT, K
from tests.helpers.scene import scene


@pytest.fixture
def drawer(window):
    return window.workspace.drawer


def tabs_of_the_drawer(window):
    bars = [bar for bar in window.findChildren(QTabBar) if bar.parent() is window and bar.isVisible()]
    bar = min(bars, key=lambda bar: bar.x())  # that of the panels at the right is the other one
    return [bar.tabText(tab) for tab in range(bar.count())]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("topic", "tabs", "answer"),
    [
        (Topic.ASK, ["Verdicts (1)", "Why?", "Critical path", "Snapshot"], "What is wrong in the traced system?"),
        (
            Topic.MEASURE,
            ["Statistics", "Late", "Transactions", "Plots", "Flame graph", "Comparison"],
            "How much CPU time, how many events, calls, messages and interrupts?",
        ),
        (Topic.DATA, ["Events", "Search results", "SQL"], "What happened, event by event?"),
        (
            Topic.ABOUT,
            ["Doctor", "Problems", "Marks and notes"],
            "How far can each answer be trusted, and what should you capture next time?",
        ),
    ],
)
def test_a_click_on_a_topic_shows_its_panels_and_what_the_front_one_answers(window, drawer, qtbot, topic, tabs, answer):
    qtbot.waitUntil(lambda: window.workspace.opened.verdicts.answer is not None, timeout=10_000)
    qtbot.mouseClick(drawer.buttons[Topic.ABOUT if topic is Topic.DATA else Topic.DATA], LEFT)
    drawer.open_again()
    qtbot.mouseClick(drawer.buttons[topic], LEFT)
    qtbot.waitUntil(lambda: tabs_of_the_drawer(window) == tabs)
    assert drawer.answers.text() == answer
    assert [name.value for name, button in drawer.buttons.items() if button.isChecked()] == [topic.value]


@pytest.mark.thorough
def test_a_second_click_or_the_key_of_the_panel_leaves_its_room_to_the_lanes(window, drawer, view, qtbot):
    open_px = view.height()
    qtbot.mouseClick(drawer.buttons[Topic.DATA], LEFT)
    qtbot.waitUntil(lambda: view.height() > open_px + 200)
    assert drawer.front == ""
    assert drawer.answers.text() == ""
    qtbot.keyClick(view, K.Key_G)
    qtbot.waitUntil(lambda: abs(view.height() - open_px) <= 2)
    assert drawer.front == "plots"
    qtbot.keyClick(view, K.Key_G)
    qtbot.waitUntil(lambda: view.height() > open_px + 200)
    qtbot.keyClick(view, K.Key_Q)
    qtbot.waitUntil(lambda: drawer.front == "plots")


@pytest.mark.thorough
def test_topics_are_reached_and_opened_by_keys_and_the_one_with_the_keyboard_is_seen(drawer, qtbot):
    button = drawer.buttons[Topic.ASK]
    before = button.grab().toImage()
    button.setFocus(Qt.FocusReason.TabFocusReason)
    assert button.grab().toImage() != before
    qtbot.keyClick(button, K.Key_Space)
    qtbot.waitUntil(lambda: drawer.front == "verdicts")


@pytest.mark.thorough
def test_a_topic_shows_the_panel_that_was_in_front_of_it(window, drawer, qtbot):
    window.workspace.show_panel("sql")
    qtbot.mouseClick(drawer.buttons[Topic.ASK], LEFT)
    assert drawer.front == "verdicts"
    qtbot.mouseClick(drawer.buttons[Topic.DATA], LEFT)
    assert drawer.front == "sql"


@pytest.mark.thorough
def test_a_panel_in_a_window_of_its_own_stays_while_the_drawer_goes_on(window, drawer, qtbot):
    window.workspace.show_panel("sql")
    qtbot.waitUntil(drawer.float_button.isVisible)
    qtbot.mouseClick(drawer.float_button, LEFT)
    assert window.workspace.docks["sql"].isFloating()
    qtbot.waitUntil(lambda: drawer.front in ("events", "results"))
    qtbot.mouseClick(drawer.close_button, LEFT)
    assert drawer.front == ""
    assert window.workspace.docks["sql"].isVisible()


@pytest.mark.thorough
def test_an_old_layout_opens_with_the_topic_of_its_front_panel(window, drawer, qtbot):
    """There was one row of tabs for all."""
    tabs = "events statistics transactions plots marks problems verdicts path snapshot doctor comparison sql results"
    old = PanelLayout(
        (
            PanelGroup("bottom", tuple(tabs.split()), "plots", 0, 500, 800, 230),
            PanelGroup("right", ("details", "filter"), "details", 860, 60, 300, 700),
        ),
        hidden=("statistics",),
    )
    hidden = ["statistics", "events", "marks", "problems", "verdicts", "path", "snapshot", "doctor", "sql", "results"]
    assert one_topic_in_each_row(old).hidden == tuple(hidden)
    window.workspace.restore_panels(old)
    qtbot.waitUntil(lambda: drawer.front == "plots")
    qtbot.waitUntil(lambda: tabs_of_the_drawer(window) == ["Transactions", "Plots", "Comparison"])
    qtbot.mouseClick(drawer.buttons[Topic.DATA], LEFT)
    qtbot.mouseClick(drawer.buttons[Topic.MEASURE], LEFT)
    tabs = {"Late", "Transactions", "Plots", "Flame graph", "Comparison", "Statistics"}
    qtbot.waitUntil(lambda: set(tabs_of_the_drawer(window)) == tabs)


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(780, 900), (1200, 780)], ids=["narrow", "low"])
def test_in_a_small_window_the_drawer_starts_closed(empty_window, load, tmp_path, size, qtbot):
    empty_window.resize(*size)
    load(empty_window, scene(tmp_path))
    drawer = empty_window.workspace.drawer
    assert drawer.front == ""
    qtbot.mouseClick(drawer.buttons[Topic.MEASURE], LEFT)
    qtbot.waitUntil(lambda: drawer.front == "statistics")


@pytest.mark.thorough
def test_panels_have_their_sizes_again_after_the_window_was_small(window, view, qtbot):
    settle(qtbot, window)
    docks, wide, high = window.workspace.docks, view.width(), view.height()
    details_px, events_px = docks["details"].width(), docks["events"].height()
    window.resize(700, 460)
    qtbot.waitUntil(lambda: view.width() < wide - 300)
    qtbot.waitUntil(lambda: docks["details"].width() < details_px)
    window.resize(1200, 800)
    qtbot.waitUntil(lambda: abs(docks["details"].width() - details_px) <= 2)
    qtbot.waitUntil(lambda: abs(docks["events"].height() - events_px) <= 2)
    assert (view.width(), view.height()) == pytest.approx((wide, high), abs=2)


@pytest.mark.thorough
def test_a_small_window_lists_the_selection_among_the_topics(empty_window, load, tmp_path, qtbot):
    empty_window.resize(900, 560)
    load(empty_window, scene(tmp_path))
    workspace = empty_window.workspace
    button = workspace.drawer.buttons[Topic.SELECTION]
    qtbot.mouseClick(button, LEFT)
    qtbot.waitUntil(lambda: workspace.panel_shows("details"))
    empty_window.resize(1400, 900)
    QApplication.processEvents()
    empty_window.registry["panels.reset"].run()
    qtbot.waitUntil(lambda: not button.isVisible())


def made(window):
    return set(window.workspace.panels.created)


@pytest.mark.thorough
def test_only_panels_in_front_are_made(window):
    assert made(window) == {"events", "details"}


@pytest.mark.thorough
def test_a_key_makes_a_panel_and_hides_the_one_before(window, view, qtbot):
    events = window.workspace.panels["events"]
    height = events.height()
    qtbot.keyClick(view, Qt.Key.Key_T)
    qtbot.waitUntil(lambda: window.workspace.panel_shows("statistics"))
    panel = window.workspace.panels["statistics"]
    assert made(window) == {"events", "details", "statistics"}
    assert panel.isVisible()
    assert not events.isVisible()
    assert panel.height() == height  # the dock still has its size


@pytest.mark.thorough
def test_statistics_do_not_work_behind_a_tab(window, view, opened, qtbot):
    qtbot.keyClick(view, Qt.Key.Key_T)
    panel = window.workspace.panels["statistics"]
    qtbot.waitUntil(lambda: panel.model.rowCount() == 3 and not panel.view.is_pending)
    panel.view.set_extent(Extent.VIEW)
    qtbot.waitUntil(lambda: not panel.view.is_pending)
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_E)  # the list of events comes in front of it
    qtbot.waitUntil(lambda: not panel.isVisible())
    opened.viewport.zoom(0.2, opened.viewport.window.start)
    assert not panel.view.is_pending
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_T)
    assert panel.isVisible()
    assert panel.view.is_pending  # of what shows by now
    qtbot.waitUntil(lambda: not panel.view.is_pending)


def test_asking_makes_a_panel_once():
    requested = []
    panels = PanelSet(lambda name: requested.append(name) or object())
    assert list(panels) == [row.name for row in PANELS]
    assert not requested
    first = panels["plots"]
    assert panels["plots"] is first
    assert requested == ["plots"]
    assert "details" in panels
    assert "nothing" not in panels
    assert requested == ["plots"]
