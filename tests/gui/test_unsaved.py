"""Notes and settings that cannot be stored: the window says so, tries again, and warns before it closes."""

from __future__ import annotations

import shutil
import sys

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QMessageBox

from satview.gui import dialogs
from satview.gui.windows import application as application_module
from satview.session.highlight import Marks
from satview.session.session import Stage
from satview.store.mark_file import SUFFIX, Mark
from tests.helpers.scene import scene


@pytest.fixture
def window(empty_window, qtbot, tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    empty_window.session.open(scene(folder))
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY, timeout=20_000)
    return empty_window


def note(window, text="a note"):
    opened = window.workspace.opened
    opened.marks.add(Mark(opened.trace.window.start + 5, opened.trace.window.start + 5, text))


def answers(monkeypatch, *given):
    """Let the user give some answers; return the reasons that are told."""
    left, reasons = list(given), []
    monkeypatch.setattr(dialogs, "ask_unsaved", lambda _parent, reason: reasons.append(reason) or left.pop(0))
    return reasons


def lose_folder(window):
    """Return the folder of the trace after it has vanished, as a memory stick does."""
    folder = window.workspace.opened.trace.path.parent
    folder.rename(folder.with_name("away"))
    return folder


def no_folder(folder):
    return f"there is no folder '{folder}'; make it first, or give another name"


@pytest.mark.thorough
def test_failed_save_shows_until_it_succeeds(window, qtbot):
    folder = lose_folder(window)
    note(window)
    field = window.workspace.unsaved
    assert field.isVisible()
    assert field.text() == f"Notes are not saved: scene.kev.marks.json: {no_folder(folder)}"
    folder.with_name("away").rename(folder)
    field.click()
    assert not field.isVisible()
    assert [mark.text for mark in Marks(folder / "scene.kev", window.session.opened.trace.window)] == ["a note"]


@pytest.mark.thorough
def test_closing_asks_and_stays_or_lets_go(window, monkeypatch):
    folder = lose_folder(window)
    note(window)
    reasons = answers(monkeypatch, dialogs.Unsaved.STAY)
    assert not window.close()
    assert reasons == [f"scene.kev.marks.json: {no_folder(folder)}"]
    assert window.isVisible()
    assert len(window.workspace.opened.marks) == 1
    answers(monkeypatch, dialogs.Unsaved.RETRY, dialogs.Unsaved.DISCARD)
    assert window.close()


@pytest.mark.thorough
def test_closing_can_save_elsewhere(window, monkeypatch, tmp_path):
    lose_folder(window)
    trace_window = window.workspace.opened.trace.window
    note(window, "stored")
    answers(monkeypatch, dialogs.Unsaved.ELSEWHERE, dialogs.Unsaved.ELSEWHERE)
    positions = [tmp_path / "none" / "x", tmp_path / ("scene.kev" + SUFFIX)]
    monkeypatch.setattr(dialogs, "ask_save", lambda *_: positions.pop(0))
    reported = []
    monkeypatch.setattr(dialogs, "report", lambda *arguments: reported.append(arguments[2]))
    assert window.close()
    assert reported == [f"x: {no_folder(tmp_path / 'none')}"]
    assert [mark.text for mark in Marks(tmp_path / "scene.kev", trace_window)] == ["stored"]


@pytest.mark.thorough
def test_notes_of_a_trace_closed_meanwhile_are_still_saved(window, qtbot, monkeypatch):
    folder = lose_folder(window)
    note(window)
    trace_window = window.session.opened.trace.window
    window.session.close()
    assert len(window.session.unstored_marks()) == 1
    shutil.move(folder.with_name("away"), folder)
    qtbot.waitUntil(lambda: not window.session.unstored_marks(), timeout=10_000)
    assert [mark.text for mark in Marks(folder / "scene.kev", trace_window)] == ["a note"]
    assert window.close()


def test_damaged_notes_are_reported_until_the_user_has_read_it(empty_window, qtbot, tmp_path):
    path = scene(tmp_path)
    (tmp_path / (path.name + SUFFIX)).write_text("{")
    empty_window.session.open(path)
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY, timeout=20_000)
    field = empty_window.workspace.unsaved
    assert "scene.kev.marks.json is damaged and was not read: line 1" in field.text()
    note(empty_window)
    assert "is now scene.kev.marks.json.damaged-1" in field.text()
    field.click()
    assert not field.isVisible()


@pytest.mark.thorough
def test_internal_error_keeps_the_session_and_offers_a_report(window, qapp, monkeypatch, capsys):
    seen = []

    def close():
        boxes = (widget for widget in qapp.topLevelWidgets() if isinstance(widget, QMessageBox))
        box = next(box for box in boxes if box.isVisible())
        seen.append((box.text(), box.detailedText()))
        next(button for button in box.buttons() if button.text() == "&Copy report").click()

    QTimer.singleShot(200, close)
    try:
        raise ZeroDivisionError("in a slot")
    except ZeroDivisionError as error:
        application_module._report_uncaught(type(error), error, error.__traceback__)
    assert seen[0][0] == "Something went wrong inside satview: ZeroDivisionError."
    assert "in a slot" in seen[0][1]
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in seen[0][1]
    assert qapp.clipboard().text() == seen[0][1]
    assert "in a slot" in capsys.readouterr().err
    assert window.session.stage is Stage.READY
    assert window.isVisible()
