"""Workloads with two threads: of high and low priority, as in the guide, and of equal priority."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    ClockTime,
    Compute,
    InterruptAttachEvent,
    InterruptUnmask,
    InterruptWait,
    SchedYield,
    ThreadCreate,
    ThreadCtl,
)
from satview.capture.sim.parts.threads import Policy, Program
from satview.capture.workloads.parts import MS, US

HIGH, LOW = 20, 10
DEVICE_VECTOR = 5


def setup_two_threads(kernel: Kernel) -> None:
    """Start thread A, which waits for I/O, and thread B, which computes and is preempted when the I/O completes."""
    gaps = iter((12 * MS, None))
    kernel.device(DEVICE_VECTOR, lambda: next(gaps, None))
    kernel.spawn("usr/bin/two_threads", _main, priority=30, thread_name="main")


def _main() -> Program:
    yield Compute(2 * MS)  # meanwhile the logger starts
    yield ThreadCreate(_a, (), HIGH, Policy.FIFO, "A")
    yield ThreadCreate(_b, (), LOW, Policy.FIFO, "B")


def _a() -> Program:
    """Run thread A: created (t1), blocks for I/O (t2), resumes when the I/O completes (t6), ends (t7)."""
    yield ThreadCtl()
    ident = yield InterruptAttachEvent(DEVICE_VECTOR)
    yield InterruptWait()
    yield InterruptUnmask(DEVICE_VECTOR, ident)
    yield Compute(800 * US)


def _b() -> Program:
    """Run thread B: created (t3), makes kernel calls (t4), preempted (t5), continues (t8)."""
    for _ in range(6):
        yield Compute(1500 * US)
        yield ClockTime()
    yield Compute(9 * MS)


def setup_polite(kernel: Kernel) -> None:
    """Start two threads of equal priority that yield the CPU to each other."""
    kernel.spawn("usr/bin/polite", _polite_main, priority=30)


def _polite_main() -> Program:
    yield Compute(2 * MS)
    for name in ("after-you", "no-after-you"):
        yield ThreadCreate(_polite, (), LOW, Policy.FIFO, name)


def _polite() -> Program:
    for _ in range(20):
        yield Compute(600 * US)
        yield SchedYield()
