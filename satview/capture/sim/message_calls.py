"""Kernel calls for messages, pulses, channels and connections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from satview.capture.sim.call_base import SIDE_CHANNEL, Call, Sigevent, event_values, message_words

if TYPE_CHECKING:
    from satview.capture.sim.threads import Thread


@dataclass(slots=True)
class MsgSend(Call):
    """Send a message and wait for the reply; result `(status, reply bytes)`."""

    name = "MSG_SENDV"
    coid: int
    message: bytes = b""
    reply_bytes: int = 64
    payload: Any = None             # handed to the server as it is; stands for what the message says

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return coid, parts and the first words."""
        return {"coid": self.coid, "sparts": 1, "rparts": 1, **message_words(self.message, "msg")}


@dataclass(slots=True)
class MsgReceive(Call):
    """Wait for a message or pulse; result: a `Received` of the messages module."""

    name = "MSG_RECEIVEV"
    chid: int
    parts: int = 1
    pulses_only: bool = False

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return chid and parts."""
        return {"chid": self.chid, "rparts": self.parts}


@dataclass(slots=True)
class MsgReceivePulse(MsgReceive):
    """Wait for a pulse only."""

    name = "MSG_RECEIVEPULSEV"
    pulses_only: bool = True


@dataclass(slots=True)
class MsgReply(Call):
    """Answer a client."""

    name = "MSG_REPLYV"
    rcvid: int
    status: int = 0
    message: bytes = b""
    payload: Any = None

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return rcvid, status and the first words."""
        return {"rcvid": self.rcvid, "sparts": 1 if self.message else 0, "status": self.status,
                **message_words(self.message, "smsg")}


@dataclass(slots=True)
class MsgError(Call):
    """Answer a client with an error number."""

    name = "MSG_ERROR"
    rcvid: int
    error: int

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return rcvid and error."""
        return {"rcvid": self.rcvid, "err": self.error}


@dataclass(slots=True)
class MsgRead(Call):
    """Read more of a client's message; result: the bytes."""

    name = "MSG_READV"
    rcvid: int
    length: int = 12
    offset: int = 0

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return rcvid, parts and offset."""
        return {"rcvid": self.rcvid, "rmsg_p": 0x8047A10, "rparts": 1, "offset": self.offset}


@dataclass(slots=True)
class MsgSendPulse(Call):
    """Send a pulse; never waits."""

    name = "MSG_SEND_PULSE"
    coid: int
    priority: int = -1              # -1 = that of the sender
    code: int = 1
    value: int = 0

    def values(self, thread: Thread) -> dict[str, int]:
        """Return coid, priority, code and value."""
        priority = self.priority if self.priority >= 0 else thread.priority
        return {"coid": self.coid, "priority": priority, "code": self.code, "value": self.value}


@dataclass(slots=True)
class MsgDeliverEvent(Call):
    """Notify a client of what it waits for."""

    name = "MSG_DELIVER_EVENT"
    rcvid: int
    event: Sigevent = field(default_factory=Sigevent)

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return rcvid and the event."""
        return {"rcvid": self.rcvid, **event_values(self.event)}


@dataclass(slots=True)
class ChannelCreate(Call):
    """Make a channel; result: chid."""

    name = "CHANNEL_CREATE"
    fixed_priority: bool = False

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the flags."""
        return {"flags": 0x1 if self.fixed_priority else 0}


@dataclass(slots=True)
class ChannelDestroy(Call):
    """Remove a channel; those waiting on it get ESRCH."""

    name = "CHANNEL_DESTROY"
    chid: int

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return chid."""
        return {"chid": self.chid}


@dataclass(slots=True)
class ConnectAttach(Call):
    """Connect to a channel; result: coid."""

    name = "CONNECT_ATTACH"
    pid: int
    chid: int
    side_channel: bool = True

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return pid, chid and index."""
        return {"pid": self.pid, "chid": self.chid, "index": SIDE_CHANNEL if self.side_channel else 0}


@dataclass(slots=True)
class ConnectDetach(Call):
    """Close a connection."""

    name = "CONNECT_DETACH"
    coid: int

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return coid."""
        return {"coid": self.coid}
