"""Live for hours: the memory of a window that follows a file written at full pace. Args: minutes (10).

37,500 slots a second (the automotive workload in real time, as `tracelogger` writes them) are appended twenty times a
second, statistics shown, looks as often as the program itself does. Prints bytes per event, against the window with
the first second: at rest, the mean while it grows, the most; and what stays after closing. Without the collector.
"""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
from pathlib import Path

from tests.benchmarks._live import new_window, resident_bytes, spin
from tests.benchmarks.made_traces import make_file

SLOTS_PER_S = 37_500
STEPS_PER_S = 20
SAMPLE_S = 0.2


def run(args: list[str]) -> None:
    """Print a line per minute, then the result."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    minutes = float(args[0]) if args else 10.0
    slots = int((minutes * 60 + 2) * SLOTS_PER_S)
    source = make_file(Path(tempfile.gettempdir()) / f"satview-mixed-200-4-{slots / 1e6:g}m.kev", slots)
    with tempfile.TemporaryDirectory() as folder:
        _follow(source, Path(folder) / "growing.kev", minutes * 60)


def _follow(source: Path, path: Path, seconds: float) -> None:
    app, application, window = new_window()
    with source.open("rb") as data:
        path.write_bytes(data.read(SLOTS_PER_S * 16))
        gc.collect()
        gc.disable()
        window.session.open(path, is_followed=True)
        spin(app, lambda: window.session.opened is not None)
        spin(app, lambda: False, 3.0)
        before, first = resident_bytes(), len(window.session.opened.trace.events)
        writer = threading.Thread(target=_write, args=(data, path, seconds))
        start = time.perf_counter()
        writer.start()
        samples = []
        while writer.is_alive():
            spin(app, lambda: False, SAMPLE_S)
            samples.append((time.perf_counter() - start, len(window.session.opened.trace.events), resident_bytes()))
            if samples[-1][0] // 60 > (samples[-2][0] if len(samples) > 1 else 0) // 60:
                _, events, resident = samples[-1]
                print(f"{samples[-1][0]:6.0f} s {events:>12,} events, {(resident - before) / 1e6:6.0f} MB", flush=True)
        writer.join()
    count = path.stat().st_size // 16
    spin(app, lambda: window.session.opened.trace.slot_count > count - 4096, 60.0)
    spin(app, lambda: False, 5.0)
    events = len(window.session.opened.trace.events) - first
    at_rest = resident_bytes() - before
    late = [(resident - before) / (count - first) for at, count, resident in samples if at > seconds / 2]
    window.session.close()
    spin(app, lambda: False, 2.0)
    print(
        f"{events:,} events followed for {seconds / 60:g} minutes ({events / seconds:,.0f} a second): "
        f"{at_rest / events:.1f} bytes an event at rest, in the second half {sum(late) / len(late):.1f} on average, "
        f"{max(late):.1f} at most; after closing {(resident_bytes() - before) / 1e6:+.0f} MB",
        flush=True,
    )
    application.close_all()
    gc.enable()


def _write(data, path: Path, seconds: float) -> None:
    start, written = time.perf_counter(), 0
    with path.open("ab") as file:
        while written < seconds * SLOTS_PER_S:
            due = min(seconds, time.perf_counter() - start) * SLOTS_PER_S
            count = int(due) - written
            file.write(data.read(count * 16))
            file.flush()
            written += count
            if written >= int(seconds * SLOTS_PER_S):
                return
            time.sleep(1 / STEPS_PER_S)
