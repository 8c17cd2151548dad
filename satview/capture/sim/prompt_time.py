"""Kernel calls about clocks and timers that answer at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from satview.capture.sim.call_base import CLOCK_MONOTONIC, SIGALRM, Sigevent
from satview.capture.sim.errors import Errno, QnxError
from satview.capture.sim.interrupts import CLOCK_VECTOR
from satview.capture.sim.prompt import Answer, PromptCall
from satview.capture.sim.timers import Timer

if TYPE_CHECKING:
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine
    from satview.capture.sim.threads import Thread

_INFO_ADDRESS = 0x8047C80
_MIN_TICK_NS = 10_000
_SECOND_NS = 1_000_000_000


@dataclass(slots=True)
class ClockPeriod(PromptCall):
    """Ask for the period of the tick in nanoseconds, or set it; result: the old one. 8.0 has none: 1 ms."""

    name = "CLOCK_PERIOD"
    new_ns: int = 0

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return clock and period."""
        return {"new->nsec": self.new_ns}

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Change the clock's gap from the tick after the next on."""
        clock = machine.sources[CLOCK_VECTOR]
        old = clock.gap_ns() or 0
        if self.new_ns:
            if self.new_ns < _MIN_TICK_NS:
                raise QnxError(Errno.EINVAL, f"a tick of {self.new_ns} ns")
            clock.gap_ns = lambda: self.new_ns
        return old, {"old->nsec": old}


@dataclass(slots=True)
class ClockAdjust(PromptCall):
    """Ask for the adjustment of the time of day under way, or begin one: so much per tick, for so many ticks."""

    name = "CLOCK_ADJUST"
    tick_count: int = 0
    tick_nsec_inc: int = 0

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return ticks and increment."""
        return {"new->tick_count": self.tick_count, "new->tick_nsec_inc": self.tick_nsec_inc}

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Keep the new adjustment; no program here asks for the time of day."""
        old, machine.clock_adjust = machine.clock_adjust, (self.tick_count, self.tick_nsec_inc)
        return old, {"old->tick_count": old[0], "old->tick_nsec_inc": old[1]}


@dataclass(slots=True)
class TimerInfo(PromptCall):
    """Ask for a timer, or the next one there is; result `(number, ns left, interval ns)`."""

    name = "TIMER_INFO"
    id: int
    pid: int = 0
    info_p: int = _INFO_ADDRESS

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Return what is left."""
        idents = [ident for ident in sorted(thread.process.timers) if ident >= self.id]
        if not idents:
            raise QnxError(Errno.EINVAL, f"no timer from {self.id} on")
        timer = thread.process.timers[idents[0]]
        left = _left_ns(machine, timer)
        values = {"prev_id": idents[0], "info->tid": timer.thread.tid, "info->notify": timer.event.notify,
                  "info->clockid": CLOCK_MONOTONIC, "info->itime.nsec": left, "info->otime.nsec": left}
        for name, ns in (("itime.nsec", left), ("itime.interval_nsec", timer.interval_ns), ("otime.nsec", left),
                         ("otime.interval_nsec", timer.interval_ns)):
            values |= {f"info->{name}(sec)": ns // _SECOND_NS, f"info->{name}(nsec)": ns % _SECOND_NS}
        return (idents[0], left, timer.interval_ns), values


def _left_ns(machine: Machine, timer: Timer | None) -> int:
    left = max(0, timer.deadline - machine.now) if timer is not None else 0
    return left * _SECOND_NS // machine.target.cycles_per_s


@dataclass(slots=True)
class TimerAlarm(PromptCall):
    """Send SIGALRM to the caller's process after a time (0 = not any more); result: ns that the last one had left."""

    name = "TIMER_ALARM"
    ns: int
    interval_ns: int = 0

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return clock and times."""
        return {"id": CLOCK_MONOTONIC, "clock_id": CLOCK_MONOTONIC, "itime->nsec_sec": self.ns // _SECOND_NS,
                "itime->nsec_nsec": self.ns % _SECOND_NS, "itime->interval_nsec_sec": self.interval_ns // _SECOND_NS,
                "itime->interval_nsec_nsec": self.interval_ns % _SECOND_NS}

    def answer(self, machine: Machine, cpu: Cpu, thread: Thread) -> Answer:  # noqa: ARG002
        """Start the alarm of the process anew."""
        process = thread.process
        left = _left_ns(machine, process.alarm)
        if process.alarm is not None:
            process.alarm.generation += 1
        process.alarm = Timer(-1, process, thread, Sigevent("signal", signo=SIGALRM))
        process.alarm.interval_ns = self.interval_ns
        if self.ns > 0:
            machine.timers.set_off(process.alarm, self.ns)
        seconds = {f"{name}->nsec_sec": left // _SECOND_NS for name in ("otime", "oitime")}
        return left, seconds | {f"{name}->nsec_nsec": left % _SECOND_NS for name in ("otime", "oitime")}
