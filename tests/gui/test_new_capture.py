"""File > New capture: the dialog, its rules, a capture from start to trace, what it found, and how it is stopped."""

from __future__ import annotations

import errno
import io
import os
import shutil
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QTextCharFormat
from PySide6.QtWidgets import QLabel, QPushButton

import satview
from satview.__main__ import main
from satview.base.errors import WriteError
from satview.capture.workloads.registry import names
from satview.gui import dialogs
from satview.gui.capture import job
from satview.gui.capture.dialog import NewCaptureDialog
from satview.gui.capture.job import OutcomeDialog
from satview.gui.filters import rules_tab
from satview.session.session import Stage
from tests.gui.hands import CONTROL_SHIFT, LEFT, K


@pytest.fixture
def dialog(empty_window, tmp_path, qtbot):
    empty_window.activateWindow()
    qtbot.waitUntil(empty_window.isActiveWindow)
    qtbot.keyClick(empty_window, K.Key_N, CONTROL_SHIFT)
    found = empty_window.findChild(NewCaptureDialog)
    qtbot.waitExposed(found)
    found.path.setText(str(tmp_path / "new.kev"))
    return found


def choose(dialog, name, duration_s=0.0):
    dialog.workloads.choose(name)
    dialog.duration.setValue(duration_s)


def capture(dialog, window, qtbot):
    qtbot.mouseClick(dialog.start_button, LEFT)
    qtbot.waitUntil(lambda: window.session.stage is Stage.READY, timeout=15_000)
    return window.session.opened.trace


def underlined(box):
    """Return the words that are marked as faulty."""
    wave = QTextCharFormat.UnderlineStyle.WaveUnderline
    marked = box.edit.extraSelections()
    return [each.cursor.selectedText() for each in marked if each.format.underlineStyle() == wave]


def test_a_comma_in_the_duration_is_a_decimal_point(dialog, qtbot):
    choose(dialog, "automotive")
    dialog.duration.setFocus()
    for typed in ("2,5", "2.5"):
        dialog.duration.selectAll()
        qtbot.keyClicks(dialog.duration, typed)
        assert (dialog.duration.text(), dialog.duration.value()) == ("2.5 s", 2.5)


@pytest.mark.thorough
def test_all_workloads_are_offered_with_their_lesson_in_both_themes(dialog, application):
    items = [dialog.workloads.item(row) for row in range(dialog.workloads.count())]
    offered = [(item.text(), item.toolTip()) for item in items]
    assert offered == names()
    assert len(offered) >= 12
    choose(dialog, "automotive")
    assert dialog.cpus.text() == "4, the workload's own"
    assert dialog.duration.text() == "2 s, the workload's own"
    for theme in ("light", "dark"):
        application.settings.set("window/theme", theme)
        image = dialog.grab().toImage()
        corner, list_position = image.pixelColor(3, 3), dialog.workloads.geometry().center()
        assert (corner.lightness() < 128) == (theme == "dark")
        assert image.pixelColor(list_position).alpha() == 255


def test_wide_events_of_one_workload_are_not_those_of_the_next(dialog):
    shown = []
    for name in ("small-system", "deadlock", "inversion", "small-system"):
        choose(dialog, name)
        shown.append(dialog.form.currentText()[:4])
    assert shown == ["Fast", "Wide", "Wide", "Fast"]


def test_tab_goes_through_the_dialog_as_it_is_read(dialog, qtbot):
    names = []
    while (focus := dialog.focusWidget()) is not dialog.workloads or not names:
        names.append(focus.accessibleName() or focus.text())
        qtbot.keyClick(focus, K.Key_Tab)
    assert ", ".join(names) == (
        "Workload, Release, CPUs, Duration, Seed, Events, Buffers, Probe: no logger on the target, "
        "In real time, and watch it live, Open\N{HORIZONTAL ELLIPSIS}, Rules, Save as, Browse\N{HORIZONTAL ELLIPSIS}, "
        "Cancel, Capture"
    )


@pytest.mark.thorough
def test_capture_opens_its_trace(dialog, empty_window, qtbot, tmp_path):
    choose(dialog, "polite", 0.02)
    dialog.cpus.setValue(2)
    dialog.seed.setValue(7)
    dialog.release.setCurrentText("QNX 8.0")
    dialog.form.setCurrentIndex(1)
    trace = capture(dialog, empty_window, qtbot)
    assert trace.path == tmp_path / "new.kev"
    assert trace.release.value == "8.0"
    assert trace.cpu_count == 2
    assert 15_000_000 < trace.duration_ns < 40_000_000
    assert empty_window.statusBar().currentMessage().startswith("Captured: ")
    assert empty_window.findChild(OutcomeDialog) is None
    assert list(empty_window.recent.files()) == [tmp_path / "new.kev"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.kev"]


@pytest.mark.thorough
def test_same_seed_gives_the_same_file_as_the_command_line(dialog, empty_window, qtbot, tmp_path):
    choose(dialog, "two-threads")
    dialog.seed.setValue(5)
    capture(dialog, empty_window, qtbot)
    folder = tmp_path / "other"
    folder.mkdir()
    arguments = ["-c", "--workload", "two-threads", "--seed", "5", "-f", str(folder / "new.kev")]
    assert main(["tracelogger", *arguments]) == 0
    mine, theirs = (tmp_path / "new.kev").read_bytes(), (folder / "new.kev").read_bytes()
    # The command line keeps its arguments in the header; all else is the same.
    end = b"TRACE_HEADER_END::"
    assert mine[mine.index(end) :] == theirs[theirs.index(end) :]


@pytest.mark.thorough
def test_a_probe_leaves_no_logger_in_the_trace(dialog, empty_window, qtbot, tmp_path):
    choose(dialog, "inversion", 0.02)
    dialog.probe.setChecked(True)
    dialog.live.setChecked(True)
    assert "A probe takes full buffers only" in dialog.message.text()
    dialog.live.setChecked(False)
    trace = capture(dialog, empty_window, qtbot)
    assert not [name for name in trace.processes.names if "tracelogger" in name]


@pytest.mark.thorough
def test_deadlock_is_reported_beside_the_trace(dialog, empty_window, qtbot):
    choose(dialog, "deadlock")
    capture(dialog, empty_window, qtbot)
    outcome = empty_window.findChild(OutcomeDialog)
    assert outcome.isVisible()
    texts = [label.text() for label in outcome.findChildren(QLabel)]
    assert texts[0] == "1 finding"
    assert "Deadlock" in texts
    finding = next(label.text() for label in outcome.findChildren(QLabel, "finding"))
    assert "waits for mutex second" in finding
    assert "waits for mutex first" in finding


@pytest.mark.thorough
def test_faults_of_rules_are_marked_at_the_word_while_typing(dialog, qtbot):
    edit = dialog.rules.edit
    edit.setFocus()
    for line in ("DELALLCLASSES", "ADDCLASS THRED", "ADDEVENT KERCALL MSG_SENDV"):
        qtbot.keyClicks(edit, line)
        qtbot.keyClick(edit, K.Key_Return)
    qtbot.waitUntil(lambda: underlined(dialog.rules) == ["THRED"])
    assert "Line 2" in dialog.rules.message.text()
    assert "THREAD" in dialog.rules.message.text()
    assert not dialog.start_button.isEnabled()
    assert dialog.message.text() == "The rules have a fault."
    edit.setPlainText("DELALLCLASSES\nADDCLASS THREAD")
    qtbot.waitUntil(lambda: underlined(dialog.rules) == [])
    assert dialog.rules.message.text() == "2 rules"
    assert dialog.start_button.isEnabled()


def test_names_of_processes_are_those_of_the_workload(dialog):
    choose(dialog, "client-server")
    assert dialog.rules.message.text().startswith("Empty: everything is logged. Rules may name procnto")
    assert "slow_server" in dialog.rules.message.text()
    dialog.rules.edit.setPlainText("SETCLASSPID KERCALL nobody")
    dialog.rules.check()
    assert underlined(dialog.rules) == ["nobody"]
    assert dialog.rules.message.text() == "Line 1: there is no process 'nobody'"
    dialog.rules.edit.setPlainText("SETCLASSPID KERCALL slow_server")
    dialog.rules.check()
    known = underlined(dialog.rules) == []
    choose(dialog, "deadlock")
    assert known
    assert underlined(dialog.rules) == ["slow_server"]


@pytest.mark.thorough
def test_rules_that_no_kernel_can_carry_out_are_faults_here(dialog):
    dialog.rules.edit.setPlainText("ADDALLCLASSES\nADDCLASSEVHANDLER KERCALLENTER WHERE arg.sparts > 1")
    dialog.rules.check()
    assert underlined(dialog.rules) == ["arg.sparts"]
    assert "wide form only" in dialog.rules.message.text()
    assert not dialog.start_button.isEnabled()
    dialog.form.setCurrentIndex(1)
    assert underlined(dialog.rules) == [], "all events are wide"
    dialog.rules.edit.setPlainText("WHERE pid in (2, 3)")
    dialog.rules.check()
    assert underlined(dialog.rules) == []
    assert "take no handler" in dialog.rules.message.text()
    assert dialog.start_button.isEnabled()


@pytest.mark.thorough
def test_rules_decide_what_is_logged(dialog, empty_window, qtbot):
    choose(dialog, "two-threads")
    dialog.rules.edit.setPlainText("DELALLCLASSES\nADDCLASS THREAD")
    trace = capture(dialog, empty_window, qtbot)
    found = {trace.catalogue.spec(int(code)).class_name for code in trace.code_counts.nonzero()[0]}
    assert "THREAD" in found
    assert found <= {"THREAD", "CONTROL", "PROCESS"}


def test_save_as_is_checked(dialog, tmp_path, monkeypatch):
    dialog.path.setText("")
    assert not dialog.start_button.isEnabled()
    dialog.path.setText(str(tmp_path / "nowhere" / "x.kev"))
    assert "There is no folder" in dialog.message.text()
    dialog.path.setText("/dev/null")
    assert dialog.message.text() == "null is a device or a pipe, not a file."
    assert not dialog.start_button.isEnabled()
    dialog.path.setText(str(tmp_path / "ct2.txt"))
    assert dialog.message.text() == "ct2.txt: the file extension selects the format; use .kev."
    assert not dialog.start_button.isEnabled()
    (tmp_path / "old.kev").write_bytes(b"old")
    dialog.path.setText(str(tmp_path / "old.kev"))
    assert dialog.start_button.isEnabled()
    assert dialog.message.text() == "old.kev exists and will be replaced."
    monkeypatch.setattr(dialogs, "ask_save", lambda *_arguments: tmp_path / "named")
    dialog._browse_path()
    assert dialog.path.text() == str(tmp_path / "named.kev")


@pytest.mark.thorough
def test_cancel_leaves_the_old_file_and_goes_back_to_the_editors(dialog, empty_window, qtbot, tmp_path):
    (tmp_path / "new.kev").write_bytes(b"old")
    choose(dialog, "small-system", 3600)
    qtbot.mouseClick(dialog.start_button, LEFT)
    qtbot.waitUntil(lambda: dialog.bar.isVisible() and dialog.bar.maximum() == 1000)
    qtbot.waitUntil(lambda: "of 3600 s" in dialog.message.text())
    assert dialog.message.text().startswith("Capturing small-system: ")
    assert not dialog.workloads.isEnabled()
    assert empty_window.actions_by_id.by_id["capture.stop"].isEnabled()
    qtbot.mouseClick(dialog.cancel_button, LEFT)
    assert dialog.isVisible()
    assert dialog.workloads.isEnabled()
    assert "nothing was saved" in dialog.message.text()
    qtbot.waitUntil(lambda: not list(tmp_path.glob("*.satview-tmp")) and not list(tmp_path.glob(".*.satview-tmp")))
    assert (tmp_path / "new.kev").read_bytes() == b"old"
    assert empty_window.session.stage is Stage.EMPTY
    qtbot.mouseClick(dialog.cancel_button, LEFT)
    assert not dialog.isVisible()


@pytest.mark.thorough
def test_stop_opens_what_there_is(dialog, empty_window, qtbot):
    choose(dialog, "small-system", 3600)
    qtbot.mouseClick(dialog.start_button, LEFT)
    qtbot.waitUntil(lambda: dialog.stop_button.isVisible() and dialog.bar.maximum() == 1000)
    qtbot.mouseClick(dialog.stop_button, LEFT)
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY, timeout=15_000)
    assert len(empty_window.session.opened.trace.events) > 100
    assert empty_window.statusBar().currentMessage().startswith("Stopped: ")


def test_what_cannot_be_written_is_said_in_the_dialog(dialog, empty_window, qtbot, tmp_path, monkeypatch):
    reported = []
    monkeypatch.setattr(dialogs, "report", lambda *arguments: reported.append(arguments))

    def refuse(path, **_):
        raise WriteError(path, "Read-only file system")

    monkeypatch.setattr(job, "NewFile", refuse)
    choose(dialog, "polite", 0.01)
    qtbot.mouseClick(dialog.start_button, LEFT)
    qtbot.waitUntil(lambda: dialog.start_button.isVisible() and not empty_window.capture_job.is_busy)
    assert reported == []  # the dialog says it, no other one on top of it
    assert dialog.message.text() == "new.kev: Read-only file system."
    assert dialog.isVisible()
    assert empty_window.session.stage is Stage.EMPTY


class FullDisk(io.RawIOBase):
    """A file on a disk with room for some bytes."""

    def __init__(self, stream, room):
        self.stream, self.room = stream, room

    def writable(self):
        return True

    def write(self, data):
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = min(len(data), self.room)
        self.room -= taken
        self.stream.write(bytes(data[:taken]))
        return taken


@pytest.mark.thorough
@pytest.mark.parametrize("had_a_file", [False, True])
def test_full_disk_keeps_what_was_captured_but_never_replaces_a_file(
    dialog, empty_window, qtbot, tmp_path, monkeypatch, load, had_a_file
):
    path, real = tmp_path / "new.kev", job.run

    def run_on_full_disk(capture, path, report, ends, say, stream):
        return real(capture, path, report, ends, say, io.BufferedWriter(FullDisk(stream, 40_000)))

    if had_a_file:
        path.write_bytes(b"old")
    monkeypatch.setattr(job, "run", run_on_full_disk)
    choose(dialog, "small-system", 3)
    qtbot.mouseClick(dialog.start_button, LEFT)
    qtbot.waitUntil(lambda: dialog.start_button.isVisible() and not empty_window.capture_job.is_busy, timeout=10_000)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["new.kev"]
    if had_a_file:
        assert "new.kev" in dialog.message.text()
        assert "No space left on device" in dialog.message.text()
        assert path.read_bytes() == b"old"
    else:
        assert "No space left on device; what was captured up to there is in the file." in dialog.message.text()
        assert len(load(empty_window, path).session.opened.trace.events) > 1_000


@pytest.mark.thorough
def test_live_capture_is_followed_and_can_be_stopped(dialog, empty_window, qtbot, tmp_path):
    choose(dialog, "periodic", 60)
    dialog.live.setChecked(True)
    dialog.mode.setCurrentIndex(1)
    assert "nothing to watch live" in dialog.message.text()
    dialog.mode.setCurrentIndex(0)
    qtbot.mouseClick(dialog.start_button, LEFT)
    assert not dialog.isVisible()
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY, timeout=10_000)
    assert empty_window.session.follow is not None
    empty_window.registry["capture.stop"].run()
    qtbot.waitUntil(lambda: not empty_window.capture_job.is_busy, timeout=10_000)
    assert empty_window.statusBar().currentMessage().startswith("Stopped: ")
    assert (tmp_path / "new.kev").stat().st_size > 1000
    # Nothing more will come: what is there is shown to its end, and then nobody waits any more.
    qtbot.waitUntil(lambda: empty_window.session.follow is None, timeout=10_000)
    assert empty_window.session.stage is Stage.READY
    assert len(empty_window.session.opened.trace.events) == len(satview.open_trace(tmp_path / "new.kev").events)


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="limits the size of files")
def test_live_capture_onto_a_full_disk_is_reported_and_what_came_is_shown(dialog, empty_window, qtbot, monkeypatch):
    import resource

    reported = []
    monkeypatch.setattr(dialogs, "report", lambda _parent, title, text: reported.append((title, text)))
    choose(dialog, "client-server", 60)
    dialog.live.setChecked(True)
    path = Path(dialog.path.text())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # which would be cut off too, for all tests that follow
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, hard))
    try:
        qtbot.mouseClick(dialog.start_button, LEFT)
        qtbot.waitUntil(lambda: bool(reported), timeout=15_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    says = "writing stopped after 30000 bytes: File too large; what was written can be opened."
    assert reported == [("Capture", f"The capture failed: {path.name}: {says}")]
    assert path.stat().st_size == 30_000
    opened = lambda: empty_window.session.opened  # noqa: E731
    qtbot.waitUntil(lambda: opened() is not None and len(opened().trace.events) > 1000, timeout=10_000)
    assert not empty_window.capture_job.is_busy
    qtbot.waitUntil(lambda: empty_window.session.follow is None, timeout=10_000)
    assert empty_window.session.stage is Stage.READY


@pytest.mark.thorough
def test_it_remembers_what_was_captured_last(dialog, empty_window, qtbot, tmp_path):
    choose(dialog, "deadlock", 0.2)
    dialog.seed.setValue(7)
    dialog.form.setCurrentIndex(1)
    dialog.rules.edit.setPlainText("ADDCLASS THREAD")
    capture(dialog, empty_window, qtbot)
    empty_window.registry["file.new_capture"].run()
    qtbot.waitUntil(lambda: any(each.isVisible() for each in empty_window.findChildren(NewCaptureDialog)))
    again = [each for each in empty_window.findChildren(NewCaptureDialog) if each.isVisible()][-1]
    assert (again.workload.name, again.seed.value(), again.duration.value()) == ("deadlock", 7, 0.2)
    assert (again.form.currentIndex(), again.rules.text) == (1, "ADDCLASS THREAD")
    again.close()


@pytest.mark.thorough
@pytest.mark.parametrize("stored", ["[]", "{", '{"seed": -1, "release": 99, "workload": "gone", "rules": 3}'])
def test_what_it_remembers_may_be_anything(empty_window, stored):
    empty_window.settings.set("capture/last", stored)
    empty_window.registry["file.new_capture"].run()
    dialog = empty_window.findChild(NewCaptureDialog)
    assert (dialog.workload.name, dialog.seed.value(), dialog.rules.text) == ("small-system", 1, "")
    dialog.close()


@pytest.mark.thorough
def test_rules_come_from_a_file(dialog, tmp_path, qtbot, monkeypatch):
    path = tmp_path / "mine.satrules"
    path.write_text("DELALLCLASSES\nADDCLASS THREAD\n")
    monkeypatch.setattr(rules_tab, "ask_rule_file", lambda *_: path)
    qtbot.mouseClick(dialog.rules_button, LEFT)
    assert dialog.rules.text.split() == ["DELALLCLASSES", "ADDCLASS", "THREAD"]
    path.write_bytes(b"\xff\xfe\x00")
    qtbot.mouseClick(dialog.rules_button, LEFT)
    assert "mine.satrules, byte 0x0: this is not text" in dialog.message.text()
    dialog.close()


@pytest.mark.thorough
def test_a_capture_leaves_the_trace_that_is_open(application, window, tmp_path, qtbot):
    before = window.session.opened
    window.registry["file.new_capture"].run()
    dialog = window.findChild(NewCaptureDialog)
    dialog.path.setText(str(tmp_path / "new.kev"))
    choose(dialog, "deadlock", 0.2)
    qtbot.mouseClick(dialog.start_button, LEFT)
    qtbot.waitUntil(lambda: len(application.windows) == 2, timeout=10_000)
    other = application.windows[-1]
    qtbot.waitUntil(lambda: other.session.stage is Stage.READY, timeout=10_000)
    assert other.session.path == tmp_path / "new.kev"
    assert window.session.opened is before


@pytest.mark.thorough
def test_a_capture_never_replaces_a_trace_that_is_open(application, window, tmp_path, qtbot):
    other, path = application.new_window(), tmp_path / "mine.kev"
    shutil.copy(window.session.path, path)
    other.session.open(path)
    qtbot.waitUntil(lambda: other.session.stage is Stage.READY, timeout=10_000)
    before = path.read_bytes()
    window.registry["file.new_capture"].run()
    dialog = window.findChild(NewCaptureDialog)
    dialog.path.setText(str(tmp_path / "." / "mine.kev"))
    assert dialog.message.text() == "mine.kev: this is the file that is being read; give another name."
    assert not dialog.start_button.isEnabled()
    dialog.start()  # Return does the same
    assert path.read_bytes() == before
    other.session.close()
    dialog.path.textChanged.emit(dialog.path.text())
    assert dialog.message.text() == "mine.kev exists and will be replaced."
    assert dialog.start_button.isEnabled()
    dialog.close()


def test_the_empty_page_begins_one(empty_window, qtbot):
    (button,) = [
        each for each in empty_window.welcome.findChildren(QPushButton) if each.text().startswith("New capture")
    ]
    qtbot.mouseClick(button, LEFT)
    dialog = empty_window.findChild(NewCaptureDialog)
    assert dialog.isVisible()
    dialog.close()
