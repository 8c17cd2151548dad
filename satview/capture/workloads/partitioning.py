"""Adaptive partitions: who gets what when everybody wants more than there is."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import Compute, SchedJoinPartition, Sleep
from satview.capture.sim.threads import Policy, Program
from satview.capture.workloads.parts import MS

SHARES = (("Drivers", 30, 10), ("Multimedia", 20, 0))   # name, percent, critical ms


def setup_partitions(kernel: Kernel) -> None:
    """A hog in Multimedia gets its 20 % and no more; a critical driver overdraws and goes bankrupt."""
    drivers, multimedia = kernel.partitions(*SHARES)
    kernel.spawn("opt/media/player", _hog, multimedia.ident, priority=30, policy=Policy.FIFO, thread_name="hog")
    kernel.spawn("sbin/devc-critical", _critical, drivers.ident, priority=25, policy=Policy.FIFO,
                 thread_name="critical")
    kernel.spawn("usr/bin/shell", _background, priority=10, thread_name="background")


def _hog(partition: int) -> Program:
    yield SchedJoinPartition(partition)
    while True:
        yield Compute(5 * MS)


def _critical(partition: int) -> Program:
    yield SchedJoinPartition(partition, is_critical=True)
    for _ in range(8):
        yield Sleep(20 * MS)
        yield Compute(4 * MS)
    yield Sleep(100 * MS)
    yield Compute(80 * MS)            # far beyond budget and critical budget
    while True:
        yield Sleep(20 * MS)
        yield Compute(4 * MS)


def _background() -> Program:
    while True:
        yield Compute(3 * MS)
