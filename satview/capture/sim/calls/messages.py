"""Kernel calls for messages: send, receive, reply, and what a server may do with a message it has received."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

from satview.capture.sim.calls.call import Call, message_words
from satview.capture.sim.calls.delivery import (
    ChannelWait,
    Envelope,
    adopt_priority,
    busy_servers,
    end_service,
    hand_over,
    hurry,
    live_connection,
    receive_pulse,
    received_message,
    spend_copying,
    take_message,
    take_receiver,
    task_for,
)
from satview.capture.sim.calls.inheritance import pass_on_priority
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import Errno, QnxError
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Thread
from satview.capture.sim.parts.truth import Message

__all__ = [
    "MsgCurrent",
    "MsgError",
    "MsgInfo",
    "MsgKeyData",
    "MsgRead",
    "MsgReceive",
    "MsgReceivePulse",
    "MsgReply",
    "MsgSend",
    "MsgSendnc",
    "MsgWrite",
]

_INFO_ADDRESS = 0x8047C40


@dataclass(slots=True)
class MsgSend(Call):
    """Send a message and wait for the reply; result `(status, reply bytes)`."""

    name = "MSG_SENDV"
    coid: int
    message: bytes = b""
    reply_bytes: int = 64
    payload: Any = None  # handed to the server as it is; represents what the message says

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return coid, parts and the first words."""
        return {"coid": self.coid, "sparts": 1, "rparts": 1, **message_words(self.message, "msg")}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Send: to a waiting server at once, which takes over the CPU if it can, else into the channel's queue."""
        kernel.enter(cpu, thread, self)
        connection = live_connection(thread, self.coid)
        channel = connection.channel
        rcvid = (thread.tid - 1) << 16 | connection.scoid
        truth = Message((thread.pid, thread.tid), channel.process.pid, rcvid, len(self.message), 0)
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
            task_for(kernel, cpu, server, envelope)
            server.finish = lambda: hand_over(kernel, server, envelope)
            kernel.wake(cpu, server, waker=thread, handoff=True)
            return
        channel.senders.append(envelope)
        kernel.block(cpu, thread, "SEND", envelope, tuple(t for t in busy_servers(channel) if t.serving))
        hurry(kernel, cpu, channel)


@dataclass(slots=True)
class MsgSendnc(MsgSend):
    """Send a message; as `MsgSend`, but no point at which the thread can be cancelled."""

    name = "MSG_SENDVNC"


@dataclass(slots=True)
class MsgReceive(Call):
    """Wait for a message or pulse; result: a `Received`."""

    name = "MSG_RECEIVEV"
    chid: int
    parts: int = 1
    pulses_only: bool = False

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return chid and parts."""
        return {"chid": self.chid, "rparts": self.parts}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Receive what waits, the most urgent first, or wait.

        Raises:
            QnxError: ESRCH (no channel).
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
            task_for(kernel, cpu, thread, envelope)
            envelope.server = thread
            thread.finish = lambda: _take_queued(kernel, cpu, thread, envelope)
        else:
            channel.receivers.append(thread)
            kernel.block(cpu, thread, "RECEIVE", ChannelWait(channel))


@dataclass(slots=True)
class MsgReceivePulse(MsgReceive):
    """Wait for a pulse only."""

    name = "MSG_RECEIVEPULSEV"
    pulses_only: bool = True


def _take_queued(kernel: KernelServices, cpu: Cpu, server: Thread, envelope: Envelope) -> None:
    if envelope.dropped:
        kernel.fail(server, Errno.ESRCH)
        return
    here = kernel.cpus[server.cpu] if server.cpu >= 0 else cpu
    hand_over(kernel, server, envelope)
    kernel.change_wait(here, envelope.client, "REPLY", envelope, (server,), server)


@dataclass(slots=True)
class MsgReply(Call):
    """Answer a client."""

    name = "MSG_REPLYV"
    rcvid: int
    status: int = 0
    message: bytes = b""
    payload: Any = None

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return rcvid, status and the first words."""
        return {
            "rcvid": self.rcvid,
            "sparts": 1 if self.message else 0,
            "status": self.status,
            **message_words(self.message, "smsg"),
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Answer a client and make it ready."""
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


@dataclass(slots=True)
class MsgError(Call):
    """Answer a client with an error number."""

    name = "MSG_ERROR"
    rcvid: int
    error: int

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return rcvid and error."""
        return {"rcvid": self.rcvid, "err": self.error}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Answer a client with an error."""
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


@dataclass(slots=True)
class MsgRead(Call):
    """Read more of a client's message; result: the bytes."""

    name = "MSG_READV"
    rcvid: int
    length: int = 12
    offset: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return rcvid, parts and offset."""
        return {"rcvid": self.rcvid, "rmsg_p": 0x8047A10, "rparts": 1, "offset": self.offset}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Read from a client's message."""
        kernel.enter(cpu, thread, self)
        envelope = received_message(thread, self.rcvid)
        data = envelope.call.message[self.offset : self.offset + self.length]
        spend_copying(kernel, len(data))
        kernel.complete(thread, data, rbytes=len(data), **message_words(data, "rmsg"))


@dataclass(slots=True)
class MsgWrite(Call):
    """Write into a client's reply buffer before the reply; result: bytes written."""

    name = "MSG_WRITEV"
    rcvid: int
    message: bytes = b""
    offset: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return rcvid, parts, offset and the first words."""
        return {"rcvid": self.rcvid, "sparts": 1, "offset": self.offset, **message_words(self.message, "msg")}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Keep the data for the reply."""
        kernel.enter(cpu, thread, self)
        envelope = received_message(thread, self.rcvid)
        start = max(self.offset, 0)
        data = self.message[: max(0, envelope.call.reply_bytes - start)]
        envelope.written = envelope.written[:start].ljust(start, b"\0") + data + envelope.written[start + len(data) :]
        kernel.complete(thread, len(data), wbytes=len(data))


@dataclass(slots=True)
class MsgInfo(Call):
    """Query who sent a message; result: a dict with pid, tid, chid, scoid, coid, msglen, priority."""

    name = "MSG_INFO"
    rcvid: int
    info_p: int = _INFO_ADDRESS

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return what the kernel keeps of the message."""
        kernel.enter(cpu, thread, self)
        info = received_message(thread, self.rcvid).info()
        result = {name.removeprefix("info->"): value for name, value in info.items()}
        kernel.complete(thread, result, **info)


@dataclass(slots=True)
class MsgCurrent(Call):
    """Go on at the priority of the client of another message."""

    name = "MSG_CURRENT"
    rcvid: int

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Take over the client's priority."""
        kernel.enter(cpu, thread, self)
        thread.base_priority = received_message(thread, self.rcvid).client.priority
        kernel.scheduler.set_priority(cpu, thread, thread.base_priority)
        kernel.complete(thread)


@dataclass(slots=True)
class MsgKeyData(Call):
    """Pass data through a client and know it again; result: the new key (up to 7.x)."""

    name = "MSG_KEYDATA"
    rcvid: int
    op: int = 0
    key: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return a key that depends on client and data; 0 if the given one is right."""
        kernel.enter(cpu, thread, self)
        client = received_message(thread, self.rcvid).client
        right = zlib.crc32(f"{client.pid} {client.tid} {self.rcvid}".encode()) & 0x7FFFFFFF
        new = 0 if self.op and self.key == right else right
        kernel.complete(thread, new, newkey=new)
