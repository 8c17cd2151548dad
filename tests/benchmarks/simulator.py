"""Simulator: events per second, the emit path off / static / dynamic filter, the streaming generator.

Args: [--events MILLIONS] [--keep FILE].
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from satview.capture.emit import EventData
from satview.capture.kernel import Kernel, mode
from satview.capture.run import MemorySink, make_tile, write_tiles
from satview.capture.sim.target import target
from satview.capture.workloads.registry import find
from satview.events.spec import Release
from satview.filters.external import ExternalClass as Class

SIMULATED_NS = 1_000_000_000


def run(argv: list[str]) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="simulator")
    parser.add_argument("--events", type=float, default=10, help="millions of events for the generator")
    parser.add_argument("--keep", help="write the generated file there and keep it")
    args = parser.parse_args(argv)
    filters: dict[str, tuple[tuple[Any, ...], ...]] = {
        "everything off": (("DELALLCLASSES",),),
        "all, fast": (("ADDALLCLASSES",), ("SETALLCLASSESFAST",)),
        "all, wide": (("ADDALLCLASSES",), ("SETALLCLASSESWIDE",)),
        "static filter: one class": (("ADDCLASS", Class.COMM),),
        "dynamic filter: handlers on 3 classes": (
            ("ADDALLCLASSES",),
            ("SETALLCLASSESFAST",),
            *(
                ("ADDCLASSEVHANDLER", cls, lambda _data: 1, EventData())
                for cls in (Class.KERCALL, Class.THREAD, Class.COMM)
            ),
        ),
    }
    print("simulator, automotive on 4 CPUs, one simulated second")
    floor = _simulate(())[0]
    print(f"{'floor: no tracing, no buffers':40} {floor:6.2f} s")
    for name, modes in filters.items():
        seconds, events = _simulate(modes)
        rate = f"{events / seconds:10,.0f} events/s" if events > 1000 else f"{events:10} events"
        print(f"{name:40} {seconds:6.2f} s  ratio {seconds / floor:5.2f}  {rate}")
    _emit_path()
    _generator(int(args.events * 1_000_000), args.keep)


def _kernel(modes: tuple[tuple[Any, ...], ...]) -> tuple[Kernel, MemorySink]:
    kernel, sink = Kernel(target(Release.QNX_7, 4), 7), MemorySink()
    find("automotive").setup(kernel)
    kernel.machine.run(kernel.machine.now + kernel.target.cycles(100_000_000))
    if modes:
        kernel.trace_event(mode("ALLOCBUFFER"), 32, [])
        kernel.control.hook = sink
        for name, *arguments in modes:
            kernel.trace_event(mode(name), *arguments)
        kernel.trace_event(mode("START"))
    return kernel, sink


def _best_of(timed: Callable[[], float], runs: int = 3) -> float:
    return min(timed() for _ in range(runs))


def _simulate(modes: tuple[tuple[Any, ...], ...]) -> tuple[float, int]:
    emitted = 0

    def once() -> float:
        nonlocal emitted
        kernel, _ = _kernel(modes)
        start = time.perf_counter()
        kernel.machine.run(kernel.machine.now + kernel.target.cycles(SIMULATED_NS))
        emitted = kernel.emitter.emitted
        return time.perf_counter() - start

    return _best_of(once), emitted


def _emit_path(calls: int = 200_000) -> None:
    """The emit point alone, on one state event: what a kernel pays where nothing is recorded."""

    def empty(_cpu: int, _time: int, _thread: object) -> None:
        return

    def timed(modes: tuple[tuple[Any, ...], ...], function: Any = None) -> float:
        kernel, _ = _kernel(modes)
        thread = kernel.machine.processes[1].threads[1]
        emit = function or kernel.emitter.thread_state

        def once() -> float:
            start = time.perf_counter_ns()
            for i in range(calls):
                emit(0, 1000 + i, thread)
            return (time.perf_counter_ns() - start) / calls

        return _best_of(once)

    floor = timed((), empty)
    print(f"emit point, one THREAD event\n{'floor: an empty call':40} {floor:6.0f} ns")
    on = (("ADDEVENT", Class.THREAD, 0x7FFFFFF),)
    pid = (("SETCLASSPID", Class.THREAD, 99),)
    handler = (("ADDCLASSEVHANDLER", Class.THREAD, lambda _data: 0, EventData()),)
    for name, modes in (
        ("off", (("DELALLCLASSES",),)),
        ("static: suppressed by pid", on + pid),
        ("dynamic: suppressed by a handler", on + handler),
        ("written", on),
    ):
        ns = timed(modes)
        print(f"{name:40} {ns:6.0f} ns  ratio {ns / floor:5.1f}")


def _generator(events: int, keep: str | None) -> None:
    process = psutil.Process()
    start = time.perf_counter()
    tile = make_tile()
    print(f"generator: tile of {tile.events:,} events made in {time.perf_counter() - start:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(keep) if keep else Path(folder) / "generated.kev"
        before = process.memory_info().rss
        most = before

        def watch(_share: float) -> None:
            nonlocal most
            most = max(most, process.memory_info().rss)

        start = time.perf_counter()
        written = write_tiles(path, events, tile, watch)
        seconds = time.perf_counter() - start
        size = path.stat().st_size
        start = time.perf_counter()
        with path.with_suffix(".floor").open("wb") as floor:  # the same bytes, nothing computed
            data = bytes(tile.slots.nbytes)
            for _ in range(-(-size // len(data))):
                floor.write(data)
        floor_seconds = time.perf_counter() - start
        path.with_suffix(".floor").unlink()
    print(
        f"{written:,} events, {size / 1e6:,.0f} MB in {seconds:.2f} s: {written / seconds / 1e6:.1f} M events/s; "
        f"floor {floor_seconds:.2f} s, ratio {seconds / floor_seconds:.2f}; memory +{(most - before) / 1e6:.1f} MB"
    )
