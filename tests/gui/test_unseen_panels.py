"""Panels that nobody can see: neither made nor at work."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from satview.gui.windows.workspace import PanelSet
from satview.session.commands import PANELS
from satview.session.range_view import Extent


def made(window):
    return set(window.workspace.panels.created)


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
