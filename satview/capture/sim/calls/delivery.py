"""How messages and pulses reach a server, and the priority and partition that travel with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from satview.capture.sim.calls.call import SIDE_CHANNEL, message_words
from satview.capture.sim.calls.inheritance import effective_priority, pass_on_priority
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import Errno, QnxError
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Channel, Connection, Thread
from satview.capture.sim.parts.truth import Message, Pulse

_COPY_NS_PER_KIB = 120


@dataclass(slots=True)
class Received:
    """What MsgReceive returns. A pulse has rcvid 0, `code` and `value`; a message `message` and `payload`."""

    rcvid: int
    message: bytes = b""
    payload: Any = None
    pid: int = 0
    tid: int = 0
    scoid: int = 0
    code: int = 0
    value: int = 0
    priority: int = 0

    @property
    def is_pulse(self) -> bool:
        """True for a pulse."""
        return self.rcvid == 0


class SentMessage(Protocol):
    """The kernel call that sent a message."""

    coid: int
    message: bytes
    reply_bytes: int
    payload: Any


@dataclass(slots=True)
class Envelope:
    """A message on its way; `server` is who received it."""

    client: Thread
    connection: Connection
    call: SentMessage
    rcvid: int
    truth: Message
    server: Thread | None = None
    dropped: bool = False
    written: bytes = b""  # by MsgWrite, into the reply

    @property
    def label(self) -> str:
        """What the client waits for."""
        return f"reply of {self.connection.channel.process.short_name}"

    def holder(self) -> tuple[Thread, ...]:
        """Return the thread that has to answer."""
        return (self.server,) if self.server is not None else ()

    def info(self) -> dict[str, int]:
        """Return what the kernel shows the server about the message, under the names of the event table."""
        size = len(self.call.message)
        return {
            "info->pid": self.client.pid,
            "info->tid": self.client.tid,
            "info->chid": self.connection.channel.chid,
            "info->scoid": SIDE_CHANNEL | self.connection.scoid,
            "info->coid": self.call.coid,
            "info->msglen": size,
            "info->srcmsglen": size,
            "info->dstmsglen": self.call.reply_bytes,
            "info->priority": self.client.priority,
        }


@dataclass(slots=True)
class PulseInFlight:
    """A pulse in a channel's queue."""

    scoid: int
    priority: int
    code: int
    value: int
    truth: Pulse = field(default_factory=lambda: Pulse(0, 0, 0))


@dataclass(slots=True)
class ChannelWait:
    """What a thread in MsgReceive waits for."""

    channel: Channel

    @property
    def label(self) -> str:
        """Channel and process."""
        return f"message on channel {self.channel.chid}"


def live_connection(thread: Thread, coid: int) -> Connection:
    """Return a connection of a thread's process whose server still lives.

    Raises:
        QnxError: EBADF or ESRCH; there is no such connection, or its server is gone.
    """
    connection = thread.process.connections.get(coid)
    if connection is None:
        raise QnxError(Errno.EBADF, f"no connection {coid:#x}")
    channel = connection.channel
    if channel.process.is_dead or channel.chid not in channel.process.channels:
        raise QnxError(Errno.ESRCH, f"the server of connection {coid:#x} is gone")
    return connection


def received_message(thread: Thread, rcvid: int) -> Envelope:
    """Return the message that some thread of the caller's process has received under an id.

    Raises:
        QnxError: ESRCH; no thread has one.
    """
    for server in thread.process.threads.values():
        if rcvid in server.serving:
            envelope: Envelope = server.serving[rcvid]
            return envelope
    raise QnxError(Errno.ESRCH, f"nobody waits under rcvid {rcvid:#x}")


def take_message(thread: Thread, rcvid: int) -> Envelope:
    """Return the message with an id and take it from the thread that has received it, as it is about to be answered.

    Raises:
        QnxError: ESRCH; no thread has one, or its client is gone.
    """
    envelope = received_message(thread, rcvid)
    for server in thread.process.threads.values():
        if server.serving.pop(rcvid, None) is not None:
            break
    if envelope.dropped:
        raise QnxError(Errno.ESRCH, f"nobody waits under rcvid {rcvid:#x}")
    return envelope


def spend_copying(kernel: KernelServices, length: int) -> None:
    """Let the kernel copy that many bytes of message data."""
    kernel.spend(length * _COPY_NS_PER_KIB >> 10)


def busy_servers(channel: Channel) -> list[Thread]:
    """Return the threads that serve a channel and are not waiting at it."""
    threads = channel.process.threads.values()
    return [t for t in threads if t.received_from is channel and t.state not in ("RECEIVE", "DEAD")]


def hurry(kernel: KernelServices, cpu: Cpu, channel: Channel) -> None:
    """Let the busy servers of a channel inherit the priority of what waits there."""
    if not channel.fixed_priority:
        for server in busy_servers(channel):
            pass_on_priority(kernel, cpu, server)


def take_receiver(channel: Channel) -> Thread:
    """Return the thread that has waited longest among the most urgent."""
    best = max(channel.receivers, key=lambda t: t.base_priority)
    channel.receivers.remove(best)
    return best


def adopt_priority(kernel: KernelServices, cpu: Cpu, server: Thread, channel: Channel, priority: int) -> None:
    """Let a server run at the priority of what it received, unless its channel is fixed."""
    if channel.fixed_priority or priority <= 0:
        return
    server.base_priority = priority
    kernel.scheduler.set_priority(cpu, server, max(priority, effective_priority(server)))


def task_for(kernel: KernelServices, cpu: Cpu, server: Thread, envelope: Envelope) -> None:
    """Let a server run at the priority and in the partition of the client whose message it received."""
    channel = envelope.connection.channel
    if not channel.fixed_priority:
        kernel.scheduler.serve(cpu, server, envelope.client, envelope)
    adopt_priority(kernel, cpu, server, channel, envelope.client.priority)


def hand_over(kernel: KernelServices, server: Thread, envelope: Envelope) -> None:
    """Hand a message to the server that runs now; on its own CPU, just before its call ends."""
    if envelope.dropped:
        return
    call, client = envelope.call, envelope.client
    spend_copying(kernel, len(call.message))
    time = kernel.stamp()
    envelope.truth.received = time
    envelope.truth.server = (server.pid, server.tid)
    envelope.server = server
    server.serving[envelope.rcvid] = envelope
    kernel.record.comm(server.cpu, time, "RMSG", (envelope.rcvid, server.pid), server.pid, server.tid)
    scoid = envelope.connection.scoid
    received = Received(
        envelope.rcvid, call.message, call.payload, client.pid, client.tid, scoid, priority=client.priority
    )
    kernel.complete(server, received, rcvid=envelope.rcvid, **message_words(call.message, "rmsg"), **envelope.info())


def end_service(kernel: KernelServices, cpu: Cpu, envelope: Envelope) -> None:
    """End the service for a client by the thread that received its message; another thread may have replied."""
    if envelope.server is not None:
        kernel.scheduler.end_service(cpu, envelope.server, envelope)


def receive_pulse(kernel: KernelServices, server: Thread, channel: Channel, pulse: PulseInFlight) -> None:
    """Hand a pulse to the server that runs now."""
    time = kernel.stamp()
    pulse.truth.received = time
    kernel.record.comm(server.cpu, time, "RPULSE", (pulse.scoid, channel.process.pid), server.pid, server.tid)
    received = Received(0, code=pulse.code, value=pulse.value, scoid=pulse.scoid, priority=pulse.priority)
    kernel.complete(server, received, rcvid=0, **{"rmsg[1]": pulse.code & 0xFF, "rmsg[2]": pulse.value})
