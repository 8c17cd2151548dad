"""Processor time of frames of lanes, names and ruler: the state alone, all labels, all arrows too; and lanes of events.

A frame is what is painted in one turn of the loop while the view pans and zooms as with held keys, and after jumps to
what did not show before; then, how many frames and how much time it takes until all is exact.
The floor is a copy of 100 MB in the same moment: the target, 8 ms, is that of a machine where it runs at 20 GB/s.
Then the time to find and build all lanes of events. Args: [millions of slots (10)] [--shape NAME].
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np

from tests.benchmarks._live import new_window, spin
from tests.benchmarks.all import SHAPES, file_of

SHARES = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)
FRAMES = 30
_COPY_GB_PER_S = 20.0
PAN, ZOOM = 0.05, 1.09  # a frame, as keys do that are held for a second


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
    frames = Frames(app, opened, area)
    for labels, arrows in ((frozenset({Label.STATE}), ArrowMode.OFF), (every, ArrowMode.OFF), (every, ArrowMode.ALL)):
        opened.lanes.set_labels(labels)
        view.arrows.set_mode(arrows)
        view.repaint()
        spin(app, lambda: not opened.labels.is_busy and (view.arrows.mode != "all" or view.arrows.source.is_ready))
        for share in SHARES:
            print(f"{len(labels)} labels, arrows {arrows}, {len(view.visible_rows())} lanes x {view.width()} px, "
                  f"{share:g} of it: {frames.measured(share)}", flush=True)  # fmt: skip


class Frames:
    """Moves a view and measures its frames, ms of processor time."""

    def __init__(self, app, opened, area) -> None:
        self._app, self._opened, self._view = app, opened, area.view
        self._frames, self._names = [], []
        _time(area.view, "_paint", self._frames.append)
        _time(area.ruler, "paintEvent", self._add)  # it is painted in the same turn
        _time(area.labels, "paintEvent", self._names.append)

    def _add(self, ms: float) -> None:
        if self._frames:
            self._frames[-1] += ms

    def measured(self, share: float) -> str:
        """Return a line on frames that show a share of the trace."""
        viewport = self._opened.viewport
        self._jump(share, 0.3)
        self._settle()
        self._frames.clear()
        self._names.clear()
        for step in range(2 * FRAMES):
            if share < 1 and step % 2:
                viewport.pan(PAN if step < FRAMES else -PAN)
            else:
                window = viewport.window
                viewport.zoom(1 / ZOOM if step < FRAMES else ZOOM, window.start + window.length // 3)
            self._frame()
        moving = self._frames.copy()
        self._frames.clear()
        until, rate = [], _copy_gb_per_s()
        for step in range(FRAMES // 2):
            self._jump(share, step * 2 / FRAMES)
            before = len(self._frames)
            self._frame()
            self._settle()
            until.append((len(self._frames) - before, sum(self._frames[before:])))
        count, most = (max(column) for column in zip(*until, strict=True))
        jumps = max(self._frames, default=0.0)
        worst = max(*moving, jumps)
        return (f"moving {statistics.median(moving):.1f}, worst {max(moving):.1f} ms; jumps worst {jumps:.1f} ms; "
                f"a copy at {rate:.1f} GB/s, so worst {worst * rate / _COPY_GB_PER_S:.1f} ms at {_COPY_GB_PER_S:g}; "
                f"exact after {count} frames, {most:.0f} ms; names {statistics.median(self._names):.1f}, worst "
                f"{max(self._names):.1f} ms")  # fmt: skip

    def _jump(self, share: float, position: float) -> None:
        from satview.base.time import TimeWindow

        whole = self._opened.trace.window
        length = max(int(whole.length * share), 100)
        start = whole.start + int((whole.length - length) * position)
        self._opened.viewport.jump(TimeWindow(start, start + length))

    def _frame(self) -> None:
        """Let the next frame be painted."""
        before = len(self._frames)
        while len(self._frames) == before and not self._view.is_settled:
            self._app.processEvents()
        self._view.source._rest_timer.stop()
        self._view.arrows.source._rest_timer.stop()  # the exact picture is made beside the frames

    def _settle(self) -> None:
        """Let the view rest until it is exact."""
        while not self._view.is_settled:
            self._frame()


def _copy_gb_per_s() -> float:
    """Return how fast a copy runs just now, best of five: of 100 MB, in processor time."""
    source = np.ones(100_000_000, np.uint8)
    target, times = np.zeros_like(source), []
    for _ in range(5):
        before = time.thread_time()
        np.copyto(target, source)
        times.append(time.thread_time() - before)
    return source.nbytes / min(times) / 1e9


def _time(widget, method: str, take) -> None:
    """Have a function called with the processor time of every call of a method from now on, ms."""
    paint = getattr(widget, method)

    def timed(*args) -> None:
        before = time.thread_time()
        paint(*args)
        take((time.thread_time() - before) * 1e3)

    setattr(widget, method, timed)


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
