"""Small captures for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from satview.capture.files import start_of_file
from satview.capture.kernel import Kernel
from satview.capture.sim.target import target
from satview.capture.sim.truth import Truth
from satview.capture.sinks import MemorySink
from satview.capture.trace_event import mode
from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev
from satview.formats.kev.writer import write_kev
from satview.store.trace import Trace

MS = 1_000_000
ALL = (("ADDALLCLASSES",),)


@dataclass
class Traced:
    """A finished capture; `since` is when the dump of START was over."""

    kernel: Kernel
    trace: Trace
    since: int
    truth: Truth


def kernel(release: Release = Release.QNX_7, cpus: int = 1, seed: int = 1, buffers: int = 8,
           modes: tuple[tuple[Any, ...], ...] = ALL) -> tuple[Kernel, MemorySink]:
    """Return a booted kernel with buffers, filters set, not yet tracing."""
    made = Kernel(target(release, cpus), seed)
    sink = MemorySink()
    made.trace_event(mode("ALLOCBUFFER"), buffers, [])
    made.control.hook = sink
    for name, *args in modes:
        made.trace_event(mode(name), *args)
    return made, sink


def run(made: Kernel, ms: float) -> None:
    """Run for some simulated milliseconds."""
    machine = made.machine
    machine.run(machine.now + machine.target.cycles(int(ms * MS)))


def finish(made: Kernel, sink: MemorySink) -> np.ndarray:
    """Flush, stop, return the slots."""
    made.trace_event(mode("FLUSHBUFFER"))
    made.trace_event(mode("STOP"))
    made.machine.close()
    return sink.slots()


def as_trace(made: Kernel, slots: np.ndarray, folder: Path) -> Trace:
    """Write slots to a file and read it back."""
    pairs, page, order = start_of_file(made.target, "made.kev", made.machine.truth.start)
    write_kev(folder / "made.kev", pairs, page, slots, order)
    return open_kev(folder / "made.kev")


def traced(setup: Callable[[Kernel], None], ms: float, folder: Path, release: Release = Release.QNX_7, cpus: int = 1,
           seed: int = 1, modes: tuple[tuple[Any, ...], ...] = ALL) -> Traced:
    """Trace a workload from its very start."""
    made, sink = kernel(release, cpus, seed, modes=modes)
    made.trace_event(mode("START"))
    since = made.machine.now
    setup(made)
    run(made, ms)
    return Traced(made, as_trace(made, finish(made, sink), folder), since, made.machine.truth)


def names(trace: Trace) -> list[str]:
    """Return the name of every event in time order."""
    return [trace.catalogue.name(int(code)) for code in trace.events.code]


def events(trace: Trace, *wanted: str) -> list[tuple[int, str, tuple[int, ...]]]:
    """Return (time, name, payload words) of the events with one of some names."""
    found = []
    for row, code in enumerate(trace.events.code):
        name = trace.catalogue.name(int(code))
        if not wanted or name in wanted:
            found.append((int(trace.events.time_cycles[row]), name, tuple(int(w) for w in trace.payloads.words(row))))
    return found


def lines(slots: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return (code, cpu, word 0, word 1) of every simple slot or first slot of an event."""
    found = []
    for header, _, first, second in slots.tolist():
        if header >> 30 < 2:
            found.append((header & wire.CODE_MASK, header >> 24 & 63, first, second))
    return found
