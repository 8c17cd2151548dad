"""Kernel calls by which threads start, await, name, bind, cancel and privilege each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from satview.capture.sim.calls.call import Call, code_address
from satview.capture.sim.calls.lifecycle import add_thread, start
from satview.capture.sim.calls.privilege import TCTL_IO
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import Errno, QnxError
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import ANY_CPU, Body, Policy, Thread

__all__ = ["ThreadCancel", "ThreadCreate", "ThreadCtl", "ThreadDetach", "ThreadJoin", "ThreadName", "ThreadRunmask"]


def find_thread(kernel: KernelServices, thread: Thread, pid: int, tid: int) -> Thread:
    """Return a thread by its ids; pid 0 = of the caller's process, tid 0 = the caller, or any of another process.

    Raises:
        QnxError: ESRCH; there is none, or it is dead.
    """
    process = kernel.processes.get(pid) if pid else thread.process
    found = process.threads.get(tid) if process is not None and tid else thread if not pid else None
    if process is not None and found is None and not tid:
        found = next(iter(process.threads.values()), None)
    if found is None or found.state == "DEAD":
        raise QnxError(Errno.ESRCH, f"no thread {tid} in process {pid}" if pid else f"no thread {tid}")
    return found


@dataclass(slots=True)
class ThreadCreate(Call):
    """Start a thread in the caller's process; result: its tid."""

    name = "THREAD_CREATE"
    body: Body
    args: tuple[Any, ...] = ()
    priority: int = -1  # -1 = that of the caller
    policy: Policy = Policy.RR
    thread_name: str = ""
    runmask: int = ANY_CPU

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return addresses, policy and priority."""
        priority = self.priority if self.priority >= 0 else thread.base_priority
        return {
            "func_p": code_address(self.body, thread),
            "arg_p": 0x8047F30,
            "stacksize": 0x20000,
            "policy": self.policy,
            "sched_priority": priority,
            "sched_curpriority": priority,
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Start a thread in the caller's process.

        Raises:
            QnxError: EINVAL (the body is no generator function).
        """
        kernel.enter(cpu, thread, self)
        program = self.body(*self.args)
        if not hasattr(program, "send"):
            name = getattr(self.body, "__name__", self.body)
            kernel.fault(thread, f"{name} is no generator function", thread.location())
            raise QnxError(Errno.EINVAL)
        priority = self.priority if self.priority >= 0 else thread.base_priority
        new = add_thread(thread.process, program, priority, self.policy, self.thread_name, self.runmask)
        new.partition = new.own_partition = thread.own_partition
        new.has_io = thread.has_io
        start(kernel, cpu, new)
        kernel.complete(thread, new.tid, thread_id=new.tid, owner=new.tid << 16 | thread.process.pid & 0xFFFF)


@dataclass(slots=True)
class ThreadJoin(Call):
    """Wait for a thread of this process to end; result: its value."""

    name = "THREAD_JOIN"
    tid: int

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return tid."""
        return {"tid": self.tid, "status_p": 0x8047E40}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Wait for another thread's end.

        Raises:
            QnxError: ESRCH if other is None else EDEADLK (thread); EINVAL (thread the mutex is detached, or joined by
                another thread).
        """
        kernel.enter(cpu, thread, self)
        other = thread.process.threads.get(self.tid)
        if other is None or other is thread:
            raise QnxError(Errno.ESRCH if other is None else Errno.EDEADLK, f"thread {self.tid}")
        if other.is_detached or other.joiner is not None:
            raise QnxError(Errno.EINVAL, f"thread {self.tid} is detached, or joined by another thread")
        kernel.complete(thread, other.exit_value)
        if other.state == "DEAD":
            del thread.process.threads[self.tid]
            return
        other.joiner = thread
        kernel.block(cpu, thread, "JOIN", f"end of {other.label}", (other,))


@dataclass(slots=True)
class ThreadName(Call):
    """Name the calling thread."""

    name = "THREAD_CTL"
    text: str

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the command."""
        return {"cmd": 11, "data_p": 0x8047D90}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Name the caller."""
        kernel.enter(cpu, thread, self)
        thread.name = self.text[:100]
        kernel.record.thread_name(cpu.index, kernel.stamp(), thread)
        kernel.complete(thread)


@dataclass(slots=True)
class ThreadRunmask(Call):
    """Restrict the calling thread to some CPUs, one bit each."""

    name = "THREAD_CTL"
    mask: int

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the command and the mask."""
        return {"cmd": 4, "data_p": self.mask & 0xFFFFFFFF}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Restrict the caller to some CPUs.

        Raises:
            QnxError: EINVAL (runmask names no CPU of this machine).
        """
        kernel.enter(cpu, thread, self)
        mask = self.mask & (1 << len(kernel.cpus)) - 1
        if not mask:
            raise QnxError(Errno.EINVAL, f"runmask {self.mask:#x} names no CPU of this machine")
        kernel.complete(thread)
        thread.runmask = self.mask
        if not mask >> cpu.index & 1:
            kernel.scheduler.release(cpu, thread)
            kernel.scheduler.make_ready(cpu, thread)


@dataclass(slots=True)
class ThreadDetach(Call):
    """Let a thread end without anybody joining it; tid 0 = the caller."""

    name = "THREAD_DETACH"
    tid: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Mark the thread; a second time is an error.

        Raises:
            QnxError: EINVAL (it is detached already).
        """
        kernel.enter(cpu, thread, self)
        other = find_thread(kernel, thread, 0, self.tid)
        if other.is_detached:
            raise QnxError(Errno.EINVAL, f"thread {self.tid} is detached already")
        other.is_detached = True
        if other.joiner is not None:
            kernel.fail(other.joiner, Errno.EINVAL)
            kernel.wake(cpu, other.joiner, waker=thread)
            other.joiner = None
        kernel.complete(thread)


@dataclass(slots=True)
class ThreadCancel(Call):
    """Let a thread end itself as soon as it waits; its program gets `ThreadCancelled` at the `yield`."""

    name = "THREAD_CANCEL"
    tid: int
    canstub_p: int = 0x78120

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Take the thread out of its wait, or note it for the next one."""
        kernel.enter(cpu, thread, self)
        kernel.cancel(cpu, find_thread(kernel, thread, 0, self.tid))
        kernel.complete(thread)


@dataclass(slots=True)
class ThreadCtl(Call):
    """Change how a thread runs. `_NTO_TCTL_IO`, the default, gives the caller I/O privilege.

    Names and CPUs have calls of their own; the other commands have no effect.
    """

    name = "THREAD_CTL"
    cmd: int = TCTL_IO
    data_p: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Grant I/O privilege: everybody is root here."""
        kernel.enter(cpu, thread, self)
        if self.cmd == TCTL_IO:
            thread.has_io = True
        kernel.complete(thread)
