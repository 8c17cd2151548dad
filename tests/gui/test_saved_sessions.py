"""Sessions are saved under a name, and used on another trace whose names fit."""

from __future__ import annotations

import json

import pytest
from PySide6.QtWidgets import QDialogButtonBox

from satview.base.errors import UsageError
from satview.gui import dialogs
from satview.gui.settings_dialog import SaveSessionDialog
from satview.gui.widgets import QuickPick
from satview.session.state_files import SUFFIX, StateFiles
from satview.session.trace_link import TraceLink
from tests.gui.conftest import settle
from tests.gui.hands import CONTROL, LEFT, K
from tests.helpers.kev import TraceBuilder


@pytest.fixture
def state_files(tmp_path):
    return StateFiles(None, tmp_path / "sessions")


def target(tmp_path, name, processes):
    """Write a trace with processes of one thread each, named by pid."""
    builder = TraceBuilder(cpus=1).time_event(0)
    for number, (pid, process) in enumerate(processes.items()):
        builder.process_name(10 + number, pid, f"sbin/{process}")
        builder.state("RUNNING", 1_000 * (1 + number), pid, 1)
    return builder.write(tmp_path / name)


def titles(window):
    opened = window.session.opened
    return [opened.timeline.infos[row.unit].title for row in opened.lanes.rows]


def lane(window, title):
    return next(info.index for info in window.session.opened.timeline.infos if info.title == title)


@pytest.fixture
def before(empty_window, load, tmp_path):
    """A window on the first target."""
    path = target(tmp_path, "a.kev", {7: "devb-eide", 8: "io-net", 9: "hmi"})
    window = load(empty_window, path)
    window.workspace.area.view.setFocus()
    return window


def save(window, qtbot, name, patterns):
    qtbot.keyClick(window.workspace.area.view, K.Key_S, CONTROL)
    dialog = window.findChild(SaveSessionDialog)
    qtbot.keyClicks(dialog.name, name)
    for row in range(dialog.table.rowCount()):
        here = dialog.table.item(row, 0).text()
        dialog.table.item(row, 1).setText(patterns.get(here, here))
    qtbot.mouseClick(dialog.buttons.button(QDialogButtonBox.StandardButton.Save), LEFT)
    return dialog


def pick(window, qtbot, words):
    """Press Ctrl+U and choose the session that fits some words."""
    qtbot.keyClick(window.workspace.area.view, K.Key_U, CONTROL)
    offered = window.findChild(QuickPick)
    qtbot.keyClicks(offered.line, words)
    qtbot.keyClick(offered.line, K.Key_Return)


@pytest.mark.thorough
def test_a_session_arranges_another_trace_by_patterns_and_undo_takes_it_back(
    before, application, load, qtbot, tmp_path
):
    opened = before.session.opened
    opened.lanes.pin(lane(before, "hmi"))
    opened.lanes.hide(lane(before, "devb-eide"))
    opened.filters.show_threads([opened.timeline.infos[lane(before, "io-net") + 1].thread], False)
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    save(before, qtbot, "drivers", {"devb-eide": "devb-*", "io-net": "io-*"})
    stored = json.loads((tmp_path / "sessions" / f"drivers{SUFFIX}").read_text())
    assert "trace" not in stored
    assert "view" not in stored

    other = application.new_window()
    load(other, target(tmp_path, "b.kev", {11: "devb-ahci", 12: "hmi", 13: "io-pkt", 14: "shell", 15: "devb-nvme"}))
    other.workspace.area.view.setFocus()
    assert titles(other)[1:] == ["devb-ahci", "hmi", "io-pkt", "shell", "devb-nvme"]
    pick(other, qtbot, "driv")
    settle(qtbot, other)
    assert titles(other) == ["hmi", "CPU 0", "thread 1", "shell"]
    edits = other.session.opened.edits
    edits.undo()
    assert titles(other)[1:] == ["devb-ahci", "hmi", "io-pkt", "shell", "devb-nvme"]
    assert (other.session.opened.filters.is_active, edits.undo_title, edits.redo_title) == (False, "", "session")
    edits.redo()
    settle(qtbot, other)
    assert titles(other) == ["hmi", "CPU 0", "thread 1", "shell"]


@pytest.mark.thorough
def test_the_command_line_opens_a_trace_with_a_session(before, application, qtbot, tmp_path):
    before.session.opened.lanes.hide(lane(before, "hmi"))
    save(before, qtbot, "calm", {})
    application.open_links([TraceLink(tmp_path / "a.kev", session="calm")])
    other = application.windows[1]
    qtbot.waitUntil(lambda: other.workspace is not None and "hmi" not in titles(other))


@pytest.mark.thorough
def test_what_cannot_be_saved_is_said_in_the_dialog(before, qtbot, tmp_path):
    before.session.opened.lanes.hide(lane(before, "hmi"))
    dialog = save(before, qtbot, "", {})
    assert dialog.error.text() == "Write a name for the session."
    qtbot.keyClicks(dialog.name, "x" * 90)
    dialog.buttons.accepted.emit()
    assert "is not a name for a session" in dialog.error.text()
    dialog.name.setText("good")
    dialog.table.item(0, 1).setText("[z-a]*")
    dialog.buttons.accepted.emit()
    assert "is not a pattern of names" in dialog.error.text()
    assert not (tmp_path / "sessions").exists()
    dialog.close()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["a/b", "a\\b", "mine.satsession", "{folder}/precious.txt"])
def test_a_session_is_saved_under_a_name_and_never_into_the_file_of_a_path(before, qtbot, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "precious.txt").write_text("mine")
    files = sorted(tmp_path.iterdir())
    name = name.format(folder=tmp_path)
    dialog = save(before, qtbot, name, {})
    assert dialog.error.text() == f"{name[:40]!r} is not a name for a session; use letters, digits and blanks."
    assert sorted(tmp_path.iterdir()) == files
    assert (tmp_path / "precious.txt").read_text() == "mine"
    with pytest.raises(UsageError, match="is not a name for a session"):
        before.shared.files.remove(name)
    assert sorted(tmp_path.iterdir()) == files
    dialog.close()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "There is no session"), ("{", "is not a session: line 1"),
     ('{"satview_session": 1, "lanes": 3}', "lanes: expected an object or nothing, got a whole number")],
)  # fmt: skip
def test_a_session_that_is_none_is_said_and_stays(before, qtbot, tmp_path, monkeypatch, content, said):
    path = tmp_path / f"mine{SUFFIX}"
    if content is not None:
        path.write_text(content)
    monkeypatch.setattr(dialogs, "ask_file", lambda *_: path)
    shown = titles(before)
    pick(before, qtbot, "from a file")
    assert said in before.statusBar().currentMessage()
    assert titles(before) == shown
    assert content is None or path.read_text() == content


def test_a_session_is_removed(before, qtbot, tmp_path):
    save(before, qtbot, "old", {})
    assert before.shared.files.names() == ("old",)
    before.registry["file.remove_session"].run()
    qtbot.keyClick(before.findChild(QuickPick).line, K.Key_Return)
    assert before.shared.files.names() == ()
