"""Page faults, first use of the floating point unit, and processor exceptions that become signals."""

from __future__ import annotations

from dataclasses import dataclass

from satview.capture.sim.calls.call import Call
from satview.capture.sim.calls.processes import request
from satview.capture.sim.calls.signals import post
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Cpu, Thread

__all__ = ["SignalFault", "Touch"]

_RETRY_CYCLES = 40  # time to repeat the instruction that faulted


@dataclass(slots=True)
class Touch(Call):
    """An access to a missing page, or the first use of the floating point unit; not a kernel call.

    Attributes:
        address: Address of the memory.
        is_context: This is the first use of the floating point unit, whose registers need memory to be saved.
    """

    address: int = 0x8050000
    is_context: bool = False

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Wait until the process manager has provided the memory."""
        thread.value = None
        thread.remaining = _RETRY_CYCLES
        if not self.is_context:
            values: dict[str, int | bytes] = {
                "pid": thread.pid,
                "tid": thread.tid,
                "ip": 0x8048100,
                "vaddr": self.address & 0xFFFFFFFF,
            }
            kernel.record.system(cpu.index, kernel.stamp(), "PAGEWAIT", values)
        resource = "register set" if self.is_context else "page"
        kernel.block(cpu, thread, "WAITCTX" if self.is_context else "WAITPAGE", resource)
        kernel.history.cause = -1  # a fault has no event of a call, a timer or an interrupt
        request(kernel, cpu, thread)


@dataclass(slots=True)
class SignalFault(Call):
    """A processor exception, which the kernel converts to a signal; up to 7.x the trace shows a kernel call for it.

    Without a handler the signal ends the process.

    Attributes:
        signo: Number of the signal: SIGILL 4, SIGTRAP 5, SIGFPE 8, SIGBUS 10, SIGSEGV 11.
        code: Reason, the signal's `si_code`.
        addr: Address at which the exception occurred.
    """

    name = "SIGNAL_FAULT"
    signo: int = 11
    code: int = 1
    addr: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: signal and code in one word, and the address."""
        return {"sigcode": self.signo | self.code << 8, "addr": self.addr}

    def older(self) -> Call:
        """Return this call: kernels that do not log it send the signal too."""
        return self

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Send the signal to the thread."""
        kernel.enter(cpu, thread, self)
        kernel.complete(thread, None, ret_val=self.signo)
        post(kernel, cpu, thread.process, thread, self.signo, self.code)
