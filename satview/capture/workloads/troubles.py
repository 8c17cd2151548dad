"""Workloads with concurrency problems: message deadlock, priority inversion through servers, convoy, starvation."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    ChannelCreate,
    ClockTime,
    Compute,
    MsgReceive,
    MsgReply,
    MsgSend,
    MutexLock,
    MutexUnlock,
    Sleep,
    ThreadCreate,
)
from satview.capture.sim.parts.objects import Mutex
from satview.capture.sim.parts.threads import Policy, Program
from satview.capture.workloads.parts import MS, US, Address


def setup_message_deadlock(kernel: Kernel) -> None:
    """Start two servers that send messages to each other, and a client that waits for one of them."""
    left, right = Address(), Address()

    def partner(own: Address, other: Address, number: int) -> Program:
        own.chid = yield ChannelCreate()
        own.pid = pids[number]
        coid = yield from other.connect()
        yield Sleep(2 * MS)
        yield MsgSend(coid, b"first you")

    def client() -> Program:
        coid = yield from left.connect()
        yield Sleep(5 * MS)
        yield MsgSend(coid, b"and I")

    pids = [
        kernel.spawn("usr/sbin/left", lambda: partner(left, right, 0)).pid,
        kernel.spawn("usr/sbin/right", lambda: partner(right, left, 1)).pid,
    ]
    kernel.spawn("usr/bin/client", client)


def setup_nested_inversion(kernel: Kernel) -> None:
    """Start two servers, front and store, that do not inherit the priority of client high; middle preempts store."""
    front, store = Address(), Address()

    def keeper() -> Program:
        store.chid = yield ChannelCreate(fixed_priority=True)
        store.pid = store_process.pid
        while True:
            received = yield MsgReceive(store.chid)
            yield Compute(6 * MS)
            yield MsgReply(received.rcvid)

    def middleman() -> Program:
        front.chid = yield ChannelCreate(fixed_priority=True)
        front.pid = front_process.pid
        coid = yield from store.connect()
        while True:
            received = yield MsgReceive(front.chid)
            yield MsgSend(coid, b"more")
            yield MsgReply(received.rcvid)

    def high() -> Program:
        coid = yield from front.connect()
        yield Sleep(5 * MS)
        yield MsgSend(coid, b"now")

    def middle() -> Program:
        yield Sleep(9 * MS)
        yield Compute(20 * MS)

    store_process = kernel.spawn("usr/sbin/store", keeper, priority=6)
    front_process = kernel.spawn("usr/sbin/front", middleman, priority=8)
    kernel.spawn("usr/bin/high", high, priority=30)
    kernel.spawn("usr/bin/middle", middle, priority=20)


def setup_convoy(kernel: Kernel) -> None:
    """Start five threads that each sleep while they hold the same mutex."""
    mutex = Mutex("log")

    def writer() -> Program:
        while True:
            yield MutexLock(mutex)
            yield Sleep(2 * MS)
            yield MutexUnlock(mutex)
            yield Compute(100 * US)

    def main() -> Program:
        for i in range(5):
            yield ThreadCreate(writer, (), 10, Policy.RR, f"writer-{i + 1}")

    kernel.spawn("usr/bin/convoy", main, priority=15)


def setup_starvation(kernel: Kernel) -> None:
    """Start a thread that polls the clock, so that a thread of lower priority never runs."""

    def poller() -> Program:
        yield Sleep(20 * MS)
        while True:
            yield ClockTime()
            yield Compute(200 * US)

    def victim() -> Program:
        while True:
            yield Sleep(5 * MS)
            yield Compute(100 * US)

    def ticker() -> Program:
        while True:
            yield Sleep(2 * MS)
            yield Compute(50 * US)

    kernel.spawn("usr/bin/ticker", ticker, priority=30, thread_name="ticker")
    kernel.spawn("usr/bin/poller", poller, priority=20, thread_name="poller")
    kernel.spawn("usr/bin/victim", victim, priority=10, thread_name="victim")
