"""Workloads with processes: many short-lived children, signals, process states, page faults and exceptions."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim import calls
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
            pid = yield calls.Spawn(f"bin/cmd{i}", _command, (kernel,))
            pids.append(pid)
        for pid in pids:
            yield calls.WaitPid(pid)
        yield calls.Sleep(2 * MS)


def _command(kernel: Kernel) -> Program:
    yield calls.Compute(kernel.machine.random.randint(100 * US, 2 * MS))
    return 0


def setup_signals(kernel: Kernel) -> None:
    """Start a thread whose calls signals and timeouts end, a thread that waits for signals, and a process.

    A signal kills the process at the end.
    """

    def main() -> Program:
        receiver = yield calls.ThreadCreate(_receiver, (), 12, Policy.RR, "receiver")
        waiter = yield calls.ThreadCreate(_waiter, (), 12, Policy.RR, "waiter")
        victim = yield calls.Spawn("usr/bin/victim", _victim)
        yield calls.Sleep(20 * MS)
        for _ in range(3):
            yield calls.SignalKill(0, receiver, calls.SIGUSR1)
            yield calls.Sleep(15 * MS)
            yield calls.SignalKill(0, waiter, calls.SIGUSR1 + 1)
            yield calls.Sleep(10 * MS)
        yield calls.SignalKill(victim, 0, calls.SIGTERM)
        yield calls.WaitPid(victim)

    kernel.spawn("usr/bin/signals", main, priority=10)


def _on_signal(_signo: int) -> Program:
    yield calls.Compute(300 * US)


def _receiver() -> Program:
    yield calls.SignalAction(calls.SIGUSR1, _on_signal)
    chid = yield calls.ChannelCreate()
    while True:
        yield calls.TimerTimeout(("RECEIVE",), 40 * MS)
        try:
            yield calls.MsgReceive(chid)
        except QnxError as error:
            yield calls.Compute(200 * US if error.name == "EINTR" else 600 * US)


def _waiter() -> Program:
    while True:
        yield calls.SignalWaitinfo((calls.SIGUSR1 + 1,))
        yield calls.Compute(500 * US)


def _victim() -> Program:
    while True:
        yield calls.Compute(400 * US)
        yield calls.Sleep(5 * MS)


# A workload with fork, exec, SIGSTOP and SIGCONT, SIGCHLD, and pulses about closed connections.


def setup_process_life(kernel: Kernel) -> None:
    """Start a server, and a parent that forks children, stops and continues them. The children run another program."""
    registry = Address()

    def server() -> Program:
        registry.chid = yield calls.ChannelCreate(flags=calls.CHF_DISCONNECT)
        registry.pid = server_process.pid
        for _ in range(5):
            received = yield calls.MsgReceive(registry.chid)
            yield calls.Compute(100 * US)
            if not received.is_pulse:
                yield calls.MsgReply(received.rcvid)
        # The server ends, and its clients get pulses about their connections.

    server_process = kernel.spawn("usr/sbin/registry", server, priority=12, thread_name="server")
    kernel.spawn("bin/parent", _parent, registry, priority=10, thread_name="parent")


def _parent(registry: Address) -> Program:
    """Fork three children one after the other, stop and continue each of them, and wait for its end."""
    yield calls.SignalAction(calls.SIGCHLD, _on_child)
    chid = yield calls.ChannelCreate(flags=calls.CHF_COID_DISCONNECT)
    yield calls.ThreadCreate(_listener, (chid,), 11, Policy.RR, "listener")
    yield from registry.connect()
    for i in range(3):
        pid = yield calls.Fork(_child, (registry, i))
        yield from _patient(calls.Sleep(4 * MS))
        yield calls.SignalKill(pid, 0, calls.SIGSTOP)
        yield from _patient(calls.Sleep(5 * MS))
        yield calls.SignalKill(pid, 0, calls.SIGCONT)
        yield from _patient(calls.WaitPid(pid))
        yield calls.Compute(200 * US)


def _patient(call: calls.Sleep | calls.WaitPid) -> Program:
    """Make a call that SIGCHLD may interrupt."""
    try:
        yield call
    except QnxError:
        yield calls.Compute(20 * US)


def _on_child(_signo: int) -> Program:
    yield calls.Compute(50 * US)


def _listener(chid: int) -> Program:
    while True:
        yield calls.MsgReceive(chid)
        yield calls.Compute(30 * US)


def _child(registry: Address, number: int) -> Program:
    """Compute for a short time as a copy of the parent, then run the program `bin/tool-NUMBER`, given `registry`."""
    yield calls.ThreadCreate(_helper, (), 10, Policy.RR, "helper")
    yield calls.Compute(500 * US)
    yield calls.Exec(f"bin/tool-{number}", _tool, (registry,))


def _helper() -> Program:
    while True:
        yield calls.Sleep(MS)


def _tool(registry: Address) -> Program:
    """Load a library, send a message to the registry, and compute; the end of the process closes the connection."""
    yield calls.Dlopen(file="libtool.so.1")
    coid = yield from registry.connect()
    try:
        yield calls.MsgSend(coid, b"started")
    except QnxError:
        yield calls.Compute(20 * US)  # the registry has ended
    for _ in range(8):
        yield calls.Compute(700 * US)
        yield calls.Sleep(MS)
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
        yield calls.Touch(0x3029000000 + i * 0x1000)
        yield calls.Compute(300 * US)
    yield calls.Touch(is_context=True)
    yield calls.Compute(300 * US)
    tid = yield calls.ThreadCreate(_brief, (), 11, Policy.RR, "lazy", has_stack=False)
    yield calls.ThreadJoin(tid)


def _brief() -> Program:
    yield calls.Compute(400 * US)


def _repair() -> Program:
    """Cause a processor exception from time to time, which a signal handler handles."""
    yield calls.SignalAction(calls.SIGSEGV, _on_fault)
    for i in range(4):
        yield calls.Compute(500 * US)
        yield calls.SignalFault(calls.SIGSEGV, 1, 0x10 * i)
        yield calls.Sleep(3 * MS)


def _on_fault(_signo: int) -> Program:
    yield calls.Compute(150 * US)


def _watch() -> Program:
    """Restart a program that a processor exception ends."""
    for _ in range(3):
        pid = yield calls.Spawn("usr/bin/crash", _crash)
        yield calls.WaitPid(pid)


def _crash() -> Program:
    yield calls.Compute(MS)
    yield calls.SignalFault(calls.SIGSEGV, 2, 0xDEAD0000)


def _slow_server(address: Address) -> Program:
    """Serve each message slowly; an unblock pulse is received when the client's timeout expires."""
    chid = yield calls.ChannelCreate(flags=calls.CHF_UNBLOCK)
    yield calls.ThreadCreate(_unblocker, (chid,), 14, Policy.RR, "unblocker")
    address.chid = chid
    while True:
        received = yield calls.MsgReceive(chid)
        if not received.is_pulse:
            yield calls.Sleep(6 * MS)
            yield calls.MsgReply(received.rcvid)


def _unblocker(chid: int) -> Program:
    while True:
        received: Received = yield calls.MsgReceive(chid)
        yield calls.Compute(40 * US)
        if not received.is_pulse:
            yield calls.MsgReply(received.rcvid)


def _hasty(address: Address) -> Program:
    """Send messages with a timeout shorter than the time that the server needs."""
    coid = yield from address.connect()
    for _ in range(5):
        yield calls.TimerTimeout(("SEND", "REPLY"), 3 * MS)
        yield calls.MsgSend(coid, b"quick")
        yield calls.Sleep(2 * MS)
