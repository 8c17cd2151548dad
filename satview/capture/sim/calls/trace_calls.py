"""TraceEvent() and InterruptHookTrace(): the trace interface as programs call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from satview.capture.sim.calls.call import Call, check_io, code_address, has_io
from satview.capture.sim.calls.pulses import deliver
from satview.capture.sim.parts.interrupt_sources import FullBuffer
from satview.capture.sim.parts.recorder import WATCH
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.sigevent import Sigevent
from satview.capture.sim.parts.target import Target
from satview.capture.sim.parts.threads import Cpu, Thread

__all__ = ["InterruptHookTrace", "TraceEvent"]

_INSERTS = frozenset((9, 30, 31, 32, 42, 43))  # modes of TraceEvent() that insert an event


@dataclass(slots=True)
class TraceEvent(Call):
    """The call of the trace interface; see `capture.trace_event`.

    Attributes:
        location: Where a program made it, until the kernel gets it: one that is thrown away before was not yielded.
    """

    name = "TRACE_EVENT"
    mode: int
    args: tuple[Any, ...] = ()
    location: str = field(default="", compare=False, repr=False)

    def __init__(self, mode: int, *args: Any) -> None:
        if not isinstance(mode, int):
            raise TypeError(f"TraceEvent: mode {mode!r:.40} is no number")
        self.mode = mode
        self.args = args
        self.location = WATCH.location()

    def __del__(self) -> None:
        if getattr(self, "location", ""):  # none if the mode was no number
            WATCH.thrown_away(self.location)

    def is_silent(self, target: Target) -> bool:
        """From 6.4 on nothing is logged of calls that insert an event but that event."""
        return self.mode & 0x0FFFFFFF in _INSERTS and not target.is_old

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Hand the call to the trace control."""
        self.location = ""  # it was yielded
        kernel.enter(cpu, thread, self)
        kernel.history.caller = (thread.pid, thread.tid)
        try:
            value = kernel.trace_event(self.mode, self.args, cpu.index, thread.pid, has_io(kernel, thread))
        except OSError as error:
            thread.value, thread.error = None, error.with_traceback(None)  # reported with the program's line
            thread.exit_error = error.errno or 0
        else:
            kernel.complete(thread, value, ret_val=value)

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the mode and the first arguments."""
        numbers = [arg if isinstance(arg, int) else 0x8047B00 for arg in self.args[:4]]
        names = ("class", "event", "data_1", "data_2")
        values = {"mode": self.mode, **dict(zip(names, numbers, strict=False))}
        # 6.x names the same words after the mode that inserts an event as it is.
        return {**values, "class[header]": values.get("class", 0), "event[time_off]": values.get("event", 0)}


@dataclass(slots=True)
class InterruptHookTrace(Call):
    """Hear of full trace buffers: `handler(buffer index << 13 | sequence & 0x7ff)` returns an event, or None.

    Several handlers may hook the interrupt; all are called. A new one comes first, with `_NTO_INTR_FLAGS_END` last.
    Result: an id for InterruptDetach(); EPERM without I/O privilege.
    """

    name = "INTERRUPT_ATTACH"
    handler: Callable[[int], Sigevent | None]
    flags: int = 0

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return the synthetic interrupt and the address."""
        return {"intr": 0x80000000, "handler_p": code_address(self.handler, thread), "flags": self.flags}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Hook the synthetic interrupt; its event is delivered once the kernel has left what it does."""
        kernel.enter(cpu, thread, self)
        check_io(kernel, thread)
        ident = kernel.interrupts.new_ident()
        kernel.complete(thread, ident, int_fun_id=ident)

        def hook(buffer: FullBuffer) -> None:
            info = buffer.index << 13 | buffer.sequence & 0x7FF
            event = kernel.guard(thread, "trace handler", lambda: self.handler(info))
            if isinstance(event, Sigevent):
                kernel.deferred.append(
                    (kernel.cpus[0], lambda here: deliver(kernel, here, thread.process, thread, event, "SPULSE_EXE"))
                )

        kernel.interrupts.trace_hooks.attach(ident, thread.process, hook, self.flags)
