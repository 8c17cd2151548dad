"""What benchmarks of a followed file share: a window that follows, letting it live, and its memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def spin(app, is_done: Callable[[], bool], limit_s: float = 120.0) -> float:
    """Let the window live until something is done; return the longest time it did not answer, in ms."""
    start = last = time.perf_counter()
    stall = 0.0
    while not is_done() and last - start < limit_s:
        app.processEvents()
        app.sendPostedEvents(None, 52)  # what was to be deleted; else only the loop of exec() does it
        now = time.perf_counter()
        stall, last = max(stall, now - last), now
        time.sleep(0.0005)
    return stall * 1e3


def new_window():
    """Return the application of Qt, ours, and an empty window of a usual size."""
    from satview.gui.windows.application import Application, make_qt_application
    from satview.gui.windows.command_window import Shared
    from satview.session.loading.files import RecentFiles
    from satview.session.settings import Settings

    app = make_qt_application()
    application = Application(Shared(Settings(None), RecentFiles(None, 0)))
    window = application.new_window()
    window.resize(1500, 900)
    return app, application, window


def resident_bytes() -> int:
    """Return the memory of this process, that of files without a name included.

    The resident size would count a page of such a file once per map, and not at all while nobody has looked at it.
    """
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    own = sum(int(status[key].split()[0]) * 1024 for key in ("RssAnon", "RssFile"))
    files = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if str(entry.readlink()).startswith("/memfd:"):
                found = os.fstat(int(entry.name))
                files[found.st_ino] = found.st_blocks * 512
        except OSError:  # that of the listing itself, closed by now
            continue
    return own + sum(files.values())
