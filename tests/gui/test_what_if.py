"""`What if...`: a change is typed, and its prediction opens below the trace."""

from __future__ import annotations

import re

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QPushButton

from satview.events.spec import Release
from satview.formats.registry import open_trace
from satview.gui import dialogs
from satview.gui.comparison.what_if_dialog import (
    ChangeTarget,
    WhatIfDialog,
    _outcome_text,
    change_completions,
    targets_of,
)
from satview.gui.panels.why_panel import VerdictsPanel
from satview.timeline.lane_info import LaneKind
from satview.whatif.prediction import basis_of
from satview.whatif.prediction import predict as predict_changes
from satview.whatif.program import programs_of
from satview.whatif.steps import parse_changes, with_changes
from tests.gui.hands import LEFT, K, click_cell
from tests.helpers.kev import TraceBuilder
from tests.whatif.test_fit import captured


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
    QTest.mouseClick(dialog.predict_button, LEFT)
    qtbot.waitUntil(dialog.predict_button.isVisible, timeout=60_000)


def wait_for_second(window, qtbot):
    """Wait until a prediction shows below the trace; return what shows it."""
    beside = window.workspace.second_trace
    qtbot.waitUntil(lambda: beside.comparison.second is not None, timeout=30_000)
    return beside


def saved(dialog, to, qtbot, monkeypatch):
    """Save the prediction; return where it is."""
    monkeypatch.setattr(dialogs, "ask_save", lambda *_: to)
    QTest.mouseClick(dialog.save_button, LEFT)
    qtbot.waitUntil(lambda: dialog.saved.text() == f"Saved: {to}")
    return to


def heads(window):
    """Return the whole headings of both traces; the labels show as much of each as fits."""
    panes = window.workspace.panes
    areas = [pane.area for pane in (panes.first, panes.second) if pane is not None]
    assert all(area._title.startswith(area._heads[0].text().rstrip("\N{HORIZONTAL ELLIPSIS}")) for area in areas)
    return [area._title for area in areas]


@pytest.mark.thorough
def test_a_prediction_opens_below_and_is_marked_as_one(servers, qtbot):
    dialog = dialog_of(servers, "keeper")
    assert dialog.changes.toPlainText() == "store 1 (keeper):priority="
    predict(qtbot, dialog, "store:speed=2")
    assert dialog.fit.text().startswith("The unchanged replay is off by <0.1 % in the median of an activity")
    assert dialog.fit.property("role") == ""
    assert dialog.outcome.text().startswith("Changed: store:speed=2\n")
    # 12 ms of the store become 6, 300 us of the front stay.
    says = r"report 1 \(report\): median 12.4\d ms, replayed 12.4\d ms, predicted 6.4\d\d ms"
    assert re.search(says, dialog.outcome.text())
    beside = wait_for_second(servers, qtbot)
    assert heads(servers) == ["nested-servers-recorded.kev",
                              "predicted: store:speed=2 (from nested-servers-recorded.kev)"]  # fmt: skip
    assert beside.state() is None, "the file goes with the window: the next one cannot open it again"
    folder = beside.path.parent
    assert open_trace(beside.path, None).title == heads(servers)[1]
    beside.close()
    assert not folder.exists()


@pytest.mark.thorough
def test_the_shown_prediction_can_be_saved_after_one_that_failed_or_was_cancelled(
    servers, qtbot, tmp_path, monkeypatch
):
    dialog = dialog_of(servers)
    predict(qtbot, dialog, "store:speed=2")
    beside = wait_for_second(servers, qtbot)
    predict(qtbot, dialog, "nobody:priority=1")
    assert dialog.fit.text().startswith("No prediction: nobody:priority=1: the trace has no such thread or process")
    assert dialog.save_button.isEnabled()
    dialog.predict_button.click()
    dialog.cancel_button.click()
    assert dialog.fit.text() == "Cancelled; nothing was predicted."
    to = saved(dialog, tmp_path / "kept.kev", qtbot, monkeypatch)
    assert open_trace(to, None).title == "predicted: store:speed=2 (from nested-servers-recorded.kev)"
    beside.close()


@pytest.mark.thorough
def test_what_may_be_the_other_way_is_said(servers, qtbot):
    """Half of the rounds of the store are short and half long: its median may be either; the report always waits."""
    dialog = dialog_of(servers)
    predict(qtbot, dialog, "cpus=1")
    lines = dialog.outcome.text().splitlines()
    is_marked = {line.partition(":")[0]: "(? +" in line for line in lines}
    assert is_marked["store 1 (keeper)"]
    assert not is_marked["report 1 (report)"]
    assert "?: it may be the other way, by chance or by what the trace leaves open" in lines


@pytest.mark.thorough
def test_what_cannot_be_compared_opens_below_with_a_warning(window, qtbot):
    dialog = dialog_of(window)
    predict(qtbot, dialog, "cpus=2")
    assert dialog.fit.text().startswith("Warning: no activity can be compared")
    assert dialog.fit.property("role") == "warning"
    assert dialog.outcome.text().startswith("Changed: cpus=2\n")
    beside = wait_for_second(window, qtbot)
    assert heads(window) == ["scene.kev", "predicted: cpus=2 (from scene.kev)"]
    beside.close()


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


@pytest.mark.thorough
def test_cancelled_or_closed_it_stops_and_leaves_nothing(servers, qtbot):
    dialog = dialog_of(servers)
    dialog.changes.setPlainText("cpus=1")
    dialog.predict_button.click()
    folder = dialog._predicted_path(dialog._folder).parent
    assert folder.exists()
    dialog.cancel_button.click()
    assert dialog.fit.text() == "Cancelled; nothing was predicted."
    assert not folder.exists()
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow)
    dialog.predict_button.click()
    qtbot.keyClick(dialog, K.Key_Escape)
    assert (dialog.isVisible(), dialog.fit.text()) == (True, "Cancelled; nothing was predicted.")
    dialog.predict_button.click()
    folder = dialog._predicted_path(dialog._folder).parent
    servers.session.close()
    assert not folder.exists()


@pytest.mark.thorough
def test_a_trace_without_a_file_is_refused(servers, qtbot):
    dialog = dialog_of(servers)
    servers.workspace.opened.trace.path.unlink()
    predict(qtbot, dialog, "cpus=1")
    assert dialog.fit.text().startswith(
        "No prediction: nested-servers-recorded.kev is not a file that can be read again"
    )


@pytest.mark.thorough
def test_a_verdict_is_asked_about_its_thread(empty_window, load, tmp_path, qtbot):
    window = load(empty_window, captured(tmp_path, "inversion", length_ms=100).path)
    window.workspace.show_panel("verdicts")
    panel = window.workspace.panel(VerdictsPanel)
    qtbot.waitUntil(lambda: panel.model.rowCount() > 0, timeout=30_000)
    click_cell(panel.table, 0)
    panel.table.customContextMenuRequested.emit(panel.table.visualRect(panel.model.index(0, 0)).center())
    dialog = chosen(window)
    assert panel.model.index(0, 3).data().startswith("high 1 (high) (priority 30) waits 32.00 ms")
    assert dialog.changes.toPlainText() == "high 1 (high):priority="


def test_a_change_that_rounds_to_nothing_has_no_minus():
    row = {"activity": "loop 1", "median_ns": 10_000, "replayed_median_ns": 10_000, "predicted_median_ns": 9_999,
           "median_change": -0.01, "fit": "good"}  # fmt: skip
    said = _outcome_text({"changes": [], "findings": [], "not_shown": [], "activities": [row]})
    assert said.endswith(" (+0.0 %), fit good")


PLANNER = ChangeTarget("planner 1 (plan-50ms)", "thread", ("priority", "policy", "runmask", "speed"))
OTHERS = (
    ChangeTarget("planner", "process", ("priority", "threads")),
    ChangeTarget("lock 0x80d4390", "lock", ("inherit", "ceiling")),
    ChangeTarget("interrupt 0xc", "interrupt", ("rate", "handler")),
)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("plan", ["planner 1 (plan-50ms):", "planner:"]),
        ("50ms", ["planner 1 (plan-50ms):"]),
        ("cp", ["cpus="]),
        ("0x8", ["lock 0x80d4390:"]),
        ("lo", ["lock 0x80d4390:", "load burner:period=10ms,work=2ms,priority=30"]),
        ("planner 1 (plan-50ms):p", ["priority=", "policy=", "speed="]),
        ("planner:", ["priority=", "threads="]),
        ("lock 0x80d4390:", ["inherit=", "ceiling="]),
        ("INTERRUPT 0xC:", ["rate=", "handler="]),
        ("load mine:", ["period="]),
        ("planner 1 (plan-50ms):policy=", ["fifo", "rr"]),
        ("lock 0x80d4390:inherit=y", ["yes"]),
        ("planner 1 (plan-50ms):priority=", []),
        ("nothing like it", []),
    ],
)
def test_what_fits_is_proposed(line, offered):
    proposals = change_completions(line, len(line), (PLANNER, *OTHERS))
    assert [proposal.text for proposal in proposals] == offered
    assert all(line[: proposal.start] + line[proposal.end :] == line[: proposal.start] for proposal in proposals)


def test_what_the_trace_has_can_be_changed(tmp_path):
    trace = captured(tmp_path, "inversion", length_ms=100)
    targets = targets_of(trace, bool)
    names = [target.name for target in targets]
    assert {"low 1 (low)", "high 1 (high)", "middle", "high"} <= set(names)
    assert not any("idle" in name for name in names)
    (lock,) = (name for name in names if name.startswith("lock "))
    predict_changes(basis_of(trace), parse_changes([f"{lock}:inherit=yes"]))


def test_a_process_without_a_name_can_be_changed_by_its_number(tmp_path):
    builder = TraceBuilder().time_event(0)
    builder.state("RUNNING", 1_000, 7, 1).state("NANOSLEEP", 2_000, 7, 1).state("READY", 3_000, 7, 1)
    targets = targets_of(open_trace(builder.write(tmp_path / "nameless.kev")), bool)
    assert [(target.what, target.name) for target in targets] == [("thread", "pid 7 1"), ("process", "pid 7")]


@pytest.mark.thorough
@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_7])
def test_what_is_proposed_is_not_refused(tmp_path, release):
    trace = captured(tmp_path, "automotive", release=release, length_ms=300)
    programs = programs_of(trace)
    targets = targets_of(trace, bool)
    assert {target.what for target in targets} == {"thread", "process", "lock", "interrupt"}
    values = {"policy": "rr", "inherit": "yes", "handler": "thread 40"}
    for target in targets:
        for key in target.keys:
            if key != "threads":  # of a process that receives messages
                with_changes(programs, parse_changes([f"{target.name}:{key}={values.get(key, '1')}"]))


@pytest.mark.thorough
def test_names_and_changes_are_completed_while_typing(servers, qtbot):
    dialog = dialog_of(servers)
    qtbot.waitUntil(lambda: bool(dialog.changes.targets))
    dialog.show()
    dialog.changes.selectAll()
    QTest.keyClicks(dialog.changes, "cpus=1")
    QTest.keyClick(dialog.changes, K.Key_Return)
    QTest.keyClicks(dialog.changes, "keep")
    assert dialog.changes.proposals.isVisible()
    QTest.keyClick(dialog.changes, K.Key_Tab)
    assert dialog.changes.toPlainText() == "cpus=1\nstore 1 (keeper):"
    assert dialog.changes.proposals.isVisible(), "what can be changed of it comes next"
    QTest.keyClicks(dialog.changes, "spe")
    QTest.keyClick(dialog.changes, K.Key_Tab)
    QTest.keyClicks(dialog.changes, "2")
    assert dialog.changes.toPlainText() == "cpus=1\nstore 1 (keeper):speed=2"
    assert not dialog.changes.proposals.isVisible()
    QTest.keyClick(dialog.changes, K.Key_Tab)
    assert dialog.timing.hasFocus(), "Tab goes on where nothing is proposed"


USER_EVENTS = """<eventdefinitions><eventclass name="User Events">
<event id="1" name="cycle begin" sformat="%4u1d task %4u1d count"/>
<event id="2" name="cycle end" sformat="%4u1d task %4u1d count"/>
</eventclass></eventdefinitions>"""
TIMING = """["slowest cycle"]
start = "class == USER and number == 1 and arg.task == 2"
end = "class == USER and number == 2 and arg.task == 2"
"""


@pytest.mark.thorough
def test_files_of_the_window_hold_for_predictions_and_a_prediction_is_saved(
    empty_window, load, tmp_path, qtbot, monkeypatch
):
    """The activity of the file has a field that only the descriptions name: the replay needs both."""
    window = load(empty_window, captured(tmp_path, "periodic", length_ms=300).path)
    (tmp_path / "user.xml").write_text(USER_EVENTS)
    (tmp_path / "timing.toml").write_text(TIMING)
    opened = window.workspace.opened
    opened.describe(str(tmp_path / "user.xml"))
    opened.time_activities("timing.toml")
    dialog = dialog_of(window)
    assert dialog.timing.text() == "timing.toml"
    assert not dialog.save_button.isEnabled(), "there is nothing to save yet"
    predict(qtbot, dialog, "slow:speed=2")
    # 11 to 17 ms of work of the slowest task are half of that, as are parts of what keeps it waiting.
    (line,) = (line for line in dialog.outcome.text().splitlines() if line.startswith("slowest cycle: "))
    assert "(-" in line
    to = saved(dialog, tmp_path / "kept.kev", qtbot, monkeypatch)
    assert open_trace(to, None).title == "predicted: slow:speed=2 (from periodic-recorded.kev)"
    wait_for_second(window, qtbot).close()
    QTest.mouseClick(dialog.save_button, LEFT)
    assert dialog.saved.text() == "The prediction is closed; predict again."
    assert to.exists()


@pytest.mark.thorough
def test_a_file_of_timing_that_is_not_there_is_said(servers, qtbot, tmp_path, monkeypatch):
    dialog = dialog_of(servers)
    monkeypatch.setattr(dialogs, "ask_file", lambda *_: tmp_path / "none.toml")
    button = next(button for button in dialog.findChildren(QPushButton) if button.text().startswith("Choose"))
    QTest.mouseClick(button, LEFT)
    assert dialog.timing.text() == str(tmp_path / "none.toml")
    predict(qtbot, dialog, "cpus=1")
    assert dialog.fit.text() == "No prediction: none.toml: there is no such file; check the name."
    (tmp_path / "none.toml").write_text('["report"]\ndeadline = "soon"\n')
    predict(qtbot, dialog, "cpus=1")
    assert dialog.fit.text().startswith("No prediction: none.toml: [report] deadline: ")
    assert servers.workspace.opened.timing_file == "", "the window keeps its own"
