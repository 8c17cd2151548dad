"""Verdicts, the steps of Why? and the critical path on the lanes: by name, the worst first, and each can be clicked."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from satview.analysis.thread_names import thread_of
from satview.gui.theme import LIGHT
from tests.gui.conftest import part, settle
from tests.gui.hands import LEFT, K, rgb


@pytest.fixture
def inverted(empty_window, load, lesson, qtbot):
    """A window with 7 to 35 ms of a trace in which thread `high 1` waits for 26.06 ms, and its verdict."""
    window = load(empty_window, lesson("nested-inversion"))
    opened = window.session.opened
    opened.lanes.unfold_all()
    opened.viewport.jump(part(opened, 7_000_000, 35_000_000))
    opened.verdicts.start()
    qtbot.waitUntil(lambda: opened.verdicts.answer is not None, timeout=10_000)
    window.workspace.area.view.reveal_lane(lane_of(opened, "high 1"))
    settle(qtbot, window)
    return window


def lane_of(opened, thread):
    return opened.lane_of_thread(thread_of(opened.trace, thread))


def labels(view):
    """Return the names that are drawn, in their order."""
    view.repaint()
    return [placed.text for placed in view.named_marks._placed if not placed.label.isEmpty()]


def click(view, text):
    """Click a name."""
    placed = next(placed for placed in view.named_marks._placed if placed.text == text)
    QTest.mouseClick(view, LEFT, pos=placed.label.center().toPoint())
    view.repaint()


def test_a_verdict_is_named_on_the_lane_that_suffers_and_a_click_draws_it(inverted, qtbot):
    view, opened = inverted.workspace.area.view, inverted.session.opened
    assert labels(view) == ["priority-inversion 26.06 ms"]
    row, clock = opened.lanes.row_of(lane_of(opened, "high 1")), opened.trace.clock
    y = row.y_px - view.scroll_px + 1
    x = [round(view.scale.x(clock.cycles(ns))) for ns in (7_500_000, 9_000_000, 33_500_000, 34_700_000)]
    image = view.grab().toImage()
    assert [rgb(image, column, y) == LIGHT.error for column in x] == [False, True, True, False]
    click(view, "priority-inversion 26.06 ms")
    shown = opened.highlight.shown
    assert [leg.title for leg in shown.legs if leg.thread == thread_of(opened.trace, "high 1")] == ["waits"]
    assert opened.trace.clock.duration_ns(shown.span[1] - shown.span[0]) // 1_000_000 == 26
    assert labels(view) == []  # what is drawn instead has names of its own
    settle(qtbot, inverted)
    assert inverted.workspace.panels.created["details"].as_text().startswith("priority-inversion  [verdict]\n")


@pytest.mark.thorough
def test_the_tip_of_a_verdict_has_its_sentence(inverted):
    view, opened = inverted.workspace.area.view, inverted.session.opened
    labels(view)
    QTest.mouseMove(view, QPoint(1, 1))
    QTest.mouseMove(view, view.named_marks._placed[0].label.center().toPoint())
    assert view.cursor().shape() == Qt.CursorShape.PointingHandCursor
    text = inverted.workspace.area.hover.text()
    assert text.startswith("<b>priority-inversion</b>&nbsp;&nbsp;26.06 ms<br>")
    assert opened.verdicts.answer.verdicts[0].says.split(" ")[0] in text
    QTest.mouseMove(view, QPoint(1, 1))
    assert view.cursor().shape() == Qt.CursorShape.ArrowCursor


@pytest.mark.thorough
def test_the_worst_case_is_named_first(dense, qtbot):
    """Three cases of 1.39, 2.06 and 3.81 ms on one lane, too near each other for three names."""
    view, opened = dense.workspace.area.view, dense.session.opened
    opened.verdicts.start()
    qtbot.waitUntil(lambda: opened.verdicts.answer is not None, timeout=30_000)
    lane = opened.lane_of_thread(opened.verdicts.answer.verdicts[0].threads[0])
    opened.lanes.reveal(lane)
    view.reveal_lane(lane)
    names = labels(view)
    assert names[0] == "priority-inversion 3.814 ms"
    assert len(names) < 3
    assert len(view.named_marks._placed) == 3


@pytest.mark.thorough
def test_steps_of_why_and_pieces_of_the_critical_path_are_named_on_their_lanes(inverted, qtbot):
    view, opened = inverted.workspace.area.view, inverted.session.opened
    opened.why.search(opened.trace, thread_of(opened.trace, "high 1"), opened.trace.clock.cycles(20_000_000))
    qtbot.waitUntil(lambda: bool(opened.why.steps), timeout=10_000)
    assert labels(view) == ["why 1: REPLY 26.06 ms", "why 2: REPLY 26.05 ms", "why 3: READY 20.05 ms"]
    click(view, "why 3: READY 20.05 ms")
    assert opened.selection.lane == lane_of(opened, "store 1")
    assert opened.timeline.label(opened.selection.span) == "READY"
    QTest.keyClick(view, K.Key_Escape)
    QTest.keyClick(view, K.Key_Escape)
    assert labels(view) == ["priority-inversion 26.06 ms"]
    opened.selection.select(None, None, None)
    opened.path.search(opened.trace, thread_of(opened.trace, "high 1"), opened.viewport.window)
    qtbot.waitUntil(lambda: opened.path.answer is not None, timeout=10_000)
    names = labels(view)
    assert names[0] == "path: ready 20.05 ms"
    click(view, "path: ready 20.05 ms")
    assert opened.selection.lane == lane_of(opened, "store 1")
    assert opened.timeline.label(opened.selection.span) == "READY"
