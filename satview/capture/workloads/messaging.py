"""Workloads with messages and queues: clients of slow servers; producers and consumers with a bounded queue."""

from __future__ import annotations

from collections.abc import Callable

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    Compute,
    CondSignal,
    CondWait,
    MsgReply,
    MsgSend,
    MutexLock,
    MutexUnlock,
    SemPost,
    SemWait,
    Sleep,
    ThreadCreate,
)
from satview.capture.sim.calls.messages import Received
from satview.capture.sim.parts.objects import Condvar, Mutex, Semaphore
from satview.capture.sim.parts.threads import Policy, Program
from satview.capture.workloads.parts import MS, US, Address, server

CLIENTS = 4
CAPACITY = 5


def setup_client_server(kernel: Kernel) -> None:
    """Start a server with one thread, and four clients, which are longer SEND-blocked than REPLY-blocked."""
    address = Address()
    machine = kernel.machine

    def serve(received: Received) -> Program:
        yield Sleep(machine.random.randint(2 * MS, 5 * MS))  # access to a disk
        yield MsgReply(received.rcvid, 0, b"done")

    def pid() -> int:
        return process.pid

    process = kernel.spawn(
        "usr/sbin/slow_server", lambda: server(address, pid, 1, serve), priority=12, thread_name="only-one"
    )
    for i in range(CLIENTS):
        kernel.spawn(
            f"usr/bin/client{i + 1}", _client, address, i, kernel, priority=13 if i == 0 else 10, thread_name="client"
        )


def _client(address: Address, number: int, kernel: Kernel) -> Program:
    coid = yield from address.connect()
    while True:
        yield Compute(kernel.machine.random.randint(100 * US, 900 * US))
        yield MsgSend(coid, b"REQ" + bytes([number]))
        yield Sleep(kernel.machine.random.randint(MS, 2 * MS))


def setup_nested_servers(kernel: Kernel) -> None:
    """Start two clients of a server that is itself a client of another server; most time is spent in the servers."""
    front, store = Address(), Address()

    def keep(received: Received) -> Program:
        yield Compute(int.from_bytes(received.message, "big") * US)
        yield MsgReply(received.rcvid, 0, b"kept")

    def answer() -> Callable[[Received], Program]:
        coids: list[int] = []  # the server's connection to `store`, once it exists

        def serve(received: Received) -> Program:
            if not coids:
                coids.append((yield from store.connect()))
            yield Compute(200 * US)
            yield MsgSend(coids[0], received.message)
            yield Compute(100 * US)
            yield MsgReply(received.rcvid, 0, b"done")

        return serve

    store_process = kernel.spawn(
        "usr/sbin/store", lambda: server(store, lambda: store_process.pid, 1, keep), priority=15, thread_name="keeper"
    )
    front_process = kernel.spawn(
        "usr/sbin/front",
        lambda: server(front, lambda: front_process.pid, 2, answer()),
        priority=15,
        thread_name="desk-1",
    )
    kernel.spawn("usr/bin/report", _asking_client, front, 12_000, 100 * US, 20 * MS, thread_name="report")
    kernel.spawn("usr/bin/screen", _asking_client, front, 300, 9 * MS, 10 * MS, thread_name="screen")


def _asking_client(address: Address, requested_us: int, own_ns: int, pause_ns: int) -> Program:
    """Repeatedly compute, request a computation from the servers, and pause."""
    coid = yield from address.connect()
    while True:
        yield Compute(own_ns)
        yield MsgSend(coid, requested_us.to_bytes(4, "big"))
        yield Sleep(pause_ns)


class _Queue:
    def __init__(self) -> None:
        self.lock, self.not_full, self.not_empty = Mutex("queue"), Condvar("not-full"), Condvar("not-empty")
        self.items: list[int] = []
        self.tokens = Semaphore("tokens")


def setup_producer_consumer(kernel: Kernel) -> None:
    """Start two producers and three consumers with a queue of capacity 5; a semaphore counts consumed items."""
    queue = _Queue()

    def main() -> Program:
        for i in range(2):
            yield ThreadCreate(_produce, (queue, kernel), 12, Policy.RR, f"producer-{i + 1}")
        for i in range(3):
            yield ThreadCreate(_consume, (queue, kernel), 11, Policy.RR, f"consumer-{i + 1}")
        while True:
            for _ in range(10):
                yield SemWait(queue.tokens)

    kernel.spawn("usr/bin/pipeline", main, priority=15, thread_name="counter")


def _produce(queue: _Queue, kernel: Kernel) -> Program:
    while True:
        yield Compute(kernel.machine.random.randint(200 * US, 1200 * US))
        yield MutexLock(queue.lock)
        while len(queue.items) >= CAPACITY:
            yield CondWait(queue.not_full, queue.lock)
        queue.items.append(1)
        yield CondSignal(queue.not_empty)
        yield MutexUnlock(queue.lock)


def _consume(queue: _Queue, kernel: Kernel) -> Program:
    while True:
        yield MutexLock(queue.lock)
        while not queue.items:
            yield CondWait(queue.not_empty, queue.lock)
        queue.items.pop()
        yield CondSignal(queue.not_full)
        yield MutexUnlock(queue.lock)
        yield SemPost(queue.tokens)
        yield Compute(kernel.machine.random.randint(900 * US, 3 * MS))
