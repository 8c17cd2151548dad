"""Workloads with processes and signals: many short-lived children; handlers, interrupted calls and timeouts."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    SIGTERM,
    SIGUSR1,
    ChannelCreate,
    Compute,
    MsgReceive,
    SignalAction,
    SignalKill,
    SignalWaitinfo,
    Sleep,
    Spawn,
    ThreadCreate,
    TimerTimeout,
    WaitPid,
)
from satview.capture.sim.parts.errors import QnxError
from satview.capture.sim.parts.threads import Policy, Program
from satview.capture.workloads.parts import MS, US

CHILDREN = 25


def setup_fork_storm(kernel: Kernel) -> None:
    """Start a shell that runs many short commands, five at a time."""
    kernel.spawn("bin/sh", _shell, kernel, priority=10)


def _shell(kernel: Kernel) -> Program:
    for _ in range(CHILDREN // 5):
        pids = []
        for i in range(5):
            pid = yield Spawn(f"bin/cmd{i}", _command, (kernel,))
            pids.append(pid)
        for pid in pids:
            yield WaitPid(pid)
        yield Sleep(2 * MS)


def _command(kernel: Kernel) -> Program:
    yield Compute(kernel.machine.random.randint(100 * US, 2 * MS))
    return 0


def setup_signals(kernel: Kernel) -> None:
    """Start a thread whose calls signals and timeouts end, a thread that waits for signals, and a process to kill."""

    def main() -> Program:
        receiver = yield ThreadCreate(_receiver, (), 12, Policy.RR, "receiver")
        waiter = yield ThreadCreate(_waiter, (), 12, Policy.RR, "waiter")
        victim = yield Spawn("usr/bin/victim", _victim)
        yield Sleep(20 * MS)
        for _ in range(3):
            yield SignalKill(0, receiver, SIGUSR1)
            yield Sleep(15 * MS)
            yield SignalKill(0, waiter, SIGUSR1 + 1)
            yield Sleep(10 * MS)
        yield SignalKill(victim, 0, SIGTERM)
        yield WaitPid(victim)

    kernel.spawn("usr/bin/signals", main, priority=10)


def _on_signal(_signo: int) -> Program:
    yield Compute(300 * US)


def _receiver() -> Program:
    yield SignalAction(SIGUSR1, _on_signal)
    chid = yield ChannelCreate()
    while True:
        yield TimerTimeout(("RECEIVE",), 40 * MS)
        try:
            yield MsgReceive(chid)
        except QnxError as error:
            yield Compute(200 * US if error.name == "EINTR" else 600 * US)


def _waiter() -> Program:
    while True:
        yield SignalWaitinfo((SIGUSR1 + 1,))
        yield Compute(500 * US)


def _victim() -> Program:
    while True:
        yield Compute(400 * US)
        yield Sleep(5 * MS)
