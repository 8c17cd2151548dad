"""A workload like a development target with light load, on which the tutorial's programs run."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    Compute,
    CondSignal,
    CondWait,
    ConnectClientInfo,
    InterruptAttachEvent,
    InterruptUnmask,
    InterruptWait,
    MsgInfo,
    MsgRead,
    MsgReply,
    MsgSend,
    MutexLock,
    MutexUnlock,
    Ring0,
    Sleep,
    Spawn,
    ThreadCreate,
    ThreadCtl,
    WaitPid,
)
from satview.capture.sim.calls.messages import Received
from satview.capture.sim.parts.objects import Condvar, Mutex
from satview.capture.sim.parts.threads import Policy, Process, Program
from satview.capture.workloads.parts import MS, US, Address, server

DISK_VECTOR = 10


def setup_small_system(kernel: Kernel) -> None:
    """Start slogger, a disk driver with a file system, a terminal driver, a graphics driver, and a shell."""
    disk, terminal = Address(), Address()
    kernel.device(DISK_VECTOR, lambda: kernel.machine.random.randint(4 * MS, 30 * MS))
    _start(kernel, "proc/boot/slogger", Address(), 1, 15)
    _start(kernel, "sbin/devb-eide", disk, 4, 21, driver=True)
    _start(kernel, "sbin/devc-con", terminal, 2, 12)
    kernel.spawn("usr/photon/bin/io-graphics", _refresh, kernel, terminal, priority=12)
    kernel.spawn("bin/sh", _shell, kernel, disk, terminal, priority=10)


def _start(kernel: Kernel, name: str, address: Address, workers: int, priority: int, driver: bool = False) -> Process:
    def serve(received: Received) -> Program:
        yield MsgInfo(received.rcvid)
        yield ConnectClientInfo(received.scoid)
        yield MsgRead(received.rcvid)
        yield Compute(kernel.machine.random.randint(20 * US, 300 * US))
        yield MsgReply(received.rcvid, 0, b"\1\0\0\0")

    def main() -> Program:
        if driver:
            yield ThreadCreate(_disk_interrupts, (Mutex("disk"), Condvar("disk")), priority + 1, Policy.RR)
        yield from server(address, lambda: process.pid, workers, serve, priority, "")

    process = kernel.spawn(name, main, priority=priority)
    return process


def _disk_interrupts(lock: Mutex, ready: Condvar) -> Program:
    yield ThreadCtl()
    ident = yield InterruptAttachEvent(DISK_VECTOR)
    yield ThreadCreate(_disk_thread, (lock, ready), 21, Policy.RR)
    while True:
        yield InterruptWait()
        yield MutexLock(lock)
        yield CondSignal(ready)
        yield MutexUnlock(lock)
        yield InterruptUnmask(DISK_VECTOR, ident)


def _disk_thread(lock: Mutex, ready: Condvar) -> Program:
    yield MutexLock(lock)
    while True:
        yield CondWait(ready, lock)
        yield Compute(150 * US)


def _refresh(kernel: Kernel, terminal: Address) -> Program:
    coid = yield from terminal.connect()
    while True:
        yield Sleep(kernel.machine.random.randint(5 * MS, 15 * MS))
        yield Compute(400 * US)
        yield Ring0(_nothing)
        yield MsgSend(coid, b"\x02\x01\x10\x00\x2c\x00\x00\x00")


def _nothing(_machine: object, _cpu: object) -> int:
    return 0


def _shell(kernel: Kernel, disk: Address, terminal: Address) -> Program:
    coid = yield from terminal.connect()
    while True:
        yield Sleep(25 * MS)
        yield MsgSend(coid, b"$ ls\0")
        pid = yield Spawn("bin/ls", _ls, (kernel, disk))
        yield WaitPid(pid)


def _ls(kernel: Kernel, disk: Address) -> Program:
    coid = yield from disk.connect()
    for _ in range(kernel.machine.random.randint(2, 5)):
        yield MsgSend(coid, b"\x16\x01\x04\x00\x2d\x00\x00\x00")
        yield Compute(100 * US)
