"""Kernel calls that create, connect, query and close channels and connections."""

from __future__ import annotations

from dataclasses import dataclass

from satview.capture.sim.calls.call import SIDE_CHANNEL, Call
from satview.capture.sim.calls.messages import Envelope, NetWait
from satview.capture.sim.calls.pulses import CODE_COID_DEATH, CODE_DISCONNECT, PULSE_PRIORITY, send_pulse
from satview.capture.sim.parts.errors import Errno, QnxError
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import (
    CHF_COID_DISCONNECT,
    CHF_DISCONNECT,
    CHF_FIXED_PRIORITY,
    CHF_UNBLOCK,
    Channel,
    Connection,
    Cpu,
    Process,
    Thread,
)

__all__ = [
    "CHF_COID_DISCONNECT", "CHF_DISCONNECT", "CHF_UNBLOCK", "ChannelCreate", "ChannelDestroy", "ConnectAttach",
    "ConnectClientInfo", "ConnectDetach", "ConnectFlags", "ConnectServerInfo",
]  # fmt: skip


def close_channel(kernel: KernelServices, cpu: Cpu, channel: Channel) -> None:
    """Let the calls of all threads blocked on a channel fail with ESRCH, and notify processes connected to it."""
    for envelope in list(channel.senders):
        _fail_sender(kernel, cpu, envelope, Errno.ESRCH)
    channel.senders.clear()
    for receiver in list(channel.receivers):
        kernel.fail(receiver, Errno.ESRCH)
        kernel.wake(cpu, receiver, outcome="dead")
    channel.receivers.clear()
    for process in kernel.processes.values():
        if process is not channel.process and not process.is_dead:
            _notify_of_closed_channel(kernel, cpu, process, channel)
        for thread in process.threads.values():
            if isinstance(thread.waiting_on, NetWait) and thread.waiting_on.link.channel is channel:
                kernel.fail(thread, Errno.ESRCH)
                kernel.wake(cpu, thread, outcome="dead")


def _notify_of_closed_channel(kernel: KernelServices, cpu: Cpu, process: Process, lost: Channel) -> None:
    """Send a pulse to a process for each of its connections to a closed channel, if it requested such pulses."""
    listener = next((c for c in process.channels.values() if c.flags & CHF_COID_DISCONNECT), None)
    for connection in process.connections.values() if listener is not None else ():
        if connection.channel is lost and listener is not None:
            link = Connection(process, 0, listener, 0)
            send_pulse(kernel, cpu, link, "SPULSE_DEA", PULSE_PRIORITY, CODE_COID_DEATH, connection.coid)


def disconnect(kernel: KernelServices, cpu: Cpu, connection: Connection) -> None:
    """Send the server of a closed connection a pulse, if requested and if the client has no other connection to it."""
    channel, client = connection.channel, connection.owner
    others = any(c.channel is channel for c in client.connections.values() if c is not connection)
    if channel.flags & CHF_DISCONNECT and not others and not channel.process.is_dead:
        send_pulse(kernel, cpu, connection, "SPULSE_DIS", PULSE_PRIORITY, CODE_DISCONNECT, 0)


def _fail_sender(kernel: KernelServices, cpu: Cpu, envelope: Envelope, error: Errno) -> None:
    client = envelope.client
    envelope.dropped = True
    envelope.truth.status = -int(error)
    kernel.fail(client, error)
    kernel.wake(cpu, client, outcome="dead")


def connect(process: Process, channel: Channel, side_channel: bool = True) -> Connection:
    """Connect a process to a channel and return the connection."""
    coid = process.next_coid | (SIDE_CHANNEL if side_channel else 0)
    process.next_coid += 1
    channel.process.scoids += 1
    connection = Connection(process, coid, channel, channel.process.scoids)
    process.connections[coid] = connection
    return connection


@dataclass(slots=True)
class ChannelCreate(Call):
    """Create a channel; result: its chid."""

    name = "CHANNEL_CREATE"
    fixed_priority: bool = False
    flags: int = 0  # CHF_UNBLOCK, CHF_DISCONNECT, CHF_COID_DISCONNECT

    def all_flags(self) -> int:
        """Return the flags that are passed to the kernel."""
        return self.flags | (CHF_FIXED_PRIORITY if self.fixed_priority else 0)

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: the flags."""
        return {"flags": self.all_flags()}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Create a channel in the caller's process."""
        kernel.enter(cpu, thread, self)
        process = thread.process
        channel = Channel(process, process.next_chid, self.all_flags())
        process.next_chid += 1
        process.channels[channel.chid] = channel
        kernel.complete(thread, channel.chid, chid=channel.chid)


@dataclass(slots=True)
class ChannelDestroy(Call):
    """Remove a channel; calls of threads that are blocked on it fail with ESRCH."""

    name = "CHANNEL_DESTROY"
    chid: int

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Remove the channel, and unblock the threads that are blocked on it.

        Raises:
            QnxError: EINVAL (no such channel).
        """
        kernel.enter(cpu, thread, self)
        channel = thread.process.channels.pop(self.chid, None)
        if channel is None:
            raise QnxError(Errno.EINVAL, f"no channel {self.chid}")
        close_channel(kernel, cpu, channel)
        kernel.complete(thread)


@dataclass(slots=True)
class ConnectAttach(Call):
    """Connect to a channel; result: the coid of the connection."""

    name = "CONNECT_ATTACH"
    pid: int
    chid: int
    side_channel: bool = True
    nd: int = 0  # node of the server; if not 0, `pid` and `chid` are those of the network manager

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: node, pid, chid and index."""
        index = SIDE_CHANNEL if self.side_channel else 0
        return {"nd": self.nd, "pid": self.pid, "chid": self.chid, "index": index}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Connect the caller's process to a channel of another process, or of the same process (pid 0).

        Raises:
            QnxError: ESRCH (no such channel in the process).
        """
        kernel.enter(cpu, thread, self)
        server = kernel.processes.get(self.pid) if self.pid else thread.process
        channel = server.channels.get(self.chid) if server is not None else None
        if channel is None:
            raise QnxError(Errno.ESRCH, f"no channel {self.chid} in process {self.pid}")
        connection = connect(thread.process, channel, self.side_channel)
        connection.nd = self.nd
        kernel.complete(thread, connection.coid, coid=connection.coid)


@dataclass(slots=True)
class ConnectDetach(Call):
    """Close a connection."""

    name = "CONNECT_DETACH"
    coid: int

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Close a connection.

        Raises:
            QnxError: EINVAL (no such connection).
        """
        kernel.enter(cpu, thread, self)
        connection = thread.process.connections.pop(self.coid, None)
        if connection is None:
            raise QnxError(Errno.EINVAL, f"no connection {self.coid}")
        kernel.complete(thread)
        disconnect(kernel, cpu, connection)


@dataclass(slots=True)
class ConnectServerInfo(Call):
    """Query the server of the first connection with at least this coid; result: the connection's coid."""

    name = "CONNECT_SERVER_INFO"
    pid: int
    coid: int

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return the coid of the connection, and log the ids of the server.

        Raises:
            QnxError: ESRCH (no such process); EINVAL (no connection with at least this coid).
        """
        kernel.enter(cpu, thread, self)
        process = kernel.processes.get(self.pid) if self.pid else thread.process
        if process is None:
            raise QnxError(Errno.ESRCH, f"no process {self.pid}")
        coids = [coid for coid in sorted(process.connections) if coid >= self.coid]
        if not coids:
            raise QnxError(Errno.EINVAL, f"no connection from {self.coid:#x} on")
        connection = process.connections[coids[0]]
        info = {
            "info->pid": connection.channel.process.pid,
            "info->chid": connection.channel.chid,
            "info->scoid": connection.scoid,
            "info->coid": coids[0],
        }
        kernel.complete(thread, coids[0], coid=coids[0], **info)


@dataclass(slots=True)
class ConnectClientInfo(Call):
    """Query a client by the scoid of its connection; result: the client's pid. All users are root."""

    name = "CONNECT_CLIENT_INFO"
    scoid: int
    ngroups: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return the pid of the client.

        Raises:
            QnxError: EINVAL (no such client).
        """
        kernel.enter(cpu, thread, self)
        for process in kernel.processes.values():
            for connection in process.connections.values():
                is_ours = connection.channel.process is thread.process and not process.is_dead
                if is_ours and connection.scoid == self.scoid & 0xFFFF:
                    kernel.complete(thread, process.pid, **{"info->pid": process.pid, "info->sid": 1})
                    return
        raise QnxError(Errno.EINVAL, f"no client {self.scoid:#x}")


@dataclass(slots=True)
class ConnectFlags(Call):
    """Change the flags of a connection; result: the old flags."""

    name = "CONNECT_FLAGS"
    coid: int
    masks: int = 0
    bits: int = 0
    pid: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Set those flags of the connection that are in `masks` to `bits`.

        Raises:
            QnxError: EBADF (no such connection).
        """
        kernel.enter(cpu, thread, self)
        connection: Connection | None = thread.process.connections.get(self.coid)
        if connection is None:
            raise QnxError(Errno.EBADF, f"no connection {self.coid:#x}")
        old, connection.flags = connection.flags, connection.flags & ~self.masks | self.bits & self.masks
        kernel.complete(thread, old, old_flags=old)
