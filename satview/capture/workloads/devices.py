"""A workload with a device whose interrupts are so frequent that nothing else runs."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    ChannelCreate,
    Compute,
    ConnectAttach,
    InterruptAttach,
    InterruptAttachEvent,
    InterruptUnmask,
    MsgReceive,
    Sigevent,
    ThreadCtl,
)
from satview.capture.sim.parts.threads import Program
from satview.capture.workloads.parts import MS, US

VECTOR = 9
CALM_NS, FLOOD_NS = 4 * MS, 30 * US
FLOOD_BEGINS_MS, FLOOD_ENDS_MS = 60, 130


def setup_interrupt_flood(kernel: Kernel) -> None:
    """Start a device that floods CPU 0 with interrupts between 60 and 130 ms, its driver, and a program on CPU 0."""
    machine = kernel.machine
    begin, ms = machine.now, machine.target.cycles(MS)

    def gap() -> int:
        is_flood = begin + FLOOD_BEGINS_MS * ms <= machine.now < begin + FLOOD_ENDS_MS * ms
        return int((FLOOD_NS if is_flood else CALM_NS) * (0.8 + 0.4 * machine.random.random()))

    kernel.device(VECTOR, gap)
    kernel.spawn("sbin/devc-wild", _driver, kernel, priority=21, thread_name="driver")
    kernel.spawn("usr/bin/victim", _victim, priority=10, thread_name="victim", runmask=1)


def _driver(kernel: Kernel) -> Program:
    chid = yield ChannelCreate()
    coid = yield ConnectAttach(0, chid)
    pulse = Sigevent("pulse", coid, 21, code=3)
    count = [0]

    def handler() -> Sigevent | None:
        count[0] += 1
        return pulse if count[0] % 8 == 1 else None

    if kernel.target.has_handlers:
        yield ThreadCtl()
        yield InterruptAttach(VECTOR, handler, 12 * US)
        while True:
            yield MsgReceive(chid)
            yield Compute(40 * US)
    ident = yield InterruptAttachEvent(VECTOR, pulse)
    while True:
        yield MsgReceive(chid)
        yield Compute(12 * US)
        yield InterruptUnmask(VECTOR, ident)


def _victim() -> Program:
    while True:
        yield Compute(5 * MS)
