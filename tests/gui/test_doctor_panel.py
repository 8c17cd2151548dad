"""The panel of the doctor, what is instead of lanes that would be empty, and the marks of figures."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from satview.answers.doctor import capture_for
from satview.gui.capture.dialog import NewCaptureDialog
from satview.gui.panel import select_row
from satview.gui.theme import DARK, LIGHT
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
    QTest.keyClick(window.workspace.area.view, Qt.Key.Key_D,
                   Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)  # fmt: skip
    qtbot.waitUntil(lambda: window.session.opened.doctor.answer is not None, timeout=10_000)
    return window.workspace.panels["doctor"]


def row_of(panel, title):
    return next(row for row in range(panel.model.rowCount()) if panel.model.index(row, 0).data() == title)


def texts(panel, title):
    return [panel.model.index(row_of(panel, title), section).data() for section in range(panel.model.columnCount())]


def colour_of(panel, title):
    return panel.model.index(row_of(panel, title), 0).data(Qt.ItemDataRole.ForegroundRole).rgb() & 0xFFFFFF


@pytest.mark.thorough
def test_nothing_is_requested_before_the_panel_is_seen(window, qtbot):
    doctor = window.session.opened.doctor
    assert doctor.answer is None
    assert not doctor.is_busy
    panel = shown(window, qtbot)
    assert panel.statement.text().startswith("Exact in ")


def test_a_row_says_mark_reason_and_capture(panel):
    assert texts(panel, "Interrupts") == [
        "Interrupts", "Needs other events", "no interrupts are there", "capture the class INTR",
        "tracelogger -k 128 -b 256 -F1 -F5 -F6 -F7 -f /dev/shmem/tracebuffer.kev",
    ]  # fmt: skip
    tip = panel.model.index(row_of(panel, "Interrupts"), 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "How often does each interrupt come, how late and how long is it handled?" in tip
    assert colour_of(panel, "Interrupts") == LIGHT.error
    assert texts(panel, "Events")[1] == "Lower bound"
    assert colour_of(panel, "Events") == LIGHT.warning
    panel.set_theme(DARK)
    assert colour_of(panel, "Events") == DARK.warning


@pytest.mark.thorough
def test_the_command_is_copied_for_a_row_and_for_all(panel, opened):
    QTest.mouseClick(panel.copy_line, Qt.MouseButton.LeftButton)
    everything = capture_for(opened.doctor.answer).command
    assert QGuiApplication.clipboard().text() == everything
    select_row(panel.table, row_of(panel, "Interrupts"))
    QTest.mouseClick(panel.copy_line, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == texts(panel, "Interrupts")[4] != everything
    exact = next(row["title"] for row in opened.doctor.answer if row["mark"] == "exact")
    select_row(panel.table, row_of(panel, exact))
    assert not panel.copy_line.isEnabled()
    assert not panel.capture.isEnabled()


@pytest.mark.thorough
def test_a_capture_opens_with_the_rules_of_the_row(window, panel):
    select_row(panel.table, row_of(panel, "Interrupts"))
    QTest.mouseClick(panel.capture, Qt.MouseButton.LeftButton)
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
        QTest.mouseClick(card.capture, Qt.MouseButton.LeftButton)
    assert requested.args == ["ADDALLCLASSES\nDELCLASS VTHREAD\nSETALLCLASSESFAST\n"]
    window.findChild(NewCaptureDialog).reject()
    QTest.mouseClick(card.copy_line, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == card.command.text()
    QTest.mouseClick(card.show_lanes, Qt.MouseButton.LeftButton)
    assert not card.isVisible()
    assert area.childAt(position) is area.view
    area.set_theme(DARK)
    assert not card.isVisible()


@pytest.mark.thorough
def test_a_trace_with_states_shows_its_lanes(window):
    assert not window.workspace.area.no_states.isVisible()


@pytest.mark.thorough
def test_figures_carry_their_marks(window, qtbot):
    window.workspace.show_panel("statistics")
    panel = window.workspace.panels["statistics"]
    qtbot.waitUntil(lambda: panel.model.answer is not None, timeout=10_000)
    section = panel.model.section_of("cpu")
    index = panel.model.index(0, section)
    head = panel.model.headerData(section, Qt.Orientation.Horizontal)
    assert head.endswith(f"CPU time {panel.model.data(index)[0]}")
    assert panel.model.data(index).endswith(" 6.999 µs")
    assert panel.model.data(index)[0] in (AT_LEAST, "\N{ALMOST EQUAL TO}")
    tip = panel.model.headerData(section, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
    assert "events were lost for 4.000 µs of it" in tip or "interrupts were not captured" in tip
    panel.table.setFocus()
    copied = panel.copied_text()
    assert AT_LEAST in copied or "\N{ALMOST EQUAL TO}" in copied
    unknown = panel.model.section_of("unknown")
    assert panel.model.data(panel.model.index(0, unknown)) == "8.000 µs"


@pytest.mark.thorough
def test_verdicts_say_that_there_may_be_more(window, qtbot):
    window.workspace.show_panel("verdicts")
    panel = window.workspace.panels["verdicts"]
    qtbot.waitUntil(lambda: window.session.opened.verdicts.answer is not None, timeout=10_000)
    said = panel.missing.text() or panel.message.text()
    assert any(line.startswith(("Not all: events were lost for ", "Cannot tell: events were lost for "))
               for line in said.splitlines())  # fmt: skip


@pytest.mark.thorough
def test_plots_say_how_far_they_can_be_trusted(window, qtbot):
    window.workspace.show_panel("plots")
    panel = window.workspace.panels["plots"]
    qtbot.waitUntil(lambda: "CPU time" in panel.statement.text(), timeout=20_000)
    text = panel.statement.text()
    assert "interrupts: \N{ALMOST EQUAL TO} " in text
    assert "Estimate: interrupts were not captured, so their time counts for what they interrupt" in text
