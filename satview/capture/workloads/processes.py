"""Workloads with processes: many short-lived children, signals, process states, page faults and exceptions."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    CHF_COID_DISCONNECT,
    CHF_DISCONNECT,
    CHF_UNBLOCK,
    SIGCHLD,
    SIGCONT,
    SIGSEGV,
    SIGSTOP,
    SIGTERM,
    SIGUSR1,
    ChannelCreate,
    Compute,
    Dlopen,
    Exec,
    Fork,
    MsgReceive,
    MsgReply,
    MsgSend,
    SignalAction,
    SignalFault,
    SignalKill,
    SignalWaitinfo,
    Sleep,
    Spawn,
    ThreadCreate,
    ThreadJoin,
    TimerTimeout,
    Touch,
    WaitPid,
)
from satview.capture.sim.calls.messages import Received
from satview.capture.sim.services import QnxError
from satview.capture.sim.threads import Policy, Program
from satview.capture.workloads.parts import MS, US, Address

# Workloads with processes and signals: many short-lived children; handlers, interrupted calls and timeouts.


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


# A workload with fork, exec, SIGSTOP and SIGCONT, SIGCHLD, and pulses about closed connections.


def setup_process_life(kernel: Kernel) -> None:
    """Start a parent that forks, stops and continues children, which run other programs; and a server."""
    registry = Address()

    def server() -> Program:
        registry.chid = yield ChannelCreate(flags=CHF_DISCONNECT)
        registry.pid = server_process.pid
        for _ in range(5):
            received = yield MsgReceive(registry.chid)
            yield Compute(100 * US)
            if not received.is_pulse:
                yield MsgReply(received.rcvid)
        # The server ends, and its clients get pulses about their connections.

    server_process = kernel.spawn("usr/sbin/registry", server, priority=12, thread_name="server")
    kernel.spawn("bin/parent", _parent, registry, priority=10, thread_name="parent")


def _parent(registry: Address) -> Program:
    """Fork three children one after the other, stop and continue each of them, and wait for its end."""
    yield SignalAction(SIGCHLD, _on_child)
    chid = yield ChannelCreate(flags=CHF_COID_DISCONNECT)
    yield ThreadCreate(_listener, (chid,), 11, Policy.RR, "listener")
    yield from registry.connect()
    for i in range(3):
        pid = yield Fork(_child, (registry, i))
        yield from _patient(Sleep(4 * MS))
        yield SignalKill(pid, 0, SIGSTOP)
        yield from _patient(Sleep(5 * MS))
        yield SignalKill(pid, 0, SIGCONT)
        yield from _patient(WaitPid(pid))
        yield Compute(200 * US)


def _patient(call: Sleep | WaitPid) -> Program:
    """Make a call that SIGCHLD may interrupt."""
    try:
        yield call
    except QnxError:
        yield Compute(20 * US)


def _on_child(_signo: int) -> Program:
    yield Compute(50 * US)


def _listener(chid: int) -> Program:
    while True:
        yield MsgReceive(chid)
        yield Compute(30 * US)


def _child(registry: Address, number: int) -> Program:
    """Compute for a short time as a copy of the parent, then run another program."""
    yield ThreadCreate(_helper, (), 10, Policy.RR, "helper")
    yield Compute(500 * US)
    yield Exec(f"bin/tool-{number}", _tool, (registry,))


def _helper() -> Program:
    while True:
        yield Sleep(MS)


def _tool(registry: Address) -> Program:
    """Load a library, send a message to the registry, and compute; the end of the process closes the connection."""
    yield Dlopen(file="libtool.so.1")
    coid = yield from registry.connect()
    try:
        yield MsgSend(coid, b"started")
    except QnxError:
        yield Compute(20 * US)  # the registry has ended
    for _ in range(8):
        yield Compute(700 * US)
        yield Sleep(MS)
    return 0


# A workload with page faults, a missing stack, processor exceptions that become signals, and unblock pulses.


def setup_faults(kernel: Kernel) -> None:
    """Start programs that wait for pages, stacks and registers, cause exceptions, and time out at a server."""
    kernel.spawn("usr/bin/pager", _pager, priority=9, thread_name="pager")
    kernel.spawn("usr/bin/repair", _repair, priority=11, thread_name="repair")
    kernel.spawn("usr/bin/watch", _watch, priority=10, thread_name="watch")
    address = Address()
    server = kernel.spawn("usr/sbin/slow", _slow_server, address, priority=13, thread_name="server")
    address.pid = server.pid
    kernel.spawn("usr/bin/hasty", _hasty, address, priority=12, thread_name="client")


def _pager() -> Program:
    """Access missing pages, use the floating point unit, and start a thread whose stack does not exist yet."""
    for i in range(6):
        yield Touch(0x3029000000 + i * 0x1000)
        yield Compute(300 * US)
    yield Touch(is_context=True)
    yield Compute(300 * US)
    tid = yield ThreadCreate(_brief, (), 11, Policy.RR, "lazy", has_stack=False)
    yield ThreadJoin(tid)


def _brief() -> Program:
    yield Compute(400 * US)


def _repair() -> Program:
    """Cause a processor exception from time to time, which a signal handler handles."""
    yield SignalAction(SIGSEGV, _on_fault)
    for i in range(4):
        yield Compute(500 * US)
        yield SignalFault(SIGSEGV, 1, 0x10 * i)
        yield Sleep(3 * MS)


def _on_fault(_signo: int) -> Program:
    yield Compute(150 * US)


def _watch() -> Program:
    """Restart a program that a processor exception ends."""
    for _ in range(3):
        pid = yield Spawn("usr/bin/crash", _crash)
        yield WaitPid(pid)


def _crash() -> Program:
    yield Compute(MS)
    yield SignalFault(SIGSEGV, 2, 0xDEAD0000)


def _slow_server(address: Address) -> Program:
    """Serve each message slowly; an unblock pulse is received when the client's timeout expires."""
    chid = yield ChannelCreate(flags=CHF_UNBLOCK)
    yield ThreadCreate(_unblocker, (chid,), 14, Policy.RR, "unblocker")
    address.chid = chid
    while True:
        received = yield MsgReceive(chid)
        if not received.is_pulse:
            yield Sleep(6 * MS)
            yield MsgReply(received.rcvid)


def _unblocker(chid: int) -> Program:
    while True:
        received: Received = yield MsgReceive(chid)
        yield Compute(40 * US)
        if not received.is_pulse:
            yield MsgReply(received.rcvid)


def _hasty(address: Address) -> Program:
    """Send messages with a timeout shorter than the time that the server needs."""
    coid = yield from address.connect()
    for _ in range(5):
        yield TimerTimeout(("SEND", "REPLY"), 3 * MS)
        yield MsgSend(coid, b"quick")
        yield Sleep(2 * MS)
