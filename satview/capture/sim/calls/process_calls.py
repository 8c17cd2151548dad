"""Calls of the process manager: library functions that are messages to it, and Ring0()."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from satview.capture.sim.calls.call import SIDE_CHANNEL, Call, code_address
from satview.capture.sim.calls.messages import MsgSend, MsgSendnc
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Body, Thread

__all__ = ["Mmap", "Munmap", "Ring0", "Spawn", "WaitPid"]


@dataclass(slots=True)
class ManagerCall(Call):
    """A library function that is a message to the process manager, with the call itself as its payload.

    Attributes:
        message_type: First byte of the message.
        send: The kernel call that sends it.
    """

    message_type: ClassVar[int] = 0
    send: ClassVar[type[MsgSend]] = MsgSend

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Send the message."""
        message = bytes((self.message_type,)).ljust(64, b"\0")
        self.send(SIDE_CHANNEL, message, payload=self).carry_out(kernel, cpu, thread)


@dataclass(slots=True)
class Spawn(ManagerCall):
    """Start a process: a message to the process manager, which does it. Result: pid."""

    name = "MSG_SENDV"
    message_type = 0x0E
    program: str
    body: Body
    args: tuple[Any, ...] = ()
    priority: int = -1
    bits: int = 0  # 0 = that of the caller


@dataclass(slots=True)
class WaitPid(ManagerCall):
    """Wait for a child process to end; result: its value."""

    name = "MSG_SENDV"
    message_type = 0x0F
    pid: int


@dataclass(slots=True)
class Mmap(ManagerCall):
    """Map memory, a file if `file` names one: a message to the process manager. Result: the address."""

    name = "MSG_SENDVNC"
    message_type = 0x40
    send = MsgSendnc
    length: int
    file: str = ""
    flags: int = 0x000800A2  # as a 7.1 listing shows for the text of a library
    prot: int = 0x500  # read and execute


@dataclass(slots=True)
class Munmap(ManagerCall):
    """Give memory back: a message to the process manager."""

    name = "MSG_SENDVNC"
    message_type = 0x41
    send = MsgSendnc
    address: int
    length: int


@dataclass(slots=True)
class Ring0(Call):
    """The process manager runs a function in the kernel's mode; the callable gets kernel and CPU."""

    name = "RING0"
    function: Callable[[KernelServices, Cpu], Any]

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return addresses."""
        return {"func_p": code_address(self.function, thread), "arg_p": 0}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Run a function of the process manager in the kernel's mode."""
        kernel.enter(cpu, thread, self)
        value = kernel.guard(thread, "Ring0 function", lambda: self.function(kernel, cpu))
        kernel.complete(thread, value, ret_val=value if isinstance(value, int) else 0)
