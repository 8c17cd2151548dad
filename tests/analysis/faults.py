"""Workloads with one fault each that no lesson of `satview tracelogger` shows, and sound ones that look like them."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    SIGUSR1,
    ChannelCreate,
    ChannelDestroy,
    Compute,
    CondSignal,
    CondWait,
    ConnectAttach,
    MsgReceive,
    MutexLock,
    MutexUnlock,
    SemPost,
    SemWait,
    SignalAction,
    SignalKill,
    Sleep,
    ThreadCreate,
    TimerTimeout,
)
from satview.capture.sim.parts.errors import QnxError
from satview.capture.sim.parts.objects import Condvar, Mutex, Semaphore
from satview.capture.sim.parts.threads import Policy, Program
from satview.capture.workloads.parts import MS, US


def ping_pong(kernel: Kernel) -> None:
    """Two threads wake each other for a few microseconds of work."""
    ping, pong = Semaphore("ping"), Semaphore("pong")

    def player(mine: Semaphore, other: Semaphore) -> Program:
        while True:
            yield SemWait(mine)
            yield Compute(5 * US)
            yield SemPost(other)

    def main() -> Program:
        yield ThreadCreate(player, (ping, pong), 10, Policy.RR, "ping")
        yield ThreadCreate(player, (pong, ping), 10, Policy.RR, "pong")
        yield SemPost(ping)

    kernel.spawn("usr/bin/table_tennis", main, priority=15)


def restarted_calls(kernel: Kernel) -> None:
    """Signals interrupt a thread that is about to receive, every 5 ms."""

    def on_signal(_signo: int) -> Program:
        yield Compute(20 * US)

    def receiver() -> Program:
        yield SignalAction(SIGUSR1, on_signal)
        chid = yield ChannelCreate()
        while True:
            try:
                yield MsgReceive(chid)
            except QnxError:
                yield Compute(10 * US)

    def main() -> Program:
        tid = yield ThreadCreate(receiver, (), 12, Policy.RR, "receiver")
        while True:
            yield Sleep(5 * MS)
            yield SignalKill(0, tid, SIGUSR1)

    kernel.spawn("usr/bin/restarted", main, priority=10)


def leak(kernel: Kernel) -> None:
    """A process connects again every 5 ms and never detaches; another one gives its channels back."""

    def leaking() -> Program:
        chid = yield ChannelCreate()
        while True:
            yield ConnectAttach(0, chid)
            yield Sleep(5 * MS)

    def tidy() -> Program:
        while True:
            chid = yield ChannelCreate()
            yield Sleep(5 * MS)
            yield ChannelDestroy(chid)

    kernel.spawn("usr/bin/leaking", leaking, priority=10)
    kernel.spawn("usr/bin/tidy", tidy, priority=10)


def many_channels_at_start(kernel: Kernel) -> None:
    """A process creates many channels within some milliseconds and keeps them: no leak."""

    def main() -> Program:
        for _ in range(40):
            yield ChannelCreate()
            yield Compute(200 * US)
        while True:
            yield Sleep(10 * MS)

    kernel.spawn("usr/bin/many", main, priority=10)


def deadlock_with_a_way_out(kernel: Kernel) -> None:
    """Two threads wait for each other's mutex, with a timeout behind the end of the trace."""
    first, second = Mutex("first"), Mutex("second")

    def take_both(one: Mutex, other: Mutex) -> Program:
        yield MutexLock(one)
        yield Sleep(2 * MS)
        yield TimerTimeout(("MUTEX",), 500 * MS)
        try:
            yield MutexLock(other)
        except QnxError:
            yield Compute(10 * US)
        yield MutexUnlock(one)

    def main() -> Program:
        yield ThreadCreate(take_both, (first, second), 10, Policy.RR, "forwards")
        yield ThreadCreate(take_both, (second, first), 11, Policy.RR, "backwards")

    kernel.spawn("usr/bin/patient", main, priority=15)


def empty_queue(kernel: Kernel) -> None:
    """A consumer empties a queue and waits for more that never comes: nothing was lost."""
    lock, filled = Mutex("queue"), Condvar("filled")
    items: list[int] = []

    def consumer() -> Program:
        while True:
            yield MutexLock(lock)
            while not items:
                yield CondWait(filled, lock)
            items.pop()
            yield MutexUnlock(lock)
            yield Compute(3 * MS)

    def producer() -> Program:
        for _ in range(6):
            yield Sleep(2 * MS)
            yield MutexLock(lock)
            items.append(1)
            yield CondSignal(filled)
            yield MutexUnlock(lock)

    def main() -> Program:
        yield ThreadCreate(producer, (), 12, Policy.RR, "producer")
        yield ThreadCreate(consumer, (), 10, Policy.RR, "consumer")

    kernel.spawn("usr/bin/queue", main, priority=15)
