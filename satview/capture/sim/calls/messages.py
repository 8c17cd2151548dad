"""Kernel calls that send, receive and reply to messages, and other calls for a received message."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any, ClassVar

from satview.capture.sim.calls.call import SIDE_CHANNEL, Call, effective_priority, message_words, pass_on_priority
from satview.capture.sim.services import Errno, KernelServices, QnxError
from satview.capture.sim.threads import Channel, Connection, Cpu, Thread
from satview.capture.sim.truth import Pulse, TrueMessage

__all__ = [
    "MsgCurrent", "MsgError", "MsgInfo", "MsgKeyData", "MsgRead", "MsgReadIov", "MsgReadWrite", "MsgReceive",
    "MsgReceivePulse", "MsgReply", "MsgSend", "MsgSendnc", "MsgWrite",
]  # fmt: skip


# Delivery of messages and pulses to a server, and inheritance of priority and partition.


_COPY_NS_PER_KIB = 120


@dataclass(slots=True)
class Received:
    """Result of MsgReceive: a message with `message` and `payload`, or a pulse with rcvid 0, `code` and `value`."""

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
        """Whether this is a pulse."""
        return self.rcvid == 0


@dataclass(slots=True)
class Envelope:
    """A message between send and reply.

    Attributes:
        rcvid: Id of the message for the server.
        server: Thread that received the message; None = not received yet.
        dropped: The client no longer waits for a reply.
        written: Data that MsgWrite has put into the reply.
    """

    client: Thread
    connection: Connection
    call: MsgSend
    rcvid: int
    truth: TrueMessage
    server: Thread | None = None
    dropped: bool = False
    written: bytes = b""

    @property
    def label(self) -> str:
        """Description of the reply for which the client waits."""
        return f"reply of {self.connection.channel.process.short_name}"

    def holder(self) -> tuple[Thread, ...]:
        """Return the thread that must reply; empty if no thread has received the message."""
        return (self.server,) if self.server is not None else ()

    def info(self) -> dict[str, int]:
        """Return the kernel's information about the message for the server, by names in the event table."""
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
    """The wait of a thread in MsgReceive."""

    channel: Channel

    @property
    def label(self) -> str:
        """Description of the channel."""
        return f"message on channel {self.channel.chid}"


@dataclass
class NetWait:
    """The wait of a thread whose reply, pulse or signal is being sent to another node.

    Attributes:
        link: Connection to the channel of the network manager that sends the data.
        client: Thread of the network manager that gets the reply; None for a pulse.
    """

    link: Connection
    client: Thread | None = None

    @property
    def label(self) -> str:
        """Description of the transmission for which the thread waits."""
        return f"transmission by {self.link.channel.process.short_name}"

    def holder(self) -> tuple[Thread, ...]:
        """Return the thread of the network manager that transmits the data; empty if unknown."""
        return (self.client,) if self.client is not None else ()


def live_connection(thread: Thread, coid: int) -> Connection:
    """Return a connection of a thread's process by coid.

    Raises:
        QnxError: EBADF (no such connection); ESRCH (the server has ended or closed the channel).
    """
    connection = thread.process.connections.get(coid)
    if connection is None:
        raise QnxError(Errno.EBADF, f"no connection {coid:#x}")
    channel = connection.channel
    if channel.process.is_dead or channel.chid not in channel.process.channels:
        raise QnxError(Errno.ESRCH, f"the server of connection {coid:#x} is gone")
    return connection


def received_message(thread: Thread, rcvid: int) -> Envelope:
    """Return the message that a thread of the caller's process serves under an rcvid; QnxError ESRCH = none does."""
    for server in thread.process.threads.values():
        if rcvid in server.serving:
            envelope: Envelope = server.serving[rcvid]
            return envelope
    raise QnxError(Errno.ESRCH, f"nobody waits under rcvid {rcvid:#x}")


def take_message(thread: Thread, rcvid: int) -> Envelope:
    """Return the message with an rcvid in order to reply to it, and remove it from the thread that received it.

    Raises:
        QnxError: ESRCH; no thread of the process serves such a message, or its client no longer waits.
    """
    envelope = received_message(thread, rcvid)
    for server in thread.process.threads.values():
        if server.serving.pop(rcvid, None) is not None:
            break
    if envelope.dropped:
        raise QnxError(Errno.ESRCH, f"nobody waits under rcvid {rcvid:#x}")
    return envelope


def spend_copying(kernel: KernelServices, length: int) -> None:
    """Advance the clock by the time that the kernel needs to copy `length` bytes."""
    kernel.spend(length * _COPY_NS_PER_KIB >> 10)


def busy_servers(channel: Channel) -> list[Thread]:
    """Return the threads that received from a channel last and are not waiting to receive."""
    threads = channel.process.threads.values()
    return [t for t in threads if t.received_from is channel and t.state not in ("RECEIVE", "DEAD")]


def raise_servers(kernel: KernelServices, cpu: Cpu, channel: Channel) -> None:
    """Raise the busy servers of a channel to the highest priority of its queued messages and pulses."""
    if not channel.fixed_priority:
        for server in busy_servers(channel):
            pass_on_priority(kernel, cpu, server)


def take_receiver(channel: Channel) -> Thread:
    """Remove and return the waiting receiver with the highest priority; of equal priorities, the first to wait."""
    best = max(channel.receivers, key=lambda t: t.base_priority)
    channel.receivers.remove(best)
    return best


def adopt_priority(kernel: KernelServices, cpu: Cpu, server: Thread, channel: Channel, priority: int) -> None:
    """Set a server to the priority of the received message or pulse, unless its channel has fixed priority."""
    if channel.fixed_priority or priority <= 0:
        return
    server.base_priority = priority
    kernel.scheduler.set_priority(cpu, server, max(priority, effective_priority(server)))


def inherit_from_client(kernel: KernelServices, cpu: Cpu, server: Thread, envelope: Envelope) -> None:
    """Set a server to the priority and the partition of the client whose message (`envelope`) the server received."""
    channel = envelope.connection.channel
    if not channel.fixed_priority:
        kernel.scheduler.serve(cpu, server, envelope.client, envelope)
    adopt_priority(kernel, cpu, server, channel, envelope.client.priority)


def hand_over(kernel: KernelServices, server: Thread, envelope: Envelope) -> None:
    """Complete the receiving call of a server with the message in `envelope`; runs on the server's CPU."""
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
    """Move the thread that received the message of `envelope` back to its own partition, whichever thread replied."""
    if envelope.server is not None:
        kernel.scheduler.end_service(cpu, envelope.server, envelope)


def receive_pulse(kernel: KernelServices, server: Thread, channel: Channel, pulse: PulseInFlight) -> None:
    """Complete the receiving call of a running server with a pulse."""
    time = kernel.stamp()
    pulse.truth.received = time
    kernel.record.comm(server.cpu, time, "RPULSE", (pulse.scoid, channel.process.pid), server.pid, server.tid)
    received = Received(0, code=pulse.code, value=pulse.value, scoid=pulse.scoid, priority=pulse.priority)
    kernel.complete(server, received, rcvid=0, **{"rmsg[1]": pulse.code & 0xFF, "rmsg[2]": pulse.value})


def wait_for_transmission(kernel: KernelServices, cpu: Cpu, thread: Thread, client: Thread) -> None:
    """Block a server until its reply is sent to another node, if the client represents a thread of another node."""
    channel = next(iter(client.process.channels.values()), None)
    if client.vtid and channel is not None:
        wait = NetWait(Connection(client.process, 0, channel, 0), client)
        kernel.block(cpu, thread, "NET_REPLY", wait, wait.holder())


_INFO_ADDRESS = 0x8047C40


@dataclass(slots=True)
class MsgSend(Call):
    """Send a message and wait for the reply; result: `(status, reply bytes)`, or the payload of the reply.

    Attributes:
        coid: Connection to the server's channel.
        message: Bytes of the message.
        reply_bytes: Size of the reply buffer, for the server's MsgInfo and MsgWrite.
        payload: Object passed to the server unchanged; stands for the content of the message.
    """

    name = "MSG_SENDV"
    coid: int
    message: bytes = b""
    reply_bytes: int = 64
    payload: Any = None  # passed to the server unchanged; stands for the content of the message

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: coid, number of parts, and the first words of the message."""
        return {"coid": self.coid, "sparts": 1, "rparts": 1, **message_words(self.message, "msg")}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Send the message directly to a waiting server, which takes the CPU if it can; else put it into the queue."""
        kernel.enter(cpu, thread, self)
        connection = live_connection(thread, self.coid)
        channel = connection.channel
        rcvid = (thread.tid - 1) << 16 | connection.scoid
        truth = TrueMessage((thread.pid, thread.tid), channel.process.pid, rcvid, len(self.message), 0)
        envelope = Envelope(thread, connection, self, rcvid, truth)
        truth.sent = kernel.history.cause = kernel.stamp()
        truth.parent = (
            max((served.truth.received, served.truth.sent) for served in thread.serving.values())[1]
            if thread.serving
            else -1
        )
        kernel.truth.messages.append(truth)
        kernel.record.comm(cpu.index, truth.sent, "SMSG", (rcvid, channel.process.pid), thread.pid, thread.tid)
        if channel.receivers:
            server = take_receiver(channel)
            envelope.server = server
            kernel.block(cpu, thread, "REPLY", envelope, (server,))
            inherit_from_client(kernel, cpu, server, envelope)
            server.finish = lambda: hand_over(kernel, server, envelope)
            kernel.wake(cpu, server, waker=thread, handoff=True)
            return
        channel.senders.append(envelope)
        kernel.block(cpu, thread, "SEND", envelope, tuple(t for t in busy_servers(channel) if t.serving))
        raise_servers(kernel, cpu, channel)


@dataclass(slots=True)
class MsgSendnc(MsgSend):
    """Send a message like `MsgSend`, but the thread cannot be cancelled during the call."""

    name = "MSG_SENDVNC"


@dataclass(slots=True)
class MsgReceive(Call):
    """Wait for a message or pulse; result: a `Received`.

    Attributes:
        chid: Channel of the caller's process.
        parts: Number of parts of the receive buffer, as logged.
        pulses_only: Leave messages in the queue.
    """

    name = "MSG_RECEIVEV"
    logs: ClassVar = {"rparts": "parts"}
    chid: int
    parts: int = 1
    pulses_only: bool = False

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Receive the most urgent message or pulse, or wait for one.

        Raises:
            QnxError: ESRCH (no such channel).
        """
        kernel.enter(cpu, thread, self)
        channel = thread.process.channels.get(self.chid)
        if channel is None:
            raise QnxError(Errno.ESRCH, f"no channel {self.chid}")
        thread.received_from = channel
        kernel.scheduler.end_service(cpu, thread)
        pulse = max(channel.pulses, key=lambda p: p.priority, default=None)
        envelope = max(channel.senders, key=lambda e: e.client.priority, default=None) if not self.pulses_only else None
        if pulse is not None and (envelope is None or pulse.priority >= envelope.client.priority):
            channel.pulses.remove(pulse)
            adopt_priority(kernel, cpu, thread, channel, pulse.priority)
            thread.finish = lambda: receive_pulse(kernel, thread, channel, pulse)
        elif envelope is not None:
            channel.senders.remove(envelope)
            inherit_from_client(kernel, cpu, thread, envelope)
            envelope.server = thread
            thread.finish = lambda: _take_queued(kernel, cpu, thread, envelope)
        else:
            channel.receivers.append(thread)
            kernel.block(cpu, thread, "RECEIVE", ChannelWait(channel))


@dataclass(slots=True)
class MsgReceivePulse(MsgReceive):
    """Wait for a pulse; messages stay in the queue."""

    name = "MSG_RECEIVEPULSEV"
    pulses_only: bool = True


def _take_queued(kernel: KernelServices, cpu: Cpu, server: Thread, envelope: Envelope) -> None:
    if envelope.dropped:
        kernel.fail(server, Errno.ESRCH)
        return
    server_cpu = kernel.cpus[server.cpu] if server.cpu >= 0 else cpu
    hand_over(kernel, server, envelope)
    kernel.change_wait(server_cpu, envelope.client, "REPLY", envelope, (server,), server)


@dataclass(slots=True)
class MsgReply(Call):
    """Reply to a client.

    Attributes:
        rcvid: Id of the client's message.
        status: Status that the client gets.
        message: Bytes of the reply.
        payload: Object that is the result of the client's call; None = the result is status and bytes.
    """

    name = "MSG_REPLYV"
    rcvid: int
    status: int = 0
    message: bytes = b""
    payload: Any = None

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: rcvid, number of parts, status, and the first words of the reply."""
        return {
            "rcvid": self.rcvid,
            "sparts": 1 if self.message else 0,
            "status": self.status,
            **message_words(self.message, "smsg"),
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Reply to a client and make it ready."""
        kernel.enter(cpu, thread, self)
        envelope = take_message(thread, self.rcvid)
        spend_copying(kernel, len(self.message))
        client = envelope.client
        envelope.truth.replied = kernel.history.cause = kernel.stamp()
        envelope.truth.status = self.status
        kernel.record.comm(cpu.index, envelope.truth.replied, "REPLY", (client.tid, client.pid), client.pid, client.tid)
        message = self.message + envelope.written[len(self.message) :]
        answer = self.payload if self.payload is not None else (self.status, message)
        kernel.complete(client, answer, status=self.status, **message_words(message, "rmsg"))
        end_service(kernel, cpu, envelope)
        kernel.wake(cpu, client, waker=thread)
        kernel.complete(thread)
        pass_on_priority(kernel, cpu, thread)
        wait_for_transmission(kernel, cpu, thread, client)


@dataclass(slots=True)
class MsgError(Call):
    """Reply to a client with an error number."""

    name = "MSG_ERROR"
    logs: ClassVar = {"err": "error"}
    rcvid: int
    error: int

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Reply to a client with an error."""
        kernel.enter(cpu, thread, self)
        envelope = take_message(thread, self.rcvid)
        client = envelope.client
        envelope.truth.replied = kernel.history.cause = kernel.stamp()
        envelope.truth.status = -self.error
        kernel.record.comm(cpu.index, envelope.truth.replied, "ERROR", (client.tid, client.pid), client.pid, client.tid)
        kernel.fail(client, Errno(self.error))
        end_service(kernel, cpu, envelope)
        kernel.wake(cpu, client, waker=thread)
        kernel.complete(thread)
        wait_for_transmission(kernel, cpu, thread, client)


@dataclass(slots=True)
class MsgRead(Call):
    """Read more of a client's message; result: the bytes."""

    name = "MSG_READV"
    logs: ClassVar = {"rmsg_p": 0x8047A10, "rparts": 1}
    rcvid: int
    length: int = 12
    offset: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Read from a client's message."""
        kernel.enter(cpu, thread, self)
        envelope = received_message(thread, self.rcvid)
        data = envelope.call.message[self.offset : self.offset + self.length]
        spend_copying(kernel, len(data))
        kernel.complete(thread, data, rbytes=len(data), **message_words(data, "rmsg"))


@dataclass(slots=True)
class MsgReadIov(MsgRead):
    """Read a client's message (up to 7.x); a real kernel returns the addresses of its parts instead."""

    name = "MSG_READIOV"
    logs: ClassVar = {
        "parts": 1,
        "word 0": "rcvid",
        "word 1": 1,
    }  # raw words for releases whose argument list is unknown


@dataclass(slots=True)
class MsgReadWrite(Call):
    """Copy the message of one client into the reply of another (up to 7.x); result: bytes copied."""

    name = "MSG_READWRITEV"
    logs: ClassVar = {"src_rcvid": "source", "dst_rcvid": "destination", "word 0": "source", "word 1": "destination"}
    source: int
    destination: int

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Copy as many bytes of the source's message as fit into the reply buffer of the destination."""
        kernel.enter(cpu, thread, self)
        data = received_message(thread, self.source).call.message
        destination = received_message(thread, self.destination)
        data = data[: max(0, destination.call.reply_bytes)]
        destination.written = data + destination.written[len(data) :]
        spend_copying(kernel, len(data))
        kernel.complete(thread, len(data), msglen=len(data), ret_val=len(data))


@dataclass(slots=True)
class MsgWrite(Call):
    """Write into a client's reply buffer before the reply; result: bytes written."""

    name = "MSG_WRITEV"
    rcvid: int
    message: bytes = b""
    offset: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: rcvid, number of parts, offset, and the first words of the data."""
        return {"rcvid": self.rcvid, "sparts": 1, "offset": self.offset, **message_words(self.message, "msg")}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Write the data into the reply buffer of the client's message."""
        kernel.enter(cpu, thread, self)
        envelope = received_message(thread, self.rcvid)
        start = max(self.offset, 0)
        data = self.message[: max(0, envelope.call.reply_bytes - start)]
        envelope.written = envelope.written[:start].ljust(start, b"\0") + data + envelope.written[start + len(data) :]
        kernel.complete(thread, len(data), wbytes=len(data))


@dataclass(slots=True)
class MsgInfo(Call):
    """Query the sender of a message; result: a dict with pid, tid, chid, scoid, coid, msglen, priority."""

    name = "MSG_INFO"
    rcvid: int
    info_p: int = _INFO_ADDRESS

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return the kernel's information about the message."""
        kernel.enter(cpu, thread, self)
        info = received_message(thread, self.rcvid).info()
        result = {name.removeprefix("info->"): value for name, value in info.items()}
        kernel.complete(thread, result, **info)


@dataclass(slots=True)
class MsgCurrent(Call):
    """Set the caller's priority to that of the client of a received message."""

    name = "MSG_CURRENT"
    rcvid: int

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Set the caller's priority to the client's priority."""
        kernel.enter(cpu, thread, self)
        thread.base_priority = received_message(thread, self.rcvid).client.priority
        kernel.scheduler.set_priority(cpu, thread, thread.base_priority)
        kernel.complete(thread)


@dataclass(slots=True)
class MsgKeyData(Call):
    """Create or check a key for the data of a client's message (up to 7.x); result: the new key, or 0.

    Attributes:
        rcvid: Id of the message.
        op: 0 = create a key, else check `key`.
        key: The key to check.
    """

    name = "MSG_KEYDATA"
    rcvid: int
    op: int = 0
    key: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return a key computed from client and rcvid; 0 if the given key is checked and correct."""
        kernel.enter(cpu, thread, self)
        client = received_message(thread, self.rcvid).client
        key = zlib.crc32(f"{client.pid} {client.tid} {self.rcvid}".encode()) & 0x7FFFFFFF
        result = 0 if self.op and self.key == key else key
        kernel.complete(thread, result, newkey=result)
