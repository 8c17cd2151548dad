"""Pulses and events: short notes that never wait, from threads, timers, interrupts and the kernel itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satview.capture.sim.call_base import SIDE_CHANNEL
from satview.capture.sim.errors import Errno
from satview.capture.sim.messages import (
    PulseInFlight,
    adopt_priority,
    find_channel,
    hurry,
    receive_pulse,
    take_receiver,
)
from satview.capture.sim.threads import Connection, Process, Thread
from satview.capture.sim.truth import Pulse

if TYPE_CHECKING:
    from satview.capture.sim.calls import MsgDeliverEvent, MsgSendPulse, Sigevent
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine


def msg_send_pulse(machine: Machine, cpu: Cpu, thread: Thread, call: MsgSendPulse) -> None:
    """Send a pulse."""
    machine.enter(cpu, thread, call)
    connection = find_channel(machine, thread, call.coid)
    if connection is None:
        return
    priority = call.priority if call.priority >= 0 else thread.priority
    machine.complete(thread)
    send_pulse(machine, cpu, connection, "SPULSE", priority, call.code, call.value, thread)


def send_pulse(machine: Machine, cpu: Cpu, connection: Connection, event: str, priority: int, code: int, value: int,
               sender: Thread | None = None) -> None:
    """Put a pulse into a channel, or straight into a waiting thread; `event` tells which kind is emitted."""
    channel = connection.channel
    scoid = SIDE_CHANNEL | connection.scoid
    time = machine.stamp()
    truth = Pulse(scoid, channel.process.pid, time, origin=machine.history.cause)
    machine.history.cause = time
    pulse = PulseInFlight(scoid, priority, code, value, truth)
    machine.truth.pulses.append(pulse.truth)
    tid = sender.tid if sender is not None else 0
    pid = sender.pid if sender is not None else channel.process.pid
    machine.record.comm(cpu.index, time, event, (scoid, channel.process.pid), pid, tid)
    if not channel.receivers:
        channel.pulses.append(pulse)
        hurry(machine, cpu, channel)
        return
    server = take_receiver(channel)
    adopt_priority(machine, cpu, server, channel, priority)
    server.finish = lambda: receive_pulse(machine, server, channel, pulse)
    machine.wake(cpu, server, waker=sender)


def msg_deliver_event(machine: Machine, cpu: Cpu, thread: Thread, call: MsgDeliverEvent) -> None:
    """Deliver an event to the client behind a rcvid."""
    machine.enter(cpu, thread, call)
    envelope = next((t.serving[call.rcvid] for t in thread.process.threads.values() if call.rcvid in t.serving), None)
    if envelope is None:
        machine.fail(thread, Errno.ESRCH)
        return
    machine.complete(thread)
    deliver(machine, cpu, envelope.client.process, envelope.client, call.event, "SPULSE_DIS")


def deliver(machine: Machine, cpu: Cpu, process: Process, target: Thread | None, event: Sigevent, pulse: str) -> None:
    """Carry out a sigevent that a process set up."""
    if process.is_dead:
        return
    if event.kind == "pulse":
        connection = process.connections.get(event.coid)
        if connection is not None and not connection.channel.process.is_dead:
            send_pulse(machine, cpu, connection, pulse, event.priority, event.code, event.value)
    elif event.kind == "intr" and target is not None:
        wake_for_interrupt(machine, cpu, target)
    elif event.kind == "signal":
        machine.post_signal(cpu, process, target, event.signo, event.code)


def wake_for_interrupt(machine: Machine, cpu: Cpu, target: Thread) -> None:
    """End a thread's InterruptWait, or let its next one return at once."""
    if target.state == "INTR":
        machine.complete(target)
        machine.wake(cpu, target)
    else:
        target.unmasked_intr += 1
