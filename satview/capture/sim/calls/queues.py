"""Kernel calls for message queues and pipes from 8.0 on, and of a network manager up to 7.x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from satview.capture.sim.calls.call import Call, message_words
from satview.capture.sim.calls.messages import NetWait
from satview.capture.sim.calls.signals import SignalKill
from satview.capture.sim.calls.timers import ask_to_unblock
from satview.capture.sim.services import Errno, KernelServices, QnxError
from satview.capture.sim.threads import BoundedQueue, Cpu, Thread

# Kernel calls for message queues and pipes, which are kernel objects from 8.0 on.


__all__ = [
    "MsgQueueClose",
    "MsgQueueCtl",
    "MsgQueueOpen",
    "MsgQueueReceive",
    "MsgQueueSend",
    "NetSignalKill",
    "NetUnblock",
    "NetVtid",
    "PipeClose",
    "PipeOpen",
    "PipeRead",
    "PipeWrite",
    "transmitted",
]


def _open_queue(thread: Thread, fd: int) -> BoundedQueue:
    queue: BoundedQueue | None = thread.process.files.get(fd)
    if queue is None:
        raise QnxError(Errno.EBADF, f"no queue {fd}")
    return queue


@dataclass(slots=True)
class MsgQueueOpen(Call):
    """Open a message queue; result: its file descriptor. The logged arguments of the call are unknown."""

    name = "MSG_QUEUE_OPEN"
    queue: BoundedQueue

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return no logged arguments."""
        return {}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Create a file descriptor for the queue in the caller's process."""
        kernel.enter(cpu, thread, self)
        process = thread.process
        fd = process.next_file
        process.next_file += 1
        process.files[fd] = self.queue
        kernel.complete(thread, fd, ret_val=fd)


@dataclass(slots=True)
class MsgQueueClose(Call):
    """Close a message queue."""

    name = "MSG_QUEUE_CLOSE"
    fd: int

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: the descriptor, also as a raw word for an unknown argument list."""
        return {"queueid": self.fd, "word 0": self.fd}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Remove the descriptor; messages stay in the queue.

        Raises:
            QnxError: EBADF (no such queue).
        """
        kernel.enter(cpu, thread, self)
        _open_queue(thread, self.fd)
        del thread.process.files[self.fd]
        kernel.complete(thread)


@dataclass(slots=True)
class MsgQueueCtl(Call):
    """Query a message queue; result: number of messages in the queue."""

    name = "MSG_QUEUE_CTL"
    fd: int
    cmd: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return the number of messages.

        Raises:
            QnxError: EBADF (no such queue).
        """
        kernel.enter(cpu, thread, self)
        count = len(_open_queue(thread, self.fd).items)
        kernel.complete(thread, count, ret_val=0, cmd=self.cmd)


@dataclass(slots=True)
class MsgQueueSend(Call):
    """Put a message into a queue; waits in state MQ_SEND while the queue is full."""

    name = "MSG_QUEUE_SEND"
    waits_in = "MQ_SEND"  # thread state while the queue is full
    fd: int
    message: bytes = b""
    priority: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: descriptor, first words, length and priority."""
        words = message_words(self.message, "msg")
        return {"fd": self.fd, "msglen": len(self.message), "priority": self.priority, **words, "word 0": self.fd}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Give the message to a waiting receiver, or queue it, or wait until the queue has room.

        Raises:
            QnxError: EBADF (no such queue).
        """
        kernel.enter(cpu, thread, self)
        queue = _open_queue(thread, self.fd)
        kernel.complete(thread)
        entry = (self.priority, self.message)
        if queue.waiters and not queue.waiting_entries:
            receiver = queue.take_best()
            _receive(kernel, receiver, entry)
            kernel.wake(cpu, receiver, waker=thread)
        elif len(queue.items) < queue.capacity:
            queue.put(entry)
        else:
            queue.waiting_entries[thread] = entry
            queue.waiters.append(thread)
            kernel.block(cpu, thread, self.waits_in, queue)


def _receive(kernel: KernelServices, thread: Thread, entry: tuple[int, bytes]) -> None:
    """Complete the receiving call of a thread with `entry`, the priority and the bytes of a message."""
    priority, message = entry
    size = len(message)
    words: dict[str, Any] = message_words(message, "msg")
    kernel.complete(thread, message, msglen=size, priority=priority, ret_val=size, **words)


@dataclass(slots=True)
class MsgQueueReceive(Call):
    """Receive the message with the highest priority; waits in MQ_RECEIVE while the queue is empty."""

    name = "MSG_QUEUE_RECEIVE"
    waits_in = "MQ_RECEIVE"  # thread state while the queue is empty
    fd: int

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: the descriptor, also as a raw word for an unknown argument list."""
        return {"fd": self.fd, "word 0": self.fd}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Receive a message and let a waiting sender queue its message; wait if the queue is empty.

        Raises:
            QnxError: EBADF (no such queue).
        """
        kernel.enter(cpu, thread, self)
        queue = _open_queue(thread, self.fd)
        if not queue.items:
            queue.waiters.append(thread)
            kernel.block(cpu, thread, self.waits_in, queue)
            return
        _receive(kernel, thread, queue.items.pop(0))
        if queue.waiters:
            sender = queue.take_best()
            queue.put(queue.waiting_entries.pop(sender))
            kernel.wake(cpu, sender, waker=thread)


# Pipes. Which call blocks a thread in state PIPE, and the arguments of these calls, are unknown: here PIPE_CTL blocks,
# and its first word is the descriptor.


@dataclass(slots=True)
class PipeOpen(MsgQueueOpen):
    """Open a pipe; result: its file descriptor."""

    name = "PIPE_OPEN"


@dataclass(slots=True)
class PipeClose(MsgQueueClose):
    """Close a pipe."""

    name = "PIPE_CLOSE"


@dataclass(slots=True)
class PipeWrite(MsgQueueSend):
    """Write into a pipe; waits in state PIPE while the pipe is full."""

    name = "PIPE_CTL"
    waits_in = "PIPE"


@dataclass(slots=True)
class PipeRead(MsgQueueReceive):
    """Read from a pipe; waits in state PIPE while the pipe is empty. Result: the bytes."""

    name = "PIPE_CTL"
    waits_in = "PIPE"


# Kernel calls of a network manager, whose threads represent threads of other nodes (up to 7.x).
#
# While a manager thread forwards a message from another node to a local server, the state of its virtual thread shows
# the state of the sender on the other node. A server that replies to a manager thread is blocked in NET_REPLY, and a
# thread that sends a pulse to another node in NET_SEND, until the manager has transmitted the data:
# `Ring0(transmitted)`.


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
            QnxError: EINVAL (`vtid` is no thread number); EBUSY (another thread of the process represents `vtid`).
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
    """Wake all threads that wait for a transmission by the running process; return their number. Run by `Ring0`."""
    manager = cpu.thread
    count = 0
    for process in kernel.processes.values():
        for thread in process.threads.values():
            wait = thread.waiting_on
            if manager is not None and isinstance(wait, NetWait) and wait.link.channel.process is manager.process:
                kernel.wake(cpu, thread, waker=manager)
                count += 1
    return count
