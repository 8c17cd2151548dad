"""Small captures for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from satview.capture.buffers import Buffer, start_of_file
from satview.capture.kernel import Kernel, mode
from satview.capture.run import MemorySink
from satview.capture.sim.target import Target, target
from satview.capture.sim.truth import Truth
from satview.capture.workloads import registry
from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev.header import write_kev
from satview.formats.kev.reader import open_kev
from satview.store.trace import Trace

MS = 1_000_000
ALL = (("ADDALLCLASSES",),)
WIDE = (("ADDALLCLASSES",), ("SETALLCLASSESWIDE",))
FAST = (("ADDALLCLASSES",), ("SETALLCLASSESFAST",))


@dataclass
class Traced:
    """A finished capture; `since` is when the dump of START was over."""

    kernel: Kernel
    trace: Trace
    since: int
    truth: Truth


def kernel(
    release: Release = Release.QNX_7,
    cpus: int = 1,
    seed: int = 1,
    buffers: int = 8,
    modes: tuple[tuple[Any, ...], ...] = ALL,
    skew_ns: int | None = None,
    slots: int = 0,
) -> tuple[Kernel, MemorySink]:
    """Return a booted kernel with buffers (of `slots` slots, else as usual), filters set, not yet tracing."""
    kind = target(release, cpus, skew_ns=skew_ns)
    made = Kernel(with_buffers(kind, slots) if slots else kind, seed)
    sink = MemorySink()
    made.trace_event(mode("ALLOCBUFFER"), buffers, [])
    made.control.hook = sink
    for name, *args in modes:
        made.trace_event(mode(name), *args)
    return made, sink


def with_buffers(kind: Target, slots: int) -> Target:
    """Return a target whose buffers are handed over after some slots."""
    return replace(kind, slots_per_buffer=slots + 40, mark_linear=slots, mark_ring=slots)


class SlowLogger:
    """Takes the waiting buffers only at every `every`-th hand-over, by index: some are lost, some out of order."""

    def __init__(self, made: Kernel, every: int = 6) -> None:
        self._made = made
        self._every = every
        self._count = 0
        self.words: list[int] = []

    def __call__(self, _buffer: Buffer) -> None:
        self._count += 1
        if self._count % self._every == 1:
            self.take()

    def take(self) -> None:
        """Take what waits now."""
        buffers = self._made.emitter.buffers
        for ring in buffers.rings if buffers is not None else ():
            for buffer in ring.oldest_first() if ring.is_ring else ring.buffers:
                if buffer.is_full or ring.is_ring:
                    self.words += buffer.words
                    buffer.empty()

    def slots(self) -> np.ndarray:
        """Return everything so far, shape (n, 4)."""
        return np.array(self.words, np.uint32).reshape(-1, 4)


def damaged(
    setup: Callable[[Kernel], None],
    ms: float,
    folder: Path,
    release: Release,
    cpus: int,
    *,
    ring: bool,
    wide: bool,
    slots: int = 16,
    skew_ns: int | None = None,
    classes: tuple[tuple[Any, ...], ...] = ALL,
) -> Traced:
    """Trace a workload through a few tiny buffers: in linear mode with a slow logger, in ring mode what is left."""
    made = Kernel(with_buffers(target(release, cpus, skew_ns=skew_ns), slots), seed=5)
    logger = SlowLogger(made)
    made.trace_event(mode("ALLOCBUFFER"), 4, [])
    made.control.hook = (lambda _buffer: None) if ring else logger
    for name, *args in (
        *classes,
        ("SETALLCLASSESWIDE" if wide else "SETALLCLASSESFAST",),
        ("SETRINGMODE" if ring else "SETLINEARMODE",),
        ("START",),
    ):
        made.trace_event(mode(name), *args)
    since = made.machine.now
    setup(made)
    run(made, ms)
    if not ring:
        made.trace_event(mode("FLUSHBUFFER"))
    made.trace_event(mode("STOP"))
    made.machine.close()
    logger.take()
    return Traced(made, as_trace(made, logger.slots(), folder), since, made.machine.truth)


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


def traced(
    setup: Callable[[Kernel], None],
    ms: float,
    folder: Path,
    release: Release = Release.QNX_7,
    cpus: int = 1,
    seed: int = 1,
    modes: tuple[tuple[Any, ...], ...] = ALL,
    skew_ns: int | None = None,
) -> Traced:
    """Trace a workload from its very start."""
    made, sink = kernel(release, cpus, seed, modes=modes, skew_ns=skew_ns)
    made.trace_event(mode("START"))
    since = made.machine.now
    setup(made)
    run(made, ms)
    return Traced(made, as_trace(made, finish(made, sink), folder), since, made.machine.truth)


def names(trace: Trace) -> list[str]:
    """Return the name of every event in time order."""
    return [trace.catalogue.name(int(code)) for code in trace.events.code]


def events(trace: Trace, *requested: str, skew: Sequence[int] = ()) -> list[tuple[int, str, tuple[int, ...]]]:
    """Return (time, name, payload words) of the events with one of some names; times without the skew of their CPUs."""
    found, ahead = [], [*skew, *[0] * (64 - len(skew))]
    for row, code in enumerate(trace.events.code):
        name = trace.catalogue.name(int(code))
        if not requested or name in requested:
            time = int(trace.events.time_cycles[row]) - ahead[trace.events.cpu[row]]
            found.append((time, name, tuple(int(w) for w in trace.payloads.words(row))))
    return found


def lines(slots: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return (code, cpu, word 0, word 1) of every simple slot or first slot of an event."""
    found = []
    for header, _, first, second in slots.tolist():
        if header >> 30 < 2:
            found.append((header & wire.CODE_MASK, header >> 24 & 63, first, second))
    return found


def made_of_lesson(name: str, release: Release, wide: bool, loss: bool, folder: Path) -> Traced:
    """Return a capture of a lesson, at most 100 ms, 20 ms of the car; with losses 50 ms through a few small buffers."""
    lesson = registry.find(name)
    ms = 20 if name == "automotive" else min(lesson.duration_ns / 1e6, 100)
    if loss:
        return damaged(
            lesson.setup, min(ms, 50), folder, release, lesson.cpus, ring=False, wide=wide, slots=60, skew_ns=0
        )
    return traced(lesson.setup, ms, folder, release, lesson.cpus, 5, WIDE if wide else FAST, skew_ns=0)
