"""Kernel calls that attach, mask and wait for interrupts, and kernel calls of the trace interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from satview.capture.sim.calls.call import Call, check_io, code_address, has_io
from satview.capture.sim.calls.channels import deliver
from satview.capture.sim.services import WATCH, Errno, KernelServices, QnxError
from satview.capture.sim.target import Target
from satview.capture.sim.threads import Cpu, FullBuffer, Sigevent, Thread

__all__ = [
    "InterruptAttach", "InterruptAttachEvent", "InterruptDetach", "InterruptDetachFunc", "InterruptHookTrace",
    "InterruptMask", "InterruptUnmask", "InterruptWait", "TraceEvent",
]  # fmt: skip

Handler = Callable[[], Sigevent | None]


@dataclass(slots=True)
class InterruptAttach(Call):
    """Attach a handler that runs during the interrupt and may return an event; result: the attachment's id.

    Fails with EPERM without I/O privilege, and with ENOTSUP in 8.0.
    """

    name = "INTERRUPT_ATTACH"
    vector: int
    handler: Handler
    handler_ns: int = 1500

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return the logged arguments: vector, address of the handler, address and size of its data area, and flags."""
        return {
            "intr": self.vector,
            "handler_p": code_address(self.handler, thread),
            "area_p": 0x8060000,
            "areasize": 64,
            "flags": 0x8,
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Attach a handler.

        Raises:
            QnxError: ENOTSUP (this release has no interrupt handlers); EPERM (no I/O privilege).
        """
        kernel.enter(cpu, thread, self)
        if not kernel.target.has_handlers:
            raise QnxError(Errno.ENOTSUP, "this release has no interrupt handlers")
        check_io(kernel, thread)
        attachment = kernel.interrupts.attach(thread, self.vector, None, self.handler, self.handler_ns)
        kernel.complete(thread, attachment.ident, int_fun_id=attachment.ident)


@dataclass(slots=True)
class InterruptAttachEvent(Call):
    """Attach an event without a handler; in 8.0 the caller becomes the service thread. Result: the attachment's id.

    Up to 7.x fails with EPERM without I/O privilege.
    """

    name = "INTERRUPT_ATTACH"
    logs: ClassVar = {"intr": "vector", "flags": 0x8}
    vector: int
    event: Sigevent = field(default_factory=Sigevent)

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Attach the event; in 8.0 log the caller as the service thread."""
        kernel.enter(cpu, thread, self)
        if kernel.target.has_handlers:
            check_io(kernel, thread)
        attachment = kernel.interrupts.attach(thread, self.vector, self.event, None)
        if not kernel.target.has_handlers:
            kernel.record.service_thread(cpu.index, kernel.stamp(), thread, attachment.ident, cpu.index)
        kernel.complete(thread, attachment.ident, int_fun_id=attachment.ident)


@dataclass(slots=True)
class InterruptDetach(Call):
    """Detach a handler or event by its id."""

    name = "INTERRUPT_DETACH"
    logs: ClassVar = {"id": "ident"}
    ident: int

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Detach a handler or event.

        Raises:
            QnxError: EINVAL (no such attachment of the process).
        """
        kernel.enter(cpu, thread, self)
        if not kernel.interrupts.detach(self.ident, thread.process):
            raise QnxError(Errno.EINVAL, f"no attachment {self.ident}")
        if not kernel.target.has_handlers:
            values: dict[str, int | bytes] = {"pid": thread.pid, "tid": thread.tid, "intr_id": self.ident}
            values |= {"intr_cpu": cpu.index, "ist_prio": thread.priority}
            kernel.record.system(cpu.index, kernel.stamp(), "IST_DETACH", values)
        kernel.complete(thread)


@dataclass(slots=True)
class InterruptDetachFunc(Call):
    """Detach a handler by its vector and function (up to 7.x)."""

    name = "INTERRUPT_DETACH_FUNC"
    vector: int
    handler: Handler

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return the logged arguments: vector and address."""
        return {"intr": self.vector, "handler_p": code_address(self.handler, thread)}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Detach a handler.

        Raises:
            QnxError: EINVAL (the process has not attached this function to this vector).
        """
        kernel.enter(cpu, thread, self)
        source = kernel.sources.get(self.vector)
        for attachment in source.attachments if source is not None else ():
            if attachment.handler is self.handler and kernel.interrupts.detach(attachment.ident, thread.process):
                kernel.complete(thread)
                return
        raise QnxError(Errno.EINVAL, f"that function handles no interrupt {self.vector}")


@dataclass(slots=True)
class InterruptWait(Call):
    """Wait until a sigevent of kind `intr` is delivered to the calling thread."""

    name = "INTERRUPT_WAIT"

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Wait for a sigevent of kind `intr`; return at once if one has been delivered already."""
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        if thread.unmasked_intr:
            thread.unmasked_intr -= 1
            return
        kernel.block(cpu, thread, "INTR", "interrupt")


@dataclass(slots=True)
class _MaskCall(Call):
    """Base class of calls whose arguments are a vector and the id of an attachment."""

    logs: ClassVar = {"intr": "vector", "id": "ident"}

    vector: int
    ident: int = 0


@dataclass(slots=True)
class InterruptUnmask(_MaskCall):
    """Unmask an interrupt that was masked when its event was delivered."""

    name = "INTERRUPT_UNMASK"

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Unmask the interrupt; if it occurred while masked, deliver its event now."""
        kernel.enter(cpu, thread, self)
        kernel.complete(thread, 0, mask_level=0)
        source = kernel.sources.get(self.vector)
        for attachment in source.attachments if source is not None else ():
            if attachment.process is thread.process and attachment.is_masked:
                attachment.is_masked = False
                if attachment.is_latched and attachment.event is not None:
                    attachment.is_latched = False
                    attachment.is_masked = True
                    deliver(kernel, cpu, attachment.process, attachment.thread, attachment.event, "SPULSE_EXE")


@dataclass(slots=True)
class InterruptMask(_MaskCall):
    """Mask an interrupt for the caller's process until `InterruptUnmask`; result: the mask count."""

    name = "INTERRUPT_MASK"
    ident: int = -1

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Mask the attachments of the caller's process.

        Raises:
            QnxError: EINVAL (the process has nothing attached to the interrupt).
        """
        kernel.enter(cpu, thread, self)
        source = kernel.sources.get(self.vector)
        own = [a for a in source.attachments if a.process is thread.process] if source is not None else []
        if not own:
            raise QnxError(Errno.EINVAL, f"nothing attached to interrupt {self.vector}")
        for attachment in own:
            attachment.is_masked = True
        kernel.complete(thread, 1, mask_level=1)


_INSERTS = frozenset((9, 30, 31, 32, 42, 43))  # modes of TraceEvent() that insert an event


@dataclass(slots=True)
class TraceEvent(Call):
    """The kernel call TraceEvent(); see `capture.kernel`.

    Attributes:
        location: File and line where a program created the object; empty once it was yielded. An object that is deleted
            with a location was never yielded.
    """

    name = "TRACE_EVENT"
    mode: int
    args: tuple[Any, ...] = ()
    location: str = field(default="", compare=False, repr=False)

    def __init__(self, mode: int, *args: Any) -> None:
        if not isinstance(mode, int):
            raise TypeError(f"TraceEvent: mode {mode!r:.40} is not a number")
        self.mode = mode
        self.args = args
        self.location = WATCH.location()

    def __del__(self) -> None:
        if getattr(self, "location", ""):  # not set if the mode was no number
            WATCH.record_unused(self.location)

    def is_silent(self, target: Target) -> bool:
        """Return whether the call only inserts an event: from 6.4 on, the event is logged instead of the call."""
        return self.mode & 0x0FFFFFFF in _INSERTS and not target.is_old

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Execute the call by `kernel.trace_event`."""
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
        """Return the logged arguments: the mode and the first arguments."""
        numbers = [arg if isinstance(arg, int) else 0x8047B00 for arg in self.args[:4]]
        names = ("class", "event", "data_1", "data_2")
        values = {"mode": self.mode, **dict(zip(names, numbers, strict=False))}
        # In 6.x these words are named after the mode that inserts an unchanged event.
        return {**values, "class[header]": values.get("class", 0), "event[time_off]": values.get("event", 0)}


@dataclass(slots=True)
class InterruptHookTrace(Call):
    """Attach a handler to the trace interrupt, which full trace buffers raise; result: an id for InterruptDetach().

    The handler's argument is `buffer index << 13 | sequence & 0x7ff`; it returns a sigevent or None. All attached
    handlers are called: the newest first, those with `_NTO_INTR_FLAGS_END` last. Without I/O privilege: EPERM.
    """

    name = "INTERRUPT_ATTACH"
    handler: Callable[[int], Sigevent | None]
    flags: int = 0

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return the logged arguments: the vector of the trace interrupt, the handler's address and the flags."""
        return {"intr": 0x80000000, "handler_p": code_address(self.handler, thread), "flags": self.flags}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Attach the handler; its event is delivered once the current kernel operation has ended."""
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
