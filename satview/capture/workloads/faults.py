"""A workload with page faults, a missing stack, processor exceptions that become signals, and unblock pulses."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    CHF_UNBLOCK,
    SIGSEGV,
    ChannelCreate,
    Compute,
    MsgReceive,
    MsgReply,
    MsgSend,
    SignalAction,
    SignalFault,
    Sleep,
    Spawn,
    ThreadCreate,
    ThreadJoin,
    TimerTimeout,
    Touch,
    WaitPid,
)
from satview.capture.sim.calls.messages import Received
from satview.capture.sim.parts.threads import Policy, Program
from satview.capture.workloads.parts import MS, US, Address


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
