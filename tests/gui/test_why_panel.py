"""The panel Why?: steps in the colours of their states, whose names lead into the lanes without losing the answer."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QGuiApplication

from satview.events.states import STATE_BY_NAME
from satview.gui.colours import state_colour
from tests.gui.hands import LEFT, K

WAITS_FROM = 142_560  # the row by which vehicle_control begins to wait for the mutex for 3.8 ms
STEPS = (
    ("MUTEX", "vehicle_control 1 (control-10ms)"),
    ("READY", "logger 1 (writer)"),
    ("RUNNING", "slogger2 2 (worker-2)"),
    ("RUNNING", "logger 1 (writer)"),
)


@pytest.fixture
def answered(dense, qtbot):
    """The panel with the answer to why a thread waits for a mutex, asked by the key."""
    dense.session.opened.select_event(WAITS_FROM)
    qtbot.keyClick(dense.workspace.area.view, K.Key_Y)
    qtbot.waitUntil(lambda: bool(dense.session.opened.why.steps), timeout=10_000)
    return dense.workspace.panels["why"]


def position_of(browser, text):
    """Return where a text is shown, as the position of the mouse for a click on it."""
    cursor = browser.document().find(text)
    assert not cursor.isNull(), text
    cursor.setPosition(cursor.selectionStart() + 2)
    return browser.cursorRect(cursor).center()


@pytest.mark.thorough
def test_each_step_has_its_number_the_colour_of_its_state_and_the_name_of_its_thread(answered, dense):
    assert dense.workspace.panel_shows("why")
    html = answered.browser.toHtml()
    chips = re.findall(r"background-color:(#\w+);\">.(\w+).<", html)
    assert [name for _, name in chips] == [state for state, _ in STEPS]
    for colour, name in chips:
        assert int(colour[1:], 16) == state_colour(STATE_BY_NAME[name].value, answered._theme)
    lines = answered.browser.toPlainText().replace("\u00a0", " ").splitlines()
    heads = [number for number, line in enumerate(lines) if line in ("1", "2", "3", "4")]
    assert [lines[number + 1].strip() for number in heads] == [state for state, _ in STEPS]
    assert [lines[number + 2].split("   ")[0] for number in heads] == [name for _, name in STEPS]
    assert "priority 40, 3.814 ms since 5.102 424 s" in lines[heads[0] + 2]


@pytest.mark.thorough
def test_a_link_goes_to_the_thread_then_and_the_answer_stays(answered, dense, qtbot):
    opened = dense.session.opened
    steps = opened.why.steps
    assert opened.trace.thread_name(steps[0].holder) == "logger 1 (writer)"
    answered.browser.anchorClicked.emit(QUrl(f"at:{steps[1].thread}/{steps[1].at_cycles}"))
    assert opened.selection.lane == opened.lane_of_thread(steps[1].thread)
    assert opened.timeline.label(opened.selection.span) == "READY"
    assert opened.why.steps == steps


@pytest.mark.thorough
def test_copy_takes_the_answer_and_a_click_on_an_event_of_a_sentence_selects_it(answered, dense, qtbot):
    answered.browser.setFocus()
    dense.registry["edit.copy"].run()
    text = QGuiApplication.clipboard().text()
    assert text.startswith("Why MUTEX?")
    assert "held by logger 1 (writer)" in text
    viewport = answered.browser.viewport()
    qtbot.mouseClick(viewport, LEFT, pos=position_of(answered.browser, "event #142730"))
    assert dense.session.opened.selection.event == 142_729


@pytest.mark.thorough
def test_a_short_answer_is_not_scattered_over_the_width(answered, dense, qtbot):
    """The number, the state and the thread of its only step follow each other, with only margins between."""
    opened = dense.session.opened
    idle = next(row for row in range(1, len(opened.trace.threads)) if "idle" in opened.trace.thread_name(row))
    opened.select_at(opened.lane_of_thread(idle), int(opened.trace.events.time_cycles[WAITS_FROM]))
    qtbot.keyClick(dense.workspace.area.view, K.Key_Y)
    qtbot.waitUntil(lambda: bool(opened.why.steps) and opened.why.steps[0].thread == idle, timeout=10_000)
    browser, state = answered.browser, opened.why.steps[0].state
    widest_px = browser.fontMetrics().horizontalAdvance(f"1   {state}     ") + 40
    assert browser.width() > 2 * widest_px
    assert position_of(browser, opened.trace.thread_name(idle)).x() < widest_px


def test_before_a_question_the_panel_says_how_to_ask(window):
    window.workspace.show_panel("why")
    assert "press Y" in window.workspace.panels["why"].browser.toPlainText()
