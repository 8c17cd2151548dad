"""What tracing costs a Python program per operation, and how fast its traces are read (docs/threadtrace.md)."""

from __future__ import annotations

import queue
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from satview.formats.registry import open_trace
from satview.threadtrace.install import tracing

_ROUNDS = 7


def run(arguments: list[str]) -> None:
    """Print cost per operation without and with tracing; the argument is the number of operations per round."""
    count = int(arguments[0]) if arguments else 20_000
    directory = Path(tempfile.mkdtemp(prefix="satview-threadtrace-"))
    try:
        print(f"ns of processor time per operation, median of {_ROUNDS} rounds")
        print(f"{'operation':34}{'plain':>10}{'traced':>10}{'at once':>10}{'added':>10}")
        for name, make in OPERATIONS.items():
            plain = _median_ns(make(), count)
            with tracing(str(directory / "buffered")):
                traced = _median_ns(make(), count)
            with tracing(str(directory / "direct"), direct=True):
                direct = _median_ns(make(), max(1, count // 10))
            print(f"{name:34}{plain:10.0f}{traced:10.0f}{direct:10.0f}{traced - plain:10.0f}")
        _reading(directory / "buffered")
    finally:
        shutil.rmtree(directory)


def _median_ns(operation: Callable[[int], None], count: int) -> float:
    times = []
    for _ in range(_ROUNDS):
        start = time.process_time_ns()
        operation(count)
        times.append((time.process_time_ns() - start) / count)
    return statistics.median(times)


def _reading(directory: Path) -> None:
    """Print how fast traces are read, and how fast their lines alone are found: the floor."""
    line = b":3:4321:5:2:2:1:65552:0:0:0:0\n"
    for part in range(4):
        with (directory / f"tr.0000001.{part:03x}").open("wb") as file:
            file.writelines(b"1700000000:%d%s" % (n * 4 + part, line) for n in range(250_000))
    files = sorted(directory.glob("tr.0000001.*"))
    start = time.perf_counter()
    floor = sum(np.count_nonzero(np.frombuffer(file.read_bytes(), np.uint8) == 10) for file in files)
    floor_s = time.perf_counter() - start
    start = time.perf_counter()
    trace = open_trace(files[0])
    took_s = time.perf_counter() - start
    assert len(trace.events) == floor
    size = sum(file.stat().st_size for file in files)
    print(
        f"\nreading {len(trace.events):,} records, {size / 1e6:.0f} MB: {took_s:.2f} s, "
        f"{len(trace.events) / took_s / 1e6:.2f} million a second; counting their lines takes {floor_s:.3f} s"
    )


def _lock() -> Callable[[int], None]:
    lock = threading.Lock()

    def run_it(count: int) -> None:
        for _ in range(count):
            with lock:
                pass

    return run_it


def _rlock() -> Callable[[int], None]:
    lock = threading.RLock()

    def run_it(count: int) -> None:
        for _ in range(count):
            with lock:
                pass

    return run_it


def _semaphore() -> Callable[[int], None]:
    semaphore = threading.Semaphore(1)

    def run_it(count: int) -> None:
        for _ in range(count):
            semaphore.acquire()
            semaphore.release()

    return run_it


def _event() -> Callable[[int], None]:
    event = threading.Event()

    def run_it(count: int) -> None:
        for _ in range(count):
            event.set()
            event.clear()

    return run_it


def _notify() -> Callable[[int], None]:
    condition = threading.Condition()

    def run_it(count: int) -> None:
        with condition:
            for _ in range(count):
                condition.notify()

    return run_it


def _queue() -> Callable[[int], None]:
    items: queue.Queue[int] = queue.Queue()

    def run_it(count: int) -> None:
        for i in range(count):
            items.put(i)
            items.get()

    return run_it


def _thread() -> Callable[[int], None]:
    def run_it(count: int) -> None:
        for _ in range(max(1, count // 100)):
            thread = threading.Thread(target=int)
            thread.start()
            thread.join()

    return lambda count: run_it(count * 100 if count <= 500 else count)


OPERATIONS: dict[str, Callable[[], Callable[[int], None]]] = {
    "Lock: acquire and release": _lock, "RLock: acquire and release": _rlock,
    "Semaphore: acquire and release": _semaphore, "Event: set and clear": _event, "Condition: notify": _notify,
    "Queue: put and get": _queue, "Thread: start and join (/100)": _thread,
}  # fmt: skip
