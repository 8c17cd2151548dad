"""The panel of the doctor, what is instead of lanes that would be empty, and the marks of figures."""

from __future__ import annotations

from itertools import groupby

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from satview.answers.doctor import capture_for
from satview.gui.capture.dialog import NewCaptureDialog
from satview.gui.panel import select_row
from satview.gui.theme import DARK, LIGHT
from tests.gui.hands import CONTROL_SHIFT, LEFT, K, all_texts, row_texts
from tests.helpers.kev import TraceBuilder

AT_LEAST = "\N{GREATER-THAN OR EQUAL TO}"


@pytest.fixture
def calls_only(tmp_path):
    """A trace of kernel calls alone, as a program that requests the class KERCALL gets it."""
    builder = TraceBuilder(cpus=1).time_event(0).process_name(1, 7, "server")
    for at in range(1000, 9000, 1000):
        builder.call(11, at, (3, 0x64636261)).exit(11, at + 500, (0, 0))
    return builder.write(tmp_path / "calls.kev")


@pytest.fixture
def panel(window, qtbot):
    """The panel, shown by its key, with what it found."""
    return shown(window, qtbot)


def shown(window, qtbot):
    QTest.keyClick(window.workspace.area.view, K.Key_D, CONTROL_SHIFT)
    qtbot.waitUntil(lambda: window.session.opened.doctor.answer is not None, timeout=10_000)
    return window.workspace.panels["doctor"]


def row_of(panel, title):
    return [texts[0] for texts in all_texts(panel.model)].index(title)


def texts(panel, title):
    return row_texts(panel.model, row_of(panel, title))


def colour_of(panel, title):
    return panel.model.index(row_of(panel, title), 0).data(Qt.ItemDataRole.ForegroundRole).rgb() & 0xFFFFFF


@pytest.mark.thorough
def test_nothing_is_requested_before_the_panel_is_seen(window, qtbot):
    assert not window.workspace.area.no_states.isVisible(), "the trace has states"
    doctor = window.session.opened.doctor
    assert doctor.answer is None
    assert not doctor.is_busy
    panel = shown(window, qtbot)
    assert panel.statement.text().startswith("Exact in ")


@pytest.mark.thorough
def test_a_row_says_mark_reason_and_capture(panel):
    assert texts(panel, "Interrupts") == [
        "Interrupts", "Needs other events", "the trace has no interrupts", "capture the class INTR",
        "tracelogger -k 128 -b 256 -F1 -F5 -F6 -F7 -f /dev/shmem/tracebuffer.kev",
    ]  # fmt: skip
    tip = panel.model.index(row_of(panel, "Interrupts"), 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "How often does each interrupt come, how late and how long is it handled?" in tip
    assert colour_of(panel, "Interrupts") == LIGHT.error
    assert texts(panel, "Events")[1] == "Lower bound"
    assert colour_of(panel, "Events") == LIGHT.warning
    panel.set_theme(DARK)
    assert colour_of(panel, "Events") == DARK.warning


def test_what_can_be_improved_comes_first(panel):
    trusts = [texts[1] for texts in all_texts(panel.model)]
    ranks = ["Not logged", "Needs other events", "Needs wide events", "Estimate", "Lower bound", "Exact"]
    assert [text for text, _ in groupby(trusts)] == [rank for rank in ranks if rank in trusts]
    assert {"Needs other events", "Lower bound", "Exact"} <= set(trusts)


@pytest.mark.thorough
def test_the_command_is_copied_for_a_row_and_for_all_and_a_capture_opens_with_its_rules(panel, opened, window):
    QTest.mouseClick(panel.copy_line, LEFT)
    everything = capture_for(opened.doctor.answer).command
    assert QGuiApplication.clipboard().text() == everything
    select_row(panel.table, row_of(panel, "Interrupts"))
    QTest.mouseClick(panel.copy_line, LEFT)
    assert QGuiApplication.clipboard().text() == texts(panel, "Interrupts")[4] != everything
    exact = next(row["title"] for row in opened.doctor.answer if row["mark"] == "exact")
    select_row(panel.table, row_of(panel, exact))
    assert not panel.copy_line.isEnabled()
    assert not panel.capture.isEnabled()
    select_row(panel.table, row_of(panel, "Interrupts"))
    QTest.mouseClick(panel.capture, LEFT)
    dialog = window.findChild(NewCaptureDialog)
    assert dialog.rules.edit.toPlainText() == (
        "ADDALLCLASSES\nDELCLASS KERCALL\nDELCLASS VTHREAD\nDELCLASS COMM\nDELCLASS SYSTEM\nSETALLCLASSESFAST\n"
    )
    dialog.reject()


@pytest.mark.thorough
def test_a_trace_of_kernel_calls_opens_with_what_to_capture(empty_window, load, calls_only, qtbot):
    window = load(empty_window, calls_only)
    area, opened = window.workspace.area, window.session.opened
    card = area.no_states
    assert card.isVisible()
    assert card.command.text() == "tracelogger -F5 -f /dev/shmem/tracebuffer.kev"
    assert "It has kernel calls only" in card._text.text()
    assert window.workspace.panel_shows("events")
    position = area.view.mapTo(area, area.view.rect().center())
    assert area.childAt(position) is not area.view
    with qtbot.waitSignal(opened.capture_requested) as requested:
        QTest.mouseClick(card.capture, LEFT)
    assert requested.args == ["ADDALLCLASSES\nDELCLASS VTHREAD\nSETALLCLASSESFAST\n"]
    window.findChild(NewCaptureDialog).reject()
    QTest.mouseClick(card.copy_line, LEFT)
    assert QGuiApplication.clipboard().text() == card.command.text()
    QTest.mouseClick(card.show_lanes, LEFT)
    assert not card.isVisible()
    assert area.childAt(position) is area.view
    area.set_theme(DARK)
    assert not card.isVisible()


@pytest.mark.thorough
def test_plots_say_how_far_they_can_be_trusted(window, qtbot):
    window.workspace.show_panel("plots")
    panel = window.workspace.panels["plots"]
    qtbot.waitUntil(lambda: "CPU time" in panel.statement.text(), timeout=20_000)
    text = panel.statement.text()
    assert "interrupts: \N{ALMOST EQUAL TO} " in text
    assert "Estimate: interrupts were not captured, so their time counts for what they interrupt" in text
