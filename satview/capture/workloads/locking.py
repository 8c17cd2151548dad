"""Workloads with locks and with concurrency problems: inversions, deadlocks, lost wake-ups, convoys, starvation."""

from __future__ import annotations

from functools import partial

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    BarrierWait,
    ChannelCreate,
    ClockTime,
    Compute,
    CondSignal,
    CondWait,
    MsgReceive,
    MsgReply,
    MsgSend,
    MutexLock,
    MutexUnlock,
    RwLockAcquire,
    RwLockRelease,
    Sleep,
    ThreadCreate,
)
from satview.capture.sim.threads import Barrier, Condvar, Mutex, Policy, Program, RwLock
from satview.capture.workloads.parts import MS, US, Address, periodic

# Workloads with locks: priority inversion and inheritance, deadlock, lost wake-up, barriers, readers/writer locks.


LOW, MIDDLE, HIGH = 10, 20, 30
HOLD_NS = 6 * MS
HOG_NS = 30 * MS
PERIOD_NS = 70 * MS


def setup_inversion(kernel: Kernel) -> None:
    """Start three threads: high waits for a mutex of low, and middle keeps low from running (priority inversion)."""
    _three_threads(kernel, Mutex("shared", inherit=False))


def setup_inheritance(kernel: Kernel) -> None:
    """Start three threads: low inherits the priority of high while it holds a mutex, so that middle must wait."""
    _three_threads(kernel, Mutex("shared"))


def _three_threads(kernel: Kernel, mutex: Mutex) -> None:
    """Start periodic threads: low locks a mutex, high locks it 2 ms later, and middle becomes ready 4 ms later."""
    for name, priority, offset_ms, task in (
        ("low", LOW, 0, (_holder, mutex)),
        ("high", HIGH, 2, (_needs, mutex)),
        ("middle", MIDDLE, 4, (_hog,)),
    ):
        program = partial(periodic, PERIOD_NS, *task, offset_ns=offset_ms * MS, priority=priority)
        kernel.spawn(f"usr/bin/{name}", program, priority=priority, policy=Policy.FIFO, thread_name=name)


def _holder(mutex: Mutex, _count: int) -> Program:
    yield MutexLock(mutex)
    yield Compute(HOLD_NS)
    yield MutexUnlock(mutex)


def _hog(_count: int) -> Program:
    yield Compute(HOG_NS)


def _needs(mutex: Mutex, _count: int) -> Program:
    yield MutexLock(mutex)
    yield Compute(500 * US)
    yield MutexUnlock(mutex)


def setup_deadlock(kernel: Kernel) -> None:
    """Start two threads that lock two mutexes in opposite order."""
    first, second = Mutex("first"), Mutex("second")

    def main() -> Program:
        yield ThreadCreate(_take_both, (first, second), 10, Policy.RR, "forwards")
        yield ThreadCreate(_take_both, (second, first), 11, Policy.RR, "backwards")

    kernel.spawn("usr/bin/deadlock", main, priority=15)


def _take_both(outer: Mutex, inner: Mutex) -> Program:
    for _ in range(100):
        yield MutexLock(outer)
        yield Sleep(2 * MS)  # meanwhile the other thread locks its first mutex
        yield MutexLock(inner)
        yield Compute(100 * US)
        yield MutexUnlock(inner)
        yield MutexUnlock(outer)


def setup_lost_wakeup(kernel: Kernel) -> None:
    """Start a consumer that tests a flag without the mutex, and a producer that signals between test and wait."""
    lock, ready = Mutex("flag"), Condvar("ready")
    flag = [False]

    def consumer() -> Program:
        if not flag[0]:  # the mistake: the mutex is not locked during the test
            yield Compute(3 * MS)  # here the producer sets the flag and signals
            yield MutexLock(lock)
            yield CondWait(ready, lock)
            yield MutexUnlock(lock)
        yield Compute(MS)

    def producer() -> Program:
        yield Sleep(MS)
        yield MutexLock(lock)
        flag[0] = True
        yield CondSignal(ready)
        yield MutexUnlock(lock)

    def main() -> Program:
        yield ThreadCreate(producer, (), 12, Policy.RR, "producer")
        yield ThreadCreate(consumer, (), 10, Policy.RR, "consumer")

    kernel.spawn("usr/bin/lost_wakeup", main, priority=15)


def setup_meeting_points(kernel: Kernel) -> None:
    """Start three threads that meet at a barrier, and readers and a writer that share a table."""
    barrier, table = Barrier("end-of-phase", 3), RwLock("table")

    def phase(number: int) -> Program:
        while True:
            yield Compute((number + 1) * MS)
            yield BarrierWait(barrier)

    def reader() -> Program:
        while True:
            yield RwLockAcquire(table)
            yield Compute(MS)
            yield RwLockRelease(table)
            yield Sleep(2 * MS)

    def writer() -> Program:
        while True:
            yield Sleep(7 * MS)
            yield RwLockAcquire(table, write=True)
            yield Compute(2 * MS)
            yield RwLockRelease(table)

    def main() -> Program:
        for i in range(3):
            yield ThreadCreate(phase, (i,), 10, Policy.RR, f"phase-{i + 1}")
        for i in range(2):
            yield ThreadCreate(reader, (), 11, Policy.RR, f"reader-{i + 1}")
        yield ThreadCreate(writer, (), 12, Policy.RR, "writer")

    kernel.spawn("usr/bin/meeting_points", main, priority=15)


# Workloads with concurrency problems: message deadlock, priority inversion through servers, convoy, starvation.


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
