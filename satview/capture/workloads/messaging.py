"""Workloads with messages and queues: slow servers, producers and consumers, and messages to another node."""

from __future__ import annotations

from collections.abc import Callable

from satview.capture.kernel import Kernel
from satview.capture.sim import calls
from satview.capture.sim.calls.messages import Received
from satview.capture.sim.services import QnxError
from satview.capture.sim.threads import Condvar, Mutex, Policy, Program, Semaphore
from satview.capture.workloads.parts import MS, US, Address, server

# Workloads with messages and queues: clients of slow servers; producers and consumers with a bounded queue.


CLIENTS = 4
CAPACITY = 5


def setup_client_server(kernel: Kernel) -> None:
    """Start a server with one thread, and four clients, which are SEND-blocked longer than REPLY-blocked."""
    address = Address()
    machine = kernel.machine

    def serve(received: Received) -> Program:
        yield calls.Sleep(machine.random.randint(2 * MS, 5 * MS))  # access to a disk
        yield calls.MsgReply(received.rcvid, 0, b"done")

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
        yield calls.Compute(kernel.machine.random.randint(100 * US, 900 * US))
        yield calls.MsgSend(coid, b"REQ" + bytes([number]))
        yield calls.Sleep(kernel.machine.random.randint(MS, 2 * MS))


def setup_nested_servers(kernel: Kernel) -> None:
    """Start two clients of a server that is itself a client of another server; most time is spent in the servers."""
    front, store = Address(), Address()

    def keep(received: Received) -> Program:
        yield calls.Compute(int.from_bytes(received.message, "big") * US)
        yield calls.MsgReply(received.rcvid, 0, b"kept")

    def answer() -> Callable[[Received], Program]:
        coids: list[int] = []  # the server's connection to `store`, once it exists

        def serve(received: Received) -> Program:
            if not coids:
                coids.append((yield from store.connect()))
            yield calls.Compute(200 * US)
            yield calls.MsgSend(coids[0], received.message)
            yield calls.Compute(100 * US)
            yield calls.MsgReply(received.rcvid, 0, b"done")

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
    """Repeatedly compute for `own_ns`, request `requested_us` of computation from the server, and sleep `pause_ns`."""
    coid = yield from address.connect()
    while True:
        yield calls.Compute(own_ns)
        yield calls.MsgSend(coid, requested_us.to_bytes(4, "big"))
        yield calls.Sleep(pause_ns)


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
            yield calls.ThreadCreate(_produce, (queue, kernel), 12, Policy.RR, f"producer-{i + 1}")
        for i in range(3):
            yield calls.ThreadCreate(_consume, (queue, kernel), 11, Policy.RR, f"consumer-{i + 1}")
        while True:
            for _ in range(10):
                yield calls.SemWait(queue.tokens)

    kernel.spawn("usr/bin/pipeline", main, priority=15, thread_name="counter")


def _produce(queue: _Queue, kernel: Kernel) -> Program:
    while True:
        yield calls.Compute(kernel.machine.random.randint(200 * US, 1200 * US))
        yield calls.MutexLock(queue.lock)
        while len(queue.items) >= CAPACITY:
            yield calls.CondWait(queue.not_full, queue.lock)
        queue.items.append(1)
        yield calls.CondSignal(queue.not_empty)
        yield calls.MutexUnlock(queue.lock)


def _consume(queue: _Queue, kernel: Kernel) -> Program:
    while True:
        yield calls.MutexLock(queue.lock)
        while not queue.items:
            yield calls.CondWait(queue.not_empty, queue.lock)
        queue.items.pop()
        yield calls.CondSignal(queue.not_full)
        yield calls.MutexUnlock(queue.lock)
        yield calls.SemPost(queue.tokens)
        yield calls.Compute(kernel.machine.random.randint(900 * US, 3 * MS))


# A workload with a network manager that forwards messages between a local server and threads of another node.


GIVEN_UP = 99  # value of the pulse that the manager forwards too late


def setup_network(kernel: Kernel) -> None:
    """Start a network manager between this node and another (up to 7.x), and programs that send messages and pulses."""
    local, remote = Address(), Address()
    server = kernel.spawn("usr/sbin/files", _files, local, priority=11, thread_name="server")
    local.pid = server.pid
    manager = kernel.spawn("sbin/network", _network, kernel, local, remote, priority=15, thread_name="manager")
    remote.pid = manager.pid
    kernel.spawn("usr/bin/editor", _editor, local, priority=12, thread_name="editor")
    kernel.spawn("usr/bin/notifier", _notifier, remote, priority=10, thread_name="notifier")


def _files(address: Address) -> Program:
    address.chid = yield calls.ChannelCreate(flags=calls.CHF_UNBLOCK)
    while True:
        received: Received = yield calls.MsgReceive(address.chid)
        yield calls.Compute(300 * US)
        if not received.is_pulse:
            yield calls.MsgReply(received.rcvid, 0, b"data")


def _network(kernel: Kernel, local: Address, remote: Address) -> Program:
    """Forward pulses to the other node; a second thread represents threads of the other node.

    Args:
        kernel: The target, up to 7.x.
        local: Address of the server of this node to which the second thread sends messages.
        remote: Receives the chid of the channel to which pulses for the other node are sent.
    """
    chid = yield calls.ChannelCreate()
    coid = yield from local.connect()
    if kernel.target.has_call("NET_VTID"):
        yield calls.ThreadCreate(_stand_in, (coid,), 14, Policy.RR, "stand-in")
    remote.chid = chid
    while True:
        received: Received = yield calls.MsgReceive(chid)
        yield calls.Compute(400 * US)
        if received.value == GIVEN_UP:
            yield calls.Sleep(5 * MS)
        yield calls.Ring0(calls.transmitted)


def _editor(address: Address) -> Program:
    """Keep the server busy, so that messages from the other node must wait."""
    coid = yield from address.connect()
    for _ in range(40):
        yield calls.MsgSend(coid, b"mine")
        yield calls.Compute(100 * US)


def _stand_in(coid: int) -> Program:
    """Send messages for threads of the other node, and forward the replies."""
    yield calls.KernelCall("NET_INFOSCOID", {"scoid": coid, "infoscoid": 1})
    for i in range(1, 6):
        yield calls.NetVtid(i, tid=1, coid=coid, srcnd=2, srcmsglen=4)
        yield calls.MsgSend(coid, b"read")
        yield calls.Compute(200 * US)
        yield calls.Ring0(calls.transmitted)
        yield calls.NetVtid(0)
        yield calls.Sleep(5 * MS)
    yield calls.KernelCall("NET_CRED", {"coid": coid})


def _notifier(remote: Address) -> Program:
    """Send pulses to the other node; the last pulse times out before it is forwarded."""
    while not remote.chid:
        yield calls.Sleep(MS)
    coid = yield calls.ConnectAttach(remote.pid, remote.chid, nd=2)
    for i in range(5):
        yield calls.MsgSendPulse(coid, 10, 1, i)
        yield calls.Sleep(3 * MS)
    yield calls.TimerTimeout(("NET_SEND",), 2 * MS)
    try:
        yield calls.MsgSendPulse(coid, 10, 1, GIVEN_UP)
    except QnxError:
        yield calls.Compute(50 * US)
