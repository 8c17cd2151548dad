"""Capture from a target, by the window: a real ssh and sshd, a board whose tracelogger is the simulated one."""

from __future__ import annotations

import re
import shutil
import time
from threading import Event

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from satview.events import wire
from satview.events.naming import names
from satview.events.spec import Release
from satview.formats.registry import open_trace
from satview.gui.capture import job, target_dialog
from satview.gui.capture.job import OutcomeDialog, TargetCaptureRequest
from satview.gui.capture.target_dialog import TargetDialog
from satview.gui.filters import rules_tab
from satview.session.session import Stage
from satview.target.capture import _ScriptRun
from satview.target.line import GivenUpError, Profile
from satview.target.request import TargetRequest
from tests.gui.hands import LEFT

pytestmark = pytest.mark.usefixtures("quick_clock")


@pytest.fixture
def targets(board, tmp_path, monkeypatch):
    """Let the board be the target `rig` of the user's file."""
    file = tmp_path / "targets.toml"
    options = ", ".join(f'"{word}"' for word in board.profile.ssh_options)
    file.write_text(f'[rig]\naddress = "{board.profile.address}"\nssh_options = [{options}]\n'
                    f'memory_folder = "{board.memory}"\n')  # fmt: skip
    monkeypatch.setattr(target_dialog, "targets_file", lambda: file)
    return file


def dialog_of(window, qtbot):
    """Open the dialog by its command."""
    window.actions_by_id.by_id["file.capture_target"].trigger()
    qtbot.waitUntil(lambda: window.findChild(TargetDialog) is not None, timeout=10_000)
    return window.findChild(TargetDialog)


def begin(window, qtbot, path, ending="By Stop", rules=""):
    """Type the target and the file, say how it ends after a second or by Stop, and press Capture."""
    dialog = dialog_of(window, qtbot)
    dialog.target.setFocus()
    dialog.target.lineEdit().selectAll()
    QTest.keyClicks(dialog.target, "rig")
    dialog.path.setText(str(path))
    dialog.ending.setCurrentText(ending)
    dialog.seconds.setValue(1)
    dialog.rules.setText(rules)
    assert dialog.start_button.isEnabled(), dialog.message.text()
    QTest.mouseClick(dialog.start_button, LEFT)
    return dialog


def test_a_capture_is_watched_and_stopped(empty_window, targets, board, qtbot, tmp_path):
    path = tmp_path / "run.kev"
    dialog = begin(empty_window, qtbot, path)
    session = empty_window.session
    qtbot.waitUntil(lambda: session.follow is not None and session.opened is not None, timeout=30_000)
    qtbot.waitUntil(lambda: " MB/s" in dialog.message.text(), timeout=20_000)
    assert "none lost" in dialog.message.text()
    assert board.loggers()
    QTest.mouseClick(dialog.stop_button, LEFT)
    qtbot.waitUntil(lambda: not empty_window.capture_job.is_busy, timeout=30_000)
    qtbot.waitUntil(lambda: session.follow is None, timeout=10_000)
    assert session.opened.trace.path == path
    assert session.opened.trace.header.get("CAPTURE_HOST") == "127.0.0.1"
    assert board.is_clean_within(10)
    assert open_trace(path).problems.counts().keys() <= {"unfinished-events", "buffer-length"}


def test_what_is_wrong_is_said_and_nothing_starts(empty_window, targets, board, qtbot, tmp_path):
    board.says(processes="     pid name\n       1 procnto-smp-instr\n      77 tracelogger")
    dialog = begin(empty_window, qtbot, tmp_path / "run.kev")
    qtbot.waitUntil(lambda: "already" in dialog.message.text(), timeout=30_000)
    assert dialog.message.text().startswith("Tracelogger runs on rig already (pid 77)")
    assert dialog.start_button.isVisible()
    assert not (tmp_path / "run.kev").exists()
    assert not board.loggers()


def test_an_address_that_is_none_is_said_at_once(empty_window, qtbot, tmp_path):
    dialog = dialog_of(empty_window, qtbot)
    QTest.keyClicks(dialog.target, "ssh://-oProxyCommand=x")
    dialog.path.setText(str(tmp_path / "run.kev"))
    QTest.mouseClick(dialog.start_button, LEFT)
    assert "is not the address of a target" in dialog.message.text()
    assert not empty_window.capture_job.is_busy


@pytest.mark.thorough
def test_a_simulated_target_is_captured_from_as_a_board_is(empty_window, resident, qtbot, tmp_path):
    path = tmp_path / "sim.kev"
    dialog = dialog_of(empty_window, qtbot)
    dialog.target.setFocus()
    QTest.keyClicks(dialog.target, "sim://")
    assert dialog.path.text().endswith("target.kev")
    dialog.path.setText(str(path))
    QTest.mouseClick(dialog.start_button, LEFT)
    session = empty_window.session
    qtbot.waitUntil(lambda: session.follow is not None and session.opened is not None, timeout=30_000)
    QTest.mouseClick(dialog.stop_button, LEFT)
    qtbot.waitUntil(lambda: not empty_window.capture_job.is_busy, timeout=30_000)
    assert open_trace(path).header.get("CAPTURE_HOST") == "target"
    assert resident.waits_until(lambda: "tracelogger" not in resident.processes())


@pytest.mark.thorough
def test_a_capture_that_is_stopped_before_anything_came_says_so_alone(
    empty_window, resident, qtbot, tmp_path, monkeypatch
):
    """The script is stopped as it starts: nobody has to start a logger by hand then."""
    dialog = dialog_of(empty_window, qtbot)
    dialog.target.lineEdit().setText("sim://")
    dialog.path.setText(str(tmp_path / "run.kev"))
    receive = _ScriptRun.receive

    def stopped(run, *callbacks):
        empty_window.capture_job.stop()
        receive(run, *callbacks)

    monkeypatch.setattr(_ScriptRun, "receive", stopped)
    QTest.mouseClick(dialog.start_button, LEFT)
    qtbot.waitUntil(lambda: not empty_window.capture_job.is_busy, timeout=20_000)
    says = "Stopped before tracelogger on target had sent anything; there is no file."
    assert dialog.message.text() == says
    assert not (tmp_path / "run.kev").exists()


def test_a_recorder_that_runs_for_days_shows_its_newest_messages(tmp_path, monkeypatch):
    def recorded(_request, _ends, tell, say, _grow):
        tell("1 MB")
        for number in range(6):
            say(f"run-{number}.kev: 3 buffers")
        raise GivenUpError

    monkeypatch.setattr(job, "capture", recorded)
    asked = TargetCaptureRequest(TargetRequest(Profile("sim://"), tmp_path / "run.kev"))
    told = []
    with pytest.raises(GivenUpError):
        job._capture_on_target(asked, Event(), told.append, print, lambda: False, print)
    newest = [f"run-{number}.kev: 3 buffers." for number in (5, 4, 3, 2)]
    assert told[-1].splitlines() == ["1 MB", *newest, "and 2 messages before"]


def test_a_window_that_closes_keeps_what_came(empty_window, targets, board, qtbot, tmp_path):
    begin(empty_window, qtbot, tmp_path / "run.kev")
    session = wait_for_events(empty_window, qtbot)
    shown_events = len(session.opened.trace.events)
    empty_window.close()
    assert board.is_clean_within(5)
    assert len(open_trace(tmp_path / "run.kev").events) >= shown_events


def wait_for_events(window, qtbot):
    """Wait until a capture that is watched shows its first events; return the session."""
    session = window.session
    qtbot.waitUntil(lambda: session.opened is not None and len(session.opened.trace.events) > 0, timeout=30_000)
    return session


def wait_until_shown(window, qtbot):
    """Wait until the capture has ended and its file is open."""
    qtbot.waitUntil(lambda: not window.capture_job.is_busy, timeout=30_000)
    qtbot.waitUntil(lambda: window.session.stage is Stage.READY and window.session.follow is None, timeout=30_000)
    return window.session.opened.trace


@pytest.mark.thorough
def test_a_ring_is_opened_at_its_end(empty_window, targets, board, qtbot, tmp_path):
    dialog = begin(empty_window, qtbot, tmp_path / "run.kev", "By Stop, newest events only (ring)")
    qtbot.waitUntil(lambda: "MB/s" in dialog.message.text(), timeout=30_000)
    assert empty_window.session.stage is Stage.EMPTY
    QTest.mouseClick(dialog.stop_button, LEFT)
    trace = wait_until_shown(empty_window, qtbot)
    assert trace.header.get("CAPTURE_COMMAND") == "tracelogger -r -k 32 -b 64 -f -"
    assert len(trace.events) > 1000


def test_a_line_that_breaks_is_said_beside_what_came(empty_window, targets, board, qtbot, tmp_path):
    begin(empty_window, qtbot, tmp_path / "run.kev")
    wait_for_events(empty_window, qtbot)
    board.cut()
    assert len(wait_until_shown(empty_window, qtbot).events) > 0
    outcome = empty_window.findChild(OutcomeDialog)
    fault, note = [label.text() for label in outcome.findChildren(QLabel, "finding")]
    assert fault.startswith("the line to rig broke")
    assert note == "rig was left clean: no logger of this capture runs there"
    outcome.close()


def test_closing_the_dialog_stops_in_order(empty_window, targets, board, qtbot, tmp_path):
    dialog = begin(empty_window, qtbot, tmp_path / "run.kev")
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY, timeout=30_000)
    dialog.close()
    assert dialog.message.text().startswith("Stopping")
    assert wait_until_shown(empty_window, qtbot).path == tmp_path / "run.kev"
    assert board.is_clean_within(5)


@pytest.mark.thorough
def test_a_trace_that_is_open_keeps_its_window(application, window, targets, qtbot, tmp_path):
    trace_before = window.session.opened
    dialog = begin(window, qtbot, tmp_path / "run.kev")
    qtbot.waitUntil(lambda: len(application.windows) == 2, timeout=30_000)
    other = application.windows[-1]
    qtbot.waitUntil(lambda: other.session.stage is Stage.READY, timeout=30_000)
    assert other.session.follow is not None
    QTest.mouseClick(dialog.stop_button, LEFT)
    qtbot.waitUntil(lambda: other.session.follow is None, timeout=30_000)
    assert other.session.path == tmp_path / "run.kev"
    assert window.session.opened is trace_before


def test_it_begins_with_what_was_captured_last(empty_window, qtbot, tmp_path, monkeypatch):
    file = tmp_path / "targets.toml"
    file.write_text('[rig]\naddress = "ssh://root@192.168.1.20"\nwide = true\n')
    monkeypatch.setattr(target_dialog, "targets_file", lambda: file)
    dialog = dialog_of(empty_window, qtbot)
    dialog.target.setCurrentText("ssh://127.0.0.1:1")
    dialog.path.setText(str(tmp_path / "run.kev"))
    dialog.ending.setCurrentText("After a time")
    dialog.seconds.setValue(2.5)
    QTest.mouseClick(dialog.start_button, LEFT)
    says = "no ssh server on this port" if shutil.which("ssh") else "no ssh program here"
    qtbot.waitUntil(lambda: says in dialog.message.text(), timeout=30_000)
    assert not (tmp_path / "run.kev").exists()
    dialog.close()
    qtbot.waitUntil(lambda: empty_window.findChild(TargetDialog) is None)
    dialog = dialog_of(empty_window, qtbot)
    offered = [dialog.target.itemText(row) for row in range(dialog.target.count())]
    assert offered == ["rig (ssh://root@192.168.1.20)", "ssh://127.0.0.1:1"]
    assert (dialog.target_text, dialog.seconds.text()) == ("ssh://127.0.0.1:1", "2.5 s")
    assert not dialog.is_wide.isChecked()
    dialog.target.setCurrentText(offered[0])
    assert dialog.target_text == "rig"
    assert dialog.is_wide.isChecked()  # as the file of targets says
    dialog.close()


@pytest.mark.thorough
@pytest.mark.parametrize("stored", ["[]", "{", '{"ending": 9}', '{"targets": 3}'])
def test_what_it_remembers_may_be_anything(empty_window, qtbot, stored):
    empty_window.settings.set("capture/last_target", stored)
    dialog = dialog_of(empty_window, qtbot)
    assert (dialog.target_text, dialog.ending.currentText()) == ("", "By Stop")
    assert not dialog.start_button.isEnabled()
    dialog.close()


@pytest.fixture
def silent_board(targets, board):
    """Let the board take a question and never answer it."""
    board.add_program("uname", ": > $BOARD/asked; exec sleep 60")
    return board


def test_stop_while_a_silent_board_is_asked_answers_at_once(empty_window, silent_board, qtbot, tmp_path):
    dialog = begin(empty_window, qtbot, tmp_path / "run.kev")
    qtbot.waitUntil((silent_board.folder / "asked").exists, timeout=20_000)
    QTest.mouseClick(dialog.stop_button, LEFT)
    qtbot.waitUntil(dialog.start_button.isVisible, timeout=20_000)
    assert dialog.message.text() == "Stopped before the capture began; nothing was started."
    assert not (silent_board.folder / "arguments").exists()


@pytest.mark.parametrize("closed", ["dialog", "window"])
def test_closing_while_a_silent_board_is_asked_closes_at_once(closed, empty_window, silent_board, qtbot, tmp_path):
    dialog = begin(empty_window, qtbot, tmp_path / "run.kev")
    qtbot.waitUntil((silent_board.folder / "asked").exists, timeout=20_000)
    began_s = time.monotonic()
    if closed == "dialog":
        dialog.close()
        qtbot.waitUntil(lambda: empty_window.findChild(TargetDialog) is None, timeout=20_000)
    else:
        empty_window.close()
    assert time.monotonic() - began_s < 20  # the board says nothing for a minute
    assert silent_board.is_clean_within(5)


def rules_with_python(folder):
    (folder / "mine.py").write_text("def only_pulses(event):\n    return event.name == 'REC_PULSE'\n")
    rules = folder / "mine.satrules"
    rules.write_text("DELALLCLASSES\nADDCLASS COMM\nADDCLASSEVHANDLER COMM CALL mine.py:only_pulses\n")
    return rules


@pytest.mark.thorough
def test_python_of_rules_runs_after_a_yes(empty_window, targets, board, qtbot, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(rules_tab, "allow_code", lambda _parent, path: asked.append(path) or True)
    rules = rules_with_python(tmp_path)
    begin(empty_window, qtbot, tmp_path / "run.kev", "After a time", str(rules))
    trace = wait_until_shown(empty_window, qtbot)
    assert asked == [tmp_path / "mine.py"]
    codes = set(trace.events.code.tolist()) - {wire.CONTROL_BUFFER, wire.CONTROL_TIME}
    assert {names(trace.release)[code].symbol for code in codes} == {"_NTO_TRACE_COMM_RPULSE"}


def test_python_of_rules_does_not_run_after_a_no(empty_window, targets, board, qtbot, tmp_path, monkeypatch):
    monkeypatch.setattr(rules_tab, "allow_code", lambda _parent, _path: False)
    dialog = begin(empty_window, qtbot, tmp_path / "run.kev", "After a time", str(rules_with_python(tmp_path)))
    assert dialog.message.text() == "Mine.py is code and was not allowed to run."
    assert not empty_window.capture_job.is_busy


@pytest.mark.thorough
def test_buffers_are_those_of_the_file_of_targets_until_they_are_changed(empty_window, targets, board, qtbot, tmp_path):
    targets.write_text(targets.read_text() + "kernel_buffers = 20\nown_buffers = 40\n")
    dialog = begin(empty_window, qtbot, tmp_path / "run.kev", "After a time")
    assert (dialog.kernel_buffers.text(), dialog.own_buffers.text()) == ("20 in the kernel", "40 in the logger")
    assert wait_until_shown(empty_window, qtbot).header.get("CAPTURE_COMMAND").endswith("-k 20 -b 40 -f -")
    dialog = dialog_of(empty_window, qtbot)
    dialog.kernel_buffers.setFocus()
    dialog.kernel_buffers.selectAll()
    QTest.keyClicks(dialog.kernel_buffers, "77")
    dialog.path.setText(str(tmp_path / "again.kev"))
    QTest.mouseClick(dialog.start_button, LEFT)
    qtbot.waitUntil(lambda: (board.folder / "arguments").read_text().endswith("-k 77 -b 40 -f -\n"), timeout=20_000)
    dialog.close()
    wait_until_shown(empty_window, qtbot)


@pytest.mark.thorough
def test_a_recorder_writes_a_file_for_each_incident(empty_window, targets, board, qtbot, tmp_path):
    rules = tmp_path / "late.satrules"
    rules.write_text('ADDALLCLASSES\nWHEN event == REC_PULSE THEN MARK "pulse"; KEEP 1 buffers; STOP\n')
    dialog = dialog_of(empty_window, qtbot)
    assert not dialog.files.isVisible()
    dialog.target.setCurrentText("rig")
    dialog.ending.setCurrentText("By Stop, a file for each incident (ring)")
    assert dialog.files.isVisible()
    assert dialog.message.text().startswith("Choose a file of rules that says what an incident is")
    assert not dialog.start_button.isEnabled()
    dialog.rules.setText(str(rules))
    dialog.files.setValue(2)
    dialog.path.setText(str(tmp_path / "incident.kev"))
    QTest.mouseClick(dialog.start_button, LEFT)
    qtbot.waitUntil((tmp_path / "incident-0003.kev").exists, timeout=30_000)
    assert not (tmp_path / "incident-0001.kev").exists()
    qtbot.waitUntil(lambda: " hits, " in dialog.message.text(), timeout=20_000)
    QTest.mouseClick(dialog.stop_button, LEFT)
    trace = wait_until_shown(empty_window, qtbot)
    assert trace.path == max(tmp_path.glob("incident-*.kev"))
    assert trace.header.get("CAPTURE_MARK_0").endswith(" pulse")
    outcome = empty_window.findChild(OutcomeDialog)
    found = [label.text() for label in outcome.findChildren(QLabel, "finding")]
    assert "2 files of incidents; this is the newest" in found
    outcome.close()


def test_a_limit_of_the_disk_that_is_none_is_said(empty_window, targets, qtbot, tmp_path):
    rules = tmp_path / "late.satrules"
    rules.write_text("WHEN event == REC_PULSE THEN STOP\n")
    dialog = dialog_of(empty_window, qtbot)
    dialog.disk.setText("much")
    begin(empty_window, qtbot, tmp_path / "run.kev", "By Stop, a file for each incident (ring)", str(rules))
    assert dialog.message.text() == "At most much: must be a size, for example 500M or 2GB."


@pytest.mark.thorough
def test_losses_of_8_0_are_shown_while_it_runs(empty_window, targets, board, qtbot, tmp_path):
    """Two CPUs with buffers of their own, and a disk that is too slow for them."""
    board.runs("8.0.0", "8.0", "--cpus 2 --disk 400 -k 4 -b 2")
    board.says(processes="     pid name\n       1 procnto-smp\n")
    targets.write_text(targets.read_text() + "wide = true\n")
    dialog = begin(empty_window, qtbot, tmp_path / "run.kev")
    qtbot.waitUntil(lambda: " LOST: " in dialog.message.text(), timeout=30_000)
    running = dialog.message.text()
    said = re.fullmatch(
        r".* MB/s, \d+ buffers, \d+ LOST: wide is too much for this line: (\S+) of (\S+) MB/s.*", running
    )
    assert said
    assert float(said[1]) > float(said[2]) > 0
    session = wait_for_events(empty_window, qtbot)
    assert session.follow is not None
    QTest.mouseClick(dialog.stop_button, LEFT)
    trace = wait_until_shown(empty_window, qtbot)
    assert trace.release is Release.QNX_8
    of_losses = {"lost-buffers", "lost-events", "orphan-slots", "unfinished-events", "buffer-length"}
    assert trace.problems.counts().keys() <= of_losses
    outcome = empty_window.findChild(OutcomeDialog)
    fault = outcome.findChild(QLabel, "finding").text()
    assert fault.startswith("wide is too much for this line: ")
    assert sum(trace.buffers.lost_before) == int(re.search(r"(\d+) buffers? lost", fault)[1])
    outcome.close()
