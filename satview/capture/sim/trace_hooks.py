"""Handlers of the synthetic trace interrupt: whoever hooked it with InterruptHookTrace() hears of every full buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from satview.capture.sim.threads import Process

FLAGS_END = 0x1     # _NTO_INTR_FLAGS_END
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _TraceHook(Generic[T]):
    ident: int
    process: Process
    handler: Callable[[T], None]


class TraceHooks(Generic[T]):
    """The handlers in the order in which they are called: a new one comes first, unless its flags say otherwise.

    Source: manual of InterruptHookTrace().
    """

    def __init__(self) -> None:
        self._hooks: list[_TraceHook[T]] = []

    def attach(self, ident: int, process: Process, handler: Callable[[T], None], flags: int) -> None:
        """Add a handler."""
        hook = _TraceHook(ident, process, handler)
        if flags & FLAGS_END:
            self._hooks.append(hook)
        else:
            self._hooks.insert(0, hook)

    def detach(self, ident: int, process: Process) -> bool:
        """Remove a handler by its id; return whether the process has one with it."""
        kept = [hook for hook in self._hooks if hook.ident != ident or hook.process is not process]
        was_there = len(kept) < len(self._hooks)
        self._hooks = kept
        return was_there

    def detach_all(self, process: Process) -> None:
        """Remove the handlers of a process that dies."""
        self._hooks = [hook for hook in self._hooks if hook.process is not process]

    def call(self, buffer: T) -> None:
        """Call all handlers, one after the other."""
        for hook in tuple(self._hooks):
            hook.handler(buffer)
