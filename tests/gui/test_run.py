"""`application.run` as the command line calls it, in a process of its own."""

from __future__ import annotations

import sys

import pytest

from tests.gui.hands import run_program, user_of
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

_PROGRAM = """
import sys
from pathlib import Path
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from satview.gui.windows import application
from satview.gui.windows.main_window import MainWindow
from satview.session.trace_link import TraceLink

def look():
    windows = [window for window in QApplication.topLevelWidgets() if isinstance(window, MainWindow)]
    are_complete = all(window.is_complete for window in windows)
    if windows and are_complete and all(window.session.stage not in ("empty", "loading") for window in windows):
        for window in windows:
            window.close()

app = application.make_qt_application()
timer = QTimer()
timer.timeout.connect(look)
timer.start(20)
sys.exit(application.run([TraceLink(Path(name)) for name in sys.argv[1:]], {"window/theme": "dark"}))
"""


def run(folder, *files):
    return run_program(_PROGRAM, *files, environment=user_of(folder))


@pytest.mark.thorough
def test_fine_lost_and_broken_files(tmp_path):
    fine = TraceBuilder().time_event(0).state("RUNNING", 10, 2, 1).write(tmp_path / "fine.kev")
    broken = tmp_path / "broken.kev"
    broken.write_text("no trace")
    assert run(tmp_path, fine).returncode == 0
    assert run(tmp_path, fine, scene(tmp_path)).returncode == 1
    done = run(tmp_path, broken)
    assert done.returncode == 2
    assert "satview: broken.kev" in done.stderr


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="the folders of settings are found by other means there")
def test_recent_files_are_kept_and_a_theme_of_the_command_line_is_not(tmp_path):
    fine = TraceBuilder().time_event(0).state("RUNNING", 10, 2, 1).write(tmp_path / "fine.kev")
    run(tmp_path, fine)
    assert "fine.kev" in (tmp_path / "state" / "satview" / "recent.json").read_text()
    assert "dark" not in (tmp_path / "config" / "satview" / "settings.json").read_text()
