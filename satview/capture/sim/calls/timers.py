"""Kernel calls that wait for a time, limit a wait, or set up timers."""

from __future__ import annotations

from dataclasses import dataclass

from satview.capture.sim.calls.call import CLOCK_MONOTONIC, SECOND_NS, SIGALRM, Call
from satview.capture.sim.calls.timeouts import FLAGS_THREAD, NO_TIMER, log_expiry
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import Errno, QnxError
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.sigevent import Sigevent, event_values
from satview.capture.sim.parts.threads import Thread, Timer

__all__ = ["Sleep", "TimerAlarm", "TimerCreate", "TimerDestroy", "TimerInfo", "TimerSettime", "TimerTimeout"]

_INFO_ADDRESS = 0x8047C80


@dataclass(slots=True)
class Sleep(Call):
    """Sleep at least so long."""

    name = "TIMER_TIMEOUT"
    ns: int

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return clock, states and time."""
        seconds, rest = divmod(self.ns, SECOND_NS)
        return {
            "clock_id": CLOCK_MONOTONIC,
            "id": CLOCK_MONOTONIC,
            "timeout_flags": 1 << 12,
            "ntime_sec": seconds,
            "ntime_nsec": rest,
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Sleep; the time runs from now."""
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        thread.timeout_token += 1
        token = thread.timeout_token
        deadline = kernel.now + kernel.target.cycles(self.ns)

        def fire(where: Cpu) -> None:
            if thread.timeout_token == token and thread.state == "NANOSLEEP":
                log_expiry(kernel, where, thread, NO_TIMER, FLAGS_THREAD)
                kernel.wake(where, thread)

        kernel.timers.start(deadline, fire)
        kernel.block(cpu, thread, "NANOSLEEP", "time")


@dataclass(slots=True)
class TimerTimeout(Call):
    """Limit the next blocking call: in one of these states it ends with ETIMEDOUT after so long."""

    name = "TIMER_TIMEOUT"
    states: tuple[str, ...]
    ns: int

    def arguments(self, thread: Thread) -> dict[str, int]:
        """Return clock, states and time."""
        numbers = {
            "SEND": 4,
            "RECEIVE": 5,
            "REPLY": 6,
            "NANOSLEEP": 12,
            "MUTEX": 13,
            "CONDVAR": 14,
            "JOIN": 15,
            "INTR": 16,
            "SEM": 17,
        }
        flags = sum(1 << numbers[state] for state in self.states if state in numbers)
        return {**Sleep(self.ns).arguments(thread), "timeout_flags": flags}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Set the limit of the next blocking call."""
        kernel.enter(cpu, thread, self)
        thread.timeout_ns = self.ns
        thread.timeout_states = frozenset(self.states)
        kernel.complete(thread)


@dataclass(slots=True)
class TimerCreate(Call):
    """Make a timer that delivers an event; result: its number."""

    name = "TIMER_CREATE"
    event: Sigevent

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return clock and event."""
        return {"timer_id": CLOCK_MONOTONIC, "id": CLOCK_MONOTONIC, **event_values(self.event)}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Make a timer of the caller's process."""
        kernel.enter(cpu, thread, self)
        process = thread.process
        timer = Timer(process.next_timer, process, thread, self.event)
        process.next_timer += 1
        process.timers[timer.ident] = timer
        kernel.complete(thread, timer.ident, timer_id=timer.ident)


@dataclass(slots=True)
class TimerSettime(Call):
    """Start a timer (0 stops it)."""

    name = "TIMER_SETTIME"
    timer: int
    ns: int
    interval_ns: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return number, first and further periods."""
        return {
            "clock_id": self.timer,
            "id": self.timer,
            "itime->nsec_sec": self.ns // SECOND_NS,
            "itime->nsec_nsec": self.ns % SECOND_NS,
            "itime->interval_nsec_sec": self.interval_ns // SECOND_NS,
            "itime->interval_nsec_nsec": self.interval_ns % SECOND_NS,
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Start or stop a timer.

        Raises:
            QnxError: EINVAL (no timer).
        """
        kernel.enter(cpu, thread, self)
        timer = thread.process.timers.get(self.timer)
        if timer is None:
            raise QnxError(Errno.EINVAL, f"no timer {self.timer}")
        timer.generation += 1
        timer.interval_ns = self.interval_ns
        kernel.complete(thread)
        if self.ns > 0:
            kernel.timers.set_off(timer, self.ns)


@dataclass(slots=True)
class TimerDestroy(Call):
    """Remove a timer."""

    name = "TIMER_DESTROY"
    timer: int

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return its number."""
        return {"id": self.timer}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Remove a timer.

        Raises:
            QnxError: EINVAL (no timer).
        """
        kernel.enter(cpu, thread, self)
        timer = thread.process.timers.pop(self.timer, None)
        if timer is None:
            raise QnxError(Errno.EINVAL, f"no timer {self.timer}")
        timer.generation += 1
        kernel.complete(thread)


def _left_ns(kernel: KernelServices, timer: Timer | None) -> int:
    left = max(0, timer.deadline - kernel.now) if timer is not None else 0
    return left * SECOND_NS // kernel.target.cycles_per_s


@dataclass(slots=True)
class TimerInfo(Call):
    """Query a timer, or the next one there is; result `(number, ns left, interval ns)`."""

    name = "TIMER_INFO"
    id: int
    pid: int = 0
    info_p: int = _INFO_ADDRESS

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return what is left.

        Raises:
            QnxError: EINVAL (no timer from that number on).
        """
        kernel.enter(cpu, thread, self)
        idents = [ident for ident in sorted(thread.process.timers) if ident >= self.id]
        if not idents:
            raise QnxError(Errno.EINVAL, f"no timer from {self.id} on")
        timer = thread.process.timers[idents[0]]
        left = _left_ns(kernel, timer)
        values = {
            "prev_id": idents[0],
            "info->tid": timer.thread.tid,
            "info->notify": timer.event.notify,
            "info->clockid": CLOCK_MONOTONIC,
            "info->itime.nsec": left,
            "info->otime.nsec": left,
        }
        for name, ns in (
            ("itime.nsec", left),
            ("itime.interval_nsec", timer.interval_ns),
            ("otime.nsec", left),
            ("otime.interval_nsec", timer.interval_ns),
        ):
            values |= {f"info->{name}(sec)": ns // SECOND_NS, f"info->{name}(nsec)": ns % SECOND_NS}
        kernel.complete(thread, (idents[0], left, timer.interval_ns), **values)


@dataclass(slots=True)
class TimerAlarm(Call):
    """Send SIGALRM to the caller's process after a time (0 = not any more); result: ns that the last one had left."""

    name = "TIMER_ALARM"
    ns: int
    interval_ns: int = 0

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return clock and times."""
        return {
            "id": CLOCK_MONOTONIC,
            "clock_id": CLOCK_MONOTONIC,
            "itime->nsec_sec": self.ns // SECOND_NS,
            "itime->nsec_nsec": self.ns % SECOND_NS,
            "itime->interval_nsec_sec": self.interval_ns // SECOND_NS,
            "itime->interval_nsec_nsec": self.interval_ns % SECOND_NS,
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Start the alarm of the process again."""
        kernel.enter(cpu, thread, self)
        process = thread.process
        left = _left_ns(kernel, process.alarm)
        if process.alarm is not None:
            process.alarm.generation += 1
        process.alarm = Timer(-1, process, thread, Sigevent("signal", signo=SIGALRM))
        process.alarm.interval_ns = self.interval_ns
        if self.ns > 0:
            kernel.timers.set_off(process.alarm, self.ns)
        seconds = {f"{name}->nsec_sec": left // SECOND_NS for name in ("otime", "oitime")}
        rests = {f"{name}->nsec_nsec": left % SECOND_NS for name in ("otime", "oitime")}
        kernel.complete(thread, left, **seconds, **rests)
