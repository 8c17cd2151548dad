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
    MsgReply,
    MsgSend,
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
from satview.capture.sim.services import QnxError
from satview.capture.sim.threads import Condvar, Mutex, Policy, Program, Semaphore
from satview.capture.workloads.parts import MS, US, Address


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


def servers_with_idle_threads(kernel: Kernel) -> None:
    """Two servers send to each other; in each a second thread only sleeps, and receives nothing."""
    left, right = Address(), Address()

    def partner(own: Address, other: Address, number: int) -> Program:
        own.chid = yield ChannelCreate()
        own.pid = pids[number]
        yield ThreadCreate(sleeper, (), 10, Policy.RR, "sleeper")
        coid = yield from other.connect()
        yield Sleep(2 * MS)
        yield MsgSend(coid, b"first you")

    def sleeper() -> Program:
        while True:
            yield Sleep(3 * MS)

    pids = [
        kernel.spawn("usr/sbin/left", lambda: partner(left, right, 0)).pid,
        kernel.spawn("usr/sbin/right", lambda: partner(right, left, 1)).pid,
    ]


def message_handed_on(kernel: Kernel) -> None:
    """A server hands messages on to its worker, and then sends to its client, which only waits for the worker's reply.

    The worker needs longer for the last one than the trace lasts; it has replied to others before.
    """
    front, back = Address(), Address()
    lock, filled, kept = Mutex("queue"), Condvar("filled"), []

    def server() -> Program:
        front.chid = yield ChannelCreate()
        front.pid = pids[0]
        yield ThreadCreate(worker, (), 10, Policy.RR, "worker")
        coid = yield from back.connect()
        for number in range(6):
            received = yield MsgReceive(front.chid)
            yield MutexLock(lock)
            kept.append((received.rcvid, 400 * MS if number == 5 else MS))
            yield CondSignal(filled)
            yield MutexUnlock(lock)
        yield MsgSend(coid, b"are you done?")

    def worker() -> Program:
        while True:
            yield MutexLock(lock)
            while not kept:
                yield CondWait(filled, lock)
            rcvid, ns = kept.pop()
            yield MutexUnlock(lock)
            yield Sleep(ns)
            yield MsgReply(rcvid)

    def client() -> Program:
        back.chid = yield ChannelCreate()
        back.pid = pids[1]
        coid = yield from front.connect()
        while True:
            yield MsgSend(coid, b"do it")

    pids = [kernel.spawn("usr/sbin/front", server).pid, kernel.spawn("usr/bin/client", client).pid]


def dead_owner(kernel: Kernel) -> None:
    """A thread ends with a mutex locked that another one waits for from then on."""
    lock = Mutex("robust")

    def owner() -> Program:
        yield MutexLock(lock)
        yield Sleep(5 * MS)

    def heir() -> Program:
        yield Sleep(2 * MS)
        yield MutexLock(lock)

    def main() -> Program:
        yield ThreadCreate(owner, (), 10, Policy.RR, "owner")
        yield ThreadCreate(heir, (), 10, Policy.RR, "heir")

    kernel.spawn("usr/bin/careless", main, priority=15)


def nobody_posts(kernel: Kernel) -> None:
    """The only thread that posts a semaphore ends after three times; another one waits for a fourth."""
    turn = Semaphore("turn")

    def poster() -> Program:
        for _ in range(3):
            yield Sleep(2 * MS)
            yield SemPost(turn)

    def waiter() -> Program:
        while True:
            yield SemWait(turn)
            yield Compute(50 * US)

    def main() -> Program:
        yield ThreadCreate(poster, (), 10, Policy.RR, "poster")
        yield ThreadCreate(waiter, (), 10, Policy.RR, "waiter")

    kernel.spawn("usr/bin/turns", main, priority=15)


def forgotten_reply(kernel: Kernel) -> None:
    """A server forgets to reply to its fourth message, and waits for the next one."""
    _serve(kernel, forgets=3)


def kept_reply(kernel: Kernel) -> None:
    """A server keeps messages for a while and replies after it has received others: nothing is forgotten."""
    _serve(kernel, forgets=-1)


def _serve(kernel: Kernel, forgets: int) -> None:
    address, kept = Address(), []

    def server() -> Program:
        address.chid = yield ChannelCreate()
        address.pid = pids[0]
        number = 0
        while True:
            received = yield MsgReceive(address.chid)
            if forgets < 0:  # replies to the one before, as a server does that waits for data
                kept.append(received.rcvid)
                if len(kept) > 1:
                    yield MsgReply(kept.pop(0))
            elif number != forgets:
                yield MsgReply(received.rcvid)
            number += 1

    def client() -> Program:
        coid = yield from address.connect()
        for _ in range(6):
            yield MsgSend(coid, b"please")
            yield Sleep(2 * MS)

    pids = [kernel.spawn("usr/sbin/server", server).pid]
    for _ in range(1 if forgets >= 0 else 2):
        kernel.spawn("usr/bin/client", client)
