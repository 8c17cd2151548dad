"""Kernel calls that read, set and adjust the clock."""

from __future__ import annotations

from dataclasses import dataclass

from satview.capture.sim.calls.call import CLOCK_MONOTONIC, SECOND_NS, Call
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import Errno, QnxError
from satview.capture.sim.parts.interrupt_sources import CLOCK_VECTOR
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Thread

__all__ = ["ClockAdjust", "ClockPeriod", "ClockTime"]

_MIN_TICK_NS = 10_000


@dataclass(slots=True)
class ClockTime(Call):
    """Query the time; result: nanoseconds since boot."""

    name = "CLOCK_TIME"

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the clock."""
        return {"id": CLOCK_MONOTONIC}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return nanoseconds since boot."""
        kernel.enter(cpu, thread, self)
        now_ns = kernel.now * SECOND_NS // kernel.target.cycles_per_s
        kernel.complete(thread, now_ns, **{"old(sec)": now_ns // SECOND_NS, "old(nsec)": now_ns % SECOND_NS})


@dataclass(slots=True)
class ClockPeriod(Call):
    """Query the period of the tick in nanoseconds, or set it; result: the old one. 8.0 has none: 1 ms."""

    name = "CLOCK_PERIOD"
    new_ns: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return clock and period."""
        return {"new->nsec": self.new_ns}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Change the clock's gap from the tick after the next on.

        Raises:
            QnxError: EINVAL (a tick length that the clock does not have).
        """
        kernel.enter(cpu, thread, self)
        clock = kernel.sources[CLOCK_VECTOR]
        old = clock.gap_ns() or 0
        if self.new_ns:
            if self.new_ns < _MIN_TICK_NS:
                raise QnxError(Errno.EINVAL, f"a tick of {self.new_ns} ns")
            clock.gap_ns = lambda: self.new_ns
        kernel.complete(thread, old, **{"old->nsec": old})


@dataclass(slots=True)
class ClockAdjust(Call):
    """Query the adjustment of the time of day under way, or begin one: so much per tick, for so many ticks."""

    name = "CLOCK_ADJUST"
    tick_count: int = 0
    tick_nsec_inc: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return ticks and increment."""
        return {"new->tick_count": self.tick_count, "new->tick_nsec_inc": self.tick_nsec_inc}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Keep the new adjustment; no program here reads the time of day."""
        kernel.enter(cpu, thread, self)
        old, kernel.clock_adjust = kernel.clock_adjust, (self.tick_count, self.tick_nsec_inc)
        kernel.complete(thread, old, **{"old->tick_count": old[0], "old->tick_nsec_inc": old[1]})
