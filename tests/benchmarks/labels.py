"""Processor time of a frame of the swimlanes, with the state alone and with all labels; and lanes of events.

Each frame shows a part of the trace that did not show before, so that no name is laid out yet: the worst of moving.
Then the time to find and build all lanes of events. Args: [millions of slots (10)] [--shape NAME].
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

from tests.benchmarks._live import new_window, spin
from tests.benchmarks.all import SHAPES, file_of

SHARES = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)
FRAMES = 30


def run(args: list[str]) -> None:
    """Print a line per share of the trace and set of labels, then one for each class of lanes."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    parser = argparse.ArgumentParser()
    parser.add_argument("millions", nargs="?", type=float, default=10)
    parser.add_argument("--shape", choices=SHAPES, default="mixed")
    options = parser.parse_args(args)
    app, _, window = new_window()
    window.resize(1900, 1100)
    window.settings.set("files/cache_mb", 0)
    window.settings.set("swimlane/unfold_up_to", 1000)
    window.session.open(file_of(options.shape, options.millions))
    spin(app, lambda: window.workspace is not None and window.workspace.area.is_exact)
    _frames(app, window)
    _classes(window.session.opened.trace)


def _frames(app, window) -> None:
    from satview.session.lanes.lane_arrangement import Label

    opened, view = window.session.opened, window.workspace.area.view
    times = _timed(view)
    for labels in (frozenset({Label.STATE}), frozenset(Label)):
        opened.lanes.set_labels(labels)
        view.repaint()
        spin(app, lambda: not opened.labels.is_busy)
        for share in SHARES:
            times.clear()
            for place in range(FRAMES):
                _frame(opened, view, share, place / FRAMES)
            print(f"{len(labels)} labels, {len(view.visible_rows())} lanes x {view.width()} px, {share:g} of it: "
                  f"median {statistics.median(times):.1f} ms, worst {max(times):.1f} ms", flush=True)  # fmt: skip


def _timed(view) -> list[float]:
    """Return a list that gets the processor time of every frame from now on, ms."""
    times, paint = [], view._paint

    def timed() -> None:
        before = time.thread_time()
        paint()
        times.append((time.thread_time() - before) * 1e3)

    view._paint = timed
    return times


def _frame(opened, view, share: float, place: float) -> None:
    from satview.base.time import TimeWindow

    whole = opened.trace.window
    length = max(int(whole.length * share), 100)
    start = whole.start + int((whole.length - length) * place)
    opened.viewport.jump(TimeWindow(start, start + length))
    view.source._rest.stop()
    view.repaint()


def _classes(trace) -> None:
    from satview.timeline.lane_tree import Timeline

    timeline = Timeline(trace)
    for each in timeline.lane_classes():
        before = time.process_time()
        timeline.show_classes([each.name])
        lanes = timeline.lanes_of_class(each.name)
        found = time.process_time() - before
        timeline.build(lanes)
        built = time.process_time() - before - found
        print(f"{each.name}: {len(lanes)} lanes found in {found:.2f} s, built in {built:.2f} s")
