"""Arrows over the lanes: the frame at full, 1 % and 0.01 % of traces, and what making their index takes.

A frame is the search, the grouping and the drawing of all arrows, as the view does it at once; the limit is 8 ms. The
exact picture, made in the background, is given for comparison. Args: millions... (default 1 10).
"""

from __future__ import annotations

import gc
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from satview.formats.kev.reader import open_kev
from satview.linkage.chain import link_table
from satview.linkage.links import LinkKind
from satview.timeline.arrows import Picture, arrow_groups, arrow_index
from satview.timeline.lane_tree import Timeline
from tests.benchmarks.frames import _median, _once, _window
from tests.benchmarks.made_traces import make_file

WIDTH_PX, HEIGHT_PX = 1600, 1000


def run(args: list[str]) -> None:
    """Print one line per trace."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtWidgets import QApplication

    app = QApplication.instance() or QApplication([])
    gc.disable()  # as the windows do
    for millions in [float(arg) for arg in args] or [1, 10]:
        print(_measure(millions), flush=True)
    del app


def _measure(millions: float) -> str:
    """Return the line of one trace."""
    from PySide6.QtGui import QImage, QPainter

    from satview.gui.swimlane.marks import ArrowLayer
    from satview.gui.swimlane.scale import TimeScale
    from satview.gui.theme import LIGHT
    from satview.session.arrow_source import ArrowMode
    from satview.session.open_trace import OpenTrace
    from satview.session.settings import Settings

    path = make_file(Path(tempfile.gettempdir()) / f"satview-mixed-200-4-{millions:g}m.kev", int(millions * 1e6))
    trace = open_kev(path)
    links_s = _once(lambda: [link_table(trace, kind) for kind in LinkKind]) / 1e3
    timeline = Timeline(trace)
    start = time.perf_counter()
    index = arrow_index(trace, timeline.infos)
    index_s = time.perf_counter() - start
    opened = OpenTrace(trace, timeline, Settings(None))
    opened.lanes.unfold_all()
    layer = ArrowLayer(opened)
    layer.set_mode(ArrowMode.ALL)
    layer.source._index = index  # made above, where it is measured
    target = QImage(WIDTH_PX, HEIGHT_PX, QImage.Format.Format_RGB32)
    painter = QPainter(target)
    offset = [0]

    def frame(share: float, position: float) -> None:
        offset[0] += 1  # another window each time: what is cached would be no frame
        window = _window(trace.window, share, position).shifted(offset[0])
        layer.draw(painter, TimeScale(window, WIDTH_PX), (0, HEIGHT_PX // 20), 0, LIGHT)

    full, percent, deep = (_median(lambda s=share: frame(s, 0.37)) for share in (1, 0.01, 0.0001))
    sweep = [_once(lambda z=step: frame(10 ** (-z / 20), 0.61)) for step in range(121)]
    positions = np.arange(len(timeline.infos))
    exact = _once(lambda: arrow_groups(trace, index, Picture(trace.window, WIDTH_PX, positions, (0, 50))))
    painter.end()
    size_mb = sum(getattr(index.arrows, name).nbytes for name in index.arrows.__slots__) / 1e6
    opened.shut_down()
    layer.source.close()
    return (
        f"{millions:g} M slots, {len(index.arrows):,} arrows: full {full:.2f}, 1 % {percent:.2f}, "
        f"0.01 % {deep:.2f} ms; sweep median {statistics.median(sweep):.2f}, worst {max(sweep):.2f} ms (limit 8); "
        f"exact {exact:.0f} ms in the background; index {index_s:.2f} s and {size_mb:.0f} MB "
        f"after {links_s:.2f} s for links"
    )
