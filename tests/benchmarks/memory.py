"""Memory of a window per event: opened, with all lanes built, after closing, after opening and closing ten times.

Args: [millions of slots (10)] [--shape NAME] [--times N]. The cache is off; without the collector.
"""

from __future__ import annotations

import argparse
import gc
import os

from satview.base.column_arrays import give_back
from tests.benchmarks._live import new_window, resident_bytes, spin
from tests.benchmarks.made_traces import SHAPES, file_of


def run(args: list[str]) -> None:
    """Print a line per stage."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["SATVIEW_CACHE"] = "off"
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=10)
    parser.add_argument("--shape", choices=SHAPES, default="mixed")
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args(args)
    millions, shape, times = options.millions, options.shape, options.times
    path, small = file_of(shape, millions), file_of(shape, 0.05)
    app, application, window = new_window()

    def show(file) -> int:
        window.session.open(file)
        spin(app, lambda: window.workspace is not None and window.workspace.area.is_exact)
        spin(app, lambda: False, 1.0)
        return len(window.session.opened.trace.events)

    def close() -> int:
        window.session.close()
        spin(app, lambda: False, 1.5)
        return resident_bytes()

    show(small)  # imports and what Qt keeps are no part of a trace
    before = close()
    gc.collect()
    gc.disable()
    events = show(path)

    def say(what: str, resident: int) -> None:
        more = resident - before
        line = f"{shape} {millions:g} M slots, {what}: {more / 1e6:+7.0f} MB, {more / events:6.1f} bytes an event"
        print(line, flush=True)

    say("shown", resident_bytes())
    timeline = window.session.opened.timeline
    timeline.build(range(len(timeline.infos)))
    del timeline
    give_back()  # as the window does behind the lanes that it builds
    say("all lanes built", resident_bytes())
    say("closed", close())
    for _ in range(times):
        show(path)
        after = close()
    say(f"closed {times} times more", after)
    application.close_all()
    gc.enable()
