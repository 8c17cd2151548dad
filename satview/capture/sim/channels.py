"""Channels and connections: made, connected, closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satview.capture.sim.call_base import SIDE_CHANNEL
from satview.capture.sim.errors import Errno
from satview.capture.sim.threads import Channel, Connection, Process, Thread

if TYPE_CHECKING:
    from satview.capture.sim.calls import ChannelCreate, ChannelDestroy, ConnectAttach, ConnectDetach
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine
    from satview.capture.sim.messages import Envelope


def channel_create(machine: Machine, cpu: Cpu, thread: Thread, call: ChannelCreate) -> None:
    """Make a channel in the caller's process."""
    machine.enter(cpu, thread, call)
    process = thread.process
    channel = Channel(process, process.next_chid, call.fixed_priority)
    process.next_chid += 1
    process.channels[channel.chid] = channel
    machine.complete(thread, channel.chid, chid=channel.chid)


def channel_destroy(machine: Machine, cpu: Cpu, thread: Thread, call: ChannelDestroy) -> None:
    """Remove a channel and everything that waits at it."""
    machine.enter(cpu, thread, call)
    channel = thread.process.channels.pop(call.chid, None)
    if channel is None:
        machine.fail(thread, Errno.EINVAL, f"no channel {call.chid}")
        return
    close_channel(machine, cpu, channel)
    machine.complete(thread)


def close_channel(machine: Machine, cpu: Cpu, channel: Channel) -> None:
    """Send everybody who waits at a channel away with ESRCH."""
    for envelope in list(channel.senders):
        _dismiss(machine, cpu, envelope, Errno.ESRCH)
    channel.senders.clear()
    for receiver in list(channel.receivers):
        machine.fail(receiver, Errno.ESRCH)
        machine.wake(cpu, receiver, outcome="dead")
    channel.receivers.clear()


def _dismiss(machine: Machine, cpu: Cpu, envelope: Envelope, error: Errno) -> None:
    client = envelope.client
    envelope.dropped = True
    envelope.truth.status = -int(error)
    machine.fail(client, error)
    machine.wake(cpu, client, outcome="dead")


def connect(process: Process, channel: Channel, side_channel: bool = True) -> Connection:
    """Connect a process to a channel."""
    coid = process.next_coid | (SIDE_CHANNEL if side_channel else 0)
    process.next_coid += 1
    channel.process.scoids += 1
    connection = Connection(process, coid, channel, channel.process.scoids)
    process.connections[coid] = connection
    return connection


def connect_attach(machine: Machine, cpu: Cpu, thread: Thread, call: ConnectAttach) -> None:
    """Connect the caller's process to a channel of another, or of its own (pid 0)."""
    machine.enter(cpu, thread, call)
    server = machine.processes.get(call.pid) if call.pid else thread.process
    channel = server.channels.get(call.chid) if server is not None else None
    if channel is None:
        machine.fail(thread, Errno.ESRCH, f"no channel {call.chid} in process {call.pid}")
        return
    connection = connect(thread.process, channel, call.side_channel)
    machine.complete(thread, connection.coid, coid=connection.coid)


def connect_detach(machine: Machine, cpu: Cpu, thread: Thread, call: ConnectDetach) -> None:
    """Close a connection."""
    machine.enter(cpu, thread, call)
    if thread.process.connections.pop(call.coid, None) is None:
        machine.fail(thread, Errno.EINVAL, f"no connection {call.coid}")
        return
    machine.complete(thread)
