"""Capture from a target, by the window: a real ssh and sshd, a board whose tracelogger is the simulated one."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from satview.formats.registry import open_trace
from satview.gui.capture import target_dialog
from satview.gui.capture.target_dialog import TargetDialog
from tests.target.conftest import board, quick_clock, resident, targets_folder  # noqa: F401  -- fixtures

LEFT = Qt.MouseButton.LeftButton
pytestmark = pytest.mark.usefixtures("quick_clock")


@pytest.fixture
def targets(board, tmp_path, monkeypatch):  # noqa: F811
    """Let the board be the target `rig` of the user's file."""
    file = tmp_path / "targets.toml"
    options = ", ".join(f'"{word}"' for word in board.profile.ssh_options)
    file.write_text(f'[rig]\naddress = "{board.profile.address}"\nssh_options = [{options}]\n')
    monkeypatch.setattr(target_dialog, "targets_file", lambda: file)
    return file


def dialog_of(window, qtbot):
    """Open the dialog by its command."""
    window.actions_by_id.by_id["file.capture_target"].trigger()
    qtbot.waitUntil(lambda: window.findChild(TargetDialog) is not None, timeout=10_000)
    return window.findChild(TargetDialog)


def begin(window, qtbot, path):
    """Type the target and the file, and press Capture."""
    dialog = dialog_of(window, qtbot)
    dialog.target.setFocus()
    dialog.target.lineEdit().selectAll()
    QTest.keyClicks(dialog.target, "rig")
    dialog.path.setText(str(path))
    assert dialog.start_button.isEnabled(), dialog.message.text()
    QTest.mouseClick(dialog.start_button, LEFT)
    return dialog


def test_a_capture_is_watched_and_stopped(empty_window, targets, board, qtbot, tmp_path):  # noqa: F811
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


def test_what_is_wrong_is_said_and_nothing_starts(empty_window, targets, board, qtbot, tmp_path):  # noqa: F811
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
    assert "is no address of a target" in dialog.message.text()
    assert not empty_window.capture_job.is_busy


def test_a_window_that_closes_leaves_the_board_clean(empty_window, targets, board, qtbot, tmp_path):  # noqa: F811
    begin(empty_window, qtbot, tmp_path / "run.kev")
    qtbot.waitUntil(lambda: bool(board.loggers()), timeout=30_000)
    empty_window.close()
    assert board.is_clean_within(20)


def test_a_simulated_target_is_captured_from_as_a_board_is(empty_window, resident, qtbot, tmp_path):  # noqa: F811
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
