"""Workloads with adaptive partitions that together need more CPU time than exists."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import Compute, SchedJoinPartition, Sleep, ThreadCreate
from satview.capture.sim.parts.threads import Policy, Program
from satview.capture.workloads.parts import MS, US

SHARES = (("Drivers", 30, 10), ("Multimedia", 20, 0))  # name, percent, critical ms


def setup_partitions(kernel: Kernel) -> None:
    """Start a CPU-bound thread limited to 20 % in Multimedia, and a driver that exceeds its critical budget."""
    drivers, multimedia = kernel.partitions(*SHARES)
    kernel.spawn("opt/media/player", _hog, multimedia.ident, priority=30, policy=Policy.FIFO, thread_name="hog")
    kernel.spawn(
        "sbin/devc-critical", _critical, drivers.ident, priority=25, policy=Policy.FIFO, thread_name="critical"
    )
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
    yield Compute(80 * MS)  # far above budget and critical budget
    while True:
        yield Sleep(20 * MS)
        yield Compute(4 * MS)


def _background() -> Program:
    while True:
        yield Compute(3 * MS)


def setup_partition_starvation(kernel: Kernel) -> None:
    """Start a thread that uses up the budget of its partition, so that another thread of the partition starves."""
    [telemetry] = kernel.partitions(("Telemetry", 20, 0))

    def main() -> Program:
        yield SchedJoinPartition(telemetry.ident)
        yield ThreadCreate(_sampler, (telemetry.ident,), 20, Policy.FIFO, "sampler")
        yield ThreadCreate(_uploader, (telemetry.ident,), 15, Policy.FIFO, "uploader")

    kernel.spawn("opt/telemetry", main, priority=25)
    kernel.spawn("usr/bin/render", _background, priority=10, thread_name="render")


def _sampler(partition: int) -> Program:
    yield SchedJoinPartition(partition)
    yield Sleep(30 * MS)  # no problem until now
    while True:
        yield Compute(2 * MS)  # the mistake: it samples without a pause


def _uploader(partition: int) -> Program:
    yield SchedJoinPartition(partition)
    while True:
        yield Sleep(10 * MS)
        yield Compute(100 * US)
