"""Live: what one look at a growing file costs the window, and the worker; the floor is painting the whole window.

"Change over" is all that the window does to show the longer reading; "stall" the longest time it did not answer, the
first frame of the reading included; "look" the time from the file's growth to the change, rest left out. Without a
filter, then with a condition. Then the memory that following costs per event (resident bytes, against the window with
a fiftieth of the file; as many looks as slots allow), what stays after closing, and twenty opens of one file, without
the collector. Args: millions of slots... (default: the dense sample, 1 and 10).
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks._live import new_window, resident_bytes, spin
from tests.benchmarks.made_traces import make_file

DENSE = Path(__file__).parents[2] / "sample_traces" / "dense-4cpu.kev"
LOOKS = 12
MEMORY_LOOKS = 40
REOPENS = 20
SLOTS_PER_LOOK = 5_000
CONDITION = "duration > 2us"


def run(args: list[str]) -> None:
    """Print two lines per trace."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    sys.setswitchinterval(0.001)
    folder = Path(tempfile.gettempdir())
    millions = [float(arg) for arg in args or ("1", "10")]
    files = [make_file(folder / f"satview-mixed-200-4-{m:g}m.kev", int(m * 1e6)) for m in millions]
    for path in files if args else [DENSE, *files]:
        with tempfile.TemporaryDirectory() as beside:
            _measure(path.read_bytes(), Path(beside) / path.name)
            _memory(path.read_bytes(), Path(beside) / path.name)


def _measure(data: bytes, path: Path) -> None:
    from satview.session.loading import files

    files.POLL_MS, files._REST_FACTOR = 20, 0.0
    app, application, window = new_window()
    step = SLOTS_PER_LOOK * 16
    end = len(data) - 2 * (LOOKS + 2) * step
    path.write_bytes(data[:end])
    window.session.open(path, is_followed=True)
    spin(app, lambda: window.session.opened is not None)
    opened = window.session.opened
    begun: list[float] = []
    changes: list[float] = []
    opened.begins_reload.connect(lambda: begun.append(time.perf_counter()))
    window.session.reloaded.connect(lambda: changes.append(_ms_since(begun[-1])))
    floor_ms = statistics.median(_ms(window.grab) for _ in range(LOOKS))
    for name in ("no filter", CONDITION):
        if name == CONDITION:
            opened.filters.add_pass(CONDITION)
        looks, stalls = [], []
        for _ in range(LOOKS + 2):
            spin(app, lambda: False, 0.3)  # frames of the reading before are refined by now
            count = len(changes)
            with path.open("ab") as file:
                file.write(data[end : end + step])
            end += step
            start = time.perf_counter()
            stall = spin(app, lambda count=count: len(changes) > count)
            looks.append((begun[-1] - start) * 1e3)
            stalls.append(max(stall, spin(app, lambda: False, 0.1)))
        mine = changes[-LOOKS:]
        print(
            f"{len(opened.trace.events):>10,} events, {name:14}: change over median {statistics.median(mine):5.1f}, "
            f"worst {max(mine):5.1f} ms; stall median {statistics.median(stalls[2:]):5.1f}, worst "
            f"{max(stalls[2:]):5.1f} ms; look {statistics.median(looks[2:]):6.0f} ms; floor {floor_ms:.1f} ms, "
            f"change/floor {statistics.median(mine) / floor_ms:.2f}, stall/floor "
            f"{statistics.median(stalls[2:]) / floor_ms:.1f}",
            flush=True,
        )
    application.close_all()


def _memory(data: bytes, path: Path) -> None:
    from satview.session.loading import files

    files.POLL_MS, files._REST_FACTOR = 20, 0.0
    app, application, window = new_window()
    step = len(data) // (MEMORY_LOOKS + 1) // 16 * 16
    end = len(data) - MEMORY_LOOKS * step
    path.write_bytes(data[:end])
    gc.collect()
    gc.disable()
    window.session.open(path, is_followed=True)
    spin(app, lambda: window.session.opened is not None)
    spin(app, lambda: False, 1.0)
    before, first = resident_bytes(), len(window.session.opened.trace.events)
    changes: list[int] = []
    window.session.reloaded.connect(lambda: changes.append(1))
    for _ in range(MEMORY_LOOKS):
        count = len(changes)
        with path.open("ab") as file:
            file.write(data[end : end + step])
        end += step
        spin(app, lambda count=count: len(changes) > count)
    spin(app, lambda: False, 1.0)
    more = len(window.session.opened.trace.events) - first
    followed = resident_bytes()
    window.session.close()
    spin(app, lambda: False, 1.0)
    print(
        f"{more:>10,} events followed: {(followed - before) / more:.0f} bytes an event; "
        f"after closing {(resident_bytes() - before) / 1e6:+.0f} MB",
        flush=True,
    )
    used_mb = []
    for _ in range(REOPENS):
        window.session.open(path)
        spin(app, lambda: window.session.stage == "ready")
        spin(app, lambda: False, 0.3)
        used_mb.append(resident_bytes() / 1e6)
    print(
        f"{'':>10} opened {REOPENS} times: {used_mb[0]:.0f} MB after the first, {used_mb[-1]:.0f} MB after the last, "
        f"{max(used_mb):.0f} MB at most",
        flush=True,
    )
    application.close_all()
    gc.enable()


def _ms(timed: Callable[[], object]) -> float:
    start = time.perf_counter()
    timed()
    return _ms_since(start)


def _ms_since(start: float) -> float:
    return (time.perf_counter() - start) * 1e3
