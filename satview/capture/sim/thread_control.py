"""Calls by which threads start, await, name and bind each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satview.capture.sim.errors import Errno
from satview.capture.sim.processes import add_thread, start
from satview.capture.sim.threads import Thread

if TYPE_CHECKING:
    from satview.capture.sim.calls import ThreadCreate, ThreadJoin, ThreadName, ThreadRunmask
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine


def thread_create(machine: Machine, cpu: Cpu, thread: Thread, call: ThreadCreate) -> None:
    """Start a thread in the caller's process."""
    machine.enter(cpu, thread, call)
    program = call.body(*call.args)
    if not hasattr(program, "send"):
        machine.fault(thread, f"{getattr(call.body, '__name__', call.body)} is no generator function", thread.place())
        machine.fail(thread, Errno.EINVAL)
        return
    priority = call.priority if call.priority >= 0 else thread.base_priority
    new = add_thread(thread.process, program, priority, call.policy, call.thread_name, call.runmask)
    new.partition = new.own_partition = thread.own_partition
    new.has_io = thread.has_io
    start(machine, cpu, new)
    machine.complete(thread, new.tid, thread_id=new.tid, owner=new.tid << 16 | thread.process.pid & 0xFFFF)


def thread_join(machine: Machine, cpu: Cpu, thread: Thread, call: ThreadJoin) -> None:
    """Wait for another thread's end."""
    machine.enter(cpu, thread, call)
    other = thread.process.threads.get(call.tid)
    if other is None or other is thread:
        machine.fail(thread, Errno.ESRCH if other is None else Errno.EDEADLK, f"thread {call.tid}")
        return
    if other.is_detached or other.joiner is not None:
        machine.fail(thread, Errno.EINVAL, f"thread {call.tid} is detached, or joined by another thread")
        return
    machine.complete(thread, other.exit_value)
    if other.state == "DEAD":
        del thread.process.threads[call.tid]
        return
    other.joiner = thread
    machine.block(cpu, thread, "JOIN", f"end of {other.label}", (other,))


def thread_name(machine: Machine, cpu: Cpu, thread: Thread, call: ThreadName) -> None:
    """Name the caller."""
    machine.enter(cpu, thread, call)
    thread.name = call.text[:100]
    machine.record.thread_name(cpu.index, machine.stamp(), thread)
    machine.complete(thread)


def thread_runmask(machine: Machine, cpu: Cpu, thread: Thread, call: ThreadRunmask) -> None:
    """Restrict the caller to some CPUs."""
    machine.enter(cpu, thread, call)
    mask = call.mask & (1 << len(machine.cpus)) - 1
    if not mask:
        machine.fail(thread, Errno.EINVAL, f"runmask {call.mask:#x} names no CPU of this machine")
        return
    machine.complete(thread)
    thread.runmask = call.mask
    if not mask >> cpu.index & 1:
        machine.scheduler.release(cpu, thread)
        machine.scheduler.make_ready(cpu, thread)
