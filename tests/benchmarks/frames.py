"""Frame time of the swimlanes: 200 lanes x 1600 px at full, 1 % and 0.01 % of traces of 1, 10 and 50 million slots.

A frame is raster, palette and one image drawn, as the view does it; the floor is palette and drawing of a ready raster.
Args: millions... (default 1 10).
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from satview.base.time import TimeWindow
from satview.formats.kev.reader import open_kev
from satview.timeline.lane_tree import LaneKind, Timeline
from tests.benchmarks.made_traces import make_file

LANES, WIDTH_PX, LANE_PX = 200, 1600, 5


def run(args: list[str]) -> None:
    """Print one line per trace."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtGui import QGuiApplication, QImage, QPainter

    app = QGuiApplication.instance() or QGuiApplication([])
    target = QImage(WIDTH_PX, LANES * LANE_PX, QImage.Format.Format_RGB32)
    palette = np.random.default_rng(1).integers(0, 2**24, 256).astype(np.uint32)

    def paint(raster: np.ndarray) -> None:
        pixels = np.repeat(palette.take(raster), LANE_PX, axis=0)
        image = QImage(pixels.data, WIDTH_PX, LANES * LANE_PX, WIDTH_PX * 4, QImage.Format.Format_RGB32)
        painter = QPainter(target)
        painter.drawImage(0, 0, image)
        painter.end()

    for millions in [float(arg) for arg in args] or [1, 10]:
        print(_measure(millions, paint), flush=True)
    del app


def _measure(millions: float, paint) -> str:
    """Return the line of one trace."""
    path = make_file(Path(tempfile.gettempdir()) / f"satview-mixed-200-4-{millions:g}m.kev", int(millions * 1e6))
    trace = open_kev(path)
    timeline = Timeline(trace)
    lanes = [info.index for info in timeline.infos if info.kind == LaneKind.THREAD][:LANES]
    start = time.perf_counter()
    timeline.build(lanes)
    build_s = time.perf_counter() - start

    def frame(share: float, position: float) -> None:
        paint(timeline.raster(lanes, _window(trace.window, share, position), WIDTH_PX))

    ready = timeline.raster(lanes, trace.window, WIDTH_PX)
    floor = _median(lambda: paint(ready))
    full, percent, deep = (_median(lambda s=share: frame(s, 0.37)) for share in (1, 0.01, 0.0001))
    sweep = [_once(lambda z=step: frame(10 ** (-z / 20), 0.61)) for step in range(121)]
    return (
        f"{millions:g} M slots: full {full:.2f}, 1 % {percent:.2f}, 0.01 % {deep:.2f} ms; sweep median "
        f"{statistics.median(sweep):.2f}, worst {max(sweep):.2f} ms; floor {floor:.2f} ms, "
        f"ratio {statistics.median(sweep) / floor:.1f}; "
        f"lanes built in {build_s:.2f} s ({build_s / len(trace.events) * 1e9:.0f} ns/event)"
    )


def _window(whole: TimeWindow, share: float, position: float) -> TimeWindow:
    length = max(1, int(whole.length * share))
    start = whole.start + int((whole.length - length) * position)
    return TimeWindow(start, start + length)


def _once(timed) -> float:
    start = time.perf_counter()
    timed()
    return (time.perf_counter() - start) * 1e3


def _median(timed, runs: int = 9) -> float:
    timed()
    return statistics.median(_once(timed) for _ in range(runs))
