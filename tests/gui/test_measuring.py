"""Cursors, ranges and rows as somebody measures with them. In the scene a cycle is a nanosecond."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QUrl
from PySide6.QtTest import QTest

from satview.gui.widgets import LinePrompt
from tests.gui.conftest import part
from tests.gui.hands import ALT, CONTROL, LEFT, NONE, SHIFT, K, answer_prompt, click_cell, drag, move_mouse

RULER_Y = 32
CLIENT_1 = 3


@pytest.fixture
def ruler(window):
    return window.workspace.area.ruler


@pytest.fixture
def x_of(view, opened):
    return lambda ns: round(view.scale.x(opened.trace.clock.cycles(ns)))


@pytest.fixture
def ns_of(opened):
    return opened.trace.clock.ns


def test_a_cursor_snaps_to_the_edge_under_the_mouse(view, opened, x_of, ns_of):
    row = opened.lanes.row_of(CLIENT_1)
    move_mouse(view, QPoint(x_of(4_000) + 4, row.y_px + row.height_px // 2))
    QTest.keyClick(view, K.Key_1)
    move_mouse(view, QPoint(x_of(9_000) - 4, row.y_px + row.height_px // 2))
    QTest.keyClick(view, K.Key_2)  # MSG_SENDV exit: an event amid RUNNING
    assert (ns_of(opened.selection.cursor_a), ns_of(opened.selection.cursor_b)) == (4_000, 9_000)


@pytest.mark.thorough
def test_a_cursor_is_dragged_by_its_letter_and_snaps(ruler, opened, x_of, ns_of):
    at = opened.trace.clock.cycles
    opened.selection.set_cursors(at(2_500), at(6_300))
    drag(ruler, QPoint(x_of(2_500), RULER_Y), QPoint(x_of(5_000) + 4, RULER_Y))
    drag(ruler, QPoint(x_of(6_300), RULER_Y), QPoint(x_of(8_001) + 3, RULER_Y), modifiers=ALT)
    assert ns_of(opened.selection.cursor_a) == 5_000
    assert 8_001 < ns_of(opened.selection.cursor_b) < 8_201  # Alt: where it was let go
    assert opened.selection.time_range is None


@pytest.mark.thorough
def test_a_range_on_the_ruler_snaps_to_ticks_and_with_ctrl_to_events_of_any_lane(ruler, opened, x_of, ns_of):
    """Small ticks are a microsecond apart; there is an event at 8,001 ns."""
    drag(ruler, QPoint(x_of(3_000) + 4, 10), QPoint(x_of(8_000) + 5, 10))
    found = opened.selection.time_range
    assert (ns_of(found.start), ns_of(found.end)) == (3_000, 8_000)
    drag(ruler, QPoint(x_of(3_000) + 4, 10), QPoint(x_of(8_000) + 5, 10), modifiers=ALT)
    found = opened.selection.time_range
    assert (ns_of(found.start) > 3_000, ns_of(found.end) > 8_000) == (True, True)  # Alt: where the mouse was
    drag(ruler, QPoint(x_of(2_000) + 4, 10), QPoint(x_of(8_001) + 4, 10), modifiers=CONTROL)
    found = opened.selection.time_range
    assert (ns_of(found.start), ns_of(found.end)) == (2_000, 8_001)
    QTest.mouseClick(ruler, LEFT, pos=QPoint(x_of(3_000), 10))
    assert opened.selection.time_range is None


@pytest.mark.thorough
def test_the_delta_of_two_rows_of_the_list(window, opened, ns_of):
    """From the entry of MSG_SENDV at 2,000 to its exit at 9,000, whichever was clicked first."""
    panel = window.workspace.panels["events"]
    names = [opened.trace.spec(event).name for event in range(len(opened.trace.events))]
    enter, leave = names.index("MSG_SENDV"), names.index("MSG_SENDV", names.index("MSG_SENDV") + 1)
    for row, modifiers in ((leave, NONE), (enter, CONTROL)):
        click_cell(panel.table, row, 2, modifiers=modifiers)
    assert panel.delta.isVisible()
    assert panel.delta.text.text().startswith(
        f"#{enter + 1} MSG_SENDV to #{leave + 1} MSG_SENDV:  7 \u00b5s (7,000 cycles) \u00b7 142.9 kHz"
    )
    QTest.mouseClick(panel.delta.take, LEFT)
    found = opened.selection.time_range
    assert (ns_of(found.start), ns_of(found.end)) == (2_000, 9_000)
    QTest.keyClick(panel.table, K.Key_Down)
    assert not panel.delta.isVisible()


@pytest.mark.thorough
def test_rows_from_first_to_last_by_keys(window, opened):
    panel = window.workspace.panels["events"]
    opened.select_event(0)
    panel.table.setFocus()
    for _ in range(3):
        QTest.keyClick(panel.table, K.Key_Down, SHIFT)
    times = opened.trace.events.time_cycles
    assert f"({times[3] - times[0]} cycles)" in panel.delta.text.text()
    assert panel.delta.text.text().endswith("3 events later \u00b7 4 rows selected")
    assert len(panel.selected_text().splitlines()) == 5  # with the line of names


@pytest.mark.thorough
def test_a_range_is_typed_and_gone_to(window, view, opened, ns_of, qtbot):
    QTest.keyClick(view, K.Key_R, SHIFT)
    answer_prompt(window, qtbot, "2us..+7us")
    found = opened.selection.time_range
    assert (ns_of(found.start), ns_of(found.end)) == (2_000, 9_000)
    view.setFocus()
    QTest.keyClick(view, K.Key_R, SHIFT)
    prompt = window.findChildren(LinePrompt)[-1]
    assert prompt.line.text() == "0.000002s..0.000009s"  # ready to be changed, or copied to the command line
    prompt = answer_prompt(window, qtbot, "9us..2us")
    assert prompt.error.text() == "Range '9us..2us' ends before it begins."
    prompt.close()
    QTest.keyClick(view, K.Key_G, CONTROL)
    answer_prompt(window, qtbot, "-4us..")
    assert (ns_of(opened.viewport.window.start), ns_of(opened.selection.time_range.start)) == (16_001, 16_001)
    assert ns_of(opened.viewport.window.end) == ns_of(opened.selection.time_range.end) == 20_001


@pytest.mark.thorough
def test_a_range_says_at_once_what_it_holds(window, opened, ruler, x_of, qtbot, ns_of):
    """From 1 to 8 us the client runs 3 us and waits 4 us for the reply; the server waits and runs as long."""
    details = window.workspace.panels["details"]
    drag(ruler, QPoint(x_of(1_000) + 2, 10), QPoint(x_of(8_000) - 2, 10))
    assert "7 \u00b5s" in details.as_text()
    qtbot.waitUntil(lambda: "STATES OF ALL THREADS" in details.browser.toPlainText(), timeout=5_000)
    lines = [" ".join(line.split()) for line in details.as_text().splitlines()]
    assert "Length 7 \u00b5s (7,000 cycles)" in lines
    assert "RUNNING 6.999 \u00b5s 50.0 % 2" in lines  # between 4,000 and 4,001 nobody runs
    assert "REPLY 4.000 \u00b5s 4.000 \u00b5s 4.000 \u00b5s 4.000 \u00b5s" in lines
    assert "client 1 \u2248 3.000 \u00b5s \u2248 42.9 %" in lines
    assert "MSG_SENDV 1 142,857" in lines
    opened.selection.set_range(None)
    assert "Range" not in details.browser.toPlainText()


@pytest.mark.thorough
def test_the_longest_of_a_state_leads_to_its_interval(window, opened, qtbot, ns_of):
    details = window.workspace.panels["details"]
    opened.selection.set_range(part(opened, 1_000, 8_000))
    qtbot.waitUntil(lambda: details.range.answer is not None, timeout=5_000)
    (reply,) = [row for row in details.range.details().tables[1].rows if row[0].text == "REPLY"]
    details.browser.anchorClicked.emit(QUrl(f"at:{reply[-1].thread}/{reply[-1].cycles}"))
    assert opened.timeline.label(opened.selection.span) == "REPLY"
    assert ns_of(opened.selection.span.start_cycles) == 4_000
    assert opened.selection.time_range is not None
