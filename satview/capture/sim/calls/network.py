"""Kernel calls of a network manager, whose threads represent threads of other nodes (up to 7.x).

While a manager thread forwards a message from another node to a local server, the state of its virtual thread shows the
state of the sender on the other node. A server that replies to a manager thread is blocked in NET_REPLY, and a thread
that sends a pulse to another node in NET_SEND, until the manager has transmitted the data: `Ring0(transmitted)`.
"""

from __future__ import annotations

from dataclasses import dataclass

from satview.capture.sim.calls.call import Call
from satview.capture.sim.calls.messages import NetWait
from satview.capture.sim.calls.signals import SignalKill
from satview.capture.sim.calls.timers import ask_to_unblock
from satview.capture.sim.errors import Errno, QnxError
from satview.capture.sim.services import KernelServices
from satview.capture.sim.threads import Cpu, Thread

__all__ = ["NetSignalKill", "NetUnblock", "NetVtid", "transmitted"]


_LAST_TID = 0x7FFFFFFF


@dataclass(slots=True)
class NetVtid(Call):
    """Let the caller represent a virtual thread, which is a thread of another node; `vtid` 0 = no virtual thread."""

    name = "NET_VTID"
    vtid: int
    tid: int = 0
    coid: int = 0
    priority: int = 10
    srcmsglen: int = 0
    keydata: int = 0
    srcnd: int = 0
    dstmsglen: int = 0
    info_p: int = 0x8047C00

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Remove the caller's old virtual thread, if any, and create the new one.

        Raises:
            QnxError: EINVAL (`vtid` is no thread number); EBUSY (another thread of the process represents it).
        """
        kernel.enter(cpu, thread, self)
        if not isinstance(self.vtid, int) or not 0 <= self.vtid <= _LAST_TID:
            raise QnxError(Errno.EINVAL, f"virtual thread {self.vtid!r:.40}")
        if any(other.vtid == self.vtid for other in thread.process.threads.values() if self.vtid):
            raise QnxError(Errno.EBUSY, f"virtual thread {self.vtid}")
        kernel.complete(thread)
        if thread.vtid:
            for event in ("DESTROY", "DEAD"):
                show_virtual(kernel, cpu, thread, event)
        thread.vtid, thread.virtual_state = self.vtid, ""
        if self.vtid:
            show_virtual(kernel, cpu, thread, "CREATE")


def show_virtual(kernel: KernelServices, cpu: Cpu, thread: Thread, state: str) -> None:
    """Emit a state of the virtual thread that a thread represents."""
    time = kernel.stamp()
    kernel.history.virtual(time, thread, state, cpu.index)
    kernel.record.virtual_thread(cpu.index, time, thread, state)


@dataclass(slots=True)
class NetUnblock(Call):
    """Send an unblock pulse to the server that has received the message of a virtual thread."""

    name = "NET_UNBLOCK"
    vtid: int

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Send the unblock pulse if the server's channel requests such pulses.

        Raises:
            QnxError: ESRCH (no such virtual thread).
        """
        kernel.enter(cpu, thread, self)
        sender = next((t for t in thread.process.threads.values() if self.vtid and t.vtid == self.vtid), None)
        if sender is None:
            raise QnxError(Errno.ESRCH, f"no virtual thread {self.vtid}")
        kernel.complete(thread)
        ask_to_unblock(kernel, cpu, sender)


@dataclass(slots=True)
class NetSignalKill(SignalKill):
    """Deliver a signal that a process of another node sent."""

    name = "NET_SIGNAL_KILL"


def transmitted(kernel: KernelServices, cpu: Cpu) -> int:
    """Wake all threads that wait for a transmission by the running process; return their number. For `Ring0`."""
    manager = cpu.thread
    count = 0
    for process in kernel.processes.values():
        for thread in process.threads.values():
            wait = thread.waiting_on
            if manager is not None and isinstance(wait, NetWait) and wait.link.channel.process is manager.process:
                kernel.wake(cpu, thread, waker=manager)
                count += 1
    return count
