"""Pulses and sigevents, which threads, timers, interrupts and the kernel send without waiting."""

from __future__ import annotations

from dataclasses import dataclass, field

from satview.capture.sim.calls.call import SIDE_CHANNEL, Call
from satview.capture.sim.calls.messages import (
    NetWait,
    PulseInFlight,
    adopt_priority,
    live_connection,
    raise_servers,
    receive_pulse,
    received_message,
    take_receiver,
)
from satview.capture.sim.parts.errors import Errno, QnxError
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.sigevent import Sigevent, event_values
from satview.capture.sim.parts.threads import Connection, Cpu, Process, Thread
from satview.capture.sim.parts.truth import Pulse

__all__ = ["MsgDeliverEvent", "MsgSendPulse", "MsgSendPulsePtr", "MsgVerifyEvent"]


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
    """Give a pulse to a thread that waits at the channel, or queue it; `event` is the name of the event to log."""
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
    """Deliver a sigevent that a process has set up; `pulse` is the name of the event to log for a pulse."""
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
        """Return a call that sends the value as a number."""
        return MsgSendPulse(self.coid, self.priority, self.code, self.value)


@dataclass(slots=True)
class MsgDeliverEvent(Call):
    """Deliver a sigevent to the client of a received message."""

    name = "MSG_DELIVER_EVENT"
    rcvid: int
    event: Sigevent = field(default_factory=Sigevent)

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: rcvid and the event."""
        return {"rcvid": self.rcvid, **event_values(self.event)}

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
