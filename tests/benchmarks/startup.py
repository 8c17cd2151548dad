"""Time from process start to an empty window and to the first frame of a trace, against importing Qt's widgets alone.

Args: millions of slots (default 10).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from satview.formats.kev.reader import open_kev
from tests.benchmarks.load import median_ns
from tests.benchmarks.made_traces import make_file

_IMPORT = "import PySide6.QtWidgets"
_EMPTY = """
import sys
from satview.gui.windows.application import Application, make_qt_application
from satview.gui.windows.command_window import Shared
from satview.session.loading.files import RecentFiles
from satview.session.settings import Settings
app = make_qt_application()
application = Application(Shared(Settings(None), RecentFiles(None, 0)))
window = application.first_window()
app.processEvents()
if sys.argv[1:]:
    window.complete()
    app.processEvents()
import os
os._exit(0)
"""


def run(args: list[str]) -> None:
    """Print the figures."""
    millions = float(args[0]) if args else 10
    path = make_file(Path(tempfile.gettempdir()) / f"satview-mixed-200-4-{millions:g}m.kev", int(millions * 1e6))
    load_s = median_ns(lambda: open_kev(path), 3) / 1e9
    qt_s = _process(["-c", _IMPORT])
    window_s, complete_s = _process(["-c", _EMPTY]), _process(["-c", _EMPTY, "complete"])
    picture = str(Path(tempfile.gettempdir()) / "satview-frame.png")
    frame_s = _process(["-m", "satview", str(path), "--screenshot", picture])
    print(
        f"importing QtWidgets {qt_s:.3f} s; empty window shown {window_s:.3f} s, ratio {window_s / qt_s:.2f}; "
        f"with its commands {complete_s:.3f} s, ratio {complete_s / qt_s:.2f}"
    )
    print(
        f"{millions:g} M slots: process start to complete picture {frame_s:.2f} s; load {load_s:.2f} s; "
        f"ratio to load and empty window {frame_s / (load_s + window_s):.2f}"
    )


def _process(command: list[str]) -> float:
    # Byte code is cached, as for any user: some environments switch that off.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["QT_QPA_PLATFORM"] = "offscreen"
    times = []
    for _ in range(4):
        start = time.perf_counter()
        subprocess.run([sys.executable, *command], env=environment, check=False, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])
