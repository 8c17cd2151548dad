"""Priority inheritance: the priority that a thread is due because of those it keeps waiting."""

from __future__ import annotations

from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Thread


def effective_priority(thread: Thread) -> int:
    """Return the priority a thread is due: its own, or that of the most urgent one it keeps waiting."""
    waiting = [waiter.priority for lock in thread.held if lock.inherit for waiter in lock.waiters]
    channel = thread.received_from
    if channel is not None and not channel.fixed_priority and thread.state != "RECEIVE":
        waiting += [message.client.priority for message in channel.senders]
        waiting += [pulse.priority for pulse in channel.pulses]
    return int(max([thread.base_priority, *waiting]))


def pass_on_priority(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """Give a thread the priority it is due, and so on along the chain of those it waits for."""
    for _ in range(64):  # a deadlock is a ring; it must not hold the kernel
        due = effective_priority(thread)
        if due == thread.priority:
            return
        kernel.scheduler.set_priority(cpu, thread, due)
        owner = getattr(thread.waiting_on, "owner", None)
        if thread.state != "MUTEX" or owner is None:
            return
        thread = owner
