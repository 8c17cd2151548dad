"""Time from process start to an empty window, the first true picture, the exact one, and the exact one from the cache.

Args: [millions of slots] [--shape NAME ...]. Seconds by the clock and of processor time of all threads, the best of
three, with the import of QtWidgets as floor; the cache is in a folder of its own. The last row opens the file once more
in a window that runs already.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.made_traces import SHAPES, file_of

_RUNS = 3
_PROGRAM = """
import os, sys, time
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as the command does
begin = float(sys.argv[2])
def say(what):
    print(what, time.time() - begin, time.process_time(), flush=True)
if sys.argv[1] == "-":
    import PySide6.QtWidgets
    say("import")
    sys.exit()
from pathlib import Path
from PySide6.QtCore import QEventLoop, QTimer
from satview.gui.windows.application import Application, make_qt_application
from satview.gui.windows.command_window import Shared
from satview.session.loading.files import RecentFiles
from satview.session.settings import Settings
app = make_qt_application()
application = Application(Shared(Settings(None), RecentFiles(None, 0)))
window = application.first_window()
window.resize(1600, 1000)
app.processEvents()
say("window")
window.make_document()
loop, wakes = QEventLoop(), QTimer()
wakes.start(5)
def wait(is_done):
    while not is_done():
        loop.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
def shown():
    page = window.preview_page
    return window.workspace is not None or (page is not None and page.lanes.isVisible())
def exact():
    return window.workspace is not None and window.workspace.area.is_exact
path = Path(sys.argv[1])
window.session.open(path)
wait(shown)
loop.processEvents()
say("first")
wait(exact)
say("exact")
if sys.argv[3] == "keep":
    wait(lambda: not window.session.needs_caching and not window.session.is_caching)
    window.session.close()
    loop.processEvents()
    begin, cpu = time.time(), time.process_time()
    window.session.open(path)
    wait(exact)
    print("again", time.time() - begin, time.process_time() - cpu, flush=True)
import os
os._exit(0)
"""


def run(args: list[str]) -> None:
    """Print a row per figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=10)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    options = parser.parse_args(args)
    floor = best("-", "off", "")["import"]
    print(f"importing QtWidgets {floor[0]:.2f} s, {floor[1]:.2f} s of processor time")
    for shape in options.shape or SHAPES:
        path = file_of(shape, options.millions)
        with tempfile.TemporaryDirectory() as folder:
            fresh = best(str(path), "off", "")
            figures(str(path), folder, "keep")
            cached, again = best(str(path), folder, ""), best(str(path), folder, "keep")
        rows = {
            "empty window": fresh["window"],
            "first true picture": fresh["first"],
            "exact": fresh["exact"],
            "exact, from the cache": cached["exact"],
            "the same in a running window": again["again"],
        }
        for name, (wall_s, cpu_s) in rows.items():
            print(f"{shape:6} {options.millions:g} M slots, {name:30} {wall_s:6.2f} s {cpu_s:6.2f} s CPU "
                  f"{wall_s / floor[0]:6.1f} x floor", flush=True)  # fmt: skip


def best(path: str, cache: str, mode: str) -> dict[str, tuple[float, float]]:
    """Return the least of some runs of `figures`."""
    found = [figures(path, cache, mode) for _ in range(_RUNS)]
    return {name: (min(run[name][0] for run in found), min(run[name][1] for run in found)) for name in found[0]}


def figures(path: str, cache: str, mode: str) -> dict[str, tuple[float, float]]:
    """Return seconds by the clock and of the processor by name."""
    # Byte code is cached, as for any user: some environments switch that off.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"QT_QPA_PLATFORM": "offscreen", "SATVIEW_CACHE": cache}
    command = [sys.executable, "-c", _PROGRAM, path, repr(time.time()), mode]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=Path.cwd())
    lines = [line.split() for line in done.stdout.splitlines()]
    return {name: (float(wall_s), float(cpu_s)) for name, wall_s, cpu_s in lines}
