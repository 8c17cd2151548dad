"""Base class of all kernel calls; priority inheritance; I/O privilege."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from satview.capture.sim.services import Errno, KernelServices, QnxError
from satview.capture.sim.target import Target
from satview.capture.sim.threads import Cpu, Sigevent, SyncObject, Thread

__all__ = [
    "CLOCK_MONOTONIC", "SIDE_CHANNEL", "SIGALRM", "SIGCHLD", "SIGCONT", "SIGSEGV", "SIGSTOP", "SIGTERM", "SIGUSR1",
    "Call", "Compute", "code_address",
]  # fmt: skip


# Priority inheritance.


def effective_priority(thread: Thread) -> int:
    """Return the effective priority of a thread: its base priority, or a higher priority that it inherits."""
    waiting = [waiter.priority for lock in thread.held if lock.inherit for waiter in lock.waiters]
    waiting += [lock.ceiling for lock in thread.held]
    channel = thread.received_from
    if channel is not None and not channel.fixed_priority and thread.state != "RECEIVE":
        waiting += [message.client.priority for message in channel.senders]
        waiting += [pulse.priority for pulse in channel.pulses]
    return int(max([thread.base_priority, *waiting]))


def pass_on_priority(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """Update the effective priority of a thread, and of the owners in the chain of mutexes for which it waits."""
    for _ in range(64):  # limited, as a deadlock is a cycle
        due = effective_priority(thread)
        if due == thread.priority:
            return
        kernel.scheduler.set_priority(cpu, thread, due)
        owner = getattr(thread.waiting_on, "owner", None)
        if thread.state != "MUTEX" or owner is None:
            return
        thread = owner


# I/O privilege, which a thread needs to attach handlers, as on a real target, where root alone is not enough.


TCTL_IO = 1  # _NTO_TCTL_IO
MISSING = "it needs I/O privilege: ThreadCtl(_NTO_TCTL_IO) first"


def has_io(kernel: KernelServices, thread: Thread) -> bool:
    """Return whether a thread has I/O privilege, or the target does not require it."""
    return thread.has_io or not kernel.target.needs_privilege


def check_io(kernel: KernelServices, thread: Thread) -> None:
    """Raise EPERM as a QnxError if the target requires I/O privilege and a thread lacks it."""
    if not has_io(kernel, thread):
        raise QnxError(Errno.EPERM, MISSING)


SIDE_CHANNEL = 0x40000000  # connection number of the process manager, and flag of side channels
CLOCK_MONOTONIC = 2
SIGSEGV, SIGALRM, SIGTERM, SIGUSR1, SIGCHLD, SIGSTOP, SIGCONT = 11, 14, 15, 16, 18, 23, 25
_CANCELLATION_POINTS = frozenset((
    "MSG_SENDV", "MSG_RECEIVEV", "MSG_RECEIVEPULSEV", "SYNC_CONDVAR_WAIT", "SYNC_SEM_WAIT", "TIMER_TIMEOUT",
    "THREAD_JOIN", "SIGNAL_WAITINFO", "SIGNAL_SUSPEND", "INTERRUPT_WAIT",
))  # fmt: skip


@dataclass(slots=True)
class Compute:
    """User code that runs for `ns` nanoseconds; not a kernel call."""

    ns: int


@dataclass(slots=True)
class Call:
    """A kernel call, which the program of a thread yields.

    A subclass defines the arguments as fields and implements `carry_out`. Integer fields are logged under their names,
    which should be those of the event table, and sigevents and synchronization objects by their `values`.

    Attributes:
        name: Name of the call in the event table.
        logs: Further logged arguments by their names in the event table: the name of a field, or a constant.
    """

    name = "NOP"  # without annotation, so that it is not a dataclass field unless a subclass annotates it
    logs: ClassVar[Mapping[str, str | int]] = {}

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the arguments of the entry event by their names in the event table; other names are ignored."""
        values: dict[str, int] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, int):
                values[entry.name] = int(value)
            elif isinstance(value, (Sigevent, SyncObject)):
                values |= value.values()
        for name, source in self.logs.items():
            values[name] = int(getattr(self, source)) if isinstance(source, str) else source
        return values

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:  # noqa: ARG002
        """Execute the call of a thread that runs on a CPU: enter the kernel, complete the call or block the thread.

        Raises:
            QnxError: The call fails; the error is raised in the program at the `yield`.
        """
        kernel.fault(thread, f"yielded {type(self).__name__}, which this kernel does not know", thread.location())
        raise QnxError(Errno.ENOSYS)

    @property
    def is_cancellation_point(self) -> bool:
        """Whether a thread can be cancelled during the call."""
        return self.name in _CANCELLATION_POINTS

    def older(self) -> Call | None:
        """Return the call that the library makes instead on kernels without this call; None = no such call."""
        return None

    def is_silent(self, _target: Target) -> bool:
        """Return whether the target's kernel has this call but does not log it."""
        return False


def message_words(message: bytes, prefix: str) -> dict[str, int]:
    """Return the first three words of a message by their names in the event table: `prefix[0]` to `prefix[2]`."""
    padded = message[:12].ljust(12, b"\0")
    return {f"{prefix}[{i}]": int.from_bytes(padded[4 * i : 4 * i + 4], "little") for i in range(3)}


def code_address(function: Any, thread: Thread | None) -> int:
    """Return an invented code address of a function, computed from its line number."""
    code = getattr(function, "__code__", None)
    line = code.co_firstlineno if code is not None else 1
    base = 0x8048000 if thread is None or thread.process.bits == 32 else 0x3D5000_0000
    return base + line * 64
