from __future__ import annotations

import os
import subprocess
import sys

_PROGRAM = """
import sys
from satview.gui.windows.application import Application, make_qt_application
from satview.gui.windows.shared import Shared
from satview.session.loading.recent_files import RecentFiles
from satview.session.settings import Settings

app = make_qt_application()
window = Application(Shared(Settings(None), RecentFiles(None, 0))).new_window()
app.processEvents()
assert window.isVisible()
print(" ".join(name for name in ("numpy", "pyqtgraph", "construct", "satview.formats.registry") if name in sys.modules))
"""


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"} | environment,
    )


def test_window_shows_before_anything_heavy_is_imported():
    done = run("-c", _PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
