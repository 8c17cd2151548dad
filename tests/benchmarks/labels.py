"""Processor time of a frame of the swimlanes: the state alone, all labels, and all arrows too; and lanes of events.

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
    from satview.session.arrow_source import ArrowMode
    from satview.session.lanes.lane_arrangement import Label

    opened, area = window.session.opened, window.workspace.area
    view, every = area.view, frozenset(Label)
    times, beside = _timed(view, "_paint"), [_timed(area.labels, "paintEvent"), _timed(area.ruler, "paintEvent")]
    for labels, arrows in ((frozenset({Label.STATE}), ArrowMode.OFF), (every, ArrowMode.OFF), (every, ArrowMode.ALL)):
        opened.lanes.set_labels(labels)
        view.arrows.set_mode(arrows)
        view.repaint()
        spin(app, lambda: not opened.labels.is_busy and (view.arrows.mode != "all" or view.arrows.source.is_ready))
        for share in SHARES:
            for each in (times, *beside):
                each.clear()
            for step in range(FRAMES):
                _frame(opened, view, share, step / FRAMES)
                area.labels.repaint()
                area.ruler.repaint()
            names, ruler = (statistics.median(each) for each in beside)
            print(f"{len(labels)} labels, arrows {arrows}, {len(view.visible_rows())} lanes x {view.width()} px, "
                  f"{share:g} of it: median {statistics.median(times):.1f} ms, worst {max(times):.1f} ms; "
                  f"names {names:.1f}, ruler {ruler:.1f} ms", flush=True)  # fmt: skip


def _timed(widget, method: str) -> list[float]:
    """Return a list that gets the processor time of every call of a method from now on, ms."""
    times, paint = [], getattr(widget, method)

    def timed(*args) -> None:
        before = time.thread_time()
        paint(*args)
        times.append((time.thread_time() - before) * 1e3)

    setattr(widget, method, timed)
    return times


def _frame(opened, view, share: float, place: float) -> None:
    from satview.base.time import TimeWindow

    whole = opened.trace.window
    length = max(int(whole.length * share), 100)
    start = whole.start + int((whole.length - length) * place)
    opened.viewport.jump(TimeWindow(start, start + length))
    view.source._rest.stop()
    view.arrows.source._rest.stop()  # the exact picture is made beside the frames
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
