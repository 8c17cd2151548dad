"""Commands, clicks and sizes in a seeded random order: nothing may raise, whatever the order (pytest-qt watches)."""

from __future__ import annotations

import random
import shutil
import time
import traceback
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication

from satview.base import named_files
from satview.gui import dialogs
from satview.gui.windows import window_commands
from satview.session.commands import COMMANDS
from tests.helpers.extent import fewer
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

# Those that open, close or replace windows have tests of their own.
_LEFT_OUT = {"file.open", "file.new_window", "file.close", "file.quit", "file.reload", "help.about", "capture.demo"}


def sample_in(folder, monkeypatch):
    """Let "Open a sample" open a copy: notes beside the project's own would be drawn in other tests."""
    sample = Path(shutil.copy(named_files.sample_trace(), folder))
    monkeypatch.setattr(window_commands, "sample_trace", lambda: sample)


class RandomUser:
    """Clicks, drags, resizes, splits, compares, runs commands, opens more windows and closes them, as a seed says.

    Attributes:
        steps: What was done, to be read on failure.
    """

    def __init__(self, application, qtbot, paths, seed):
        self.application, self.qtbot, self.paths = application, qtbot, paths
        self.rng = random.Random(seed)
        self.steps = [f"seed {seed}"]

    def step(self):
        """Do one thing."""
        acts = (self.click, self.click, self.drag, self.press, self.wheel, self.split, self.compare, self.resize,
                self.any_command, self.any_command, self.another, self.close, self.wait)  # fmt: skip
        if not self.application.windows:  # the last one was closed
            self.qtbot.waitExposed(self.application.new_window())
        window = self.rng.choice(self.application.windows)
        act = self.rng.choice(acts) if window.workspace is not None else self.open
        self.steps.append(act.__name__)
        act(window)
        QApplication.processEvents()

    def note(self, what):
        self.steps[-1] += f" {what}"

    def view(self, window):
        panes = window.workspace.panes
        name = self.rng.choice(["first", "second"] if panes.second is not None else ["first"])
        self.note(f"{self.application.windows.index(window)}.{name}")
        return getattr(panes, name).area.view

    def position(self, view):
        point = QPoint(self.rng.randrange(max(1, view.width())), self.rng.randrange(max(1, view.height())))
        self.note(f"{point.x()},{point.y()}")
        return point

    def open(self, window):
        path = self.rng.choice(self.paths)
        self.note(path.name)
        window.session.open(path)
        self.qtbot.waitUntil(lambda: window.workspace is not None, timeout=60_000)

    def click(self, window):
        view = self.view(window)
        self.qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=self.position(view))

    def drag(self, window):
        view = self.view(window)
        button = self.rng.choice((Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton))
        self.qtbot.mousePress(view, button, pos=self.position(view))
        for _ in range(3):
            self.qtbot.mouseMove(view, self.position(view))
        self.qtbot.mouseRelease(view, button, pos=self.position(view))

    def press(self, window):
        view = self.view(window)
        key = self.rng.choice("WASDFNBRY123[]") if self.rng.random() < 0.9 else "M"
        self.note(key)
        self.qtbot.keyClick(view, key)

    def wheel(self, window):
        viewport = window.workspace.active.opened.viewport
        viewport.zoom(
            self.rng.choice((0.3, 0.7, 1.5, 4.0)), self.rng.choice((viewport.window.start, viewport.window.end))
        )

    def trigger(self, window, name):
        self.note(name)
        window.actions_by_id.refresh()
        action = window.actions_by_id.by_id[name]
        if action.isEnabled():
            action.trigger()

    def resize(self, window):
        window.resize(self.rng.randint(400, 1400), self.rng.randint(300, 1000))

    def split(self, window):
        self.trigger(window, "view.split")

    def compare(self, window):
        self.trigger(window, self.rng.choice(("file.compare", "compare.end")))

    def any_command(self, window):
        self.trigger(window, self.rng.choice([one.id for one in COMMANDS if one.id not in _LEFT_OUT]))

    def another(self, window):
        if len(self.application.windows) < 3:
            self.trigger(window, "view.another")

    def close(self, window):
        if len(self.application.windows) > 1 and self.rng.random() < 0.5:
            self.note("window")
            window.close()
        elif self.rng.random() < 0.3:
            self.trigger(window, "file.close")

    def wait(self, _window):
        self.qtbot.wait(self.rng.randrange(60))


@pytest.mark.thorough
@pytest.mark.qt_log_ignore("grabbing the keyboard", extend=True)
@pytest.mark.parametrize("seed", fewer([27, 28, 29], 1))
def test_windows_take_anything(application, empty_window, load, qtbot, tmp_path, monkeypatch, seed):
    """A random user for 60 s, who begins with the scene, a trace of one event, or one without events."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    paths = [scene(tmp_path / "a"), TraceBuilder().time_event(0).write(tmp_path / "one.kev"),
             TraceBuilder().write(tmp_path / "none.kev"), scene(tmp_path / "b")]  # fmt: skip
    user = RandomUser(application, qtbot, paths, seed)
    sample_in(tmp_path, monkeypatch)
    monkeypatch.setattr(dialogs, "ask_save", lambda *arguments: None)
    monkeypatch.setattr(dialogs, "ask_folder", lambda *arguments: None)
    monkeypatch.setattr(dialogs, "ask_open", lambda *arguments: [user.rng.choice(paths)])
    monkeypatch.setattr(dialogs, "ask_file", lambda *arguments: None)
    monkeypatch.setattr(dialogs, "report", lambda *arguments, **more: user.note(f"said {arguments[2]}"))
    load(empty_window, paths[seed - 27])
    end_s = time.monotonic() + 60
    with qtbot.capture_exceptions() as raised:
        while time.monotonic() < end_s and not raised:
            user.step()
    if raised:
        shown = "".join(traceback.format_exception(*raised[0]))
        pytest.fail("\n".join([*user.steps[:1], *user.steps[-40:], shown]))
