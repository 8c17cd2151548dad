"""Small programs in pairs: one with a fault, and a healthy twin that looks like it.

Each function sets one of them up; `is_faulty` says which. `PAIRS` names the kind of verdict that the fault is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from satview.analysis.verdicts.evidence import Verdict
from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    ChannelCreate,
    Compute,
    CondSignal,
    CondWait,
    ConnectAttach,
    InterruptAttach,
    InterruptAttachEvent,
    InterruptUnmask,
    InterruptWait,
    MsgReceive,
    MsgReply,
    MsgSend,
    MsgSendPulse,
    MutexLock,
    MutexUnlock,
    RwLockAcquire,
    RwLockRelease,
    SemPost,
    SemWait,
    Sigevent,
    Sleep,
    ThreadCreate,
    ThreadCtl,
    TimerCreate,
    TimerSettime,
)
from satview.capture.sim.calls.mutexes import BarrierWait
from satview.capture.sim.threads import Barrier, Condvar, Mutex, Policy, Program, RwLock, Semaphore
from satview.capture.workloads.parts import MS, US, Address
from tests.capture.made import Traced

RR: Final = Policy.RR


@dataclass(frozen=True, slots=True)
class Pair:
    """A program with a fault and its twin.

    Attributes:
        setup: Sets one of them up: (kernel, is_faulty).
        kinds: Verdicts any of which names the fault.
        ms: How long it is traced.
        cpus: On how many CPUs it runs.
        who: Who suffers first: the name of a thread, or else of its process.
        from_ms, to_ms: The fault is there from a moment on and, unless that is None, over by another one.
    """

    setup: Callable[[Kernel, bool], None]
    kinds: tuple[str, ...]
    ms: int = 300
    cpus: int = 1
    who: str = ""
    from_ms: float = 0
    to_ms: float | None = None


def ring_of_servers(kernel: Kernel, is_faulty: bool) -> None:
    """Three servers hand messages to a worker each; in the fault the last worker sends to the first server again."""
    addresses = [Address() for _ in range(3)]

    def server(number: int) -> Program:
        lock, filled, kept = Mutex(f"queue {number}"), Condvar(f"filled {number}"), []
        own = addresses[number]
        own.chid = yield ChannelCreate()
        own.pid = pids[number]
        yield ThreadCreate(worker, (number, lock, filled, kept), 10, RR, "worker")
        while True:
            received = yield MsgReceive(own.chid)
            yield MutexLock(lock)
            kept.append(received.rcvid)
            yield CondSignal(filled)
            yield MutexUnlock(lock)

    def worker(number: int, lock: Mutex, filled: Condvar, kept: list[int]) -> Program:
        following = addresses[(number + 1) % 3]
        coid = yield from following.connect()
        count = 0
        while True:
            yield MutexLock(lock)
            while not kept:
                yield CondWait(filled, lock)
            rcvid = kept.pop(0)
            yield MutexUnlock(lock)
            yield Compute(200 * US)
            count += 1
            if number < 2 or (is_faulty and count > 5):
                yield MsgSend(coid, b"go on")
            yield MsgReply(rcvid)

    def client() -> Program:
        coid = yield from addresses[0].connect()
        while True:
            yield MsgSend(coid, b"begin")
            yield Sleep(5 * MS)

    pids = [kernel.spawn(f"usr/sbin/ring{number}", server, number).pid for number in range(3)]
    kernel.spawn("usr/bin/client", client)


def handler_storm(kernel: Kernel, is_faulty: bool) -> None:
    """An interrupt whose handler takes most of a CPU; the twin comes often and takes little."""
    period, length = (100 * US, 77 * US) if is_faulty else (50 * US, 1 * US)

    def driver() -> Program:
        chid = yield ChannelCreate()
        coid = yield ConnectAttach(0, chid)
        yield ThreadCtl()
        if kernel.target.has_handlers:
            yield InterruptAttach(9, lambda: None, length)
            yield MsgReceive(chid)
        ident = yield InterruptAttachEvent(9, Sigevent("pulse", coid, 21, code=3))
        while True:
            yield MsgReceive(chid)
            yield Compute(length)
            yield InterruptUnmask(9, ident)

    def worker() -> Program:
        while True:
            yield Compute(2 * MS)
            yield Sleep(3 * MS)

    kernel.device(9, lambda: period)
    kernel.spawn("sbin/devc-busy", driver, priority=21)
    kernel.spawn("usr/bin/worker", worker, priority=10)


def piling_pulses(kernel: Kernel, is_faulty: bool) -> None:
    """A timer sends pulses faster than they are worked off; the twin is late now and then, and catches up."""

    def receiver() -> Program:
        chid = yield ChannelCreate()
        coid = yield ConnectAttach(0, chid)
        timer = yield TimerCreate(Sigevent("pulse", coid, 15, code=1))
        yield TimerSettime(timer, 2 * MS, 2 * MS)
        count = 0
        while True:
            yield MsgReceive(chid)
            count += 1
            yield Compute(3 * MS if is_faulty else (2800 * US if count % 12 == 0 else 300 * US))

    kernel.spawn("usr/bin/pulses", receiver, priority=15)


def full_queue(kernel: Kernel, is_faulty: bool) -> None:
    """A thread sends pulses to one that has stopped to receive; the twin goes on receiving."""

    def receiver(address: Address) -> Program:
        address.chid = yield ChannelCreate()
        address.pid = pids[0]
        for _ in range(5):
            yield MsgReceive(address.chid)
        while is_faulty:
            yield Sleep(20 * MS)
        while True:
            yield MsgReceive(address.chid)

    def sender(address: Address) -> Program:
        coid = yield from address.connect()
        while True:
            yield Sleep(2 * MS)
            yield MsgSendPulse(coid, 10, 5, 0)

    where = Address()
    pids = [kernel.spawn("usr/sbin/deaf", receiver, where).pid]
    kernel.spawn("usr/bin/ringer", sender, where)


def late_loop(kernel: Kernel, is_faulty: bool) -> None:
    """A loop of 10 ms by a timer's pulses; once something urgent takes the CPU for 45 ms, in the twin for 2 ms."""

    def loop() -> Program:
        chid = yield ChannelCreate()
        coid = yield ConnectAttach(0, chid)
        timer = yield TimerCreate(Sigevent("pulse", coid, 15, code=1))
        yield TimerSettime(timer, 10 * MS, 10 * MS)
        while True:
            yield MsgReceive(chid)
            yield Compute(MS)

    def urgent() -> Program:
        yield Sleep(155 * MS)
        yield Compute(45 * MS if is_faulty else 2 * MS)

    kernel.spawn("usr/bin/loop", loop, priority=15)
    kernel.spawn("usr/bin/urgent", urgent, priority=40)


def late_sleeper(kernel: Kernel, is_faulty: bool) -> None:
    """A loop that sleeps 10 ms; once the CPU is taken for 30 ms, in the twin for 2 ms."""

    def loop() -> Program:
        while True:
            yield Compute(MS)
            yield Sleep(9 * MS)

    def urgent() -> Program:
        yield Sleep(155 * MS)
        yield Compute(30 * MS if is_faulty else 2 * MS)

    kernel.spawn("usr/bin/sleeper", loop, priority=15)
    kernel.spawn("usr/bin/urgent", urgent, priority=40)


def lost_signal_late(kernel: Kernel, is_faulty: bool) -> None:
    """A consumer tests without the mutex, and misses the signal of the last item; the twin tests under it."""
    lock, filled = Mutex("items"), Condvar("filled")
    items: list[int] = []

    def consumer() -> Program:
        taken = 0
        while True:
            if is_faulty and taken == 8:
                is_empty = not items
                yield Sleep(12 * MS)  # the producer's last signal falls in here
                yield MutexLock(lock)
                if is_empty:
                    yield CondWait(filled, lock)
            else:
                yield MutexLock(lock)
                while not items:
                    yield CondWait(filled, lock)
            items.pop()
            taken += 1
            yield MutexUnlock(lock)
            yield Compute(200 * US)

    def producer() -> Program:
        for number in range(9):
            yield Sleep((10 if number < 8 else 6) * MS)
            yield MutexLock(lock)
            items.append(number)
            yield CondSignal(filled)
            yield MutexUnlock(lock)

    def main() -> Program:
        yield ThreadCreate(consumer, (), 12, RR, "consumer")
        yield ThreadCreate(producer, (), 10, RR, "producer")

    kernel.spawn("usr/bin/items", main, priority=15)


def idle_worker(kernel: Kernel, is_faulty: bool) -> None:
    """A worker that is signalled once before it first waits, which it tests under the mutex or not."""
    lock, ready = Mutex("job"), Condvar("ready")
    jobs: list[int] = []

    def worker() -> Program:
        yield Sleep(10 * MS)
        yield MutexLock(lock)
        while True:
            while not jobs or is_faulty:
                yield CondWait(ready, lock)
            jobs.pop()
            yield MutexUnlock(lock)
            yield Compute(200 * US)
            yield MutexLock(lock)

    def boss() -> Program:
        yield MutexLock(lock)
        jobs.append(1)
        yield CondSignal(ready)
        yield MutexUnlock(lock)
        while True:
            yield Sleep(30 * MS)

    def main() -> Program:
        yield ThreadCreate(worker, (), 10, RR, "worker")
        yield ThreadCreate(boss, (), 12, RR, "boss")

    kernel.spawn("usr/bin/jobs", main, priority=15)


def connections(kernel: Kernel, is_faulty: bool) -> None:
    """A process connects to thirty servers one after the other and keeps them, or never ends to connect."""

    def main() -> Program:
        chid = yield ChannelCreate()
        count = 0
        while is_faulty or count < 30:
            yield ConnectAttach(0, chid)
            yield Sleep(5 * MS)
            count += 1
        while True:
            yield Sleep(5 * MS)

    kernel.spawn("usr/bin/connects", main, priority=10)


def pool(kernel: Kernel, is_faulty: bool) -> None:
    """Six clients of a server with three threads that sleep 8 ms for each, or 1 ms."""
    address = Address()

    def first() -> Program:
        address.chid = yield ChannelCreate()
        address.pid = pids[0]
        for number in range(2):
            yield ThreadCreate(serve, (), 10, RR, f"pool {number}")
        yield from serve()

    def serve() -> Program:
        while True:
            received = yield MsgReceive(address.chid)
            yield Sleep(8 * MS if is_faulty else MS)
            yield MsgReply(received.rcvid)

    def client(offset: int) -> Program:
        coid = yield from address.connect()
        yield Sleep(offset * MS)
        while True:
            yield MsgSend(coid, b"work")
            yield Sleep(2 * MS if is_faulty else 8 * MS)

    pids = [kernel.spawn("usr/sbin/pool", first).pid]
    for number in range(8):
        kernel.spawn("usr/bin/client", client, number)


def affinity(kernel: Kernel, is_faulty: bool) -> None:
    """A thread that may run on CPU 0 only waits for a busy one there while CPU 1 is idle; the twin may run on both."""

    def busy() -> Program:
        yield Sleep(20 * MS)
        while True:
            yield Compute(50 * MS)

    def bound() -> Program:
        while True:
            yield Compute(2 * MS)
            yield Sleep(5 * MS)

    kernel.spawn("usr/bin/busy", busy, priority=20, runmask=1)
    kernel.spawn("usr/bin/bound", bound, priority=10, runmask=1 if is_faulty else 3)


def write_lock(kernel: Kernel, is_faulty: bool) -> None:
    """A writer waits for a reader that ended with the lock held; the twin's reader gives it up."""
    lock = RwLock("table")

    def reader() -> Program:
        yield RwLockAcquire(lock)
        yield Sleep(10 * MS)
        if not is_faulty:
            yield RwLockRelease(lock)

    def writer() -> Program:
        yield Sleep(3 * MS)
        yield RwLockAcquire(lock, write=True)
        yield Compute(MS)
        yield RwLockRelease(lock)

    def main() -> Program:
        yield ThreadCreate(reader, (), 10, RR, "reader")
        yield ThreadCreate(writer, (), 12, RR, "writer")

    kernel.spawn("usr/bin/table", main, priority=15)


def barrier(kernel: Kernel, is_faulty: bool) -> None:
    """Three threads meet again and again; in the fault one of them ends after four rounds."""
    meeting = Barrier("round", 3)

    def runner(number: int) -> Program:
        count = 0
        while not (is_faulty and number == 2 and count == 4):
            yield Compute((1 + number) * MS)
            yield BarrierWait(meeting)
            count += 1

    def main() -> Program:
        for number in range(3):
            yield ThreadCreate(runner, (number,), 10, RR, f"runner {number}")

    kernel.spawn("usr/bin/rounds", main, priority=15)


def semaphores_in_a_circle(kernel: Kernel, is_faulty: bool) -> None:
    """Two threads give each other turns; in the fault both wait for the other's turn."""
    ping, pong = Semaphore("ping"), Semaphore("pong")

    def player(own: Semaphore, other: Semaphore, forgets: bool) -> Program:
        count = 0
        while True:
            yield SemWait(own)
            count += 1
            yield Sleep(MS)
            if not (forgets and count == 10):
                yield SemPost(other)

    def main() -> Program:
        yield ThreadCreate(player, (ping, pong, False), 10, RR, "ping")
        yield ThreadCreate(player, (pong, ping, is_faulty), 10, RR, "pong")
        yield SemPost(ping)

    kernel.spawn("usr/bin/turns", main, priority=15)


def urgent_ready(kernel: Kernel, is_faulty: bool) -> None:
    """A thread of priority 20 is kept from running for 225 of 280 ms by one of 30, or for 2 of them."""

    def urgent() -> Program:
        yield Sleep(30 * MS)
        yield Compute((225 if is_faulty else 2) * MS)

    def victim() -> Program:
        while True:
            yield Compute(MS)
            yield Sleep(4 * MS)

    kernel.spawn("usr/bin/urgent", urgent, priority=30)
    kernel.spawn("usr/bin/victim", victim, priority=20)


def inversion_without_inheritance(kernel: Kernel, is_faulty: bool) -> None:
    """A high thread waits for the mutex of a low one that a middle one keeps from running; the twin inherits."""
    lock = Mutex("shared", inherit=not is_faulty)

    def low() -> Program:
        while True:
            yield MutexLock(lock)
            yield Compute(5 * MS)
            yield MutexUnlock(lock)
            yield Sleep(60 * MS)

    def middle() -> Program:
        yield Sleep(3 * MS)
        while True:
            yield Compute(40 * MS)
            yield Sleep(25 * MS)

    def high() -> Program:
        yield Sleep(2 * MS)
        while True:
            yield MutexLock(lock)
            yield Compute(100 * US)
            yield MutexUnlock(lock)
            yield Sleep(20 * MS)

    def main() -> Program:
        yield ThreadCreate(low, (), 10, RR, "low")
        yield ThreadCreate(middle, (), 15, RR, "middle")
        yield ThreadCreate(high, (), 20, RR, "high")

    kernel.spawn("usr/bin/shared", main, priority=25)


def reply_by_worker_never(kernel: Kernel, is_faulty: bool) -> None:
    """A server whose worker replies; in the fault the worker ends before the last message."""
    address, lock, filled = Address(), Mutex("queue"), Condvar("filled")
    kept: list[int] = []

    def server() -> Program:
        address.chid = yield ChannelCreate()
        address.pid = pids[0]
        yield ThreadCreate(worker, (), 10, RR, "worker")
        while True:
            received = yield MsgReceive(address.chid)
            yield MutexLock(lock)
            kept.append(received.rcvid)
            yield CondSignal(filled)
            yield MutexUnlock(lock)

    def worker() -> Program:
        count = 0
        while not (is_faulty and count == 5):
            yield MutexLock(lock)
            while not kept:
                yield CondWait(filled, lock)
            rcvid = kept.pop(0)
            yield MutexUnlock(lock)
            yield Compute(500 * US)
            yield MsgReply(rcvid)
            count += 1

    def client() -> Program:
        coid = yield from address.connect()
        while True:
            yield MsgSend(coid, b"please")
            yield Sleep(5 * MS)

    pids = [kernel.spawn("usr/sbin/front", server).pid]
    kernel.spawn("usr/bin/client", client)


def interrupt_that_stopped(kernel: Kernel, is_faulty: bool) -> None:
    """A driver waits for an interrupt that it forgot to unmask; the twin unmasks it."""

    def driver() -> Program:
        yield ThreadCtl()
        ident = yield InterruptAttachEvent(7)
        count = 0
        while True:
            yield InterruptWait()
            yield Compute(100 * US)
            count += 1
            if not (is_faulty and count == 10):
                yield InterruptUnmask(7, ident)

    kernel.device(7, lambda: 5 * MS)
    kernel.spawn("sbin/devc-mute", driver, priority=21)


FOR_EVER: Final = ("waits-for-ever",)
PAIRS: Final = (
    Pair(ring_of_servers, ("deadlock",), who="worker", from_ms=28),
    Pair(handler_storm, ("interrupt-flood",)),
    Pair(piling_pulses, ("growing-queue",), who="pulses", from_ms=2),
    Pair(full_queue, ("growing-queue",), who="deaf", from_ms=10),
    Pair(late_loop, ("missed-period",), who="loop", from_ms=155, to_ms=205),
    Pair(late_sleeper, ("missed-period",), who="sleeper", from_ms=155, to_ms=190),
    Pair(lost_signal_late, ("lost-wakeup",), who="consumer", from_ms=90),
    Pair(idle_worker, ("lost-wakeup",), who="worker", from_ms=10),
    Pair(connections, ("leak",), who="connects"),
    Pair(pool, ("server-saturation",), who="client"),
    Pair(affinity, ("starvation", "long-ready"), 400, 2, who="bound", from_ms=20),
    Pair(write_lock, FOR_EVER, who="writer", from_ms=2),
    Pair(barrier, FOR_EVER, who="runner", from_ms=20),
    Pair(semaphores_in_a_circle, ("deadlock",), who="p", from_ms=20),
    Pair(urgent_ready, ("long-ready", "starvation"), who="victim", from_ms=30, to_ms=260),
    Pair(inversion_without_inheritance, ("priority-inversion", "lock-contention"), 400, who="high"),
    Pair(reply_by_worker_never, FOR_EVER, who="client", from_ms=20),
    Pair(interrupt_that_stopped, FOR_EVER, who="devc-mute", from_ms=40),
)


def is_about(pair: Pair, made: Traced, verdict: Verdict) -> bool:
    """Return whether the first thread of a verdict is the one that suffers."""
    if not pair.who:
        return True
    threads, first = made.trace.threads, verdict.threads[0]
    process = made.kernel.machine.processes.get(int(threads.pid[first]))
    name = threads.names[first] or (process.name.rpartition("/")[2] if process is not None else "")
    return name.startswith(pair.who)


def is_then(pair: Pair, made: Traced, verdict: Verdict) -> bool:
    """Return whether a verdict lies where the fault is; one that is never over lasts to the end of the trace."""
    clock, window = made.trace.clock, made.trace.window
    ms = [(cycles - window.start) * 1000 / clock.cycles_per_s for cycles in (verdict.start_cycles, verdict.end_cycles)]
    return ms[0] >= pair.from_ms and (ms[1] <= pair.to_ms if pair.to_ms is not None else True)
