"""The gate every event passes: filters, handlers, buffers, in the order in which the kernel asks them.

Order of tests: class and event mask (by the caller), pid and tid, class handler, event handler, tracing on, buffer
available. Source: capture side, section 3.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from satview.capture.buffers import Buffer, TraceBuffers
from satview.capture.classes import Class
from satview.capture.settings import MAX_HANDLERS, OLD_HANDLERS, ON, Settings
from satview.capture.sim.target import Target
from satview.events import wire

if TYPE_CHECKING:
    from satview.capture.sim.machine import Machine

_LOW = 0xFFFFFFFF


class Gate:
    """Decides for every event whether it is recorded, and writes it.

    Attributes:
        settings: What is on and for whom.
        buffers: Where slots go; None until ALLOCBUFFER.
        is_tracing: Between START and STOP.
        emitted: Events written.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.settings = Settings(target.release, OLD_HANDLERS if target.is_old else MAX_HANDLERS)
        self.buffers: TraceBuffers | None = None
        self.is_tracing = False
        self.emitted = 0
        self.byte_order = "big" if target.big_endian else "little"
        self._machine: Machine | None = None

    def connect(self, machine: Machine) -> None:
        """Tell the emitter which machine it records; needed for interrupts between slots."""
        self._machine = machine

    def allocate(self, count: int, hand_over: Callable[[Buffer], None]) -> TraceBuffers:
        """Make the kernel buffers and return them."""
        if self._machine is None:
            raise AssertionError("connect() comes first")
        self.buffers = TraceBuffers(self.target, count, hand_over, self._time_passes, self._machine.poll_nested,
                                    self._machine.truth.skew_cycles)
        return self.buffers

    # The way into the buffers

    def put(self, cpu: int, code: int, time: int, words: Sequence[int], flags: int = 0) -> bool:
        """Write an event that has passed all filters, if tracing is on and there is a buffer."""
        if not self.is_tracing or self.buffers is None:
            return False
        self.emitted += 1
        return self.buffers.put(cpu, code, time, words, flags)

    def admit(self, cpu: int, code: int, base: int, place: tuple[int, int, int], words: Sequence[int],
               feature_mask: int = 3) -> int:
        """Ask pid and tid settings and handlers; `place` is (external class, pid, tid)."""
        cls, pid, tid = place
        if cls != Class.SYSTEM and not self.settings.owner_passes(base, pid, tid):
            return 0
        return self.ask(cpu, code, (cls, base), words, (pid, tid), feature_mask)

    def ask(self, cpu: int, code: int, place: tuple[int, int], words: Sequence[int], feature: tuple[int, int],
             feature_mask: int) -> int:
        """Ask the class handler, then the event handler; both must let the event pass. Returns the last answer."""
        cls, event = place
        answer = 1
        for key in ((cls, -1), (cls, event)):
            hook = self.settings.hooks.get(key)
            if hook is None:
                continue
            data = hook.data
            padded = list(words) + [0] * (2 - len(words))
            data.header = code | cpu << wire.CPU_SHIFT
            data.data_array[: len(padded)] = [word & _LOW for word in padded]
            data.el_num = len(padded)
            data.feature_mask = feature_mask
            if feature_mask:
                data.feature[:] = feature
            answer = hook.function(data)
            if not answer:
                return 0
        return answer

    def _time_passes(self, cpu: int, time: int, payload: tuple[int, int]) -> bool:  # noqa: ARG002
        code = wire.CONTROL_TIME
        if not self.settings.on[code] & ON:
            return False
        return not self.settings.watched[code] or bool(
            self.ask(cpu, code, (Class.CONTROL, code), payload, (0, 0), 0))
