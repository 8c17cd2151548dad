"""A workload with a network manager that forwards messages between a local server and threads of another node."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    CHF_UNBLOCK,
    ChannelCreate,
    Compute,
    ConnectAttach,
    KernelCall,
    MsgReceive,
    MsgReply,
    MsgSend,
    MsgSendPulse,
    NetVtid,
    Ring0,
    Sleep,
    ThreadCreate,
    TimerTimeout,
    transmitted,
)
from satview.capture.sim.calls.messages import Received
from satview.capture.sim.parts.errors import QnxError
from satview.capture.sim.parts.threads import Policy, Program
from satview.capture.workloads.parts import MS, US, Address

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
    address.chid = yield ChannelCreate(flags=CHF_UNBLOCK)
    while True:
        received: Received = yield MsgReceive(address.chid)
        yield Compute(300 * US)
        if not received.is_pulse:
            yield MsgReply(received.rcvid, 0, b"data")


def _network(kernel: Kernel, local: Address, remote: Address) -> Program:
    """Forward pulses to the other node; a second thread represents threads of the other node."""
    chid = yield ChannelCreate()
    coid = yield from local.connect()
    if kernel.target.has_call("NET_VTID"):
        yield ThreadCreate(_stand_in, (coid,), 14, Policy.RR, "stand-in")
    remote.chid = chid
    while True:
        received: Received = yield MsgReceive(chid)
        yield Compute(400 * US)
        if received.value == GIVEN_UP:
            yield Sleep(5 * MS)
        yield Ring0(transmitted)


def _editor(address: Address) -> Program:
    """Keep the server busy, so that messages from the other node must wait."""
    coid = yield from address.connect()
    for _ in range(40):
        yield MsgSend(coid, b"mine")
        yield Compute(100 * US)


def _stand_in(coid: int) -> Program:
    """Send messages for threads of the other node, and forward the replies."""
    yield KernelCall("NET_INFOSCOID", {"scoid": coid, "infoscoid": 1})
    for i in range(1, 6):
        yield NetVtid(i, tid=1, coid=coid, srcnd=2, srcmsglen=4)
        yield MsgSend(coid, b"read")
        yield Compute(200 * US)
        yield Ring0(transmitted)
        yield NetVtid(0)
        yield Sleep(5 * MS)
    yield KernelCall("NET_CRED", {"coid": coid})


def _notifier(remote: Address) -> Program:
    """Send pulses to the other node; the last pulse times out before it is forwarded."""
    while not remote.chid:
        yield Sleep(MS)
    coid = yield ConnectAttach(remote.pid, remote.chid, nd=2)
    for i in range(5):
        yield MsgSendPulse(coid, 10, 1, i)
        yield Sleep(3 * MS)
    yield TimerTimeout(("NET_SEND",), 2 * MS)
    try:
        yield MsgSendPulse(coid, 10, 1, GIVEN_UP)
    except QnxError:
        yield Compute(50 * US)
