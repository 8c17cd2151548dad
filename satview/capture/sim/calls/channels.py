"""Kernel calls for channels and connections, and the pulses and sigevents that are sent without waiting."""

from __future__ import annotations

from dataclasses import dataclass, field

from satview.capture.sim.calls.call import SIDE_CHANNEL, Call
from satview.capture.sim.calls.messages import (
    Envelope,
    NetWait,
    PulseInFlight,
    adopt_priority,
    live_connection,
    raise_servers,
    receive_pulse,
    received_message,
    take_receiver,
)
from satview.capture.sim.services import Errno, KernelServices, QnxError
from satview.capture.sim.threads import (
    CHF_COID_DISCONNECT,
    CHF_DISCONNECT,
    CHF_FIXED_PRIORITY,
    CHF_UNBLOCK,
    Channel,
    Connection,
    Cpu,
    Process,
    Sigevent,
    Thread,
)
from satview.capture.sim.truth import Pulse

# Pulses and sigevents, which threads, timers, interrupts and the kernel send without waiting.


__all__ = [
    "CHF_COID_DISCONNECT",
    "CHF_DISCONNECT",
    "CHF_UNBLOCK",
    "ChannelCreate",
    "ChannelDestroy",
    "ConnectAttach",
    "ConnectClientInfo",
    "ConnectDetach",
    "ConnectFlags",
    "ConnectServerInfo",
    "MsgDeliverEvent",
    "MsgSendPulse",
    "MsgSendPulsePtr",
    "MsgVerifyEvent",
]


# Codes and priority of the kernel's own pulses.
CODE_UNBLOCK, CODE_DISCONNECT, CODE_COID_DEATH, CODE_NET_UNBLOCK = -1, -2, -4, -6
PULSE_PRIORITY = 10
_NOWHERE = (0xFFFFFFFF, 0)  # logged for a pulse to a network manager instead of scoid and pid


def send_pulse(
    kernel: KernelServices,
    cpu: Cpu,
    connection: Connection,
    event: str,
    priority: int,
    code: int,
    value: int,
    sender: Thread | None = None,
) -> None:
    """Give a pulse to a thread that waits at the channel of `connection`, or queue it.

    Args:
        kernel: The kernel.
        cpu: CPU on which the kernel runs.
        connection: The sender's connection to the channel.
        event: Name of the COMM event to log, such as `SPULSE_DEA`.
        priority: Priority of the pulse.
        code: Code of the pulse.
        value: Value of the pulse.
        sender: Thread that sends the pulse; None = the kernel.
    """
    channel = connection.channel
    scoid = SIDE_CHANNEL | connection.scoid
    time = kernel.stamp()
    words = _NOWHERE if event == "SPULSE_QUN" else (scoid, channel.process.pid)
    truth = Pulse(*words, time, origin=kernel.history.cause)
    kernel.history.cause = time
    pulse = PulseInFlight(scoid, priority, code, value, truth)
    kernel.truth.pulses.append(pulse.truth)
    tid = sender.tid if sender is not None else 0
    pid = sender.pid if sender is not None else channel.process.pid
    kernel.record.comm(cpu.index, time, event, words, pid, tid)
    if not channel.receivers:
        channel.pulses.append(pulse)
        raise_servers(kernel, cpu, channel)
        return
    server = take_receiver(channel)
    adopt_priority(kernel, cpu, server, channel, priority)
    server.finish = lambda: receive_pulse(kernel, server, channel, pulse)
    kernel.wake(cpu, server, waker=sender)


def deliver(
    kernel: KernelServices, cpu: Cpu, process: Process, target: Thread | None, event: Sigevent, pulse: str
) -> None:
    """Deliver a sigevent, which a process has set up: send its pulse or signal, or wake InterruptWait.

    `target` is the thread to wake or to signal; None = any thread for a signal, no thread to wake. `pulse` is the name
    of the event that is logged if a pulse is sent.
    """
    if process.is_dead:
        return
    if event.kind == "pulse":
        connection = process.connections.get(event.coid)
        if connection is not None and not connection.channel.process.is_dead:
            send_pulse(kernel, cpu, connection, pulse, event.priority, event.code, event.value)
    elif event.kind == "intr" and target is not None:
        wake_for_interrupt(kernel, cpu, target)
    elif event.kind == "signal":
        kernel.post_signal(cpu, process, target, event.signo, event.code)


def wake_for_interrupt(kernel: KernelServices, cpu: Cpu, target: Thread) -> None:
    """Wake a thread that is blocked in InterruptWait, or let its next InterruptWait return at once."""
    if target.state == "INTR":
        kernel.complete(target)
        kernel.wake(cpu, target)
    else:
        target.unmasked_intr += 1


@dataclass(slots=True)
class MsgSendPulse(Call):
    """Send a pulse without waiting; only a pulse to another node blocks the caller in NET_SEND."""

    name = "MSG_SEND_PULSE"
    coid: int
    priority: int = -1  # -1 = the sender's priority
    code: int = 1
    value: int = 0

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return the logged arguments: coid, priority, code and value."""
        priority = self.priority if self.priority >= 0 else thread.priority
        return {"coid": self.coid, "priority": priority, "code": self.code, "value": self.value}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Send a pulse."""
        kernel.enter(cpu, thread, self)
        connection = live_connection(thread, self.coid)
        priority = self.priority if self.priority >= 0 else thread.priority
        kernel.complete(thread)
        send_pulse(kernel, cpu, connection, "SPULSE", priority, self.code, self.value, thread)
        if connection.nd and kernel.target.has_network:
            kernel.block(cpu, thread, "NET_SEND", NetWait(connection))


@dataclass(slots=True)
class MsgSendPulsePtr(MsgSendPulse):
    """Send a pulse with a pointer as its value (7.x on)."""

    name = "MSG_SEND_PULSEPTR"

    def older(self) -> Call:
        """Return the call made on older kernels, which sends the value as a number."""
        return MsgSendPulse(self.coid, self.priority, self.code, self.value)


@dataclass(slots=True)
class MsgDeliverEvent(Call):
    """Deliver a sigevent to the client of a received message."""

    name = "MSG_DELIVER_EVENT"
    rcvid: int
    event: Sigevent = field(default_factory=Sigevent)

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Deliver the event to the client."""
        kernel.enter(cpu, thread, self)
        envelope = received_message(thread, self.rcvid)
        kernel.complete(thread)
        deliver(kernel, cpu, envelope.client.process, envelope.client, self.event, "SPULSE_EXE")


@dataclass(slots=True)
class MsgVerifyEvent(MsgDeliverEvent):
    """Check that a sigevent can be delivered to the client of a received message."""

    name = "MSG_VERIFY_EVENT"

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Check that the client has the connection for a pulse; other events are always valid.

        Raises:
            QnxError: EBADF (the client has no such connection).
        """
        kernel.enter(cpu, thread, self)
        client = received_message(thread, self.rcvid).client
        if self.event.kind == "pulse" and self.event.coid not in client.process.connections:
            raise QnxError(Errno.EBADF, f"the client has no connection {self.event.coid:#x}")
        kernel.complete(thread)


# Kernel calls that create, connect, query and close channels and connections.


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
    """Send a process a pulse for each of its connections to the closed channel `lost`, if it requested such pulses."""
    listener = next((c for c in process.channels.values() if c.flags & CHF_COID_DISCONNECT), None)
    for connection in process.connections.values() if listener is not None else ():
        if connection.channel is lost and listener is not None:
            link = Connection(process, 0, listener, 0)
            send_pulse(kernel, cpu, link, "SPULSE_DEA", PULSE_PRIORITY, CODE_COID_DEATH, connection.coid)


def disconnect(kernel: KernelServices, cpu: Cpu, connection: Connection) -> None:
    """Send a pulse to the server of a closed connection.

    The pulse is sent only if the channel requests such pulses and the client has no other connection to the channel.
    """
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
    """Connect a process to a channel and return the connection; `side_channel` sets this bit in the coid."""
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
    """Connect to a channel; result: the coid of the connection.

    Attributes:
        pid: Process that owns the channel; 0 = the caller's process.
        chid: The channel.
        side_channel: Whether the coid gets the side channel bit.
        nd: Node of the server; if not 0, `pid` and `chid` are those of the network manager.
    """

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
