"""What the card under the mouse says of threads that do not run: who runs instead, whom they wait for."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt

from satview.linkage.chain import are_waits_known
from tests.gui.conftest import settle


def point_at(window, who, at_ms, qtbot):
    """Move the mouse to a moment of the lane of a process's first thread; return the lines of the card."""
    opened, view = window.session.opened, window.workspace.area.view
    threads = opened.trace.threads
    thread = next(row for row in range(1, len(threads)) if opened.trace.process_name(int(threads.process[row])) == who)
    row = opened.lanes.row_of(opened.lane_of_thread(thread))
    view.scroll_to(row.y_px)
    settle(qtbot, window)  # lanes that come into sight are made in the background
    x = round(view.scale.x(opened.trace.clock.cycles(at_ms * 1_000_000)))
    qtbot.mouseMove(view, QPoint(1, 1))  # a move to where the mouse is, over another lane now, is none
    qtbot.mouseMove(view, QPoint(x, row.y_px - view.scroll_px + row.height_px // 2))
    return window.workspace.area.hover.text().split("<br>")


@pytest.mark.thorough
def test_ready_names_who_has_the_cpu(empty_window, load, lesson, qtbot):
    """From 68.99 to 99.01 ms *low* is ready and *middle* runs."""
    window = load(empty_window, lesson("inversion"))
    lines = point_at(window, "low", 85, qtbot)
    assert lines[0].startswith("<b>READY</b>")
    assert "CPU 0: middle 1 (middle)" in lines
    lines = point_at(window, "low", 20, qtbot)
    assert lines[0].startswith("<b>RECEIVE</b>")
    assert not any(line.startswith("CPU 0:") for line in lines)


def test_the_card_comes_with_a_lane_that_is_made_under_the_mouse(empty_window, load, lesson, qtbot):
    window = load(empty_window, lesson("inversion"))
    opened, area = window.session.opened, window.workspace.area
    opened.lanes.unfold_all()
    settle(qtbot, window)
    row = area.view.visible_rows()[3]
    lane = opened.timeline._lanes.pop(row.index)  # as one that has just come into sight
    area.view.source._requested = None
    point = QPoint(area.view.width() // 2, row.y_px - area.view.scroll_px + row.height_px // 2)
    qtbot.mouseMove(area.view, point)
    # On a busy machine a frame that was due makes the lane during the move.
    assert not area.hover.isVisible() or opened.timeline.is_ready(row.index)
    area.view.repaint()  # begins to make it
    qtbot.waitUntil(area.hover.isVisible)
    assert opened.timeline.lane(row.index) is not lane
    qtbot.mouseMove(area.view, point + QPoint(1, 0))
    again = area.hover.text()
    area.hover.hide()
    area.view.source.refined.emit()  # later ones leave it hidden: nothing is waited for
    assert not area.hover.isVisible()
    assert again


@pytest.mark.thorough
def test_a_wait_names_holder_or_server_once_the_links_are_there(empty_window, load, lesson, qtbot):
    empty_window.settings.set("verdicts/check_up_to_events", 0)
    window = load(empty_window, lesson("inversion"))
    qtbot.waitUntil(lambda: not window.workspace.is_checking)
    trace = window.session.opened.trace
    assert not are_waits_known(trace)
    lines = point_at(window, "high", 85, qtbot)
    assert lines[0].startswith("<b>MUTEX</b>")
    assert not any(line.startswith("waits for") for line in lines), "the card does not make them"
    assert not are_waits_known(trace)
    window.session.opened.verdicts.start()
    qtbot.waitUntil(lambda: window.session.opened.verdicts.answer is not None, timeout=10_000)
    assert "waits for low 1 (low), mutex 0x8129e40, inferred" in point_at(window, "high", 86, qtbot)


@pytest.mark.thorough
def test_a_message_names_its_server(empty_window, load, lesson, qtbot):
    """At 180 ms one client waits in REPLY for the only thread of the server, another one in SEND for any."""
    window = load(empty_window, lesson("client-server"))
    opened, clock = window.session.opened, window.session.opened.trace.clock
    qtbot.waitUntil(lambda: opened.verdicts.answer is not None, timeout=10_000)
    opened.viewport.zoom(0.1, clock.cycles(180_000_000))
    assert "waits for slow_server 1 (only-one)" in point_at(window, "client4", 180, qtbot)
    assert "waits for any thread of slow_server" in point_at(window, "client2", 180, qtbot)


@pytest.mark.thorough
def test_the_card_goes_when_the_view_moves_under_the_mouse(window, view, opened, qtbot):
    card = window.workspace.area.hover
    for key in (Qt.Key.Key_A, Qt.Key.Key_W, Qt.Key.Key_0):
        row = opened.lanes.rows[2]
        qtbot.mouseMove(view, QPoint(300, row.y_px + 8))
        qtbot.mouseMove(view, QPoint(310, row.y_px + 8))
        assert card.isVisible(), key
        opened.viewport.zoom(0.5, opened.viewport.window.start + 100)
        assert not card.isVisible()
        qtbot.mouseMove(view, QPoint(300, row.y_px + 8))
        assert card.isVisible()
        qtbot.keyClick(view, key)
        assert not card.isVisible(), key
    assert view.hovered is None
