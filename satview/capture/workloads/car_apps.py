"""Display, sound and housekeeping of the simulated car."""

from __future__ import annotations

from satview.capture.sim.calls import (
    Compute,
    MsgSend,
    MutexLock,
    MutexUnlock,
    SchedSet,
    SemPost,
    SemWait,
    Sleep,
    Spawn,
    ThreadCreate,
    ThreadName,
    WaitPid,
)
from satview.capture.sim.parts.threads import Policy, Program
from satview.capture.workloads.car import Car
from satview.capture.workloads.parts import MS, US, periodic


def hmi(car: Car) -> Program:
    """Render frames that the composer requests."""
    screen = yield from car.screen.connect()
    yield ThreadCreate(_hmi_frames, (car, screen), 18, Policy.RR, "compose")
    yield ThreadCreate(_hmi_input, (car,), 20, Policy.RR, "touch")
    while True:
        yield SemWait(car.frame)
        yield Compute(car.vary(2 * MS, 5 * MS))
        for _ in range(2):
            yield MsgSend(screen, b"BLIT")


def _hmi_frames(car: Car, screen: int) -> Program:
    while True:
        yield Sleep(16 * MS)
        yield MsgSend(screen, b"VSYN")
        yield SemPost(car.frame)


def _hmi_input(car: Car) -> Program:
    log = yield from car.slog.connect()
    while True:
        yield Sleep(car.vary(60 * MS, 300 * MS))
        yield Compute(car.vary(50 * US, 300 * US))
        yield MsgSend(log, b"touch event\0")


def audio(car: Car) -> Program:
    """Mix sound every 10 ms."""

    def cycle(_count: int) -> Program:
        yield Compute(car.vary(150 * US, 450 * US))

    yield from periodic(10 * MS, cycle, priority=35, offset_ns=2 * MS)


def logger(car: Car) -> Program:
    """Write the log to disk; holds the configuration now and then."""
    disk = yield from car.disk.connect()
    log = yield from car.slog.connect()
    yield ThreadCreate(_log_rotate, (car,), 10, Policy.RR, "rotate")
    while True:
        yield Sleep(car.vary(9 * MS, 30 * MS))
        yield MsgSend(log, b"read\0")
        yield MutexLock(car.config_lock)
        yield Compute(car.vary(100 * US, 2 * MS))
        yield MutexUnlock(car.config_lock)
        yield MsgSend(disk, b"W" + bytes(31))


def _log_rotate(car: Car) -> Program:
    disk = yield from car.disk.connect()
    while True:
        yield Sleep(car.vary(80 * MS, 200 * MS))
        for _ in range(4):
            yield MsgSend(disk, b"R" + bytes(15))
            yield Compute(car.vary(50 * US, 700 * US))


def map_update(car: Car) -> Program:
    """Two hogs of equal priority: their time slices show."""
    yield ThreadCreate(_tiles, (car,), 8, Policy.RR, "tiles-2")
    yield ThreadCreate(_tiles, (car,), 8, Policy.RR, "tiles-3")
    yield from _tiles(car)


def _tiles(car: Car) -> Program:
    net = yield from car.net.connect()
    while True:
        for _ in range(6):
            yield MsgSend(net, b"RECV")
            yield Compute(car.vary(200 * US, 900 * US))
        yield Compute(car.vary(8 * MS, 40 * MS))
        yield Sleep(car.vary(20 * MS, 70 * MS))


def watchdog(car: Car) -> Program:
    """Kick the watchdog, under sporadic scheduling."""
    yield SchedSet(60, Policy.SPORADIC, low_priority=11, budget_ns=2 * MS, period_ns=50 * MS)
    while True:
        yield Sleep(100 * MS)
        yield Compute(car.vary(40 * US, 3 * MS))


def diag(car: Car) -> Program:
    """Read the trouble codes: a process of its own each time."""
    yield Sleep(1200 * MS)
    while True:
        pid = yield Spawn("usr/bin/dtc_dump", _dtc_dump, (car,))
        yield WaitPid(pid)
        yield Sleep(4000 * MS)


def _dtc_dump(car: Car) -> Program:
    yield ThreadName("dump")
    can = yield from car.can.connect()
    helper = yield ThreadCreate(_dtc_helper, (car,), 12, Policy.RR, "format")
    for i in range(40):
        yield MsgSend(can, b"DTC?" + i.to_bytes(4, "little"))
        yield Compute(car.vary(200 * US, MS))
        yield Sleep(5 * MS)
    return helper


def _dtc_helper(car: Car) -> Program:
    for _ in range(20):
        yield Sleep(9 * MS)
        yield Compute(car.vary(100 * US, 800 * US))
