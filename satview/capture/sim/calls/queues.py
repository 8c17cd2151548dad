"""Kernel calls for message queues and pipes, which are kernel objects from 8.0 on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from satview.capture.sim.calls.call import Call, message_words
from satview.capture.sim.errors import Errno, QnxError
from satview.capture.sim.services import KernelServices
from satview.capture.sim.threads import BoundedQueue, Cpu, Thread

__all__ = [
    "MsgQueueClose", "MsgQueueCtl", "MsgQueueOpen", "MsgQueueReceive", "MsgQueueSend", "PipeClose", "PipeOpen",
    "PipeRead", "PipeWrite",
]  # fmt: skip


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
    """Complete the receiving call of a thread with a message."""
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
