"""A workload with fork, exec, SIGSTOP and SIGCONT, SIGCHLD, and pulses about closed connections."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    CHF_COID_DISCONNECT,
    CHF_DISCONNECT,
    SIGCHLD,
    SIGCONT,
    SIGSTOP,
    ChannelCreate,
    Compute,
    Dlopen,
    Exec,
    Fork,
    MsgReceive,
    MsgReply,
    MsgSend,
    SignalAction,
    SignalKill,
    Sleep,
    ThreadCreate,
    WaitPid,
)
from satview.capture.sim.parts.errors import QnxError
from satview.capture.sim.parts.threads import Policy, Program
from satview.capture.workloads.parts import MS, US, Address


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
