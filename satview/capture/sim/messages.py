"""Channels, connections, messages and pulses, with the priority that travels with a message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from satview.capture.sim.call_base import SIDE_CHANNEL, message_words
from satview.capture.sim.errors import Errno
from satview.capture.sim.sync import effective_priority, pass_on_priority
from satview.capture.sim.threads import Channel, Connection, Process, Thread
from satview.capture.sim.truth import Message, Pulse

if TYPE_CHECKING:
    from satview.capture.sim.calls import (
        MsgError,
        MsgRead,
        MsgReceive,
        MsgReply,
        MsgSend,
    )
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine

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


@dataclass(slots=True)
class Envelope:
    """A message on its way; `server` is who received it."""

    client: Thread
    connection: Connection
    call: MsgSend
    rcvid: int
    truth: Message
    server: Thread | None = None
    dropped: bool = False
    written: bytes = b""           # by MsgWrite, into the reply

    @property
    def label(self) -> str:
        """Whom it waits for."""
        return f"reply of {self.connection.channel.process.short_name}"

    def holder(self) -> tuple[Thread, ...]:
        """Return the thread that has to answer."""
        return (self.server,) if self.server is not None else ()

    def info(self) -> dict[str, int]:
        """Return what the kernel tells the server about the message, under the names of the event table."""
        size = len(self.call.message)
        return {"info->pid": self.client.pid, "info->tid": self.client.tid,
                "info->chid": self.connection.channel.chid, "info->scoid": SIDE_CHANNEL | self.connection.scoid,
                "info->coid": self.call.coid, "info->msglen": size, "info->srcmsglen": size,
                "info->dstmsglen": self.call.reply_bytes, "info->priority": self.client.priority}


def find_channel(machine: Machine, thread: Thread, coid: int) -> Connection | None:
    """Return a connection whose server still lives; else let the call fail."""
    connection = thread.process.connections.get(coid)
    if connection is None:
        machine.fail(thread, Errno.EBADF, f"no connection {coid:#x}")
        return None
    channel = connection.channel
    if channel.process.is_dead or channel.chid not in channel.process.channels:
        machine.fail(thread, Errno.ESRCH, f"the server of connection {coid:#x} is gone")
        return None
    return connection


@dataclass(slots=True)
class PulseInFlight:
    """A pulse in a channel's queue."""

    scoid: int
    priority: int
    code: int
    value: int
    truth: Pulse = field(default_factory=lambda: Pulse(0, 0, 0))


# Messages


def msg_send(machine: Machine, cpu: Cpu, thread: Thread, call: MsgSend) -> None:
    """Send: to a waiting server at once, which takes over the CPU if it can, else into the channel's queue."""
    machine.enter(cpu, thread, call)
    connection = find_channel(machine, thread, call.coid)
    if connection is None:
        return
    channel = connection.channel
    rcvid = (thread.tid - 1) << 16 | connection.scoid
    truth = Message((thread.pid, thread.tid), channel.process.pid, rcvid, len(call.message), 0)
    envelope = Envelope(thread, connection, call, rcvid, truth)
    truth.sent = machine.history.cause = machine.stamp()
    truth.parent = max((served.truth.received, served.truth.sent) for served in thread.serving.values())[1] \
        if thread.serving else -1
    machine.truth.messages.append(truth)
    machine.record.comm(cpu.index, truth.sent, "SMSG", (rcvid, channel.process.pid), thread.pid, thread.tid)
    if channel.receivers:
        server = take_receiver(channel)
        envelope.server = server
        machine.block(cpu, thread, "REPLY", envelope, (server,))
        _work_for(machine, cpu, server, envelope)
        server.finish = lambda: _receive(machine, server, envelope)
        machine.wake(cpu, server, waker=thread, handoff=True)
        return
    channel.senders.append(envelope)
    machine.block(cpu, thread, "SEND", envelope, tuple(t for t in _busy(channel) if t.serving))
    hurry(machine, cpu, channel)


def _busy(channel: Channel) -> list[Thread]:
    """Return the threads that serve a channel and are not waiting at it."""
    threads = channel.process.threads.values()
    return [t for t in threads if t.received_from is channel and t.state not in ("RECEIVE", "DEAD")]


def hurry(machine: Machine, cpu: Cpu, channel: Channel) -> None:
    """Let the busy servers of a channel inherit the priority of what waits there."""
    if not channel.fixed_priority:
        for server in _busy(channel):
            pass_on_priority(machine, cpu, server)


def take_receiver(channel: Channel) -> Thread:
    """Return the thread that has waited longest among the most urgent."""
    best = max(channel.receivers, key=lambda t: t.base_priority)
    channel.receivers.remove(best)
    return best


def adopt_priority(machine: Machine, cpu: Cpu, server: Thread, channel: Channel, priority: int) -> None:
    """Let a server run at the priority of what it received, unless its channel is fixed."""
    if channel.fixed_priority or priority <= 0:
        return
    server.base_priority = priority
    machine.scheduler.set_priority(cpu, server, max(priority, effective_priority(server)))


def _work_for(machine: Machine, cpu: Cpu, server: Thread, envelope: Envelope) -> None:
    """Let a server run at the priority and in the partition of the client whose message it received."""
    channel = envelope.connection.channel
    if not channel.fixed_priority:
        machine.scheduler.serve(cpu, server, envelope.client, envelope)
    adopt_priority(machine, cpu, server, channel, envelope.client.priority)


def _receive(machine: Machine, server: Thread, envelope: Envelope) -> None:
    """Hand a message to the server that runs now; on its own CPU, just before its call ends."""
    if envelope.dropped:
        return
    call, client = envelope.call, envelope.client
    machine.spend(len(call.message) * _COPY_NS_PER_KIB >> 10)
    time = machine.stamp()
    envelope.truth.received = time
    envelope.truth.server = (server.pid, server.tid)
    envelope.server = server
    server.serving[envelope.rcvid] = envelope
    machine.record.comm(server.cpu, time, "RMSG", (envelope.rcvid, server.pid), server.pid, server.tid)
    scoid = envelope.connection.scoid
    machine.complete(server, Received(envelope.rcvid, call.message, call.payload, client.pid, client.tid, scoid,
                                      priority=client.priority), rcvid=envelope.rcvid,
                     **message_words(call.message, "rmsg"), **envelope.info())


def msg_receive(machine: Machine, cpu: Cpu, thread: Thread, call: MsgReceive) -> None:
    """Receive what waits, the most urgent first, or wait."""
    machine.enter(cpu, thread, call)
    channel = thread.process.channels.get(call.chid)
    if channel is None:
        machine.fail(thread, Errno.ESRCH, f"no channel {call.chid}")
        return
    thread.received_from = channel
    machine.scheduler.end_service(cpu, thread)
    pulse = max(channel.pulses, key=lambda p: p.priority, default=None)
    envelope = max(channel.senders, key=lambda e: e.client.priority, default=None) if not call.pulses_only else None
    if pulse is not None and (envelope is None or pulse.priority >= envelope.client.priority):
        channel.pulses.remove(pulse)
        adopt_priority(machine, cpu, thread, channel, pulse.priority)
        thread.finish = lambda: receive_pulse(machine, thread, channel, pulse)
    elif envelope is not None:
        channel.senders.remove(envelope)
        _work_for(machine, cpu, thread, envelope)
        envelope.server = thread
        thread.finish = lambda: _take_queued(machine, cpu, thread, envelope)
    else:
        channel.receivers.append(thread)
        machine.block(cpu, thread, "RECEIVE", channel_label(channel))


def _take_queued(machine: Machine, cpu: Cpu, server: Thread, envelope: Envelope) -> None:
    if envelope.dropped:
        machine.fail(server, Errno.ESRCH)
        return
    here = machine.cpus[server.cpu] if server.cpu >= 0 else cpu
    _receive(machine, server, envelope)
    machine.change_wait(here, envelope.client, "REPLY", envelope, (server,), server)


@dataclass(slots=True)
class ChannelWait:
    """What a thread in MsgReceive waits for."""

    channel: Channel

    @property
    def label(self) -> str:
        """Channel and process."""
        return f"message on channel {self.channel.chid}"


def channel_label(channel: Channel) -> ChannelWait:
    """Return what a receiver waits on."""
    return ChannelWait(channel)


def msg_reply(machine: Machine, cpu: Cpu, thread: Thread, call: MsgReply) -> None:
    """Answer a client and make it ready."""
    machine.enter(cpu, thread, call)
    envelope = _envelope_of(thread.process, call.rcvid)
    if envelope is None or envelope.dropped:
        machine.fail(thread, Errno.ESRCH, f"nobody waits under rcvid {call.rcvid:#x}")
        return
    machine.spend(len(call.message) * _COPY_NS_PER_KIB >> 10)
    client = envelope.client
    envelope.truth.replied = machine.history.cause = machine.stamp()
    envelope.truth.status = call.status
    machine.record.comm(cpu.index, envelope.truth.replied, "REPLY", (client.tid, client.pid), client.pid, client.tid)
    message = call.message + envelope.written[len(call.message):]
    answer = call.payload if call.payload is not None else (call.status, message)
    machine.complete(client, answer, status=call.status, **message_words(message, "rmsg"))
    _answered(machine, cpu, envelope)
    machine.wake(cpu, client, waker=thread)
    machine.complete(thread)
    pass_on_priority(machine, cpu, thread)


def msg_error(machine: Machine, cpu: Cpu, thread: Thread, call: MsgError) -> None:
    """Answer a client with an error."""
    machine.enter(cpu, thread, call)
    envelope = _envelope_of(thread.process, call.rcvid)
    if envelope is None or envelope.dropped:
        machine.fail(thread, Errno.ESRCH, f"nobody waits under rcvid {call.rcvid:#x}")
        return
    client = envelope.client
    envelope.truth.replied = machine.history.cause = machine.stamp()
    envelope.truth.status = -call.error
    machine.record.comm(cpu.index, envelope.truth.replied, "ERROR", (client.tid, client.pid), client.pid, client.tid)
    machine.fail(client, Errno(call.error))
    _answered(machine, cpu, envelope)
    machine.wake(cpu, client, waker=thread)
    machine.complete(thread)


def _answered(machine: Machine, cpu: Cpu, envelope: Envelope) -> None:
    """End the work for a client, of whoever received its message; another thread may have answered."""
    if envelope.server is not None:
        machine.scheduler.end_service(cpu, envelope.server, envelope)


def _envelope_of(process: Process, rcvid: int) -> Envelope | None:
    """Take the message with that id from whichever thread of the server has it."""
    for thread in process.threads.values():
        if rcvid in thread.serving:
            envelope: Envelope = thread.serving.pop(rcvid)
            return envelope
    return None


def msg_read(machine: Machine, cpu: Cpu, thread: Thread, call: MsgRead) -> None:
    """Read from a client's message."""
    machine.enter(cpu, thread, call)
    envelope = next((t.serving[call.rcvid] for t in thread.process.threads.values() if call.rcvid in t.serving), None)
    if envelope is None:
        machine.fail(thread, Errno.ESRCH)
        return
    data: bytes = envelope.call.message[call.offset : call.offset + call.length]
    machine.spend(len(data) * _COPY_NS_PER_KIB >> 10)
    machine.complete(thread, data, rbytes=len(data), **message_words(data, "rmsg"))


def receive_pulse(machine: Machine, server: Thread, channel: Channel, pulse: PulseInFlight) -> None:
    """Hand a pulse to the server that runs now."""
    time = machine.stamp()
    pulse.truth.received = time
    machine.record.comm(server.cpu, time, "RPULSE", (pulse.scoid, channel.process.pid), server.pid, server.tid)
    received = Received(0, code=pulse.code, value=pulse.value, scoid=pulse.scoid, priority=pulse.priority)
    machine.complete(server, received, rcvid=0, **{"rmsg[1]": pulse.code & 0xFF, "rmsg[2]": pulse.value})
