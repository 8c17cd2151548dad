"""Workloads with locks and with concurrency problems: inversions, deadlocks, lost wake-ups, convoys, starvation."""

from __future__ import annotations

from functools import partial

from satview.capture.kernel import Kernel
from satview.capture.sim import calls
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
    """Start periodic threads: low locks a mutex, high locks it 2 ms after low, middle becomes ready 4 ms after low."""
    for name, priority, offset_ms, task in (
        ("low", LOW, 0, (_holder, mutex)),
        ("high", HIGH, 2, (_needs, mutex)),
        ("middle", MIDDLE, 4, (_hog,)),
    ):
        program = partial(periodic, PERIOD_NS, *task, offset_ns=offset_ms * MS, priority=priority)
        kernel.spawn(f"usr/bin/{name}", program, priority=priority, policy=Policy.FIFO, thread_name=name)


def _holder(mutex: Mutex, _count: int) -> Program:
    yield calls.MutexLock(mutex)
    yield calls.Compute(HOLD_NS)
    yield calls.MutexUnlock(mutex)


def _hog(_count: int) -> Program:
    yield calls.Compute(HOG_NS)


def _needs(mutex: Mutex, _count: int) -> Program:
    yield calls.MutexLock(mutex)
    yield calls.Compute(500 * US)
    yield calls.MutexUnlock(mutex)


def setup_deadlock(kernel: Kernel) -> None:
    """Start two threads that lock two mutexes in opposite order."""
    first, second = Mutex("first"), Mutex("second")

    def main() -> Program:
        yield calls.ThreadCreate(_take_both, (first, second), 10, Policy.RR, "forwards")
        yield calls.ThreadCreate(_take_both, (second, first), 11, Policy.RR, "backwards")

    kernel.spawn("usr/bin/deadlock", main, priority=15)


def _take_both(outer: Mutex, inner: Mutex) -> Program:
    for _ in range(100):
        yield calls.MutexLock(outer)
        yield calls.Sleep(2 * MS)  # meanwhile the other thread locks its first mutex
        yield calls.MutexLock(inner)
        yield calls.Compute(100 * US)
        yield calls.MutexUnlock(inner)
        yield calls.MutexUnlock(outer)


def setup_lost_wakeup(kernel: Kernel) -> None:
    """Start a consumer that tests a flag without the mutex, and a producer that signals between test and wait."""
    lock, ready = Mutex("flag"), Condvar("ready")
    flag = [False]

    def consumer() -> Program:
        if not flag[0]:  # the mistake: the mutex is not locked during the test
            yield calls.Compute(3 * MS)  # here the producer sets the flag and signals
            yield calls.MutexLock(lock)
            yield calls.CondWait(ready, lock)
            yield calls.MutexUnlock(lock)
        yield calls.Compute(MS)

    def producer() -> Program:
        yield calls.Sleep(MS)
        yield calls.MutexLock(lock)
        flag[0] = True
        yield calls.CondSignal(ready)
        yield calls.MutexUnlock(lock)

    def main() -> Program:
        yield calls.ThreadCreate(producer, (), 12, Policy.RR, "producer")
        yield calls.ThreadCreate(consumer, (), 10, Policy.RR, "consumer")

    kernel.spawn("usr/bin/lost_wakeup", main, priority=15)


def setup_meeting_points(kernel: Kernel) -> None:
    """Start three threads that meet at a barrier, and readers and a writer that share a table."""
    barrier, table = Barrier("end-of-phase", 3), RwLock("table")

    def phase(number: int) -> Program:
        while True:
            yield calls.Compute((number + 1) * MS)
            yield calls.BarrierWait(barrier)

    def reader() -> Program:
        while True:
            yield calls.RwLockAcquire(table)
            yield calls.Compute(MS)
            yield calls.RwLockRelease(table)
            yield calls.Sleep(2 * MS)

    def writer() -> Program:
        while True:
            yield calls.Sleep(7 * MS)
            yield calls.RwLockAcquire(table, write=True)
            yield calls.Compute(2 * MS)
            yield calls.RwLockRelease(table)

    def main() -> Program:
        for i in range(3):
            yield calls.ThreadCreate(phase, (i,), 10, Policy.RR, f"phase-{i + 1}")
        for i in range(2):
            yield calls.ThreadCreate(reader, (), 11, Policy.RR, f"reader-{i + 1}")
        yield calls.ThreadCreate(writer, (), 12, Policy.RR, "writer")

    kernel.spawn("usr/bin/meeting_points", main, priority=15)


# Workloads with concurrency problems: message deadlock, priority inversion through servers, convoy, starvation.


def setup_message_deadlock(kernel: Kernel) -> None:
    """Start two servers that send messages to each other, and a client that waits for one of them."""
    left, right = Address(), Address()

    def partner(own: Address, other: Address, number: int) -> Program:
        own.chid = yield calls.ChannelCreate()
        own.pid = pids[number]
        coid = yield from other.connect()
        yield calls.Sleep(2 * MS)
        yield calls.MsgSend(coid, b"first you")

    def client() -> Program:
        coid = yield from left.connect()
        yield calls.Sleep(5 * MS)
        yield calls.MsgSend(coid, b"and I")

    pids = [
        kernel.spawn("usr/sbin/left", lambda: partner(left, right, 0)).pid,
        kernel.spawn("usr/sbin/right", lambda: partner(right, left, 1)).pid,
    ]
    kernel.spawn("usr/bin/client", client)


def setup_nested_inversion(kernel: Kernel) -> None:
    """Start two servers, front and store, that do not inherit the priority of client high; middle preempts store."""
    front, store = Address(), Address()

    def keeper() -> Program:
        store.chid = yield calls.ChannelCreate(fixed_priority=True)
        store.pid = store_process.pid
        while True:
            received = yield calls.MsgReceive(store.chid)
            yield calls.Compute(6 * MS)
            yield calls.MsgReply(received.rcvid)

    def middleman() -> Program:
        front.chid = yield calls.ChannelCreate(fixed_priority=True)
        front.pid = front_process.pid
        coid = yield from store.connect()
        while True:
            received = yield calls.MsgReceive(front.chid)
            yield calls.MsgSend(coid, b"more")
            yield calls.MsgReply(received.rcvid)

    def high() -> Program:
        coid = yield from front.connect()
        yield calls.Sleep(5 * MS)
        yield calls.MsgSend(coid, b"now")

    def middle() -> Program:
        yield calls.Sleep(9 * MS)
        yield calls.Compute(20 * MS)

    store_process = kernel.spawn("usr/sbin/store", keeper, priority=6)
    front_process = kernel.spawn("usr/sbin/front", middleman, priority=8)
    kernel.spawn("usr/bin/high", high, priority=30)
    kernel.spawn("usr/bin/middle", middle, priority=20)


def setup_convoy(kernel: Kernel) -> None:
    """Start five threads that each sleep while they hold the same mutex."""
    mutex = Mutex("log")

    def writer() -> Program:
        while True:
            yield calls.MutexLock(mutex)
            yield calls.Sleep(2 * MS)
            yield calls.MutexUnlock(mutex)
            yield calls.Compute(100 * US)

    def main() -> Program:
        for i in range(5):
            yield calls.ThreadCreate(writer, (), 10, Policy.RR, f"writer-{i + 1}")

    kernel.spawn("usr/bin/convoy", main, priority=15)


def setup_starvation(kernel: Kernel) -> None:
    """Start a thread that polls the clock from 20 ms on, so that a thread of lower priority no longer runs."""

    def poller() -> Program:
        yield calls.Sleep(20 * MS)
        while True:
            yield calls.ClockTime()
            yield calls.Compute(200 * US)

    def victim() -> Program:
        while True:
            yield calls.Sleep(5 * MS)
            yield calls.Compute(100 * US)

    def ticker() -> Program:
        while True:
            yield calls.Sleep(2 * MS)
            yield calls.Compute(50 * US)

    kernel.spawn("usr/bin/ticker", ticker, priority=30, thread_name="ticker")
    kernel.spawn("usr/bin/poller", poller, priority=20, thread_name="poller")
    kernel.spawn("usr/bin/victim", victim, priority=10, thread_name="victim")
