"""Kernel calls about messages, clients and connections that answer at once."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from satview.capture.sim.call_base import Call, Sigevent, event_values, message_words
from satview.capture.sim.errors import Errno, QnxError
from satview.capture.sim.message_calls import MsgSend, MsgSendPulse
from satview.capture.sim.prompt import Answer, PromptCall

if TYPE_CHECKING:
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine
    from satview.capture.sim.messages import Envelope
    from satview.capture.sim.threads import Connection, Thread

_INFO_ADDRESS = 0x8047C40


def _envelope(thread: Thread, rcvid: int) -> Envelope:
    for server in thread.process.threads.values():
        if rcvid in server.serving:
            envelope: Envelope = server.serving[rcvid]
            return envelope
    raise QnxError(Errno.ESRCH, f"nobody waits under rcvid {rcvid:#x}")


@dataclass(slots=True)
class MsgSendnc(MsgSend):
    """Send a message; as `MsgSend`, but no point at which the thread can be cancelled."""

    name = "MSG_SENDVNC"


@dataclass(slots=True)
class MsgSendPulsePtr(MsgSendPulse):
    """Send a pulse with a pointer as its value (7.x on)."""

    name = "MSG_SEND_PULSEPTR"

    def older(self) -> Call:
        """Send a pulse with a number."""
        return MsgSendPulse(self.coid, self.priority, self.code, self.value)


@dataclass(slots=True)
class MsgWrite(PromptCall):
    """Write into a client's reply buffer before the reply; result: bytes written."""

    name = "MSG_WRITEV"
    rcvid: int
    message: bytes = b""
    offset: int = 0

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return rcvid, parts, offset and the first words."""
        return {"rcvid": self.rcvid, "sparts": 1, "offset": self.offset, **message_words(self.message, "msg")}

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Keep the data for the reply."""
        envelope = _envelope(thread, self.rcvid)
        start = max(self.offset, 0)
        data = self.message[: max(0, envelope.call.reply_bytes - start)]
        envelope.written = envelope.written[:start].ljust(start, b"\0") + data + envelope.written[start + len(data):]
        return len(data), {"wbytes": len(data)}


@dataclass(slots=True)
class MsgInfo(PromptCall):
    """Ask who sent a message; result: a dict with pid, tid, chid, scoid, coid, msglen, priority."""

    name = "MSG_INFO"
    rcvid: int
    info_p: int = _INFO_ADDRESS

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Return what the kernel keeps of the message."""
        info = _envelope(thread, self.rcvid).info()
        return {name.removeprefix("info->"): value for name, value in info.items()}, info


@dataclass(slots=True)
class MsgCurrent(PromptCall):
    """Go on at the priority of the client of another message."""

    name = "MSG_CURRENT"
    rcvid: int

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:
        """Take over the client's priority."""
        thread.base_priority = _envelope(thread, self.rcvid).client.priority
        machine.scheduler.set_priority(cpu, thread, thread.base_priority)
        return 0, {}


@dataclass(slots=True)
class MsgKeyData(PromptCall):
    """Pass data through a client and know it again; result: the new key (up to 7.x)."""

    name = "MSG_KEYDATA"
    rcvid: int
    op: int = 0
    key: int = 0

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Return a key that depends on client and data; 0 if the given one is right."""
        client = _envelope(thread, self.rcvid).client
        right = zlib.crc32(f"{client.pid} {client.tid} {self.rcvid}".encode()) & 0x7FFFFFFF
        new = 0 if self.op and self.key == right else right
        return new, {"newkey": new}


@dataclass(slots=True)
class MsgVerifyEvent(PromptCall):
    """Check that an event could be delivered to a client."""

    name = "MSG_VERIFY_EVENT"
    rcvid: int
    event: Sigevent = field(default_factory=Sigevent)

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return rcvid and the event."""
        return {"rcvid": self.rcvid, **event_values(self.event)}

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Refuse a pulse to a connection that the client does not have."""
        client = _envelope(thread, self.rcvid).client
        if self.event.kind == "pulse" and self.event.coid not in client.process.connections:
            raise QnxError(Errno.EBADF, f"the client has no connection {self.event.coid:#x}")
        return 0, {}


@dataclass(slots=True)
class ConnectServerInfo(PromptCall):
    """Ask for the server of a connection, or of the next one there is; result: its coid."""

    name = "CONNECT_SERVER_INFO"
    pid: int
    coid: int

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Return the connection found."""
        process = machine.processes.get(self.pid) if self.pid else thread.process
        if process is None:
            raise QnxError(Errno.ESRCH, f"no process {self.pid}")
        coids = [coid for coid in sorted(process.connections) if coid >= self.coid]
        if not coids:
            raise QnxError(Errno.EINVAL, f"no connection from {self.coid:#x} on")
        found = process.connections[coids[0]]
        return coids[0], {"coid": coids[0], "info->pid": found.channel.process.pid, "info->chid": found.channel.chid,
                          "info->scoid": found.scoid, "info->coid": coids[0]}


@dataclass(slots=True)
class ConnectClientInfo(PromptCall):
    """Ask who a client is; result: its pid. Everybody is root."""

    name = "CONNECT_CLIENT_INFO"
    scoid: int
    ngroups: int = 0

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Look the client up by the number under which the server knows it."""
        for process in machine.processes.values():
            for connection in process.connections.values():
                is_ours = connection.channel.process is thread.process and not process.is_dead
                if is_ours and connection.scoid == self.scoid & 0xFFFF:
                    return process.pid, {"info->pid": process.pid, "info->sid": 1}
        raise QnxError(Errno.EINVAL, f"no client {self.scoid:#x}")


@dataclass(slots=True)
class ConnectFlags(PromptCall):
    """Change the flags of a connection; result: the old ones."""

    name = "CONNECT_FLAGS"
    coid: int
    masks: int = 0
    bits: int = 0
    pid: int = 0

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Set the bits under the mask."""
        connection: Connection | None = thread.process.connections.get(self.coid)
        if connection is None:
            raise QnxError(Errno.EBADF, f"no connection {self.coid:#x}")
        old, connection.flags = connection.flags, connection.flags & ~self.masks | self.bits & self.masks
        return old, {"old_flags": old}
