"""Kernel calls that answer at once: a class holds its arguments and how the kernel answers.

Fields have the names of the event table; where those are no Python names, `values()` tells them. An answer is the
result of the `yield` and the values of the exit event; a call that fails raises `QnxError`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from satview.capture.sim.call_base import Call
from satview.capture.sim.errors import Errno, QnxError

if TYPE_CHECKING:
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine
    from satview.capture.sim.threads import Thread

Answer = tuple[Any, dict[str, int]]


@dataclass(slots=True)
class PromptCall(Call):
    """A kernel call that never waits."""

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002  -- a few need the caller
        """Return the fields that are numbers."""
        found = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: int(value) for name, value in found.items() if isinstance(value, int)}

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Carry the call out."""
        return 0, {}


def prompt_call(machine: Machine, cpu: Cpu, thread: Thread, call: PromptCall) -> None:
    """Carry out a call that answers at once."""
    if not machine.target.has_call(call.name):
        machine.fail(thread, Errno.ENOSYS, f"release {machine.target.release} has no {call.name}")
        return
    machine.enter(cpu, thread, call)
    try:
        value, values = call.answer(machine, cpu, thread)
    except QnxError as error:
        machine.fail(thread, Errno(error.errno or 0), error.detail)
    else:
        machine.complete(thread, value, **values)
