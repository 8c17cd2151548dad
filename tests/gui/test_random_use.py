"""Commands, clicks and sizes in a seeded random order: nothing may raise, whatever the order (pytest-qt watches)."""

from __future__ import annotations

import random

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication

from satview.gui import dialogs
from satview.session.command_table import COMMANDS
from tests.helpers.extent import fewer
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

# Those that open, close or replace windows have tests of their own.
_LEFT_OUT = {"file.open", "file.new_window", "file.close", "file.quit", "file.reload", "help.about", "capture.demo"}


@pytest.mark.thorough
@pytest.mark.qt_log_ignore("grabbing the keyboard", extend=True)
@pytest.mark.parametrize("what", fewer(["scene", "no events", "one event"], 1))
def test_nothing_raises(empty_window, load, qtbot, tmp_path, monkeypatch, what):
    monkeypatch.setattr(dialogs, "ask_save", lambda *arguments: None)
    monkeypatch.setattr(dialogs, "ask_folder", lambda *arguments: None)
    monkeypatch.setattr(dialogs, "ask_open", lambda *arguments: [])
    if what == "scene":
        path = scene(tmp_path)
    else:
        builder = TraceBuilder()
        path = (builder.time_event(0) if what == "one event" else builder).write(tmp_path / "few.kev")
    load(empty_window, path)
    rng = random.Random(7)
    actions = empty_window.actions_by_id
    ids = [command.id for command in COMMANDS if command.id not in _LEFT_OUT]
    for _ in range(90):
        kind = rng.random()
        if kind < 0.7:
            actions.refresh()
            action = actions.by_id[rng.choice(ids)]
            if action.isEnabled():
                action.trigger()
        elif kind < 0.95:
            view = empty_window.workspace.area.view  # another one after each look of a live view
            position = QPoint(rng.randrange(max(1, view.width())), rng.randrange(max(1, view.height())))
            qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=position)
            qtbot.mouseMove(view, position)
        else:
            empty_window.resize(rng.randint(400, 1400), rng.randint(300, 1000))
        QApplication.processEvents()
    assert empty_window.workspace is not None
    assert empty_window.session.opened.viewport.window.length > 0
