"""`What if...`: a change is typed, and its prediction opens below the trace."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from satview.formats.registry import open_trace
from satview.gui.comparison.what_if_dialog import WhatIfDialog
from satview.gui.panels.verdicts_panel import VerdictsPanel
from satview.timeline.lane_info import LaneKind
from tests.whatif.test_fit import captured

SECONDS = 1000


@pytest.fixture
def servers(empty_window, load, tmp_path):
    """Return a window with the nested servers: `report` waits for a front, which waits for the store."""
    return load(empty_window, captured(tmp_path, "nested-servers").path)


def dialog_of(window, thread=None):
    """Select the lane of a thread, by its name, and return the dialog that the lane's menu opens."""
    opened = window.workspace.opened
    if thread is not None:
        (lane,) = (info.index for info in opened.timeline.infos
                   if info.kind is LaneKind.THREAD and opened.trace.threads.names[info.thread] == thread)  # fmt: skip
        opened.selection.select(None, lane, None)
    window.workspace.area.menu_requested.emit(window.pos())
    return chosen(window)


def chosen(window):
    """Return the dialog that the entry of the open menu opens."""
    menu = next(menu for menu in window.findChildren(QMenu) if menu is QApplication.activePopupWidget())
    (entry,) = (action for action in menu.actions() if action.text() == "What &if\N{HORIZONTAL ELLIPSIS}")
    menu.close()
    entry.trigger()
    return window.workspace.findChild(WhatIfDialog)


def predict(qtbot, dialog, changes):
    """Type changes over those that are there, and wait until Predict has come to an end."""
    dialog.changes.selectAll()
    QTest.keyClicks(dialog.changes, changes)
    QTest.mouseClick(dialog.predict_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(dialog.predict_button.isVisible, timeout=60 * SECONDS)


def heads(window):
    panes = window.workspace.panes
    return [pane.area._heads[0].text() for pane in (panes.first, panes.second) if pane is not None]


@pytest.mark.thorough
def test_a_prediction_opens_below_and_is_marked_as_one(servers, qtbot):
    dialog = dialog_of(servers, "keeper")
    assert dialog.changes.toPlainText() == "store 1 (keeper):priority="
    predict(qtbot, dialog, "store:speed=2")
    assert dialog.fit.text().startswith("The unchanged replay is off by 0.0% in the median of an activity")
    assert dialog.fit.property("role") == ""
    assert dialog.outcome.text().startswith("Changed: store:speed=2\n")
    # 12 ms of the store become 6, 300 us of the front stay.
    says = r"report 1 \(report\): median 12.41 ms, replayed 12.4\d ms, predicted 6.4\d\d ms"
    assert re.search(says, dialog.outcome.text())
    beside = servers.workspace.beside
    qtbot.waitUntil(lambda: beside.comparison.second is not None, timeout=30 * SECONDS)
    assert heads(servers) == ["nested-servers-recorded.kev",
                              "predicted: store:speed=2 (from nested-servers-recorded.kev)"]  # fmt: skip
    assert beside.state() is None, "the file goes with the window: the next one cannot open it again"
    folder = beside.path.parent
    assert open_trace(beside.path, None).title == heads(servers)[1]
    beside.close()
    assert not folder.exists()


def test_what_cannot_be_compared_opens_below_with_a_warning(window, qtbot):
    dialog = dialog_of(window)
    predict(qtbot, dialog, "cpus=2")
    assert dialog.fit.text().startswith("Warning: no activity can be compared")
    assert dialog.fit.property("role") == "warning"
    assert dialog.outcome.text().startswith("Changed: cpus=2\n")
    qtbot.waitUntil(lambda: window.workspace.comparison.second is not None, timeout=30 * SECONDS)
    assert heads(window) == ["scene.kev", "predicted: cpus=2 (from scene.kev)"]
    window.workspace.beside.close()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param(
            "nobody:priority=1",
            "No prediction: nobody:priority=1: the trace has no such thread or process; there are ",
            marks=pytest.mark.thorough,
        ),
        ("priority", "No prediction: 'priority' is not TARGET:KEY=VALUE, such as 'planner 1:priority=22', or cpus=2."),
        (" ", "No prediction: there is no change yet, such as planner 1:priority=22."),
    ],
)
def test_what_does_not_fit_is_said_and_the_text_stays(servers, qtbot, changes, says):
    dialog = dialog_of(servers)
    assert dialog.changes.toPlainText() == "cpus="
    predict(qtbot, dialog, changes)
    assert dialog.fit.text().startswith(says)
    assert dialog.fit.property("role") == "error"
    assert dialog.changes.toPlainText() == changes
    assert servers.workspace.panes.second is None


def test_cancelled_or_closed_it_stops_and_leaves_nothing(servers, qtbot):
    dialog = dialog_of(servers)
    dialog.changes.setPlainText("cpus=1")
    dialog.predict_button.click()
    folder = dialog._predicted_path(dialog._folder).parent
    assert folder.exists()
    dialog.cancel_button.click()
    assert dialog.fit.text() == "Cancelled; nothing was predicted."
    assert not folder.exists()
    dialog.predict_button.click()
    folder = dialog._predicted_path(dialog._folder).parent
    servers.session.close()
    assert not folder.exists()


def test_a_trace_without_a_file_is_refused(servers, qtbot):
    dialog = dialog_of(servers)
    servers.workspace.opened.trace.path.unlink()
    predict(qtbot, dialog, "cpus=1")
    assert dialog.fit.text().startswith("No prediction: nested-servers-recorded.kev is no file that can be read again")


def test_a_verdict_is_asked_about_its_thread(empty_window, load, tmp_path, qtbot):
    window = load(empty_window, captured(tmp_path, "inversion", length_ms=100).path)
    window.workspace.show_panel("verdicts")
    panel = window.workspace.panel(VerdictsPanel)
    qtbot.waitUntil(lambda: panel.model.rowCount() > 0, timeout=30 * SECONDS)
    cell = panel.table.visualRect(panel.model.index(0, 0)).center()
    QTest.mouseClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=cell)
    panel.table.customContextMenuRequested.emit(cell)
    dialog = chosen(window)
    assert panel.model.index(0, 3).data().startswith("high 1 (high) (priority 30) waits 32.00 ms")
    assert dialog.changes.toPlainText() == "high 1 (high):priority="
