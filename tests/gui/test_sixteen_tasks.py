"""Sixteen tasks of a QNX engineer in the window, each in at most four clicks, keys, drags or typed texts.

The clicks of a file dialog of the system are counted as one.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QImage

from satview.__main__ import main
from satview.analysis.statistics import Statistics
from satview.events import wire
from satview.formats.registry import open_trace
from satview.gui import dialogs
from satview.gui.capture.dialog import NewCaptureDialog
from satview.gui.comparison.panel import ComparisonPanel
from satview.gui.save_events import SaveEventsDialog
from satview.linkage.chain import are_linked
from satview.session.session import Stage
from satview.store.mark_file import note_files
from tests.benchmarks.made_traces import make_file
from tests.gui.conftest import DENSE, settle
from tests.gui.hands import CONTROL, CONTROL_SHIFT, SHIFT, K
from tests.gui.test_damage import STEP, slots
from tests.gui.test_ten_tasks import busiest, sit_down
from tests.helpers.kev import write_trace

MOST = 4


@pytest.fixture
def sit(empty_window, load, qtbot):
    """Return a function that opens a trace; at the end of the test its actions are counted."""
    desks = []

    def run(path):
        desks.append(sit_down(empty_window, load, qtbot, path))
        return desks[-1]

    yield run
    assert all(0 < desk.actions <= MOST for desk in desks), [desk.actions for desk in desks]


@pytest.fixture
def dense(sit, dense_copy):
    return sit(dense_copy)


@pytest.fixture
def capture(tmp_path):
    """Return a function that captures a workload."""

    def run(name, *options):
        path = tmp_path / f"{name}.kev"
        main(["tracelogger", "--workload", name, *options, "-f", str(path)])
        return path

    return run


def top_of(desk, lane):
    """Return a point within a lane, at the left."""
    row = desk.opened.lanes.row_of(lane)
    return QPoint(40, row.y_px - desk.view.scroll_px + row.height_px // 2)


def lane_of(desk, title):
    return next(info.index for info in desk.opened.timeline.infos if info.title == title)


def are_of(desk, name):
    """Return which events have a name, bool (events,)."""
    return np.isin(desk.trace.events.code, desk.trace.catalogue.find(name))


@pytest.mark.thorough
def test_cpu_use_of_a_range(dense):
    dense.drag(QPoint(200, 60), QPoint(400, 60))
    dense.press(K.Key_T)
    text = busiest(dense)
    window = dense.opened.selection.time_range
    used = Statistics(dense.trace, window).threads.cpu_cycles.copy()
    used[0] = 0  # no thread
    idle = np.array([dense.trace.thread_name(row).startswith("procnto") for row in range(len(used))])
    assert text == dense.trace.thread_name(int(np.argmax(np.where(idle, 0, used))))


@pytest.mark.thorough
def test_longest_wait(dense):
    """The slowest message is the first row, and a click draws it on the lanes."""
    dense.press(K.Key_X, CONTROL_SHIFT)
    panel = dense.workspace.panels["transactions"]
    dense.wait(lambda: panel.view.answer is not None and not panel.view.is_busy)
    dense.click_row(panel.table, 0)
    dense.wait(lambda: dense.opened.highlight.shown is not None)
    table = panel.model.answer
    assert table["round_trip_cycles"][0] == np.max(table["round_trip_cycles"]) > 1_000_000
    assert dense.opened.selection.event == table.event(0)
    assert dense.event_name() == "SND_MESSAGE"


def test_a_context_switch_to_the_cycle(dense):
    lane = dense.opened.timeline.cpu_lanes[0]
    dense.click(dense.view, top_of(dense, lane))
    selection, events = dense.opened.selection, dense.trace.events
    assert selection.span.start_cycles == int(events.time_cycles[selection.event])
    assert dense.event_name() == "THRUNNING"
    assert int(events.cpu[selection.event]) == 0
    length = selection.span.end_cycles - selection.span.start_cycles
    assert f"({length:,} cycles)" in dense.workspace.panels["details"].as_text()


@pytest.mark.thorough
def test_the_server_side_of_a_call(dense):
    """From the message that a call sends to its receipt in the server."""
    send = int(np.flatnonzero(are_of(dense, "SND_MESSAGE"))[100])
    dense.workspace.panels["events"].table.verticalScrollBar().setValue(send)
    dense.row(send)
    client = dense.trace.threads.process[dense.trace.events.thread[send]]
    dense.wait(lambda: are_linked(dense.trace))  # links are found beside
    dense.press(K.Key_BracketRight)
    assert dense.event_name() == "REC_MESSAGE"
    assert dense.trace.threads.process[dense.trace.events.thread[dense.opened.selection.event]] != client


@pytest.mark.thorough
def test_find(dense):
    dense.press(K.Key_Slash)
    dense.type("MSG_SENDV")
    count = np.count_nonzero(are_of(dense, "MSG_SENDV"))
    dense.wait(lambda: len(dense.opened.search.hits) >= count)
    dense.press(K.Key_Return)
    assert dense.event_name() == "MSG_SENDV"


@pytest.mark.thorough
def test_filter_and_highlight(dense):
    """One process alone, and of its lanes READY: the legend is the place for that."""
    dense.click(dense.view, top_of(dense, lane_of(dense, "map_update")))
    dense.press(K.Key_T, SHIFT)
    dense.wait(lambda: dense.opened.filters.row_count < len(dense.trace.events))
    legend = dense.workspace.area.legend
    dense.click(legend, legend.area_of("READY").center().toPoint())
    assert dense.opened.legend.keys
    threads = dense.trace.threads.process[dense.trace.events.thread[dense.opened.filters.view.rows]]
    assert {dense.trace.process_name(int(process)) for process in np.unique(threads)} <= {"map_update"}


@pytest.mark.thorough
def test_capture_with_rules_and_live(sit, capture, application, qtbot, tmp_path):
    """From what a trace cannot show, a live capture with the rules that show it."""
    desk = sit(capture("polite"))
    button = desk.workspace.status.verdicts
    desk.wait(lambda: "cannot be decided" in button.text())
    desk.click(button)
    panel = desk.workspace.panels["verdicts"]
    desk.wait(panel.capture.isVisible)
    desk.click(panel.capture)
    dialog = desk.window.findChild(NewCaptureDialog)
    qtbot.waitExposed(dialog)
    dialog.path.setText(str(tmp_path / "again.kev"))
    desk.click(dialog.live, QPoint(8, dialog.live.height() // 2))
    assert dialog.live.isChecked()
    assert dialog.rules.text.splitlines()[-1] == "SETALLCLASSESWIDE"
    desk.click(dialog.start_button)

    def captured():
        opened = (window for window in application.windows if window.session.opened is not None)
        return next((window for window in opened if window.session.opened.trace.path.name == "again.kev"), None)

    qtbot.waitUntil(lambda: captured() is not None, timeout=15_000)
    other = captured()
    qtbot.waitUntil(lambda: other.session.follow is None and not desk.window.capture_job.is_busy, timeout=15_000)
    button = other.workspace.status.verdicts
    qtbot.waitUntil(lambda: "erdict" in button.text(), timeout=15_000)
    assert "priority-inversion" not in button.toolTip()


@pytest.mark.parametrize(("name", "kind"), [("deadlock", "deadlock"), ("inversion", "priority-inversion")])
def test_deadlock_and_inversion_by_the_window_alone(sit, capture, name, kind):
    desk = sit(capture(name, "-w"))
    button = desk.workspace.status.verdicts
    desk.wait(lambda: kind in button.text())
    desk.click(button)
    panel = desk.workspace.panels["verdicts"]
    desk.wait(lambda: desk.opened.verdicts.answer is not None and panel.model.rowCount() > 0)
    desk.click_row(panel.table, 0)
    shown = desk.opened.highlight.shown
    assert shown.title == kind
    worst = max(
        desk.opened.verdicts.answer.verdicts[0].occurrences, key=lambda case: case.end_cycles - case.start_cycles
    )
    assert shown.span == (worst.start_cycles, worst.end_cycles)
    assert shown.waits


@pytest.mark.thorough
def test_a_damaged_file(sit, tmp_path):
    """A click says what is damaged, another one shows where."""
    broken = slots()
    at = np.flatnonzero(broken[:, 0] & wire.CODE_MASK == wire.CONTROL_TIME)[5]
    broken[at, 2] ^= np.uint32(1 << 20)
    desk = sit(write_trace(tmp_path / "damaged.kev", broken))
    desk.click(desk.workspace.status.problems)
    tree = desk.workspace.panels["problems"].tree
    desk.wait(tree.isVisible)
    item = tree.topLevelItem(0)
    desk.click(tree.viewport(), tree.visualItemRect(item).center())
    assert "TIME event" in " ".join(item.text(column) + (item.child(0).text(column) if item.childCount() else "")
                                    for column in range(4))  # fmt: skip
    shown, row = desk.opened.viewport.window, int(np.flatnonzero(desk.trace.events.slot == at)[0])
    assert shown.start <= int(desk.trace.events.time_cycles[row]) <= shown.end
    assert desk.trace.window.length < 210 * STEP


@pytest.mark.thorough
def test_notes(dense):
    dense.click(dense.view, top_of(dense, lane_of(dense, "map_update")))
    dense.press(K.Key_M, SHIFT)
    dense.type("too late")
    dense.press(K.Key_Return)
    (mark,) = dense.opened.marks
    assert mark.text == "too late"
    dense.wait(lambda: bool(note_files(dense.trace.path)))
    (file,) = note_files(dense.trace.path)
    assert json.loads(file.read_text())["marks"][0]["text"] == "too late"


@pytest.mark.thorough
def test_export(dense, monkeypatch, tmp_path):
    """A range of events as a trace of its own."""
    dense.drag(QPoint(200, 60), QPoint(210, 60))
    dense.press(K.Key_E, CONTROL_SHIFT)
    dialog = dense.window.findChild(SaveEventsDialog)
    monkeypatch.setattr(dialogs, "ask_save", lambda *_: tmp_path / "part.kev")
    dense.click(dialog.save_button)
    dense.actions += 1  # the system's dialog
    dense.wait(lambda: dialog.message.text() != "")
    part = dense.trace.rows_between(dense.opened.selection.time_range)
    assert len(open_trace(tmp_path / "part.kev").events) >= part.stop - part.start > 100
    dialog.close()


@pytest.mark.thorough
def test_keyboard_alone(dense):
    dense.press(K.Key_P, CONTROL)
    dense.type("planner")
    dense.press(K.Key_Return)
    dense.press(K.Key_Y)
    dense.wait(lambda: bool(dense.opened.why.steps) or bool(dense.opened.why.error))
    assert "planner" in dense.opened.timeline.infos[dense.opened.selection.lane].title


@pytest.mark.thorough
def test_two_traces(sit, capture, monkeypatch, qtbot):
    first, second = capture("inversion", "-w"), capture("inheritance", "-w")
    desk = sit(first)
    monkeypatch.setattr(dialogs, "ask_open", lambda *_: [second])
    desk.press(K.Key_D, CONTROL)
    desk.actions += 1  # the system's dialog
    desk.wait(lambda: desk.workspace.comparison.second is not None)
    settle(qtbot, desk.window)
    desk.wait(lambda: desk.workspace.panel_shows("comparison"))
    panel = desk.workspace.panel(ComparisonPanel)
    desk.wait(lambda: panel.view.changes is not None and not panel.view.is_pending)
    desk.click_row(panel.table, 0)
    assert panel.model.rowCount() > 3


@pytest.mark.thorough
def test_small_and_twice_as_fine(dense, dense_copy, tmp_path):
    """In 1024x700 lanes have nearly a third of the height; the picture at 2x is of 2048x1400 pixels."""
    dense.window.resize(1024, 700)
    settle(dense.qtbot, dense.window)
    assert (dense.window.width(), dense.window.height()) == (1024, 700)
    assert dense.view.height() >= 220
    dense.press(K.Key_E)
    settle(dense.qtbot, dense.window)
    assert dense.view.height() >= 150
    command = ["-m", "satview", str(dense_copy), "--screenshot", str(tmp_path / "fine.png"), "--size", "1024x700"]
    subprocess.run([sys.executable, *command, "--scale", "2"], check=True, capture_output=True, timeout=60)
    image = QImage(str(tmp_path / "fine.png"))
    assert (image.width(), image.height()) == (2048, 1400)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "content", "says"), [
    ("letter.kev", b"Dear Sir or Madam, " * 20, ""),
    ("empty.kev", b"", "empty"),
    ("short.kev", DENSE.read_bytes()[:700], ""),
])  # fmt: skip
def test_bad_files(empty_window, tmp_path, qtbot, name, content, says):
    """What is wrong and what to do, after the one click that opens the file."""
    (tmp_path / name).write_bytes(content)
    empty_window.session.open(tmp_path / name)
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.FAILED, timeout=10_000)
    failed = empty_window.views.failed
    assert name in failed.title.text()
    assert says in failed.what.text()
    assert failed.what.text().endswith(".")
    assert failed.remedy.text()


@pytest.mark.thorough
def test_ten_million_slots(sit, tmp_path):
    """The same as in a small one, and no click waits long for its answer."""
    desk = sit(make_file(tmp_path / "large.kev", 10_000_000))
    desk.drag(QPoint(200, 60), QPoint(400, 60))
    desk.press(K.Key_T)
    assert busiest(desk)
    desk.press(K.Key_Z)
    window = desk.opened.viewport.window
    assert window.length < desk.trace.window.length // 3
