"""Sources of interrupts, the handlers and events attached to them, and the hooks of the trace interrupt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from satview.capture.sim.parts.sigevent import Sigevent
from satview.capture.sim.parts.threads import Process, Thread

CLOCK_VECTOR = 0


class Attachment:
    """A handler or an event attached to an interrupt.

    Attributes:
        is_masked: The interrupt is masked for this attachment.
        is_latched: An interrupt occurred while masked; it is delivered at the unmask.
    """

    __slots__ = ("event", "handler", "handler_ns", "ident", "is_latched", "is_masked", "process", "thread", "vector")

    def __init__(
        self,
        ident: int,
        vector: int,
        thread: Thread,
        event: Sigevent | None,
        handler: Callable[[], Sigevent | None] | None,
        handler_ns: int,
    ) -> None:
        self.ident = ident
        self.vector = vector
        self.thread = thread
        self.process: Process = thread.process
        self.event = event
        self.handler = handler
        self.handler_ns = handler_ns
        self.is_masked = False
        self.is_latched = False


class InterruptSource:
    """A device that raises interrupts.

    Attributes:
        gap_ns: Returns the time to the next interrupt; None = no more interrupts.
        is_clock: This is the clock tick, or in 8.0 the silent timer that only ends time slices.
        is_silent: The interrupts are not logged, and no handlers are called.
        is_active: The device will raise another interrupt.
    """

    __slots__ = ("attachments", "cpu", "gap_ns", "is_active", "is_clock", "is_silent", "vector")

    def __init__(
        self, vector: int, cpu: int, gap_ns: Callable[[], int | None], is_clock: bool = False, is_silent: bool = False
    ) -> None:
        self.vector = vector
        self.cpu = cpu
        self.gap_ns = gap_ns
        self.is_clock = is_clock
        self.is_silent = is_silent
        self.is_active = False
        self.attachments: list[Attachment] = []


FLAGS_END = 0x1  # _NTO_INTR_FLAGS_END


class FullBuffer(Protocol):
    """The attributes of a full trace buffer that hooks use."""

    index: int
    sequence: int


@dataclass(frozen=True, slots=True)
class _TraceHook:
    ident: int
    process: Process
    handler: Callable[[FullBuffer], None]


class TraceHooks:
    """The handlers of the trace interrupt, in calling order: the newest first, those with FLAGS_END last.

    Source: manual of InterruptHookTrace().
    """

    def __init__(self) -> None:
        self._hooks: list[_TraceHook] = []

    def attach(self, ident: int, process: Process, handler: Callable[[FullBuffer], None], flags: int) -> None:
        """Add a handler."""
        hook = _TraceHook(ident, process, handler)
        if flags & FLAGS_END:
            self._hooks.append(hook)
        else:
            self._hooks.insert(0, hook)

    def detach(self, ident: int, process: Process) -> bool:
        """Remove a handler by its id; return whether the process had a handler with that id."""
        others = [hook for hook in self._hooks if hook.ident != ident or hook.process is not process]
        was_there = len(others) < len(self._hooks)
        self._hooks = others
        return was_there

    def detach_all(self, process: Process) -> None:
        """Remove all handlers of a process."""
        self._hooks = [hook for hook in self._hooks if hook.process is not process]

    def call(self, buffer: FullBuffer) -> None:
        """Call all handlers with a full buffer, in calling order."""
        for hook in tuple(self._hooks):
            hook.handler(buffer)
