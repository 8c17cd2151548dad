"""On a full HD screen at twice the size, 960 x 540 logical pixels, everything can be seen and reached."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QDialog, QTabBar

from satview.gui.widgets import resize_on_screen
from tests.helpers.scene import scene

WIDTH, HEIGHT = 960, 540
FRAME = 36


@pytest.fixture
def small(empty_window, load, tmp_path):
    empty_window.resize(WIDTH, HEIGHT)
    return load(empty_window, scene(tmp_path))


@pytest.mark.thorough
def test_the_window_leaves_room_for_lanes(small, qtbot):
    assert (small.width(), small.height()) == (WIDTH, HEIGHT)
    view = small.workspace.area.view
    assert view.height() >= 280  # four CPUs with their interrupts, and seven processes
    assert view.width() > 700
    docks = small.workspace.docks.values()
    assert {small.dockWidgetArea(dock) for dock in docks} == {Qt.DockWidgetArea.BottomDockWidgetArea}
    assert not any(dock.isVisible() for dock in docks)
    small.workspace.toggle_bottom()
    assert small.workspace.panel_shows("events")
    qtbot.waitUntil(lambda: 165 <= view.height() < 280)  # a process less than half of them


@pytest.mark.thorough
def test_the_legend_takes_one_row_and_shows_the_others_on_request(small, qtbot):
    area, opened = small.workspace.area, small.session.opened
    legend = area.legend
    small.workspace.toggle_bottom()
    qtbot.waitUntil(lambda: legend.area_of("events are missing").isEmpty())
    unseen = [entry.name for entry in legend.entries if legend.area_of(entry.name).isEmpty()]
    assert "RUNNING" not in unseen
    assert "events are missing" in unseen
    row_px, more = legend.height(), legend.area_of(f"{len(unseen)} more")
    qtbot.mouseClick(legend, Qt.MouseButton.LeftButton, pos=more.center().toPoint())
    assert not opened.legend.keys
    assert not any(legend.area_of(name).isEmpty() for name in unseen)
    qtbot.waitUntil(lambda: legend.height() > row_px)
    legend.setFocus()
    qtbot.keyClick(legend, Qt.Key.Key_Space)  # "fewer"
    qtbot.waitUntil(lambda: legend.height() == row_px)
    small.resize(WIDTH, 900)
    qtbot.waitUntil(lambda: not any(legend.area_of(name).isEmpty() for name in unseen))


@pytest.mark.thorough
def test_names_of_panels_are_never_cut_and_long_fields_of_the_status_bar_do_not_widen_the_window(small, qtbot):
    small.workspace.show_panel("statistics")
    qtbot.waitUntil(lambda: any(bar.parent() is small and bar.isVisible() for bar in small.findChildren(QTabBar)))
    (tabs,) = [bar for bar in small.findChildren(QTabBar) if bar.parent() is small and bar.isVisible()]
    assert tabs.count() == 6
    widths = [tabs.tabRect(tab).width() for tab in range(tabs.count())]
    names = [tabs.fontMetrics().horizontalAdvance(tabs.tabText(tab)) for tab in range(tabs.count())]
    assert all(width >= name for width, name in zip(widths, names, strict=True))
    assert tabs.usesScrollButtons()
    selection, window = small.session.opened.selection, small.session.opened.trace.window
    selection.set_cursors(window.start + 1, window.end - 2)
    selection.set_range(window)
    small.session.opened.select_event(5)
    assert small.minimumSizeHint().width() <= WIDTH


@pytest.mark.thorough
def test_the_filter_is_side_by_side_in_the_drawer(small, qtbot):
    small.workspace.show_panel("filter")
    panel = small.workspace.panels["filter"]
    qtbot.waitUntil(lambda: panel.isVisible() and panel.tabs.x() > 0)
    for field in (panel.condition.line, panel.condition.effect, panel.effect, panel.events.search):
        assert field.height() >= 24
        assert panel.rect().contains(field.mapTo(panel, field.rect().bottomRight()))
    assert panel.condition.line.geometry().right() <= panel.tabs.x()
    assert panel.events.tree.viewport().height() >= panel.events.tree.sizeHintForRow(0)
    panel.show_rules()
    assert panel.rules.editor.width() > 200
    small.resize(WIDTH, 900)
    small.resizeDocks([small.workspace.docks["filter"]], [400], Qt.Orientation.Vertical)
    qtbot.waitUntil(lambda: panel.tabs.x() == 0)


@pytest.mark.thorough
def test_dialogs_fit(small, qtbot):
    for command in (
        "settings",
        "info",
        "new_capture",
        "save_events",
        "state_looks",
        "keys",
        "save_session",
        "together",
    ):
        small.actions_by_id.by_id[f"file.{command}"].trigger()
        qtbot.waitUntil(lambda: any(dialog.isVisible() for dialog in small.findChildren(QDialog)))
        (dialog,) = [dialog for dialog in small.findChildren(QDialog) if dialog.isVisible()]
        least = dialog.minimumSizeHint()
        assert (least.width() <= WIDTH, least.height() <= HEIGHT - FRAME) == (True, True), command
        dialog.resize(WIDTH, HEIGHT - FRAME)
        qtbot.wait(1)
        squeezed = [combo for combo in dialog.findChildren(QComboBox) if combo.height() < 24]  # which cannot be read
        assert squeezed == [], command
        dialog.close()


def test_windows_begin_no_larger_than_the_screen(empty_window):
    room = empty_window.screen().availableGeometry()
    resize_on_screen(empty_window, 10_000, 10_000)
    assert empty_window.width() <= room.width()
    assert empty_window.height() <= room.height() - FRAME
