"""Filter panel: from a change to lanes that show it, to the whole window, to exact lanes; the longest stall between.

The floor is painting the whole window as it is. Args: millions of slots... (default: the dense sample and 10).
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from satview.filters.passes import Effect
from tests.benchmarks.made_traces import make_file

DENSE = Path(__file__).parents[2] / "sample_traces" / "dense-4cpu.kev"
RUNS = 5
FLOOR_RUNS = 15


def run(args: list[str]) -> None:
    """Print a table per trace."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    sys.setswitchinterval(0.001)
    folder = Path(tempfile.gettempdir())
    files = [make_file(folder / f"satview-mixed-200-4-{float(m):g}m.kev", int(float(m) * 1e6)) for m in args]
    for path in files or [DENSE, make_file(folder / "satview-mixed-200-4-10m.kev", 10_000_000)]:
        _measure(path)


def _measure(path: Path) -> None:
    from satview.gui.windows.application import Application, make_qt_application
    from satview.gui.windows.command_window import Shared
    from satview.session.loading.files import RecentFiles
    from satview.session.session import Stage
    from satview.session.settings import Settings

    app = make_qt_application()
    application = Application(Shared(Settings(None), RecentFiles(None, 0)))
    window = application.new_window()
    window.resize(1500, 900)
    window.session.open(path)
    view = None
    while view is None or not view.source.is_refined:
        app.processEvents()
        if window.session.stage is Stage.READY:
            view = window.workspace.area.view
    opened = window.session.opened
    filters, trace = opened.filters, opened.trace
    window.workspace.show_panel("filter")
    app.processEvents()

    def painted() -> float:
        start = time.perf_counter()
        window.grab()
        return (time.perf_counter() - start) * 1e3

    floor_ms = statistics.median(painted() for _ in range(FLOOR_RUNS))
    print(f"{path.name}: {len(trace.events):,} events; floor, the whole window painted: {floor_ms:.1f} ms")
    ranked = np.argsort(trace.code_counts)[::-1]
    code, other = int(ranked[0]), int(ranked[2])
    thread = int(trace.events.thread[len(trace.events) // 2])
    pid = int(trace.threads.pid[thread])
    changes: list[tuple[str, Callable[[], object]]] = [
        ("hide a kind of event", partial(filters.show_codes, [code], False)),
        ("hide a thread", partial(filters.show_threads, [thread], False)),
        ("only a thread", partial(filters.only_threads, [thread], "only")),
        ("dim the unchecked", partial(filters.set_effect, Effect.DIM)),
        ("event == MSG_SENDV", partial(filters.add_pass, "event == MSG_SENDV")),
        ("duration > 2us", partial(filters.add_pass, "duration > 2us")),
        ("length > 1ms", partial(filters.add_pass, "length > 1ms")),
        ("rules with a pid", partial(filters.add_pass, "", f"ADDALLCLASSES\nSETCLASSPID KERCALL {pid}")),
    ]
    # One kind of event stays hidden, so that no change makes the chips come or go: that lays the window out again.
    base = replace(filters.state, codes=np.arange(len(filters.state.codes)) != other)
    _answer(app, view, filters, partial(filters.put, base, "base"))
    # As any user has, who puts the cursor there before he types.
    window.workspace.panels["filter"].condition.line.focused.emit()
    _wait(app, 1.0)
    for title, change in changes:
        print(f"  {title:20}", end="")
        first = _answer(app, view, filters, change)
        times = []
        for _ in range(RUNS):
            _answer(app, view, filters, partial(filters.put, base, "base"))
            times.append(_answer(app, view, filters, change))
        undone = _answer(app, view, filters, opened.edits.undo)
        lanes, all_of_it, exact, stall = (statistics.median(column) for column in zip(*times, strict=True))
        print(
            f" lanes {lanes:5.1f}, window {all_of_it:6.1f}, exact {exact:6.1f}, longest stall {stall:5.1f}; "
            f"first time {first[0]:6.1f}, undo {undone[0]:6.1f} ms; lanes/floor {lanes / floor_ms:.1f}"
        )
    application.close_all()


def _wait(app, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        app.processEvents()
        time.sleep(0.005)


def _answer(app, view, filters, change: Callable[[], object]) -> tuple[float, float, float, float]:
    """Return ms: until lanes show it, until the whole window does, until lanes show it exactly, longest stall."""
    painted = []
    paint = type(view)._paint

    def noted() -> None:
        paint(view)
        if not filters.is_pending:
            painted.append(time.perf_counter())

    view._paint = noted
    start = last = time.perf_counter()
    change()
    stall = time.perf_counter() - start
    whole = 0.0
    while True:
        app.processEvents()
        now = time.perf_counter()
        stall, last = max(stall, now - last), now
        if not whole and not filters.is_pending:
            app.processEvents()
            whole = time.perf_counter() - start
        if whole and (view.source.is_refined or not view.visible_rows()):
            del view._paint
            lanes = painted[0] - start if painted else whole
            return lanes * 1e3, whole * 1e3, (time.perf_counter() - start) * 1e3, stall * 1e3
        time.sleep(0.0005)
