"""What holds the window: the longest pass of its loop, processor time, while a trace opens and things are first used.

Args: [millions of slots (10)] [--shape NAME].
"""

from __future__ import annotations

import argparse
import os
import time

from tests.benchmarks._live import new_window
from tests.benchmarks.all import SHAPES, file_of

LIMIT_MS = 50
COMMANDS = (
    "file.settings", "file.new_capture", "file.state_looks", "go.to_lane", "help.palette", "help.keys", "view.split",
)  # fmt: skip


def run(args: list[str]) -> None:
    """Print a line for each thing that is done; those beyond the limit are marked."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=10)
    parser.add_argument("--shape", choices=SHAPES, default="mixed")
    options = parser.parse_args(args)
    app, application, window = new_window()
    window.settings.set("files/cache_mb", 0)
    path = file_of(options.shape, options.millions)

    def is_exact() -> bool:
        return window.workspace is not None and window.workspace.area.is_exact

    _print("open", _longest(app, lambda: window.session.open(path), is_exact))
    _print("verdicts", _longest(app, lambda: None, lambda: not window.workspace.is_checking))
    for name in window.workspace.docks:
        _print(f"panel {name}", _longest(app, lambda name=name: window.workspace.show_panel(name)))
    for name in COMMANDS:
        _print(name, _longest(app, window.actions_by_id.by_id[name].trigger))
        app.activeWindow().close() if app.activeWindow() not in (None, window) else None
    filters = window.session.opened.filters
    _print("filter", _longest(app, lambda: filters.add_pass("event == MSG_SENDV")))
    application.close_all()


def _longest(app, begin, is_done=None) -> float:
    """Return the longest pass in ms from when something is begun until it is done, or for a second."""
    end, before = time.perf_counter() + (60 if is_done else 1), time.thread_time()
    begin()
    longest = time.thread_time() - before
    while time.perf_counter() < end and not (is_done and is_done()):
        before = time.thread_time()
        app.processEvents()
        longest = max(longest, time.thread_time() - before)
        app.sendPostedEvents(None, 52)  # what was to be deleted
        time.sleep(0.001)
    return longest * 1e3


def _print(name: str, longest_ms: float) -> None:
    print(f"{name:24} {longest_ms:5.0f} ms{' !' if longest_ms > LIMIT_MS else ''}", flush=True)
