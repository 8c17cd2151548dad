"""Plug-ins in the window: a tab, a lane, a verdict, and the list of them."""

import pytest
from PySide6.QtCore import QPoint, Qt

from satview.base import plugins
from satview.timeline.lane_info import LaneKind
from tests.plugins.test_plugins import built


@pytest.fixture
def plugged(samples, empty_window, load, tmp_path):
    load(empty_window, built(tmp_path))
    yield empty_window
    empty_window.close()


@pytest.mark.thorough
def test_a_lane_and_its_interval_and_a_tab_of_statistics(plugged, qtbot):
    workspace, timeline = plugged.workspace, plugged.session.opened.timeline
    [info] = [info for info in timeline.infos if info.kind is LaneKind.PLUGGED]
    view, opened = workspace.area.view, plugged.session.opened
    clock = opened.trace.clock
    opened.viewport.jump(type(opened.viewport.window)(clock.cycles(0), clock.cycles(3_000)))
    qtbot.waitUntil(lambda: workspace.area.is_exact, timeout=5_000)
    row = next(row for row in view.visible_rows() if row.index == info.index)
    point = QPoint(view.width() * 1250 // 3000, row.y_px + row.height_px // 2)
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=point)
    assert opened.selection.lane == info.index
    assert timeline.label(opened.selection.span) == "1 READY"
    plugged.actions_by_id.by_id["panels.statistics"].trigger()
    panel = plugged.workspace.panels["statistics"]
    titles = [panel.tabs.tabText(i) for i in range(panel.tabs.count())]
    assert (titles[0], titles[-1]) == ("Threads", "Short runs")
    panel.tabs.setCurrentIndex(titles.index("Short runs"))
    qtbot.waitUntil(
        lambda: panel.model.answer is not None and panel.model.answer.question.name == "short-runs", timeout=10_000
    )
    assert len(panel.model.answer) == 2


@pytest.mark.thorough
def test_the_list_of_plugins(plugged, qtbot):
    from satview.gui.dialogs import PluginsDialog

    plugged.actions_by_id.by_id["help.plugins"].trigger()
    [dialog] = plugged.findChildren(PluginsDialog)
    rows = [[dialog.tree.topLevelItem(i).text(c) for c in (0, 1, 3)] for i in range(dialog.tree.topLevelItemCount())]
    assert ["lane", "ready-threads", "on"] in rows
    assert len(rows) == 5
    dialog.close()


def test_the_list_says_what_is_switched_off(empty_window, package, qtbot):
    from satview.gui.dialogs import PluginsDialog

    package("satview.lanes", "broken", "raise ValueError('<b>oh</b>')\n")
    empty_window.actions_by_id.by_id["help.plugins"].trigger()
    [dialog] = empty_window.findChildren(PluginsDialog)
    assert dialog.tree.topLevelItem(0).text(3) == "switched off: ValueError: <b>oh</b>"
    dialog.close()
    assert plugins.all_plugins()[0].fault


@pytest.mark.thorough
def test_a_failure_is_named_in_the_status_bar(empty_window, package, load, tmp_path, qtbot):
    package("satview.lanes", "broken", "def thing(trace):\n    raise ValueError('oh')\n")
    load(empty_window, built(tmp_path))
    says = "the lane plug-in broken of bad-plugin 1.0 is switched off: ValueError: oh"
    assert empty_window.statusBar().currentMessage() == says
    assert empty_window.workspace is not None
